/* The config: defaults, layers of origin, derived values, JSON. What ranks make of it is in test_config_plan.c, the
 * wrong ones are in tests/golden/bad. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "step/config/keys.h"
#include "tests/unit/config_cases.h"

/* Everything that the reference documents as a default, in one place. */
static void test_defaults(void)
{
	struct config c = parsed(GPT2);
	CU_ASSERT_STRING_EQUAL(c.path, "cfg.yaml");
	CU_ASSERT_STRING_EQUAL(c.model.name, "gpt2-124m");
	CU_ASSERT_TRUE(c.model.causal && c.model.bias && c.model.qkv_bias && c.model.tied_embeddings &&
		       c.model.lm_head && c.model.final_norm);
	CU_ASSERT_FALSE(c.model.parallel_residual || c.model.post_norm || c.model.embedding_norm || c.model.pooler);
	CU_ASSERT_EQUAL(c.model.max_positions, 1024);
	CU_ASSERT_STRING_EQUAL(c.train.stack, "pytorch-ddp");
	CU_ASSERT_EQUAL(c.train.global_batch, 64);
	CU_ASSERT_EQUAL(c.train.micro_batch, 8);
	CU_ASSERT_EQUAL(c.train.dtype, DT_BF16);
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_FP32);
	CU_ASSERT_EQUAL(c.train.grad_dtype, DT_FP32);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_FP32);
	CU_ASSERT_FALSE(c.train.master_weights || c.train.cuda_graph);
	CU_ASSERT_EQUAL(c.train.grad_compression, COMPRESS_NONE);
	CU_ASSERT_EQUAL(c.train.optimizer, OPT_ADAMW);
	CU_ASSERT_EQUAL(c.train.optimizer_bits, 32);
	CU_ASSERT_EQUAL(c.train.attention, ATT_FLASH);
	CU_ASSERT_EQUAL(c.train.recompute, REC_NONE);
	CU_ASSERT_EQUAL(c.train.recompute_layers, AUTO);
	CU_ASSERT_EQUAL(c.train.offload, OFF_NONE);
	CU_ASSERT_TRUE(c.train.fused);
	CU_ASSERT_EQUAL(c.data.workers, 8);
	CU_ASSERT_EQUAL(c.data.prefetch, 2);
	CU_ASSERT_TRUE(c.data.pin_memory);
	CU_ASSERT_EQUAL(c.parallel.strategy, STRAT_DDP);
	CU_ASSERT_EQUAL(c.parallel.data, AUTO);
	CU_ASSERT_EQUAL(c.parallel.tensor, 1);
	CU_ASSERT_EQUAL(c.parallel.schedule, SCHED_1F1B);
	CU_ASSERT_EQUAL(c.parallel.order[0], DIM_TP);
	CU_ASSERT_EQUAL(c.parallel.order[4], DIM_PP);
	CU_ASSERT_EQUAL(c.parallel.bucket_B, 25.0 * 1048576);
	CU_ASSERT(c.parallel.first_bucket_B < 0);
	CU_ASSERT_TRUE(c.parallel.overlap && c.parallel.reshard_after_forward);
	CU_ASSERT_EQUAL(c.parallel.prefetch, 1);
	CU_ASSERT_EQUAL(c.collectives.algorithm, ALGO_AUTO);
	CU_ASSERT_STRING_EQUAL(c.cluster.system, "auto");
	CU_ASSERT_EQUAL(c.cluster.nodes, 1);
	CU_ASSERT_EQUAL(c.cluster.gpus_per_node, 0);
	CU_ASSERT_STRING_EQUAL(c.cluster.profile, "");
	CU_ASSERT_EQUAL(c.run.execute, TRI_AUTO);
	CU_ASSERT_EQUAL(c.run.backend, BACKEND_AUTO);
	CU_ASSERT_EQUAL(c.run.warmup, 3);
	CU_ASSERT_EQUAL(c.run.steps, 10);
	CU_ASSERT_EQUAL(c.run.timeout_s, 60.0);
	CU_ASSERT_TRUE(c.run.verify);
	CU_ASSERT_EQUAL(c.cost.gpu_hour_usd, AUTO); /* no price is invented: the catalogue has it, or nobody */
	CU_ASSERT_EQUAL(c.cost.pue, AUTO);
	CU_ASSERT_EQUAL(c.ranks, 0);
}

