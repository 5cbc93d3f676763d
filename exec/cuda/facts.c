#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>

#include "exec/cuda/facts.h"

void cuda_facts_find(struct cuda_facts *out)
{
	memset(out, 0, sizeof *out);
	if (cudaRuntimeGetVersion(&out->runtime) != cudaSuccess)
		out->runtime = 0;
	if (cudaDriverGetVersion(&out->driver) != cudaSuccess)
		out->driver = 0;
	out->cublas = (int)cublasLtGetVersion();
	out->cudnn = (int)cudnnGetVersion();
	if (ncclGetVersion(&out->nccl) != ncclSuccess)
		out->nccl = 0;
	cudaError_t err = cudaGetDeviceCount(&out->devices);
	if (err != cudaSuccess) {
		out->devices = 0;
		snprintf(out->why_none, sizeof out->why_none, "%s: %s", cudaGetErrorName(err), cudaGetErrorString(err));
		return;
	}
	struct cudaDeviceProp prop;
	if (out->devices > 0 && cudaGetDeviceProperties(&prop, 0) == cudaSuccess)
		snprintf(out->device, sizeof out->device, "%s", prop.name);
}
