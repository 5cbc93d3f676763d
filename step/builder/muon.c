/* Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/): the blocks' matrices step by their momentum,
 * which five rounds of Newton-Schulz bring near the nearest orthogonal matrix; AdamW does the rest. A round is
 *
 *   g = x x^T        (x^T x where that is smaller)
 *   h = b g + c g g
 *   x = a x + h x    (x h)
 *
 * in the compute format. Queries, keys and values are matrices of their own, as are the halves of a gated MLP: so they
 * stand in models that have a weight for each. Experts are as many matrices. Tensor parallelism orthogonalizes each
 * rank's part by itself (Megatron-Core, muon_tp_mode: blockwise).
 *
 * Where a bucket is cut, no rank has a whole matrix. Matrices are then dealt out to the ranks that cut them, which
 * exchange directions, orthogonalize their share of whole matrices and exchange back the results, as
 * https://github.com/microsoft/dion does and Liu et al. 2025 (arXiv:2502.16982, algorithm 1) gather them. Ranks differ
 * in what they are dealt: the program has the largest share of each shape.
 */
#include "step/builder/build.h"

#include <stdlib.h>

#define ROUNDS 5

bool build_steps_matrix(const struct builder *b, const struct param *p)
{
	return optimizer_traits[b->c->train.optimizer].orthogonal && p->layer >= 0 && p->split > TP_PARTIAL &&
	       param_is_matrix(p);
}

/* Returns the matrices' elements in a rank's part. */
static int64_t matrix_elements(const struct bucket *k) { return ((int64_t)k->matrices + k->shards - 1) / k->shards; }

int64_t build_other_elements(const struct bucket *k) { return bucket_part(k) - matrix_elements(k); }

/* ---- orthogonalization ---- */

static struct op product(const struct builder *b, uint32_t flags, int64_t groups, int64_t m, int64_t n, int64_t k)
{
	struct op op = build_new(b, groups > 1 ? OP_GROUPED_GEMM : OP_GEMM, "orthogonalize");
	op.flags |= flags;
	op.gemm.m = m;
	op.gemm.n = n;
	op.gemm.k = k;
	op.gemm.groups = groups > 1 ? groups : 0;
	return op;
}

static void multiply(struct builder *b, struct op op, struct view x, struct view y, struct view z)
{
	build_op(b, &op,
		op.kind == OP_GROUPED_GEMM ? (const struct view[]){x, y, z}
					   : (const struct view[]){x, y, view_of(NONE), z});
}

static struct op muon_op(const struct builder *b, enum op_kind kind, const char *what, struct op_muon d)
{
	struct op op = build_new(b, kind, what);
	op.muon = d;
	return op;
}

/* Returns x orthogonalized, in a new buffer or where it was. */
static struct view orthogonalize(struct builder *b, struct op_muon d, struct view x)
{
	const bool wide = d.rows <= d.cols;
	const int64_t side = wide ? d.rows : d.cols, inner = wide ? d.cols : d.rows;
	const struct op_muon square = {d.groups, side, side};
	struct view y = view_of(build_act(b, d.groups * d.rows, d.cols));
	const struct view g = view_of(build_act(b, d.groups * side, side)),
			  h = view_of(build_act(b, d.groups * side, side));
	for (int round = 0; round < ROUNDS && !b->st; round++) {
		multiply(b, product(b, wide ? OP_TRANS_B : OP_TRANS_A, d.groups, side, side, inner), x, x, g);
		multiply(b, product(b, 0, d.groups, side, side, side), g, g, h);
		build_with(b, made_op(muon_op(b, OP_MUON_MIX, "gram", square)), g, h);
		multiply(b, product(b, 0, d.groups, d.rows, d.cols, side), wide ? h : x, wide ? x : h, y);
		struct op mix = muon_op(b, OP_MUON_MIX, "orthogonalize", d);
		mix.flags |= OP_ACCUMULATE;
		build_with(b, &mix, x, y);
		const struct view other = x;
		x = y;
		y = other;
	}
	return x;
}

/* ---- the matrices of a parameter ---- */

#define PARTS 3 /* queries, keys, values */

