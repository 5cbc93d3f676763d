#include "sim/search/pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/price/rates.h"
#include "step/layout.h"

#define S_PER_PS 1e-12
#define SHORT_MICRO_BATCHES \
	3 /* the first accumulates nothing, the last one's gradients may be completed: the one between is steady */
/* so many, and one more, share buffers and overlap as any number does; one alone may not */
#define STEADY_LAYERS 2

double line_at(struct line l, int64_t layers) { return l.base + l.per_layer * (double)layers; }

struct line line_through(int64_t from, double a, double b) { return (struct line){a - (double)from * (b - a), b - a}; }

/* ---- short programs ---- */

static void two_stages(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out)
{
	*out = *c;
	out->model.layers = 2 * layers;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? 2 * layers : 0;
	out->micro_batches = micro_batches;
	out->train.global_batch = micro_batches * c->train.micro_batch * c->parallel.data;
	out->parallel.pipeline = 2;
	out->parallel.virtual_stages = 1;
	out->parallel.n_layers_per_stage = 0;
	out->parallel.schedule = schedule_splits_backward(c->parallel.schedule) ? c->parallel.schedule : SCHED_GPIPE;
}

void pieces_block_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out)
{
	two_stages(c, layers, micro_batches, out);
	struct parallel *p = &out->parallel;
	p->strategy = STRAT_NONE;
	p->data = p->shard = 1;
	p->overlap = true;
	p->bucket_B = p->first_bucket_B = 25 * MIB_B; /* of no matter: there are no replicas */
	out->train.reduce_dtype = out->train.grad_dtype;
	out->train.global_batch = micro_batches * c->train.micro_batch;
	out->ranks = 2 * p->tensor * p->context;
}

/* Takes as many stages and micro-batches as a steady order needs. Takes the plan's layers, up to so many that one more
 * changes nothing. */
void pieces_memory_config(const struct config *c, struct config *out)
{
	const enum schedule kind = c->parallel.schedule;
	const bool grouped = schedule_traits[kind].grouped;
	const int64_t usual = c->train.recompute != REC_FULL ? 3
	                      : grouped                      ? 4
	                                : 6; /* where little is kept, the peak moves to the end of the
	                                        warm-up as stages grow in number */
	const int64_t stages = c->parallel.pipeline < usual ? c->parallel.pipeline : usual, chunks = grouped ? 2 : 1,
		      layers = c->model.layers / c->parallel.pipeline / c->parallel.virtual_stages;
	const int64_t groups = c->micro_batches / c->parallel.pipeline,
		      least = grouped ? groups * stages : c->micro_batches; /* interleaved schedules go by groups of as
	                                                                       many as there are stages */
	pieces_block_config(c, 1, least < 2 * stages ? least : 2 * stages, out);
	out->model.layers = (layers < STEADY_LAYERS ? layers : STEADY_LAYERS) * chunks * stages;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? out->model.layers : 0;
	out->ranks = out->ranks / 2 * stages;
	out->parallel.pipeline = stages;
	out->parallel.schedule = kind;
	out->parallel.virtual_stages = chunks;
}

void pieces_data_config(const struct config *c, int64_t layers, struct config *out)
{
	two_stages(c, layers, 1, out);
	out->ranks = 2 * c->parallel.tensor * c->parallel.context * c->parallel.data;
}

/* ---- what is read off a program and its timeline ---- */

struct action_time {
	int64_t from_ps, to_ps, busy_ps; /* from_ps < 0: none */
};

struct stage_times {
	struct action_time action[ACTION_KIND_COUNT][SHORT_MICRO_BATCHES];
	int64_t comm_ps, message_ps, optimizer_from_ps, to_ps; /* optimizer_from_ps < 0: none */
};

struct short_run {
	struct stage_times stage[END_COUNT];
	double step_s, host_s, peak_B[END_COUNT], static_B[END_COUNT], gradients_B[END_COUNT], optimizer_B[END_COUNT];
};

static enum action_kind kind_of(const struct op *op, bool parted)
{
	if (op->phase == PHASE_FORWARD)
		return ACTION_FORWARD;
	return parted && op->kind == OP_GEMM && (op->flags & OP_TRANS_A) ? ACTION_WEIGHTS : ACTION_BACKWARD;
}

