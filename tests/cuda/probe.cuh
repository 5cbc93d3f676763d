/* Kernels for the doubled runtime's own tests: launched as nvcc has them launched. */
#ifndef STEPSIM_TESTS_CUDA_PROBE_CUH
#define STEPSIM_TESTS_CUDA_PROBE_CUH

#include <cuda_runtime_api.h>

cudaError_t probe_blend(float *y, const float *x, int n, cudaStream_t s); /* y = y / 2 + x */
cudaError_t probe_copy(float *to, const float *from, int n, cudaStream_t s);
cudaError_t probe_without_twin(float *x, cudaStream_t s);
cudaError_t probe_threads(float *x, int threads, cudaStream_t s);

#endif
