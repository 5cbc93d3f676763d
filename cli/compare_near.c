/* Batches near the stated one with which fewer hosts reach a target: counts that do not divide the stated batch are
 * left out of its search, so that it may buy far more than the rate needs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare.h"
#include "step/plan.h"

#define NEAR 0.1     /* of the stated batch, to either side */
#define LEAST 0.9    /* of the hosts that the rate needs at the rate a host of the row: where the search begins */
#define COUNTS 24    /* counts of hosts that are tried, evenly spread where there are more */
#define DIRECTIONS 2 /* a smaller batch and a larger one */

static const int directions[DIRECTIONS] = {-1, 1};

/* Returns the smallest divisor of n that is at least `least`. */
static int64_t divisor_from(int64_t n, int64_t least)
{
	while (least < n && n % least)
		least++;
	return least < n ? least : n;
}

/* Writes the row's plan for another number of ranks: the replicas follow from them. False if its tensor, pipeline and
 * context sizes do not divide the ranks. */
static bool plan_for(const struct config *found, int64_t ranks, struct config *out)
{
	const struct parallel *p = &found->parallel;
	const int64_t model_ranks = p->tensor * p->pipeline * p->context;
	if (ranks % model_ranks || plan_holds_data(found))
		return false;
	*out = *found;
	out->parallel.data = AUTO;
	const int64_t replicas = ranks / model_ranks;
	out->parallel.replicate = AUTO;
	out->parallel.shard = strategy_has(p->strategy, STRATEGY_REPLICAS)
	                              ? divisor_from(replicas, p->shard < replicas ? p->shard : replicas)
	                              : AUTO;
	return true;
}

/* Returns the batch nearest to the stated one on that side that splits into whole micro-batches on all replicas; 0 if
 * none is near. */
static int64_t near_batch(const struct config *plan, int64_t ranks, int64_t stated, int direction)
{
	const struct parallel *p = &plan->parallel;
	const bool grouped = schedule_traits[p->schedule].grouped && p->pipeline > 1;
	const int64_t unit = plan->train.micro_batch * (ranks / (p->tensor * p->pipeline * p->context)) *
	                     (grouped ? p->pipeline : 1),
		      below = stated / unit * unit, batch = direction < 0 ? below : below + unit;
	return batch > 0 && batch != stated && fabs((double)(batch - stated)) <= NEAR * (double)stated ? batch : 0;
}

static void put_batch(struct config *c, int64_t batch)
{
	c->train.global_batch = batch;
	if (c->train.tokens_per_step > 0)
		c->train.tokens_per_step = (double)batch * (double)c->model.seq_len;
}

/* Predicts the plan with one batch, and keeps the row if it reaches the target. */
static enum status try_batch(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct size size, const struct config *plan, struct compare_row *r, struct error *e)
{
	struct compare_row tried = {.spent_usd = NAN};
	memcpy(tried.name, r->name, sizeof tried.name);
	memcpy(tried.full, r->full, sizeof tried.full);
	compare_figures(&a->spec, s->config, size, &tried);
	enum status st = s->predict(s->ctx, a, size, plan, &tried, e);
	if (!st && tried.fits && compare_time(c, &tried) <= c->within_s) {
		r->near[r->n_near++] = tried;
		return ST_OK;
	}
	compare_row_free(&tried);
	return st;
}

static enum status try_count(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	int64_t hosts, struct compare_row *r, struct config *plan, struct error *e)
{
	const struct size size = {hosts, a->spec.gpus};
	const int64_t ranks = size.nodes * size.per_node, stated = r->config->train.global_batch;
	enum status st = ST_OK;
	for (int i = 0; i < DIRECTIONS && !st; i++) {
		if (!plan_for(r->config, ranks, plan))
			return ST_OK;
		const int64_t batch = near_batch(plan, ranks, stated, directions[i]);
		if (batch == 0)
			continue;
		put_batch(plan, batch);
		st = try_batch(c, s, a, size, plan, r, e);
	}
	return st;
}

enum status compare_near(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e)
{
	const int64_t hosts = r->gpus / a->spec.gpus;
	const double needs = (double)hosts * compare_time(c, r) / c->within_s;
	const int64_t least = needs * LEAST > 1 ? (int64_t)(needs * LEAST) : 1,
		      step = (hosts - least + COUNTS - 1) / COUNTS;
	if (!s->predict || s->config->train.batch_per_gpu > 0 || least >= hosts)
		return ST_OK;
	struct config *plan = malloc(sizeof *plan);
	r->near = calloc(DIRECTIONS, sizeof *r->near);
	enum status st = plan && r->near ? ST_OK : error_nomem(e, "batches near the stated one");
	for (int64_t n = least; n < hosts && !r->n_near && !st; n += step)
		st = try_count(c, s, a, n, r, plan, e);
	free(plan);
	return st;
}
