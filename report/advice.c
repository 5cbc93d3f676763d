/* Advice as text and as JSON. */
#include <math.h>

#include "base/quantity.h"
#include "base/table.h"
#include "report/json_build.h"
#include "report/report.h"
#include "report/text.h"
#include "step/advice.h"

#define SHORT_ROWS 4 /* of the block under the table */

static const char *const symptom_words[SYMPTOM_COUNT] = {
	[SYMPTOM_DATA] = "data-starved",
	[SYMPTOM_SYNC] = "synchronised with the host",
	[SYMPTOM_LAUNCH] = "launch-bound",
	[SYMPTOM_COMM] = "exposed communication",
	[SYMPTOM_BUBBLE] = "pipeline bubble",
	[SYMPTOM_DTYPE] = "a format without the fast matrix units",
	[SYMPTOM_MEMORY] = "bandwidth-bound",
	[SYMPTOM_COMPUTE] = "compute-bound",
};
static const char *const stage_words[WORK_STAGES] = {
	[WORK_DTYPE] = "format",
	[WORK_FEED] = "feed",
	[WORK_FUSE] = "fuse",
	[WORK_FIT] = "fit",
	[WORK_COMMUNICATE] = "communicate",
	[WORK_PIPELINE] = "pipeline",
};

/* ---- text ---- */

