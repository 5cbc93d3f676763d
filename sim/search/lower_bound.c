#include "sim/search/lower_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sim/engine/stragglers.h"
#include "sim/engine/tile_overlap.h"
#include "sim/search/evaluator.h"
#include "sim/engine/summary.h"
#include "step/layout.h"
#include "step/stages.h"

/* ---- what one layer and the head take ---- */

struct passes {                                  /* of one micro-batch on one rank */
	double forward_s, backward_s, weights_s; /* weights_s: of backward_s */
	double backward_work_s;                  /* of backward_s, what the compute lane works */
	/* The part of it that another micro-batch may fill at a part's first and last layer: collectives that wait for
	 * no product of the layer, and the wait between two layers. */
	double forward_gap_s, backward_gap_s;
};

struct layer_key {
	int64_t tensor, sequence_parallel, tensor_overlap, context, micro_batch, recompute;
};

struct layer_bound {
	struct layer_key key;
	struct passes layer, head;
	double kept_B; /* of a layer and a micro-batch, from its forward to its backward */
};

struct comm_key {
	int64_t tensor, context, data, shard, strategy, reshard;
};

struct comm_bound {
	struct comm_key key;
	double layer_s, layer_again_s; /* collectives of a layer's parameters in the first micro-batch, and in each
	                                  further one */
	double gather_s;               /* of layer_again_s: the gathers */
	double static_B;               /* of a layer: weights, gradients, the optimizer's state */
};

struct lower_bounds {
	const struct machine *m;
	struct rates rates;
	struct config small;
	VEC(struct layer_bound) layers;
	VEC(struct comm_bound) comms;
	size_t last; /* the layer found last */
};

/* A pass on the compute lane, from the begin of its first op to the end of its last. */
struct pass_span {
	double from_s, to_s, work_s, weights_s, gap_s;
	int layer; /* of the op before */
};

static double duration_s(const struct pass_span *p) { return p->to_s - p->from_s; }

static bool is_work(const struct op *op)
{
	return op->lane == LANE_COMPUTE && op->phase != PHASE_OPTIMIZER && op->kind != OP_CAST && op->kind != OP_FILL &&
	       op->kind != OP_PAUSE;
}

static bool is_head(const struct op *op)
{
	return op->layer < 0 && is_work(op) && (op_class_of(op) == CLASS_LOSS || op_class_of(op) == CLASS_GEMM);
}

/* The groups that lie in a node. A pass waits so long for groups across nodes that the next pass may hide the wait:
 * they count as nothing. */
struct in_node {
	bool tensor, context;
};

/* Returns the least time of an op. Casts, fills, copies and the host thread take none: some strategies do without. */
static double least_time_s(const struct op *op, const struct op_cost *c, const struct in_node *in_node)
{
	return is_work(op) || (op->lane == LANE_MODEL_COMM &&
				      (op->group == DIM_TP ? in_node->tensor : in_node->context))
	               ? c->alone_s
	               : 0;
}

struct bound_run {
	struct pass_span pass[2];   /* forward, backward */
	struct pass_span hidden[2]; /* where the collectives with which a layer begins take no time */
	struct passes head;         /* its own ops, one after the other */
	double comm_s, gather_s;    /* sum over the lane of gradients and gathers, and of the gathers alone */
	double static_B, peak_B;
};

/* The collectives with which a layer's pass begins. Neither they nor those before them on their lane wait for an op of
 * the layer. */
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

/* Starts every op as soon as its lane and its dependencies allow, and gives it its time alone: nothing in the engine is
 * earlier. hides: collectives with which a layer begins take no time (bound_run.hidden). */
