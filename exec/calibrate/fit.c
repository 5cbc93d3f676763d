/* From times to a profile. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "exec/calibrate/calibrate.h"

/* A machine that does not reach this in any GEMM was not measured. */
#define LEAST_CALL_S 1e-8
#define CALL_B 8.0 /* the one case of so few bytes is there for the call's sake */
/* On a GPU, where the time is the larger of a fit and memory's: a case that memory takes this share of says little
 * about the fit. */
#define MEMORY_SHARE 0.8
/* Sizes of a curve that are as near as this, in ratio, are one point: the mean of its times. */
#define SAME_SIZE 1.1

/* What fits are made with. */
struct machine_found {
	double mem_Bps;  /* 0: memory's time is among the terms */
	double burst_Hz; /* the highest clock of a product; 0: not known */
};

static bool is_call(const struct calibration_case *c)
{
	return c->work.form == FORM_CURVE && c->work.footprint_B <= CALL_B;
}

/* The time of an op with next to no work: the smallest case of all. Every op of a curve pays it. */
static double call_time_s(const calibration_cases *cases)
{
	double least = INFINITY;
	for (size_t i = 0; i < cases->n; i++)
		if (cases->at[i].time_s > 0 && is_call(&cases->at[i]))
			least = fmin(least, cases->at[i].time_s);
	return isfinite(least) ? least : LEAST_CALL_S;
}

static bool first_of_name(const calibration_cases *cases, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(cases->at[i].work.name, cases->at[index].work.name) == 0)
			return false;
	return true;
}

static double memory_s(const struct calibration_case *c, const struct machine_found *m)
{
	return m->mem_Bps > 0 ? (op_read_B(&c->op) + op_write_B(&c->op)) / m->mem_Bps : 0;
}

/* Fits are of one clock: what was heated is taken as it would run at the burst clock, whatever held its own down. A few
 * samples may miss the power limit's word, not the clock. Readings of other cases say less, as the clock of a burst may
 * not have risen yet. */
static double fitted_s(const struct calibration_case *c, const struct machine_found *m)
{
	return c->heat_s > 0 && c->found.clock_Hz > 0 ? c->time_s * c->found.clock_Hz / m->burst_Hz : c->time_s;
}

/* Rows of the system for the cases of that name, divided by their times; `all`: also of those that memory bounds. */
static size_t fill_rows(const calibration_cases *cases, const char *name, const struct machine_found *m, bool all,
	double *rows)
{
	size_t n = 0;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0 || strcmp(c->work.name, name) != 0 ||
			(!all && memory_s(c, m) > MEMORY_SHARE * c->time_s))
			continue;
		for (size_t t = 0; t < WORK_TERMS; t++)
			rows[n * WORK_TERMS + t] = c->work.term[t] / fitted_s(c, m);
		n++;
	}
	return n;
}

static double residual(const calibration_cases *cases, const char *name, const struct machine_found *m,
	const double *coef)
{
	double squares = 0;
	size_t n = 0;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0 || strcmp(c->work.name, name) != 0)
			continue;
		double fit_s = 0;
		for (size_t t = 0; t < WORK_TERMS; t++)
			fit_s += coef[t] * c->work.term[t];
		double off = fmax(fit_s, memory_s(c, m)) / fitted_s(c, m) - 1;
		squares += off * off;
		n++;
	}
	return sqrt(squares / (double)n);
}

/* Non-negative coefficients that minimise the sum of squared relative errors: each row is divided by its time, so that
 * a short op counts as much as a long one. */
static enum status fit_terms(const calibration_cases *cases, const char *name, const struct machine_found *m,
	struct profile *p, struct error *e)
{
	enum status st = ST_OK;
	double coef[WORK_TERMS];
	double *rows = malloc(cases->n * WORK_TERMS * sizeof *rows), *ones = malloc(cases->n * sizeof *ones);
	if (!rows || !ones) {
		st = error_nomem(e, "a fit");
		goto out;
	}
	size_t n = fill_rows(cases, name, m, false, rows);
	n = n ? n : fill_rows(cases, name, m, true, rows);
	if (n == 0)
		goto out;
	for (size_t i = 0; i < n; i++)
		ones[i] = 1;
	stats_nnls(rows, ones, n, WORK_TERMS, coef);
	st = profile_set_fit(p, name, coef, WORK_TERMS, residual(cases, name, m, coef), e);
out:
	free(rows);
	free(ones);
	return st;
}

