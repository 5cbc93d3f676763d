/* Stands in for libnvidia-ml.so.1 in the tests of discovery and of GPU runs: built as a shared object. NVML_DOUBLE says
 * what the four GPUs of the nvidia-smi double have: "switch" (18 links each), "mesh" (6 to each other one), "short"
 * (switch, GPU1 with 16), "none", "self" (links that lead to their own GPU), "nopeer", "nodriver", "lost" (GPU2 gives
 * no handle). Without TYPES the function for device types is missing, as in old drivers. With GPUS (8, in the doubles
 * of the CUDA libraries) there are as many, or STEPSIM_DOUBLE_GPUS.
 *
 * While GPUs work: STEPSIM_DOUBLE_CLOCKS "GPU:BITS:EVERY" gives that GPU these clocks event reasons, and half its
 * clock, in every so many-th question for reasons; STEPSIM_DOUBLE_INTRUDER "GPU:FROM" has process 1 compute on it from
 * that question on. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topology/discover/nvml.h"

#define API __attribute__((visibility("default")))

struct nvml_device {
	int index;
};

#ifndef GPUS
#define GPUS 4
#endif

static struct nvml_device devices[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static const unsigned buses[8] = {0x1b, 0x3d, 0x9b, 0xbd, 0xc3, 0xcd, 0xd1,
	0xdd};        /* as the double of cudart has them */
static long asked[8]; /* for reasons, by GPU */

struct process {
	unsigned pid;
	unsigned long long used_B;
	unsigned instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci);
int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor);
int nvmlDeviceGetNvLinkState(nvml_device device, unsigned link, int *active);
int nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned link, unsigned *version);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned link, struct nvml_pci *pci);
int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned link, int *type);
int nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, int what, int *status);
const char *nvmlErrorString(int code);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvml_device *device);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n, struct process *out);
int nvmlDeviceGetClockInfo(nvml_device device, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(nvml_device device, int type, unsigned *mhz);
int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *mw);
int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *c);
int nvmlDeviceGetCurrentClocksEventReasons(nvml_device device, unsigned long long *bits);

static int is(const char *mode)
{
	const char *set = getenv("NVML_DOUBLE");
	return strcmp(set ? set : "switch", mode) == 0;
}

static int fill(struct nvml_pci *pci, unsigned bus)
{
	memset(pci, 0, sizeof *pci);
	snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", bus & 0xff);
	snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", bus & 0xff);
	pci->bus = bus;
	return NVML_OK;
}

API int nvmlInit_v2(void)
{
	return is("nodriver") ? NVML_DRIVER_NOT_LOADED : is("mismatch") ? NVML_VERSION_MISMATCH : NVML_OK;
}

API int nvmlShutdown(void) { return NVML_OK; }

API int nvmlDeviceGetCount_v2(unsigned *n)
{
	const char *set = getenv("STEPSIM_DOUBLE_GPUS");
	long gpus = set && GPUS == 8 ? atol(set) : GPUS;
	*n = gpus < 0 || gpus > GPUS ? GPUS : (unsigned)gpus;
	return NVML_OK;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
	if (index >= GPUS)
		return NVML_INVALID_ARGUMENT;
	*device = &devices[index];
	return is("lost") && index == 2 ? NVML_GPU_IS_LOST : NVML_OK;
}

API int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci) { return fill(pci, buses[device->index]); }

API int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	(void)device;
	*major = 9;
	*minor = 0;
	return NVML_OK;
}

API int nvmlDeviceGetNvLinkState(nvml_device device, unsigned link, int *active)
{
	if (link >= 18)
		return NVML_INVALID_ARGUMENT;
	if (is("nopeer"))
		return NVML_NOT_SUPPORTED;
	*active = !is("none") && !(is("short") && device->index == 1 && link >= 16);
	return NVML_OK;
}

API int nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned link, unsigned *version)
{
	(void)device;
	(void)link;
	*version = 6;
	return NVML_OK;
}

API int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned link, struct nvml_pci *pci)
{
	if (is("self"))
		return fill(pci, buses[device->index]);
	if (is("mesh"))
		return fill(pci, buses[(device->index + 1 + (int)link / 6) % 4]);
	return fill(pci, 0xe0 + link % 4);
}

#ifdef TYPES
API int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned link, int *type)
{
	(void)device;
	(void)link;
	*type = is("mesh") || is("self") ? NVML_REMOTE_GPU : NVML_REMOTE_SWITCH;
	return NVML_OK;
}
#endif

API int nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, int what, int *status)
{
	(void)a;
	(void)b;
	(void)what;
	*status = is("nopeer") ? 2 /* NVML_P2P_STATUS_GPU_NOT_SUPPORTED */ : NVML_P2P_OK;
	return NVML_OK;
}

API const char *nvmlErrorString(int code)
{
	return code == NVML_GPU_IS_LOST ? "GPU is lost" : "Driver/library version mismatch";
}

/* ---- while they work ---- */

API int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvml_device *device)
{
	unsigned domain, bus;
	if (sscanf(pci, "%x:%x:", &domain, &bus) != 2)
		return NVML_INVALID_ARGUMENT;
	for (unsigned i = 0; i < GPUS; i++)
		if (domain == 0 && buses[i] == bus)
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	return 6; /* NVML_ERROR_NOT_FOUND */
}

/* The bits that the script has for this GPU's last question; 0 for none. */
static unsigned long long scripted(nvml_device device)
{
	const char *set = getenv("STEPSIM_DOUBLE_CLOCKS");
	int gpu;
	unsigned bits;
	long every;
	return set && sscanf(set, "%d:%x:%ld", &gpu, &bits, &every) == 3 && gpu == device->index &&
	                       asked[gpu] % every == 0
	               ? bits
	               : 0;
}

API int nvmlDeviceGetCurrentClocksEventReasons(nvml_device device, unsigned long long *bits)
{
	asked[device->index]++;
	*bits = scripted(device);
	return NVML_OK;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n, struct process *out)
{
	const char *set = getenv("STEPSIM_DOUBLE_INTRUDER");
	int gpu;
	long from;
	bool there = set && sscanf(set, "%d:%ld", &gpu, &from) == 2 && gpu == device->index && asked[gpu] >= from;
	*n = 1 + there;
	out[0] = (struct process){.pid = (unsigned)getpid()};
	out[1] = (struct process){.pid = 1};
	return NVML_OK;
}

API int nvmlDeviceGetClockInfo(nvml_device device, int type, unsigned *mhz)
{
	if (type != 1) /* NVML_CLOCK_SM */
		return NVML_INVALID_ARGUMENT;
	*mhz = scripted(device) ? 990 : 1980;
	return NVML_OK;
}

API int nvmlDeviceGetMaxClockInfo(nvml_device device, int type, unsigned *mhz)
{
	(void)device;
	*mhz = 1980;
	return type == 1 ? NVML_OK : NVML_INVALID_ARGUMENT;
}

API int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *mw)
{
	*mw = scripted(device) ? 700000 : 600000;
	return NVML_OK;
}

API int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *mw)
{
	(void)device;
	*mw = 700000;
	return NVML_OK;
}

API int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *c)
{
	*c = 60 + (unsigned)device->index;
	return sensor == 0 ? NVML_OK : NVML_INVALID_ARGUMENT;
}