static enum status run_alone(const struct role *r, const struct prices *prices, const struct in_node *in_node,
	bool hides, struct bound_run *out, struct error *e)
{
	double lane_s[LANE_COUNT] = {0}, *end_s = calloc(r->ops.n + 1, sizeof *end_s);
	*out = (struct bound_run){.pass = {{.from_s = -1, .layer = -1}, {.from_s = -1, .layer = -1}}};
	struct leading leading = {.layer = -1};
	if (!end_s)
		return error_nomem(e, "plans");
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		const struct op_cost *c = &prices->different.at[prices->of_op[i]];
		const double op_s = begins_layer(r, op, &leading) && hides ? 0 : least_time_s(op, c, in_node);
		double start_s = lane_s[op->lane];
		for (uint32_t d = 0; d < op->n_dep; d++)
			start_s = fmax(start_s, end_s[r->deps.at[op->dep0 + d]]);
		/* time beside products delays no op, and a gather's tail delays its lane alone
		 * (sim/engine/tile_overlap.h) */
		const double tile_overlap_s = fmin(op_s, c->tile_overlap_s);
		end_s[i] = lane_s[op->lane] = start_s + op_s - tile_overlap_s;
		if (tile_overlap_is_tail(op))
			lane_s[op->lane] += tile_overlap_s;
		out->comm_s += op->lane == LANE_COMM ? c->alone_s : 0;
		out->gather_s += op->lane == LANE_COMM && op->coll == COLL_ALL_GATHER ? c->alone_s : 0;
		if (!is_work(op))
			continue;
		struct pass_span *pass = &out->pass[op->phase == PHASE_BACKWARD];
		pass->from_s = pass->from_s < 0 ? start_s : pass->from_s;
		if (pass->layer >= 0 && op->layer >= 0 && op->layer != pass->layer)
			pass->gap_s = fmax(pass->gap_s, start_s - pass->to_s);
		pass->layer = op->layer;
		pass->work_s += op_s;
		pass->to_s = end_s[i];
		const double weights_s = op->phase == PHASE_BACKWARD && op->kind == OP_GEMM && (op->flags & OP_TRANS_A)
		                                 ? op_s
		                                 : 0;
		pass->weights_s += weights_s;
		if (is_head(op)) {
			out->head.forward_s += op->phase == PHASE_FORWARD ? op_s : 0;
			out->head.backward_s += op->phase == PHASE_BACKWARD ? op_s : 0;
			out->head.weights_s += weights_s;
		}
	}
	free(end_s);
	return ST_OK;
}

static enum status run_layers(const struct config *c, const struct rates *rates, struct bound_run *out, struct error *e)
{
	struct program *p = NULL;
	struct prices prices = {0};
	enum status st = program_build(c, &p, e);
	struct layout l;
	struct bound_run hidden;
	const struct in_node in_node = {c->parallel.tensor <= rates->devices_per_node,
		c->parallel.tensor * c->parallel.context <= rates->devices_per_node};
	if (!st && !(st = price_role(p, &p->roles[0], rates, &prices, e)) &&
		!(st = run_alone(&p->roles[0], &prices, &in_node, true, &hidden, e)) &&
		!(st = run_alone(&p->roles[0], &prices, &in_node, false, out, e)) &&
		!(st = layout_peak(&p->roles[0], &l, e))) {
		memcpy(out->hidden, hidden.pass, sizeof out->hidden);
		out->static_B = pieces_static_B(&p->roles[0], COMP_KIND_COUNT);
		out->peak_B = (double)l.peak_B;
		layout_free(&l);
	}
	prices_free(&prices);
	program_destroy(p);
	return st;
}

/* Fills the config of one replica without a pipeline, of so many layers. */
static void short_config(const struct config *c, int64_t layers, enum recompute recompute, struct config *out)
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

#define SHORT_LAYERS 2

static enum status layer_bound_of(struct lower_bounds *bounds, const struct config *c, enum recompute recompute,
	struct layer_bound *out, struct error *e)
{
	const struct layer_key key = {c->parallel.tensor, c->parallel.sequence_parallel, c->parallel.tensor_overlap,
		c->parallel.context, c->train.micro_batch, recompute};
	for (size_t i = 0; i < bounds->layers.n;
		i++) { /* plans come in order of their keys: mostly it is the one found last */
		const size_t at = (bounds->last + i) % bounds->layers.n;
		if (memcmp(&bounds->layers.at[at].key, &key, sizeof key) == 0) {
			bounds->last = at;
			*out = bounds->layers.at[at];
			return ST_OK;
		}
	}
	struct bound_run run[2][2]; /* a micro-batch as the plan's, and twice as large; layers */
	double layer_B[2];          /* of each */
	for (int twice = 0; twice < 2; twice++) {
		for (int k = 0; k < 2; k++) {
			struct config *small = &bounds->small;
			short_config(c, SHORT_LAYERS + k, recompute, small);
			small->train.micro_batch *= 1 + twice;
			small->train.global_batch *= 1 + twice;
			small->data.bytes *= 1 + (uint64_t)twice;
			enum status st = run_layers(small, &bounds->rates, &run[twice][k], e);
			if (st)
				return st;
		}
		layer_B[twice] = (run[twice][1].peak_B - run[twice][1].static_B) -
		                 (run[twice][0].peak_B - run[twice][0].static_B);
	}
	const struct bound_run *shorter = &run[0][0], *longer = &run[0][1];
	*out = (struct layer_bound){.key = key, .head = shorter->head};
	double of_s[2], gap_s[2];
	for (int k = 0; k < 2; k++) {
		of_s[k] = fmax(0, duration_s(&longer->pass[k]) - duration_s(&shorter->pass[k]));
		gap_s[k] = shorter->pass[k].gap_s +
		           fmax(0, of_s[k] - (duration_s(&longer->hidden[k]) - duration_s(&shorter->hidden[k])));
	}
	out->layer = (struct passes){of_s[0], of_s[1], longer->pass[1].weights_s - shorter->pass[1].weights_s,
		longer->pass[1].work_s - shorter->pass[1].work_s, gap_s[0], gap_s[1]};
	/* a micro-batch twice as large keeps twice as much of activations, and no more of anything else: copies of
	 * weights, which not every strategy has */
	out->kept_B = fmax(0, layer_B[1] - layer_B[0]);
	return vec_push(&bounds->layers, *out) ? ST_OK : error_nomem(e, "plans");
}

