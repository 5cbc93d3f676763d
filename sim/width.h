/* How far off a prediction may be where nothing was measured on the machine: half the width of its 90 % interval of log(measured / predicted). */
#ifndef STEPSIM_SIM_WIDTH_H
#define STEPSIM_SIM_WIDTH_H

#include "step/result.h"
#include "step/stack.h"
#include "topology/machine.h"

/* What stacks and machines that were measured differ by, and so what those that nobody measured may be off by. In log, 90 %; none is fitted to the residuals of steps. */
enum width_term {
	WIDTH_TRAFFIC, /* of the time of kernels that memory bounds: norms, elementwise kernels, the loss, casts */
	WIDTH_HOST,    /* of what the host thread needs to issue the step: so much later it may end, and the step with it where that is later than the device */
	WIDTH_NETWORK, /* of communication in the open */
	WIDTH_GPU,     /* of the whole step on a GPU whose attention kernels no published run tells of */
	WIDTH_NO_FAMILY, /* in place of the family's own `unseen`, for a stack without a family */
	WIDTH_TERMS
};
struct width_source {
	const char *name;
	double value;
	const char *meaning, *source;
};
extern const struct width_source width_sources[WIDTH_TERMS];

/* A stack whose rows fixed its numbers has its own width (stack->interval). Of any other: what its family's rows leave open when their source is held out (stack->unseen), and beside it, in squares, each part of the step by as much as that part is
 * unsure, by its share of the step: traffic, communication in the open; of the host thread what it would need beyond the step. An unknown GPU comes on top of either. Of r: time and host_thread_s. */
double published_width(const struct stack *stack, const struct result *r, bool known_gpu);

/* Sets r->interval90_s by it. */
void published_interval(const struct stack *stack, const struct machine *m, struct result *r);

#endif
