/* Time is counted in compute ops that have ended. An op that knows that K of them have ended may reuse bytes whose last
 * access was certainly over by the K-th. */
#include "step/layout.h"

#include <stdlib.h>
#include <string.h>

struct life {
	uint32_t buffer;
	uint64_t bytes;     /* aligned */
	int64_t begin, end; /* alive in [begin, end) */
	uint64_t offset_B;
};

static uint64_t aligned(uint64_t bytes) { return (bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN; }

/* held: as the stack allocates; else as an executor does. */
static bool lives_on(const struct buffer *b, bool held) { return b->persistent && !(held && b->freed); }

static void find_lives(const struct role *r, bool held, struct life *life)
{
	for (size_t i = 0; i < r->buffers.n; i++) {
		const struct buffer *buf = &r->buffers.at[i];
		life[i] = (struct life){(uint32_t)i, aligned(buf->bytes), lives_on(buf, held) ? 0 : -1,
			lives_on(buf, held && buf->updated) ? INT64_MAX : 0, 0};
	}
	int64_t together = -1; /* when the first of those is there that come together */
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		const struct op_when when = r->when.at[i];
		const int64_t over = when.over == OVER_NEVER ? INT64_MAX : (int64_t)when.over;
		const struct view *args = r->args.at ? &r->args.at[op->arg0] : NULL;
		const int n_args = op_kind_info(op->kind)->n_args;
		for (int a = 0; a < n_args; a++) {
			if (args[a].buffer < 0)
				continue;
			const struct buffer *buf = &r->buffers.at[args[a].buffer];
			struct life *l = &life[args[a].buffer]; /* one that lives on stays as it is */
			if (l->begin < 0)
				l->begin = (int64_t)when.begins;
			if (l->end < over)
				l->end = over;
			if (together < 0 && buf->together && !lives_on(buf, held))
				together = l->begin;
		}
	}
	for (size_t i = 0; i < r->buffers.n && together >= 0; i++)
		if (r->buffers.at[i].together && life[i].begin > together)
			life[i].begin = together;
}

/* Bytes alive, by component. */
struct alive {
	uint64_t B[COMP_KIND_COUNT];
};

static uint64_t on_device(const struct alive *a)
{
	uint64_t sum = 0;
	for (int k = 0; k < COMP_KIND_COUNT; k++)
		sum += k == COMP_HOST ? 0 : a->B[k];
	return sum;
}

/* Adds a lifetime to what changes at each instant. */
static void add_life(struct alive *change, enum component component, uint64_t bytes, int64_t begin, int64_t end)
{
	change[begin].B[component] += bytes;
	if (end != INT64_MAX)
		change[end].B[component] -= bytes; /* unsigned: the sum over time comes out right */
}

/* Fills (*out)[k], which the caller frees, with what is alive after k = 0 ... *n_compute compute ops. held: with the
 * memory that the stack holds, alive during the compute ops between, or without any to the end of the next. */
static enum status find_alive(const struct role *r, const struct life *life, bool held, struct alive **out,
	size_t *n_compute, struct error *e)
{
	int64_t *before = malloc((r->ops.n + 1) * sizeof *before); /* compute ops before op i */
	*out = NULL;
	if (before) {
		before[0] = 0;
		for (size_t i = 0; i < r->ops.n; i++)
			before[i + 1] = before[i] + (r->ops.at[i].lane == LANE_COMPUTE);
		*n_compute = (size_t)before[r->ops.n];
		*out = calloc(*n_compute + 2, sizeof **out);
	}
	if (!*out) {
		free(before);
		return error_nomem(e, "the memory plan");
	}
	for (size_t i = 0; i < r->buffers.n; i++)
		if (life[i].begin >= 0 && !(held && r->buffers.at[i].inside))
			add_life(*out, r->buffers.at[i].component, life[i].bytes, life[i].begin, life[i].end);
	for (size_t i = 0; i < r->held.n && held; i++) {
		const struct held *h = &r->held.at[i];
		int64_t begin = before[h->from], end = h->to == HELD_ALWAYS ? INT64_MAX : before[h->to + 1];
		add_life(*out, h->component, aligned(h->bytes), begin, end > begin ? end : begin + 1);
	}
	for (size_t k = 1; k <= *n_compute; k++)
		for (int c = 0; c < COMP_KIND_COUNT; c++)
			(*out)[k].B[c] += (*out)[k - 1].B[c];
	free(before);
	return ST_OK;
}

static enum status find_peak(const struct role *r, const struct life *life, bool held, struct layout *out,
	struct error *e)
{
	struct alive *alive = NULL;
	size_t n_compute = 0;
	enum status st = find_alive(r, life, held, &alive, &n_compute, e);
	for (size_t k = 0; k <= n_compute && !st; k++) {
		if (out->host_B < alive[k].B[COMP_HOST])
			out->host_B = alive[k].B[COMP_HOST];
		if (out->peak_B < on_device(&alive[k])) {
			out->peak_B = on_device(&alive[k]);
			memcpy(out->peak_component_B, alive[k].B, sizeof alive[k].B);
		}
	}
	free(alive);
	return st;
}

enum status layout_live(const struct role *r, uint64_t **live_B, size_t *n, struct error *e)
{
	struct life *life = malloc((r->buffers.n + 1) * sizeof *life);
	struct alive *alive = NULL;
	size_t n_compute = 0;
	*live_B = NULL;
	enum status st = life ? ST_OK : error_nomem(e, "the memory plan");
	if (!st) {
		find_lives(r, true, life);
		st = find_alive(r, life, true, &alive, &n_compute, e);
	}
	*n = n_compute + 1;
	if (!st && !(*live_B = malloc(*n * sizeof **live_B)))
		st = error_nomem(e, "the memory plan");
	for (size_t k = 0; k < *n && !st; k++)
		(*live_B)[k] = on_device(&alive[k]);
	free(alive);
	free(life);
	return st;
}

