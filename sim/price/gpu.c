#include "sim/price/gpu.h"

#include <math.h>

/* Returns whether rows of so many columns of 16-bit operands are no whole multiples of so many bytes. */
static bool breaks(int64_t columns, enum dtype t, double bytes)
{
	return t != DT_FP32 && fmod((double)columns * dtype_bytes(t), bytes) > 0;
}

/* Returns whether they keep products from their full rate. */
static bool unaligned(const struct rates *r, int64_t columns, enum dtype t)
{
	return breaks(columns, t, r->parameters->gpu.aligned_B);
}

static bool product_breaks(const struct op *op, double bytes)
{
	enum dtype in = (enum dtype)op->dtype;
	return breaks(op->flags & OP_TRANS_A ? op->gemm.m : op->gemm.k, in, bytes) ||
	       breaks(op->flags & OP_TRANS_B ? op->gemm.k : op->gemm.n, in, bytes) || breaks(op->gemm.n, in, bytes);
}

/* Returns the factor on a product's time for rows that are not aligned. Rows of images are their channels, which cuDNN
 * pads. */
static double unaligned_slower(const struct op *op, const struct rates *r)
{
	if (op_is_conv(op) || !product_breaks(op, r->parameters->gpu.aligned_B))
		return 1;
	return r->unaligned_slower[op->dtype][product_breaks(op, r->parameters->gpu.half_aligned_B)];
}

static double groups_of(const struct op *op) { return op->kind == OP_GROUPED_GEMM ? (double)op->gemm.groups : 1; }

/* Returns the elements of a product's result. */
static double result_elements(const struct op *op) { return groups_of(op) * (double)op->gemm.m * (double)op->gemm.n; }

/* Returns by how much Winograd's algorithm cuts a convolution's time on the units that multiply. It runs on vector
 * units, in fp32. Matrix units that are faster in fp32 (AMD's CDNA2) gain by so much less, and convolve directly where
 * that takes no longer. */
static double winograd_faster(const struct op *op, const struct rates *r)
{
	const bool fits = op_is_conv(op) && op->dtype == DT_FP32 && !op->conv.flat && op->conv.stride == 1 &&
	                  (double)op->conv.kernel == r->parameters->gpu.winograd_kernel;
	const double vector = fmin(1, r->vector_flop_per_s / r->matrix_flop_per_s[DT_FP32]);
	return fits ? fmax(1, r->parameters->gpu.winograd_fewer * vector) : 1;
}

/* Returns the share of a product's usual rate that a kernel of PyTorch's own reaches for a group of products. On
 * Blackwell it is an example of CUTLASS's with one tile for all shapes (aten/src/ATen/native/cuda/GroupMM.cu). */
static double grouped_share(const struct op *op, const struct rates *r, const struct stack *s)
{
	const bool its = s->torch_grouped && op->kind == OP_GROUPED_GEMM && dtype_bytes((enum dtype)op->dtype) == 2;
	const bool blackwell = r->compute_capability >= 100 && r->compute_capability < 120;
	return its && blackwell ? r->parameters->gpu.grouped_blackwell : 1;
}

/* Returns the columns of a systolic array that multiply zeros where `width` columns are summed up. */
static double idle_columns(int64_t width, int64_t array)
{
	return (double)((width + array - 1) / array * array - width);
}

/* Returns by how much more than their rows and columns the products of experts multiply on a TPU. Experts' rows stand
 * one behind the other, and a tile with rows of two experts is computed once for each
 * (jax/experimental/pallas/ops/tpu/megablox/gmm.py, make_group_metadata: "we'll need to visit it multiple times"). An
 * expert of n rows that begins anywhere has a part in (n - 1) / tile + 1 tiles. Each of a chip's devices multiplies its
 * own rows. The matrices' sides are whole arrays: tiles of them are multiples of one, and computed whole. */
