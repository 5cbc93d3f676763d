/* Shapes of the configs that people have: expressions, scripts, dumps, values that stand elsewhere. */
#include "tests/unit/import_check.h"

/* ---- ${...} ---- */

static void check_value(const char *path, const char *value)
{
	const struct leaf *l = foreign_find_path(&im.foreign, path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l);
	CU_ASSERT_STRING_EQUAL(l->value, value);
	if (strcmp(l->value, value) != 0)
		printf("\n%s: %s\n", path, l->value);
}

static void test_expressions(void)
{
	take("trainer: {devices: 8, num_nodes: 2, precision: bf16}\nrun: {name: a}\n"
	     "model:\n  num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4\n"
	     "  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n"
	     "  encoder_seq_length: ${oc.env:SEQ,2048}\n"
	     "  max_position_embeddings: ${.encoder_seq_length}\n"
	     "  micro_batch_size: ${training.model.num_layers}\n" /* Hydra mounts the file at `training` */
	     "  global_batch_size: ${multiply:${add:1, 3}, ${divide_ceil:${divide_floor:31, 2}, 2}}\n"
	     "  data: {seq_length: \"${..encoder_seq_length}\", path: \"${data_dir}/x${run.name}\"}\n"
	     "  one: ${.two}\n  two: ${.one}\n  three: \"${divide_ceil:1, 0} ${nothing:1} ${open\"\n",
		"nemo");
	check(KEY_model_ffn_hidden, "256");
	check(KEY_model_seq_len, "2048");
	check(KEY_train_micro_batch, "2");
	check(KEY_train_global_batch, "32");
	check_value("model.max_position_embeddings", "2048");
	check_value("model.data.seq_length", "2048");
	check_value("model.data.path", "${data_dir}/xa");
	check_value("model.three", "${divide_ceil:1, 0} ${nothing:1} ${open");
	CU_ASSERT_PTR_NOT_NULL(strstr(foreign_find_path(&im.foreign, "model.one")->value, "${"));
	import_free(&im);
}

/* ---- Megatron-LM ---- */

static void test_functional_test(void)
{
	take("ENV_VARS:\n  NCCL_ALGO: Ring\n  NVTE_X: 1\n  CUDA_LAUNCH_BLOCKING: 1\nMODEL_ARGS:\n  --num-layers: 12\n"
	     "  --hidden-size: 512\n  --num-attention-heads: 8\n  --seq-length: 1024\n  --bf16: true\n"
	     "  --save: ${SAVE}\nTEST_TYPE: regular\n",
		"megatron");
	check(KEY_model_layers, "12");
	check(KEY_model_hidden, "512");
	check(KEY_train_dtype, "bf16");
	check(KEY_train_launch_blocking, "true");
	check_leaf("MODEL_ARGS.save", NO_EFFECT, "files and logs");
	check_leaf("ENV_VARS.NCCL_ALGO", NOT_MODELLED, "what NCCL is told to do");
	check_leaf("ENV_VARS.NVTE_X", NO_EFFECT, "variables of the environment");
	import_free(&im);
}

static void test_script(void)
{
	take("export NCCL_ALGO=Ring NCCL_DEBUG=WARN\nGPUS=${1:-8}\n"
	     "ARGS=(\n --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --swiglu\n"
	     " --rampup-batch-size 16 16 5859375 --tokenizer-type HuggingFaceTokenizer\n"
	     " --tokenizer-model meta-llama/Llama-3.1-8B --window-size 1023,0 --window-attn-skip-freq 4\n"
	     " --fp8-param-gather --cpu-offloading --fp16-lm-cross-entropy\n)\n"
	     "torchrun --nproc_per_node $GPUS pretrain_gpt.py ${ARGS[@]} --tensor-model-parallel-size ${TP}\n",
		"megatron");
	check(KEY_model_ffn_hidden, "10880"); /* int(4 h x 2/3 / 64) x 64 */
	check(KEY_model_vocab, "128256");
	check(KEY_model_sliding_window, "1024");
	check(KEY_model_global_attention_every, "4");
	check(KEY_train_offload, "activations");
	check(KEY_cluster_gpus_per_node, "8");
	check_value("rampup_batch_size", "16 16 5859375");
	check_leaf("NCCL_ALGO", NOT_MODELLED, "what NCCL is told to do");
	check_leaf("NCCL_DEBUG", NO_EFFECT, "variables of the environment");
	check_leaf("fp8_param_gather", NO_EFFECT, "other keys decide");
	check_leaf("fp16_lm_cross_entropy", NOT_MODELLED, "the loss in half precision");
	check_leaf("tensor_model_parallel_size", NOT_MODELLED,
		"the value is not in this file (--set parallel.tensor)"); /* of several rows the first's key */
	CU_ASSERT(foreign_find(&im.foreign, "tensor_model_parallel_size")->absent);
	import_free(&im);
	take("--num-layers 2 --hidden-size 1024 --num-attention-heads 16 --swiglu --ffn-hidden-size 4096\n"
	     "--tensor-model-parallel-size 1\n",
		"megatron");
	check(KEY_model_ffn_hidden, "4096");
	import_free(&im);
}

