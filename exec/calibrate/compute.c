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
#include "exec/cpu_steal.h"
#include "exec/host/device.h"
#include "exec/host/kernels.h"
#include "exec/session.h"

#define PASSES \
	5 /* over the whole grid: a slow period of the machine then spoils one time of many cases, not all times of \
	     one */
#define ENOUGH 2  /* passes */
#define REPEATS 5 /* passes more, over what others disturbed */
#define ROUNDS (1 + PASSES + REPEATS)
#define TIMES_MAX 8 /* taken of one case in one pass */
#define PASS_S 6e-3 /* spent on one case in one pass, where that allows more than one time */
#define CASE_LIMIT_S \
	0.1 /* a case that takes longer is timed once: a slow or overloaded machine needs its time for the others */
#define SECTION_S 11.0 /* of a busy machine fewer times are taken; a rank with a share of a core has so much longer */
#define REPEATS_S 11.0
/* Others' time is judged of as many cases as take this long: at least CPU_STEAL_WINDOW_S on the clock of each rank */
#define SLICE_S (1.25 * CPU_STEAL_WINDOW_S)
#define LEAST_S 1e-9 /* of a time that was taken */
#define LINE 64
#define BETWEEN_B ((uint64_t)4 << 20) /* what a GEMM between moves, about; at least the second-level caches */
#define REGION_MIN_B ((uint64_t)48 << 20)
#define REGION_MAX_B ((uint64_t)256 << 20)

enum region { REGION_READ, REGION_WRITE, REGION_UPDATE, REGION_HOT, REGION_COUNT };

struct bench {
	struct session *s;
	const calibration_cases *cases;
	struct calibration_rounds rounds;
	struct host_env env;
	char *memory;
	uint64_t region_B, scratch_B, between_B;
	uint64_t next_B[REGION_COUNT]; /* where the next argument lies in its region */
	double until_s;                /* clock_s() at which the section ends */
	struct cpu_steal slice;        /* what is judged next: from `slice_at` on, in the order of the rounds */
	size_t slice_at;
	double core;         /* a rank's share of its one core, where a quota leaves it less; else 1 */
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
	double begin_s = clock_s(), cpu_s = clock_thread_cpu_s();
	if (!b->st)
		b->st = host_kernel_run(&b->env, &c->op, arg, b->e);
	return b->core < 1 ? (clock_thread_cpu_s() - cpu_s) / b->core : clock_s() - begin_s;
}

/* A quota stops a rank for some milliseconds now and then, and lets it run at the core's full speed between. A short op
 * meets that seldom, and a rank that has waited for others does not meet it at all. So the op's CPU time counts, over
 * what the rank has of the core in the long run. */
static double share_of_core(const struct session_info *info)
{
	const double cores = (double)info->cores_per_rank, ranks = (double)info->ranks_per_host;
	return info->cores_per_rank == 1 ? fmin(1, host_cpu_time(cores * ranks) / ranks) : 1;
}

/* What rank 0's clock says to all ranks. */
struct told {
	bool late; /* the section is over */
	bool due;  /* the slice is */
};

/* All ranks together. */
static enum status together(struct bench *b, struct told *told, struct error *e)
{
	const bool first = session_info(b->s)->rank == 0;
	double past[2] = {first && clock_s() > b->until_s, first && clock_s() > b->slice.at_s + SLICE_S};
	enum status st = session_sum(b->s, past, 2, e);
	*told = (struct told){past[0] > 0, past[1] > 0};
	watchdog_progress(b->s->watchdog);
	return st;
}

/* Judges what was timed since the last slice, up to `end`; the next begins here. Collective. */
static enum status end_slice(struct bench *b, size_t end, struct error *e)
{
	struct cpu_steal_worst worst;
	cpu_steal_wait(&b->slice);
	enum status st = cpu_steal_end(b->s, &b->slice, &worst, e);
	for (; b->slice_at < end; b->slice_at++)
		b->rounds.others[b->slice_at] = st || worst.rank < 0 ? 0 : worst.taken + worst.stolen;
	cpu_steal_begin(&b->slice);
	return st;
}

/* Right after `together`: every rank takes the same number of times, so that none runs alone at the end for long. */
static void time_case(struct bench *b, size_t k, size_t index, int times)
{
	double t[TIMES_MAX];
	for (int i = 0; i < times; i++)
		t[i] = take(b, &b->cases->at[index]);
	/* Ranks that share cores are paused in the middle of an op now and then: the mean has that, the median has not.
	 */
	const double mean_s = stats_mean(t, (size_t)times),
		     time_s = session_info(b->s)->oversubscribed ? mean_s : stats_median(t, (size_t)times);
	calibration_rounds_set(&b->rounds, k, index, fmax(time_s, LEAST_S), fmax(mean_s, LEAST_S));
}

