/* Tensor-parallel collectives beside the tiles of products (parallel.tensor_overlap: Transformer Engine's user buffers, asynchronous tensor parallelism).
 *
 * Such a gather moves its first pieces bare and the rest beside the tiles of the products that read it; a scatter moves beside the tiles of the products that make it, and its last pieces bare (Wang et al. 2023,
 * https://doi.org/10.1145/3567955.3567959). What lies beside is op_cost.beside_s. In the engine a gather's is a tail (sim/engine.h); a scatter is given to it with the bare part alone, and what moved before is drawn into the timeline: when
 * the products will end is not known while they run. What products lose to the pieces beside them, and what they are too short to hide, is part of the share that a stack leaves bare: that is fitted to whole steps.
 */
#ifndef STEPSIM_SIM_BESIDE_H
#define STEPSIM_SIM_BESIDE_H

#include <stdbool.h>

#include "sim/price.h"
#include "step/timeline.h"

bool beside_is_tail(const struct op *op); /* it lies behind the bare part */

/* By op of the role: what lies beside products, where the device takes `spread` times as long as alone; 0 for all else. */
void beside_find(const struct role *r, const struct prices *prices, double spread, int64_t *beside_ps);

/* Lengthens the spans of scatters, of a role's with one for each op in order: they move that much sooner, if the lane is free. */
void beside_draw(const struct role *r, const int64_t *beside_ps, struct span *spans);

#endif
