#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

#define KERNEL_S 1.5e-6 /* starts and drains */

/* ---- roofline ---- */

static void test_roofline(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	program.config.stack = stack_default();
	struct op square = gemm(DT_BF16, 4096, 4096, 4096);
	struct op_cost c = cost(&m, square);
	NEAR(c.alone_s, KERNEL_S + 2 * 4096.0 * 4096 * 4096 / 800e12 +
				2 * 4096.0 * 4096 / 1.8e12); /* the result's way to memory */
	CU_ASSERT_EQUAL(c.issue_s, 4e-6);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	CU_ASSERT_EQUAL(c.use.demand[RES_COMPUTE], 1);
	NEAR(c.use.demand[RES_MEMORY], (op_read_B(&square) + op_write_B(&square)) / 1.8e12 / c.alone_s);
	CU_ASSERT_FALSE(c.guessed);

	/* The same in fp32 has a twentieth of the rate. */
	NEAR(cost(&m, gemm(DT_FP32, 4096, 4096, 4096)).alone_s,
		KERNEL_S + 2 * 4096.0 * 4096 * 4096 / 40e12 + 4 * 4096.0 * 4096 / 1.8e12);

	/* 64 images of 56 x 56 pixels, 256 channels, 3 x 3: 200,704 x 256 x 2,304, of which Winograd's algorithm leaves
	 * 16 products of 36; it has no form for steps of 2. */
	struct op conv = {.kind = OP_CONV, .dtype = DT_FP32, .out_dtype = DT_FP32, .conv = {64, 56, 256, 256, 3, 1, 0}};
	NEAR(cost(&m, conv).alone_s,
		KERNEL_S + 2 * 200704.0 * 256 * 2304 * 16 / 36 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);
	/* On vector units of half the rate it gains half of that; of a quarter, direct products are faster. */
	m.device.vector_flop_per_s /= 2;
	NEAR(cost(&m, conv).alone_s,
		KERNEL_S + 2 * 200704.0 * 256 * 2304 * 32 / 36 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);
	m.device.vector_flop_per_s /= 2;
	NEAR(cost(&m, conv).alone_s, KERNEL_S + 2 * 200704.0 * 256 * 2304 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);
	m.device.vector_flop_per_s *= 4;
	conv.conv = (struct op_conv){64, 112, 256, 256, 3, 2, 0};
	NEAR(cost(&m, conv).alone_s, KERNEL_S + 2 * 200704.0 * 256 * 2304 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);

	struct op norm = {.kind = OP_NORM, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 4096}};
	c = cost(&m, norm);
	NEAR(c.alone_s, KERNEL_S + (op_read_B(&norm) + op_write_B(&norm)) / 1.8e12);
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	CU_ASSERT(c.use.demand[RES_MEMORY] > 0.99 && c.use.demand[RES_MEMORY] <= 1);
	program.config.stack.elementwise_passes = 2.5; /* an eager stack moves more than the least */
	NEAR(cost(&m, norm).alone_s, KERNEL_S + 2.5 * (c.alone_s - KERNEL_S));
	program.config.stack = stack_default();

	/* Softmax over stored scores runs on vector units and is bound by memory there. */
	struct op softmax = {.kind = OP_ATTN_SOFTMAX,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.attn = {8, 16, 16, 1024, 64}};
	c = cost(&m, softmax);
	NEAR(c.alone_s, KERNEL_S + 2 * 2 * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	/* Under autocast a cast to 4 bytes (2 + 4), the passes in 4 bytes (3 x 8), and a cast back (4 + 2). */
	program.config.stack.elementwise_passes = 3;
	program.config.stack.autocast = true;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (6 + 24 + 6) * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	program.config.stack = stack_default();
	/* One by one: a cast to 4 bytes, scaling and softmax in 4 bytes, a cast back; backward softmax reads two. */
	program.config.stack.elementwise_passes = 3;
	program.config.stack.softmax_apart = true;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (6 + 8 + 8 + 6) * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	softmax.kind = OP_ATTN_SOFTMAX_GRAD;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (6 + 12 + 8 + 6) * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	program.config.stack = stack_default();

	CU_ASSERT_EQUAL(cost(&m, gemm(DT_BF16, 64, 64, 64)).bound, BOUND_LATENCY); /* shorter than its launch */
}

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

/* A frozen weight in fp8 is read and written once more where it is multiplied along its other axis, before
 * Blackwell. */
static void test_turned_weights(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op op = gemm(DT_FP8, 4096, 8192, 2048);
	op.out_dtype = DT_BF16;
	op.frozen8 = 1;
	m.device.matrix_flop_per_s[DT_FP8] = 2000e12;
	m.device.compute_capability = 100;
	op.flags = 0; /* the gradient of the input: the weight is [k, n] */
	const double newer_s = cost(&m, op).alone_s;
	m.device.compute_capability = 90;
	NEAR(cost(&m, op).alone_s, newer_s + 2 * 8192.0 * 2048 / 1.8e12);
	op.flags = OP_TRANS_B;
	NEAR(cost(&m, op).alone_s, newer_s);
	op.flags = op.frozen8 = 0;
	NEAR(cost(&m, op).alone_s, newer_s);
}

