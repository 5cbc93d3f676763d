/* The time of an op on a GPU where no profile was measured, by the constants of its catalogue file (configs/gpus) and
 * the numbers of the software stack (configs/stacks).
 *
 * memory: bandwidth x reached.memory_share. peak: the format's peak rate.
 *
 *   matrix product      max( 2 m n k / (peak x share) + bytes of the result / memory, all bytes / memory )
 *   flash attention     FLOP of the pairs that causal leaves, half a diagonal tile more, over peak x the kernel's share
 *                       (Dao 2023, section 3.1: backward is 2.5 forwards of FLOP); in fp8 by a share of its own
 *                       where the GPU has one, and the casts before and behind it (train.attention_dtype)
 *   norm, elementwise   bytes by kernels, where the stack counts them, else bytes x elementwise_passes / memory
 *   loss, optimizer     bytes by the stack's numbers where it has them / memory
 *   all else            bytes / memory
 *
 * Each op adds the time that any kernel takes to start and drain. Of matrix products:
 *
 * - m and n are rounded up to whole tiles; the peak is that of as many SMs as tiles and parts of k keep busy.
 * - A weight's gradient that a stack adds by a kernel of its own (adds_gradients) has the bytes of both kernels in
 *   place of the result's bytes.
 * - Rows of an operand that are no whole 16 bytes double the time.
 * - Images that lie channel by channel are transposed for Tensor Cores, and back.
 *
 * No time falls when a dimension grows, except where a row comes to whole 16 bytes.
 */
#ifndef STEPSIM_SIM_GPU_H
#define STEPSIM_SIM_GPU_H

#include "sim/price/rates.h"

/* Returns the kernels of an op that are launched for each tensor: those that copy gradients or buffers, and those that
 * update and clip without foreach (step/optimizer.h). */
double gpu_each_tensor(const struct op *op, const struct stack *s);

/* Returns the latter alone. */
double gpu_loop_kernels(const struct op *op);

/* Returns how many kernels an op starts one after the other, those that cast a weight's gradient included. */
double gpu_op_kernels(const struct op *op, const struct stack *s);

/* Returns the time of the kernels of one op, launches aside. Fills the bound of it. */
double gpu_op_s(const struct op *op, const struct rates *r, const struct stack *s, enum bound *bound);

/* Returns the bytes that cross memory, by the same numbers. */
double gpu_op_B(const struct op *op, const struct stack *s);

#endif
