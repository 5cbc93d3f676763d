/* The plan for a given number of ranks. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "step/config/keys.h"
#include "step/inputs.h"

#define ROUNDING 1e-9 /* of a product of doubles that is a whole number */

int64_t config_fixed_ranks(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return p->data == AUTO ? 0 : p->data * p->tensor * p->pipeline * p->context;
}

static enum status resolve_data(struct config *c, int64_t ranks, struct error *e)
{
	struct parallel *p = &c->parallel;
	int64_t model_ranks = p->tensor * p->pipeline * p->context;
	char near[NEAREST_MAX];
	if (p->context > 1 && ranks % (p->tensor * p->pipeline) == 0 && ranks % model_ranks != 0)
		return config_error(c, KEY_parallel_context, e,
			"%" PRId64 " x tensor %" PRId64 " x pipeline %" PRId64 " does not divide %" PRId64
			" ranks (nearest that do: %s)",
			p->context, p->tensor, p->pipeline, ranks,
			nearest_divisors(ranks / p->tensor / p->pipeline, p->context, near));
	if (ranks % p->tensor == 0 && ranks % model_ranks != 0)
		return config_error(c, KEY_parallel_pipeline, e,
			"%" PRId64 " x tensor %" PRId64 " does not divide %" PRId64 " rank%s (nearest that do: %s)",
			p->pipeline, p->tensor, ranks, ranks == 1 ? "" : "s",
			nearest_divisors(ranks / p->tensor, p->pipeline, near));
	if (ranks % model_ranks != 0)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " does not divide %" PRId64 " rank%s (nearest that do: %s)", p->tensor, ranks,
			ranks == 1 ? "" : "s", nearest_divisors(ranks, p->tensor, near));
	int64_t data = ranks / model_ranks;
	if (p->data != AUTO && p->data != data) {
		char others[64] = "";
		size_t n = 0;
		if (p->pipeline > 1)
			n += (size_t)snprintf(others, sizeof others, " x pipeline %" PRId64, p->pipeline);
		if (p->context > 1)
			snprintf(others + n, sizeof others - n, " x context %" PRId64, p->context);
		return config_error(c, KEY_parallel_data, e,
			"%" PRId64 " x tensor %" PRId64 "%s is not %" PRId64 " rank%s (accepted: auto, %" PRId64 ")",
			p->data, p->tensor, others, ranks, ranks == 1 ? "" : "s", data);
	}
	if (!strategy_has(p->strategy, STRATEGY_REDUCES) && data != 1)
		return config_error(c, KEY_parallel_strategy, e,
			"%s trains one replica, and %" PRId64 " ranks make %" PRId64 " (nearest: ddp)",
			strategy_name(p->strategy), ranks, data);
	p->data = data;
	return ST_OK;
}

/* Gradients are summed over data and context as over one dimension: nothing that cuts ranks stands between them. */
static enum status check_order(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t size[DIM_COUNT] =
		{[DIM_TP] = p->tensor, [DIM_CP] = p->context, [DIM_EP] = 1, [DIM_DP] = p->data, [DIM_PP] = p->pipeline};
	enum mesh_dim inner = DIM_COUNT; /* the last one before data that cuts */
	for (int i = 0; i < DIM_COUNT && p->order[i] != DIM_DP; i++)
		if (size[p->order[i]] > 1)
			inner = p->order[i];
	if (p->context > 1 && p->data > 1 && inner != DIM_CP)
		return config_error(c, KEY_parallel_order, e,
			"context %" PRId64 " needs cp right before dp (nearest: tp-cp-ep-dp-pp)", p->context);
	return ST_OK;
}

/* Returns the GPUs of a node over those of one model replica, if that is known and possible, as PyTorch's HYBRID_SHARD,
 * or more where an expert group needs more; else one group of all. */
static int64_t default_shard(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	int64_t ranks = c->cluster.gpus_per_node > 0 ? c->cluster.gpus_per_node : c->node_ranks,
		node = ranks / (p->tensor * p->context);
	return node > 1 && p->data % node == 0 ? config_expert_shard(c, node) : p->data;
}

