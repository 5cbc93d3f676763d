/* Parameters in buckets: where they are stored, when their gradients are reduced, and the optimizer.
 *
 * ddp, zero1, zero2 cut the parameter list as PyTorch DDP does (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size): in reverse order of
 * model.parameters(), a bucket is closed once its size reaches the cap, so a parameter is never split; the first bucket has a cap of its own. Buckets are launched in order.
 * fsdp and hsdp cut by unit: one a block, and the root unit with everything else, which is reduced last.
 */
#include "step/build.h"

#include <stdlib.h>

static int64_t padded_to(int64_t n, int64_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

/* A tied table on a last stage that does not embed: there it is the head's weight, the last of the model's parameters. */
static bool heads_table(const struct builder *b, const struct param *p)
{
	return stages_share(b->c, p) && b->has_head && !b->has_embedding;
}

static void list_param(struct builder *b, const struct param *p)
{
	struct role_param rp = {*p, NONE, 0, param_local_elements(p, b->p->mesh.size[param_cut_along(p)])};
	b->param_index[(p->layer + 1) * PARAM_KIND_COUNT + p->kind] = (int32_t)b->r->params.n;
	if (!b->st && !vec_push(&b->r->params, rp))
		b->st = error_nomem(b->e, "the parameter list");
}

static void list_params(struct builder *b)
{
	int64_t n = model_param_count(b->m), slots = (b->m->layers + 1) * PARAM_KIND_COUNT;
	b->param_index = malloc((size_t)slots * sizeof *b->param_index);
	if (!b->param_index) {
		b->st = error_nomem(b->e, "the parameter index");
		return;
	}
	for (int64_t i = 0; i < slots; i++)
		b->param_index[i] = NONE;
	for (int64_t i = 0; i < n; i++) {
		struct param p = model_param(b->m, i, b->tensor);
		if (stage_has_param(b->c, b->stage, &p) && !(heads_table(b, &p)))
			list_param(b, &p);
	}
	for (int64_t i = 0; i < n && b->has_head && !b->has_embedding; i++) {
		struct param p = model_param(b->m, i, b->tensor);
		if (heads_table(b, &p))
			list_param(b, &p);
	}
}

static void new_bucket(struct builder *b, enum mesh_dim along)
{
	struct bucket k = {.along = along};
	k.weights = k.shard = k.gradients = k.grad_shard = k.host = k.host_grad = view_of(NONE);
	if (!vec_push(&b->r->buckets, k))
		b->st = error_nomem(b->e, "the buckets");
}

/* The chunk of the stage that uses it: what is outside the blocks is used where the embedding or the head is, the first chunk of the first stage or the last of the last. */
static int64_t chunk_of(const struct builder *b, const struct param *p)
{
	int64_t chunk = b->has_embedding ? 0 : b->chunks - 1;
	for (int64_t i = 0; i < b->chunks && p->layer >= 0; i++)
		if (stage_has_layer(stage_part(b->c, b->stage, i), p->layer))
			chunk = i;
	return chunk;
}

static void assign_by_size(struct builder *b)
{
	const struct parallel *par = &b->c->parallel;
	struct { double cap_B, size_B; int32_t bucket; int64_t chunk; } open[2] = {{par->first_bucket_mb * 1048576.0, 0.0, NONE, NONE}, {par->bucket_mb * 1048576.0, 0.0, NONE, NONE}}; /* experts fill buckets of their own */
	for (size_t i = b->r->params.n; i-- > 0 && !b->st;) {
		struct role_param *rp = &b->r->params.at[i];
		/* a bucket to itself, so that both stages cut the table alike (Megatron-LM, param_and_grad_buffer.py: shared embedding) */
		bool alone = stages_share(b->c, &rp->param);
		enum mesh_dim along = rp->param.split == CUT_EXPERTS ? b->p->mesh.experts : b->p->mesh.params;
		int own = along != b->p->mesh.params;
		bool other = b->shards_gradients && chunk_of(b, &rp->param) != open[own].chunk; /* gradients that are reduced with each micro-batch wait for those of no other chunk */
		if (open[own].size_B > 0.0 && other)
			open[own].cap_B = par->bucket_mb * 1048576.0;
		if (open[own].size_B == 0.0 || alone || other) {
			new_bucket(b, along);
			open[own].bucket = (int32_t)b->r->buckets.n - 1;
			open[own].size_B = 0.0;
			open[own].chunk = chunk_of(b, &rp->param);
		}
		rp->bucket = open[own].bucket;
		open[own].size_B += (double)rp->elements * dtype_bytes(b->grad);
		if (open[own].size_B >= open[own].cap_B || alone) {
			open[own].size_B = 0.0;
			open[own].cap_B = par->bucket_mb * 1048576.0;
		}
	}
}

/* The blocks' from the last to the first, then what is outside them; a table that two stages share by itself. */
static void assign_by_unit(struct builder *b)
{
	int64_t open = NONE; /* layer of the latest bucket */
	for (size_t i = b->r->params.n; i-- > 0 && !b->st;) {
		struct role_param *rp = &b->r->params.at[i];
		if (rp->param.layer < 0)
			continue;
		if (rp->param.layer != open)
			new_bucket(b, b->p->mesh.params);
		open = rp->param.layer;
		rp->bucket = (int32_t)b->r->buckets.n - 1;
	}
	b->n_units = (int32_t)b->r->buckets.n;
	for (int shared = 0; shared < 2; shared++) {
		bool none = true;
		for (size_t i = 0; i < b->r->params.n && !b->st; i++) {
			struct role_param *rp = &b->r->params.at[i];
			if (rp->param.layer >= 0 || stages_share(b->c, &rp->param) != shared)
				continue;
			if (none)
				new_bucket(b, b->p->mesh.params);
			none = false;
			rp->bucket = (int32_t)b->r->buckets.n - 1;
		}
	}
}

/* Offsets inside the buckets, in the order of assignment; what tensor parallelism cuts first, what it replicates last. */
static void place_params(struct builder *b)
{
	for (int replicated = 0; replicated < 2; replicated++)
		for (size_t i = b->r->params.n; i-- > 0;) {
			struct role_param *rp = &b->r->params.at[i];
			if ((rp->param.split == TP_REPLICATED) != replicated)
				continue;
			struct bucket *k = &b->r->buckets.at[rp->bucket];
			rp->offset = k->elements;
			k->elements += rp->elements;
			if (!replicated)
				b->replicated[rp->bucket] = k->elements;
		}
}

static enum component state_component(const struct builder *b)
{
	return offloads_states(b) ? COMP_HOST : COMP_OPTIMIZER;
}

/* In words of 4 bytes, whatever lies in them. */
static int32_t build_moment(struct builder *b, int64_t elements, const char *what)
{
	return build_buffer(b, state_component(b), DT_FP32, (int64_t)((optimizer_state_size_B(elements, b->c->train.optimizer_bits) + 3) / 4), what, true);
}

static void store_bucket(struct builder *b, int32_t i)
{
	struct bucket *k = &b->r->buckets.at[i];
	enum strategy s = b->c->parallel.strategy;
	bool cuts = s == STRAT_ZERO1 || s == STRAT_ZERO2 || s == STRAT_FSDP || s == STRAT_HSDP, whole_gradients;
	k->shards = cuts ? b->p->mesh.size[k->along] : 1;
	whole_gradients = k->shards == 1 || s == STRAT_ZERO1;
	k->padded = (uint64_t)padded_to((int64_t)k->elements, k->shards);
	int64_t full = (int64_t)k->padded, part = full / k->shards;
	if (b->gathers) {
		k->shard = view_of(build_buffer(b, b->c->train.offload == OFF_OPTIMIZER_PARAMS ? COMP_HOST : COMP_WEIGHTS, b->weight, part, "weight shard", true));
	} else {
		k->weights = k->shard = view_of(build_buffer(b, COMP_WEIGHTS, b->weight, full, "weights", true));
		k->shard.along = k->along;
		if (k->shards > 1)
			k->shard.stride_B = (uint64_t)((double)part * dtype_bytes(b->weight));
	}
	if (whole_gradients)
		k->gradients = k->grad_shard = view_of(build_buffer(b, COMP_GRADIENTS, b->grad, full, "gradients", true));
	if (k->shards > 1)
		k->grad_shard = view_of(build_buffer(b, offloads_states(b) && !whole_gradients ? COMP_HOST : COMP_GRADIENTS, b->grad, part, "gradient shard", true));
	if (whole_gradients && k->shards > 1 && !b->st)
		b->r->buffers.at[k->grad_shard.buffer].inside = b->c->stack.shard_inside;
	if (offloads_states(b)) {
		k->host = b->c->train.offload == OFF_OPTIMIZER_PARAMS ? k->shard : view_of(build_buffer(b, COMP_HOST, b->weight, part, "host weights", true));
		k->host_grad = whole_gradients ? view_of(build_buffer(b, COMP_HOST, b->grad, part, "host gradients", true)) : k->grad_shard;
	}
	b->weights_now[i] = k->weights.buffer;
	b->grads_now[i] = k->gradients.buffer;
	b->finish[i] = b->moment1[i] = b->moment2[i] = b->master[i] = NONE;
	enum optimizer o = b->c->train.optimizer;
	if (o != OPT_NONE)
		b->moment1[i] = build_moment(b, part, "first moment");
	if (o == OPT_ADAM || o == OPT_ADAMW || o == OPT_LAMB)
		b->moment2[i] = build_moment(b, part, "second moment");
	if (o != OPT_NONE && b->c->train.master_weights && dtype_bytes(b->weight) < 4.0)
		b->master[i] = build_buffer(b, state_component(b), DT_FP32, part, "master weights", true);
}

static double all_elements(const struct builder *b)
{
	double sum = 0;
	for (size_t i = 0; i < b->r->buckets.n; i++)
		sum += (double)b->r->buckets.at[i].padded;
	return sum;
}

void build_buckets(struct builder *b)
{
	list_params(b);
	if (b->st)
		return;
	if (b->gathers)
		assign_by_unit(b);
	else
		assign_by_size(b);
	if (b->st)
		return;
	size_t n = b->r->buckets.n, params = b->r->params.n;
	b->weights_now = calloc(6 * n, sizeof *b->weights_now); /* six arrays by bucket in one block */
	b->cast_now = calloc(params, sizeof *b->cast_now);
	b->finish = calloc(n, sizeof *b->finish);
	b->replicated = calloc(n, sizeof *b->replicated);
	if (!b->weights_now || !b->cast_now || !b->finish || !b->replicated) {
		b->st = error_nomem(b->e, "the buckets");
		return;
	}
	b->grads_now = b->weights_now + n;
	b->missing = b->weights_now + 2 * n;
	b->moment1 = b->weights_now + 3 * n;
	b->moment2 = b->weights_now + 4 * n;
	b->master = b->weights_now + 5 * n;
	place_params(b);
	for (size_t i = 0; i < n && !b->st; i++)
		store_bucket(b, (int32_t)i);
	if (!b->shards_gradients)
		build_hold(b, COMP_GRADIENTS, all_elements(b) * b->c->stack.memory.gradient_B, "gradient copies");
}

static bool last_micro(const struct builder *b)
{
	return b->micro == b->c->micro_batches - 1;
}

/* Gradients of a bucket that lives only until its reduction; otherwise they accumulate over micro-steps. */
static bool transient(const struct builder *b, int32_t bucket)
{
	return b->r->buckets.at[bucket].gradients.buffer < 0;
}

static int32_t find_param(const struct builder *b, int32_t layer, enum param_kind k)
{
	return k == PARAM_KIND_COUNT ? NONE : b->param_index[(layer + 1) * PARAM_KIND_COUNT + (int32_t)k];
}

/* fsdp with a compute format of its own computes gradients in it and converts them for the reduction; autocast's gradients arrive in the format of the stored weights. */
static enum dtype bucket_grad_dtype(const struct builder *b)
{
	return b->gathers ? b->act : b->grad;
}

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
		bool here = rp->param.layer < 0 ? b->part.embedding || b->part.head : stage_has_layer(b->part, rp->param.layer);
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
	if (b->cast_now[i] == NONE) { /* autocast: once a micro-step */
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
		/* FSDP waits for a bucket's reduction before it begins the second one after it, so that two are alive at the most (torch/distributed/fsdp: post_backward and its reduce-scatter state) */
		build_after(b, LANE_COMPUTE, b->reduced[1]);
		b->grads_now[rp->bucket] = build_buffer(b, COMP_BUFFERS, dt, (int64_t)b->r->buckets.at[rp->bucket].padded, "bucket", false);
	}
	return view_at(b->grads_now[rp->bucket], byte_offset(rp, dt));
}

