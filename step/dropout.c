#include "step/dropout.h"

#include <math.h>

#include "step/operators.h"

#define MASK_B 1.0

static bool of_scores(const struct op *op) { return op->kind == OP_ATTN_SOFTMAX || op->kind == OP_ATTN_SOFTMAX_GRAD; }

double dropout_mask_B(double rate, const struct stack *s)
{
	return rate > 0 ? fmax(MASK_B, s->memory.dropout_B) : s->memory.dropout_B;
}

/* Returns how often its elements are read or written beside the mask. */
static double accesses(const struct op *op, const struct stack *s)
{
	return of_scores(op) ? s->score_dropout : op->kind == OP_NORM_GRAD ? s->dropout_grad : s->dropout;
}

/* Autocast's softmax leaves fp32, which models drop before the product of values casts it (transformers, modeling_bert
 * until 4.47, BertSelfAttention.forward; nanoGPT's model.py). */
static double element_B(const struct op *op, const struct stack *s)
{
	return of_scores(op) && s->autocast ? dtype_bytes(DT_FP32) : dtype_bytes((enum dtype)op->dtype);
}

/* A flash kernel keeps no scores (sim/price/gpu_attention.c, drops_s). */
static bool counted(const struct op *op, const struct stack *s)
{
	return op->dropout && !op_is_flash(op) && !s->passes_hold_dropout;
}

double dropout_B(const struct op *op, const struct stack *s)
{
	return counted(op, s) ? operators_elements(op) * (MASK_B + accesses(op, s) * element_B(op, s)) : 0;
}

int dropout_kernels(const struct op *op, const struct stack *s) { return counted(op, s) && accesses(op, s) >= 2; }
