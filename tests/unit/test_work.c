#include "base/array.h"
#include "tests/unit/constants.h"
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
	[OP_ATTENTION_PART] = {{FP32, .d = {2, 4, 2, 8, 16, 8, 1}}, "attention", FORM_FIT, 0},
	[OP_ATTENTION_PART_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16, 8, 1}}, "attention_grad", FORM_FIT, 0},
	[OP_KV_PACK] = {{FP32, .d = {7, 9, 20}}, "cast", FORM_CURVE, 63},
	[OP_KV_UNPACK] = {{FP32, .d = {7, 9, 20}}, "cast", FORM_CURVE, 63},
	[OP_ATTN_SCORES] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_scores", FORM_FIT, 0},
	[OP_ATTN_SOFTMAX] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_softmax", FORM_CURVE, 2 * 4 * 8 * 8},
	[OP_ATTN_VALUES] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_values", FORM_FIT, 0},
	[OP_ATTN_VALUES_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_values_grad", FORM_FIT, 0},
	[OP_ATTN_SOFTMAX_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_softmax_grad", FORM_CURVE, 2 * 4 * 8 * 8},
	[OP_ATTN_SCORES_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "attn_scores_grad", FORM_FIT, 0},
	[OP_ROPE] = {{FP32, .d = {2, 4, 2, 8, 16}}, "rope", FORM_CURVE, 2 * 8 * (4 + 2) * 16},
	[OP_ATTN_BIAS] = {{FP32, .d = {2, 4, 2, 8, 16}}, "add", FORM_CURVE, 2 * 4 * 8 * 8},
	[OP_ATTN_BIAS_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "bias_grad", FORM_CURVE, 2 * 4 * 8 * 8},
	[OP_RELATIVE_BIAS] = {{FP32, .d = {4, 8, 32}}, "embed", FORM_CURVE, 4 * 8 * 8},
	[OP_RELATIVE_BIAS_GRAD] = {{FP32, .d = {4, 8, 32}}, "embed_grad", FORM_CURVE, 4 * 8 * 8},
	[OP_ATTN_SINKS] = {{FP32, .d = {2, 4, 2, 8, 16}}, "bias", FORM_CURVE, 2 * 8 * 4 * 16},
	[OP_ATTN_SINKS_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "bias_grad", FORM_CURVE, 2 * 4 * 8},
	[OP_SOFTCAP] = {{FP32, .d = {7, 9, 30}}, "act.gelu", FORM_CURVE, 63},
	[OP_SOFTCAP_GRAD] = {{FP32, .d = {7, 9, 30}}, "act_grad.gelu", FORM_CURVE, 63},
	[OP_LATENT_KEYS] = {{FP32, .d = {2, 4, 8, 16, 4, 10, 24}}, "cast", FORM_CURVE, 2 * 8 * 4 * (16 + 10)},
	[OP_LATENT_KEYS_GRAD] = {{FP32, .d = {2, 4, 8, 16, 4, 10, 4}}, "cast", FORM_CURVE, 2 * 8 * 4 * (16 + 10)},
	[OP_QK_NORM] = {{FP32, .flags = OP_RMS, .d = {2, 4, 2, 8, 16}}, "norm.rmsnorm", FORM_CURVE,
		2 * 8 * (4 + 2) * 16},
	[OP_QK_NORM_GRAD] = {{FP32, .d = {2, 4, 2, 8, 16}}, "norm_grad.layernorm", FORM_CURVE, 2 * 8 * (4 + 2) * 16},
	[OP_NORM] = {{FP32, .flags = OP_RMS, .d = {7, 9}}, "norm.rmsnorm", FORM_CURVE, 63},
	[OP_NORM_GRAD] = {{FP32, .d = {7, 9}}, "norm_grad.layernorm", FORM_CURVE, 63},
	[OP_ADD] = {{FP32, .d = {7, 9}}, "add", FORM_CURVE, 63},
	[OP_ADD_NORM] = {{FP32, .d = {7, 9}}, "add_norm.layernorm", FORM_CURVE, 63},
	[OP_BIAS] = {{FP32, .d = {7, 9}}, "bias", FORM_CURVE, 63},
	[OP_MODULATE] = {{FP32, .d = {2, 7, 9, 54, 9}}, "norm.layernorm", FORM_CURVE, 2 * 63},
	[OP_MODULATE_GRAD] = {{FP32, .d = {2, 7, 9, 54, 9}}, "norm_grad.layernorm", FORM_CURVE, 2 * 63},
	[OP_GATED_ADD] = {{FP32, .d = {2, 7, 9, 54, 18}}, "add", FORM_CURVE, 2 * 63},
	[OP_GATED_ADD_GRAD] = {{FP32, .d = {2, 7, 9, 54, 18}}, "add", FORM_CURVE, 2 * 63},
	[OP_SQUARE_LOSS] = {{FP32, .d = {7, 9}}, "add", FORM_CURVE, 63},
	[OP_BIAS_GRAD] = {{FP32, .d = {7, 9}}, "bias_grad", FORM_CURVE, 63},
	[OP_ACT] = {{FP32, .mlp = MLP_SWIGLU, .d = {7, 9}}, "act.swiglu", FORM_CURVE, 63},
	[OP_ACT_GRAD] = {{FP32, .mlp = MLP_GELU, .d = {7, 9}}, "act_grad.gelu", FORM_CURVE, 63},
	[OP_GATE_ACT] = {{FP32, .mlp = MLP_GEGLU, .d = {7, 9}}, "gate_act.geglu", FORM_CURVE, 63},
	[OP_WEIGHTED_ACT] = {{FP32, .mlp = MLP_SWIGLU, .d = {7, 9}}, "act.swiglu", FORM_CURVE, 63},
	[OP_WEIGHTED_ACT_GRAD] = {{FP32, .mlp = MLP_GELU, .d = {7, 9}}, "act_grad.gelu", FORM_CURVE, 63},
	[OP_GATE_MUL] = {{FP32, .mlp = MLP_GEGLU, .d = {7, 9}}, "gate_mul", FORM_CURVE, 63},
	[OP_CONV] = {{FP32, .flags = OP_TRANS_B, .d = {2, 7, 3, 5, 3, 2}}, "gemm.nt", FORM_FIT, 0},
	[OP_CONV_DATA] = {{FP32, .d = {2, 7, 3, 5, 3, 2}}, "gemm.nn", FORM_FIT, 0},
	[OP_CONV_WEIGHT] = {{FP32, .flags = OP_TRANS_A, .d = {2, 7, 3, 5, 3, 2}}, "gemm.tn", FORM_FIT, 0},
	[OP_BATCH_NORM] = {{FP32, .d = {7, 9}}, "norm.layernorm", FORM_CURVE, 63},
	[OP_BATCH_NORM_GRAD] = {{FP32, .d = {7, 9}}, "norm_grad.layernorm", FORM_CURVE, 63},
	[OP_MAX_POOL] = {{FP32, .d = {2, 7, 3, 3, 3, 2}}, "cast", FORM_CURVE, 2 * 7 * 7 * 3},
	[OP_MAX_POOL_GRAD] = {{FP32, .d = {2, 7, 3, 3, 3, 2}}, "cast", FORM_CURVE, 2 * 7 * 7 * 3},
	[OP_MEAN_POOL] = {{FP32, .d = {2, 7, 3, 3, 7, 7}}, "cast", FORM_CURVE, 2 * 7 * 7 * 3},
	[OP_MEAN_POOL_GRAD] = {{FP32, .d = {2, 7, 3, 3, 7, 7}}, "cast", FORM_CURVE, 2 * 7 * 7 * 3},
	[OP_SSM_CONV] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4}}, "gate_mul", FORM_CURVE, 2 * 8 * (4 * 3 + 2 * 2 * 5)},
	[OP_SSM_CONV_GRAD] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4}}, "gate_mul", FORM_CURVE, 2 * 8 * (4 * 3 + 2 * 2 * 5)},
	[OP_SSM_SCAN] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4}}, "ssm_scan", FORM_FIT, 0},
	[OP_SSM_SCAN_GRAD] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4}}, "ssm_scan_grad", FORM_FIT, 0},
	[OP_SSM_GATE] = {{FP32, .flags = OP_RMS, .d = {2, 8, 4, 3, 2, 5}}, "norm.rmsnorm", FORM_CURVE, 2 * 8 * 4 * 3},
	[OP_SSM_GATE_GRAD] = {{FP32, .flags = OP_RMS, .d = {2, 8, 4, 3, 2, 5}}, "norm_grad.rmsnorm", FORM_CURVE,
		2 * 8 * 4 * 3},
	[OP_DELTA_SCAN] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4, 1}}, "delta_scan", FORM_FIT, 0},
	[OP_DELTA_SCAN_GRAD] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4, 1}}, "delta_scan_grad", FORM_FIT, 0},
	[OP_KDA_SCAN] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4, 2}}, "delta_scan", FORM_FIT, 0},
	[OP_KDA_SCAN_GRAD] = {{FP32, .d = {2, 8, 4, 3, 2, 5, 4, 2}}, "delta_scan_grad", FORM_FIT, 0},
	[OP_DELTA_GATE] = {{FP32, .flags = OP_RMS, .d = {2, 8, 4, 3, 2, 5}}, "norm.rmsnorm", FORM_CURVE, 2 * 8 * 4 * 3},
	[OP_DELTA_GATE_GRAD] = {{FP32, .flags = OP_RMS, .d = {2, 8, 4, 3, 2, 5}}, "norm_grad.rmsnorm", FORM_CURVE,
		2 * 8 * 4 * 3},
	[OP_SHORT_CONV] = {{FP32, .d = {2, 8, 4, 3}}, "gate_mul", FORM_CURVE, 2 * 8 * 4},
	[OP_SHORT_CONV_GRAD] = {{FP32, .d = {2, 8, 4, 3}}, "gate_mul", FORM_CURVE, 2 * 8 * 4},
	[OP_SIGMOID_GATE] = {{FP32, .d = {7, 9, 3}}, "gate_mul", FORM_CURVE, 63},
	[OP_SIGMOID_GATE_GRAD] = {{FP32, .d = {7, 9, 3}}, "gate_mul", FORM_CURVE, 63},
	[OP_GROUPED_GEMM] = {{FP32, .flags = OP_TRANS_B, .d = {2, 3, 5, 4}}, "gemm.nt", FORM_FIT, 0},
	[OP_ROUTE] = {{FP32, .d = {7, 9, 2, 4}}, "loss_max", FORM_CURVE, 63},
	[OP_ROUTE_GRAD] = {{FP32, .d = {7, 9, 2, 4}}, "loss_max", FORM_CURVE, 63},
	[OP_DISPATCH] = {{FP32, .d = {7, 9, 36, 2}}, "cast", FORM_CURVE, 324},
	[OP_COMBINE] = {{FP32, .d = {7, 9, 36, 2}}, "cast", FORM_CURVE, 324},
	[OP_COMBINE_GRAD] = {{FP32, .d = {7, 9, 36, 2}}, "add", FORM_CURVE, 324},
	[OP_SWAP] = {{FP32, .d = {2, 3, 5}}, "cast", FORM_CURVE, 30},
	[OP_EMBED] = {{FP32, .d = {7, 9, 1000}}, "embed", FORM_CURVE, 63},
	[OP_EMBED_GRAD] = {{FP32, .d = {7, 9, 1000}}, "embed_grad", FORM_CURVE, 63},
	[OP_POSITION] = {{FP32, .d = {7, 9, 7}}, "position", FORM_CURVE, 63},
	[OP_POSITION_GRAD] = {{FP32, .d = {7, 9, 7}}, "position_grad", FORM_CURVE, 63},
	[OP_PICK] = {{FP32, .d = {2, 7, 3, 5}}, "cast", FORM_CURVE, 2 * 3 * 5},
	[OP_PICK_GRAD] = {{FP32, .d = {2, 7, 3, 5}}, "cast", FORM_CURVE, 2 * 7 * 5},
	[OP_PREPEND] = {{FP32, .d = {2, 7, 3, 5}}, "cast", FORM_CURVE, 2 * 7 * 5},
	[OP_PREPEND_GRAD] = {{FP32, .d = {2, 7, 3, 5}}, "cast", FORM_CURVE, 2 * 7 * 5},
	[OP_LOSS] = {{FP32, .d = {7, 1000}}, "loss", FORM_CURVE, 7000},
	[OP_LOSS_MAX] = {{FP32, .d = {7, 1000}}, "loss_max", FORM_CURVE, 7000},
	[OP_LOSS_SUM] = {{FP32, .d = {7, 1000}}, "loss_sum", FORM_CURVE, 7000},
	[OP_LOSS_GRAD] = {{FP32, .d = {7, 1000}}, "loss_grad", FORM_CURVE, 7000},
	[OP_OPTIMIZER] = {{FP32, .optimizer = OPT_ADAMW, .flags = OP_FUSED, .d = {50}}, "optimizer.adamw", FORM_CURVE,
		50},
	[OP_LAMB_DIRECTION] = {{FP32, .optimizer = OPT_ADAM, .flags = OP_FUSED, .tensors = {50, 3}}, "optimizer.adam",
		FORM_CURVE, 50},
	[OP_LAMB_STEP] = {{FP32, .flags = OP_FUSED, .tensors = {50, 3}}, "add", FORM_CURVE, 50},
	[OP_ADAFACTOR_SUMS] = {{FP32, .factored = {50, 3, 20, 4}}, "add", FORM_CURVE, 50},
	[OP_ADAFACTOR_NORMS] = {{FP32, .factored = {50, 3, 20, 4}}, "add", FORM_CURVE, 50},
	[OP_ADAFACTOR_STEP] = {{FP32, .factored = {50, 3, 20, 4}}, "add", FORM_CURVE, 50},
	[OP_MUON_DIRECTION] = {{FP32, .muon = {2, 5, 7}}, "add", FORM_CURVE, 70},
	[OP_MUON_MIX] = {{FP32, .muon = {2, 5, 7}}, "add", FORM_CURVE, 70},
	[OP_MUON_STEP] = {{FP32, .muon = {2, 5, 7}}, "add", FORM_CURVE, 70},
	[OP_FILL] = {{FP32, .d = {50}}, "fill", FORM_CURVE, 50},
	[OP_CAST] = {{FP32, .d = {50}}, "cast", FORM_CURVE, 50},
	[OP_COLLECTIVE] = {{FP32, .coll = COLL_ALL_GATHER, .d = {50}}, "collective", FORM_NONE, 0},
	[OP_COPY] = {{FP32, .d = {50}}, "copy", FORM_NONE, 0},
	[OP_LOAD] = {{FP32, .d = {50}}, "load", FORM_NONE, 0},
	[OP_PAUSE] = {{FP32, .d = {1}}, "pause", FORM_NONE, 0},
	[OP_SYNC] = {{FP32}, "sync", FORM_NONE, 0},
};
static_assert(COUNT(cases) == OP_KIND_COUNT, "a case for each op kind");

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
		CU_ASSERT_EQUAL(w.term[0] > 0, w.form == FORM_FIT);
	}
}

