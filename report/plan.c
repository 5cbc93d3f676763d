#include "report/plan_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "base/table.h"
#include "base/version.h"
#include "report/json_build.h"
#include "report/report.h"
#include "report/verdict.h"
#include "step/mesh.h"

/* ---- the table ---- */

static enum status add_row(struct table *t, const char *place, const struct plan_row *r, struct error *e)
{
	const struct result *p = r->predicted;
	const double left_B = (double)p->memory.capacity_B - (double)p->memory.total_B;
	char words[PLAN_WORDS], q[5][QUANTITY_MAX], range[QUANTITY_RANGE];
	return table_row(t, e, "%s|%s|%s|%s|%s|%.1f %%|%s|%s%s|%s|%s", place, plan_words(r->config, words),
		quantity_format(q[0], p->time.step_s, UNIT_SECOND),
		quantity_format_range(range, p->interval90_s[0], p->interval90_s[1], UNIT_SECOND),
		quantity_format(q[1], p->tokens_per_s, UNIT_NONE), 100 * p->mfu,
		quantity_format(q[2], (double)p->memory.total_B, UNIT_BYTE),
		quantity_format(q[3], fabs(left_B), UNIT_BYTE), left_B < 0 ? " too much" : "",
		quantity_format(q[4], p->time.exposed_comm_s, UNIT_SECOND), p->bottleneck);
}

enum status plan_rows_table(const struct plan_report *p, struct table **out, struct error *e)
{
	struct table *t = *out = table_create(
		"|<plan|step time|90 % interval|tokens/s|MFU|memory|free|exposed|<limited by");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	for (size_t i = 0; i < p->rows && !st; i++) {
		char place[24];
		snprintf(place, sizeof place, "%zu", i + 1);
		st = add_row(t, place, &p->row[i], e);
	}
	if (!st && p->rows == 0 && p->least.predicted)
		st = add_row(t, "least", &p->least, e);
	if (!st && p->start.predicted && !(st = table_row(t, e, "-")))
		st = add_row(t, "config", &p->start, e);
	return st;
}

const char *plan_front_mark(size_t i, char mark[PLAN_MARK])
{
	const size_t letters = 'z' - 'a' + 1;
	if (i < letters)
		snprintf(mark, PLAN_MARK, "%c", (char)('a' + i));
	else
		snprintf(mark, PLAN_MARK, "%c%zu", (char)('a' + i % letters), i / letters);
	return mark;
}

enum status plan_front_table(const struct plan_report *p, struct table **out, struct error *e)
{
	struct table *t = *out = table_create("<|memory|step time|over the best|<plan");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	for (size_t i = 0; i < p->points && !st; i++) {
		const struct plan_point *at = &p->point[i];
		char words[PLAN_WORDS], mark[PLAN_MARK], q[2][QUANTITY_MAX];
		st = table_row(t, e, "%s|%s|%s|%+.1f %%|%s", plan_front_mark(i, mark),
			quantity_format(q[0], (double)at->memory_B, UNIT_BYTE),
			quantity_format(q[1], at->step_s, UNIT_SECOND),
			100 * (at->step_s / p->point[p->points - 1].step_s - 1), plan_words(at->config, words));
	}
	return st;
}

void plan_title(const struct plan_report *p, FILE *out)
{
	const struct plan_row *any = p->rows ? &p->row[0] : p->least.predicted ? &p->least : &p->start;
	fprintf(out, "%s, %" PRId64 " sequence%s of %" PRId64 " tokens a step, on %s: plans, best first\n",
		any->config->model.name, any->config->train.global_batch,
		any->config->train.global_batch == 1 ? "" : "s", any->config->model.seq_len, p->system);
}

static bool pipeline_spans_hosts(const struct config *c)
{
	const struct mesh m = mesh_of(c);
	return c->node_ranks > 0 && m.size[DIM_PP] > 1 && m.size[DIM_PP] * m.stride[DIM_PP] > c->node_ranks;
}

/* Says that a best plan may stall as published ones did, and which plan to time beside it. */
static void warn_of_stalls(const struct plan_report *p, FILE *out)
{
	const double best_s = p->rows > 0 ? p->row[0].predicted->time.step_s : 0;
	size_t other = 1;
	if (p->rows == 0 || !pipeline_spans_hosts(p->row[0].config))
		return;
	while (other < p->rows && pipeline_spans_hosts(p->row[other].config))
		other++;
	fputs("The best plan's pipeline spans hosts. Many published runs of such plans took far longer than predicted "
	      "(docs/pipelines.md): also time ",
		out);
	if (other < p->rows)
		fprintf(out, "plan %zu, %.1f %% slower, which sends no stage's output between hosts.\n", other + 1,
			100 * (p->row[other].predicted->time.step_s / best_s - 1));
	else
		fputs("the best plan of --set parallel.pipeline=1.\n", out);
}

