/* Evaluates plans by the ten thousand, for searches. Plans that a search selects are predicted in full
 * (sim/engine/predict.h).
 *
 * A plan's step is put together from pieces (sim/search/evaluator.h), each measured once and remembered. One piece is a
 * stage's work on a micro-batch. Another is the time that gradients, their reductions and the optimizer add at the
 * step's ends. The pipeline between them is walked action by action (sim/search/pipeline_walk.h). Plans without a
 * pipeline come from two short programs, extended by layers and micro-batches.
 *
 * Some plans do not fold: parts of unequal length, layers that differ, a host thread or a data loader that sets the
 * pace, cores in place of GPUs. These are predicted as in sim/engine/fold.h. Buckets of gradients that span layers fold
 * without a pipeline, where they close at the same parameters again after a few layers. Steps that the host thread
 * waits for (train.sync_every) fold: what is launched late at a step's begin is late in the pieces, too.
 *
 * On 200 random plans (tests/property) the step is within 1 % of the full prediction's, but for one in a hundred with
 * experts. Memory is within 0.1 %, but for one plan in a hundred (up to 0.9 %). Known to miss by more:
 *
 *   reductions of interleaved parts that outlast all there is to hide behind             1.5 % of a step
 *   stages in one node whose messages share its links with tensor parallelism            2 %
 *   replicas of hsdp that keep their weights gathered                                    5 %
 *   context beside zero1 and zero2                                                       7 %
 *   reductions of interleaved parts across many hosts                                    10 %
 *   buckets that span layers of experts                                                  5 %
 *   experts whose copies lie in a tensor group, in steps of a few micro-batches          12 %
 */
#ifndef STEPSIM_SIM_EVALUATE_H
#define STEPSIM_SIM_EVALUATE_H

#include "sim/engine/predict.h"

struct evaluation {
	bool legal, fits;
	double step_s;     /* 0 where it is illegal, does not fit, or is dominated */
	uint64_t memory_B; /* of the stage that needs most; a lower bound where step_s is 0 */
	bool folded;       /* put together from pieces, or extended; false: predicted */
	bool dominated;    /* it fits, and was not timed (evaluator_time_below) */
};

struct evaluator;

/* Creates an evaluator for plans of one cluster, stack and set of data on `m`. The machine has as many nodes as the
 * largest plan takes; a plan on fewer nodes is evaluated as on a machine of so many. Borrows m. */
enum status evaluator_create(const struct machine *m, struct evaluator **out, struct error *e);
/* Creates a like one, for another thread. It shares the pieces of `other`, which must live longer than it is used. */
enum status evaluator_create_beside(const struct evaluator *other, struct evaluator **out, struct error *e);
void evaluator_destroy(struct evaluator *v); /* NULL-safe */

/* Evaluates a parsed config, resolved for `ranks` ranks in a copy. A plan that is wrong is no error: out->legal is
 * false. Two threads may not use one evaluator at once. */
enum status evaluate_plan(struct evaluator *v, const struct config *c, int64_t ranks, struct evaluation *out,
	struct error *e);

/* Makes the evaluator leave plans alone that do not fold: legal, not folded, step_s 0. */
void evaluator_only_fold(struct evaluator *v);
/* Makes the evaluator predict the memory of plans that do not fold also where their parameters alone do not fit, in
 * place of a lower bound. It takes some hundred times as long. */
void evaluator_exact_memory(struct evaluator *v);
/* Makes the evaluator time no plan that needs so many bytes or more, from the next one on, where it finds the memory
 * first: another plan is as fast with fewer. UINT64_MAX: times all that fit. */
void evaluator_time_below(struct evaluator *v, uint64_t below_B);

#endif