/* Sets shard from the number of groups. */
static enum status resolve_replicate(struct config *c, struct error *e)
{
	struct parallel *p = &c->parallel;
	char near[NEAREST_MAX];
	if (p->replicate == AUTO)
		return ST_OK;
	if (p->data % p->replicate != 0)
		return config_error(c, KEY_parallel_replicate, e,
			"%" PRId64 " does not divide the %" PRId64 " replica%s (nearest that do: %s)", p->replicate,
			p->data, p->data == 1 ? "" : "s", nearest_divisors(p->data, p->replicate, near));
	const int64_t shard = p->data / p->replicate;
	if (p->shard != AUTO && p->shard != shard)
		return config_error(c, KEY_parallel_replicate, e,
			"%" PRId64 " contradicts shard %" PRId64 " of %" PRId64 " replicas (nearest: %" PRId64 ")",
			p->replicate, p->shard, p->data, p->data / p->shard > 0 ? p->data / p->shard : 1);
	if (shard == 1 && p->data > 1 && p->context == 1) {
		int64_t nearest = p->data / 2;
		while (p->data % nearest != 0)
			nearest--;
		return config_error(c, KEY_parallel_replicate, e,
			"%" PRId64 " leaves one replica a group, which cuts nothing (nearest: %" PRId64
			", or strategy ddp)",
			p->replicate, nearest);
	}
	p->shard = shard;
	p->replicate = AUTO;
	return ST_OK;
}

static enum status resolve_shard(struct config *c, struct error *e)
{
	struct parallel *p = &c->parallel;
	char near[NEAREST_MAX];
	if (!strategy_has(p->strategy, STRATEGY_GROUPS)) {
		p->shard = p->shard == AUTO ? p->data : p->shard;
		return ST_OK;
	}
	enum status st = resolve_replicate(c, e);
	if (st)
		return st;
	if (p->shard == AUTO)
		p->shard = strategy_has(p->strategy, STRATEGY_REPLICAS) ? default_shard(c) : p->data;
	if (p->data % p->shard != 0)
		return config_error(c, KEY_parallel_shard, e,
			"%" PRId64 " does not divide the %" PRId64 " replica%s (nearest that do: %s)", p->shard,
			p->data, p->data == 1 ? "" : "s", nearest_divisors(p->data, p->shard, near));
	if (p->shard == 1 && p->data > 1 && p->context == 1) /* context ranks share the cut */
		return config_error(c, KEY_parallel_shard, e,
			"1 cuts nothing: %s needs groups of 2 or more (nearest: 2, or strategy ddp)",
			strategy_name(p->strategy));
	return ST_OK;
}

/* Checks which keys go together with offloading. */
static enum status check_offload(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	const struct parallel *p = &c->parallel;
	const bool states = t->offload == OFF_OPTIMIZER || t->offload == OFF_OPTIMIZER_PARAMS;
	if (t->offload == OFF_NONE)
		return ST_OK;
	if (p->pipeline > 1)
		return config_error_key(c, KEY_train_offload, e, "not modelled yet with pipeline (accepted: none)");
	if (states && !optimizer_updates(t->optimizer))
		return config_error_key(c, KEY_train_offload, e,
			"not used without an optimizer (accepted: none, activations)");
	if (states && optimizer_needs_tensors(t->optimizer))
		return config_error_key(c, KEY_train_offload, e,
			"not modelled yet with %s (accepted: none, activations)", optimizer_name(t->optimizer));
	if (states && t->optimizer_bits == 16)
		return config_error(c, KEY_train_optimizer_bits, e,
			"%" PRId64 " is not modelled yet with an optimizer that is offloaded (accepted: 32, 8)",
			t->optimizer_bits);
	if (states && t->cuda_graph)
		return config_error_key(c, KEY_train_offload, e,
			"a graph holds no work of the host: cuda_graph must be false (accepted: none, activations)");
	char names[STRATEGY_NAMES];
	if (t->offload == OFF_OPTIMIZER_PARAMS && !strategy_has(p->strategy, STRATEGY_CUTS_WEIGHTS))
		return config_error(c, KEY_parallel_strategy, e,
			"%s keeps whole weights on the device, and offload optimizer+params brings in a rank's "
			"part of them (accepted: %s)",
			strategy_name(p->strategy), strategy_names(STRATEGY_CUTS_WEIGHTS, 0, names));
	return ST_OK;
}