/* Fills the matrices of a parameter, one behind the other on this tensor rank; returns how many sorts there are. */
static int matrices_of(const struct builder *b, const struct role_param *rp, struct op_muon out[PARTS])
{
	const struct param *p = &rp->param;
	const bool expert = param_is_expert(p->kind); /* uncut, and its gate and up rows are one matrix */
	const int64_t cols = p->split == TP_COLS && !expert ? p->cols / b->tensor : p->cols;
	const int64_t copies = expert ? p->copies / b->c->parallel.expert : 1,
		      rows = (int64_t)rp->elements / cols / copies;
	if (p->split == TP_QKV) {
		const int64_t q = b->heads * b->m->head_dim, k = b->kv_heads * b->m->head_dim;
		out[0] = (struct op_muon){1, q, cols};
		out[1] = (struct op_muon){1, k, cols};
		out[2] = (struct op_muon){1, rows - q - k, cols};
		return PARTS;
	}
	const int64_t halves = p->split == TP_HALVES && !expert ? 2 : 1;
	for (int64_t i = 0; i < halves; i++)
		out[i] = (struct op_muon){copies, rows / halves, cols};
	return (int)halves;
}

static int64_t size_of(struct op_muon d) { return d.groups * d.rows * d.cols; }

static struct view moved(struct view v, int64_t elements, enum dtype dt)
{
	v.offset_B += (uint64_t)((double)elements * dtype_bytes(dt));
	return v;
}

static struct op direction_op(const struct builder *b, int32_t bucket, struct op_muon d)
{
	struct op op = muon_op(b, OP_MUON_DIRECTION, "direction", d);
	op.dtype = (uint8_t)b->grad;
	op.out_dtype = (uint8_t)b->act;
	op.bucket = bucket;
	return op;
}

static void step(struct builder *b, int32_t bucket, struct op_muon d, struct view w, struct view x, struct view master)
{
	struct op op = muon_op(b, OP_MUON_STEP, "update", d);
	op.dtype = (uint8_t)b->weight;
	op.out_dtype = (uint8_t)b->act;
	op.flags |= b->buckets[bucket].master != NONE ? OP_MASTER : 0;
	op.bucket = bucket;
	build_with(b, &op, w, x, master);
}

/* ---- whole buckets ---- */

static void step_whole(struct builder *b, const struct role_param *rp)
{
	const struct bucket *k = &b->r->buckets.at[rp->bucket];
	const struct bucket_state *s = &b->buckets[rp->bucket];
	struct op_muon all[PARTS];
	const int n = matrices_of(b, rp, all);
	int64_t at = (int64_t)rp->offset;
	for (int i = 0; i < n && !b->st; i++) {
		struct view x = view_of(build_act(b, all[i].groups * all[i].rows, all[i].cols));
		build_with(b, made_op(direction_op(b, rp->bucket, all[i])), moved(k->grad_shard, at, b->grad),
			moved(view_of(s->moment1), at, DT_FP32), x);
		x = orthogonalize(b, all[i], x);
		step(b, rp->bucket, all[i], moved(k->shard, at, b->weight), x,
			s->master == NONE ? view_of(NONE) : moved(view_of(s->master), at, DT_FP32));
		at += size_of(all[i]);
	}
}

/* ---- cut buckets ---- */

/* Matrices of one shape that the same ranks cut. */
struct shape {
	struct op_muon d;
	enum mesh_dim along;
};

typedef VEC(struct shape) shape_list;

/* A matrix and its transpose take the same work. */
static void count_shape(struct builder *b, shape_list *list, struct op_muon d, enum mesh_dim along)
{
	if (d.rows > d.cols)
		d = (struct op_muon){d.groups, d.cols, d.rows};
	for (size_t i = 0; i < list->n; i++) {
		struct shape *s = &list->at[i];
		if (s->d.rows == d.rows && s->d.cols == d.cols && s->along == along) {
			s->d.groups += d.groups;
			return;
		}
	}
	if (!b->st && !vec_push(list, ((struct shape){d, along})))
		build_nomem(b, "the matrices");
}

/* A bucket's directions in a rank's part, in whole parts for the exchange. */
static int64_t exchanged(const struct bucket *k)
{
	return (matrix_elements(k) + k->shards - 1) / k->shards * k->shards;
}