static double expert_tiles(const struct op *op, const struct rates *r, const struct stack *s)
{
	if (op->kind != OP_GROUPED_GEMM || r->matrix_array == 0 || !(s->expert_tile > 0))
		return 1;
	const bool of_weights = op->flags & OP_TRANS_A;
	const int64_t in = of_weights ? op->gemm.m : op->gemm.k, out = op->gemm.n;
	const double rows = (double)(of_weights ? op->gemm.k : op->gemm.m) / r->chip_devices,
		     shared = (fmax(0, rows - 1) + s->expert_tile) / fmax(1, rows);
	return shared * (1 + idle_columns(in, r->matrix_array) / (double)in) *
	       (1 + idle_columns(out, r->matrix_array) / (double)out);
}

/* Returns the FLOP of whole tiles over the rate of the SMs that have one. A group's products run at the same time. */
static double multiply_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const struct op_gemm d = op_as_gemm(op);
	const struct tiles t = tiles_of(&r->device.tiles, groups_of(op), d.m, d.n, d.k, r->device.sms);
	const double rate = r->product_flop_per_s[op->dtype] * t.busy * (s->repeated_data ? r->repeated_data : 1) *
	                    grouped_share(op, r, s);
	return t.flop * expert_tiles(op, r, s) / winograd_faster(op, r) / (rate / unaligned_slower(op, r));
}

/* Returns whether autograd adds a gradient to one that is there (torch/csrc/autograd/functions/accumulate_grad.h).
 * Trainers that carry gradients through buckets of their own add there, which counts as their copies. */
static bool autograd_adds(const struct op *op, const struct stack *s)
{
	return s->operators.counted && op->flags & OP_ACCUMULATE && !(s->gradient_passes > 0);
}

/* Returns the elements of a weight's gradient that a separate kernel adds to the sums: because they are wider and the
 * product leaves it in the operands' format, because autograd does, or because the config says so. 0: the product adds
 * them itself. */
static double added_apart(const struct op *op, const struct stack *s)
{
	const bool wider = dtype_bytes((enum dtype)op->out_dtype) > dtype_bytes((enum dtype)op->dtype);
	if (s->sums_fused || (!s->sums_apart && !(s->adds_gradients && wider) && !autograd_adds(op, s)))
		return 0;
	if (op_is_product(op))
		return op->flags & OP_TRANS_A ? result_elements(op) : 0;
	return op->kind == OP_EMBED_GRAD ? (double)op->embed.cols * (double)op->embed.table_rows : 0;
}

/* Returns the bytes of that way: the gradient is written (a table's with zeros), then it and the sum are read, and the
 * sum is written. With wider sums it is so on the first micro-batch too, to sums of zero. Autocast leaves a table in
 * fp32. */
static double added_apart_B(const struct op *op, const struct stack *s)
{
	const enum dtype in = (enum dtype)(op->kind == OP_EMBED_GRAD && s->autocast ? op->out_dtype : op->dtype);
	return added_apart(op, s) * 2 * (dtype_bytes(in) + dtype_bytes((enum dtype)op->out_dtype));
}

/* Returns the bytes of transposing the images of a convolution that lie channel by channel: both are read and written
 * once more. Vector units convolve them as they lie (NVIDIA, Convolutional Layers User's Guide, DU-09795, Tensor
 * Layouts In Memory: NCHW vs NHWC). */
static double transposed_B(const struct op *op, const struct stack *s)
{
	const struct op_conv *c = &op->conv;
	if (!s->channels_first || !op_is_conv(op) || c->flat || op->dtype == DT_FP32)
		return 0;
	const double side = (double)c->side, side_out = (double)op_conv_side(op),
		     pixels = side * side * (double)c->in + side_out * side_out * (double)c->out;
	return 2 * (double)c->batch * pixels * dtype_bytes((enum dtype)op->dtype);
}

/* Returns the bytes of the experts' weights that nothing hides. The tiles of an expert's first wave wait for its
 * weights at the same time. Those of later waves begin one by one, while others multiply, as those of any large
 * product. Products of Transformer Engine's GroupedLinear bear it out on B200 and A100
 * (MooreThreads/SimuMax@e691807a7ef8 configs/system/b200_bf16_ceperm.json, group_matmul: shapes of 128 to 9,832 rows;
 * docs/how-ops-are-priced.md). */
