#include "sim/price/gpu.h"

#include <math.h>

#include "sim/price/gpu_parts.h"

/* Returns the share of the loss's traffic that an op has: all of it, or that of its passes over the logits where tensor
 * parallelism parts it into three. */
static double loss_share(const struct op *op)
{
	return op->kind == OP_LOSS ? 1 : op->kind == OP_LOSS_GRAD ? 0.5 : 0.25;
}

/* Returns how much longer than their bytes the kernels of an op take that PyTorch does not vectorize. Their
 * instructions and their traffic overlap in part: where both take as long, a kernel takes longer than either. */
static double unvectorized_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	struct slow_kernels k = operators_unvectorized(op, s);
	if (gpu_casts_gradient(op, s)) {
		const double elements = gpu_result_elements(op);
		k.elements += elements;
		k.bytes += elements * (dtype_bytes((enum dtype)op->dtype) + dtype_bytes((enum dtype)op->out_dtype));
	}
	if (op_class_of(op) == CLASS_LOSS) {
		k.elements *= loss_share(op);
		k.bytes *= loss_share(op);
	}
	if (!(r->unvectorized_per_s > 0))
		return 0;
	const double both = r->parameters->gpu.unvectorized_overlap, moves_s = k.bytes / r->memory_Bps;
	return pow(pow(k.elements / r->unvectorized_per_s, both) + pow(moves_s, both), 1 / both) - moves_s;
}

/* Returns how much longer than its bytes a copy in NVFP4 takes by torchao's kernels. They look for the largest values
 * first, and draw a random number for each value of a gradient. */
static double fp4_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	if (!s->triton_fp4 || op->kind != OP_CAST || op->out_dtype != DT_NVFP4 || !(r->fp4_per_s[0] > 0))
		return 0;
	const bool gradient = op->phase == PHASE_BACKWARD && !(op->flags & OP_RECOMPUTED);
	return fmax(0, (double)op->vector.elements / r->fp4_per_s[gradient] - gpu_op_B(op, s) / r->memory_Bps);
}

/* Returns how much longer than their bytes those kernels of an op take that sum rows or columns: too few of their loads
 * are under way to fill a fast memory. A bias's gradient takes a time by its rows, which a thread adds one after
 * another (aten/src/ATen/native/cuda/Reduce.cuh). For a norm's weights PyTorch gives a block of threads all rows of 32
 * columns, so narrow norms keep few SMs busy and their rows decide (aten/src/ATen/native/cuda/layer_norm_kernel.cu). */
static double reduced_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const double bytes = operators_reduced_B(op, s);
	if (!(bytes > 0) || !(r->reduced_Bps > 0))
		return 0;
	if (op->kind == OP_BIAS_GRAD)
		return (double)op->matrix.rows / r->added_rows_per_s;
	const bool by_columns = op->kind == OP_NORM_GRAD &&
	                        (!(op->flags & OP_RMS) || s->fused_kernels & FUSE_TORCH_NORM);
	const double rows_s = by_columns ? (double)op->matrix.rows / r->summed_rows_per_s : 0;
	return fmax(0, fmax(bytes / r->reduced_Bps, rows_s) - bytes / r->memory_Bps);
}

/* Returns the time of the products with masks that take rows to their experts' slots, or of the atomic additions that
 * add slots up. A result's gradient goes to the slots and to the mask, which has the gates: two products. */
static double routing_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const double elements = (double)op->dispatch.slots * (double)op->dispatch.cols;
	if (s->mask_rows > 0)
		return (op->kind == OP_COMBINE_GRAD ? 2 : 1) * 2 * elements * s->mask_rows /
		       r->product_flop_per_s[op->dtype];
	return op->kind == OP_COMBINE && s->atomic_sums && dtype_bytes((enum dtype)op->dtype) == 2
	               ? elements * r->parameters->gpu.atomic_add_flop / r->vector_flop_per_s
	               : 0;
}

static bool permutes(const struct op *op)
{
	return op->kind == OP_DISPATCH || op->kind == OP_COMBINE || op->kind == OP_COMBINE_GRAD;
}

/* Returns the bytes of kernels that add experts' biases behind their activation, and clamp before it. What runs again
 * is the activation alone, with its clamps. */
static double biases_B(const struct op *op, const struct rates *r, const struct stack *s)
{
	const bool grad = op->kind == OP_WEIGHTED_ACT_GRAD, again = op->flags & OP_RECOMPUTED;
	if (!(s->biased_cols > 0) || (op->kind != OP_WEIGHTED_ACT && !grad))
		return 0;
	const struct parameters *x = r->parameters;
	const double rows = (double)op->matrix.rows, biased = again ? 0 : rows * s->biased_cols,
		     clamped = 2 * rows * (double)op->matrix.cols;
	return grad ? biased * x->gpu.expert_bias_grad_B + clamped * x->gpu.expert_clamp_grad_B
	            : biased * x->gpu.expert_bias_B + clamped * x->gpu.expert_clamp_B;
}