/* ---- Megatron-Bridge ---- */

#define BRIDGE "_target_: megatron.bridge.training.config.ConfigContainer\n"

static void test_dump(void)
{
	take(BRIDGE
		"ddp:\n  data_parallel_sharding_strategy: no_shard\n  use_distributed_optimizer: true\n"
		"  use_megatron_fsdp: false\n  grad_reduce_in_fp32: false\n"
		"mixed_precision:\n  bf16: true\n  fp8: null\n  fp8_recipe: tensorwise\n  grad_reduce_in_fp32: false\n"
		"model:\n  num_layers: 4\n  hidden_size: 64\n  num_attention_heads: 4\n  gated_linear_unit: false\n"
		"  activation_func:\n    _call_: false\n    _target_: megatron.core.activations.squared_relu\n"
		"  position_embedding_type: yarn\n  should_pad_vocab: false\n  make_vocab_size_divisible_by: 128\n"
		"  softmax_type: learnable\n  window_size: [127, 0]\n  window_attn_skip_freq: 2\n  bf16: true\n"
		"  vocab_size: 100\n  tensor_model_parallel_size: 1\n"
		"optimizer:\n  use_precision_aware_optimizer: true\n  lr: 0.1\n"
		"  exp_avg_dtype: {_call_: false, _target_: torch.bfloat16}\n"
		"  main_params_dtype: {_call_: false, _target_: torch.float32}\n"
		"train: {global_batch_size: 8, micro_batch_size: 1}\n",
		"nemo");
	check(KEY_model_mlp, "squared_relu");
	check(KEY_model_position, "rope");
	check(KEY_model_vocab_padding, "1");
	check(KEY_model_sliding_window, "128");
	check(KEY_model_global_attention_every, "2");
	check(KEY_model_attention_sinks, "true");
	check(KEY_train_fp8_recipe, NULL);
	check(KEY_train_dtype, "bf16");
	check(KEY_train_optimizer_bits, "16");
	check(KEY_parallel_strategy, "zero1");
	check_leaf("mixed_precision.grad_reduce_in_fp32", NO_EFFECT, "ddp.grad_reduce_in_fp32 counts");
	check_leaf("optimizer.main_params_dtype", NO_EFFECT, "as without it");
	check_leaf("optimizer.lr", NO_EFFECT, "arithmetic of a step's update");
	import_free(&im);

	take("train: {global_batch_size: 8}\ndist: {use_megatron_fsdp: true}\n"
	     "ddp: {data_parallel_sharding_strategy: optim_grads_params}\nmodel: {seq_length: 64}\n",
		"nemo");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_model_vocab, NULL); /* no sizes are made up for a model that is not there */
	import_free(&im);

	take("ConfigContainer:\n  train: {train_iters: 1}\nperf_matrix: {h100: {seq_length: 64, tp: 4}}\n", "nemo");
	check(KEY_model_seq_len, NULL);
	check_leaf("perf_matrix.h100.seq_length", NOT_MODELLED, "several runs in one file");
	import_free(&im);
}

