/* The config against a number of ranks: what the plan resolves to, and which plans are refused. */
#include <string.h>

#include "step/config/keys.h"
#include "tests/unit/config_cases.h"

static void test_resolve(void)
{
	struct config c = resolved(GPT2, 4);
	CU_ASSERT_EQUAL(c.ranks, 4);
	CU_ASSERT_EQUAL(c.parallel.data, 4);
	CU_ASSERT_EQUAL(c.micro_batches, 2);
	CU_ASSERT_EQUAL(c.parallel.first_bucket_B, 1.0 * 1048576);
	CU_ASSERT_EQUAL(c.train.recompute_layers, 0);
	CU_ASSERT_EQUAL(c.data.bytes, 8 * 8 * 1024);
	c = resolved(GPT2 "parallel: {bucket_mb: 25}", 4); /* given, so PyTorch has no smaller first bucket */
	CU_ASSERT_EQUAL(c.parallel.first_bucket_B, 25.0 * 1048576);
	c = resolved(GPT2 "parallel: {bucket_mb: 100, first_bucket_mb: 2}", 4);
	CU_ASSERT_EQUAL(c.parallel.first_bucket_B, 2.0 * 1048576);
	c = resolved(GPT2 "train: {stack: deepspeed}", 4);
	CU_ASSERT_EQUAL(c.parallel.first_bucket_B, c.parallel.bucket_B);
	CU_ASSERT_EQUAL(c.stack.gradient_passes + c.stack.gradient_calls, 0); /* without ZeRO */
	c = resolved(GPT2 "train: {stack: deepspeed, global_batch: 64, micro_batch: 4}\nparallel: {strategy: zero2}",
		4);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_passes, 3 + 3.5 / 4, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_calls, 1.5, 1e-12);
	c = resolved(GPT2 "train: {stack: deepspeed, global_batch: 64, micro_batch: 4}\nparallel: {strategy: fsdp}", 4);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_passes, 3 + 1.5 / 4, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_calls, 2, 1e-12); /* every parameter has a part here */
	c = resolved(GPT2 "train: {stack: deepspeed, global_batch: 64, micro_batch: 4}\nparallel: {strategy: zero1}",
		4);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_calls, 1.5 / 4, 1e-12); /* with the last of four micro-batches */
	c = resolved(GPT2 "train: {stack: pytorch-ddp, global_batch: 64, micro_batch: 4}", 4);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_passes, 2.0 / 4, 1e-12); /* with the last of four micro-batches */
	CU_ASSERT_EQUAL(c.stack.gradient_kernels, 0);                    /* compiled */
	c = resolved(GPT2 "train: {stack: pytorch-ddp-eager, global_batch: 64, micro_batch: 4}", 4);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_kernels, 2.0 / 4, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.buffer_kernels, 1.0 / 4, 1e-12);
	c = resolved(GPT2 "train: {stack: pytorch-ddp-eager, global_batch: 64, micro_batch: 4}\n"
			  "parallel: {gradient_as_bucket_view: true}",
		4);
	CU_ASSERT_DOUBLE_EQUAL(c.stack.gradient_kernels, 1.0 / 4, 1e-12); /* no way back */
	CU_ASSERT_DOUBLE_EQUAL(c.stack.buffer_kernels, 1.0 / 4, 1e-12);
	c = resolved(GPT2 "train: {stack: pytorch-ddp}", 1);
	CU_ASSERT_EQUAL(c.stack.gradient_passes, 0); /* no bucket */
	c = resolved(GPT2 "train: {stack: pytorch-fsdp, global_batch: 64, micro_batch: 4}\nparallel: {strategy: fsdp}",
		4);
	CU_ASSERT_EQUAL(c.stack.gradient_passes, 2);  /* two gathers */
	CU_ASSERT_EQUAL(c.stack.gradient_kernels, 0); /* one for all tensors of a unit */
	c = resolved(GPT2 "train: {stack: pytorch-fsdp}\nparallel: {strategy: fsdp, reshard_after_forward: false}", 4);
	CU_ASSERT_EQUAL(c.stack.gradient_passes, 1);
	CU_ASSERT_EQUAL(c.stack.gradient_calls, 0);
	c = resolved("model: {preset: mixtral-8x7b}\ntrain: {stack: pytorch-fsdp}\nparallel: {expert: 2}", 4);
	CU_ASSERT_EQUAL(c.stack.expert_passes, 2); /* two ranks hold each expert */
	c = resolved("model: {preset: mixtral-8x7b}\ntrain: {stack: pytorch-fsdp}\nparallel: {expert: 4}", 4);
	CU_ASSERT_EQUAL(c.stack.gradient_passes, 2);
	CU_ASSERT_EQUAL(c.stack.expert_passes, 0); /* one does */
	c = resolved("model: {preset: gpt-oss-20b}\ntrain: {stack: megatron-core}", 1);
	CU_ASSERT_EQUAL(c.stack.biased_cols, 2880);
	c = resolved("model: {preset: gpt-oss-20b}\ntrain: {stack: megatron-core, cuda_graph: true}", 1);
	CU_ASSERT_EQUAL(c.stack.biased_cols, 0); /* fused: a graph knows no counts of rows */
	c = resolved(GPT2 "train: {stack: megatron-core, global_batch: 800, micro_batch: 1}", 8);
	CU_ASSERT_DOUBLE_EQUAL(c.parallel.bucket_B, 80e6, 1e-3);
	c = resolved(GPT2 "train: {stack: megatron-core, global_batch: 800, micro_batch: 1}", 100);
	CU_ASSERT_DOUBLE_EQUAL(c.parallel.bucket_B, 200e6, 1e-3); /* a million bf16 gradients a rank */
	CU_ASSERT_EQUAL(c.parallel.first_bucket_B, c.parallel.bucket_B);
	c = resolved(GPT2 "train: {stack: megatron-core, global_batch: 800, micro_batch: 1}\n"
			  "parallel: {bucket_mb: 160MB}",
		100);
	CU_ASSERT_DOUBLE_EQUAL(c.parallel.bucket_B, 160e6, 1e-3);
	static const struct {
		const char *train, *overlap;
		bool is;
	} cut[] = {{"fp8", "", true}, {"nvfp4", "", false}, {"nvfp4", ", tensor_overlap: true", true}};
	for (size_t i = 0; i < COUNT(cut); i++) {
		char text[256];
		snprintf(text, sizeof text,
			"model: {preset: llama3-8b}\ntrain: {stack: megatron-core, dtype: %s}\n"
			"parallel: {tensor: 2, sequence_parallel: true%s}",
			cut[i].train, cut[i].overlap);
		CU_ASSERT_EQUAL(resolved(text, 8).parallel.tensor_overlap, cut[i].is);
	}
	c = resolved(GPT2 "train: {recompute: full}", 4);
	CU_ASSERT_EQUAL(c.train.recompute_layers, 12);
	c = resolved(GPT2 "train: {recompute: selective, recompute_layers: 5}", 4);
	CU_ASSERT_EQUAL(c.train.recompute_layers, 5);
	static const struct {
		const char *stack, *key;
		bool last;
	} ends[] = {{"megatron-core", "auto", true}, {"megatron-core", "true", false},
		{"pytorch-fsdp-eager", "auto", false}, {"pytorch-fsdp-eager", "false", true}};
	for (size_t i = 0; i < COUNT(ends); i++) {
		char text[256];
		snprintf(text, sizeof text, GPT2 "train: {stack: %s, recompute: full, recompute_early_stop: %s}",
			ends[i].stack, ends[i].key);
		CU_ASSERT_EQUAL(resolved(text, 4).stack.recompute_last_gemm, ends[i].last);
	}
	static const struct {
		const char *stack, *key;
		bool ahead;
	} gathers[] = {{"megatron-core", "auto", true}, {"megatron-core", "false", false},
		{"megatron-lm", "auto", false}, {"megatron-lm", "true", true}};
	for (size_t i = 0; i < COUNT(gathers); i++) {
		char text[256];
		snprintf(text, sizeof text,
			GPT2 "train: {stack: %s}\nparallel: {strategy: zero1, overlap: true, gather_overlap: %s}",
			gathers[i].stack, gathers[i].key);
		CU_ASSERT_EQUAL(resolved(text, 4).stack.gather_ahead, gathers[i].ahead);
	}
	c = resolved("model: {preset: llama3-8b}\ntrain: {micro_batch: 1}\n"
		     "parallel: {tensor: 4, sequence_parallel: true, strategy: zero1}",
		16);
	CU_ASSERT_EQUAL(c.parallel.data, 4);
	CU_ASSERT_EQUAL(c.micro_batches, 16);
	CU_ASSERT_TRUE(c.parallel.sequence_parallel);
	c = resolved("model: {preset: llama3-8b}\nparallel: {tensor: 1, sequence_parallel: true}", 1);
	CU_ASSERT_FALSE(c.parallel.sequence_parallel);
	c = resolved("model: {preset: bert-base}", 2); /* predicts although its published count has no head */
	CU_ASSERT_EQUAL(c.model.type_vocab, 2);
	c = resolved(GPT2 "parallel: {strategy: none}", 1);
	CU_ASSERT_EQUAL(c.parallel.data, 1);
	c = resolved("model: {preset: llama3-8b, sliding_window: 8192}", 1); /* no narrower than the sequence */
	CU_ASSERT_EQUAL(c.model.sliding_window, 8192);
	c = resolved(GPT2 "parallel: {strategy: zero3}", 2); /* DeepSpeed's word for fsdp */
	CU_ASSERT_EQUAL(c.parallel.strategy, STRAT_FSDP);
}

