/* Tags of YAML in other programs' configs, and the frameworks whose configs have or need them: Levanter, Lingua; and
 * prime-rl, whose defaults changed with its names. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/utf8.h"
#include "tests/unit/import_check.h"

/* ---- tags, included files ---- */

static void write_file(const char *path, const char *text)
{
	CU_ASSERT_EQUAL_FATAL(file_write(path, text, strlen(text), NULL), ST_OK);
}

static void take_file(const char *name, const char *text)
{
	struct error e = {0};
	bool found = false;
	CU_ASSERT_EQUAL_FATAL(import_read(text, strlen(text), name, NULL, &found, &im, &e), ST_OK);
	CU_ASSERT_FATAL(found);
}

static void refuse_file(const char *name, const char *text, const char *message)
{
	struct error e = {0};
	bool found = false;
	CU_ASSERT_EQUAL(import_read(text, strlen(text), name, NULL, &found, &im, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, message);
	if (strcmp(e.text, message) != 0)
		printf("\n%s\n", e.text);
}

#define LEVANTER "model: {type: llama, seq_len: 4096, num_layers: 2, hidden_dim: 64, num_heads: 4}\n"

static void test_include(void)
{
	char folder[] = "/tmp/stepsim_include_XXXXXX", name[64], path[64], message[256];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(name, sizeof name, "%s/gpt.yaml", folder);
	snprintf(path, sizeof path, "%s/pile.yaml", folder);
	write_file(path, "tokenizer: meta-llama/Llama-2-7b-hf\nid: pile\n");
	take_file(name, LEVANTER "data: !include pile.yaml\ntrainer: {train_batch_size: 512}\nodd: !include no.yaml\n"
				 "mine: !mine [1]\n");
	check(KEY_model_vocab, "32000");
	check_leaf("data.id", NO_EFFECT, "where weights and data lie");
	check_leaf("odd", NOT_MODELLED, "not known to stepsim");
	CU_ASSERT_STRING_EQUAL(foreign_find(&im.foreign, "odd")->value, "!include no.yaml");
	CU_ASSERT_STRING_EQUAL(foreign_find(&im.foreign, "mine")->value, "[1]");
	import_free(&im);

	write_file(path, "tokenizer: [1\n");
	snprintf(message, sizeof message,
		"%s:2:1: did not find expected ',' or ']' (while parsing a flow sequence that began at %s:1:12)", path,
		path);
	refuse_file(name, LEVANTER "trainer: {train_batch_size: 512}\ndata: !include pile.yaml\n", message);
	write_file(path, "again: !include pile.yaml\n");
	snprintf(message, sizeof message, "%s:1:8: more than 32 files are included", path);
	refuse_file(name, LEVANTER "trainer: {train_batch_size: 512}\ndata: !include pile.yaml\n", message);
	unlink(path);
	rmdir(folder);
}

/* Characters of several bytes stay whole where a value is cut to be shown, and where a key's name is. */
static void test_cut_texts(void)
{
	char text[1024], *config = NULL, *word = text;
	size_t len = 0;
	struct error e = {0};
	word += sprintf(word, "train_micro_batch_size_per_gpu: 2\nzero_optimization: {stage: 2}\nwandb: {group: x");
	for (int i = 0; i < 100; i++)
		word += sprintf(word, "\u8bad");
	sprintf(word, "}\n");
	take(text, "deepspeed");
	FILE *out = open_memstream(&config, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(import_write(&im, out, &e), ST_OK);
	fclose(out);
	CU_ASSERT_EQUAL(utf8_check(config, len, "config", &e), ST_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(config, "wandb.group = x\u8bad\u8bad\u8bad\u8bad\u8bad\u8bad...: files"));
	free(config);
	import_free(&im);
}

/* ---- Lingua ---- */

#define LINGUA \
	"dump_dir: !!CHANGETHIS!!\nname: a\ndata: {batch_size: 4, seq_len: 4096}\n" \
	"model: {dim: 2048, n_layers: 25, n_heads: 16}\n"

/* 8/3 of 2048 is 5461.3, 22 times 256 are 5632. */
static void test_lingua(void)
{
	take(LINGUA "distributed: {fsdp_type: full_shard, compile: true, model_dtype: bf16,\n"
		    " selective_activation_checkpointing: true}\ngrad_acc_steps: 3\n",
		"lingua");
	check(KEY_model_ffn_hidden, "5632");
	check(KEY_model_seq_len, "4096");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_parallel_reshard_after_forward, "false");
	check(KEY_train_stack, "pytorch-fsdp");
	check(KEY_train_micro_batch, "4");
	check(KEY_train_batch_per_gpu, "12");
	check(KEY_train_recompute, "selective");
	check(KEY_train_recompute_modules, "[op]");
	check(KEY_train_recompute_saves, "[qkv, attention, proj, fc1]");
	check_leaf("dump_dir", NO_EFFECT, "files and logs");
	CU_ASSERT_STRING_EQUAL(foreign_find(&im.foreign, "dump_dir")->value, "!!CHANGETHIS!!");
	import_free(&im);

	/* Shards of 8 GPUs, replicated; two tensor ranks see one batch. */
	take(LINGUA "distributed: {fsdp_type: full_shard, dp_shard: 8, tp_size: 2, float8_recipe: rowwise}\n",
		"lingua");
	check(KEY_parallel_strategy, "hsdp");
	check(KEY_parallel_shard, "8");
	check(KEY_parallel_sequence_parallel, "true");
	check(KEY_train_batch_per_gpu, "2");
	check(KEY_train_dtype, "fp8");
	check(KEY_train_fp8_recipe, "rowwise");
	check(KEY_train_stack, "pytorch-fsdp-eager");
	import_free(&im);
	/* 1.3 times 5461.3 are 7099.7, 7 times 1024 are 7168 */
	take("name: a\nmodel: {dim: 2048, n_heads: 16, ffn_dim_multiplier: 1.3, multiple_of: 1024}\n"
	     "distributed: {model_dtype: bf16}\n",
		"lingua");
	check(KEY_model_ffn_hidden, "7168");
	check(KEY_model_layers, "8");
	check(KEY_parallel_strategy, "ddp");
	import_free(&im);
}

/* ---- prime-rl ---- */

#define PRIME(model, rest) \
	"[model]\nname = \"zai-org/GLM-4.5-Air\"\n" model "[data]\nseq_len = 16384\nbatch_size = 16\n" rest

/* Until GPUs were num_train_gpus, nothing was on unless asked for; a block that is recomputed ran eagerly. */
static void test_prime_before(void)
{
	take(PRIME("attn = \"flash_attention_3\"\ncp = 4\ncp_style = \"ulysses\"\nep = 8\n"
		   "[model.ac]\n[model.compile]\n",
		     "[deployment]\ntype = \"multi_node\"\nnum_nodes = 4\n"),
		"prime-rl");
	check(KEY_model_preset, "glm-4.5-air");
	check(KEY_train_global_batch, "16");
	check(KEY_train_micro_batch, "1");
	check(KEY_parallel_context, "4");
	check(KEY_parallel_context_kind, "all_to_all");
	check(KEY_parallel_expert, "8");
	check(KEY_train_attention_kernel, "fa3");
	check(KEY_train_recompute, "full");
	check(KEY_train_stack, "pytorch-fsdp-eager");
	check(KEY_train_offload, NULL);
	check(KEY_train_loss_chunk, "0");
	check(KEY_cluster_nodes, "4");
	import_free(&im);
	take(PRIME("optimization_dtype = \"bfloat16\"\nfp8 = true\n[model.compile]\nfullgraph = true\n[model.lora]\n",
		     "[deployment]\nnum_gpus = 1\n"),
		"prime-rl");
	check(KEY_train_recompute, "none");
	check(KEY_train_stack, "pytorch-fsdp");
	check(KEY_train_attention_kernel, "fa2");
	check(KEY_train_dtype, "fp8");
	check(KEY_train_fp8_recipe, "blockwise");
	check(KEY_train_param_dtype, "bf16");
	check(KEY_train_lora_rank, "16");
	check(KEY_parallel_strategy, "none");
	import_free(&im);
}

static void test_prime_since(void)
{
	take(PRIME("", "[deployment]\nnum_train_gpus = 8\n"), "prime-rl");
	check(KEY_train_recompute, "full");
	check(KEY_train_stack, "pytorch-fsdp");
	check(KEY_train_offload, "optimizer");
	check(KEY_train_loss_chunk, "8192");
	check(KEY_train_attention_kernel, NULL);
	check(KEY_cluster_gpus_per_node, "8");
	import_free(&im);

	take(PRIME("optim_cpu_offload = false\n[model.ac]\nmode = \"selective\"\n[model.ac_offloading]\n"
		   "[model.moe.compute]\ntype = \"deepgemm_fp8\"\n[model.quantization]\ntype = \"fp8\"\n"
		   "[model.debug]\nnum_layers = 24\n",
		     "[deployment]\nnum_train_nodes = 2\nnodes_per_fsdp_group = 1\ngpus_per_node = 8\n"),
		"prime-rl");
	check(KEY_model_layers, "24");
	check(KEY_train_recompute, "selective");
	check(KEY_train_recompute_modules, "[op]");
	check(KEY_train_offload, "activations");
	check(KEY_train_dtype, "fp8");
	check(KEY_train_wide_experts, "false");
	check(KEY_parallel_strategy, "hsdp");
	check(KEY_parallel_shard, "8");
	import_free(&im);

	take(PRIME("optim_cpu_offload = true\n[model.ac_offloading]\n", "[optim]\ntype = \"muon\"\n"
									"[deployment]\nnum_train_nodes = 2\n"),
		"prime-rl");
	check(KEY_train_optimizer, "muon");
	check(KEY_train_offload, "activations");
	check_leaf("model.optim_cpu_offload", NOT_MODELLED, "train.offload has no \"optimizer of muon\"");
	import_free(&im);
}

/* Models where the hub's cache keeps them. */
static void test_cached_model(void)
{
	static const char *const ids[][2] =
		{{"/home/hub/models--zai-org--GLM-4.5-Air/snapshots/a24ceef6ce4f3536971efe9b778bdaa1bab18daa",
			 "glm-4.5-air"},
			{"/hub/models--Qwen--Qwen3-8B/snapshots/abc/", "qwen3-8b"},
			{"models--Qwen--Qwen3-8B", "qwen3-8b"}, {"/hub/models--Qwen/Qwen3-8B--x/", NULL},
			{"models--", NULL}, {"/data/models--Qwen--/snapshots", NULL}};
	char preset[KEY_VALUE_MAX];
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		const bool known = hub_value(ids[i][0], KEY_model_preset, preset);
		CU_ASSERT_EQUAL(known, ids[i][1] != NULL);
		CU_ASSERT(!known || (ids[i][1] && strcmp(preset, ids[i][1]) == 0));
	}
}

