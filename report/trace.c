#include <stdlib.h>

#include "base/memory_stream.h"
#include "base/paths.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/usage.h"

#define NOWHERE SIZE_MAX

/* One event is built, written and freed at a time: a trace of many ranks is larger than what it costs to hold one
 * event. */
struct writer {
	FILE *out;
	bool first, good;
	json_int_t flows; /* so many have been numbered */
};

static double us(int64_t ps) { return (double)ps / 1e6; }

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
	emit(w, json_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "ph", "M", "name", what, "pid", (json_int_t)pid, "tid",
			(json_int_t)tid, "args", "name", name));
}

static void order_track(struct writer *w, const char *what, int64_t pid, int64_t tid, int64_t index)
{
	emit(w, json_pack("{s:s, s:s, s:I, s:I, s:{s:I}}", "ph", "M", "name", what, "pid", (json_int_t)pid, "tid",
			(json_int_t)tid, "args", "sort_index", (json_int_t)index));
}

/* Perfetto shows processes by sort index: all predicted roles first, then the ranks. */
static void name_actor(struct writer *w, const struct program *p, const char *side, bool measured, uint32_t actor,
	int64_t pid)
{
	char name[96];
	if (measured)
		snprintf(name, sizeof name, "%s: rank %u", side, actor);
	else if (p->n_roles > 1)
		snprintf(name, sizeof name, "%s: stage %u, every rank like rank %lld (%lld of them)", side, actor,
			(long long)p->roles[actor].representative, (long long)p->roles[actor].ranks);
	else
		snprintf(name, sizeof name, "%s: every rank like rank %lld (%lld of them)", side,
			(long long)p->roles[actor].representative, (long long)p->roles[actor].ranks);
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
	json_t *args = json_pack("{s:I, s:s, s:o, s:i, s:s}", "op", (json_int_t)s->op, "kind",
		op_kind_info((enum op_kind)op->kind)->name, "shape", shape_json(op), "micro", (int)op->micro, "phase",
		phase_name((enum phase)s->phase));
	if (lane_is_comm((enum lane)s->lane))
		json_object_set_new(args, "wait_us", json_real(wait_us));
	emit(w, json_pack("{s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:o}", "ph", "X", "name", op_name(op, name), "cat",
			op_class_name((enum op_class)s->class_), "pid", (json_int_t)pid, "tid", (int)s->lane, "ts",
			us(s->start_ps), "dur", us(s->end_ps - s->start_ps), "args", args));
	/* Waiting is a slice of its own inside the collective: on the screen, late ranks are told apart from moving
	 * bytes. */
	if (s->move_ps > s->start_ps)
		emit(w, json_pack("{s:s, s:s, s:s, s:I, s:i, s:f, s:f}", "ph", "X", "name",
				s->class_ == CLASS_SENDRECV ? "wait for the other stage" : "wait for late ranks", "cat",
				"wait", "pid", (json_int_t)pid, "tid", (int)s->lane, "ts", us(s->start_ps), "dur",
				wait_us));
}

/* ---- flows ---- */

/* A point of a flow: inside its slice, in the part of a collective that moves bytes, where no other slice lies. */
static void flow_point(struct writer *w, bool begins, const struct span *s, int64_t pid, json_int_t id)
{
	const char *name = s->phase == PHASE_BACKWARD ? "gradients" : "weights";
	json_t *event = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:f}", "ph", begins ? "s" : "f", "name", name, "cat",
		"flow", "id", id, "pid", (json_int_t)pid, "tid", (int)s->lane, "ts",
		us(s->move_ps + (s->end_ps - s->move_ps) / 2));
	if (!begins && event && json_object_set_new(event, "bp", json_string("e")) != 0)
		w->good = false;
	emit(w, event);
}

static void flow(struct writer *w, const struct span *from, const struct span *to, int64_t pid)
{
	w->flows++;
	flow_point(w, true, from, pid, w->flows);
	flow_point(w, false, to, pid, w->flows);
}

/* Returns the latest op of a lane that an op waits for; NOWHERE if there is none. */
static size_t latest_before(const struct role *role, const struct op *op, enum lane lane)
{
	size_t latest = NOWHERE;
	for (uint32_t k = 0; k < op->n_dep; k++) {
		uint32_t dep = role->deps.at[op->dep0 + k];
		if (role->ops.at[dep].lane == lane && (latest == NOWHERE || dep > latest))
			latest = dep;
	}
	return latest;
}

