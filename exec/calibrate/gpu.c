/* Timing ops on the session's GPUs, through the device that a run uses: a role of R copies of an op, replayed as a
 * graph so that the host's launching shows in no time but in one of its own.
 *
 * Copies work on the same buffers one after the other: small ones stay in the L2 cache, as what a step has just written
 * does. Large products are heated before (CALIBRATION_HEAT_S). Products read normal random numbers (device clear),
 * zeros would cost less power and run up to 14 % faster; kernels that are bound by memory work on whatever their
 * earlier copies left.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "exec/calibrate/calibrate.h"
#include "exec/gpus.h"
#include "exec/calibrate/probe.h"

#define ROW_S 1.5e-3 /* of copies of one op between two stamps, at least */
#define COPIES_MAX 128
#define COPIES_UNKNOWN 16 /* of an op of which nothing is known yet */
#define REPEATS 5
#define WARM_UPS 2     /* libraries load lazily in the first step; the second one is captured */
#define TRIALS 48      /* of a product, when its algorithm is chosen (exec/cuda/gemm_tune.c) */
#define CASE_S 0.4     /* a case that would take longer is left out */
#define DOUBLES_S 1.5  /* a section on doubles, whose times nobody keeps; their cases run once a step */
#define FAILURES_MAX 3 /* one after the other: then it is no single shape that this GPU's libraries refuse */
#define SMALL_B 1024.0 /* an op of less says nothing about a larger one's time */
#define LAUNCHES 1000
#define ISSUES 200 /* of an op of each kind */
#define ISSUE_MOST_S 2e-5
#define COPY_B ((uint64_t)64 << 20)
#define COPY_DOUBLES_B ((uint64_t)1 << 20)
#define COPIES 4

static const double section_s[] = {18, 30, 13,
	6}; /* memory's largest cases, which give its rate, come last: their section has time to spare */

struct section {
	struct session *s;
	calibration_cases *cases;
	size_t first, end;       /* its cases */
	size_t left_out, failed; /* failed: the last ones in a row */
	double until_s;          /* clock_s() on rank 0 */
	double begin, share;     /* of the progress line */
};

static double bytes_of(const struct op *op) { return op_read_B(op) + op_write_B(op); }

/* ---- one case ---- */

static enum status fill_ids(const struct probe *probe, const struct op *op, const int32_t *args, struct error *e)
{
	int a = calibration_id_argument((enum op_kind)op->kind);
	if (a < 0 || args[a] < 0)
		return ST_OK;
	int32_t *ids = malloc((size_t)op->matrix.rows * sizeof *ids);
	if (!ids)
		return error_nomem(e, "ids");
	calibration_ids(op, ids);
	probe->device.ops->write(probe->device.ctx, args[a], 0, ids, (uint64_t)op->matrix.rows * sizeof *ids);
	free(ids);
	return ST_OK;
}

/* One step: from the first op's begin to the last one's end, an op. */
static enum status step_row(struct probe *probe, double *op_s, struct error *e)
{
	size_t n = probe->role.ops.n;
	enum status st = probe_step(probe, true, e);
	if (!st)
		*op_s = (double)(probe->stamps[n - 1].end_ns - probe->stamps[0].begin_ns) * 1e-9 / (double)n;
	watchdog_progress(probe->session->watchdog);
	return st;
}

static enum status warm_up(struct probe *probe, double *op_s, struct error *e)
{
	enum status st = ST_OK;
	for (int i = 0; i < WARM_UPS && !st; i++)
		st = step_row(probe, op_s, e);
	return st;
}

/* The median of some steps. */
static enum status time_row(struct probe *probe, double *op_s, struct error *e)
{
	double t[REPEATS];
	enum status st = ST_OK;
	for (int i = 0; i < REPEATS && !st; i++)
		st = step_row(probe, &t[i], e);
	if (!st)
		*op_s = fmax(stats_median(t, REPEATS), 1e-9);
	return st;
}

/* The ranks' fastest step decides how often they run it, as all have to run it as often: each is then busy for heat_s
 * at least. `op_s`: of a step of this rank. */
static enum status heat_up(struct probe *probe, double heat_s, double op_s, struct error *e)
{
	double steps = ceil(heat_s / (fmax(op_s, 1e-9) * (double)probe->role.ops.n));
	enum status st = session_max(probe->session, &steps, 1, e);
	for (double i = 0; i < steps && !st; i++)
		st = step_row(probe, &op_s, e);
	return st;
}