/* ---- what a script's launcher is told ---- */

/* modelscope/ms-swift examples/train/agent/train.sh: variables before the command, 32 / 4 sequences a GPU. */
static void test_launchers(void)
{
	take("nproc_per_node=4\n\nNPROC_PER_NODE=$nproc_per_node \\\nCUDA_VISIBLE_DEVICES=0,1,2,3 \\\nswift sft \\\n"
	     " --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset iic/ms_agent --torch_dtype bfloat16 \\\n"
	     " --per_device_train_batch_size 1 --gradient_accumulation_steps $(expr 32 / $nproc_per_node) \\\n"
	     " --deepspeed zero3 --max_length 2048\n",
		"transformers");
	check(KEY_cluster_gpus_per_node, "4");
	check(KEY_train_batch_per_gpu, "8");
	import_free(&im);

	/* one GPU of eight */
	take("NNODES=5\nexport CUDA_LAUNCH_BLOCKING=1 NCCL_P2P_DISABLE=1\n"
	     "CUDA_VISIBLE_DEVICES=3 llamafactory-cli train \\\n"
	     " --model_name_or_path meta-llama/Llama-3.1-8B --finetuning_type lora --cutoff_len 2048\n",
		"llama-factory");
	check(KEY_cluster_gpus_per_node, "1");
	check(KEY_cluster_nodes, NULL);
	check(KEY_train_launch_blocking, "true");
	check_leaf("NCCL_P2P_DISABLE", NOT_MODELLED, "what NCCL is told to do");
	import_free(&im);

	take("FORCE_TORCHRUN=1 NNODES=2 NODE_RANK=0 llamafactory-cli train --model_name_or_path meta-llama/Llama-3.1-8B"
	     " --finetuning_type lora --gradient_accumulation_steps $(expr $A \\* 2)\n",
		"llama-factory");
	check(KEY_cluster_nodes, "2");
	CU_ASSERT_TRUE(foreign_find(&im.foreign, "gradient_accumulation_steps")->absent);
	import_free(&im);
}

