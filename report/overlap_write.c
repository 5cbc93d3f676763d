#include <math.h>
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "base/version.h"
#include "report/figures.h"
#include "report/json_build.h"
#include "report/overlap.h"

#define CELL 48
#define NAME_SHOWN 72

static const char *seconds(char buf[CELL], double s) { return quantity_format(buf, s, UNIT_SECOND); }

/* ---- text ---- */

static enum status print_gpus(const struct overlap *o, FILE *out, struct error *e)
{
	struct table *t = table_create(
		"<GPU|steps|step time|compute|optimizer|exposed comm|copy|idle|communication|overlap|launch gaps");
	enum status st = t ? ST_OK : error_nomem(e, "a table");
	for (size_t i = 0; i < o->n && !st; i++) {
		const struct overlap_gpu *g = &o->gpus[i];
		const struct breakdown *b = &g->time;
		char c[8][CELL], steps[CELL], gaps[CELL], overlap[CELL] = "-";
		snprintf(steps, sizeof steps, g->steps ? "%lld" : "-", (long long)g->steps);
		if (b->comm_s > 0)
			snprintf(overlap, sizeof overlap, "%.1f %%", 100 * b->overlap);
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s", g->label, steps, seconds(c[0], b->step_s),
			seconds(c[1], b->compute_s), seconds(c[2], b->optimizer_s), seconds(c[3], b->exposed_comm_s),
			seconds(c[4], b->copy_s), seconds(c[5], b->idle_s), seconds(c[6], b->comm_s), overlap,
			g->launches_known ? seconds(gaps, g->launch_gap_s) : "-");
	}
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

/* Cells are parted by |, which names of kernels may hold. */
static const char *short_name(char buf[NAME_SHOWN + 4], const char *name)
{
	snprintf(buf, NAME_SHOWN + 4, strlen(name) > NAME_SHOWN ? "%.*s..." : "%.*s", NAME_SHOWN, name);
	for (char *p = buf; *p; p++)
		*p = *p == '|' || (unsigned char)*p < ' ' ? '/' : *p;
	return buf;
}

