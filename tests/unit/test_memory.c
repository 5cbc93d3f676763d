/* Tests the memory of a stack beside the program's buffers: each term against its closed form, and the published
 * formulas of model states and activations. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "harness.h"
#include "step/layout.h"
#include "step/program.h"
#include "tests/unit/memory_case.h"
#include "tiny_config.h"

/* All that the first role holds under a name, over the step; released: none of it lives to the end. */
static double held_B(const struct config *c, const char *what, bool released)
{
	struct program *p = built(c);
	double sum_B = 0;
	for (size_t i = 0; i < p->roles[0].held.n; i++) {
		const struct held *h = &p->roles[0].held.at[i];
		if (strcmp(h->what, what) != 0)
			continue;
		sum_B += (double)h->bytes;
		CU_ASSERT_EQUAL(h->to != HELD_ALWAYS, released);
	}
	program_destroy(p);
	return sum_B;
}

#define LAYERS 3.0

/* Unfused norms of a block, and of its queries' and keys' heads. A fused kernel keeps nothing more. */
static void test_norms(void)
{
	struct config c = tiny(3);
	const double H = 256, rows = MICRO * LAYERS * TOKENS;
	c.train.fused = false;
	c.stack.memory.rms_norm_B = 4;
	c.stack.memory.rms_norm_autocast_B = 9;
	c.stack.memory.layer_norm_autocast_B = 2;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), 0); /* layer norms, no autocast */
	c.stack.autocast = true;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), rows * 2 * H * 2);
	c.model.norm = NORM_RMSNORM;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), rows * 2 * H * 9);
	c.stack.autocast = false;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), rows * 2 * H * 4);
	c.model.qk_norm = QK_NORM_HEAD;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), rows * (2 * H + 2 * 8 * 32) * 4); /* heads of queries and of keys */
	c.model.qk_norm = QK_NORM_NONE;
	c.stack.fused_kernels = FUSE_NORM;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), 0);
	c.stack.fused_kernels = 0;
	c.train.fused = true;
	CU_ASSERT_EQUAL(held_B(&c, "norms", true), 0);
}