/* The table itself: every default reads back as what it writes, every id finds its row. */
static void test_key_table(void)
{
	for (int i = 0; i < KEY_COUNT; i++) {
		enum key_id id = (enum key_id)i;
		const struct config_key *k = config_key(id);
		char path[96], text[KEY_VALUE_MAX];
		snprintf(path, sizeof path, "%s.%s", k->section, k->name);
		CU_ASSERT_STRING_EQUAL(k->path, path);
		CU_ASSERT_TRUE(config_is_section(k->section));
		CU_ASSERT_EQUAL(config_key_find(k->section, strlen(k->section), k->name), id);
		CU_ASSERT_EQUAL(config_key_find(k->section, strlen(k->section) - 1, k->name), KEY_COUNT);
		if (!k->default_ || !*k->default_)
			continue;
		struct config a = {0}, b = {0};
		key_set_default(k, &a);
		CU_ASSERT_TRUE(key_value_modelled(k, &a));
		CU_ASSERT_TRUE(key_in_range(k, &a));
		key_value_text(k, &a, text);
		enum ykind kind = text[0] == '[' ? Y_SEQ : text[0] == '{' ? Y_MAP : Y_SCALAR;
		struct ynode n = {.kind = kind, .file = "x", .text = text};
		CU_ASSERT_EQUAL(key_read(k, &n, &b, NULL), ST_OK);
		CU_ASSERT_TRUE(key_equal(k, &a, &b));
	}
}

static void test_units(void)
{
	struct config c = parsed(GPT2 "parallel: {bucket_mb: 64MiB}\nrun: {timeout_s: 2min}\ndata: {bytes: 4MiB}\n");
	CU_ASSERT_EQUAL(c.parallel.bucket_B, 64.0 * 1048576);
	CU_ASSERT_EQUAL(c.run.timeout_s, 120.0);
	CU_ASSERT_EQUAL(c.data.bytes, 4194304);
	c = parsed(GPT2 "parallel: {bucket_mb: 1.5, first_bucket_mb: 512KiB}\n");
	CU_ASSERT_EQUAL(c.parallel.bucket_B, 1.5 * 1048576);
	CU_ASSERT_EQUAL(c.parallel.first_bucket_B, 0.5 * 1048576);
}

static void test_derived(void)
{
	struct config c = parsed("model: {layers: 2, hidden: 512, heads: 8}");
	CU_ASSERT_STRING_EQUAL(c.model.name, "custom");
	CU_ASSERT_EQUAL(c.model.head_dim, 64);
	CU_ASSERT_EQUAL(c.model.kv_heads, 8);
	CU_ASSERT_EQUAL(c.model.ffn_hidden, 2048);
	CU_ASSERT_EQUAL(c.model.max_positions, 1024);
	c = parsed("model: {hidden: 4096, heads: 32, mlp: swiglu, position: rope, bias: false}");
	CU_ASSERT_EQUAL(c.model.ffn_hidden, 11008); /* Llama 2 7B's */
	CU_ASSERT_EQUAL(c.model.max_positions, 0);
	CU_ASSERT_FALSE(c.model.qkv_bias);
	c = parsed("model: {bias: false, qkv_bias: true}");
	CU_ASSERT_TRUE(c.model.qkv_bias);
	c = parsed("model: {hidden: 100, heads: 12, head_dim: 8}");
	CU_ASSERT_EQUAL(c.model.head_dim, 8);
	c = parsed("model: {preset: gpt2-124m, hidden: 1536, seq_len: 512}"); /* what the preset leaves open follows the
	                                                                         override */
	CU_ASSERT_EQUAL(c.model.head_dim, 128);
	CU_ASSERT_EQUAL(c.model.ffn_hidden, 6144);
	CU_ASSERT_EQUAL(c.model.max_positions, 1024);
	c = parsed("model: {preset: gpt2-124m, position: alibi}");
	CU_ASSERT_EQUAL(c.model.max_positions, 0);
	c = parsed("model: {preset: mpt-125m, seq_len: 4096}");
	CU_ASSERT_EQUAL(c.model.max_positions, 4096);
}

