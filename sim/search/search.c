#include "sim/search/search_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "sim/engine/fold.h"
#include "sim/search/lower_bound.h"

static int by_step(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	if (x->step_s != y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return (x->plan > y->plan) - (x->plan < y->plan);
}

int search_by_memory(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	if (x->memory_B != y->memory_B)
		return x->memory_B < y->memory_B ? -1 : 1;
	return by_step(a, b);
}

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
	struct evaluator *v = state->workers[0].evaluator;
	enum status st = ST_OK;
	size_t legal = 0;
	for (size_t i = 0; i < s->shapes.n && !st; i++) {
		struct variant variants[VARIANTS_MAX];
		struct shape shape = s->shapes.at[i];
		struct error wrong;
		const size_t n = search_variants(s, &shape, variants);
		search_config(s, &shape, &variants[0], config);
		if ((st = search_resolve(config, s->ranks, &wrong, e)))
			break;
		if (wrong.status) {
			c->illegal += (int64_t)n;
			continue;
		}
		struct plan_lower_bound bound;
		st = lower_bound_of(v, config, &bound, e);
		shape.lower_bound_s = bound.step_s;
		shape.unfetched_bound_s = bound.unfetched_s;
		shape.lower_bound_B = bound.memory_B;
		shape.blocks = bound.folds ? 0 : fold_blocks(config) * (double)n;
		s->shapes.at[legal] = shape;
		state->order[legal] = (uint32_t)legal;
		legal++;
	}
	s->shapes.n = legal;
	if (!st)
		qsort_r(state->order, legal, sizeof *state->order, by_lower_bound, s->shapes.at);
	return st;
}

/* ---- batches of shapes, in the order of their bounds ---- */

static double variant_bound_s(const struct shape *s, const struct variant *v)
{
	const bool ahead = v->overlap && v->prefetch > 0,
		   units = strategy_has((enum strategy)s->value[PLAN_STRATEGY], STRATEGY_UNITS);
	return units && !ahead ? s->unfetched_bound_s : s->lower_bound_s;
}

static enum status evaluate_shape(const struct search_space *space, struct worker *k, struct shape_outcome *out,
	struct error *e)
{
	const struct shape *shape = &space->shapes.at[out->shape];
	struct variant v[VARIANTS_MAX];
	enum status st = ST_OK;
	out->n = search_variants(space, shape, v);
	evaluator_time_below(k->evaluator, out->below_B);
	for (size_t i = 0; i < out->n && !st; i++) {
		out->pruned[i] = variant_bound_s(shape, &v[i]) > out->limit_s;
		if (out->pruned[i])
			continue;
		search_config(space, shape, &v[i], &k->config);
		st = evaluate_plan(k->evaluator, &k->config, space->ranks, &out->of[i], e);
	}
	return st;
}

static void evaluate_in_batch(void *search_state, int thread, size_t i)
{
	struct search_state *state = search_state;
	struct shape_outcome *out = &state->batch[i];
	out->error = (struct error){0};
	out->status = evaluate_shape(&state->space, &state->workers[thread], out, &out->error);
}

static enum status run_batch(struct search_state *state, struct error *e)
{
	threads_run(state->threads, state->n_batch, evaluate_in_batch, state);
	for (size_t i = 0; i < state->n_batch; i++)
		if (state->batch[i].status)
			return error_set(e, state->batch[i].status, "%s", state->batch[i].error.text);
	return ST_OK;
}

static void add_top(struct search_state *state, struct point p)
{
	state->top[state->n_top] = p;
	qsort(state->top, state->n_top + 1, sizeof *state->top, by_step);
	state->n_top += state->n_top < state->wanted;
}

