/* The roofline's kernels: polynomial, streams, pointer chase. */
#include "exec/cuda/micro.h"
#include "exec/cuda/stream.cuh"
extern "C" {
#include "exec/micro.h"
}

/* ---- the polynomial ---- */

/* y <- y x + x for two numbers at once, or for one. */
template <class T> struct poly_lane {
	typedef float type;
	static constexpr int N = 1;
	static __device__ __forceinline__ type read(const T *p) { return to_float(*p); }
	static __device__ __forceinline__ void write(T *p, type v) { *p = from_float<T>(v); }
	static __device__ __forceinline__ type step(type y, type x) { return fmaf(y, x, x); }
	static __device__ __forceinline__ type zero(void) { return 0.0f; }
};

#ifndef STEPSIM_TWIN
#define PACKED_LANE(T, T2, zeros) \
	template <> struct poly_lane<T> { \
		typedef T2 type; \
		static constexpr int N = 2; \
		static __device__ __forceinline__ type read(const T *p) { return *(const T2 *)p; } \
		static __device__ __forceinline__ void write(T *p, type v) { *(T2 *)p = v; } \
		static __device__ __forceinline__ type step(type y, type x) { return __hfma2(y, x, x); } \
		static __device__ __forceinline__ type zero(void) { return zeros; } \
	};
PACKED_LANE(__nv_bfloat16, __nv_bfloat162, __float2bfloat162_rn(0.0f))
PACKED_LANE(__half, __half2, __float2half2_rn(0.0f))
#endif

#define POLY_THREADS 256
#define POLY_UNROLL 16 /* the loop's own instructions share the issue slots */
template <class T> struct poly_span {
	static constexpr int N = 2 * vec_of<T>::N; /* two 16-byte vectors a thread */
};

/* C elements, a multiple of the lane's. */
template <class T, int C> static __device__ __forceinline__ void poly_span_run(const T *a, T *b, int64_t k)
{
	typedef poly_lane<T> lane;
	constexpr int L = C / lane::N;
	constexpr int V = C < vec_of<T>::N ? C : vec_of<T>::N;
	vec<T, V> in[C / V], out[C / V];
	typename lane::type x[L], y[L];
	UNROLL
	for (int i = 0; i < C / V; i++)
		in[i] = vec_at<T, V>(a + i * V);
	UNROLL
	for (int i = 0; i < L; i++) {
		x[i] = lane::read(in[i * lane::N / V].at + i * lane::N % V);
		y[i] = lane::zero();
	}
	int64_t j = 0;
	for (; j + POLY_UNROLL <= k; j += POLY_UNROLL) {
		UNROLL
		for (int u = 0; u < POLY_UNROLL; u++) {
			UNROLL
			for (int i = 0; i < L; i++)
				y[i] = lane::step(y[i], x[i]);
		}
	}
	for (; j < k; j++) {
		UNROLL
		for (int i = 0; i < L; i++)
			y[i] = lane::step(y[i], x[i]);
	}
	UNROLL
	for (int i = 0; i < L; i++)
		lane::write(out[i * lane::N / V].at + i * lane::N % V, y[i]);
	UNROLL
	for (int i = 0; i < C / V; i++)
		vec_put<T, V>(b + i * V, out[i]);
}

template <class T>
__global__ void __launch_bounds__(POLY_THREADS) poly_kernel(const T *a, T *b, int64_t n, int64_t k, bool spans)
{
	for_spans<poly_span<T>::N>(n, spans, [&](int64_t i, auto count) {
		constexpr int C = decltype(count)::value;
		if constexpr (C >= poly_lane<T>::N) {
			poly_span_run<T, C>(a + i, b + i, k);
		} else { /* the last, odd ones */
			const float x = to_float(a[i]);
			float y = 0.0f;
			for (int64_t j = 0; j < k; j++)
				y = to_float(from_float<T>(fmaf(y, x, x)));
			b[i] = from_float<T>(y);
		}
	});
}

extern "C" enum status micro_poly(const struct cuda_env *env, enum dtype d, const void *a, void *b, int64_t n,
	int64_t k, struct error *e)
{
	return with_format(d, e, [&](auto x) {
		using T = typename decltype(x)::type;
		constexpr int N = poly_span<T>::N;
		return start<poly_kernel<T>>(env->stream, stream_grid(env, n, POLY_THREADS * N), POLY_THREADS, e,
			(const T *)a, (T *)b, n, k, is_aligned(a) && is_aligned(b));
	});
}

extern "C" const void *micro_poly_kernel(int *threads)
{
	*threads = POLY_THREADS;
	return (const void *)poly_kernel<float>;
}

template <class T> __global__ void __launch_bounds__(STREAM_THREADS) constant_kernel(T *at, int64_t n, float value)
{
	for_spans<1>(n, true, [&](int64_t i, auto) { at[i] = from_float<T>(value); });
}

extern "C" enum status micro_constant(const struct cuda_env *env, enum dtype d, void *at, int64_t n, double value,
	struct error *e)
{
	return with_format(d, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<constant_kernel<T>>(env->stream, stream_grid(env, n, STREAM_THREADS), STREAM_THREADS, e,
			(T *)at, n, (float)value);
	});
}

/* ---- streams ---- */

#define STREAM_TILE 4 /* vectors that a thread has under way */

static __device__ __forceinline__ float4 load_past_l1(const float4 *p)
{
#ifdef STEPSIM_TWIN
	return *p;
#else
	return __ldcg(p);
#endif
}

/* f(i) for every vector of every pass. A block takes another tile in each pass: the compiler may not keep what it has
 * read, and no SM is always the nearest to its own. */
