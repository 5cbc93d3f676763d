/* Other frameworks' configs: what each of their keys becomes, and what comes back of what is written. */
#include <string.h>

#include "base/paths.h"
#include "cli/options.h"
#include "step/import/export.h"
#include "step/import/flags.h"
#include "tests/unit/import_check.h"

/* ---- flags ---- */

static void check_flag(const struct ydoc *doc, size_t i, const char *key, const char *text, int line)
{
	const struct ynode *root = ydoc_root(doc);
	CU_ASSERT_FATAL(i < root->n);
	CU_ASSERT_STRING_EQUAL(root->child[i]->key, key);
	CU_ASSERT_STRING_EQUAL(root->child[i]->text, text);
	CU_ASSERT_EQUAL(root->child[i]->key_line, line);
}

static void test_flags(void)
{
	static const char text[] = "#!/bin/bash\n"
				   "# --not-this 1\n"
				   "TP=8; PP=${PP:-4}\n"
				   "export WORLD=$(($TP * PP / 2))\n"
				   "ARGS=(\n"
				   "    --tensor-size $TP  # --nor-this\n"
				   "    --world=${WORLD}\n"
				   "    --bf16\n"
				   "    \"--fp8-format hybrid\"\n"
				   "    --split '99,1,0'\n"
				   ")\n"
				   "run --rank $RANK --path ${DIR}/x \\\n"
				   "    --layers \\\n"
				   "    12 ${ARGS[@]}\n";
	struct ydoc *doc = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(flags_parse(text, strlen(text), "run.sh", NULL, &doc, &e), ST_OK);
	check_flag(doc, 0, "tensor_size", "8", 6);
	check_flag(doc, 1, "world", "16", 7);
	check_flag(doc, 2, "bf16", "true", 8);
	check_flag(doc, 3, "fp8_format", "hybrid", 9);
	check_flag(doc, 4, "split", "99,1,0", 10);
	check_flag(doc, 5, "rank", "$RANK", 12);
	check_flag(doc, 6, "path", "${DIR}/x", 12);
	check_flag(doc, 7, "layers", "12", 13);
	CU_ASSERT_EQUAL(ydoc_root(doc)->n, 8);
	ydoc_destroy(doc);
	CU_ASSERT(flags_found(text, strlen(text)));
	CU_ASSERT_FALSE(flags_found("# --a\nkey: a--b\n---\n", 20));
}

/* ---- import ---- */

#define TITAN "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"

