/* Tensor-parallel collectives beside the tiles of products (parallel.tensor_overlap: Transformer Engine's user buffers,
 * asynchronous tensor parallelism).
 * The first pieces of such a gather are exposed; the rest moves beside the tiles of the products that read it. A
 * scatter moves beside the tiles of the products that make it, and its last pieces are exposed (Wang et al. 2023,
 * https://doi.org/10.1145/3567955.3567959). The time beside tiles is op_cost.tile_overlap_s.
 *
 * In the engine a gather's overlapped time is a tail (sim/engine/engine.h). A scatter enters the engine with its
 * exposed time alone, as the end of its products is not known while they run; its overlapped time is drawn into the
 * timeline afterwards. Products lose some time to the pieces beside them, and may be too short to hide them. Both are
 * part of the share that a stack leaves exposed, which is fitted to whole steps.
 */
#ifndef STEPSIM_SIM_TILE_OVERLAP_H
#define STEPSIM_SIM_TILE_OVERLAP_H

#include <stdbool.h>

#include "step/timeline.h"

/* True for a gather, whose overlapped part comes after the exposed one. */
bool tile_overlap_is_tail(const struct op *op);

/* Makes the spans of scatters begin to move earlier by their overlapped time, as far as the lane is free.
 * tile_overlap_ps, spans: the role's, one an op in order. */
void tile_overlap_draw(const struct role *r, const int64_t *tile_overlap_ps, struct span *spans);

#endif
