#include <string.h>

#include "base/array.h"
#include "harness.h"
#include "step/layout.h"
#include "step/program.h"
#include "tests/unit/memory_case.h"
#include "tiny_config.h"

/* Of a layer, by what twelve more add. */
static double layer_B(struct config c)
{
	c.model.layers = c.train.recompute_layers = c.train.offload_layers = 12;
	double few = (double)peak(&c).peak_component_B[COMP_ACTIVATIONS];
	c.model.layers = c.train.recompute_layers = c.train.offload_layers = 24;
	return ((double)peak(&c).peak_component_B[COMP_ACTIVATIONS] - few) / 12;
}

/* Korthikanti et al. 2022, equations 1 and 2 and section 5: sbh(34 + 5as/h); with tensor and sequence parallelism over
 * t a t-th of it; 34 sbh with the scores done again; 2 sbh with everything. */
static void test_activations(void)
{
	struct config c = tiny(12);
	double sbh = TOKENS * 256, scores = 5.0 * 8 * 128 / 256;
	c.stack.memory.dropout_B = 1;
	c.train.attention = ATT_NAIVE;
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c) / (sbh * (34 + scores)), 1, 0.05);
	const double narrow = layer_B(c), a = 8 * 128 / 256.0;
	c.stack.autocast = true; /* softmax's result in fp32: 4 bytes in place of 2 */
	CU_ASSERT_DOUBLE_EQUAL((layer_B(c) - narrow) / (sbh * 2 * a), 1, 0.01);
	const double with_dropout = layer_B(c);
	c.stack.memory.dropout_B = 0; /* masks of 1 byte: two of the residual stream, one of the scores */
	c.model.dropout = c.model.attention_dropout = 0.1;
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c), with_dropout, 1);
	c.model.dropout = c.model.attention_dropout = 0;
	CU_ASSERT_DOUBLE_EQUAL((with_dropout - layer_B(c)) / (sbh * (2 + a)), 1, 0.01);
	c.stack.autocast = false;
	c.stack.memory.dropout_B = 1;
	c.train.recompute = REC_SELECTIVE;
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c) / (sbh * 34), 1, 0.05);
	c.train.recompute = REC_FULL;
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c) / (sbh * 2), 1, 0.05);
	c.train.recompute = REC_NONE;
	c.parallel.data = c.parallel.shard = 1;
	c.parallel.tensor = 2;
	c.parallel.sequence_parallel = true;
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c) / (sbh * (34 + scores) / 2), 1, 0.05);
}

/* By module, of the 34 sbh that flash attention leaves: two normed inputs of 2 each; the MLP's two of 8 each. Attention
 * between its products keeps one fp32 sum for each row and head, 4 bs a. */
static void test_modules(void)
{
	static const struct {
		int modules;
		double left;
	} cases[] = {{REC_LAYERNORM, 30}, {REC_MLP, 18}, {REC_LAYERNORM | REC_MLP | REC_CORE_ATTN, 14}};
	struct config c = tiny(12);
	const double sbh = TOKENS * 256, lse = 4.0 * TOKENS * 8;
	c.stack.memory.dropout_B = 1;
	c.train.recompute = REC_SELECTIVE;
	const double whole = layer_B(c); /* of flash attention, which keeps no scores */
	CU_ASSERT_DOUBLE_EQUAL(whole / (sbh * 34), 1, 0.05);
	c.train.recompute_modules = REC_CORE_ATTN;
	CU_ASSERT_DOUBLE_EQUAL(whole - layer_B(c), lse, 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		c.train.recompute_modules = cases[i].modules;
		CU_ASSERT_DOUBLE_EQUAL(layer_B(c) / (sbh * cases[i].left), 1, 0.05);
	}
}

/* Columns x rows of the weights of all products that the first role runs again, of a layer and micro-batch. */
static double again(const struct config *c)
{
	struct program *p = built(c);
	const struct role *r = &p->roles[0];
	double sum = 0;
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == OP_GEMM && r->ops.at[i].flags & OP_RECOMPUTED)
			sum += (double)(r->ops.at[i].gemm.n * r->ops.at[i].gemm.k);
	program_destroy(p);
	return sum / (double)(c->model.layers * c->micro_batches);
}