static bool name_is_timed(const calibration_cases *cases, const double *about_s, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (about_s[i] > 0 && strcmp(cases->at[i].work.name, cases->at[index].work.name) == 0)
			return true;
	return false;
}

static int times_of(double about_s)
{
	int n = (int)(PASS_S / about_s);
	return n < 1 ? 1 : n > TIMES_MAX ? TIMES_MAX : n;
}

/* Times case `index` in round k, after all ranks have come together; not where the section is over and the case may be
 * left out. */
static enum status time_in_round(struct bench *b, size_t k, size_t index, int times, bool must, bool *late,
	struct error *e)
{
	const size_t at = k * b->cases->n + index;
	struct told told;
	enum status st = together(b, &told, e);
	if (!st && told.due)
		st = end_slice(b, at, e);
	*late = told.late;
	if (!st && times && (must || !told.late))
		time_case(b, k, index, times);
	return st;
}

/* Times each case once, as warm-up and estimate: about_s is the slowest rank's, 0 where a case was not timed. Once the
 * time is up it times only the first case of each name that has none. So every name has a time, however slow the
 * machine. */
static enum status probe(struct bench *b, double *about_s, struct error *e)
{
	enum status st = ST_OK;
	bool late = false;
	for (size_t i = 0; i < b->cases->n && !st; i++) {
		const int times = fits(b, &b->cases->at[i]) ? 1 : 0;
		st = time_in_round(b, 0, i, times, !name_is_timed(b->cases, b->rounds.time_s, i), &late, e);
		about_s[i] = b->rounds.time_s[i];
		progress_update(b->begin + b->share * (double)i / (double)b->cases->n, b->cases->at[i].work.name);
	}
	st = st ? st : session_max(b->s, about_s, b->cases->n, e);
	for (size_t i = 0; i < b->cases->n; i++)
		b->rounds.time_s[i] = about_s[i]; /* what was timed is the same on all ranks */
	return st;
}

/* The passes that the time allows. After ENOUGH of them none begins that would be cut: on ranks with a share of a core,
 * which take long for one, what its first cases gain is little. Rank 0's clock decides. */
static enum status passes(struct bench *b, const double *about_s, struct error *e)
{
	enum status st = ST_OK;
	bool late = false;
	size_t k = 1;
	for (double begin_s = clock_s(); k <= PASSES && !late && !st; k++) {
		const double last_s = clock_s() - begin_s;
		begin_s += last_s;
		if (k > ENOUGH && begin_s + last_s > b->until_s)
			b->until_s = begin_s;
		for (size_t i = 0; i < b->cases->n && !st && !late; i++) {
			if (about_s[i] <= 0 || about_s[i] > CASE_LIMIT_S)
				continue;
			st = time_in_round(b, k, i, times_of(about_s[i]), false, &late, e);
			progress_update(b->begin + b->share * ((double)k + (double)i / (double)b->cases->n),
				b->cases->at[i].work.name);
		}
	}
	log_detail("kernels: %zu of %d passes, %.1f s to spare", late ? k - 2 : k - 1, PASSES, b->until_s - clock_s());
	return st ? st : end_slice(b, (PASSES + 1) * b->cases->n, e);
}

/* What others disturbed is timed again, in as many passes as that takes. */
static enum status repeats(struct bench *b, const double *about_s, struct error *e)
{
	enum status st = ST_OK;
	bool late = false;
	size_t repeated = 0;
	b->until_s = clock_s() + REPEATS_S;
	for (size_t k = PASSES + 1, again = 1; k < ROUNDS && again && !late && !st; k++) {
		again = 0;
		for (size_t i = 0; i < b->cases->n && !st && !late; i++) {
			if (!calibration_again(&b->rounds, i))
				continue;
			st = time_in_round(b, k, i, times_of(about_s[i]), false, &late, e);
			again++;
			progress_update(b->begin + b->share * (PASSES + 1), b->cases->at[i].work.name);
		}
		st = st || !again ? st : end_slice(b, (k + 1) * b->cases->n, e);
		repeated += again;
	}
	log_detail("kernels: %zu times again, as others used the cores", repeated);
	return st;
}

