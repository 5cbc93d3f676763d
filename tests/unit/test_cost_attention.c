#include <string.h>

#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

/* Under a mask all pairs are computed, at a share of the rate of FlashAttention-2. */
static void test_masked_attention(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op forward = {.kind = OP_ATTENTION,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.flags = OP_CAUSAL,
		.attn = {4, 32, 32, 4096, 128}};
	m.device.attention_share[KERNEL_FA2][0] = 0.5;
	m.device.attention_share[KERNEL_FA2][1] = 0.4;
	program.config.stack.attention_kernel = KERNEL_MASKED;
	const double product = 2 * 4.0 * 32 * 4096 * 4096 * 128, peak = m.device.matrix_flop_per_s[DT_BF16];
	NEAR(cost(&m, forward).alone_s, KERNEL_S + 2 * product / (peak * 0.5 * 0.37));
	forward.kind = OP_ATTENTION_GRAD;
	NEAR(cost(&m, forward).alone_s, KERNEL_S + 5 * product / (peak * 0.4 * 0.385));
	forward.flags = 0;
	NEAR(cost(&m, forward).alone_s, KERNEL_S + 5 * product / (peak * 0.4 * 0.385));
	program.config.stack = stack_default();
}

/* cuDNN's kernels compute all pairs under a mask at 0.53 of their rate; 32 query heads share 8 of keys, so that those
 * are copied first, and their gradients summed up after. Others give way to the memory-efficient kernel. */
static void test_mask_of_windows(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op op = {.kind = OP_ATTENTION,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.flags = OP_CAUSAL | OP_MASK,
		.attn = {4, 32, 8, 4096, 128}};
	op.attn.window = 1024;
	m.device.attention_share[KERNEL_FA2][0] = 0.4;
	m.device.attention_share[KERNEL_FA3][0] = 0.6;
	m.device.attention_share[KERNEL_FA3][1] = 0.5;
	program.config.stack.attention_kernel = KERNEL_FA3;
	const double product = 2 * 4.0 * 32 * 4096 * 4096 * 128, peak = m.device.matrix_flop_per_s[DT_BF16],
		     head = 2 * 4.0 * 4096 * 128, copies = 2 * (32 + 8) * head;
	NEAR(cost(&m, op).alone_s, KERNEL_S + 2 * product / (peak * 0.6 * 0.53) + (64 * head + copies) / 1.8e12);
	op.kind = OP_ATTENTION_GRAD;
	NEAR(cost(&m, op).alone_s,
		KERNEL_S + 5 * product / (peak * 0.5 * 0.53) + ((2 + 5 + 4) * 32 * head + copies) / 1.8e12);
	op.kind = OP_ATTENTION;
	program.config.stack.attention_kernel = KERNEL_FA2;
	NEAR(cost(&m, op).alone_s, KERNEL_S + 2 * product / (peak * 0.4 * 0.37));
	program.config.stack = stack_default();
}

/* A stack that takes cuDNN's kernels on Blackwell has their rate there, and its own kernel's on Hopper. */
static void test_attention_on_blackwell(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	const struct op op = {.kind = OP_ATTENTION,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.attn = {4, 32, 32, 4096, 128}};
	const double flop = 4 * 4.0 * 32 * 4096 * 4096 * 128, peak = m.device.matrix_flop_per_s[DT_BF16],
		     ends_s = 2 * 2 * 4.0 * 32 * 4096 * 128 / 1.8e12;
	m.device.attention_share[KERNEL_FA2][0] = 0.2;
	m.device.attention_share[KERNEL_FA3][0] = 0.5;
	m.device.compute_capability = 100;
	NEAR(cost(&m, op).alone_s, KERNEL_S + flop / (peak * 0.2) + ends_s);
	program.config.stack.cudnn_on_blackwell = true;
	NEAR(cost(&m, op).alone_s, KERNEL_S + flop / (peak * 0.5) + ends_s);
	m.device.compute_capability = 90;
	NEAR(cost(&m, op).alone_s, KERNEL_S + flop / (peak * 0.2) + ends_s);
	program.config.stack = stack_default();
}

