/* Evaluates shapes in the order of their bounds, in batches on all cores. */
#include "sim/search/search_state.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- one shape ---- */

static bool dominated(const struct point *p, const struct point *by)
{
	return by->step_s <= p->step_s && by->memory_B <= p->memory_B;
}

static void add_to_front(struct shape_outcome *f, struct point p)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->n_front; i++)
		if (dominated(&p, &f->front[i]))
			return;
	for (size_t i = 0; i < f->n_front; i++)
		if (!dominated(&f->front[i], &p))
			f->front[kept++] = f->front[i];
	f->front[kept++] = p;
	f->n_front = kept;
}

static enum status evaluate_shape(struct search_worker *k, uint32_t number, struct shape_outcome *out, struct error *e)
{
	struct variant v[VARIANTS_MAX];
	const struct shape *shape = &k->space->shapes.at[number];
	const size_t n = search_variants(k->space, shape, v);
	*out = (struct shape_outcome){.least_B = UINT64_MAX};
	for (uint32_t i = 0; i < n; i++) {
		struct evaluation x;
		search_config(k->space, shape, &v[i], &k->config);
		enum status st = evaluate_plan(k->evaluator, &k->config, k->space->ranks, &x, e);
		if (st)
			return st;
		out->illegal += !x.legal;
		out->too_large += x.legal && !x.fits;
		out->timed += x.fits;
		out->predicted += x.fits && !x.folded;
		if (x.legal && !x.fits && x.memory_B < out->least_B) {
			out->least_B = x.memory_B;
			out->least_variant = i;
		}
		if (!x.fits)
			continue;
		add_to_front(out, (struct point){x.step_s, x.memory_B, number, i});
		if (!out->any || x.step_s < out->quick.step_s) {
			out->any = true;
			out->quick = x;
			out->variant = i;
		}
	}
	return ST_OK;
}

/* ---- all shapes, on all cores ---- */

struct worker_argument {
	struct search_state *state;
	int number;
};

static void *run_worker(void *arg)
{
	const struct worker_argument *argument = arg;
	struct search_state *state = argument->state;
	for (size_t i = atomic_fetch_add(&state->next, 1); i < state->n_batch; i = atomic_fetch_add(&state->next, 1))
		state->status[i] = evaluate_shape(&state->workers[argument->number], state->batch[i],
			&state->outcomes[i], &state->errors[i]);
	return NULL;
}

static enum status run_batch(struct search_state *state, struct error *e)
{
	pthread_t threads[SEARCH_THREADS];
	struct worker_argument argument[SEARCH_THREADS];
	int started = 0;
	const size_t n = state->n_batch;
	memset(state->errors, 0, n * sizeof *state->errors);
	atomic_store(&state->next, 0);
	for (int t = 0; t < state->threads; t++) {
		argument[t] = (struct worker_argument){state, t};
		if (t > 0 && (size_t)t < n &&
			pthread_create(&threads[started], NULL, run_worker, &argument[t]) ==
				0) /* fewer threads: slower, the same result */
			started++;
	}
	run_worker(&argument[0]);
	for (int t = 0; t < started; t++)
		pthread_join(threads[t], NULL);
	for (size_t i = 0; i < n; i++)
		if (state->status[i])
			return error_set(e, state->status[i], "%s", state->errors[i].text);
	return ST_OK;
}

static void add_top(struct search_state *state, const struct shape_outcome *f, uint32_t shape)
{
	size_t at = state->n_top;
	while (at > 0 && (f->quick.step_s < state->top[at - 1].step_s ||
				 (f->quick.step_s == state->top[at - 1].step_s && shape < state->top[at - 1].shape)))
		at--;
	if (at >= state->wanted)
		return;
	state->n_top += state->n_top < state->wanted;
	memmove(&state->top[at + 1], &state->top[at], (state->n_top - at - 1) * sizeof *state->top);
	state->top[at] = (struct ranked_plan){f->quick.step_s, f->quick, shape, f->variant};
}

static int by_memory(const void *a, const void *b)
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
		qsort(state->front.at, state->front.n, sizeof *state->front.at, by_memory);
	for (size_t i = 0; i < state->front.n; i++)
		if (state->front.at[i].step_s < fastest_s) {
			fastest_s = state->front.at[i].step_s;
			if (fastest_s <= SEARCH_FRONT * state->top[0].step_s)
				state->front.at[kept++] = state->front.at[i];
		}
	state->front.n = kept;
}

static enum status merge_batch(struct search_state *state, struct search_counts *c, struct error *e)
{
	for (size_t i = 0; i < state->n_batch; i++) {
		const struct shape_outcome *f = &state->outcomes[i];
		const uint32_t shape = state->batch[i];
		c->illegal += f->illegal;
		c->too_large += f->too_large;
		c->timed += f->timed;
		c->predicted += f->predicted;
		if (f->any)
			add_top(state, f, shape);
		if (f->least_B < UINT64_MAX &&
			!vec_push(&state->oversized, ((struct oversized){f->least_B, shape, f->least_variant})))
			return error_nomem(e, "plans");
		for (size_t k = 0; k < f->n_front; k++)
			if (!vec_push(&state->front, f->front[k]))
				return error_nomem(e, "plans");
	}
	pareto_front(state);
	return ST_OK;
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

static int64_t variants_of(const struct search_state *state, uint32_t shape)
{
	struct variant v[VARIANTS_MAX];
	return (int64_t)search_variants(&state->space, &state->space.shapes.at[shape], v);
}

/* Takes shapes in order until there is a batch of them that no bound decides. *at: the next shape in the order. */
static enum status fill_batch(struct search_state *state, size_t *at, struct search_counts *c, struct error *e)
{
	for (state->n_batch = 0; *at < state->space.shapes.n && state->n_batch < SEARCH_BATCH; ++*at) {
		const uint32_t shape = state->order[*at];
		const struct shape *s = &state->space.shapes.at[shape];
		if (s->lower_bound_s == 0 && !state->o->exhaustive && c->timed + c->too_large >= SEARCH_UNBOUNDED) {
			c->left += variants_of(state, shape);
		} else if (s->lower_bound_s > limit_s(state) || dominated_by_front(state, s)) {
			c->pruned += variants_of(state, shape);
		} else if (s->lower_bound_B > (double)state->usable.device.mem_B && !state->o->exhaustive) {
			c->too_large += variants_of(state, shape);
			if (!vec_push(&state->oversized, ((struct oversized){(uint64_t)s->lower_bound_B, shape, 0})))
				return error_nomem(e, "plans");
		} else if (s->blocks > 0 && !state->o->exhaustive && state->blocks + s->blocks > SEARCH_BLOCKS) {
			c->left += variants_of(state, shape);
		} else {
			state->blocks += s->blocks;
			state->batch[state->n_batch++] = shape;
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
