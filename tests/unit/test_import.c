/* Other frameworks' configs: what each of their keys becomes, and what comes back of what is written. Megatron-LM's
 * flags are in test_import_megatron.c. */
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

	/* a checkpoint that is not compiled with its block runs it to its end, unless the file says otherwise */
	static const struct {
		const char *text, *early_stop;
	} ends[] = {{"mode = \"full\"\n", "false"}, {"mode = \"full\"\nearly_stop = true\n", "true"},
		{"mode = \"full\"\nearly_stop = true\n[compile]\nenable = true\n", NULL},
		{"mode = \"full\"\n[compile]\nenable = true\n", NULL}, {"mode = \"none\"\n", NULL}};
	for (size_t i = 0; i < COUNT(ends); i++) {
		char text[512];
		snprintf(text, sizeof text, "%s[training]\n[activation_checkpoint]\n%s", TITAN, ends[i].text);
		take(text, "torchtitan");
		check(KEY_train_recompute_early_stop, ends[i].early_stop);
		import_free(&im);
	}
	/* that of a block with experts stands around compiled parts */
	take("[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n[training]\n[activation_checkpoint]\nmode = \"full\"\n"
	     "[compile]\nenable = true\n",
		"torchtitan");
	check(KEY_train_stack, "pytorch-fsdp");
	check(KEY_train_recompute_early_stop, "false");
	import_free(&im);

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

	/* FSDP alone mixes precisions: tensor or pipeline ranks without it compute in fp32, one rank by autocast */
	static const struct {
		const char *sizes, *dtype;
	} precisions[] = {
		{"tensor_parallel_degree = 8\n", "fp32"},
		{"pipeline_parallel_degree = 2\n", "fp32"},
		{"tensor_parallel_degree = 8\ncontext_parallel_degree = 2\n", "bf16"},
		{"", "bf16"},
	};
	for (size_t i = 0; i < COUNT(precisions); i++) {
		char text[512];
		snprintf(text, sizeof text, "%s[training]\n[parallelism]\ndata_parallel_shard_degree = 1\n%s", TITAN,
			precisions[i].sizes);
		take(text, "torchtitan");
		check(KEY_train_dtype, precisions[i].dtype);
		import_free(&im);
	}

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
	CU_ASSERT_FALSE(import_has(&im, KEY_train_optimizer_impl));
	import_free(&im);
	static const struct {
		const char *text, *framework, *impl;
	} launched[] = {{"base_model: x\nsequence_len: 64\nmicro_batch_size: 1\noptimizer: adamw_hf\n", "axolotl",
				"for_loop"},
		{"base_model: x\nsequence_len: 64\nmicro_batch_size: 1\noptimizer: adamw_torch_fused\n", "axolotl",
			"fused"},
		{"per_device_train_batch_size: 1\noptim: adamw_hf\n", "transformers", "for_loop"},
		{"per_device_train_batch_size: 1\noptim: adamw_torch_fused\n", "transformers", "fused"},
		{"model_name_or_path: x\nfinetuning_type: full\noptim: adamw_hf\n", "llama-factory", "for_loop"},
		{"[training]\nsteps = 1\n[parallelism]\n[optimizer]\nimplementation = \"for-loop\"\n", "torchtitan",
			"for_loop"},
		{"[training]\nsteps = 1\n[parallelism]\n[optimizer]\nimplementation = \"foreach\"\n", "torchtitan",
			"foreach"}};
	for (size_t i = 0; i < COUNT(launched); i++) {
		take(launched[i].text, launched[i].framework);
		check(KEY_train_optimizer_impl, launched[i].impl);
		import_free(&im);
	}

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
	check_leaf("device_train_microbatch_size", NOT_MODELLED,
		"the value is not in this file (--set train.micro_batch)");
	import_free(&im);
}

/* mosaicml/llm-foundry, scripts/train/yamls/b200-yamls/dbrx-8192.yaml and llama-405b-peft-8192.yaml: experts, and
 * adapters whose activations go to the host. */
static void test_llm_foundry(void)
{
	take("model: {name: mpt_causal_lm, d_model: 6144, n_heads: 48, n_layers: 40, vocab_size: 128256,\n"
	     "  no_bias: true, ffn_config: {ffn_type: mb_dmoe, mlp_type: glu, moe_top_k: 4,\n"
	     "    ffn_act_fn: {name: silu}, moe_world_size: 8, ffn_hidden_size: 10752, \n"
	     "    moe_num_experts: 16, moe_loss_weight: 0.05, memory_optimized_mlp: true},\n"
	     "  attn_config: {kv_n_heads: 8, rope: true}, max_seq_len: 8192}\nglobal_train_batch_size: 32\n"
	     "device_train_microbatch_size: 1\nfsdp_config: {sharding_strategy: FULL_SHARD}\n",
		"llm-foundry");
	check(KEY_model_ffn_hidden, "10752");
	check(KEY_model_experts, "16");
	check(KEY_model_experts_per_token, "4");
	check(KEY_model_mlp, "swiglu");
	check(KEY_parallel_expert, "8");
	check_leaf("model.ffn_config.moe_loss_weight", NO_EFFECT, "arithmetic of the router");
	check_leaf("model.ffn_config.memory_optimized_mlp", NOT_MODELLED,
		"activations of experts kept in 8 bits, or computed again");
	import_free(&im);
	take("model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Meta-Llama-3.1-405B-Instruct,\n"
	     "  peft_config: {r: 64, peft_type: LORA, target_modules: [q_proj, k_proj, v_proj, o_proj]}}\n"
	     "global_train_batch_size: 64\ndevice_train_microbatch_size: 1\n"
	     "fsdp_config: {activation_cpu_offload: true, activation_checkpointing: true}\n",
		"llm-foundry");
	check(KEY_train_lora_rank, "64");
	check(KEY_train_lora_targets, "attention");
	check(KEY_train_offload, "activations");
	check(KEY_train_recompute, "full");
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

UNIT_MAIN("step: import", {"flags", test_flags}, {"torchtitan", test_torchtitan}, {"DeepSpeed", test_deepspeed},
	{"YAML", test_yaml}, {"LLaMA-Factory", test_llama_factory}, {"llm-foundry", test_llm_foundry},
	{"refused", test_refused}, {"tables", test_tables}, {"export", test_export})
