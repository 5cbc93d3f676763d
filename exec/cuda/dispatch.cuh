/* From formats known when the program runs to kernel instances: what launchers choose with.
 *
 *   return with_format(arg[0].dtype, e, [&](auto x) {
 *           using X = typename decltype(x)::type;
 *           return start<some_kernel<X>>(env->stream, grid, threads, e, (const X *)arg[0].at, n);
 *   });
 *
 * A kernel has external linkage and named types only, so that its twin on the host is found by its name; `start` makes
 * that twin known, no TWIN() is needed.
 */
#ifndef STEPSIM_EXEC_CUDA_DISPATCH_CUH
#define STEPSIM_EXEC_CUDA_DISPATCH_CUH

#include <type_traits>

#include "exec/cuda/kernels.h"
#include "exec/cuda/prim.cuh"

template <class T> struct format {
	typedef T type;
};

/* f(format<T>{}) with the type in which `d` is stored; ST_RUN where no kernel is. */
template <class F> static enum status with_format(enum dtype d, struct error *e, F f)
{
	switch (d) {
	case DT_FP32:
	case DT_TF32: return f(format<float>{});
	case DT_BF16: return f(format<__nv_bfloat16>{});
	case DT_FP16: return f(format<__half>{});
	default: return error_set(e, ST_RUN, "no kernel for format %s", dtype_name(d));
	}
}

/* Any two, any three: 9 and 27 instances. */
template <class F> static enum status with_formats(enum dtype a, enum dtype b, struct error *e, F f)
{
	return with_format(a, e, [&](auto A) { return with_format(b, e, [&](auto B) { return f(A, B); }); });
}

template <class F> static enum status with_formats(enum dtype a, enum dtype b, enum dtype c, struct error *e, F f)
{
	return with_format(a, e,
		[&](auto A) { return with_formats(b, c, e, [&](auto B, auto C) { return f(A, B, C); }); });
}

/* `b` is stored as `a` is, or as fp32: the 5 instances that weights beside activations come in. */
template <class F> static enum status with_format_or_fp32(enum dtype a, enum dtype b, struct error *e, F f)
{
	return with_formats(a, b, e, [&](auto A, auto B) {
		if constexpr (std::is_same_v<decltype(A), decltype(B)> || std::is_same_v<decltype(B), format<float>>)
			return f(A, B);
		else
			return error_set(e, ST_RUN, "no kernel for format %s beside %s", dtype_name(b), dtype_name(a));
	});
}

/* f(std::true_type{}) or f(std::false_type{}). */
template <class F> static enum status with_bool(bool b, F f) { return b ? f(std::true_type{}) : f(std::false_type{}); }

/* ST_RUN unless the arguments of the mask `args` that are there are all stored as argument `first` is. */
static inline enum status same_format(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], int first,
	unsigned args, struct error *e)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	for (int i = 0; i < info->n_args; i++)
		if (args >> i & 1 && arg[i].at && arg[i].dtype != arg[first].dtype)
			return error_set(e, ST_RUN, "%s: no kernel for %s as %s beside %s as %s", info->name,
				info->arg[i].name, dtype_name(arg[i].dtype), info->arg[first].name,
				dtype_name(arg[first].dtype));
	return ST_OK;
}

#ifdef STEPSIM_TWIN
template <auto K> struct twin_of {
	static inline const twin_registrar known{twin_kernel<K>()};
};
#define TWIN_OF(K) ((void)&twin_of<K>::known)
#else
#define TWIN_OF(K) ((void)0)
#endif

/* Enqueues the kernel; an empty grid is nothing to do. */
template <auto K, class... A>
static enum status start(cudaStream_t stream, dim3 grid, int threads, struct error *e, A... args)
{
	TWIN_OF(K);
	if (!grid.x || !grid.y || !grid.z)
		return ST_OK;
	LAUNCH(K, grid, threads, stream, args...);
	return LAUNCHED(e);
}

#endif
