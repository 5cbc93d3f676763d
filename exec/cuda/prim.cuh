/* The primitives that kernels are written on, with a body for the device and one for the host, so that the same kernel text also compiles with a host compiler (STEPSIM_TWIN defined;
 * tests/doubles/twin.h lends it threads) and its arithmetic and indexing are tested against the reference.
 *
 * A kernel takes its work as `for (i = thread_rank(); i < n; i += thread_count())`, so that it is right for every number of threads in a block, one included, and its threads meet only in
 * block_sync, block_sum, block_max, warp_sum, warp_max and warp_broadcast, which all threads of the block (of the warp) call.
 * LAUNCH(kernel, grid, threads, stream, arguments...) starts one; TWIN(kernel) below it lets the host find its body by the name under which the runtime launches it.
 */
#ifndef STEPSIM_EXEC_CUDA_PRIM_CUH
#define STEPSIM_EXEC_CUDA_PRIM_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>

extern "C" {
#include "base/status.h"
}

/* ---- formats ---- */

static __host__ __device__ __forceinline__ float to_float(float x) { return x; }
static __host__ __device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
static __host__ __device__ __forceinline__ float to_float(__half x) { return __half2float(x); }

template <class T> static __host__ __device__ __forceinline__ T from_float(float x);
template <> __host__ __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __host__ __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }
template <> __host__ __device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }

/* ---- threads, and where they meet ---- */

#ifdef STEPSIM_TWIN
#include "tests/doubles/twin.h"
#else

#define TWIN(...)
#define LAUNCH(kernel, grid, threads, stream, ...) kernel<<<(grid), (threads), 0, (stream)>>>(__VA_ARGS__)

/* After a launch: ST_RUN with CUDA's own words where it was refused. */
static inline enum status launch_status(cudaError_t code, struct error *e)
{
	return code == cudaSuccess ? ST_OK : error_set(e, ST_RUN, "a kernel was not launched: %s", cudaGetErrorString(code));
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
#define BLOCK_REDUCE(name, warp, neutral)                                                        \
	static __device__ __forceinline__ float name(float x)                                    \
	{                                                                                        \
		__shared__ float part[WARP];                                                     \
		x = warp(x);                                                                     \
		if (lane_rank() == 0)                                                            \
			part[warp_rank()] = x;                                                   \
		__syncthreads();                                                                 \
		x = warp(lane_rank() < warp_count() ? part[lane_rank()] : (neutral));            \
		__syncthreads();                                                                 \
		return x;                                                                        \
	}
BLOCK_REDUCE(block_sum, warp_sum, 0.0f)
BLOCK_REDUCE(block_max, warp_max, -INFINITY)

static __device__ __forceinline__ void atomic_add(float *at, float x) { atomicAdd(at, x); }
static __device__ __forceinline__ void atomic_add(__nv_bfloat16 *at, float x) { atomicAdd(at, __float2bfloat16_rn(x)); }
static __device__ __forceinline__ void atomic_add(__half *at, float x) { atomicAdd(at, __float2half_rn(x)); }

#endif

/* ---- vectors: N values at once, as one access of 16 bytes at most ---- */

template <class T> struct vec_of {
	static constexpr int N = 16 / (int)sizeof(T);
};

template <class T, int N> struct alignas(sizeof(T) * N) vec {
	T at[N];
};

/* True when rows of `cols` values that begin at `p` can be read in whole vectors. */
template <class T> static __host__ __device__ __forceinline__ bool vec_fits(const T *p, int64_t cols)
{
	return (uintptr_t)p % 16 == 0 && cols % vec_of<T>::N == 0;
}

template <class T, int N> static __host__ __device__ __forceinline__ void load_vec(const T *p, float out[N])
{
	vec<T, N> v = *(const vec<T, N> *)p;
	for (int i = 0; i < N; i++)
		out[i] = to_float(v.at[i]);
}

template <class T, int N> static __host__ __device__ __forceinline__ void store_vec(T *p, const float in[N])
{
	vec<T, N> v;
	for (int i = 0; i < N; i++)
		v.at[i] = from_float<T>(in[i]);
	*(vec<T, N> *)p = v;
}

#endif