static void test_suffixes(void)
{
	CU_ASSERT_STRING_EQUAL(work(OP_GEMM, (struct op){.flags = 0}).name, "gemm.nn");
	CU_ASSERT_STRING_EQUAL(work(OP_GEMM, (struct op){.flags = OP_TRANS_A}).name, "gemm.tn");
	CU_ASSERT_STRING_EQUAL(work(OP_NORM, (struct op){.flags = 0}).name, "norm.layernorm");
	static const char *const acts[] = {"act.gelu", "act.relu", "act.squared_relu", "act.swiglu", "act.geglu"};
	static_assert(COUNT(acts) == MLP_COUNT, "every activation");
	for (int m = 0; m < MLP_COUNT; m++)
		CU_ASSERT_STRING_EQUAL(work(OP_ACT, (struct op){.mlp = (uint8_t)m}).name, acts[m]);
	static const char *const optimizers[] = {"optimizer.adamw", "optimizer.adam", "optimizer.lamb",
		"optimizer.muon", "optimizer.adafactor", "optimizer.lion", "optimizer.sgd", "optimizer.none"};
	static_assert(COUNT(optimizers) == OPT_COUNT, "every optimizer");
	for (int o = 0; o < OPT_COUNT; o++)
		CU_ASSERT_STRING_EQUAL(work(OP_OPTIMIZER, (struct op){.optimizer = (uint8_t)o, .flags = OP_FUSED}).name,
			optimizers[o]);
	CU_ASSERT_STRING_EQUAL(work(OP_OPTIMIZER, (struct op){.optimizer = OPT_ADAMW}).name, "optimizer.adamw.unfused");
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

	op.attn.seq = FLASH_TILE / 4; /* less than a tile: a whole tile of queries, with the keys that are there */
	CU_ASSERT_EQUAL(work(OP_ATTENTION, op).term[2], heads * FLASH_TILE * FLASH_TILE / 4);
	op.attn.seq = 3 * FLASH_TILE + 1;
	CU_ASSERT_EQUAL(work(OP_ATTENTION, op).term[2],
		heads * FLASH_TILE * ((1 + 2 + 3) * FLASH_TILE + 3 * FLASH_TILE + 1));
	op.flags = 0;
	CU_ASSERT_EQUAL(work(OP_ATTENTION, op).term[2], heads * 4 * FLASH_TILE * (3 * FLASH_TILE + 1));
	op.attn.head_dim = FLASH_LANES + 1; /* two of the gradient's five products are padded */
	struct work grad = work(OP_ATTENTION_GRAD, op);
	double whole = 4.0 * FLASH_TILE * (double)op.attn.seq * (FLASH_LANES + 1.0),
	       part = (double)(op.attn.seq * op.attn.seq) * 2 * FLASH_LANES;
	CU_ASSERT_DOUBLE_EQUAL(grad.term[1], heads * (3 * whole + 2 * part) / 5, 1e-6);
}