/* Counted operators have their kernels' bytes in place of elementwise_passes. */
static void test_operators(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	const double element = 65536 * 4096.0 / 1.8e12, score = 8 * 16 * 1024.0 * 1024 / 1.8e12;
	struct op norm = {.kind = OP_NORM, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 4096}}, rms = norm,
		  add = norm,
		  softmax = {.kind = OP_ATTN_SOFTMAX,
			  .dtype = DT_BF16,
			  .out_dtype = DT_BF16,
			  .attn = {8, 16, 16, 1024, 64}};
	add.kind = OP_ADD;
	rms.flags = OP_RMS;
	s->elementwise_passes = 3;
	s->operators.counted = true;
	s->operators.of[OPERATOR_LAYER_NORM][false] = (struct accesses){2, 0};
	s->operators.of[OPERATOR_LAYER_NORM][true] = (struct accesses){1, 3};
	s->operators.of[OPERATOR_RMS_NORM][false] = (struct accesses){4, 7};
	s->operators.of[OPERATOR_RESIDUAL][false] = (struct accesses){3, 0};
	s->operators.of[OPERATOR_SOFTMAX][true] = (struct accesses){2, 4};
	s->operators.of[OPERATOR_SOFTMAX_FP16][true] = (struct accesses){2, 2};
	s->operators.of[OPERATOR_SCALE][true] = (struct accesses){2, 0};
	s->operators.of[OPERATOR_MASK][true] = (struct accesses){4, 0};
	NEAR(cost(&m, norm).alone_s, KERNEL_S + 4 * element);
	NEAR(cost(&m, rms).alone_s, KERNEL_S + (8 + 28) * element);
	NEAR(cost(&m, add).alone_s, KERNEL_S + 6 * element);
	s->operators.of[OPERATOR_ADAPTER_SUM][false] = (struct accesses){5, 0}; /* with its scaling */
	add.adapter = ADAPTER_SUM;
	NEAR(cost(&m, add).alone_s, KERNEL_S + 10 * element);
	s->autocast = true;
	NEAR(cost(&m, norm).alone_s, KERNEL_S + (2 + 12) * element);
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (4 + 16 + 4) * score);
	softmax.dtype = softmax.out_dtype = DT_FP16;
	softmax.flags = OP_CAUSAL;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (4 + 8 + 4 + 8) * score);
	*s = stack_default();
}

/* A norm, a rotation and a gate that are one kernel each have that one's bytes. Others keep their operators'. */
static void test_fused_kernels(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	const double element = 65536 * 4096.0 / 1.8e12, head = 8 * 1024 * (16 + 4) * 64.0 / 1.8e12;
	const struct op_attn heads = {.batch = 8, .heads = 16, .kv_heads = 4, .seq = 1024, .head_dim = 64};
	const struct {
		struct op op;
		enum operator_kind plain, fused;
		double element_s;
		int kernel;
	} cases[] = {
		{{.kind = OP_NORM, .flags = OP_RMS}, OPERATOR_RMS_NORM, OPERATOR_FUSED_NORM, element, FUSE_NORM},
		{{.kind = OP_NORM_GRAD, .flags = OP_RMS}, OPERATOR_RMS_NORM_GRAD, OPERATOR_FUSED_NORM_GRAD, element,
			FUSE_NORM},
		{{.kind = OP_NORM}, OPERATOR_LAYER_NORM, OPERATOR_LAYER_NORM, element, FUSE_NORM},
		{{.kind = OP_QK_NORM, .attn = heads}, OPERATOR_RMS_NORM, OPERATOR_FUSED_QK_NORM, head, FUSE_NORM},
		{{.kind = OP_ROPE, .attn = heads}, OPERATOR_ROTARY, OPERATOR_FUSED_ROTARY, head, FUSE_ROTARY},
		{{.kind = OP_ROPE, .flags = OP_INVERSE, .attn = heads}, OPERATOR_ROTARY_GRAD,
			OPERATOR_FUSED_ROTARY_GRAD, head, FUSE_ROTARY},
		{{.kind = OP_ACT, .mlp = MLP_SWIGLU}, OPERATOR_ACTIVATION, OPERATOR_FUSED_GATE, element, FUSE_GATE},
		{{.kind = OP_ACT_GRAD, .mlp = MLP_SWIGLU}, OPERATOR_GATE_GRAD, OPERATOR_FUSED_GATE_GRAD, element,
			FUSE_GATE},
		{{.kind = OP_ACT, .mlp = MLP_GELU}, OPERATOR_ACTIVATION, OPERATOR_ACTIVATION, element, FUSE_GATE},
	};
	s->operators.counted = true;
	for (int k = 1; k < OPERATOR_COUNT; k++)
		s->operators.of[k][false] = (struct accesses){k, 0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct op op = cases[i].op;
		op.dtype = op.out_dtype = DT_BF16;
		if (cases[i].element_s == element)
			op.matrix = (struct op_matrix){.rows = 65536, .cols = 4096};
		s->fused_kernels = (FUSE_NORM | FUSE_ROTARY | FUSE_GATE) & ~cases[i].kernel;
		NEAR(cost(&m, op).alone_s, KERNEL_S + 2 * cases[i].plain * cases[i].element_s);
		s->fused_kernels = cases[i].kernel;
		NEAR(cost(&m, op).alone_s, KERNEL_S + 2 * cases[i].fused * cases[i].element_s);
	}
	*s = stack_default();
}

/* Casts of an adapter's input run for each module, its gradient's behind the product; scaling on what B's product
 * reads. */