static void add_span(struct stage_times *s, const struct op *op, const struct span *at, bool parted)
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
	struct action_time *a = &s->action[kind_of(op, parted)][op->micro];
	a->from_ps = a->from_ps < 0 || at->start_ps < a->from_ps ? at->start_ps : a->from_ps;
	a->to_ps = at->end_ps > a->to_ps ? at->end_ps : a->to_ps;
	a->busy_ps += op->lane == LANE_COMPUTE ? at->end_ps - at->start_ps : 0;
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
	for (int s = 0; s < END_COUNT; s++) {
		const struct role *role = &p->roles[s == END_FIRST ? 0 : p->n_roles - 1];
		struct layout l;
		enum status st = layout_peak(role, &l, e);
		if (st)
			return st;
		out->peak_B[s] = (double)l.peak_B;
		out->static_B[s] = pieces_static_B(role, COMP_KIND_COUNT);
		out->gradients_B[s] = pieces_static_B(role, COMP_GRADIENTS);
		out->optimizer_B[s] = pieces_static_B(role, COMP_OPTIMIZER);
		layout_free(&l);
	}
	return ST_OK;
}

static void read_timeline(const struct program *p, const struct timeline *t, struct short_run *out)
{
	const bool parted = schedule_splits_backward(p->config.parallel.schedule);
	for (int s = 0; s < END_COUNT; s++) {
		struct stage_times *x = &out->stage[s];
		*x = (struct stage_times){.optimizer_from_ps = -1};
		for (int k = 0; k < ACTION_KIND_COUNT; k++)
			for (int i = 0; i < SHORT_MICRO_BATCHES; i++)
				x->action[k][i].from_ps = -1;
	}
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		add_span(&out->stage[s->actor], &p->roles[s->actor].ops.at[s->op], s, parted);
	}
	out->step_s = (double)t->step_ps * S_PER_PS;
}

static enum status time_short(const struct program *p, const struct machine *m, struct short_run *out, struct error *e)
{
	const struct rates rates = rates_of(m);
	struct timeline t = {0};
	enum status st = predict_timeline(p, &rates, &t, &out->host_s, e);
	if (!st)
		read_timeline(p, &t, out);
	timeline_free(&t);
	return st;
}

/* Builds the program and reads its memory. `timed`: runs the engine and reads its times, too; only that needs `m`. */
static enum status run_short(const struct config *c, const struct machine *m, bool timed, struct short_run *out,
	struct error *e)
{
	struct program *p = NULL;
	*out = (struct short_run){0};
	enum status st = program_build(c, &p, e);
	if (!st && !(st = read_memory(p, out, e)) && timed)
		st = time_short(p, m, out, e);
	program_destroy(p);
	return st;
}

/* ---- pieces ---- */

static double lasts_s(const struct action_time *a)
{
	return a->from_ps < 0 ? 0 : (double)(a->to_ps - a->from_ps) * S_PER_PS;
}

static double busy_s(const struct stage_times *s, int micro)
{
	double sum = 0;
	for (int k = 0; k < ACTION_KIND_COUNT; k++)
		sum += (double)s->action[k][micro].busy_ps * S_PER_PS;
	return sum;
}

