/* NVML comes with the driver and has no header in the toolkit's runtime packages: it is opened where it is, function by
 * function.
 *
 * Signatures and values: NVIDIA, NVML API Reference Guide (docs.nvidia.com/deploy/nvml-api), Device Queries,
 * nvmlClockType_t, nvmlTemperatureSensors_t, NvmlClocksEventReasons. */
#include "exec/cuda/nvml.h"

#include "base/array.h"
#include "topology/discover/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 64
#define PERIOD_NS 50000000
#define CLOCK_SM 1
#define SENSOR_GPU 0

/* nvmlClocksEventReason...; the others are settings (applications clocks 0x2, sync boost 0x10, display clocks 0x100).
 */
#define REASON_HW_SLOWDOWN 0x8u
#define REASON_HW_CAUSES (0x40u | 0x80u) /* each is told along with the slowdown that it causes */

/* nvmlProcessInfo_t as version 3 of the call has it. */
struct process {
	unsigned pid;
	unsigned long long used_B;
	unsigned instance, compute_instance;
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*by_pci)(const char *pci, void **device);
	/* The rest may be missing, in drivers that are too old or too new. */
	int (*processes)(void *device, unsigned *n, struct process *out);
	int (*clock)(void *device, int type, unsigned *mhz);
	int (*clock_max)(void *device, int type, unsigned *mhz);
	int (*power)(void *device, unsigned *mw);
	int (*power_limit)(void *device, unsigned *mw);
	int (*temperature)(void *device, int sensor, unsigned *c);
	int (*reasons)(void *device, unsigned long long *bits);
};

static const struct {
	const char *name, *older; /* NULL: it never had another name */
	size_t at;
} symbols[] = {
	{"nvmlInit_v2", NULL, offsetof(struct nvml, init)},
	{"nvmlShutdown", NULL, offsetof(struct nvml, shutdown)},
	{"nvmlDeviceGetHandleByPciBusId_v2", NULL, offsetof(struct nvml, by_pci)},
	{"nvmlDeviceGetComputeRunningProcesses_v3", NULL, offsetof(struct nvml, processes)},
	{"nvmlDeviceGetClockInfo", NULL, offsetof(struct nvml, clock)},
	{"nvmlDeviceGetMaxClockInfo", NULL, offsetof(struct nvml, clock_max)},
	{"nvmlDeviceGetPowerUsage", NULL, offsetof(struct nvml, power)},
	{"nvmlDeviceGetEnforcedPowerLimit", NULL, offsetof(struct nvml, power_limit)},
	{"nvmlDeviceGetTemperature", NULL, offsetof(struct nvml, temperature)},
	{"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
		offsetof(struct nvml, reasons)},
};

static void nvml_close(struct nvml *n)
{
	if (n->library) {
		n->shutdown();
		dlclose(n->library);
	}
	n->library = NULL;
}

/* The GPU's handle; NULL where the library, the driver or the GPU is not there. */
static void *nvml_open(struct nvml *n, const char *pci)
{
	void *device = NULL, *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	memset(n, 0, sizeof *n);
	if (!library)
		return NULL;
	for (size_t i = 0; i < COUNT(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);
		if (!symbol && symbols[i].older)
			symbol = dlsym(library, symbols[i].older);
		memcpy((char *)n + symbols[i].at, &symbol,
			sizeof symbol); /* ISO C has no conversion from object to function pointers */
	}
	if (!n->init || !n->shutdown || !n->by_pci || n->init() != 0) {
		dlclose(library);
		return NULL;
	}
	n->library = library;
	if (n->by_pci(pci, &device) == 0 && device)
		return device;
	nvml_close(n);
	return NULL;
}

/* ---- who else computes there ---- */

/* In a container NVML may give the numbers of another namespace, this process's own among them: only a number that
 * lives here is believed. */
static bool counts_as_other(const struct process *p)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%u", p->pid);
	return p->pid != (unsigned)getpid() && access(path, F_OK) == 0;
}

static bool gpu_in_use(const struct nvml *nvml, void *device)
{
	struct process list[MAX_PROCESSES];
	unsigned n = MAX_PROCESSES;
	if (!nvml->processes || nvml->processes(device, &n, list) != 0)
		return false;
	for (unsigned i = 0; i < n && i < MAX_PROCESSES; i++)
		if (counts_as_other(&list[i]))
			return true;
	return false;
}

bool nvml_gpu_in_use(const char *pci)
{
	struct nvml nvml;
	void *device = nvml_open(&nvml, pci);
	bool others = device && gpu_in_use(&nvml, device);
	nvml_close(&nvml);
	return others;
}