static void exchange(struct builder *b, int32_t i, struct view from, struct view to)
{
	const struct bucket *k = &b->r->buckets.at[i];
	build_with(b,
		made_op(build_collective(b, COLL_ALLTOALL, k->along, LANE_COMM, b->act, exchanged(k), "matrices",
			NONE)),
		from, to);
}

static bool is_dealt(const struct bucket *k) { return k->trained && k->shards > 1 && k->matrices > 0; }

/* Lists the shapes of all cut matrices and leaves each rank's share of them; returns the elements that it needs. */
static int64_t deal(struct builder *b, shape_list *list)
{
	int64_t least = 0, sum = 0;
	for (size_t i = 0; i < b->r->params.n && !b->st; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		const struct bucket *k = &b->r->buckets.at[rp->bucket];
		struct op_muon all[PARTS];
		if (!is_dealt(k) || !build_steps_matrix(b, &rp->param))
			continue;
		const int n = matrices_of(b, rp, all);
		for (int m = 0; m < n; m++)
			count_shape(b, list, all[m], k->along);
	}
	for (size_t i = 0; i < list->n; i++) {
		const int64_t ranks = b->p->mesh.size[list->at[i].along];
		list->at[i].d.groups = (list->at[i].d.groups + ranks - 1) / ranks;
		sum += size_of(list->at[i].d);
	}
	for (size_t i = 0; i < b->r->buckets.n; i++)
		least += is_dealt(&b->r->buckets.at[i]) ? exchanged(&b->r->buckets.at[i]) : 0;
	return sum > least ? sum : least;
}

static void directions_out(struct builder *b, struct view whole)
{
	int64_t at = 0;
	for (size_t i = 0; i < b->r->buckets.n && !b->st; i++) {
		const struct bucket *k = &b->r->buckets.at[i];
		if (!is_dealt(k))
			continue;
		const struct view x = view_of(build_act(b, 1, exchanged(k)));
		build_with(b, made_op(direction_op(b, (int32_t)i, (struct op_muon){1, 1, matrix_elements(k)})),
			k->grad_shard, view_of(b->buckets[i].moment1), x);
		exchange(b, (int32_t)i, x, moved(whole, at, b->act));
		at += exchanged(k);
	}
}

static void results_back(struct builder *b, struct view whole)
{
	int64_t at = 0;
	for (size_t i = 0; i < b->r->buckets.n && !b->st; i++) {
		const struct bucket *k = &b->r->buckets.at[i];
		if (!is_dealt(k))
			continue;
		const struct view x = view_of(build_act(b, 1, exchanged(k)));
		exchange(b, (int32_t)i, moved(whole, at, b->act), x);
		step(b, (int32_t)i, (struct op_muon){1, 1, matrix_elements(k)}, k->shard, x,
			view_of(b->buckets[i].master));
		at += exchanged(k);
	}
}

static void step_dealt(struct builder *b)
{
	shape_list list = {0};
	const int64_t elements = deal(b, &list);
	if (list.n > 0 && !b->st) {
		const struct view whole = view_of(build_act(b, 1, elements));
		int64_t at = 0;
		directions_out(b, whole);
		for (size_t i = 0; i < list.n && !b->st; i++) {
			const struct view x = moved(whole, at, b->act);
			const struct op_muon d = list.at[i].d;
			const struct view result = orthogonalize(b, d, x);
			if (result.buffer != x.buffer)
				build_cast(b, result, b->act, x, b->act, size_of(d), "orthogonalized");
			at += size_of(d);
		}
		results_back(b, whole);
	}
	vec_free(&list);
}

void build_muon(struct builder *b)
{
	step_dealt(b);
	for (size_t i = 0; i < b->r->params.n && !b->st; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		const struct bucket *k = &b->r->buckets.at[rp->bucket];
		if (k->trained && k->shards == 1 && build_steps_matrix(b, &rp->param))
			step_whole(b, rp);
	}
	for (size_t i = 0; i < b->r->buckets.n && !b->st; i++) {
		const struct bucket *k = &b->r->buckets.at[i];
		if (k->trained && build_other_elements(k) > 0)
			update_from(b, (int32_t)i, OPT_ADAMW, (int64_t)k->matrices);
		else if (k->trained)
			gather_bucket(b, (int32_t)i);
	}
}
