/* The prediction: price a program on a machine, run the engine, read off the result. */
#ifndef STEPSIM_SIM_PREDICT_H
#define STEPSIM_SIM_PREDICT_H

#include "step/program.h"
#include "step/result.h"
#include "topology/machine.h"

/* The timeline (the caller frees it) has one actor a role. Deterministic. */
enum status predict(const struct program *p, const struct machine *m, struct result *out, struct timeline *timeline, struct error *e);

struct prices;
struct sums;

/* A program as it was simulated. */
struct simulation {
	const struct program *p; /* borrowed, as m */
	const struct machine *m;
	struct prices *prices; /* one a role */
	struct timeline timeline;
	double host_thread_s; /* struct result */
};
enum status simulation_run(const struct program *p, const struct machine *m, struct simulation *out, struct error *e); /* out: to be freed in any case */
void simulation_free(struct simulation *s);
/* What it adds up to for the role that ends last, or for another; `out` as sums_of has it. */
enum status simulation_sums(const struct simulation *s, uint32_t actor, struct sums *out, struct error *e);

/* The timeline alone, and what the host thread needs to issue the step (struct result). */
enum status predict_timeline(const struct program *p, const struct machine *m, struct timeline *timeline, double *host_s, struct error *e);

/* So full, PyTorch's allocator may have to free what it caches and try again: of MPT runs near capacity some took 12 to 28 % longer than their like, most did not (mosaicml/llm-foundry, scripts/train/benchmarking). */
#define PREDICT_FULL_SHARE 0.9

/* How much longer a device's work takes where so many of the machine's nodes run one job: the slowest paces all. */
double predict_spread(const struct machine *m, int64_t nodes);

#endif
