#include "sim/floor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sim/beside.h"
#include "sim/pieces.h"
#include "sim/summary.h"
#include "step/layout.h"
#include "step/stages.h"

/* ---- what one layer and the head take ---- */

struct passes { /* of one micro-batch on one rank */
	double forward_s, backward_s, weights_s; /* weights_s: of backward_s */
	double backward_work_s;                  /* of backward_s, what the compute lane works */
	double forward_gap_s, backward_gap_s;    /* of it, what a part's first and last layer may hide behind another micro-batch: collectives that wait for nothing that the layer computes, and what lies between two layers */
};

struct floor_key {
	int64_t tensor, sequence_parallel, tensor_overlap, context, micro_batch, recompute;
};

struct floor_piece {
	struct floor_key key;
	struct passes layer, head;
	double kept_B; /* of a layer and a micro-batch, from its forward to its backward */
};

struct comm_key {
	int64_t tensor, context, data, shard, strategy, reshard;
};

struct comm_piece {
	struct comm_key key;
	double layer_s, layer_again_s; /* collectives of a layer's parameters in the first micro-batch, and in each further one */
	double gather_s;               /* of layer_again_s: the gathers */
	double always_B;               /* of a layer: weights, gradients, the optimizer's state */
};

struct floors {
	const struct machine *m;
	struct config small;
	VEC(struct floor_piece) pieces;
	VEC(struct comm_piece) comms;
	size_t last; /* piece that was found */
};

/* From when the compute lane begins a pass to when it ends it. */
struct pass_span {
	double from_s, to_s, work_s, weights_s, gap_s;
	int layer; /* of the op before */
};

static double lasts(const struct pass_span *p)
{
	return p->to_s - p->from_s;
}

static bool is_work(const struct op *op)
{
	return op->lane == LANE_COMPUTE && op->phase != PHASE_OPTIMIZER && op->kind != OP_CAST && op->kind != OP_FILL && op->kind != OP_PAUSE;
}

static bool is_head(const struct op *op)
{
	return op->layer < 0 && is_work(op) && (op_class_of(op) == CLASS_LOSS || op_class_of(op) == CLASS_GEMM);
}

/* Groups that lie in a node; those across nodes take so long that a pass waits for what the next one may hide, and count as nothing. */
struct inside {
	bool tensor, context;
};

/* Casts, fills, copies and the host thread take no time here: other strategies do without. */
static double least_of(const struct op *op, const struct op_cost *c, const struct inside *inside)
{
	return is_work(op) || (op->lane == LANE_MODEL_COMM && (op->group == DIM_TP ? inside->tensor : inside->context)) ? c->alone_s : 0;
}

struct floor_run {
	struct pass_span pass[2];   /* forward, backward */
	struct pass_span hidden[2]; /* where the collectives with which a layer begins take no time */
	struct passes head;       /* its own ops, one after the other */
	double comm_s, gather_s;  /* sum over the lane of gradients and gathers, and of the gathers alone */
	double always_B, peak_B;
};

/* Collectives with which a layer's pass begins: none of its ops is waited for, by them or by those before them on their lane. */
struct leading {
	int layer, phase;
	bool leads;
};

static bool begins_layer(const struct role *r, const struct op *op, struct leading *at)
{
	if (op->lane != LANE_MODEL_COMM || op->layer < 0)
		return false;
	if (op->layer != at->layer || op->phase != at->phase)
		*at = (struct leading){op->layer, op->phase, true};
	for (uint32_t d = 0; d < op->n_dep; d++) {
		const struct op *before = &r->ops.at[r->deps.at[op->dep0 + d]];
		if (before->layer == op->layer && before->phase == op->phase)
			at->leads = false;
	}
	return at->leads;
}

