/* `stepsim fit LOG... CONFIG.yaml [LOG... CONFIG.yaml]...`: the numbers of a stack as somebody's own runs have them. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "base/stats.h"
#include "base/table.h"
#include "base/version.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/logs.h"
#include "cli/machine.h"
#include "report/json_build.h"
#include "report/report.h"
#include "sim/advise/fit.h"
#include "step/config/keys.h"

#define INTERVAL_MIN 0.05 /* in log: no fit of a few runs knows the next one better */
#define GROUPS_MIN 3      /* left out in turn, from which an interval can be told */
#define NUMBER_MAX 48

/* The logs, the machine of each config, and what the fit says. */
struct own_fit {
	log_runs logs;
	struct target *targets; /* one a log; of logs of one config the first has it */
	struct fit_run *runs;   /* as logs */
	size_t configs;
	struct stack_fit found;
	double before, after, left_out; /* medians of |error|; left_out: NAN without cross-validation */
	double interval;                /* half-width in log of what was left out; 0: too few to tell */
};

static void own_fit_free(struct own_fit *f)
{
	for (size_t i = 0; f->targets && i < f->logs.n; i++)
		target_free(&f->targets[i]);
	free(f->targets);
	free(f->runs);
	vec_free(&f->logs);
}

/* ---- the runs ---- */

static enum status check_stack(const struct own_fit *f, struct error *e)
{
	const struct log_run *first = &f->logs.at[0];
	const char *stack = first->job.config.train.stack;
	for (size_t i = 0; i < f->logs.n; i++) {
		const struct log_run *r = &f->logs.at[i];
		if (strcmp(r->job.config.train.stack, stack) != 0)
			return error_set(e, ST_INPUT,
				"train.stack is %s in %s and %s in %s: the numbers of one stack are fitted", stack,
				first->config, r->job.config.train.stack, r->config);
		if (r->job.here)
			return error_set(e, ST_INPUT, "%s: fit needs cluster.system, the machine of the log",
				r->config);
	}
	return config_stack_is_file(stack)
	               ? error_set(e, ST_INPUT, "%s: train.stack is the file %s; fit from the stack that it is like",
				 first->config, stack)
	               : ST_OK;
}

/* Runs of one config are left out together; where there is one config, each log alone. */
static enum status fill_runs(struct own_fit *f, struct error *e)
{
	enum status st = ST_OK;
	f->targets = calloc(f->logs.n, sizeof *f->targets);
	f->runs = calloc(f->logs.n, sizeof *f->runs);
	if (!f->targets || !f->runs)
		return error_nomem(e, "the runs");
	for (size_t i = 0; i < f->logs.n && !st; i++) {
		struct log_run *r = &f->logs.at[i];
		const bool again = i && strcmp(r->config, f->logs.at[i - 1].config) == 0;
		if (!again)
			st = target_system(&r->job.config, &f->targets[i], e);
		f->configs += !again;
		f->runs[i] = (struct fit_run){.config = &r->job.config,
			.machine = again ? f->runs[i - 1].machine : &f->targets[i].machine,
			.measured_s = r->measured.median_s,
			.group = f->configs - 1};
	}
	for (size_t i = 0; i < f->logs.n && f->configs == 1; i++)
		f->runs[i].group = i;
	return st;
}

static double error_of(double predicted_s, const struct fit_run *r) { return predicted_s / r->measured_s - 1; }

static enum status sum_up(struct own_fit *f, struct error *e)
{
	const size_t n = f->logs.n;
	double *room = malloc(3 * n * sizeof *room), squares = 0;
	if (!room)
		return error_nomem(e, "the errors");
	for (size_t i = 0; i < n; i++) {
		const struct fit_run *r = &f->runs[i];
		room[i] = fabs(error_of(r->before_s, r));
		room[n + i] = fabs(error_of(r->after_s, r));
		room[2 * n + i] = fabs(error_of(r->left_out_s, r));
		squares += pow(log(r->left_out_s / r->measured_s), 2);
	}
	f->before = stats_median(room, n);
	f->after = stats_median(room + n, n);
	f->left_out = f->found.groups > 1 ? stats_median(room + 2 * n, n) : NAN;
	if (f->configs >= GROUPS_MIN)
		f->interval = fmax(INTERVAL_MIN, NORMAL_90 * sqrt(squares / (double)n));
	free(room);
	return ST_OK;
}

static void tell(double done) { progress_update(done, NULL); }

static enum status find(const struct options *o, struct own_fit *f, struct error *e)
{
	enum status st = log_runs_read(o, &f->logs, e);
	for (size_t i = 0; i < f->logs.n && !st; i++)
		log_run_warn(&f->logs.at[i]);
	if (st || (st = check_stack(f, e)) || (st = fill_runs(f, e)))
		return st;
	progress_begin("fitting");
	st = stack_fit(f->runs, f->logs.n, &f->found, tell, e);
	progress_end();
	return st ? st : sum_up(f, e);
}