static void test_nemo(void)
{
	take("trainer: {devices: 8, num_nodes: 2, precision: bf16}\n"
	     "model: {num_layers: 8, hidden_size: 64, num_attention_heads: 4, encoder_seq_length: 64, fp8: true,\n"
	     "  pipeline_model_parallel_size: 2, tokenizer: {library: huggingface, type: Qwen/Qwen3-8B},\n"
	     "  activations_checkpoint_granularity: full, activations_checkpoint_method: block,\n"
	     "  activations_checkpoint_num_layers: 1, num_micro_batches_with_partial_activation_checkpoints: 2,\n"
	     "  optim: {name: distributed_fused_adam, grad_sync_dtype: bf16, lr: 1}}\n",
		"nemo");
	check(KEY_train_dtype, "fp8");
	check(KEY_train_reduce_dtype, "bf16");
	check(KEY_train_recompute_layers, "2");
	check(KEY_model_vocab, "151936");
	check_leaf("model.num_micro_batches_with_partial_activation_checkpoints", NOT_MODELLED,
		"recomputation of a part of the micro-batches");
	import_free(&im);

	/* NeMo-Framework-Launcher, conf/training/grok/grok1_proxy.yaml: Megatron's own optimizer, cut over ranks */
	take("trainer: {devices: 8, num_nodes: 8, precision: bf16}\n"
	     "model: {num_layers: 8, hidden_size: 64, num_attention_heads: 4, encoder_seq_length: 64,\n"
	     "  mcore_customization_config: {parallel_attention: false},\n"
	     "  optim: {name: mcore_distributed_optim, overlap_grad_sync: true}}\n",
		"nemo");
	check(KEY_parallel_strategy, "zero1");
	check(KEY_train_optimizer, "adamw");
	check(KEY_model_parallel_residual, "false");
	import_free(&im);

	/* NeMo, conf/megatron_falcon_config.yaml: the key stands beside model */
	take("trainer: {devices: 1, num_nodes: 1, precision: bf16}\n"
	     "model: {num_layers: 32, hidden_size: 4544, num_attention_heads: 71, encoder_seq_length: 2048,\n"
	     "  optim: {name: fused_adam}}\nmcore_customization_config: {parallel_attention: true}\n"
	     "nemo_version: 1.21.0rc0\n",
		"nemo");
	check(KEY_parallel_strategy, "ddp");
	check(KEY_model_parallel_residual, "true");
	check_leaf("nemo_version", NO_EFFECT, "files and logs");
	import_free(&im);

	/* Megatron-Bridge, conf/llama32_3b-1b_distill_override_example.yaml: a second model, the teacher */
	take("model: {seq_length: 4096, tensor_model_parallel_size: 2, teacher: {tensor_model_parallel_size: 4},\n"
	     "  kd_config: {skip_lm_loss: true}}\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n"
	     "ddp: {grad_reduce_in_fp32: true}\n",
		"nemo");
	check(KEY_parallel_tensor, "2");
	check_leaf("model.teacher.tensor_model_parallel_size", NOT_MODELLED,
		"distillation: the teacher's forward pass");
	check_leaf("model.kd_config.skip_lm_loss", NOT_MODELLED, "distillation: the teacher's forward pass");
	import_free(&im);
}

/* ---- others ---- */

/* axolotl, examples/llama-3/lora-8b.yml: embeddings trained whole beside adapters, which are taken */
static void test_axolotl(void)
{
	take("base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\nadapter: lora\n"
	     "lora_r: 32\nlora_target_linear: true\nlora_modules_to_save: [embed_tokens, lm_head]\n",
		"axolotl");
	check(KEY_train_lora_rank, "32");
	check_leaf("lora_modules_to_save", NOT_MODELLED, "weights trained whole beside adapters");
	import_free(&im);
	/* without gate_proj and o_proj */
	take("base_model: NousResearch/Meta-Llama-3-8B\nmicro_batch_size: 2\nadapter: lora\n"
	     "lora_target_modules: [q_proj, v_proj, up_proj]\n",
		"axolotl");
	check(KEY_train_lora_targets, "all");
	check_leaf("lora_target_modules", TAKEN,
		"train.lora_targets, all products of the widest kind listed: MLPs, attention, or queries, keys and "
		"values");
	import_free(&im);
}