/* Where the plan fits the table has what a change saves, else what it adds to the step. */
static enum status add_row(struct table *t, const struct advice_row *r, bool fits, double step_s, struct error *e)
{
	const double gain_s = fits ? r->saves_s : 0.0 - r->saves_s;
	char seconds[QUANTITY_MAX], text[ADVICE_SETS * (ADVICE_TEXT + 8)] = "";
	size_t n = 0;
	for (size_t i = 0; i < r->n_sets; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s--set %s", i ? " " : "", r->set[i]);
	quantity_format(seconds, fabs(gain_s), UNIT_SECOND);
	return table_row(t, e, "  %s|%s%s%s|%.1f %%|%d %s|%s", r->what, r->estimated ? "~" : "", gain_s < 0 ? "-" : "",
		seconds, 100 * gain_s / step_s, (int)r->stage + 1, stage_words[r->stage], text);
}

static enum status rows_table(const struct advice *a, size_t from, size_t to, double step_s, struct table **out,
	struct error *e)
{
	struct table *t = *out = table_create(
		a->fits ? "<|saves|of the step|<tuning stage|<with" : "<|adds|of the step|<tuning stage|<with");
	enum status st = t ? ST_OK : error_nomem(e, "the advice");
	for (size_t i = from; i < to && !st; i++)
		st = add_row(t, &a->row[i], a->fits, step_s, e);
	return st;
}

static enum status print_rows(const struct advice *a, size_t from, size_t to, double step_s, FILE *out, struct error *e)
{
	struct table *t = NULL;
	enum status st = rows_table(a, from, to, step_s, &t, e);
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

static void print_counts(const struct advice *a, FILE *out)
{
	fprintf(out, "%lld change%s tried", (long long)a->tried, a->tried == 1 ? "" : "s");
	if (a->untried > 0)
		fprintf(out, "; -v tries %lld more, which take longer", (long long)a->untried);
}

void text_advice_head(const struct outcome *o, FILE *out)
{
	const struct advice *a = o->advice;
	if (a->n == 0 && !a->fits) /* what slows a step that cannot run is no symptom */
		fputs("No change makes it fit in memory (", out);
	else if (a->n == 0)
		fprintf(out, "Symptom: %s. No single change shortens the step by 0.5 %% or more (",
			symptom_words[a->symptom]);
	else if (a->fits)
		fprintf(out, "Changes that shorten the step, each alone; symptom: %s (", symptom_words[a->symptom]);
	else
		fputs("Changes that make it fit in memory, each alone, the shortest step first (", out);
	print_counts(a, out);
	fputs(")\n", out);
}

enum status text_advice(const struct outcome *o, struct table **out, struct error *e)
{
	return rows_table(o->advice, 0, o->advice->n, o->predicted->time.step_s, out, e);
}

enum status report_advice(const struct outcome *o, FILE *out, struct error *e)
{
	const struct advice *a = o->advice;
	fputc('\n', out);
	text_advice_head(o, out);
	enum status st = ST_OK;
	if (a->n > 0)
		st = print_rows(a, 0, a->n < SHORT_ROWS ? a->n : SHORT_ROWS, o->predicted->time.step_s, out, e);
	if (!st && !a->fits)
		fputs("`stepsim plan` searches for the fastest plan that fits.\n", out);
	return st;
}

static enum status sensitivity_table(const struct outcome *o, FILE *out, struct error *e)
{
	struct table *t = table_create("<|change|saves|elasticity|step without it");
	enum status st = t ? ST_OK : error_nomem(e, "the sensitivities");
	for (size_t i = 0; i < o->advice->n_sensitivity && !st; i++) {
		const struct sensitivity *s = &o->advice->sensitivity[i];
		char saves[QUANTITY_MAX], limit[QUANTITY_MAX], elasticity[16] = "";
		if (!isnan(s->elasticity))
			snprintf(elasticity, sizeof elasticity, "%.3f", s->elasticity);
		st = table_row(t, e, "  %s|%s|%s|%s|%s", s->what, s->change,
			isnan(s->saves_s) ? "" : quantity_format(saves, fmax(0, s->saves_s), UNIT_SECOND), elasticity,
			quantity_format(limit, s->limit_s, UNIT_SECOND));
	}
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

enum status report_advice_more(const struct outcome *o, FILE *out, struct error *e)
{
	const struct advice *a = o->advice;
	enum status st = ST_OK;
	if (a->n > SHORT_ROWS) {
		fprintf(out, "Further changes, each alone:\n");
		st = print_rows(a, SHORT_ROWS, a->n, o->predicted->time.step_s, out, e);
	}
	if (!st && a->n_sensitivity > 0) {
		fprintf(out, "sensitivity: time saved by a small change of a rate, "
			     "and the step if that part took no time:\n");
		st = sensitivity_table(o, out, e);
	}
	return st;
}

/* ---- JSON ---- */

static json_t *row_json(const struct advice_row *r, bool *good)
{
	json_t *o = json_object(), *sets = json_array();
	for (size_t i = 0; i < r->n_sets; i++)
		json_push(sets, json_string(r->set[i]), good);
	json_put(o, "what", json_string(r->what), good);
	json_put(o, "set", sets, good);
	json_put(o, "saves_s", json_number(r->saves_s), good);
	json_put(o, "memory_bytes", json_integer((json_int_t)r->memory_B), good);
	json_put(o, "stage", json_string(stage_words[r->stage]), good);
	json_put(o, "order", json_integer((int)r->stage + 1), good);
	json_put(o, "estimated", json_boolean(r->estimated), good);
	return o;
}

static json_t *sensitivity_json(const struct sensitivity *s, bool *good)
{
	json_t *o = json_object();
	json_put(o, "what", json_string(s->what), good);
	json_put(o, "change", json_string(s->change), good);
	json_put(o, "saves_s", json_number(s->saves_s), good);
	json_put(o, "elasticity", json_number(s->elasticity), good);
	json_put(o, "limit_s", json_number(s->limit_s), good);
	return o;
}

void report_put_advice(json_t *prediction, const struct advice *a, bool *good)
{
	json_t *rows = json_array(), *parts = json_array();
	for (size_t i = 0; a && i < a->n; i++)
		json_push(rows, row_json(&a->row[i], good), good);
	for (size_t i = 0; a && i < a->n_sensitivity; i++)
		json_push(parts, sensitivity_json(&a->sensitivity[i], good), good);
	json_put(prediction, "advice", rows, good);
	json_put(prediction, "advice_untried", a ? json_integer(a->untried) : json_null(), good);
	json_put(prediction, "symptom", a ? json_string(symptom_words[a->symptom]) : json_null(), good);
	json_put(prediction, "sensitivity", parts, good);
}
