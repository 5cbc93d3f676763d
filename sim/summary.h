/* What a simulated timeline says: the result's memory, bounds, interval, bottleneck and warnings. */
#ifndef STEPSIM_SIM_SUMMARY_H
#define STEPSIM_SIM_SUMMARY_H

#include "sim/price.h"

/* prices: one a role; host_thread_s: as in the result. Fills all of `out`. */
enum status summarize(const struct program *p, const struct machine *m, const struct prices *prices, const struct timeline *t, double host_thread_s, struct result *out, struct error *e);

/* Fills out->memory, and warns of it. */
enum status summary_memory(const struct program *p, const struct machine *m, struct result *out, struct error *e);

/* Adds a rank's memory beside the ops' buffers: context_B, communicators_B, overhead_B. */
void summary_overhead(const struct config *c, const struct mesh *mesh, const struct machine *m, struct result_memory *mem);

#endif
