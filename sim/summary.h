/* What a simulated timeline says: the result's memory, bounds, interval, bottleneck and warnings. */
#ifndef STEPSIM_SIM_SUMMARY_H
#define STEPSIM_SIM_SUMMARY_H

#include "sim/price.h"

/* prices: one a role. Fills all of `out`. */
enum status summarize(const struct program *p, const struct machine *m, const struct prices *prices, const struct timeline *t, struct result *out, struct error *e);

#endif
