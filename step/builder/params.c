/* Assigns parameters to buckets and says where they are stored.
 *
 * ddp, zero1 and zero2 fill buckets as PyTorch DDP does (torch/csrc/distributed/c10d/reducer.cpp,
 * compute_bucket_assignment_by_size). They go through model.parameters() in reverse order and close a bucket once its
 * size reaches the cap, so no parameter is split. The first bucket has a cap of its own. fsdp and hsdp have a unit for
 * each block, and a root unit with everything else, which is reduced last.
 */
#include "step/builder/build.h"

#include <math.h>
#include <stdlib.h>

static int64_t padded_to(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* A tied table on a last stage that does not embed: there it is the head's weight, the last of the model's parameters.
 */
static bool heads_table(const struct builder *b, const struct param *p)
{
	return stages_share(b->c, p) && b->has_head && !b->has_embedding;
}

static void list_param(struct builder *b, const struct param *p)
{
	struct role_param rp = {*p, NONE, 0, mesh_param_elements(&b->p->mesh, p)};
	b->param_index[(p->layer + 1) * PARAM_KIND_COUNT + p->kind] = (int32_t)b->r->params.n;
	if (!b->st && !vec_push(&b->r->params, rp))
		build_nomem(b, "the parameter list");
}

/* Finds the stage's layers once for all parameters, because finding where a part begins takes a walk through them. */
static void find_layers(struct builder *b)
{
	b->layer_chunk = malloc((size_t)(model_blocks(b->m) + 1) * sizeof *b->layer_chunk);
	if (!b->layer_chunk) {
		build_nomem(b, "the parameter index");
		return;
	}
	for (int64_t i = 0; i < model_blocks(b->m); i++)
		b->layer_chunk[i] = NONE;
	for (int32_t chunk = 0; chunk < (int32_t)b->chunks; chunk++) {
		const struct stage_part part = stage_part(b->c, b->stage, chunk);
		for (int64_t i = 0; i < part.layers; i++)
			b->layer_chunk[part.first + i] = chunk;
		for (int64_t i = b->m->layers; i < model_blocks(b->m) && part.head; i++)
			b->layer_chunk[i] = chunk;
	}
}

static bool has_param(const struct builder *b, const struct param *p)
{
	return p->layer >= 0 ? b->layer_chunk[p->layer] != NONE : stage_has_param(b->c, b->stage, p);
}

static void list_params(struct builder *b)
{
	int64_t n = model_param_count(b->m), slots = (model_blocks(b->m) + 1) * PARAM_KIND_COUNT;
	struct param *all = malloc((size_t)n * sizeof *all);
	find_layers(b);
	b->param_index = malloc((size_t)slots * sizeof *b->param_index);
	if (!b->param_index || !all)
		build_nomem(b, "the parameter index");
	if (b->st) {
		free(all);
		return;
	}
	for (int64_t i = 0; i < slots; i++)
		b->param_index[i] = NONE;
	model_params(b->m, b->tensor, all);
	for (int64_t i = 0; i < n; i++)
		if (has_param(b, &all[i]) && !heads_table(b, &all[i]))
			list_param(b, &all[i]);
	for (int64_t i = 0; i < n && b->has_head && !b->has_embedding; i++)
		if (heads_table(b, &all[i]))
			list_param(b, &all[i]);
	free(all);
}

static bool trains(const struct builder *b, const struct role_param *rp) { return model_trains(b->m, rp->param.kind); }

static enum dtype stored_as(const struct builder *b, const struct role_param *rp)
{
	const enum dtype base = b->c->train.lora_base;
	const bool fewer = dtype_is_quantized(base) && !trains(b, rp) && param_is_product(rp->param.kind);
	return fewer ? base : b->weight;
}

/* Appends a bucket for parameters such as this one. */
static void new_bucket(struct builder *b, enum mesh_dim along, const struct role_param *rp)
{
	struct bucket k = {.along = along, .trained = trains(b, rp), .stored = stored_as(b, rp)};
	k.weights = k.shard = k.gradients = k.grad_shard = k.host = k.host_grad = view_of(NONE);
	if (!vec_push(&b->r->buckets, k))
		build_nomem(b, "the buckets");
}

/* Returns the chunk of the stage that uses a parameter. Those outside the blocks belong to the chunk with the embedding
 * or the head: the first chunk of the first stage, or the last of the last. */
static int64_t chunk_of(const struct builder *b, const struct param *p)
{
	return p->layer >= 0 ? b->layer_chunk[p->layer] : b->has_embedding ? 0 : b->chunks - 1;
}

/* True where no bucket closes before its chunk ends (struct stack: buckets_lead_only). ZeRO-2 frees whole gradients
 * bucket by bucket, so that it has some in any stack (Paddle, group_sharded_stage2.py: buffer_max_size). */
static bool one_bucket(const struct builder *b, int64_t chunk)
{
	return b->c->stack.buckets_lead_only && !b->shards_gradients &&
	       (!b->c->parallel.overlap || !b->has_embedding || chunk > 0);
}

static void assign_by_size(struct builder *b)
{
	const struct parallel *par = &b->c->parallel;
	struct {
		double cap_B, size_B;
		int32_t bucket;
		int64_t chunk;
	} open[] = {{par->first_bucket_B, 0.0, NONE, NONE}, {par->bucket_B, 0.0, NONE, NONE},
		{INFINITY, 0.0, NONE, NONE}, {INFINITY, 0.0, NONE, NONE}}; /* experts, what is frozen, and what of
	                                                                      that has fewer bits fill buckets of
	                                                                      their own */
	for (size_t i = b->r->params.n; i-- > 0 && !b->st;) {
		struct role_param *rp = &b->r->params.at[i];
		/* A bucket to itself, so that both stages cut the table alike (Megatron-LM, param_and_grad_buffer.py:
		 * shared embedding). */
		bool alone = stages_share(b->c, &rp->param);
		enum mesh_dim along = param_is_expert(rp->param.kind) ? b->p->mesh.experts : b->p->mesh.params;
		const bool trained = trains(b, rp);
		int own = dtype_is_quantized(stored_as(b, rp)) ? 3 : !trained ? 2 : along != b->p->mesh.params;
		const int64_t chunk = chunk_of(b, &rp->param);
		/* Gradients that are reduced with each micro-batch wait for those of no other chunk; Megatron wraps
		 * each chunk by itself. */
		bool other = (b->shards_gradients || b->c->stack.buckets_lead_only) && chunk != open[own].chunk;
		if (open[own].size_B > 0.0 && other && trained)
			open[own].cap_B = par->bucket_B;
		if (open[own].size_B == 0.0 || alone || other) {
			new_bucket(b, along, rp);
			open[own].bucket = (int32_t)b->r->buckets.n - 1;
			open[own].size_B = 0.0;
			open[own].chunk = chunk;
		}
		rp->bucket = open[own].bucket;
		open[own].size_B += (double)rp->elements * dtype_bytes(b->grad);
		if ((open[own].size_B >= open[own].cap_B && !one_bucket(b, chunk)) || alone) {
			open[own].size_B = 0.0;
			open[own].cap_B = trained ? par->bucket_B : INFINITY;
		}
	}
}

/* Returns the bucket of a parameter in the unit that begins with bucket `first`: one of its sort, or a new one. */
static int32_t unit_bucket(struct builder *b, size_t first, enum mesh_dim along, const struct role_param *rp)
{
	size_t i = first;
	while (i < b->r->buckets.n &&
		(b->r->buckets.at[i].along != along || b->r->buckets.at[i].trained != trains(b, rp) ||
			b->r->buckets.at[i].stored != stored_as(b, rp)))
		i++;
	if (i == b->r->buckets.n)
		new_bucket(b, along, rp);
	return (int32_t)i;
}

/* Gives each matrix of the layer of parameter `last`, which is its last one, a bucket to itself. */
static void assign_matrices(struct builder *b, size_t last)
{
	for (size_t i = last + 1; i-- > 0 && b->r->params.at[i].param.layer == b->r->params.at[last].param.layer;) {
		struct role_param *rp = &b->r->params.at[i];
		if (!param_is_product(rp->param.kind))
			continue;
		new_bucket(b, param_is_expert(rp->param.kind) ? b->p->mesh.experts : b->p->mesh.params, rp);
		rp->bucket = (int32_t)b->r->buckets.n - 1;
	}
}

/* Makes a unit for each block from the last to the first, one for the rest, and one for a table that two stages share.
 * A unit is a bucket, and another for what is frozen. Experts that other ranks share than the rest have one of their
 * own before it, because their gradients are complete first. Or each matrix is a bucket, and one more has the rest. */
static void assign_by_unit(struct builder *b)
{
	const struct mesh *m = &b->p->mesh;
	/* XLA's combiner joins the all-reduces of replicas, whose parts are small. */
	const bool apart = b->c->stack.gathers_matrices && m->size[DIM_REPLICA] == 1;
	int64_t open = NONE; /* layer of the latest unit */
	size_t first = 0;    /* its first bucket */
	for (size_t i = b->r->params.n; i-- > 0 && !b->st;) {
		struct role_param *rp = &b->r->params.at[i];
		if (rp->param.layer < 0)
			continue;
		if (rp->param.layer != open) {
			open = rp->param.layer;
			if (apart)
				assign_matrices(b, i);
			first = b->r->buckets.n;
			if (!apart && m->experts != m->params && model_has_experts(b->m, open))
				new_bucket(b, m->experts, param_of(b, (int32_t)open, PARAM_EXPERT_FC1_W));
		}
		const enum mesh_dim along = param_is_expert(rp->param.kind) ? m->experts : m->params;
		if (!apart || !param_is_product(rp->param.kind))
			rp->bucket = unit_bucket(b, first, along, rp);
	}
	b->n_units = (int32_t)b->r->buckets.n;
	for (int shared = 0; shared < 2; shared++) {
		first = b->r->buckets.n;
		for (size_t i = 0; i < b->r->params.n && !b->st; i++) {
			struct role_param *rp = &b->r->params.at[i];
			if (rp->param.layer < 0 && stages_share(b->c, &rp->param) == shared)
				rp->bucket = unit_bucket(b, first, m->params, rp);
		}
	}
}

/* True for a matrix that only products in fp8 read. */
static bool is_narrow(const struct builder *b, const struct role_param *rp)
{
	const struct param *p = &rp->param;
	return (b->narrow_stored || b->narrow_gathered) && p->layer >= 0 && p->split > TP_PARTIAL &&
	       param_is_product(p->kind);
}

/* The order of parameters in a bucket: those in fp8; the matrices of muon; those that tensor parallelism cuts, those of
 * which each rank has a part of the gradient, those that it replicates. Parameters too small for moments in 8 bits
 * stand in the middle, next to each other: those of the second sort are norms of heads, all small. */
enum place { NARROW, MATRICES, CUT, CUT_SMALL, PARTIAL, REPLICATED_SMALL, REPLICATED, PLACES };

static enum place place_of(const struct builder *b, const struct role_param *rp)
{
	if (is_narrow(b, rp))
		return NARROW;
	if (build_steps_matrix(b, &rp->param))
		return MATRICES;
	bool small = b->c->train.optimizer_bits == 8 && rp->elements < OPTIMIZER_LEAST_8;
	switch (rp->param.split) {
	case TP_REPLICATED: return small ? REPLICATED_SMALL : REPLICATED;
	case TP_PARTIAL: return PARTIAL;
	case TP_ROWS:
	case TP_COLS:
	case TP_QKV:
	case TP_HALVES: break;
	}
	return small ? CUT_SMALL : CUT;
}

/* Sets the offsets inside the buckets: by place, and within a place in the order of assignment. */
static void place_params(struct builder *b)
{
	enum place *place_at = malloc((b->r->params.n + 1) * sizeof *place_at); /* by parameter */
	if (!place_at) {
		build_nomem(b, "the buckets");
		return;
	}
	for (size_t i = 0; i < b->r->params.n; i++)
		place_at[i] = place_of(b, &b->r->params.at[i]);
	for (enum place place = 0; place < PLACES; place++) {
		for (size_t i = b->r->params.n; i-- > 0;) {
			struct role_param *rp = &b->r->params.at[i];
			if (place_at[i] != place)
				continue;
			struct bucket *k = &b->r->buckets.at[rp->bucket];
			rp->offset = k->elements;
			k->elements += rp->elements;
			k->products += param_is_product(rp->param.kind);
			if (place < PARTIAL)
				b->buckets[rp->bucket].partial = k->elements;
			if (place <= PARTIAL)
				b->buckets[rp->bucket].replicated = k->elements;
		}
		for (size_t i = 0; i < b->r->buckets.n; i++) {
			struct bucket *k = &b->r->buckets.at[i];
			k->narrow = place == NARROW ? k->elements : k->narrow;
			k->narrow_dtype = b->c->train.dtype;
			k->matrices = place == MATRICES ? k->elements : k->matrices;
			k->wide_from = place == CUT ? k->elements : k->wide_from;
			k->wide_to = place == REPLICATED_SMALL ? k->elements : k->wide_to;
		}
	}
	free(place_at);
}

/* Bounds the elements whose moments stay in 32 bits. A cut bucket is one flat tensor to bitsandbytes. */
static void store_wide(const struct builder *b, struct bucket *k)
{
	if (k->shards > 1) {
		k->wide_from = 0;
		k->wide_to = bucket_part(k) < OPTIMIZER_LEAST_8 ? (uint64_t)bucket_part(k) : 0;
	}
	if (b->c->train.optimizer_bits != 8 || k->wide_from == k->wide_to)
		k->wide_from = k->wide_to = 0;
}

static enum component state_component(const struct builder *b)
{
	return offloads_states(b) ? COMP_HOST : COMP_OPTIMIZER;
}

/* Makes a buffer for a moment. It counts in words of 4 bytes, also for narrower moments. */
static int32_t build_moment(struct builder *b, const struct bucket *k)
{
	int64_t part = bucket_part(k), words = part;
	if (b->c->train.optimizer_bits == 8)
		words = (int64_t)(states_8_of(part, (int64_t)k->wide_from, (int64_t)k->wide_to).bytes / 4);
	else if (b->c->train.optimizer_bits == 16)
		words = (part + 1) / 2;
	return build_buffer(b, state_component(b), DT_FP32, words, true);
}

int64_t build_tensors_in(const struct builder *b, int32_t bucket)
{
	int64_t n = 0;
	for (size_t i = 0; i < b->r->params.n; i++)
		n += b->r->params.at[i].bucket == bucket;
	return n;
}

static struct view stored(struct builder *b, enum component comp, enum dtype dt, int64_t elements)
{
	return view_of(build_buffer(b, comp, dt, elements, true));
}

static void store_weights(struct builder *b, struct bucket *k)
{
	const bool on_host = b->c->train.offload == OFF_OPTIMIZER_PARAMS;
	int64_t part = bucket_part(k);
	if (b->narrow_stored && k->narrow > 0) {
		const int64_t bytes = bucket_wire_B(k);
		k->shard = stored(b, COMP_WEIGHTS, DT_FP8, b->gathers ? bytes / k->shards : bytes);
		if (b->gathers)
			return;
		k->weights = k->shard;
		k->shard.along = k->along;
		k->shard.stride_B = k->shards > 1 ? (uint64_t)(bytes / k->shards) : 0;
		return;
	}
	if (b->gathers) {
		k->shard = stored(b, on_host ? COMP_HOST : COMP_WEIGHTS, k->stored, part);
		return;
	}
	k->weights = k->shard = stored(b, COMP_WEIGHTS, k->stored, (int64_t)k->padded);
	k->shard.along = k->along;
	if (k->shards > 1)
		k->shard.stride_B = (uint64_t)((double)part * dtype_bytes(k->stored));
}

/* block: of parameters inside the blocks. */
static struct view stored_gradients(struct builder *b, enum component comp, int64_t elements, bool block)
{
	const struct view v = stored(b, comp, b->grad, elements);
	const bool updated = b->c->train.optimizer_in_backward;
	if (b->st || comp != COMP_GRADIENTS || !(gradients_are_freed(b->c) || updated))
		return v;
	struct buffer *buf = &b->r->buffers.at[v.buffer];
	buf->freed = true;
	buf->updated = updated;
	buf->together = block && b->c->stack.scans_blocks && !updated;
	return v;
}

static void store_gradients(struct builder *b, struct bucket *k, bool whole)
{
	const bool block = !b->gathers || k - b->r->buckets.at < b->n_units;
	if (whole)
		k->gradients = k->grad_shard = stored_gradients(b, COMP_GRADIENTS, (int64_t)k->padded, block);
	if (k->shards > 1 || !whole)
		k->grad_shard = stored_gradients(b, offloads_states(b) && !whole ? COMP_HOST : COMP_GRADIENTS,
			bucket_part(k), block);
	if (whole && k->shards > 1 && !b->st)
		b->r->buffers.at[k->grad_shard.buffer].inside = b->c->stack.shard_inside;
}

/* Remainders are the lower halves of master weights, whose upper halves are the weights: the optimizer makes them whole
 * as it reads them (apex/contrib/optimizers/distributed_fused_adam.py, store_param_remainders). */
static void store_master(struct builder *b, const struct bucket *k, struct bucket_state *s)
{
	s->master = build_buffer(b, state_component(b), DT_FP32, bucket_part(k), true);
	if (b->st || !b->c->train.store_param_remainders)
		return;
	b->r->buffers.at[s->master].inside = true;
	build_hold(b, state_component(b), 2.0 * (double)bucket_part(k), "master weights' lower halves");
}

static void store_optimizer(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	const struct optimizer_traits *o = &optimizer_traits[b->c->train.optimizer];
	struct bucket_state *s = &b->buckets[i];
	if (o->moments > 0)
		s->moment1 = build_moment(b, k);
	if (o->moments > 1)
		s->moment2 = build_moment(b, k);
	if (o->orthogonal && build_other_elements(k) > 0) /* those of adamw */
		s->moment2 = build_buffer(b, state_component(b), DT_FP32, build_other_elements(k), true);
	if (optimizer_updates(b->c->train.optimizer) && b->c->train.master_weights && dtype_bytes(b->weight) < 4.0)
		store_master(b, k, s);
	if (o->factored)
		store_factors(b, i);
	if (o->trust_ratio) /* int64, as two words each */
		s->bounds = build_buffer(b, COMP_OPTIMIZER, DT_INT32, 2 * (build_tensors_in(b, i) + 1), true);
}

static void store_bucket(struct builder *b, int32_t i)
{
	struct bucket *k = &b->r->buckets.at[i];
	const enum strategy s = b->c->parallel.strategy;
	const bool whole = !b->c->parallel.shard_experts && k->along == b->p->mesh.experts &&
	                   b->p->mesh.experts != b->p->mesh.params;
	k->shards = strategy_has(s, STRATEGY_CUTS_STATES) && (k->trained || b->gathers) && !whole
	                    ? b->p->mesh.size[k->along]
	                    : 1;
	const bool whole_gradients = (k->shards == 1 && !b->gathers) || !parallel_reduces_each(&b->c->parallel);
	k->padded = (uint64_t)padded_to((int64_t)k->elements, k->shards);
	store_wide(b, k);
	store_weights(b, k);
	b->buckets[i] = (struct bucket_state){k->weights.buffer, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
		b->buckets[i].partial, b->buckets[i].replicated, false};
	if (!k->trained)
		return;
	store_gradients(b, k, whole_gradients);
	b->buckets[i].grads = k->gradients.buffer;
	if (offloads_states(b)) {
		int64_t part = bucket_part(k);
		k->host = b->c->train.offload == OFF_OPTIMIZER_PARAMS ? k->shard
		                                                      : stored(b, COMP_HOST, b->weight, part);
		k->host_grad = whole_gradients ? stored(b, COMP_HOST, b->grad, part) : k->grad_shard;
	}
	store_optimizer(b, i);
}

double build_elements(const struct builder *b)
{
	double sum = 0;
	for (size_t i = 0; i < b->r->buckets.n; i++)
		sum += b->r->buckets.at[i].trained ? (double)b->r->buckets.at[i].padded : 0;
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
	b->buckets = calloc(n, sizeof *b->buckets);
	b->cast_now = calloc(params, sizeof *b->cast_now);
	if (!b->buckets || !b->cast_now) {
		build_nomem(b, "the buckets");
		return;
	}
	place_params(b);
	for (size_t i = 0; i < n && !b->st; i++)
		store_bucket(b, (int32_t)i);
	if (!b->shards_gradients)
		b->gradient_copies = build_hold(b, COMP_GRADIENTS, build_elements(b) * b->c->stack.memory.gradient_B,
			"gradient copies");
	if (parallel_holds_buckets(b->c)) /* c10d/reducer.cpp, initialize_buckets: once, at the first step */
		build_hold(b, COMP_GRADIENTS, build_elements(b) * dtype_bytes(b->grad), "DDP's buckets");
}