/* ---- on a GPU ---- */

#define SMS 100

static struct work gpu_work(int kind, struct op op)
{
	const struct work_device d = {.gpu = true, .sms = SMS, .tiles = TILE_MODEL};
	struct work w;
	op.kind = (uint8_t)kind;
	work_of(&op, &d, &w);
	return w;
}

static struct work gpu_gemm(int64_t m, int64_t n, int64_t k)
{
	return gpu_work(OP_GEMM,
		(struct op){.dtype = DT_BF16, .out_dtype = DT_BF16, .flags = OP_TRANS_B, .d = {m, n, k}});
}

static void test_gpu_names(void)
{
	CU_ASSERT_STRING_EQUAL(gpu_gemm(2, 3, 5).name, "gemm.nt.bf16");
	CU_ASSERT_STRING_EQUAL(gpu_work(OP_GEMM, (struct op){.dtype = DT_TF32, .d = {2, 3, 5}}).name, "gemm.nn.tf32");
	CU_ASSERT_STRING_EQUAL(gpu_work(OP_ATTENTION, (struct op){.dtype = DT_BF16, .d = {1, 2, 2, 8, 80}}).name,
		"attention.bf16.128");
	CU_ASSERT_STRING_EQUAL(gpu_work(OP_ATTENTION_GRAD, (struct op){.dtype = DT_FP16, .d = {1, 2, 2, 8, 64}}).name,
		"attention_grad.fp16.64");
	CU_ASSERT_STRING_EQUAL(gpu_work(OP_ATTN_VALUES, (struct op){.dtype = DT_FP32, .d = {1, 2, 2, 8, 64}}).name,
		"attn_values.fp32");
	/* Curves are shared by formats, in bytes. */
	struct op add = {.kind = OP_ADD, .dtype = DT_BF16, .out_dtype = DT_BF16, .d = {7, 9}};
	struct work w = gpu_work(OP_ADD, add);
	CU_ASSERT_STRING_EQUAL(w.name, "add");
	CU_ASSERT_EQUAL(w.elements, op_read_B(&add) + op_write_B(&add));
	CU_ASSERT_EQUAL(w.footprint_B, w.elements);
	CU_ASSERT_EQUAL(gpu_work(OP_COLLECTIVE, (struct op){.d = {9}}).form, FORM_NONE);
	/* A device that is no GPU has the host's. */
	const struct work_device cores = {.gpu = false, .sms = 7};
	work_of(&add, &cores, &w);
	CU_ASSERT_EQUAL(w.elements, 63);
}

