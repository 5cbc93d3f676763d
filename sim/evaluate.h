/* Evaluates plans by the ten thousand, for searches. What a search selects is predicted in full (sim/predict.h).
 *
 * A plan's step is put together from pieces, each measured once by the full prediction's own program builder, prices and engine on a program of few layers and micro-batches (sim/pieces.h) and remembered: what a stage does with a
 * micro-batch, and what gradients, their reductions and the optimizer add at the step's ends. The pipeline between them is walked action by action (sim/walk.h). Plans without a pipeline come from two short programs, extended by
 * layers and micro-batches. What does not fold - parts of unequal length, layers that differ, a host thread or a data loader that sets the pace, cores in place of GPUs - is predicted as in sim/fold.h.
 * Within 1 % of the full prediction's step and, but for one in a hundred (up to 0.9 %), 0.1 % of its memory on 200 random plans (tests/property). Known to miss by more: reductions of interleaved parts that outlast all there is to hide behind (1.5 % of a step), stages in one
 * node whose messages share its links with tensor parallelism (2 %), replicas of hsdp that keep their weights gathered (5 %), context beside zero1 and zero2 (7 %), reductions of interleaved parts across many hosts (10 %).
 */
#ifndef STEPSIM_SIM_EVALUATE_H
#define STEPSIM_SIM_EVALUATE_H

#include "sim/predict.h"

struct evaluation {
	bool legal, fits;
	double step_s;        /* 0 where it is illegal or does not fit */
	double compute_s, exposed_comm_s, bubble_s, optimizer_s, other_s; /* add up to step_s */
	uint64_t memory_B;    /* of the stage that needs most; where it does not fit: so much at least */
	bool folded;          /* put together from pieces, or extended; else predicted */
	char reason[256];     /* why it is illegal */
};

struct evaluator;

/* For plans of one model, stack and set of data on `m`, whose nodes are as many as the largest plan takes; plans on fewer are as on a machine of so many. Borrows m. */
enum status evaluator_create(const struct machine *m, struct evaluator **out, struct error *e);
void evaluator_destroy(struct evaluator *v); /* NULL-safe */

/* c: a parsed config; it is resolved for `ranks` ranks in a copy. A plan that is wrong is no error: out->legal. Not for two threads at once. */
enum status evaluate_plan(struct evaluator *v, const struct config *c, int64_t ranks, struct evaluation *out, struct error *e);

/* From here on a plan that does not fold is left alone: legal, not folded, step_s 0. */
void evaluator_only_fold(struct evaluator *v);

/* Of a resolved config: false where it is sure to be predicted. */
bool evaluator_folds(const struct evaluator *v, const struct config *c);

struct evaluator_counts {
	int64_t plans, illegal, too_large, timed; /* of plans: illegal, more than memory, with a step time */
	int64_t predicted;                        /* of those timed: not folded */
	int64_t measured;                         /* short programs' worth of pieces */
};
struct evaluator_counts evaluator_counts(const struct evaluator *v);

#endif
