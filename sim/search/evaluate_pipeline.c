/* Plans with a pipeline: pieces of a stage, walked action by action. */
#include "sim/search/evaluator.h"

#include <math.h>
#include <string.h>

#include "sim/price/cost.h"
#include "sim/engine/stragglers.h"

/* ---- what micro-batches in flight keep ---- */

static double kept_of_B(const struct block_pieces *b, int end, int64_t repeats)
{
	return repeats == 1 ? b->kept_of_one_B[end] : line_at(b->kept_B[end], repeats);
}

/* Return how often the layers of v->plan repeat on a stage, and in a part. */
static int64_t stage_repeats(const struct evaluator *v) { return v->order.repeats / v->plan.parallel.pipeline; }

static int64_t part_repeats(const struct evaluator *v) { return stage_repeats(v) / v->plan.parallel.virtual_stages; }

/* Measures the most that the micro-batches in flight keep, as v->in_flight says. */
static enum status measure_peak(struct evaluator *v, void *piece, struct error *e)
{
	const struct in_flight_key *k = &v->in_flight;
	const struct schedule_shape s = {(enum schedule)k->schedule, k->stages, k->chunks, k->micro_batches,
		k->expert_overlap};
	const int64_t special = k->end == END_FIRST ? 0 : k->chunks - 1;
	action_list list = {0};
	double now_B = 0, most_B = 0;
	enum status st = schedule_actions(&s, k->end == END_FIRST ? 0 : k->stages - 1, &list, e);
	for (size_t i = 0; i < list.n && !st; i++) {
		const struct action *a = &list.at[i];
		const double kept_B = k->kept_B[a->chunk == special];
		now_B += a->kind == ACTION_FORWARD ? kept_B : -kept_B;
		most_B = now_B > most_B ? now_B : most_B;
	}
	vec_free(&list);
	*(double *)piece = most_B;
	return st;
}

/* Returns the most that the micro-batches in flight keep on the first or the last stage (`end`) of a plan whose layers
 * repeat so often in a part, in bytes; < 0 when memory is short. */
static double peak_kept_B(struct evaluator *v, const struct config *c, const struct block_pieces *b, int end,
	int64_t repeats, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t steady = 3 * p->pipeline,
		      micro_batches = !schedule_traits[p->schedule].all_in_flight && c->micro_batches > steady
	                                      ? steady
	                                      : c->micro_batches;
	/* what a part between keeps comes to the first one from the embedding */
	v->in_flight = (struct in_flight_key){p->schedule, p->pipeline, p->virtual_stages, micro_batches,
		p->expert_overlap, end, {kept_of_B(b, END_FIRST, repeats), kept_of_B(b, end, repeats)}};
	const double *most_B = evaluator_find(v, measure_peak, sizeof *most_B, &v->in_flight, sizeof v->in_flight, e);
	return most_B ? *most_B : -1;
}

/* ---- pieces ---- */

/* The peak under a schedule, less static memory and what micro-batches in flight keep. */
struct memory_pieces {
	double passing_B[END_COUNT];
	double in_flight; /* micro-batches, of a part each, that were in flight on the first stage */
};

/* Takes as many stages and micro-batches as a steady order needs. Repeats the layers as the plan does, up to so often
 * that once more changes nothing. */
static void memory_config(const struct evaluator *v, struct config *out)
{
	const struct config *c = &v->plan;
	const enum schedule kind = c->parallel.schedule;
	const bool grouped = schedule_traits[kind].grouped;
	const int64_t usual = !train_reruns_blocks(&c->train) ? 3
	                      : grouped                       ? 4
	                                : 6; /* where little is kept, the peak moves to the end of the
	                                        warm-up as stages grow in number */
	const int64_t stages = c->parallel.pipeline < usual ? c->parallel.pipeline : usual, chunks = grouped ? 2 : 1,
		      repeats = part_repeats(v);
	const int64_t groups = c->micro_batches / c->parallel.pipeline,
		      least = grouped ? groups * stages : c->micro_batches; /* interleaved schedules go by groups of as
	                                                                       many as there are stages */
	pieces_block_config(v, 1, least < 2 * stages ? least : 2 * stages, out);
	out->model.layers = (repeats < STEADY_REPEATS ? repeats : STEADY_REPEATS) * chunks * stages * v->order.period;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? out->model.layers : 0;
	out->ranks = out->ranks / 2 * stages;
	out->parallel.pipeline = stages;
	out->parallel.schedule = kind;
	out->parallel.virtual_stages = chunks;
}

