/* Weights and gradients while a micro-batch needs them, the reductions of gradients, and the optimizer. Buckets are
 * reduced in order. */
#include "base/array.h"
#include "step/build.h"

static bool last_micro(const struct builder *b) { return b->micro == b->c->micro_batches - 1; }

/* True where a bucket's gradients live only until its reduction. Else they accumulate over micro-batches. */
static bool transient(const struct builder *b, int32_t bucket) { return b->r->buckets.at[bucket].gradients.buffer < 0; }

static int32_t find_param(const struct builder *b, int32_t layer, enum param_kind k)
{
	return k == PARAM_KIND_COUNT ? NONE : b->param_index[(layer + 1) * PARAM_KIND_COUNT + (int32_t)k];
}

/* Returns the format in which a bucket's gradients are written. fsdp computes them in the compute format and converts
 * them for the reduction. Autocast's gradients have the format of the stored gradients. */
static enum dtype bucket_grad_dtype(const struct builder *b) { return b->gathers ? b->act : b->grad; }

void build_micro_begin(struct builder *b)
{
	if (b->st)
		return;
	for (size_t i = 0; i < b->r->buckets.n; i++)
		b->missing[i] = 0;
	for (size_t i = 0; i < b->r->params.n; i++) {
		b->missing[b->r->params.at[i].bucket]++;
		b->cast_now[i] = NONE;
	}
	b->next_bucket = 0;
}

void build_backward_begin(struct builder *b)
{
	for (size_t i = 0; i < b->r->buckets.n && !b->st; i++)
		b->missing[i] = NONE;
	for (size_t i = 0; i < b->r->params.n && !b->st; i++) {
		const struct role_param *rp = &b->r->params.at[i];
		bool here = rp->param.layer < 0 ? b->part.embedding || b->part.head
		                                : stage_has_layer(b->part, rp->param.layer);
		if (here)
			b->missing[rp->bucket] = (b->missing[rp->bucket] == NONE ? 0 : b->missing[rp->bucket]) + 1;
	}
	b->next_bucket = 0;
}

static uint64_t byte_offset(const struct role_param *rp, enum dtype dt)
{
	return (uint64_t)((double)rp->offset * dtype_bytes(dt));
}

struct view weight_of(struct builder *b, int32_t layer, enum param_kind k)
{
	int32_t i = find_param(b, layer, k);
	if (b->st || i == NONE)
		return view_of(NONE);
	const struct role_param *rp = &b->r->params.at[i];
	if (b->gathers)
		return view_at(b->weights_now[rp->bucket], byte_offset(rp, b->act));
	struct view stored = view_at(b->weights_now[rp->bucket], byte_offset(rp, b->weight));
	if (b->weight == b->act)
		return stored;
	if (b->cast_now[i] == NONE) { /* autocast: once a micro-batch */
		b->cast_now[i] = build_buffer(b, COMP_BUFFERS, b->act, (int64_t)rp->elements, "cast weight", false);
		build_cast(b, stored, b->weight, view_of(b->cast_now[i]), b->act, (int64_t)rp->elements, "weight");
	}
	return view_of(b->cast_now[i]);
}

struct view gradient_of(struct builder *b, int32_t layer, enum param_kind k, bool *accumulate)
{
	int32_t i = find_param(b, layer, k);
	if (b->st || i == NONE)
		return view_of(NONE);
	const struct role_param *rp = &b->r->params.at[i];
	enum dtype dt = bucket_grad_dtype(b);
	*accumulate = b->micro > 0 && !transient(b, rp->bucket);
	if (b->grads_now[rp->bucket] == NONE) {
		/* FSDP waits for a bucket's reduction before it begins the second bucket after it, so that at most two
		 * are alive (torch/distributed/fsdp: post_backward and its reduce-scatter state). */
		build_after(b, LANE_COMPUTE, b->reduced[1]);
		b->grads_now[rp->bucket] = build_buffer(b, COMP_BUFFERS, dt,
			(int64_t)b->r->buckets.at[rp->bucket].padded, "bucket", false);
	}
	return view_at(b->grads_now[rp->bucket], byte_offset(rp, dt));
}

/* ---- reductions ---- */

/* Sums the gradients of replicated parameters over the tensor group. Under sequence parallelism each rank has seen only
 * its own rows. */
