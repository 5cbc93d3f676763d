/* The update of weights: behind the backward pass, or as gradients come. */
#include "step/builder/build.h"

struct op update_op(const struct builder *b, enum op_kind kind, enum optimizer o, int32_t i)
{
	struct op op = build_new(b, kind, "update");
	op.dtype = (uint8_t)(b->narrow_stored && b->r->buckets.at[i].narrow > 0 ? DT_FP8 : b->weight);
	op.out_dtype = (uint8_t)b->grad;
	op.optimizer = (uint8_t)o;
	op.flags = b->buckets[i].master != NONE ? OP_MASTER : 0;
	op.bucket = i;
	return op;
}

void update_from(struct builder *b, int32_t i, enum optimizer o, int64_t from)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const struct bucket_state *s = &b->buckets[i];
	const bool away = offloads_states(b), in_8_bits = b->c->train.optimizer_bits == 8;
	struct op op = update_op(b, OP_OPTIMIZER, o, i);
	op.update.elements = from > 0 ? build_other_elements(k) : bucket_part(k);
	if (b->c->train.optimizer_impl == IMPL_FUSED || away || in_8_bits) /* bitsandbytes has only the fused kernel */
		op.flags |= OP_FUSED;
	else if (b->c->train.optimizer_impl == IMPL_FOR_LOOP)
		op.update.tensors = build_tensors_in(b, i);
	if (in_8_bits) {
		op.flags |= OP_STATES_8;
		op.update.wide_from = (int64_t)k->wide_from;
		op.update.wide_to = (int64_t)k->wide_to;
	}
	op.update.halved = b->c->train.optimizer_bits == 16;
	if (away)
		op.lane = LANE_HOST;
	struct view w = away ? k->host : k->shard, g = away ? k->host_grad : k->grad_shard, m = view_of(s->moment1),
		    master = view_of(s->master);
	if (k->shards == 1 && from > 0) { /* a cut bucket has some of both everywhere, on average */
		w.offset_B += (uint64_t)((double)from * dtype_bytes(b->weight));
		g.offset_B += (uint64_t)((double)from * dtype_bytes(b->grad));
		m.offset_B = master.offset_B = (uint64_t)from * sizeof(float);
	}
	build_with(b, &op, w, g, m, view_of(s->moment2), master);
	offload_updated(b, i);
	gather_bucket(b, i);
}

/* ---- LAMB: step/ops.def says why it takes two ops ---- */

static struct op lamb_op(const struct builder *b, enum op_kind kind, int32_t i)
{
	struct op op = update_op(b, kind, OPT_ADAM, i); /* LAMB scales Adam's direction */
	op.flags |= OP_FUSED;
	op.tensors.elements = bucket_part(&b->r->buckets.at[i]);
	op.tensors.tensors = build_tensors_in(b, i);
	return op;
}

static struct view lamb_direction(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const struct bucket_state *s = &b->buckets[i];
	const struct op op = lamb_op(b, OP_LAMB_DIRECTION, i);
	const struct view norms = view_of(build_fp32(b, 2 * op.tensors.tensors));
	build_with(b, &op, k->shard, k->grad_shard, view_of(s->moment1), view_of(s->moment2), view_of(s->master),
		view_of(s->bounds), norms);
	return norms;
}

/* Sums the norms of tensors over the ranks that have parts of them: of a cut bucket, and of a tensor group. */
static void sum_norms(struct builder *b, int32_t i, struct view norms)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const int64_t n = 2 * build_tensors_in(b, i);
	if (k->shards > 1)
		build_all_reduce(b, k->along, LANE_COMM, DT_FP32, n, norms, "norms", NONE);
	if (b->tensor > 1)
		build_all_reduce(b, DIM_TP, LANE_MODEL_COMM, DT_FP32, n, norms, "norms", NONE);
}

static void lamb_step(struct builder *b, int32_t i, struct view norms)
{
	const struct bucket *k = &b->r->buckets.at[i];
	build_with(b, made_op(lamb_op(b, OP_LAMB_STEP, i)), k->shard, k->grad_shard, view_of(b->buckets[i].master),
		view_of(b->buckets[i].bounds), norms);
	gather_bucket(b, i);
}

