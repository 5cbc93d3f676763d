/* Fitting the numbers of a software stack (step/stack.h) to somebody's own runs.
 *
 * A number moves from what its file says by x, in units of how far it may well be off: a factor e^(0.4 x) for a number
 * that scales (traffic, the host's time for an op), x times 0.15 for a share, x times 5 % of the shortest run's step
 * for a time that a step or a micro-batch adds. The x are those that minimise
 *
 *   sum over runs of (log(predicted / measured) / s)^2 + sum over numbers of x^2,   s = FIT_NOISE
 *
 * by Gauss and Newton's steps (ridge regression where the step time is linear in x), so that few runs move little, and
 * what no run sees does not move at all. Numbers that change no run by more than FIT_SEEN stay as they were.
 *
 * Cross-validation leaves out each group of runs in turn, fits the others by the Jacobian of the fit, and predicts the
 * runs left out in full. */
#ifndef STEPSIM_SIM_ADVISE_FIT_H
#define STEPSIM_SIM_ADVISE_FIT_H

#include "step/config/config.h"
#include "topology/machine.h"

#define FIT_NOISE 0.02 /* of a measured median, and of what no number of a stack explains */
#define FIT_SEEN 0.005

struct fit_run {
	const struct config *config; /* resolved; borrowed */
	const struct machine *machine;
	double measured_s;
	size_t group; /* from 0: what is left out together */
	/* results, seconds */
	double before_s, after_s;
	double left_out_s; /* predicted without its group; NAN where there is one group */
};

struct fit_number {
	double before, after;
	bool moved;
};

struct stack_fit {
	struct fit_number number[STACK_NUMBERS]; /* as stack_numbers */
	size_t groups;
};

/* All runs have the same stack. Fills their results and *out. `tell` may be NULL: the share that is done. Fails as
 * predicting does. */
enum status stack_fit(struct fit_run *runs, size_t n, struct stack_fit *out, void (*tell)(double done),
	struct error *e);

#endif