/* ---- reductions ---- */

/* Under sequence parallelism each tensor rank saw only its rows: the gradients of replicated parameters are partial sums. */
static void complete_replicated(struct builder *b, int32_t i)
{
	uint64_t begin = b->replicated[i], end = b->r->buckets.at[i].elements;
	if (!b->sequence_parallel || begin == end)
		return;
	enum dtype dt = bucket_grad_dtype(b);
	struct view v = view_at(b->grads_now[i], (uint64_t)((double)begin * dtype_bytes(dt)));
	build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_TP, LANE_MODEL_COMM, dt, (int64_t)(end - begin), v, v, "replicated grads", i);
}

/* Puts a reduced bucket where it belongs: adds it to earlier micro-steps' sum, or converts it back. */
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
		struct view to = adds || leaves ? view_of(build_buffer(b, COMP_BUFFERS, b->grad, part, "reduced bucket", false)) : k->grad_shard;
		build_cast(b, reduced, b->reduce, to, b->grad, part, "reduced bucket");
		reduced = to;
	}
	if (adds) {
		struct view sum = offload_sum(b, i);
		struct op op = build_new(b, OP_ADD, "gradient shard");
		op.dtype = op.out_dtype = (uint8_t)b->grad;
		op.d[0] = 1;
		op.d[1] = part;
		op.bucket = i;
		build_op(b, op, (const struct view[]){sum, reduced, view_of(NONE), sum});
		reduced = sum;
	}
	offload_gradient(b, i, leaves ? reduced : k->grad_shard);
}