static enum status measure_times(const struct config *c, const struct machine *m, struct block_pieces *out,
	struct config *reduced, struct short_run run[2], struct error *e)
{
	enum status st = ST_OK;
	for (int i = 0; i < 2 && !st; i++) {
		pieces_block_config(c, i + 1, SHORT_MICRO_BATCHES, reduced);
		if (!(st = run_short(reduced, m, true, &run[i], e)))
			out->linear = out->linear && run[i].host_s < m->parameters->step.host_ahead * run[i].step_s;
	}
	for (int s = 0; s < END_COUNT && !st; s++) {
		const struct stage_times *a = &run[0].stage[s], *b = &run[1].stage[s];
		for (int k = 0; k < ACTION_KIND_COUNT; k++) {
			out->begin_s[s][k] = line_through(1, lasts_s(&a->action[k][0]), lasts_s(&b->action[k][0]));
			out->steady_s[s][k] = line_through(1, lasts_s(&a->action[k][1]), lasts_s(&b->action[k][1]));
		}
		out->compute_s[s] = line_through(1, busy_s(a, 1), busy_s(b, 1));
		out->host_s[s] = line_through(1, run[0].host_s / SHORT_MICRO_BATCHES,
			run[1].host_s / SHORT_MICRO_BATCHES);
		out->static_B[s] = line_through(1, run[0].static_B[s], run[1].static_B[s]);
		out->gradients_B[s] = line_through(1, run[0].gradients_B[s], run[1].gradients_B[s]);
		out->optimizer_B[s] = line_through(1, run[0].optimizer_B[s], run[1].optimizer_B[s]);
	}
	return st;
}

/* Measures the memory that a third micro-batch adds to two, all in flight at once. */
static enum status measure_kept(const struct config *c, const struct machine *m, struct block_pieces *out,
	struct config *reduced, struct short_run run[2], struct error *e)
{
	enum status st = ST_OK;
	double kept_B[END_COUNT][STEADY_LAYERS + 1];
	for (int n = 0; n <= STEADY_LAYERS && !st; n++) {
		for (int i = 0; i < 2 && !st; i++) {
			pieces_block_config(c, n + 1, 2 + i, reduced);
			st = run_short(reduced, m, false, &run[i], e);
		}
		for (int s = 0; s < END_COUNT && !st; s++)
			kept_B[s][n] = run[1].peak_B[s] - run[0].peak_B[s];
	}
	for (int s = 0; s < END_COUNT && !st; s++) {
		out->kept_of_one_layer_B[s] = kept_B[s][0];
		out->kept_B[s] = line_through(STEADY_LAYERS, kept_B[s][STEADY_LAYERS - 1], kept_B[s][STEADY_LAYERS]);
	}
	return st;
}

enum status pieces_measure_block(const struct config *c, const struct machine *m, struct block_pieces *out,
	struct error *e)
{
	struct config *reduced = malloc(sizeof *reduced);
	struct short_run *run = malloc(4 * sizeof *run);
	*out = (struct block_pieces){.linear = true};
	enum status st = reduced && run ? measure_times(c, m, out, reduced, run, e) : error_nomem(e, "pieces");
	if (!st)
		st = measure_kept(c, m, out, reduced, run, e);
	free(reduced);
	free(run);
	return st;
}

static double kept_of_B(const struct block_pieces *b, int end, int64_t layers)
{
	return layers == 1 ? b->kept_of_one_layer_B[end] : line_at(b->kept_B[end], layers);
}

double pieces_in_flight_B(const struct config *c, const struct block_pieces *b)
{
	return kept_of_B(b, END_FIRST, c->model.layers / c->parallel.pipeline / c->parallel.virtual_stages);
}

double pieces_peak_kept_B(const struct config *c, const struct block_pieces *b, int end, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t steady = 3 * p->pipeline,
		      micro_batches = !schedule_traits[p->schedule].all_in_flight && c->micro_batches > steady
	                                      ? steady
	                                      : c->micro_batches;
	const struct schedule_shape s = {p->schedule, p->pipeline, p->virtual_stages, micro_batches};
	const int64_t layers = c->model.layers / p->pipeline / p->virtual_stages,
		      special = end == END_FIRST ? 0 : p->virtual_stages - 1;
	const enum action_kind frees = schedule_splits_backward(p->schedule) ? ACTION_WEIGHTS : ACTION_BACKWARD;
	action_list list = {0};
	double now_B = 0, most_B = 0;
	if (schedule_actions(&s, end == END_FIRST ? 0 : p->pipeline - 1, &list, e))
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		const struct action *a = &list.at[i];
		const int of =
			a->chunk == special
				? end
				: END_FIRST; /* what a part between keeps comes to the first one from the embedding */
		double kept_B = kept_of_B(b, of, layers);
		now_B += a->kind == ACTION_FORWARD ? kept_B : a->kind == frees ? -kept_B : 0;
		most_B = now_B > most_B ? now_B : most_B;
	}
	vec_free(&list);
	return most_B;
}