/* Every op starts as soon as its lane and what it depends on allow, and lasts what it takes alone: nothing in the engine is earlier. hides: collectives with which a layer begins take no time (floor_run's hidden). */
static enum status run_alone(const struct role *r, const struct prices *prices, const struct inside *inside, bool hides, struct floor_run *out, struct error *e)
{
	double lane_s[LANE_COUNT] = {0}, *end_s = calloc(r->ops.n + 1, sizeof *end_s);
	*out = (struct floor_run){.pass = {{.from_s = -1, .layer = -1}, {.from_s = -1, .layer = -1}}};
	struct leading leading = {.layer = -1};
	if (!end_s)
		return error_nomem(e, "plans");
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		const struct op_cost *c = &prices->different.at[prices->of_op[i]];
		const double lasts_s = begins_layer(r, op, &leading) && hides ? 0 : least_of(op, c, inside);
		double start_s = lane_s[op->lane];
		for (uint32_t d = 0; d < op->n_dep; d++)
			start_s = fmax(start_s, end_s[r->deps.at[op->dep0 + d]]);
		/* what lies beside products holds nobody up, and a gather's tail the lane alone (sim/beside.h) */
		const double beside_s = fmin(lasts_s, c->beside_s);
		end_s[i] = lane_s[op->lane] = start_s + lasts_s - beside_s;
		if (beside_is_tail(op))
			lane_s[op->lane] += beside_s;
		out->comm_s += op->lane == LANE_COMM ? c->alone_s : 0;
		out->gather_s += op->lane == LANE_COMM && op->coll == COLL_ALL_GATHER ? c->alone_s : 0;
		if (!is_work(op))
			continue;
		struct pass_span *pass = &out->pass[op->phase == PHASE_BACKWARD];
		pass->from_s = pass->from_s < 0 ? start_s : pass->from_s;
		if (pass->layer >= 0 && op->layer >= 0 && op->layer != pass->layer)
			pass->gap_s = fmax(pass->gap_s, start_s - pass->to_s);
		pass->layer = op->layer;
		pass->work_s += lasts_s;
		pass->to_s = end_s[i];
		const double weights_s = op->phase == PHASE_BACKWARD && op->kind == OP_GEMM && (op->flags & OP_TRANS_A) ? lasts_s : 0;
		pass->weights_s += weights_s;
		if (is_head(op)) {
			out->head.forward_s += op->phase == PHASE_FORWARD ? lasts_s : 0;
			out->head.backward_s += op->phase == PHASE_BACKWARD ? lasts_s : 0;
			out->head.weights_s += weights_s;
		}
	}
	free(end_s);
	return ST_OK;
}

