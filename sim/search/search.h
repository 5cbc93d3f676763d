/* The search for plans: every way to train a config's model and batch on a number of ranks. Plans are evaluated by
 * sim/search/evaluate.h; those that are selected are predicted in full.
 *
 * A plan is a shape and a variant of it. The variant is bucket_mb, overlap and prefetch. The shape is all other keys
 * (sim/search/search_space.h): it decides memory and most of the time. The list names the best variant of each shape.
 *
 * Shapes are evaluated in order of their admissible lower bound (sim/search/lower_bound.h). Shapes whose bound is above
 * all that is wanted are pruned: the last of the best, and SEARCH_FRONT times the best for the front. So are plans that
 * a plan of the front dominates by their bounds, or by their bound of time and their memory, which is found before they
 * are timed. Bounds are compared between batches of a fixed size, so that neither the result nor the counts depend on
 * threads. Ties go to the shape and the variant that come first in the fixed order of keys.
 */
#ifndef STEPSIM_SIM_SEARCH_H
#define STEPSIM_SIM_SEARCH_H

#include "base/vec.h"
#include "sim/search/evaluate.h"
#include "step/plan.h"

/* Plans without a bound (models whose layers differ) are each predicted, up to so many. Those that differ from the
 * config in the fewest keys come first; the others are left. */
#define SEARCH_UNBOUNDED 400

/* Plans that the evaluator cannot put together from pieces are simulated, those with the least bounds first, up to so
 * many blocks x micro-batches (some 50 us each). The others are left. */
#define SEARCH_BLOCKS 80e3

/* The Pareto front of (step time, memory) reaches to plans that take so many times as long as the best. */
#define SEARCH_FRONT 1.15

struct search_options {
	uint32_t held;   /* keys that stay as the start has them: 1 << enum plan_key each (plan_held) */
	size_t best;     /* how many shapes are wanted; 0: 10 */
	int threads;     /* 0: one a core that this process may use */
	bool exhaustive; /* nothing is pruned */
	bool best_alone; /* only the best plan is wanted, no front: more is pruned */
	/* NULL: none. Called by the thread that called search(). */
	void (*progress)(double fraction, int64_t plans, void *context);
	void *context;
};

struct search_plan {
	/* Parsed, with the plan's keys put. It resolves to `config`, and plan_write_yaml writes it. */
	struct config chosen;
	struct config config; /* resolved */
	double evaluated_s;   /* the evaluator's step time */
	struct result full;   /* the full prediction; `full.bottleneck` says what limits it */
};

struct search_point {
	double step_s; /* by full prediction, as memory_B */
	uint64_t memory_B;
	struct config config; /* resolved */
};

struct search_counts {
	int64_t shapes, plans;                     /* in the whole space */
	int64_t illegal, too_large, pruned, timed; /* of plans; they add up to `plans` with `left` */
	int64_t left;      /* not looked at (SEARCH_UNBOUNDED, SEARCH_BLOCKS): a better plan may be among them */
	int64_t predicted; /* of those timed: not put together from pieces, but predicted */
};

struct search_result {
	double memory_share; /* of a device that plans may use: the usual share, or 1 where nothing fits into that */
	double usual_share;  /* of a device's memory that plans may use (machine_usual_share): where no plan needs so
	                        little, plans may use all of it */
	bool left_cuts, left_tensor;    /* sim/search/search_space.h */
	struct search_plan *best;       /* by full prediction, fastest first */
	size_t n_best;                  /* 0: nothing fits */
	VEC(struct search_point) front; /* by full prediction, least memory last; none with best_alone */
	struct search_counts counts;
	bool start_legal;         /* the plan that the config itself has */
	char start_reason[256];   /* why it is illegal */
	struct search_plan start; /* where it is legal; full.memory.fits says whether it fits */
	bool has_least;           /* nothing fits, and some plan is legal */
	struct search_plan least; /* the legal plan that needs the least memory, by prediction */
	uint64_t missing_B;       /* bytes that `least` lacks on a device */
};

/* Searches plans of `start`, a parsed config (config_load) with node_ranks set. m: a machine with as many nodes as
 * `ranks` ranks take. Fails with ST_INPUT when no plan is legal. The caller frees *out with search_free, also after a
 * failure. */
enum status search(const struct config *start, const struct machine *m, int64_t ranks, const struct search_options *o,
	struct search_result *out, struct error *e);
void search_free(struct search_result *r); /* NULL-safe members */

#endif
