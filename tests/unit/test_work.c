#include "tests/unit/harness.h"

#include <assert.h>
#include <string.h>

#include "step/work.h"

#define FP32 .dtype = DT_FP32, .out_dtype = DT_FP32

/* A small op of every kind and the name and form that its entry in a profile has. */
static const struct {
	struct op op;
	const char *name;
	enum work_form form;
	double elements;
} cases[] = {
	[OP_GEMM] = {{FP32, .flags = OP_TRANS_B, .d = {2, 3, 5}}, "gemm.nt", FORM_FIT, 0},
	[OP_ATTENTION] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attention", FORM_FIT, 0},
	[OP_ATTENTION_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attention_grad", FORM_FIT, 0},
	[OP_ATTN_SCORES] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_scores", FORM_FIT, 0},
	[OP_ATTN_SOFTMAX] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_softmax", FORM_CURVE, 2 * 4 * 8 * 8},
	[OP_ATTN_VALUES] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_values", FORM_FIT, 0},
	[OP_ATTN_VALUES_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_values_grad", FORM_FIT, 0},
	[OP_ATTN_SOFTMAX_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_softmax_grad", FORM_CURVE, 2 * 4 * 8 * 8},
	[OP_ATTN_SCORES_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_scores_grad", FORM_FIT, 0},
	[OP_ROPE] = {{FP32, .d = {2, 4, 2, 8, 16}}, "rope", FORM_CURVE, 2 * 8 * (4 + 2) * 16},
	[OP_NORM] = {{FP32, .flags = OP_RMS, .d = {7, 9}}, "norm.rmsnorm", FORM_CURVE, 63},
	[OP_NORM_GRAD] = {{FP32, .d = {7, 9}}, "norm_grad.layernorm", FORM_CURVE, 63},
	[OP_ADD] = {{FP32, .d = {7, 9}}, "add", FORM_CURVE, 63},
	[OP_ADD_NORM] = {{FP32, .d = {7, 9}}, "add_norm.layernorm", FORM_CURVE, 63},
	[OP_BIAS] = {{FP32, .d = {7, 9}}, "bias", FORM_CURVE, 63},
	[OP_BIAS_GRAD] = {{FP32, .d = {7, 9}}, "bias_grad", FORM_CURVE, 63},
	[OP_ACT] = {{FP32, .mlp = MLP_SWIGLU, .d = {7, 9}}, "act.swiglu", FORM_CURVE, 63},
	[OP_ACT_GRAD] = {{FP32, .mlp = MLP_GELU, .d = {7, 9}}, "act_grad.gelu", FORM_CURVE, 63},
	[OP_GATE_ACT] = {{FP32, .mlp = MLP_GEGLU, .d = {7, 9}}, "gate_act.geglu", FORM_CURVE, 63},
	[OP_GATE_MUL] = {{FP32, .mlp = MLP_GEGLU, .d = {7, 9}}, "gate_mul", FORM_CURVE, 63},
	[OP_EMBED] = {{FP32, .d = {7, 9, 1000}}, "embed", FORM_CURVE, 63},
	[OP_EMBED_GRAD] = {{FP32, .d = {7, 9, 1000}}, "embed_grad", FORM_CURVE, 63},
	[OP_POSITION] = {{FP32, .d = {7, 9, 7}}, "position", FORM_CURVE, 63},
	[OP_POSITION_GRAD] = {{FP32, .d = {7, 9, 7}}, "position_grad", FORM_CURVE, 63},
	[OP_LOSS] = {{FP32, .d = {7, 1000}}, "loss", FORM_CURVE, 7000},
	[OP_LOSS_MAX] = {{FP32, .d = {7, 1000}}, "loss_max", FORM_CURVE, 7000},
	[OP_LOSS_SUM] = {{FP32, .d = {7, 1000}}, "loss_sum", FORM_CURVE, 7000},
	[OP_LOSS_GRAD] = {{FP32, .d = {7, 1000}}, "loss_grad", FORM_CURVE, 7000},
	[OP_OPTIMIZER] = {{FP32, .mlp = OPT_ADAMW, .flags = OP_FUSED, .d = {50}}, "optimizer.adamw", FORM_CURVE, 50},
	[OP_FILL] = {{FP32, .d = {50}}, "fill", FORM_CURVE, 50},
	[OP_CAST] = {{FP32, .d = {50}}, "cast", FORM_CURVE, 50},
	[OP_COLLECTIVE] = {{FP32, .coll = COLL_ALL_GATHER, .d = {50}}, "collective", FORM_NONE, 0},
	[OP_COPY] = {{FP32, .d = {50}}, "copy", FORM_NONE, 0},
};
static_assert(sizeof cases / sizeof cases[0] == OP_KIND_COUNT, "a case for each op kind");

static struct work work(int kind, struct op op)
{
	struct work w;
	op.kind = (uint8_t)kind;
	work_of(&op, NULL, &w);
	return w;
}

static void test_every_kind(void)
{
	for (int k = 0; k < OP_KIND_COUNT; k++) {
		struct work w = work(k, cases[k].op);
		CU_ASSERT_STRING_EQUAL(w.name, cases[k].name);
		CU_ASSERT_EQUAL(w.form, cases[k].form);
		CU_ASSERT_EQUAL(w.elements, cases[k].elements);
		CU_ASSERT_EQUAL(w.footprint_B > 0, w.form == FORM_CURVE);
		CU_ASSERT_EQUAL(w.term[0] == 1, w.form == FORM_FIT);
	}
}

static void test_suffixes(void)
{
	CU_ASSERT_STRING_EQUAL(work(OP_GEMM, (struct op){.flags = 0}).name, "gemm.nn");
	CU_ASSERT_STRING_EQUAL(work(OP_GEMM, (struct op){.flags = OP_TRANS_A}).name, "gemm.tn");
	CU_ASSERT_STRING_EQUAL(work(OP_NORM, (struct op){.flags = 0}).name, "norm.layernorm");
	static const char *const acts[] = {"act.gelu", "act.relu", "act.squared_relu", "act.swiglu", "act.geglu"};
	static_assert(sizeof acts / sizeof acts[0] == MLP_COUNT, "every activation");
	for (int m = 0; m < MLP_COUNT; m++)
		CU_ASSERT_STRING_EQUAL(work(OP_ACT, (struct op){.mlp = (uint8_t)m}).name, acts[m]);
	static const char *const optimizers[] = {"optimizer.adamw", "optimizer.adam", "optimizer.lamb", "optimizer.lion", "optimizer.sgd", "optimizer.none"};
	static_assert(sizeof optimizers / sizeof optimizers[0] == OPT_COUNT, "every optimizer");
	for (int o = 0; o < OPT_COUNT; o++)
		CU_ASSERT_STRING_EQUAL(work(OP_OPTIMIZER, (struct op){.mlp = (uint8_t)o, .flags = OP_FUSED}).name, optimizers[o]);
	CU_ASSERT_STRING_EQUAL(work(OP_OPTIMIZER, (struct op){.mlp = OPT_ADAMW}).name, "optimizer.adamw.unfused");
}

static void check_terms(struct work w, double a, double b, double c, double d)
{
	CU_ASSERT_EQUAL(w.term[0], 1);
	CU_ASSERT_EQUAL(w.term[1], a);
	CU_ASSERT_EQUAL(w.term[2], b);
	CU_ASSERT_EQUAL(w.term[3], c);
	CU_ASSERT_EQUAL(w.term[4], d);
}

static void test_gemm_terms(void)
{
	struct op op = {FP32, .d = {2, 3, 5}};
	check_terms(work(OP_GEMM, op), 60, 10, 15, 6);
	op.flags = OP_ACCUMULATE;
	check_terms(work(OP_GEMM, op), 60, 10, 15, 12); /* C is read too */
}

static void test_attention_terms(void)
{
	struct op op = {FP32, .d = {2, 4, 2, 256, 16}};
	double heads = 2 * 4, rows = 2 * 256 * (4 + 2 * 2) * 16;
	check_terms(work(OP_ATTENTION, op), heads * 256 * 256 * 16, heads * 256 * 256, rows, heads);
	check_terms(work(OP_ATTN_SCORES, op), heads * 256 * 256 * 16, heads * 256 * 256, 2 * 256 * 4 * 16, heads);

	/* Causal: the tiles on and below the diagonal, 10 of 16; the naive one computes all. */
	op.flags = OP_CAUSAL;
	double pairs = 10.0 * FLASH_TILE * FLASH_TILE;
	check_terms(work(OP_ATTENTION_GRAD, op), heads * pairs * 16, heads * pairs, rows, heads);
	check_terms(work(OP_ATTN_VALUES, op), heads * 256 * 256 * 16, heads * 256 * 256, 2 * 256 * 4 * 16, heads);

	op.d[3] = FLASH_TILE / 4; /* less than a tile: a whole tile of queries, with the keys that are there */
	CU_ASSERT_EQUAL(work(OP_ATTENTION, op).term[2], heads * FLASH_TILE * FLASH_TILE / 4);
	op.d[3] = 3 * FLASH_TILE + 1;
	CU_ASSERT_EQUAL(work(OP_ATTENTION, op).term[2], heads * FLASH_TILE * ((1 + 2 + 3) * FLASH_TILE + 3 * FLASH_TILE + 1));
	op.flags = 0;
	CU_ASSERT_EQUAL(work(OP_ATTENTION, op).term[2], heads * 4 * FLASH_TILE * (3 * FLASH_TILE + 1));
	op.d[4] = FLASH_LANES + 1; /* two of the gradient's five products are padded */
	struct work grad = work(OP_ATTENTION_GRAD, op);
	double whole = 4.0 * FLASH_TILE * (double)op.d[3] * (FLASH_LANES + 1.0), part = (double)(op.d[3] * op.d[3]) * 2 * FLASH_LANES;
	CU_ASSERT_DOUBLE_EQUAL(grad.term[1], heads * (3 * whole + 2 * part) / 5, 1e-6);
}

UNIT_MAIN("work", {"name, form and elements of every kind", test_every_kind}, {"suffixes", test_suffixes}, {"terms of a GEMM", test_gemm_terms}, {"terms of attention", test_attention_terms})