static void complete_replicated(struct builder *b, int32_t i)
{
	uint64_t begin = b->replicated[i], end = b->r->buckets.at[i].elements;
	if (!b->sequence_parallel || begin == end)
		return;
	enum dtype dt = bucket_grad_dtype(b);
	struct view v = view_at(b->grads_now[i], (uint64_t)((double)begin * dtype_bytes(dt)));
	build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_TP, LANE_MODEL_COMM, dt, (int64_t)(end - begin), v, v,
		"replicated grads", i);
}

/* Puts a reduced bucket into place: converts it to the stored format and adds it to earlier sums, where needed. */
static void finish_bucket(struct builder *b, int32_t i)
{
	if (b->st || b->finish[i] == NONE)
		return;
	const struct bucket *k = &b->r->buckets.at[i];
	int64_t part = (int64_t)k->padded / k->shards;
	struct view reduced = view_of((int32_t)b->finish[i]);
	b->finish[i] = NONE;
	bool adds = k->shards > 1 && transient(b, i) && b->micro > 0, leaves = offloads_states(b) && transient(b, i);
	if (b->reduce != b->grad) {
		struct view to = adds || leaves ? view_of(build_buffer(b, COMP_BUFFERS, b->grad, part, "reduced bucket",
							  false))
		                                : k->grad_shard;
		build_cast(b, reduced, b->reduce, to, b->grad, part, "reduced bucket");
		reduced = to;
	}
	if (adds) {
		struct view sum = offload_sum(b, i);
		struct op op = build_new(b, OP_ADD, "gradient shard");
		op.dtype = op.out_dtype = (uint8_t)b->grad;
		op.matrix.rows = 1;
		op.matrix.cols = part;
		op.bucket = i;
		build_op(b, op, (const struct view[]){sum, reduced, view_of(NONE), sum});
		reduced = sum;
	}
	offload_gradient(b, i, leaves ? reduced : k->grad_shard);
}

/* Makes the next op on `lane` wait for every reduction so far. */
static void after_reductions(struct builder *b, enum lane lane)
{
	build_after(b, lane, build_last(b, LANE_COMM));
	build_after(b, lane, build_last(b, LANE_REPLICA_COMM));
}

static void reduce_bucket(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	bool reduces = strategy_has(b->c->parallel.strategy, STRATEGY_REDUCES) && b->p->mesh.size[k->along] > 1;
	complete_replicated(b, i);
	if (!reduces) {
		offload_gradient(b, i, k->grad_shard);
		return;
	}
	struct view in = view_of(b->grads_now[i]), out = k->grad_shard;
	int64_t full = (int64_t)k->padded, part = full / k->shards;
	if (bucket_grad_dtype(b) != b->reduce) {
		in = view_of(build_buffer(b, COMP_BUFFERS, b->reduce, full, "reduction bucket", false));
		build_cast(b, view_of(b->grads_now[i]), bucket_grad_dtype(b), in, b->reduce, full, "reduction bucket");
	}
	bool scratch = b->reduce != b->grad || (transient(b, i) && (b->micro > 0 || offloads_states(b)));
	if (scratch && k->shards > 1)
		out = view_of(build_buffer(b, COMP_BUFFERS, b->reduce, part, "reduced bucket", false));
	else if (k->shards == 1)
		out = in;
	if (scratch)
		b->finish[i] = out.buffer;
	if (!b->c->parallel.overlap)
		build_after(b, LANE_COMM, build_last(b, LANE_COMPUTE));
	build_collective(b, k->shards > 1 ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, RED_SUM, k->along, LANE_COMM,
		b->reduce, full, in, out, "grads", i);
	if (b->p->mesh.size[DIM_REPLICA] > 1) /* hsdp: each replica of the part has seen other sequences (PyTorch,
	                                         fully_shard on a mesh of two dimensions) */
		build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_REPLICA, LANE_REPLICA_COMM, b->reduce, part, out, out,
			"grads", i);
	if (!b->c->parallel.overlap)
		after_reductions(b, LANE_COMPUTE);
	if (!scratch)
		offload_gradient(b, i, k->grad_shard);
	if (transient(b, i)) {
		b->grads_now[i] = NONE;
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
		if (b->missing[b->next_bucket] > 0)
			return;
		if (b->missing[b->next_bucket] == 0)
			reduce_bucket(b, b->next_bucket);
		if (b->shards_gradients && b->next_bucket > 0) /* a unit of backward has hidden the reduction before */
			finish_bucket(b, b->next_bucket - 1);
	}
}