/* Checks what an update in the backward pass goes with: whole gradients of one micro-batch, or FSDP's parts of them. */
static enum status check_in_backward(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	const struct parallel *p = &c->parallel;
	const enum key_id id = KEY_train_optimizer_in_backward;
	if (!t->optimizer_in_backward)
		return ST_OK;
	if (!optimizer_updates(t->optimizer))
		return config_error_key(c, id, e, "not used without an optimizer");
	if (optimizer_needs_tensors(t->optimizer))
		return config_error_key(c, id, e, "not modelled yet with %s (nearest: adamw)",
			optimizer_name(t->optimizer));
	if (p->strategy != STRAT_NONE && !strategy_has(p->strategy, STRATEGY_CUTS_WEIGHTS))
		return config_error_key(c, id, e, "not modelled yet with %s (accepted: none, fsdp, hsdp)",
			strategy_name(p->strategy));
	if (p->tensor > 1 || p->pipeline > 1)
		return config_error_key(c, id, e, "not modelled yet with tensor or pipeline ranks");
	if (t->offload == OFF_OPTIMIZER || t->offload == OFF_OPTIMIZER_PARAMS)
		return config_error_key(c, id, e, "not modelled yet with an optimizer that is offloaded");
	if (c->micro_batches > 1)
		return config_error_key(c, id, e, "gradients of %" PRId64 " micro-batches are summed before an update",
			c->micro_batches);
	return ST_OK;
}

/* The global batch from the key that was given. Two may agree: a resolved config that is read again has both. */
static enum status resolve_global_batch(struct config *c, int64_t ranks, struct error *e)
{
	struct train *t = &c->train;
	const double exact = t->batch_per_gpu * (double)ranks;
	const int64_t given = t->global_batch;
	t->global_batch = config_global_batch(c, ranks);
	if (t->global_batch != given && config_is_given(c, KEY_train_global_batch))
		return config_error(c, config_batch_key(c), e, "contradicts global_batch: give one of them");
	if (t->global_batch > CONFIG_MAX_BATCH)
		return config_error(c, config_batch_key(c), e, "a step of %" PRId64 " sequences (at most %d)",
			t->global_batch, CONFIG_MAX_BATCH);
	if (t->tokens_per_step > 0 && t->global_batch < 1)
		return config_error(c, KEY_train_tokens_per_step, e,
			"less than a sequence of %" PRId64 " tokens (nearest: %" PRId64 ")", c->model.seq_len,
			c->model.seq_len);
	if (t->batch_per_gpu > 0 && fabs(exact - (double)t->global_batch) > ROUNDING * exact)
		return config_error(c, KEY_train_batch_per_gpu, e,
			"%.12g x %" PRId64 " rank%s is %.6g sequences, and a step has whole ones (nearest: %.12g)",
			t->batch_per_gpu, ranks, ranks == 1 ? "" : "s", exact,
			fmax((double)t->global_batch, 1) / (double)ranks);
	return ST_OK;
}

static enum status resolve_batch(struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	const enum key_id id = config_batch_key(c);
	/* Messages count in what the key counts. */
	const bool whole = id == KEY_train_global_batch, tokens = id == KEY_train_tokens_per_step;
	const char *of = whole ? "" : "a batch of ", *what = whole ? "" : tokens ? " tokens" : " sequences";
	const int64_t each = tokens ? c->model.seq_len : 1, batch = t->global_batch * each;
	int64_t replicas = c->parallel.data, unit = t->micro_batch * replicas;
	char near[NEAREST_MAX];
	if (t->global_batch % unit != 0)
		return config_error(c, id, e,
			"%s%" PRId64 "%s does not split into micro-batches of %" PRId64 " on %" PRId64
			" replica%s (nearest that do: %s)",
			of, batch, what, t->micro_batch, replicas, replicas == 1 ? "" : "s",
			nearest_multiples(unit * each, batch, near));
	c->micro_batches = t->global_batch / unit;
	if (schedule_traits[c->parallel.schedule].grouped && c->parallel.pipeline > 1 &&
		c->micro_batches % c->parallel.pipeline != 0)
		return config_error(c, id, e,
			"%s%" PRId64 "%s makes %" PRId64
			" micro-batches a replica, and schedule %s needs a multiple of pipeline %" PRId64
			" (nearest that do: %s)",
			of, batch, what, c->micro_batches, schedule_traits[c->parallel.schedule].name,
			c->parallel.pipeline, nearest_multiples(unit * each * c->parallel.pipeline, batch, near));
	if (c->micro_batches > MICRO_BATCHES_MAX)
		return config_error(c, id, e,
			"%s%" PRId64 "%s makes %" PRId64
			" micro-batches a rank, more than %d: use a larger micro_batch or more replicas",
			of, batch, what, c->micro_batches, MICRO_BATCHES_MAX);
	return ST_OK;
}

