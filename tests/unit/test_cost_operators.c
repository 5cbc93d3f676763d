#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

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
	NEAR(cost(&m, softmax).alone_s, 2 * KERNEL_S + (4 + 16 + 4) * score); /* and the scaling */
	softmax.dtype = softmax.out_dtype = DT_FP16;
	softmax.flags = OP_CAUSAL;
	NEAR(cost(&m, softmax).alone_s, 3 * KERNEL_S + (4 + 8 + 4 + 8) * score); /* and the mask */
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
		{{.kind = OP_NORM, .flags = OP_RMS}, OPERATOR_FUSED_NORM, OPERATOR_TORCH_NORM, element,
			FUSE_TORCH_NORM},
		{{.kind = OP_NORM_GRAD, .flags = OP_RMS}, OPERATOR_FUSED_NORM_GRAD, OPERATOR_TORCH_NORM_GRAD, element,
			FUSE_TORCH_NORM},
		{{.kind = OP_QK_NORM_GRAD, .attn = heads}, OPERATOR_FUSED_QK_NORM_GRAD, OPERATOR_TORCH_QK_NORM_GRAD,
			head, FUSE_TORCH_NORM},
		{{.kind = OP_ROPE, .attn = heads}, OPERATOR_ROTARY, OPERATOR_FUSED_ROTARY, head, FUSE_ROTARY},
		{{.kind = OP_ROPE, .flags = OP_INVERSE, .attn = heads}, OPERATOR_ROTARY_GRAD,
			OPERATOR_FUSED_ROTARY_GRAD, head, FUSE_ROTARY},
		{{.kind = OP_ACT, .mlp = MLP_SWIGLU}, OPERATOR_ACTIVATION, OPERATOR_FUSED_GATE, element, FUSE_GATE},
		{{.kind = OP_ACT_GRAD, .mlp = MLP_SWIGLU}, OPERATOR_GATE_GRAD, OPERATOR_FUSED_GATE_GRAD, element,
			FUSE_GATE},
		{{.kind = OP_ACT, .mlp = MLP_GELU}, OPERATOR_ACTIVATION, OPERATOR_ACTIVATION, element, FUSE_GATE},
	};
	const int all = FUSE_NORM | FUSE_ROTARY | FUSE_GATE;
	s->operators.counted = true;
	for (int k = 1; k < OPERATOR_COUNT; k++)
		s->operators.of[k][false] = (struct accesses){k, 0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct op op = cases[i].op;
		const double kernels = op.kind == OP_QK_NORM || op.kind == OP_QK_NORM_GRAD ? 2 : 1;
		op.dtype = op.out_dtype = DT_BF16;
		if (cases[i].element_s == element)
			op.matrix = (struct op_matrix){.rows = 65536, .cols = 4096};
		s->fused_kernels = cases[i].kernel == FUSE_TORCH_NORM ? FUSE_NORM | FUSE_TORCH_NORM
		                                                      : all & ~cases[i].kernel;
		NEAR(cost(&m, op).alone_s, kernels * KERNEL_S + 2 * cases[i].plain * cases[i].element_s);
		s->fused_kernels = cases[i].kernel;
		NEAR(cost(&m, op).alone_s, kernels * KERNEL_S + 2 * cases[i].fused * cases[i].element_s);
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

/* A loss whose kernels pass a logit a clock and SM: 1024 x 32000 logits take 100 SMs of 2 GHz 163.84 us, where 6 B each
 * would take 109 us of 1.8 TB/s; half of that where tensor ranks part it. */
static void test_logit_rate(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op loss = {.kind = OP_LOSS, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {1024, 32000}};
	const double memory_s = 6 * 1024 * 32000.0 / 1.8e12;
	s->logit_B = 6;
	s->logit_rate = 1;
	NEAR(cost(&m, loss).alone_s, KERNEL_S + memory_s); /* the clock is not known */
	m.device.compute_capability = 90;
	m.device.sms = 100;
	m.device.boost_Hz = 2e9;
	NEAR(cost(&m, loss).alone_s, KERNEL_S + 163.84e-6);
	loss.kind = OP_LOSS_GRAD;
	NEAR(cost(&m, loss).alone_s, KERNEL_S + 81.92e-6);
	loss.kind = OP_LOSS;
	s->logit_rate = 2;
	NEAR(cost(&m, loss).alone_s, KERNEL_S + memory_s);
	s->logit_rate = 0;
	NEAR(cost(&m, loss).alone_s, KERNEL_S + memory_s);
	*s = stack_default();
}

/* Around the gate of gpt-oss's experts run more kernels than a gate's own, forward and backward. */
static void test_clamped_gate(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	const double element = 65536 * 4096.0 * 2 / 1.8e12;
	struct op mul = {.kind = OP_GATE_MUL, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 4096}},
		  grad = mul;
	grad.kind = OP_ACT_GRAD;
	mul.mlp = grad.mlp = MLP_SWIGLU;
	s->operators.counted = true;
	s->operators.of[OPERATOR_GATE][false] = (struct accesses){3, 0};
	s->operators.of[OPERATOR_GATE_GRAD][false] = (struct accesses){9, 0};
	s->operators.of[OPERATOR_CLAMPED_GATE][false] = (struct accesses){25, 0};
	s->operators.of[OPERATOR_CLAMPED_GATE_GRAD][false] = (struct accesses){44, 0};
	s->operators.kernels[OPERATOR_CLAMPED_GATE][false] = 9;
	NEAR(cost(&m, mul).alone_s, KERNEL_S + 3 * element);
	s->clamped_gate = true;
	NEAR(cost(&m, mul).alone_s, 10 * KERNEL_S + (3 + 25) * element);
	/* 8 experts have 8,192 rows each, which two biases' gradients add one after the other. */
	program.config.model.experts = 8;
	program.config.model.experts_per_token = 2;
	program.config.parallel.expert = 1;
	NEAR(cost(&m, grad).alone_s, 2 * KERNEL_S + (9 + 44) * element + 2 * 8192 * 1.77e-6);
	/* Of one token two experts have all rows, 4 times their share. */
	program.config.data.distinct_tokens = 1;
	NEAR(cost(&m, grad).alone_s, 2 * KERNEL_S + (9 + 44) * element + 2 * 4 * 8192 * 1.77e-6);
	program.config.data.distinct_tokens = 0;
	program.config.model.experts = program.config.model.experts_per_token = 0;
	*s = stack_default();
}

