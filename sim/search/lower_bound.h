/* Admissible lower bounds of a plan's step time and memory, found without simulating the step.
 *
 * A program is a graph. An op starts when the op before it on its lane and its dependencies have ended. It lasts at
 * least as long as it takes alone (sim/price/cost.h). The engine also knows contention and late peers: these only make
 * an op later. So a pass of a micro-batch through a layer occupies the compute lane for at least the time that it takes
 * where every op runs alone. The collectives inside the layer count. Data parallelism does not, nor do the casts, fills
 * and copies that only some strategies have.
 *
 * f, b, w: a stage's forward, backward and weight gradients of a micro-batch (w is part of b). M: micro-batches.
 * f', b': those of its first chunk. Stage s begins when the first micro-batch has come through the stages before it.
 * When it has ended its last backward, that still has to go back through them:
 *
 *   step >= sum over r < s of (f'_r + b'_r) + M (f_s + b_s)     for each s
 *
 * (Narayanan et al. 2021, arXiv:2104.04473, section 2.2: the pipeline bubble.) Exceptions:
 *
 * - zero_bubble: stage s leaves the weight gradients of s micro-batches for after its last backward. w is in none of
 *   the b', and in M - s of the b.
 * - zbv: stages behind the first may defer all w, and backward passes count their compute lane alone.
 * - A pass through a part's layers takes, once, less by the longest wait between two layers and by what the
 *   collectives with which a layer begins add. A stage may fill both with another micro-batch.
 * - Groups across nodes count as nothing: a pass waits so long for them that the next one may hide it.
 *
 * The step is also no shorter than the host thread's launches of the passes of a stage's layers, nor than all
 * collectives over the parameters of a stage's layers, one after the other on their lane. These come in every micro-
 * batch (fsdp, hsdp), or once a step where a pipeline keeps weights gathered. Buckets of gradients may share layers,
 * and count as nothing.
 *
 * Without a pipeline, units that are not gathered ahead (prefetch 0, or no overlap) are gathered once the layer before
 * has ended, and a layer's first product waits for its unit. Each forward pass of a layer then takes longer by the
 * gather, less what of the layer comes before that product. Layers of several units count without it: the product waits
 * for one of them.
 *
 * The memory bound is the static memory of the first stage's layers, and the activations that the stage keeps of the
 * micro-batches that its schedule has in flight at once.
 */
#ifndef STEPSIM_SIM_LOWER_BOUND_H
#define STEPSIM_SIM_LOWER_BOUND_H

#include "sim/search/evaluate.h"

struct plan_lower_bound {
	double step_s;      /* whatever the buckets, and however far ahead units are gathered */
	double unfetched_s; /* of fsdp and hsdp where no unit is gathered ahead; step_s or more */
	double memory_B;    /* of one rank of the first stage */
	bool folds;         /* false: the plan is sure to be predicted, not put together from pieces */
};

/* Fills the bounds of a resolved config on the evaluator's machine; 0 for models whose layers do not repeat (struct
 * layer_order). Leading layers, those left over in a part and mtp_layers count as nothing. The evaluator keeps the
 * bounds of layers and collectives that were found. Fails with ST_RUN when memory is short. */
enum status lower_bound_of(struct evaluator *v, const struct config *c, struct plan_lower_bound *out, struct error *e);

#endif