/* Forward a tile's queries and results are not hidden; backward keys, values and their gradients, and the kernels
 * around the loop: 2 + 2 B of results and of their gradient, 4 + 4 + 2 B of the queries'. */
static double ends_B(const struct op *op, bool backward)
{
	const struct op_attn *a = &op->attn;
	const double head = (double)a->batch * (double)a->seq * (double)a->head_dim, q = head * (double)a->heads,
		     kv = head * (double)a->kv_heads;
	return backward ? 4 * q + 10 * q + 8 * kv : 4 * q;
}

/* Each generation has rates of its own. Heads of 64 take half of the products' time, and a half of the time of an
 * exponential for each score, 1.7 of it backward: 100 SMs at 1 GHz do 16 in a clock. */
static void test_attention_of_narrow_heads(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op wide = {.kind = OP_ATTENTION, .dtype = DT_BF16, .out_dtype = DT_BF16, .attn = {4, 32, 8, 4096, 128}},
		  narrow = wide;
	narrow.attn.head_dim = 64;
	program.config.stack.attention_kernel = KERNEL_FA4;
	m.device.attention_share[KERNEL_FA4][0] = 0.6;
	m.device.attention_share[KERNEL_FA4][1] = 0.5;
	const double scores = 4.0 * 32 * 4096 * 4096, product = 2 * scores * 128,
		     peak = m.device.matrix_flop_per_s[DT_BF16];
	NEAR(cost(&m, wide).alone_s, KERNEL_S + 2 * product / (peak * 0.6) + ends_B(&wide, false) / 1.8e12);
	NEAR(cost(&m, narrow).alone_s, KERNEL_S + product / (peak * 0.6) + ends_B(&narrow, false) / 1.8e12);
	m.device.sms = 100;
	m.device.boost_Hz = 1e9;
	const double exp_s = scores / 1600e9;
	NEAR(cost(&m, wide).alone_s, KERNEL_S + 2 * product / (peak * 0.6) + ends_B(&wide, false) / 1.8e12);
	NEAR(cost(&m, narrow).alone_s, KERNEL_S + product / (peak * 0.6) + exp_s / 2 + ends_B(&narrow, false) / 1.8e12);
	wide.kind = narrow.kind = OP_ATTENTION_GRAD;
	NEAR(cost(&m, wide).alone_s, KERNEL_S + 5 * product / (peak * 0.5) + ends_B(&wide, true) / 1.8e12);
	NEAR(cost(&m, narrow).alone_s,
		KERNEL_S + 2.5 * product / (peak * 0.5) + 1.7 * exp_s / 2 + ends_B(&narrow, true) / 1.8e12);
	narrow.attn.head_dim = 256; /* no exponential is shorter than that of the shares */
	NEAR(cost(&m, narrow).alone_s, KERNEL_S + 10 * product / (peak * 0.5) + ends_B(&narrow, true) / 1.8e12);
	program.config.stack = stack_default();
}

/* Heads of 128 reach 0.5 of the peak forward and 0.4 backward, products 0.8. So a product takes 1.25 of the ideal time
 * of one with 128 columns, and the scores take 2 (2 - 1.25) = 1.5 forward and 5 (2.5 - 1.25) = 6.25 backward, for any
 * width. An array of 256 takes heads of 128 twice as long in one product forward, and in two backward. */