/* Cubes of what a kernel's instructions and its bytes take add up. */
static double overlapped(double instructions_s, double bytes_s)
{
	return cbrt(instructions_s * instructions_s * instructions_s + bytes_s * bytes_s * bytes_s);
}

/* A kernel that is not vectorized passes so many elements a clock and SM, while its bytes move: a norm that moves 20 B
 * an element, 12 of them so in two passes; a loss of 48 B a logit with a cast of 6; a gradient that autocast makes fp32
 * by a cast of its own. */
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
	NEAR(cost(&m, norm).alone_s, KERNEL_S + elements * (8 / 1.8e12 + overlapped(2 / rate, 12 / 1.8e12)));
	NEAR(cost(&m, loss).alone_s, KERNEL_S + logits * (42 / 1.8e12 + overlapped(1 / rate, 6 / 1.8e12)));
	s->operators.kernels[OPERATOR_RMS_NORM][false] = 8;
	NEAR(cost(&m, norm).alone_s, 8 * KERNEL_S + elements * (8 / 1.8e12 + overlapped(2 / rate, 12 / 1.8e12)));
	m.device.boost_Hz = 2e17; /* memory alone */
	NEAR(cost(&m, norm).alone_s, 8 * KERNEL_S + 20 * elements / 1.8e12);
	m.device.boost_Hz = 2e9;
	m.device.sms = 1000;
	s->autocast = true;
	m.device.compute_capability = 0;
	NEAR(cost(&m, grad).alone_s - direct_s, KERNEL_S + 4 * weights / 1.8e12); /* 8 B of it, in place of 4 */
	grad.flags |= OP_ACCUMULATE;
	s->autocast = false;
	const double summed_s = cost(&m, grad).alone_s;
	s->autocast = true;
	NEAR(cost(&m, grad).alone_s - summed_s, KERNEL_S + 8 * weights / 1.8e12); /* 20 in place of 12 */
	*s = stack_default();
}