static enum status measure_memory(struct evaluator *v, void *piece, struct error *e)
{
	struct memory_pieces *out = piece;
	const struct block_pieces *block = pieces_find_block(v, e);
	struct short_run run;
	if (!block)
		return e->status;
	memory_config(v, &v->small);
	enum status st = pieces_run_short(v, READ_MEMORY, &run, e);
	const struct parallel *p = &v->small.parallel;
	const int64_t repeats = v->small.model.layers / v->order.period / p->pipeline / p->virtual_stages;
	for (int s = 0; s < END_COUNT && !st; s++) {
		const double kept_B = peak_kept_B(v, &v->small, block, s, repeats, e);
		out->passing_B[s] = run.stage[s].peak_B - kept_B - run.stage[s].static_B;
		if (s == END_FIRST)
			out->in_flight = kept_B / kept_of_B(block, END_FIRST, repeats);
		st = kept_B < 0 ? e->status : ST_OK;
	}
	return st;
}

/* Times that data parallelism adds. */
struct data_pieces {
	struct line gathered_s;            /* the first stage's first forward ends later, as weights are gathered */
	struct line slowed_s[END_COUNT];   /* the last backward ends later, as reductions run beside it */
	struct line comm_s[END_COUNT];     /* reductions move */
	double message_s;                  /* a gradient of the last micro-batch moves to the stage before */
	struct line reduce_s[END_COUNT];   /* from the last backward's end to the optimizer's beginning */
	struct line optimize_s[END_COUNT]; /* from there to the end */
	struct line least_B[END_COUNT];    /* peak with one micro-batch in flight */
};

/* The part of a stage's step behind the last micro-batch, and what is slower in it than without data parallelism. */
struct stage_end {
	double slowed_s, reduce_s, optimize_s;
};

static struct stage_end stage_end_of(const struct short_stage *s, struct line backward_s, int64_t repeats)
{
	const struct pass_time *backward = &s->pass[ACTION_BACKWARD][0];
	const double end_s = (double)backward->to_ps * S_PER_PS,
		     optimizer_s = (double)(s->optimizer_from_ps < 0 ? s->to_ps : s->optimizer_from_ps) * S_PER_PS;
	return (struct stage_end){end_s - (double)backward->from_ps * S_PER_PS - line_at(backward_s, repeats),
		optimizer_s - end_s, (double)s->to_ps * S_PER_PS - optimizer_s};
}

static double gathered_s(const struct short_run *run, struct line forward_s, int64_t repeats)
{
	return fmax(0,
		(double)run->stage[END_FIRST].pass[ACTION_FORWARD][0].to_ps * S_PER_PS - line_at(forward_s, repeats));
}

static enum status measure_data(struct evaluator *v, void *piece, struct error *e)
{
	enum { SHORTER = STEADY_REPEATS, LONGER };
	struct data_pieces *out = piece;
	const struct block_pieces *block = pieces_find_block(v, e);
	struct short_run run[2];
	if (!block)
		return e->status;
	for (int i = 0; i < 2; i++) {
		pieces_data_config(v, SHORTER + i, &v->small);
		if (pieces_run_short(v, READ_MEMORY | READ_TIMES, &run[i], e))
			return e->status;
	}
	const struct line forward_s = block->begin_s[END_FIRST][ACTION_FORWARD];
	out->gathered_s = line_through(SHORTER, gathered_s(&run[0], forward_s, SHORTER),
		gathered_s(&run[1], forward_s, LONGER));
	out->message_s = (double)run[0].stage[END_FIRST].message_ps * S_PER_PS;
	for (int s = 0; s < END_COUNT; s++) {
		const struct short_stage *a = &run[0].stage[s], *b = &run[1].stage[s];
		const struct line backward_s = block->begin_s[s][ACTION_BACKWARD];
		const struct stage_end x = stage_end_of(a, backward_s, SHORTER),
				       y = stage_end_of(b, backward_s, LONGER);
		out->slowed_s[s] = line_through(SHORTER, x.slowed_s, y.slowed_s);
		out->comm_s[s] = line_through(SHORTER, (double)a->comm_ps * S_PER_PS, (double)b->comm_ps * S_PER_PS);
		out->reduce_s[s] = line_through(SHORTER, x.reduce_s, y.reduce_s);
		out->optimize_s[s] = line_through(SHORTER, x.optimize_s, y.optimize_s);
		out->least_B[s] = line_through(SHORTER, a->peak_B, b->peak_B);
	}
	return ST_OK;
}

/* ---- memory ---- */

/* Ranks among which the optimizer's state is cut. */
static int64_t state_shards(const struct config *c)
{
	return strategy_has(c->parallel.strategy, STRATEGY_CUTS_STATES) ? c->parallel.data * c->parallel.context : 1;
}

