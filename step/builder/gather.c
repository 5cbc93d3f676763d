/* FSDP's all-gathers (PyTorch "FSDP notes"; torchtitan docs/fsdp.md). A block's parameters are gathered into a buffer
 * of their own before the forward pass and again before the backward pass, `prefetch` uses ahead. The buffer is freed
 * after the use. A gather waits for the end of the use prefetch + 1 before its own, so that at most prefetch + 1
 * gathered units are alive at once. The root unit stays gathered from the beginning of forward to the end of backward.
 *
 * With pipeline stages each forward and each backward pass of a chunk gathers its own blocks. Units that stay gathered
 * after forward, and those outside the blocks, are gathered once for all micro-batches. (torch.distributed.pipelining,
 * stage.py: backward_maybe_with_nosync reshards after the last one. torchtitan's default with pipelines is not to
 * reshard after forward.)
 */
#include "step/builder/build.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

bool build_gathers_late(const struct builder *b, int32_t bucket)
{
	if (!b->gathers || !b->c->stack.gathers_matrices || !b->c->parallel.reshard_after_forward || b->c->executed ||
		bucket >= b->n_units)
		return false;
	for (size_t i = 0; i < b->r->params.n && b->m->experts > 0; i++)
		if (b->r->params.at[i].bucket == bucket && param_is_expert(b->r->params.at[i].param.kind))
			return false;
	return true;
}

/* XLA's scheduler gathers a matrix as far ahead as memory allows (--xla_tpu_enable_scheduler_memory_pressure_tracking,
 * --xla_latency_hiding_scheduler_rerun: scripts of AI-Hypercomputer/tpu-recipes), and scatters its gradient at once. So
 * of a block's gathered matrices the one in use and the next count, while the block is in use: its two largest. So do
 * their gradients where replicas have a bucket for all of a block. Experts' are much larger than the rest, and count
 * as long as the program has them. */
static int32_t hold_matrices(struct builder *b, const struct unit_use *u)
{
	const bool joined = b->p->mesh.size[DIM_REPLICA] > 1 && b->phase == PHASE_BACKWARD;
	double largest = 0, second = 0,
	       each = dtype_bytes(b->wide_gathered ? b->weight : b->act) + (joined ? dtype_bytes(b->written_grad) : 0);
	for (size_t i = 0; i < b->r->params.n; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		if (rp->bucket < u->first || rp->bucket > u->last || !param_is_product(rp->param.kind) ||
			b->r->buckets.at[rp->bucket].shards == 1 || !build_gathers_late(b, rp->bucket))
			continue;
		const double elements = (double)rp->elements;
		second = fmax(second, fmin(largest, elements));
		largest = fmax(largest, elements);
	}
	return build_hold(b, COMP_BUFFERS, (largest + second) * each, "gathered matrices");
}

static int64_t prefetch(const struct builder *b) { return b->c->parallel.overlap ? b->c->parallel.prefetch : 0; }

/* Returns how many gathers the host thread issues before the use at hand. PyTorch gathers a unit for the forward pass
 * as its turn comes, and so ahead only because its host thread is ahead of the device: one that waits for experts is
 * not. Backward passes gather ahead by themselves (torch/distributed/fsdp: BackwardPrefetch). */
static int64_t issued_ahead(const struct builder *b)
{
	return b->phase == PHASE_FORWARD && b->c->train.expert_loop ? 0 : prefetch(b);
}

/* The buckets of a block, which are neighbours. */
static struct unit_use use_of(const struct builder *b, int64_t layer)
{
	struct unit_use use = {INT32_MAX, NONE, {NONE, NONE, NONE}, 0, NONE};
	const int32_t *index = &b->param_index[(layer + 1) * PARAM_KIND_COUNT];
	for (int k = 0; k < PARAM_KIND_COUNT; k++) {
		if (index[k] == NONE)
			continue;
		const int32_t bucket = b->r->params.at[index[k]].bucket;
		use.first = bucket < use.first ? bucket : use.first;
		use.last = bucket > use.last ? bucket : use.last;
	}
	return use;
}

/* Appends a gather of a bucket's elements, which are those of so many matrices. Vectors stay gathered under DeepSpeed
 * (stage3_param_persistence_threshold), so that no slices of them are copied. */
static void gather_part(struct builder *b, int32_t bucket, bool again, int64_t elements, int64_t matrices,
	enum dtype wire, struct view in, int32_t buffer)
{
	struct op op = build_collective(b, COLL_ALL_GATHER, b->r->buckets.at[bucket].along, LANE_COMM, wire, elements,
		again ? "weights to recompute" : "weights", again ? NONE : bucket);
	if (b->c->stack.copies_units)
		op.collective.tensors = matrices * (b->c->stack.copies_slices ? 2 : 1);
	build_with(b, &op, in, view_of(buffer));
}

/* Gathers `again` elements, where that is above 0, and then all of the bucket. */
static int32_t gather(struct builder *b, int32_t bucket, int64_t again, int64_t after)
{
	const struct bucket *k = &b->r->buckets.at[bucket];
	const bool narrow = k->narrow > 0;
	const int64_t part = bucket_part(k), full = narrow ? bucket_wire_B(k) : (int64_t)k->padded,
		      sent = narrow ? full / k->shards : part;
	struct view in = offload_shard(b, bucket, after), stored = in;
	const enum dtype wire = narrow                          ? DT_FP8
	                        : dtype_is_quantized(k->stored) ? k->stored /* each use makes it whole again */
	                        : b->wide_gathered              ? k->stored /* and autocast casts it */
	                                                        : b->act;
	if (wire != k->stored && !(narrow && b->narrow_stored)) {
		in = view_of(build_buffer(b, COMP_BUFFERS, wire, sent, false));
		build_cast(b, stored, b->weight, in, wire, part, "weight shard");
	}
	if (k->shards == 1) /* experts of which no other rank has any */
		return in.buffer;
	int32_t buffer = build_buffer(b, COMP_BUFFERS, wire, full, false);
	if (!b->st && build_gathers_late(b, bucket))
		b->r->buffers.at[buffer].inside = true; /* hold_matrices */
	build_after(b, LANE_COMM, after);
	if (again > 0) /* without the block's last product */
		gather_part(b, bucket, true, (again + k->shards - 1) / k->shards * k->shards, k->products - 1, wire, in,
			buffer);
	gather_part(b, bucket, false, full, k->products, wire, in, buffer);
	return buffer;
}