/* ---- samples ---- */

/* A mean of what was answered. */
struct mean {
	double sum;
	int64_t n;
};

struct gpu_sampler {
	struct nvml nvml;
	void *device;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool running, stop;
	struct mean clock, power; /* MHz, mW */
	struct gpu_samples all;
};

static void add(struct mean *m, unsigned x)
{
	m->sum += x;
	m->n++;
}

static double mean_of(const struct mean *m, double unit) { return m->n ? m->sum / (double)m->n * unit : 0; }

static void sample(struct gpu_sampler *s)
{
	static const unsigned bits[] = {
#define REASON_BIT(id, bit, words) bit,
		GPU_REASONS(REASON_BIT)
#undef REASON_BIT
	};
	const struct nvml *n = &s->nvml;
	unsigned long long reasons = 0;
	unsigned x = 0;
	/* At rest, before the first kernel or after the last, a GPU says nothing about the work. */
	if (n->reasons && n->reasons(s->device, &reasons) == 0 && (reasons & NVML_REASON_IDLE))
		return;
	if (reasons & REASON_HW_CAUSES)
		reasons &= ~(unsigned long long)REASON_HW_SLOWDOWN;
	s->all.n++;
	for (int i = 0; i < GPU_REASON_COUNT; i++)
		s->all.reason[i] += (reasons & bits[i]) != 0;
	if (n->clock && n->clock(s->device, CLOCK_SM, &x) == 0)
		add(&s->clock, x);
	if (n->power && n->power(s->device, &x) == 0)
		add(&s->power, x);
	if (n->temperature && n->temperature(s->device, SENSOR_GPU, &x) == 0 && (double)x > s->all.temperature_C)
		s->all.temperature_C = x;
	s->all.shared += gpu_in_use(n, s->device);
}

static void *run(void *arg)
{
	struct gpu_sampler *s = arg;
	struct timespec due;
	clock_gettime(CLOCK_MONOTONIC, &due);
	pthread_mutex_lock(&s->mutex);
	do { /* however short the time is: calibration's is milliseconds */
		pthread_mutex_unlock(&s->mutex);
		sample(s);
		due.tv_nsec += PERIOD_NS;
		due.tv_sec += due.tv_nsec / 1000000000;
		due.tv_nsec %= 1000000000;
		pthread_mutex_lock(&s->mutex);
		while (!s->stop && pthread_cond_timedwait(&s->wake, &s->mutex, &due) != ETIMEDOUT)
			;
	} while (!s->stop);
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

enum status nvml_sampler_open(const char *pci, struct gpu_sampler **out, struct error *e)
{
	struct gpu_sampler *s = calloc(1, sizeof *s);
	pthread_condattr_t attributes;
	*out = NULL;
	if (!s)
		return error_nomem(e, "the samples of the GPU's clocks");
	s->device = nvml_open(&s->nvml, pci);
	if (!s->device) {
		free(s);
		return ST_OK;
	}
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	sample(s); /* dropped: the driver takes longer for the first answers, and holds up launches meanwhile */
	*out = s;
	return ST_OK;
}

void nvml_sample_begin(struct gpu_sampler *s)
{
	memset(&s->all, 0, sizeof s->all);
	s->clock = s->power = (struct mean){0, 0};
	s->stop = false;
	s->running = pthread_create(&s->thread, NULL, run, s) == 0;
}

void nvml_sample_end(struct gpu_sampler *s, struct gpu_samples *out)
{
	unsigned x = 0;
	if (s->running) {
		pthread_mutex_lock(&s->mutex);
		s->stop = true;
		pthread_cond_signal(&s->wake);
		pthread_mutex_unlock(&s->mutex);
		pthread_join(s->thread, NULL);
	}
	s->running = false;
	s->all.clock_Hz = mean_of(&s->clock, 1e6);
	s->all.power_W = mean_of(&s->power, 1e-3);
	if (s->nvml.clock_max && s->nvml.clock_max(s->device, CLOCK_SM, &x) == 0)
		s->all.boost_Hz = 1e6 * x;
	if (s->nvml.power_limit && s->nvml.power_limit(s->device, &x) == 0)
		s->all.power_limit_W = 1e-3 * x;
	*out = s->all;
}

void nvml_sampler_close(struct gpu_sampler *s)
{
	struct gpu_samples dropped;
	if (!s)
		return;
	if (s->running)
		nvml_sample_end(s, &dropped);
	nvml_close(&s->nvml);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}