/* The lane goes on when every reduction so far has ended. */
static void after_reductions(struct builder *b, enum lane lane)
{
	build_after(b, lane, build_last(b, LANE_COMM));
	build_after(b, lane, build_last(b, LANE_REPLICA_COMM));
}

static void reduce_bucket(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	bool reduces = b->c->parallel.strategy != STRAT_NONE && b->p->mesh.size[k->along] > 1;
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
	build_collective(b, k->shards > 1 ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, RED_SUM, k->along, LANE_COMM, b->reduce, full, in, out, "grads", i);
	if (b->p->mesh.size[DIM_REPLICA] > 1) /* hsdp: each replica of the part has seen other sequences (PyTorch, fully_shard on a mesh of two dimensions) */
		build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_REPLICA, LANE_REPLICA_COMM, b->reduce, part, out, out, "grads", i);
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

static bool reduces_now(const struct builder *b, int32_t bucket)
{
	return transient(b, bucket) || last_micro(b);
}

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
		if (b->shards_gradients && b->next_bucket > 0) /* by now the one before has had a unit of backward to travel */
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
	/* without overlap DDP and ZeRO-1 reduce after backward; a transient bucket cannot wait so long */
	if (b->c->parallel.overlap || b->shards_gradients)
		launch_ready(b);
}