static enum status run_layers(const struct config *c, const struct machine *m, struct floor_run *out, struct error *e)
{
	struct program *p = NULL;
	struct prices prices = {0};
	enum status st = program_build(c, &p, e);
	struct layout l;
	struct floor_run hidden;
	const struct inside inside = {c->parallel.tensor <= m->devices_per_node, c->parallel.tensor * c->parallel.context <= m->devices_per_node};
	if (!st && !(st = price_role(p, &p->roles[0], m, &prices, e)) && !(st = run_alone(&p->roles[0], &prices, &inside, true, &hidden, e)) && !(st = run_alone(&p->roles[0], &prices, &inside, false, out, e)) &&
	    !(st = layout_peak(&p->roles[0], &l, e))) {
		memcpy(out->hidden, hidden.pass, sizeof out->hidden);
		out->always_B = static_of_role_B(&p->roles[0], COMP_KIND_COUNT);
		out->peak_B = (double)l.peak_B;
		layout_free(&l);
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

static enum status piece_of(struct floors *f, const struct config *c, enum recompute recompute, struct floor_piece *out, struct error *e)
{
	const struct floor_key key = {c->parallel.tensor, c->parallel.sequence_parallel, c->parallel.tensor_overlap, c->parallel.context, c->train.micro_batch, recompute};
	for (size_t i = 0; i < f->pieces.n; i++) { /* plans come in order of their keys: mostly it is the one found last */
		const size_t at = (f->last + i) % f->pieces.n;
		if (memcmp(&f->pieces.at[at].key, &key, sizeof key) == 0) {
			f->last = at;
			*out = f->pieces.at[at];
			return ST_OK;
		}
	}
	struct floor_run few, more;
	few_layers(c, FEW, recompute, &f->small);
	enum status st = run_layers(&f->small, f->m, &few, e);
	few_layers(c, FEW + 1, recompute, &f->small);
	if (st || (st = run_layers(&f->small, f->m, &more, e)))
		return st;
	*out = (struct floor_piece){.key = key, .head = few.head};
	double of_s[2], gap_s[2];
	for (int k = 0; k < 2; k++) {
		of_s[k] = fmax(0, lasts(&more.pass[k]) - lasts(&few.pass[k]));
		gap_s[k] = few.pass[k].gap_s + fmax(0, of_s[k] - (lasts(&more.hidden[k]) - lasts(&few.hidden[k])));
	}
	out->layer = (struct passes){of_s[0], of_s[1], more.pass[1].weights_s - few.pass[1].weights_s, more.pass[1].work_s - few.pass[1].work_s, gap_s[0], gap_s[1]};
	const double each_B = (more.peak_B - more.always_B) - (few.peak_B - few.always_B);
	/* a micro-batch twice as large keeps twice as much of activations, and no more of anything else: copies of weights, which not every strategy has */
	for (int k = 0; k < 2 && !st; k++) {
		few_layers(c, FEW + k, recompute, &f->small);
		f->small.train.micro_batch *= 2;
		f->small.train.global_batch *= 2;
		f->small.data.bytes *= 2;
		st = run_layers(&f->small, f->m, k ? &more : &few, e);
	}
	if (st)
		return st;
	out->kept_B = fmax(0, (more.peak_B - more.always_B) - (few.peak_B - few.always_B) - each_B);
	if (!vec_push(&f->pieces, *out))
		return error_nomem(e, "plans");
	return ST_OK;
}

/* The same replicas without a pipeline: what passes over a layer's parameters is the same on every stage. */
static enum status comm_of(struct floors *f, const struct config *c, struct comm_piece *out, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const struct comm_key key = {p->tensor, p->context, p->data, p->shard, p->strategy, p->reshard_after_forward};
	for (size_t i = 0; i < f->comms.n; i++)
		if (memcmp(&f->comms.at[i].key, &key, sizeof key) == 0) {
			*out = f->comms.at[i];
			return ST_OK;
		}
	double sum_s[2][2], gather_s[2][2], always_B[2]; /* micro-batches, layers */
	for (int micros = 0; micros < 2; micros++)
		for (int layers = 0; layers < 2; layers++) {
			struct floor_run run;
			few_layers(c, FEW + layers, REC_NONE, &f->small);
			f->small.parallel.strategy = p->strategy;
			f->small.parallel.data = p->data;
			f->small.parallel.shard = p->shard;
			f->small.train.micro_batch = 1;
			f->small.data.bytes = 8 * (uint64_t)(c->model.seq_len / p->context);
			f->small.parallel.sequence_parallel = f->small.parallel.tensor_overlap = false;
			f->small.micro_batches = 1 + micros;
			f->small.train.global_batch = p->data * (1 + micros);
			f->small.ranks = p->tensor * p->context * p->data;
			enum status st = run_layers(&f->small, f->m, &run, e);
			if (st)
				return st;
			sum_s[micros][layers] = run.comm_s;
			gather_s[micros][layers] = run.gather_s;
			always_B[layers] = run.always_B;
		}
	*out = (struct comm_piece){key, sum_s[0][1] - sum_s[0][0], (sum_s[1][1] - sum_s[1][0]) - (sum_s[0][1] - sum_s[0][0]), (gather_s[1][1] - gather_s[1][0]) - (gather_s[0][1] - gather_s[0][0]), fmax(0, always_B[1] - always_B[0])};
	return vec_push(&f->comms, *out) ? ST_OK : error_nomem(e, "plans");
}

/* ---- a plan ---- */

static double through(const struct passes *w, double micros, double weights)
{
	return micros * (w->forward_s + w->backward_s) - (micros - weights) * w->weights_s;
}

/* Work of `layers` layers in so many parts; `head`: and the head's. */
static struct passes stage_work(const struct passes *layer, const struct passes *head, int64_t layers, int64_t parts)
{
	const double n = (double)layers, ends = (double)parts;
	struct passes w = {.forward_s = fmax(0, n * layer->forward_s - ends * layer->forward_gap_s), .backward_s = fmax(0, n * layer->backward_s - ends * layer->backward_gap_s), .weights_s = n * layer->weights_s};
	if (head) {
		w.forward_s += head->forward_s;
		w.backward_s += head->backward_s;
		w.weights_s += head->weights_s;
	}
	return w;
}

/* Micro-batches whose gradients of weights stage s computes before its last backward, at the least: what it puts off may fill the time in which the stages before it drain. zbv: of stages that wait for none, all. */
static double weights_within(const struct parallel *p, double micros, int64_t s)
{
	if (p->pipeline == 1 || !schedule_parts_backward(p->schedule))
		return micros;
	return p->schedule == SCHED_ZBV && s > 0 ? 0 : fmax(0, micros - (double)s);
}

static double pipeline_s(const struct config *c, const struct passes *layer, const struct passes *head, const struct comm_piece *comm)
{
	const struct parallel *p = &c->parallel;
	const bool parted = schedule_parts_backward(p->schedule) && p->pipeline > 1;
	const int64_t head_at = stages_head(c);
	const double micros = (double)c->micro_batches;
	double before_s = 0, most_s = 0;
	struct passes shorter = *layer;
	if (parted && p->schedule == SCHED_ZBV) /* gradients of weights that were put off may stand where a pass waits for a collective */
		shorter.backward_s = layer->backward_work_s, shorter.backward_gap_s = 0;
	layer = &shorter;
	for (int64_t s = 0; s < p->pipeline; s++) {
		int64_t layers = 0, parts = 0;
		for (int64_t chunk = 0; chunk < p->virtual_stages; chunk++) {
			layers += stage_part(c, s, chunk).layers;
			parts += p->pipeline > 1 && stage_part(c, s, chunk).layers > 0;
		}
		const int64_t begin = stage_part(c, s, 0).layers;
		const struct passes w = stage_work(layer, s == head_at ? head : NULL, layers, parts), first = stage_work(layer, NULL, begin, begin > 0);
		most_s = fmax(most_s, before_s + through(&w, micros, weights_within(p, micros, s)));
		most_s = fmax(most_s, through(&w, micros, micros));
		most_s = fmax(most_s, (double)layers * (comm->layer_s + (micros - 1) * comm->layer_again_s));
		before_s += through(&first, 1, parted ? 0 : 1);
	}
	return most_s;
}

/* Parts of a stage's layers whose activations the first stage keeps at once (step/schedule.h), in stages' worth of layers. */
static double flights(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const double micros = (double)c->micro_batches, stages = (double)p->pipeline, chunks = (double)p->virtual_stages;
	if (p->pipeline == 1)
		return 1;
	if (p->schedule == SCHED_GPIPE)
		return micros;
	if (p->schedule == SCHED_ZBV)
		return fmin(2 * stages - 1, micros) / chunks; /* of the first chunk alone */
	return p->schedule == SCHED_INTERLEAVED ? fmin(chunks * micros, 2 * (stages - 1) + (chunks - 1) * stages + 1) / chunks : fmin(stages, micros);
}

/* What the first stage has of layers that its parts share evenly. */
static double memory_B(const struct config *c, const struct machine *m, double kept_B, double always_B)
{
	const struct mesh mesh = mesh_of(c);
	struct result_memory mem = {0};
	double layers = (double)stage_part(c, 0, 0).layers;
	for (int64_t chunk = 1; chunk < c->parallel.virtual_stages; chunk++)
		layers = fmin(layers, (double)stage_part(c, 0, chunk).layers);
	layers *= (double)c->parallel.virtual_stages;
	summary_overhead(c, &mesh, m, &mem);
	return layers * (always_B + flights(c) * kept_B) + (double)mem.overhead_B;
}

enum status floor_of(struct floors *f, const struct config *c, struct plan_floor *out, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t layers = c->model.layers, per = f->m->devices_per_node;
	struct floor_piece piece, plain;
	struct comm_piece comm = {.layer_s = 0};
	enum status st;
	*out = (struct plan_floor){0};
	if (c->model.experts > 0)
		return ST_OK;
	if ((st = piece_of(f, c, c->train.recompute, &piece, e)))
		return st;
	if (c->train.recompute_layers > 0 && c->train.recompute_layers < layers) {
		if ((st = piece_of(f, c, REC_NONE, &plain, e)))
			return st;
		/* which stage recomputes is the builder's business: with a pipeline all layers count as the shorter, and as the smaller ones */
		const double again = p->pipeline == 1 ? (double)c->train.recompute_layers / (double)layers : 0, small = p->pipeline == 1 ? again : 1;
		piece.layer.forward_s = fmin(piece.layer.forward_s, plain.layer.forward_s);
		piece.layer.backward_s = plain.layer.backward_s + again * fmax(0, piece.layer.backward_s - plain.layer.backward_s);
		piece.layer.backward_work_s = plain.layer.backward_work_s;
		piece.kept_B = plain.kept_B + small * fmin(0, piece.kept_B - plain.kept_B);
	}
	const bool pp_last = p->order[DIM_COUNT - 1] == DIM_PP || p->pipeline == 1;
	if (pp_last && (st = comm_of(f, c, &comm, e)))
		return st;
	if (p->strategy != STRAT_FSDP && p->strategy != STRAT_HSDP) /* layers may be in other buckets, and more of them in one */
		comm.layer_s = comm.layer_again_s = 0;
	if (p->pipeline > 1 && !p->reshard_after_forward) /* gathered once, for all micro-batches */
		comm.layer_again_s -= comm.gather_s;
	out->step_s = pipeline_s(c, &piece.layer, &piece.head, &comm) * predict_spread(f->m, (c->ranks + per - 1) / per);
	out->memory_B = memory_B(c, f->m, piece.kept_B, comm.always_B);
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
	if (!f)
		return;
	vec_free(&f->pieces);
	vec_free(&f->comms);
	free(f);
}
