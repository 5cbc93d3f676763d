#include "exec/roofline.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "exec/gpus.h"
#include "exec/host/micro.h"
#include "exec/micro.h"
#include "exec/session.h"

#define WARM_UPS 3
#define RUNS 10
#define ARENA_B ((uint64_t)4 << 30) /* at most: three matrices of the largest product */
#define ELEMENTS_MIN ((int64_t)1 << 14)
#define ELEMENTS_MAX ((int64_t)1 << 26)
#define GEMM_MIN 256
#define GEMM_MAX 16384
#define ROW_SHARE 0.04   /* of the time, for all runs of one row of the sweep */
#define GEMM_SHARE 0.125 /* of one product */
#define REPEATED_S 1e-3  /* a shorter kernel is run several times in one timed run */
#define STREAM_RUN_S 0.015
#define CHASE_RUN_S 0.015
#define TIMES_MAX 100000000

static const int64_t degrees[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
#define DEGREES COUNT(degrees)

/* How much of it: doubles compute one element after the other. */
struct extent {
	uint64_t arena_B;
	int64_t elements_min, elements_max, gemm_min, gemm_max;
	bool once; /* nothing is repeated for the sake of its time */
};
static const struct extent full = {ARENA_B, ELEMENTS_MIN, ELEMENTS_MAX, GEMM_MIN, GEMM_MAX, false};
static const struct extent tiny = {(uint64_t)1 << 17, 1 << 10, 1 << 10, 32, 32, true};

struct sweep {
	struct session *s;
	struct micro micro;
	struct micro_facts facts;
	const struct extent *extent;
	struct roofline *out;
	enum dtype only;
	double seconds, until_s; /* until_s: clock_s() after which no further product is begun */
	enum status st; /* this rank's first failure: it goes on taking part, and all ranks agree at the end of each
	                   section */
	struct error *mine;
};

/* ---- one timed call ---- */

struct task {
	enum task_kind { TASK_POLY, TASK_GEMM, TASK_STREAM, TASK_CHASE } kind;
	enum dtype dtype;
	int64_t size, elements;
	enum roof_stream stream;
	uint64_t footprint_B;
};

static enum status call(const struct micro *m, const struct task *t, int64_t times, double *seconds, struct error *e)
{
	switch (t->kind) {
	case TASK_POLY: return m->ops->poly(m->ctx, t->dtype, t->elements, t->size, times, seconds, e);
	case TASK_GEMM: return m->ops->gemm(m->ctx, t->dtype, t->size, times, seconds, e);
	case TASK_STREAM: return m->ops->stream(m->ctx, t->stream, t->footprint_B, times, seconds, e);
	case TASK_CHASE: return m->ops->chase(m->ctx, t->footprint_B, times, seconds, e);
	}
	return error_set(e, ST_RUN, "no such kernel");
}

/* All ranks begin together. */
static enum status take(struct sweep *w, const struct task *t, int64_t times, double *seconds, struct error *e)
{
	enum status st = session_barrier(w->s, e);
	*seconds = 0;
	if (!st && !w->st)
		w->st = call(&w->micro, t, times, seconds, w->mine);
	if (*seconds <= 0)
		*seconds = 1e-9; /* a clock that is too coarse, or this rank has failed */
	watchdog_progress(w->s->watchdog);
	return st;
}

/* Every rank's numbers, by rank; the caller frees them. */
static enum status share(struct sweep *w, const double *mine, size_t n, double **all, struct error *e)
{
	*all = malloc((size_t)session_info(w->s)->ranks * n * sizeof **all);
	if (!*all)
		return error_nomem(e, "the ranks' times");
	return session_gather_all(w->s, mine, n * sizeof *mine, *all, e);
}

/* One run, of the slowest rank. `late`: rank 0's clock is past the sweep's time. */
static enum status probe(struct sweep *w, const struct task *t, int64_t times, double *seconds, bool *late,
	struct error *e)
{
	double mine[2], *all = NULL;
	enum status st = take(w, t, times, &mine[0], e);
	mine[1] = clock_s() > w->until_s;
	if (!st)
		st = share(w, mine, 2, &all, e);
	*seconds = mine[0];
	for (int64_t r = 0; !st && r < session_info(w->s)->ranks; r++)
		*seconds = fmax(*seconds, all[2 * r]);
	*late = !st && all[1] > 0;
	free(all);
	return st;
}

struct timing {
	double slowest_s, mean_rate, rms; /* mean_rate: mean over ranks of 1/s; rms: of the slowest rank */
};

static double relative_rms(const double *x, size_t n)
{
	double mean = stats_mean(x, n), sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sqrt(sum / (double)n) / mean;
}

/* Warm-ups, then the runs. */
static enum status timed(struct sweep *w, const struct task *t, int64_t times, struct timing *out, struct error *e)
{
	const size_t ranks = (size_t)session_info(w->s)->ranks;
	double run_s[RUNS], *all = NULL;
	enum status st = ST_OK;
	for (int i = 0; i < WARM_UPS && !st; i++)
		st = take(w, t, times, &run_s[0], e);
	for (int i = 0; i < RUNS && !st; i++)
		st = take(w, t, times, &run_s[i], e);
	if (!st)
		st = share(w, run_s, RUNS, &all, e);
	*out = (struct timing){0};
	for (size_t r = 0; r < ranks && !st; r++) {
		double mean_s = stats_mean(all + r * RUNS, RUNS);
		out->mean_rate += 1 / mean_s / (double)ranks;
		if (mean_s > out->slowest_s) {
			out->slowest_s = mean_s;
			out->rms = relative_rms(all + r * RUNS, RUNS);
		}
	}
	free(all);
	return st;
}

/* How often a kernel of `about_s` goes into `run_s`. */
static int64_t times_in(const struct sweep *w, double about_s, double run_s)
{
	double n = run_s / about_s;
	return w->extent->once || n < 1 ? 1 : n > TIMES_MAX ? TIMES_MAX : (int64_t)n;
}

/* ---- the polynomial ---- */

/* Element i of an operand that begins at offset_B. */
static enum status element(struct sweep *w, enum dtype d, uint64_t offset_B, int64_t i, double *out)
{
	unsigned char raw[sizeof(float)];
	float value = 0;
	enum status st = w->micro.ops->read(w->micro.ctx, offset_B + (uint64_t)((double)i * dtype_bytes(d)),
		(uint64_t)dtype_bytes(d), raw, w->mine);
	if (!st)
		dtype_load(d, raw, 1, &value);
	*out = (double)value;
	return st;
}

/* Rounding of k steps; in 16-bit formats of the last ones. */
static double poly_tolerance(enum dtype d) { return d == DT_FP32 ? 1e-3 : 1.6e-2; }

static void check_poly(struct sweep *w, const struct task *t)
{
	const int64_t at[] = {0, t->elements / 2, t->elements - 1};
	double a = 0;
	if (!w->st)
		w->st = element(w, t->dtype, 0, 0, &a);
	for (size_t i = 0; i < COUNT(at) && !w->st; i++) {
		double b = 0, want = roof_poly_value(a, t->size);
		if ((w->st = element(w, t->dtype, micro_array_B(t->dtype, t->elements), at[i], &b)))
			return;
		if (!(fabs(b - want) <= poly_tolerance(t->dtype) * want))
			w->st = error_set(w->mine, ST_RUN,
				"the polynomial kernel is wrong: degree %lld in %s, element %lld of %lld is %g and has "
				"to be %g",
				(long long)t->size, dtype_name(t->dtype), (long long)at[i], (long long)t->elements, b,
				want);
	}
}

/* As many elements as the row's time and the arena allow. */
static enum status choose_elements(struct sweep *w, struct task *t, struct error *e)
{
	const struct extent *x = w->extent;
	bool late;
	double about_s = 0;
	t->elements = x->elements_min;
	for (;;) {
		const int64_t more = 4 * t->elements;
		if (more > x->elements_max || 2 * micro_array_B(t->dtype, more) > w->facts.arena_B)
			return ST_OK;
		enum status st = probe(w, t, 1, &about_s, &late, e);
		if (st || 4 * about_s * (WARM_UPS + RUNS) > ROW_SHARE * w->seconds)
			return st;
		t->elements = more;
	}
}

static bool push(struct sweep *w, const struct roof_row *row, struct error *e, enum status *st)
{
	if (!*st && !vec_push(&w->out->rows, *row))
		*st = error_nomem(e, "the roofline's rows");
	return !*st;
}

static enum status poly_row(struct sweep *w, enum dtype d, int64_t k, struct error *e)
{
	struct task t = {.kind = TASK_POLY, .dtype = d, .size = k};
	struct timing time = {0};
	double about_s = 1;
	bool late = false;
	enum status st = choose_elements(w, &t, e);
	if (!st)
		st = probe(w, &t, 1, &about_s, &late, e);
	if (!st)
		st = timed(w, &t, times_in(w, about_s, REPEATED_S), &time, e);
	check_poly(w, &t);
	if ((st = session_agree(w->s, st ? st : w->st, st ? e : w->mine)))
		return st;
	const double flop = 2 * (double)k * (double)t.elements, bytes = 2 * dtype_bytes(d) * (double)t.elements;
	const struct roof_row row = {.kind = ROOF_POLY,
		.dtype = d,
		.size = k,
		.elements = t.elements,
		.ai = roof_poly_ai(d, k),
		.flop_per_s = flop / time.slowest_s,
		.Bps = bytes / time.slowest_s,
		.mean_flop_per_s = flop * time.mean_rate,
		.rms = time.rms};
	push(w, &row, e, &st);
	return st;
}

static enum status poly_sweep(struct sweep *w, double begin, double end, struct error *e)
{
	enum status st = ST_OK;
	char doing[48];
	for (int d = 0; d < DT_COUNT && !st; d++)
		for (size_t i = 0; i < DEGREES && w->facts.vector[d] && !st; i++) {
			if (d != DT_FP32 && i + 1 < DEGREES)
				continue; /* of the others the roof alone */
			snprintf(doing, sizeof doing, "polynomial in %s, k = %lld", dtype_name((enum dtype)d),
				(long long)degrees[i]);
			progress_update(begin + (end - begin) * (d == DT_FP32 ? (double)i / DEGREES : 1), doing);
			st = poly_row(w, (enum dtype)d, degrees[i], e);
		}
	return st;
}

/* ---- products ---- */

/* One element of C against the sum of products in double. */
static void check_gemm(struct sweep *w, const struct task *t)
{
	const size_t n = (size_t)t->size, bytes = (size_t)((double)n * dtype_bytes(t->dtype));
	const uint64_t array_B = micro_array_B(t->dtype, t->size * t->size);
	unsigned char *raw = malloc(bytes);
	float *row = malloc(2 * n * sizeof *row);
	double c = 0, want = 0, scale = 0;
	if (!raw || !row)
		w->st = w->st ? w->st : error_nomem(w->mine, "a product's check");
	for (size_t i = 0; i < 2 && !w->st; i++)
		if (!(w->st = w->micro.ops->read(w->micro.ctx, i * array_B, bytes, raw, w->mine)))
			dtype_load(t->dtype, raw, n, row + i * n);
	if (!w->st)
		w->st = element(w, t->dtype, 2 * array_B, 0, &c);
	for (size_t i = 0; i < n && !w->st; i++) {
		double term = (double)row[i] * (double)row[n + i];
		want += term;
		scale += term * term;
	}
	if (!w->st && !(fabs(c - want) <= 2e-2 * (sqrt(scale) + fabs(want))))
		w->st = error_set(w->mine, ST_RUN,
			"a product of size %lld in %s is wrong: its first element is %g and has to be %g",
			(long long)t->size, dtype_name(t->dtype), c, want);
	free(raw);
	free(row);
}

/* *done: the next size would take too long, or the time is up. */
static enum status gemm_row(struct sweep *w, enum dtype d, int64_t n, bool *done, struct error *e)
{
	struct task t = {.kind = TASK_GEMM, .dtype = d, .size = n};
	struct timing time = {0};
	double about_s = 1;
	enum status st = probe(w, &t, 1, &about_s, done, e); /* the first call of a size plans it, and is no measure */
	if (!st)
		st = probe(w, &t, 1, &about_s, done, e);
	check_gemm(w, &t);
	if (!st)
		st = timed(w, &t, times_in(w, about_s, REPEATED_S), &time, e);
	*done |= 8 * about_s * (WARM_UPS + RUNS + 2) > GEMM_SHARE * w->seconds;
	if ((st = session_agree(w->s, st ? st : w->st, st ? e : w->mine)))
		return st;
	const double flop = 2 * pow((double)n, 3), bytes = 3 * dtype_bytes(d) * (double)n * (double)n;
	const struct roof_row row = {.kind = ROOF_GEMM,
		.dtype = d,
		.size = n,
		.ai = roof_gemm_ai(d, n),
		.flop_per_s = flop / time.slowest_s,
		.Bps = bytes / time.slowest_s,
		.mean_flop_per_s = flop * time.mean_rate,
		.rms = time.rms};
	push(w, &row, e, &st);
	return st;
}

static bool wanted(const struct sweep *w, int d)
{
	return w->facts.matrix[d] && (w->only == DT_COUNT || (int)w->only == d);
}

static enum status gemm_sweep(struct sweep *w, double begin, double end, struct error *e)
{
	enum status st = ST_OK;
	char doing[48];
	int formats = 0, nth = 0;
	for (int d = 0; d < DT_COUNT; d++)
		formats += wanted(w, d);
	for (int d = 0; d < DT_COUNT && !st; d++) {
		bool done = !wanted(w, d);
		for (int64_t n = w->extent->gemm_min; n <= w->extent->gemm_max && !done && !st &&
						      3 * micro_array_B((enum dtype)d, n * n) <= w->facts.arena_B;
			n *= 2) {
			snprintf(doing, sizeof doing, "products in %s, size %lld", dtype_name((enum dtype)d),
				(long long)n);
			progress_update(begin + (end - begin) *
							((double)nth +
								log2((double)n / (double)w->extent->gemm_min) / 7) /
							formats,
				doing);
			st = gemm_row(w, (enum dtype)d, n, &done, e);
		}
		nth += wanted(w, d);
	}
	return st;
}

/* ---- levels of memory ---- */

static enum status level(struct sweep *w, struct roof_level *l, struct error *e)
{
	struct timing time;
	double about_s = 1;
	bool late;
	enum status st = ST_OK;
	for (int s = 0; s < ROOF_STREAMS && !st; s++) {
		struct task t = {.kind = TASK_STREAM, .stream = (enum roof_stream)s, .footprint_B = l->footprint_B};
		const uint64_t moved_B = l->footprint_B / ((uint64_t)s + 1) / MICRO_ALIGN_B * MICRO_ALIGN_B *
		                         ((uint64_t)s + 1);
		if (!(st = probe(w, &t, 1, &about_s, &late, e)) &&
			!(st = probe(w, &t, times_in(w, about_s, STREAM_RUN_S), &about_s, &late, e)) &&
			!(st = timed(w, &t, times_in(w, about_s, STREAM_RUN_S), &time, e)))
			l->Bps[s] = (double)moved_B / time.slowest_s;
	}
	struct task t = {.kind = TASK_CHASE, .footprint_B = l->chase_B};
	const int64_t first = w->extent->once ? 16 : 4096;
	if (!st && !(st = probe(w, &t, first, &about_s, &late, e)) &&
		!(st = timed(w, &t, first * times_in(w, about_s * (double)first, CHASE_RUN_S), &time, e)))
		l->latency_s = time.slowest_s;
	return session_agree(w->s, st ? st : w->st, st ? e : w->mine);
}

static enum status levels(struct sweep *w, double begin, double end, struct error *e)
{
	enum status st = ST_OK;
	for (int i = 0; i < w->facts.levels && !st; i++) {
		progress_update(begin + (end - begin) * i / w->facts.levels, w->facts.level[i].name);
		w->out->level[i] = w->facts.level[i];
		w->out->levels = i + 1;
		st = level(w, &w->out->level[i], e);
	}
	return st;
}

/* ---- the whole ---- */

static enum status executed(const struct micro_facts *f, enum dtype only, struct error *e)
{
	char names[128] = "";
	if (only == DT_COUNT || f->matrix[only])
		return ST_OK;
	for (int d = 0; d < DT_COUNT; d++)
		if (f->matrix[d])
			snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "",
				dtype_name((enum dtype)d));
	return error_set(e, ST_INPUT, "--dtype %s: products in it are not executed on %s; those that are: %s",
		dtype_name(only), f->device, names);
}

