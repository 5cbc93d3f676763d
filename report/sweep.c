#include "report/sweep.h"

#include <math.h>
#include <string.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "base/table.h"
#include "base/version.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/sweep_chart.h"
#include "report/verdict.h"

#define LINE 1024

/* ---- the table ---- */

static size_t add_values(const struct sweep *s, const struct sweep_row *r, char *line)
{
	size_t n = 0;
	for (size_t a = 0; a < s->axes && n < LINE; a++)
		n += (size_t)snprintf(line + n, LINE - n, "%s%s", a ? "|" : "", s->axis[a].value[r->at[a]]);
	return n < LINE ? n : LINE - 1;
}

/* Characters of a bottleneck without its "of the step", which every row would repeat. */
static int brief(const char *bottleneck)
{
	static const char end[] = " of the step";
	const size_t n = strlen(bottleneck), tail = sizeof end - 1;
	return (int)(n > tail && strcmp(bottleneck + n - tail, end) == 0 ? n - tail : n);
}

static const char *percent(char text[QUANTITY_MAX], double share)
{
	snprintf(text, QUANTITY_MAX, isnan(share) ? "-" : "%.1f %%", 100 * share);
	return text;
}

static enum status add_row(struct table *t, const struct sweep *s, const struct sweep_row *r, struct error *e)
{
	static const char *const marks[] = {[FIT_NOT] = " (too much)", [FIT_TIGHT] = " (tight)", [FIT_WELL] = ""};
	const char *mark;
	char line[LINE], q[6][QUANTITY_MAX];
	size_t n = add_values(s, r, line);
	const struct result *p = r->predicted;
	if (!p) {
		snprintf(line + n, LINE - n, "||||||||%.300s", r->reason);
		for (char *c = line + n + 8; *c; c++)
			*c = *c == '|' ? '/' : *c;
		return table_row(t, e, "%s", line);
	}
	mark = verdict_may_fit(&p->memory) ? " (may fit)" : marks[verdict_fit(&p->memory)];
	snprintf(line + n, LINE - n, "|%lld|%s|%s|%s|%s|%s|%s%s|%.*s", (long long)r->ranks,
		quantity_format(q[0], p->time.step_s, UNIT_SECOND), quantity_format(q[1], p->tokens_per_s, UNIT_NONE),
		percent(q[4], p->mfu), quantity_format(q[2], p->time.exposed_comm_s, UNIT_SECOND),
		percent(q[5], p->time.overlap), quantity_format(q[3], (double)p->memory.total_B, UNIT_BYTE), mark,
		brief(p->bottleneck), p->bottleneck);
	return table_row(t, e, "%s", line);
}

enum status sweep_table(const struct sweep *s, struct table **out, struct error *e)
{
	char head[LINE];
	size_t n = 0;
	for (size_t a = 0; a < s->axes && n < LINE; a++)
		n += (size_t)snprintf(head + n, LINE - n, "%s%s", a ? "|" : "", s->axis[a].key);
	if (n < LINE)
		snprintf(head + n, LINE - n, "|ranks|step time|tokens/s|MFU|exposed|overlap|memory|<bottleneck");
	*out = table_create(head);
	enum status st = *out ? ST_OK : error_nomem(e, "the table");
	for (size_t i = 0; i < s->rows.n && !st; i++)
		st = add_row(*out, s, &s->rows.at[i], e);
	return st;
}

enum status report_sweep_text(const struct sweep *s, FILE *out, struct error *e)
{
	struct table *t = NULL;
	enum status st = sweep_table(s, &t, e);
	if (!st) {
		fputs(verdict_sweep_best(s) ? "" : "DOES NOT FIT. ", out);
		verdict_sweep(s, out);
		fputs(".\n\n", out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

/* ---- CSV ---- */

static void csv_row(const struct sweep *s, const struct sweep_row *r, FILE *out)
{
	const struct result *p = r->predicted;
	for (size_t a = 0; a < s->axes; a++) {
		if (a)
			fputc(',', out);
		report_csv_cell(s->axis[a].value[r->at[a]], out);
	}
	if (p)
		report_csv_step(p, r->ranks, out);
	else
		fputs(",,,,,,,,,,,", out);
	report_csv_cell(p ? p->bottleneck : r->reason, out);
	fputc('\n', out);
}

static void write_csv(const void *of, FILE *out)
{
	const struct sweep *s = of;
	for (size_t a = 0; a < s->axes; a++)
		fprintf(out, "%s,", s->axis[a].key);
	fputs(REPORT_CSV_STEP ",bottleneck_or_reason\n", out);
	for (size_t i = 0; i < s->rows.n; i++)
		csv_row(s, &s->rows.at[i], out);
}

enum status report_sweep_csv(const struct sweep *s, const char *path, struct error *e)
{
	return file_write_of(path, write_csv, s, "the CSV", e);
}

/* ---- JSON ---- */

static json_t *row_json(const struct sweep *s, const struct sweep_row *r)
{
	json_t *set = json_object();
	for (size_t a = 0; a < s->axes; a++)
		json_object_set_new(set, s->axis[a].key, json_string(s->axis[a].value[r->at[a]]));
	return json_pack("{s:o, s:o, s:o, s:o}", "set", set, "ranks",
		r->predicted ? json_integer((json_int_t)r->ranks) : json_null(), "prediction",
		r->predicted ? report_side_json(r->predicted) : json_null(), "reason",
		r->predicted ? json_null() : json_string(r->reason));
}

enum status report_sweep_json(const struct sweep *s, const char *path, struct error *e)
{
	json_t *results = json_array(), *j = json_pack("{s:s, s:o}", "stepsim", STEPSIM_VERSION, "results", results);
	bool good = j != NULL;
	for (size_t i = 0; i < s->rows.n && good; i++)
		good = json_array_append_new(results, row_json(s, &s->rows.at[i])) == 0;
	enum status st = good ? report_write_json(j, path, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}
