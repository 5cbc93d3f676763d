#include "sim/gpu.h"

#include <math.h>

/* Queries and keys of a tile of flash attention: causal attention computes whole tiles on the diagonal. */
#define ATTENTION_TILE 128.0
/* 16-bit operands whose rows are no multiple of 16 bytes keep cuBLAS from the Tensor Cores (NVIDIA, "Matrix Multiplication Background", DU-09799): a head dimension of 108 instead of 104 made attention's
 * products about 20 times slower (bigscience-workshop/bigscience, 176B experiments). */
#define ALIGNED_B 16.0
#define UNALIGNED_HEAD_SLOWER 20.0
/* As products of whole matrices cuBLAS runs them on the Tensor Cores since version 11, by loads of less than 16 bytes (the same document): GPT-2's vocabulary of 50,257 made 50,304 shortens the step of
 * the 124M model by about a quarter (A. Karpathy, nanoGPT, February 2023), of which the head's products are 0.31 of the FLOP. */
#define UNALIGNED_SLOWER 2.0
/* cuBLAS cuts a result into tiles (DU-09799, "Tile Quantization"): its smallest side, and the whole tile that one SM at its full rate works on. */
#define TILE_STEP 64
#define TILE 128.0
/* Where tiles are fewer than SMs, k is split among them (Osama et al. 2023, "Stream-K", arXiv:2301.03598), down to so few steps that an SM's pipeline is hardly filled. */
#define SPLIT_K 256.0
/* A flash kernel that nobody measured on this GPU reaches so much of what its large products do: FlashAttention-2 on A100, forward 73 % and backward 63 % of the datasheet (Dao 2023, arXiv:2307.08691,
 * abstract and section 4.1: up to 230 and 196 of 312 TFLOP/s), products 87 %. */
#define FORWARD_OF_GEMM 0.80
#define BACKWARD_OF_GEMM 0.70

/* What any kernel takes, launched early or from a graph: half a microsecond to the next one (A. Gray, "Getting Started with CUDA Graphs", NVIDIA developer blog 2019: kernels of 2.9 us, 3.4 us apart in a graph), and
 * to start, reach memory once there and back, and drain, some three memory latencies of 0.3 us (Luo et al. 2024, arXiv:2402.13499, table of latencies). */
#define KERNEL_S 1.5e-6

static double share_of(const struct device_spec *d, enum dtype t)
{
	return d->narrow_share[t] > 0 ? d->narrow_share[t] : d->gemm_share;
}

static bool unaligned(int64_t columns, enum dtype t)
{
	return t != DT_FP32 && fmod((double)columns * dtype_bytes(t), ALIGNED_B) > 0;
}

static bool unaligned_product(const struct op *op)
{
	enum dtype in = (enum dtype)op->dtype;
	return unaligned(op->flags & OP_TRANS_A ? op->d[0] : op->d[2], in) || unaligned(op->flags & OP_TRANS_B ? op->d[2] : op->d[1], in) || unaligned(op->d[1], in);
}

static double whole_tiles(int64_t rows)
{
	return (double)((rows + TILE_STEP - 1) / TILE_STEP * TILE_STEP);
}

static double groups_of(const struct op *op)
{
	return op->kind == OP_GROUPED_GEMM ? (double)op->d[3] : 1;
}

/* FLOP of whole tiles, over the rate of the SMs that have one: a group's products run beside each other. */
static double multiply_s(const struct op *op, const struct device_spec *d)
{
	double result = groups_of(op) * whole_tiles(op->d[0]) * whole_tiles(op->d[1]), parts = fmax(1, result / (TILE * TILE)) * fmax(1, (double)op->d[2] / SPLIT_K);
	double rate = d->matrix_flop_per_s[op->dtype] * share_of(d, (enum dtype)op->dtype) * fmin(1, parts / fmax(1, (double)d->sms));
	return 2 * result * (double)op->d[2] / (unaligned_product(op) ? rate / UNALIGNED_SLOWER : rate);
}

/* Elements of a weight's gradient that its product leaves in the operands' format, for a kernel of its own to add to the wider sums; 0: the product adds them itself. */
static double added_apart(const struct op *op, const struct stack *s)
{
	if (!s->adds_gradients || dtype_bytes((enum dtype)op->out_dtype) <= dtype_bytes((enum dtype)op->dtype))
		return 0;
	switch (op->kind) {
	case OP_GEMM: return op->flags & OP_TRANS_A ? (double)op->d[0] * (double)op->d[1] : 0;
	case OP_GROUPED_GEMM: return op->flags & OP_TRANS_A ? (double)op->d[0] * (double)op->d[1] * (double)op->d[3] : 0;
	case OP_EMBED_GRAD: return (double)op->d[1] * (double)op->d[2];
	default: return 0;
	}
}