/* Returns how much longer a launch of the optimizer's kernel takes because its blocks of threads leave SMs unequally
 * busy: PyTorch launches 320 (aten/src/ATen/native/cuda/MultiTensorApply.cuh, depth_to_max_blocks), which are three for
 * some of 132 SMs and two for others. One launch of all blocks takes 0.79 of the time on an H100 (pytorch/pytorch pull
 * request 119842). */
static double unequal_blocks(const struct op *op, const struct rates *r, const struct stack *s)
{
	const bool known = op->kind == OP_OPTIMIZER && op->flags & OP_FUSED && r->compute_capability > 0;
	const double each = known ? s->optimizer_blocks / (double)r->device.sms : 0;
	return each > 0 ? ceil(each) / each : 1;
}

/* Returns what the stack says that an update of Adam in fp32 moves for each parameter; 0: what the op has. */
static double update_each_B(const struct op *op, const struct stack *s)
{
	if (op->kind != OP_OPTIMIZER)
		return 0;
	return op->flags & OP_FUSED && s->optimizer_fused_B > 0 ? s->optimizer_fused_B : s->optimizer_B;
}

/* Weights, their gradients and both moments alike have 16 bits. */
static bool is_narrow_update(const struct op *op, const struct stack *s)
{
	return update_each_B(op, s) > 0 && op->update.halved && !(op->flags & (OP_MASTER | OP_STATES_8)) &&
	       dtype_bytes((enum dtype)op->dtype) == 2 && dtype_bytes((enum dtype)op->out_dtype) == 2;
}

/* Rows that are looked up one by one stream more slowly. A swap moves whole blocks of rows, so it does not. */
static double memory_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const struct parameters *x = r->parameters;
	const double streams_Bps = r->memory_Bps * (permutes(op) ? x->gpu.permuted_share : 1) *
	                           (is_narrow_update(op, s) ? x->gpu.narrow_update : 1);
	return (gpu_op_B(op, s) + biases_B(op, r, s)) / streams_Bps * unequal_blocks(op, r, s);
}

/* Returns what the instructions of the loss's kernels take, forward and backward; 0: nobody counted them. */
static double loss_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const double logits_per_s = r->sm_clocks_per_s * s->logit_rate;
	return logits_per_s > 0 ? loss_share(op) * (double)op->matrix.rows * (double)op->matrix.cols / logits_per_s : 0;
}

static double compute_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	if (op_is_flash(op))
		return gpu_flash_s(op, r, s);
	if (op_is_product(op) || op_is_conv(op))
		return gpu_product_s(op, r, s);
	if (op_is_naive_product(op))
		return gpu_naive_s(op, r);
	if (permutes(op))
		return fmax(routing_s(op, r, s), op_flop(op) / r->vector_flop_per_s);
	if (op_class_of(op) == CLASS_LOSS)
		return fmax(loss_s(op, r, s), op_flop(op) / r->vector_flop_per_s);
	if (op_class_of(op) == CLASS_SCAN) /* batched products of small matrices */
		return op_flop(op) / r->batched_flop_per_s[op->dtype];
	return op_flop(op) / r->vector_flop_per_s;
}

/* Returns the bytes that narrow moments take off the traffic that stacks' numbers count. */
static double saved_B(const struct op *op)
{
	struct op wide = *op;
	wide.flags = wide.flags & (uint32_t)~OP_STATES_8;
	wide.update.halved = 0;
	return op_read_B(&wide) + op_write_B(&wide) - op_read_B(op) - op_write_B(op);
}

/* Returns the traffic of softmax over stored scores. Autocast runs it in fp32 (PyTorch, aten/src/ATen/autocast_mode.h:
 * AT_FORALL_FP32_SET_OPT_DTYPE), between casts of what it reads and writes from and to the products' format. Without
 * its fused kernel Megatron casts to fp32, scales, takes the softmax and casts back, a kernel each, and so in the
 * backward pass (apex/transformer/functional/fused_softmax.py, forward_torch_softmax). */
static double softmax_B(const struct op *op, double counted_B, const struct stack *s)
{
	const double wider = dtype_bytes(DT_FP32) / dtype_bytes((enum dtype)op->dtype);
	if (s->softmax_apart)
		return wider * counted_B + 2 * (1 + 2 * wider) * op_write_B(op);
	return s->autocast ? counted_B * (wider * s->elementwise_passes + 1 + wider)
	                   : counted_B * s->elementwise_passes;
}

/* Returns the traffic of an update. The stack's numbers are of one pass over Adam's state, all in fp32. */
static double update_B(const struct op *op, double counted_B, const struct stack *s)
{
	const double all_B = update_each_B(op, s) * (double)op->update.elements;
	if (!(all_B > 0))
		return counted_B;
	return is_narrow_update(op, s) ? all_B / 2 : all_B - saved_B(op);
}

