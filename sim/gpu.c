#include "sim/gpu.h"

#include <math.h>

/* Queries and keys of a tile of flash attention: causal attention computes whole tiles on the diagonal. */
#define ATTENTION_TILE 128.0
/* 16-bit operands whose rows are no multiple of 16 bytes keep cuBLAS from the Tensor Cores (NVIDIA, "Matrix Multiplication Background", DU-09799): a head dimension of 108 instead of 104 made attention's
 * products about 20 times slower (bigscience-workshop/bigscience, 176B experiments). */
#define ALIGNED_DIMS 8
#define UNALIGNED_SLOWER 20.0
/* A flash kernel that nobody measured on this GPU reaches so much of what its large products do: FlashAttention-2 on A100, forward 73 % and backward 63 % of the datasheet (Dao 2023, arXiv:2307.08691,
 * abstract and section 4.1: up to 230 and 196 of 312 TFLOP/s), products 87 %. */
#define FORWARD_OF_GEMM 0.80
#define BACKWARD_OF_GEMM 0.70

static double share_of(const struct device_spec *d, enum dtype t)
{
	return d->narrow_share[t] > 0 ? d->narrow_share[t] : d->gemm_share;
}

/* A tile's result is written, and where it adds to what stands there read before, when its loop over k is over: that traffic is not hidden. */
static double product_s(const struct op *op, const struct device_spec *d)
{
	double groups = op->kind == OP_GROUPED_GEMM ? (double)op->d[3] : 1;
	double result_B = groups * (double)op->d[0] * (double)op->d[1] * dtype_bytes((enum dtype)op->out_dtype) * (op->flags & OP_ACCUMULATE ? 2 : 1);
	return op_flop(op) / (d->matrix_flop_per_s[op->dtype] * share_of(d, (enum dtype)op->dtype)) + result_B / (d->mem_Bps * d->mem_share);
}

static double flash_s(const struct op *op, const struct device_spec *d, const struct stack *s)
{
	bool backward = op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTENTION_PART_GRAD, diagonal = op->flags & OP_CAUSAL && op_sees_itself(op);
	double rate = d->attention_share[s->attention_kernel][backward];
	if (!(rate > 0))
		rate = d->gemm_share * (backward ? BACKWARD_OF_GEMM : FORWARD_OF_GEMM);
	double whole_tiles = diagonal ? 1 + (double)op->d[3] * (ATTENTION_TILE - 1) / 2 / op_pairs(op) : 1;
	return op_flop(op) * fmin(whole_tiles, 2) / (d->matrix_flop_per_s[op->dtype] * rate);
}

/* The stored scores' products run as batched matrix products, on vector units where a head's rows are no whole 16 bytes. */
static double naive_s(const struct op *op, const struct device_spec *d)
{
	double rate = d->matrix_flop_per_s[op->dtype] * d->gemm_share;
	return op_flop(op) / (op->d[4] % ALIGNED_DIMS ? rate / UNALIGNED_SLOWER : rate);
}

static double compute_s(const struct op *op, const struct device_spec *d, const struct stack *s)
{
	if (op_is_flash(op))
		return flash_s(op, d, s);
	switch (op->kind) {
	case OP_GEMM:
	case OP_GROUPED_GEMM: return product_s(op, d);
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

double gpu_op_B(const struct op *op, const struct stack *s)
{
	double counted_B = op_read_B(op) + op_write_B(op);
	bool elementwise = op->kind == OP_ATTN_SOFTMAX || op->kind == OP_ATTN_SOFTMAX_GRAD || (op->kind == OP_CAST && dtype_is_narrow((enum dtype)op->out_dtype)); /* a narrow copy is made along both axes */
	if (elementwise)
		return counted_B * s->elementwise_passes;
	switch (op_class_of(op)) {
	case CLASS_NORM:
	case CLASS_ELEMENTWISE: return counted_B * s->elementwise_passes;
	case CLASS_LOSS: return s->logit_B > 0 ? s->logit_B * loss_share(op) * (double)op->d[0] * (double)op->d[1] : counted_B;
	case CLASS_OPTIMIZER: return s->optimizer_B > 0 ? s->optimizer_B * (double)op->d[0] : counted_B;
	default: return counted_B;
	}
}

double gpu_op_s(const struct op *op, const struct device_spec *d, const struct stack *s, enum bound *bound)
{
	double compute = compute_s(op, d, s), memory = gpu_op_B(op, s) / (d->mem_Bps * d->mem_share);
	*bound = compute > memory ? BOUND_COMPUTE : BOUND_MEMORY;
	return fmax(compute, memory);
}
