/* From times to a profile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "exec/calibrate.h"

/* A machine that does not reach this in any GEMM was not measured. */
#define LEAST_CALL_S 1e-8

/* The time of an op with next to no work: the smallest case of all. Every op of a curve pays it. */
static double call_time_s(const calibration_cases *cases)
{
	double least = INFINITY;
	for (size_t i = 0; i < cases->n; i++)
		if (cases->at[i].work.form == FORM_CURVE && cases->at[i].time_s > 0 && cases->at[i].work.elements <= 2)
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

/* Non-negative coefficients that minimise the sum of squared relative errors: each row is divided by its time, so that a short op counts as much as a long one. */
static enum status fit_terms(const calibration_cases *cases, const char *name, struct profile *p, struct error *e)
{
	enum status st = ST_OK;
	size_t n = 0;
	double coef[WORK_TERMS], squares = 0;
	double *rows = malloc(cases->n * WORK_TERMS * sizeof *rows), *ones = malloc(cases->n * sizeof *ones);
	if (!rows || !ones) {
		st = error_nomem(e, "a fit");
		goto out;
	}
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0 || strcmp(c->work.name, name) != 0)
			continue;
		for (size_t t = 0; t < WORK_TERMS; t++)
			rows[n * WORK_TERMS + t] = c->work.term[t] / c->time_s;
		ones[n++] = 1;
	}
	if (n == 0)
		goto out;
	stats_nnls(rows, ones, n, WORK_TERMS, coef);
	for (size_t i = 0; i < n; i++) {
		double predicted = 0;
		for (size_t t = 0; t < WORK_TERMS; t++)
			predicted += coef[t] * rows[i * WORK_TERMS + t];
		squares += (predicted - 1) * (predicted - 1);
	}
	st = profile_set_fit(p, name, coef, WORK_TERMS, sqrt(squares / (double)n), e);
out:
	free(rows);
	free(ones);
	return st;
}

/* Points in ascending footprint; of two cases with the same, the later. */
static enum status set_curve(const calibration_cases *cases, const char *name, double call_s, struct profile *p, struct error *e)
{
	double x[PROFILE_POINTS], y[PROFILE_POINTS];
	size_t n = 0;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0 || strcmp(c->work.name, name) != 0 || c->work.elements <= 2)
			continue;
		size_t at = 0;
		while (at < n && x[at] < c->work.footprint_B)
			at++;
		bool replaces = at < n && x[at] == c->work.footprint_B;
		if (!replaces && n == PROFILE_POINTS)
			return error_set(e, ST_RUN, "calibration has more than %d sizes of %s", PROFILE_POINTS, name);
		for (size_t j = n; j > at && !replaces; j--) {
			x[j] = x[j - 1];
			y[j] = y[j - 1];
		}
		n += replaces ? 0 : 1;
		x[at] = c->work.footprint_B;
		/* A tenth of the whole at least: the call is an estimate, and what is left must not vanish beside it. */
		y[at] = fmax(c->time_s - call_s, 0.1 * c->time_s) / c->work.elements;
	}
	return n ? profile_set_curve(p, name, x, y, n, e) : ST_OK;
}

/* The roofs: the best GEMM, and the largest add, which reads two arrays and writes one (STREAM's way of counting: the read that a write may cause is not counted). */
static enum status set_roofs(const calibration_cases *cases, struct profile *p, struct error *e)
{
	double peak = 0, largest_B = 0, mem_Bps = 0;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		if (c->time_s <= 0)
			continue;
		if (c->op.kind == OP_GEMM)
			peak = fmax(peak, op_flop(&c->op) / c->time_s);
		if (c->op.kind == OP_ADD && c->work.footprint_B > largest_B) {
			largest_B = c->work.footprint_B;
			mem_Bps = largest_B / c->time_s;
		}
	}
	if (!(peak > 0) || !(mem_Bps > 0))
		return error_set(e, ST_RUN, "calibration timed no %s", peak > 0 ? "add" : "GEMM");
	enum status st = profile_set_value(p, "peak.fp32", peak, e);
	return st ? st : profile_set_value(p, "mem_Bps", mem_Bps, e);
}

enum status calibration_fit(const calibration_cases *cases, struct profile *p, struct error *e)
{
	double call_s = call_time_s(cases);
	enum status st = profile_set_value(p, "call_s", call_s, e);
	for (size_t i = 0; i < cases->n && !st; i++) {
		const struct work *w = &cases->at[i].work;
		if (!first_of_name(cases, i))
			continue;
		st = w->form == FORM_FIT ? fit_terms(cases, w->name, p, e) : set_curve(cases, w->name, call_s, p, e);
	}
	return st ? st : set_roofs(cases, p, e);
}