/* ---- text ---- */

/* As a file of a stack has it: with its unit. */
static const char *number_text(char buf[NUMBER_MAX], size_t k, double v)
{
	if (stack_numbers[k].unit == UNIT_SECOND)
		snprintf(buf, NUMBER_MAX, v < 1e-3 ? "%.4gus" : "%.4gms", v < 1e-3 ? 1e6 * v : 1e3 * v);
	else
		snprintf(buf, NUMBER_MAX, "%.4g%s", v, stack_numbers[k].unit == UNIT_BYTE ? "B" : "");
	return buf;
}

static enum status print_numbers(const struct own_fit *f, FILE *out, struct error *e)
{
	struct table *t = table_create("<number|before|after|<what it is");
	enum status st = t ? ST_OK : error_nomem(e, "a table");
	bool any = false;
	for (size_t k = 0; k < STACK_NUMBERS && !st; k++) {
		const struct fit_number *n = &f->found.number[k];
		char before[NUMBER_MAX], after[NUMBER_MAX];
		if (!n->moved)
			continue;
		any = true;
		st = table_row(t, e, "%s|%s|%s|%s", stack_numbers[k].name, number_text(before, k, n->before),
			number_text(after, k, n->after), stack_numbers[k].meaning);
	}
	if (!st && any)
		table_print(t, out);
	else if (!st)
		fputs("No number moves: none changes a step by as much as its measurement is unsure.\n", out);
	table_destroy(t);
	return st;
}

static const char *percent(char buf[NUMBER_MAX], double error)
{
	if (!isfinite(error))
		return "-";
	snprintf(buf, NUMBER_MAX, "%+.1f %%", 100 * error);
	return buf;
}

static enum status print_runs(const struct own_fit *f, FILE *out, struct error *e)
{
	struct table *t = table_create("<log|measured|predicted|90 % interval|error|fitted|error|left out|error");
	enum status st = t ? ST_OK : error_nomem(e, "a table");
	for (size_t i = 0; i < f->logs.n && !st; i++) {
		const struct log_run *l = &f->logs.at[i];
		const struct fit_run *r = &f->runs[i];
		char q[4][QUANTITY_MAX], range[QUANTITY_RANGE], p[3][NUMBER_MAX];
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s|%s|%s|%s", log_run_name(l),
			quantity_format(q[0], r->measured_s, UNIT_SECOND),
			quantity_format(q[1], r->before_s, UNIT_SECOND),
			quantity_format_range(range, l->predicted.interval90_s[0], l->predicted.interval90_s[1],
				UNIT_SECOND),
			percent(p[0], error_of(r->before_s, r)), quantity_format(q[2], r->after_s, UNIT_SECOND),
			percent(p[1], error_of(r->after_s, r)), quantity_format(q[3], r->left_out_s, UNIT_SECOND),
			percent(p[2], error_of(r->left_out_s, r)));
	}
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

static void print_verdict(const struct own_fit *f, FILE *out)
{
	fprintf(out, "\nMedian error: %.1f %% before, %.1f %% fitted", 100 * f->before, 100 * f->after);
	if (f->found.groups < 2) {
		fputs(".\nOne log: nothing can be left out, so the error on another run is not known.\n", out);
		return;
	}
	fprintf(out, ", %.1f %% left out (each of %zu %s predicted by a fit to the others).\n", 100 * f->left_out,
		f->found.groups, f->configs > 1 ? "configs" : "logs");
	if (f->configs == 1)
		fputs("All logs are of one config: what is left out is a repeat, so the error on another config is not "
		      "known.\n",
			out);
	if (!(f->left_out < f->before))
		fputs("warning: left out, the runs are predicted no better than before: this fit is not worth using.\n",
			out);
}

static enum status print(const struct own_fit *f, FILE *out, struct error *e)
{
	fprintf(out, "Stack %s, %zu log%s of %zu config%s\n\n", f->logs.at[0].job.config.train.stack, f->logs.n,
		f->logs.n == 1 ? "" : "s", f->configs, f->configs == 1 ? "" : "s");
	enum status st = print_numbers(f, out, e);
	fputc('\n', out);
	if (!st)
		st = print_runs(f, out, e);
	if (!st)
		print_verdict(f, out);
	return st;
}

/* ---- the stack's file ---- */