static void test_attention_on_arrays(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op half = {.kind = OP_ATTENTION, .dtype = DT_BF16, .out_dtype = DT_BF16, .attn = {4, 32, 8, 4096, 128}},
		  whole = half;
	whole.attn.head_dim = 256;
	m.device.gemm_share = 0.8;
	m.device.attention_share[KERNEL_FA2][0] = 0.5;
	m.device.attention_share[KERNEL_FA2][1] = 0.4;
	const double ideal = 2 * 4.0 * 32 * 4096 * 4096 * 128 / m.device.matrix_flop_per_s[DT_BF16];
	m.device.matrix_array = 128;
	NEAR(cost(&m, half).alone_s, KERNEL_S + 4 * ideal + ends_B(&half, false) / 1.8e12);
	NEAR(cost(&m, whole).alone_s, KERNEL_S + (4 * 1.25 + 1.5) * ideal + ends_B(&whole, false) / 1.8e12);
	m.device.matrix_array = 256;
	NEAR(cost(&m, half).alone_s, KERNEL_S + (3 * 1.25 + 1.5) * ideal + ends_B(&half, false) / 1.8e12);
	NEAR(cost(&m, whole).alone_s, KERNEL_S + (4 * 1.25 + 1.5) * ideal + ends_B(&whole, false) / 1.8e12);
	half.kind = whole.kind = OP_ATTENTION_GRAD;
	NEAR(cost(&m, half).alone_s, KERNEL_S + (7 * 1.25 + 6.25) * ideal + ends_B(&half, true) / 1.8e12);
	NEAR(cost(&m, whole).alone_s, KERNEL_S + (10 * 1.25 + 6.25) * ideal + ends_B(&whole, true) / 1.8e12);
	/* two kernels: seven products, four of which sum up a head's columns, and scores twice */
	program.config.stack.attention_split = true;
	NEAR(cost(&m, half).alone_s, KERNEL_S + (11 * 1.25 + 2 * 6.25) * ideal + ends_B(&half, true) / 1.8e12);
	half.kind = OP_ATTENTION; /* forward is one */
	NEAR(cost(&m, half).alone_s, KERNEL_S + (3 * 1.25 + 1.5) * ideal + ends_B(&half, false) / 1.8e12);
	half.kind = OP_ATTENTION_GRAD;
	program.config.stack = stack_default();
	half.attn.value_dim = 256; /* of the two, only queries with keys sum up 128 columns */
	const double rows = 4.0 * 4096, results = rows * 32 * 256, queries = rows * 32 * 128,
		     kv = rows * 8 * (128 + 256);
	NEAR(cost(&m, half).alone_s,
		KERNEL_S + (7 * 1.25 + 1 * 1.25 + 6.25) * ideal + (4 * results + 10 * queries + 4 * kv) / 1.8e12);
}

/* A TPU computes whole blocks. Of 4 x 4 blocks of 1,024 queries and keys ten have a score that counts under a causal
 * mask. A window of 128 keys has a part in two blocks of each row of blocks. */
static void test_attention_in_blocks(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op op = {.kind = OP_ATTENTION,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.flags = OP_CAUSAL,
		.attn = {4, 32, 8, 4096, 128}};
	m.device.gemm_share = 0.8;
	m.device.attention_share[KERNEL_FA2][0] = 0.5;
	const double score = 2 * 4.0 * 32 * 128 / m.device.matrix_flop_per_s[DT_BF16] * (2 * 1.25 + 1.5),
		     ends_s = KERNEL_S + ends_B(&op, false) / 1.8e12, block = 1024.0 * 1024,
		     triangle = 4096.0 * 4097 / 2;
	s->attention_block = 1024;
	NEAR(cost(&m, op).alone_s,
		ends_s + (triangle + 4096 * 127.0 / 2) * score); /* no systolic array: tiles of 128 */
	m.device.matrix_array = 128;
	NEAR(cost(&m, op).alone_s, ends_s + 10 * block * score);
	s->attention_block = 16384; /* no more than all scores */
	NEAR(cost(&m, op).alone_s, ends_s + 16 * block * score);
	s->attention_block = 1;
	NEAR(cost(&m, op).alone_s, ends_s + triangle * score);
	s->attention_block = 0;
	NEAR(cost(&m, op).alone_s, ends_s + (triangle + 4096 * 127.0 / 2) * score);
	s->attention_block = 1024;
	op.attn.window = 128;
	const double counted_s = cost(&m, op).alone_s - ends_s;
	CU_ASSERT_TRUE(counted_s > 7 * block * score && counted_s <= 8 * block * score);
	op.attn.window = 0;
	op.flags = 0;
	NEAR(cost(&m, op).alone_s, ends_s + 16 * block * score);
	program.config.stack = stack_default();
}

