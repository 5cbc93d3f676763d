/* What the files of the search share (sim/search.h): a search under way. */
#ifndef STEPSIM_SIM_SEARCH_QUEST_H
#define STEPSIM_SIM_SEARCH_QUEST_H

#include <stdatomic.h>

#include "sim/search.h"
#include "sim/search_space.h"

#define SEARCH_BEST 10    /* shapes that are wanted where nobody says it */
#define SEARCH_BATCH 16   /* shapes between two looks at the bounds */
#define SEARCH_THREADS 64 /* at most */

struct point {
	double step_s;
	uint64_t memory_B;
	uint32_t shape, variant;
};

/* What was found of a shape. */
struct found {
	int64_t illegal, too_large, timed, predicted;
	uint64_t least_B;        /* of what does not fit: so much at least; UINT64_MAX: none */
	uint32_t least_variant;
	bool any;
	struct evaluation quick; /* of the best */
	uint32_t variant;
	struct point front[VARIANTS_MAX];
	size_t n_front;
};

/* What a thread evaluates with. */
struct seeker {
	const struct search_space *space; /* borrowed */
	struct evaluator *evaluator;      /* owned */
	struct config config;
};

struct least {
	uint64_t memory_B;
	uint32_t shape, variant;
};

struct top {
	double step_s;
	struct evaluation quick;
	uint32_t shape, variant;
};

struct quest {
	const struct search_options *o;
	const struct machine *m;
	struct machine usable; /* with the memory that plans may use */
	double blocks;         /* that were simulated */
	struct search_space space;
	uint32_t *order;  /* shapes by floor */
	uint32_t batch[SEARCH_BATCH]; /* shapes */
	size_t n_batch;
	atomic_size_t next;
	struct seeker *seekers;
	int threads;
	struct found *found; /* of the batch */
	enum status *status;
	struct error *errors;
	struct top *top;  /* fastest first */
	size_t n_top, wanted; /* of wanted + 1 places */
	VEC(struct point) front;
	VEC(struct least) least; /* what does not fit, one a shape */
};

/* The shapes that no bound decides, evaluated on all cores: fills top, front and least. */
enum status search_seek(struct quest *q, struct search_counts *c, struct error *e);
/* What was found as plans: the best, the front, what needs the least memory where nothing fits, and the start itself. */
enum status search_select(struct quest *q, const struct config *start, struct search_result *out, struct error *e);

#endif