static void test_terms(void)
{
	struct config c = tiny(3);
	double params = 0, H = 256, F = 1024, V = 96;
	struct program *p = built(&c);
	CU_ASSERT_EQUAL(p->roles[0].held.n, 0);
	for (size_t i = 0; i < p->roles[0].params.n; i++)
		params += (double)p->roles[0].params.at[i].elements;
	program_destroy(p);

	c.stack.memory.loss_B = 12;
	CU_ASSERT_EQUAL(held_B(&c, "logit copies", true), MICRO * TOKENS * V * (12 - 2));
	c.stack.memory.loss_B = 1; /* less than the logits themselves */
	CU_ASSERT_EQUAL(held_B(&c, "logit copies", true), 0);
	c.stack.memory.loss_B = 12;
	c.train.loss_chunk = 64;
	CU_ASSERT_EQUAL(held_B(&c, "logits of a chunk", true), MICRO * 64 * V * 2);
	CU_ASSERT_EQUAL(held_B(&c, "logit copies", true), MICRO * 64 * V * (12 - 2));
	c.train.loss_chunk = 0;
	c.stack.chunks_loss = true; /* 0: all, whatever the stack does */
	CU_ASSERT_EQUAL(held_B(&c, "logits of a chunk", true), 0);
	c.train.loss_chunk = AUTO;
	CU_ASSERT_EQUAL(held_B(&c, "logits of a chunk", true), 0); /* 96 columns are fewer than 256: one chunk */
	c.model.vocab = 1000;                                      /* 4 times as wide: chunks of 64 of the 256 tokens */
	CU_ASSERT_EQUAL(held_B(&c, "logits of a chunk", true), MICRO * 64 * 1000 * 2);
	c.model.vocab = 96;
	c.stack.chunks_loss = false;
	c.stack.memory.loss_B = 1;
	c.stack.memory.gradient_B = 2;
	CU_ASSERT_EQUAL(held_B(&c, "gradient copies", false), 2 * params);
	c.stack.adds_gradients = true;
	CU_ASSERT_EQUAL(held_B(&c, "gradient copies", false), 2 * params); /* reduced beside backward */
	c.parallel.overlap = false;
	CU_ASSERT_EQUAL(held_B(&c, "gradient copies", true), 2 * params); /* gone before the sums are reduced */
	c.parallel.overlap = true;
	c.stack.adds_gradients = false;
	c.stack.memory.dropout_B = 1;
	CU_ASSERT_EQUAL(held_B(&c, "dropout masks", true), MICRO * LAYERS * 2 * TOKENS * H);

	c = tiny(3);
	c.train.recompute = REC_FULL;
	CU_ASSERT_EQUAL(held_B(&c, "recomputed result", true), 0); /* it ends before the last product */
	c.stack.recompute_last_gemm = true;
	CU_ASSERT_EQUAL(held_B(&c, "recomputed result", true), MICRO * LAYERS * TOKENS * H * 2);
	c.train.recompute_layers = 2;
	CU_ASSERT_EQUAL(held_B(&c, "recomputed result", true), MICRO * 2 * TOKENS * H * 2);

	c = tiny(3);
	c.stack.memory.gate_B = 2;
	c.model.mlp = MLP_SWIGLU;
	CU_ASSERT_EQUAL(held_B(&c, "gate", true), 0); /* a fused kernel keeps none */
	c.train.fused = false;
	CU_ASSERT_EQUAL(held_B(&c, "gate", true), MICRO * LAYERS * TOKENS * F * 2);
	c.stack.memory.clamped_gate_B = 8;
	c.model.experts = 4;
	c.model.experts_per_token = c.model.moe_layer_freq = 1;
	c.model.moe_ffn_hidden = 1024;
	c.model.bias = false;
	CU_ASSERT_EQUAL(held_B(&c, "gate", true), MICRO * LAYERS * TOKENS * F * 2);
	c.model.expert_bias = true; /* gpt-oss: four 16-bit arrays in place of one */
	CU_ASSERT_EQUAL(held_B(&c, "gate", true), MICRO * LAYERS * TOKENS * F * 8);

	c = tiny(3);
	c.stack.memory.update_copies = 1;
	c.train.fused = false;
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 0); /* a fused kernel needs none */
	c.train.optimizer_impl = IMPL_FOREACH;
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 4 * params);
	c.train.optimizer_bits = 16;
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 2 * params);
	c.train.optimizer_impl = IMPL_FOR_LOOP; /* one tensor's at a time */
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 0);
	c.train.optimizer_impl = IMPL_FOREACH;
	c.train.optimizer_bits = 8; /* bitsandbytes has only the fused kernel */
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 0);

	c = tiny(3);
	c.stack.memory.flattened_B = 8;
	CU_ASSERT_EQUAL(held_B(&c, "flattened gradients", true), 0);
	c.parallel.strategy = STRAT_ZERO1;
	CU_ASSERT_EQUAL(held_B(&c, "flattened gradients", true), 0); /* bucket by bucket beside backward */
	c.parallel.overlap = false;
	CU_ASSERT_EQUAL(held_B(&c, "flattened gradients", true), 8 * params);

	c = tiny(3);
	c.stack.memory.rotated_B = 4;
	CU_ASSERT_EQUAL(held_B(&c, "rotated queries and keys", true), 0);
	c.model.position = POS_ROPE;
	CU_ASSERT_EQUAL(held_B(&c, "rotated queries and keys", true), MICRO * LAYERS * TOKENS * 2 * H * 4);

	c = tiny(4);
	c.parallel.data = c.parallel.shard = 1;
	c.parallel.pipeline = 2;
	c.stack.memory.message_B = 2;
	CU_ASSERT_EQUAL(held_B(&c, "sent activations", true), MICRO * TOKENS * H * 2);
}

/* At the loss every layer's gate is alive; where backward does a layer again, that layer's alone. */
static void test_lives(void)
{
	struct config c = tiny(6);
	c.model.mlp = MLP_SWIGLU;
	c.train.fused = false;
	uint64_t without = peak(&c).peak_component_B[COMP_ACTIVATIONS], one = 256 * 1024 * 2;
	c.stack.memory.gate_B = 2;
	CU_ASSERT_EQUAL(peak(&c).peak_component_B[COMP_ACTIVATIONS], without + 6 * one);
	c.train.recompute = REC_FULL;
	uint64_t with = peak(&c).peak_component_B[COMP_ACTIVATIONS];
	c.stack.memory.gate_B = 0;
	CU_ASSERT(with - peak(&c).peak_component_B[COMP_ACTIVATIONS] <= one);
}

