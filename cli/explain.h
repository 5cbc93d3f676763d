/* Explains a prediction for -v: the roof that each class of ops hits, how each collective runs and its limit, and the
 * assumptions. */
#ifndef STEPSIM_CLI_EXPLAIN_H
#define STEPSIM_CLI_EXPLAIN_H

#include <stdio.h>

#include "step/program.h"
#include "topology/machine.h"

/* Prints the explanation of one role, the one whose rank ends last (timeline_critical_actor). Times are those of ops
 * that run alone; bytes of collectives are those that a rank sends. */
enum status explain(const struct program *p, size_t role, const struct machine *m, FILE *out, struct error *e);

#endif
