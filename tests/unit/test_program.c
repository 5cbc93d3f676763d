/* The step program: every strategy's program keeps the invariants; FLOP and memory agree with closed forms worked out
 * here. */
#include "tiny_program.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#include "step/clocks.h"
#include "step/layout.h"

/* Two buffers may share bytes only when every access of one happens before every access of the other. Returns the
 * number of violations. */
static size_t layout_violations(const struct role *r, const struct layout *l)
{
	struct clocks c;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(clocks_of(r, &c, &e), ST_OK);
	size_t bad = 0;
	for (uint32_t i = 0; i < r->ops.n; i++)
		for (uint32_t k = i + 1; k < r->ops.n; k++) {
			bool ordered = clocks_before(&c, r, i, k) || r->ops.at[i].lane == r->ops.at[k].lane;
			for (int a = 0; a < op_kind_info(r->ops.at[i].kind)->n_args; a++)
				for (int b = 0; b < op_kind_info(r->ops.at[k].kind)->n_args; b++) {
					int32_t x = op_arg(r, &r->ops.at[i], a)->buffer,
						y = op_arg(r, &r->ops.at[k], b)->buffer;
					if (x < 0 || y < 0 || x == y || ordered)
						continue;
					const struct buffer *bx = &r->buffers.at[x], *by = &r->buffers.at[y];
					if ((bx->component == COMP_HOST) != (by->component == COMP_HOST))
						continue;
					if (l->offset_B[x] < l->offset_B[y] + by->bytes &&
						l->offset_B[y] < l->offset_B[x] + bx->bytes)
						bad++;
				}
		}
	clocks_free(&c);
	return bad;
}

static void check_layout(const struct program *p)
{
	struct layout l;
	struct error e = {0};
	const struct role *r = &p->roles[0];
	CU_ASSERT_EQUAL_FATAL(layout_plan(r, &l, &e), ST_OK);
	CU_ASSERT(l.total_B >= l.peak_B);
	uint64_t sum = 0;
	for (int k = 0; k < COMP_KIND_COUNT; k++)
		sum += k == COMP_HOST ? 0 : l.peak_component_B[k];
	CU_ASSERT_EQUAL(sum, l.peak_B);
	CU_ASSERT_EQUAL(layout_violations(r, &l), 0);
	layout_free(&l);
}

static void test_matrix(void)
{
	static const enum strategy strategies[] = {STRAT_DDP, STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP};
	for (size_t s = 0; s < 4; s++)
		for (int64_t dp = 1; dp <= 4; dp *= 2)
			for (int64_t tp = 1; tp <= 2; tp++)
				for (int variant = 0; variant < 12; variant++) {
					struct config c = tiny(strategies[s], dp, tp);
					c.parallel.sequence_parallel = variant & 1 && tp > 1;
					c.train.attention = variant & 2 ? ATT_NAIVE : ATT_FLASH;
					c.train.fused = !(variant & 4);
					c.train.optimizer_impl = c.train.fused ? IMPL_FUSED : IMPL_FOREACH;
					c.train.recompute = variant == 3  ? REC_SELECTIVE
					                    : variant & 1 ? REC_FULL
					                                  : REC_NONE;
					c.stack.recompute_last_gemm = variant & 4;
					c.parallel.overlap = variant != 5;
					c.parallel.reshard_after_forward = variant != 6;
					c.parallel.prefetch = variant % 3;
					if (variant >= 8) {
						c.model.mlp = MLP_SWIGLU;
						c.model.norm = NORM_RMSNORM;
						c.model.kv_heads = variant == 8 ? 1 : 4; /* 1: tensor ranks share it */
						c.model.bias = c.model.qkv_bias = c.model.proj_bias =
							c.model.tied_embeddings = false;
						c.model.position = POS_ROPE;
						c.model.max_positions = 0;
					}
					c.model.parallel_residual = variant == 9;
					if (variant == 10 || variant == 2) {
						c.model.post_norm = c.model.embedding_norm = c.model.pooler = true;
						c.model.final_norm = false;
						c.model.type_vocab = 2;
					}
					if (variant == 11) { /* mixed precision with a reduction format of its own */
						c.train.dtype = DT_BF16;
						c.train.reduce_dtype = DT_BF16;
					}
					struct program *p = built(&c);
					check_layout(p);
					program_destroy(p);
				}
}

