/* The mesh gives each rank coordinates over the parallel dimensions, and defines the groups along each. It stores
 * nothing for each rank.
 *
 * rank = sum over dimensions (in `order`, innermost first) of coordinate x product of the sizes of the inner ones.
 *
 * Experts divide the ranks of a stage (tensor x context x data) a second time. DIM_ETP has neighbours that cut each
 * expert's products, as DIM_TP does those of attention. DIM_EP, around it, has ranks that share the experts among them.
 * DIM_EDP, around both, has ranks that hold the same parts of the same experts (Liu et al. 2025, arXiv:2504.14960,
 * "parallel folding"; megatron/core/parallel_state.py, the generator of expert ranks). DIM_EP's place in the order only
 * says that it lies inside data; it adds no ranks. Where hsdp cuts, DIM_EDP has those of one shard group, and
 * DIM_REPLICA lies around it as it does around DIM_SHARD (torchtitan's mesh of dp_replicate, efsdp and ep:
 * distributed/parallel_dims.py).
 *
 * Ranks that differ only in data or context hold the same parameters. DIM_DP_CP takes both as one dimension, as context
 * stands right inside data. hsdp (zero1 and zero2 in groups) cuts it into DIM_SHARD, of neighbours, and DIM_REPLICA
 * around it. These have a size
 * and a stride too, but no place in the order.
 */
#ifndef STEPSIM_STEP_MESH_H
#define STEPSIM_STEP_MESH_H

#include <stdint.h>

#include "step/config/config.h"

struct mesh {
	enum mesh_dim order[DIM_COUNT];
	int64_t size[DIM_ALL];   /* by dimension */
	int64_t stride[DIM_ALL]; /* ranks between neighbours along a dimension */
	enum mesh_dim params;    /* the dimension of a bucket's collectives: DIM_DP; DIM_DP_CP with context; DIM_SHARD
	                            where ranks are cut in groups, which then also reduce along DIM_REPLICA */
	enum mesh_dim experts; /* the same for a bucket of experts: DIM_EDP, or `params` where neither tensor nor expert
	                          parallelism treats experts differently */
	int64_t ranks;
};

/* Returns the mesh of a resolved config. */
struct mesh mesh_of(const struct config *c);
int64_t mesh_coord(const struct mesh *m, int64_t rank, enum mesh_dim d);

/* A rank's part of a parameter. `owners` share out its copies in order, and this rank is number `owner` of them.
 * `ranks` cut each copy as its split says, and this rank is number `rank` of those. */
struct param_part {
	int64_t owners, owner, ranks, rank;
};
/* Returns the part of the rank with these coordinates, one for each dimension. */
struct param_part mesh_param_part(const struct mesh *m, const int64_t coord[DIM_ALL], const struct param *p);
/* Returns the elements of a rank's part. */
uint64_t mesh_param_elements(const struct mesh *m, const struct param *p);
/* Returns member i (0 <= i < size[d]) of the group of `rank` along d. Members differ only in that coordinate. */
int64_t mesh_member(const struct mesh *m, int64_t rank, enum mesh_dim d, int64_t i);

#endif