/* Finds the collectives of a layer on the same replicas without a pipeline: they are the same on every stage. */
static enum status comm_bound_of(struct lower_bounds *bounds, const struct config *c, struct comm_bound *out,
	struct error *e)
{
	const struct parallel *p = &c->parallel;
	const struct comm_key key = {p->tensor, p->context, p->data, p->shard, p->strategy, p->reshard_after_forward};
	for (size_t i = 0; i < bounds->comms.n; i++)
		if (memcmp(&bounds->comms.at[i].key, &key, sizeof key) == 0) {
			*out = bounds->comms.at[i];
			return ST_OK;
		}
	double layer_s[2], gather_s[2]; /* of a layer in one micro-batch, and in two */
	struct bound_run run[2];        /* layers */
	for (int again = 0; again < 2; again++) {
		for (int k = 0; k < 2; k++) {
			struct config *small = &bounds->small;
			short_config(c, SHORT_LAYERS + k, REC_NONE, small);
			small->parallel.strategy = p->strategy;
			small->parallel.data = p->data;
			small->parallel.shard = p->shard;
			small->parallel.sequence_parallel = small->parallel.tensor_overlap = false;
			small->train.micro_batch = 1;
			small->data.bytes = 8 * (uint64_t)(c->model.seq_len / p->context);
			small->micro_batches = 1 + again;
			small->train.global_batch = p->data * (1 + again);
			small->ranks *= p->data;
			enum status st = run_layers(small, &bounds->rates, &run[k], e);
			if (st)
				return st;
		}
		layer_s[again] = run[1].comm_s - run[0].comm_s;
		gather_s[again] = run[1].gather_s - run[0].gather_s;
	}
	*out = (struct comm_bound){key, layer_s[0], layer_s[1] - layer_s[0], gather_s[1] - gather_s[0],
		fmax(0, run[1].static_B - run[0].static_B)};
	return vec_push(&bounds->comms, *out) ? ST_OK : error_nomem(e, "plans");
}

/* ---- a plan ---- */

static double passes_s(const struct passes *w, double micros, double weights)
{
	return micros * (w->forward_s + w->backward_s) - (micros - weights) * w->weights_s;
}

/* Returns the passes of `layers` layers in so many parts, and of the head unless NULL. */
static struct passes stage_work(const struct passes *layer, const struct passes *head, int64_t layers, int64_t parts)
{
	const double n = (double)layers, ends = (double)parts;
	struct passes w = {.forward_s = fmax(0, n * layer->forward_s - ends * layer->forward_gap_s),
		.backward_s = fmax(0, n * layer->backward_s - ends * layer->backward_gap_s),
		.weights_s = n * layer->weights_s};
	if (head) {
		w.forward_s += head->forward_s;
		w.backward_s += head->backward_s;
		w.weights_s += head->weights_s;
	}
	return w;
}

static struct schedule_shape shape_of(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return (struct schedule_shape){p->schedule, p->pipeline, p->virtual_stages, c->micro_batches};
}

