#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "cli/devices.h"
#include "cli/machine.h"
#include "report/report.h"
#include "sim/price/cost.h"

#define MIN_B ((uint64_t)1 << 10)
#define MAX_HOST_B ((uint64_t)64 << 20)
#define MAX_GPU_B ((uint64_t)1 << 30)
#define LATENCY_B ((uint64_t)64 << 10) /* below it no link is at its rate, whatever the model says */
#define MPI_ELEMENTS_MAX 2147483647

/* ---- the request ---- */

static enum status read_collective(const char *word, enum collective *out, struct error *e)
{
	const char *names[COLL_OF_GROUPS];
	for (int i = 0; i < COLL_OF_GROUPS; i++) {
		names[i] = collective_name((enum collective)i);
		if (strcmp(word, names[i]) == 0) {
			*out = (enum collective)i;
			return ST_OK;
		}
	}
	return error_set(e, ST_INPUT, "no collective '%s'%s", word, suggest(word, names, COLL_OF_GROUPS, NULL).text);
}

static enum status read_plan(const struct options *o, struct bench_plan *p, struct error *e)
{
	const struct bench_options *b = &o->bench;
	enum status st = read_collective(o->positional[0], &p->coll, e);
	if (st)
		return st;
	p->dtype = b->dtype;
	p->min_B = b->min_B;
	p->max_B = b->max_B;
	p->factor = b->factor;
	p->iters = b->iters;
	p->warmup = b->warmup;
	p->check = b->check > 0;
	if (p->min_B && p->max_B && p->min_B > p->max_B)
		return error_set(e, ST_INPUT, "-b %llu is more than -e %llu", (unsigned long long)p->min_B,
			(unsigned long long)p->max_B);
	if (o->max_error_percent >= 0 && p->max_B && p->max_B < BENCH_LARGE_B)
		return error_set(e, ST_INPUT, "--max-error judges rows of at least 1 MiB, and -e is %llu",
			(unsigned long long)p->max_B);
	return ST_OK;
}

/* Fills the defaults that depend on the devices, and refuses what they cannot do. */
static enum status fit_plan(const struct session_info *info, struct bench_plan *p, struct error *e)
{
	uint64_t most = info->gpus ? MAX_GPU_B : MAX_HOST_B;
	if (!p->max_B)
		p->max_B = p->min_B > most ? p->min_B : most;
	if (!p->min_B)
		p->min_B = p->max_B < MIN_B ? p->max_B : MIN_B;
	if (info->gpus)
		return ST_OK;
	if (p->dtype != DT_FP32 && p->dtype != DT_INT32)
		return error_set(e, ST_INPUT, "-d %s: MPI on the host sums float and int32 only", dtype_name(p->dtype));
	if ((double)p->max_B / dtype_bytes(p->dtype) > MPI_ELEMENTS_MAX)
		return error_set(e, ST_RUN, "-e %llu: one MPI call carries at most %d elements",
			(unsigned long long)p->max_B, MPI_ELEMENTS_MAX);
	return ST_OK;
}

/* ---- the prediction ---- */

static void predict_rows(const struct machine *m, struct bench_table *t)
{
	const struct rates rates = rates_of(m);
	struct group g;
	struct error why = {0};
	enum collective c = t->plan.coll;
	for (size_t i = 0; i < t->n && t->ranks > 1; i++) {
		struct bench_row *r = &t->rows[i];
		double at_s = collective_time_s(&rates, c, t->ranks, 1, (double)r->bytes, &why);
		if (!isfinite(at_s)) {
			snprintf(t->unpredicted, sizeof t->unpredicted, "%.500s",
				why.status ? why.text : "no rate of the links between the ranks is known");
			return;
		}
		r->predicted_s = at_s;
		r->latency = r->bytes < LATENCY_B ||
		             collective_time_s(&rates, c, t->ranks, 1, 2 * (double)r->bytes, &why) < 1.5 * at_s;
	}
	if (t->ranks > 1 && rates_group(&rates, t->ranks, 1, &g, NULL) == ST_OK)
		snprintf(t->limited_by, sizeof t->limited_by, "%s", g.bottleneck_text);
}

static enum status write_table(const struct options *o, const struct bench_table *t, json_t *system, struct error *e)
{
	bool taken = options_take_stdout(o);
	enum status st = taken ? ST_OK : report_bench_text(t, stdout, e);
	if (!st && o->json)
		st = report_bench_json(t, system, o->json, e);
	if (!st && o->csv)
		st = report_bench_csv(t, o->csv, e);
	return st;
}

static enum status check_limits(const struct options *o, const struct bench_table *t, struct error *e)
{
	struct bench_summary s;
	double limit = o->max_error_percent;
	enum status st = bench_summarize(t, &s, e);
	if (st)
		return st;
	if (s.wrong)
		return error_set(e, ST_RUN, "%llu values are wrong", (unsigned long long)s.wrong);
	if (limit < 0)
		return ST_OK;
	if (t->doubles)
		return error_set(e, ST_RUN,
			"--max-error needs a measurement, and doubles of the CUDA libraries give none");
	if (t->meaningless)
		return error_set(e, ST_RUN, "--max-error needs a measurement, and ranks that share a GPU give none");
	if (isnan(s.error))
		return error_set(e, ST_RUN, "--max-error needs a prediction: %s",
			t->unpredicted[0] ? t->unpredicted : "there is none for one rank");
	if (100 * s.error <= limit)
		return ST_OK;
	return error_set(e, ST_LIMIT,
		"the time of %s is predicted wrong by %.1f %% (median from 1 MiB on), more than --max-error %g",
		collective_name(t->plan.coll), 100 * s.error, limit);
}

/* The machine to predict for: this one, unless --set names a profile. Any model does. */
static enum status read_cluster(const struct options *o, struct config *c, struct error *e)
{
	static const char any[] = "model: {preset: gpt2-124m}\n";
	return config_parse(any, sizeof any - 1, "bench", o->sets.at, o->sets.n, c, e);
}

enum status cmd_bench(struct context *x, struct error *e)
{
	static struct config config;
	struct bench_plan plan;
	struct bench_table table = {0};
	struct target target = {0};
	struct error unknown = {ST_OK, ""};
	enum status st = read_plan(x->options, &plan, e);
	if (st || (st = read_cluster(x->options, &config, e)) || (st = devices_open(x, e)))
		return st;
	const struct session_info *info = context_info(x);
	if ((st = fit_plan(info, &plan, e)))
		return st;
	/* A failed prediction leaves its columns empty. */
	bool predicts = !info->gpu_doubles && info->ranks > 1 &&
	                context_agree(x, target_here(x, &config, info->ranks, &target, &unknown), &unknown) == ST_OK;
	if (!(st = context_agree(x, x->exec->bench(x->session, &plan, &table, e), e)) && context_leads(x)) {
		if (predicts)
			predict_rows(&target.machine, &table);
		else
			snprintf(table.unpredicted, sizeof table.unpredicted, "%.500s", unknown.text);
		st = write_table(x->options, &table, target.system, e);
		if (!st)
			st = check_limits(x->options, &table, e);
	}
	target_free(&target);
	bench_free(&table);
	return st;
}
