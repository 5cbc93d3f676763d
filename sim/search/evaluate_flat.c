/* Plans without a pipeline: two short programs, extended by layers and micro-batches. */
#include "sim/search/evaluator.h"

#include <math.h>

static enum status find_flat_memory(struct evaluator *v, int kind, int64_t layers,
	enum status (*measure)(const struct config *, int64_t, struct flat_memory *, struct error *), struct line *out,
	struct error *e)
{
	void *piece;
	bool fresh;
	enum status st = evaluator_find_config(v, kind, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = measure(&v->plan, layers, piece, e);
	}
	*out = st ? (struct line){0} : pieces_flat_memory(piece, &v->plan);
	return st;
}

/* The peak of a program of MEMORY_LAYERS layers may be where hardly any activation lives. With more layers the peak
 * moves elsewhere, and the line through the short programs says too little. All layers are laid out where that may be
 * more than PEAK_TOLERANCE of the peak. */
#define PEAK_TOLERANCE 0.001
#define MEMORY_LAYERS 6

/* Returns early if the static memory, or static memory plus all layers' activations, exceeds the limit. */
static enum status flat_memory(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const struct block_pieces *b;
	const int64_t layers = c->model.layers;
	struct line always, peak;
	pieces_flat_static_config(c, 1, &v->small);
	enum status st = find_flat_memory(v, PIECES_STATIC, 1, pieces_measure_flat_static, &always, e);
	if (st)
		return st;
	evaluator_set_memory(v, line_at(always, layers), out);
	if (!out->fits || (st = evaluator_find_block(v, &b, e)))
		return st;
	const double each_B = always.per_layer + b->kept_B[END_FIRST].per_layer;
	evaluator_set_memory(v, line_at(always, layers) + b->kept_B[END_FIRST].per_layer * (double)layers, out);
	if (!out->fits)
		return ST_OK;
	const int64_t first = MEMORY_LAYERS +
	                      2 * c->parallel.prefetch; /* from then on no more units are gathered at once */
	for (int64_t from = first < layers ? first : layers; !st; from = layers) {
		pieces_flat_memory_config(c, from, &v->small);
		if (!(st = find_flat_memory(v, PIECES_FLAT_MEMORY, from, pieces_measure_flat_memory, &peak, e)))
			evaluator_set_memory(v, line_at(peak, layers), out);
		if (from == layers || (double)(layers - from - 1) * (each_B - peak.per_layer) <=
					      PEAK_TOLERANCE * line_at(peak, layers))
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
	pieces_flat_config(c, 1, c->micro_batches > FLAT_MICRO_BATCHES ? FLAT_MICRO_BATCHES + 1 : FLAT_MICRO_BATCHES,
		&v->small);
	st = evaluator_find_config(v, PIECES_FLAT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = pieces_measure_flat(c, v->m, piece, e);
	}
	if (st)
		return st;
	const struct flat_pieces *f = piece;
	const int64_t layers = c->model.layers;
	const double more = c->micro_batches > FLAT_MICRO_BATCHES ? (double)(c->micro_batches - FLAT_MICRO_BATCHES) : 0,
		     scale = evaluator_scale(v);
	out->step_s = (line_at(f->step_s, layers) + more * line_at(f->micro_s, layers)) * scale;
	/* a further micro-batch has the shares of compute and communication of those that were counted */
	const double compute_s = line_at(f->compute_s, layers), comm_s = line_at(f->exposed_comm_s, layers),
		     grows = 1 + more * line_at(f->micro_s, layers) / fmax(1e-12, compute_s + comm_s);
	out->optimizer_s = line_at(f->optimizer_s, layers) * scale;
	out->compute_s = compute_s * grows * scale;
	out->exposed_comm_s = comm_s * grows * scale;
	out->other_s = out->step_s - out->optimizer_s - out->compute_s - out->exposed_comm_s;
	out->folded = f->linear &&
	              line_at(f->host_s, layers) * (double)c->micro_batches / FLAT_MICRO_BATCHES < out->step_s;
	return ST_OK;
}