/* Each GPU or format once. */
static void list_once(const struct own_fit *f, const char *(*of)(const struct fit_run *r), FILE *out)
{
	bool first = true;
	for (size_t i = 0; i < f->logs.n; i++) {
		bool before = false;
		for (size_t k = 0; k < i; k++)
			before = before || strcmp(of(&f->runs[k]), of(&f->runs[i])) == 0;
		if (!before)
			fprintf(out, "%s%s", first ? "" : ", ", of(&f->runs[i]));
		first = first && before;
	}
}

static const char *gpu_of(const struct fit_run *r) { return r->machine->device.id; }

static const char *format_of(const struct fit_run *r) { return dtype_name(r->config->train.dtype); }

static void write_stack(const void *of, FILE *out)
{
	const struct own_fit *f = of;
	char date[16] = "", number[NUMBER_MAX];
	const time_t now = time(NULL);
	struct tm t;
	strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &t));
	fprintf(out, "# Written by stepsim " STEPSIM_VERSION " fit; use it as train.stack: its path.\nlike: %s\n",
		f->logs.at[0].job.config.train.stack);
	fprintf(out, "source: \"fitted on %s to", date);
	for (size_t i = 0; i < f->logs.n; i++)
		fprintf(out, "%s %s", i ? "," : "", log_run_name(&f->logs.at[i]));
	fprintf(out, "; median error %.1f %% before, %.1f %% fitted", 100 * f->before, 100 * f->after);
	if (isfinite(f->left_out))
		fprintf(out, ", %.1f %% left out", 100 * f->left_out);
	fputs("\"\n", out);
	if (f->interval > 0) {
		fprintf(out, "interval: {value: %.3g, source: \"90 %% of what was left out of the fit\"}\n",
			f->interval);
		fputs("fitted_on: {gpus: [", out);
		list_once(f, gpu_of, out);
		fputs("], formats: [", out);
		list_once(f, format_of, out);
		fputs("]}\n", out);
	}
	bool any = false;
	for (size_t k = 0; k < STACK_NUMBERS; k++) {
		if (!f->found.number[k].moved)
			continue;
		fprintf(out, "%s  %s: {value: %s, source: \"stepsim fit\"}\n", any ? "" : "numbers:\n",
			stack_numbers[k].name, number_text(number, k, f->found.number[k].after));
		any = true;
	}
}

/* ---- JSON ---- */

static json_t *run_json(const struct log_run *l, const struct fit_run *r, bool *good)
{
	json_t *j = json_object();
	json_put(j, "log", json_string(l->log), good);
	json_put(j, "config_file", json_string(l->config), good);
	json_put(j, "measured_s", json_real(r->measured_s), good);
	json_put(j, "predicted_s", json_real(r->before_s), good);
	json_put(j, "interval90_s", json_pack("[f, f]", l->predicted.interval90_s[0], l->predicted.interval90_s[1]),
		good);
	json_put(j, "error", json_real(error_of(r->before_s, r)), good);
	json_put(j, "fitted_s", json_real(r->after_s), good);
	json_put(j, "fitted_error", json_real(error_of(r->after_s, r)), good);
	json_put(j, "left_out_s", json_number(r->left_out_s), good);
	json_put(j, "left_out_error", json_number(error_of(r->left_out_s, r)), good);
	return j;
}

static enum status write_json(const struct own_fit *f, const char *path, struct error *e)
{
	bool good = true;
	json_t *j = json_object(), *results = json_array(), *numbers = json_object();
	for (size_t i = 0; i < f->logs.n; i++)
		json_push(results, run_json(&f->logs.at[i], &f->runs[i], &good), &good);
	for (size_t k = 0; k < STACK_NUMBERS; k++)
		if (f->found.number[k].moved)
			json_put(numbers, stack_numbers[k].name,
				json_pack("{s:f, s:f}", "before", f->found.number[k].before, "after",
					f->found.number[k].after),
				&good);
	json_put(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(j, "stack", json_string(f->logs.at[0].job.config.train.stack), &good);
	json_put(j, "numbers", numbers, &good);
	json_put(j, "results", results, &good);
	json_put(j, "median_error", json_real(f->before), &good);
	json_put(j, "fitted_median_error", json_real(f->after), &good);
	json_put(j, "left_out_median_error", json_number(f->left_out), &good);
	json_put(j, "left_out_groups", json_integer((json_int_t)f->found.groups), &good);
	const enum status st = good ? report_write_json(j, path, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

/* ---- the command ---- */

enum status cmd_fit(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	struct own_fit f = {0};
	struct wrap w;
	enum status st = find(o, &f, e);
	if (!st && !options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, print(&f, w.out, e), e);
	if (!st && o->json)
		st = write_json(&f, o->json, e);
	if (!st && o->output && !(st = file_write_of(o->output, write_stack, &f, "the stack", e)) &&
		strcmp(o->output, "-") != 0)
		log_note("train.stack: %s takes these numbers", o->output);
	own_fit_free(&f);
	return st;
}
