/* Stands in for libnvidia-ml.so.1 in the tests of discovery and of GPU runs: built as a shared object. NVML_DOUBLE says
 * what the four GPUs of the nvidia-smi double have: "switch" (18 links each), "mesh" (6 to each other one), "short"
 * (switch, GPU1 with 16), "none", "self" (links that lead to their own GPU), "nopeer", "nodriver", "lost" (GPU2 gives
 * no handle). Without TYPES the function for device types is missing, as in old drivers. With GPUS (8, in the doubles
 * of the CUDA libraries) there are as many, or STEPSIM_DOUBLE_GPUS.
 *
 * While GPUs work: STEPSIM_DOUBLE_CLOCKS "GPU:BITS:EVERY" gives that GPU these clocks event reasons, and half its
 * clock, in every so many-th question for reasons; STEPSIM_DOUBLE_INTRUDER "GPU:FROM" has process 1 compute on it from
 * that question on.
 *
 * A test that makes the time of its kernels itself runs them with nvml_double_run: in that time the GPU warms to its
 * power limit, and its clock falls to what the limit allows. */
#include <math.h>
#include <pthread.h>
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

#define BOOST_MHZ 1980.0
#define LIMIT_W 700.0
#define REST_W 70.0  /* what the board draws without work */
#define WARMS_S 0.03 /* the time constant with which the board meets its limit, and with which it averages power */

double nvml_double_run(double boost_s, double power_W);

/* Of all GPUs: such a test has one. */
static struct {
	pthread_mutex_t mutex;
	bool used;
	double met; /* 0 to 1: how far the limit has come to hold */
	double clock_MHz, power_W;
} warm = {.mutex = PTHREAD_MUTEX_INITIALIZER, .clock_MHz = BOOST_MHZ, .power_W = REST_W};

/* Runs a kernel that takes boost_s and draws power_W at the boost clock; power_W 0: lets the GPU cool down for so long.
 * Returns the time that it takes. */
API double nvml_double_run(double boost_s, double power_W)
{
	double time_s = 0;
	pthread_mutex_lock(&warm.mutex);
	warm.used = true;
	for (double left_s = boost_s; left_s > 1e-12;) {
		const double held = power_W > LIMIT_W ? 1 - LIMIT_W / power_W : 0, speed = 1 - warm.met * held,
			     step_s = fmin(left_s / speed, 1e-4), part = 1 - exp(-step_s / WARMS_S);
		warm.met += ((power_W > LIMIT_W) - warm.met) * part;
		warm.power_W += (fmax(power_W * speed, REST_W) - warm.power_W) * part;
		warm.clock_MHz = BOOST_MHZ * speed;
		left_s -= step_s * speed;
		time_s += step_s;
	}
	pthread_mutex_unlock(&warm.mutex);
	return time_s;
}

static bool is_warm(double *clock_MHz, double *power_W)
{
	pthread_mutex_lock(&warm.mutex);
	const bool used = warm.used;
	*clock_MHz = warm.clock_MHz;
	*power_W = warm.power_W;
	pthread_mutex_unlock(&warm.mutex);
	return used;
}

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
	double clock_MHz, power_W;
	asked[device->index]++;
	*bits = scripted(device);
	if (is_warm(&clock_MHz, &power_W) && clock_MHz < BOOST_MHZ - 15)
		*bits |= 4; /* nvmlClocksEventReasonSwPowerCap */
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
	double clock_MHz, power_W;
	*mhz = scripted(device) ? 990 : is_warm(&clock_MHz, &power_W) ? (unsigned)clock_MHz : (unsigned)BOOST_MHZ;
	return NVML_OK;
}

API int nvmlDeviceGetMaxClockInfo(nvml_device device, int type, unsigned *mhz)
{
	(void)device;
	*mhz = (unsigned)BOOST_MHZ;
	return type == 1 ? NVML_OK : NVML_INVALID_ARGUMENT;
}

API int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *mw)
{
	double clock_MHz, power_W;
	*mw = scripted(device) ? 700000 : is_warm(&clock_MHz, &power_W) ? (unsigned)(1e3 * power_W) : 600000;
	return NVML_OK;
}

API int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *mw)
{
	(void)device;
	*mw = (unsigned)(1e3 * LIMIT_W);
	return NVML_OK;
}

API int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *c)
{
	*c = 60 + (unsigned)device->index;
	return sensor == 0 ? NVML_OK : NVML_INVALID_ARGUMENT;
}
