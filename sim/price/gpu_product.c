/* The time of a matrix product or a convolution (sim/price/gpu.h). */
#include <math.h>

#include "sim/price/gpu_parts.h"

/* Returns whether rows of so many columns of 16-bit operands are no whole multiples of so many bytes. */
static bool breaks(int64_t columns, enum dtype t, double bytes)
{
	return t != DT_FP32 && fmod((double)columns * dtype_bytes(t), bytes) > 0;
}

bool gpu_unaligned(const struct rates *r, int64_t columns, enum dtype t)
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

double gpu_result_elements(const struct op *op) { return groups_of(op) * (double)op->gemm.m * (double)op->gemm.n; }

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

double gpu_idle_columns(int64_t width, int64_t array) { return (double)((width + array - 1) / array * array - width); }

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
	return shared * (1 + gpu_idle_columns(in, r->matrix_array) / (double)in) *
	       (1 + gpu_idle_columns(out, r->matrix_array) / (double)out);
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
		return op->flags & OP_TRANS_A ? gpu_result_elements(op) : 0;
	return op->kind == OP_EMBED_GRAD ? (double)op->embed.cols * (double)op->embed.table_rows : 0;
}

/* Returns the bytes of that way: the gradient is written (a table's with zeros), then it and the sum are read, and the
 * sum is written. With wider sums it is so on the first micro-batch too, to sums of zero. Autocast leaves a table in
 * fp32. */
double gpu_added_apart_B(const struct op *op, const struct stack *s)
{
	const enum dtype in = (enum dtype)(op->kind == OP_EMBED_GRAD && s->autocast ? op->out_dtype : op->dtype);
	return added_apart(op, s) * 2 * (dtype_bytes(in) + dtype_bytes((enum dtype)op->out_dtype));
}

/* Returns the bytes of transposing the images of a convolution that lie channel by channel: both are read and written
 * once more. Vector units convolve them as they lie (NVIDIA, Convolutional Layers User's Guide, DU-09795, Tensor
 * Layouts In Memory: NCHW vs NHWC). */
double gpu_transposed_B(const struct op *op, const struct stack *s)
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
bool gpu_casts_gradient(const struct op *op, const struct stack *s)
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
	return gpu_result_elements(op) * (2 * dtype_bytes((enum dtype)op->dtype) + wide_B + sum_B);
}

/* A tile writes its result after its loop over k, and reads it before where it accumulates. So that traffic is not
 * hidden. */
double gpu_product_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const struct op_gemm d = op_as_gemm(op);
	double result_B = groups_of(op) * (double)d.m * (double)d.n * dtype_bytes((enum dtype)op->out_dtype) *
	                  (op->flags & OP_ACCUMULATE ? 2 : 1);
	if (gpu_casts_gradient(op, s))
		result_B = cast_gradient_B(op);
	else if (added_apart(op, s) > 0)
		result_B = gpu_added_apart_B(op, s);
	return multiply_s(op, r, s) +
	       (result_B + weights_B(op, r) + gpu_transposed_B(op, s) + turned_B(op, r)) / r->memory_Bps;
}