/* The clocks of the slowest rank. No clock where one rank's is not known. */
static enum status agree_clocks(struct session *s, const struct gpu_samples *mine, struct clocks_found *out,
	struct error *e)
{
	const double n = (double)(mine->n > 0 ? mine->n : 1);
	double x[] = {mine->n > 0 ? -mine->clock_Hz : 0, mine->power_W, (double)mine->reason[GPU_REASON_POWER_CAP] / n};
	enum status st = session_max(s, x, COUNT(x), e);
	if (!st && x[0] < 0)
		*out = (struct clocks_found){-x[0], x[1], x[2]};
	return st;
}

/* Products are heated where they are large, and their clocks are read meanwhile. */
static enum status time_product(struct probe *probe, struct calibration_case *c, struct error *e)
{
	struct session *s = probe->session;
	struct gpu_samples mine;
	const double heat_s = op_flop(&c->op) < CALIBRATION_LARGE_FLOP ? 0 : CALIBRATION_HEAT_S;
	enum status st = warm_up(probe, &c->time_s, e);
	if ((st = session_agree(s, st, e)) || (heat_s > 0 && (st = heat_up(probe, heat_s, c->time_s, e))))
		return st;
	gpus_sample_begin(s);
	st = time_row(probe, &c->time_s, e);
	gpus_sample_end(s, &mine);
	if ((st = session_agree(s, st, e)))
		return st;
	c->heat_s = heat_s;
	return agree_clocks(s, &mine, &c->found, e);
}

static enum status time_others(struct probe *probe, double *op_s, struct error *e)
{
	enum status st = warm_up(probe, op_s, e);
	return st ? st : time_row(probe, op_s, e);
}

/* load_s: what the device's own preparations took, before anything was timed. */
static enum status time_case(struct session *s, struct calibration_case *c, int copies, double *load_s, struct error *e)
{
	struct probe probe = {.session = s, .graph = true, .span = true};
	int32_t args[OP_MAX_ARGS];
	c->op.lane = LANE_COMPUTE;
	bool ok = probe_arguments(&probe, &c->op, c->absent, args);
	for (int i = 0; i < copies && ok; i++)
		ok = probe_op(&probe, &c->op, args);
	const double begin_s = clock_s();
	enum status st = probe_load(&probe, 1, 1, ok, e);
	*load_s = clock_s() - begin_s;
	if (!st)
		st = fill_ids(&probe, &c->op, args, e);
	st = session_agree(s, st, e);
	if (!st)
		st = session_agree(s,
			c->op.kind == OP_GEMM ? time_product(&probe, c, e) : time_others(&probe, &c->time_s, e), e);
	probe_close(&probe);
	return st ? error_context(e, "timing %s", c->work.name) : ST_OK;
}

/* ---- which cases, and how many copies ---- */

static uint64_t arguments_B(const struct calibration_case *c)
{
	uint64_t sum = 0;
	for (int a = 0; a < op_kind_info((enum op_kind)c->op.kind)->n_args; a++)
		sum += c->absent & (1u << a) ? 0 : op_arg_bytes(&c->op, a, 1);
	return sum;
}

/* From the largest case so far of the same name, else of the same kind: as many times longer as it has more work. 0:
 * nothing is known. Cases come in ascending order, or the largest soon (grid_gpu.c): what is foretold is seldom much
 * larger. */
static double estimate_s(const calibration_cases *cases, size_t index)
{
	const struct calibration_case *c = &cases->at[index], *like = NULL;
	for (size_t i = 0; i < index; i++) {
		const struct calibration_case *k = &cases->at[i];
		if (k->time_s <= 0 || k->op.kind != c->op.kind || bytes_of(&k->op) < SMALL_B)
			continue;
		if (!like || strcmp(like->work.name, c->work.name) != 0 || strcmp(k->work.name, c->work.name) == 0)
			like = k;
	}
	if (!like)
		return 0;
	double more = fmax(bytes_of(&c->op) / bytes_of(&like->op),
		op_flop(&like->op) > 0 ? op_flop(&c->op) / op_flop(&like->op) : 0);
	return like->time_s * fmax(1, more);
}

static bool is_flash(const struct op *op) { return op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD; }

/* 0: left out. */
static int copies_of(const struct section *x, size_t index)
{
	const struct calibration_case *c = &x->cases->at[index];
	double about_s = estimate_s(x->cases, index);
	int copies = x->s->info.gpu_doubles ? 1
	             : about_s > 0          ? (int)fmin(COPIES_MAX, ceil(ROW_S / about_s))
	                                    : COPIES_UNKNOWN;
	enum op_class class = op_class_of(&c->op);
	const bool naive_product = class == CLASS_ATTENTION && c->work.form == FORM_FIT && !is_flash(&c->op);
	int trials = class == CLASS_GEMM || naive_product ? TRIALS : 0;
	bool late = clock_s() > x->until_s || about_s * (copies * (WARM_UPS + REPEATS) + trials) > CASE_S;
	return late || arguments_B(c) > x->s->gpus->gpu.free_B / 2 ? 0 : copies;
}

