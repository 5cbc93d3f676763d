/* What the timed steps say about ranks that are slower than others, and about single steps that took far longer: which
 * rank it was, and on which host. On rank 0. */
#ifndef STEPSIM_EXEC_LATE_H
#define STEPSIM_EXEC_LATE_H

#include "exec/session.h"
#include "step/timeline.h"

struct late {
	int64_t ranks, steps;
	double *busy_s; /* by step and rank: of the compute lane */
};

/* NULL-safe destroyer: late_free. ST_RUN: no memory. */
enum status late_init(struct late *l, int64_t ranks, int64_t steps, struct error *e);
void late_free(struct late *l);
void late_add(struct late *l, int64_t step, const struct timeline *t);

/* Warns of a rank that computes much longer than the median of its stage's ranks, and of the longest step, where it is
 * an outlier, with the rank that computed for so long, if one did. step_s: by step. Nothing of slow ranks where the
 * plan itself has some, or ranks share cores. */
void late_say(const struct late *l, const struct session *s, const struct program *p, const double *step_s,
	struct result *out);

#endif