/* In fp8 by the GPU's own share of the fp8 rate, with casts of 3 bytes an element: of queries, keys and values, and
 * backward of the result's gradient and theirs. */
static void test_attention_in_8_bits(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op op = {.kind = OP_ATTENTION, .dtype = DT_BF16, .out_dtype = DT_BF16, .attn = {4, 32, 8, 4096, 128}};
	const double wide_s = cost(&m, op).alone_s, product = 2 * 4.0 * 32 * 4096 * 4096 * 128, head = 4.0 * 4096 * 128;
	program.config.stack.attention8 = true;
	NEAR(cost(&m, op).alone_s, wide_s); /* a GPU without such a share: as its 16-bit kernel */
	m.device.matrix_flop_per_s[DT_FP8] = 4000e12;
	m.device.attention8_share[0] = 0.4;
	m.device.attention8_share[1] = 0.3;
	NEAR(cost(&m, op).alone_s, KERNEL_S + 2 * product / 1600e12 + 3 * head * (32 + 2 * 8) / 1.8e12);
	op.kind = OP_ATTENTION_GRAD;
	NEAR(cost(&m, op).alone_s, KERNEL_S + 5 * product / 1200e12 + 3 * head * (2 * 32 + 2 * 8) / 1.8e12);
	program.config.stack = stack_default();
}

/* Dropout of scores in a flash kernel takes time for each score, unless a stack's numbers have it. */
static void test_flash_dropout(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	const struct parameters *x = m.parameters;
	m.device.sms = 100;
	m.device.boost_Hz = 1e9;
	for (int backward = 0; backward < 2; backward++) {
		struct op op = {.kind = backward ? OP_ATTENTION_GRAD : OP_ATTENTION,
			.dtype = DT_BF16,
			.out_dtype = DT_BF16};
		op.attn = (struct op_attn){.batch = 8, .heads = 16, .kv_heads = 16, .seq = 1024, .head_dim = 128};
		const double exps = backward ? x->gpu.attention_dropout_backward : x->gpu.attention_dropout,
			     exp_per_s = (double)m.device.sms * m.device.boost_Hz * x->gpu.exp_clock,
			     plain_s = cost(&m, op).alone_s;
		op.dropout = 1;
		NEAR(cost(&m, op).alone_s, plain_s + 8 * 16 * 1024.0 * 1024 * exps / exp_per_s);
		s->passes_hold_dropout = true;
		NEAR(cost(&m, op).alone_s, plain_s);
		*s = stack_default();
	}
}

/* Heads are put in order around a batched product: 1,024 queries and 2,048 keys of 16 heads, read and written once. */
static void test_ordered_heads(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op scores = {.kind = OP_ATTN_SCORES,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.attn = {8, 16, 16, 1024, 64}};
	scores.attn.keys = 2048;
	const double before_s = cost(&m, scores).alone_s;
	s->operators.counted = true;
	s->operators.of[OPERATOR_HEADS][false] = (struct accesses){2, 0};
	NEAR(cost(&m, scores).alone_s, before_s + 4 * 8 * (1024.0 + 2048) * 16 * 64 / 1.8e12);
	*s = stack_default();
}

UNIT_MAIN("cost of attention", {"attention under a mask", test_masked_attention},
	{"a mask of windows", test_mask_of_windows}, {"attention on Blackwell", test_attention_on_blackwell},
	{"attention of narrow heads", test_attention_of_narrow_heads},
	{"attention on systolic arrays", test_attention_on_arrays}, {"attention in blocks", test_attention_in_blocks},
	{"dropout in flash kernels", test_flash_dropout}, {"ordered heads", test_ordered_heads},
	{"attention in fp8", test_attention_in_8_bits})