/* Ranks go through the same rows together: of formats those that all execute, of footprints those of the rank with the
 * least memory. */
static enum status level_facts(struct sweep *w, struct error *e)
{
	const size_t ranks = (size_t)session_info(w->s)->ranks;
	struct micro_facts *all = malloc(ranks * sizeof *all), least = w->facts;
	enum status st = all ? session_gather_all(w->s, &w->facts, sizeof w->facts, all, e)
	                     : error_nomem(e, "the ranks' devices");
	for (size_t r = 0; r < ranks && !st; r++)
		least = r == 0 || all[r].arena_B < least.arena_B ? all[r] : least;
	for (size_t r = 0; r < ranks && !st; r++)
		for (int d = 0; d < DT_COUNT; d++) {
			least.vector[d] &= all[r].vector[d];
			least.matrix[d] &= all[r].matrix[d];
		}
	free(all);
	w->facts = least;
	return st ? st : executed(&w->facts, w->only, e);
}

static enum status open_micro(struct sweep *w, struct error *e)
{
	const struct session_info *info = session_info(w->s);
	const struct gpus *g = w->s->gpus;
	enum status st = g ? g->backend->micro_create(g->device, w->extent->arena_B, &w->micro, e)
	                   : micro_host_create(info->cores_per_rank, info->ranks_per_host, w->extent->arena_B,
				     &w->micro, e);
	if (st)
		return st;
	w->micro.ops->facts(w->micro.ctx, &w->facts);
	return ST_OK;
}

