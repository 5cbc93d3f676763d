/* Snapshots of PyTorch's allocator: {"segments": [...], "device_traces": [[event, ...], ...]}, as torch/cuda/memory.py
 * documents them and torch/utils/viz/MemoryViz.js reads them. The addresses are made here by first fit over time: a
 * snapshot needs some, and which ones PyTorch would take is not predicted. */
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "report/report.h"
#include "report/usage.h"
#include "step/layout.h"

#define BASE UINT64_C(0x7f0000000000) /* where the addresses begin */
#define PS_PER_US 1000000
#define LIST_PART 1000 /* members put into a list at once: the viewer's JavaScript takes them as arguments */

/* ---- a pickle (Python's pickletools.py; the opcodes that the viewer knows) ---- */

static void put_bytes(FILE *out, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		fputc((int)(v >> (8 * i) & 0xff), out);
}

static void put_int(FILE *out, uint64_t v)
{
	if (v <= INT32_MAX) {
		fputc('J', out); /* BININT */
		put_bytes(out, v, 4);
	} else {
		fputc(0x8a, out); /* LONG1, eight bytes with the sign */
		fputc(8, out);
		put_bytes(out, v, 8);
	}
}

static void put_text(FILE *out, const char *text)
{
	fputc('X', out); /* BINUNICODE */
	put_bytes(out, strlen(text), 4);
	fputs(text, out);
}

static void open_dict(FILE *out) { fputs("}(", out); }

static void close_dict(FILE *out) { fputc('u', out); }

static void open_list(FILE *out) { fputs("](", out); }

static void close_list(FILE *out) { fputc('e', out); }

/* Before each member of a long list. */
static void next_member(FILE *out, size_t i)
{
	if (i && i % LIST_PART == 0)
		fputs("e(", out);
}

static void member_int(FILE *out, const char *key, uint64_t v)
{
	put_text(out, key);
	put_int(out, v);
}

static void member_text(FILE *out, const char *key, const char *v)
{
	put_text(out, key);
	put_text(out, v);
}

/* ---- what is alive ---- */

struct event {
	int64_t at; /* compute ops that have ended */
	bool alloc; /* frees of an instant come first */
	size_t life;
};

struct device {
	const struct role *role;
	struct layout_life *life;
	uint64_t *address; /* by life */
	struct event *event;
	int64_t *us;  /* by compute ops that have ended: since the step's begin */
	size_t *left; /* lives at the step's end, by address */
	size_t n_lives, n_events, n_instants, n_left;
	uint64_t extent_B;
};

static void device_free(struct device *d)
{
	free(d->life);
	free(d->address);
	free(d->left);
	free(d->event);
	free(d->us);
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->alloc != y->alloc)
		return x->alloc ? 1 : -1;
	return (x->life > y->life) - (x->life < y->life);
}

