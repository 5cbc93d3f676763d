/* Data-parallel strategies, a row each: what the ranks that hold the same parameters cut among themselves, and when
 * they exchange it. The builder, the checks of a config, the checker of a program, the search and the advice read the
 * row and compare no names.
 *
 *              weights            gradients                                 optimizer's state
 *   ddp        whole              all-reduced with the last micro-batch     whole
 *   zero1      whole, gathered    reduce-scattered with the last one        cut
 *              after the update
 *   zero2      the same           reduce-scattered with each                cut
 *   fsdp       cut, a unit is     reduce-scattered with each                cut
 *   (zero3)    gathered per use
 *              In a pipeline their gradients stay whole until the last micro-batch (parallel_reduces_each).
 *   hsdp       fsdp in groups of parallel.shard ranks (DIM_SHARD), and all-reduce of the parts over DIM_REPLICA
 *   none       whole              not reduced: one replica                  whole
 *
 * (Rajbhandari et al. 2020, arXiv:1910.02054, section 5, for the three stages of ZeRO; Zhao et al. 2023,
 * arXiv:2304.11277, for fsdp and hsdp.) zero1 and zero2 cut in groups too where parallel.shard or parallel.replicate
 * says so (Megatron-LM's --num-distributed-optimizer-instances, megatron/core/parallel_state.py). Cuts run over DIM_DP
 * or, with context parallelism, DIM_DP_CP.
 */
#ifndef STEPSIM_STEP_STRATEGY_H
#define STEPSIM_STEP_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>

/* Traits. Those that stand first have the fewest words behind them; the comment says what follows from each. */
enum {
	STRATEGY_REDUCES = 1 << 0, /* gradients are summed over the ranks; without it a job has one replica */
	STRATEGY_BUCKETS = 1 << 1, /* parameters are grouped in buckets of bucket_mb (PyTorch DDP) */
	STRATEGY_UNITS = 1 << 2,   /* parameters are grouped in units: one a block, and the rest (PyTorch FSDP) */
	/* A rank updates its part alone, so a reduction is a reduce-scatter. Updated weights that are stored whole are
	 * gathered behind the update. */
	STRATEGY_CUTS_STATES = 1 << 3,
	/* A rank stores its part of the reduced gradients alone, so every micro-batch reduces its own, but for units in
	 * a pipeline (parallel_reduces_each). Each goes with no schedule that splits the backward pass. */
	STRATEGY_CUTS_GRADIENTS = 1 << 4,
	/* A rank stores its part of the weights alone: each use gathers the unit, which is freed behind it
	 * (parallel.reshard_after_forward: false keeps it until the backward pass). */
	STRATEGY_CUTS_WEIGHTS = 1 << 5,
	STRATEGY_GROUPS = 1 << 6,     /* may cut among groups of ranks; a part's replicas are summed over DIM_REPLICA */
	STRATEGY_REPLICAS = 1 << 7,   /* does so unless told otherwise: in groups of a node's ranks */
	STRATEGY_COMPRESSES = 1 << 8, /* may reduce gradients in another format (PyTorch's communication hooks) */
};

#define STRATEGY_ZERO1 (STRATEGY_REDUCES | STRATEGY_BUCKETS | STRATEGY_CUTS_STATES | STRATEGY_GROUPS)
#define STRATEGY_FSDP \
	(STRATEGY_REDUCES | STRATEGY_UNITS | STRATEGY_CUTS_STATES | STRATEGY_CUTS_GRADIENTS | STRATEGY_CUTS_WEIGHTS)

/* ROW(id, word of parallel.strategy, traits); ALIAS(id, another word): right behind its row. */
#define STRATEGIES(ROW, ALIAS) \
	ROW(DDP, "ddp", STRATEGY_REDUCES | STRATEGY_BUCKETS | STRATEGY_COMPRESSES) \
	ROW(ZERO1, "zero1", STRATEGY_ZERO1) \
	ROW(ZERO2, "zero2", STRATEGY_ZERO1 | STRATEGY_CUTS_GRADIENTS) \
	ROW(FSDP, "fsdp", STRATEGY_FSDP) \
	ALIAS(FSDP, "zero3") \
	ROW(HSDP, "hsdp", STRATEGY_FSDP | STRATEGY_GROUPS | STRATEGY_REPLICAS) \
	ROW(NONE, "none", 0)

#define STRATEGY_ID(id, ...) STRAT_##id,
#define STRATEGY_NO_ID(id, ...)
enum strategy { STRATEGIES(STRATEGY_ID, STRATEGY_NO_ID) STRAT_COUNT };
#undef STRATEGY_ID
#undef STRATEGY_NO_ID

struct strategy_traits {
	const char *name;
	unsigned traits;
};

extern const struct strategy_traits strategy_traits[STRAT_COUNT];

const char *strategy_name(enum strategy s);

/* The strategy has all of `traits`. */
static inline bool strategy_has(enum strategy s, unsigned traits)
{
	return (strategy_traits[s].traits & traits) == traits;
}

/* The strategy has all of `with` and none of `without`. */
static inline bool strategy_fits(enum strategy s, unsigned with, unsigned without)
{
	return strategy_has(s, with) && !(strategy_traits[s].traits & without);
}

/* Keeps whole gradients of the step and cuts the optimizer's state: the exchange stands at the step's ends. */
static inline bool strategy_cuts_states_alone(enum strategy s)
{
	return strategy_fits(s, STRATEGY_CUTS_STATES, STRATEGY_CUTS_GRADIENTS);
}

/* The strategy that fits and has the most traits, of equals the last; STRAT_COUNT: none fits. */
enum strategy strategy_most(unsigned with, unsigned without);

/* Names of the strategies that fit, in the order of the table: "fsdp, hsdp". Returns buf. */
#define STRATEGY_NAMES 96
char *strategy_names(unsigned with, unsigned without, char buf[STRATEGY_NAMES]);

#endif
