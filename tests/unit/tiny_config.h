/* A resolved config of a tiny GPT on two replicas, for tests that set what they are about. */
#ifndef STEPSIM_TESTS_TINY_CONFIG_H
#define STEPSIM_TESTS_TINY_CONFIG_H

#include <string.h>

#include "step/config/config.h"

static inline struct config tiny_config(void)
{
	struct config c;
	memset(&c, 0, sizeof c);
	c.model = (struct model){.layers = 1,
		.hidden = 64,
		.heads = 8,
		.kv_heads = 8,
		.head_dim = 8,
		.ffn_hidden = 256,
		.vocab = 96,
		.vocab_padding = 1,
		.seq_len = 32,
		.max_positions = 32,
		.causal = true,
		.bias = true,
		.qkv_bias = true,
		.proj_bias = true,
		.final_norm = true,
		.lm_head = true,
		.tied_embeddings = true};
	c.train = (struct train){.global_batch = 8,
		.micro_batch = 2,
		.dtype = DT_FP32,
		.param_dtype = DT_FP32,
		.grad_dtype = DT_FP32,
		.reduce_dtype = DT_FP32,
		.optimizer = OPT_ADAMW,
		.optimizer_bits = 32,
		.recompute_modules = AUTO,
		.recompute_saves = AUTO,
		.fused = true,
		.optimizer_impl = IMPL_FUSED};
	c.parallel = (struct parallel){.strategy = STRAT_DDP,
		.data = 2,
		.shard = 2,
		.tensor = 1,
		.pipeline = 1,
		.virtual_stages = 1,
		.first_stage_layers = AUTO,
		.last_stage_layers = AUTO,
		.context = 1,
		.expert = 1,
		.expert_tensor = 1,
		.order = {DIM_TP, DIM_CP, DIM_EP, DIM_DP, DIM_PP},
		.bucket_B = 0.05 * 1048576,
		.first_bucket_B = 0.02 * 1048576,
		.gradient_as_bucket_view = true,
		.overlap = true,
		.prefetch = 1,
		.reshard_after_forward = true};
	c.ranks = 2;
	c.micro_batches = 2;
	return c;
}

#endif