/* Returns the bytes that what runs inside an experts' product adds to those of the product. An activation reads on the
 * chip what the product writes. Its gradient reads the activation's input there, and what the product leaves stays on
 * the chip: it is neither written, which the product counts, nor read. Casts write, along both axes. */
static double in_product_B(const struct op *op)
{
	if (op->kind == OP_CAST)
		return 2 * op_write_B(op);
	if (op->kind != OP_ACT_GRAD && op->kind != OP_WEIGHTED_ACT_GRAD)
		return 0;
	const double gradient = (double)op->matrix.rows * (double)op->matrix.cols * dtype_bytes((enum dtype)op->dtype);
	return fmax(0, op_read_B(op) - 2 * gradient);
}

double gpu_op_B(const struct op *op, const struct stack *s)
{
	if (op->flags & OP_IN_PRODUCT)
		return in_product_B(op);
	const bool scaled = op->kind == OP_CAST && op->out_dtype == DT_FP8;
	const struct fp8_traffic *fp8 = stack_fp8(s);
	double counted_B = scaled ? fp8->reads * op_read_B(op) + fp8->writes * op_write_B(op)
	                          : op_read_B(op) + op_write_B(op);
	const double by_kernel_B = operators_B(op, s);
	if (by_kernel_B >= 0)
		return by_kernel_B + (op->kind == OP_EMBED_GRAD ? gpu_added_apart_B(op, s) : 0);
	if (op->kind == OP_ATTN_SOFTMAX || op->kind == OP_ATTN_SOFTMAX_GRAD)
		return softmax_B(op, counted_B, s);
	if (op->kind == OP_CAST && dtype_is_narrow((enum dtype)op->out_dtype)) /* made along both axes */
		return counted_B * (scaled && !fp8->passes ? 1 : s->elementwise_passes);
	switch (op_class_of(op)) {
	case CLASS_NORM:
	case CLASS_ELEMENTWISE: return counted_B * (op->images ? 1 : s->elementwise_passes);
	case CLASS_LOSS:
		return s->logit_B > 0 ? s->logit_B * loss_share(op) * (double)op->matrix.rows * (double)op->matrix.cols
		                      : counted_B;
	case CLASS_OPTIMIZER: return update_B(op, counted_B, s);
	case CLASS_EMBEDDING: return counted_B + gpu_added_apart_B(op, s);
	case CLASS_CONVOLUTION: return counted_B + gpu_transposed_B(op, s);
	default: return counted_B;
	}
}

double gpu_loop_kernels(const struct op *op)
{
	return op->kind == OP_OPTIMIZER ? (double)op->update.tensors * optimizer_traits[op->optimizer].loop_kernels : 0;
}

double gpu_each_tensor(const struct op *op, const struct stack *s)
{
	return s->gradient_kernels * (double)op_gradients(op) + s->buffer_kernels * (double)op_buffers(op) +
	       gpu_loop_kernels(op);
}

/* Returns the time of the kernels that carry an op's gradients through a bucket, and what those of single tensors take
 * to start and drain. */
static double copies_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const double passes = op->kind == OP_GROUPED_GEMM ? s->expert_passes : s->gradient_passes;
	return passes * 2 * op_gradient_elements(op) * dtype_bytes((enum dtype)op->out_dtype) / r->memory_Bps +
	       gpu_each_tensor(op, s) * r->parameters->gpu.kernel_s;
}

/* Returns the time of the kernels that put heads in order before and after a naive product. */
static double heads_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	return op_is_naive_product(op) ? operators_heads_B(op, s) / r->memory_Bps : 0;
}

double gpu_op_kernels(const struct op *op, const struct stack *s)
{
	return operators_kernels(op, s) + (gpu_casts_gradient(op, s) ? 1 : 0);
}

double gpu_op_s(const struct op *op, const struct rates *r, const struct stack *s, enum bound *bound)
{
	if (op->flags & OP_IN_PRODUCT) { /* no kernel, and the product's loop hides its arithmetic */
		*bound = BOUND_MEMORY;
		return gpu_op_B(op, s) / r->memory_Bps;
	}
	double compute = compute_s(op, r, s), memory = memory_s(op, r, s);
	const double work = fmax(compute, memory), kernel_s = gpu_op_kernels(op, s) * r->parameters->gpu.kernel_s;
	*bound = kernel_s > work ? BOUND_LATENCY : compute > memory ? BOUND_COMPUTE : BOUND_MEMORY;
	const double modules = fmax(1, op->modules);
	return modules * (kernel_s + work) + copies_s(op, r, s) + heads_s(op, r, s) +
	       operators_adapter_B(op, s) / r->memory_Bps + unvectorized_s(op, r, s) + reduced_s(op, r, s) +
	       fp4_s(op, r, s);
}