static void test_formats(void)
{
	struct config c = parsed(
		GPT2 "train: {param_dtype: bf16}"); /* PyTorch: gradients as the weights, the wire as the gradients */
	CU_ASSERT_EQUAL(c.train.grad_dtype, DT_BF16);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_BF16);
	c = parsed(GPT2 "train: {lora_rank: 8}"); /* the base is loaded in the format of compute */
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_BF16);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_BF16);
	c = parsed(GPT2 "train: {lora_rank: 8, param_dtype: fp32}");
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_FP32);
	c = parsed(GPT2 "train: {lora_rank: 8}\nparallel: {strategy: fsdp}");
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_FP32);
	c = parsed(GPT2 "train: {param_dtype: auto, dtype: fp16, master_weights: true}");
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_FP16);
	CU_ASSERT_TRUE(c.train.master_weights);
	c = parsed(GPT2 "train: {grad_compression: bf16}");
	CU_ASSERT_EQUAL(c.train.grad_dtype, DT_FP32);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_BF16);
	c = parsed(GPT2 "train: {stack: megatron-core}");
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_BF16);
	CU_ASSERT_EQUAL(c.train.grad_dtype, DT_BF16);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_BF16);
	CU_ASSERT_TRUE(c.train.master_weights);
	CU_ASSERT_DOUBLE_EQUAL(c.parallel.bucket_B, 80e6, 1e-3);
	CU_ASSERT_TRUE(c.parallel.tensor_overlap);
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 8, NULL), ST_OK);
	CU_ASSERT_FALSE(c.parallel.tensor_overlap); /* nothing is cut */
	c = parsed(
		GPT2 "train: {stack: megatron-core, dtype: fp32}"); /* the stack's defaults follow the compute format */
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_FP32);
	CU_ASSERT_FALSE(c.train.master_weights);
	c = parsed(GPT2 "train: {stack: deepspeed, dtype: fp16}");
	CU_ASSERT_EQUAL(c.train.grad_dtype, DT_FP16);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_FP16);
	/* Megatron-LM's fp16 gradients: 40 million a bucket, as of fp32 ones */
	c = resolved(GPT2 "train: {stack: megatron-lm}", 2);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_FP32);
	CU_ASSERT_DOUBLE_EQUAL(c.parallel.bucket_B, 160e6, 1e-3);
	c = resolved(GPT2 "train: {stack: megatron-lm, dtype: fp16}", 2);
	CU_ASSERT_EQUAL(c.train.reduce_dtype, DT_FP16);
	CU_ASSERT_DOUBLE_EQUAL(c.parallel.bucket_B, 80e6, 1e-3);
	c = parsed(GPT2 "train: {stack: pytorch-fsdp}");
	CU_ASSERT_EQUAL(c.parallel.strategy, STRAT_FSDP);
	c = parsed(GPT2 "train: {dtype: tf32}");
	CU_ASSERT_EQUAL(c.train.param_dtype, DT_FP32);
}

