/* Evaluates shapes in the order of their bounds, in batches on all cores. */
#include "sim/search/search_state.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static enum status evaluate_shape(struct search_worker *k, struct shape_outcome *out, struct error *e)
{
	const struct search_space *space = &k->state->space;
	const struct shape *shape = &space->shapes.at[out->shape];
	struct variant v[VARIANTS_MAX];
	enum status st = ST_OK;
	out->n = search_variants(space, shape, v);
	for (size_t i = 0; i < out->n && !st; i++) {
		search_config(space, shape, &v[i], &k->config);
		st = evaluate_plan(k->evaluator, &k->config, space->ranks, &out->of[i], e);
	}
	return st;
}

static void *run_worker(void *worker)
{
	struct search_worker *k = worker;
	struct search_state *state = k->state;
	for (size_t i; (i = atomic_fetch_add(&state->next, 1)) < state->n_batch;) {
		state->batch[i].error = (struct error){0};
		state->batch[i].status = evaluate_shape(k, &state->batch[i], &state->batch[i].error);
	}
	return NULL;
}

static enum status run_batch(struct search_state *state, struct error *e)
{
	pthread_t threads[SEARCH_THREADS];
	int started = 0;
	atomic_store(&state->next, 0);
	for (int t = 1; t < state->threads && (size_t)t < state->n_batch; t++)
		if (pthread_create(&threads[started], NULL, run_worker, &state->workers[t]) ==
			0) /* fewer threads: slower, the same result */
			started++;
	run_worker(&state->workers[0]);
	for (int t = 0; t < started; t++)
		pthread_join(threads[t], NULL);
	for (size_t i = 0; i < state->n_batch; i++)
		if (state->batch[i].status)
			return error_set(e, state->batch[i].status, "%s", state->batch[i].error.text);
	return ST_OK;
}

static void add_top(struct search_state *state, struct point p)
{
	size_t at = state->n_top;
	for (; at > 0; at--) {
		const struct point *before = &state->top[at - 1];
		if (before->step_s < p.step_s || (before->step_s == p.step_s && before->shape < p.shape))
			break;
	}
	if (at >= state->wanted)
		return;
	state->n_top += state->n_top < state->wanted;
	memmove(&state->top[at + 1], &state->top[at], (state->n_top - at - 1) * sizeof *state->top);
	state->top[at] = p;
}

int search_by_memory(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	if (x->memory_B != y->memory_B)
		return x->memory_B < y->memory_B ? -1 : 1;
	if (x->step_s != y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return x->shape != y->shape ? (x->shape < y->shape ? -1 : 1)
	                            : (x->variant > y->variant) - (x->variant < y->variant);
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
		const struct point p = {x->step_s, x->memory_B, o->shape, i};
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
	return state->o->best_alone || state->n_top < state->wanted
	               ? worst_wanted_s(state)
	               : fmax(worst_wanted_s(state), SEARCH_FRONT * state->top[0].step_s);
}

/* True for a shape that is not among the best and is dominated, by its bounds, by a plan of the front. */
static bool dominated_by_front(const struct search_state *state, const struct shape *s)
{
	if (s->lower_bound_s <= worst_wanted_s(state))
		return false;
	for (size_t i = 0; i < state->front.n; i++)
		if (state->front.at[i].step_s <= s->lower_bound_s &&
			(double)state->front.at[i].memory_B <= s->lower_bound_B)
			return true;
	return false;
}

/* Takes shapes in order until there is a batch of them that no bound decides. *at: the next shape in the order. */
static enum status fill_batch(struct search_state *state, size_t *at, struct search_counts *c, struct error *e)
{
	const bool all = state->o->exhaustive;
	for (state->n_batch = 0; *at < state->space.shapes.n && state->n_batch < SEARCH_BATCH; ++*at) {
		const uint32_t shape = state->order[*at];
		const struct shape *s = &state->space.shapes.at[shape];
		struct variant v[VARIANTS_MAX];
		const int64_t n = (int64_t)search_variants(&state->space, s, v);
		if (s->lower_bound_s == 0 && !all && c->timed + c->too_large >= SEARCH_UNBOUNDED) {
			c->left += n;
		} else if (s->lower_bound_s > limit_s(state) || dominated_by_front(state, s)) {
			c->pruned += n;
		} else if (s->lower_bound_B > (double)state->usable.device.mem_B && !all) {
			const struct point p = {.memory_B = (uint64_t)s->lower_bound_B, .shape = shape};
			c->too_large += n;
			if (!vec_push(&state->oversized, p))
				return error_nomem(e, "plans");
		} else if (s->blocks > 0 && !all && state->blocks + s->blocks > SEARCH_BLOCKS) {
			c->left += n;
		} else {
			state->blocks += s->blocks;
			state->batch[state->n_batch++].shape = shape;
		}
	}
	return ST_OK;
}

enum status search_evaluate_shapes(struct search_state *state, struct search_counts *c, struct error *e)
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
