#include "sim/search/lower_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/stragglers.h"
#include "sim/engine/tile_overlap.h"
#include "sim/search/evaluator.h"
#include "sim/engine/summary.h"
#include "step/inputs.h"
#include "step/layout.h"
#include "step/stages.h"

/* ---- what one layer and the head take ---- */

enum { FORWARD, BACKWARD, PASSES };

struct passes { /* of one micro-batch on one rank */
	double pass_s[PASSES];
	/* The part of it that another micro-batch may fill at a part's first and last layer: collectives that wait for
	 * no product of the layer, and the wait between two layers. */
	double gap_s[PASSES];
	double weights_s;       /* of the backward pass: gradients of weights */
	double backward_work_s; /* of the backward pass: the compute lane works */
	double lead_s;          /* of the forward pass: what comes before a layer's first product */
};

/* A layer here is the layers that repeat (struct layer_order): of a part that has so many layers, any so many that
 * follow one another are of the same kinds. */
struct layer_bound {
	struct passes layer, head;
	double host_s; /* the host thread launches a layer of a micro-batch */
	double kept_B; /* of a layer and a micro-batch, from its forward to its backward */
};

struct comm_bound {
	double layer_s, layer_again_s; /* collectives of a layer's parameters in the first micro-batch, and in each
	                                  further one */
	double gather_s;               /* of layer_again_s: the gathers */
	double forward_gather_s;       /* of a layer and its forward pass; 0 where it gathers several units */
	double static_B;               /* of a layer: weights, gradients, the optimizer's state */
	double gradients_B;            /* of static_B */
};

