#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/validate/lists.h"
#include "cli/validate/validate.h"
#include "report/report.h"

static enum status check_columns(const struct csv *t, struct error *e)
{
	static const char *const needed[] = {"id", "gpu", "n_gpus", "n_layers", "d_model", "n_heads", "vocab",
		"seq_len", "global_batch_seqs", "framework"};
	for (size_t i = 0; i < COUNT(needed); i++)
		if (csv_column(t, needed[i]) == CSV_NO_COLUMN)
			return error_set(e, ST_INPUT, "%s:1: no column %s: this is no table of measured steps", t->path,
				needed[i]);
	return ST_OK;
}

/* What the threads that judge rows share. */
struct judging {
	const struct csv *t;
	struct frameworks known;
	struct judged *at;     /* by row */
	struct error *failed;  /* by row */
	struct machines **own; /* by thread */
};

static void judge_row(void *judging, int thread, size_t i)
{
	const struct judging *j = judging;
	progress_update((double)i / (double)j->t->rows, csv_get(j->t, i, "id"));
	if (step_row_judge(j->t, i, &j->known, j->own[thread], &j->at[i], &j->failed[i]))
		error_context(&j->failed[i], "%s:%d", j->t->path, j->t->line[i]);
}

#define AT_ONCE 16 /* rows: the largest published runs take half a gigabyte each */

/* Judges the rows on all cores, so many of them at once. */
static enum status judge_all(const struct csv *t, judged_rows *rows, struct error *e)
{
	const int cores = threads_here(), threads = cores < AT_ONCE ? cores : AT_ONCE;
	struct judging j = {.t = t,
		.failed = calloc(t->rows + 1, sizeof *j.failed),
		.own = calloc((size_t)threads, sizeof *j.own)};
	enum status st = j.failed && j.own && vec_reserve(rows, t->rows) ? ST_OK : error_nomem(e, "the rows");
	for (int k = 0; k < threads && !st; k++)
		st = (j.own[k] = machines_create()) ? ST_OK : error_nomem(e, "the rows");
	if (!st && !(st = frameworks_load(&j.known, e))) {
		j.at = rows->at;
		rows->n = t->rows;
		progress_begin("predicting");
		threads_run(threads, t->rows, judge_row, &j);
		progress_end();
	}
	for (size_t i = 0; i < t->rows && !st; i++)
		if (j.failed[i].status)
			st = error_set(e, j.failed[i].status, "%s", j.failed[i].text);
	for (int k = 0; k < threads && j.own; k++)
		machines_destroy(j.own[k]);
	frameworks_free(&j.known);
	free(j.failed);
	free(j.own);
	return st;
}

static json_t *real(double x) { return x > 0 ? json_real(x) : json_null(); }

static enum status judge_collectives(const struct csv *t, judged_collectives *rows, struct error *e)
{
	static const char *const numbers[] = {"n_gpus", "n_nodes", "bytes", "time_us_outofplace", "algbw", "busbw",
		NULL};
	if (csv_check_numbers(t, numbers, e))
		return ST_INPUT;
	struct machines *machines = machines_create();
	enum status st = machines && vec_reserve(rows, t->rows) ? ST_OK : error_nomem(e, "the rows");
	for (size_t i = 0; i < t->rows && !st; i++) {
		if ((st = collective_row_judge(t, i, machines, &rows->at[rows->n], e)))
			error_context(e, "%s:%d", t->path, t->line[i]);
		else
			rows->n++;
	}
	collectives_mark_best(rows);
	machines_destroy(machines);
	return st;
}