/* A parameter that the loss does not depend on: its gradient is zero, as in PyTorch with find_unused_parameters. */
void build_unused_gradients(struct builder *b)
{
	static const enum param_kind unused[] = {PARAM_POOLER_W, PARAM_POOLER_B};
	for (size_t u = 0; u < sizeof unused / sizeof unused[0]; u++) {
		bool accumulate = false;
		struct view g = gradient_of(b, NONE, unused[u], &accumulate);
		if (g.buffer >= 0 && !accumulate)
			build_fill(b, g, bucket_grad_dtype(b), (int64_t)b->r->params.at[find_param(b, NONE, unused[u])].elements, "pooler");
		gradient_done(b, NONE, unused[u]);
	}
}

void build_reductions_end(struct builder *b)
{
	if (b->st)
		return;
	const struct parallel *par = &b->c->parallel;
	bool flattens = par->strategy == STRAT_ZERO1 && b->dp > 1 && !par->overlap && last_micro(b);
	int32_t flat = flattens ? build_hold(b, COMP_BUFFERS, all_elements(b) * b->c->stack.memory.flattened_B, "flattened gradients") : NONE;
	launch_ready(b);
	for (size_t i = 0; i < b->r->buckets.n; i++)
		finish_bucket(b, (int32_t)i);
	build_release(b, &flat);
}