/* By hand, on 100 SMs. */
static void test_gpu_gemm_terms(void)
{
	/* 128 tiles of 128 x 128 keep all SMs busy: the FLOP themselves. */
	struct work w = gpu_gemm(2048, 1024, 1024);
	CU_ASSERT_EQUAL(w.term[0], 1);
	CU_ASSERT_EQUAL(w.term[1], 2.0 * 2048 * 1024 * 1024);
	CU_ASSERT_EQUAL(w.term[2], 2.0 * 2048 * 1024);
	CU_ASSERT_EQUAL(w.term[3], 0);
	/* 130 x 100 are 192 x 128 in whole steps: one and a half tiles, and k is too short to be split. */
	w = gpu_gemm(130, 100, 64);
	CU_ASSERT_EQUAL(w.term[1], 100 * 2.0 * 128 * 128 * 64);
	CU_ASSERT_EQUAL(w.term[2], 100 * 2.0 * 128 * 128);
	/* One tile and a long k, which is split in parts of 256: 40 parts on 100 SMs, then one for each. */
	w = gpu_gemm(128, 128, 10240);
	CU_ASSERT_EQUAL(w.term[1], 100 * 2.0 * 128 * 128 * 256);
	w = gpu_gemm(128, 128, 65536);
	CU_ASSERT_EQUAL(w.term[1], 2.0 * 128 * 128 * 65536);
	CU_ASSERT_EQUAL(w.term[2], 100 * 2.0 * 128 * 128);
}

