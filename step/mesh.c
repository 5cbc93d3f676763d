#include "step/mesh.h"

static void merge_data(struct mesh *m, const struct parallel *p)
{
	bool hybrid = p->strategy == STRAT_HSDP;
	m->params = hybrid ? DIM_SHARD : p->context > 1 ? DIM_DP_CP : DIM_DP;
	m->size[DIM_DP_CP] = p->data * p->context;
	m->stride[DIM_DP_CP] = m->stride[p->context > 1 ? DIM_CP : DIM_DP];
	m->size[DIM_SHARD] = hybrid ? p->shard * p->context : 1;
	m->stride[DIM_SHARD] = m->stride[DIM_DP_CP];
	m->size[DIM_REPLICA] = hybrid ? p->data / p->shard : 1;
	m->stride[DIM_REPLICA] = m->stride[DIM_SHARD] * m->size[DIM_SHARD];
}

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
	merge_data(&m, p);
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
