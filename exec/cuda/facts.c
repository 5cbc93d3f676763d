#include "exec/cuda/facts.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/cuda/check.h"

/* The tests' doubles say so; no library of NVIDIA's has this symbol. */
extern int stepsim_double(void) __attribute__((weak));

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
		snprintf(out->why_none, sizeof out->why_none, "%s: %s", cudaGetErrorName(err), cudaGetErrorString(err));
		return;
	}
	struct cudaDeviceProp prop;
	if (out->devices > 0 && cudaGetDeviceProperties(&prop, 0) == cudaSuccess)
		snprintf(out->device, sizeof out->device, "%s", prop.name);
}

/* ---- who else computes there ---- */

#define NVML "libnvidia-ml.so.1"
#define MAX_PROCESSES 64

/* nvmlProcessInfo_t as NVML's version 3 of the call has it. */
struct process {
	unsigned pid;
	unsigned long long used_B;
	unsigned instance, compute_instance;
};

struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	int (*by_pci)(const char *pci, void **device);
	int (*processes)(void *device, unsigned *n, struct process *out);
};

static bool nvml_resolve(void *library, struct nvml *out)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {{"nvmlInit_v2", &out->init}, {"nvmlShutdown", &out->shutdown}, {"nvmlDeviceGetHandleByPciBusId_v2", &out->by_pci}, {"nvmlDeviceGetComputeRunningProcesses_v3", &out->processes}};
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		void *symbol = dlsym(library, symbols[i].name);
		if (!symbol)
			return false;
		memcpy(symbols[i].to, &symbol, sizeof symbol);
	}
	return true;
}

/* In a container NVML may give the numbers of another namespace, this process's own among them: only a number that lives here is believed. */
static bool counts_as_other(const struct process *p)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%u", p->pid);
	return p->pid != (unsigned)getpid() && access(path, F_OK) == 0;
}

static bool others_compute(const char *pci)
{
	struct nvml nvml;
	struct process list[MAX_PROCESSES];
	unsigned n = MAX_PROCESSES;
	void *device = NULL, *library = dlopen(NVML, RTLD_NOW | RTLD_LOCAL);
	bool others = false;
	if (!library)
		return false;
	if (nvml_resolve(library, &nvml) && nvml.init() == 0) {
		if (nvml.by_pci(pci, &device) == 0 && nvml.processes(device, &n, list) == 0)
			for (unsigned i = 0; i < n && !others; i++)
				others = counts_as_other(&list[i]);
		nvml.shutdown();
	}
	dlclose(library);
	return others;
}

/* An address in lower case, as the rest of stepsim writes it. */
static void lower(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'F')
			*text = (char)(*text - 'A' + 'a');
}

enum status cuda_gpu_find(int device, struct cuda_gpu *out, struct error *e)
{
	struct cudaDeviceProp prop;
	size_t free_B = 0, total_B = 0;
	memset(out, 0, sizeof *out);
	enum status st;
	if ((st = CUDA_CHECK(cudaGetDeviceProperties(&prop, device), e)) || (st = CUDA_CHECK(cudaDeviceGetPCIBusId(out->pci, sizeof out->pci, device), e)))
		return st;
	lower(out->pci);
	snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, prop.name);
	out->sms = prop.multiProcessorCount;
	out->compute_capability = 10 * prop.major + prop.minor;
	out->mem_B = prop.totalGlobalMem;
	out->in_use = others_compute(out->pci);
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
