/* The comparison as JSON, CSV and a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/version.h"
#include "report/compare_parts.h"
#include "report/json_build.h"
#include "report/report.h"

static const char *const mode_names[] =
	{[COMPARE_GPUS] = "gpus", [COMPARE_BUDGET] = "budget", [COMPARE_TARGET] = "target"};
static const char *const basis_names[BASIS_COUNT] =
	{[BY_OWNED] = "owned_usd", [BY_RENTED] = "rented_usd", [BY_TIME] = "time_s"};

/* ---- JSON ---- */

static json_t *figure_json(const struct compare_figure *f, bool *good)
{
	json_t *o = json_object();
	json_put(o, "value", json_number(f->value), good);
	json_put(o, "source", json_string(f->source), good);
	json_put(o, "unverified", json_boolean(f->unverified), good);
	if (f->of) {
		json_put(o, "each", json_number(f->each), good);
		json_put(o, "of", json_string(f->of), good);
		json_put(o, "gpus_alone", json_boolean(f->partial), good);
	}
	return o;
}

static json_t *cost_json(const struct compare *c, const struct compare_row *r, bool *good)
{
	const struct money *m = &r->money;
	double billions = c->tokens / 1e9;
	json_t *o = json_object();
	json_put(o, "tokens", json_number(c->tokens), good);
	json_put(o, "time_s", json_number(m->time_s), good);
	json_put(o, "expected_interruptions", json_number(m->interruptions), good);
	json_put(o, "energy_kwh", json_number(m->energy_kWh), good);
	json_put(o, "co2_kg", json_number(m->co2_kg), good);
	json_put(o, "rented_usd", json_number(m->rented_usd), good);
	json_put(o, "owned_usd", json_number(m->owned_usd), good);
	json_put(o, "rented_usd_per_billion_tokens", json_number(m->rented_usd / billions), good);
	json_put(o, "owned_usd_per_billion_tokens", json_number(m->owned_usd / billions), good);
	json_put(o, "power_w", figure_json(&r->power_W, good), good);
	json_put(o, "rent_usd_per_hour", figure_json(&r->rent_usd_per_hour, good), good);
	json_put(o, "price_usd", figure_json(&r->price_usd, good), good);
	json_put(o, "spent_usd", json_number(r->spent_usd), good);
	return o;
}

static json_t *counted_json(const struct compare *c, bool *good)
{
	json_t *o = json_object();
	json_put(o, "amortize_years", figure_json(&c->amortize_years, good), good);
	json_put(o, "power_usd_per_kwh", figure_json(&c->power_usd_per_kwh, good), good);
	json_put(o, "pue", figure_json(&c->pue, good), good);
	json_put(o, "co2_kg_per_kwh", figure_json(&c->co2_kg_per_kwh, good), good);
	return o;
}

json_t *compare_target_json(const struct compare *c)
{
	bool good = true;
	json_t *o = cost_json(c, c->rows.at, &good);
	json_put(o, "steps", json_number(compare_steps(c)), &good);
	json_put(o, "counted_with", counted_json(c, &good), &good);
	if (good)
		return o;
	json_decref(o);
	return NULL;
}

/* Other batches with which fewer hosts reach the target; null where none was looked for. */
static json_t *near_json(const struct compare *c, const struct compare_row *r, bool *good)
{
	if (c->mode != COMPARE_TARGET)
		return json_null();
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_near; i++) {
		const struct compare_row *n = &r->near[i];
		json_t *o = json_object();
		json_put(o, "global_batch", json_integer(n->config->train.global_batch), good);
		json_put(o, "gpus", json_integer(n->gpus), good);
		json_put(o, "hosts", json_number(n->hosts), good);
		json_put(o, "plan", json_string(n->plan), good);
		json_put(o, "step_time_s", json_number(n->predicted->time.step_s), good);
		json_put(o, "tokens_per_s", json_number(n->predicted->tokens_per_s), good);
		json_put(o, "cost", cost_json(c, n, good), good);
		json_push(list, o, good);
	}
	return list;
}

