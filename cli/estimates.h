/* NCCL's own estimates of a run's collectives, compared with the prediction and the measurement, for -v on GPUs. */
#ifndef STEPSIM_CLI_ESTIMATES_H
#define STEPSIM_CLI_ESTIMATES_H

#include "cli/command.h"
#include "step/timeline.h"

/* Asks NCCL after a run; the leading rank prints one line for each different collective of the program to standard
 * error. Collective. Only the leading rank needs `predicted` and `measured` (NULL: nothing was measured). */
enum status estimates_print(struct context *x, const struct program *p, const struct timeline *predicted,
	const struct timeline *measured, struct error *e);

#endif
