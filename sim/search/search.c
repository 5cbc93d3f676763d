#include "sim/search/search.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sim/search/lower_bound.h"
#include "sim/engine/fold.h"
#include "sim/search/search_state.h"

/* ---- bounds ---- */

static int by_lower_bound(const void *a, const void *b, void *shapes)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct shape *s = shapes;
	if (s[x].lower_bound_s != s[y].lower_bound_s)
		return s[x].lower_bound_s < s[y].lower_bound_s ? -1 : 1;
	if (s[x].lower_bound_s == 0 && s[x].keys_changed != s[y].keys_changed)
		return s[x].keys_changed < s[y].keys_changed ? -1 : 1;
	return (x > y) - (x < y);
}

enum status search_resolve(struct config *c, int64_t ranks, struct error *wrong, struct error *e)
{
	*wrong = (struct error){0};
	enum status st = config_resolve(c, ranks, wrong);
	if (!st)
		st = fold_check(c, wrong);
	return st == ST_OK || st == ST_INPUT ? ST_OK : error_set(e, st, "%s", wrong->text);
}

/* Fills bounds and order. Counts illegal shapes and leaves them out. */
static enum status bound_all(struct search_state *state, struct search_counts *c, struct error *e)
{
	struct search_space *s = &state->space;
	struct config *config = &state->workers[0].config;
	struct lower_bounds *bounds = NULL;
	enum status st = lower_bounds_create(state->m, &bounds, e);
	size_t legal = 0;
	for (size_t i = 0; i < s->shapes.n && !st; i++) {
		struct variant v[VARIANTS_MAX];
		struct shape shape = s->shapes.at[i];
		struct error wrong;
		const size_t n = search_variants(s, &shape, v);
		search_config(s, &shape, &v[0], config);
		if ((st = search_resolve(config, s->ranks, &wrong, e)))
			break;
		if (wrong.status) {
			c->illegal += (int64_t)n;
			continue;
		}
		struct plan_lower_bound bound;
		st = lower_bound_of(bounds, config, &bound, e);
		shape.lower_bound_s = bound.step_s;
		shape.lower_bound_B = bound.memory_B;
		shape.blocks = evaluator_folds(state->workers[0].evaluator, config) ? 0
		                                                                    : fold_blocks(config) * (double)n;
		s->shapes.at[legal] = shape;
		state->order[legal] = (uint32_t)legal;
		legal++;
	}
	s->shapes.n = legal;
	if (!st)
		qsort_r(state->order, legal, sizeof *state->order, by_lower_bound, s->shapes.at);
	lower_bounds_destroy(bounds);
	return st;
}

/* ---- the whole ---- */

static int cores(void)
{
	cpu_set_t set;
	const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n < SEARCH_THREADS ? n : SEARCH_THREADS;
}

static enum status prepare(struct search_state *state, const struct config *start, int64_t ranks, struct error *e)
{
	const struct search_options *o = state->o;
	const size_t shown = o->best ? o->best : SEARCH_BEST;
	enum status st = search_space_create(start, ranks, o->held, &state->space, e);
	if (st)
		return st;
	state->wanted = shown < 3 ? 3 : shown; /* the evaluator's order may differ from the prediction's */
	state->threads = o->threads <= 0 ? cores() : o->threads < SEARCH_THREADS ? o->threads : SEARCH_THREADS;
	state->workers = calloc((size_t)state->threads, sizeof *state->workers);
	state->order = calloc(state->space.shapes.n + 1, sizeof *state->order);
	state->top = calloc(state->wanted + 1, sizeof *state->top);
	if (!state->workers || !state->order || !state->top)
		return error_nomem(e, "plans");
	for (int i = 0; i < state->threads && !st; i++) {
		state->workers[i].state = state;
		st = evaluator_create(&state->usable, &state->workers[i].evaluator, e);
	}
	return st;
}

static void search_state_free(struct search_state *state)
{
	for (int i = 0; state->workers && i < state->threads; i++)
		evaluator_destroy(state->workers[i].evaluator);
	free(state->workers);
	free(state->order);
	free(state->top);
	vec_free(&state->front);
	vec_free(&state->oversized);
	search_space_free(&state->space);
}

/* Searches plans that use at most this share of a device's memory. may_fail: returns early where nothing fits. */
static enum status search_within(double share, bool may_fail, const struct config *start, const struct machine *m,
	int64_t ranks, const struct search_options *o, struct search_result *out, struct error *e)
{
	struct search_state state = {.o = o, .m = m, .usable = *m};
	memset(out, 0, sizeof *out);
	out->memory_share = share;
	state.usable.device.mem_B = (uint64_t)(share * (double)m->device.mem_B);
	enum status st = prepare(&state, start, ranks, e);
	if (st || (st = bound_all(&state, &out->counts, e)) || (st = search_evaluate_shapes(&state, &out->counts, e)) ||
		(may_fail && state.n_top == 0 && state.space.shapes.n > 0) ||
		(st = search_select(&state, start, out, e)))
		goto out;
	if (state.space.shapes.n == 0)
		st = error_set(e, ST_INPUT, "no plan is legal on %lld rank%s%s%s", (long long)ranks,
			ranks == 1 ? "" : "s", out->start_reason[0] ? ": " : "", out->start_reason);
out:
	out->left_cuts = state.space.left_cuts;
	out->left_tensor = state.space.left_tensor;
	search_state_free(&state);
	return st;
}

enum status search(const struct config *start, const struct machine *m, int64_t ranks, const struct search_options *o,
	struct search_result *out, struct error *e)
{
	const double usual = m->device.is_host ? 1 : m->parameters->step.memory_full;
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
