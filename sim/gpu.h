/* What an op takes on a GPU by the constants of its catalogue file (configs/gpus) and the numbers of the software stack (configs/stacks), where no profile was measured.
 *
 *   matrix product     max( 2 m n k / (peak x share) + bytes of the result / memory, all bytes / memory ), m and n in whole tiles, the peak of as many SMs as tiles and parts of k keep busy;
 *                      of a weight's gradient that a stack adds by a kernel of its own (adds_gradients): what both move in place of the result's bytes;
 *                      twice as long where the rows of an operand are no whole 16 bytes
 *   flash attention    FLOP of the pairs that causal leaves, half a diagonal tile more, over peak x the kernel's share (Dao 2023, section 3.1: backward is 2.5 forwards of FLOP)
 *   norm, elementwise  bytes x elementwise_passes / memory
 *   loss, optimizer    bytes by the stack's numbers where it has them
 *   all else           bytes / memory
 * and for each what any kernel takes to start and drain.
 * memory: bandwidth x reached.memory_share. No time falls when a dimension grows, but where it comes to whole 16 bytes.
 */
#ifndef STEPSIM_SIM_GPU_H
#define STEPSIM_SIM_GPU_H

#include "step/program.h"
#include "step/result.h"
#include "topology/catalogue/device.h"

/* The time of the kernels of one op, launches aside, and what bounds it. */
double gpu_op_s(const struct op *op, const struct device_spec *d, const struct stack *s, enum bound *bound);

/* Bytes that cross memory, by the same numbers. */
double gpu_op_B(const struct op *op, const struct stack *s);

#endif