/* Writes the flows: from the op that completes a bucket's gradients to their reduction, and from a gathering of weights
 * to the first op that waits for it. */
static enum status write_flows(struct writer *w, const struct program *p, const struct timeline *t, size_t first,
	size_t next, int64_t pid, struct error *e)
{
	const struct role *role = timeline_role(t, p, t->spans.at[first].actor);
	const struct span **of = calloc(role->ops.n + 1, sizeof *of);
	bool *used = calloc(role->ops.n + 1, sizeof *used);
	enum status st = of && used ? ST_OK : error_nomem(e, "the trace");
	for (size_t i = first; i < next && !st; i++)
		of[t->spans.at[i].op] = &t->spans.at[i];
	for (size_t i = 0; i < role->ops.n && !st; i++) {
		const struct op *op = &role->ops.at[i];
		if (!of[i] || (op->lane != LANE_COMM && op->lane != LANE_COMPUTE))
			continue;
		size_t from = latest_before(role, op, op->lane == LANE_COMM ? LANE_COMPUTE : LANE_COMM);
		if (from == NOWHERE || !of[from])
			continue;
		bool reduction = op->lane == LANE_COMM && collective_reduces((enum collective)op->coll) &&
		                 op->bucket >= 0;
		bool use = op->lane == LANE_COMPUTE && role->ops.at[from].coll == COLL_ALL_GATHER && !used[from];
		if (reduction || use)
			flow(w, of[from], of[i], pid);
		used[from] = used[from] || use;
	}
	free(of);
	free(used);
	return st;
}

/* ---- counters ---- */

static void write_counter(struct writer *w, const char *name, const char *unit, const usage_points *u, int64_t pid)
{
	for (size_t i = 0; i < u->n; i++)
		emit(w, json_pack("{s:s, s:s, s:I, s:i, s:f, s:{s:f}}", "ph", "C", "name", name, "pid", (json_int_t)pid,
				"tid", 0, "ts", us(u->at[i].at_ps), "args", unit, u->at[i].value));
}

static enum status write_counters(struct writer *w, const struct program *p, const struct timeline *t, size_t first,
	size_t next, int64_t pid, struct error *e)
{
	usage_points memory = {0}, links = {0};
	enum status st = usage_memory(p, t, first, next, &memory, e);
	if (!st)
		st = usage_links(p, t, first, next, &links, e);
	if (!st) {
		write_counter(w, "memory in use", "bytes", &memory, pid);
		write_counter(w, "links", "bytes/s", &links, pid);
	}
	vec_free(&memory);
	vec_free(&links);
	return st;
}

static enum status write_side(struct writer *w, const struct program *p, const struct timeline *t, bool measured,
	int64_t first_pid, struct error *e)
{
	enum status st = ST_OK;
	for (uint32_t actor = 0; actor < t->actors; actor++)
		name_actor(w, p, measured ? "measured" : "predicted", measured, actor, first_pid + actor);
	for (size_t first = 0, next; first < t->spans.n && !st; first = next) {
		int64_t pid = first_pid + t->spans.at[first].actor;
		next = usage_next_actor(t, first);
		for (size_t i = first; i < next; i++)
			write_span(w, timeline_role(t, p, t->spans.at[i].actor), &t->spans.at[i], pid);
		st = write_flows(w, p, t, first, next, pid, e);
		if (!st)
			st = write_counters(w, p, t, first, next, pid, e);
	}
	return st;
}

enum status report_trace(const struct outcome *o, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	struct writer w = {.out = memory_stream(&text, &len), .first = true, .good = true};
	if (!w.out)
		return error_nomem(e, "the trace");
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", w.out);
	enum status st = write_side(&w, o->program, o->predicted_timeline, false, 1, e);
	if (!st && o->measured_timeline)
		st = write_side(&w, o->program, o->measured_timeline, true, 1 + (int64_t)o->predicted_timeline->actors,
			e);
	fputs("\n]}\n", w.out);
	const bool good = memory_stream_close(w.out) && w.good;
	if (!st)
		st = good ? file_write(path, text, len, e) : error_nomem(e, "the trace");
	free(text);
	return st;
}