static void test_adapter_operators(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op product = gemm(DT_BF16, 65536, 64, 4096), parted = product, back = gemm(DT_BF16, 65536, 4096, 64);
	const double input_s = 65536 * 4096.0 / 1.8e12, plain_s = cost(&m, product).alone_s,
		     back_s = cost(&m, back).alone_s;
	s->operators.counted = true;
	s->operators.of[OPERATOR_ADAPTER_SUM_GRAD][false] = (struct accesses){2, 0};
	s->operators.of[OPERATOR_ADAPTER_INPUT][false] = (struct accesses){2, 2};
	s->operators.of[OPERATOR_ADAPTER_INPUT_GRAD][false] = (struct accesses){4, 2};
	NEAR(cost(&m, product).alone_s, plain_s);
	parted.adapter = ADAPTER_SUM_GRAD;
	NEAR(cost(&m, parted).alone_s, plain_s + 4 * input_s);
	parted.adapter = ADAPTER_INPUT;
	parted.modules = 3;
	NEAR(cost(&m, parted).alone_s, 3 * plain_s + 3 * (4 + 8) * input_s);
	back.adapter = ADAPTER_INPUT_GRAD;
	back.modules = 2;
	NEAR(cost(&m, back).alone_s, 2 * back_s + 2 * (8 + 8) * input_s);
	*s = stack_default();
	NEAR(cost(&m, parted).alone_s, 3 * plain_s);
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

/* Around an adapter that multiplies in fp32, operands have the format of what it leaves, and other kernels run. */
static void test_wide_adapter(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op product = gemm(DT_BF16, 65536, 64, 4096), add = {.kind = OP_ADD,
								    .flags = OP_WIDE,
								    .dtype = DT_BF16,
								    .out_dtype = DT_BF16,
								    .adapter = ADAPTER_SUM};
	const double narrow_s = cost(&m, product).alone_s;
	const double input_s = 65536 * 4096.0 / 1.8e12;
	product.flags |= OP_WIDE;
	const double plain_s = cost(&m, product).alone_s;
	CU_ASSERT_TRUE(plain_s > 2 * narrow_s);
	s->operators.counted = true;
	s->operators.of[OPERATOR_ADAPTER_INPUT][false] = (struct accesses){7, 7};
	s->operators.of[OPERATOR_WIDE_ADAPTER_INPUT][false] = (struct accesses){1, 1};
	s->operators.of[OPERATOR_WIDE_ADAPTER_SUM][false] = (struct accesses){1, 6};
	product.adapter = ADAPTER_INPUT;
	product.modules = 1;
	NEAR(cost(&m, product).alone_s, plain_s + (2 + 4) * input_s);
	add.matrix = (struct op_matrix){.rows = 65536, .cols = 4096};
	NEAR(cost(&m, add).alone_s, KERNEL_S + (2 + 24) * input_s);
	*s = stack_default();
}

/* A gelu that is written out has its own kernels' bytes in place of the activation's, also behind a gate's two
 * products; a relu keeps its one kernel. */
static void test_composed_gelu(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	const double element = 65536 * 4096.0 / 1.8e12;
	struct op act = {.kind = OP_ACT, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 4096}}, grad = act;
	grad.kind = OP_ACT_GRAD;
	act.mlp = grad.mlp = MLP_GELU;
	s->operators.counted = true;
	s->operators.of[OPERATOR_ACTIVATION][true] = (struct accesses){2, 0};
	s->operators.of[OPERATOR_ACTIVATION_GRAD][true] = (struct accesses){3, 0};
	s->operators.of[OPERATOR_COMPOSED_GELU][true] = (struct accesses){6, 16};
	s->operators.of[OPERATOR_COMPOSED_GELU_GRAD][true] = (struct accesses){13, 23};
	s->operators.of[OPERATOR_GATE_GRAD][true] = (struct accesses){9, 0};
	s->autocast = true;
	NEAR(cost(&m, act).alone_s, KERNEL_S + 4 * element);
	s->composed_gelu = true;
	NEAR(cost(&m, act).alone_s, KERNEL_S + (12 + 64) * element);
	NEAR(cost(&m, grad).alone_s, KERNEL_S + (26 + 92) * element);
	grad.mlp = MLP_GEGLU;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + (26 + 92 + 12) * element);
	act.mlp = MLP_RELU;
	NEAR(cost(&m, act).alone_s, KERNEL_S + 4 * element);
	*s = stack_default();
}

/* A kernel that is not vectorized passes so many elements a clock and SM, or takes its bytes' time where that is
 * longer: a norm that moves 20 B an element, 12 of them so in two passes; a loss of 48 B a logit with a cast of 6; a
 * gradient that autocast makes fp32 by a cast of its own. */
static void test_unvectorized(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op norm = {.kind = OP_NORM,
			  .flags = OP_RMS,
			  .dtype = DT_BF16,
			  .out_dtype = DT_BF16,
			  .matrix = {8192, 4096}},
		  loss = {.kind = OP_LOSS, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {1024, 32000}},
		  grad = gemm(DT_BF16, 4096, 4096, 8192);
	const double elements = 8192 * 4096.0, logits = 1024 * 32000.0, weights = 4096 * 4096.0;
	grad.flags |= OP_TRANS_A;
	grad.out_dtype = DT_FP32;
	const double direct_s = cost(&m, grad).alone_s;
	s->operators.counted = true;
	s->operators.of[OPERATOR_RMS_NORM][false] = (struct accesses){2, 4};
	s->operators.unvectorized[OPERATOR_RMS_NORM][false] = (struct unvectorized){2, {2, 2}};
	operators_set_logit_casts(&s->operators, 1);
	s->logit_B = 48;
	NEAR(cost(&m, norm).alone_s, KERNEL_S + 20 * elements / 1.8e12); /* not known of the GPU */
	m.device.compute_capability = 90;
	m.device.sms = 100;
	m.device.boost_Hz = 2e9;
	const double rate = 100 * 2e9 * m.parameters->gpu.unvectorized;
	NEAR(cost(&m, norm).alone_s, KERNEL_S + elements * (8 / 1.8e12 + 2 / rate));
	NEAR(cost(&m, loss).alone_s, KERNEL_S + logits * (42 / 1.8e12 + 1 / rate));
	m.device.boost_Hz = 2e10;
	NEAR(cost(&m, norm).alone_s, KERNEL_S + 20 * elements / 1.8e12);
	m.device.boost_Hz = 2e9;
	m.device.sms = 1000;
	s->autocast = true;
	m.device.compute_capability = 0;
	NEAR(cost(&m, grad).alone_s - direct_s, 4 * weights / 1.8e12); /* 8 B of it, in place of 4 */
	grad.flags |= OP_ACCUMULATE;
	s->autocast = false;
	const double summed_s = cost(&m, grad).alone_s;
	s->autocast = true;
	NEAR(cost(&m, grad).alone_s - summed_s, 8 * weights / 1.8e12); /* 20 in place of 12 */
	*s = stack_default();
}

