/* Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): a matrix keeps a mean of g^2 for each row and column, a vector
 * one for each element. Each tensor's step is relative to its own size and clipped by its own, so that two sums over
 * whole tensors part its three ops: row and column sums, then the norms of the steps. Where a bucket is cut, its ranks
 * add up both, and each keeps all factors; so do the ranks of a tensor group for the matrices that they cut. */
#include <math.h>

#include "base/array.h"
#include "step/builder/build.h"
#include "step/factored.h"

void store_factors(struct builder *b, int32_t i)
{
	const struct factored_counts n = factored_counts_of(b->r, &b->p->mesh, i);
	struct bucket_state *s = &b->buckets[i];
	s->moment1 = build_buffer(b, COMP_OPTIMIZER, DT_FP32, n.sums, true);
	s->moment2 = build_buffer(b, COMP_OPTIMIZER, DT_FP32, n.vectors, true);
	s->bounds = build_buffer(b, COMP_OPTIMIZER, DT_INT32,
		n.tensors * (int64_t)(sizeof(struct factored_tensor) / sizeof(int32_t)), true);
}

/* A bucket's way through the three ops. */
struct way {
	struct factored_counts n;
	struct view sums, norms;
};

static struct op factored_op(const struct builder *b, enum op_kind kind, int32_t i, const struct way *w)
{
	struct op op = update_op(b, kind, OPT_ADAFACTOR, i);
	op.factored = (struct op_factored){bucket_part(&b->r->buckets.at[i]), w->n.tensors, w->n.sums, w->n.vectors};
	return op;
}

static void add_up(struct builder *b, int32_t i, struct view v, int64_t all, int64_t cut, const char *what)
{
	const struct bucket *k = &b->r->buckets.at[i];
	if (k->shards > 1)
		build_all_reduce(b, k->along, LANE_COMM, DT_FP32, all, v, what, NONE);
	if (cut > 0)
		build_all_reduce(b, DIM_TP, LANE_MODEL_COMM, DT_FP32, cut, v, what, NONE);
}

static struct way sums_of(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const struct bucket_state *s = &b->buckets[i];
	struct way w = {.n = factored_counts_of(b->r, &b->p->mesh, i)};
	w.sums = view_of(build_fp32(b, w.n.sums));
	w.norms = view_of(build_fp32(b, w.n.tensors));
	build_with(b, made_op(factored_op(b, OP_ADAFACTOR_SUMS, i, &w)), k->shard, k->grad_shard, view_of(s->master),
		view_of(s->bounds), w.sums);
	return w;
}

static void norms_of(struct builder *b, int32_t i, const struct way *w)
{
	const struct bucket_state *s = &b->buckets[i];
	build_with(b, made_op(factored_op(b, OP_ADAFACTOR_NORMS, i, w)), b->r->buckets.at[i].grad_shard, w->sums,
		view_of(s->moment1), view_of(s->moment2), view_of(s->bounds), w->norms);
}

static void step(struct builder *b, int32_t i, const struct way *w)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const struct bucket_state *s = &b->buckets[i];
	build_with(b, made_op(factored_op(b, OP_ADAFACTOR_STEP, i, w)), k->shard, k->grad_shard, view_of(s->master),
		w->sums, view_of(s->moment1), view_of(s->moment2), view_of(s->bounds), w->norms);
	gather_bucket(b, i);
}

/* PyTorch's loop over tensors makes g^2 + e, the outer product of the factors and their like of one whole tensor, in
 * fp32, and copies of narrower weights and gradients beside (transformers/optimization.py, Adafactor.step). */
static double copies_B(const struct builder *b)
{
	double most = 0;
	for (size_t i = 0; i < b->r->params.n; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		const double elements = fmin((double)rp->elements, (double)bucket_part(&b->r->buckets.at[rp->bucket]));
		most = fmax(most, elements);
	}
	return (double)sizeof(float) * most * (2 + (dtype_bytes(b->weight) < 4.0) + (dtype_bytes(b->grad) < 4.0));
}

/* One stage of all buckets after the other: a bucket's sums move while the next one's are computed. */
void build_adafactor(struct builder *b)
{
	const int32_t n = (int32_t)b->r->buckets.n;
	VEC(struct way) ways = {0};
	int32_t copies = build_hold(b, COMP_BUFFERS, copies_B(b), "optimizer copies");
	for (int32_t i = 0; i < n && !b->st; i++)
		if (!vec_push(&ways, sums_of(b, i)))
			build_nomem(b, "the sums");
	for (int32_t i = 0; i < n && !b->st; i++)
		add_up(b, i, ways.at[i].sums, ways.at[i].n.sums, ways.at[i].n.cut_sums, "factors");
	for (int32_t i = 0; i < n && !b->st; i++)
		norms_of(b, i, &ways.at[i]);
	for (int32_t i = 0; i < n && !b->st; i++)
		add_up(b, i, ways.at[i].norms, ways.at[i].n.tensors, ways.at[i].n.cut_tensors, "norms");
	for (int32_t i = 0; i < n && !b->st; i++)
		step(b, i, &ways.at[i]);
	build_release(b, &copies);
	vec_free(&ways);
}
