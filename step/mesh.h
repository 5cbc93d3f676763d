/* The mesh: ranks as coordinates over the parallel dimensions, and the groups along each. Nothing is stored for each rank.
 *
 * rank = sum over dimensions (in `order`, innermost first) of coordinate x product of the sizes of the inner ones.
 */
#ifndef STEPSIM_STEP_MESH_H
#define STEPSIM_STEP_MESH_H

#include <stdint.h>

#include "step/config.h"

struct mesh {
	enum mesh_dim order[DIM_COUNT];
	int64_t size[DIM_COUNT];   /* by dimension */
	int64_t stride[DIM_COUNT]; /* ranks between neighbours along a dimension */
	int64_t ranks;
};

/* From a resolved config. */
struct mesh mesh_of(const struct config *c);
int64_t mesh_coord(const struct mesh *m, int64_t rank, enum mesh_dim d);
/* Member i (0 <= i < size[d]) of the group of `rank` along d. Group members differ in that coordinate alone. */
int64_t mesh_member(const struct mesh *m, int64_t rank, enum mesh_dim d, int64_t i);

#endif
