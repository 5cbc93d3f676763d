/* Shapes in the order of their bounds, evaluated in batches on all cores. */
#include "sim/search_quest.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- one shape ---- */

static bool dominated(const struct point *p, const struct point *by)
{
	return by->step_s <= p->step_s && by->memory_B <= p->memory_B;
}

static void add_point(struct found *f, struct point p)
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

static enum status evaluate_shape(struct seeker *k, uint32_t number, struct found *out, struct error *e)
{
	struct variant v[VARIANTS_MAX];
	const struct shape *shape = &k->space->shapes.at[number];
	const size_t n = search_variants(k->space, shape, v);
	*out = (struct found){.least_B = UINT64_MAX};
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
		add_point(out, (struct point){x.step_s, x.memory_B, number, i});
		if (!out->any || x.step_s < out->quick.step_s) {
			out->any = true;
			out->quick = x;
			out->variant = i;
		}
	}
	return ST_OK;
}

/* ---- all shapes, on all cores ---- */

struct crew {
	struct quest *q;
	int number;
};

static void *work(void *arg)
{
	const struct crew *crew = arg;
	struct quest *q = crew->q;
	for (size_t i = atomic_fetch_add(&q->next, 1); i < q->n_batch; i = atomic_fetch_add(&q->next, 1))
		q->status[i] = evaluate_shape(&q->seekers[crew->number], q->batch[i], &q->found[i], &q->errors[i]);
	return NULL;
}

static enum status run_batch(struct quest *q, struct error *e)
{
	pthread_t threads[SEARCH_THREADS];
	struct crew crew[SEARCH_THREADS];
	int started = 0;
	const size_t n = q->n_batch;
	memset(q->errors, 0, n * sizeof *q->errors);
	atomic_store(&q->next, 0);
	for (int t = 0; t < q->threads; t++) {
		crew[t] = (struct crew){q, t};
		if (t > 0 && (size_t)t < n && pthread_create(&threads[started], NULL, work, &crew[t]) == 0) /* fewer threads: slower, the same result */
			started++;
	}
	work(&crew[0]);
	for (int t = 0; t < started; t++)
		pthread_join(threads[t], NULL);
	for (size_t i = 0; i < n; i++)
		if (q->status[i])
			return error_set(e, q->status[i], "%s", q->errors[i].text);
	return ST_OK;
}

static void add_top(struct quest *q, const struct found *f, uint32_t shape)
{
	size_t at = q->n_top;
	while (at > 0 && (f->quick.step_s < q->top[at - 1].step_s || (f->quick.step_s == q->top[at - 1].step_s && shape < q->top[at - 1].shape)))
		at--;
	if (at >= q->wanted)
		return;
	q->n_top += q->n_top < q->wanted;
	memmove(&q->top[at + 1], &q->top[at], (q->n_top - at - 1) * sizeof *q->top);
	q->top[at] = (struct top){f->quick.step_s, f->quick, shape, f->variant};
}

