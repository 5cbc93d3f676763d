/* The result of a step, read off its sums: memory, bounds, interval, bottleneck and warnings. */
#ifndef STEPSIM_SIM_SUMMARY_H
#define STEPSIM_SIM_SUMMARY_H

#include "sim/price/price.h"
#include "sim/engine/sums.h"

/* Fills all of `out`. s: the sums of p, or of the same program with more micro-batches. */
void summarize(const struct sums *s, const struct program *p, const struct rates *rates, struct result *out);

/* Fills out->memory and adds its warnings. Reads the memory of s->roles alone. */
void summary_memory(const struct sums *s, const struct program *p, const struct rates *rates, struct result *out);

/* Adds a rank's memory outside the allocator: the context, NCCL's buffers for each group that communicates, and their
 * sum (context_B, communicators_B, overhead_B). Adds nothing on a host's cores. */
void summary_overhead(const struct config *c, const struct mesh *mesh, const struct machine *m,
	struct result_memory *mem);

#endif