/* Keeps the Pareto front of (step time, memory), up to SEARCH_FRONT times the best step. */
static void pareto_front(struct search_state *state)
{
	size_t kept = 0;
	double fastest_s = INFINITY;
	if (state->front.n)
		qsort(state->front.at, state->front.n, sizeof *state->front.at, search_by_memory);
	for (size_t i = 0; i < state->front.n; i++)
		if (state->front.at[i].step_s < fastest_s) {
			fastest_s = state->front.at[i].step_s;
			if (fastest_s <= SEARCH_FRONT * state->top[0].step_s)
				state->front.at[kept++] = state->front.at[i];
		}
	state->front.n = kept;
}

/* Merges a shape's plans: the fastest into top, all that fit into the front, the smallest that does not into oversized.
 */
static enum status merge_shape(struct search_state *state, const struct shape_outcome *o, struct search_counts *c,
	struct error *e)
{
	struct point best = {.step_s = INFINITY}, least = {.memory_B = UINT64_MAX};
	for (uint32_t i = 0; i < o->n; i++) {
		const struct evaluation *x = &o->of[i];
		const struct point p = {x->step_s, x->memory_B, o->shape * VARIANTS_MAX + i};
		if (o->pruned[i] || x->dominated) {
			c->pruned++;
			continue;
		}
		c->illegal += !x->legal;
		c->too_large += x->legal && !x->fits;
		c->timed += x->fits;
		c->predicted += x->fits && !x->folded;
		if (x->fits && !vec_push(&state->front, p))
			return error_nomem(e, "plans");
		if (x->fits && p.step_s < best.step_s)
			best = p;
		if (x->legal && !x->fits && p.memory_B < least.memory_B)
			least = p;
	}
	if (best.step_s < INFINITY)
		add_top(state, best);
	return least.memory_B == UINT64_MAX || vec_push(&state->oversized, least) ? ST_OK : error_nomem(e, "plans");
}

static enum status merge_batch(struct search_state *state, struct search_counts *c, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < state->n_batch && !st; i++)
		st = merge_shape(state, &state->batch[i], c, e);
	pareto_front(state);
	return st;
}

/* Returns the step time of the last of the best plans that are wanted; infinite while there are fewer. */
static double worst_wanted_s(const struct search_state *state)
{
	return state->o->exhaustive || state->n_top < state->wanted ? INFINITY : state->top[state->n_top - 1].step_s;
}

/* Returns the step time above which no plan is wanted. */
static double limit_s(const struct search_state *state)
{
	return fmax(worst_wanted_s(state), state->o->best_alone ? 0 : SEARCH_FRONT * state->top[0].step_s);
}

/* Returns the memory from which on plans of a shape are dominated by a plan of the front, whatever their step within
 * the bound; UINT64_MAX where they may be among the best. */
static uint64_t dominated_from_B(const struct search_state *state, const struct shape *s)
{
	uint64_t least_B = UINT64_MAX;
	if (s->lower_bound_s <= worst_wanted_s(state))
		return least_B;
	for (size_t i = 0; i < state->front.n; i++)
		if (state->front.at[i].step_s <= s->lower_bound_s && state->front.at[i].memory_B < least_B)
			least_B = state->front.at[i].memory_B;
	return least_B;
}

/* Takes shapes in order until there is a batch of them that no bound decides. *at: the next shape in the order. */
static enum status fill_batch(struct search_state *state, size_t *at, struct search_counts *c, struct error *e)
{
	const bool all = state->o->exhaustive;
	const double most_s = limit_s(state); /* of a batch: it changes when one is merged */
	for (state->n_batch = 0; *at < state->space.shapes.n && state->n_batch < SEARCH_BATCH; ++*at) {
		const uint32_t shape = state->order[*at];
		const struct shape *s = &state->space.shapes.at[shape];
		struct variant v[VARIANTS_MAX];
		const int64_t n = (int64_t)search_variants(&state->space, s, v);
		const uint64_t below_B = dominated_from_B(state, s);
		if (s->lower_bound_s == 0 && !all && c->timed + c->too_large >= SEARCH_UNBOUNDED) {
			c->left += n;
		} else if (s->lower_bound_s > most_s || (double)below_B <= s->lower_bound_B) {
			c->pruned += n;
		} else if (s->lower_bound_B > (double)state->usable.device.mem_B && !all) {
			const struct point p = {.memory_B = (uint64_t)s->lower_bound_B, .plan = shape * VARIANTS_MAX};
			c->too_large += n;
			if (!vec_push(&state->oversized, p))
				return error_nomem(e, "plans");
		} else if (s->blocks > 0 && !all && state->blocks + s->blocks > SEARCH_BLOCKS) {
			c->left += n;
		} else {
			state->blocks += s->blocks;
			state->batch[state->n_batch++] = (struct shape_outcome){.shape = shape,
				.below_B = below_B,
				.limit_s = most_s};
		}
	}
	return ST_OK;
}