static int by_memory(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	if (x->memory_B != y->memory_B)
		return x->memory_B < y->memory_B ? -1 : 1;
	if (x->step_s != y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return x->shape != y->shape ? (x->shape < y->shape ? -1 : 1) : (x->variant > y->variant) - (x->variant < y->variant);
}

/* From the least memory on only what is faster than all before it stays, and of that what is not much slower than the best. */
static void thin_front(struct quest *q)
{
	size_t kept = 0;
	double fastest_s = INFINITY;
	if (q->front.n)
		qsort(q->front.at, q->front.n, sizeof *q->front.at, by_memory);
	for (size_t i = 0; i < q->front.n; i++)
		if (q->front.at[i].step_s < fastest_s) {
			fastest_s = q->front.at[i].step_s;
			if (fastest_s <= SEARCH_FRONT * q->top[0].step_s)
				q->front.at[kept++] = q->front.at[i];
		}
	q->front.n = kept;
}

static enum status take_batch(struct quest *q, struct search_counts *c, struct error *e)
{
	for (size_t i = 0; i < q->n_batch; i++) {
		const struct found *f = &q->found[i];
		const uint32_t shape = q->batch[i];
		c->illegal += f->illegal;
		c->too_large += f->too_large;
		c->timed += f->timed;
		c->predicted += f->predicted;
		if (f->any)
			add_top(q, f, shape);
		if (f->least_B < UINT64_MAX && !vec_push(&q->least, ((struct least){f->least_B, shape, f->least_variant})))
			return error_nomem(e, "plans");
		for (size_t k = 0; k < f->n_front; k++)
			if (!vec_push(&q->front, f->front[k]))
				return error_nomem(e, "plans");
	}
	thin_front(q);
	return ST_OK;
}

/* Of the best that are wanted, the last. */
static double last_s(const struct quest *q)
{
	return q->o->exhaustive || q->n_top < q->wanted ? INFINITY : q->top[q->n_top - 1].step_s;
}

/* No plan that takes longer is wanted. */
static double limit_s(const struct quest *q)
{
	return q->o->best_alone || q->n_top < q->wanted ? last_s(q) : fmax(last_s(q), SEARCH_FRONT * q->top[0].step_s);
}

/* Not among the best, and some plan of the front needs neither more time nor more memory. */
static bool behind(const struct quest *q, const struct shape *s)
{
	if (s->floor_s <= last_s(q))
		return false;
	for (size_t i = 0; i < q->front.n; i++)
		if (q->front.at[i].step_s <= s->floor_s && (double)q->front.at[i].memory_B <= s->floor_B)
			return true;
	return false;
}

static int64_t variants_of(const struct quest *q, uint32_t shape)
{
	struct variant v[VARIANTS_MAX];
	return (int64_t)search_variants(&q->space, &q->space.shapes.at[shape], v);
}

/* Takes shapes in order until there is a batch of them that no bound decides; *at: the next one, all of them when the rest is behind the limit. */
static enum status fill_batch(struct quest *q, size_t *at, struct search_counts *c, struct error *e)
{
	for (q->n_batch = 0; *at < q->space.shapes.n && q->n_batch < SEARCH_BATCH; ++*at) {
		const uint32_t shape = q->order[*at];
		const struct shape *s = &q->space.shapes.at[shape];
		if (s->floor_s == 0 && !q->o->exhaustive && c->timed + c->too_large >= SEARCH_UNBOUNDED) {
			c->left += variants_of(q, shape);
		} else if (s->floor_s > limit_s(q) || behind(q, s)) {
			c->pruned += variants_of(q, shape);
		} else if (s->floor_B > (double)q->usable.device.mem_B && !q->o->exhaustive) {
			c->too_large += variants_of(q, shape);
			if (!vec_push(&q->least, ((struct least){(uint64_t)s->floor_B, shape, 0})))
				return error_nomem(e, "plans");
		} else if (s->blocks > 0 && !q->o->exhaustive && q->blocks + s->blocks > SEARCH_BLOCKS) {
			c->left += variants_of(q, shape);
		} else {
			q->blocks += s->blocks;
			q->batch[q->n_batch++] = shape;
		}
	}
	return ST_OK;
}

enum status search_seek(struct quest *q, struct search_counts *c, struct error *e)
{
	enum status st = ST_OK;
	const size_t n = q->space.shapes.n;
	for (size_t at = 0; at < n && !st;) {
		if ((st = fill_batch(q, &at, c, e)) || (st = run_batch(q, e)) || (st = take_batch(q, c, e)))
			break;
		if (q->o->progress)
			q->o->progress((double)at / (double)n, c->illegal + c->too_large + c->timed, q->o->context);
	}
	c->shapes = (int64_t)n;
	c->plans = c->illegal + c->too_large + c->timed + c->pruned + c->left;
	return st;
}
