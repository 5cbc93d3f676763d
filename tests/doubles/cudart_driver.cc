/* The driver's functions that are had through the runtime. */
#include <cuda.h>
#include <string.h>

#include "tests/doubles/cudart.h"

static bool has_come(const uint32_t *at, uint32_t value, unsigned flags)
{
	uint32_t now = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	switch (flags & 3) {
	case CU_STREAM_WAIT_VALUE_EQ: return now == value;
	case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
	case CU_STREAM_WAIT_VALUE_NOR: return ~(now | value) != 0;
	default: return (int32_t)(now - value) >= 0;
	}
}

/* The stream goes on when the word has the value; a captured wait is the same at each launch. */
static CUresult wait_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	const uint32_t *at = (const uint32_t *)(uintptr_t)address;
	if (!double_memory("cuStreamWaitValue32", at, sizeof *at) || address % sizeof *at)
		return CUDA_ERROR_INVALID_VALUE;
	return (CUresult)double_enqueue_polled(stream, [=] { return [=] { return has_come(at, value, flags); }; });
}

static CUresult write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned)
{
	uint32_t *at = (uint32_t *)(uintptr_t)address;
	if (!double_memory("cuStreamWriteValue32", at, sizeof *at) || address % sizeof *at)
		return CUDA_ERROR_INVALID_VALUE;
	return (CUresult)double_enqueue_work(stream, [=] { __atomic_store_n(at, value, __ATOMIC_RELEASE); });
}

API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
	cudaDriverEntryPointQueryResult *result)
{
	*function = strcmp(symbol, "cuStreamWaitValue32") == 0    ? (void *)wait_value
	            : strcmp(symbol, "cuStreamWriteValue32") == 0 ? (void *)write_value
	                                                          : NULL;
	if (result)
		*result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}