/* The gradient is written, and read with the sum, which is written: on the first micro-batch too, to sums that are zero. */
static double added_apart_B(const struct op *op, const struct stack *s)
{
	return added_apart(op, s) * 2 * (dtype_bytes((enum dtype)op->dtype) + dtype_bytes((enum dtype)op->out_dtype));
}

/* A tile's result is written, and where it adds to what stands there read before, when its loop over k is over: that traffic is not hidden. */
static double product_s(const struct op *op, const struct device_spec *d, const struct stack *s)
{
	double result_B = groups_of(op) * (double)op->d[0] * (double)op->d[1] * dtype_bytes((enum dtype)op->out_dtype) * (op->flags & OP_ACCUMULATE ? 2 : 1);
	if (added_apart(op, s) > 0)
		result_B = added_apart_B(op, s);
	return multiply_s(op, d) + result_B / (d->mem_Bps * d->mem_share);
}

static double flash_s(const struct op *op, const struct device_spec *d, const struct stack *s)
{
	bool backward = op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTENTION_PART_GRAD;
	double rate = d->attention_share[s->attention_kernel][backward];
	if (!(rate > 0))
		rate = d->gemm_share * (backward ? BACKWARD_OF_GEMM : FORWARD_OF_GEMM);
	double diagonal_tiles = 1 + op_masked_ends(op) * (ATTENTION_TILE - 1) / 2 / op_pairs(op);
	return op_flop(op) * fmin(diagonal_tiles, 2) / (d->matrix_flop_per_s[op->dtype] * rate);
}

/* The stored scores' products run as batched matrix products, on vector units where a head's rows are no whole 16 bytes. */
static double naive_s(const struct op *op, const struct device_spec *d)
{
	double rate = d->matrix_flop_per_s[op->dtype] * d->gemm_share;
	return op_flop(op) / (unaligned(op->d[4], (enum dtype)op->dtype) ? rate / UNALIGNED_HEAD_SLOWER : rate);
}

static double compute_s(const struct op *op, const struct device_spec *d, const struct stack *s)
{
	if (op_is_flash(op))
		return flash_s(op, d, s);
	switch (op->kind) {
	case OP_GEMM:
	case OP_GROUPED_GEMM: return product_s(op, d, s);
	case OP_ATTN_SCORES:
	case OP_ATTN_VALUES:
	case OP_ATTN_VALUES_GRAD:
	case OP_ATTN_SCORES_GRAD: return naive_s(op, d);
	default: return op_flop(op) / d->vector_flop_per_s;
	}
}

/* What part of the loss's traffic an op has: all of it, or that of its passes over the logits where tensor parallelism parts it into three. */
static double loss_share(const struct op *op)
{
	switch (op->kind) {
	case OP_LOSS_MAX:
	case OP_LOSS_SUM: return 0.25;
	case OP_LOSS_GRAD: return 0.5;
	default: return 1;
	}
}

/* What moments of 8 bits take off the traffic that stacks' numbers count. */
static double saved_B(const struct op *op)
{
	struct op wide = *op;
	wide.flags = (uint16_t)(wide.flags & ~OP_STATES_8);
	return op_read_B(&wide) + op_write_B(&wide) - op_read_B(op) - op_write_B(op);
}

double gpu_op_B(const struct op *op, const struct stack *s)
{
	double counted_B = op_read_B(op) + op_write_B(op);
	if (s->dynamic_scales && op->kind == OP_CAST && op->out_dtype == DT_FP8)
		counted_B *= 2; /* read for the largest and for the copy, which is written along either axis */
	bool elementwise = op->kind == OP_ATTN_SOFTMAX || op->kind == OP_ATTN_SOFTMAX_GRAD || (op->kind == OP_CAST && dtype_is_narrow((enum dtype)op->out_dtype)); /* a narrow copy is made along both axes */
	if (elementwise)
		return counted_B * s->elementwise_passes;
	switch (op_class_of(op)) {
	case CLASS_NORM:
	case CLASS_ELEMENTWISE: return counted_B * s->elementwise_passes;
	case CLASS_LOSS: return s->logit_B > 0 ? s->logit_B * loss_share(op) * (double)op->d[0] * (double)op->d[1] : counted_B;
	case CLASS_OPTIMIZER: return s->optimizer_B > 0 ? s->optimizer_B * (double)op->d[0] - saved_B(op) : counted_B;
	case CLASS_EMBEDDING: return counted_B + added_apart_B(op, s);
	default: return counted_B;
	}
}

double gpu_op_s(const struct op *op, const struct device_spec *d, const struct stack *s, enum bound *bound)
{
	double compute = compute_s(op, d, s), memory = gpu_op_B(op, s) / (d->mem_Bps * d->mem_share);
	double work = fmax(compute, memory);
	*bound = KERNEL_S > work ? BOUND_LATENCY : compute > memory ? BOUND_COMPUTE : BOUND_MEMORY;
	return KERNEL_S + work;
}