static double weights_B(const struct op *op, const struct rates *r)
{
	if (op->kind != OP_GROUPED_GEMM || op->flags & OP_TRANS_A)
		return 0;
	const double weight = (double)op->gemm.n * (double)op->gemm.k,
		     waves = tiles_waves(&r->device.tiles, op->gemm.m, op->gemm.n, r->device.sms);
	return groups_of(op) * weight * dtype_bytes((enum dtype)op->dtype) / fmax(1, waves);
}

/* Returns the bytes of transposing a weight. Before Blackwell Tensor Cores read fp8 operands along the depth of the
 * product alone (cuBLAS 12.8, cublasLtMatmul: fp8 wants A transposed and B not, but for compute capability 10.x), and
 * the gradient of the input reads a weight along its other axis. Casts of trained weights write both ways (struct
 * fp8_traffic). A frozen weight is stored once, and transposed for each such product: NVIDIA's adapters of MLPerf set
 * disable_parameter_transpose_cache (mlcommons/training_results_v4.0@62f111b7690f
 * NVIDIA/benchmarks/llama2_70b_lora/implementations/nemo/conf/megatron_gpt_peft_tuning_config.yaml). */
static double turned_B(const struct op *op, const struct rates *r)
{
	if (!op->frozen8 || op->flags & OP_TRANS_B || r->compute_capability <= 0 || r->compute_capability >= 100)
		return 0;
	return 2 * groups_of(op) * (double)op->gemm.n * (double)op->gemm.k * dtype_bytes((enum dtype)op->dtype);
}

/* Returns whether the product of a weight's gradient leaves it in the operands' format, and a cast makes it wide:
 * autocast casts weights for each product, and autograd casts their gradients back (PyTorch,
 * tools/autograd/derivatives.yaml: _to_copy). */
static bool casts_gradient(const struct op *op, const struct stack *s)
{
	return s->autocast && s->operators.counted && op_is_product(op) && op->flags & OP_TRANS_A &&
	       dtype_bytes((enum dtype)op->out_dtype) > dtype_bytes((enum dtype)op->dtype);
}

/* Returns the bytes of such a gradient. The product writes it, the cast reads and writes it, and where it is added to
 * others' sum a kernel reads both and writes the sum (torch/csrc/autograd/functions/accumulate_grad.h). */
static double cast_gradient_B(const struct op *op)
{
	const double wide_B = dtype_bytes((enum dtype)op->out_dtype),
		     sum_B = op->flags & OP_ACCUMULATE ? 2 * wide_B + wide_B : 0;
	return result_elements(op) * (2 * dtype_bytes((enum dtype)op->dtype) + wide_B + sum_B);
}

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
	if (casts_gradient(op, s)) {
		const double elements = result_elements(op);
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

/* A tile writes its result after its loop over k, and reads it before where it accumulates. So that traffic is not
 * hidden. */
static double product_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const struct op_gemm d = op_as_gemm(op);
	double result_B = groups_of(op) * (double)d.m * (double)d.n * dtype_bytes((enum dtype)op->out_dtype) *
	                  (op->flags & OP_ACCUMULATE ? 2 : 1);
	if (casts_gradient(op, s))
		result_B = cast_gradient_B(op);
	else if (added_apart(op, s) > 0)
		result_B = added_apart_B(op, s);
	return multiply_s(op, r, s) +
	       (result_B + weights_B(op, r) + transposed_B(op, s) + turned_B(op, r)) / r->memory_Bps;
}

/* Returns the time of flash attention in fp8. Transformer Engine makes queries, keys and values fp8 before it, and
 * backward its result's gradient; it makes their gradients 16 bits again (attention/dot_product_attention/backends.py,
 * FusedAttnFunc). Each reads or writes 16 bits and 8. */
static double flash8_s(const struct op *op, const struct rates *r, bool backward, double tiles)
{
	const struct op_attn *a = &op->attn;
	const double head = (double)a->batch * (double)a->seq * (double)a->head_dim,
		     cast = head * ((double)a->heads * (backward ? 2 : 1) + 2 * (double)a->kv_heads);
	return op_flop(op) * tiles / (r->matrix_flop_per_s[DT_FP8] * r->attention8_share[backward]) +
	       cast * (dtype_bytes(DT_FP8) + dtype_bytes((enum dtype)op->dtype)) / r->memory_Bps;
}