static json_t *row_json(const struct compare *c, const struct compare_row *r, bool *good)
{
	json_t *o = json_object();
	json_put(o, "name", json_string(r->name), good);
	json_put(o, "rank", r->rank ? json_integer((json_int_t)r->rank) : json_null(), good);
	json_put(o, "overlaps_previous", r->rank > 1 ? json_boolean(r->overlaps) : json_null(), good);
	json_put(o, "gpus", json_integer(r->gpus), good);
	json_put(o, "hosts", json_number(r->hosts), good);
	json_put(o, "plan", r->plan[0] ? json_string(r->plan) : json_null(), good);
	json_put(o, "fits", json_boolean(r->fits), good);
	json_put(o, "missing_bytes", r->missing_B ? json_integer((json_int_t)r->missing_B) : json_null(), good);
	json_put(o, "reason", r->reason[0] ? json_string(r->reason) : json_null(), good);
	json_put(o, "not_looked_at", c->fixed_plan ? json_null() : json_integer(r->plans_left), good);
	json_put(o, "size_note", r->size_note[0] ? json_string(r->size_note) : json_null(), good);
	json_put(o, "near_batches", near_json(c, r, good), good);
	json_put(o, "cost", cost_json(c, r, good), good);
	json_put(o, "config", r->config ? config_json(r->config) : json_null(), good);
	json_put(o, "system", r->system ? json_incref(r->system) : json_null(), good);
	json_put(o, "prediction", r->predicted ? report_side_json(r->predicted) : json_null(), good);
	json_put(o, "measurement", json_null(), good);
	json_put(o, "comparison", json_null(), good);
	return o;
}