/* A case that cannot be timed is no reason to lose all others: it is told and left out, until several fail in a row.
 * Ranks agree on it. */
static enum status left_out(struct section *x, struct calibration_case *c, enum status st, struct error *e)
{
	x->failed = st ? x->failed + 1 : 0;
	if (!st || x->failed == FAILURES_MAX)
		return st;
	if (session_info(x->s)->rank == 0)
		log_warn("calibration leaves out one op: %s", e->text);
	c->time_s = 0;
	x->left_out++;
	e->status = ST_OK;
	return ST_OK;
}

/* Rank 0 decides for all. A plan of cuDNN's is built in about 0.4 s, many times what it is timed for: that is not taken
 * from the section's time. */
static enum status time_section(struct section *x, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = x->first; i < x->end && !st; i++) {
		struct calibration_case *c = &x->cases->at[i];
		int copies = copies_of(x, i);
		if ((st = session_broadcast(x->s, &copies, sizeof copies, e)))
			break;
		double load_s = 0;
		if (copies > 0)
			st = left_out(x, c, time_case(x->s, c, copies, &load_s, e), e);
		else
			x->left_out++;
		if (is_flash(&c->op))
			x->until_s += load_s;
		progress_update(x->begin + x->share * (double)(i - x->first) / (double)(x->end - x->first),
			c->work.name);
	}
	return st;
}

/* The cases' times of the slowest rank; 0 on one is 0 on all. */
static enum status agree_times(struct session *s, calibration_cases *cases, struct error *e)
{
	double *t = malloc((cases->n + 1) * sizeof *t);
	enum status st = session_agree(s, t ? ST_OK : error_nomem(e, "calibration's times"), e);
	for (size_t i = 0; i < cases->n && !st; i++)
		t[i] = cases->at[i].time_s;
	if (!st)
		st = session_max(s, t, cases->n, e);
	for (size_t i = 0; i < cases->n && !st; i++)
		cases->at[i].time_s = t[i];
	free(t);
	return st;
}

static enum status time_cases(struct session *s, calibration_cases *cases, double begin, double end, struct error *e)
{
	enum status st = ST_OK;
	for (size_t first = 0, last; first < cases->n && !st; first = last) {
		for (last = first; last < cases->n && cases->at[last].section == cases->at[first].section;)
			last++;
		const double budget_s = s->info.gpu_doubles ? DOUBLES_S : section_s[cases->at[first].section],
			     begin_s = clock_s(), part = (end - begin) / (double)cases->n;
		struct section x = {.s = s,
			.cases = cases,
			.first = first,
			.end = last,
			.until_s = begin_s + budget_s,
			.begin = begin + part * (double)first,
			.share = part * (double)(last - first)};
		st = time_section(&x, e);
		log_detail("GPU section %d: %zu of %zu cases, %.1f s", cases->at[first].section + 1,
			last - first - x.left_out, last - first, clock_s() - begin_s);
	}
	return st ? st : agree_times(s, cases, e);
}

/* ---- launches and copies ---- */

/* Host time an op as a run issues it: a long row of ops that are over before the next one is issued, from the first
 * one's begin on the GPU to the last one's end. An op that takes the GPU longer shows its time there. */
static enum status time_issue(struct session *s, const struct op *op, unsigned absent, int copies, double *issue_s,
	struct error *e)
{
	struct probe probe = {.session = s, .span = true};
	int32_t args[OP_MAX_ARGS];
	bool ok = probe_arguments(&probe, op, absent, args);
	for (int i = 0; i < copies && ok; i++)
		ok = probe_op(&probe, op, args);
	enum status st = probe_load(&probe, 1, 1, ok, e);
	if (!st)
		st = fill_ids(&probe, op, args, e);
	st = session_agree(s, st, e);
	if (!st)
		st = session_agree(s, time_others(&probe, issue_s, e), e);
	probe_close(&probe);
	return st;
}

static enum status time_launches(struct session *s, double *launch_s, struct error *e)
{
	const struct op op = {.kind = OP_ADD,
		.lane = LANE_COMPUTE,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.matrix = {1, 8}};
	return time_issue(s, &op, 1u << 2, LAUNCHES, launch_s, e);
}

/* Returns the smallest case of a kind that was timed, and never attention in fp32, which has kernels of its own; NULL:
 * there is none. */
