/* The primitives that kernels are written on, with a body for the device and one for the host, so that the same kernel
 * text also compiles with a host compiler (STEPSIM_TWIN defined; tests/doubles/twin.h lends it threads) and its
 * arithmetic and indexing are tested against the reference.
 *
 * A kernel takes its work as `for (i = thread_rank(); i < n; i += thread_count())`, so that it is right for every
 * number of threads in a block, one included, and its threads meet only in block_sync, block_sum, block_max, warp_sum,
 * warp_max and warp_broadcast, which all threads of the block (of the warp) call. LAUNCH(kernel, grid, threads, stream,
 * arguments...) starts one; TWIN(kernel) below it lets the host find its body by the name under which the runtime
 * launches it (dispatch.cuh's `start` does both).
 */
#ifndef STEPSIM_EXEC_CUDA_PRIM_CUH
#define STEPSIM_EXEC_CUDA_PRIM_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

extern "C" {
#include "base/status.h"
}

/* ---- formats ---- */

static __host__ __device__ __forceinline__ float to_float(float x) { return x; }
static __host__ __device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
static __host__ __device__ __forceinline__ float to_float(__half x) { return __half2float(x); }

template <class T> static __host__ __device__ __forceinline__ T from_float(float x);
template <> __host__ __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __host__ __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x)
{
	return __float2bfloat16_rn(x);
}
template <> __host__ __device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }

/* ---- threads, and where they meet ---- */

#ifdef STEPSIM_TWIN
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
#include "tests/doubles/twin.h"
#else

#define TWIN(...)
#define LAUNCH(kernel, grid, threads, stream, ...) kernel<<<(grid), (threads), 0, (stream)>>>(__VA_ARGS__)

/* After a launch: ST_RUN with CUDA's own words where it was refused. */
static inline enum status launch_status(cudaError_t code, struct error *e)
{
	return code == cudaSuccess ? ST_OK
	                           : error_set(e, ST_RUN, "a kernel was not launched: %s", cudaGetErrorString(code));
}
#define LAUNCHED(e) launch_status(cudaGetLastError(), (e))

#define WARP 32

static __device__ __forceinline__ int thread_rank(void) { return (int)threadIdx.x; }
static __device__ __forceinline__ int thread_count(void) { return (int)blockDim.x; }
static __device__ __forceinline__ int lane_rank(void) { return (int)threadIdx.x % WARP; }
static __device__ __forceinline__ int lane_count(void) { return WARP; }
static __device__ __forceinline__ int warp_rank(void) { return (int)threadIdx.x / WARP; }
static __device__ __forceinline__ int warp_count(void) { return (int)blockDim.x / WARP; }
static __device__ __forceinline__ void block_sync(void) { __syncthreads(); }

static __device__ __forceinline__ float warp_sum(float x)
{
	for (int d = WARP / 2; d > 0; d /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, d);
	return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
	for (int d = WARP / 2; d > 0; d /= 2)
		x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
	return x;
}

static __device__ __forceinline__ float warp_broadcast(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }

/* The trailing barrier lets the next reduction write `part` again. */
#define BLOCK_REDUCE(name, warp, neutral) \
	static __device__ __forceinline__ float name(float x) \
	{ \
		__shared__ float part[WARP]; \
		x = warp(x); \
		if (lane_rank() == 0) \
			part[warp_rank()] = x; \
		__syncthreads(); \
		x = warp(lane_rank() < warp_count() ? part[lane_rank()] : (neutral)); \
		__syncthreads(); \
		return x; \
	}
BLOCK_REDUCE(block_sum, warp_sum, 0.0f)
BLOCK_REDUCE(block_max, warp_max, -INFINITY)

static __device__ __forceinline__ void atomic_add(float *at, float x) { atomicAdd(at, x); }
static __device__ __forceinline__ void atomic_add(__nv_bfloat16 *at, float x) { atomicAdd(at, __float2bfloat16_rn(x)); }
static __device__ __forceinline__ void atomic_add(__half *at, float x) { atomicAdd(at, __float2half_rn(x)); }

#endif

#ifdef STEPSIM_TWIN
#define UNROLL
#define UNROLL_4
#else
#define UNROLL _Pragma("unroll")
#define UNROLL_4 _Pragma("unroll 4")
#endif

/* Both sums over the block's threads in one meeting. */
static __device__ __forceinline__ void block_sum_pair(float *a, float *b)
{
#ifdef STEPSIM_TWIN
	*a = block_sum(*a);
	*b = block_sum(*b);
#else
	__shared__ float part[2][WARP];
	const float x = warp_sum(*a), y = warp_sum(*b);
	if (lane_rank() == 0) {
		part[0][warp_rank()] = x;
		part[1][warp_rank()] = y;
	}
	__syncthreads();
	*a = warp_sum(lane_rank() < warp_count() ? part[0][lane_rank()] : 0.0f);
	*b = warp_sum(lane_rank() < warp_count() ? part[1][lane_rank()] : 0.0f);
	__syncthreads();
#endif
}

