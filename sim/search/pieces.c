/* Short programs, and the pieces of a stage: measured on two stages with their layers once and twice. */
#include "sim/search/evaluator.h"

#include "step/inputs.h"
#include "step/layout.h"
#include "step/stages.h"

double line_at(struct line l, int64_t repeats) { return l.base + l.each * (double)repeats; }

struct line line_through(int64_t from, double a, double b) { return (struct line){a - (double)from * (b - a), b - a}; }

/* ---- short programs ---- */

static void two_stages(const struct evaluator *v, int64_t repeats, int64_t micro_batches, struct config *out)
{
	const struct config *c = &v->plan;
	const int64_t layers = 2 * repeats * v->order.period;
	evaluator_copy(out, c);
	out->model.layers = layers;
	out->model.first_dense_layers = 0;
	out->model.mtp_layers = 0;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? layers : 0;
	out->micro_batches = micro_batches;
	out->train.global_batch = micro_batches * c->train.micro_batch * c->parallel.data;
	out->parallel.pipeline = 2;
	out->parallel.virtual_stages = 1;
	stages_forget(&out->parallel);
	out->parallel.schedule = SCHED_GPIPE;
	out->parallel.gradient_as_bucket_view = true;
	out->stack.frees_gradients = false;  /* plans that are put together have them beside all that is in flight */
	out->stack.stage_split = SPLIT_EVEN; /* by cost, a large vocabulary's head would take layers from its stage */
}

void pieces_forget_buckets(struct config *c) { c->parallel.bucket_B = c->parallel.first_bucket_B = 25 * MIB_B; }

void pieces_forget_micro_batch(struct config *c)
{
	c->data.bytes = inputs_B(c, 1);
	c->train.micro_batch = 1;
	c->train.global_batch = c->parallel.data;
	c->train.recompute = REC_NONE;
	c->train.recompute_layers = 0;
	c->parallel.sequence_parallel &= c->model.experts > 0; /* experts beside tensor ranks need it */
}

int64_t pieces_replicas(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	int64_t replicas = 1;
	while (p->tensor * p->context * replicas % (p->expert * p->expert_tensor) != 0)
		replicas++;
	return replicas;
}

void pieces_block_config(const struct evaluator *v, int64_t repeats, int64_t micro_batches, struct config *out)
{
	const struct config *c = &v->plan;
	two_stages(v, repeats, micro_batches, out);
	struct parallel *p = &out->parallel;
	p->strategy = STRAT_NONE;
	p->data = p->shard = pieces_replicas(c);
	p->overlap = true;
	pieces_forget_buckets(out); /* replicas share experts alone */
	out->train.reduce_dtype = out->train.grad_dtype;
	out->train.global_batch = micro_batches * c->train.micro_batch * p->data;
	out->ranks = 2 * p->tensor * p->context * p->data;
}

void pieces_data_config(const struct evaluator *v, int64_t repeats, struct config *out)
{
	const struct config *c = &v->plan;
	two_stages(v, repeats, 1, out);
	out->ranks = 2 * c->parallel.tensor * c->parallel.context * c->parallel.data;
}

/* ---- what is read off a program and its timeline ---- */

static void add_span(struct short_stage *s, const struct op *op, const struct span *at)
{
	s->to_ps = at->end_ps > s->to_ps ? at->end_ps : s->to_ps;
	if (op->phase == PHASE_OPTIMIZER) {
		if (op->lane == LANE_COMPUTE && (s->optimizer_from_ps < 0 || at->start_ps < s->optimizer_from_ps))
			s->optimizer_from_ps = at->start_ps;
		return;
	}
	if (op->lane == LANE_RECV_NEXT)
		s->message_ps = at->end_ps - at->move_ps;
	if (op->lane == LANE_COMM && op->phase == PHASE_BACKWARD)
		s->comm_ps += at->end_ps - at->move_ps;
	if (op->micro < 0 || op->micro >= SHORT_MICRO_BATCHES ||
		(op->lane != LANE_COMPUTE && op->lane != LANE_MODEL_COMM && op->lane != LANE_HOST) ||
		op->kind == OP_CAST || op->kind == OP_FILL)
		return;
	struct pass_time *a = &s->pass[op->phase == PHASE_FORWARD ? ACTION_FORWARD : ACTION_BACKWARD][op->micro];
	a->from_ps = a->from_ps < 0 || at->start_ps < a->from_ps ? at->start_ps : a->from_ps;
	a->to_ps = at->end_ps > a->to_ps ? at->end_ps : a->to_ps;
}