/* The keys that size a step: what was given last counts. */
static void test_global_batch(void)
{
	static const char *const both[] = {"train.tokens_per_step=64k", "train.batch_per_gpu=2"};
	struct config c = resolved(GPT2 "train: {tokens_per_step: 64Ki, micro_batch: 4}", 4);
	struct error e;
	CU_ASSERT_EQUAL(c.train.global_batch, 64); /* 65,536 tokens of 1,024 */
	c = parsed(GPT2 "train: {batch_per_gpu: 2.5, micro_batch: 1}");
	CU_ASSERT_EQUAL(config_global_batch(&c, 4), 10);
	c = parsed(GPT2 "train: {batch_per_gpu: 3, micro_batch: 1}");
	for (int64_t ranks = 2; ranks <= 64; ranks *= 2) {
		struct config at = c;
		CU_ASSERT_EQUAL(config_resolve(&at, ranks, NULL), ST_OK);
		CU_ASSERT_EQUAL(at.train.global_batch, 3 * ranks);
		CU_ASSERT_EQUAL(config_resolve(&at, ranks, NULL), ST_OK); /* again: the same */
		CU_ASSERT_EQUAL(at.train.global_batch, 3 * ranks);
	}
	refused(GPT2 "train: {batch_per_gpu: 2.5, micro_batch: 1}", 3,
		"cfg.yaml:2:24: train.batch_per_gpu: 2.5 x 3 ranks is 7.5 sequences, and a step has whole ones "
		"(nearest: 2.66666666667)");
	refused(GPT2 "train: {tokens_per_step: 100}", 1,
		"cfg.yaml:2:26: train.tokens_per_step: less than a sequence of 1024 tokens (nearest: 1024)");
	refused(GPT2 "train: {tokens_per_step: 10k, micro_batch: 4}", 2,
		"cfg.yaml:2:26: train.tokens_per_step: a batch of 10240 tokens does not split into micro-batches of 4 "
		"on 2 replicas (nearest that do: 8192, 16384)");
	refused(GPT2 "train: {batch_per_gpu: 2, global_batch: 12}", 4,
		"cfg.yaml:2:24: train.batch_per_gpu: contradicts global_batch: give one of them");
	refused(GPT2 "train: {batch_per_gpu: 2, tokens_per_step: 8k}", 4,
		"cfg.yaml:2:24: train.batch_per_gpu: contradicts tokens_per_step: give one of them");
	c = with_set(GPT2 "train: {global_batch: 8, micro_batch: 1}", "train.batch_per_gpu=3");
	CU_ASSERT_EQUAL(config_global_batch(&c, 4), 12);
	CU_ASSERT_FALSE(config_is_given(&c, KEY_train_global_batch)); /* so that a written plan can be read */
	c = with_set(GPT2 "train: {tokens_per_step: 8k}", "train.global_batch=3");
	CU_ASSERT_EQUAL(config_global_batch(&c, 4), 3);
	CU_ASSERT_EQUAL(c.train.tokens_per_step, 0);
	CU_ASSERT_EQUAL(parse_sets(GPT2, both, 2, &c, &e), ST_INPUT);
}

