/* Weights and gradients while a micro-batch needs them, the reductions of gradients. Buckets are reduced in order. */
#include "base/array.h"
#include "step/builder/blocks.h"
#include "step/gathers.h"

static bool last_micro(const struct builder *b) { return b->micro == b->c->micro_batches - 1; }

/* True where a bucket's gradients live only until its reduction. Else they accumulate over micro-batches. */
static bool transient(const struct builder *b, int32_t bucket) { return b->r->buckets.at[bucket].gradients.buffer < 0; }

struct role_param *param_of(const struct builder *b, int32_t layer, enum param_kind k)
{
	int32_t i = k == NO_PARAM ? NONE : b->param_index[(layer + 1) * PARAM_KIND_COUNT + (int32_t)k];
	return i == NONE ? NULL : &b->r->params.at[i];
}

struct role_param *trained_of(const struct builder *b, int32_t layer, enum param_kind k)
{
	struct role_param *rp = param_of(b, layer, k);
	return rp && b->r->buckets.at[rp->bucket].trained ? rp : NULL;
}

/* Counts the gradients to come, of all parameters or of those of the present part. */
static void count_missing(struct builder *b, bool all)
{
	for (size_t i = 0; i < b->r->buckets.n; i++)
		b->buckets[i].missing = NONE;
	for (size_t i = 0; i < b->r->params.n; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		int32_t *missing = &b->buckets[rp->bucket].missing;
		bool here = rp->param.layer < 0 ? b->part.embedding || b->part.head
		                                : stage_has_layer(b->part, rp->param.layer);
		if ((all || here) && b->r->buckets.at[rp->bucket].trained)
			*missing = *missing == NONE ? 1 : *missing + 1;
	}
	b->next_bucket = 0;
}

void build_micro_begin(struct builder *b)
{
	if (b->st)
		return;
	count_missing(b, true);
	for (size_t i = 0; i < b->r->params.n; i++)
		b->cast_now[i] = NONE;
}

void build_backward_begin(struct builder *b)
{
	if (!b->st)
		count_missing(b, false);
}

static uint64_t byte_offset(const struct role_param *rp, enum dtype dt)
{
	return (uint64_t)((double)rp->offset * dtype_bytes(dt));
}

static void gather_down_to(struct builder *b, int32_t bucket);

struct view weight_of(struct builder *b, int32_t layer, enum param_kind k)
{
	const struct role_param *rp = param_of(b, layer, k);
	if (b->st || !rp)
		return view_of(NONE);
	gather_down_to(b, rp->bucket);
	const int32_t buffer = b->buckets[rp->bucket].weights;
	const enum dtype stored = b->r->buckets.at[rp->bucket].stored;
	if (dtype_is_quantized(stored)) { /* bitsandbytes makes a whole copy for each product (dequantize_4bit) */
		int32_t whole = build_buffer(b, COMP_BUFFERS, b->act, (int64_t)rp->elements, false);
		build_cast(b, view_at(buffer, byte_offset(rp, stored)), stored, view_of(whole), b->act,
			(int64_t)rp->elements, "dequantize");
		return view_of(whole);
	}
	const struct bucket *unit = &b->r->buckets.at[rp->bucket];
	if (unit->narrow > 0) {
		const struct view v = view_at(buffer, (uint64_t)bucket_narrow_B(unit, rp->offset));
		if (rp->offset < unit->narrow)
			narrow_is_own(b, v);
		return v;
	}
	if ((b->gathers && !b->wide_gathered) || b->weight == b->act)
		return view_at(buffer, byte_offset(rp, b->act));
	int32_t *cast = &b->cast_now[rp - b->r->params.at];
	if (*cast == NONE) { /* autocast: once a micro-batch */
		*cast = build_buffer(b, COMP_BUFFERS, b->act, (int64_t)rp->elements, false);
		build_cast(b, view_at(buffer, byte_offset(rp, b->weight)), b->weight, view_of(*cast), b->act,
			(int64_t)rp->elements, "weight");
	}
	return view_of(*cast);
}