/* Static memory of either end with experts: their states are cut among other ranks than the rest. */
struct static_pieces {
	struct line of_B[END_COUNT];
};

static void static_config(const struct evaluator *v, int64_t repeats, struct config *out)
{
	pieces_data_config(v, repeats, out);
	pieces_forget_micro_batch(out);
}

static enum status measure_static(struct evaluator *v, void *piece, struct error *e)
{
	struct static_pieces *out = piece;
	struct short_run run[2];
	for (int i = 0; i < 2; i++) {
		static_config(v, 1 + i, &v->small);
		enum status st = pieces_run_short(v, READ_MEMORY, &run[i], e);
		if (st)
			return st;
	}
	for (int s = 0; s < END_COUNT; s++)
		out->of_B[s] = line_through(1, run[0].stage[s].static_B, run[1].stage[s].static_B);
	return ST_OK;
}

/* A strategy that cuts the optimizer's state also keeps the reduced gradients' part, unless the stack places it inside
 * the whole ones. */
static double cut_static_B(const struct config *c, const struct block_pieces *b, int end, int64_t repeats)
{
	const double shards = (double)state_shards(c);
	const double part_B = c->stack.shard_inside ? 0 : line_at(b->gradients_B[end], repeats) / shards,
		     cut_B = shards > 1 ? part_B - line_at(b->optimizer_B[end], repeats) * (1 - 1 / shards) : 0;
	return line_at(b->static_B[end], repeats) + cut_B;
}