static void test_gpu_attention_terms(void)
{
	struct op op = {.dtype = DT_BF16, .out_dtype = DT_BF16, .flags = OP_CAUSAL, .d = {2, 8, 2, 1024, 80}};
	double pairs = 1024 * 1025.0 / 2 + 1024 * 128 / 2;
	struct work w = gpu_work(OP_ATTENTION, op);
	CU_ASSERT_EQUAL(w.term[1], 2 * 2 * 2 * 8 * pairs * 128); /* two products, padded to 128 */
	/* each head of queries loads keys and values, of which two heads are there */
	CU_ASSERT_EQUAL(w.term[2], 2.0 * 2 * 1024 * (8 + 2 * 8) * 80 + 2.0 * 2 * 1024 * 8 * 80 + 4.0 * 2 * 8 * 1024);
	CU_ASSERT_EQUAL(gpu_work(OP_ATTENTION_GRAD, op).term[1], 2.5 * w.term[1]);
	op.flags = 0;
	CU_ASSERT_EQUAL(gpu_work(OP_ATTENTION, op).term[1], 2 * 2 * 2 * 8 * 1024.0 * 1024 * 128);
	op.flags = OP_CAUSAL;
	op.attn.seq = 16; /* less than a tile: never more than without the mask */
	CU_ASSERT_EQUAL(gpu_work(OP_ATTENTION, op).term[1], 2 * 2 * 2 * 8 * 16.0 * 16 * 128);
	op.attn.seq = 1024;
	w = gpu_work(OP_ATTN_SCORES, op);
	CU_ASSERT_EQUAL(w.term[1], 2 * 2 * 8 * 1024.0 * 1024 * 80);
	CU_ASSERT_EQUAL(w.term[2], 2 * 8 * 1024.0 * 1024);
}