void plan_start(const struct plan_report *p, FILE *out)
{
	char q[QUANTITY_MAX];
	if (p->rows == 0 && p->least.predicted) {
		fprintf(out, "No plan fits. The one that needs least lacks %s of memory on each device",
			quantity_format(q, (double)p->missing_B, UNIT_BYTE));
		verdict_error(&p->least.predicted->memory, out);
		fputs(".\n", out);
	}
	if (p->rows > 0 && p->memory_share > p->usual_share)
		fprintf(out, "No plan leaves %.0f %% of the memory free; those that fit are shown.\n",
			100 * (1 - p->usual_share));
	if (!p->start.predicted) {
		fprintf(out, "The config's own plan is illegal: %s\n", p->start_reason);
	} else if (p->rows > 0 && !p->start.predicted->memory.fits) {
		fputs("The config's own plan does not fit", out);
		verdict_error(&p->start.predicted->memory, out);
		fputs(".\n", out);
	} else if (p->rows > 0) {
		const double own_s = p->start.predicted->time.step_s, best_s = p->row[0].predicted->time.step_s,
			     faster = 100 * (1 - best_s / own_s);
		const struct result_memory *own = &p->start.predicted->memory;
		if ((double)own->total_B > p->memory_share * (double)own->capacity_B)
			fprintf(out,
				"The config's own plan fills %.0f %% of the memory; plans may use %.0f %%, and the "
				"best takes %.1f %% %s time.\n",
				100 * (double)own->total_B / (double)own->capacity_B, 100 * p->memory_share,
				fabs(faster), faster > 0 ? "less" : "more");
		else if (faster > 0)
			fprintf(out, "The best plan takes %.1f %% less time than the config's own.\n", faster);
		else
			fputs("The config's own plan is as good as the best of these.\n", out);
	}
	warn_of_stalls(p, out);
}

void plan_front(const struct plan_report *p, FILE *out)
{
	fprintf(out, "Pareto front: less memory for more time (plans up to %.0f %% slower than the best):\n",
		100 * (p->front - 1));
}

void plan_legend(const struct plan_report *p, FILE *out)
{
	char words[PLAN_WORDS];
	uint32_t terms = 0;
	for (size_t i = 0; i < p->rows; i++)
		terms |= plan_terms(plan_words(p->row[i].config, words));
	for (size_t i = 0; i < p->points; i++)
		terms |= plan_terms(plan_words(p->point[i].config, words));
	if (p->start.predicted)
		terms |= plan_terms(plan_words(p->start.config, words));
	if (p->least.predicted)
		terms |= plan_terms(plan_words(p->least.config, words));
	plan_terms_explain(terms, out);
}

void plan_counts(const struct plan_report *p, FILE *out)
{
	char share[48] = "too much";
	if (p->left_cuts || p->left_tensor)
		fprintf(out, "not searched: %s%s%s\n",
			p->left_cuts ? "zero2, fsdp and hsdp inside a pipeline (only where the config has them there)"
				     : "",
			p->left_cuts && p->left_tensor ? "; " : "",
			p->left_tensor ? "tensor parallelism across nodes" : "");
	if (p->memory_share < 1)
		snprintf(share, sizeof share, "more than %.0f %% of the", 100 * p->memory_share);
	fprintf(out,
		"%" PRId64 " plans: %" PRId64 " illegal, %" PRId64 " need %s memory, %" PRId64
		" cannot be among the best%s, %" PRId64 " timed; those shown are predicted in full\n",
		p->plans, p->illegal, p->too_large, share, p->pruned, p->exhaustive ? " (--exhaustive: none)" : "",
		p->timed);
	if (p->left > 0)
		fprintf(out,
			"%" PRId64 " plans were not evaluated, because each needs a simulation; one may be better "
			"(fewer plans: hold keys with --set; all: --exhaustive)\n",
			p->left);
}

