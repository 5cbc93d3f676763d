#include "sim/search.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sim/floor.h"
#include "sim/fold.h"
#include "sim/search_space.h"

#define BEST 10
#define BATCH 16      /* shapes between two looks at the bounds */
#define THREADS_MOST 64

/* ---- one shape ---- */

struct point {
	double step_s;
	uint64_t memory_B;
	uint32_t shape, variant;
};

/* What was found of a shape. */
struct found {
	int64_t illegal, too_large, timed, predicted;
	uint64_t least_B;        /* of what does not fit: so much at least; UINT64_MAX: none */
	uint32_t least_variant;
	bool any;
	struct evaluation quick; /* of the best */
	uint32_t variant;
	struct point front[VARIANTS_MAX];
	size_t n_front;
};

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

struct seeker {
	const struct search_space *space;
	struct evaluator *evaluator;
	struct config config;
};

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

struct least {
	uint64_t memory_B;
	uint32_t shape, variant;
};

struct top {
	double step_s;
	struct evaluation quick;
	uint32_t shape, variant;
};

struct quest {
	const struct search_options *o;
	const struct machine *m;
	struct machine usable; /* with the memory that plans may use */
	double blocks;         /* that were simulated */
	struct search_space space;
	uint32_t *order;  /* shapes by floor */
	uint32_t batch[BATCH]; /* shapes */
	size_t n_batch;
	atomic_size_t next;
	struct seeker *seekers;
	int threads;
	struct found *found; /* of the batch */
	enum status *status;
	struct error *errors;
	struct top *top;  /* fastest first */
	size_t n_top, wanted;
	VEC(struct point) front;
	VEC(struct least) least; /* what does not fit, one a shape */
};

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
	pthread_t threads[THREADS_MOST];
	struct crew crew[THREADS_MOST];
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
	for (q->n_batch = 0; *at < q->space.shapes.n && q->n_batch < BATCH; ++*at) {
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

static enum status seek(struct quest *q, struct search_counts *c, struct error *e)
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

/* ---- what is selected ---- */

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
	const size_t shown = q->o->best ? q->o->best : BEST;
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

#define LEAST_TRIES 48 /* what does not fit is known from below alone: so many are predicted for the one that needs least */

static enum status find_least(struct quest *q, struct search_result *out, struct error *e)
{
	struct search_plan *p = &out->start; /* taken again before the start is filled */
	enum status st = ST_OK;
	if (q->least.n)
		qsort(q->least.at, q->least.n, sizeof *q->least.at, by_least);
	for (size_t i = 0; i < q->least.n && i < LEAST_TRIES && !st; i++) {
		const struct least *l = &q->least.at[i];
		if (out->has_least && l->memory_B >= out->least.full.memory.total_B)
			break;
		config_of(q, l->shape, l->variant, &p->chosen);
		p->config = p->chosen;
		if ((st = config_resolve(&p->config, q->space.ranks, e)) || (st = predict_folded(&p->config, q->m, &p->full, e)))
			break;
		if (out->has_least && p->full.memory.total_B >= out->least.full.memory.total_B)
			continue;
		out->has_least = true;
		out->least = *p;
	}
	if (out->has_least)
		out->missing_B = out->least.full.memory.total_B - q->m->device.mem_B;
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

/* ---- the whole ---- */

static int cores(void)
{
	cpu_set_t set;
	const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n < THREADS_MOST ? n : THREADS_MOST;
}

static enum status prepare(struct quest *q, const struct config *start, int64_t ranks, struct error *e)
{
	const struct search_options *o = q->o;
	const size_t shown = o->best ? o->best : BEST;
	enum status st = search_space_create(start, ranks, o->held, &q->space, e);
	if (st)
		return st;
	q->wanted = shown < 3 ? 3 : shown; /* the evaluator's first may be the prediction's second */
	q->threads = o->threads > 0 && o->threads < THREADS_MOST ? o->threads : cores();
	q->seekers = calloc((size_t)q->threads, sizeof *q->seekers);
	q->order = calloc(q->space.shapes.n + 1, sizeof *q->order);
	q->found = calloc(BATCH, sizeof *q->found);
	q->status = calloc(BATCH, sizeof *q->status);
	q->errors = calloc(BATCH, sizeof *q->errors);
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

static enum status search_within(double share, const struct config *start, const struct machine *m, int64_t ranks, const struct search_options *o, struct search_result *out, struct error *e)
{
	struct quest q = {.o = o, .m = m, .usable = *m};
	memset(out, 0, sizeof *out);
	out->memory_share = share;
	q.usable.device.mem_B = (uint64_t)(share * (double)m->device.mem_B);
	enum status st = prepare(&q, start, ranks, e);
	if (st || (st = bound_all(&q, &out->counts, e)) || (st = seek(&q, &out->counts, e)) || (st = predict_best(&q, out, e)) || (st = fill_front(&q, out, e)) || (q.n_top == 0 && (st = find_least(&q, out, e))))
		goto out;
	st = price_start(&q, start, out, e);
	if (!st && q.space.shapes.n == 0)
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
	enum status st = search_within(usual, start, m, ranks, o, out, e);
	if (!st && out->n_best == 0 && usual < 1) {
		search_free(out);
		st = search_within(1, start, m, ranks, o, out, e);
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
