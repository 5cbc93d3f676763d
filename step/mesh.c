#include "step/mesh.h"

struct mesh mesh_of(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	struct mesh m = {.ranks = 1};
	m.size[DIM_TP] = p->tensor;
	m.size[DIM_CP] = p->context;
	m.size[DIM_EP] = p->expert;
	m.size[DIM_DP] = p->data;
	m.size[DIM_PP] = p->pipeline;
	for (int i = 0; i < DIM_COUNT; i++) {
		enum mesh_dim d = p->order[i];
		m.order[i] = d;
		m.stride[d] = m.ranks;
		m.ranks *= m.size[d];
	}
	return m;
}

int64_t mesh_coord(const struct mesh *m, int64_t rank, enum mesh_dim d)
{
	return rank / m->stride[d] % m->size[d];
}

int64_t mesh_member(const struct mesh *m, int64_t rank, enum mesh_dim d, int64_t i)
{
	return rank + (i - mesh_coord(m, rank, d)) * m->stride[d];
}
