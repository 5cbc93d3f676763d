/* Flags of Megatron-LM, and the models and layers that they describe. */
#include "tests/unit/import_check.h"

static void test_megatron(void)
{
	take("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --num-query-groups 8 --seq-length 4096\n"
	     "--swiglu --bf16 --fp8-format hybrid --fp8-recipe mxfp8 --tensor-model-parallel-size 2\n"
	     "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 --sequence-parallel\n"
	     "--recompute-granularity full --recompute-method block --recompute-num-layers 1\n"
	     "--use-distributed-optimizer --overlap-grad-reduce --micro-batch-size 1 --global-batch-size $GBS\n"
	     "--micro-batch-size 2 --hidden-dropout 0.1 --attention-dropout 0\n",
		"megatron");
	check(KEY_model_layers, "32");
	check(KEY_model_kv_heads, "8");
	check(KEY_model_mlp, "swiglu");
	check(KEY_model_position, "learned");
	check(KEY_model_vocab_padding, "256");
	check(KEY_model_bias, "true");
	check(KEY_train_dtype, "mxfp8");
	check(KEY_train_micro_batch, "2");
	check(KEY_train_recompute, "full");
	check(KEY_train_recompute_layers, "16");
	check(KEY_train_stack, "megatron-core");
	check(KEY_parallel_virtual_stages, "4");
	check(KEY_parallel_schedule, "interleaved");
	check(KEY_parallel_strategy, "zero1");
	check_leaf("bf16", NO_EFFECT, "fp8_recipe decides train.dtype");
	check_leaf("global_batch_size", NOT_MODELLED, "the value is not in this file (--set train.global_batch)");
	check(KEY_model_dropout, "0.1");
	check(KEY_model_attention_dropout, "0");
	import_free(&im);

	take("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --tensor-model-parallel-size 4\n"
	     "--num-experts 8 --expert-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer\n"
	     "--num-distributed-optimizer-instances 2\n",
		"megatron");
	check(KEY_parallel_expert_tensor, "4"); /* the default is the tensor size */
	check(KEY_parallel_strategy, "zero1");
	check(KEY_parallel_replicate, "2");
	import_free(&im);

	take("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --tensor-model-parallel-size 4\n"
	     "--num-experts 8 --expert-tensor-parallel-size 1 --use-megatron-fsdp\n"
	     "--data-parallel-sharding-strategy optim_grads_params --num-distributed-optimizer-instances 2\n",
		"megatron");
	check(KEY_parallel_expert_tensor, "1");
	check(KEY_parallel_strategy, "hsdp");
	check(KEY_parallel_replicate, "2");
	import_free(&im);

	take("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --tensor-model-parallel-size 1\n"
	     "--recompute-granularity selective \\\n --recompute-modules core_attn mlp \\\n --bf16\n"
	     "python pretrain_gpt.py moe\n",
		"megatron");
	check(KEY_train_recompute_modules, "core_attn mlp");
	check(KEY_train_dtype, "bf16");
	import_free(&im);

	take("--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --tensor-model-parallel-size 1 --fp16\n"
	     "--accumulate-allreduce-grads-in-fp32\n",
		"megatron");
	check(KEY_train_grad_dtype, "fp32");
	check(KEY_train_reduce_dtype, "fp32");
	import_free(&im);

	/* latent attention: the rotated columns of a head count in head_dim, and its norms are the latents' */
	take("--num-layers 27 --hidden-size 2048 --num-attention-heads 16 --tensor-model-parallel-size 1\n"
	     "--multi-latent-attention --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128\n"
	     "--qk-layernorm --num-query-groups 16 --kv-channels 128 --position-embedding-type rope\n",
		"megatron");
	check(KEY_model_kv_lora_rank, "512");
	check(KEY_model_head_dim, "192");
	check(KEY_model_rope_head_dim, "64");
	check(KEY_model_v_head_dim, "128");
	check(KEY_model_qk_norm, NULL);
	check(KEY_model_kv_heads, NULL);
	import_free(&im);

	/* the names of Alibaba's Pai-Megatron-Patch */
	take("--num-layers 27 --hidden-size 2048 --num-attention-heads 16 --tensor-model-parallel-size 1\n"
	     "--kv-lora-rank 512 --qk-nope-head-dim 128 --qk-rope-head-dim 64 --v-head-dim 128 --num-experts 64\n"
	     "--num-shared-experts 2 --moe-layer-freq ([0]*1+[1]*26)\n",
		"megatron");
	check(KEY_model_head_dim, "192");
	check(KEY_model_shared_experts, "2");
	import_free(&im);

	/* node-limited routing, and its names without a limit */
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-router-num-groups 8\n"
	     "--moe-router-group-topk 4 --moe-router-enable-expert-bias --moe-enable-deepep --mtp-num-layers 1\n",
		"megatron");
	check(KEY_model_expert_groups, "8");
	check(KEY_model_groups_per_token, "4");
	check(KEY_model_router_bias, "true");
	check(KEY_model_mtp_layers, "1");
	check(KEY_parallel_expert_dispatch, "deepep");
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-router-num-groups 1\n"
	     "--moe-router-group-topk 1\n",
		"megatron");
	check(KEY_model_expert_groups, NULL);
	check(KEY_model_groups_per_token, NULL);
	import_free(&im);

	/* newer names of DeepEP, which say nothing beside another dispatcher; no capacity */
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-token-dispatcher-type flex\n"
	     "--moe-flex-dispatcher-backend deepep --moe-expert-capacity-factor -1\n",
		"megatron");
	check(KEY_parallel_expert_dispatch, "deepep");
	check(KEY_model_capacity_factor, NULL);
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-token-dispatcher-type flex\n",
		"megatron");
	check(KEY_parallel_expert_dispatch, "deepep");
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-token-dispatcher-type flex\n"
	     "--moe-flex-dispatcher-backend hybridep\n",
		"megatron");
	check(KEY_parallel_expert_dispatch, "once_a_host");
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-token-dispatcher-type alltoall\n"
	     "--moe-flex-dispatcher-backend deepep --moe-expert-capacity-factor 1.5\n",
		"megatron");
	check(KEY_parallel_expert_dispatch, NULL);
	check(KEY_model_capacity_factor, "1.5");
	import_free(&im);

	/* Megatron's default; its old flash attention has a recomputation of its own */
	take("--num-layers 32 --tensor-model-parallel-size 1 --recompute-granularity selective\n", "megatron");
	check(KEY_train_recompute_modules, "core_attn");
	import_free(&im);
	take("--num-layers 32 --tensor-model-parallel-size 1 --recompute-activations --use-flash-attn\n", "megatron");
	check(KEY_train_recompute, "selective");
	check(KEY_train_recompute_modules, NULL);
	import_free(&im);

	take("language_model:\n  num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4\n  kv_channels: null\n"
	     "model_parallel:\n  tensor_model_parallel_size: 1\n  bf16: True\nuse_flash_attn: False\n",
		"megatron");
	check(KEY_model_layers, "2");
	check(KEY_model_head_dim, NULL);
	check(KEY_train_dtype, "bf16");
	check_leaf("use_flash_attn", NO_EFFECT, "off");
	import_free(&im);
}

