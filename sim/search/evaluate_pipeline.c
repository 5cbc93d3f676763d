/* Plans with a pipeline: pieces of a stage, walked action by action. */
#include "sim/search/evaluator.h"

#include <math.h>
#include <string.h>

#include "sim/price/cost.h"
#include "sim/engine/stragglers.h"
#include "sim/search/pipeline_walk.h"

/* ---- pieces ---- */

static enum status find_memory(struct evaluator *v, const struct block_pieces *block, const struct memory_pieces **out,
	struct error *e)
{
	void *piece;
	bool fresh;
	pieces_memory_config(&v->plan, &v->small);
	enum status st = evaluator_find_config(v, PIECES_MEMORY, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured++;
		st = pieces_measure_memory(&v->plan, block, piece, e);
	}
	*out = piece;
	return st;
}

static enum status find_data(struct evaluator *v, const struct block_pieces *block, const struct data_pieces **out,
	struct error *e)
{
	void *piece;
	bool fresh;
	pieces_data_config(&v->plan, 1, &v->small);
	enum status st = evaluator_find_config(v, PIECES_DATA, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = pieces_measure_data(&v->plan, v->m, block, piece, e);
	}
	*out = piece;
	return st;
}

/* ---- memory ---- */

/* Ranks among which the optimizer's state is cut. */
static int64_t state_shards(const struct config *c)
{
	return strategy_has(c->parallel.strategy, STRATEGY_CUTS_STATES) ? c->parallel.data * c->parallel.context : 1;
}

/* A strategy that cuts the optimizer's state also keeps the reduced gradients' part, unless the stack places it inside
 * the whole ones. */
static double static_B(const struct config *c, const struct block_pieces *b, int end, int64_t layers)
{
	const double shards = (double)state_shards(c);
	const double part_B = c->stack.shard_inside ? 0 : line_at(b->gradients_B[end], layers) / shards,
		     cut_B = shards > 1 ? part_B - line_at(b->optimizer_B[end], layers) * (1 - 1 / shards) : 0;
	return line_at(b->static_B[end], layers) + cut_B;
}

/* Returns the elements of the activations that a stage passes on, or of their gradients. */
static int64_t message_elements(const struct config *c)
{
	return c->train.micro_batch * c->model.seq_len / c->parallel.context /
	       (c->parallel.sequence_parallel ? c->parallel.tensor : 1) * c->model.hidden;
}

/* Returns the memory of sent messages that no receiver has acknowledged. A message lives until its receiver is known to
 * have used it, and a stage that warms up hears nothing of that. Where little else is kept, the end of the warm-up is
 * the peak, and messages in flight beyond those of the short program add to it. With sequence parallelism they are too
 * small to move it. */
static double unacknowledged_B(const struct config *c, const struct block_pieces *b, const struct memory_pieces *mem,
	double kept_B)
{
	const double more = c->train.recompute == REC_FULL && !c->parallel.sequence_parallel
	                            ? kept_B / pieces_in_flight_B(c, b) - mem->in_flight
	                            : 0;
	return more > 0 ? more * (double)message_elements(c) * dtype_bytes(dtype_stored(c->train.dtype)) : 0;
}

/* Fills memory_B and fits. mem NULL: without the memory that passes through. d NULL: without the peak at the step's
 * ends. */
static enum status pipeline_memory(const struct evaluator *v, const struct block_pieces *b,
	const struct memory_pieces *mem, const struct data_pieces *d, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t layers = c->model.layers / c->parallel.pipeline;
	double peak_B = 0;
	for (int s = 0; s < END_COUNT; s++) {
		double kept_B = pieces_peak_kept_B(c, b, s, e);
		if (kept_B < 0)
			return e->status;
		if (mem && s == END_FIRST)
			kept_B += unacknowledged_B(c, b, mem, kept_B);
		peak_B = fmax(peak_B, fmax((mem ? mem->passing_B[s] : 0) + kept_B + static_B(c, b, s, layers),
					      d ? line_at(d->least_B[s], layers) : 0));
	}
	evaluator_set_memory(v, peak_B, out);
	return ST_OK;
}

