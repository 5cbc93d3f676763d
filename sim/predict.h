/* The prediction: price a program on a machine, run the engine, read off the result. */
#ifndef STEPSIM_SIM_PREDICT_H
#define STEPSIM_SIM_PREDICT_H

#include "step/program.h"
#include "step/result.h"
#include "topology/machine.h"

/* The timeline (the caller frees it) has one actor a role. Deterministic. */
enum status predict(const struct program *p, const struct machine *m, struct result *out, struct timeline *timeline, struct error *e);

#endif