/* nanotron, examples/exp1_280m_llama_100k_ctx_and_2m_bs.yaml: its form before stages of data */
static void test_nanotron(void)
{
	take("parallelism: {dp: 5, tp: 8}\ntokens: {micro_batch_size: 4, sequence_length: 1024}\n"
	     "model: {model_config: {num_hidden_layers: 2, hidden_size: 64, num_attention_heads: 8}}\n"
	     "optimizer: {adam_beta1: 0.9, torch_adam_is_fused: true, zero_stage: 0}\n"
	     "data: {dataset: {dataloader_type: single}, num_loading_workers: 3, seed: 42}\n"
	     "experiment_logger: {tensorboard_logger: {flush_secs: 30}}\n",
		"nanotron");
	check(KEY_data_workers, "3");
	check_leaf("optimizer.adam_beta1", NO_EFFECT, "arithmetic of a step's update");
	check_leaf("optimizer.torch_adam_is_fused", NO_EFFECT, "arithmetic of a step's update");
	check_leaf("data.dataset.dataloader_type", NO_EFFECT, "where data lie");
	check_leaf("experiment_logger.tensorboard_logger.flush_secs", NO_EFFECT, "files and logs");
	import_free(&im);
}

/* llm-foundry, scripts/train/yamls/pretrain/te-hf-llama-3.1-8B.yaml */
static void test_llm_foundry(void)
{
	take("max_seq_len: 2048\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\nprecision: amp_fp8\n"
	     "model: {name: hf_causal_lm_te, pretrained_model_name_or_path: meta-llama/Meta-Llama-3.1-8B}\n"
	     "fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE}\n",
		"llm-foundry");
	check(KEY_train_dtype, "fp8");
	check(KEY_train_reduce_dtype, "bf16");
	import_free(&im);
}

static void test_deepspeed(void)
{
	take("{\"train_micro_batch_size_per_gpu\": \"auto\", \"gradient_accumulation_steps\": \"auto\",\n"
	     " \"train_batch_size\": \"auto\", \"bf16\": {\"enabled\": \"auto\"}, \n"
	     " \"zero_optimization\": {\"stage\": 3,\n"
	     "  \"reduce_bucket_size\": 0, \"gather_16bit_weights_on_model_save\": true},\n"
	     " \"monitor_config\": {\"enabled\": true, \"csv_monitor\": {\"enabled\": false}}}",
		"deepspeed");
	check(KEY_train_dtype, "bf16");
	check(KEY_train_micro_batch, "1");
	check(KEY_train_batch_per_gpu, "1");
	check(KEY_parallel_bucket_mb, NULL);
	check_leaf("monitor_config.enabled", NO_EFFECT, "files and logs");
	import_free(&im);

	take("{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 4, \"train_batch_size\": 64,\n"
	     " \"zero_optimization\": {\"stage\": 1}, \"sequence_parallel_size\": 2,\n"
	     " \"expert_parallel\": {\"enabled\": true, \"autoep_size\": 8}}",
		"deepspeed");
	check(KEY_parallel_data, "8");
	check(KEY_parallel_context, "2");
	check(KEY_parallel_context_kind, "all_to_all");
	check(KEY_parallel_expert, "8");
	import_free(&im);
}

static void test_others(void)
{
	take("compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_machines: 1\nnum_processes: 8\n",
		"accelerate");
	check(KEY_parallel_strategy, "none");
	check(KEY_parallel_data, NULL);
	check(KEY_cluster_gpus_per_node, "1");
	import_free(&im);

	take("max_seq_len: 64\n"
	     "model: {pretrained_model_name_or_path: databricks/dbrx-instruct, use_flash_attention_2: true,\n"
	     "  peft_config: {peft_type: LORA, r: 64, target_modules: [Wqkv]}}\nglobal_train_batch_size: 16\n",
		"llm-foundry");
	check(KEY_model_preset, "dbrx");
	check(KEY_train_lora_rank, "64");
	check(KEY_train_lora_targets, "qkv");
	check(KEY_train_attention, "flash");
	import_free(&im);

	take("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n[parallelism]\n"
	     "[compile]\nenable = true\ncomponents = [\"loss\"]\n",
		"torchtitan");
	check(KEY_train_stack, "pytorch-fsdp-eager");
	import_free(&im);
}

UNIT_MAIN("step: shapes of imported configs", {"expressions", test_expressions},
	{"functional test", test_functional_test}, {"script", test_script}, {"dump", test_dump}, {"NeMo", test_nemo},
	{"Axolotl", test_axolotl}, {"nanotron", test_nanotron}, {"llm-foundry", test_llm_foundry},
	{"DeepSpeed", test_deepspeed}, {"others", test_others})