/* Every stack of the catalogue loads with every compute format and, with two ranks, makes a plan. */
static void test_stacks(void)
{
	char **names = NULL;
	size_t n = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(path_catalogue_names("stacks", &names, &n, &e), ST_OK);
	CU_ASSERT(n >= 4);
	for (size_t i = 0; i < n; i++) {
		static const char *const dtypes[] = {"fp32", "tf32", "fp16", "bf16"};
		for (size_t j = 0; j < COUNT(dtypes); j++) {
			char text[160];
			snprintf(text, sizeof text, GPT2 "train: {stack: %s, dtype: %s}", names[i], dtypes[j]);
			struct config c = resolved(text, 2);
			CU_ASSERT_STRING_EQUAL(c.train.stack, names[i]);
		}
	}
	path_names_free(names, n);
}

static void test_sets(void)
{
	struct config c = with_set(GPT2 "train: {micro_batch: 4}", "train.micro_batch=2");
	CU_ASSERT_EQUAL(c.train.micro_batch, 2);
	CU_ASSERT_EQUAL(c.origin[KEY_train_micro_batch].kind, ORIGIN_SET);
	c = with_set(GPT2 "parallel: {pipeline: 4}", "parallel.pipeline=1"); /* only the value that holds counts */
	CU_ASSERT_EQUAL(c.parallel.pipeline, 1);
	c = with_set(GPT2, "model.preset=llama3-8b");
	CU_ASSERT_STRING_EQUAL(c.model.name, "llama3-8b");
	CU_ASSERT_EQUAL(c.model.kv_heads, 8);
	c = with_set("", "model.preset=bert-base");
	CU_ASSERT_FALSE(c.model.causal);
	c = with_set(GPT2, "train.stack=pytorch-fsdp");
	CU_ASSERT_EQUAL(c.parallel.strategy, STRAT_FSDP);
	c = with_set(GPT2, "cluster.system=node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s");
	CU_ASSERT_STRING_EQUAL(c.cluster.system, "node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s");
	c = with_set(GPT2, "cluster.profile=\"a: b.yaml\"");
	CU_ASSERT_STRING_EQUAL(c.cluster.profile, "a: b.yaml");
	c = with_set(GPT2, "parallel.layers_per_stage=[]");
	CU_ASSERT_EQUAL(c.parallel.n_layers_per_stage, 0);
	c = with_set(GPT2, "parallel.order=dp-tp-cp-ep-pp");
	CU_ASSERT_EQUAL(c.parallel.order[0], DIM_DP);

	static const char *const twice[] = {"run.steps=3", "run.steps=5"};
	struct error e;
	CU_ASSERT_EQUAL(parse_sets(GPT2, twice, 2, &c, &e), ST_OK);
	CU_ASSERT_EQUAL(c.run.steps, 5);
}

/* A prediction re-created from the JSON of its result is the same prediction. ranks 0: those of one replica, at
 * least 2. */
static void json_round_trip(const char *path, int64_t ranks)
{
	struct config a, b;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(config_load(path, NULL, 0, &a, &e), ST_OK);
	int64_t replica = a.parallel.tensor * a.parallel.pipeline * a.parallel.context;
	if (ranks == 0)
		ranks = replica > 1 ? replica : 2;
	enum status st = config_resolve(&a, ranks, &e);
	if (st)
		printf("\n%s: %s\n", path, e.text);
	CU_ASSERT_EQUAL_FATAL(st, ST_OK);
	json_t *json = config_json(&a), *again = NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	char *text = json_dumps(json, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), "again.json", NULL, 0, &b, &e), ST_OK);
	CU_ASSERT_EQUAL(config_resolve(&b, ranks, &e), ST_OK);
	if (e.status)
		printf("\n%s: %s\n", path, e.text);
	again = config_json(&b);
	CU_ASSERT_TRUE(json_equal(json, again));
	CU_ASSERT_EQUAL(a.micro_batches, b.micro_batches);
	json_decref(json);
	json_decref(again);
	free(text);
}