/* Each end has the gradient of its own use of the table. After the data-parallel reduction, so that a rank sends no more than the part that its optimizer updates. */
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
		op.d[0] = (int64_t)k->padded / k->shards;
		build_op(b, op, (const struct view[]){k->grad_shard, k->grad_shard});
	}
}

/* ---- optimizer ---- */

static bool gathers_ahead(const struct builder *b)
{
	return b->c->stack.gather_ahead && b->c->parallel.overlap && b->c->parallel.strategy == STRAT_ZERO1;
}

static void gather_updated(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	build_collective(b, COLL_ALL_GATHER, RED_SUM, k->along, LANE_COMM, b->weight, (int64_t)k->padded, k->shard, k->weights, "weights", i);
}

/* Buckets hold the parameters from the last to the first: forward needs them in reverse. */
void build_gather_ahead(struct builder *b)
{
	for (size_t i = b->r->buckets.n; i-- > 0 && gathers_ahead(b) && b->c->train.optimizer != OPT_NONE;)
		if (b->r->buckets.at[i].shards > 1)
			gather_updated(b, (int32_t)i);
}

static void update_bucket(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	int64_t part = (int64_t)k->padded / k->shards;
	struct op op = build_new(b, OP_OPTIMIZER, "update");
	op.dtype = (uint8_t)b->weight;
	op.out_dtype = (uint8_t)b->grad;
	op.mlp = (uint8_t)b->c->train.optimizer;
	op.flags = (uint16_t)((b->c->train.fused ? OP_FUSED : 0) | (b->c->train.optimizer_bits == 8 ? OP_STATES_8 : 0) | (b->master[i] != NONE ? OP_MASTER : 0));
	op.bucket = i;
	op.d[0] = part;
	struct view weights = k->shard, gradients = k->grad_shard;
	if (offloads_states(b)) {
		op.lane = LANE_HOST;
		op.flags |= OP_FUSED;
		weights = k->host;
		gradients = k->host_grad;
	}
	build_op(b, op, (const struct view[]){weights, gradients, view_of(b->moment1[i]), view_of(b->moment2[i]), view_of(b->master[i])});
	offload_updated(b, i);
	if (k->shards > 1 && !b->gathers && !gathers_ahead(b))
		gather_updated(b, i);
}

void build_optimizer(struct builder *b)
{
	if (b->st || b->c->train.optimizer == OPT_NONE)
		return;
	after_reductions(b, offloads_states(b) ? LANE_HOST : LANE_COMPUTE); /* optimizer.step() */
	build_after(b, LANE_HOST, offloads_states(b) ? build_last(b, LANE_COMPUTE) : NONE);
	for (size_t i = 0; i < b->r->buckets.n; i++)
		update_bucket(b, (int32_t)i);
}