static void test_torchtitan(void)
{
	take(TITAN "[training]\nlocal_batch_size = 4\nmystery = 1\n[parallelism]\ntensor_parallel_degree = 2\n"
		   "[metrics]\nlog_freq = 10\n",
		"torchtitan");
	check(KEY_model_preset, "llama3-8b");
	check(KEY_model_seq_len, "2048"); /* its default, not the preset's */
	check(KEY_train_micro_batch, "4");
	check(KEY_train_batch_per_gpu, "2");
	check(KEY_train_global_batch, NULL);
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_parallel_sequence_parallel, "true");
	check_leaf("training.local_batch_size", TAKEN, "train.micro_batch, train.batch_per_gpu");
	check_leaf("metrics.log_freq", NO_EFFECT, "files and logs");
	check_leaf("training.mystery", NOT_MODELLED, "not known to stepsim");
	import_free(&im);

	/* op by op where the option does not say otherwise; by layer it is not taken */
	static const char *const options[] = {"", "selective_ac_option = \"op\"\n", "selective_ac_option = \"2\"\n"};
	for (size_t i = 0; i < COUNT(options); i++) {
		char text[512];
		snprintf(text, sizeof text, "%s[training]\n[activation_checkpoint]\nmode = \"selective\"\n%s", TITAN,
			options[i]);
		take(text, "torchtitan");
		check(KEY_train_recompute, i < 2 ? "selective" : NULL);
		check(KEY_train_recompute_modules, i < 2 ? "[op]" : NULL);
		import_free(&im);
	}

	take(TITAN "[training]\nlocal_batch_size = 4\nglobal_batch_size = 64\n[parallelism]\n"
		   "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
		   "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 8\n",
		"torchtitan");
	check(KEY_parallel_strategy, "hsdp");
	check(KEY_parallel_shard, "8");
	check(KEY_parallel_data, "16");
	check(KEY_parallel_schedule, "interleaved");
	check(KEY_parallel_virtual_stages, "2");
	check(KEY_parallel_reshard_after_forward, "false"); /* default in a pipeline */
	check(KEY_train_micro_batch, "1");
	check(KEY_train_global_batch, "64");
	check(KEY_train_batch_per_gpu, NULL);
	import_free(&im);

	take("{\"model\": {\"name\": \"llama3\", \"flavor\": \"70B\"}, \"training\": {\"seq_len\": 4096},\n"
	     " \"parallelism\": {\"data_parallel_replicate_degree\": 4, \"data_parallel_shard_degree\": 1,\n"
	     "  \"fsdp_reshard_after_forward\": \"never\"}}",
		"torchtitan");
	check(KEY_model_preset, "llama3-70b");
	check(KEY_parallel_strategy, "ddp");
	check(KEY_parallel_reshard_after_forward, NULL);
	import_free(&im);

	/* the rest of the ranks are a shard group; experts are cut as all else without a group of their own */
	take("{\"model\": {\"name\": \"deepseek_v3\", \"flavor\": \"16B\"}, \"training\": {\"seq_len\": 4096},\n"
	     " \"parallelism\": {\"data_parallel_replicate_degree\": 2, \"data_parallel_shard_degree\": -1,\n"
	     "  \"tensor_parallel_degree\": 4, \"expert_parallel_degree\": 1}}",
		"torchtitan");
	check(KEY_parallel_strategy, "hsdp");
	check(KEY_parallel_replicate, "2");
	check(KEY_parallel_shard, "auto");
	check(KEY_parallel_data, NULL);
	check(KEY_parallel_expert_tensor, "4");
	import_free(&im);
}

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
	check_leaf("hidden_dropout", NOT_MODELLED, "dropout");
	check_leaf("attention_dropout", NO_EFFECT, "off");
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
	check(KEY_parallel_expert_dispatch, "once_a_host");
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
	check(KEY_parallel_expert_dispatch, "once_a_host");
	check(KEY_model_capacity_factor, NULL);
	import_free(&im);
	take("--num-layers 4 --tensor-model-parallel-size 1 --num-experts 64 --moe-token-dispatcher-type flex\n",
		"megatron");
	check(KEY_parallel_expert_dispatch, "once_a_host");
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
	     "--moe-latent-size 1024 --activation-func-fp8-input-store\n",
		"megatron");
	check(KEY_model_layer_pattern, "M*ME");
	check(KEY_model_ssm_heads, "128");
	check(KEY_model_moe_latent, "1024");
	check(KEY_train_act_input_dtype, "fp8");
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

static void test_deepspeed(void)
{
	take("{\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 8, "
	     "\"bf16\": {\"enabled\": true},\n"
	     " \"zero_optimization\": {\"stage\": 2, \"reduce_bucket_size\": 5e8, \"overlap_comm\": false,\n"
	     "  \"offload_optimizer\": {\"device\": \"cpu\"}}, \"stepsim\": {\"model.preset\": \"gpt2-124m\"}}",
		"deepspeed");
	check(KEY_model_preset, "gpt2-124m");
	check(KEY_parallel_strategy, "zero2");
	check(KEY_parallel_bucket_mb, "953.674316406");
	check(KEY_parallel_overlap, "false");
	check(KEY_train_offload, "optimizer");
	check(KEY_train_batch_per_gpu, "32");
	check(KEY_train_dtype, "bf16");
	import_free(&im);
	take("{\"train_batch_size\": \"auto\", \"zero_optimization\": {\"stage\": 3}}", "deepspeed");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_train_global_batch, NULL);
	check_leaf("train_batch_size", NOT_MODELLED, "the value is not in this file (--set train.global_batch)");
	import_free(&im);
}