static const struct calibration_case *smallest_of(const calibration_cases *cases, enum op_kind kind)
{
	const struct calibration_case *least = NULL;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->op.kind == kind && c->time_s > 0 && !(is_flash(&c->op) && c->op.dtype == DT_FP32) &&
			(!least || c->time_s < least->time_s))
			least = c;
	}
	return least;
}

/* What the host takes to issue an op of each kind: a kind may have several kernels, and a library's call comes before
 * some of them. Kinds whose smallest case keeps the GPU busy for longer are left out, as nothing is learnt of them.
 * The slowest rank's. */
static enum status time_issues(struct session *s, const calibration_cases *cases, struct profile *p, struct error *e)
{
	const int copies = s->info.gpu_doubles ? 1 : ISSUES;
	enum status st = ST_OK;
	for (int k = 0; k < OP_KIND_COUNT && !st; k++) {
		const struct calibration_case *c = smallest_of(cases, (enum op_kind)k);
		double issue_s = 0;
		char name[PROFILE_NAME];
		if (!c || c->time_s > ISSUE_MOST_S)
			continue;
		struct op op = c->op;
		op.lane = LANE_COMPUTE;
		if ((st = time_issue(s, &op, c->absent, copies, &issue_s, e)) || (st = session_max(s, &issue_s, 1, e)))
			return error_context(e, "timing launches of %s", c->work.name);
		snprintf(name, sizeof name, PROFILE_ISSUE "%s", op_kind_info((enum op_kind)k)->name);
		st = p ? profile_set_value(p, name, issue_s, e) : ST_OK;
	}
	return st;
}

static enum status time_copies(struct session *s, bool to_host, double *rate_Bps, struct error *e)
{
	struct probe probe = {.session = s};
	const uint64_t bytes = s->info.gpu_doubles ? COPY_DOUBLES_B : COPY_B;
	const struct op op = {.kind = OP_COPY,
		.lane = LANE_COPY,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.copy = {(int64_t)bytes}};
	const int32_t args[OP_MAX_ARGS] = {0, 1};
	double op_s = 1;
	bool ok = probe_buffer(&probe, to_host ? COMP_BUFFERS : COMP_HOST, DT_FP32, bytes) &&
	          probe_buffer(&probe, to_host ? COMP_HOST : COMP_BUFFERS, DT_FP32, bytes);
	for (int i = 0; i < COPIES && ok; i++)
		ok = probe_op(&probe, &op, args);
	enum status st = probe_load(&probe, 1, 1, ok, e);
	if (!st)
		st = session_agree(s, time_others(&probe, &op_s, e), e);
	*rate_Bps = (double)bytes / op_s;
	probe_close(&probe);
	return st;
}

/* The worst rank's: times as they are, rates by their inverse. */
static enum status small_things(struct session *s, struct profile *p, struct error *e)
{
	static const char *const names[] = {PROFILE_LAUNCH_S, PROFILE_COPY_H2D_BPS, PROFILE_COPY_D2H_BPS};
	double x[3];
	enum status st;
	if ((st = time_launches(s, &x[0], e)) || (st = time_copies(s, false, &x[1], e)) ||
		(st = time_copies(s, true, &x[2], e)))
		return st;
	for (int i = 1; i < 3; i++)
		x[i] = 1 / x[i];
	if ((st = session_max(s, x, 3, e)) || !p)
		return st;
	for (int i = 0; i < 3 && !st; i++)
		st = profile_set_value(p, names[i], i ? 1 / x[i] : x[i], e);
	return st ? st : profile_set_value(p, PROFILE_SMS, s->gpus->gpu.sms, e);
}

/* The lowest of the ranks'; nothing where one is not known. */
static enum status note_power_limit(struct session *s, struct profile *p, struct error *e)
{
	struct gpu_samples mine;
	gpus_sample_begin(s);
	gpus_sample_end(s, &mine);
	double limit_W = -mine.power_limit_W;
	enum status st = session_max(s, &limit_W, 1, e);
	if (!st && p && !(limit_W < 0) && !s->info.gpu_doubles)
		log_note("NVML does not say clocks and power of the GPUs: the profile has none of them");
	return !st && p && limit_W < 0 ? profile_set_value(p, PROFILE_POWER_LIMIT_W, -limit_W, e) : st;
}

enum status calibrate_gpu(struct session *s, calibration_cases *cases, struct profile *p, double begin, double end,
	struct error *e)
{
	enum status st = session_agree(s, small_things(s, p, e), e);
	st = st ? st : session_agree(s, note_power_limit(s, p, e), e);
	if (s->info.gpu_doubles) /* for which the large ones are too much */
		calibration_small_first(cases);
	st = st ? st : session_agree(s, time_cases(s, cases, begin, end, e), e);
	return st ? st : session_agree(s, time_issues(s, cases, p, e), e);
}
