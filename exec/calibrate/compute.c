/* Timing the kernels of the host device on hand-made arguments.
 *
 * What a step finds in cache decides much of an op's time, so arguments come from where a step has them: what an op
 * shortly before has written lies in one place and is written anew before each time is taken; all else (weights, saved
 * activations, gradients, optimizer state, results) walks through regions larger than the last-level cache, so that it
 * comes from memory. Most ops come after a GEMM, and those of backward after the GEMM of a weight's gradient, which
 * used the same input or none of it: by then the input has left the first caches, which other memory goes through here
 * as well.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "exec/calibrate/calibrate.h"
#include "exec/host/device.h"
#include "exec/host/kernels.h"
#include "exec/session.h"

#define PASSES \
	5 /* over the whole grid: a slow period of the machine then spoils one time of many cases, not all times of \
	     one */
#define TIMES_MAX 8 /* taken of one case in one pass */
#define PASS_S 6e-3 /* spent on one case in one pass, where that allows more than one time */
#define CASE_LIMIT_S \
	0.1 /* a case that takes longer is timed once: a slow or overloaded machine needs its time for the others */
#define SECTION_S 11.0 /* of a busy machine fewer times are taken */
#define LINE 64
#define BETWEEN_B ((uint64_t)4 << 20) /* what a GEMM between moves, about; at least the second-level caches */
#define REGION_MIN_B ((uint64_t)48 << 20)
#define REGION_MAX_B ((uint64_t)256 << 20)

enum region { REGION_READ, REGION_WRITE, REGION_UPDATE, REGION_HOT, REGION_COUNT };

struct bench {
	struct session *s;
	struct host_env env;
	char *memory;
	uint64_t region_B, scratch_B, between_B;
	uint64_t next_B[REGION_COUNT]; /* where the next argument lies in its region */
	double until_s;                /* clock_s() at which the section ends */
	double begin, share; /* of the progress line: where it begins, and what one of PASSES + 1 rounds has of it */
	enum status st;      /* this rank's first failure: it goes on taking part, and all ranks agree at the end */
	struct error *e;
};

/* ---- memory ---- */

static enum status bench_open(struct bench *b, const calibration_cases *cases)
{
	struct host_facts host;
	enum status st = host_facts_read(&host, b->e);
	if (st)
		return st;
	const struct session_info *info = session_info(b->s);
	uint64_t wanted = 3 * host.l3_B,
		 most = host.mem_available_B / (uint64_t)info->ranks_per_host / 2 / REGION_COUNT;
	wanted = wanted < REGION_MIN_B ? REGION_MIN_B : wanted > REGION_MAX_B ? REGION_MAX_B : wanted;
	b->between_B = (uint64_t)info->cores_per_rank * host.l2_B > BETWEEN_B
	                       ? (uint64_t)info->cores_per_rank * host.l2_B
	                       : BETWEEN_B;
	b->region_B = (wanted < most ? wanted : most) / LINE * LINE;
	for (size_t i = 0; i < cases->n; i++) {
		size_t need = host_kernel_scratch_B(&cases->at[i].op, (int)info->cores_per_rank);
		b->scratch_B = need > b->scratch_B ? need : b->scratch_B;
	}
	b->memory = host_memory_map(REGION_COUNT * b->region_B);
	b->env.scratch = host_memory_map(b->scratch_B);
	b->env.scratch_B = b->scratch_B;
	b->env.heads = 1;
	b->env.loss_scale = 1;
	b->env.step = 1;
	if (!b->memory || (b->scratch_B && !b->env.scratch))
		return error_nomem(b->e, "calibration");
	if (info->cores_per_rank > 1 && (st = pool_create((int)info->cores_per_rank, &b->env.pool, b->e)))
		return st;
	float *x = (float *)(void *)b->memory;
	for (uint64_t i = 0; i < REGION_COUNT * b->region_B / sizeof *x; i++)
		x[i] = (float)(i % 1021) / 1021.0f - 0.49f; /* no zero and no denormal */
	return ST_OK;
}

static void bench_close(struct bench *b)
{
	pool_destroy(b->env.pool);
	host_memory_unmap(b->memory, REGION_COUNT * b->region_B);
	host_memory_unmap(b->env.scratch, b->scratch_B);
}

/* The place of an argument: the next one in its region, from the beginning again at the end. */
static void *place(struct bench *b, enum region r, uint64_t bytes)
{
	uint64_t size = (bytes + LINE - 1) / LINE * LINE;
	if (b->next_B[r] + size > b->region_B)
		b->next_B[r] = 0;
	void *at = b->memory + (uint64_t)r * b->region_B + b->next_B[r];
	b->next_B[r] += size;
	return at;
}