static double gemm_flop(const struct program *p)
{
	double sum = 0;
	for (size_t i = 0; i < p->roles[0].ops.n; i++)
		if (p->roles[0].ops.at[i].kind == OP_GEMM)
			sum += op_flop(&p->roles[0].ops.at[i]);
	return sum;
}

/* The forward pass of a picture, in multiplications and additions as DiT's paper counts them (arXiv:2212.09748, table
 * 4; 512 pixels: the repository's README). */
static void test_dit_forward(void)
{
	static const struct {
		const char *name;
		double gflop, tolerance;
	} rows[] = {{"dit-xl-2", 118.64, 0.001}, {"dit-xl-2-512", 525, 0.002}, {"dit-l-2", 80.71, 0.001},
		{"dit-b-4", 5.56, 0.002}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[256];
		struct config c;
		struct error e = {0};
		snprintf(text, sizeof text, "model: {preset: %s}\ntrain: {global_batch: 1, micro_batch: 1}",
			rows[i].name);
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "test", NULL, 0, &c, &e), ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &e), ST_OK);
		struct program *p = built(&c);
		double flop = 0;
		for (size_t k = 0; k < p->roles[0].ops.n; k++) {
			const struct op *op = &p->roles[0].ops.at[k];
			if (op->phase == PHASE_FORWARD && (op->kind == OP_GEMM || op_is_flash(op)))
				flop += op_flop(op);
		}
		if (fabs(flop / 2e9 / rows[i].gflop - 1) > rows[i].tolerance)
			printf("%s: %g\n", rows[i].name, flop / 2e9);
		CU_ASSERT(fabs(flop / 2e9 / rows[i].gflop - 1) <= rows[i].tolerance);
		program_destroy(p);
	}
}

/* Pairs that a window leaves, counted one by one; bytes stay; a window that is no narrower than the sequence is none.
 */
static void test_window(void)
{
	for (int64_t w = 1; w <= 33; w++) {
		struct op op = {.kind = OP_ATTENTION, .flags = OP_CAUSAL, .attn = {1, 1, 1, 33, 8, {w < 33 ? w : 0}}},
			  all = op;
		int64_t pairs = 0, cut = 0;
		for (int64_t i = 0; i < 33; i++)
			for (int64_t j = 0; j <= i; j++)
				pairs += i - j < w;
		for (int64_t i = w < 33 ? w : 33; i < 33; i++)
			cut++;
		CU_ASSERT_EQUAL(op_pairs(&op), (double)pairs);
		CU_ASSERT_EQUAL(op_masked_ends(&op), (double)(33 + cut));
		all.attn.window = 0;
		CU_ASSERT_EQUAL(op_read_B(&op), op_read_B(&all));
	}
	struct config c = tiny(STRAT_DDP, 2, 1);
	c.model.sliding_window = 8;
	struct program *p = built(&c);
	double flop = 0, tokens = 2.0 * 2 * 32, per_sequence = 8 * 9 / 2 + 24 * 8;
	for (size_t i = 0; i < p->roles[0].ops.n; i++)
		flop += op_is_flash(&p->roles[0].ops.at[i]) ? op_flop(&p->roles[0].ops.at[i]) : 0;
	CU_ASSERT_DOUBLE_EQUAL(flop, 3 * 7 * 2 * (tokens / 32) * 64 * per_sequence,
		1e-6); /* layers x products x 2 h s_window */
	program_destroy(p);
	double with = model_flop_per_token(&c.model);
	c.model.sliding_window = 32;
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&c.model) - with, 12.0 * 3 * 64 * (32 - 8), 1e-6);
}

