#include <stdlib.h>

#include "base/paths.h"
#include "report/figures.h"
#include "report/report.h"

/* One event is built, written and freed at a time: a trace of many ranks is larger than what it costs to hold one event. */
struct writer {
	FILE *out;
	bool first, good;
};

static double us(int64_t ps)
{
	return (double)ps / 1e6;
}

/* Takes the event over. */
static void emit(struct writer *w, json_t *event)
{
	if (!event) {
		w->good = false;
		return;
	}
	fputs(w->first ? "\n" : ",\n", w->out);
	w->first = false;
	if (json_dumpf(event, w->out, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0)
		w->good = false;
	json_decref(event);
}

static void name_track(struct writer *w, const char *what, int64_t pid, int64_t tid, const char *name)
{
	emit(w, json_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "ph", "M", "name", what, "pid", (json_int_t)pid, "tid", (json_int_t)tid, "args", "name", name));
}

static void order_track(struct writer *w, const char *what, int64_t pid, int64_t tid, int64_t index)
{
	emit(w, json_pack("{s:s, s:s, s:I, s:I, s:{s:I}}", "ph", "M", "name", what, "pid", (json_int_t)pid, "tid", (json_int_t)tid, "args", "sort_index", (json_int_t)index));
}

/* Perfetto shows processes by sort index: all predicted roles first, then the ranks. */
static void name_actor(struct writer *w, const struct program *p, const char *side, bool measured, uint32_t actor, int64_t pid)
{
	char name[96];
	if (measured)
		snprintf(name, sizeof name, "%s: rank %u", side, actor);
	else if (p->n_roles > 1)
		snprintf(name, sizeof name, "%s: stage %u, every rank like rank %lld (%lld of them)", side, actor, (long long)p->roles[actor].representative, (long long)p->roles[actor].ranks);
	else
		snprintf(name, sizeof name, "%s: every rank like rank %lld (%lld of them)", side, (long long)p->roles[actor].representative, (long long)p->roles[actor].ranks);
	name_track(w, "process_name", pid, 0, name);
	order_track(w, "process_sort_index", pid, 0, pid);
	for (int lane = 0; lane < LANE_COUNT; lane++) {
		if (lane > LANE_HOST && p->n_roles == 1)
			continue; /* no messages */
		name_track(w, "thread_name", pid, lane, lane_name((enum lane)lane));
		order_track(w, "thread_sort_index", pid, lane, lane);
	}
}

static json_t *shape_json(const struct op *op)
{
	json_t *shape = json_array();
	for (uint8_t i = 0; i < op_kind_info((enum op_kind)op->kind)->n_dims; i++)
		json_array_append_new(shape, json_integer(op->d[i]));
	return shape;
}

static void write_span(struct writer *w, const struct role *role, const struct span *s, int64_t pid)
{
	char name[OP_NAME_MAX];
	const struct op *op = &role->ops.at[s->op];
	double wait_us = us(s->move_ps - s->start_ps);
	json_t *args = json_pack("{s:I, s:s, s:o, s:i, s:s, s:f}", "op", (json_int_t)s->op, "kind", op_kind_info((enum op_kind)op->kind)->name, "shape", shape_json(op), "micro", (int)op->micro,
	                         "phase", phase_name((enum phase)s->phase), "wait_us", wait_us);
	emit(w, json_pack("{s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:o}", "ph", "X", "name", op_name(op, name), "cat", op_class_name((enum op_class)s->class_), "pid", (json_int_t)pid, "tid", (int)s->lane,
	                  "ts", us(s->start_ps), "dur", us(s->end_ps - s->start_ps), "args", args));
	/* Waiting is a slice of its own inside the collective: on the screen, late ranks are told apart from moving bytes. */
	if (s->move_ps > s->start_ps)
		emit(w, json_pack("{s:s, s:s, s:s, s:I, s:i, s:f, s:f}", "ph", "X", "name", s->class_ == CLASS_SENDRECV ? "wait for the other stage" : "wait for late ranks", "cat", "wait", "pid", (json_int_t)pid, "tid", (int)s->lane, "ts", us(s->start_ps), "dur", wait_us));
}

static void write_side(struct writer *w, const struct program *p, const struct timeline *t, bool measured, int64_t first_pid)
{
	for (uint32_t actor = 0; actor < t->actors; actor++)
		name_actor(w, p, measured ? "measured" : "predicted", measured, actor, first_pid + actor);
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		write_span(w, timeline_role(t, p, s->actor), s, first_pid + s->actor);
	}
}

enum status report_trace(const struct outcome *o, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	struct writer w = {.out = open_memstream(&text, &len), .first = true, .good = true};
	if (!w.out)
		return error_nomem(e, "the trace");
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", w.out);
	write_side(&w, o->program, o->predicted_timeline, false, 1);
	if (o->measured_timeline)
		write_side(&w, o->program, o->measured_timeline, true, 1 + (int64_t)o->predicted_timeline->actors);
	fputs("\n]}\n", w.out);
	bool good = !ferror(w.out);
	good = fclose(w.out) == 0 && good && w.good;
	enum status st = good ? file_write(path, text, len, e) : error_nomem(e, "the trace");
	free(text);
	return st;
}