/* Sets the bucket of a stack whose buckets grow with the ranks that reduce them, unless the user gave a size. */
static void resolve_bucket(struct config *c)
{
	struct parallel *p = &c->parallel;
	if (c->stack.bucket_per_rank_B <= 0 || config_is_given(c, KEY_parallel_bucket_mb))
		return;
	p->bucket_B = fmax(c->stack.bucket_B, c->stack.bucket_per_rank_B * (double)p->data);
	if (c->stack.half_gradients && c->train.grad_dtype == DT_FP16)
		p->bucket_B /= 2; /* as many gradients */
	if (!config_is_given(c, KEY_parallel_first_bucket_mb))
		p->first_bucket_B = p->bucket_B;
}

/* Returns whether the blocks' matrices may be gathered in fp8 where the config leaves it to the stack. */
static bool narrow_gather_fits(const struct config *c)
{
	return !dtype_is_narrow(c->train.param_dtype) && strategy_has(c->parallel.strategy, STRATEGY_CUTS_WEIGHTS) &&
	       config_may_be_narrow(c);
}

/* Returns whether operators run under torch.autocast: FSDP casts what it gathers, and 16-bit weights need none. */
static bool autocasts(const struct config *c)
{
	return !c->train.fused && c->train.param_dtype == DT_FP32 && dtype_bytes(dtype_stored(c->train.dtype)) < 4.0 &&
	       (!strategy_has(c->parallel.strategy, STRATEGY_CUTS_WEIGHTS) || c->parallel.gather_dtype == DT_FP32);
}

/* Returns how many ranks of a stage hold the same part of an expert. */
static int64_t expert_replicas(const struct parallel *p)
{
	return p->tensor * p->context * p->data / (p->expert * p->expert_tensor);
}

/* Returns how often DDP copies a gradient: into its bucket, and back, unless it becomes a part of the bucket then
 * (gradient_as_bucket_view; zero_grad has freed it, so that it comes from elsewhere each time). */
static double bucket_copies(const struct parallel *p)
{
	return p->gradient_as_bucket_view && !strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS) ? 1 : 2;
}

/* Returns how often PyTorch's kernels read and write a tensor beside its gathers and reductions, in each micro-batch on
 * average. DDP divides a gradient into its bucket, and copies the sum back (torch/csrc/distributed/c10d/reducer.cpp:
 * mark_variable_ready_dense, copy_bucket_to_grad); so with ZeroRedundancyOptimizer (zero1). FSDP2 copies each weight
 * out of what it gathered (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: foreach_all_gather_copy_out); its
 * copy of gradients into what it scatters is the cast to reduce_dtype. FSDP1 gathers in place; it concatenates a unit's
 * gradients, because the weights are pieces of one tensor, and divides them (_flat_param.py: _get_unflat_views;
 * _runtime_utils.py: _div_if_needed). That is as much as two gathers. Frozen weights' copies are left out, and those of
 * weights that a single rank holds: nothing is gathered or reduced. DDP's are a kernel for each gradient and copy,
 * which C++ launches; FSDP's are one for all tensors of a unit. Before a step's first forward pass DDP also broadcasts
 * buffers, and copies each out (broadcast_buffers; torch/csrc/distributed/c10d/comm.cpp, BroadcastWork::finish). A
 * compiled model's launches are left out: no such run is known whose host thread sets the pace. */
static double flat_passes(const struct config *c, int64_t replicas)
{
	const struct parallel *p = &c->parallel;
	if (replicas <= 1 || !strategy_has(p->strategy, STRATEGY_REDUCES))
		return 0;
	if (strategy_has(p->strategy, STRATEGY_CUTS_WEIGHTS))
		return p->reshard_after_forward ? 2 : 1;
	return bucket_copies(p) / (strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS) ? 1 : (double)c->micro_batches);
}