/* Megatron-LM's models of layers of several kinds, and its layout of a pipeline. */
static void test_megatron_layers(void)
{
	take("--num-layers 48 --tensor-model-parallel-size 1 --num-experts 64 --linear-attention-freq 4\n"
	     "--experimental-attention-variant gated_delta_net --linear-num-value-heads 64 --mtp-num-layers 1\n",
		"megatron");
	check(KEY_model_layers, "96");
	check(KEY_model_layer_pattern, "GEGEGE*E");
	check(KEY_model_ssm_heads, "64");
	check(KEY_model_ssm_groups, "16");
	check(KEY_model_mtp_layers, NULL);
	import_free(&im);
	take("--num-layers 8 --tensor-model-parallel-size 1 --linear-attention-freq 2\n", "megatron");
	check(KEY_model_layer_pattern, "G-*-");
	check(KEY_model_layers, "16");
	import_free(&im);
	take("--tensor-model-parallel-size 1 --hybrid-layer-pattern M*ME/*E --mamba-num-heads 128 --num-experts 8\n"
	     "--moe-latent-size 1024 --activation-func-fp8-input-store\n"
	     "--bf16 --fp8-format hybrid --fp8-dot-product-attention\n",
		"megatron");
	check(KEY_model_layer_pattern, "M*ME");
	check(KEY_model_ssm_heads, "128");
	check(KEY_model_moe_latent, "1024");
	check(KEY_train_act_input_dtype, "fp8");
	check(KEY_train_attention_dtype, "fp8");
	import_free(&im);

	/* a layout is one word though bars and brackets stand in it */
	take("LAYOUT='Et|(tt|)*2tmL'\n--num-layers 6 --pipeline-model-parallel-size 2 \\\n"
	     "--pipeline-model-parallel-layout $LAYOUT --tensor-model-parallel-size 1\n",
		"megatron");
	check(KEY_parallel_layers_per_stage, "[1, 2, 2, 1]");
	check(KEY_parallel_virtual_stages, "2");
	check(KEY_parallel_schedule, "interleaved");
	import_free(&im);
	take("--num-layers 6 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout \"E|t*6L\" \n"
	     "--tensor-model-parallel-size 1\n",
		"megatron");
	check(KEY_parallel_layers_per_stage, "[0, 6]");
	import_free(&im);
	take("--num-layers 3 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout \"Ett|t|m|L\"\n"
	     "--tensor-model-parallel-size 1 --mtp-num-layers 1\n",
		"megatron");
	check(KEY_parallel_layers_per_stage, "[2, 1, 0, 0]");
	check_leaf("pipeline_model_parallel_layout", TAKEN,
		"parallel.layers_per_stage, with its blocks of multi-token prediction beside the head, "
		"parallel.virtual_stages, parallel.schedule");
	import_free(&im);

	/* lists of layers: quoted, with blanks, beside each other; what is no list */
	take("--num-layers 12 --tensor-model-parallel-size 1 --num-experts 64 --linear-attention-freq "
	     "\"([1]*2+[0]*1)*4\"\n"
	     "--moe-layer-freq '([0]*1 + [1]*(12-1))'\n",
		"megatron");
	check(KEY_model_layers, "24");
	check(KEY_model_layer_pattern, "G-GE*EGEGE*EGEGE*EGEGE*E");
	check(KEY_model_first_dense_layers, NULL);
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --linear-attention-freq 4\n"
	     "--moe-layer-freq ([0,1]*2)\n",
		"megatron");
	check(KEY_model_layer_pattern, "G-GEG-*E");
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --linear-attention-freq [1,1,0,1]\n", "megatron");
	check(KEY_model_layer_pattern, "G-G-*-G-");
	import_free(&im);
	static const char *const freqs[][3] = {{"([0]*3+[1]*58)", "3", NULL}, {"[1,0]*6", NULL, "2"},
		{"[1]*12", "0", "1"}, {"2", NULL, "2"}, {"([0]*2+[1]*2)*3", NULL, NULL}, {"[0]*", NULL, NULL},
		{"([1]", NULL, NULL}, {"[2]*4", NULL, NULL}, {"[1]*99999", NULL, NULL},
		{"((((((((((([1])))))))))))", NULL, NULL}};
	for (size_t i = 0; i < COUNT(freqs); i++) {
		char text[256];
		snprintf(text, sizeof text,
			"--num-layers 61 --num-experts 8 --tensor-model-parallel-size 1 --moe-layer-freq '%s'\n",
			freqs[i][0]);
		take(text, "megatron");
		check(KEY_model_first_dense_layers, freqs[i][1]);
		check(KEY_model_moe_layer_freq, freqs[i][2]);
		import_free(&im);
	}

	/* the loss, or blocks that predict, apart from the last layers; what is no layout */
	static const char *const others[] = {"Ett|ttL|t", "Et|m|tL", "Et|(tt|*2L", "Et|t*0L", "tE|tL", "Ettt", "Ex|tL",
		"Et|t*99999L", "Et|(((t*999)*999)*999)*999L", "Et|(((()*999)*999)*999)*999tL"};
	for (size_t i = 0; i < COUNT(others); i++) {
		char text[256];
		snprintf(text, sizeof text,
			"--num-layers 6 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '%s'\n"
			"--tensor-model-parallel-size 1\n",
			others[i]);
		take(text, "megatron");
		check(KEY_parallel_layers_per_stage, NULL);
		import_free(&im);
	}
}

UNIT_MAIN("step: import of Megatron-LM", {"models and plans", test_megatron}, {"layers", test_megatron_layers})