static enum status message_s(struct evaluator *v, int64_t from, int64_t to, double *out, struct error *e)
{
	const struct config *c = &v->plan;
	struct op op = {.kind = OP_COLLECTIVE,
		.coll = COLL_SEND,
		.lane = LANE_SEND_NEXT,
		.group = DIM_PP,
		.dtype = (uint8_t)dtype_stored(c->train.dtype),
		.message = {message_elements(c), to, from}};
	struct op_cost cost;
	enum status st = cost_op(&v->shape, &op, &v->rates, &cost, e);
	*out = st ? 0 : cost.alone_s * stragglers_slowdown(v->m, v->m->nodes);
	return st;
}

/* The tied table's gradient travels between the ends of the pipeline, which lie further apart than in a short one. */
static enum status ends_s(struct evaluator *v, int64_t stages, double *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t shards = state_shards(c),
		      table = model_padded_vocab(&c->model, c->parallel.tensor) / c->parallel.tensor * c->model.hidden;
	const struct op op = {.kind = OP_COLLECTIVE,
		.coll = COLL_ALL_REDUCE,
		.flags = OP_ENDS,
		.lane = LANE_COMM,
		.group = DIM_PP,
		.dtype = (uint8_t)dtype_stored(c->train.grad_dtype),
		.collective = {table / shards}};
	struct op_cost cost;
	v->shape.mesh.size[DIM_PP] = stages;
	enum status st = cost_op(&v->shape, &op, &v->rates, &cost, e);
	*out = st ? 0 : cost.alone_s * stragglers_slowdown(v->m, v->m->nodes);
	return st;
}

struct walk_result {
	struct pipeline_ends ends;
	double message_s; /* between the first two stages */
	double further_s; /* the tied table's gradient takes longer than in a short pipeline */
};

static enum status walk_times_of_plan(struct evaluator *v, const struct block_pieces *b, struct pipeline_walk_times *t,
	struct error *e)
{
	const struct parallel *p = &v->plan.parallel;
	const int64_t layers = v->plan.model.layers / p->pipeline / p->virtual_stages;
	for (int k = 0; k < ACTION_KIND_COUNT; k++) {
		t->begin_s[0][k] = line_at(b->begin_s[END_FIRST][k], layers);
		t->steady_s[0][k] = line_at(b->steady_s[END_FIRST][k], layers);
		t->begin_s[1][k] = b->begin_s[END_FIRST][k].per_layer * (double)layers;
		t->steady_s[1][k] = b->steady_s[END_FIRST][k].per_layer * (double)layers;
		t->begin_s[2][k] = line_at(b->begin_s[END_LAST][k], layers);
		t->steady_s[2][k] = line_at(b->steady_s[END_LAST][k], layers);
	}
	enum status st = ST_OK;
	int64_t known = -1; /* the pair's stride that the last message was priced with */
	for (int64_t i = 0; i < p->pipeline && !st; i++) {
		const int64_t next = (i + 1) % p->pipeline,
			      stride = pair_stride(&v->rates, v->shape.mesh.stride[DIM_PP], i, next);
		if (stride == known)
			t->message_s[i] = t->message_s[i - 1];
		else
			st = message_s(v, i, next, &t->message_s[i], e);
		known = stride;
	}
	return st;
}

static enum status walk_plan(struct evaluator *v, const struct block_pieces *b, struct walk_result *out,
	struct error *e)
{
	const struct parallel *p = &v->plan.parallel;
	struct {
		struct schedule_shape shape;
		struct pipeline_walk_times times;
	} key;
	memset(&key, 0, sizeof key);
	key.shape.kind = p->schedule; /* member by member: padding is hashed too */
	key.shape.stages = p->pipeline;
	key.shape.chunks = p->virtual_stages;
	key.shape.micro_batches = v->plan.micro_batches;
	v->shape.config = v->plan;
	v->shape.mesh = mesh_of(&v->plan);
	void *piece;
	bool fresh;
	enum status st = walk_times_of_plan(v, b, &key.times, e);
	if (st || (st = evaluator_find(v, PIECES_PIPELINE_ENDS, &key, sizeof key, &piece, &fresh, e)))
		return st;
	struct pipeline_ends *ends = piece;
	if (fresh && (st = pipeline_walk(&key.shape, &key.times, &ends->ends_s[END_FIRST], &ends->ends_s[END_LAST], e)))
		return st;
	out->ends = *ends;
	out->message_s = key.times.message_s[0];
	out->further_s = 0;
	double near_s, far_s;
	if (v->plan.model.tied_embeddings && !(st = ends_s(v, 2, &near_s, e)) &&
		!(st = ends_s(v, p->pipeline, &far_s, e)))
		out->further_s = far_s - near_s;
	return st;
}