/* Returns the time by which the softmax of narrow heads is longer than its part of the shares, which are of heads of
 * 128. An exponential of a score takes as long for any width, while the score's products shrink with it. */
static double narrow_s(const struct op *op, const struct rates *r, bool backward, double scores)
{
	const double wide = r->parameters->gpu.attention_head, narrower = fmax(0, 1 - (double)op->attn.head_dim / wide);
	return r->exp_per_s > 0
	               ? narrower * scores * (backward ? r->parameters->gpu.attention_exps_backward : 1) / r->exp_per_s
	               : 0;
}

/* Returns the time that a flash kernel takes to drop scores. Fits to runs with dropout have it in their numbers. */
static double drops_s(const struct op *op, const struct rates *r, const struct stack *s, bool backward, double scores)
{
	const double exps = backward ? r->parameters->gpu.attention_dropout_backward
	                             : r->parameters->gpu.attention_dropout;
	return op->dropout && !s->passes_hold_dropout && r->exp_per_s > 0 ? scores * exps / r->exp_per_s : 0;
}

/* Returns the bytes that the loops over tiles do not hide. Forward a tile's queries are read before its loop, and its
 * result is written behind it. Backward a tile's keys and values are read before, and their gradients written behind.
 * Kernels of their own multiply the result and its gradient, fill the sums of the queries' gradients in fp32 with
 * zeros, and cast them (Dao-AILab/flash-attention, csrc/flash_attn/src/flash_bwd_launch_template.h; cuDNN's
 * compute_dot_do_o and convert_dq_to_16bits: tests/validation/gpu/h200/kernels-llama-1b-bf16.csv). */
static double ends_B(const struct op *op, bool backward)
{
	const struct op_attn *a = &op->attn;
	const double rows = (double)a->batch * (double)a->seq, keys = (double)a->batch * (double)op_keys(op),
		     head = (double)a->head_dim, value = (double)op_value_dim(op),
		     queries = rows * (double)a->heads * head, results = rows * (double)a->heads * value,
		     kv = keys * (double)a->kv_heads * (head + value), B = dtype_bytes((enum dtype)op->dtype);
	return backward ? 2 * B * results + (2 * dtype_bytes(DT_FP32) + B) * queries + 2 * B * kv
	                : B * (queries + results);
}

/* Returns how many scores a flash kernel computes for each that counts: tiles are computed whole where a mask cuts
 * them. On a TPU those are its blocks (jax/experimental/pallas/ops/tpu/splash_attention/splash_attention_mask_info.py:
 * a block without any score that counts is skipped), of which a window has a part in at least two. */
static double whole_tiles(const struct op *op, const struct rates *r, const struct stack *s)
{
	const bool blocks = r->matrix_array > 0 && s->attention_block > 0;
	const double side = blocks ? s->attention_block : r->device.tiles.attention, pairs = op_pairs(op),
		     rows = (double)op->attn.seq, window = (double)op_window(op),
		     tiles = 1 + op_masked_ends(op) * (side - 1) / 2 / pairs;
	if (!blocks)
		return fmin(tiles, 2);
	const double narrow = window > 0 ? fmax(0, side - window) * rows / pairs : 0;
	return fmax(1, fmin(tiles + narrow, rows * (double)op_keys(op) / pairs));
}

/* Returns the time of a flash kernel whose products run on a systolic array. A product keeps a part of the array idle
 * where it sums up fewer columns than the array has: queries with keys, and backward the result's gradient with values,
 * sum up a head's columns (AI-Hypercomputer/maxtext, docs/guides/optimization/
 * optimizing_frontier_model_training_on_tpu_v7x.md: "50% or more underutilization" with heads of 128 and 64 on arrays
 * of 256). The other products sum up rows. What the share of heads of attention_head columns has beyond the products'
 * own rate is a score's arithmetic on vector units, which takes as long for any width.
 *
 * Where the backward pass is two kernels, one for the queries' gradients and one for those of keys and values, each
 * computes the scores and their gradients anew: seven products for five (splash_attention_kernel.py,
 * _flash_attention_dq_kernel and _flash_attention_dkv_kernel, without use_fused_bwd_kernel). */
