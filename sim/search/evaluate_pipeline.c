/* Plans with a pipeline: pieces of a stage, walked action by action. */
#include "sim/search/evaluator.h"

#include <math.h>
#include <string.h>

#include "sim/price/cost.h"
#include "sim/engine/stragglers.h"

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

/* ---- times ---- */

/* Prices a message of v->shape on the whole machine. */
static enum status price_message(struct evaluator *v, const struct op *op, double *out, struct error *e)
{
	struct op_cost cost;
	enum status st = cost_op(&v->shape, op, &v->rates, &cost, e);
	*out = st ? 0 : cost.alone_s * stragglers_slowdown(v->m, v->m->nodes);
	return st;
}

/* Returns, in *out, how much longer the tied table's gradient travels than in a short pipeline, whose ends lie closer
 * together. */
static enum status tied_further_s(struct evaluator *v, double *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t table = model_padded_vocab(&c->model, c->parallel.tensor) / c->parallel.tensor * c->model.hidden;
	const struct op op = {.kind = OP_COLLECTIVE,
		.coll = COLL_ALL_REDUCE,
		.flags = OP_ENDS,
		.lane = LANE_COMM,
		.group = DIM_PP,
		.dtype = (uint8_t)dtype_stored(c->train.grad_dtype),
		.collective = {table / state_shards(c)}};
	double near_s, far_s;
	*out = 0;
	if (!c->model.tied_embeddings)
		return ST_OK;
	v->shape.mesh.size[DIM_PP] = 2;
	enum status st = price_message(v, &op, &near_s, e);
	v->shape.mesh.size[DIM_PP] = c->parallel.pipeline;
	if (!st && !(st = price_message(v, &op, &far_s, e)))
		*out = far_s - near_s;
	return st;
}

static enum status fill_messages(struct evaluator *v, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t stages = c->parallel.pipeline;
	double *all_s = v->walk.message_s;
	enum status st = ST_OK;
	int64_t known = -1; /* the pair's stride that the last message was priced with */
	for (int64_t i = 0; i < stages && !st; i++) {
		const int64_t next = (i + 1) % stages,
			      stride = pair_stride(&v->rates, v->shape.mesh.stride[DIM_PP], i, next);
		const struct op op = {.kind = OP_COLLECTIVE,
			.coll = COLL_SEND,
			.lane = LANE_SEND_NEXT,
			.group = DIM_PP,
			.dtype = (uint8_t)dtype_stored(c->train.dtype),
			.message = {message_elements(c), next, i}};
		if (stride == known)
			all_s[i] = all_s[i - 1];
		else
			st = price_message(v, &op, &all_s[i], e);
		known = stride;
	}
	return st;
}

static enum status measure_walk(struct evaluator *v, void *piece, struct error *e)
{
	return pipeline_walk(&v->walk, piece, e);
}

/* Walks the plan's pipeline. Returns the ends of the first and of the last stage (END_COUNT); NULL: failed, as e says.
 */
static const double *find_walk(struct evaluator *v, const struct block_pieces *b, struct error *e)
{
	static const struct piece_kind kind = {PIECE_WALK, END_COUNT * sizeof(double), measure_walk};
	const struct parallel *p = &v->plan.parallel;
	const int64_t layers = v->plan.model.layers / p->pipeline / p->virtual_stages;
	struct pipeline *w = &v->walk;
	memset(w, 0, sizeof *w);
	w->shape.kind = p->schedule; /* member by member: padding is hashed too */
	w->shape.stages = p->pipeline;
	w->shape.chunks = p->virtual_stages;
	w->shape.micro_batches = v->plan.micro_batches;
	for (int k = 0; k < PASS_COUNT; k++) {
		const struct line *begin_s = &b->begin_s[END_FIRST][k], *steady_s = &b->steady_s[END_FIRST][k];
		w->begin_s[0][k] = line_at(*begin_s, layers);
		w->steady_s[0][k] = line_at(*steady_s, layers);
		w->begin_s[1][k] = begin_s->per_layer * (double)layers;
		w->steady_s[1][k] = steady_s->per_layer * (double)layers;
		w->begin_s[2][k] = line_at(b->begin_s[END_LAST][k], layers);
		w->steady_s[2][k] = line_at(b->steady_s[END_LAST][k], layers);
	}
	v->shape.config = v->plan;
	v->shape.mesh = mesh_of(&v->plan);
	return fill_messages(v, e) ? NULL : evaluator_find(v, &kind, w, sizeof *w, e);
}

