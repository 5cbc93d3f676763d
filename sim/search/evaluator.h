/* The evaluator's own declarations, shared by its files (sim/search/evaluate.h): the cache of pieces, and the two ways
 * to put a plan together from them. */
#ifndef STEPSIM_SIM_EVALUATOR_H
#define STEPSIM_SIM_EVALUATOR_H

#include "sim/price/rates.h"
#include "sim/search/evaluate.h"
#include "sim/search/pieces.h"

enum {
	PIECES_BLOCK,
	PIECES_MEMORY,
	PIECES_DATA,
	PIECES_STATIC,
	PIECES_FLAT_MEMORY,
	PIECES_FLAT,
	PIECES_PIPELINE_ENDS,
	PIECES_KINDS
};

struct cached_piece {
	uint64_t key[2];
	void *piece; /* owned; NULL: free */
};

struct evaluator {
	const struct machine *m;
	struct rates rates;   /* of m */
	struct program shape; /* without roles: the costs of single messages are asked with it */
	struct config plan;   /* resolved */
	struct config small;  /* the reduced config that the piece in question depends on */
	struct cached_piece *cache;
	size_t slots, n;
	bool only_fold;
	struct evaluator_counts counts;
};

struct pipeline_ends {
	double ends_s[END_COUNT]; /* end of the actions of the first and of the last stage */
};

/* Finds the piece of a kind that depends on the `bytes` bytes at `of`; the evaluator owns it. *fresh: it was not known,
 * is zero and still to be filled. Fails with ST_RUN when memory is short. */
enum status evaluator_find(struct evaluator *v, int kind, const void *of, size_t bytes, void **out, bool *fresh,
	struct error *e);
/* Finds the piece that depends on v->small, less the part of a config that serves messages alone. */
enum status evaluator_find_config(struct evaluator *v, int kind, void **out, bool *fresh, struct error *e);
/* Finds the block pieces of the plan; measures them where they are not known. */
enum status evaluator_find_block(struct evaluator *v, const struct block_pieces **out, struct error *e);

/* Returns the factor on times of pieces where the plan has fewer nodes than the machine (stragglers_slowdown). */
double evaluator_scale(const struct evaluator *v);
/* Fills memory_B and fits from the peak of the step's own buffers. */
void evaluator_set_memory(const struct evaluator *v, double peak_B, struct evaluation *out);

/* Evaluate v->plan, which is resolved and folds. out->folded is false where it fits but the host thread sets the pace.
 */
enum status evaluate_pipeline(struct evaluator *v, struct evaluation *out, struct error *e);
enum status evaluate_flat(struct evaluator *v, struct evaluation *out, struct error *e);

#endif
