/* The time of attention: of flash kernels, and of the products of naive attention (sim/price/gpu.h). */
#include <math.h>

#include "sim/price/gpu_parts.h"

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
		     idle = gpu_idle_columns(op->attn.head_dim, r->matrix_array) +
	                    (backward ? gpu_idle_columns(op_value_dim(op), r->matrix_array) : 0),
		     again = (kernels - 1) * 2 * scores * (head + value),
		     slower = 1 / (r->matrix_flop_per_s[op->dtype] * share) - 1 / product;
	struct op usual = *op; /* with heads of the width that the share is of */
	usual.attn.head_dim = (int64_t)r->parameters->gpu.attention_head;
	usual.attn.value_dim = 0;
	return (op_flop(op) * tiles + again + kernels * 2 * scores * idle) / product +
	       kernels * op_flop(&usual) * tiles * fmax(0, slower);
}

/* Returns the time of attention where PyTorch's scaled_dot_product_attention is given a mask: all pairs are computed.
 * cuDNN's kernels take a mask, at a share of their rate. Flash kernels do not, so that the memory-efficient one runs.
 * Hugging Face's models then repeat keys and values for each query head, and the backward pass sums their gradients
 * (transformers 5.17, integrations/sdpa_attention.py, use_gqa_in_sdpa). */
static double masked_s(const struct op *op, const struct rates *r, enum attention_kernel kernel, bool backward)
{
	const struct op_attn *a = &op->attn;
	const double keys = (double)op_keys(op), scores = (double)a->batch * (double)a->heads * (double)a->seq * keys,
		     flop = op_flop(op) * (double)a->seq * keys / op_pairs(op), peak = r->matrix_flop_per_s[op->dtype];
	if (kernel != KERNEL_FA3)
		return flop / (peak * r->attention_share[KERNEL_MASKED][backward]);
	struct op own = *op; /* each query head has keys of its own */
	own.attn.kv_heads = a->heads;
	const double width = (double)a->head_dim + (double)op_value_dim(op),
		     repeated = a->heads > a->kv_heads ? (double)(a->heads + a->kv_heads) * width : 0,
		     B = (double)a->batch * keys * repeated * dtype_bytes((enum dtype)op->dtype);
	return (flop / (peak * r->attention_share[kernel][backward]) + narrow_s(op, r, backward, scores)) /
	               r->parameters->gpu.masked_cudnn +
	       (ends_B(&own, backward) + B) / r->memory_Bps;
}

double gpu_flash_s(const struct op *op, const struct rates *r, const struct stack *s)
{
	const bool backward = op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTENTION_PART_GRAD;
	const enum attention_kernel kernel = attention_kernel_on(s, r->compute_capability);
	const double rate = r->matrix_flop_per_s[op->dtype] * r->attention_share[kernel][backward];
	if (kernel == KERNEL_MASKED || op->flags & OP_MASK)
		return masked_s(op, r, kernel, backward);
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
double gpu_naive_s(const struct op *op, const struct rates *r)
{
	const double slower = gpu_unaligned(r, op->attn.head_dim, (enum dtype)op->dtype)
	                              ? r->parameters->gpu.unaligned_head_slower
	                              : 1;
	return op_flop(op) * slower / r->batched_flop_per_s[op->dtype] + op_write_B(op) / r->memory_Bps;
}
