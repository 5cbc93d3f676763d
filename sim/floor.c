#include "sim/floor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sim/predict.h"
#include "sim/price.h"
#include "step/stages.h"

/* ---- what one layer and the head take, alone ---- */

struct passes { /* of one micro-batch on one rank */
	double forward_s, backward_s, weights_s; /* backward_s without weights_s */
};

struct floor_key {
	int64_t tensor, sequence_parallel, context, micro_batch, recompute;
};

struct floor_piece {
	struct floor_key key;
	struct passes layer, head;
};

struct floors {
	const struct machine *m;
	struct config small;
	VEC(struct floor_piece) pieces;
	size_t last; /* found */
};

static bool counts(const struct op *op)
{
	return op->lane == LANE_COMPUTE && op->phase != PHASE_OPTIMIZER && op->kind != OP_CAST && op->kind != OP_FILL && op->kind != OP_PAUSE;
}

/* `ends`: what lies outside the blocks counts where it is the last stage's for certain: the head's products and the loss. */
static void add(const struct op *op, double s, struct passes *all, struct passes *ends)
{
	const enum op_class k = op_class_of(op);
	struct passes *to[2] = {all, k == CLASS_LOSS || (k == CLASS_GEMM && op->layer < 0) ? ends : NULL};
	for (int i = 0; i < 2; i++) {
		if (!to[i])
			continue;
		if (op->phase == PHASE_FORWARD)
			to[i]->forward_s += s;
		else if (op->kind == OP_GEMM && op->flags & OP_TRANS_A)
			to[i]->weights_s += s;
		else
			to[i]->backward_s += s;
	}
}

static enum status price_layers(const struct config *c, const struct machine *m, struct passes *all, struct passes *ends, struct error *e)
{
	struct program *p = NULL;
	struct prices prices = {0};
	*all = *ends = (struct passes){0};
	enum status st = program_build(c, &p, e);
	if (!st)
		st = price_role(p, &p->roles[0], m, &prices, e);
	for (size_t i = 0; !st && i < p->roles[0].ops.n; i++) {
		const struct op *op = &p->roles[0].ops.at[i];
		if (counts(op))
			add(op, prices.different.at[prices.of_op[i]].alone_s, all, ends);
	}
	prices_free(&prices);
	program_destroy(p);
	return st;
}

/* One replica without a pipeline, of so many layers. */
static void few_layers(const struct config *c, int64_t layers, enum recompute recompute, struct config *out)
{
	struct parallel *p = &out->parallel;
	*out = *c;
	out->model.layers = layers;
	out->train.recompute = recompute;
	out->train.recompute_layers = recompute == REC_NONE ? 0 : layers;
	out->train.global_batch = c->train.micro_batch;
	out->micro_batches = 1;
	p->strategy = STRAT_NONE;
	p->pipeline = p->virtual_stages = p->data = p->shard = 1;
	p->schedule = SCHED_1F1B;
	p->n_layers_per_stage = 0;
	out->ranks = p->tensor * p->context;
}

#define FEW 2

static enum status piece_of(struct floors *f, const struct config *c, enum recompute recompute, const struct floor_piece **out, struct error *e)
{
	const struct floor_key key = {c->parallel.tensor, c->parallel.sequence_parallel, c->parallel.context, c->train.micro_batch, recompute};
	for (size_t i = 0; i < f->pieces.n; i++) { /* plans come in order of their keys: mostly it is the one found last */
		const size_t at = (f->last + i) % f->pieces.n;
		if (memcmp(&f->pieces.at[at].key, &key, sizeof key) == 0) {
			f->last = at;
			*out = &f->pieces.at[at];
			return ST_OK;
		}
	}
	struct floor_piece piece = {.key = key};
	struct passes few, more, ends;
	few_layers(c, FEW, recompute, &f->small);
	enum status st = price_layers(&f->small, f->m, &few, &piece.head, e);
	few_layers(c, FEW + 1, recompute, &f->small);
	if (st || (st = price_layers(&f->small, f->m, &more, &ends, e)))
		return st;
	piece.layer = (struct passes){more.forward_s - few.forward_s, more.backward_s - few.backward_s, more.weights_s - few.weights_s};
	if (!vec_push(&f->pieces, piece))
		return error_nomem(e, "plans");
	*out = &f->pieces.at[f->pieces.n - 1];
	return ST_OK;
}

/* ---- a plan ---- */

static double scaled(const struct passes *w, double forward, double backward, double weights)
{
	return forward * w->forward_s + backward * w->backward_s + weights * w->weights_s;
}

/* Work of `layers` layers; `head`: and the head's. */
static struct passes stage_work(const struct passes *layer, const struct passes *head, int64_t layers)
{
	const double n = (double)layers;
	struct passes w = {n * layer->forward_s, n * layer->backward_s, n * layer->weights_s};
	if (head) {
		w.forward_s += head->forward_s;
		w.backward_s += head->backward_s;
		w.weights_s += head->weights_s;
	}
	return w;
}

static double pipeline_s(const struct config *c, const struct passes *layer, const struct passes *head)
{
	const struct parallel *p = &c->parallel;
	const bool parted = p->schedule == SCHED_ZERO_BUBBLE && p->pipeline > 1;
	const double micros = (double)c->micro_batches;
	double through_s = 0, most_s = 0;
	for (int64_t s = 0; s < p->pipeline; s++) {
		int64_t layers = 0;
		for (int64_t chunk = 0; chunk < p->virtual_stages; chunk++)
			layers += stage_part(c, s, chunk).layers;
		const struct passes w = stage_work(layer, s == p->pipeline - 1 ? head : NULL, layers), first = stage_work(layer, NULL, stage_part(c, s, 0).layers);
		most_s = fmax(most_s, through_s + scaled(&w, micros, micros, parted ? fmax(0, micros - (double)s) : micros));
		through_s += scaled(&first, 1, 1, parted ? 0 : 1);
	}
	return most_s;
}

enum status floor_s(struct floors *f, const struct config *c, double *out_s, struct error *e)
{
	const struct floor_piece *plain, *again;
	const int64_t layers = c->model.layers;
	enum status st;
	*out_s = 0;
	if (c->model.experts > 0)
		return ST_OK;
	const bool some = c->train.recompute_layers > 0 && c->train.recompute_layers < layers;
	if ((st = piece_of(f, c, c->train.recompute, &again, e)))
		return st;
	struct passes layer = again->layer, head = again->head;
	if (some) { /* which stage recomputes is the builder's business: with a pipeline all layers count as plain ones */
		struct passes longer = layer;
		if ((st = piece_of(f, c, REC_NONE, &plain, e)))
			return st;
		layer = plain->layer;
		if (c->parallel.pipeline == 1)
			layer.backward_s += (longer.backward_s - layer.backward_s) * (double)c->train.recompute_layers / (double)layers;
	}
	const int64_t per = f->m->devices_per_node;
	*out_s = pipeline_s(c, &layer, &head) * predict_spread(f->m, (c->ranks + per - 1) / per);
	return ST_OK;
}

enum status floors_create(const struct machine *m, struct floors **out, struct error *e)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return error_nomem(e, "plans");
	(*out)->m = m;
	return ST_OK;
}

void floors_destroy(struct floors *f)
{
	if (f)
		vec_free(&f->pieces);
	free(f);
}
