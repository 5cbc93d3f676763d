/* What a step's sums say: the result's memory, bounds, interval, bottleneck and warnings. */
#ifndef STEPSIM_SIM_SUMMARY_H
#define STEPSIM_SIM_SUMMARY_H

#include "sim/price.h"
#include "sim/sums.h"

/* Fills all of `out`. s: of p, or of the same with more micro-batches. */
void summarize(const struct sums *s, const struct program *p, const struct machine *m, struct result *out);

/* Fills out->memory, and warns of it. Takes s->roles' memory alone. */
void summary_memory(const struct sums *s, const struct program *p, const struct machine *m, struct result *out);

/* Adds a rank's memory beside the ops' buffers: context_B, communicators_B, overhead_B. */
void summary_overhead(const struct config *c, const struct mesh *mesh, const struct machine *m, struct result_memory *mem);

#endif
