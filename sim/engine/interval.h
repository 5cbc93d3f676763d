/* The 90 % interval of a prediction where nothing was measured on the machine. Its half-width is in
 * log(measured / predicted): the root of the sum of the squares of its causes (enum interval_cause), so that what is
 * less known is never narrower. It reaches up by the half-width, and down by a share of it: what a model leaves out
 * makes steps longer, not shorter. */
#ifndef STEPSIM_SIM_INTERVAL_H
#define STEPSIM_SIM_INTERVAL_H

#include "step/config/config.h"
#include "step/result.h"
#include "topology/machine.h"

/* Sets each cause's half-width, in log; 0: it is none. Like the published runs that fixed the stack (their GPUs and
 * formats, no experts) a step has the stack's own residuals (stack->interval) as its software's. Any other has, with
 * the terms of configs/model/interval.yaml:
 *
 *   software   the larger of stack->interval and the error of runs whose source fixed nothing: `software`, no_family
 *              where the stack names no family
 *   experts    where the model has them: their load and their products are less known; experts_eager without fused
 *              kernels
 *   traffic    x the share of memory-bound kernels in the step, the optimizer among them
 *   network    x the share of exposed communication in the step
 *   host       + log(share) of the host thread in the step, where that is above 0; host_eager without fused kernels
 *   context    x the share of attention in the step, where ranks share a sequence
 *
 * A GPU adds unknown_gpu to either where no published step, or no run of the attention kernel, tells how fast it is;
 * one that runs other libraries than NVIDIA's adds unknown_maker where no published step does.
 * Reads r->time and r->host_thread_s. */
void interval_parts(const struct config *c, const struct machine *m, const struct result *r,
	double out[INTERVAL_COUNT]);

/* Sets r->interval_part and r->interval90_s by them. */
void interval_set_published(const struct config *c, const struct machine *m, struct result *r);

/* Widens r->interval90_s, which is there, by a further error of the step, independent of the rest: a half-width in log.
 * Its two sides grow by the same factor. */
void interval_widen(struct result *r, double half_width);

#endif