/* Evaluates the shapes that no bound decides, on all cores. Fills top, front and oversized. */
static enum status evaluate_shapes(struct search_state *state, struct search_counts *c, struct error *e)
{
	enum status st = ST_OK;
	const size_t n = state->space.shapes.n;
	for (size_t at = 0; at < n && !st;) {
		if ((st = fill_batch(state, &at, c, e)) || (st = run_batch(state, e)) ||
			(st = merge_batch(state, c, e)))
			break;
		if (state->o->progress)
			state->o->progress((double)at / (double)n, c->illegal + c->too_large + c->timed,
				state->o->context);
	}
	c->shapes = (int64_t)n;
	c->plans = c->illegal + c->too_large + c->timed + c->pruned + c->left;
	return st;
}

/* ---- the whole ---- */

static enum status prepare(struct search_state *state, const struct config *start, int64_t ranks, struct error *e)
{
	const struct search_options *o = state->o;
	const size_t shown = o->best ? o->best : SEARCH_BEST;
	enum status st = search_space_create(start, ranks, o->held, &state->space, e);
	if (st)
		return st;
	state->wanted = shown < 3 ? 3 : shown; /* the evaluator's order may differ from the prediction's */
	const int threads = o->threads > 0 ? o->threads : threads_here();
	state->threads = threads < THREADS_MOST ? threads : THREADS_MOST;
	state->workers = calloc((size_t)state->threads, sizeof *state->workers);
	state->order = calloc(state->space.shapes.n + 1, sizeof *state->order);
	state->top = calloc(state->wanted + 1, sizeof *state->top);
	if (!state->workers || !state->order || !state->top)
		return error_nomem(e, "plans");
	struct worker *first = state->workers;
	st = evaluator_create(&state->usable, &first->evaluator, e);
	for (int i = 1; i < state->threads && !st; i++)
		st = evaluator_create_beside(first->evaluator, &state->workers[i].evaluator, e);
	return st;
}

static void state_free(struct search_state *state)
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

/* Evaluates the shapes again where nothing fits, with exact memory, to find the one that needs least. */
static enum status evaluate_exactly(struct search_state *state, struct search_counts *c, struct error *e)
{
	for (int i = 0; i < state->threads; i++)
		evaluator_exact_memory(state->workers[i].evaluator);
	state->oversized.n = 0;
	state->blocks = 0;
	return evaluate_shapes(state, c, e);
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
	if (!st)
		st = bound_all(&state, &out->counts, e);
	const struct search_counts bounded = out->counts;
	if (!st)
		st = evaluate_shapes(&state, &out->counts, e);
	const bool gives_up = may_fail && state.n_top == 0 && state.space.shapes.n > 0;
	if (!st && state.n_top == 0 && !gives_up) {
		out->counts = bounded;
		st = evaluate_exactly(&state, &out->counts, e);
	}
	if (!st && !gives_up)
		st = search_select(&state, start, out, e);
	out->left_cuts = state.space.left_cuts;
	out->left_tensor = state.space.left_tensor;
	state_free(&state);
	return st;
}

enum status search(const struct config *start, const struct machine *m, int64_t ranks, const struct search_options *o,
	struct search_result *out, struct error *e)
{
	const double usual = machine_usual_share(m);
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