/* Kernels that sum move so many bytes a clock and SM, or as many as the memory. A layer norm's weights take a time by
 * their rows where it is narrow, an RMS norm's do not. */
static void test_reductions(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op grad = {.kind = OP_NORM_GRAD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 4096}};
	s->operators.counted = true;
	s->operators.of[OPERATOR_LAYER_NORM_GRAD][false] = s->operators.of[OPERATOR_RMS_NORM_GRAD][false] =
		(struct accesses){5, 0};
	s->operators.reduced[OPERATOR_LAYER_NORM_GRAD][false] = s->operators.reduced[OPERATOR_RMS_NORM_GRAD][false] =
		(struct accesses){2, 0};
	double elements = 65536 * 4096.0;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + 10 * elements / 1.8e12); /* not known of the GPU */
	m.device.compute_capability = 90;
	m.device.sms = 100;
	m.device.boost_Hz = 1e9;
	const double rate = 100 * 1e9 * m.parameters->gpu.reduction_B;
	CU_ASSERT_TRUE(rate < 1.8e12);
	NEAR(cost(&m, grad).alone_s, KERNEL_S + elements * (6 / 1.8e12 + 4 / rate));
	grad.matrix.cols = 64;
	elements = 65536 * 64.0;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + 6 * elements / 1.8e12 + 65536 / (1e9 * m.parameters->gpu.summed_rows));
	grad.flags |= OP_RMS;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + elements * (6 / 1.8e12 + 4 / rate));
	m.device.boost_Hz = 1e11;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + 10 * elements / 1.8e12);
	*s = stack_default();
}

/* The gradient of a table's rows takes its kernels' time. Where another gradient is there, as that of a tied head, the
 * table is filled with zeros, and both are read and their sum written. */
static void test_embed_grad(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op grad = {.kind = OP_EMBED_GRAD, .dtype = DT_BF16, .out_dtype = DT_BF16, .embed = {8192, 1024, 50000}};
	s->operators.counted = true;
	s->operators.of[OPERATOR_EMBED_GRAD][false] = (struct accesses){2, 2};
	s->operators.of[OPERATOR_EMBED_GRAD][true] = (struct accesses){0, 4};
	const double rows = 8192 * 1024.0, table = 50000 * 1024.0;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + 12 * rows / 1.8e12);
	grad.flags = OP_ACCUMULATE;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + (12 * rows + 8 * table) / 1.8e12);
	grad.out_dtype = DT_FP32;
	s->autocast = true;
	NEAR(cost(&m, grad).alone_s, KERNEL_S + (16 * rows + 16 * table) / 1.8e12);
	*s = stack_default();
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

/* Images of 112 x 112 and 56 x 56 pixels, 256 channels of 2 bytes, read and written once more each, but not in fp32. */
static void test_memory_format(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op conv = {.kind = OP_CONV,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.conv = {64, 112, 256, 256, 3, 2, 0}};
	const double last_s = cost(&m, conv).alone_s, moved_B = 2 * 2 * 64 * 256.0 * (112 * 112 + 56 * 56);
	program.config.stack.channels_first = true;
	NEAR(cost(&m, conv).alone_s, last_s + moved_B / 1.8e12);
	conv.dtype = conv.out_dtype = DT_FP32;
	const double wide_s = cost(&m, conv).alone_s;
	program.config.stack.channels_first = false;
	NEAR(cost(&m, conv).alone_s, wide_s);
}

/* Small and odd shapes pay for whole tiles, split k and alignment. Of shapes whose rows are whole 16 bytes, the larger
 * is never the faster. */