static double aligned_B(const struct buffer *b)
{
	return (double)((b->bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN);
}

double pieces_static_B(const struct role *r, enum component only)
{
	double sum = 0;
	for (size_t i = 0; i < r->buffers.n; i++) {
		const struct buffer *b = &r->buffers.at[i];
		if (b->persistent && !b->inside &&
			(only == COMP_KIND_COUNT ? b->component != COMP_HOST : b->component == only))
			sum += aligned_B(b);
	}
	for (size_t i = 0; i < r->held.n && only == COMP_KIND_COUNT; i++)
		sum += r->held.at[i].to == HELD_ALWAYS ? (double)r->held.at[i].bytes : 0;
	return sum;
}

static enum status read_memory(const struct program *p, struct short_run *out, struct error *e)
{
	for (size_t s = 0; s < END_COUNT && s < p->n_roles; s++) {
		const struct role *role = &p->roles[s == END_FIRST ? 0 : p->n_roles - 1];
		struct short_stage *x = &out->stage[s];
		struct layout l;
		enum status st = layout_peak(role, &l, e);
		if (st)
			return st;
		x->peak_B = (double)l.peak_B;
		x->static_B = pieces_static_B(role, COMP_KIND_COUNT);
		x->gradients_B = pieces_static_B(role, COMP_GRADIENTS);
		x->optimizer_B = pieces_static_B(role, COMP_OPTIMIZER);
		layout_free(&l);
	}
	return ST_OK;
}

static enum status read_times(struct evaluator *v, const struct program *p, struct short_run *out, struct error *e)
{
	struct timeline t = {0};
	enum status st = predict_timeline(p, &v->rates, &v->prices, &t, &out->host_s, e);
	for (int s = 0; s < END_COUNT; s++) {
		out->stage[s].optimizer_from_ps = -1;
		for (int k = 0; k < PASS_COUNT; k++)
			for (int i = 0; i < SHORT_MICRO_BATCHES; i++)
				out->stage[s].pass[k][i].from_ps = -1;
	}
	for (size_t i = 0; i < t.spans.n && !st; i++) {
		const struct span *s = &t.spans.at[i];
		add_span(&out->stage[s->actor], &p->roles[s->actor].ops.at[s->op], s);
	}
	out->step_s = (double)t.step_ps * S_PER_PS;
	timeline_free(&t);
	return st;
}

enum status pieces_run_short(struct evaluator *v, unsigned read, struct short_run *out, struct error *e)
{
	struct program *p = NULL;
	*out = (struct short_run){0};
	enum status st = (read & READ_TIMES ? program_build : program_build_ends)(&v->small, &p, e);
	if (!st && (read & READ_MEMORY))
		st = read_memory(p, out, e);
	if (!st && (read & READ_TIMES))
		st = read_times(v, p, out, e);
	program_destroy(p);
	return st;
}

bool pieces_host_is_ahead(const struct evaluator *v, const struct short_run *run)
{
	return run->host_s < v->m->parameters->step.host_ahead * run->step_s;
}

/* ---- a stage and a micro-batch ---- */

static double lasts_s(const struct pass_time *a)
{
	return a->from_ps < 0 ? 0 : (double)(a->to_ps - a->from_ps) * S_PER_PS;
}

/* Fills *out but for kept_B, and run[i] with the run of i + 1 repeats. */
static enum status measure_times(struct evaluator *v, struct block_pieces *out, struct short_run run[2],
	struct error *e)
{
	out->linear = true;
	for (int i = 0; i < 2; i++) {
		pieces_block_config(v, i + 1, SHORT_MICRO_BATCHES, &v->small);
		enum status st = pieces_run_short(v, READ_MEMORY | READ_TIMES, &run[i], e);
		if (st)
			return st;
		out->linear = out->linear && pieces_host_is_ahead(v, &run[i]);
	}
	out->host_s = line_through(1, run[0].host_s / SHORT_MICRO_BATCHES, run[1].host_s / SHORT_MICRO_BATCHES);
	for (int s = 0; s < END_COUNT; s++) {
		const struct short_stage *a = &run[0].stage[s], *b = &run[1].stage[s];
		for (int k = 0; k < PASS_COUNT; k++) {
			out->begin_s[s][k] = line_through(1, lasts_s(&a->pass[k][0]), lasts_s(&b->pass[k][0]));
			out->steady_s[s][k] = line_through(1, lasts_s(&a->pass[k][1]), lasts_s(&b->pass[k][1]));
		}
		out->static_B[s] = line_through(1, a->static_B, b->static_B);
		out->gradients_B[s] = line_through(1, a->gradients_B, b->gradients_B);
		out->optimizer_B[s] = line_through(1, a->optimizer_B, b->optimizer_B);
	}
	return ST_OK;
}

/* Measures the memory that the last of SHORT_MICRO_BATCHES adds to those before it, all in flight at once.
 * timed: runs of all of them, with one and with two repeats. */
static enum status measure_kept(struct evaluator *v, struct block_pieces *out, const struct short_run timed[2],
	struct error *e)
{
	double kept_B[END_COUNT][STEADY_REPEATS + 1];
	for (int n = 0; n <= STEADY_REPEATS; n++) {
		struct short_run fewer, all;
		pieces_block_config(v, n + 1, SHORT_MICRO_BATCHES - 1, &v->small);
		enum status st = pieces_run_short(v, READ_MEMORY, &fewer, e);
		if (!st && n >= 2) {
			pieces_block_config(v, n + 1, SHORT_MICRO_BATCHES, &v->small);
			st = pieces_run_short(v, READ_MEMORY, &all, e);
		}
		if (st)
			return st;
		const struct short_run *longer = n < 2 ? &timed[n] : &all;
		for (int s = 0; s < END_COUNT; s++)
			kept_B[s][n] = longer->stage[s].peak_B - fewer.stage[s].peak_B;
	}
	for (int s = 0; s < END_COUNT; s++) {
		out->kept_of_one_B[s] = kept_B[s][0];
		out->kept_B[s] = line_through(STEADY_REPEATS, kept_B[s][STEADY_REPEATS - 1], kept_B[s][STEADY_REPEATS]);
	}
	return ST_OK;
}

static enum status measure_block(struct evaluator *v, void *piece, struct error *e)
{
	struct short_run run[2];
	enum status st = measure_times(v, piece, run, e);
	return st ? st : measure_kept(v, piece, run, e);
}

const struct block_pieces *pieces_find_block(struct evaluator *v, struct error *e)
{
	pieces_block_config(v, 1, 1, &v->small);
	return evaluator_find_config(v, measure_block, sizeof(struct block_pieces), e);
}
