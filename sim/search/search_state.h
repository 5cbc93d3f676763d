/* The search's own declarations, shared by its files (sim/search/search.h). */
#ifndef STEPSIM_SIM_SEARCH_STATE_H
#define STEPSIM_SIM_SEARCH_STATE_H

#include "sim/search/search.h"
#include "sim/search/search_space.h"

#define SEARCH_BEST 10  /* shapes that are wanted where search_options.best is 0 */
#define SEARCH_BATCH 16 /* shapes that are evaluated between two comparisons with the bounds */

/* An evaluated plan. */
struct point {
	double step_s; /* 0: it does not fit */
	uint64_t memory_B;
	uint32_t plan; /* shape x VARIANTS_MAX + variant: in the fixed order of keys */
};

/* A shape of the batch and the evaluations of its variants. */
struct shape_outcome {
	uint32_t shape;
	uint64_t below_B; /* a plan of it that needs so much is dominated */
	double limit_s;   /* a variant whose bound is above is pruned */
	size_t n;
	bool pruned[VARIANTS_MAX];
	struct evaluation of[VARIANTS_MAX];
	enum status status;
	struct error error;
};

/* A thread's evaluator and config. */
struct worker {
	struct evaluator *evaluator; /* owned */
	struct config config;
};

struct search_state {
	const struct search_options *o;
	const struct machine *m;
	struct machine usable; /* with the memory that plans may use */
	double blocks;         /* layers x micro-batches simulated so far */
	struct search_space space;
	uint32_t *order; /* shapes by lower bound of the step */
	struct shape_outcome batch[SEARCH_BATCH];
	size_t n_batch;
	struct worker *workers;
	int threads;
	struct point *top;    /* the best variants of shapes, fastest first */
	size_t n_top, wanted; /* top has wanted + 1 places */
	VEC(struct point) front;
	VEC(struct point) oversized; /* shapes that do not fit, by their smallest variants and lower bounds of memory */
};

/* Orders points by memory, then by step time, then by plan. */
int search_by_memory(const void *a, const void *b);

/* Resolves a parsed config and checks that it can be predicted. A plan that is wrong is no error: *wrong says why it is
 * illegal, and is empty otherwise. */
enum status search_resolve(struct config *c, int64_t ranks, struct error *wrong, struct error *e);

/* ---- sim/search/select.c ---- */

/* Fills the result with plans: the best, the front, the start itself, and, where nothing fits, the one that needs the
 * least memory. */
enum status search_select(struct search_state *state, const struct config *start, struct search_result *out,
	struct error *e);

#endif