/* A stack that copies gradients reads and writes each three times on the way to its sum: into the bucket, to divide it
 * by the ranks, and to flatten what goes on the wire. Of this rank's part ZeRO-1 and 2 write the bucket, the partition,
 * and the sum over micro-batches, which reads two arrays; ZeRO-3 writes that sum alone. The host thread issues one
 * kernel for each parameter. It issues two more for those of its part under ZeRO-1 and 2, and one more for each under
 * ZeRO-3, where every parameter has a part here. (DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py:
 * reduce_independent_p_g_buckets_and_remove_grads, average_tensor, allreduce_and_copy_with_multiple_ranks,
 * copy_grads_in_partition, independent_gradient_partition_epilogue; stage3.py: __add_grad_to_ipg_bucket,
 * partition_grads; deepspeed/runtime/comm/coalesced_collectives.py: reduce_scatter_coalesced.) */
static void resolve_gradient_copies(struct config *c)
{
	const struct parallel *p = &c->parallel;
	const enum strategy s = p->strategy;
	struct stack *k = &c->stack;
	k->gradient_passes = k->expert_passes = k->gradient_calls = 0;
	k->gradient_kernels = k->buffer_kernels = 0;
	const bool every = strategy_has(s, STRATEGY_CUTS_WEIGHTS),
		   launches_each = !every && !strategy_has(s, STRATEGY_CUTS_GRADIENTS) && !c->train.fused;
	if (k->copies_flat) {
		k->gradient_passes = flat_passes(c, p->data * p->context);
		k->expert_passes = flat_passes(c, expert_replicas(p));
		k->gradient_kernels = launches_each ? k->gradient_passes : 0;
		k->buffer_kernels = k->gradient_kernels / bucket_copies(p);
	}
	if (!k->copies_gradients || !strategy_has(s, STRATEGY_CUTS_STATES))
		return;
	const double part = 1 / (double)p->data, parts = every ? 1.5 : 3.5,
		     share = strategy_has(s, STRATEGY_CUTS_GRADIENTS) ? 1 : 1 / (double)c->micro_batches;
	k->gradient_passes = share * (3 + parts * part);
	k->expert_passes = share * (3 + parts / (double)expert_replicas(p));
	k->gradient_calls = share * (1 + (every ? 1 : 2 * part));
}

/* stepsim's own executor has the program's buffers, from the first step to the last, and a GPU's context. It adds
 * gradients up in the buckets, unless the config asks for copies of them, which are predicted. */
static void resolve_executed(struct config *c)
{
	const struct stack_memory m = c->stack.memory;
	if (!c->executed)
		return;
	c->stack.memory = (struct stack_memory){.context_B = m.executor_B,
		.executor_B = m.executor_B,
		.communicator_B = m.communicator_B};
	c->stack.frees_gradients = c->stack.shard_inside = c->stack.copies_flat = false;
	if (!config_is_given(c, KEY_parallel_gradient_as_bucket_view))
		c->parallel.gradient_as_bucket_view = true;
}

