/* The mesh: ranks as coordinates over the parallel dimensions, and the groups along each. Nothing is stored for each rank.
 *
 * rank = sum over dimensions (in `order`, innermost first) of coordinate x product of the sizes of the inner ones.
 *
 * Experts: the ranks of a stage (tensor x context x data, side by side) once more, as DIM_EP, neighbours that share the experts among them, and DIM_EDP around it, ranks that hold the same ones
 * (Liu et al. 2025, arXiv:2504.14960, "parallel folding", with expert tensor parallelism 1). DIM_EP's place in the order says only that it lies inside data; it makes no more ranks.
 *
 * Ranks that differ in data or context alone hold the same parameters: DIM_DP_CP takes both as one dimension (context stands right inside data), and hsdp cuts that into DIM_SHARD, neighbours, and DIM_REPLICA around it. These have a size and a
 * stride as the others; they are no part of the order.
 */
#ifndef STEPSIM_STEP_MESH_H
#define STEPSIM_STEP_MESH_H

#include <stdint.h>

#include "step/config.h"

struct mesh {
	enum mesh_dim order[DIM_COUNT];
	int64_t size[DIM_ALL];   /* by dimension */
	int64_t stride[DIM_ALL]; /* ranks between neighbours along a dimension */
	enum mesh_dim params;    /* along which the collectives of a bucket run: DIM_DP; DIM_DP_CP with context; DIM_SHARD under hsdp, which then sums along DIM_REPLICA */
	enum mesh_dim experts;   /* the same for a bucket of experts: `params` where neither tensor nor expert parallelism tells them from other parameters, else DIM_EDP */
	int64_t ranks;
};

/* The dimension along which a parameter's split cuts it. */
enum mesh_dim param_cut_along(const struct param *p);

/* From a resolved config. */
struct mesh mesh_of(const struct config *c);
int64_t mesh_coord(const struct mesh *m, int64_t rank, enum mesh_dim d);
/* Member i (0 <= i < size[d]) of the group of `rank` along d. Group members differ in that coordinate alone. */
int64_t mesh_member(const struct mesh *m, int64_t rank, enum mesh_dim d, int64_t i);

#endif