/* Returns the time of earlier parts' reductions that are still to come when the last part's backward begins. Each had
 * as many actions to hide behind as there are stages. */
static double backlog_s(double comm_s, double cover_s, int64_t chunks)
{
	return comm_s > cover_s ? (double)(chunks - 1) * (comm_s - cover_s) : 0;
}

/* Puts the step together from the ends of the walk. `further_s`: tied_further_s. Sets folded to false where the host
 * thread sets the pace, or a line is bent. */
static void compose(const struct evaluator *v, const struct block_pieces *b, const struct data_pieces *d,
	const double ends_s[END_COUNT], double further_s, struct evaluation *out)
{
	const struct config *c = &v->plan;
	const struct parallel *p = &c->parallel;
	const int64_t layers = c->model.layers / p->pipeline, part = layers / p->virtual_stages,
		      chunks = p->virtual_stages;
	const double stages = (double)p->pipeline, scale = evaluator_scale(v), message_s = v->walk.message_s[0],
		     host_s = (double)c->micro_batches * line_at(b->host_s, layers);
	out->folded = b->linear;
	for (int s = 0; s < END_COUNT; s++) {
		const double comm_s = d->comm_s[s].per_layer *
		                      (double)part /* of a part with neither table: on either stage all but one */,
			     cover_s = line_at(b->steady_s[s][ACTION_BACKWARD], part) * stages;
		/* While an earlier part's reductions move, messages of the actions beside them take longer. */
		const double earlier_s = p->overlap
		                                 ? (double)(chunks - 1) * (c->stack.overlap_tax * comm_s +
										  fmin(1, comm_s / cover_s) * stages *
											  (d->message_s - message_s))
		                                 : 0;
		const double each_s = line_at(d->slowed_s[END_FIRST], part) + d->message_s - message_s,
			     slowed_s = line_at(d->slowed_s[END_LAST], part) +
		                        (s == END_FIRST ? (stages - 1) * each_s : 0);
		const double reduce_s = line_at(d->reduce_s[s], p->overlap ? part : layers) + further_s +
		                        (p->overlap ? backlog_s(comm_s, cover_s, chunks) : 0);
		const double end_s = (line_at(d->gathered_s, part) + ends_s[s] + slowed_s + earlier_s + reduce_s +
					     line_at(d->optimize_s[s], layers)) *
		                     scale;
		if (end_s <= out->step_s)
			continue;
		out->step_s = end_s;
		out->folded = out->folded && host_s < end_s;
	}
}

enum status evaluate_pipeline(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct block_pieces *b = pieces_find_block(v, e);
	const struct memory_pieces *mem = NULL;
	const struct data_pieces *d = NULL;
	const double *ends_s;
	double further_s;
	enum status st;
	if (!b)
		return e->status;
	if ((st = pipeline_memory(v, b, NULL, NULL, out, e)) || !out->fits)
		return st;
	if (!(mem = pieces_find_memory(v, e)))
		return e->status;
	if ((st = pipeline_memory(v, b, mem, NULL, out, e)) || !out->fits)
		return st;
	if (!(d = pieces_find_data(v, e)))
		return e->status;
	if ((st = pipeline_memory(v, b, mem, d, out, e)) || !out->fits)
		return st;
	if (!(ends_s = find_walk(v, b, e)) || tied_further_s(v, &further_s, e))
		return e->status;
	compose(v, b, d, ends_s, further_s, out);
	return ST_OK;
}