static void test_shapes_of_products(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	m.device.sms = 100;
	NEAR(cost(&m, gemm(DT_BF16, 4096, 4096, 4096)).alone_s,
		KERNEL_S + 2 * 4096.0 * 4096 * 4096 / 800e12 + 2 * 4096.0 * 4096 / 1.8e12);
	/* one tile, k in 4 parts: 4 of 100 SMs */
	NEAR(cost(&m, gemm(DT_BF16, 128, 128, 1024)).alone_s,
		KERNEL_S + 2 * 128.0 * 128 * 1024 / (0.04 * 800e12) + 2 * 128.0 * 128 / 1.8e12);
	/* 4104 rows are 4160 */
	NEAR(cost(&m, gemm(DT_BF16, 4104, 4096, 4096)).alone_s,
		KERNEL_S + 2 * 4160.0 * 4096 * 4096 / 800e12 + 2 * 4104.0 * 4096 / 1.8e12);
	/* GPT-2's vocabulary, as it is and padded */
	double odd_s = cost(&m, gemm(DT_BF16, 8192, 50257, 768)).alone_s,
	       padded_s = cost(&m, gemm(DT_BF16, 8192, 50304, 768)).alone_s;
	CU_ASSERT(odd_s > 1.5 * padded_s && odd_s < 2.1 * padded_s);
	/* of GPUs whose aligned products are faster still it keeps 1,024 FLOP an SM and clock */
	struct machine newer = m;
	newer.device.compute_capability = 9;
	newer.device.boost_Hz = 1.8e9;
	const double newer_s = cost(&newer, gemm(DT_BF16, 8192, 50257, 768)).alone_s;
	CU_ASSERT(newer_s > 2 * odd_s && newer_s < 3 * odd_s);
	NEAR(cost(&newer, gemm(DT_BF16, 8192, 50304, 768)).alone_s, padded_s);
	CU_ASSERT(cost(&m, gemm(DT_FP32, 8192, 50257, 768)).alone_s <=
		  cost(&m, gemm(DT_FP32, 8192, 50304, 768)).alone_s); /* no Tensor Cores to lose */

	static const int64_t sides[] = {8, 64, 72, 128, 136, 256, 1000, 1024, 4096, 4104, 16384};
	enum { N = COUNT(sides) };
	for (int i = 0; i < N * N * N; i++) {
		int64_t a = sides[i % N], b = sides[i / N % N], k = sides[i / N / N];
		double t = cost(&m, gemm(DT_BF16, a, b, k)).alone_s;
		CU_ASSERT(cost(&m, gemm(DT_BF16, a + 8, b, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, b + 8, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, b, k + 8)).alone_s >= t);
		CU_ASSERT(cost(&m, gemm(DT_BF16, 2 * a, b, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, 2 * b, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, b, 2 * k)).alone_s >= t);
	}
}

/* A rank's experts are as many products: they fill the device together, and none is for nothing. */
static void test_grouped_products(void)
{
	struct machine m = gpu();
	m.device.sms = 1024; /* one wave of 32 x 32 tiles */
	mesh(1, 1);
	struct op one = gemm(DT_BF16, 4096, 4096, 4096), grouped = one;
	grouped.kind = OP_GROUPED_GEMM;
	grouped.gemm.groups = 8;
	const double one_s = cost(&m, one).alone_s - KERNEL_S, grouped_s = cost(&m, grouped).alone_s - KERNEL_S,
		     weights_B = 4096 * 4096 * 2.0, streams_Bps = RATES(&m)->memory_Bps;
	NEAR(grouped_s, 8 * (one_s + weights_B / streams_Bps)); /* nothing hides the weights' traffic */
	grouped.flags |= OP_TRANS_A;                            /* a gradient of weights has none */
	NEAR(cost(&m, grouped).alone_s - KERNEL_S, 8 * one_s);
	grouped.flags &= (uint32_t)~OP_TRANS_A;
	CU_ASSERT_TRUE(grouped_s >= op_flop(&grouped) / m.device.matrix_flop_per_s[DT_BF16]);
	/* four waves of 32 x 32 tiles: the first waits for its weights */
	m.device.sms = 256;
	NEAR(cost(&m, grouped).alone_s - KERNEL_S, 8 * (one_s + weights_B / 4 / streams_Bps));
	/* so few tiles that one product leaves most SMs without one */
	m.device.sms = 100;
	struct op small = gemm(DT_BF16, 128, 128, 256), smalls = small;
	smalls.kind = OP_GROUPED_GEMM;
	smalls.gemm.groups = 50;
	CU_ASSERT_TRUE(cost(&m, smalls).alone_s < 4 * cost(&m, small).alone_s);
}

static struct op routed(enum op_kind k)
{
	struct op op = {.kind = k, .dtype = DT_BF16, .out_dtype = DT_BF16};
	op.dispatch.rows = 4096;
	op.dispatch.cols = 2048;
	op.dispatch.slots = 32768;
	op.dispatch.choices = 8;
	return op;
}

/* Rows in the experts' order stream more slowly than others. Where atomic additions sum a token's slots up they are the
 * longer part; where products with masks take rows to their slots those are. */
static void test_routed_rows(void)
{
	struct machine m = gpu();
	mesh(1, 1);
	const struct rates *r = RATES(&m);
	const double rows = 4096 * 2048, slots = 32768 * 2048, ids = 4 * 32768.0,
		     streams_Bps = r->memory_Bps * r->parameters->gpu.permuted_share;
	const struct op to = routed(OP_DISPATCH), from = routed(OP_COMBINE), grad = routed(OP_COMBINE_GRAD);
	NEAR(cost(&m, to).alone_s - KERNEL_S, (2 * rows + 2 * slots + ids) / streams_Bps);
	const double fused_s = cost(&m, from).alone_s;
	program.config.stack.atomic_sums = true;
	const double atomic_s = slots * r->parameters->gpu.atomic_add_flop / r->vector_flop_per_s;
	CU_ASSERT_TRUE(atomic_s + KERNEL_S > fused_s);
	NEAR(cost(&m, from).alone_s - KERNEL_S, atomic_s);
	NEAR(cost(&m, to).alone_s - KERNEL_S, (2 * rows + 2 * slots + ids) / streams_Bps);
	struct op wide = from;
	wide.dtype = DT_FP32; /* a native addition */
	CU_ASSERT_TRUE(cost(&m, wide).alone_s - KERNEL_S != atomic_s);
	program.config.stack.mask_rows = 4096;
	const double product_s = 2 * slots * 4096 / r->product_flop_per_s[DT_BF16];
	NEAR(cost(&m, to).alone_s - KERNEL_S, product_s);
	NEAR(cost(&m, from).alone_s - KERNEL_S, product_s);
	NEAR(cost(&m, grad).alone_s - KERNEL_S, 2 * product_s);
	program.config.stack.mask_rows = 0;
	program.config.stack.atomic_sums = false;
}

