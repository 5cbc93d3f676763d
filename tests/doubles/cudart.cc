/* Stands in for libcudart.so.13: devices, errors, injected faults. Memory, streams and events, launches, graphs: the
 * other cudart_*.cc.
 *
 * STEPSIM_DOUBLE_GPUS (8; CUDA_VISIBLE_DEVICES picks among them), STEPSIM_DOUBLE_MEM_B (16 GiB each),
 * STEPSIM_DOUBLE_SEED (1), STEPSIM_DOUBLE_CC (compute capability, "9.0"), STEPSIM_DOUBLE_FAULT: "nogpu", "olddriver",
 * "busy" (the device is in another process's hands), "malloc:N" (the Nth allocation of device or pinned memory fails),
 * "launch:N" (the Nth launch is refused), "kernel:N" (the Nth kernel, those of replayed graphs counted, breaks the
 * device), each limited to a rank by "rank:R:" before it.
 */
#include "tests/doubles/cudart.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 13000

__thread int device_now;
static thread_local cudaError_t last_error;

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static int64_t own_rank(void) { return (int64_t)env_number("OMPI_COMM_WORLD_RANK", 0); }

/* The numbers of the GPUs that CUDA_VISIBLE_DEVICES lets this process see; the list ends at the first that does not
 * exist. */
static const std::vector<int> &visible(void)
{
	static std::vector<int> *list = [] {
		auto *made = new std::vector<int>;
		const char *set = getenv("CUDA_VISIBLE_DEVICES");
		int all = double_fault("nogpu") || double_fault("olddriver")
		                  ? 0
		                  : (int)env_number("STEPSIM_DOUBLE_GPUS", 8),
		    gpu = 0, n = 0;
		if (!set)
			for (int i = 0; i < all; i++)
				made->push_back(i);
		for (const char *at = set; at && sscanf(at, "%d%n", &gpu, &n) == 1 && gpu >= 0 && gpu < all;
			at += n + 1) {
			made->push_back(gpu);
			if (at[n] != ',')
				break;
		}
		return made;
	}();
	return *list;
}

/* Never freed: the worker runs until the process ends. */
world &the(void)
{
	static world *w = [] {
		world *made = new world;
		made->gpus = std::vector<gpu>(visible().size());
		for (size_t i = 0; i < made->gpus.size(); i++) {
			made->gpus[i].legacy.device = (int)i;
			made->gpus[i].legacy.legacy = true;
			made->streams.push_back(&made->gpus[i].legacy);
		}
		made->random.seed(env_number("STEPSIM_DOUBLE_SEED", 1) * 1000003 + (uint64_t)own_rank());
		return made;
	}();
	return *w;
}

API int stepsim_double(void) { return 1; }

void complain(const char *format, ...)
{
	char text[400];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	fprintf(stderr, "CUDA double: %s\n", text);
}

/* ---- faults ---- */

API int64_t double_fault(const char *name)
{
	const char *set = getenv("STEPSIM_DOUBLE_FAULT");
	std::string all = set ? set : "";
	for (size_t begin = 0; begin < all.size();) {
		size_t end = std::min(all.find(',', begin), all.size());
		std::string one = all.substr(begin, end - begin);
		begin = end + 1;
		long rank = 0;
		int skip = 0;
		if (sscanf(one.c_str(), "rank:%ld:%n", &rank, &skip) == 1 && skip) {
			if (rank != own_rank())
				continue;
			one = one.substr((size_t)skip);
		}
		size_t colon = one.find(':');
		if (one.substr(0, colon) == name)
			return colon == std::string::npos ? 1 : strtoll(one.c_str() + colon + 1, NULL, 10);
	}
	return 0;
}

void fail_device(int device, const char *why)
{
	lock hold(the().mutex);
	if (the().gpus[(size_t)device].failed != cudaSuccess)
		return;
	complain("device %d fails: %s", device, why);
	the().gpus[(size_t)device].failed = cudaErrorIllegalAddress;
}

/* ---- errors ---- */

struct error_row {
	cudaError_t code;
	const char *name, *text;
};
#define ROW(code, text) \
	{ \
		code, #code, text \
	}