static void add_layout_life(struct layout_life *out, size_t *n, struct layout_life l)
{
	if (l.bytes && l.component != COMP_HOST)
		out[(*n)++] = l;
}

/* The op that touches each buffer first; -1: none does. */
static void find_first_ops(const struct role *r, int64_t *first)
{
	for (size_t i = 0; i < r->buffers.n; i++)
		first[i] = -1;
	for (size_t i = r->ops.n; i-- > 0;)
		for (int a = 0; a < op_kind_info(r->ops.at[i].kind)->n_args; a++) {
			const int32_t buffer = op_arg(r, &r->ops.at[i], a)->buffer;
			if (buffer >= 0)
				first[buffer] = (int64_t)i;
		}
}

enum status layout_lives(const struct role *r, struct layout_life **out, size_t *n, struct error *e)
{
	struct life *life = malloc((r->buffers.n + 1) * sizeof *life);
	int64_t *first = malloc((r->buffers.n + 1) * sizeof *first), *before = malloc((r->ops.n + 1) * sizeof *before);
	*n = 0;
	*out = calloc(r->buffers.n + r->held.n + 1, sizeof **out);
	enum status st = life && first && before && *out ? ST_OK : error_nomem(e, "the memory plan");
	if (!st) {
		find_lives(r, true, life);
		find_first_ops(r, first);
		before[0] = 0;
		for (size_t i = 0; i < r->ops.n; i++)
			before[i + 1] = before[i] + (r->ops.at[i].lane == LANE_COMPUTE);
		for (size_t i = 0; i < r->buffers.n; i++)
			if (life[i].begin >= 0 && !r->buffers.at[i].inside)
				add_layout_life(*out, n,
					(struct layout_life){r->buffers.at[i].component, life[i].bytes, life[i].begin,
						life[i].end, first[i], NULL, lives_on(&r->buffers.at[i], true)});
		for (size_t i = 0; i < r->held.n; i++) {
			const struct held *h = &r->held.at[i];
			const bool always = h->to == HELD_ALWAYS;
			const int64_t begin = before[h->from], end = always ? INT64_MAX : before[h->to + 1];
			add_layout_life(*out, n,
				(struct layout_life){h->component, aligned(h->bytes), begin,
					end > begin ? end : begin + 1, -1, h->what, always});
		}
	}
	free(life);
	free(first);
	free(before);
	if (st) {
		free(*out);
		*out = NULL;
	}
	return st;
}

static int largest_first(const void *x, const void *y)
{
	const struct life *a = x, *b = y;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->buffer < b->buffer ? -1 : 1;
}

static int by_offset(const void *x, const void *y)
{
	const struct life *a = *(struct life *const *)x, *b = *(struct life *const *)y;
	return a->offset_B < b->offset_B ? -1 : a->offset_B > b->offset_B;
}

/* Returns the lowest gap among the placed buffers, life[0 .. i), alive at the same time in the same arena. */
static uint64_t first_fit(const struct role *r, struct life *life, size_t i, struct life **near)
{
	size_t n = 0;
	bool host = r->buffers.at[life[i].buffer].component == COMP_HOST;
	for (size_t k = 0; k < i; k++)
		if ((r->buffers.at[life[k].buffer].component == COMP_HOST) == host && life[k].begin < life[i].end &&
			life[i].begin < life[k].end)
			near[n++] = &life[k];
	qsort(near, n, sizeof *near, by_offset);
	uint64_t at = 0;
	for (size_t k = 0; k < n; k++) {
		if (near[k]->offset_B >= at + life[i].bytes)
			break;
		if (near[k]->offset_B + near[k]->bytes > at)
			at = near[k]->offset_B + near[k]->bytes;
	}
	return at;
}

static enum status place(const struct role *r, struct life *life, struct layout *out, struct error *e)
{
	size_t n = r->buffers.n;
	struct life **near = malloc((n + 1) * sizeof *near);
	out->offset_B = calloc(n + 1, sizeof *out->offset_B);
	if (!near || !out->offset_B) {
		free(near);
		return error_nomem(e, "the memory plan");
	}
	qsort(life, n, sizeof *life, largest_first);
	for (size_t i = 0; i < n; i++) {
		if (life[i].begin < 0)
			continue;
		life[i].offset_B = first_fit(r, life, i, near);
		out->offset_B[life[i].buffer] = life[i].offset_B;
		uint64_t end = life[i].offset_B + life[i].bytes;
		uint64_t *arena_B = r->buffers.at[life[i].buffer].component == COMP_HOST ? &out->host_B : &out->total_B;
		*arena_B = *arena_B < end ? end : *arena_B;
	}
	free(near);
	return ST_OK;
}

static enum status plan(const struct role *r, struct layout *out, bool offsets, struct error *e)
{
	memset(out, 0, sizeof *out);
	struct life *life = malloc((r->buffers.n + 1) * sizeof *life);
	if (!life)
		return error_nomem(e, "the memory plan");
	find_lives(r, !offsets, life);
	enum status st = find_peak(r, life, !offsets, out, e);
	if (!st && offsets)
		st = place(r, life, out, e);
	free(life);
	if (st)
		layout_free(out);
	return st;
}

enum status layout_plan(const struct role *r, struct layout *out, struct error *e) { return plan(r, out, true, e); }

enum status layout_peak(const struct role *r, struct layout *out, struct error *e) { return plan(r, out, false, e); }

void layout_free(struct layout *l)
{
	if (!l)
		return;
	free(l->offset_B);
	memset(l, 0, sizeof *l);
}
