/* The part of NVIDIA's management library that discovery asks, declared here because no header comes with the driver.
 * For topology/discover/, exec/cuda/ and the double of the library in the tests.
 *
 * Types, values and signatures: NVIDIA, NVML API Reference Guide (docs.nvidia.com/deploy/nvml-api): nvmlReturn_t,
 * nvmlPciInfo_t (the layout that nvmlDeviceGetPciInfo_v3 and nvmlDeviceGetNvLinkRemotePciInfo_v2 fill),
 * nvmlIntNvLinkDeviceType_t, nvmlGpuP2PStatus_t, NVML_NVLINK_MAX_LINKS. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_NVML_H
#define STEPSIM_TOPOLOGY_DISCOVER_NVML_H

#include <assert.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"
/* asked one by one until the library says that there is no such link; 18 to NVLink 5 */
#define NVML_LINKS_MOST 36

#define NVML_REASON_IDLE 0x1u /* nvmlClocksEventReasonGpuIdle */

typedef struct nvml_device *nvml_device; /* opaque */

enum nvml_return {
	NVML_OK = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_GPU_IS_LOST = 15,
	NVML_VERSION_MISMATCH = 18
};
enum nvml_remote {
	NVML_REMOTE_GPU = 0,
	NVML_REMOTE_NPU = 1 /* POWER9 */,
	NVML_REMOTE_SWITCH = 2,
	NVML_REMOTE_UNKNOWN = 255
};
enum nvml_p2p { NVML_P2P_READ = 0, NVML_P2P_WRITE = 1, NVML_P2P_OK = 0, NVML_P2P_UNKNOWN = 6 };

struct nvml_pci {
	char legacy[16]; /* "0000:1B:00.0" */
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32]; /* "00000000:1B:00.0" */
};
static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");

#endif
