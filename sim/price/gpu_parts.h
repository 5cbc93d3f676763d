/* What gpu.c, gpu_product.c and gpu_attention.c share. Times in s, traffic in bytes; what each counts stands there. */
#ifndef STEPSIM_SIM_GPU_PARTS_H
#define STEPSIM_SIM_GPU_PARTS_H

#include "sim/price/gpu.h"

/* Returns the elements of a product's result. */
double gpu_result_elements(const struct op *op);

/* Returns the columns of a systolic array that multiply zeros where `width` columns are summed up. */
double gpu_idle_columns(int64_t width, int64_t array);

/* Returns whether rows of so many columns keep products from their full rate. */
bool gpu_unaligned(const struct rates *r, int64_t columns, enum dtype t);

/* Returns whether a cast makes the gradient wide that a weight's product leaves in the operands' format. */
bool gpu_casts_gradient(const struct op *op, const struct stack *s);

/* Returns the bytes of adding a weight's gradient to the sums by a kernel of its own; 0: the product adds it. */
double gpu_added_apart_B(const struct op *op, const struct stack *s);

/* Returns the bytes of transposing the images of a convolution. */
double gpu_transposed_B(const struct op *op, const struct stack *s);

/* Return the time of a matrix product or convolution, of flash attention, of a product of naive attention. */
double gpu_product_s(const struct op *op, const struct rates *r, const struct stack *s);
double gpu_flash_s(const struct op *op, const struct rates *r, const struct stack *s);
double gpu_naive_s(const struct op *op, const struct rates *r);

#endif