/* A format's own share stands in for that of large products; the other formats keep theirs. fp32's is of its batched
 * products, too, while those of naive attention keep 16 bits beside fp8. */
static void test_share_of_a_format(void)
{
	struct machine m = gpu();
	mesh(1, 1);
	const struct rates *r = RATES(&m);
	const double bf16 = r->product_flop_per_s[DT_BF16], fp32 = r->product_flop_per_s[DT_FP32];
	NEAR(fp32, 0.8 * 50e12);
	m.device.format_share[DT_FP32] = 0.4;
	m.device.format_share[DT_FP8] = 0.4;
	m.device.matrix_flop_per_s[DT_FP8] = 2000e12;
	r = RATES(&m);
	NEAR(r->product_flop_per_s[DT_FP32], 0.5 * fp32);
	NEAR(r->batched_flop_per_s[DT_FP32], 0.5 * fp32);
	NEAR(r->product_flop_per_s[DT_BF16], bf16);
	NEAR(r->product_flop_per_s[DT_FP8], 0.4 * 2000e12);
	NEAR(r->batched_flop_per_s[DT_FP8], 0.8 * 2000e12);
}

static void test_unsupported_format(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op op = gemm(DT_FP8, 128, 128, 128);
	struct op_cost c;
	error = (struct error){0};
	CU_ASSERT_EQUAL(cost_op(&program, &op, RATES(&m), &c, &error), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(error.text, "matrices are not multiplied in fp8 on round GPU (they are in: fp32, bf16)"));
	op.kind = OP_CAST; /* it may still convert to it */
	CU_ASSERT_EQUAL(cost_op(&program, &op, RATES(&m), &c, NULL), ST_OK);
}

static void test_copies(void)
{
	mesh(1, 1);
	struct op copy = {.kind = OP_COPY, .lane = LANE_COPY, .copy = {50000000}};
	struct machine m = gpu();
	struct op_cost c = cost(&m, copy);
	NEAR(c.alone_s, 1e-3);
	CU_ASSERT_EQUAL(c.bound, BOUND_LINK);
	CU_ASSERT_EQUAL(c.use.demand[RES_COMPUTE], 0);
	m.device.pcie_Bps = 0;
	NEAR(cost(&m, copy).alone_s, 50e6 / 31.5e9);

	m = host();
	c = cost(&m, copy);
	NEAR(c.alone_s, 2e-6 + 2 * 50e6 / 10e9);
	CU_ASSERT_EQUAL(c.use.demand[RES_COMPUTE], 0.5); /* one core of two */
	CU_ASSERT_EQUAL(c.issue_s, 0);
}

/* ---- profile ---- */

static void test_fit(void)
{
	mesh(1, 1);
	struct machine m = host();
	const double coef[] = {1e-6, 2e-11, 3e-10, 4e-10, 5e-10};
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn", coef, 5, 0.04, NULL), ST_OK);
	struct op_cost c = cost(&m, gemm(DT_FP32, 100, 200, 300));
	NEAR(c.alone_s, 1e-6 + 2e-11 * 2 * 100 * 200 * 300 + 3e-10 * 100 * 300 + 4e-10 * 300 * 200 + 5e-10 * 100 * 200);
	CU_ASSERT_EQUAL(c.issue_s, 0); /* calling is part of it */
	CU_ASSERT_EQUAL(c.rel_sigma, 0.04);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	CU_ASSERT_FALSE(c.guessed);
	CU_ASSERT_EQUAL(cost(&m, gemm(DT_FP32, 1, 2, 3)).bound, BOUND_LATENCY);
	CU_ASSERT_EQUAL(cost(&m, gemm(DT_FP32, 1, 100000, 1)).bound, BOUND_MEMORY);
	/* Cores that are faster now than then, and memory that is slower; the call takes what it took. */
	m.pace = (struct pace){1.25, 0.5};
	c = cost(&m, gemm(DT_FP32, 100, 200, 300));
	NEAR(c.alone_s, 1e-6 + 2e-11 * 2 * 100 * 200 * 300 / 1.25 +
				2 * (3e-10 * 100 * 300 + 4e-10 * 300 * 200 + 5e-10 * 100 * 200));
}

static void test_curve(void)
{
	mesh(1, 1);
	struct machine m = host();
	const double x[] = {1e3, 1e5, 1e7}, y[] = {1e-10, 1e-10, 4e-10};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "fill", x, y, 3, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "call_s", 1e-6, NULL), ST_OK);
	struct op fill = {.kind = OP_FILL, .dtype = DT_FP32, .out_dtype = DT_FP32, .vector = {25000}};
	NEAR(cost(&m, fill).alone_s, 1e-6 + 25000 * 1e-10);
	fill.vector.elements = 250000; /* half way between 1e5 and 1e7 bytes, in log-log */
	NEAR(cost(&m, fill).alone_s, 1e-6 + 250000 * 2e-10);
	fill.vector.elements = 250000000; /* the end value goes on */
	struct op_cost c = cost(&m, fill);
	NEAR(c.alone_s, 1e-6 + 250000000 * 4e-10);
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	CU_ASSERT_DOUBLE_EQUAL(c.use.demand[RES_MEMORY], 1, 1e-4); /* all but the call */
	fill.vector.elements = 10;
	CU_ASSERT_EQUAL(cost(&m, fill).bound, BOUND_LATENCY);

	/* Ten times slower than memory would be: arithmetic. */
	const double slow[] = {1e-9, 1e-8, 1e-8};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "act.gelu", x, slow, 3, NULL), ST_OK);
	struct op act = {.kind = OP_ACT,
		.mlp = MLP_GELU,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.matrix = {1000, 4000}};
	c = cost(&m, act);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	NEAR(c.use.demand[RES_MEMORY], 32e6 / 10e9 / c.alone_s);
}

