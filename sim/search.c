#include "sim/search.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sim/floor.h"
#include "sim/fold.h"
#include "sim/search_quest.h"

/* ---- bounds ---- */

static int by_floor(const void *a, const void *b, void *shapes)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct shape *s = shapes;
	if (s[x].floor_s != s[y].floor_s)
		return s[x].floor_s < s[y].floor_s ? -1 : 1;
	if (s[x].floor_s == 0 && s[x].apart != s[y].apart)
		return s[x].apart < s[y].apart ? -1 : 1;
	return (x > y) - (x < y);
}

/* Fills floors and order; shapes that are illegal are counted and left out. */
static enum status bound_all(struct quest *q, struct search_counts *c, struct error *e)
{
	struct search_space *s = &q->space;
	struct config *config = &q->seekers[0].config;
	struct floors *floors = NULL;
	enum status st = floors_create(q->m, &floors, e);
	size_t legal = 0;
	for (size_t i = 0; i < s->shapes.n && !st; i++) {
		struct variant v[VARIANTS_MAX];
		struct shape shape = s->shapes.at[i];
		struct error wrong = {0};
		const size_t n = search_variants(s, &shape, v);
		search_config(s, &shape, &v[0], config);
		st = config_resolve(config, s->ranks, &wrong);
		if (!st)
			st = fold_check(config, &wrong);
		if (st == ST_INPUT) {
			c->illegal += (int64_t)n;
			st = ST_OK;
			continue;
		}
		if (st) {
			error_set(e, st, "%s", wrong.text);
			break;
		}
		struct plan_floor floor;
		st = floor_of(floors, config, &floor, e);
		shape.floor_s = floor.step_s;
		shape.floor_B = floor.memory_B;
		shape.blocks = evaluator_folds(q->seekers[0].evaluator, config) ? 0 : fold_blocks(config) * (double)n;
		s->shapes.at[legal] = shape;
		q->order[legal] = (uint32_t)legal;
		legal++;
	}
	s->shapes.n = legal;
	if (!st)
		qsort_r(q->order, legal, sizeof *q->order, by_floor, s->shapes.at);
	floors_destroy(floors);
	return st;
}

/* ---- the whole ---- */

static int cores(void)
{
	cpu_set_t set;
	const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n < SEARCH_THREADS ? n : SEARCH_THREADS;
}

static enum status prepare(struct quest *q, const struct config *start, int64_t ranks, struct error *e)
{
	const struct search_options *o = q->o;
	const size_t shown = o->best ? o->best : SEARCH_BEST;
	enum status st = search_space_create(start, ranks, o->held, &q->space, e);
	if (st)
		return st;
	q->wanted = shown < 3 ? 3 : shown; /* the evaluator's first may be the prediction's second */
	q->threads = o->threads <= 0 ? cores() : o->threads < SEARCH_THREADS ? o->threads : SEARCH_THREADS;
	q->seekers = calloc((size_t)q->threads, sizeof *q->seekers);
	q->order = calloc(q->space.shapes.n + 1, sizeof *q->order);
	q->found = calloc(SEARCH_BATCH, sizeof *q->found);
	q->status = calloc(SEARCH_BATCH, sizeof *q->status);
	q->errors = calloc(SEARCH_BATCH, sizeof *q->errors);
	q->top = calloc(q->wanted + 1, sizeof *q->top);
	if (!q->seekers || !q->order || !q->found || !q->status || !q->errors || !q->top)
		return error_nomem(e, "plans");
	for (int i = 0; i < q->threads && !st; i++) {
		q->seekers[i].space = &q->space;
		st = evaluator_create(&q->usable, &q->seekers[i].evaluator, e);
	}
	return st;
}

static void quest_free(struct quest *q)
{
	for (int i = 0; q->seekers && i < q->threads; i++)
		evaluator_destroy(q->seekers[i].evaluator);
	free(q->seekers);
	free(q->order);
	free(q->found);
	free(q->status);
	free(q->errors);
	free(q->top);
	vec_free(&q->front);
	vec_free(&q->least);
	search_space_free(&q->space);
}

/* may_fail: where nothing fits, the result has nothing but that. */
static enum status search_within(double share, bool may_fail, const struct config *start, const struct machine *m, int64_t ranks, const struct search_options *o, struct search_result *out, struct error *e)
{
	struct quest q = {.o = o, .m = m, .usable = *m};
	memset(out, 0, sizeof *out);
	out->memory_share = share;
	q.usable.device.mem_B = (uint64_t)(share * (double)m->device.mem_B);
	enum status st = prepare(&q, start, ranks, e);
	if (st || (st = bound_all(&q, &out->counts, e)) || (st = search_seek(&q, &out->counts, e)) || (may_fail && q.n_top == 0 && q.space.shapes.n > 0) || (st = search_select(&q, start, out, e)))
		goto out;
	if (q.space.shapes.n == 0)
		st = error_set(e, ST_INPUT, "no plan is legal on %lld rank%s%s%s", (long long)ranks, ranks == 1 ? "" : "s", out->start_reason[0] ? ": " : "", out->start_reason);
out:
	out->left_cuts = q.space.left_cuts;
	out->left_tensor = q.space.left_tensor;
	quest_free(&q);
	return st;
}

enum status search(const struct config *start, const struct machine *m, int64_t ranks, const struct search_options *o, struct search_result *out, struct error *e)
{
	const double usual = m->device.is_host ? 1 : SEARCH_MEMORY;
	enum status st = search_within(usual, usual < 1, start, m, ranks, o, out, e);
	if (!st && out->n_best == 0 && usual < 1) {
		search_free(out);
		st = search_within(1, false, start, m, ranks, o, out, e);
	}
	out->usual_share = usual;
	return st;
}

void search_free(struct search_result *r)
{
	free(r->best);
	vec_free(&r->front);
	r->best = NULL;
	r->n_best = 0;
}
