/* Kernels that compute each value from a few others at the same place: a functor of what to read and what to write,
 * over vectors numbered 0 .. n - 1.
 *
 *   struct twice<T, V> { const T *x; T *y; typedef vec<T, V> item; item read(int64_t i) const; void write(int64_t i,
 * const item &in) const; };
 *
 * A thread reads DEPTH vectors before it writes one, so that enough bytes are under way. What a functor writes may be
 * what it reads at the same i.
 */
#ifndef STEPSIM_EXEC_CUDA_MAP_CUH
#define STEPSIM_EXEC_CUDA_MAP_CUH

#include "exec/cuda/dispatch.cuh"

#define MAP_THREADS 256
#define MAP_DEPTH 2
#define MAP_WAVES 32 /* blocks an SM at most: enough that they end together */

template <class F> __global__ void __launch_bounds__(MAP_THREADS) map_kernel(F f, int64_t n)
{
	const int64_t tile = (int64_t)thread_count() * MAP_DEPTH;
	for (int64_t first = blockIdx.x * tile + thread_rank(); first - thread_rank() < n; first += gridDim.x * tile) {
		typename F::item in[MAP_DEPTH];
		UNROLL
		for (int d = 0; d < MAP_DEPTH; d++)
			if (first + d * thread_count() < n)
				in[d] = f.read(first + d * thread_count());
		UNROLL
		for (int d = 0; d < MAP_DEPTH; d++)
			if (first + d * thread_count() < n)
				f.write(first + d * thread_count(), in[d]);
	}
}

template <class F> static enum status map(const struct cuda_env *env, F f, int64_t n, struct error *e)
{
	const int64_t tile = (int64_t)MAP_THREADS * MAP_DEPTH, tiles = (n + tile - 1) / tile,
		      most = (int64_t)(env->sms > 0 ? env->sms : 1) * MAP_WAVES;
	return start<map_kernel<F>>(env->stream, dim3((unsigned)(tiles < most ? tiles : most)), MAP_THREADS, e, f, n);
}

/* As map, for functors that tell rows apart (prim.cuh, divide): `n` vectors in rows. */
template <class F>
static enum status map_rows(const struct cuda_env *env, const struct op *op, F f, int64_t n, struct error *e)
{
	if (n > DIVIDE_MAX)
		return error_set(e, ST_RUN, "%s: %lld vectors, at most %lld",
			op_kind_info((enum op_kind)op->kind)->name, (long long)n, (long long)DIVIDE_MAX);
	return map(env, f, n, e);
}

/* f(std::integral_constant<int, V>{}): V of the format T in 16 bytes, or 1. */
template <class T, class F> static enum status with_width(bool vectors, F f)
{
	return vectors ? f(std::integral_constant<int, vec_of<T>::N>{}) : f(std::integral_constant<int, 1>{});
}

/* All of the arguments in the mask `args` begin at a 16-byte boundary. */
static inline bool all_aligned(const struct cuda_arg arg[OP_MAX_ARGS], unsigned args)
{
	for (int i = 0; i < OP_MAX_ARGS; i++)
		if (args >> i & 1 && !is_aligned(arg[i].at))
			return false;
	return true;
}

#endif