static void test_yaml(void)
{
	take("parallelism: {dp: 4, tp: 2, pp: 2, pp_engine: afab, tp_mode: REDUCE_SCATTER}\n"
	     "tokens: {sequence_length: 512, micro_batch_size: 2, batch_accumulation_per_replica: 3}\n"
	     "model: {model_config: {num_hidden_layers: 4, hidden_size: 64}}\noptimizer: {zero_stage: 1}\n",
		"nanotron");
	check(KEY_train_global_batch, "24");
	check(KEY_parallel_schedule, "gpipe");
	check(KEY_parallel_strategy, "zero1");
	check(KEY_model_layers, "4");
	import_free(&im);

	take("distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n"
	     "fsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP, fsdp_activation_checkpointing: true}\n",
		"accelerate");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_parallel_reshard_after_forward, "false");
	check(KEY_parallel_data, "16");
	check(KEY_cluster_nodes, "2");
	check(KEY_cluster_gpus_per_node, "8");
	check(KEY_train_recompute, "full");
	import_free(&im);

	take("base_model: Qwen/Qwen3-30B-A3B-Base\nsequence_len: 4096\nmicro_batch_size: 2\n", "axolotl");
	check(KEY_model_preset, "qwen3-30b-a3b");
	check(KEY_train_expert_loop, "true");
	import_free(&im);
	take("base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 2\n", "axolotl");
	CU_ASSERT_FALSE(import_has(&im, KEY_train_expert_loop));
	import_free(&im);

	take("base_model: someone/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\n"
	     "gradient_accumulation_steps: 4\nbf16: auto\nadapter: lora\ndeepspeed: ds/zero3_bf16.json\n"
	     "optimizer: adamw_bnb_8bit\ndatasets:\n  - path: a\n  - path: b\n",
		"axolotl");
	check(KEY_model_preset, "llama3-8b");
	check(KEY_train_batch_per_gpu, "8");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_train_optimizer_bits, "8");
	check_leaf("adapter", NO_EFFECT, "as without it");
	check(KEY_train_lora_rank, "8");
	check_leaf("datasets", NO_EFFECT, "where weights and data lie");
	CU_ASSERT_STRING_EQUAL(foreign_find(&im.foreign, "datasets")->value, "[2 tables]");
	import_free(&im);

	take("base_model: someone/Meta-Llama-3-8B\nmicro_batch_size: 2\nbf16: true\noptimizer: adafactor\n", "axolotl");
	check(KEY_train_optimizer, "adafactor");
	import_free(&im);

	take("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --fp8-format hybrid --fp8-param-gather "
	     "--use-distributed-optimizer --bf16\n",
		"megatron");
	check(KEY_train_dtype, "fp8");
	check(KEY_train_param_dtype, "fp8");
	import_free(&im);

	take("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 8\noptim: adafactor\n",
		"accelerate");
	check(KEY_train_optimizer, "adafactor");
	import_free(&im);

	take("base_model: someone/Meta-Llama-3-8B\nmicro_batch_size: 2\nbf16: true\nadapter: qlora\nlora_r: 32\n"
	     "load_in_8bit: false\nload_in_4bit: true\nlora_target_modules: [q_proj, o_proj]\n",
		"axolotl");
	check(KEY_train_lora_rank, "32");
	check(KEY_train_lora_targets, "attention");
	check(KEY_train_lora_base, "nf4_double");
	check(KEY_train_param_dtype, "bf16");
	CU_ASSERT_FALSE(import_has(&im, KEY_parallel_adapter_units));
	import_free(&im);

	take("base_model: someone/Meta-Llama-3-8B\nmicro_batch_size: 2\nbf16: true\nadapter: lora\n"
	     "fsdp: [full_shard, auto_wrap]\n",
		"axolotl");
	check(KEY_parallel_adapter_units, "true");
	import_free(&im);

	take("model_name_or_path: Qwen/Qwen3-8B\nuse_peft: true\nper_device_train_batch_size: 4\nfsdp: full_shard\n",
		"transformers");
	check(KEY_parallel_adapter_units, "true");
	import_free(&im);

	take("model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 4\nfsdp: full_shard\n", "transformers");
	CU_ASSERT_FALSE(import_has(&im, KEY_parallel_adapter_units));
	import_free(&im);

	take("trainer: {devices: 8, num_nodes: 2, precision: bf16}\n"
	     "model: {encoder_seq_length: 2048, num_layers: 2, hidden_size: 64, num_attention_heads: 4,\n"
	     "  data: {seq_length: \"${model.encoder_seq_length}\"}, activation: fast-swiglu,\n"
	     "  optim: {name: distributed_fused_adam}}\n",
		"nemo");
	check(KEY_model_seq_len, "2048");
	check(KEY_model_mlp, "swiglu");
	check(KEY_parallel_strategy, "zero1");
	check(KEY_train_stack, "megatron-core");
	import_free(&im);

	take("max_seq_len: 2048\n"
	     "model: {name: mpt_causal_lm, d_model: 64, n_layers: 2, n_heads: 4, expansion_ratio: 4,\n"
	     "  vocab_size: 100, max_seq_len: \"${max_seq_len}\"}\nglobal_train_batch_size: 64\n"
	     "device_train_microbatch_size: auto\nprecision: amp_bf16\nfsdp_config: {mixed_precision: PURE}\n",
		"llm-foundry");
	check(KEY_model_ffn_hidden, "256");
	check(KEY_model_seq_len, "2048");
	check(KEY_train_reduce_dtype, "bf16");
	check_leaf("device_train_microbatch_size", NO_EFFECT, "as without it");
	import_free(&im);
}