/* Of a block's gradients two matrices' count, which are held while it is in use (step/builder/gather.c). */
static void count_by_matrix(struct builder *b, int32_t bucket, int32_t buffer)
{
	if (!b->st && b->p->mesh.size[DIM_REPLICA] > 1 && build_gathers_late(b, bucket))
		b->r->buffers.at[buffer].inside = true;
}

struct view gradient_of(struct builder *b, int32_t layer, enum param_kind k, bool *accumulate)
{
	const struct role_param *rp = trained_of(b, layer, k);
	if (b->st || !rp)
		return view_of(NONE);
	int32_t *grads = &b->buckets[rp->bucket].grads;
	*accumulate = (b->micro > 0 && !transient(b, rp->bucket)) || (k == PARAM_HEAD_W && b->head_begun);
	if (*grads == NONE) {
		/* FSDP waits for a bucket's reduction before it begins the second bucket after it, so that at most two
		 * are alive (torch/distributed/fsdp: post_backward and its reduce-scatter state). */
		build_after(b, LANE_COMPUTE, b->reduced[1]);
		*grads = build_buffer(b, COMP_BUFFERS, b->written_grad, (int64_t)b->r->buckets.at[rp->bucket].padded,
			false);
		count_by_matrix(b, rp->bucket, *grads);
	}
	return view_at(*grads, byte_offset(rp, b->written_grad));
}

/* ---- reductions ---- */

/* Sums the gradients of replicated parameters over the tensor group: those of which each rank has seen its heads' part,
 * and under sequence parallelism all, because each rank has seen only its own rows. */
static void complete_replicated(struct builder *b, int32_t i)
{
	const struct bucket_state *s = &b->buckets[i];
	const uint64_t begin = s->partial, end = b->sequence_parallel ? b->r->buckets.at[i].elements : s->replicated;
	if (b->tensor == 1 || begin == end)
		return;
	enum dtype dt = b->written_grad;
	struct view v = view_at(b->buckets[i].grads, (uint64_t)((double)begin * dtype_bytes(dt)));
	build_all_reduce(b, DIM_TP, LANE_MODEL_COMM, dt, (int64_t)(end - begin), v, "replicated grads", i);
}

/* Puts a reduced bucket into place: converts it to the stored format and adds it to earlier sums, where needed. */
static void finish_bucket(struct builder *b, int32_t i)
{
	if (b->st || b->buckets[i].reduced == NONE)
		return;
	const struct bucket *k = &b->r->buckets.at[i];
	int64_t part = bucket_part(k);
	struct view reduced = view_of(b->buckets[i].reduced);
	b->buckets[i].reduced = NONE;
	bool adds = transient(b, i) && b->micro > 0, leaves = offloads_states(b) && transient(b, i);
	if (b->reduce != b->grad) {
		struct view to = k->grad_shard;
		if (adds || leaves)
			to = view_of(build_buffer(b, COMP_BUFFERS, b->grad, part, false));
		build_cast(b, reduced, b->reduce, to, b->grad, part, "reduced bucket");
		reduced = to;
	}
	if (adds) {
		struct view sum = offload_sum(b, i);
		struct op op = build_matrix(b, OP_ADD, "gradient shard", 1, part);
		op.dtype = op.out_dtype = (uint8_t)b->grad;
		op.bucket = i;
		build_with(b, &op, sum, reduced, view_of(NONE), sum);
		reduced = sum;
	}
	offload_gradient(b, i, leaves ? reduced : k->grad_shard);
}

void after_reductions(struct builder *b, enum lane lane)
{
	build_after(b, lane, build_last(b, LANE_COMM));
	build_after(b, lane, build_last(b, LANE_REPLICA_COMM));
}