/* A pass on the compute lane, from the begin of its first op to the end of its last. */
struct pass_span {
	double from_s, to_s, work_s, weights_s, gap_s, lead_s;
	int layer;  /* of the op before */
	bool leads; /* no product of the layer has come yet */
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

/* Returns the least time of an op. Casts, fills, copies and the host's work take none: some strategies do without. A
 * pass waits so long for groups of more than `near` ranks that the next pass may hide it: they take none. */
static double least_time_s(const struct op *op, const struct op_cost *c, const struct mesh *mesh, int64_t near)
{
	const bool waits = op->lane == LANE_MODEL_COMM && mesh->size[op->group] * mesh->stride[op->group] <= near;
	return is_work(op) || waits ? c->alone_s : 0;
}

struct bound_run {
	struct pass_span pass[PASSES];
	struct pass_span hidden[PASSES]; /* where the collectives with which a layer begins take no time */
	struct passes head;              /* its own ops, one after the other */
	double host_s;                   /* the host thread launches the passes */
	double comm_s, gather_s;         /* sum over the lane of gradients and gathers, and of the gathers alone */
	double forward_gather_s;         /* of these, in forward passes; their number */
	int forward_gathers;
	double static_B, gradients_B, peak_B;
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

static void add_work(struct pass_span *pass, const struct op *op, double start_s, double end_s, double op_s)
{
	const bool begins = op->layer >= 0 && op->layer != pass->layer;
	pass->from_s = pass->from_s < 0 ? start_s : pass->from_s;
	if (begins && pass->layer >= 0)
		pass->gap_s = fmax(pass->gap_s, start_s - pass->to_s);
	pass->leads = begins || (pass->leads && op->layer >= 0);
	if (pass->leads) { /* with the wait before the op */
		pass->leads = op_class_of(op) != CLASS_GEMM;
		pass->lead_s += (pass->leads ? end_s : start_s) - pass->to_s;
	}
	pass->layer = op->layer;
	pass->work_s += op_s;
	pass->to_s = end_s;
}

static void add_comm(struct bound_run *out, const struct op *op, double op_s)
{
	const bool gathers = op->coll == COLL_ALL_GATHER, forward = op->phase == PHASE_FORWARD;
	out->comm_s += op_s;
	out->gather_s += gathers ? op_s : 0;
	out->forward_gather_s += gathers && forward ? op_s : 0;
	out->forward_gathers += gathers && forward;
}

/* Starts every op as soon as its lane and its dependencies allow, and gives it its time alone: nothing in the engine is
 * earlier. hides: collectives with which a layer begins take no time (bound_run.hidden). */
static enum status run_alone(const struct program *p, const struct prices *prices, int64_t near, bool hides,
	struct bound_run *out, struct error *e)
{
	const struct role *r = &p->roles[0];
	double lane_s[LANE_COUNT] = {0}, *end_s = calloc(r->ops.n + 1, sizeof *end_s);
	*out = (struct bound_run){.pass = {{.from_s = -1, .layer = -1}, {.from_s = -1, .layer = -1}}};
	struct leading leading = {.layer = -1};
	if (!end_s)
		return error_nomem(e, "plans");
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		const struct op_cost *c = price_of(prices, 0, i);
		const double op_s = begins_layer(r, op, &leading) && hides ? 0 : least_time_s(op, c, &p->mesh, near);
		double start_s = lane_s[op->lane];
		for (uint32_t d = 0; d < op->n_dep; d++)
			start_s = fmax(start_s, end_s[r->deps.at[op->dep0 + d]]);
		/* time beside products delays no op, and a gather's tail delays its lane alone
		 * (sim/engine/tile_overlap.h) */
		const double tile_overlap_s = fmin(op_s, c->tile_overlap_s);
		end_s[i] = lane_s[op->lane] = start_s + op_s - tile_overlap_s;
		if (tile_overlap_is_tail(op))
			lane_s[op->lane] += tile_overlap_s;
		if (op->lane == LANE_COMM)
			add_comm(out, op, c->alone_s);
		/* gradients are summed once a step, in whichever micro-batch */
		out->host_s += is_work(op) || (op->lane == LANE_MODEL_COMM && op->bucket < 0) ? c->issue_s : 0;
		if (!is_work(op))
			continue;
		const int which = op->phase == PHASE_BACKWARD ? BACKWARD : FORWARD;
		add_work(&out->pass[which], op, start_s, end_s[i], op_s);
		const double weights_s = op->phase == PHASE_BACKWARD && op_class_of(op) == CLASS_GEMM &&
		                                         (op->flags & OP_TRANS_A)
		                                 ? op_s
		                                 : 0;
		out->pass[which].weights_s += weights_s;
		if (is_head(op)) {
			out->head.pass_s[which] += op_s;
			out->head.weights_s += weights_s;
		}
	}
	free(end_s);
	return ST_OK;
}

/* Fills what a program of the layers takes in time. */
static enum status time_layers(struct evaluator *v, const struct program *p, struct bound_run *out, struct error *e)
{
	struct bound_run hidden;
	/* where exchanges of experts run behind another micro-batch, that one may fill any wait */
	const int64_t near = v->plan.parallel.expert_overlap ? 0 : v->rates.devices_per_node;
	enum status st = price_further(p, &v->rates, &v->prices, e);
	if (!st && !(st = run_alone(p, &v->prices, near, true, &hidden, e)) &&
		!(st = run_alone(p, &v->prices, near, false, out, e)))
		memcpy(out->hidden, hidden.pass, sizeof out->hidden);
	return st;
}

/* Builds the program of v->small and reads its memory, its times, or both. */
static enum status run_layers(struct evaluator *v, unsigned read, struct bound_run *out, struct error *e)
{
	struct program *p = NULL;
	struct layout l;
	*out = (struct bound_run){.static_B = 0};
	enum status st = program_build(&v->small, &p, e);
	if (!st && (read & READ_TIMES))
		st = time_layers(v, p, out, e);
	if (!st && (read & READ_MEMORY) && !(st = layout_peak(&p->roles[0], &l, e))) {
		out->static_B = pieces_static_B(&p->roles[0], COMP_KIND_COUNT);
		out->gradients_B = pieces_static_B(&p->roles[0], COMP_GRADIENTS);
		out->peak_B = (double)l.peak_B;
		layout_free(&l);
	}
	program_destroy(p);
	return st;
}

/* Fills the config of layers that repeat so often, without a pipeline, on so few replicas as share the experts. */
static void short_config(const struct config *c, int64_t repeats, struct config *out)
{
	struct parallel *p = &out->parallel;
	const int64_t layers = repeats * model_layer_order(&c->model).period;
	evaluator_copy(out, c);
	out->model.layers = layers;
	out->model.first_dense_layers = 0;
	out->model.mtp_layers = 0; /* they count as nothing */
	out->train.recompute_layers = c->train.recompute == REC_NONE ? 0 : layers;
	if (c->train.offload_layers < c->model.layers && c->train.offload == OFF_ACTIVATIONS)
		out->train.offload = OFF_NONE; /* times without copies; the memory of those that stay: bounds */
	out->micro_batches = 1;
	/* by strategy, replicas and micro-batches */
	out->stack.gradient_passes = out->stack.expert_passes = 0;
	out->stack.gradient_calls = out->stack.gradient_kernels = out->stack.buffer_kernels = 0;
	out->stack.frees_gradients = false; /* memory_B counts with it */
	p->gradient_as_bucket_view = true;
	p->strategy = STRAT_NONE;
	p->expert_overlap = false;
	p->pipeline = p->virtual_stages = 1;
	p->data = p->shard = pieces_replicas(c);
	out->train.global_batch = c->train.micro_batch * p->data;
	p->schedule = SCHED_1F1B;
	stages_forget(p);
	out->ranks = p->tensor * p->context * p->data;
}

#define SHORT_REPEATS 2

static enum status measure_layer(struct evaluator *v, void *piece, struct error *e)
{
	struct layer_bound *out = piece;
	struct config *small = &v->small;
	struct bound_run run[2][2]; /* a micro-batch as the plan's, and twice as large; layers */
	double layer_B[2];          /* of each */
	for (int twice = 0; twice < 2; twice++) {
		const unsigned read = twice ? READ_MEMORY : READ_MEMORY | READ_TIMES;
		for (int k = 0; k < 2; k++) {
			short_config(&v->plan, SHORT_REPEATS + k, small);
			small->train.micro_batch *= 1 + twice;
			small->train.global_batch *= 1 + twice;
			small->data.bytes *= 1 + (uint64_t)twice;
			enum status st = run_layers(v, read, &run[twice][k], e);
			if (st)
				return st;
		}
		layer_B[twice] = (run[twice][1].peak_B - run[twice][1].static_B) -
		                 (run[twice][0].peak_B - run[twice][0].static_B);
	}
	const struct bound_run *shorter = &run[0][0], *longer = &run[0][1];
	out->head = shorter->head;
	for (int k = 0; k < PASSES; k++) {
		out->layer.pass_s[k] = fmax(0, duration_s(&longer->pass[k]) - duration_s(&shorter->pass[k]));
		out->layer.gap_s[k] = shorter->pass[k].gap_s +
		                      fmax(0, out->layer.pass_s[k] - (duration_s(&longer->hidden[k]) -
									     duration_s(&shorter->hidden[k])));
	}
	out->host_s = longer->host_s - shorter->host_s;
	out->layer.weights_s = longer->pass[BACKWARD].weights_s - shorter->pass[BACKWARD].weights_s;
	out->layer.lead_s = longer->pass[FORWARD].lead_s - shorter->pass[FORWARD].lead_s;
	out->layer.backward_work_s = longer->pass[BACKWARD].work_s - shorter->pass[BACKWARD].work_s;
	/* a micro-batch twice as large keeps twice as much of activations, and no more of anything else: copies of
	 * weights, which not every strategy has */
	out->kept_B = fmax(0, layer_B[1] - layer_B[0]);
	return ST_OK;
}

/* Returns the bounds of a layer of the plan with this recomputation. NULL: failed, as e says. */
static const struct layer_bound *find_layer(struct evaluator *v, enum recompute recompute, struct error *e)
{
	const struct parallel *p = &v->plan.parallel;
	const int64_t key[] = {p->tensor, p->sequence_parallel, p->tensor_overlap, p->context, p->expert,
		p->expert_tensor, p->expert_overlap, v->plan.train.micro_batch, recompute};
	v->plan.train.recompute = recompute;
	return evaluator_find(v, measure_layer, sizeof(struct layer_bound), key, sizeof key, e);
}

/* Measures the collectives of a layer on the same replicas without a pipeline: they are the same on every stage. Those
 * of buckets count as nothing: layers may be in other buckets, and more of them in one. */
static enum status measure_comm(struct evaluator *v, void *piece, struct error *e)
{
	struct comm_bound *out = piece;
	struct config *small = &v->small;
	const struct parallel *p = &v->plan.parallel;
	const bool units = strategy_has(p->strategy, STRATEGY_UNITS);
	double layer_s[2] = {0}, gather_s[2] = {0}, forward_s = 0; /* of a layer in one micro-batch, and in two */
	struct bound_run run[2];                                   /* layers */
	for (int again = units ? 0 : 1; again < 2; again++) {
		for (int k = 0; k < 2; k++) {
			short_config(&v->plan, SHORT_REPEATS + k, small);
			small->parallel.strategy = p->strategy;
			small->parallel.data = p->data;
			small->parallel.shard = p->shard;
			small->parallel.sequence_parallel &= v->plan.model.experts > 0;
			small->parallel.tensor_overlap = false;
			small->parallel.prefetch = 0; /* a layer's gathers come in its own pass */
			small->train.micro_batch = 1;
			small->data.bytes = inputs_B(&v->plan, 1);
			small->micro_batches = 1 + again;
			small->train.global_batch = p->data * (1 + again);
			small->ranks = p->tensor * p->context * p->data;
			enum status st = run_layers(v, units ? READ_MEMORY | READ_TIMES : READ_MEMORY, &run[k], e);
			if (st)
				return st;
		}
		layer_s[again] = run[1].comm_s - run[0].comm_s;
		gather_s[again] = run[1].gather_s - run[0].gather_s;
		if (again == 0 && run[1].forward_gathers - run[0].forward_gathers == v->order.period)
			forward_s = run[1].forward_gather_s - run[0].forward_gather_s;
	}
	*out = (struct comm_bound){layer_s[0], layer_s[1] - layer_s[0], gather_s[1] - gather_s[0], forward_s,
		fmax(0, run[1].static_B - run[0].static_B), fmax(0, run[1].gradients_B - run[0].gradients_B)};
	return ST_OK;
}

static const struct comm_bound *find_comm(struct evaluator *v, struct error *e)
{
	const struct parallel *p = &v->plan.parallel;
	const int64_t key[] = {p->tensor, p->context, p->expert, p->expert_tensor, p->data, p->shard, p->strategy,
		p->reshard_after_forward};
	v->plan.train.recompute = REC_NONE;
	return evaluator_find(v, measure_comm, sizeof(struct comm_bound), key, sizeof key, e);
}

/* ---- a plan ---- */

static double passes_s(const struct passes *w, double micros, double weights)
{
	return micros * (w->pass_s[FORWARD] + w->pass_s[BACKWARD]) - (micros - weights) * w->weights_s;
}

/* Returns the passes of `layers` layers in so many parts, and of the head unless NULL. */
static struct passes stage_work(const struct passes *layer, const struct passes *head, int64_t layers, int64_t parts)
{
	const double n = (double)layers, ends = (double)parts;
	struct passes w = {.weights_s = n * layer->weights_s + (head ? head->weights_s : 0)};
	for (int k = 0; k < PASSES; k++)
		w.pass_s[k] = fmax(0, n * layer->pass_s[k] - ends * layer->gap_s[k]) + (head ? head->pass_s[k] : 0);
	return w;
}

/* Returns how often layers repeat in a part behind the leading ones of the model. */
static int64_t part_layers(const struct config *c, const struct layer_order *o, int64_t stage, int64_t chunk)
{
	const struct stage_part part = stage_part(c, stage, chunk);
	const int64_t here = o->leading - part.first, layers = here <= 0            ? part.layers
	                                                       : here < part.layers ? part.layers - here
	                                                                            : 0;
	return layers / o->period;
}

static struct schedule_shape shape_of(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return (struct schedule_shape){p->schedule, p->pipeline, p->virtual_stages, c->micro_batches,
		p->expert_overlap};
}

static double pipeline_s(const struct config *c, const struct layer_order *o, const struct passes *layer,
	const struct passes *head, const struct comm_bound *comm)
{
	const struct parallel *p = &c->parallel;
	const bool parted = schedule_splits_backward(p->schedule) && p->pipeline > 1;
	const struct schedule_shape shape = shape_of(c);
	const int64_t head_at = stages_head(c);
	const double micros = (double)c->micro_batches;
	double before_s = 0, most_s = 0;
	struct passes shorter = *layer;
	/* Deferred gradients of weights may fill the wait for a collective. */
	if (parted && schedule_traits[p->schedule].turns_back) {
		shorter.pass_s[BACKWARD] = layer->backward_work_s;
		shorter.gap_s[BACKWARD] = 0;
	}
	layer = &shorter;
	for (int64_t s = 0; s < p->pipeline; s++) {
		int64_t layers = 0, parts = 0;
		for (int64_t chunk = 0; chunk < p->virtual_stages; chunk++) {
			layers += part_layers(c, o, s, chunk);
			parts += p->pipeline > 1 && part_layers(c, o, s, chunk) > 0;
		}
		const int64_t begin = part_layers(c, o, s, 0);
		const struct passes w = stage_work(layer, s == head_at ? head : NULL, layers, parts),
				    first = stage_work(layer, NULL, begin, begin > 0);
		most_s = fmax(most_s, before_s + passes_s(&w, micros, (double)schedule_weights_within(&shape, s)));
		most_s = fmax(most_s, passes_s(&w, micros, micros));
		most_s = fmax(most_s, (double)layers * (comm->layer_s + (micros - 1) * comm->layer_again_s));
		before_s += passes_s(&first, 1, parted ? 0 : 1);
	}
	return most_s;
}

/* Returns the time in which the host thread of the longest stage launches its layers' passes. Each of its parts may
 * have period - 1 layers beside those that repeat. */
static double host_s(const struct config *c, const struct layer_order *o, double layer_s)
{
	const int64_t stages = c->parallel.pipeline, layers = (c->model.layers - o->leading + stages - 1) / stages,
		      repeats = (layers - (c->parallel.virtual_stages - 1) * (o->period - 1)) / o->period;
	return repeats > 0 ? (double)(repeats * c->micro_batches) * layer_s : 0;
}

/* Returns the least memory of the first stage. Its parts all count with the layers of its smallest one, and keep the
 * activations of as many micro-batches as the stage has in flight at once (step/schedule.h). Where gradients need not
 * meet those, they have been there without them: at the update. */
static double memory_B(const struct config *c, const struct layer_order *o, const struct machine *m, double kept_B,
	const struct comm_bound *comm)
{
	const struct parallel *p = &c->parallel;
	const struct schedule_shape shape = shape_of(c);
	const struct mesh mesh = mesh_of(c);
	const double chunks = (double)p->virtual_stages,
		     in_flight = p->pipeline == 1 ? 1 : (double)schedule_first_in_flight(&shape) / chunks;
	struct result_memory mem = {0};
	double layers = (double)part_layers(c, o, 0, 0);
	for (int64_t chunk = 1; chunk < p->virtual_stages; chunk++)
		layers = fmin(layers, (double)part_layers(c, o, 0, chunk));
	summary_overhead(c, &mesh, m, &mem);
	kept_B *= in_flight;
	const double with_B = gradients_meet_activations(c) ? comm->gradients_B + kept_B
	                                                    : fmax(comm->gradients_B, kept_B);
	return layers * chunks * (comm->static_B - comm->gradients_B + with_B) + (double)mem.overhead_B;
}

/* Mixes the bounds of layers that recompute, `own`, with those of layers that do not. The builder decides which stage
 * recomputes. With a pipeline, or where layers differ, all layers count with the shorter time and the smaller memory of
 * the two kinds. */
static void mix_layers(const struct config *c, const struct layer_order *o, const struct layer_bound *plain,
	struct layer_bound *own)
{
	const bool known = c->parallel.pipeline == 1 && o->leading == 0 && o->period == 1;
	const double again = known ? (double)c->train.recompute_layers / (double)c->model.layers : 0,
		     small = known ? again : 1;
	double *own_s = own->layer.pass_s;
	const double *plain_s = plain->layer.pass_s;
	own_s[FORWARD] = fmin(own_s[FORWARD], plain_s[FORWARD]);
	own_s[BACKWARD] = plain_s[BACKWARD] + again * fmax(0, own_s[BACKWARD] - plain_s[BACKWARD]);
	own->layer.lead_s = fmax(own->layer.lead_s, plain->layer.lead_s);
	own->layer.backward_work_s = plain->layer.backward_work_s;
	own->host_s = fmin(own->host_s, plain->host_s);
	own->kept_B = plain->kept_B + small * fmin(0, own->kept_B - plain->kept_B);
}

enum status lower_bound_of(struct evaluator *v, const struct config *c, struct plan_lower_bound *out, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t layers = c->model.layers, per = v->m->devices_per_node;
	struct comm_bound comm = {.layer_s = 0};
	*out = (struct plan_lower_bound){0};
	v->plan = *c;
	evaluator_know(v);
	out->folds = evaluator_folds(v);
	const struct layer_order o = v->order;
	if (o.period == 0) /* nothing is bounded */
		return ST_OK;
	const struct layer_bound *found = find_layer(v, c->train.recompute, e);
	if (!found)
		return e->status;
	struct layer_bound own = *found;
	if (c->train.recompute_layers > 0 && c->train.recompute_layers < layers) {
		const struct layer_bound *plain = find_layer(v, REC_NONE, e);
		if (!plain)
			return e->status;
		mix_layers(c, &o, plain, &own);
	}
	if (c->train.offload == OFF_ACTIVATIONS && c->train.offload_layers < layers)
		own.kept_B *= (double)(layers - c->train.offload_layers) / (double)layers;
	if (p->order[DIM_COUNT - 1] == DIM_PP || p->pipeline == 1) {
		const struct comm_bound *known = find_comm(v, e);
		if (!known)
			return e->status;
		comm = *known;
	}
	if (p->pipeline > 1) /* reduced once for all micro-batches, and gathered once where units stay whole */
		comm.layer_again_s = p->reshard_after_forward ? comm.gather_s : 0;
	const double slowdown = stragglers_slowdown(v->m, (c->ranks + per - 1) / per),
		     launches_s = host_s(c, &o, own.host_s);
	out->step_s = fmax(slowdown * pipeline_s(c, &o, &own.layer, &own.head, &comm), launches_s);
	if (p->pipeline == 1)
		own.layer.pass_s[FORWARD] += fmax(0, comm.forward_gather_s - own.layer.lead_s);
	out->unfetched_s = fmax(slowdown * pipeline_s(c, &o, &own.layer, &own.head, &comm), launches_s);
	out->memory_B = memory_B(c, &o, v->m, own.kept_B, &comm);
	return ST_OK;
}