/* Op by op: of Q, K, V, PROJ, FC1 (as gate and up where it is gated) and FC2 every second product is run again, and
 * the last one never. Of a token a layer keeps its input, Q, V, attention's output with an fp32 sum a head, and FC1's
 * first half: all of it where it is not gated. Eager PyTorch keeps the result of a saved FC2 too. */
static void test_ops(void)
{
	static const struct {
		enum mlp mlp;
		bool fused;
		double kept, again; /* in units of hidden, and of its square; ffn_hidden is 4 of them */
	} cases[] = {{MLP_GELU, true, 8, 2}, {MLP_GELU, false, 8, 2}, {MLP_SWIGLU, true, 8, 6},
		{MLP_SWIGLU, false, 9, 6}};
	struct config c = tiny(12);
	c.train.recompute = REC_SELECTIVE;
	c.train.recompute_modules = REC_OP;
	for (size_t i = 0; i < COUNT(cases); i++) {
		c.model.mlp = cases[i].mlp;
		c.train.fused = cases[i].fused;
		CU_ASSERT_DOUBLE_EQUAL(layer_B(c), TOKENS * (2.0 * 256 * cases[i].kept + 4 * 8), 1);
		CU_ASSERT_DOUBLE_EQUAL(again(&c), cases[i].again * 256 * 256, 0);
	}
	/* In nvfp4 no product's result is saved: of 3 + 1 + 4 + 4 squares all but FC2 run again. A layer keeps its
	 * input and attention's output; and in 9/16 B that output and the weights, as the products read them. */
	struct config narrow = c;
	narrow.model.mlp = MLP_GELU;
	narrow.train.fused = true;
	narrow.train.dtype = DT_NVFP4;
	CU_ASSERT_DOUBLE_EQUAL(layer_B(narrow),
		TOKENS * (2.0 * 256 * 2 + 4 * 8) + 0.5625 * (TOKENS * 256 + 12 * 256 * 256), 1);
	CU_ASSERT_DOUBLE_EQUAL(again(&narrow), 8 * 256 * 256, 0);
	/* The reduce-scatter behind PROJ is saved. So a compiler does not run PROJ again; of what is left each of two
	 * tensor ranks has half. */
	c.parallel.data = c.parallel.shard = 1;
	c.parallel.tensor = 2;
	c.parallel.sequence_parallel = true;
	CU_ASSERT_DOUBLE_EQUAL(again(&c), 6 * 256 * 256 / 2, 0);
	/* input, Q, V, attention, gate, PROJ's rows; and all rows of FC2's product with this rank's of its sum */
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c), TOKENS * (2.0 * 256 * (9.0 / 2 + 1 + 0.5) + 4 * 8 / 2), 1);
	c.train.fused = true;
	CU_ASSERT_DOUBLE_EQUAL(again(&c), 5 * 256 * 256 / 2, 0);
	CU_ASSERT_DOUBLE_EQUAL(layer_B(c), TOKENS * (2.0 * 256 * 9 / 2 + 4 * 8 / 2), 1);
}

/* Op by op with named results: a layer keeps its input and them, and runs the other products again, but never FC2. */
static void test_named(void)
{
	static const struct {
		int saves;
		double kept, again; /* in units of hidden, and of its square; ffn_hidden is 4 of them, gated */
	} cases[] = {{SAVE_QKV, 1 + 3, 1 + 8}, {SAVE_QKV | SAVE_PROJ, 1 + 4, 8}, {SAVE_FC1, 1 + 8, 3 + 1},
		{SAVE_QKV | SAVE_PROJ | SAVE_FC1, 1 + 12, 0}};
	struct config c = tiny(12);
	c.model.mlp = MLP_SWIGLU;
	c.train.fused = true;
	c.train.recompute = REC_SELECTIVE;
	c.train.recompute_modules = REC_OP;
	for (size_t i = 0; i < COUNT(cases); i++) {
		c.train.recompute_saves = cases[i].saves;
		CU_ASSERT_DOUBLE_EQUAL(layer_B(c), TOKENS * 2.0 * 256 * cases[i].kept, 1);
		CU_ASSERT_DOUBLE_EQUAL(again(&c), cases[i].again * 256 * 256, 0);
		c.train.recompute_saves |= SAVE_ATTENTION; /* with an fp32 sum a head */
		CU_ASSERT_DOUBLE_EQUAL(layer_B(c), TOKENS * (2.0 * 256 * (cases[i].kept + 1) + 4 * 8), 1);
		CU_ASSERT_DOUBLE_EQUAL(again(&c), cases[i].again * 256 * 256, 0);
		c.train.offload = OFF_ACTIVATIONS; /* but for that sum */
		CU_ASSERT_DOUBLE_EQUAL(layer_B(c), TOKENS * 4 * 8, 1);
		c.train.offload = OFF_NONE;
	}
}