enum status pieces_measure_memory(const struct config *c, const struct block_pieces *block, struct memory_pieces *out,
	struct error *e)
{
	struct config *reduced = malloc(sizeof *reduced);
	struct short_run *run = malloc(sizeof *run);
	enum status st = reduced && run ? ST_OK : error_nomem(e, "pieces");
	if (!st) {
		pieces_memory_config(c, reduced);
		st = run_short(reduced, NULL, false, run, e);
	}
	for (int s = 0; s < END_COUNT && !st; s++) {
		double kept_B = pieces_peak_kept_B(reduced, block, s, e);
		out->passing_B[s] = run->peak_B[s] - kept_B - run->static_B[s];
		if (s == END_FIRST)
			out->in_flight = kept_B / pieces_in_flight_B(reduced, block);
		st = kept_B < 0 ? e->status : ST_OK;
	}
	free(reduced);
	free(run);
	return st;
}

/* Returns the end time of the backward pass, weight gradients included. */
static double backward_end_s(const struct stage_times *s)
{
	int64_t to_ps = s->action[ACTION_BACKWARD][0].to_ps, weights_ps = s->action[ACTION_WEIGHTS][0].to_ps;
	return (double)(weights_ps > to_ps ? weights_ps : to_ps) * S_PER_PS;
}

static double backward_lasts_s(const struct stage_times *s)
{
	return backward_end_s(s) - (double)s->action[ACTION_BACKWARD][0].from_ps * S_PER_PS;
}

enum status pieces_measure_data(const struct config *c, const struct machine *m, const struct block_pieces *block,
	struct data_pieces *out, struct error *e)
{
	struct config *reduced = malloc(sizeof *reduced);
	struct short_run *run = malloc(2 * sizeof *run);
	enum status st = reduced && run ? ST_OK : error_nomem(e, "pieces");
	*out = (struct data_pieces){0};
	for (int i = 0; i < 2 && !st; i++) {
		pieces_data_config(c, STEADY_LAYERS + i, reduced);
		st = run_short(reduced, m, true, &run[i], e);
	}
	out->message_s = st ? 0 : (double)run[0].stage[END_FIRST].message_ps * S_PER_PS;
	for (int s = 0; s < END_COUNT && !st; s++) {
		double v[2][5];
		for (int i = 0; i < 2; i++) {
			const struct stage_times *x = &run[i].stage[s];
			double end_s = backward_end_s(x),
			       optimizer_s = (double)(x->optimizer_from_ps < 0 ? x->to_ps : x->optimizer_from_ps) *
			                     S_PER_PS;
			v[i][0] = s == END_FIRST ? (double)x->action[ACTION_FORWARD][0].to_ps * S_PER_PS -
			                                   line_at(block->begin_s[s][ACTION_FORWARD], STEADY_LAYERS + i)
			                         : 0;
			v[i][1] = backward_lasts_s(x) - line_at(block->begin_s[s][ACTION_BACKWARD], STEADY_LAYERS + i) -
			          line_at(block->begin_s[s][ACTION_WEIGHTS], STEADY_LAYERS + i);
			v[i][2] = (double)x->comm_ps * S_PER_PS;
			v[i][3] = optimizer_s - end_s;
			v[i][4] = (double)x->to_ps * S_PER_PS - optimizer_s;
		}
		out->gathered_s[s] = line_through(STEADY_LAYERS, fmax(0, v[0][0]), fmax(0, v[1][0]));
		out->slowed_s[s] = line_through(STEADY_LAYERS, v[0][1], v[1][1]);
		out->comm_s[s] = line_through(STEADY_LAYERS, v[0][2], v[1][2]);
		out->reduce_s[s] = line_through(STEADY_LAYERS, v[0][3], v[1][3]);
		out->optimize_s[s] = line_through(STEADY_LAYERS, v[0][4], v[1][4]);
		out->least_B[s] = line_through(STEADY_LAYERS, run[0].peak_B[s], run[1].peak_B[s]);
	}
	free(reduced);
	free(run);
	return st;
}
