/* Kernels for the doubled runtime's own tests: launched as nvcc has them launched. */
#ifndef STEPSIM_TESTS_CUDA_PROBE_CUH
#define STEPSIM_TESTS_CUDA_PROBE_CUH

#include <cuda_runtime_api.h>

#define PROBE_STATIC_B 1024

cudaError_t probe_blend(float *y, const float *x, int n, cudaStream_t s); /* y = y / 2 + x */
cudaError_t probe_copy(float *to, const float *from, int n, cudaStream_t s);
cudaError_t probe_without_twin(float *x, cudaStream_t s);
cudaError_t probe_shared(float *x, size_t dynamic_B, cudaStream_t s); /* beside PROBE_STATIC_B of static memory */
cudaError_t probe_shared_allow(size_t dynamic_B);
cudaError_t probe_threads(float *x, int threads, cudaStream_t s);

#endif