enum status report_compare_json(const struct compare *c, const char *path, struct error *e)
{
	json_t *j = json_object(), *results = json_array();
	bool good = true;
	json_put(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(j, "commit", json_string(report_commit()), &good);
	json_put(j, "equal", json_string(c->own_sizes ? "nothing" : mode_names[c->mode]), &good);
	json_put(j, "fixed_plan", json_boolean(c->fixed_plan), &good);
	json_put(j, "budget_usd", c->mode == COMPARE_BUDGET ? json_number(c->budget_usd) : json_null(), &good);
	json_put(j, "within_s", c->mode == COMPARE_TARGET ? json_number(c->within_s) : json_null(), &good);
	json_put(j, "needed_tokens_per_s",
		c->mode == COMPARE_TARGET ? json_number(c->tokens / c->within_s) : json_null(), &good);
	json_put(j, "tokens", json_number(c->tokens), &good);
	json_put(j, "ranked_by", json_string(basis_names[c->basis]), &good);
	json_put(j, "ranked_by_note", c->basis_note[0] ? json_string(c->basis_note) : json_null(), &good);
	json_put(j, "counted_with", counted_json(c, &good), &good);
	for (size_t i = 0; i < c->rows.n; i++)
		json_push(results, row_json(c, &c->rows.at[i], &good), &good);
	json_put(j, "results", results, &good);
	enum status st = good ? report_write_json(j, path, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

/* ---- CSV ---- */

#define DIGITS 9

static void csv_row(const struct compare *c, const struct compare_row *r, FILE *out)
{
	const struct result *p = r->fits ? r->predicted : NULL;
	double billions = c->tokens / 1e9;
	if (r->rank)
		fprintf(out, "%zu", r->rank);
	fputc(',', out);
	report_csv_cell(r->name, out);
	fprintf(out, ",%lld,%.9g,", (long long)r->gpus, r->hosts);
	report_csv_cell(r->plan, out);
	report_csv_number(p ? p->time.step_s : NAN, DIGITS, out);
	report_csv_number(p ? p->interval90_s[0] : NAN, DIGITS, out);
	report_csv_number(p ? p->interval90_s[1] : NAN, DIGITS, out);
	report_csv_number(p ? p->tokens_per_s : NAN, DIGITS, out);
	report_csv_number(p ? p->mfu : NAN, DIGITS, out);
	report_csv_number(p ? p->time.exposed_comm_s : NAN, DIGITS, out);
	report_csv_number(r->predicted ? (double)r->predicted->memory.total_B : NAN, DIGITS, out);
	report_csv_number(r->predicted ? (double)r->predicted->memory.capacity_B : NAN, DIGITS, out);
	fprintf(out, ",%s", r->fits ? "true" : "false");
	report_csv_number(r->missing_B ? (double)r->missing_B : NAN, DIGITS, out);
	report_csv_number(r->power_W.value, DIGITS, out);
	report_csv_number(r->money.time_s, DIGITS, out);
	report_csv_number(r->money.energy_kWh, DIGITS, out);
	report_csv_number(r->money.rented_usd, DIGITS, out);
	report_csv_number(r->money.owned_usd, DIGITS, out);
	report_csv_number(r->money.rented_usd / billions, DIGITS, out);
	report_csv_number(r->money.owned_usd / billions, DIGITS, out);
	fputc(',', out);
	report_csv_cell(r->reason, out);
	report_csv_number(c->fixed_plan ? NAN : (double)r->plans_left, DIGITS, out);
	report_csv_number(r->money.co2_kg, DIGITS, out);
	report_csv_number(r->money.interruptions, DIGITS, out);
	fputc('\n', out);
}

static void write_csv(const void *of, FILE *out)
{
	const struct compare *c = of;
	fputs("rank,system,gpus,hosts,plan,step_time_s,interval90_low_s,interval90_high_s,tokens_per_s,mfu,"
	      "exposed_comm_s,total_bytes,capacity_bytes,fits,missing_bytes,power_w,time_s,energy_kwh,"
	      "rented_usd,owned_usd,rented_usd_per_billion_tokens,owned_usd_per_billion_tokens,reason,not_looked_at,"
	      "co2_kg,expected_interruptions\n",
		out);
	for (size_t i = 0; i < c->rows.n; i++)
		csv_row(c, &c->rows.at[i], out);
}

enum status report_compare_csv(const struct compare *c, const char *path, struct error *e)
{
	return file_write_of(path, write_csv, c, "the CSV", e);
}

/* ---- the picture ---- */

#define NAME 136 /* a row's, and what stands behind */

struct compare_bars {
	struct chart chart;
	struct chart_line line;
	struct chart_point *at;
	char (*name)[NAME];
	const char **names;
};

static const struct {
	const char *title, *unit;
} bars[BASIS_COUNT] = {[BY_TIME] = {"Predicted time for the tokens, 90 % interval", "days"},
	[BY_RENTED] = {"What renting costs, 90 % interval of the time", "USD"},
	[BY_OWNED] = {"What owning costs, 90 % interval of the time", "USD"}};

/* Days and not steps: rows of other sizes, or of another batch, are comparable all the same. */
enum status compare_bars_of(const struct compare *c, enum compare_basis basis, struct compare_bars **out,
	const struct chart **chart, struct error *e)
{
	struct compare_bars *b = *out = calloc(1, sizeof *b);
	const size_t most = c->rows.n + 1;
	const double per = basis == BY_TIME ? 86400 : 1;
	size_t n = 0;
	if (!b || !(b->at = calloc(most, sizeof *b->at)) || !(b->name = calloc(most, sizeof *b->name)) ||
		!(b->names = calloc(most, sizeof *b->names)))
		return error_nomem(e, "the plot");
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		double interval[2], v = r->fits ? compare_value(r, basis, interval) : NAN;
		if (!isfinite(v))
			continue;
		b->at[n] = (struct chart_point){.x = (double)n,
			.y = v / per,
			.low = interval[0] / per,
			.high = interval[1] / per};
		const bool partial = basis == BY_OWNED && (r->price_usd.partial || r->power_W.partial);
		snprintf(b->name[n], NAME, "%s%s", r->name, partial ? " +" : "");
		b->names[n] = b->name[n];
		n++;
	}
	b->line = (struct chart_line){.name = bars[basis].unit, .at = b->at, .n = n, .dots = true, .bars = true};
	b->chart = (struct chart){.title = bars[basis].title,
		.x_name = basis == BY_OWNED ? "system; +: the GPUs alone" : "system",
		.y_name = bars[basis].unit,
		.y_unit = UNIT_NONE,
		.x_words = b->names,
		.n_words = n,
		.line = &b->line,
		.lines = 1};
	*chart = &b->chart;
	return n ? ST_OK : error_set(e, ST_INPUT, "on none of the systems does anything fit");
}

void compare_bars_free(struct compare_bars *b)
{
	if (!b)
		return;
	free(b->at);
	free(b->name);
	free(b->names);
	free(b);
}

enum status report_compare_svg(const struct compare *c, const char *path, struct error *e)
{
	struct compare_bars *b = NULL;
	const struct chart *chart;
	enum status st = compare_bars_of(c, BY_TIME, &b, &chart, e);
	if (st == ST_INPUT)
		error_context(e, "--plot");
	if (!st)
		st = chart_save(chart, path, e);
	compare_bars_free(b);
	return st;
}
