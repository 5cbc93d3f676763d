/* NCCL's own estimate beside ours and the measurement, for -v of a run on GPUs. */
#ifndef STEPSIM_CLI_ESTIMATES_H
#define STEPSIM_CLI_ESTIMATES_H

#include "cli/command.h"
#include "step/timeline.h"

/* Collective, after a run; asks NCCL, and the leading rank prints a line for each different collective of the program to standard error. `predicted` and `measured` (NULL: nothing was measured) count there alone. */
enum status estimates_print(struct context *x, const struct program *p, const struct timeline *predicted, const struct timeline *measured, struct error *e);

#endif