/* Fills the static memory of either end. */
static enum status find_static(struct evaluator *v, const struct block_pieces *b, double static_B[END_COUNT],
	struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t repeats = stage_repeats(v);
	const struct static_pieces *whole = NULL;
	if (c->model.experts > 0) {
		static_config(v, 1, &v->small);
		whole = evaluator_find_config(v, measure_static, sizeof *whole, e);
		if (!whole)
			return e->status;
	}
	for (int s = 0; s < END_COUNT; s++)
		static_B[s] = whole ? line_at(whole->of_B[s], repeats) : cut_static_B(c, b, s, repeats);
	return ST_OK;
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
static double unacknowledged_B(const struct evaluator *v, const struct block_pieces *b, const struct memory_pieces *mem,
	double kept_B)
{
	const struct config *c = &v->plan;
	const double more = train_reruns_blocks(&c->train) && !c->parallel.sequence_parallel
	                            ? kept_B / kept_of_B(b, END_FIRST, part_repeats(v)) - mem->in_flight
	                            : 0;
	return more > 0 ? more * (double)message_elements(c) * dtype_bytes(dtype_stored(c->train.dtype)) : 0;
}

/* What a stage holds: its static memory, and the most that micro-batches in flight keep (peak_kept_B). */
struct stage_holds {
	double static_B[END_COUNT], most_kept_B[END_COUNT];
};

/* Fills memory_B and fits. mem NULL: without the memory that passes through.
 * d NULL: without the peak at the step's ends. */
static void pipeline_memory(const struct evaluator *v, const struct block_pieces *b, const struct stage_holds *holds,
	const struct memory_pieces *mem, const struct data_pieces *d, struct evaluation *out)
{
	const int64_t repeats = stage_repeats(v);
	double peak_B = 0;
	for (int s = 0; s < END_COUNT; s++) {
		double kept_B = holds->most_kept_B[s];
		if (mem && s == END_FIRST)
			kept_B += unacknowledged_B(v, b, mem, kept_B);
		peak_B = fmax(peak_B, fmax((mem ? mem->passing_B[s] : 0) + kept_B + holds->static_B[s],
					      d ? line_at(d->least_B[s], repeats) : 0));
	}
	evaluator_set_memory(v, peak_B, out);
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
		.collective.elements = table / state_shards(c)};
	double near_s, far_s;
	*out = 0;
	if (!model_table_ends(&c->model))
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

static const double *find_walk(struct evaluator *v, int64_t micro_batches, struct error *e)
{
	v->walk.shape.micro_batches = micro_batches;
	return evaluator_find(v, measure_walk, END_COUNT * sizeof(double), &v->walk, sizeof v->walk, e);
}

/* Walks the plan's pipeline: fills the ends of the first and of the last stage. Plans that differ in their number of
 * micro-batches alone share two walks. */
static enum status walk_plan(struct evaluator *v, const struct block_pieces *b, double ends_s[END_COUNT],
	struct error *e)
{
	const struct parallel *p = &v->plan.parallel;
	const int64_t repeats = part_repeats(v);
	struct pipeline *w = &v->walk;
	memset(w, 0, sizeof *w);
	w->shape.kind = p->schedule; /* member by member: padding is hashed too */
	w->shape.stages = p->pipeline;
	w->shape.chunks = p->virtual_stages;
	for (int k = 0; k < PASS_COUNT; k++) {
		const struct line *begin_s = &b->begin_s[END_FIRST][k], *steady_s = &b->steady_s[END_FIRST][k];
		w->begin_s[0][k] = line_at(*begin_s, repeats);
		w->steady_s[0][k] = line_at(*steady_s, repeats);
		w->begin_s[1][k] = begin_s->each * (double)repeats;
		w->steady_s[1][k] = steady_s->each * (double)repeats;
		w->begin_s[2][k] = line_at(b->begin_s[END_LAST][k], repeats);
		w->steady_s[2][k] = line_at(b->steady_s[END_LAST][k], repeats);
	}
	evaluator_copy(&v->shape.config, &v->plan);
	v->shape.mesh = mesh_of(&v->plan);
	if (fill_messages(v, e))
		return e->status;
	w->shape.micro_batches = v->plan.micro_batches;
	const struct pipeline_fold fold = pipeline_fold(&w->shape);
	const double *longer_s = find_walk(v, fold.longer ? fold.longer : v->plan.micro_batches, e),
		     *shorter_s = fold.longer && longer_s ? find_walk(v, fold.shorter, e) : longer_s;
	if (!shorter_s)
		return e->status;
	for (int s = 0; s < END_COUNT; s++)
		ends_s[s] = longer_s[s] + fold.periods * (longer_s[s] - shorter_s[s]);
	return ST_OK;
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
	const int64_t repeats = stage_repeats(v), part = part_repeats(v), chunks = p->virtual_stages;
	const double stages = (double)p->pipeline, scale = evaluator_scale(v), message_s = v->walk.message_s[0],
		     host_s = (double)c->micro_batches * line_at(b->host_s, repeats),
		     tax = v->rates.link_engines ? 0 : c->stack.overlap_tax;
	out->folded = b->linear;
	for (int s = 0; s < END_COUNT; s++) {
		const double comm_s = d->comm_s[s].each *
		                      (double)part /* of a part with neither table: on either stage all but one */,
			     cover_s = line_at(b->steady_s[s][ACTION_BACKWARD], part) * stages;
		/* While an earlier part's reductions move, messages of the actions beside them take longer. */
		const double earlier_s = p->overlap ? (double)(chunks - 1) *
		                                              (tax * comm_s + fmin(1, comm_s / cover_s) * stages *
										      (d->message_s - message_s))
		                                    : 0;
		const double each_s = line_at(d->slowed_s[END_FIRST], part) + d->message_s - message_s,
			     slowed_s = line_at(d->slowed_s[END_LAST], part) +
		                        (s == END_FIRST ? (stages - 1) * each_s : 0);
		const double reduce_s = line_at(d->reduce_s[s], p->overlap ? part : repeats) + further_s +
		                        (p->overlap ? backlog_s(comm_s, cover_s, chunks) : 0);
		const double end_s = (line_at(d->gathered_s, part) + ends_s[s] + slowed_s + earlier_s + reduce_s +
					     line_at(d->optimize_s[s], repeats)) *
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
	struct stage_holds holds;
	double further_s;
	if (!b || find_static(v, b, holds.static_B, e))
		return e->status;
	for (int s = 0; s < END_COUNT; s++)
		if ((holds.most_kept_B[s] = peak_kept_B(v, &v->plan, b, s, part_repeats(v), e)) < 0)
			return e->status;
	pipeline_memory(v, b, &holds, NULL, NULL, out);
	if (!out->fits)
		return ST_OK;
	memory_config(v, &v->small);
	const struct memory_pieces *mem = evaluator_find_config(v, measure_memory, sizeof *mem, e);
	if (!mem)
		return e->status;
	pipeline_memory(v, b, &holds, mem, NULL, out);
	if (!out->fits || evaluator_dominates(v, out))
		return ST_OK;
	pieces_data_config(v, 1, &v->small);
	const struct data_pieces *d = evaluator_find_config(v, measure_data, sizeof *d, e);
	if (!d)
		return e->status;
	pipeline_memory(v, b, &holds, mem, d, out);
	if (!out->fits)
		return ST_OK;
	double ends_s[END_COUNT];
	if (walk_plan(v, b, ends_s, e) || tied_further_s(v, &further_s, e))
		return e->status;
	compose(v, b, d, ends_s, further_s, out);
	return ST_OK;
}