void gradient_done(struct builder *b, int32_t layer, enum param_kind k)
{
	int32_t i = find_param(b, layer, k);
	if (b->st || i == NONE)
		return;
	if (!reduces_now(b, b->r->params.at[i].bucket))
		return;
	b->missing[b->r->params.at[i].bucket]--;
	/* Without overlap DDP and ZeRO-1 reduce after backward. A transient bucket cannot wait so long. */
	if (b->c->parallel.overlap || b->shards_gradients)
		launch_ready(b);
}

/* A parameter that the loss does not depend on has a zero gradient, as in PyTorch with find_unused_parameters. */
void build_unused_gradients(struct builder *b)
{
	static const enum param_kind unused[] = {PARAM_POOLER_W, PARAM_POOLER_B};
	for (size_t u = 0; u < COUNT(unused); u++) {
		bool accumulate = false;
		struct view g = gradient_of(b, NONE, unused[u], &accumulate);
		if (g.buffer >= 0 && !accumulate)
			build_fill(b, g, bucket_grad_dtype(b),
				(int64_t)b->r->params.at[find_param(b, NONE, unused[u])].elements, "pooler");
		gradient_done(b, NONE, unused[u]);
	}
}

void build_reductions_end(struct builder *b)
{
	if (b->st)
		return;
	const struct parallel *par = &b->c->parallel;
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
		if (!stages_share(b->c, &rp->param))
			continue;
		const struct bucket *k = &b->r->buckets.at[rp->bucket];
		struct op op = build_new(b, OP_COLLECTIVE, "tied table grads");
		op.lane = LANE_COMM;
		op.dtype = op.out_dtype = (uint8_t)b->grad;
		op.coll = COLL_ALL_REDUCE;
		op.reduce = RED_SUM;
		op.group = DIM_PP;
		op.flags |= OP_ENDS;
		op.bucket = rp->bucket;
		op.collective.elements = (int64_t)k->padded / k->shards;
		build_op(b, op, (const struct view[]){k->grad_shard, k->grad_shard});
	}
}

/* ---- optimizer ---- */

static bool gathers_ahead(const struct builder *b)
{
	return b->c->stack.gather_ahead && b->c->parallel.overlap &&
	       strategy_cuts_states_alone(b->c->parallel.strategy);
}

static void gather_updated(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	struct op op = build_new(b, OP_COLLECTIVE, "weights");
	op.lane = LANE_COMM;
	op.dtype = op.out_dtype = (uint8_t)b->weight;
	op.coll = COLL_ALL_GATHER;
	op.reduce = RED_SUM;
	op.group = (uint8_t)k->along;
	op.bucket = i;
	op.collective.elements = (int64_t)k->padded;
	op.collective.tensors = b->c->stack.copies_gathered ? build_tensors_in(b, i) : 0;
	build_op(b, op, (const struct view[]){k->shard, k->weights});
}

/* Gathers in reverse, because buckets hold the parameters from the last to the first. */
void build_gather_ahead(struct builder *b)
{
	for (size_t i = b->r->buckets.n; i-- > 0 && gathers_ahead(b) && optimizer_updates(b->c->train.optimizer);)
		if (b->r->buckets.at[i].shards > 1)
			gather_updated(b, (int32_t)i);
}

/* Gathers updated weights where forward expects them whole. */
static void gather_bucket(struct builder *b, int32_t i)
{
	if (b->r->buckets.at[i].shards > 1 && !b->gathers && !gathers_ahead(b))
		gather_updated(b, i);
}