/* n GPUs fail n times as often. */
static void test_mtbf(void)
{
	struct config c = resolved(GPT2 "cluster: {mtbf_gpu_hours: 50677, checkpoint_s: 60}", 4);
	CU_ASSERT_DOUBLE_EQUAL(config_mtbf_hours(&c), 50677 / 4., 1e-9);
	c = resolved(GPT2 "cluster: {mtbf_hours: 20, checkpoint_s: 60}", 4);
	CU_ASSERT_EQUAL(config_mtbf_hours(&c), 20);
}

static void test_fixed_ranks(void)
{
	struct config c = parsed(GPT2);
	CU_ASSERT_EQUAL(config_fixed_ranks(&c), 0);
	c = parsed("model: {preset: llama3-8b}\nparallel: {data: 4, tensor: 2}");
	CU_ASSERT_EQUAL(config_fixed_ranks(&c), 8);
}

static void test_pipeline(void)
{
	struct config c = resolved("model: {preset: llama3-70b}\ntrain: {global_batch: 64, micro_batch: 1}\n"
				   "parallel: {tensor: 8, pipeline: 4}",
		64);
	CU_ASSERT_EQUAL(c.parallel.data, 2);
	CU_ASSERT_EQUAL(c.micro_batches, 32);
	c = resolved(GPT2
		"train: {global_batch: 16, micro_batch: 2}\n"
		"parallel: {pipeline: 2, virtual_stages: 2, schedule: interleaved, layers_per_stage: [4, 3, 3, 2]}",
		2);
	CU_ASSERT_EQUAL(c.parallel.n_layers_per_stage, 4);
	CU_ASSERT_EQUAL(c.parallel.schedule, SCHED_INTERLEAVED);
	c = parsed(GPT2 "parallel: {pipeline: 2, data: 3}");
	CU_ASSERT_EQUAL(config_fixed_ranks(&c), 6);
	resolved(GPT2 "parallel: {pipeline: 1, layers_per_stage: [12]}", 1);
	resolved(GPT2 "parallel: {strategy: fsdp, schedule: gpipe}", 2); /* nothing to order */
	refused(GPT2 "parallel: {pipeline: 4, strategy: zero2, schedule: zero_bubble}", 4,
		"cfg.yaml:2:35: parallel.strategy: zero2 reduces with each micro-batch, and schedule zero_bubble "
		"defers gradients (nearest: zero1, fsdp)");
	resolved(GPT2 "parallel: {pipeline: 4, strategy: fsdp, schedule: zero_bubble}", 8);
	resolved(GPT2 "parallel: {pipeline: 4, layers_per_stage: [0, 6, 6, 0]}", 4);
	resolved(GPT2 "parallel: {pipeline: 2, count_ends: both}", 2);
	refused(GPT2 "parallel: {pipeline: 2, count_ends: head}", 2,
		"cfg.yaml:2:37: parallel.count_ends: layers and the ends that count are 13, which pipeline 2 x "
		"virtual_stages 1 do not divide (nearest: none)");
	refused(GPT2 "parallel: {pipeline: 5, count_ends: head}", 5,
		"cfg.yaml:2:37: parallel.count_ends: layers and the ends that count are 13, which pipeline 5 x "
		"virtual_stages 1 do not divide: no word of it helps");
	refused(GPT2 "parallel: {pipeline: 3, first_stage_layers: 3}", 3,
		"cfg.yaml:2:45: parallel.first_stage_layers: it leaves 9 layers, which 2 stages x virtual_stages 1 do "
		"not divide (nearest: 2, 4)");
	refused(GPT2 "parallel: {pipeline: 3, last_stage_layers: 14}", 3,
		"cfg.yaml:2:44: parallel.last_stage_layers: the model has 12 layers (nearest: 12)");
	refused(GPT2 "parallel: {pipeline: 2, schedule: interleaved, virtual_stages: 2, last_stage_layers: 3}", 2,
		"cfg.yaml:2:86: parallel.last_stage_layers: virtual_stages 2 does not divide the stage's layers "
		"(nearest: 2, 4)");
	refused(GPT2 "parallel: {pipeline: 3, first_stage_layers: 2, count_ends: both}", 3,
		"cfg.yaml:2:48: parallel.count_ends: contradicts first_stage_layers or last_stage_layers: give one of "
		"them");
	refused(GPT2 "parallel: {last_stage_layers: 2}", 1,
		"cfg.yaml:2:12: parallel.last_stage_layers: not used unless pipeline is 2 or more");
	CU_ASSERT_EQUAL(resolved(GPT2 "parallel: {pipeline: 4, schedule: zbv}", 4).parallel.virtual_stages, 2);
	refused(GPT2 "parallel: {pipeline: 4, strategy: zero2, schedule: zbv}", 4,
		"cfg.yaml:2:35: parallel.strategy: zero2 reduces with each micro-batch, and schedule zbv defers "
		"gradients (nearest: zero1, fsdp)");
	refused(GPT2 "parallel: {pipeline: 4, schedule: zbv, virtual_stages: 3}", 4,
		"cfg.yaml:2:56: parallel.virtual_stages: 3 chunks a stage: schedule zbv has two, one on the way down "
		"and one back up (accepted: 2)");
	refused(GPT2 "parallel: {pipeline: 4}", 6,
		"cfg.yaml:2:22: parallel.pipeline: 4 x tensor 1 does not divide 6 ranks (nearest that do: 3, 6)");
	refused("model: {preset: llama3-8b}\nparallel: {tensor: 2, pipeline: 2, data: 4}", 8,
		"cfg.yaml:2:42: parallel.data: 4 x tensor 2 x pipeline 2 is not 8 ranks (accepted: auto, 2)");
	refused(GPT2 "parallel: {pipeline: 13}", 13,
		"cfg.yaml:2:22: parallel.pipeline: 13 stages are more than the 12 layers (nearest: 12)");
	refused(GPT2 "parallel: {pipeline: 3, layers_per_stage: [6, 6]}", 3,
		"cfg.yaml:2:43: parallel.layers_per_stage: 2 entries, and pipeline 3 x virtual_stages 1 need 3");
	refused(GPT2 "parallel: {pipeline: 2, layers_per_stage: [6, 7]}", 2,
		"cfg.yaml:2:43: parallel.layers_per_stage: they add up to 13, not to the 12 layers");
}