/* Moments in 8 bits: a byte a parameter and 4 for each block that is begun, in memory and in the update's traffic. */
static void test_eight_bits(void)
{
	CU_ASSERT_EQUAL(states_8_of(256, 0, 0).bytes, 260);
	CU_ASSERT_EQUAL(states_8_of(257, 0, 0).bytes, 268); /* 265, in whole words */
	CU_ASSERT_EQUAL(states_8_of(257, 0, 257).bytes, 1028);
	const struct states_8 middle = states_8_of(1000, 300, 400); /* blocks: two of 300, three of 600 */
	CU_ASSERT_EQUAL(middle.blocks[0], 2);
	CU_ASSERT_EQUAL(middle.blocks[1], 3);
	CU_ASSERT_EQUAL(middle.wide_B, 20);
	CU_ASSERT_EQUAL(middle.codes_B, 420);
	CU_ASSERT_EQUAL(middle.bytes, 1320);
	uint64_t held_B[2] = {0}, parameters = 0;
	double moved_B[2] = {0};
	for (int wide = 0; wide < 2; wide++) {
		struct config c = tiny(STRAT_ZERO1, 2, 1);
		c.train.optimizer_bits = wide ? 32 : 8;
		struct program *p = built(&c);
		const struct role *r = &p->roles[0];
		for (size_t i = 0; i < r->buffers.n; i++)
			held_B[wide] += r->buffers.at[i].component == COMP_OPTIMIZER ? r->buffers.at[i].bytes : 0;
		for (size_t i = 0; i < r->ops.n; i++)
			if (r->ops.at[i].kind == OP_OPTIMIZER) {
				moved_B[wide] += op_read_B(&r->ops.at[i]) + op_write_B(&r->ops.at[i]);
				parameters += wide ? (uint64_t)r->ops.at[i].update.elements : 0;
			}
		program_destroy(p);
	}
	CU_ASSERT_EQUAL(held_B[1], 8 * parameters);
	CU_ASSERT(held_B[0] >= 2 * parameters &&
		  (double)held_B[0] < 2.1 * (double)parameters); /* tiny buckets begin blocks that they do not fill */
	CU_ASSERT_DOUBLE_EQUAL(moved_B[1] - moved_B[0], 2 * (double)(held_B[1] - held_B[0]),
		64); /* words of 4 bytes are held */
}

/* Tensors too small for 8 bits stand together, and those that tensor parallelism replicates still last; a part of a cut
 * bucket has 8 bits or 32 as a whole. */
static void test_eight_bits_small(void)
{
	for (int64_t tensor = 1; tensor <= 2; tensor++) {
		struct config c = tiny(STRAT_DDP, 2, tensor);
		c.train.optimizer_bits = 8;
		struct program *p = built(&c);
		const struct role *r = &p->roles[0];
		size_t small = 0, large = 0;
		for (size_t i = 0; i < r->params.n; i++) {
			const struct role_param *rp = &r->params.at[i];
			const struct bucket *k = &r->buckets.at[rp->bucket];
			bool inside = rp->offset >= k->wide_from && rp->offset + rp->elements <= k->wide_to;
			CU_ASSERT_EQUAL(inside, rp->elements < OPTIMIZER_LEAST_8);
			small += inside;
			large += !inside;
			for (size_t j = 0; j < r->params.n; j++) {
				const struct role_param *other = &r->params.at[j];
				if (other->bucket == rp->bucket && rp->param.split == TP_REPLICATED &&
					other->param.split != TP_REPLICATED)
					CU_ASSERT_TRUE(other->offset < rp->offset);
			}
		}
		CU_ASSERT_TRUE(small > 0 && large > 0);
		program_destroy(p);
	}
	struct config c = tiny(STRAT_ZERO1, 2, 1);
	c.train.optimizer_bits = 8;
	struct program *p = built(&c);
	for (size_t i = 0; i < p->roles[0].buckets.n; i++) {
		const struct bucket *k = &p->roles[0].buckets.at[i];
		CU_ASSERT_EQUAL(k->wide_from, 0);
		CU_ASSERT_EQUAL(k->wide_to, k->padded / 2 < OPTIMIZER_LEAST_8 ? k->padded / 2 : 0);
	}
	program_destroy(p);
}