template <class F> static __device__ __forceinline__ void for_passes(int64_t vectors, int64_t passes, F f)
{
	const int64_t tile = (int64_t)thread_count() * STREAM_TILE, tiles = (vectors + tile - 1) / tile;
	int64_t shift = 0;
	for (int64_t pass = 0; pass < passes; pass++, shift = shift + 1 < tiles ? shift + 1 : 0)
		for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x)
			f((t + shift < tiles ? t + shift : t + shift - tiles) * tile + thread_rank(), vectors);
}

static __device__ __forceinline__ float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__global__ void __launch_bounds__(STREAM_THREADS)
	read_kernel(const float4 *x, int64_t vectors, int64_t passes, float *sink)
{
	float sum = 0.0f;
	for_passes(vectors, passes, [&](int64_t at, int64_t n) {
		float4 v[STREAM_TILE];
		UNROLL
		for (int d = 0; d < STREAM_TILE; d++)
			v[d] = at + d * thread_count() < n ? load_past_l1(x + at + d * thread_count())
			                                   : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
		UNROLL
		for (int d = 0; d < STREAM_TILE; d++)
			sum += sum_of(v[d]);
	});
	if (sum == -1.0f) /* never: the arrays hold no negative numbers, which the compiler does not know */
		*sink = sum;
}

__global__ void __launch_bounds__(STREAM_THREADS)
	copy_kernel(const float4 *x, float4 *y, int64_t vectors, int64_t passes)
{
	for_passes(vectors, passes, [&](int64_t at, int64_t n) {
		float4 v[STREAM_TILE];
		UNROLL
		for (int d = 0; d < STREAM_TILE; d++)
			if (at + d * thread_count() < n)
				v[d] = load_past_l1(x + at + d * thread_count());
		UNROLL
		for (int d = 0; d < STREAM_TILE; d++)
			if (at + d * thread_count() < n)
				y[at + d * thread_count()] = v[d];
	});
}

__global__ void __launch_bounds__(STREAM_THREADS)
	triad_kernel(const float4 *x, const float4 *y, float4 *z, int64_t vectors, int64_t passes)
{
	const float s = 0.5f;
	for_passes(vectors, passes, [&](int64_t at, int64_t n) {
		float4 u[STREAM_TILE], v[STREAM_TILE];
		UNROLL
		for (int d = 0; d < STREAM_TILE; d++)
			if (at + d * thread_count() < n) {
				u[d] = load_past_l1(x + at + d * thread_count());
				v[d] = load_past_l1(y + at + d * thread_count());
			}
		UNROLL
		for (int d = 0; d < STREAM_TILE; d++)
			if (at + d * thread_count() < n)
				z[at + d * thread_count()] = make_float4(u[d].x + s * v[d].x, u[d].y + s * v[d].y,
					u[d].z + s * v[d].z, u[d].w + s * v[d].w);
	});
}

/* As many blocks as the device holds at once: the passes follow each other inside of the kernel. */
static unsigned passes_grid(const struct cuda_env *env, int64_t vectors)
{
	const int64_t tile = STREAM_THREADS * STREAM_TILE, tiles = (vectors + tile - 1) / tile,
		      most = (int64_t)(env->sms > 0 ? env->sms : 1) * 8;
	return (unsigned)(tiles < most ? tiles : most);
}

extern "C" enum status micro_read(const struct cuda_env *env, const float *x, int64_t n, int64_t passes, float *sink,
	struct error *e)
{
	return start<read_kernel>(env->stream, passes_grid(env, n / 4), STREAM_THREADS, e, (const float4 *)x, n / 4,
		passes, sink);
}

extern "C" enum status micro_copy(const struct cuda_env *env, const float *x, float *y, int64_t n, int64_t passes,
	struct error *e)
{
	return start<copy_kernel>(env->stream, passes_grid(env, n / 4), STREAM_THREADS, e, (const float4 *)x,
		(float4 *)y, n / 4, passes);
}

extern "C" enum status micro_triad(const struct cuda_env *env, const float *x, const float *y, float *z, int64_t n,
	int64_t passes, struct error *e)
{
	return start<triad_kernel>(env->stream, passes_grid(env, n / 4), STREAM_THREADS, e, (const float4 *)x,
		(const float4 *)y, (float4 *)z, n / 4, passes);
}

/* ---- the chase ---- */

__global__ void __launch_bounds__(STREAM_THREADS) lay_kernel(char *at, uint64_t lines)
{
	for_spans<1>((int64_t)lines, true, [&](int64_t i, auto) {
		const uint64_t next = ((uint64_t)i * MICRO_MULTIPLIER + MICRO_INCREMENT) & (lines - 1);
		*(unsigned long long *)(at + i * MICRO_CUDA_LINE_B) = next * MICRO_CUDA_LINE_B;
	});
}

extern "C" enum status micro_lay(const struct cuda_env *env, void *at, uint64_t lines, struct error *e)
{
	return start<lay_kernel>(env->stream, stream_grid(env, (int64_t)lines, STREAM_THREADS), STREAM_THREADS, e,
		(char *)at, lines);
}

__global__ void chase_kernel(const char *at, int64_t steps, unsigned long long *place)
{
	if (thread_rank() != 0)
		return;
	unsigned long long now = *place;
	for (int64_t i = 0; i < steps; i++) {
#ifdef STEPSIM_TWIN
		now = *(const unsigned long long *)(at + now);
#else
		now = __ldcg((const unsigned long long *)(at + now));
#endif
	}
	*place = now;
}

extern "C" enum status micro_chase(const struct cuda_env *env, const void *at, int64_t steps, uint64_t *place,
	struct error *e)
{
	return start<chase_kernel>(env->stream, 1, 1, e, (const char *)at, steps, (unsigned long long *)place);
}
