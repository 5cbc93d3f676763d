/* Stands in for libnvidia-ml.so.1 in the tests of discovery: built as a shared object. NVML_DOUBLE says what the four GPUs of the nvidia-smi double have: "switch" (18 links each), "mesh" (6 to each other one), "short" (switch, GPU1
 * with 16), "none", "self" (links that lead to their own GPU), "nopeer", "nodriver", "lost" (GPU2 gives no handle). Without TYPES the function for device types is missing, as in old drivers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/nvml.h"

#define API __attribute__((visibility("default")))

struct nvml_device {
	int index;
};

static struct nvml_device devices[4] = {{0}, {1}, {2}, {3}};
static const unsigned buses[4] = {0x1b, 0x3d, 0x9b, 0xbd};

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

API int nvmlShutdown(void)
{
	return NVML_OK;
}

API int nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = 4;
	return NVML_OK;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
	if (index >= 4)
		return NVML_INVALID_ARGUMENT;
	*device = &devices[index];
	return is("lost") && index == 2 ? NVML_GPU_IS_LOST : NVML_OK;
}

API int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci)
{
	return fill(pci, buses[device->index]);
}

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
	return fill(pci, 0xc0 + link % 4);
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