/* Every weight matrix meets every token in three products: 6 x (weights of the linear layers and the head) x tokens. */
static void test_gemm_flop(void)
{
	struct config c = tiny(STRAT_DDP, 2, 1);
	struct program *p = built(&c);
	double weights = 3.0 * (64.0 * 192 + 64.0 * 64 + 2 * 64.0 * 256) + 96.0 * 64, tokens = 2.0 * 2 * 32;
	CU_ASSERT_DOUBLE_EQUAL(gemm_flop(p), 6.0 * weights * tokens, 1.0);
	program_destroy(p);
	c.train.recompute = REC_FULL; /* everything again but FC2, whose output backward does not need */
	p = built(&c);
	double again = 3.0 * (64.0 * 192 + 64.0 * 64 + 64.0 * 256);
	CU_ASSERT_DOUBLE_EQUAL(gemm_flop(p), (6.0 * weights + 2.0 * again) * tokens, 1.0);
	program_destroy(p);
	c.stack.recompute_last_gemm = true; /* FC2 too: a third more than the blocks' own six products */
	p = built(&c);
	CU_ASSERT_DOUBLE_EQUAL(gemm_flop(p), (8.0 * (weights - 96.0 * 64) + 6.0 * 96 * 64) * tokens, 1.0);
	program_destroy(p);
	c.train.recompute = REC_SELECTIVE; /* the MLP alone, with and without FC2 */
	c.train.recompute_modules = REC_MLP | REC_LAYERNORM;
	for (int last = 0; last < 2; last++) {
		c.stack.recompute_last_gemm = last;
		p = built(&c);
		again = 3.0 * (1 + last) * 64.0 * 256;
		CU_ASSERT_DOUBLE_EQUAL(gemm_flop(p), (6.0 * weights + 2.0 * again) * tokens, 1.0);
		program_destroy(p);
	}
	c = tiny(STRAT_DDP, 1, 2); /* half the weights on each of two tensor ranks */
	p = built(&c);
	CU_ASSERT_DOUBLE_EQUAL(gemm_flop(p), 3.0 * weights * tokens, 1.0);
	program_destroy(p);
}

/* Matrices in nf4 are made whole once for each product: forward, and the gradient of its input; their own gradients do
 * not exist. Everything else stays as it is stored. */
static void test_quantized_base(void)
{
	static const struct {
		enum strategy strategy;
		enum recompute recompute;
		int64_t times;
	} cases[] = {{STRAT_DDP, REC_NONE, 2}, {STRAT_FSDP, REC_NONE, 2}, {STRAT_DDP, REC_FULL, 3}};
	const double matrices = 3.0 * (64.0 * 192 + 64.0 * 64 + 2 * 64.0 * 256);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct config c = tiny(cases[i].strategy, 2, 1);
		c.model.lora_rank = 4;
		c.model.lora_targets = LORA_ALL;
		c.train.recompute = cases[i].recompute;
		c.stack.recompute_last_gemm = true;
		struct program *whole = built(&c);
		c.train.lora_base = DT_NF4;
		struct program *p = built(&c);
		double made = 0, stored_B = 0, gathered_B = 0;
		for (size_t k = 0; k < p->roles[0].ops.n; k++) {
			const struct op *op = &p->roles[0].ops.at[k];
			made += op->kind == OP_CAST && op->dtype == DT_NF4 ? (double)op->vector.elements : 0;
			gathered_B += op->kind == OP_COLLECTIVE && op->dtype == DT_NF4 ? op_wire_B(op, 2) : 0;
		}
		for (size_t k = 0; k < p->roles[0].buckets.n; k++)
			if (p->roles[0].buckets.at[k].stored == DT_NF4)
				stored_B +=
					(double)p->roles[0].buffers.at[p->roles[0].buckets.at[k].shard.buffer].bytes;
		const double cut = cases[i].strategy == STRAT_FSDP ? 2 : 1;
		CU_ASSERT_DOUBLE_EQUAL(made, 2 * (double)cases[i].times * matrices, 1); /* micro-batches */
		CU_ASSERT_DOUBLE_EQUAL(stored_B, matrices * (0.5 + 4.0 / 64) / cut, 8);
		CU_ASSERT_DOUBLE_EQUAL(gathered_B, cut > 1 ? 4 * stored_B : 0, 8); /* twice a micro-batch */
		CU_ASSERT_DOUBLE_EQUAL(gemm_flop(p), gemm_flop(whole), 1);
		program_destroy(whole);
		program_destroy(p);
	}
}

/* A gate is one kernel forward where the stack fuses it. */
static void test_fused_gate(void)
{
	for (int fuses = 0; fuses < 2; fuses++) {
		struct config c = tiny(STRAT_DDP, 2, 1);
		int activations = 0, products = 0;
		c.model.mlp = MLP_SWIGLU;
		c.train.fused = false;
		c.stack.fused_kernels = fuses ? FUSE_GATE : FUSE_NORM;
		struct program *p = built(&c);
		for (size_t k = 0; k < p->roles[0].ops.n; k++) {
			activations += p->roles[0].ops.at[k].kind == (fuses ? OP_ACT : OP_GATE_ACT);
			products += p->roles[0].ops.at[k].kind == OP_GATE_MUL;
		}
		CU_ASSERT_TRUE(activations > 0);
		CU_ASSERT_EQUAL(products, fuses ? 0 : activations);
		program_destroy(p);
	}
}