static void test_missing_entry(void)
{
	mesh(1, 1);
	struct machine m = host();
	struct op_cost c = cost(&m, gemm(DT_FP32, 1000, 1000, 1000));
	NEAR(c.alone_s, 2e-6 + 2e9 / 100e9);
	CU_ASSERT_EQUAL(c.issue_s, 0);
	CU_ASSERT(c.guessed);
	CU_ASSERT(c.rel_sigma > 0.3);
	const double coef[] = {1, 1}; /* a fit of another form is none */
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn", coef, 2, 0, NULL), ST_OK);
	CU_ASSERT(cost(&m, gemm(DT_FP32, 1000, 1000, 1000)).guessed);
}

/* Products ran at 75 % of the burst clock and 400 TFLOP/s on a board of 700 W, 100 W at rest: a FLOP costs 1.5 pJ.
 * Products and attention take it, other ops pay for bytes. fp32 met no limit. Without a limit or power nothing is said.
 */
static void test_power(void)
{
	mesh(1, 1);
	host();
	struct machine m = gpu();
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 8;
	const double tflop = 1e12, coef[] = {0, 1 / 500e12, 0, 0, 0}, x[] = {1e6, 1e9}, y[] = {1e-12, 1e-12};
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "sms", 100, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "mem_Bps", 1e12, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn.bf16", coef, 5, 0, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn.fp32", coef, 5, 0, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "add", x, y, 2, NULL), ST_OK);
	const struct profile_products found = {.name = "gemm.nn.bf16",
		.n = 4,
		.flop = {tflop, tflop, tflop, tflop},
		.time_s = {1 / 300.0, 1 / 500.0, 1 / 100.0, 1 / 50.0},
		.clock_Hz = {1.4e9, 1.6e9, 2e9, 1e9}, /* 1 GHz, but not for power */
		.power_W = {700, 700, 100, 400},
		.heat_s = {0.15, 0.15, 0, 0.15},
		.capped = {1, 0.5, 0, 0}};
	CU_ASSERT_EQUAL_FATAL(profile_set_products(profile, &found, NULL), ST_OK);
	machine_attach_profile(&m, profile);
	const struct op large = gemm(DT_BF16, 8192, 8192, 8192), thin = gemm(DT_BF16, 8192, 8192, 64),
			fp32 = gemm(DT_FP32, 8192, 8192, 8192),
			add = {.kind = OP_ADD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {1000, 1000}};
	CU_ASSERT_EQUAL(cost(&m, large).matrix_J, 0);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_POWER_LIMIT_W, 700, NULL), ST_OK);
	const struct rates r = rates_of(&m);
	NEAR(r.power_cap[DT_BF16].J_per_flop, 1.5e-12);
	NEAR(r.power_cap[DT_BF16].clock, 0.75);
	CU_ASSERT_EQUAL(r.power_cap[DT_FP32].J_per_flop, 0);
	struct op_cost c = cost(&m, large);
	NEAR(c.matrix_J, 1.5e-12 * op_flop(&large));
	NEAR(c.clocked_s, c.alone_s);
	CU_ASSERT_EQUAL(c.spare_s, 0);
	CU_ASSERT_EQUAL(c.byte_J, 0);
	c = cost(&m, thin); /* memory takes longer, and hides some of a slower clock */
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	NEAR(c.clocked_s + c.spare_s, c.alone_s);
	CU_ASSERT(c.spare_s > 0 && c.clocked_s > 0);
	c = cost(&m, fp32);
	CU_ASSERT_EQUAL(c.matrix_J, 0); /* it follows the clock that others set */
	NEAR(c.clocked_s, c.alone_s);
	c = cost(&m, add); /* 1e-12 s a byte are memory's rate; a curve of ten times that is bound by arithmetic */
	NEAR(c.byte_J, (op_read_B(&add) + op_write_B(&add)) * r.parameters->gpu.byte_energy);
	CU_ASSERT_EQUAL(c.clocked_s, 0);
	const double slow[] = {1e-11, 1e-11};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "add", x, slow, 2, NULL), ST_OK);
	c = cost(&m, add);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	NEAR(c.clocked_s, c.alone_s);
	CU_ASSERT_EQUAL(c.matrix_J, 0);
}

/* What calibration repeats in the L2 cache is faster than a step's op: it takes the largest size's rate, on GPUs alone.
 * A small op's latency stays. */
static void test_cached_curve(void)
{
	mesh(1, 1);
	const double x[] = {1e4, 1e7, 1e9}, y[] = {1e-10, 1e-13, 3e-13};
	const struct op small = {.kind = OP_FILL, .dtype = DT_FP32, .out_dtype = DT_FP32, .vector = {2500}},
			middle = {.kind = OP_FILL, .dtype = DT_FP32, .out_dtype = DT_FP32, .vector = {2500000}};
	struct machine cores = host();
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "fill", x, y, 3, NULL), ST_OK);
	machine_attach_profile(&cores, profile);
	const double call_s = profile_get_value(profile, PROFILE_CALL_S, 0);
	NEAR(cost(&cores, middle).alone_s - call_s, 2500000 * 1e-13);
	struct machine m = gpu();
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 8;
	machine_attach_profile(&m, profile);
	NEAR(cost(&m, middle).alone_s - call_s, 1e7 * 3e-13);
	NEAR(cost(&m, small).alone_s - call_s, 1e4 * 1e-10);
}