static void reduce_bucket(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const bool reduces = strategy_has(b->c->parallel.strategy, STRATEGY_REDUCES),
		   shares = reduces && b->p->mesh.size[k->along] > 1,
		   replicas = reduces && b->p->mesh.size[DIM_REPLICA] > 1;
	complete_replicated(b, i);
	if (!shares && !replicas && !transient(b, i)) {
		offload_gradient(b, i, k->grad_shard);
		return;
	}
	const int32_t grads = b->buckets[i].grads;
	struct view in = view_of(grads), out = k->grad_shard;
	int64_t full = (int64_t)k->padded, part = bucket_part(k);
	if (b->written_grad != b->reduce) {
		in = view_of(build_buffer(b, COMP_BUFFERS, b->reduce, full, false));
		count_by_matrix(b, i, in.buffer);
		build_cast(b, view_of(grads), b->written_grad, in, b->reduce, full, "reduction bucket");
	}
	bool scratch = b->reduce != b->grad || (transient(b, i) && (b->micro > 0 || offloads_states(b)));
	if (scratch && k->shards > 1)
		out = view_of(build_buffer(b, COMP_BUFFERS, b->reduce, part, false));
	else if (k->shards == 1)
		out = in;
	if (scratch) {
		b->buckets[i].reduced = out.buffer;
	} else if (!shares && transient(b, i)) { /* a group's experts that no other rank of it has */
		build_cast(b, in, b->reduce, k->grad_shard, b->grad, part, "gradients");
		out = k->grad_shard;
	}
	if (!b->c->parallel.overlap && (shares || replicas))
		build_after(b, shares ? LANE_COMM : LANE_REPLICA_COMM, build_last(b, LANE_COMPUTE));
	if (shares) {
		struct op op = build_collective(b, k->shards > 1 ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, k->along,
			LANE_COMM, b->reduce, full, "grads", i);
		op.collective.tensors = b->gathers && b->c->stack.copies_slices ? k->products : 0;
		build_with(b, &op, in, out);
	}
	if (replicas) /* hsdp: each replica of the part has seen other sequences (PyTorch, fully_shard on a mesh of two
	                 dimensions) */
		build_all_reduce(b, DIM_REPLICA, LANE_REPLICA_COMM, b->reduce, part, out, "grads", i);
	if (!b->c->parallel.overlap && (shares || replicas))
		after_reductions(b, LANE_COMPUTE);
	if (!scratch)
		offload_gradient(b, i, k->grad_shard);
	if (!transient(b, i))
		return;
	b->buckets[i].grads = NONE;
	if (shares) {
		b->reduced[1] = b->reduced[0];
		b->reduced[0] = build_last(b, LANE_COMM);
	}
}

static bool reduces_now(const struct builder *b, int32_t bucket) { return transient(b, bucket) || last_micro(b); }

static void launch_ready(struct builder *b)
{
	int32_t n = (int32_t)b->r->buckets.n;
	for (; b->next_bucket < n && !b->st; b->next_bucket++) {
		if (!reduces_now(b, b->next_bucket))
			continue;
		const int32_t missing = b->buckets[b->next_bucket].missing;
		if (missing > 0)
			return;
		if (missing == 0)
			reduce_bucket(b, b->next_bucket);
		/* a unit of backward has hidden the reduction before, or the copy to the host */
		if (b->next_bucket > 0 && (b->shards_gradients || transient(b, b->next_bucket - 1))) {
			finish_bucket(b, b->next_bucket - 1);
			update_in_backward(b, b->next_bucket - 1);
		}
	}
}

void gradient_done(struct builder *b, int32_t layer, enum param_kind k)
{
	const struct role_param *rp = trained_of(b, layer, k);
	if (b->st || !rp || !reduces_now(b, rp->bucket))
		return;
	if (--b->buckets[rp->bucket].missing == 0 && !b->shards_gradients) /* no rank has more of it: config_check */
		update_in_backward(b, rp->bucket);
	/* Without overlap DDP and ZeRO-1 reduce after backward. A transient bucket cannot wait so long. */
	if (b->c->parallel.overlap || b->shards_gradients)
		launch_ready(b);
}