static double systolic_s(const struct op *op, const struct rates *r, const struct stack *s, bool backward, double tiles,
	double scores)
{
	const double share = r->attention_share[attention_kernel_on(s, r->compute_capability)][backward],
		     product = r->product_flop_per_s[op->dtype], head = (double)op->attn.head_dim,
		     value = (double)op_value_dim(op), kernels = backward && s->attention_split ? 2 : 1,
		     idle = idle_columns(op->attn.head_dim, r->matrix_array) +
	                    (backward ? idle_columns(op_value_dim(op), r->matrix_array) : 0),
		     again = (kernels - 1) * 2 * scores * (head + value),
		     slower = 1 / (r->matrix_flop_per_s[op->dtype] * share) - 1 / product;
	struct op usual = *op; /* with heads of the width that the share is of */
	usual.attn.head_dim = (int64_t)r->parameters->gpu.attention_head;
	usual.attn.value_dim = 0;
	return (op_flop(op) * tiles + again + kernels * 2 * scores * idle) / product +
	       kernels * op_flop(&usual) * tiles * fmax(0, slower);
}

static double flash_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const bool backward = op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTENTION_PART_GRAD;
	const enum attention_kernel kernel = attention_kernel_on(s, r->compute_capability);
	const double rate = r->matrix_flop_per_s[op->dtype] * r->attention_share[kernel][backward];
	if (kernel == KERNEL_MASKED)
		return op_flop(op) * (double)op->attn.seq * (double)op_keys(op) / op_pairs(op) / rate;
	const double tiles = whole_tiles(op, r, s);
	if (s->attention8 && r->attention8_share[backward] > 0)
		return flash8_s(op, r, backward, tiles);
	const double scores = tiles * (double)op->attn.batch * (double)op->attn.heads * op_pairs(op);
	const double tiles_s = r->matrix_array > 0 ? systolic_s(op, r, s, backward, tiles, scores)
	                                           : op_flop(op) * tiles / rate + narrow_s(op, r, backward, scores);
	return tiles_s + drops_s(op, r, s, backward, scores) + ends_B(op, backward) / r->memory_Bps;
}

/* The products of naive attention run as batched matrix products; on vector units where a head's rows are not whole 16
 * bytes. Their tiles write results after their loops over k, as those of other products: of scores, k is a head's few
 * columns. */
static double naive_s(const struct op *op, const struct rates *r)
{
	const double slower = unaligned(r, op->attn.head_dim, (enum dtype)op->dtype)
	                              ? r->parameters->gpu.unaligned_head_slower
	                              : 1;
	return op_flop(op) * slower / r->batched_flop_per_s[op->dtype] + op_write_B(op) / r->memory_Bps;
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
		return flash_s(op, r, s);
	if (op_is_product(op) || op_is_conv(op))
		return product_s(op, r, s);
	if (op_is_naive_product(op))
		return naive_s(op, r);
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
		return by_kernel_B + (op->kind == OP_EMBED_GRAD ? added_apart_B(op, s) : 0);
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
	case CLASS_EMBEDDING: return counted_B + added_apart_B(op, s);
	case CLASS_CONVOLUTION: return counted_B + transposed_B(op, s);
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

double gpu_op_s(const struct op *op, const struct rates *r, const struct stack *s, enum bound *bound)
{
	if (op->flags & OP_IN_PRODUCT) { /* no kernel, and the product's loop hides its arithmetic */
		*bound = BOUND_MEMORY;
		return gpu_op_B(op, s) / r->memory_Bps;
	}
	double compute = compute_s(op, r, s), memory = memory_s(op, r, s);
	const double each_s = r->parameters->gpu.kernel_s, work = fmax(compute, memory),
		     kernel_s = operators_kernels(op, s) * each_s + (casts_gradient(op, s) ? each_s : 0);
	*bound = kernel_s > work ? BOUND_LATENCY : compute > memory ? BOUND_COMPUTE : BOUND_MEMORY;
	const double modules = fmax(1, op->modules);
	return modules * (kernel_s + work) + copies_s(op, r, s) + heads_s(op, r, s) +
	       operators_adapter_B(op, s) / r->memory_Bps + unvectorized_s(op, r, s) + reduced_s(op, r, s) +
	       fp4_s(op, r, s);
}
