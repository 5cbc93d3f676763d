/* Plans without a pipeline: two short programs, extended by layers and micro-batches. */
#include "sim/evaluator.h"

#include <math.h>

static enum status find_flat_memory(struct evaluator *v, int kind, int64_t layers, enum status (*measure)(const struct config *, int64_t, struct flat_memory *, struct error *), struct line *out, struct error *e)
{
	void *piece;
	bool fresh;
	enum status st = evaluator_find_config(v, kind, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = measure(&v->plan, layers, piece, e);
	}
	*out = st ? (struct line){0} : flat_memory_of(piece, &v->plan);
	return st;
}

/* The peak of few layers may be where hardly any activation lives; with more layers another moment takes over, and the line through few says too little: then all layers are laid out. */
#define BENT 0.001
#define FEW_LAYERS 6

/* What is there always, and then with what all layers keep, may be too much already. */
static enum status flat_memory(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const struct block_pieces *b;
	const int64_t layers = c->model.layers;
	struct line always, peak;
	flat_static_config(c, 1, &v->small);
	enum status st = find_flat_memory(v, PIECES_STATIC, 1, flat_static_measure, &always, e);
	if (st)
		return st;
	evaluator_set_memory(v, line_at(always, layers), out);
	if (!out->fits || (st = evaluator_find_block(v, &b, e)))
		return st;
	const double each_B = always.each + b->kept_B[END_FIRST].each;
	evaluator_set_memory(v, line_at(always, layers) + b->kept_B[END_FIRST].each * (double)layers, out);
	if (!out->fits)
		return ST_OK;
	const int64_t few = FEW_LAYERS + 2 * c->parallel.prefetch; /* by then so many units are gathered at once as ever */
	for (int64_t from = few < layers ? few : layers; !st; from = layers) {
		flat_memory_config(c, from, &v->small);
		if (!(st = find_flat_memory(v, PIECES_FLAT_MEMORY, from, flat_memory_measure, &peak, e)))
			evaluator_set_memory(v, line_at(peak, layers), out);
		if (from == layers || (double)(layers - from - 1) * (each_B - peak.each) <= BENT * line_at(peak, layers))
			break;
	}
	return st;
}

enum status evaluate_flat(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	void *piece;
	bool fresh;
	enum status st = flat_memory(v, out, e);
	if (st || !out->fits)
		return st;
	flat_config(c, 1, c->micro_batches > FLAT_MICROS ? FLAT_MICROS + 1 : FLAT_MICROS, &v->small);
	st = evaluator_find_config(v, PIECES_FLAT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = flat_pieces_measure(c, v->m, piece, e);
	}
	if (st)
		return st;
	const struct flat_pieces *f = piece;
	const int64_t layers = c->model.layers;
	const double more = c->micro_batches > FLAT_MICROS ? (double)(c->micro_batches - FLAT_MICROS) : 0, scale = evaluator_scale(v);
	out->step_s = (line_at(f->step_s, layers) + more * line_at(f->micro_s, layers)) * scale;
	/* what a further micro-batch is made of: as those that were counted */
	const double compute_s = line_at(f->compute_s, layers), comm_s = line_at(f->exposed_comm_s, layers), grows = 1 + more * line_at(f->micro_s, layers) / fmax(1e-12, compute_s + comm_s);
	out->optimizer_s = line_at(f->optimizer_s, layers) * scale;
	out->compute_s = compute_s * grows * scale;
	out->exposed_comm_s = comm_s * grows * scale;
	out->other_s = out->step_s - out->optimizer_s - out->compute_s - out->exposed_comm_s;
	out->folded = f->straight && line_at(f->host_s, layers) * (double)c->micro_batches / FLAT_MICROS < out->step_s;
	return ST_OK;
}