/* Who shares a row of a matrix: a warp, each of a block's its own, or the whole block. */
struct warp_row {
	static constexpr bool WARPS = true;
	static __device__ __forceinline__ int rank(void) { return lane_rank(); }
	static __device__ __forceinline__ int count(void) { return lane_count(); }
	static __device__ __forceinline__ int64_t first(void)
	{
		return (int64_t)blockIdx.x * warp_count() + warp_rank();
	}
	static __device__ __forceinline__ int64_t stride(void) { return (int64_t)gridDim.x * warp_count(); }
	static __device__ __forceinline__ float sum(float x) { return warp_sum(x); }
	static __device__ __forceinline__ void sum_pair(float *a, float *b)
	{
		*a = warp_sum(*a);
		*b = warp_sum(*b);
	}
};

struct block_row {
	static constexpr bool WARPS = false;
	static __device__ __forceinline__ int rank(void) { return thread_rank(); }
	static __device__ __forceinline__ int count(void) { return thread_count(); }
	static __device__ __forceinline__ int64_t first(void) { return (int64_t)blockIdx.x; }
	static __device__ __forceinline__ int64_t stride(void) { return (int64_t)gridDim.x; }
	static __device__ __forceinline__ float sum(float x) { return block_sum(x); }
	static __device__ __forceinline__ void sum_pair(float *a, float *b) { block_sum_pair(a, b); }
};

/* ---- arithmetic ---- */

/* Relative error of a few 1e-7 for |x| < 10, growing with |x|. */
static __device__ __forceinline__ float fast_exp(float x)
{
#ifdef STEPSIM_TWIN
	return expf(x);
#else
	return __expf(x);
#endif
}

static __device__ __forceinline__ float fast_sigmoid(float x)
{
#ifdef STEPSIM_TWIN
	return 1.0f / (1.0f + expf(-x));
#else
	return __fdividef(1.0f, 1.0f + __expf(-x));
#endif
}

/* i / d and i % d of numbers from 0 to DIVIDE_MAX: 64-bit division is ten times the price. */
#define DIVIDE_MAX 0xffffffff
static __device__ __forceinline__ int64_t divide(int64_t i, int64_t d, int64_t *rest)
{
	const uint32_t q = (uint32_t)i / (uint32_t)d;
	*rest = (int64_t)((uint32_t)i - q * (uint32_t)d);
	return (int64_t)q;
}

/* ---- vectors: N values at once, in accesses of 16 bytes at most ---- */

template <class T> struct vec_of {
	static constexpr int N = 16 / (int)sizeof(T);
};

/* As stored: a register holds two narrow values. */
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) vec {
	T at[N];
};

/* True when rows of `cols` values that begin at `p` can be read in whole vectors. */
template <class T> static __host__ __device__ __forceinline__ bool vec_fits(const T *p, int64_t cols)
{
	return (uintptr_t)p % 16 == 0 && cols % vec_of<T>::N == 0;
}

/* True when accesses of 16 bytes can begin at `p`; an absent array is in nobody's way. */
static inline bool is_aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

template <class T, int N> static __device__ __forceinline__ vec<T, N> vec_at(const T *p)
{
	return *(const vec<T, N> *)p;
}

template <class T, int N> static __device__ __forceinline__ void vec_put(T *p, vec<T, N> v) { *(vec<T, N> *)p = v; }

template <class T, int N> static __device__ __forceinline__ void unpack_vec(const vec<T, N> &v, float out[N])
{
	if constexpr (std::is_same_v<T, __nv_bfloat16> && N % 2 == 0) { /* a bf16 is the upper half of its float: so the
		                                                           stored pairs stay in their registers */
		UNROLL
		for (int i = 0; i < N; i += 2) {
			uint32_t pair, wide[2];
			memcpy(&pair, v.at + i, sizeof pair);
			wide[0] = pair << 16;
			wide[1] = pair & 0xffff0000u;
			memcpy(out + i, wide, sizeof wide);
		}
	} else {
		UNROLL
		for (int i = 0; i < N; i++)
			out[i] = to_float(v.at[i]);
	}
}

/* Two at once are one instruction. */
static __device__ __forceinline__ void pack_pair(float a, float b, __nv_bfloat16 *to)
{
	const __nv_bfloat162 p = __floats2bfloat162_rn(a, b);
	to[0] = p.x;
	to[1] = p.y;
}

static __device__ __forceinline__ void pack_pair(float a, float b, __half *to)
{
	const __half2 p = __floats2half2_rn(a, b);
	to[0] = p.x;
	to[1] = p.y;
}

static __device__ __forceinline__ void pack_pair(float a, float b, float *to)
{
	to[0] = a;
	to[1] = b;
}

template <class T, int N> static __device__ __forceinline__ vec<T, N> pack_vec(const float in[N])
{
	vec<T, N> v;
	UNROLL
	for (int i = 0; i + 1 < N; i += 2)
		pack_pair(in[i], in[i + 1], v.at + i);
	if (N % 2)
		v.at[N - 1] = from_float<T>(in[N - 1]);
	return v;
}

template <class T, int N> static __device__ __forceinline__ void load_vec(const T *p, float out[N])
{
	unpack_vec<T, N>(vec_at<T, N>(p), out);
}

template <class T, int N> static __device__ __forceinline__ void store_vec(T *p, const float in[N])
{
	vec_put<T, N>(p, pack_vec<T, N>(in));
}

#endif