static void test_examples(void)
{
	char home[PATH_MAX_LEN], folder[PATH_MAX_LEN + 16], path[PATH_MAX_LEN + 300];
	CU_ASSERT_EQUAL_FATAL(path_home(home, NULL), ST_OK);
	snprintf(folder, sizeof folder, "%s/configs", home);
	DIR *dir = opendir(folder);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	int n = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		size_t len = strlen(entry->d_name);
		if (len < 6 || strcmp(entry->d_name + len - 5, ".yaml") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		char *end = entry->d_name;
		int64_t ranks = strrchr(end, '-') ? strtoll(strrchr(end, '-') + 1, &end, 10) : 0;
		json_round_trip(path, *end == 'x' ? ranks : 0); /* "...-64xh100.yaml" */
		n++;
	}
	closedir(dir);
	CU_ASSERT(n >= 9);
}

/* Rank 0 sends the struct as bytes, so two loads of one text have the same ones, padding included. */
static void test_plain_bytes(void)
{
	static struct config a, b;
	struct error e;
	memset(&a, 0x5a, sizeof a);
	memset(&b, 0xa5, sizeof b);
	CU_ASSERT_EQUAL(parse_sets(GPT2 "train: {micro_batch: 4}", NULL, 0, &a, &e), ST_OK);
	CU_ASSERT_EQUAL(parse_sets(GPT2 "train: {micro_batch: 4}", NULL, 0, &b, &e), ST_OK);
	CU_ASSERT_EQUAL(memcmp(&a.train, &b.train, sizeof a.train), 0);
	CU_ASSERT_EQUAL(memcmp(&a.cluster, &b.cluster, sizeof a.cluster), 0);
	CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
}

static void test_words(void)
{
	CU_ASSERT_STRING_EQUAL(strategy_name(STRAT_FSDP), "fsdp");
	CU_ASSERT_STRING_EQUAL(mesh_dim_name(DIM_CP), "cp");
	CU_ASSERT_STRING_EQUAL(mesh_dim_name(DIM_DP_CP), "dp-cp");
	CU_ASSERT_STRING_EQUAL(mesh_dim_name(DIM_REPLICA), "replica");
	CU_ASSERT_STRING_EQUAL(optimizer_name(OPT_LION), "lion");
	for (int i = 0; i < DT_COUNT; i++)
		CU_ASSERT_EQUAL(dtype_by_name(dtype_name((enum dtype)i)), i);
	CU_ASSERT_EQUAL(dtype_by_name("fp64"), DT_COUNT);
	CU_ASSERT_EQUAL(dtype_bytes(DT_TF32), 4.0);
	CU_ASSERT_EQUAL(dtype_bytes(DT_BF16), 2.0);
	CU_ASSERT_EQUAL(dtype_bytes(DT_MXFP8), 33.0 / 32.0);
	CU_ASSERT_EQUAL(dtype_bytes(DT_NVFP4), 9.0 / 16.0);
}

static void test_slow_ranks(void)
{
	struct config c = parsed(GPT2 "train: {micro_batch: 2}\n"
				      "cluster: {system: dgx-h100, nodes: 2, slow_ranks: {3: 1.2, n1: 1.5, 9: 1.1}}");
	c.node_ranks = 8;
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 16, NULL), ST_OK);
	CU_ASSERT_EQUAL(config_slowness(&c, 0, 8), 1);
	CU_ASSERT_EQUAL(config_slowness(&c, 3, 8), 1.2);
	CU_ASSERT_EQUAL(config_slowness(&c, 9, 8), 1.5); /* the larger of its own and its host's */
	CU_ASSERT_EQUAL(config_slowness(&c, 15, 8), 1.5);
	json_t *j = config_json(&c), *slow = json_object_get(json_object_get(j, "cluster"), "slow_ranks");
	CU_ASSERT_EQUAL(json_object_size(slow), 3);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(slow, "n1")), 1.5);
	json_decref(j);
}

/* What docs/status.md lists for experts, and for heads of keys, as predicted, not executed; ordinary experts are
 * executed. */