/* What is kept lies first, without gaps between. */
static int kept_first(const void *a, const void *b)
{
	const struct layout_life *x = a, *y = b;
	if (x->persistent != y->persistent)
		return x->persistent ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The lowest gap that is long enough, among live lives in order of their addresses. */
static uint64_t first_fit(const struct device *d, const size_t *live, size_t n, uint64_t bytes, size_t *place)
{
	uint64_t at = 0;
	for (*place = 0; *place < n; ++*place) {
		const size_t l = live[*place];
		if (d->address[l] >= at + bytes)
			return at;
		at = d->address[l] + d->life[l].bytes;
	}
	return at;
}

static enum status give_addresses(struct device *d, struct error *e)
{
	size_t *live = malloc((d->n_lives + 1) * sizeof *live), n = 0, place;
	if (!live)
		return error_nomem(e, "the snapshot");
	for (size_t i = 0; i < d->n_events; i++) {
		const struct event *v = &d->event[i];
		if (v->alloc) {
			d->address[v->life] = first_fit(d, live, n, d->life[v->life].bytes, &place);
			memmove(live + place + 1, live + place, (n++ - place) * sizeof *live);
			live[place] = v->life;
			const uint64_t end = d->address[v->life] + d->life[v->life].bytes;
			d->extent_B = end > d->extent_B ? end : d->extent_B;
		} else {
			for (place = 0; live[place] != v->life;)
				place++;
			memmove(live + place, live + place + 1, (--n - place) * sizeof *live);
		}
	}
	d->left = live;
	d->n_left = n;
	return ST_OK;
}

/* The actor's spans are t->spans[first, next). */
static enum status fill(struct device *d, const struct program *p, const struct timeline *t, size_t first, size_t next,
	struct error *e)
{
	d->role = timeline_role(t, p, t->spans.at[first].actor);
	enum status st = layout_lives(d->role, &d->life, &d->n_lives, e);
	if (st)
		return st;
	qsort(d->life, d->n_lives, sizeof *d->life, kept_first);
	d->address = calloc(d->n_lives + 1, sizeof *d->address);
	d->event = calloc(2 * d->n_lives + 1, sizeof *d->event);
	d->us = calloc(next - first + 1, sizeof *d->us);
	if (!d->address || !d->event || !d->us)
		return error_nomem(e, "the snapshot");
	for (size_t i = first; i < next; i++)
		if (t->spans.at[i].lane == LANE_COMPUTE)
			d->us[++d->n_instants] = t->spans.at[i].end_ps / PS_PER_US;
	for (size_t i = 0; i < d->n_lives; i++) {
		const struct layout_life *l = &d->life[i];
		d->event[d->n_events++] = (struct event){l->begin, true, i};
		if (l->end != INT64_MAX)
			d->event[d->n_events++] = (struct event){l->end, false, i};
	}
	qsort(d->event, d->n_events, sizeof *d->event, by_time);
	return give_addresses(d, e);
}

/* ---- the file ---- */

static const char *component_word(enum component c)
{
	switch (c) {
	case COMP_WEIGHTS: return "weights";
	case COMP_GRADIENTS: return "gradients";
	case COMP_OPTIMIZER: return "optimizer states";
	case COMP_ACTIVATIONS: return "activations";
	case COMP_BUFFERS: return "buffers";
	case COMP_HOST:
	case COMP_KIND_COUNT: break;
	}
	return "host memory";
}

/* One frame in place of a stack of calls: the component as the file, the op that touches it first as its line. */
static void write_frames(const struct device *d, const struct layout_life *l, FILE *out)
{
	char name[OP_NAME_MAX] = "never touched";
	if (l->first_op >= 0)
		op_name(&d->role->ops.at[l->first_op], name);
	put_text(out, "frames");
	open_list(out);
	open_dict(out);
	member_text(out, "filename", component_word(l->component));
	member_int(out, "line", l->first_op >= 0 ? (uint64_t)l->first_op : 0);
	member_text(out, "name", l->what ? l->what : name);
	close_dict(out);
	close_list(out);
}

static void write_event(const struct device *d, const char *action, uint64_t address, uint64_t bytes, int64_t us,
	const struct layout_life *l, FILE *out)
{
	open_dict(out);
	member_text(out, "action", action);
	member_int(out, "addr", BASE + address);
	member_int(out, "size", bytes);
	member_int(out, "stream", 0);
	member_int(out, "time_us", (uint64_t)us);
	if (l)
		write_frames(d, l, out);
	close_dict(out);
}

static void write_trace(const struct device *d, FILE *out)
{
	size_t written = 0;
	open_list(out);
	if (d->n_events)
		write_event(d, "segment_alloc", 0, d->extent_B, 0, NULL, out), written++;
	for (size_t i = 0; i < d->n_events; i++) {
		const struct event *v = &d->event[i];
		const struct layout_life *l = &d->life[v->life];
		const size_t k = v->at < (int64_t)d->n_instants ? (size_t)v->at : d->n_instants;
		next_member(out, written++);
		write_event(d, v->alloc ? "alloc" : "free_requested", d->address[v->life], l->bytes, d->us[k], l, out);
		if (v->alloc)
			continue;
		next_member(out, written++);
		write_event(d, "free_completed", d->address[v->life], l->bytes, d->us[k], l, out);
	}
	close_list(out);
}

static void write_block(const struct device *d, const char *state, uint64_t address, uint64_t bytes,
	const struct layout_life *l, FILE *out)
{
	open_dict(out);
	member_int(out, "address", BASE + address);
	member_int(out, "size", bytes);
	member_int(out, "requested_size", bytes);
	member_text(out, "state", state);
	if (l)
		write_frames(d, l, out);
	close_dict(out);
}

/* What is left at the end of the step: blocks in order of their addresses, and free ones between. */
static void write_segment(const struct device *d, size_t number, FILE *out)
{
	uint64_t kept_B = 0;
	size_t written = 0;
	for (size_t i = 0; i < d->n_left; i++)
		kept_B += d->life[d->left[i]].bytes;
	open_dict(out);
	member_int(out, "device", number);
	member_int(out, "address", BASE);
	member_int(out, "total_size", d->extent_B);
	member_int(out, "allocated_size", kept_B);
	member_int(out, "active_size", kept_B);
	member_int(out, "stream", 0);
	member_text(out, "segment_type", "large");
	put_text(out, "blocks");
	open_list(out);
	uint64_t at = 0;
	for (size_t i = 0; i < d->n_left; i++) {
		const uint64_t address = d->address[d->left[i]];
		const struct layout_life *l = &d->life[d->left[i]];
		if (address > at) {
			next_member(out, written++);
			write_block(d, "inactive", at, address - at, NULL, out);
		}
		next_member(out, written++);
		write_block(d, "active_allocated", address, l->bytes, l, out);
		at = address + l->bytes;
	}
	if (d->extent_B > at) {
		next_member(out, written++);
		write_block(d, "inactive", at, d->extent_B - at, NULL, out);
	}
	close_list(out);
	close_dict(out);
}

struct snapshot {
	struct device *device;
	size_t n;
};

static void write_snapshot(const void *of, FILE *out)
{
	const struct snapshot *s = of;
	fputs("\x80\x02", out); /* PROTO 2 */
	open_dict(out);
	put_text(out, "segments");
	open_list(out);
	for (size_t i = 0; i < s->n; i++)
		if (s->device[i].n_events)
			write_segment(&s->device[i], i, out);
	close_list(out);
	put_text(out, "device_traces");
	open_list(out);
	for (size_t i = 0; i < s->n; i++)
		write_trace(&s->device[i], out);
	close_list(out);
	close_dict(out);
	fputc('.', out);
}

enum status report_snapshot(const struct outcome *o, const char *path, struct error *e)
{
	const struct timeline *t = o->predicted_timeline;
	struct snapshot s = {.device = calloc(t->actors + 1, sizeof *s.device), .n = t->actors};
	enum status st = s.device ? ST_OK : error_nomem(e, "the snapshot");
	for (size_t first = 0, next; first < t->spans.n && !st; first = next) {
		next = usage_next_actor(t, first);
		st = fill(&s.device[t->spans.at[first].actor], o->program, t, first, next, e);
	}
	if (!st)
		st = file_write_of(path, write_snapshot, &s, "the snapshot", e);
	for (size_t i = 0; s.device && i < s.n; i++)
		device_free(&s.device[i]);
	free(s.device);
	return st;
}
