/* A result: one side (predicted or measured) of one step, with the JSON keys of docs/reference.md. */
#ifndef STEPSIM_STEP_RESULT_H
#define STEPSIM_STEP_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "step/timeline.h"

enum bound { BOUND_COMPUTE, BOUND_MEMORY, BOUND_LATENCY, BOUND_LINK, BOUND_HOST, BOUND_COUNT };
/* Returns the word of a bound; "" for BOUND_COUNT, which stands for unknown. */
const char *bound_name(enum bound b);

struct result_memory {
	uint64_t weights_B, gradients_B, optimizer_B, activations_B, buffers_B, overhead_B; /* they add up to total_B */
	uint64_t total_B, capacity_B;
	uint64_t usual_B; /* what plans of a search fill of a device where some plan needs no more; prediction only */
	bool fits;
	uint64_t low_B, high_B; /* between which four of five published peaks lie, as shares of their predictions;
	                           0: measured, or no GPU */
	uint64_t context_B, communicators_B; /* they add up to overhead_B */
	int64_t communicators;               /* of the rank */
	uint64_t first_B; /* what the allocator has given out at the peak on the first stage, without overhead: what
	                     PyTorch's max_memory_allocated says on rank 0. 0: not known */
};

#define RESULT_MAX_NOTES 16
#define RESULT_CLOCK_EVENTS 8

/* A reason for lower clocks of GPUs, or another process on them, and the rank that it hit most. */
struct clock_event {
	char what[48];         /* "power cap" */
	bool slows;            /* a reason for lower clocks; else another process */
	int64_t rank, samples; /* of that rank */
	double share;          /* of them in which it was so */
	double of_boost;       /* that rank's mean clock over the most that its GPU can; 0: not known */
	int64_t gpus;          /* that it hit at all */
};

/* Clocks of the GPUs during the timed steps; 0 where the driver does not say. */
struct result_clocks {
	int64_t samples, gpus;     /* 0: not sampled; GPUs that were */
	double clock_Hz, boost_Hz; /* of the SMs: means over the GPUs */
	int64_t slowest_rank;      /* -1: not known */
	double slowest_Hz;
	double power_W, power_limit_W; /* means over the GPUs */
	double temperature_C;          /* the highest */
	size_t n_events;
	struct clock_event event[RESULT_CLOCK_EVENTS];
};

/* What the interval of a prediction by published figures consists of (sim/engine/interval.h). */
enum interval_cause {
	INTERVAL_SOFTWARE,
	INTERVAL_GPU,
	INTERVAL_EXPERTS,
	INTERVAL_CONTEXT,
	INTERVAL_TRAFFIC,
	INTERVAL_HOST,
	INTERVAL_NETWORK,
	INTERVAL_COUNT
};
extern const char *const interval_cause_name[INTERVAL_COUNT];

struct result {
	struct breakdown time; /* of the critical rank; time.overlap is NAN where a rank has a single core */
	double tokens_per_s, tokens_per_s_per_gpu, samples_per_s, tflops_per_gpu, mfu, hfu;
	double interval90_s[2];
	double interval_part[INTERVAL_COUNT]; /* prediction without a profile: half-widths in log, whose squares add up;
	                                         else 0 */
	struct result_memory memory;
	double goodput, checkpoint_interval_s; /* prediction: the share of time that steps take in a job that fails and
	                                          checkpoints, and the best time between checkpoints; 0: not asked */
	enum bound class_bound[CLASS_COUNT];   /* BOUND_COUNT: unknown (measurement) */
	char bottleneck[128];
	double host_thread_s; /* prediction: what the host thread needs to issue a step, no step being shorter; 0 where
	                         it has nothing to issue */
	size_t n_warnings;
	char warning[RESULT_MAX_NOTES][256];
	/* measurement only */
	int64_t steps;
	double step_min_s, step_max_s;
	double stamped_step_s; /* a step with the times of its ops, from which the breakdown comes; 0: the timed steps
	                          themselves have them */
	int verified;          /* -1 not asked, 0 no, 1 yes */
	struct result_clocks clocks;
	bool doubles; /* executed on the tests' doubles of the CUDA libraries: no figure of it is a measurement, and
	                 none is reported */
};

/* Fills rates, MFU and HFU from time.step_s. peak_flop_per_s is one device's dense matrix peak for the compute dtype.
 * HFU is MFU x (1 + recomputed FLOP / other FLOP), in the same convention. */
void result_rates(struct result *r, const struct program *p, double peak_flop_per_s);

/* Fills bottleneck from time: the largest part of the step, and its longest class where it is compute or communication.
 * idle, host: what to call idle time and host work; NULL: "idle", "host work". */
void result_bottleneck(struct result *r, const char *idle, const char *host);

/* Adds a warning once; drops it if there are RESULT_MAX_NOTES. */
void result_warn(struct result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* How many times as long as predicted the device's ops took, where those of each larger class took longer, or all took
 * less: then the whole device ran at another pace than when it was measured. 1 where classes differ. */
double result_pace(const struct result *predicted, const struct result *measured);

struct advice;
struct compare;

/* Both sides of a step for report/. Pointers are borrowed; measured and its timeline may be NULL. */
struct outcome {
	const struct program *program;
	const struct result *predicted, *measured;
	const struct timeline *predicted_timeline, *measured_timeline;
	struct {
		double matrix_flop_per_s, mem_Bps; /* a device's, in the compute format, as its datasheet says or as it
		                                      was measured; 0: not known */
	} roofs;
	const struct advice *advice;  /* step/advice.h; NULL: not asked for */
	const struct compare *target; /* report/compare.h, one row: what the target costs; NULL: not asked for */
	json_t *system;               /* what was found or taken, and from where; owned by the caller */
	const char *mode;             /* one line: why nothing was executed; NULL when it was */
};

#endif