int calibration_id_argument(enum op_kind k)
{
	return k == OP_EMBED || k == OP_EMBED_GRAD ? 0 : k == OP_LOSS || k == OP_LOSS_SUM || k == OP_LOSS_GRAD ? 1 : -1;
}

/* By a multiplicative hash. */
void calibration_ids(const struct op *op, int32_t *ids)
{
	const int64_t limit = op->kind == OP_EMBED || op->kind == OP_EMBED_GRAD ? op->embed.table_rows
	                                                                        : op->matrix.cols;
	for (int64_t i = 0; i < op->matrix.rows; i++)
		ids[i] = (int32_t)(((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 33) % (uint64_t)limit);
}

static enum region region_of(const struct calibration_case *c, int arg)
{
	if ((c->hot & (1u << arg)) || arg == calibration_id_argument(c->op.kind))
		return REGION_HOT;
	enum access a = op_access(&c->op, arg);
	return a == ACC_R ? REGION_READ : a == ACC_W ? REGION_WRITE : REGION_UPDATE;
}

static void arguments(struct bench *b, const struct calibration_case *c, void *arg[OP_MAX_ARGS])
{
	b->next_B[REGION_HOT] = 0;
	for (int i = 0; i < op_kind_info(c->op.kind)->n_args; i++) {
		bool absent = c->absent & (1u << i);
		arg[i] = absent ? NULL : place(b, region_of(c, i), op_arg_bytes(&c->op, i, 1));
		if (!absent && i == calibration_id_argument(c->op.kind))
			calibration_ids(&c->op, arg[i]);
	}
}

/* Bytes that all threads go through, cut as ops cut rows: copied from `from`, or only read. */
struct sweep {
	char *at;
	const char *from;
	uint64_t bytes;
	int64_t parts;
};

static void sweep_part(void *ctx, int64_t task, int thread)
{
	(void)thread;
	const struct sweep *w = ctx;
	uint64_t begin = w->bytes * (uint64_t)task / (uint64_t)w->parts,
		 end = w->bytes * (uint64_t)(task + 1) / (uint64_t)w->parts;
	if (w->from)
		memcpy(w->at + begin, w->from + begin, end - begin);
	else
		for (uint64_t i = begin; i < end; i += LINE)
			(void)*(volatile const char *)(w->at + i);
}

static void sweep(struct bench *b, void *at, const void *from, uint64_t bytes)
{
	struct sweep w = {at, from, bytes, pool_threads(b->env.pool)};
	pool_run(b->env.pool, sweep_part, &w, w.parts);
}

/* The hot arguments get new values, so that ops in place do not work on their own results for ever; then comes what
 * lies between their writer and this op. */
static void prepare(struct bench *b, const struct calibration_case *c, void *const arg[])
{
	for (int i = 0; i < op_kind_info(c->op.kind)->n_args; i++)
		if ((c->hot & (1u << i)) && arg[i])
			sweep(b, arg[i], b->memory + (uint64_t)REGION_READ * b->region_B, op_arg_bytes(&c->op, i, 1));
	if (c->hot && c->op.kind != OP_GEMM)
		sweep(b, place(b, REGION_READ, b->between_B), NULL, b->between_B);
}

/* Every argument fits its region; the largest cases are left out where memory is scarce. */
static bool fits(const struct bench *b, const struct calibration_case *c)
{
	uint64_t hot_B = 0;
	if (b->between_B > b->region_B)
		return false;
	for (int i = 0; i < op_kind_info(c->op.kind)->n_args; i++) {
		uint64_t bytes = op_arg_bytes(&c->op, i, 1) + LINE;
		hot_B += region_of(c, i) == REGION_HOT ? bytes : 0;
		if (bytes > b->region_B)
			return false;
	}
	return hot_B <= b->region_B;
}

/* ---- times ---- */

static double take(struct bench *b, const struct calibration_case *c)
{
	void *arg[OP_MAX_ARGS] = {NULL};
	arguments(b, c, arg);
	prepare(b, c, arg);
	double begin_s = clock_s();
	if (!b->st)
		b->st = host_kernel_run(&b->env, &c->op, arg, b->e);
	return clock_s() - begin_s;
}

/* All ranks together; *late: rank 0's clock is past the section's end. */
static enum status together(struct bench *b, bool *late, struct error *e)
{
	double past = session_info(b->s)->rank == 0 && clock_s() > b->until_s ? 1 : 0;
	enum status st = session_sum(b->s, &past, 1, e);
	*late = past > 0;
	watchdog_progress(b->s->watchdog);
	return st;
}

/* Right after `together`: every rank takes the same number of times, so that none runs alone at the end for long. */
static double time_case(struct bench *b, const struct calibration_case *c, int times)
{
	double t[TIMES_MAX];
	for (int i = 0; i < times; i++)
		t[i] = take(b, c);
	/* Ranks that share cores are paused in the middle of an op now and then: the mean has that, the median has not.
	 */
	return session_info(b->s)->oversubscribed ? stats_mean(t, (size_t)times) : stats_median(t, (size_t)times);
}

static bool name_is_timed(const calibration_cases *cases, const double *about_s, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (about_s[i] > 0 && strcmp(cases->at[i].work.name, cases->at[index].work.name) == 0)
			return true;
	return false;
}

/* Times each case once, as warm-up and estimate: about_s is the slowest rank's, 0 where a case was not timed. Once the
 * time is up it times only the first case of each name that has none. So every name has a time, however slow the
 * machine. */
static enum status probe(struct bench *b, const calibration_cases *cases, double *about_s, struct error *e)
{
	enum status st = ST_OK;
	bool late = false;
	for (size_t i = 0; i < cases->n && !st; i++) {
		st = together(b, &late, e);
		if (!st && fits(b, &cases->at[i]) && !(late && name_is_timed(cases, about_s, i)))
			about_s[i] = time_case(b, &cases->at[i], 1);
		progress_update(b->begin + b->share * (double)i / (double)cases->n, cases->at[i].work.name);
	}
	return st ? st : session_max(b->s, about_s, cases->n, e);
}

static int times_of(double about_s)
{
	int n = (int)(PASS_S / about_s);
	return n < 1 ? 1 : n > TIMES_MAX ? TIMES_MAX : n;
}

/* The passes that the time allows; found_s: by pass, then by case, 0 where there is none. */
static enum status passes(struct bench *b, const calibration_cases *cases, const double *about_s, double *found_s,
	struct error *e)
{
	enum status st = ST_OK;
	bool late = false;
	int k = 0;
	for (; k < PASSES && !late && !st; k++)
		for (size_t i = 0; i < cases->n && !st && !late; i++) {
			if (about_s[i] <= 0 || about_s[i] > CASE_LIMIT_S)
				continue;
			st = together(b, &late, e);
			if (!st && !late)
				found_s[(size_t)k * cases->n + i] = time_case(b, &cases->at[i], times_of(about_s[i]));
			progress_update(b->begin + b->share * (1 + k + (double)i / (double)cases->n),
				cases->at[i].work.name);
		}
	log_detail("kernels: %d of %d passes, %.1f s to spare", late ? k - 1 : k, PASSES, b->until_s - clock_s());
	return st;
}

static enum status measure(struct bench *b, calibration_cases *cases, double *about_s, double *found_s, struct error *e)
{
	b->until_s = clock_s() + SECTION_S;
	enum status st = probe(b, cases, about_s, e);
	st = st ? st : passes(b, cases, about_s, found_s, e);
	for (size_t i = 0; i < cases->n && !st; i++) {
		double of_pass[PASSES];
		size_t n = 0;
		for (size_t k = 0; k < PASSES; k++)
			if (found_s[k * cases->n + i] > 0)
				of_pass[n++] = found_s[k * cases->n + i];
		if (n)
			about_s[i] = stats_percentile(of_pass, n, CALIBRATION_PERCENTILE);
	}
	st = st ? st : session_max(b->s, about_s, cases->n, e);
	for (size_t i = 0; i < cases->n && !st; i++)
		cases->at[i].time_s = about_s[i];
	return st;
}

enum status calibrate_compute(struct session *s, calibration_cases *cases, double begin, double end, struct error *e)
{
	struct error mine = {ST_OK, ""};
	struct bench b = {.s = s, .e = &mine, .begin = begin, .share = (end - begin) / (PASSES + 1)};
	double *about_s = calloc(cases->n, sizeof *about_s), *found_s = calloc(cases->n * PASSES, sizeof *found_s);
	enum status st = about_s && found_s ? bench_open(&b, cases) : error_nomem(&mine, "calibration's times");
	st = session_agree(s, st, &mine);
	if (!st)
		st = measure(&b, cases, about_s, found_s, e);
	if (!st)
		st = session_agree(s, b.st, &mine);
	if (mine.status)
		error_set(e, mine.status, "%s", mine.text);
	bench_close(&b);
	free(about_s);
	free(found_s);
	return st;
}