enum status report_plan_text(const struct plan_report *p, FILE *out, struct error *e)
{
	struct table *rows = NULL, *front = NULL;
	enum status st = plan_rows_table(p, &rows, e);
	if (!st && p->points > 1)
		st = plan_front_table(p, &front, e);
	if (!st) {
		plan_title(p, out);
		fputc('\n', out);
		table_print(rows, out);
		fputc('\n', out);
		plan_start(p, out);
		if (front) {
			fputc('\n', out);
			plan_front(p, out);
			table_print(front, out);
		}
		fputc('\n', out);
		plan_legend(p, out);
		plan_counts(p, out);
	}
	table_destroy(rows);
	table_destroy(front);
	return st ? st : ferror(out) ? error_set(e, ST_RUN, "the table could not be written") : ST_OK;
}

/* ---- CSV ---- */

static void csv_row(const char *place, const struct plan_row *r, FILE *out)
{
	const struct result *p = r->predicted;
	char words[PLAN_WORDS];
	fprintf(out, "%s,%s", place, plan_words(r->config, words));
	for (int k = 0; k < PLAN_KEYS; k++) {
		char value[PLAN_VALUE];
		fprintf(out, ",%s", plan_value(r->config, (enum plan_key)k, value));
	}
	report_csv_step(p, r->config->ranks, out);
	fprintf(out, "\"%s\"\n", p->bottleneck);
}

static void write_csv(const void *of, FILE *out)
{
	const struct plan_report *p = of;
	fputs("place,plan", out);
	for (int k = 0; k < PLAN_KEYS; k++)
		fprintf(out, ",%s", plan_key_path((enum plan_key)k));
	fputs("," REPORT_CSV_STEP ",bottleneck\n", out);
	for (size_t i = 0; i < p->rows; i++) {
		char place[24];
		snprintf(place, sizeof place, "%zu", i + 1);
		csv_row(place, &p->row[i], out);
	}
	if (p->rows == 0 && p->least.predicted)
		csv_row("least", &p->least, out);
	if (p->start.predicted)
		csv_row("config", &p->start, out);
}

enum status report_plan_csv(const struct plan_report *p, const char *path, struct error *e)
{
	return file_write_of(path, write_csv, p, "the CSV", e);
}

/* ---- JSON ---- */

static json_t *row_json(const struct plan_row *r, bool *good)
{
	char words[PLAN_WORDS];
	if (!r->predicted)
		return json_null();
	json_t *row = report_side_json(r->predicted);
	json_put(row, "plan", json_string(plan_words(r->config, words)), good);
	json_put(row, "config", config_json(r->config), good);
	return row;
}

static json_t *front_json(const struct plan_report *p, bool *good)
{
	json_t *front = json_array();
	for (size_t i = 0; i < p->points; i++) {
		char words[PLAN_WORDS];
		json_t *point = json_object();
		json_put(point, "step_time_s", json_number(p->point[i].step_s), good);
		json_put(point, "total_bytes", json_integer((json_int_t)p->point[i].memory_B), good);
		json_put(point, "plan", json_string(plan_words(p->point[i].config, words)), good);
		json_push(front, point, good);
	}
	return front;
}