/* A parameter that the loss does not depend on has a zero gradient, as in PyTorch with find_unused_parameters. */
void build_unused_gradients(struct builder *b)
{
	static const enum param_kind unused[] = {PARAM_POOLER_W, PARAM_POOLER_B};
	for (size_t u = 0; u < COUNT(unused) && b->m->classes == 0; u++) {
		bool accumulate = false;
		struct view g = gradient_of(b, NONE, unused[u], &accumulate);
		if (g.buffer >= 0 && !accumulate)
			build_fill(b, g, b->written_grad, (int64_t)param_of(b, NONE, unused[u])->elements, "pooler");
		gradient_done(b, NONE, unused[u]);
	}
}

void build_reductions_end(struct builder *b)
{
	if (b->st)
		return;
	const struct parallel *par = &b->c->parallel;
	/* A kernel of its own has added them to the sums, and overlap alone reduces out of them. */
	if (b->c->stack.adds_gradients && !par->overlap && last_micro(b))
		build_release(b, &b->gradient_copies);
	bool flattens = strategy_cuts_states_alone(par->strategy) && b->dp > 1 && !par->overlap && last_micro(b);
	int32_t flat = flattens ? build_hold(b, COMP_BUFFERS, build_elements(b) * b->c->stack.memory.flattened_B,
					  "flattened gradients")
	                        : NONE;
	launch_ready(b);
	for (size_t i = 0; i < b->r->buckets.n; i++)
		finish_bucket(b, (int32_t)i);
	build_release(b, &flat);
}

/* Each end has the gradient of its own use of the table. This sum follows the data-parallel reduction, so that a rank
 * sends only the part that its optimizer updates. */
void build_ends_reduction(struct builder *b)
{
	for (size_t i = 0; i < b->r->params.n && !b->st; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		if (!stages_share(b->c, &rp->param) || !b->r->buckets.at[rp->bucket].trained)
			continue;
		const struct bucket *k = &b->r->buckets.at[rp->bucket];
		struct op op = build_collective(b, COLL_ALL_REDUCE, DIM_PP, LANE_COMM, b->grad, bucket_part(k),
			"tied table grads", rp->bucket);
		op.flags |= OP_ENDS;
		build_with(b, &op, k->grad_shard, k->grad_shard);
	}
}

/* ---- optimizer ---- */

static void gather_updated(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const bool narrow = k->narrow > 0;
	struct op op = build_collective(b, COLL_ALL_GATHER, k->along, LANE_COMM, narrow ? DT_FP8 : b->weight,
		narrow ? bucket_wire_B(k) : (int64_t)k->padded, "weights", i);
	op.collective.tensors = b->c->stack.copies_gathered ? build_tensors_in(b, i) : 0;
	build_with(b, &op, k->shard, k->weights);
}

/* Gathers in reverse, because buckets hold the parameters from the last to the first. */
static void gather_down_to(struct builder *b, int32_t bucket)
{
	while (b->to_gather > 0 && b->to_gather > bucket)
		if (b->r->buckets.at[--b->to_gather].shards > 1)
			gather_updated(b, b->to_gather);
}

void build_gather_ahead(struct builder *b)
{
	b->to_gather = gathers_ahead(b->c) && optimizer_updates(b->c->train.optimizer) ? (int32_t)b->r->buckets.n : 0;
	gather_down_to(b, b->to_gather - 2);
}

void build_gather_next(struct builder *b, int64_t layer)
{
	int32_t first = b->to_gather;
	for (size_t i = 0; i < b->r->params.n && b->to_gather > 0; i++)
		if (b->r->params.at[i].param.layer == layer && b->r->params.at[i].bucket < first)
			first = b->r->params.at[i].bucket;
	gather_down_to(b, layer == NONE ? 0 : first - 1);
}

void gather_bucket(struct builder *b, int32_t i)
{
	if (b->r->buckets.at[i].shards <= 1 || b->gathers || gathers_ahead(b->c))
		return;
	for (int n = 0; n < gathers_of_bucket(b->c); n++)
		gather_updated(b, i);
}