/* All directions, then all sums, then all steps: a bucket's sums move while the next one's direction is computed. */
static void build_lamb(struct builder *b)
{
	const int32_t n = (int32_t)b->r->buckets.n;
	VEC(struct view) norms = {0};
	for (int32_t i = 0; i < n && !b->st; i++)
		if (!vec_push(&norms, lamb_direction(b, i)))
			build_nomem(b, "the norms");
	for (int32_t i = 0; i < n && !b->st; i++)
		sum_norms(b, i, norms.at[i]);
	for (int32_t i = 0; i < n && !b->st; i++)
		lamb_step(b, i, norms.at[i]);
	vec_free(&norms);
}

/* Bytes alive while each element of them is updated. torch/optim/adam.py, _multi_tensor_adam: the denominators of all
 * parameters at once. A loop has those of one tensor. fp16 gradients of Megatron are cast to fp32 (struct stack:
 * half_gradients). */
static double copies_each_B(const struct builder *b)
{
	const struct train *t = &b->c->train;
	double each_B = 0;
	if (offloads_states(b))
		return 0;
	if (t->optimizer_impl == IMPL_FOREACH && t->optimizer_bits != 8)
		each_B = b->c->stack.memory.update_copies * (double)t->optimizer_bits / 8;
	if (b->c->stack.half_gradients && b->grad == DT_FP16)
		each_B += dtype_bytes(DT_FP32);
	return each_B;
}

static double update_copies_B(const struct builder *b)
{
	double elements = 0;
	for (size_t i = 0; i < b->r->buckets.n; i++)
		if (b->r->buckets.at[i].trained && !b->buckets[i].updated)
			elements += (double)bucket_part(&b->r->buckets.at[i]);
	return copies_each_B(b) * elements;
}

/* torchtune, training/memory.py, OptimizerInBackwardWrapper: a hook behind each gradient updates, and frees it. */
void update_in_backward(struct builder *b, int32_t i)
{
	if (b->st || !b->c->train.optimizer_in_backward || !b->r->buckets.at[i].trained || b->buckets[i].updated)
		return;
	const enum phase phase = b->phase;
	const double copies_B = copies_each_B(b) * (double)bucket_part(&b->r->buckets.at[i]);
	int32_t copies = build_hold(b, COMP_BUFFERS, copies_B, "optimizer copies");
	b->phase = PHASE_OPTIMIZER;
	update_from(b, i, b->c->train.optimizer, 0);
	b->phase = phase;
	build_release(b, &copies);
	b->buckets[i].updated = true;
}

/* A scale of a whole matrix is that of its largest value on any rank that cuts it: one sum for all matrices (torchao,
 * precompute_float8_dynamic_scale_for_fsdp; Transformer Engine, quantize_master_weights). mxfp8's are of 32 values. */
static void exchange_scales(struct builder *b)
{
	int64_t n = 0;
	for (size_t i = 0; i < b->r->params.n; i++) {
		const struct bucket *k = &b->r->buckets.at[b->r->params.at[i].bucket];
		n += k->shards > 1 && k->narrow_dtype == DT_FP8 && b->r->params.at[i].offset < k->narrow;
	}
	if (n == 0 || b->st || b->p->mesh.size[b->p->mesh.params] == 1)
		return;
	const struct view largest = view_of(build_fp32(b, n));
	build_fill(b, largest, DT_FP32, n, "largest values");
	struct op op = build_collective(b, COLL_ALL_REDUCE, b->p->mesh.params, LANE_COMM, DT_FP32, n, "scales", NONE);
	op.reduce = RED_MAX;
	build_with(b, &op, largest, largest);
}

static void update_all(struct builder *b)
{
	after_reductions(b, offloads_states(b) ? LANE_HOST : LANE_COMPUTE); /* optimizer.step() */
	build_after(b, LANE_HOST, offloads_states(b) ? build_last(b, LANE_COMPUTE) : NONE);
	if (optimizer_traits[b->c->train.optimizer].trust_ratio) {
		build_lamb(b);
		return;
	}
	if (optimizer_traits[b->c->train.optimizer].factored) {
		build_adafactor(b);
		return;
	}
	if (optimizer_traits[b->c->train.optimizer].orthogonal) {
		build_muon(b);
		return;
	}
	int32_t copies = build_hold(b, COMP_BUFFERS, update_copies_B(b), "optimizer copies");
	for (size_t i = 0; i < b->r->buckets.n; i++)
		if (b->r->buckets.at[i].trained && !b->buckets[i].updated)
			update_from(b, (int32_t)i, b->c->train.optimizer, 0);
	build_release(b, &copies);
}

void build_optimizer(struct builder *b)
{
	if (b->st || !optimizer_updates(b->c->train.optimizer))
		return;
	update_all(b);
	exchange_scales(b);
}