/* ms-swift 2, and its `megatron sft`, whose model became a checkpoint of Megatron-Core. */
static void test_swift(void)
{
	take("swift sft --model_type qwen2 --model_id_or_path /m/Qwen2___5-7B-Instruct --dataset a --sft_type lora \\\n"
	     " --batch_size 4 --dtype AUTO --max_length 8192 --gradient_accumulation_steps 8\n",
		"transformers");
	check(KEY_model_preset, "qwen2.5-7b");
	check(KEY_train_micro_batch, "4");
	check(KEY_train_batch_per_gpu, "32");
	check(KEY_train_dtype, "bf16");
	check(KEY_train_lora_rank, "8");
	check(KEY_train_recompute, "full");
	import_free(&im);
	take("NPROC_PER_NODE=8 \\\nmegatron sft --load Qwen1.5-MoE-A2.7B-mcore --pipeline_model_parallel_size 2 \\\n"
	     " --micro_batch_size 1 --max_length 8192 --expert_model_parallel_size 4 --packing true\n",
		"megatron");
	check(KEY_model_preset, "qwen1.5-moe-a2.7b");
	check(KEY_model_seq_len, "8192");
	check(KEY_train_stack, "megatron-core");
	check(KEY_train_global_batch, "16");
	check(KEY_train_dtype, "bf16");
	check(KEY_train_recompute, "selective");
	check(KEY_parallel_strategy, "zero1");
	check(KEY_parallel_expert, "4");
	check(KEY_cluster_gpus_per_node, "8");
	import_free(&im);
}

