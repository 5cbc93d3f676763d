/* What a search found, as plans that are predicted. */
#include "sim/search_quest.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/fold.h"

/* Of a plan by its numbers, as parsed. */
static void config_of(const struct quest *q, uint32_t shape, uint32_t variant, struct config *out)
{
	struct variant v[VARIANTS_MAX];
	const struct shape *s = &q->space.shapes.at[shape];
	search_variants(&q->space, s, v);
	search_config(&q->space, s, &v[variant], out);
}

static enum status predict_plan(const struct machine *m, int64_t ranks, struct search_plan *p, struct error *e)
{
	p->config = p->chosen;
	enum status st = config_resolve(&p->config, ranks, e);
	return st ? st : predict_result(&p->config, m, &p->full, e);
}

/* The evaluator's memory is a little off: what is above the limit by prediction comes last. */
static int by_full(const void *a, const void *b, void *usable_B)
{
	const struct search_plan *x = a, *y = b;
	const bool full[2] = {x->full.memory.total_B > *(const uint64_t *)usable_B, y->full.memory.total_B > *(const uint64_t *)usable_B};
	if (full[0] != full[1])
		return full[0] ? 1 : -1;
	if (x->full.time.step_s != y->full.time.step_s)
		return x->full.time.step_s < y->full.time.step_s ? -1 : 1;
	return (x->quick.step_s > y->quick.step_s) - (x->quick.step_s < y->quick.step_s);
}

static enum status predict_best(struct quest *q, struct search_result *out, struct error *e)
{
	enum status st = ST_OK;
	if (!(out->best = calloc(q->n_top + 1, sizeof *out->best)))
		return error_nomem(e, "plans");
	for (size_t i = 0; i < q->n_top && !st; i++) {
		struct search_plan *p = &out->best[i];
		config_of(q, q->top[i].shape, q->top[i].variant, &p->chosen);
		p->quick = q->top[i].quick;
		st = predict_plan(q->m, q->space.ranks, p, e);
	}
	if (!st && q->n_top > 1)
		qsort_r(out->best, q->n_top, sizeof *out->best, by_full, &q->usable.device.mem_B);
	const size_t shown = q->o->best ? q->o->best : SEARCH_BEST;
	out->n_best = q->n_top < shown ? q->n_top : shown;
	return st;
}

static enum status fill_front(struct quest *q, struct search_result *out, struct error *e)
{
	if (q->front.n && !vec_reserve(&out->front, q->front.n))
		return error_nomem(e, "plans");
	for (size_t i = q->front.n; i-- > 0;) {
		const struct point *p = &q->front.at[i];
		struct search_point *to = &out->front.at[out->front.n++];
		config_of(q, p->shape, p->variant, &to->config);
		to->step_s = p->step_s;
		to->memory_B = p->memory_B;
		enum status st = config_resolve(&to->config, q->space.ranks, e);
		if (st)
			return st;
	}
	return ST_OK;
}

static int by_least(const void *a, const void *b)
{
	const struct least *x = a, *y = b;
	if (x->memory_B != y->memory_B)
		return x->memory_B < y->memory_B ? -1 : 1;
	return x->shape != y->shape ? (x->shape < y->shape ? -1 : 1) : (x->variant > y->variant) - (x->variant < y->variant);
}

#define LEAST_TRIES 48 /* what does not fit is known from below alone: the memory of so many is predicted for the one that needs least */

static enum status find_least(struct quest *q, struct search_result *out, struct error *e)
{
	struct search_plan *p = &out->start; /* taken again before the start is filled */
	enum status st = ST_OK;
	uint64_t needs_B = 0;
	if (q->least.n)
		qsort(q->least.at, q->least.n, sizeof *q->least.at, by_least);
	for (size_t i = 0; i < q->least.n && i < LEAST_TRIES && !st; i++) {
		const struct least *l = &q->least.at[i];
		if (out->has_least && l->memory_B >= out->least.full.memory.total_B)
			break;
		config_of(q, l->shape, l->variant, &p->chosen);
		p->config = p->chosen;
		if ((st = config_resolve(&p->config, q->space.ranks, e)) || (st = predict_fitting(&p->config, q->m, &p->full, e)))
			break;
		if (out->has_least && p->full.memory.total_B >= out->least.full.memory.total_B)
			continue;
		out->has_least = true;
		out->least = *p;
		needs_B = l->memory_B > p->full.memory.total_B ? l->memory_B : p->full.memory.total_B; /* the evaluator, a little off, refused it */
	}
	if (!st && out->has_least)
		st = predict_folded(&out->least.config, q->m, &out->least.full, e);
	out->missing_B = needs_B > q->m->device.mem_B ? needs_B - q->m->device.mem_B : 0;
	return st;
}

static enum status price_start(const struct quest *q, const struct config *start, struct search_result *out, struct error *e)
{
	struct error wrong = {0};
	struct search_plan *p = &out->start;
	p->chosen = *start;
	p->config = *start;
	enum status st = config_resolve(&p->config, q->space.ranks, &wrong);
	if (!st)
		st = fold_check(&p->config, &wrong);
	if (st == ST_INPUT) {
		snprintf(out->start_reason, sizeof out->start_reason, "%.255s", wrong.text);
		return ST_OK;
	}
	if (st)
		return error_set(e, st, "%s", wrong.text);
	out->start_legal = true;
	return predict_plan(q->m, q->space.ranks, p, e);
}

enum status search_select(struct quest *q, const struct config *start, struct search_result *out, struct error *e)
{
	enum status st = predict_best(q, out, e);
	if (st || (st = fill_front(q, out, e)) || (q->n_top == 0 && (st = find_least(q, out, e))))
		return st;
	return price_start(q, start, out, e);
}