/* Eager, what an adapter gives is added by a kernel of its own in each forward pass, and its input is cast for each
 * module there and on the way back; fused, its product adds. */
static void test_adapter_sums(void)
{
	const double columns = 192 + 64 + 256 + 64, inputs = 3 * 64 + 64 + 64 + 256; /* qkv, proj, fc1 and fc2 */
	for (int fused = 0; fused < 2; fused++) {
		struct config c = tiny(STRAT_DDP, 2, 1);
		double added = 0, cast = 0, back = 0, scaled = 0, micro_batches = 0;
		c.model.lora_rank = 4;
		c.model.lora_targets = LORA_ALL;
		c.train.fused = fused;
		struct program *p = built(&c);
		for (size_t k = 0; k < p->roles[0].ops.n; k++) {
			const struct op *op = &p->roles[0].ops.at[k];
			added += op->kind == OP_ADD && strcmp(op->what, "lora add") == 0 ? (double)op->matrix.cols : 0;
			cast += op->adapter == ADAPTER_INPUT ? (double)op->gemm.k * op->modules : 0;
			back += op->adapter == ADAPTER_INPUT_GRAD ? (double)op->gemm.n * op->modules : 0;
			scaled += op->adapter == ADAPTER_SUM_GRAD ? (double)op->gemm.k : 0;
			micro_batches += op->kind == OP_LOSS;
		}
		const double passes = fused ? 0 : micro_batches * 3; /* layers */
		CU_ASSERT_EQUAL(added, passes * columns);
		CU_ASSERT_EQUAL(scaled, passes * columns);
		CU_ASSERT_EQUAL(cast, passes * inputs);
		CU_ASSERT_EQUAL(back, passes * inputs);
		program_destroy(p);
	}
}

/* Products and sums of adapters in fp32 are marked, and no other op is. A kernel of A runs for each module, its
 * gradient's, too. */
static void test_adapter_in_fp32(void)
{
	for (int wide = 0; wide < 2; wide++) {
		struct config c = tiny(STRAT_DDP, 2, 1);
		int64_t adapters = 0, in_fp32 = 0, others = 0, modules = 0;
		c.train.dtype = DT_BF16;
		c.model.lora_rank = 4;
		c.model.lora_targets = LORA_ALL;
		c.train.fused = false;
		c.train.lora_dtype = wide ? DT_FP32 : DT_COUNT;
		struct program *p = built(&c);
		for (size_t k = 0; k < p->roles[0].ops.n; k++) {
			const struct op *op = &p->roles[0].ops.at[k];
			const bool lora = strncmp(op->what, "lora", 4) == 0;
			adapters += lora;
			in_fp32 += lora && op->flags & OP_WIDE;
			others += !lora && op->flags & OP_WIDE;
			modules += lora && op->flags & OP_TRANS_A ? op->modules : 0;
		}
		CU_ASSERT_EQUAL(in_fp32, wide ? adapters : 0);
		CU_ASSERT_EQUAL(others, 0);
		CU_ASSERT_EQUAL(modules % (3 + 1 + 1 + 1), 0); /* qkv is three; proj, fc1 and fc2 */
		CU_ASSERT_TRUE(modules > 0);
		program_destroy(p);
	}
}

/* FSDP holds the root unit and prefetch + 1 blocks at once: memory for gathered units grows by one block with each
 * prefetch, until all are there. */
static void test_gathered_memory(void)
{
	uint64_t before = 0;
	for (int64_t prefetch = 0; prefetch <= 2; prefetch++) {
		struct config c = tiny(STRAT_FSDP, 4, 1);
		c.model.layers = 8;
		c.parallel.prefetch = prefetch;
		struct program *p = built(&c);
		struct error e = {0};
		struct layout l;
		CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[0], &l, &e), ST_OK);
		uint64_t buffers = l.peak_component_B[COMP_BUFFERS];
		if (prefetch)
			CU_ASSERT(buffers > before);
		before = buffers;
		layout_free(&l);
		program_destroy(p);
	}
}