static const error_row errors[] = {
	ROW(cudaSuccess, "no error"),
	ROW(cudaErrorInvalidValue, "invalid argument"),
	ROW(cudaErrorMemoryAllocation, "out of memory"),
	ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
	ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
	ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
	ROW(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
	ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
	ROW(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
	ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ROW(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
	ROW(cudaErrorNotReady, "device not ready"),
	ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
	ROW(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
	ROW(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
	ROW(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
	ROW(cudaErrorNotPermitted, "operation not permitted"),
	ROW(cudaErrorNotSupported, "operation not supported"),
	ROW(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
	ROW(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
	ROW(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
	ROW(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream"),
	ROW(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
	ROW(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
	ROW(cudaErrorStreamCaptureImplicit,
		"operation would make the legacy stream depend on a capturing blocking stream"),
	ROW(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
};

static const error_row *error_of(cudaError_t code)
{
	for (const error_row &row : errors)
		if (row.code == code)
			return &row;
	static const error_row unknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
	return &unknown;
}

API const char *cudaGetErrorName(cudaError_t code) { return error_of(code)->name; }

API const char *cudaGetErrorString(cudaError_t code) { return error_of(code)->text; }

cudaError_t said(cudaError_t code)
{
	if (code != cudaSuccess && code != cudaErrorNotReady)
		last_error = code;
	return code;
}

static cudaError_t failed_locked(void)
{
	size_t device = (size_t)device_now;
	return device < the().gpus.size() ? the().gpus[device].failed : cudaSuccess;
}

API cudaError_t cudaPeekAtLastError(void)
{
	lock hold(the().mutex);
	cudaError_t failed = failed_locked();
	return failed != cudaSuccess ? failed : last_error;
}

API cudaError_t cudaGetLastError(void)
{
	cudaError_t code = cudaPeekAtLastError();
	last_error = cudaSuccess;
	return code;
}

/* ---- devices ---- */

cudaError_t usable_locked(void)
{
	if (the().gpus.empty())
		return cudaErrorNoDevice;
	if (double_fault("busy"))
		return cudaErrorDevicesUnavailable;
	return failed_locked();
}

static cudaError_t device_known(int device)
{
	return the().gpus.empty()                                  ? cudaErrorNoDevice
	       : device < 0 || (size_t)device >= the().gpus.size() ? cudaErrorInvalidDevice
	                                                           : cudaSuccess;
}

API cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = VERSION;
	return cudaSuccess;
}

API cudaError_t cudaDriverGetVersion(int *version)
{
	*version = double_fault("olddriver") ? 12040 : VERSION;
	return cudaSuccess;
}

API cudaError_t cudaGetDeviceCount(int *n)
{
	*n = (int)the().gpus.size();
	return said(double_fault("olddriver") ? cudaErrorInsufficientDriver : *n ? cudaSuccess : cudaErrorNoDevice);
}

API cudaError_t cudaSetDevice(int device)
{
	cudaError_t code = device_known(device);
	if (code != cudaSuccess)
		return said(code);
	device_now = device;
	return on_device([](lock &) { return cudaSuccess; });
}

API cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }

API cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

API cudaError_t cudaGetDevice(int *device)
{
	*device = device_now;
	return said(the().gpus.empty() ? cudaErrorNoDevice : cudaSuccess);
}

API cudaError_t cudaDeviceReset(void)
{
	return on_device([](lock &hold) { return drain_locked(hold); });
}

uint64_t memory_B(void) { return env_number("STEPSIM_DOUBLE_MEM_B", (uint64_t)16 << 30); }

/* The first four are those of the nvidia-smi double. */
static int bus_of(int device)
{
	static const int buses[] = {0x1b, 0x3d, 0x9b, 0xbd, 0xc3, 0xcd, 0xd1, 0xdd};
	return buses[visible()[(size_t)device] % 8];
}

static int domain_of(int device) { return visible()[(size_t)device] / 8; }

#define SHOWN_MEMORY_B \
	((size_t)81559 << 20) /* what nvidia-smi shows of an H100; what can be had is STEPSIM_DOUBLE_MEM_B */

API cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
	return on_device([&](lock &) {
		*total = SHOWN_MEMORY_B;
		*left = memory_B() - the().gpus[(size_t)device_now].used_B;
		return cudaSuccess;
	});
}

API cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
	cudaError_t code = device_known(device);
	if (code == cudaSuccess)
		snprintf(id, (size_t)size, "%04X:%02X:%02X.0", domain_of(device), bus_of(device), 0);
	return said(code);
}

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": maximum amount of shared memory per
 * multiprocessor. Of it the system reserves 1 KB a block. */
static const struct {
	int capability, shared_KB;
} generations[] = {{80, 164}, {86, 100}, {87, 164}, {89, 100}, {90, 228}, {100, 228}, {103, 228}, {120, 100}};
#define RESERVED_B 1024

API int double_capability(void)
{
	const char *set = getenv("STEPSIM_DOUBLE_CC");
	return (int)lround(10 * (set && *set ? strtod(set, NULL) : 9.0));
}

static int shared_of_sm_B(void)
{
	for (const auto &g : generations)
		if (g.capability == double_capability())
			return g.shared_KB << 10;
	complain("STEPSIM_DOUBLE_CC=%s is no compute capability that is known here", getenv("STEPSIM_DOUBLE_CC"));
	abort();
}

API size_t double_shared_B(void) { return (size_t)shared_of_sm_B() - RESERVED_B; }

struct attribute_row {
	cudaDeviceAttr what;
	int value;
};
static const attribute_row attributes[] = {
	{cudaDevAttrMaxThreadsPerBlock, 1024},
	{cudaDevAttrMaxBlockDimX, 1024},
	{cudaDevAttrMaxBlockDimY, 1024},
	{cudaDevAttrMaxBlockDimZ, 64},
	{cudaDevAttrMaxGridDimX, 0x7fffffff},
	{cudaDevAttrMaxGridDimY, 65535},
	{cudaDevAttrMaxGridDimZ, 65535},
	{cudaDevAttrMaxSharedMemoryPerBlock, 49152},
	{cudaDevAttrWarpSize, 32},
	{cudaDevAttrMaxRegistersPerBlock, 65536},
	{cudaDevAttrClockRate, 1000000},
	{cudaDevAttrMultiProcessorCount, 4},
	{cudaDevAttrConcurrentKernels, 1},
	{cudaDevAttrEccEnabled, 1},
	{cudaDevAttrPciDeviceId, 0},
	{cudaDevAttrMemoryClockRate, 1000000},
	{cudaDevAttrGlobalMemoryBusWidth, 4096},
	{cudaDevAttrL2CacheSize, 4 << 20},
	{cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
	{cudaDevAttrAsyncEngineCount, 3},
	{cudaDevAttrUnifiedAddressing, 1},
	{cudaDevAttrStreamPrioritiesSupported, 1},
	{cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
	{cudaDevAttrMaxBlocksPerMultiprocessor, 32},
	{cudaDevAttrHostRegisterSupported, 1},
	{cudaDevAttrReservedSharedMemoryPerBlock, RESERVED_B},
};

static int attribute(cudaDeviceAttr what)
{
	switch (what) {
	case cudaDevAttrComputeCapabilityMajor: return double_capability() / 10;
	case cudaDevAttrComputeCapabilityMinor: return double_capability() % 10;
	case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return shared_of_sm_B();
	case cudaDevAttrMaxSharedMemoryPerBlockOptin: return (int)double_shared_B();
	default: break;
	}
	for (const attribute_row &row : attributes)
		if (row.what == what)
			return row.value;
	return -1;
}

API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device)
{
	cudaError_t code = device_known(device);
	if (code != cudaSuccess)
		return said(code);
	*value = what == cudaDevAttrPciBusId      ? bus_of(device)
	         : what == cudaDevAttrPciDomainId ? domain_of(device)
	         : what == cudaDevAttrComputeMode ? (double_fault("busy") ? cudaComputeModeExclusiveProcess : 0)
	                                          : attribute(what);
	if (*value >= 0)
		return cudaSuccess;
	complain("attribute %d of a device is not known here", (int)what);
	return said(cudaErrorInvalidValue);
}

API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
	cudaError_t code = device_known(device);
	if (code != cudaSuccess)
		return said(code);
	memset(p, 0, sizeof *p);
	snprintf(p->name, sizeof p->name, "NVIDIA H100 80GB HBM3"); /* a name that the catalogue knows */
	p->uuid.bytes[0] = 'd';
	p->uuid.bytes[15] = (char)visible()[(size_t)device];
	p->totalGlobalMem = SHOWN_MEMORY_B;
	p->sharedMemPerBlock = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock);
	p->sharedMemPerBlockOptin = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
	p->sharedMemPerMultiprocessor = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
	p->reservedSharedMemPerBlock = (size_t)attribute(cudaDevAttrReservedSharedMemoryPerBlock);
	p->regsPerBlock = p->regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerBlock);
	p->warpSize = attribute(cudaDevAttrWarpSize);
	p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
	p->maxThreadsDim[2] = 64;
	p->maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
	p->maxGridSize[1] = p->maxGridSize[2] = attribute(cudaDevAttrMaxGridDimY);
	p->major = attribute(cudaDevAttrComputeCapabilityMajor);
	p->minor = attribute(cudaDevAttrComputeCapabilityMinor);
	p->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
	p->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
	p->maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
	p->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
	p->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
	p->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
	p->concurrentKernels = p->unifiedAddressing = p->streamPrioritiesSupported = p->hostRegisterSupported =
		p->ECCEnabled = p->canMapHostMemory = 1;
	p->pciDomainID = domain_of(device);
	p->pciBusID = bus_of(device);
	return cudaSuccess;
}

API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t code = device_known(device);
	*can = device != peer;
	return said(code == cudaSuccess ? device_known(peer) : code);
}

API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return cudaSuccess;
}

API cudaError_t cudaProfilerStart(void) { return cudaSuccess; }

API cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
