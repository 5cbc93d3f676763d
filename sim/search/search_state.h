/* The state of a search under way, shared by the files of the search (sim/search/search.h). */
#ifndef STEPSIM_SIM_SEARCH_STATE_H
#define STEPSIM_SIM_SEARCH_STATE_H

#include <stdatomic.h>

#include "sim/search/search.h"
#include "sim/search/search_space.h"

#define SEARCH_BEST 10    /* shapes that are wanted where search_options.best is 0 */
#define SEARCH_BATCH 16   /* shapes that are evaluated between two comparisons with the bounds */
#define SEARCH_THREADS 64 /* at most */

struct point {
	double step_s;
	uint64_t memory_B;
	uint32_t shape, variant;
};

/* The result of evaluating all variants of a shape. */
struct shape_outcome {
	int64_t illegal, too_large, timed, predicted;
	uint64_t least_B; /* lower bound of the smallest variant that does not fit; UINT64_MAX: none */
	uint32_t least_variant;
	bool any;                /* some variant fits */
	struct evaluation quick; /* of the fastest variant */
	uint32_t variant;        /* that one */
	struct point front[VARIANTS_MAX];
	size_t n_front;
};

/* A thread's evaluator and config. */
struct search_worker {
	const struct search_space *space; /* borrowed */
	struct evaluator *evaluator;      /* owned */
	struct config config;
};

/* A shape that does not fit, by its smallest variant. */
struct oversized {
	uint64_t memory_B;
	uint32_t shape, variant;
};

struct ranked_plan {
	double step_s;
	struct evaluation quick;
	uint32_t shape, variant;
};

struct search_state {
	const struct search_options *o;
	const struct machine *m;
	struct machine usable; /* with the memory that plans may use */
	double blocks;         /* layers x micro-batches simulated so far */
	struct search_space space;
	uint32_t *order;              /* shapes by lower bound of the step */
	uint32_t batch[SEARCH_BATCH]; /* shapes */
	size_t n_batch;
	atomic_size_t next; /* place in the batch that a free worker takes */
	struct search_worker *workers;
	int threads;
	struct shape_outcome *outcomes; /* of the batch */
	enum status *status;
	struct error *errors;
	struct ranked_plan *top; /* fastest first */
	size_t n_top, wanted;    /* top has wanted + 1 places */
	VEC(struct point) front;
	VEC(struct oversized) oversized;
};

/* Evaluates the shapes that no bound decides, on all cores. Fills top, front and oversized. */
enum status search_evaluate_shapes(struct search_state *state, struct search_counts *c, struct error *e);
/* Fills the result with plans: the best, the front, the start itself, and, where nothing fits, the one that needs the
 * least memory. */
enum status search_select(struct search_state *state, const struct config *start, struct search_result *out,
	struct error *e);

#endif