/* Points in ascending footprint. On a GPU each has two formats' times. */
static enum status set_curve(const calibration_cases *cases, const char *name, double call_s, struct profile *p,
	struct error *e)
{
	double x[PROFILE_POINTS], y[PROFILE_POINTS], times[PROFILE_POINTS];
	size_t n = 0;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0 || strcmp(c->work.name, name) != 0 || is_call(c))
			continue;
		size_t at = 0;
		while (at < n && x[at] * SAME_SIZE < c->work.footprint_B)
			at++;
		bool same = at < n && x[at] < c->work.footprint_B * SAME_SIZE;
		if (!same && n == PROFILE_POINTS)
			return error_set(e, ST_RUN, "calibration has more than %d sizes of %s", PROFILE_POINTS, name);
		for (size_t j = n; j > at && !same; j--) {
			x[j] = x[j - 1];
			y[j] = y[j - 1];
			times[j] = times[j - 1];
		}
		if (!same) {
			n++;
			x[at] = c->work.footprint_B;
			y[at] = times[at] = 0;
		}
		/* A tenth of the whole at least: the call is an estimate, and what is left must not vanish beside it.
		 */
		y[at] += (fmax(c->time_s - call_s, 0.1 * c->time_s) / c->work.elements - y[at]) / ++times[at];
	}
	return n ? profile_set_curve(p, name, x, y, n, e) : ST_OK;
}

/* The roofs: the best GEMM of each format, and the largest add, which reads two arrays and writes one (STREAM's way of
 * counting: the read that a write may cause is not counted). */
static enum status set_roofs(const calibration_cases *cases, double *mem_Bps, struct profile *p, struct error *e)
{
	double peak[DT_COUNT] = {0}, largest_B = 0;
	bool any = false;
	*mem_Bps = 0;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0)
			continue;
		if (c->op.kind == OP_GEMM) {
			peak[c->op.dtype] = fmax(peak[c->op.dtype], op_flop(&c->op) / c->time_s);
			any = true;
		}
		double bytes = op_read_B(&c->op) + op_write_B(&c->op);
		if (c->op.kind == OP_ADD && bytes > largest_B) {
			largest_B = bytes;
			*mem_Bps = bytes / c->time_s;
		}
	}
	if (!any || !(*mem_Bps > 0))
		return error_set(e, ST_RUN, "calibration timed no %s", any ? "add" : "GEMM");
	enum status st = profile_set_value(p, PROFILE_MEM_BPS, *mem_Bps, e);
	for (int t = 0; t < DT_COUNT && !st; t++) {
		char name[PROFILE_NAME];
		snprintf(name, sizeof name, PROFILE_PEAK "%s", dtype_name((enum dtype)t));
		st = peak[t] > 0 ? profile_set_value(p, name, peak[t], e) : ST_OK;
	}
	return st;
}

/* What tells later how fast the cores are then. */
static enum status set_pace(const calibration_cases *cases, struct profile *p, struct error *e)
{
	const struct calibration_case *gemm = calibration_typical_gemm(cases, false),
				      *sum = calibration_largest_add(cases);
	enum status st = ST_OK;
	if (gemm && gemm->time_s > 0)
		st = profile_set_value(p, PROFILE_PACE_GEMM_S, gemm->time_s, e);
	return st || !sum || !(sum->time_s > 0) ? st : profile_set_value(p, PROFILE_PACE_ADD_S, sum->time_s, e);
}

/* The products of a fit with their clocks, where these are known. */
static enum status set_products(const calibration_cases *cases, const char *name, struct profile *p, struct error *e)
{
	struct profile_products x = {.n = 0};
	snprintf(x.name, sizeof x.name, "%s", name);
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0 || c->found.clock_Hz <= 0 || strcmp(c->work.name, name) != 0)
			continue;
		if (x.n == PROFILE_POINTS)
			return error_set(e, ST_RUN, "calibration has more than %d products of %s", PROFILE_POINTS,
				name);
		x.flop[x.n] = op_flop(&c->op);
		x.time_s[x.n] = c->time_s;
		x.clock_Hz[x.n] = c->found.clock_Hz;
		x.power_W[x.n] = c->found.power_W;
		x.heat_s[x.n] = c->heat_s;
		x.capped[x.n++] = c->found.capped;
	}
	return x.n ? profile_set_products(p, &x, e) : ST_OK;
}

enum status calibration_fit(const calibration_cases *cases, const struct work_device *d, struct profile *p,
	struct error *e)
{
	struct machine_found m = {0};
	double call_s = call_time_s(cases), mem_Bps;
	enum status st = set_roofs(cases, &mem_Bps, p, e);
	st = st ? st : profile_set_value(p, PROFILE_CALL_S, call_s, e);
	st = st || (d && d->gpu) ? st : set_pace(cases, p, e);
	for (size_t i = 0; i < cases->n && !st; i++)
		if (first_of_name(cases, i))
			st = set_products(cases, cases->at[i].work.name, p, e);
	m.mem_Bps = d && d->gpu ? mem_Bps : 0;
	m.burst_Hz = profile_burst_Hz(p);
	for (size_t i = 0; i < cases->n && !st; i++) {
		const struct work *w = &cases->at[i].work;
		if (first_of_name(cases, i))
			st = w->form == FORM_FIT ? fit_terms(cases, w->name, &m, p, e)
			                         : set_curve(cases, w->name, call_s, p, e);
	}
	return st;
}
