/* Fills, casts, and the columns of keys and values. fp8 is E4M3 with a scale of 1: numbers beyond its range become its
 * largest. */
#include <cuda_fp8.h>

#include "exec/cuda/stream.cuh"

static __host__ __device__ __forceinline__ float to_float(__nv_fp8_e4m3 x) { return (float)x; }
template <> __host__ __device__ __forceinline__ __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float x)
{
	return __nv_fp8_e4m3(x);
}
static __device__ __forceinline__ void pack_pair(float a, float b, __nv_fp8_e4m3 *to)
{
	const __nv_fp8x2_storage_t two = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
	memcpy(to, &two, sizeof two);
}

__global__ void __launch_bounds__(STREAM_THREADS) fill_kernel(uint8_t *at, int64_t bytes)
{
	const int64_t first = (int64_t)blockIdx.x * thread_count() + thread_rank(),
		      stride = (int64_t)gridDim.x * thread_count();
	const int64_t past = (int64_t)((uintptr_t)at % 16), before = past ? 16 - past : 0,
		      head = before < bytes ? before : bytes;
	const int64_t whole = (bytes - head) / 16, tail = head + whole * 16;
	for (int64_t i = first; i < whole; i += stride)
		store_packed(at + head + i * 16, {{0, 0, 0, 0}});
	for (int64_t i = first; i < head; i += stride)
		at[i] = 0;
	for (int64_t i = tail + first; i < bytes; i += stride)
		at[i] = 0;
}

/* Bytes of n elements; -1 where an element has no whole bytes of its own. */
static int64_t whole_bytes(enum dtype d, int64_t n)
{
	const double one = dtype_bytes(d);
	return one == (double)(int64_t)one ? n * (int64_t)one : -1;
}

extern "C" enum status launch_fill(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t bytes = whole_bytes(arg[0].dtype, op->vector.elements);
	if (bytes < 0)
		return error_set(e, ST_RUN, "fill: no kernel for format %s", dtype_name(arg[0].dtype));
	return start<fill_kernel>(env->stream, stream_grid(env, bytes, STREAM_THREADS * 16), STREAM_THREADS, e,
		(uint8_t *)arg[0].at, bytes);
}

template <class X, class Y> struct cast_span {
	static constexpr int N = 16 / (int)(sizeof(X) > sizeof(Y) ? sizeof(X)
								  : sizeof(Y)); /* the wider one in whole vectors */
};

template <class X, class Y>
__global__ void __launch_bounds__(STREAM_THREADS) cast_kernel(const X *x, Y *y, int64_t n, bool spans)
{
	for_spans<cast_span<X, Y>::N>(n, spans, [&](int64_t i, auto count) {
		constexpr int C = decltype(count)::value;
		float v[C];
		load_vec<X, C>(x + i, v);
		store_vec<Y, C>(y + i, v);
	});
}

/* with_format, and fp8. */
template <class F> static enum status with_narrow_format(enum dtype d, struct error *e, F f)
{
	return d == DT_FP8 ? f(format<__nv_fp8_e4m3>{}) : with_format(d, e, f);
}

extern "C" enum status launch_cast(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	if (arg[0].at == arg[1].at && arg[0].dtype == arg[1].dtype)
		return ST_OK;
	return with_narrow_format(arg[0].dtype, e, [&](auto a) {
		return with_narrow_format(arg[1].dtype, e, [&](auto b) {
			using X = typename decltype(a)::type;
			using Y = typename decltype(b)::type;
			constexpr int N = cast_span<X, Y>::N;
			const X *x = (const X *)arg[0].at;
			Y *y = (Y *)arg[1].at;
			return start<cast_kernel<X, Y>>(env->stream,
				stream_grid(env, op->vector.elements, STREAM_THREADS * N), STREAM_THREADS, e, x, y,
				op->vector.elements, span_fits<N>(x) && span_fits<N>(y));
		});
	});
}

/* ---- the K and V columns, which end a row of qkv ---- */

struct kv_columns {
	int64_t rows, cols, width; /* of kv, of a row of qkv */
	bool adds, spans;
};

/* f(element of kv, of qkv, count) */
template <class T, class F> static __device__ __forceinline__ void for_kv(const struct kv_columns &k, F f)
{
	constexpr int N = vec_of<T>::N;
	for_spans<N>(k.rows * k.cols, k.spans, [&](int64_t i, auto count) {
		int64_t col;
		const int64_t row = divide(i, k.cols, &col);
		f(i, row * k.width + k.width - k.cols + col, count);
	});
}

template <class T>
__global__ void __launch_bounds__(STREAM_THREADS) kv_pack_kernel(const T *qkv, T *kv, struct kv_columns k)
{
	for_kv<T>(k, [&](int64_t to, int64_t from, auto count) {
		constexpr int C = decltype(count)::value;
		float v[C];
		load_vec<T, C>(qkv + from, v);
		store_vec<T, C>(kv + to, v);
	});
}

template <class T>
__global__ void __launch_bounds__(STREAM_THREADS) kv_unpack_kernel(const T *kv, T *qkv, struct kv_columns k)
{
	for_kv<T>(k, [&](int64_t from, int64_t to, auto count) {
		constexpr int C = decltype(count)::value;
		float v[C], had[C] = {};
		load_vec<T, C>(kv + from, v);
		if (k.adds)
			load_vec<T, C>(qkv + to, had);
		UNROLL
		for (int i = 0; i < C; i++)
			v[i] += had[i];
		store_vec<T, C>(qkv + to, v);
	});
}

template <class F>
static enum status with_kv(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e, F f)
{
	const enum status st = same_format(op, arg, 0, 1u << 1, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto a) {
		using T = typename decltype(a)::type;
		constexpr int N = vec_of<T>::N;
		const bool spans = op->pack.kv_cols % N == 0 && op->pack.qkv_cols % N == 0 &&
		                   span_fits<N>((const T *)arg[0].at) && span_fits<N>((const T *)arg[1].at);
		return f(a,
			kv_columns{op->pack.rows, op->pack.kv_cols, op->pack.qkv_cols, (op->flags & OP_ACCUMULATE) != 0,
				spans},
			STREAM_THREADS * N);
	});
}

extern "C" enum status launch_kv_pack(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return with_kv(op, arg, e, [&](auto a, struct kv_columns k, int64_t share) {
		using T = typename decltype(a)::type;
		return start<kv_pack_kernel<T>>(env->stream, stream_grid(env, k.rows * k.cols, share), STREAM_THREADS,
			e, (const T *)arg[0].at, (T *)arg[1].at, k);
	});
}

extern "C" enum status launch_kv_unpack(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return with_kv(op, arg, e, [&](auto a, struct kv_columns k, int64_t share) {
		using T = typename decltype(a)::type;
		return start<kv_unpack_kernel<T>>(env->stream, stream_grid(env, k.rows * k.cols, share), STREAM_THREADS,
			e, (const T *)arg[0].at, (T *)arg[1].at, k);
	});
}
