/* `stepsim compare-log LOG... CONFIG.yaml`: step times of a training log beside the prediction of its config. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "base/version.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/logs.h"
#include "report/json_build.h"
#include "report/report.h"

static bool inside(const struct log_run *r)
{
	return r->predicted.interval90_s[0] <= r->measured.median_s &&
	       r->measured.median_s <= r->predicted.interval90_s[1];
}

static enum status add_row(struct table *t, const struct log_run *r, struct error *e)
{
	const struct train_log_summary *m = &r->measured;
	char q[2][QUANTITY_MAX], range[2][QUANTITY_RANGE];
	return table_row(t, e, "%s|%s|%zu|%s|%s|%s|%s|%+.1f %%|%s", log_run_name(r), r->framework, m->lines,
		quantity_format(q[0], m->median_s, UNIT_SECOND),
		quantity_format_range(range[0], m->p10_s, m->p90_s, UNIT_SECOND),
		quantity_format(q[1], r->predicted.time.step_s, UNIT_SECOND),
		quantity_format_range(range[1], r->predicted.interval90_s[0], r->predicted.interval90_s[1],
			UNIT_SECOND),
		100 * log_run_error(r), inside(r) ? "" : "outside");
}

/* Further figures of both sides, where the log has them. */
static void print_notes(const struct log_run *r, FILE *out)
{
	const struct train_log_summary *m = &r->measured;
	char q[2][QUANTITY_MAX];
	fprintf(out, "%s: median of %zu line%s of steps %lld to %lld; %zu left out (warm-up, skipped steps).\n",
		log_run_name(r), m->lines, m->lines == 1 ? "" : "s", (long long)m->first, (long long)m->last,
		m->left_out);
	fprintf(out, "  Tokens a second and GPU: %.0f measured, %.0f predicted.\n", m->tokens_per_s_per_gpu,
		r->predicted.tokens_per_s_per_gpu);
	if (r->memory_B > 0)
		fprintf(out, "  Memory of a GPU: the log's allocator reserved %s at the most, the prediction is %s.\n",
			quantity_format(q[0], r->memory_B, UNIT_BYTE),
			quantity_format(q[1], (double)r->predicted.memory.total_B, UNIT_BYTE));
}

static enum status print(const log_runs *runs, FILE *out, struct error *e)
{
	struct table *t = table_create("<log|<of|lines|measured|p10 to p90|predicted|90 % interval|error|<");
	enum status st = t ? ST_OK : error_nomem(e, "a table");
	for (size_t i = 0; i < runs->n && !st; i++)
		st = add_row(t, &runs->at[i], e);
	if (!st) {
		table_print(t, out);
		fputc('\n', out);
		for (size_t i = 0; i < runs->n; i++)
			print_notes(&runs->at[i], out);
	}
	table_destroy(t);
	return st;
}

/* ---- JSON ---- */

static json_t *measured_json(const struct log_run *r, bool *good)
{
	const struct train_log_summary *m = &r->measured;
	json_t *j = json_object();
	json_put(j, "step_time_s", json_real(m->median_s), good);
	json_put(j, "p10_s", json_real(m->p10_s), good);
	json_put(j, "p90_s", json_real(m->p90_s), good);
	json_put(j, "step_time_min_s", json_real(m->min_s), good);
	json_put(j, "step_time_max_s", json_real(m->max_s), good);
	json_put(j, "lines", json_integer((json_int_t)m->lines), good);
	json_put(j, "left_out", json_integer((json_int_t)m->left_out), good);
	json_put(j, "first_step", json_integer((json_int_t)m->first), good);
	json_put(j, "last_step", json_integer((json_int_t)m->last), good);
	json_put(j, "tokens_per_s_per_gpu", json_real(m->tokens_per_s_per_gpu), good);
	json_put(j, "stamped_step_time_s", m->stamped_s > 0 ? json_real(m->stamped_s) : json_null(), good);
	json_put(j, "memory_bytes", r->memory_B > 0 ? json_real(r->memory_B) : json_null(), good);
	return j;
}

static json_t *run_json(const struct log_run *r, bool *good)
{
	const struct result *p = &r->predicted;
	json_t *j = json_object(), *predicted = json_object();
	json_put(predicted, "step_time_s", json_real(p->time.step_s), good);
	json_put(predicted, "interval90_s", json_pack("[f, f]", p->interval90_s[0], p->interval90_s[1]), good);
	json_put(predicted, "tokens_per_s_per_gpu", json_real(p->tokens_per_s_per_gpu), good);
	json_put(predicted, "memory_bytes", json_real((double)p->memory.total_B), good);
	json_put(j, "log", json_string(r->log), good);
	json_put(j, "config_file", json_string(r->config), good);
	json_put(j, "framework", json_string(r->framework), good);
	json_put(j, "measurement", measured_json(r, good), good);
	json_put(j, "prediction", predicted, good);
	json_put(j, "error", json_number(log_run_error(r)), good);
	json_put(j, "inside_interval", json_boolean(inside(r)), good);
	return j;
}

static enum status write_json(const log_runs *runs, const char *path, struct error *e)
{
	bool good = true;
	json_t *j = json_object(), *results = json_array();
	for (size_t i = 0; i < runs->n; i++)
		json_push(results, run_json(&runs->at[i], &good), &good);
	json_put(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(j, "results", results, &good);
	const enum status st = good ? report_write_json(j, path, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

/* ---- the command ---- */

static enum status check_limit(const struct options *o, const log_runs *runs, struct error *e)
{
	for (size_t i = 0; i < runs->n && o->max_error_percent >= 0; i++) {
		const double percent = 100 * log_run_error(&runs->at[i]);
		if (!(fabs(percent) <= o->max_error_percent))
			return error_set(e, ST_LIMIT, "%s: the predicted step time is off by %+.1f %%; --max-error %g",
				runs->at[i].log, percent, o->max_error_percent);
	}
	return ST_OK;
}

enum status cmd_compare_log(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	log_runs runs = {0};
	struct wrap w;
	enum status st = log_runs_read(o, &runs, e);
	for (size_t i = 0; i < runs.n && !st; i++)
		log_run_warn(&runs.at[i]);
	if (!st && !options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, print(&runs, w.out, e), e);
	if (!st && o->json)
		st = write_json(&runs, o->json, e);
	if (!st)
		st = check_limit(o, &runs, e);
	vec_free(&runs);
	return st;
}
