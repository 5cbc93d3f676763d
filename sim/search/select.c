/* The plans that a search selects, predicted in full. */
#include "sim/search/search_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/fold.h"

/* Fills the parsed and the resolved config of a plan, which may be one struct. */
static enum status configs_of(const struct search_state *state, const struct point *p, struct config *chosen,
	struct config *resolved, struct error *e)
{
	struct variant v[VARIANTS_MAX];
	const struct shape *s = &state->space.shapes.at[p->plan / VARIANTS_MAX];
	search_variants(&state->space, s, v);
	search_config(&state->space, s, &v[p->plan % VARIANTS_MAX], chosen);
	if (resolved != chosen)
		*resolved = *chosen;
	return config_resolve(resolved, state->space.ranks, e);
}

/* Orders plans by step time. Plans above the memory limit by prediction come last: the evaluator's memory is a little
 * off. */
static int by_full(const void *a, const void *b, void *usable_B)
{
	const struct search_plan *x = a, *y = b;
	const uint64_t most_B = *(const uint64_t *)usable_B;
	const int above = (x->full.memory.total_B > most_B) - (y->full.memory.total_B > most_B);
	if (above)
		return above;
	if (x->full.time.step_s != y->full.time.step_s)
		return x->full.time.step_s < y->full.time.step_s ? -1 : 1;
	return (x->evaluated_s > y->evaluated_s) - (x->evaluated_s < y->evaluated_s);
}

static enum status predict_best(struct search_state *state, struct search_result *out, struct error *e)
{
	enum status st = ST_OK;
	if (!(out->best = calloc(state->n_top + 1, sizeof *out->best)))
		return error_nomem(e, "plans");
	for (size_t i = 0; i < state->n_top && !st; i++) {
		struct search_plan *p = &out->best[i];
		p->evaluated_s = state->top[i].step_s;
		if (!(st = configs_of(state, &state->top[i], &p->chosen, &p->config, e)))
			st = fold_result(&p->config, state->m, &p->full, e);
	}
	if (!st && state->n_top > 1)
		qsort_r(out->best, state->n_top, sizeof *out->best, by_full, &state->usable.device.mem_B);
	const size_t shown = state->o->best ? state->o->best : SEARCH_BEST;
	out->n_best = state->n_top < shown ? state->n_top : shown;
	return st;
}

static bool is_among_best(const struct search_state *state, const struct point *p)
{
	for (size_t i = 0; i < state->n_top; i++)
		if (state->top[i].plan == p->plan)
			return true;
	return false;
}

static enum status add_candidate(const struct config *c, const struct result *full, struct search_result *out,
	struct error *e)
{
	const struct search_point at = {full->time.step_s, full->memory.total_B, *c};
	return vec_push(&out->front, at) ? ST_OK : error_nomem(e, "plans");
}

/* Orders points by step time, then by memory. */
static int by_time(const void *a, const void *b)
{
	const struct search_point *x = a, *y = b;
	if (x->step_s < y->step_s || x->step_s > y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return (x->memory_B > y->memory_B) - (x->memory_B < y->memory_B);
}

/* Keeps those that no other beats in both, fastest first, up to SEARCH_FRONT times the best step. */
static void keep_front(const struct search_state *state, struct search_result *out)
{
	size_t kept = 0;
	uint64_t below_B = UINT64_MAX;
	qsort(out->front.at, out->front.n, sizeof *out->front.at, by_time);
	for (size_t i = 0; i < out->front.n; i++) {
		const struct search_point *p = &out->front.at[i];
		if (p->memory_B > state->usable.device.mem_B || p->memory_B >= below_B ||
			p->step_s > SEARCH_FRONT * out->best[0].full.time.step_s)
			continue;
		below_B = p->memory_B;
		out->front.at[kept++] = *p;
	}
	out->front.n = kept;
}

/* The evaluator's front and the best plans, predicted in full, are the candidates: the evaluator is a little off. */
static enum status fill_front(struct search_state *state, struct search_result *out, struct error *e)
{
	enum status st = ST_OK;
	if (state->o->best_alone || state->n_top == 0)
		return ST_OK;
	struct search_plan *p = &out->start; /* taken again before the start is filled */
	for (size_t i = 0; i < state->n_top && !st; i++)
		st = add_candidate(&out->best[i].config, &out->best[i].full, out, e);
	for (size_t i = 0; i < state->front.n && !st; i++) {
		if (is_among_best(state, &state->front.at[i]))
			continue;
		if (!(st = configs_of(state, &state->front.at[i], &p->config, &p->config, e)) &&
			!(st = fold_result(&p->config, state->m, &p->full, e)))
			st = add_candidate(&p->config, &p->full, out, e);
	}
	if (!st)
		keep_front(state, out);
	return st;
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
		qsort(state->oversized.at, state->oversized.n, sizeof *state->oversized.at, search_by_memory);
	for (size_t i = 0; i < state->oversized.n && i < OVERSIZED_TRIES && !st; i++) {
		const struct point *l = &state->oversized.at[i];
		if (out->has_least && l->memory_B >= out->least.full.memory.total_B)
			break;
		if ((st = configs_of(state, l, &p->chosen, &p->config, e)) ||
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

static enum status predict_start(const struct search_state *state, const struct config *start,
	struct search_result *out, struct error *e)
{
	struct error wrong;
	struct search_plan *p = &out->start;
	p->chosen = *start;
	p->config = *start;
	enum status st = search_resolve(&p->config, state->space.ranks, &wrong, e);
	out->start_legal = !st && !wrong.status;
	snprintf(out->start_reason, sizeof out->start_reason, "%.255s", wrong.text);
	return out->start_legal ? fold_result(&p->config, state->m, &p->full, e) : st;
}

enum status search_select(struct search_state *state, const struct config *start, struct search_result *out,
	struct error *e)
{
	const long long ranks = state->space.ranks;
	enum status st = predict_best(state, out, e);
	if (st || (st = fill_front(state, out, e)) || (state->n_top == 0 && (st = find_smallest(state, out, e))) ||
		(st = predict_start(state, start, out, e)) || state->space.shapes.n > 0)
		return st;
	return error_set(e, ST_INPUT, "no plan is legal on %lld rank%s%s%s", ranks, ranks == 1 ? "" : "s",
		out->start_reason[0] ? ": " : "", out->start_reason);
}
