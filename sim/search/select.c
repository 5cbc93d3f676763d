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

/* A plan that may be shown: one of the evaluator's best or of its front, predicted in full. The evaluator is a little
 * off, so that either list may hold a plan of the other. */
struct candidate {
	struct search_plan plan;
	size_t shape;
};

/* Orders candidates by step time. Plans above the memory limit by prediction come last: the evaluator's memory is a
 * little off. */
static int by_full(const void *a, const void *b, void *usable_B)
{
	const struct search_plan *x = &((const struct candidate *)a)->plan, *y = &((const struct candidate *)b)->plan;
	const uint64_t most_B = *(const uint64_t *)usable_B;
	const int above = (x->full.memory.total_B > most_B) - (y->full.memory.total_B > most_B);
	if (above)
		return above;
	if (x->full.time.step_s != y->full.time.step_s)
		return x->full.time.step_s < y->full.time.step_s ? -1 : 1;
	if (x->full.memory.total_B != y->full.memory.total_B)
		return x->full.memory.total_B < y->full.memory.total_B ? -1 : 1;
	return (x->evaluated_s > y->evaluated_s) - (x->evaluated_s < y->evaluated_s);
}

static enum status predict_point(const struct search_state *state, const struct point *p, struct candidate *out,
	struct error *e)
{
	struct search_plan *plan = &out->plan;
	out->shape = p->plan / VARIANTS_MAX;
	plan->evaluated_s = p->step_s;
	enum status st = configs_of(state, p, &plan->chosen, &plan->config, e);
	return st ? st : fold_result(&plan->config, state->m, &plan->full, e);
}

static bool is_among_best(const struct search_state *state, const struct point *p)
{
	for (size_t i = 0; i < state->n_top; i++)
		if (state->top[i].plan == p->plan)
			return true;
	return false;
}

static bool is_shown(const struct candidate *c, const struct candidate *from)
{
	for (const struct candidate *other = from; other < c; other++)
		if (other->shape == c->shape)
			return true;
	return false;
}

/* Copies the best variants of the fastest shapes. `from` is in order. */
static enum status keep_best(const struct search_state *state, const struct candidate *from, size_t n,
	struct search_result *out, struct error *e)
{
	const size_t wanted = state->o->best ? state->o->best : SEARCH_BEST, shown = n < wanted ? n : wanted;
	if (!(out->best = calloc(shown + 1, sizeof *out->best)))
		return error_nomem(e, "plans");
	for (size_t i = 0; i < n && out->n_best < shown; i++)
		if (!is_shown(&from[i], from))
			out->best[out->n_best++] = from[i].plan;
	return ST_OK;
}

/* Copies those that no other beats in both time and memory, up to SEARCH_FRONT times the best step. */
static enum status keep_front(const struct search_state *state, const struct candidate *from, size_t n,
	struct search_result *out, struct error *e)
{
	uint64_t below_B = state->usable.device.mem_B + 1;
	for (size_t i = 0; i < n; i++) {
		const struct result *full = &from[i].plan.full;
		if (full->memory.total_B >= below_B || full->time.step_s > SEARCH_FRONT * from[0].plan.full.time.step_s)
			continue;
		below_B = full->memory.total_B;
		if (!vec_push(&out->front, ((struct search_point){full->time.step_s, below_B, from[i].plan.config})))
			return error_nomem(e, "plans");
	}
	return ST_OK;
}

static enum status fill_plans(struct search_state *state, struct search_result *out, struct error *e)
{
	const bool front = !state->o->best_alone && state->n_top > 0;
	const size_t most = state->n_top + (front ? state->front.n : 0);
	struct candidate *c = calloc(most + 1, sizeof *c);
	enum status st = c ? ST_OK : error_nomem(e, "plans");
	size_t n = 0;
	for (size_t i = 0; i < state->n_top && !st; i++)
		st = predict_point(state, &state->top[i], &c[n++], e);
	for (size_t i = 0; front && i < state->front.n && !st; i++)
		if (!is_among_best(state, &state->front.at[i]))
			st = predict_point(state, &state->front.at[i], &c[n++], e);
	if (!st && n > 1)
		qsort_r(c, n, sizeof *c, by_full, &state->usable.device.mem_B);
	if (!st)
		st = keep_best(state, c, n, out, e);
	if (!st && front)
		st = keep_front(state, c, n, out, e);
	free(c);
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
	enum status st = fill_plans(state, out, e);
	if (st || (state->n_top == 0 && (st = find_smallest(state, out, e))) ||
		(st = predict_start(state, start, out, e)) || state->space.shapes.n > 0)
		return st;
	return error_set(e, ST_INPUT, "no plan is legal on %lld rank%s%s%s", ranks, ranks == 1 ? "" : "s",
		out->start_reason[0] ? ": " : "", out->start_reason);
}