/* Messages that need the number of ranks, or say where a value came from that the file does not hold. */
static void test_plan_messages(void)
{
	refused(GPT2 "train:\n  global_batch: 96", 64,
		"cfg.yaml:3:17: train.global_batch: 96 does not split into micro-batches of 8 on 64 replicas (nearest "
		"that do: 512)");
	refused(GPT2, 24,
		"cfg.yaml:1:1: train.global_batch: 64 does not split into micro-batches of 8 on 24 replicas (nearest "
		"that do: 192) (the default; --set train.global_batch=... takes another)");
	refused("model: {preset: llama3-8b}\nparallel: {tensor: 8}", 12,
		"cfg.yaml:2:20: parallel.tensor: 8 does not divide 12 ranks (nearest that do: 6, 12)");
	refused("model: {preset: llama3-8b}\nparallel: {tensor: 2, data: 2}", 8,
		"cfg.yaml:2:29: parallel.data: 2 x tensor 2 is not 8 ranks (accepted: auto, 4)");
	refused("model:\n  preset: gpt2-124m\n  max_positions: 512", 1,
		"cfg.yaml:2:11: model.seq_len: 1024 is longer than the 512 rows of the position table (max_positions) "
		"(from preset gpt2-124m)");
	refused(GPT2, 0, "a plan needs at least one rank, not 0");
}