/* No term falls when m, n, k, or attention's sizes grow: then no time does, whatever the coefficients. */
static void test_gpu_terms_never_fall(void)
{
	uint64_t seed = 1;
	for (int i = 0; i < 200000; i++) {
		int64_t d[3];
		for (int k = 0; k < 3; k++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			d[k] = 1 + (int64_t)(seed >> 33) % (1 << (1 + (seed >> 20) % 14));
		}
		struct work before = gpu_gemm(d[0], d[1], d[2]);
		d[i % 3] += 1 + (int64_t)(seed >> 40) % 200;
		struct work after = gpu_gemm(d[0], d[1], d[2]);
		bool falls = false;
		for (int t = 0; t < WORK_TERMS; t++)
			falls = falls || after.term[t] < before.term[t];
		/* and never fewer FLOP than there are */
		if (falls || after.term[1] < 2.0 * (double)d[0] * (double)d[1] * (double)d[2]) {
			CU_FAIL("a term falls");
			fprintf(stderr, "%lld %lld %lld\n", (long long)d[0], (long long)d[1], (long long)d[2]);
		}
	}
	for (int kind = OP_ATTENTION; kind <= OP_ATTENTION_GRAD; kind++)
		for (int64_t s = 1; s < 2000; s++)
			for (int grows = 0; grows < 5; grows++) {
				struct op op = {.dtype = DT_BF16,
						  .flags = s % 2 ? OP_CAUSAL : 0,
						  .d = {1 + s % 3, 2 + s % 4, 2, s, 1 + s % 200}},
					  more = op;
				more.d[grows]++;
				struct work a = gpu_work(kind, op), b = gpu_work(kind, more);
				CU_ASSERT_TRUE(b.term[1] >= a.term[1] && b.term[2] >= a.term[2]);
			}
}

UNIT_MAIN("work", {"name, form and elements of every kind", test_every_kind}, {"suffixes", test_suffixes},
	{"terms of a GEMM", test_gemm_terms}, {"terms of attention", test_attention_terms},
	{"names on a GPU", test_gpu_names}, {"terms of a GEMM on a GPU", test_gpu_gemm_terms},
	{"terms of attention on a GPU", test_gpu_attention_terms},
	{"no term falls as work grows", test_gpu_terms_never_fall})