/* Gathered matrix by matrix a block's gradients are reduced one by one: of ffn_hidden 4 hidden, FC1 and FC2 are the
 * largest two, of which FSDP's rule lets two wait. A unit of a whole block holds all of its gradients. */
static void test_matrices(void)
{
	struct config c = tiny(6);
	c.train.master_weights = false;
	c.train.recompute = REC_FULL;
	c.train.param_dtype = c.train.grad_dtype = DT_FP32;
	c.train.reduce_dtype = DT_BF16;
	c.parallel.strategy = STRAT_FSDP;
	c.parallel.data = c.parallel.shard = 2;
	c.ranks = 2;
	c.train.global_batch = 2 * c.train.micro_batch;
	c.micro_batches = 1;
	struct layout l[2];
	for (int apart = 0; apart < 2; apart++) {
		c.stack.gathers_matrices = apart;
		l[apart] = peak(&c);
		struct program *p = built(&c);
		const struct role *r = &p->roles[0];
		int64_t scatters = 0;
		for (size_t i = 0; i < r->ops.n; i++)
			scatters += r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == COLL_REDUCE_SCATTER;
		CU_ASSERT_EQUAL(scatters, apart ? 6 * 5 + 1 : 6 + 1); /* four matrices and the rest */
		program_destroy(p);
	}
	CU_ASSERT_EQUAL(l[0].peak_component_B[COMP_WEIGHTS], l[1].peak_component_B[COMP_WEIGHTS]);
	/* two blocks' gradients of 12 squares before, of which FC1 and FC2 remain */
	CU_ASSERT((double)l[0].peak_B - (double)l[1].peak_B > 2.0 * 4 * 256 * 256);
	layout_free(&l[0]);
	layout_free(&l[1]);
}

/* A recomputed block's result is held from its recomputation to the end of its backward pass. Where that pass of the
 * only block has the peak, recomputation takes that much more. */
static void test_recomputed_result(void)
{
	struct config c = tiny(1);
	c.train.recompute = REC_FULL;
	c.stack.recompute_last_gemm = true;
	struct program *p = built(&c);
	const struct role *r = &p->roles[0];
	CU_ASSERT_EQUAL_FATAL(r->held.n, MICRO);
	for (size_t i = 0; i < r->held.n; i++) {
		const struct held *h = &r->held.at[i];
		const struct op *before = &r->ops.at[h->from - 1], *last = &r->ops.at[h->to];
		CU_ASSERT_TRUE(before->flags & OP_RECOMPUTED);
		CU_ASSERT_FALSE(r->ops.at[h->from].flags & OP_RECOMPUTED);
		CU_ASSERT_EQUAL(before->kind, OP_ADD); /* of the residual */
		CU_ASSERT_STRING_EQUAL(last->what, "norm1");
		CU_ASSERT_EQUAL(last->kind, OP_NORM_GRAD);
		CU_ASSERT_EQUAL(last->layer, before->layer);
	}
	program_destroy(p);
	const struct layout with = peak(&c);
	c.train.recompute = REC_NONE;
	CU_ASSERT_EQUAL(with.peak_B, peak(&c).peak_B + (uint64_t)(TOKENS * 256 * 2));
}

UNIT_MAIN("activations in memory", {"a recomputed block's result", test_recomputed_result},
	{"activations", test_activations}, {"activations by module", test_modules}, {"activations op by op", test_ops},
	{"activations by name", test_named}, {"matrix by matrix", test_matrices})