static void test_predicted_only(void)
{
	static const char *const sets[] = {"model: {experts: 8, experts_per_token: 2, expert_groups: 4}\n",
		"model: {experts: 8, router_bias: true}\n",
		"model: {experts: 8}\nparallel: {expert_dispatch: once_a_host}\n",
		"model: {experts: 8}\nparallel: {expert_dispatch: deepep}\n",
		"model: {experts: 8}\nparallel: {dispatch_dtype: fp8}\n",
		"model: {heads: 8, kv_heads: 2, hidden: 512, vocab: 512}\nparallel: {tensor: 8}\n",
		"model: {experts: 8}\ntrain: {recompute: selective, recompute_modules: [op]}\n"};
	static const char *const keys[] = {"model.expert_groups", "model.router_bias", "parallel.expert_dispatch",
		"parallel.expert_dispatch", "parallel.dispatch_dtype", "parallel.tensor above model.kv_heads",
		"train.recompute_modules op"};
	const struct config plain = parsed("model: {experts: 8}\n");
	CU_ASSERT_PTR_NULL(config_predicted_only(&plain));
	for (size_t i = 0; i < COUNT(sets); i++) {
		const struct config c = parsed(sets[i]);
		const char *why = config_predicted_only(&c);
		CU_ASSERT_TRUE(why && strncmp(why, keys[i], strlen(keys[i])) == 0);
	}
}

/* Copies of gradients beside DDP's buckets are a habit of PyTorch's stacks, which stepsim's executor has not. It says
 * so where a user asks for them. */
static void test_executed(void)
{
	struct config c = resolved(GPT2, 2), given = resolved(GPT2 "parallel: {gradient_as_bucket_view: false}", 2);
	CU_ASSERT_FALSE(c.parallel.gradient_as_bucket_view);
	CU_ASSERT_TRUE(parallel_holds_buckets(&c) && gradients_are_freed(&c));
	CU_ASSERT_PTR_NULL(config_predicted_only(&c));
	CU_ASSERT_PTR_NOT_NULL(config_predicted_only(&given));
	const double context_B = c.stack.memory.context_B;
	c = resolved(GPT2 "parallel: {gradient_as_bucket_view: true}", 2);
	CU_ASSERT_FALSE(parallel_holds_buckets(&c) || gradients_are_freed(&c));
	c = resolved(GPT2 "train: {stack: megatron-lm}", 2);
	CU_ASSERT_TRUE(c.parallel.gradient_as_bucket_view);

	c = resolved(GPT2 "train: {stack: deepspeed}\nparallel: {strategy: zero2}", 2);
	CU_ASSERT_TRUE(gradients_are_freed(&c));
	c = resolved(GPT2 "train: {stack: deepspeed}\nparallel: {strategy: fsdp}", 2);
	CU_ASSERT_FALSE(gradients_are_freed(&c));

	c = parsed(GPT2 "train: {stack: pytorch-ddp-eager}");
	CU_ASSERT(c.stack.memory.loss_B > 0);
	c.executed = 1;
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 2, NULL), ST_OK);
	CU_ASSERT_TRUE(c.parallel.gradient_as_bucket_view);
	CU_ASSERT_FALSE(parallel_holds_buckets(&c) || gradients_are_freed(&c));
	CU_ASSERT_EQUAL(c.stack.memory.loss_B + c.stack.memory.update_copies + c.stack.gradient_passes, 0);
	CU_ASSERT_EQUAL(c.stack.memory.context_B, c.stack.memory.executor_B);
	CU_ASSERT(c.stack.memory.context_B > 0 && c.stack.memory.context_B < context_B);
}

UNIT_MAIN("config", {"predicted only", test_predicted_only}, {"executed", test_executed},
	{"slow ranks", test_slow_ranks}, {"defaults", test_defaults}, {"key table", test_key_table},
	{"units", test_units}, {"derived values", test_derived}, {"formats", test_formats}, {"stacks", test_stacks},
	{"--set", test_sets}, {"examples and their JSON", test_examples}, {"plain bytes", test_plain_bytes},
	{"words", test_words})