static enum status measure(struct bench *b, calibration_cases *cases, double *about_s, struct calibration_noise *noise,
	struct error *e)
{
	b->until_s = clock_s() + SECTION_S / b->core;
	cpu_steal_begin(&b->slice);
	enum status st = probe(b, about_s, e);
	st = st ? st : passes(b, about_s, e);
	st = st ? st : repeats(b, about_s, e);
	const double stalls = st ? 1 : calibration_stalls(&b->rounds);
	log_detail("kernels: short stalls take %.1f %%", 100 * (stalls - 1));
	for (size_t i = 0; i < cases->n && !st; i++) {
		double others;
		const double kept_s = calibration_kept_s(&b->rounds, i, &others);
		about_s[i] = stalls * (kept_s > 0 ? kept_s : about_s[i]);
		if (about_s[i] > 0)
			calibration_noise_add(noise, 1, others);
	}
	double spread = st ? 0 : calibration_pace_spread(&b->rounds, about_s);
	st = st ? st : session_max(b->s, about_s, cases->n, e);
	st = st ? st : session_max(b->s, &spread, 1, e);
	log_detail("kernels: the cores' pace varied by %.1f %%", 100 * spread);
	noise->pace_spread = spread;
	for (size_t i = 0; i < cases->n && !st; i++)
		cases->at[i].time_s = about_s[i];
	return st;
}

enum status calibrate_compute(struct session *s, calibration_cases *cases, struct calibration_noise *noise,
	double begin, double end, struct error *e)
{
	struct error mine = {ST_OK, ""};
	struct bench b = {.s = s, .cases = cases, .e = &mine, .begin = begin, .share = (end - begin) / (PASSES + 1)};
	double *about_s = calloc(cases->n, sizeof *about_s);
	b.core = share_of_core(session_info(s));
	enum status st = calibration_rounds_create(&b.rounds, cases->n, ROUNDS, &mine);
	if (!st)
		st = about_s ? bench_open(&b, cases) : error_nomem(&mine, "calibration's times");
	st = session_agree(s, st, &mine);
	if (!st)
		st = measure(&b, cases, about_s, noise, e);
	if (!st)
		st = session_agree(s, b.st, &mine);
	if (mine.status)
		error_set(e, mine.status, "%s", mine.text);
	bench_close(&b);
	calibration_rounds_free(&b.rounds);
	free(about_s);
	return st;
}

/* ---- the pace of the cores, later ---- */

#define PACE_ROUNDS 30

/* The median time of a case on the slowest rank; 0: the case does not fit. All ranks take each time together. */
static enum status time_alone(struct bench *b, const struct calibration_case *c, double *out, struct error *e)
{
	double t[PACE_ROUNDS];
	struct told told;
	enum status st = ST_OK;
	const bool fit = c && fits(b, c);
	for (size_t k = 0; k < PACE_ROUNDS && !st; k++) {
		st = together(b, &told, e);
		t[k] = fit && !st ? take(b, c) : 0;
	}
	*out = st ? 0 : stats_median(t, PACE_ROUNDS);
	return st ? st : session_max(b->s, out, 1, e);
}

static double pace_of(const struct profile *p, const char *name, double now_s)
{
	const double then_s = profile_get_value(p, name, 0);
	return then_s > 0 && now_s > 0 ? then_s / now_s : 1;
}

static enum status measure_pace(struct bench *b, const calibration_cases *cases, const struct profile *p,
	struct pace *out, struct error *e)
{
	double gemm_s = 0, sum_s = 0;
	cpu_steal_begin(&b->slice);
	enum status st = time_alone(b, calibration_typical_gemm(cases, false), &gemm_s, e);
	st = st ? st : time_alone(b, calibration_largest_add(cases), &sum_s, e);
	if (!st && session_info(b->s)->rank == 0)
		*out = (struct pace){pace_of(p, PROFILE_PACE_GEMM_S, gemm_s), pace_of(p, PROFILE_PACE_ADD_S, sum_s)};
	return st ? st : session_broadcast(b->s, out, sizeof *out, e);
}

enum status session_pace(struct session *s, const struct profile *p, struct pace *out, struct error *e)
{
	struct error mine = {ST_OK, ""};
	calibration_cases cases = {0};
	struct bench b = {.s = s, .cases = &cases, .e = &mine, .until_s = INFINITY};
	*out = (struct pace){1, 1};
	if (s->gpus || session_info(s)->oversubscribed)
		return ST_OK;
	watchdog_arm(s->watchdog, "the cores' pace");
	b.core = share_of_core(session_info(s));
	enum status st = calibration_grid(NULL, &cases, &mine);
	st = session_agree(s, st ? st : bench_open(&b, &cases), &mine);
	if (!st)
		st = measure_pace(&b, &cases, p, out, e);
	if (!st)
		st = session_agree(s, b.st, &mine);
	if (mine.status)
		error_set(e, mine.status, "%s", mine.text);
	bench_close(&b);
	vec_free(&cases);
	watchdog_disarm(s->watchdog);
	return st;
}