/* Buckets that live only until their reduction: at most three at once (one reduced, one waiting, one being written),
 * however many there are. */
static void test_transient_memory(void)
{
	for (int s = STRAT_ZERO2; s <= STRAT_FSDP; s++) {
		struct config c = tiny((enum strategy)s, 4, 1);
		c.model.layers = 24;
		c.micro_batches = 1;
		c.train.global_batch = 8;
		struct program *p = built(&c);
		struct error e = {0};
		struct layout l;
		CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[0], &l, &e), ST_OK);
		uint64_t largest = 0, all = 0;
		for (size_t i = 0; i < p->roles[0].buckets.n; i++) {
			uint64_t bytes = 4 * p->roles[0].buckets.at[i].padded;
			largest = bytes > largest ? bytes : largest;
			all += bytes;
		}
		CU_ASSERT(all > 10 * largest);
		CU_ASSERT(l.peak_component_B[COMP_BUFFERS] <
			  (s == STRAT_FSDP ? 7 : 4) *
				  largest); /* fsdp: also the gathered root and two or three gathered blocks */
		layout_free(&l);
		program_destroy(p);
	}
}

/* ZeRO: 4 + 4 + 8 bytes a parameter in fp32 Adam; zero1 shards the 8, zero2 the gradients too, fsdp all (Rajbhandari et
 * al. 2020). */
static void test_state_memory(void)
{
	static const double parts[][3] = {[STRAT_DDP] = {1, 1, 1},
		[STRAT_ZERO1] = {1, 1.25, 0.25},
		[STRAT_ZERO2] = {1, 0.25, 0.25},
		[STRAT_FSDP] = {0.25, 0.25, 0.25}};
	for (int s = STRAT_DDP; s <= STRAT_FSDP; s++) {
		struct config c = tiny((enum strategy)s, 4, 1);
		struct program *p = built(&c);
		double got[COMP_KIND_COUNT] = {0}, P = 4.0 * (double)model_parameters(&c.model);
		for (size_t i = 0; i < p->roles[0].buffers.n; i++)
			if (p->roles[0].buffers.at[i].persistent)
				got[p->roles[0].buffers.at[i].component] += (double)p->roles[0].buffers.at[i].bytes;
		CU_ASSERT_DOUBLE_EQUAL(got[COMP_WEIGHTS] / P, parts[s][0], 0.001);
		CU_ASSERT_DOUBLE_EQUAL(got[COMP_GRADIENTS] / P, parts[s][1], 0.001);
		CU_ASSERT_DOUBLE_EQUAL(got[COMP_OPTIMIZER] / P, 2.0 * parts[s][2], 0.001);
		program_destroy(p);
	}
}

/* The checker finds what it is there to find. */
static void test_check_catches(void)
{
	struct config c = tiny(STRAT_FSDP, 2, 2);
	struct program *p = built(&c);
	struct role *r = &p->roles[0];
	size_t caught = 0, tried = 0;
	for (size_t i = 0; i < r->ops.n; i++) {
		if (!r->ops.at[i].n_dep)
			continue;
		struct op saved = r->ops.at[i];
		struct error e = {0};
		r->ops.at[i].n_dep = 0; /* every dependency that the builder kept is needed, but for policies */
		tried++;
		caught += program_check(p, &e) != ST_OK;
		r->ops.at[i] = saved;
	}
	CU_ASSERT(tried > 20);
	CU_ASSERT(caught * 10 >= tried * 9);
	struct error e = {0};
	r->args.at[r->ops.at[5].arg0].offset_B = UINT64_MAX / 4;
	CU_ASSERT_EQUAL(program_check(p, &e), ST_RUN);
	program_destroy(p);
}

UNIT_MAIN("program", {"forward pass of DiT", test_dit_forward}, {"a sliding window", test_window},
	{"moments in 8 bits", test_eight_bits}, {"small tensors beside them", test_eight_bits_small},
	{"matrix of strategies", test_matrix}, {"gemm flop", test_gemm_flop}, {"quantized base", test_quantized_base},
	{"sums of adapters", test_adapter_sums}, {"adapters in fp32", test_adapter_in_fp32},
	{"fused gate", test_fused_gate}, {"gathered memory", test_gathered_memory},
	{"transient memory", test_transient_memory}, {"state memory", test_state_memory},
	{"check catches", test_check_catches})
