/* What dropout moves (model.dropout, model.attention_dropout), counted kernel by kernel. An op with `dropout` set has
 * it beside its own work: forward behind the embedding, each branch and softmax over stored scores; backward on the way
 * from the residual stream into a branch, and before softmax's gradient.
 *
 * PyTorch's kernel reads x, and writes the result and a mask of a byte an element; its gradient reads dy and the mask,
 * and writes dx (aten/src/ATen/native/cuda/Dropout.cu: fused_dropout_kernel, masked_scale_kernel). A stack says how
 * many of the reads and writes beside the mask are left (numbers dropout, dropout_grad, score_dropout): where a kernel
 * that is there anyway does it, as Megatron's bias_dropout_add_fused_train, the mask alone is. Flash attention draws
 * its numbers in its own kernel and moves nothing more; that arithmetic is not modelled.
 */
#ifndef STEPSIM_STEP_DROPOUT_H
#define STEPSIM_STEP_DROPOUT_H

#include "step/op.h"
#include "step/stack.h"

/* Returns the bytes that a mask keeps for each element: the stack's number, and a byte at the least where the rate is
 * above 0. */
double dropout_mask_B(double rate, const struct stack *s);

/* Returns the bytes that an op's dropout moves; 0 without any, and where the stack's elementwise_passes have it. */
double dropout_B(const struct op *op, const struct stack *s);

/* Returns how many kernels of its own that takes. */
int dropout_kernels(const struct op *op, const struct stack *s);

#endif