/* 2 + 4 + 12 bytes a parameter (Megatron-LM, theoretical_memory_usage.py); ZeRO-1 cuts the 12. */
static void test_states(void)
{
	struct config c = tiny(3);
	double params = (double)model_parameters(&c.model);
	struct layout l = peak(&c);
	double states_B = (double)(l.peak_component_B[COMP_WEIGHTS] + l.peak_component_B[COMP_GRADIENTS] +
				   l.peak_component_B[COMP_OPTIMIZER]);
	CU_ASSERT_DOUBLE_EQUAL(states_B / params, 18, 0.05);
	c.parallel.strategy = STRAT_ZERO1;
	l = peak(&c);
	CU_ASSERT_DOUBLE_EQUAL((double)l.peak_component_B[COMP_OPTIMIZER] / params, 12.0 / 2, 0.05);
	CU_ASSERT_DOUBLE_EQUAL((double)l.peak_component_B[COMP_GRADIENTS] / params, 4 + 4.0 / 2,
		0.05); /* DeepSpeed's flattened partition */
	c.stack.shard_inside = true;
	l = peak(&c);
	CU_ASSERT_DOUBLE_EQUAL((double)l.peak_component_B[COMP_GRADIENTS] / params, 4,
		0.05); /* Megatron's part of the gradient buffer */
	struct program *p = built(&c);
	struct layout executed;
	CU_ASSERT_EQUAL_FATAL(layout_plan(&p->roles[0], &executed, NULL), ST_OK);
	CU_ASSERT(
		executed.total_B >= l.peak_B + (uint64_t)(4.0 / 2 * params)); /* stepsim's own run has a place for it */
	layout_free(&executed);
	program_destroy(p);
}

static uint64_t kept_B(const struct program *p, enum component k)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->roles[0].buffers.n; i++)
		if (p->roles[0].buffers.at[i].persistent && p->roles[0].buffers.at[i].component == k)
			sum += p->roles[0].buffers.at[i].bytes;
	return sum;
}

/* What a program keeps of its parameters is known before it has ops. */
static void test_stored(void)
{
	static const enum strategy strategies[] = {STRAT_DDP, STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP};
	static const enum component kinds[] = {COMP_WEIGHTS, COMP_GRADIENTS, COMP_OPTIMIZER};
	for (size_t i = 0; i < COUNT(strategies); i++) {
		struct config c = tiny(3);
		struct error e = {0};
		struct program *stored = NULL;
		c.parallel.strategy = strategies[i];
		CU_ASSERT_EQUAL_FATAL(program_build_stored(&c, &stored, &e), ST_OK);
		struct program *p = built(&c);
		CU_ASSERT_EQUAL(stored->roles[0].ops.n, 0);
		CU_ASSERT_EQUAL(stored->roles[0].params.n, p->roles[0].params.n);
		for (size_t k = 0; k < COUNT(kinds); k++) {
			CU_ASSERT_EQUAL(kept_B(stored, kinds[k]), kept_B(p, kinds[k]));
			CU_ASSERT(kept_B(stored, kinds[k]) > 0);
		}
		program_destroy(p);
		program_destroy(stored);
	}
}

/* Units under a pipeline: gathered weights and whole gradients are kept until the last micro-batch, which alone is
 * reduced (torch/distributed/pipelining/stage.py). So the memory of a stage does not depend on what data parallelism
 * cuts, but for its parts of the states. */
static void test_units_in_a_pipeline(void)
{
	struct config c = tiny(8);
	c.train.master_weights = false;
	c.train.param_dtype = c.train.grad_dtype = c.train.reduce_dtype = DT_FP32;
	c.parallel.strategy = STRAT_FSDP;
	c.parallel.reshard_after_forward = false;
	c.parallel.data = c.parallel.shard = 2;
	c.parallel.pipeline = 2;
	c.micro_batches = 4;
	c.train.global_batch = 2 * 4 * c.train.micro_batch;
	c.ranks = 4;
	struct program *p = built(&c);
	const struct role *r = &p->roles[0];
	double elements = 0;
	int64_t scatters = 0, gathers = 0;
	for (size_t i = 0; i < r->buckets.n; i++)
		elements += (double)r->buckets.at[i].padded;
	for (size_t i = 0; i < r->ops.n; i++) {
		scatters += r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == COLL_REDUCE_SCATTER;
		gathers += r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == COLL_ALL_GATHER;
	}
	CU_ASSERT_EQUAL(scatters, (int64_t)r->buckets.n);
	CU_ASSERT_EQUAL(gathers, (int64_t)r->buckets.n);
	program_destroy(p);
	const struct layout l = peak(&c);
	CU_ASSERT_DOUBLE_EQUAL((double)l.peak_component_B[COMP_GRADIENTS] / (elements * 4 * 1.5), 1, 1e-3);
	CU_ASSERT((double)l.peak_component_B[COMP_BUFFERS] >= 0.95 * elements * 2); /* gathered, in bf16 */
}