/* Returns the time of earlier parts' reductions that are still to come when the last part's backward begins. Each had
 * as many actions to hide behind as there are stages. */
static double backlog_s(double comm_s, double cover_s, int64_t chunks)
{
	return comm_s > cover_s ? (double)(chunks - 1) * (comm_s - cover_s) : 0;
}

/* Puts the step together. Returns false where the host thread sets the pace, or a line is bent. */
static bool compose(const struct evaluator *v, const struct block_pieces *b, const struct data_pieces *d,
	const struct walk_result *w, struct evaluation *out)
{
	const struct config *c = &v->plan;
	const struct parallel *p = &c->parallel;
	const int64_t layers = c->model.layers / p->pipeline, part = layers / p->virtual_stages,
		      chunks = p->virtual_stages, m = c->micro_batches;
	double latest_s = 0, scale = evaluator_scale(v);
	bool good = b->linear;
	for (int s = 0; s < END_COUNT; s++) {
		const double comm_s = d->comm_s[s].per_layer *
		                      (double)part /* of a part with neither table: on either stage all but one */,
			     cover_s = line_at(b->steady_s[s][ACTION_BACKWARD], part) * (double)p->pipeline;
		/* While an earlier part's reductions move, messages of the actions beside them take longer. */
		const double earlier_s = p->overlap ? (double)(chunks - 1) *
		                                              (c->stack.overlap_tax * comm_s +
								      fmin(1, comm_s / cover_s) * (double)p->pipeline *
									      (d->message_s - w->message_s))
		                                    : 0;
		const double first_s = line_at(d->slowed_s[END_FIRST], part),
			     last_s = line_at(d->slowed_s[END_LAST], part);
		const double slowed_s = s == END_LAST ? last_s
		                        : schedule_splits_backward(p->schedule)
		                                ? first_s
		                                : last_s + (double)(p->pipeline - 1) *
		                                                   (first_s + d->message_s - w->message_s);
		const double reduce_s = line_at(d->reduce_s[s], p->overlap ? part : layers) + w->further_s +
		                        (p->overlap ? backlog_s(comm_s, cover_s, chunks) : 0),
			     optimize_s = line_at(d->optimize_s[s], layers);
		const double end_s = (line_at(d->gathered_s[END_FIRST], part) + w->ends.ends_s[s] + slowed_s +
					     earlier_s + reduce_s + optimize_s) *
		                     scale;
		if (end_s <= latest_s)
			continue;
		latest_s = end_s;
		double busy_s = 0, blocked_s = 0;
		for (int k = 0; k < ACTION_KIND_COUNT; k++)
			blocked_s += b->steady_s[s][k].base + b->steady_s[s][k].per_layer * (double)layers;
		busy_s = line_at(b->compute_s[s], layers);
		out->compute_s = ((double)m * busy_s + line_at(d->slowed_s[s], part) + earlier_s) * scale;
		out->exposed_comm_s = ((double)m * fmax(0, blocked_s - busy_s) + fmax(0, reduce_s)) * scale;
		out->optimizer_s = optimize_s * scale;
		out->bubble_s = fmax(0, end_s - out->compute_s - out->exposed_comm_s - out->optimizer_s);
		good = good && (double)m * line_at(b->host_s[s], layers) < end_s;
	}
	out->step_s = latest_s;
	out->other_s = latest_s - out->compute_s - out->exposed_comm_s - out->optimizer_s - out->bubble_s;
	return good;
}

enum status evaluate_pipeline(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct block_pieces *b;
	const struct data_pieces *d;
	const struct memory_pieces *mem;
	struct walk_result w;
	enum status st = evaluator_find_block(v, &b, e);
	if (st || (st = pipeline_memory(v, b, NULL, NULL, out, e)) || !out->fits || (st = find_memory(v, b, &mem, e)) ||
		(st = pipeline_memory(v, b, mem, NULL, out, e)) || !out->fits || (st = find_data(v, b, &d, e)) ||
		(st = pipeline_memory(v, b, mem, d, out, e)) || !out->fits || (st = walk_plan(v, b, &w, e)))
		return st;
	out->folded = compose(v, b, d, &w, out);
	return ST_OK;
}
