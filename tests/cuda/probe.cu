#include "exec/cuda/prim.cuh"

#include "tests/cuda/probe.cuh"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

__global__ void probe_blend_kernel(float *y, const float *x, int n)
{
	for (int i = thread_rank(); i < n; i += thread_count())
		y[i] = y[i] / 2 + x[i];
}
TWIN(probe_blend_kernel)

template <class T> static __global__ void probe_copy_kernel(T *to, const T *from, int n)
{
	for (int i = (int)blockIdx.x * thread_count() + thread_rank(); i < n; i += (int)gridDim.x * thread_count())
		to[i] = from[i];
}
TWIN(probe_copy_kernel<float>)

__global__ void probe_without_twin_kernel(float *x) { *x = 1; }

/* PROBE_STATIC_B of static shared memory beside what the launch gives. */
__global__ void probe_shared_kernel(float *x)
{
	__shared__ float part[PROBE_STATIC_B / sizeof(float)];
	for (int i = thread_rank(); i < (int)COUNT_OF(part); i += thread_count())
		part[i] = x[0] + (float)i;
	block_sync();
	x[0] = part[1];
}
TWIN(probe_shared_kernel)

#ifndef STEPSIM_TWIN
cudaError_t probe_blend(float *y, const float *x, int n, cudaStream_t s)
{
	LAUNCH(probe_blend_kernel, 1, 32, s, y, x, n);
	return cudaGetLastError();
}

cudaError_t probe_copy(float *to, const float *from, int n, cudaStream_t s)
{
	LAUNCH(probe_copy_kernel<float>, dim3(2), 64, s, to, from, n);
	return cudaGetLastError();
}

cudaError_t probe_without_twin(float *x, cudaStream_t s)
{
	LAUNCH(probe_without_twin_kernel, 1, 32, s, x);
	return cudaGetLastError();
}

cudaError_t probe_shared(float *x, size_t dynamic_B, cudaStream_t s)
{
	probe_shared_kernel<<<1, 32, dynamic_B, s>>>(x);
	return cudaGetLastError();
}

cudaError_t probe_shared_allow(size_t dynamic_B)
{
	return cudaFuncSetAttribute((const void *)probe_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
		(int)dynamic_B);
}

cudaError_t probe_threads(float *x, int threads, cudaStream_t s)
{
	LAUNCH(probe_blend_kernel, 1, threads, s, x, x, 1);
	return cudaGetLastError();
}
#endif