/* JSON takes UTF-8 alone. Of a table in another encoding, or text that was cut within a character, only ASCII stays. */
static json_t *any_text(const char *s)
{
	json_t *j = json_string(s);
	char *plain = j ? NULL : strdup(s);
	for (char *p = plain; p && *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	if (plain)
		j = json_string(plain);
	free(plain);
	return j;
}

static json_t *text(const char *s) { return s && *s ? any_text(s) : json_null(); }

/* Takes over the row; where it cannot be kept, *results becomes NULL, so that no row is lost in silence. */
static void add_row(json_t **results, json_t *row)
{
	if (!json_array_append_new(*results, row))
		return;
	json_decref(*results);
	*results = NULL;
}

/* Takes over the results; NULL: a row did not fit in memory. */
static enum status write_results(json_t *results, const char *path, struct error *e)
{
	json_t *all = json_pack("{s:o}", "results", results);
	enum status st = all ? report_write_json(all, path, e) : error_nomem(e, "the JSON result");
	json_decref(all);
	return st;
}

static enum status write_collectives_json(const judged_collectives *rows, const char *path, struct error *e)
{
	json_t *results = json_array();
	for (size_t i = 0; i < rows->n && results; i++) {
		const struct judged_collective *j = &rows->at[i];
		bool good = !j->reason[0];
		json_t *row = json_pack(
			"{s:o, s:o, s:o, s:I, s:f, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:i, s:b, s:o, s:o, s:o, s:o}",
			"id", any_text(j->id), "machine", any_text(j->machine), "collective", any_text(j->collective),
			"ranks", (json_int_t)j->ranks, "bytes", j->bytes, "predicted_s",
			good ? json_real(j->predicted_s) : json_null(), "measured_s", j->measured_s, "error",
			good ? json_real(j->predicted_s / j->measured_s - 1) : json_null(), "interval90_s",
			good ? json_pack("[f, f]", j->interval90_s[0], j->interval90_s[1]) : json_null(), "busbw_Bps",
			real(j->busbw_Bps), "algorithm", text(j->algorithm), "protocol", text(j->protocol), "channels",
			j->channels, "best", j->best, "use", text(j->use), "network",
			text(network_known_name(j->network)), "fabric", text(j->fabric), "reason", text(j->reason));
		add_row(&results, row);
	}
	return write_results(results, path, e);
}

/* With -q only the summary is printed. */
static bool rows_wanted(void) { return log_level() != LOG_QUIET; }

static enum status validate_collectives(const struct csv *t, const struct options *o, struct error *e)
{
	judged_collectives rows = {0};
	enum status st = judge_collectives(t, &rows, e);
	if (!st && o->json)
		st = write_collectives_json(&rows, o->json, e);
	if (!st && o->csv)
		st = collective_rows_csv(&rows, o->csv, e);
	if (!st && !options_take_stdout(o) && !(rows_wanted() && (st = collective_rows_print(&rows, stdout, e))))
		st = collectives_print(&rows, stdout, e);
	vec_free(&rows);
	return st;
}

static enum status write_json(const judged_rows *rows, const char *path, struct error *e)
{
	json_t *results = json_array();
	for (size_t i = 0; i < rows->n && results; i++) {
		const struct judged *j = &rows->at[i];
		bool good = !j->reason[0];
		json_t *row = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
			any_text(j->id), "predicted_s", good ? json_real(j->predicted_s) : json_null(), "measured_s",
			real(j->measured_s), "error", good ? json_real(judged_error(j)) : json_null(), "interval90_s",
			good ? json_pack("[f, f]", j->interval90_s[0], j->interval90_s[1]) : json_null(),
			"interval90_parts", good ? report_interval_parts(j->interval_part) : json_null(),
			"predicted_memory_bytes", real(j->predicted_memory_B), "measured_memory_bytes",
			real(j->measured_memory_B), "fits", good ? json_boolean(j->fits) : json_null(), "tight",
			good ? json_boolean(j->tight) : json_null(), "network", text(network_known_name(j->network)),
			"reason", text(j->reason));
		add_row(&results, row);
	}
	return write_results(results, path, e);
}

/* ---- what is validated ---- */

/* Several files are logs of nccl-tests, and become one table; of tables one is read. */
static enum status load_logs(const struct options *o, struct csv *out, struct error *e)
{
	nccl_logs logs = {0};
	enum status st = ST_OK;
	for (size_t i = 0; i < o->n_positional && !st; i++)
		st = nccl_log_read(o->positional[i], &logs, e);
	if (!st)
		st = log_table(&logs, o->system, out, e);
	nccl_logs_free(&logs);
	return st;
}

static enum status load(const struct options *o, struct csv *out, struct error *e)
{
	if (o->n_positional > 1 || nccl_log_is(o->positional[0]))
		return load_logs(o, out, e);
	return o->system ? error_set(e, ST_INPUT, "--system %s: the rows of %s name their machines", o->system,
				   o->positional[0])
	                 : csv_load(o->positional[0], out, e);
}

enum status cmd_validate(struct context *x, struct error *e)
{
	struct csv t;
	judged_rows rows = {0};
	const struct word_lists *words;
	enum status st = word_lists_load(&words, e); /* first: lists that are broken would refuse each row */
	if (st || (st = load(x->options, &t, e)))
		return st;
	if (is_table_of_collectives(&t)) {
		st = validate_collectives(&t, x->options, e);
		goto out;
	}
	cells_tidy(&t);
	if ((st = check_columns(&t, e)) || (st = judge_all(&t, &rows, e)))
		goto out;
	if ((x->options->json && (st = write_json(&rows, x->options->json, e))) ||
		(x->options->csv && (st = rows_csv(&rows, x->options->csv, e))))
		goto out;
	if (!options_take_stdout(x->options) && !(rows_wanted() && (st = rows_print(&rows, stdout, e))))
		st = summary_print(&rows, stdout, e);
out:
	vec_free(&rows);
	csv_free(&t);
	return st;
}
