/* Why a prediction is what it is, for -v: which roof each class of ops hits, how each collective runs and what limits it, and what was assumed. */
#ifndef STEPSIM_CLI_EXPLAIN_H
#define STEPSIM_CLI_EXPLAIN_H

#include <stdio.h>

#include "step/program.h"
#include "topology/machine.h"

/* Of the role whose rank ends last (timeline_critical_actor). Times are those of the ops alone, without what runs beside them; bytes of collectives are those that a rank sends. */
enum status explain(const struct program *p, size_t role, const struct machine *m, FILE *out, struct error *e);

#endif