/* hiyouga/LLaMA-Factory, examples/train_full/qwen3_full_sft_autotp.yaml and its train_qlora */
static void test_llama_factory(void)
{
	take("model_name_or_path: Qwen/Qwen3-32B\nfinetuning_type: full\ncutoff_len: 4096\nbf16: true\n"
	     "deepspeed: examples/deepspeed/ds_z3_offload_config.json\nper_device_train_batch_size: 4\n"
	     "gradient_accumulation_steps: 2\n",
		"llama-factory");
	check(KEY_model_preset, "qwen3-32b");
	check(KEY_model_seq_len, "4096");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_train_stack, "deepspeed");
	check(KEY_train_offload, "optimizer+params");
	check(KEY_train_micro_batch, "4");
	check(KEY_train_batch_per_gpu, "8");
	check(KEY_train_recompute, "full");
	check(KEY_train_dtype, "bf16");
	import_free(&im);
	take("model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nlora_rank: 16\n"
	     "lora_target: q_proj,v_proj\nquantization_bit: 4\nbf16: true\ndisable_gradient_checkpointing: true\n",
		"llama-factory");
	check(KEY_train_lora_rank, "16");
	check(KEY_train_lora_targets, "qkv");
	check(KEY_train_lora_base, "nf4_double");
	check(KEY_train_param_dtype, "bf16");
	check(KEY_train_recompute, "none");
	check(KEY_train_micro_batch, "8");
	check(KEY_model_seq_len, "2048");
	import_free(&im);
	take("model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ncutoff_len: 1024\n", "llama-factory");
	check(KEY_train_lora_rank, "8"); /* an adapter is the default */
	check_leaf("stage", NO_EFFECT, "as without it");
	import_free(&im);
	take("model_name_or_path: Qwen/Qwen2.5-7B\nstage: dpo\ncutoff_len: 1024\n", "llama-factory");
	check_leaf("stage", NOT_MODELLED, "model.lm_head has no \"dpo\""); /* a second model, for reference */
	import_free(&im);
}

static void test_refused(void)
{
	static const char *const cases[][2] = {
		{"[training]\nseq_len = \"long\"\n[parallelism]\n",
			"file:2:11: training.seq_len (model.seq_len): expected an integer from 1 to 16777216, got "
			"\"long\""},
		{"[training]\nseq_len = 1\nseq_len = 2\n", "file:3:1: seq_len: duplicate key"},
		{"# stepsim: train.optimzer: sgd\n[training]\n[parallelism]\n",
			"file:1:1: train.optimzer: no key of CONFIG.yaml (nearest: train.optimizer)"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		bool found;
		CU_ASSERT_EQUAL(import_read(cases[i][0], strlen(cases[i][0]), "file", NULL, &found, &im, &e), ST_INPUT);
		CU_ASSERT_STRING_EQUAL(e.text, cases[i][1]);
		if (strcmp(e.text, cases[i][1]) != 0)
			printf("\n%s\n", e.text);
	}
	struct error e = {0};
	bool found = true;
	static const char own[] = "model: {preset: gpt2-124m}\ntrain: {micro_batch: 1}\n";
	CU_ASSERT_EQUAL(import_read(own, strlen(own), "file", NULL, &found, &im, &e), ST_OK);
	CU_ASSERT_FALSE(found);
	CU_ASSERT_EQUAL(import_read(own, strlen(own), "file", "torchtitn", &found, &im, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "unknown framework \"torchtitn\" (nearest: torchtitan"));
}

/* ---- tables ---- */

/* Every table reads: its rows name keys of CONFIG.yaml that exist, and `when` values that these keys can have. */
static void test_tables(void)
{
	char **names = NULL;
	size_t n = 0;
	CU_ASSERT_EQUAL_FATAL(path_catalogue_names("frameworks", &names, &n, NULL), ST_OK);
	char all[256] = "", written[256] = "";
	for (size_t i = 0; i < n; i++) {
		struct import_table t;
		struct error e = {0};
		CU_ASSERT_EQUAL(import_table_load(names[i], &t, &e), ST_OK);
		if (e.status) {
			printf("\n%s\n", e.text);
			continue;
		}
		CU_ASSERT((t.detect || t.writes) && t.rows.n > 10 && t.reasons.n > 3);
		for (size_t r = 0; r < t.rows.n; r++)
			for (size_t w = 0; t.rows.at[r].when && w < t.rows.at[r].when->n; w++) {
				const char *path = t.rows.at[r].when->child[w]->key, *dot = strchr(path, '.');
				CU_ASSERT_FATAL(dot != NULL);
				CU_ASSERT_NOT_EQUAL(config_key_find(path, (size_t)(dot - path), dot + 1), KEY_COUNT);
			}
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? " " : "", names[i]);
		if (t.writes)
			snprintf(written + strlen(written), sizeof written - strlen(written), "%s%s",
				*written ? " " : "", names[i]);
		import_table_free(&t);
	}
	CU_ASSERT_STRING_EQUAL(options_words("--from"), all);
	CU_ASSERT_STRING_EQUAL(options_words("--to"), written);
	CU_ASSERT_STRING_EQUAL(options_words("--emit"), written);
	path_names_free(names, n);
}