static void resolve_autos(struct config *c)
{
	struct parallel *p = &c->parallel;
	resolve_executed(c);
	if (c->train.recompute_early_stop != TRI_AUTO)
		c->stack.recompute_last_gemm = c->train.recompute_early_stop == TRI_FALSE;
	c->stack.sums_fused = c->train.fused_gradient_sums == TRI_TRUE;
	c->stack.sums_apart = c->train.fused_gradient_sums == TRI_FALSE;
	if (p->gather_overlap != TRI_AUTO)
		c->stack.gather_ahead = p->gather_overlap == TRI_TRUE;
	if (c->train.expert_gates != GATES_AUTO)
		c->stack.gates_activation = c->train.expert_gates == GATES_ACTIVATION;
	if (c->train.expert_sums != SUMS_AUTO)
		c->stack.atomic_sums = c->train.expert_sums == SUMS_ATOMIC;
	if (c->train.expert_loop) /* a product for each expert, of cuBLAS */
		c->stack.torch_grouped = false;
	c->stack.biased_cols = 0;
	if (c->stack.biases_apart && c->model.expert_bias && !c->train.cuda_graph && !c->train.fused_experts)
		c->stack.biased_cols = (double)(c->model.moe_latent > 0 ? c->model.moe_latent : c->model.hidden);
	c->stack.mask_rows = c->stack.expert_masks && c->model.capacity_factor > 0
	                             ? (double)(c->model.seq_len / p->context)
	                             : 0;
	if (c->train.memory_format != FORMAT_AUTO)
		c->stack.channels_first = c->train.memory_format == FORMAT_CHANNELS_FIRST;
	if (c->train.attention_kernel != KERNEL_AUTO) {
		c->stack.attention_kernel = c->train.attention_kernel;
		c->stack.cudnn_on_blackwell = false;
	}
	if (c->train.recompute == REC_NONE)
		c->train.recompute_layers = 0;
	else if (c->train.recompute_layers == AUTO)
		c->train.recompute_layers = c->model.layers;
	if (c->train.offload != OFF_ACTIVATIONS)
		c->train.offload_layers = 0;
	else if (c->train.offload_layers == AUTO)
		c->train.offload_layers = c->model.layers;
	resolve_bucket(c);
	c->stack.fp8_recipe = c->train.fp8_recipe;
	c->stack.attention8 = c->train.attention_dtype == DT_FP8;
	c->stack.attention_block = (double)c->train.attention_block;
	c->stack.attention_split = c->train.attention_split;
	c->stack.expert_tile = (double)c->train.expert_tile;
	c->stack.repeated_data = c->data.repeated_token;
	if (c->stack.gathers_narrow && narrow_gather_fits(c))
		p->gather_dtype = DT_FP8;
	c->stack.autocast = autocasts(c);
	const bool counted = c->stack.operators.counted && !c->train.fused;
	c->stack.composed_gelu = c->model.composed_gelu && counted;
	c->stack.clamped_gate = c->model.expert_bias && counted &&
	                        !(c->train.fused_kernels != AUTO && c->train.fused_kernels & FUSE_GATE);
	c->stack.complex_rotary = c->model.complex_rotary && counted;
	c->stack.fused_kernels = counted && c->train.fused_kernels != AUTO ? c->train.fused_kernels : 0;
	c->stack.softmax_apart = c->stack.softmax_masked_only && c->model.input == INPUT_PATCHES && !c->model.causal;
	resolve_gradient_copies(c);
	/* PyTorch: a first bucket of 1 MiB only where bucket_cap_mb is left alone (torch/nn/parallel/distributed.py).
	 */
	if (p->first_bucket_B < 0)
		p->first_bucket_B = c->origin[KEY_parallel_bucket_mb].kind == ORIGIN_DEFAULT ? MIB_B : p->bucket_B;
	if (p->tensor == 1)
		p->sequence_parallel = false; /* as Megatron-LM does: nothing is cut */
	if (!p->sequence_parallel)
		p->tensor_overlap = false; /* a stack's default, or nothing is cut; check_tensor refuses it where a user
		                              asks for it */
	/* NVIDIA-NeMo/Megatron-Bridge@0013c9a8ed4d, llama31_llm_pretrain.py: tp_comm_overlap is False in nvfp4 */
	if (c->train.dtype == DT_NVFP4 && !config_is_given(c, KEY_parallel_tensor_overlap))
		p->tensor_overlap = false;
	if (c->data.bytes == 0)
		c->data.bytes = inputs_B(c, c->train.micro_batch);
}

enum status config_resolve(struct config *c, int64_t ranks, struct error *e)
{
	if (ranks < 1)
		return error_set(e, ST_INPUT, "a plan needs at least one rank, not %" PRId64, ranks);
	enum status st;
	config_derive(c);
	if ((st = config_check(c, e)))
		return st;
	/* Such a preset loads, so that it can be listed and counted. */
	if (!c->model.lm_head && c->model.classes + c->model.output_channels == 0)
		return config_error_key(c, KEY_model_lm_head, e,
			"the loss needs a head: lm_head true, or classes or output_channels of 1 or more");
	if ((st = resolve_data(c, ranks, e)) || (st = check_order(c, e)) || (st = resolve_shard(c, e)) ||
		(st = config_check_experts(c, e)) || (st = check_offload(c, e)) ||
		(st = resolve_global_batch(c, ranks, e)) || (st = resolve_batch(c, e)) ||
		(st = check_in_backward(c, e)) || (st = slow_ranks_check(c, ranks, e)))
		return st;
	resolve_autos(c);
	c->ranks = ranks;
	return ST_OK;
}