static void update_bucket(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	int64_t part = (int64_t)k->padded / k->shards;
	struct op op = build_new(b, OP_OPTIMIZER, "update");
	op.dtype = (uint8_t)b->weight;
	op.out_dtype = (uint8_t)b->grad;
	op.optimizer = (uint8_t)b->c->train.optimizer;
	op.flags = (uint16_t)((b->c->train.fused ? OP_FUSED : 0) | (b->master[i] != NONE ? OP_MASTER : 0));
	op.bucket = i;
	op.update.elements = part;
	if (b->c->train.optimizer_bits == 8) { /* bitsandbytes has only the fused kernel */
		op.flags |= OP_STATES_8 | OP_FUSED;
		op.update.wide_from = (int64_t)k->wide_from;
		op.update.wide_to = (int64_t)k->wide_to;
	}
	struct view weights = k->shard, gradients = k->grad_shard;
	if (offloads_states(b)) {
		op.lane = LANE_HOST;
		op.flags |= OP_FUSED;
		weights = k->host;
		gradients = k->host_grad;
	}
	build_op(b, op,
		(const struct view[]){weights, gradients, view_of(b->moment1[i]), view_of(b->moment2[i]),
			view_of(b->master[i])});
	offload_updated(b, i);
	gather_bucket(b, i);
}

/* ---- LAMB: step/ops.def says why it takes two ops ---- */

static struct op new_lamb(const struct builder *b, enum op_kind kind, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	struct op op = build_new(b, kind, "update");
	op.dtype = (uint8_t)b->weight;
	op.out_dtype = (uint8_t)b->grad;
	op.optimizer = OPT_ADAM; /* LAMB scales Adam's direction */
	op.flags = (uint16_t)(OP_FUSED | (b->master[i] != NONE ? OP_MASTER : 0));
	op.bucket = i;
	op.tensors.elements = (int64_t)k->padded / k->shards;
	op.tensors.tensors = build_tensors_in(b, i);
	return op;
}

static struct view lamb_direction(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const struct op op = new_lamb(b, OP_LAMB_DIRECTION, i);
	const struct view norms = view_of(build_fp32(b, 2 * op.tensors.tensors, "norms"));
	build_op(b, op,
		(const struct view[]){k->shard, k->grad_shard, view_of(b->moment1[i]), view_of(b->moment2[i]),
			view_of(b->master[i]), view_of(b->bounds[i]), norms});
	return norms;
}

/* Sums the norms of tensors over the ranks that have parts of them: of a cut bucket, and of a tensor group. */
static void sum_norms(struct builder *b, int32_t i, struct view norms)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const int64_t n = 2 * build_tensors_in(b, i);
	if (k->shards > 1)
		build_collective(b, COLL_ALL_REDUCE, RED_SUM, k->along, LANE_COMM, DT_FP32, n, norms, norms, "norms",
			NONE);
	if (b->p->mesh.size[DIM_TP] > 1)
		build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_TP, LANE_MODEL_COMM, DT_FP32, n, norms, norms,
			"norms", NONE);
}

static void lamb_step(struct builder *b, int32_t i, struct view norms)
{
	const struct bucket *k = &b->r->buckets.at[i];
	build_op(b, new_lamb(b, OP_LAMB_STEP, i),
		(const struct view[]){k->shard, k->grad_shard, view_of(b->master[i]), view_of(b->bounds[i]), norms});
	gather_bucket(b, i);
}

/* All directions, then all sums, then all steps: a bucket's sums move while the next one's direction is computed. */
static void build_lamb(struct builder *b)
{
	const int32_t n = (int32_t)b->r->buckets.n;
	VEC(struct view) norms = {0};
	for (int32_t i = 0; i < n && !b->st; i++)
		if (!vec_push(&norms, lamb_direction(b, i)))
			b->st = error_nomem(b->e, "the norms");
	for (int32_t i = 0; i < n && !b->st; i++)
		sum_norms(b, i, norms.at[i]);
	for (int32_t i = 0; i < n && !b->st; i++)
		lamb_step(b, i, norms.at[i]);
	vec_free(&norms);
}

void build_optimizer(struct builder *b)
{
	if (b->st || !optimizer_updates(b->c->train.optimizer))
		return;
	after_reductions(b, offloads_states(b) ? LANE_HOST : LANE_COMPUTE); /* optimizer.step() */
	build_after(b, LANE_HOST, offloads_states(b) ? build_last(b, LANE_COMPUTE) : NONE);
	if (optimizer_traits[b->c->train.optimizer].trust_ratio) {
		build_lamb(b);
		return;
	}
	for (size_t i = 0; i < b->r->buckets.n; i++)
		update_bucket(b, (int32_t)i);
}