/* An operator's kernels start one after the other. Queries and keys have a norm each. A sum with the residual stream
 * has kernels of its own; what nobody counted is one. */
static void test_kernels(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op grad = {.kind = OP_NORM_GRAD,
			  .flags = OP_RMS,
			  .dtype = DT_BF16,
			  .out_dtype = DT_BF16,
			  .matrix = {64, 8}},
		  heads = {.kind = OP_QK_NORM, .dtype = DT_BF16, .out_dtype = DT_BF16, .attn = {1, 3, 1, 64, 8}};
	s->operators.counted = true;
	const double one_s = cost(&m, grad).alone_s, both_s = cost(&m, heads).alone_s - 2 * KERNEL_S;
	s->operators.kernels[OPERATOR_RMS_NORM][false] = 8;
	s->operators.kernels[OPERATOR_RMS_NORM_GRAD][false] = 16;
	s->operators.kernels[OPERATOR_RMS_NORM_GRAD][true] = 18;
	s->operators.kernels[OPERATOR_RESIDUAL][true] = 1.5;
	NEAR(cost(&m, grad).alone_s - one_s, 15 * KERNEL_S);
	NEAR(cost(&m, heads).alone_s - both_s, 2 * 8 * KERNEL_S);
	grad.flags |= OP_DX_ACCUMULATE;
	NEAR(cost(&m, grad).alone_s - one_s, (15 + 1) * KERNEL_S);
	s->autocast = true;
	NEAR(cost(&m, grad).alone_s - one_s, (17 + 1.5) * KERNEL_S);
	s->composed_gelu = true;
	struct op gelu = {.kind = OP_ACT, .mlp = MLP_GELU, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {64, 8}};
	const double gelu_s = cost(&m, gelu).alone_s;
	s->operators.kernels[OPERATOR_COMPOSED_GELU][true] = 10;
	NEAR(cost(&m, gelu).alone_s - gelu_s, 9 * KERNEL_S);
	*s = stack_default();
}

/* Kernels that sum move so many bytes a clock and SM, or as many as the memory. A layer norm's weights take a time by
 * their rows where it is narrow, an RMS norm's do not. A bias's gradient takes one beside its bytes. */
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
	m.device.boost_Hz = 1e9;
	struct op bias = {.kind = OP_BIAS_GRAD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 64}};
	s->operators.of[OPERATOR_BIAS_GRAD][false] = s->operators.reduced[OPERATOR_BIAS_GRAD][false] =
		(struct accesses){1, 0};
	NEAR(m.parameters->gpu.added_rows, 0.4);
	NEAR(cost(&m, bias).alone_s, KERNEL_S + 2 * elements / 1.8e12 + 65536 / 0.4e9);
	*s = stack_default();
}

/* torchao's kernels make so many elements NVFP4 a clock and SM, fewer of a gradient, or as many as memory moves. Other
 * stacks and formats take their bytes' time: 2 B an element are read, and twice half a byte with its scales written. */
