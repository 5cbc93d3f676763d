/* What an op takes on a GPU by the constants of its catalogue file (configs/gpus) and the numbers of the software stack (configs/stacks), where no profile was measured.
 *
 *   matrix product     max( 2 m n k / (peak x share) + bytes of the result / memory, all bytes / memory )
 *   flash attention    FLOP of the pairs that causal leaves, half a diagonal tile more, over peak x the kernel's share (Dao 2023, section 3.1: backward is 2.5 forwards of FLOP)
 *   norm, elementwise  bytes x elementwise_passes / memory
 *   loss, optimizer    bytes by the stack's numbers where it has them
 *   all else           bytes / memory
 * memory: bandwidth x reached.memory_share. No time falls when a dimension grows.
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