static double pipeline_s(const struct config *c, const struct passes *layer, const struct passes *head,
	const struct comm_bound *comm)
{
	const struct parallel *p = &c->parallel;
	const bool parted = schedule_splits_backward(p->schedule) && p->pipeline > 1;
	const struct schedule_shape shape = shape_of(c);
	const int64_t head_at = stages_head(c);
	const double micros = (double)c->micro_batches;
	double before_s = 0, most_s = 0;
	struct passes shorter = *layer;
	/* Deferred gradients of weights may fill the wait for a collective. */
	if (parted && schedule_traits[p->schedule].turns_back)
		shorter.backward_s = layer->backward_work_s, shorter.backward_gap_s = 0;
	layer = &shorter;
	for (int64_t s = 0; s < p->pipeline; s++) {
		int64_t layers = 0, parts = 0;
		for (int64_t chunk = 0; chunk < p->virtual_stages; chunk++) {
			layers += stage_part(c, s, chunk).layers;
			parts += p->pipeline > 1 && stage_part(c, s, chunk).layers > 0;
		}
		const int64_t begin = stage_part(c, s, 0).layers;
		const struct passes w = stage_work(layer, s == head_at ? head : NULL, layers, parts),
				    first = stage_work(layer, NULL, begin, begin > 0);
		most_s = fmax(most_s, before_s + passes_s(&w, micros, (double)schedule_weights_within(&shape, s)));
		most_s = fmax(most_s, passes_s(&w, micros, micros));
		most_s = fmax(most_s, (double)layers * (comm->layer_s + (micros - 1) * comm->layer_again_s));
		before_s += passes_s(&first, 1, parted ? 0 : 1);
	}
	return most_s;
}

/* Returns the activations that the first stage keeps at once (step/schedule.h), in units of all its layers' for one
 * micro-batch. */
static double parts_in_flight(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const struct schedule_shape shape = shape_of(c);
	return p->pipeline == 1 ? 1 : (double)schedule_first_in_flight(&shape) / (double)p->virtual_stages;
}

/* Returns the least memory of the first stage, whose parts all count with the layers of its smallest one. */
static double memory_B(const struct config *c, const struct machine *m, double kept_B, double static_B)
{
	const struct mesh mesh = mesh_of(c);
	struct result_memory mem = {0};
	double layers = (double)stage_part(c, 0, 0).layers;
	for (int64_t chunk = 1; chunk < c->parallel.virtual_stages; chunk++)
		layers = fmin(layers, (double)stage_part(c, 0, chunk).layers);
	layers *= (double)c->parallel.virtual_stages;
	summary_overhead(c, &mesh, m, &mem);
	return layers * (static_B + parts_in_flight(c) * kept_B) + (double)mem.overhead_B;
}

enum status lower_bound_of(struct lower_bounds *bounds, const struct config *c, struct plan_lower_bound *out,
	struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t layers = c->model.layers, per = bounds->m->devices_per_node;
	struct layer_bound own, plain;
	struct comm_bound comm = {.layer_s = 0};
	enum status st;
	*out = (struct plan_lower_bound){0};
	if (c->model.experts > 0)
		return ST_OK;
	if ((st = layer_bound_of(bounds, c, c->train.recompute, &own, e)))
		return st;
	if (c->train.recompute_layers > 0 && c->train.recompute_layers < layers) {
		if ((st = layer_bound_of(bounds, c, REC_NONE, &plain, e)))
			return st;
		/* The builder decides which stage recomputes. With a pipeline all layers count with the shorter time
		 * and the smaller memory of the two kinds. */
		const double again = p->pipeline == 1 ? (double)c->train.recompute_layers / (double)layers : 0,
			     small = p->pipeline == 1 ? again : 1;
		own.layer.forward_s = fmin(own.layer.forward_s, plain.layer.forward_s);
		own.layer.backward_s = plain.layer.backward_s +
		                       again * fmax(0, own.layer.backward_s - plain.layer.backward_s);
		own.layer.backward_work_s = plain.layer.backward_work_s;
		own.kept_B = plain.kept_B + small * fmin(0, own.kept_B - plain.kept_B);
	}
	const bool pp_last = p->order[DIM_COUNT - 1] == DIM_PP || p->pipeline == 1;
	if (pp_last && (st = comm_bound_of(bounds, c, &comm, e)))
		return st;
	if (!strategy_has(p->strategy, STRATEGY_UNITS)) /* layers may be in other buckets, and more of them in one */
		comm.layer_s = comm.layer_again_s = 0;
	if (p->pipeline > 1 && !p->reshard_after_forward) /* gathered once, for all micro-batches */
		comm.layer_again_s -= comm.gather_s;
	out->step_s = pipeline_s(c, &own.layer, &own.head, &comm) *
	              stragglers_slowdown(bounds->m, (c->ranks + per - 1) / per);
	out->memory_B = memory_B(c, bounds->m, own.kept_B, comm.static_B);
	return ST_OK;
}

enum status lower_bounds_create(const struct machine *m, struct lower_bounds **out, struct error *e)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return error_nomem(e, "plans");
	(*out)->m = m;
	(*out)->rates = rates_of(m);
	return ST_OK;
}

void lower_bounds_destroy(struct lower_bounds *bounds)
{
	if (!bounds)
		return;
	vec_free(&bounds->layers);
	vec_free(&bounds->comms);
	free(bounds);
}