static void test_triton_fp4(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct stack *s = &program.config.stack;
	struct op input = {.kind = OP_CAST, .dtype = DT_BF16, .out_dtype = DT_NVFP4, .vector = {.elements = 1 << 28}},
		  grad = input, again = input, fp8 = input;
	grad.phase = again.phase = PHASE_BACKWARD;
	again.flags |= OP_RECOMPUTED;
	fp8.out_dtype = DT_MXFP8;
	m.device.compute_capability = 100;
	m.device.sms = 100;
	m.device.boost_Hz = 2e9;
	const double bytes_s = cost(&m, input).alone_s, fp8_s = cost(&m, fp8).alone_s;
	NEAR(cost(&m, grad).alone_s, bytes_s);
	s->triton_fp4 = true;
	NEAR(cost(&m, input).alone_s, KERNEL_S + (1 << 28) / (100 * 2e9 * m.parameters->gpu.fp4_cast));
	NEAR(cost(&m, again).alone_s, KERNEL_S + (1 << 28) / (100 * 2e9 * m.parameters->gpu.fp4_cast));
	NEAR(cost(&m, grad).alone_s, KERNEL_S + (1 << 28) / (100 * 2e9 * m.parameters->gpu.fp4_grad_cast));
	NEAR(cost(&m, fp8).alone_s, fp8_s);
	m.device.sms = 10000;
	NEAR(cost(&m, grad).alone_s, bytes_s);
	m.device.compute_capability = 0;
	NEAR(cost(&m, input).alone_s, bytes_s);
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

/* An op of eager PyTorch takes the host thread 50 us with its first kernel, and 20 us for each further one. Q, K and V
 * are three modules, each 50 us; under autocast each casts its weight, and behind a layer norm its rows, too. */
static void test_host_kernels(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct config *c = &program.config;
	struct stack *s = &c->stack;
	struct op norm = {.kind = OP_NORM, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {64, 64}}, bias = norm,
		  cast = {.kind = OP_CAST, .dtype = DT_FP32, .out_dtype = DT_BF16, .vector = {64}},
		  qkv = gemm(DT_BF16, 64, 192, 64);
	const bool fused = c->train.fused;
	bias.kind = OP_BIAS_GRAD;
	qkv.linears = 3;
	c->train.fused = false;
	s->op_s = 50e-6;
	s->kernel_s = 20e-6;
	NEAR(cost(&m, norm).issue_s, 50e-6); /* nobody counted its kernels */
	NEAR(cost(&m, qkv).issue_s, 50e-6);
	s->operators.counted = true;
	s->operators.kernels[OPERATOR_LAYER_NORM][false] = 2;
	s->operators.kernels[OPERATOR_LAYER_NORM][true] = 3.5;
	NEAR(cost(&m, norm).issue_s, 50e-6 + 20e-6);
	NEAR(cost(&m, bias).issue_s, 50e-6);
	NEAR(cost(&m, cast).issue_s, 20e-6);
	for (int rms = 0; rms < 2; rms++) {
		c->model.norm = rms ? NORM_RMSNORM : NORM_LAYERNORM;
		qkv.out_dtype = DT_BF16;
		qkv.flags = OP_TRANS_B;
		s->autocast = false;
		NEAR(cost(&m, qkv).issue_s, 3 * 50e-6);
		s->autocast = true;
		NEAR(cost(&m, qkv).issue_s, 3 * 50e-6 + (rms ? 2 : 4) * 20e-6);
		qkv.flags = 0; /* the gradients of rows, each with a cast and a sum */
		NEAR(cost(&m, qkv).issue_s, 3 * 50e-6 + (rms ? 0 : 4) * 20e-6);
		qkv.flags = OP_TRANS_A; /* three casts of the weights' gradients */
		qkv.out_dtype = DT_FP32;
		NEAR(cost(&m, qkv).issue_s, 3 * 50e-6 + 3 * 20e-6);
	}
	NEAR(cost(&m, norm).issue_s, 50e-6 + 2.5 * 20e-6);
	NEAR(cost(&m, bias).issue_s, 50e-6 + 20e-6);
	s->kernel_s = 0; /* casts are ops, and modules are called by themselves, in other stacks of the family, too */
	NEAR(cost(&m, cast).issue_s, 50e-6);
	NEAR(cost(&m, qkv).issue_s, 3 * 50e-6);
	s->kernel_s = 20e-6;
	c->train.fused = true;
	NEAR(cost(&m, qkv).issue_s, 50e-6);
	c->train.cuda_graph = true;
	CU_ASSERT_EQUAL(cost(&m, cast).issue_s, 0);
	CU_ASSERT_EQUAL(cost(&m, qkv).issue_s, 0);
	c->train.cuda_graph = false;
	c->train.fused = fused;
	c->model.norm = NORM_LAYERNORM;
	*s = stack_default();
}

UNIT_MAIN("cost of operators", {"counted operators", test_operators}, {"fused kernels", test_fused_kernels},
	{"kernels around adapters", test_adapter_operators}, {"adapters in fp32", test_wide_adapter},
	{"composed gelu", test_composed_gelu}, {"rate of logits", test_logit_rate}, {"clamped gate", test_clamped_gate},
	{"unvectorized", test_unvectorized}, {"kernels", test_kernels}, {"NVFP4", test_triton_fp4},
	{"reductions", test_reductions}, {"gradient of a table", test_embed_grad},
	{"host's time of kernels", test_host_kernels}, {"images by channels", test_memory_format},
	{"frozen weights in fp8", test_turned_weights})