enum status report_plan_json(const struct plan_report *p, const char *path, struct error *e)
{
	bool good = true;
	json_t *root = json_object(), *results = json_array(), *counts = json_object();
	for (size_t i = 0; i < p->rows; i++)
		json_push(results, row_json(&p->row[i], &good), &good);
	json_put(counts, "plans", json_integer((json_int_t)p->plans), &good);
	json_put(counts, "illegal", json_integer((json_int_t)p->illegal), &good);
	json_put(counts, "too_large", json_integer((json_int_t)p->too_large), &good);
	json_put(counts, "pruned", json_integer((json_int_t)p->pruned), &good);
	json_put(counts, "not_looked_at", json_integer((json_int_t)p->left), &good);
	json_put(counts, "timed", json_integer((json_int_t)p->timed), &good);
	json_put(root, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(root, "system", p->system_json ? json_incref(p->system_json) : json_null(), &good);
	json_put(root, "ranks", json_integer((json_int_t)p->ranks), &good);
	json_put(root, "results", results, &good);
	json_put(root, "start", row_json(&p->start, &good), &good);
	json_put(root, "start_reason", p->start.predicted ? json_null() : json_string(p->start_reason), &good);
	json_put(root, "front", front_json(p, &good), &good);
	json_put(root, "counts", counts, &good);
	json_put(root, "least", row_json(&p->least, &good), &good);
	json_put(root, "missing_bytes", p->least.predicted ? json_integer((json_int_t)p->missing_B) : json_null(),
		&good);
	enum status st = good ? report_write_json(root, path, e) : error_nomem(e, "the JSON");
	json_decref(root);
	return st;
}

/* ---- the picture ---- */

#define FAR 0.1 /* of the step: plans that lie closer do not make others far */

static int by_memory(const void *a, const void *b)
{
	const struct chart_point *x = a, *y = b;
	return (x->x > y->x) - (x->x < y->x);
}

static struct chart_point point_of(double memory_B, double step_s, const char *mark)
{
	return (struct chart_point){.x = memory_B, .y = step_s, .low = NAN, .high = NAN, .label = mark};
}

static struct chart_point point_of_row(const struct plan_row *r, const char *mark)
{
	return point_of((double)r->predicted->memory.total_B, r->predicted->time.step_s, mark);
}

/* Returns whether a point so high would leave the others less than half of the picture. */
static bool is_far_above(const struct plan_report *p, double step_s)
{
	double least_s = INFINITY, most_s = 0;
	for (size_t i = 0; i < p->points; i++) {
		least_s = fmin(least_s, p->point[i].step_s);
		most_s = fmax(most_s, p->point[i].step_s);
	}
	for (size_t i = 0; i < p->rows; i++) {
		least_s = fmin(least_s, p->row[i].predicted->time.step_s);
		most_s = fmax(most_s, p->row[i].predicted->time.step_s);
	}
	return step_s - most_s > fmax(most_s - least_s, FAR * most_s);
}

enum status plan_chart(const struct plan_report *p,
	enum status (*take)(const struct chart *c, void *to, struct error *e), void *to, struct error *e)
{
	const size_t most = p->points + p->rows + 1;
	struct chart_point *front = calloc(most, sizeof *front), *best = front ? front + p->points : NULL, own;
	char(*mark)[PLAN_MARK] = calloc(most, sizeof *mark);
	enum status st = front && mark ? ST_OK : error_nomem(e, "the plot");
	if (!st && p->rows == 0)
		st = error_set(e, ST_INPUT, "no plan fits, and there is nothing to draw");
	if (st)
		goto out;
	for (size_t i = 0; i < p->points; i++)
		front[i] = point_of((double)p->point[i].memory_B, p->point[i].step_s, plan_front_mark(i, mark[i]));
	for (size_t i = 0; i < p->rows; i++) {
		char *place = mark[p->points + i];
		snprintf(place, PLAN_MARK, "%zu", i + 1);
		best[i] = point_of_row(&p->row[i], place);
	}
	qsort(front, p->points, sizeof *front, by_memory);
	qsort(best, p->rows, sizeof *best, by_memory);
	struct chart_line line[3];
	size_t lines = 0;
	if (p->points > 1)
		line[lines++] = (struct chart_line){.name = "Pareto front, lettered as in its table",
			.at = front,
			.n = p->points};
	line[lines++] = (struct chart_line){.name = "best plans, numbered as in the table",
		.at = best,
		.n = p->rows,
		.dots = true};
	const struct result *start = p->start.predicted;
	char note[128] = "", q[2][QUANTITY_MAX];
	if (start && (!start->memory.fits || is_far_above(p, start->time.step_s))) {
		snprintf(note, sizeof note, "not drawn: the config's own, %s and %s%s",
			quantity_format(q[0], start->time.step_s, UNIT_SECOND),
			quantity_format(q[1], (double)start->memory.total_B, UNIT_BYTE),
			start->memory.fits ? "" : ", which does not fit");
	} else if (start) {
		own = point_of_row(&p->start, "config");
		line[lines++] = (struct chart_line){.name = "the config's own", .at = &own, .n = 1, .dots = true};
	}
	const struct chart c = {.title = "Plans: step time and memory",
		.x_name = "memory of a device",
		.y_name = "step time; the axis does not begin at 0",
		.x_unit = UNIT_BYTE,
		.y_unit = UNIT_SECOND,
		.note = note[0] ? note : NULL,
		.close = true,
		.line = line,
		.lines = lines};
	st = take(&c, to, e);
out:
	free(front);
	free(mark);
	return st;
}

static enum status save(const struct chart *c, void *path, struct error *e)
{
	return chart_save(c, *(const char **)path, e);
}

enum status report_plan_svg(const struct plan_report *p, const char *path, struct error *e)
{
	enum status st = plan_chart(p, save, &path, e);
	if (st && p->rows == 0)
		error_context(e, "--plot");
	return st;
}
