/* What the files of the evaluator share (sim/evaluate.h): the memory of pieces, and how a plan is put together from them. */
#ifndef STEPSIM_SIM_EVALUATOR_H
#define STEPSIM_SIM_EVALUATOR_H

#include "sim/evaluate.h"
#include "sim/pieces.h"

enum { PIECES_BLOCK, PIECES_MEMORY, PIECES_DATA, PIECES_STATIC, PIECES_FLAT_MEMORY, PIECES_FLAT, PIECES_WALK, PIECES_KINDS };

struct known {
	uint64_t key[2];
	void *piece; /* owned; NULL: free */
};

struct evaluator {
	const struct machine *m;
	struct program shape; /* no roles: what costs of single messages are asked with */
	struct config plan, small; /* the plan, resolved; what its piece in question depends on */
	struct known *known;
	size_t slots, n;
	bool only_fold;
	struct evaluator_counts counts;
};

struct walk_ends {
	double ends_s[END_COUNT]; /* the first and the last stage have ended their actions */
};

/* The piece of a kind that depends on `bytes` bytes; the evaluator owns it. *fresh: it was not known, is zero and still to be filled. */
enum status evaluator_find(struct evaluator *v, int kind, const void *of, size_t bytes, void **out, bool *fresh, struct error *e);
/* Of v->small, without what a config keeps for messages alone. */
enum status evaluator_find_config(struct evaluator *v, int kind, void **out, bool *fresh, struct error *e);
/* What a micro-batch does on the plan's stages, measured where it is not known. */
enum status evaluator_find_block(struct evaluator *v, const struct block_pieces **out, struct error *e);

/* The plan's nodes are fewer than the machine's: steps take so many times as long (predict_spread). */
double evaluator_scale(const struct evaluator *v);
/* Fills memory_B and fits from the peak of what the step itself needs. */
void evaluator_set_memory(const struct evaluator *v, double peak_B, struct evaluation *out);

/* v->plan, resolved, which folds; out->folded false: it fits, but the host thread sets the pace. */
enum status evaluate_pipeline(struct evaluator *v, struct evaluation *out, struct error *e);
enum status evaluate_flat(struct evaluator *v, struct evaluation *out, struct error *e);

#endif