/* Returns the elements of a dense block that the backward pass gathers twice where FSDP1 wraps modules of at least
 * unit_params parameters: once to recompute, and once more for the gradients, because a unit is freed after its forward
 * pass (torch/distributed/fsdp/_runtime_utils.py, _pre_forward_unshard, _post_forward_reshard). Recomputation stops
 * inside the last product (torch/utils/checkpoint.py, early stop), so the units around that one are not freed.
 * size_based_auto_wrap_policy wraps the products that are large enough, then attention if what is left of it is
 * (torch/distributed/fsdp/wrap.py, _recursive_wrap). Q, K and V, and gate and up, are products of their own, as in
 * Hugging Face's models. */
static int64_t gathered_twice(const struct builder *b, int64_t layer)
{
	const struct model *m = b->m;
	const int64_t least = b->c->parallel.unit_params, q = m->hidden * m->heads * m->head_dim,
		      kv = m->hidden * m->kv_heads * m->head_dim, up = m->hidden * m->ffn_hidden;
	const int64_t attention[] = {q, kv, kv, q};
	const struct role_param *fc1 = param_of(b, (int32_t)layer, PARAM_FC1_W); /* up, or gate and up */
	int64_t wrapped = 0, left = 0;
	if (least == 0 || !fc1 || !build_recomputes(b, layer))
		return 0;
	for (size_t i = 0; i < COUNT(attention); i++)
		*(attention[i] >= least ? &wrapped : &left) += attention[i];
	return (wrapped + (left >= least ? left : 0) + (up >= least ? (int64_t)param_elements(&fc1->param) : 0)) /
	       b->tensor;
}

static void gather_up_to(struct builder *b, int64_t use)
{
	for (; b->units.gathered <= use && b->units.gathered < b->units.n && !b->st; b->units.gathered++) {
		int64_t before = b->units.gathered - prefetch(b) - 1;
		int64_t after = before >= 0        ? b->units.at[before].end
		                : prefetch(b) == 0 ? build_last(b, LANE_COMPUTE)
		                                   : b->units.after;
		struct unit_use *u = &b->units.at[b->units.gathered];
		for (int32_t i = u->first; i <= u->last; i++)
			u->buffer[i - u->first] = gather(b, i, i == u->first ? u->again : 0, after);
	}
}

static void add_uses(struct builder *b, bool forward)
{
	for (int64_t i = 0; i < b->part.layers; i++) {
		const int64_t layer = forward ? b->part.first + i : b->part.first + b->part.layers - 1 - i;
		struct unit_use use = use_of(b, layer);
		use.again = forward ? 0 : gathered_twice(b, layer);
		bool kept = b->stages > 1 && !b->c->parallel.reshard_after_forward &&
		            b->buckets[use.last].weights != NONE;
		if (!kept)
			b->units.at[b->units.n++] = use;
	}
}

/* Gathers the buckets outside the blocks, which stand last. With one stage each micro-batch gathers them anew. */
static void gather_roots(struct builder *b, int64_t after)
{
	for (int32_t i = b->n_units; i < (int32_t)b->r->buckets.n; i++)
		if (b->stages == 1 || b->buckets[i].weights == NONE)
			b->buckets[i].weights = gather(b, i, 0, after);
}

void gather_begin(struct builder *b)
{
	bool forward = b->phase == PHASE_FORWARD, reshards = b->c->parallel.reshard_after_forward;
	if (!b->gathers || b->st || (!forward && b->stages == 1))
		return;
	if (!b->units.at && !(b->units.at = malloc((size_t)(2 * b->m->layers) * sizeof *b->units.at))) {
		build_nomem(b, "the gathers");
		return;
	}
	/* The gathers of a forward pass wait for all compute before it: FSDP's root lets its gather stream wait for the
	 * compute stream. */
	int64_t after = forward ? build_last(b, LANE_COMPUTE) : NONE;
	b->units.n = b->units.gathered = b->units.used = 0;
	b->units.after = b->stages > 1 ? after : NONE;
	if (forward || reshards)
		add_uses(b, forward);
	if (b->stages == 1 && reshards)
		add_uses(b, false);
	if (b->part.embedding || b->part.head)
		gather_roots(b, b->stages > 1 || b->micro > 0 ? after : NONE);
	gather_up_to(b, issued_ahead(b) - 1);
}

void gather_use_begin(struct builder *b)
{
	if (!b->gathers || b->st || b->units.used == b->units.n)
		return;
	gather_up_to(b, b->units.used + issued_ahead(b));
	const struct unit_use *u = &b->units.at[b->units.used];
	for (int32_t i = u->first; i <= u->last; i++)
		b->buckets[i].weights = u->buffer[i - u->first];
	b->units.held = b->c->stack.gathers_matrices ? hold_matrices(b, u) : NONE;
}

void gather_use_end(struct builder *b)
{
	if (!b->gathers || b->st || b->units.used == b->units.n)
		return;
	b->units.at[b->units.used++].end = build_last(b, LANE_COMPUTE);
	build_release(b, &b->units.held);
}
