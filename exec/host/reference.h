/* The ops once more, slow and plain, in double: what the kernels of a device are tested against. Same op, same
 * arguments as host_kernel_run, but every floating-point argument is an array of double (moments in 8 bits too, one an
 * element, not rounded to them), and sums run in double in the order in which they are written. No pool, no scratch.
 */
#ifndef STEPSIM_EXEC_HOST_REFERENCE_H
#define STEPSIM_EXEC_HOST_REFERENCE_H

#include "exec/host/kernels.h"

/* Of env: tensor_coord, heads, loss_scale, step. ST_RUN: out of memory, an op that is no kernel, LAMB. Ids are not
 * checked. */
enum status reference_run(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS],
	struct error *e);

#endif