#define MOE "model: {preset: mixtral-8x7b, seq_len: 64}\ntrain: {global_batch: 64, micro_batch: 1}\n"

static void test_experts(void)
{
	struct config c = resolved(MOE "parallel: {expert: 4, tensor: 2, sequence_parallel: true, pipeline: 2}", 16);
	CU_ASSERT_EQUAL(c.parallel.data, 4);
	CU_ASSERT_EQUAL(c.parallel.expert, 4);
	resolved(MOE, 1);
	resolved(MOE "parallel: {strategy: fsdp}", 8);
	resolved(MOE "parallel: {expert: 8, context: 2, strategy: zero2}", 8);
	refused(GPT2 "parallel: {expert: 2}", 2,
		"cfg.yaml:2:12: parallel.expert: not used without experts (model.experts)");
	refused(MOE "parallel: {expert: 3}", 3,
		"cfg.yaml:3:20: parallel.expert: 3 does not divide the 8 experts (nearest that do: 2, 4)");
	refused(MOE "parallel: {expert: 8}", 4,
		"cfg.yaml:3:20: parallel.expert: 8 does not divide the 4 ranks of a stage, tensor x context x data "
		"(nearest that do: 4)");
	resolved(MOE "parallel: {expert: 2, expert_tensor: 2}", 4);
	refused(GPT2 "parallel: {expert_tensor: 2}", 2,
		"cfg.yaml:2:12: parallel.expert_tensor: not used without experts (model.experts)");
	refused(MOE "parallel: {expert_tensor: 3}", 3,
		"cfg.yaml:3:27: parallel.expert_tensor: 3 does not divide moe_ffn_hidden 14336 "
		"(nearest that do: 2, 4)");
	refused(MOE "parallel: {expert_tensor: 4}", 2,
		"cfg.yaml:3:27: parallel.expert_tensor: 4 does not divide the 2 ranks of a stage, tensor x context x "
		"data (nearest that do: 2)");
	refused(MOE "parallel: {expert_tensor: 2, expert: 4}", 4,
		"cfg.yaml:3:38: parallel.expert: 4 x expert_tensor 2 does not divide the 4 ranks of a stage, tensor x "
		"context x data (nearest that do: 2)");
	refused(MOE "parallel: {expert_tensor: 2, expert: 4, strategy: hsdp, shard: 4}", 16,
		"cfg.yaml:3:64: parallel.shard: 4 x tensor x context are 4 ranks, which hold no whole groups of "
		"expert 4 x expert_tensor 2 (nearest: 8)");
	refused("model: {preset: mixtral-8x7b, seq_len: 64}\n"
		"train: {optimizer: muon, global_batch: 64, micro_batch: 1}\n"
		"parallel: {expert_tensor: 2}",
		2, "cfg.yaml:3:27: parallel.expert_tensor: 2 is not modelled yet with muon (accepted: 1)");
	refused(MOE "parallel: {tensor: 2}", 2,
		"cfg.yaml:3:20: parallel.tensor: 2 beside experts needs sequence_parallel: true, with which each rank "
		"sends them tokens of its own");
	c = resolved(MOE "parallel: {expert: 4, strategy: hsdp, shard: 4}", 8);
	CU_ASSERT_EQUAL(c.parallel.shard, 4);
	c = resolved(MOE "parallel: {strategy: zero1, replicate: 2}", 8);
	CU_ASSERT_EQUAL(c.parallel.shard, 4);
	refused(MOE "parallel: {strategy: zero1, expert: 4, replicate: 4}", 8,
		"cfg.yaml:3:40: parallel.replicate: 4 groups have 2 ranks each, which hold no whole groups of expert 4 "
		"(nearest: 2)");
	c = resolved(MOE "parallel: {strategy: zero1}", 8);
	CU_ASSERT_EQUAL(c.parallel.shard, 8);
	resolved(MOE "parallel: {strategy: hsdp, replicate: 2, shard: 4}", 8);
	refused(MOE "parallel: {strategy: hsdp, replicate: 2, shard: 2}", 8,
		"cfg.yaml:3:39: parallel.replicate: 2 contradicts shard 2 of 8 replicas (nearest: 4)");
	refused(MOE "parallel: {strategy: zero2, replicate: 3}", 8,
		"cfg.yaml:3:40: parallel.replicate: 3 does not divide the 8 replicas (nearest that do: 2, 4)");
	refused(MOE "parallel: {strategy: zero2, replicate: 8}", 8,
		"cfg.yaml:3:40: parallel.replicate: 8 leaves one replica a group, which cuts nothing (nearest: 4, or "
		"strategy ddp)");
	refused(MOE "parallel: {strategy: fsdp, replicate: 2}", 8,
		"cfg.yaml:3:28: parallel.replicate: not used by strategy fsdp (used by: zero1, zero2, hsdp)");
	refused(MOE "parallel: {expert: 4, strategy: hsdp, shard: 2}", 8,
		"cfg.yaml:3:46: parallel.shard: 2 x tensor x context are 2 ranks, which hold no whole groups of "
		"expert 4 (nearest: 4)");
	refused(MOE "parallel: {tensor: 2, sequence_parallel: true, strategy: none}", 2,
		"cfg.yaml:3:58: parallel.strategy: none sums no gradients, and 2 ranks hold the same experts (nearest: "
		"ddp)");
	refused(MOE "parallel: {expert: 2, order: tp-cp-dp-ep-pp}", 2,
		"cfg.yaml:3:30: parallel.order: expert 2 needs ep before dp (nearest: tp-cp-ep-dp-pp)");
	refused(MOE "parallel: {expert: 2, tensor: 2, sequence_parallel: true, pipeline: 2, order: tp-pp-cp-ep-dp}", 8,
		"cfg.yaml:3:79: parallel.order: experts are dealt to all ranks of a stage, and pp stands between these "
		"(nearest: tp-cp-ep-dp-pp)");
	refused("model: {preset: mixtral-8x7b}\ntrain: {lora_rank: 8, lora_targets: all}\n"
		"parallel: {expert: 2, expert_tensor: 2, tensor: 2, sequence_parallel: true}",
		4,
		"cfg.yaml:2:23: train.lora_targets: adapters of experts are not modelled yet with expert_tensor "
		"(accepted: attention, qkv)");
	refused("model: {preset: gpt-oss-20b}\nparallel: {context: 2, context_kind: ring}", 2,
		"cfg.yaml:2:24: parallel.context_kind: ring passes on keys of whole ranks, most of which a window of "
		"128 does not see (nearest: all_gather)");
	refused(GPT2 "train: {fp8_recipe: rowwise}", 1, "cfg.yaml:2:9: train.fp8_recipe: not used unless dtype is fp8");
	refused(GPT2 "train: {lora_dtype: fp32}", 1, "cfg.yaml:2:9: train.lora_dtype: not used without lora_rank");
	refused(GPT2 "train: {lora_base: nf4}", 1, "cfg.yaml:2:9: train.lora_base: not used without lora_rank");
	refused(GPT2 "train: {lora_targets: qkv}", 1, "cfg.yaml:2:9: train.lora_targets: not used without lora_rank");
	refused(GPT2 "train: {lora_rank: 8, freeze: mlp}", 1,
		"cfg.yaml:2:23: train.freeze: not used with lora_rank, which trains the adapters alone");
}

UNIT_MAIN("config of a plan", {"resolve", test_resolve}, {"global batch", test_global_batch}, {"failures", test_mtbf},
	{"fixed ranks", test_fixed_ranks}, {"pipelines", test_pipeline}, {"experts", test_experts},
	{"messages about plans", test_plan_messages})