/* Over the step: from the states alone, up to the peak, and back to what a step begins with. */
static void test_over_time(void)
{
	struct config c = tiny(6);
	struct program *p = built(&c);
	struct error e = {0};
	struct layout l;
	uint64_t *live_B = NULL, most_B = 0, states_B = 0;
	size_t n = 0, compute = 0;
	CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[0], &l, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(layout_live(&p->roles[0], &live_B, &n, &e), ST_OK);
	for (size_t i = 0; i < n; i++)
		most_B = live_B[i] > most_B ? live_B[i] : most_B;
	for (size_t i = 0; i < p->roles[0].ops.n; i++)
		compute += p->roles[0].ops.at[i].lane == LANE_COMPUTE;
	for (size_t i = 0; i < p->roles[0].buffers.n; i++)
		if (p->roles[0].buffers.at[i].persistent && p->roles[0].buffers.at[i].component != COMP_HOST)
			states_B += (p->roles[0].buffers.at[i].bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
	CU_ASSERT_EQUAL(n, compute + 1);
	CU_ASSERT_EQUAL(most_B, l.peak_B);
	CU_ASSERT(live_B[0] >= states_B && live_B[0] < most_B);
	CU_ASSERT_EQUAL(live_B[n - 1], states_B);
	free(live_B);
	layout_free(&l);
	program_destroy(p);
}

/* What is alive at the peak, behind a third of the compute ops, and at the end; the size of all gradients. */
struct lives_B {
	double peak, third, end, gradients;
};

static struct lives_B lives_of(const struct config *c)
{
	struct program *p = built(c);
	const struct role *r = &p->roles[0];
	struct error e = {0};
	struct lives_B out = {.peak = (double)peak(c).peak_B};
	uint64_t *live_B = NULL;
	size_t n = 0;
	CU_ASSERT_EQUAL_FATAL(layout_live(r, &live_B, &n, &e), ST_OK);
	out.third = (double)live_B[n / 3];
	out.end = (double)live_B[n - 1];
	for (size_t i = 0; i < r->buffers.n; i++)
		out.gradients += r->buffers.at[i].component == COMP_GRADIENTS ? (double)r->buffers.at[i].bytes : 0;
	free(live_B);
	program_destroy(p);
	return out;
}

/* PyTorch frees gradients behind each update. With one micro-batch they are not there in the forward pass, nor at the
 * peak of one with many tokens. A further micro-batch finds them there. So does an executor, whose arena keeps them.
 * DDP's buckets are as large, and stay. */
static void test_freed_gradients(void)
{
	struct config c = tiny(6);
	c.micro_batches = 1;
	c.train.micro_batch = 32; /* activations outweigh gradients and states */
	c.train.global_batch = 32 * c.parallel.data;
	c.parallel.strategy = STRAT_NONE;
	c.parallel.data = c.parallel.shard = c.ranks = 1;
	c.train.global_batch = 32;
	const struct lives_B kept = lives_of(&c);
	c.stack.frees_gradients = true;
	const struct lives_B freed = lives_of(&c);
	CU_ASSERT(kept.gradients > 1e6);
	CU_ASSERT_DOUBLE_EQUAL(kept.third - freed.third, kept.gradients, 0.01 * kept.gradients);
	CU_ASSERT_EQUAL(freed.end, kept.end); /* the update reads them */
	CU_ASSERT(kept.peak - freed.peak > 0.8 * kept.gradients);

	struct program *p = built(&c);
	struct error e = {0};
	struct layout executed;
	CU_ASSERT_EQUAL_FATAL(layout_plan(&p->roles[0], &executed, &e), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL((double)executed.peak_B, kept.peak, 1);
	layout_free(&executed);
	program_destroy(p);

	c.parallel.schedule = SCHED_1F1B;
	c.micro_batches = 2;
	c.train.global_batch = 64;
	const struct lives_B twice = lives_of(&c);
	c.stack.frees_gradients = false;
	CU_ASSERT_DOUBLE_EQUAL(lives_of(&c).peak, twice.peak, 0.01 * kept.gradients);

	c.stack.frees_gradients = true;
	c.parallel.strategy = STRAT_DDP;
	c.parallel.data = c.parallel.shard = c.ranks = 2;
	c.train.global_batch = 128;
	c.parallel.gradient_as_bucket_view = false;
	CU_ASSERT_DOUBLE_EQUAL(held_B(&c, "DDP's buckets", false), kept.gradients, 0.01 * kept.gradients);
	c.parallel.strategy = STRAT_FSDP;
	CU_ASSERT_EQUAL(held_B(&c, "DDP's buckets", false), 0);
}

/* Gradients in DDP's buckets last as these do. Copies of them are freed, and the buckets are there beside them. One
 * rank has none. */
static void test_bucket_views(void)
{
	struct config c = tiny(6);
	c.micro_batches = 1;
	c.train.micro_batch = 32;
	c.train.global_batch = 64;
	c.parallel.strategy = STRAT_DDP;
	c.parallel.data = c.parallel.shard = c.ranks = 2;
	c.stack.frees_gradients = true;
	CU_ASSERT_TRUE(c.parallel.gradient_as_bucket_view);
	const struct lives_B views = lives_of(&c);
	c.stack.frees_gradients = false;
	CU_ASSERT_EQUAL(views.third, lives_of(&c).third);
	CU_ASSERT_EQUAL(held_B(&c, "DDP's buckets", false), 0);
	c.stack.frees_gradients = true;
	c.parallel.gradient_as_bucket_view = false;
	const struct lives_B copies = lives_of(&c);
	CU_ASSERT_DOUBLE_EQUAL(copies.third, views.third, 0.01 * views.gradients); /* buckets in place of gradients */
	CU_ASSERT_DOUBLE_EQUAL(copies.end - views.end, views.gradients, 0.01 * views.gradients); /* both */
	c.parallel.data = c.parallel.shard = c.ranks = 1;
	c.train.global_batch = 32;
	CU_ASSERT_EQUAL(held_B(&c, "DDP's buckets", false), 0);
}

/* A loop over the blocks, as XLA compiles one, has the gradients of all blocks from its first pass back on. */
static void test_scanned_blocks(void)
{
	struct config c = tiny(6);
	c.micro_batches = 1;
	c.train.global_batch = c.train.micro_batch * c.parallel.data;
	c.parallel.strategy = STRAT_FSDP;
	c.stack.frees_gradients = true;
	const struct lives_B apart = lives_of(&c);
	c.stack.scans_blocks = true;
	const struct lives_B together = lives_of(&c);
	CU_ASSERT_EQUAL(together.third, apart.third); /* forward */
	CU_ASSERT_EQUAL(together.end, apart.end);
	struct program *p = built(&c);
	struct layout_life *lives;
	struct error e = {0};
	size_t n = 0, blocks = 0;
	CU_ASSERT_EQUAL_FATAL(layout_lives(&p->roles[0], &lives, &n, &e), ST_OK);
	int64_t first = INT64_MAX;
	for (size_t i = 0; i < n; i++)
		if (lives[i].component == COMP_GRADIENTS && lives[i].begin < first && lives[i].begin > 0)
			first = lives[i].begin;
	for (size_t i = 0; i < n; i++)
		blocks += lives[i].component == COMP_GRADIENTS && lives[i].begin == first;
	CU_ASSERT_EQUAL(blocks, 6);
	free(lives);
	program_destroy(p);
}

/* Of the matrices that XLA gathers the two of the MLP count, each of 256 x 1024 in bf16, and no block. An executor has
 * what the program gathers. */
static void test_gathered_matrices(void)
{
	struct config c = tiny(6);
	c.parallel.strategy = STRAT_FSDP;
	const struct lives_B blocks = lives_of(&c);
	CU_ASSERT_EQUAL(held_B(&c, "gathered matrices", true), 0);
	c.stack.gathers_matrices = true;
	const double uses = 6 * 2.0 * (double)c.micro_batches; /* forward and backward */
	CU_ASSERT_EQUAL(held_B(&c, "gathered matrices", true), uses * 2 * 256 * 1024 * 2);
	CU_ASSERT(lives_of(&c).peak < blocks.peak);
	c.executed = 1;
	CU_ASSERT_EQUAL(held_B(&c, "gathered matrices", true), 0);
}

/* fp32 master weights take 4 B a parameter, their lower halves 2: 18 B in all become 16. An executor has all. */
static void test_remainders(void)
{
	struct config c = tiny(3);
	const double params = (double)model_parameters(&c.model);
	c.train.store_param_remainders = true;
	struct layout l = peak(&c), executed;
	CU_ASSERT_DOUBLE_EQUAL((double)l.peak_component_B[COMP_OPTIMIZER] / params, 8 + 2, 0.05);
	struct program *p = built(&c);
	CU_ASSERT_EQUAL_FATAL(layout_plan(&p->roles[0], &executed, NULL), ST_OK);
	CU_ASSERT(executed.peak_component_B[COMP_OPTIMIZER] >= (uint64_t)(12 * params));
	layout_free(&executed);
	program_destroy(p);
}

static struct config alone(int64_t layers)
{
	struct config c = tiny(layers);
	c.micro_batches = 1;
	c.parallel.strategy = STRAT_NONE;
	c.parallel.data = c.parallel.shard = c.ranks = 1;
	c.train.global_batch = c.train.micro_batch;
	c.parallel.bucket_B = c.parallel.first_bucket_B = 1; /* each matrix is a bucket */
	return c;
}

/* Of eight blocks' gradients none is left behind the update of the next: at most two matrices are there, of 4 bytes an
 * element. An executor has all of them. */
static void test_update_in_backward(void)
{
	struct config c = alone(8);
	c.stack.frees_gradients = true;
	const struct lives_B later = lives_of(&c);
	const uint64_t all_B = peak(&c).peak_component_B[COMP_GRADIENTS];
	c.train.optimizer_in_backward = true;
	const struct lives_B at_once = lives_of(&c);
	struct program *p = built(&c);
	struct error e = {0};
	struct layout executed;
	size_t updates = 0, behind = 0;
	bool backward = false;
	for (size_t i = p->roles[0].ops.n; i-- > 0;) {
		const struct op *op = &p->roles[0].ops.at[i];
		backward = backward || op->phase == PHASE_BACKWARD;
		updates += op->kind == OP_OPTIMIZER;
		behind += op->kind == OP_OPTIMIZER && !backward;
	}
	CU_ASSERT_EQUAL(updates, p->roles[0].buckets.n);
	CU_ASSERT(behind <= 2);
	CU_ASSERT_EQUAL_FATAL(layout_plan(&p->roles[0], &executed, &e), ST_OK);
	CU_ASSERT(executed.peak_component_B[COMP_GRADIENTS] >= (uint64_t)later.gradients);
	layout_free(&executed);
	program_destroy(p);
	CU_ASSERT(all_B > (uint64_t)(0.9 * later.gradients));
	CU_ASSERT(at_once.peak < later.peak);
	CU_ASSERT(peak(&c).peak_component_B[COMP_GRADIENTS] <= 2 * 256 * 1024 * 4);
}

/* fp16 gradients of Megatron: an update holds them in fp32 besides, 4 bytes a parameter; none with bf16. */
static void test_half_gradients(void)
{
	struct config c = alone(3);
	double elements = 0;
	c.train.dtype = c.train.param_dtype = c.train.grad_dtype = c.train.reduce_dtype = DT_FP16;
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 0);
	c.stack.half_gradients = true;
	struct program *p = built(&c);
	for (size_t i = 0; i < p->roles[0].buckets.n; i++)
		elements += (double)p->roles[0].buckets.at[i].padded;
	program_destroy(p);
	CU_ASSERT_DOUBLE_EQUAL(held_B(&c, "optimizer copies", true), 4 * elements, LAYOUT_ALIGN);
	c.train.grad_dtype = c.train.reduce_dtype = DT_FP32;
	CU_ASSERT_EQUAL(held_B(&c, "optimizer copies", true), 0);
}

UNIT_MAIN("memory", {"over the step", test_over_time}, {"each term", test_terms}, {"lives", test_lives},
	{"model states", test_states}, {"stored", test_stored}, {"units in a pipeline", test_units_in_a_pipeline},
	{"freed gradients", test_freed_gradients}, {"bucket views", test_bucket_views},
	{"scanned blocks", test_scanned_blocks}, {"remainders", test_remainders},
	{"update in backward", test_update_in_backward}, {"half gradients", test_half_gradients},
	{"gathered matrices", test_gathered_matrices}, {"norms", test_norms})
