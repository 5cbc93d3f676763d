#include "step/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/stats.h"

#define NORMAL_LOW 0.8 /* of the expected rate */
#define NORMAL_HIGH 1.25

void bench_free(struct bench_table *t)
{
	free(t->rows);
	free(t->places);
	*t = (struct bench_table){0};
}

enum status bench_sizes(const struct bench_plan *plan, int64_t ranks, struct bench_table *out, struct error *e)
{
	size_t most = 1;
	for (uint64_t b = plan->min_B; b <= plan->max_B / (uint64_t)plan->factor; b *= (uint64_t)plan->factor)
		most++;
	*out = (struct bench_table){.plan = *plan, .ranks = ranks, .rows = calloc(most, sizeof *out->rows)};
	if (!out->rows)
		return error_nomem(e, "the table of sizes");
	uint64_t parts = collective_cuts(plan->coll) ? (uint64_t)ranks : 1,
		 step = (uint64_t)dtype_bytes(plan->dtype) * parts, bytes = plan->min_B;
	for (size_t i = 0; i < most; i++, bytes *= (uint64_t)plan->factor) {
		uint64_t whole = bytes / step ? bytes / step : 1;
		if (out->n && out->rows[out->n - 1].count == whole)
			continue;
		out->rows[out->n++] = (struct bench_row){.bytes = whole * step,
			.count = whole,
			.predicted_s = NAN,
			.estimate_s = NAN,
			.out_of_place = {.time_s = NAN},
			.in_place = {.time_s = NAN}};
	}
	return ST_OK;
}

static bool measured(const struct bench_side *side) { return side->done && side->time_s > 0; }

double bench_algbw_Bps(const struct bench_row *r, const struct bench_side *side)
{
	return measured(side) ? (double)r->bytes / side->time_s : NAN;
}

double bench_busbw_Bps(const struct bench_table *t, const struct bench_row *r, const struct bench_side *side)
{
	return bench_algbw_Bps(r, side) * collective_wire_factor(t->plan.coll, t->ranks);
}

/* How much of the expected rate was reached; of times that mean nothing none. */
static double share(const struct bench_table *t, const struct bench_row *r)
{
	return !t->doubles && !t->meaningless && measured(&r->out_of_place) ? r->predicted_s / r->out_of_place.time_s
	                                                                    : NAN;
}

double bench_error(const struct bench_table *t, const struct bench_row *r) { return share(t, r) - 1; }

const char *bench_verdict(const struct bench_table *t, const struct bench_row *r, char buf[BENCH_VERDICT])
{
	double reached = share(t, r);
	if (isnan(reached))
		return "";
	if (r->latency)
		return "latency";
	if (reached >= NORMAL_LOW && reached <= NORMAL_HIGH)
		return "normal";
	snprintf(buf, BENCH_VERDICT, "%s: %.0f %% of expected", reached < NORMAL_LOW ? "slow" : "fast", 100 * reached);
	return buf;
}

enum status bench_summarize(const struct bench_table *t, struct bench_summary *out, struct error *e)
{
	double *errors = calloc(2 * t->n + 1, sizeof *errors), sum = 0;
	size_t n_errors = 0, n_shares = 0, n_rates = 0;
	*out = (struct bench_summary){.busbw_Bps = NAN, .error = NAN, .share = NAN};
	if (!errors)
		return error_nomem(e, "the summary");
	double *shares = errors + t->n;
	for (size_t i = 0; i < t->n; i++) {
		const struct bench_row *r = &t->rows[i];
		const struct bench_side *sides[] = {&r->out_of_place, &r->in_place};
		for (int k = 0; k < 2; k++) {
			out->wrong += sides[k]->wrong;
			if (measured(sides[k])) {
				sum += bench_busbw_Bps(t, r, sides[k]);
				n_rates++;
			}
		}
		double reached = share(t, r);
		if (r->bytes < BENCH_LARGE_B || isnan(reached))
			continue;
		errors[n_errors++] = fabs(reached - 1);
		if (r->latency)
			continue;
		shares[n_shares++] = reached;
		out->largest = r;
	}
	if (n_rates)
		out->busbw_Bps = sum / (double)n_rates;
	if (n_errors)
		out->error = stats_median(errors, n_errors);
	if (n_shares)
		out->share = stats_median(shares, n_shares);
	free(errors);
	return ST_OK;
}