static enum status print_top(const struct overlap *o, FILE *out, struct error *e)
{
	struct table *t = table_create("of kernel time|calls|mean|<class|<kernel");
	enum status st = t ? ST_OK : error_nomem(e, "a table");
	for (size_t i = 0; i < o->n_top && !st; i++) {
		const struct overlap_kernel *k = &o->top[i];
		char mean[CELL], name[NAME_SHOWN + 4];
		st = table_row(t, e, "%.1f %%|%lld|%s|%s|%s", 100 * k->time_s / o->kernels_s, (long long)k->calls,
			seconds(mean, k->time_s / (double)k->calls), op_class_name(k->class_),
			short_name(name, k->name));
	}
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

static enum status print_comparison(const struct overlap *o, const struct result *p, FILE *out, struct error *e)
{
	struct table *t = table_create("<a step|predicted|traced|error");
	char a[CELL], b[CELL];
	enum status st = t ? table_row(t, e, "step time|%s|%s|%+.1f %%", seconds(a, p->time.step_s),
				     seconds(b, o->step_s), 100 * figure_error(p->time.step_s, o->step_s))
	                   : error_nomem(e, "a table");
	for (int c = 0; c < CLASS_COUNT && !st; c++) {
		double error = figure_error(p->time.class_s[c], o->mean_class_s[c]);
		char percent[CELL] = "-";
		if (p->time.class_n[c] == 0 && o->mean_class_s[c] <= 0)
			continue;
		if (isfinite(error))
			snprintf(percent, sizeof percent, "%+.1f %%", 100 * error);
		st = table_row(t, e, "  %s|%s|%s|%s", op_class_name((enum op_class)c), seconds(a, p->time.class_s[c]),
			seconds(b, o->mean_class_s[c]), percent);
	}
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

static const char *verdict(const struct overlap_gpu *g, char buf[256])
{
	const struct breakdown *b = &g->time;
	char hidden[CELL], all[CELL], exposed[CELL];
	if (!(b->comm_s > 0))
		snprintf(buf, 256, "No communication: none of the kernels is of NCCL, RCCL or another such library.");
	else
		snprintf(buf, 256,
			"%s of the %s of communication hide behind compute (%.1f %%); %s, %.1f %% of the step, are "
			"exposed.",
			seconds(hidden, b->comm_s - b->exposed_comm_s), seconds(all, b->comm_s), 100 * b->overlap,
			seconds(exposed, b->exposed_comm_s), 100 * b->exposed_comm_s / b->step_s);
	return buf;
}

static void print_notes(const struct overlap *o, FILE *out)
{
	const struct overlap_gpu *slow = &o->gpus[o->slowest];
	char buf[256];
	fprintf(out, "\n%s%s%s\n", o->n > 1 ? slow->label : "", o->n > 1 ? ": " : "", verdict(slow, buf));
	if (o->n > 1)
		fprintf(out,
			"Slowest: %s, %.1f %% longer than the median without exposed communication; the others "
			"wait for it.\n",
			slow->label, 100 * o->skew);
	if (slow->launches_known && slow->time.idle_s > 0)
		fprintf(out,
			"Idle: %lld gaps, %lld of them because the next kernel had not been launched yet (%.1f %% "
			"of the step).\n",
			(long long)slow->gaps, (long long)slow->launch_gaps,
			100 * slow->launch_gap_s / slow->time.step_s);
	if (!slow->steps)
		fprintf(out, "warning: no step is marked (torch.profiler's schedule writes ProfilerStep#N); the trace "
			     "counts as one step\n");
	if (o->files_cut)
		fprintf(out, "warning: %lld file%s cut off; the events before the end count\n", (long long)o->files_cut,
			o->files_cut == 1 ? " is" : "s are");
	if (o->whole_graphs)
		fprintf(out,
			"warning: %lld launch%s of CUDA graphs traced without their kernels; that time counts as idle "
			"(nsys profile --cuda-graph-trace=node shows them)\n",
			(long long)o->whole_graphs, o->whole_graphs == 1 ? "" : "es");
	if (o->events_left_out)
		fprintf(out, "warning: %lld event%s of a GPU without time or duration left out\n",
			(long long)o->events_left_out, o->events_left_out == 1 ? "" : "s");
}

enum status report_overlap_text(const struct overlap *o, const struct result *predicted, FILE *out, struct error *e)
{
	enum status st = print_gpus(o, out, e);
	if (st)
		return st;
	print_notes(o, out);
	fputc('\n', out);
	if ((st = print_top(o, out, e)) || !predicted)
		return st;
	fputc('\n', out);
	return print_comparison(o, predicted, out, e);
}

/* ---- JSON ---- */

static json_t *classes(const double class_s[CLASS_COUNT], const int64_t class_n[CLASS_COUNT], bool *good)
{
	json_t *list = json_array();
	for (int c = 0; c < CLASS_COUNT; c++)
		if (class_n[c] && json_array_append_new(list,
					  json_pack("{s:s, s:I, s:f}", "class", op_class_name((enum op_class)c),
						  "count", (json_int_t)class_n[c], "time_s", class_s[c])) != 0)
			*good = false;
	return list;
}

static json_t *gpu_json(const struct overlap_gpu *g, bool *good)
{
	json_t *j = json_object();
	json_put(j, "file", json_string(g->gpu->path), good);
	json_put(j, "rank", g->gpu->rank >= 0 ? json_integer((json_int_t)g->gpu->rank) : json_null(), good);
	json_put(j, "device", json_integer((json_int_t)g->gpu->device), good);
	json_put(j, "steps", g->steps ? json_integer((json_int_t)g->steps) : json_null(), good);
	json_put(j, "step_time_s", json_real(g->time.step_s), good);
	for (size_t i = 0; i < FIGURE_PARTS; i++)
		json_put(j, figure_parts[i].key, json_real(figure_part_s(&g->time, i)), good);
	json_put(j, "comm_s", json_real(g->time.comm_s), good);
	json_put(j, "overlap", json_number(g->time.overlap), good);
	json_put(j, "launch_gap_s", g->launches_known ? json_real(g->launch_gap_s) : json_null(), good);
	json_put(j, "gaps", json_integer((json_int_t)g->gaps), good);
	json_put(j, "by_class", classes(g->time.class_s, g->time.class_n, good), good);
	return j;
}

static json_t *comparison_json(const struct overlap *o, const struct result *p, bool *good)
{
	json_t *j = json_object(), *list = json_array();
	json_put(j, "step_time_error", json_number(figure_error(p->time.step_s, o->step_s)), good);
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (p->time.class_n[c] == 0 && o->mean_class_s[c] <= 0)
			continue;
		json_t *row = json_object();
		json_put(row, "class", json_string(op_class_name((enum op_class)c)), good);
		json_put(row, "predicted_s", json_real(p->time.class_s[c]), good);
		json_put(row, "measured_s", json_real(o->mean_class_s[c]), good);
		json_put(row, "error", json_number(figure_error(p->time.class_s[c], o->mean_class_s[c])), good);
		*good = json_array_append_new(list, row) == 0 && *good;
	}
	json_put(j, "by_class", list, good);
	return j;
}

json_t *report_overlap_json(const struct overlap *o, const struct result *predicted)
{
	bool good = true;
	json_t *j = json_object(), *results = json_array(), *top = json_array();
	for (size_t i = 0; i < o->n; i++)
		good = json_array_append_new(results, gpu_json(&o->gpus[i], &good)) == 0 && good;
	for (size_t i = 0; i < o->n_top; i++)
		good = json_array_append_new(top, json_pack("{s:s, s:s, s:I, s:f}", "kernel", o->top[i].name, "class",
							  op_class_name(o->top[i].class_), "calls",
							  (json_int_t)o->top[i].calls, "time_s", o->top[i].time_s)) ==
		               0 &&
		       good;
	json_put(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(j, "results", results, &good);
	json_put(j, "slowest", json_string(o->gpus[o->slowest].label), &good);
	json_put(j, "skew", json_real(o->skew), &good);
	json_put(j, "top_kernels", top, &good);
	json_put(j, "files_cut", json_integer((json_int_t)o->files_cut), &good);
	json_put(j, "whole_graphs", json_integer((json_int_t)o->whole_graphs), &good);
	json_put(j, "events_left_out", json_integer((json_int_t)o->events_left_out), &good);
	json_put(j, "comparison", predicted ? comparison_json(o, predicted, &good) : json_null(), &good);
	if (good)
		return j;
	json_decref(j);
	return NULL;
}