static void describe(const struct sweep *w)
{
	const struct session_info *info = session_info(w->s);
	struct roofline *r = w->out;
	snprintf(r->device, sizeof r->device, "%s", w->facts.device);
	snprintf(r->host, sizeof r->host, "%s", info->host);
	snprintf(r->blas, sizeof r->blas, "%s", info->blas);
	r->gpu = info->gpus;
	r->doubles = info->gpu_doubles;
	r->shared = info->oversubscribed || info->gpu_shared;
	r->ranks = info->ranks;
	r->units = w->facts.units;
	r->clock_Hz = w->facts.clock_Hz;
	r->threads = w->facts.threads;
	r->threads_most = w->facts.threads_most;
	r->warm_ups = WARM_UPS;
	r->runs = RUNS;
}

enum status roofline_measure(struct session *s, enum dtype only, double seconds, struct roofline *out, struct error *e)
{
	struct error mine = {ST_OK, ""};
	struct sweep w = {.s = s,
		.out = out,
		.only = only,
		.seconds = seconds,
		.mine = &mine,
		.extent = session_info(s)->gpu_doubles ? &tiny : &full};
	*out = (struct roofline){0};
	watchdog_arm(s->watchdog, "the roofline");
	progress_begin("measuring the roofline");
	enum status st = session_agree(s, open_micro(&w, &mine), &mine);
	if (!st)
		st = session_agree(s, level_facts(&w, e), e);
	w.until_s = clock_s() + seconds;
	if (!st) {
		describe(&w);
		st = poly_sweep(&w, 0, 0.6, e);
	}
	if (!st)
		st = levels(&w, 0.6, 0.75, e);
	if (!st)
		st = gemm_sweep(&w, 0.75, 1, e);
	if (mine.status)
		error_set(e, mine.status, "%s", mine.text);
	micro_destroy(&w.micro);
	if (out->doubles) {
		out->checked = (int64_t)out->rows.n;
		out->rows.n = 0;
		out->levels = 0;
	}
	progress_end();
	watchdog_disarm(s->watchdog);
	return st;
}