/* A GPU's profile: fit or memory, a curve of bytes, the launch, copies; 100 SMs whatever the catalogue says. */
static void test_gpu_profile(void)
{
	mesh(1, 1);
	host(); /* an empty profile */
	struct machine m = gpu();
	m.device.sms = 132;
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 8;
	const double coef[] = {3e-6, 1.5e-15, 1e-13, 0, 0}, x[] = {1e6, 1e9}, y[] = {1e-12, 1e-12};
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn.bf16", coef, 5, 0.04, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "add", x, y, 2, NULL), ST_OK);
	static const struct {
		const char *name;
		double value;
	} values[] = {{"sms", 100}, {"mem_Bps", 1e12}, {"launch_s", 5e-6}, {"call_s", 2e-6}, {"copy.h2d_Bps", 25e9},
		{"peak.fp32", 1}};
	for (size_t i = 0; i < COUNT(values); i++)
		CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, values[i].name, values[i].value, NULL), ST_OK);
	machine_attach_profile(&m, profile);
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_BF16], 1000e12); /* the datasheet's peaks stay */
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_FP32], 50e12);
	CU_ASSERT_EQUAL(m.device.mem_Bps, 2e12);
	CU_ASSERT_EQUAL(m.device.mem_share, 0.5);
	CU_ASSERT_EQUAL(m.intra.Bps, 100e9);

	const struct work_device d = {.gpu = true, .sms = 100, .tiles = TILE_MODEL};
	struct op square = gemm(DT_BF16, 4096, 4096, 4096);
	struct work w;
	work_of(&square, &d, &w);
	struct op_cost c = cost(&m, square);
	NEAR(c.alone_s, 3e-6 + 1.5e-15 * w.term[1] + 1e-13 * w.term[2]);
	CU_ASSERT_EQUAL(c.issue_s, 5e-6);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	CU_ASSERT_EQUAL(c.rel_sigma, 0.04);
	CU_ASSERT_FALSE(c.guessed);
	struct op flat = gemm(DT_BF16, 65536, 65536, 16); /* memory takes longer than the fit */
	c = cost(&m, flat);
	NEAR(c.alone_s, (op_read_B(&flat) + op_write_B(&flat)) / 1e12);
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	CU_ASSERT_EQUAL(cost(&m, gemm(DT_BF16, 16, 16, 16)).bound, BOUND_LATENCY);
	CU_ASSERT(cost(&m, gemm(DT_FP32, 4096, 4096, 4096)).guessed); /* no such entry: the catalogue's roofline */

	struct op add = {.kind = OP_ADD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {4096, 4096}};
	c = cost(&m, add);
	NEAR(c.alone_s, 2e-6 + (op_read_B(&add) + op_write_B(&add)) * 1e-12);
	CU_ASSERT_EQUAL(c.issue_s, 5e-6);
	struct op copy = {.kind = OP_COPY, .lane = LANE_COPY, .copy = {50000000}};
	NEAR(cost(&m, copy).alone_s, 50e6 / 25e9);

	/* A collective that was measured inside a host says nothing of one between hosts. */
	const double bytes[] = {1e6, 1e8}, s[] = {1e-4, 1e-2};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.4", bytes, s, 2, NULL), ST_OK);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 1, 1e8, NULL), 1e-2);
	CU_ASSERT(collective_price(RATES(&m), COLL_ALL_REDUCE, 4, 1, COLLECTIVE_ANY, 4096, NULL).measured);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 8, 400e6, NULL), 6 * (10e-6 + 100e6 / 25e9));
	CU_ASSERT_FALSE(collective_price(RATES(&m), COLL_ALL_REDUCE, 4, 8, COLLECTIVE_ANY, 4096, NULL).measured);
}

UNIT_MAIN("cost", {"grouped products", test_grouped_products}, {"rows on their way to experts", test_routed_rows},
	{"roofline", test_roofline}, {"attention under a mask", test_masked_attention},
	{"attention on Blackwell", test_attention_on_blackwell},
	{"attention of narrow heads", test_attention_of_narrow_heads}, {"counted operators", test_operators},
	{"fused kernels", test_fused_kernels}, {"kernels around adapters", test_adapter_operators},
	{"adapters in fp32", test_wide_adapter}, {"dropout in flash kernels", test_flash_dropout},
	{"composed gelu", test_composed_gelu}, {"unvectorized", test_unvectorized}, {"reductions", test_reductions},
	{"gradient of a table", test_embed_grad}, {"ordered heads", test_ordered_heads},
	{"images by channels", test_memory_format}, {"shapes of products", test_shapes_of_products},
	{"a share of one format", test_share_of_a_format}, {"attention in fp8", test_attention_in_8_bits},
	{"frozen weights in fp8", test_turned_weights},
	{"a format that the device does not support", test_unsupported_format}, {"copies", test_copies},
	{"a profile's fit", test_fit}, {"a profile's curve", test_curve},
	{"an entry that the profile lacks", test_missing_entry}, {"a GPU's profile", test_gpu_profile},
	{"what a GPU's ops draw", test_power}, {"what a cache held", test_cached_curve})