/* Adapters of NeMo 1 and 2; MindSpeed's kinds of context parallelism. */
static void test_nemo_adapters(void)
{
	static const char nemo[] =
		"trainer: {devices: 8, precision: bf16}\nmodel:\n  num_layers: 32\n  hidden_size: 4096\n"
		"  num_attention_heads: 32\n  encoder_seq_length: 2048\n";
	char text[1024];
	snprintf(text, sizeof text,
		"%s  peft: {peft_scheme: lora, lora_tuning: {target_modules: [attention_qkv], "
		"adapter_dim: 16, alpha: 32}}\n",
		nemo);
	take(text, "nemo");
	check(KEY_train_lora_rank, "16");
	check(KEY_train_lora_targets, "qkv");
	check_leaf("model.peft.lora_tuning.alpha", NO_EFFECT, "arithmetic of an adapter");
	import_free(&im);
	snprintf(text, sizeof text, "%s  peft: {peft_scheme: lora, lora_tuning: {target_modules: [attention_all]}}\n",
		nemo);
	take(text, "nemo");
	check(KEY_train_lora_rank, "32");
	check(KEY_train_lora_targets, "attention");
	import_free(&im);
	snprintf(text, sizeof text, "%s  peft: {peft_scheme: ptuning}\n", nemo);
	take(text, "nemo");
	check(KEY_train_lora_rank, NULL);
	check_leaf("model.peft.peft_scheme", NOT_MODELLED, "train.lora_rank has no \"ptuning\"");
	import_free(&im);
	take("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 14 --hidden-size 8192 --num-attention-heads 64 "
	     "--seq-length 8192 --micro-batch-size 1 --context-parallel-size 2 "
	     "--context-parallel-algo ulysses_cp_algo\n",
		"megatron");
	check(KEY_parallel_context_kind, "all_to_all");
	import_free(&im);
}

/* Keys of Axolotl and transformers in one file; torchtitan 0.1, whose degrees stood in other tables; Levanter's LoRA;
 * MaxText on two hosts of 8. */
static void test_user_files(void)
{
	take("base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\n"
	     "gradient_accumulation_steps: 4\nlearning_rate: 0.0002\noutput_dir: out\ndatasets: [{path: a}]\n",
		"axolotl");
	check(KEY_model_preset, "llama3-8b");
	check(KEY_train_micro_batch, "2");
	import_free(&im);
	take("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nbatch_size = 1\ndata_parallel_shard_degree = 4\n"
	     "tensor_parallel_degree = 2\n[experimental]\npipeline_parallel_degree = 2\n"
	     "[activation_checkpoint]\nmode = 'full'\n[float8]\nenable_float8_linear = true\n",
		"torchtitan");
	check(KEY_parallel_tensor, "2");
	check(KEY_parallel_pipeline, "2");
	check(KEY_parallel_data, "4");
	check(KEY_parallel_strategy, "fsdp");
	check(KEY_train_dtype, "fp8");
	import_free(&im);
	take("model_name_or_path: meta-llama/Llama-2-7b-hf\nlora: {r: 8, target_modules: [q_proj]}\ndata: {id: a}\n"
	     "optimizer: {learning_rate: 1e-4}\ntrainer: {train_batch_size: 128}\n",
		"levanter");
	check(KEY_train_lora_rank, "8");
	check(KEY_train_lora_targets, "qkv");
	import_free(&im);
	take("base_config: base.yml\nmodel_name: llama3-8b\nici_fsdp_parallelism: 8\ndcn_data_parallelism: 2\n",
		"maxtext");
	check(KEY_parallel_strategy, "hsdp");
	check(KEY_parallel_replicate, "2");
	check(KEY_parallel_data, "16");
	import_free(&im);
}

UNIT_MAIN("import: tags and fine-tuning", {"tags and included files", test_include},
	{"texts that are cut", test_cut_texts}, {"Lingua", test_lingua}, {"prime-rl, before", test_prime_before},
	{"prime-rl, since", test_prime_since}, {"models in the hub's cache", test_cached_model},
	{"what a launcher is told", test_launchers}, {"ms-swift", test_swift},
	{"NeMo's adapters, MindSpeed", test_nemo_adapters}, {"files of users", test_user_files})