/* ---- export ---- */

static void check_export(const struct config *c, const char *to, const char *part)
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(export_write(c, to, out, &e), ST_OK);
	fclose(out);
	if (e.status)
		printf("\n%s\n", e.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
	if (!strstr(text, part))
		printf("\nno %s in\n%s\n", part, text);
	free(text);
}

static void test_export(void)
{
	static const char text[] = "model: {preset: llama3-8b, seq_len: 4096}\n"
				   "train: {stack: pytorch-fsdp, global_batch: 64, micro_batch: 2, recompute: full}\n"
				   "parallel: {strategy: fsdp, tensor: 2}\ncluster: {system: dgx-h100}\n";
	struct config c;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "cfg.yaml", NULL, 0, &c, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 16, &e), ST_OK);
	check_export(&c, "torchtitan", "\n    config.parallelism.tensor_parallel_degree = 2\n");
	check_export(&c, "torchtitan", "\n    config.activation_checkpoint = FullAC.Config()\n");
	check_export(&c, "torchtitan-0.2", "\ntensor_parallel_degree = 2\n");
	check_export(&c, "torchtitan-0.2", "\n[activation_checkpoint]\nmode = \"full\"\n");
	c.train.recompute = REC_SELECTIVE;
	c.train.recompute_modules = REC_OP;
	check_export(&c, "torchtitan", "\n    config.activation_checkpoint = SelectiveAC.Config()\n");
	check_export(&c, "torchtitan-0.2", "\nmode = \"selective\"\nselective_ac_option = \"op\"\n");
	c.train.recompute = REC_FULL;
	c.train.recompute_modules = AUTO;
	check_export(&c, "megatron", " --num-query-groups 8 \\\n");
	check_export(&c, "megatron", " --use-torch-fsdp2 \\\n");
	check_export(&c, "deepspeed", "  \"gradient_accumulation_steps\": 4,\n");
	check_export(&c, "nanotron", "# stepsim: parallel.strategy: fsdp\n");
	check_export(&c, "nanotron",
		"\ntokens:\n  sequence_length: 4096\n  micro_batch_size: 2\n"
		"  batch_accumulation_per_replica: 4\n");
	check_export(&c, "accelerate", "\nnum_processes: 16\n");
	CU_ASSERT_EQUAL(export_write(&c, "axolotl", stdout, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "Axolotl: its configs are read, but not written");
}

UNIT_MAIN("step: import", {"flags", test_flags}, {"torchtitan", test_torchtitan}, {"Megatron-LM", test_megatron},
	{"Megatron-LM's layers", test_megatron_layers}, {"DeepSpeed", test_deepspeed}, {"YAML", test_yaml},
	{"LLaMA-Factory", test_llama_factory}, {"refused", test_refused}, {"tables", test_tables},
	{"export", test_export})
