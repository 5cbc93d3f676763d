#include "exec/cuda/facts.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "exec/cuda/check.h"
#include "exec/cuda/nvml.h"
#include "topology/discover/driver.h"

/* The tests' doubles say so; no library of NVIDIA's has this symbol. */
extern int stepsim_double(void) __attribute__((weak));

/* The oldest driver for a major version of CUDA: NVIDIA, CUDA Compatibility, "Minor Version Compatibility". */
static const struct {
	int cuda;
	const char *driver;
} DRIVERS[] = {{12, "525.60"}, {13, "580.65"}};

/* CUDA's own words, but for the error of an old driver, which it also gives where there is none. */
static void explain_none(struct cuda_facts *f, cudaError_t code)
{
	char version[32];
	const char *oldest = NULL;
	if (code != cudaErrorInsufficientDriver) {
		snprintf(f->why_none, sizeof f->why_none, "%s: %s", cudaGetErrorName(code), cudaGetErrorString(code));
		return;
	}
	for (size_t i = 0; i < COUNT(DRIVERS); i++)
		if (DRIVERS[i].cuda == f->runtime / 1000)
			oldest = DRIVERS[i].driver;
	driver_version(version);
	if (f->driver == 0)
		snprintf(f->why_none, sizeof f->why_none, "no driver (libcuda.so.1) serves CUDA here");
	else
		snprintf(f->why_none, sizeof f->why_none,
			"the driver%s%s is too old: it serves CUDA %d.%d, and CUDA's runtime here is %d.%d%s%s",
			version[0] ? " " : "", version, f->driver / 1000, f->driver % 1000 / 10, f->runtime / 1000,
			f->runtime % 1000 / 10, oldest ? ", which needs driver " : "", oldest ? oldest : "");
}

void cuda_facts_find(struct cuda_facts *out)
{
	memset(out, 0, sizeof *out);
	out->doubles = stepsim_double && stepsim_double();
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
		explain_none(out, err);
		return;
	}
	struct cudaDeviceProp prop;
	if (out->devices > 0 && cudaGetDeviceProperties(&prop, 0) == cudaSuccess)
		snprintf(out->device, sizeof out->device, "%s", prop.name);
}

/* An address in lower case, as the rest of stepsim writes it. */
static void lower(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'F')
			*text = (char)(*text - 'A' + 'a');
}

enum status cuda_address_find(int device, char pci[20], struct error *e)
{
	memset(pci, 0, 20);
	enum status st = CUDA_CHECK(cudaDeviceGetPCIBusId(pci, 20, device), e);
	lower(pci);
	return st;
}

enum status cuda_gpu_find(int device, struct cuda_gpu *out, struct error *e)
{
	struct cudaDeviceProp prop;
	size_t free_B = 0, total_B = 0;
	memset(out, 0, sizeof *out);
	enum status st;
	if ((st = CUDA_CHECK(cudaGetDeviceProperties(&prop, device), e)) ||
		(st = cuda_address_find(device, out->pci, e)))
		return st;
	snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, prop.name);
	out->sms = prop.multiProcessorCount;
	out->compute_capability = 10 * prop.major + prop.minor;
	out->mem_B = prop.totalGlobalMem;
	out->in_use = nvml_gpu_in_use(out->pci);
	if ((st = CUDA_CHECK(cudaSetDevice(device), e)))
		return st;
	/* The first call that needs a context: a GPU in an exclusive mode that somebody has refuses it. */
	cudaError_t code = cudaMemGetInfo(&free_B, &total_B);
	if (code == cudaErrorDevicesUnavailable) {
		cudaGetLastError();
		out->in_use = true;
		return ST_OK;
	}
	out->free_B = free_B;
	return cuda_check(code, "cudaMemGetInfo", __FILE__, __LINE__, e);
}
