/* Predicts the plans that a search selects. */
#include "sim/search/search_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/fold.h"

/* Fills the parsed config of a plan. */
static void config_of(const struct search_state *state, uint32_t shape, uint32_t variant, struct config *out)
{
	struct variant v[VARIANTS_MAX];
	const struct shape *s = &state->space.shapes.at[shape];
	search_variants(&state->space, s, v);
	search_config(&state->space, s, &v[variant], out);
}

static enum status predict_plan(const struct machine *m, int64_t ranks, struct search_plan *p, struct error *e)
{
	p->config = p->chosen;
	enum status st = config_resolve(&p->config, ranks, e);
	return st ? st : fold_result(&p->config, m, &p->full, e);
}

/* Orders plans by step time. Plans above the memory limit by prediction come last: the evaluator's memory is a little
 * off. */
static int by_full(const void *a, const void *b, void *usable_B)
{
	const struct search_plan *x = a, *y = b;
	const bool full[2] = {x->full.memory.total_B > *(const uint64_t *)usable_B,
		y->full.memory.total_B > *(const uint64_t *)usable_B};
	if (full[0] != full[1])
		return full[0] ? 1 : -1;
	if (x->full.time.step_s != y->full.time.step_s)
		return x->full.time.step_s < y->full.time.step_s ? -1 : 1;
	return (x->quick.step_s > y->quick.step_s) - (x->quick.step_s < y->quick.step_s);
}

static enum status predict_best(struct search_state *state, struct search_result *out, struct error *e)
{
	enum status st = ST_OK;
	if (!(out->best = calloc(state->n_top + 1, sizeof *out->best)))
		return error_nomem(e, "plans");
	for (size_t i = 0; i < state->n_top && !st; i++) {
		struct search_plan *p = &out->best[i];
		config_of(state, state->top[i].shape, state->top[i].variant, &p->chosen);
		p->quick = state->top[i].quick;
		st = predict_plan(state->m, state->space.ranks, p, e);
	}
	if (!st && state->n_top > 1)
		qsort_r(out->best, state->n_top, sizeof *out->best, by_full, &state->usable.device.mem_B);
	const size_t shown = state->o->best ? state->o->best : SEARCH_BEST;
	out->n_best = state->n_top < shown ? state->n_top : shown;
	return st;
}

static enum status fill_front(struct search_state *state, struct search_result *out, struct error *e)
{
	if (state->front.n && !vec_reserve(&out->front, state->front.n))
		return error_nomem(e, "plans");
	for (size_t i = state->front.n; i-- > 0;) {
		const struct point *p = &state->front.at[i];
		struct search_point *to = &out->front.at[out->front.n++];
		config_of(state, p->shape, p->variant, &to->config);
		to->step_s = p->step_s;
		to->memory_B = p->memory_B;
		enum status st = config_resolve(&to->config, state->space.ranks, e);
		if (st)
			return st;
	}
	return ST_OK;
}

static int by_size(const void *a, const void *b)
{
	const struct oversized *x = a, *y = b;
	if (x->memory_B != y->memory_B)
		return x->memory_B < y->memory_B ? -1 : 1;
	return x->shape != y->shape ? (x->shape < y->shape ? -1 : 1)
	                            : (x->variant > y->variant) - (x->variant < y->variant);
}

/* The evaluator gives plans that do not fit a lower bound of memory alone. To find the one that needs least, the memory
 * of so many is predicted. */
#define OVERSIZED_TRIES 48

static enum status find_smallest(struct search_state *state, struct search_result *out, struct error *e)
{
	struct search_plan *p = &out->start; /* taken again before the start is filled */
	enum status st = ST_OK;
	uint64_t needs_B = 0;
	if (state->oversized.n)
		qsort(state->oversized.at, state->oversized.n, sizeof *state->oversized.at, by_size);
	for (size_t i = 0; i < state->oversized.n && i < OVERSIZED_TRIES && !st; i++) {
		const struct oversized *l = &state->oversized.at[i];
		if (out->has_least && l->memory_B >= out->least.full.memory.total_B)
			break;
		config_of(state, l->shape, l->variant, &p->chosen);
		p->config = p->chosen;
		if ((st = config_resolve(&p->config, state->space.ranks, e)) ||
			(st = fold_fitting(&p->config, state->m, &p->full, e)))
			break;
		if (out->has_least && p->full.memory.total_B >= out->least.full.memory.total_B)
			continue;
		out->has_least = true;
		out->least = *p;
		needs_B = l->memory_B > p->full.memory.total_B
		                  ? l->memory_B
		                  : p->full.memory.total_B; /* the evaluator, a little off, refused it */
	}
	if (!st && out->has_least)
		st = fold_predict(&out->least.config, state->m, &out->least.full, e);
	out->missing_B = needs_B > state->m->device.mem_B ? needs_B - state->m->device.mem_B : 0;
	return st;
}

static enum status price_start(const struct search_state *state, const struct config *start, struct search_result *out,
	struct error *e)
{
	struct error wrong = {0};
	struct search_plan *p = &out->start;
	p->chosen = *start;
	p->config = *start;
	enum status st = config_resolve(&p->config, state->space.ranks, &wrong);
	if (!st)
		st = fold_check(&p->config, &wrong);
	if (st == ST_INPUT) {
		snprintf(out->start_reason, sizeof out->start_reason, "%.255s", wrong.text);
		return ST_OK;
	}
	if (st)
		return error_set(e, st, "%s", wrong.text);
	out->start_legal = true;
	return predict_plan(state->m, state->space.ranks, p, e);
}

enum status search_select(struct search_state *state, const struct config *start, struct search_result *out,
	struct error *e)
{
	enum status st = predict_best(state, out, e);
	if (st || (st = fill_front(state, out, e)) || (state->n_top == 0 && (st = find_smallest(state, out, e))))
		return st;
	return price_start(state, start, out, e);
}
