#include "step/mesh.h"

#include "base/array.h"

static void merge_data(struct mesh *m, const struct parallel *p)
{
	const bool hybrid = strategy_has(p->strategy, STRATEGY_REPLICAS) ||
	                    (strategy_has(p->strategy, STRATEGY_GROUPS) && p->shard < p->data);
	m->params = hybrid ? DIM_SHARD : p->context > 1 ? DIM_DP_CP : DIM_DP;
	m->size[DIM_DP_CP] = p->data * p->context;
	m->stride[DIM_DP_CP] = m->stride[p->context > 1 ? DIM_CP : DIM_DP];
	m->size[DIM_SHARD] = hybrid ? p->shard * p->context : 1;
	m->stride[DIM_SHARD] = m->stride[DIM_DP_CP];
	m->size[DIM_REPLICA] = hybrid ? p->data / p->shard : 1;
	m->stride[DIM_REPLICA] = m->stride[DIM_SHARD] * m->size[DIM_SHARD];
}

/* The ranks of a stage, by the experts they hold. */
static void fold_experts(struct mesh *m, const struct config *c)
{
	static const enum mesh_dim stage[] = {DIM_TP, DIM_CP, DIM_DP};
	int64_t ranks = 1, stride = 0;
	bool folds = c->model.experts > 0 && m->size[DIM_TP] * m->size[DIM_EP] * m->size[DIM_ETP] > 1;
	for (size_t i = 0; i < COUNT(stage); i++) {
		ranks *= m->size[stage[i]];
		if (m->size[stage[i]] > 1 && (stride == 0 || m->stride[stage[i]] < stride))
			stride = m->stride[stage[i]];
	}
	m->experts = folds ? DIM_EDP : m->params;
	m->stride[DIM_ETP] = stride > 0 ? stride : 1;
	m->stride[DIM_EP] = m->stride[DIM_ETP] * m->size[DIM_ETP];
	m->size[DIM_EDP] = folds ? ranks / m->size[DIM_REPLICA] / (m->size[DIM_EP] * m->size[DIM_ETP]) : 1;
	m->stride[DIM_EDP] = m->stride[DIM_EP] * m->size[DIM_EP];
}

struct mesh mesh_of(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	struct mesh m = {.ranks = 1};
	m.size[DIM_TP] = p->tensor;
	m.size[DIM_CP] = p->context;
	m.size[DIM_EP] = p->expert;
	m.size[DIM_ETP] = p->expert_tensor;
	m.size[DIM_DP] = p->data;
	m.size[DIM_PP] = p->pipeline;
	for (int i = 0; i < DIM_COUNT; i++) {
		enum mesh_dim d = p->order[i];
		m.order[i] = d;
		m.stride[d] = m.ranks;
		m.ranks *= d == DIM_EP ? 1 : m.size[d];
	}
	merge_data(&m, p);
	fold_experts(&m, c);
	return m;
}

int64_t mesh_coord(const struct mesh *m, int64_t rank, enum mesh_dim d) { return rank / m->stride[d] % m->size[d]; }

int64_t mesh_member(const struct mesh *m, int64_t rank, enum mesh_dim d, int64_t i)
{
	return rank + (i - mesh_coord(m, rank, d)) * m->stride[d];
}

struct param_part mesh_param_part(const struct mesh *m, const int64_t coord[DIM_ALL], const struct param *p)
{
	if (!param_is_expert(p->kind))
		return (struct param_part){1, 0, m->size[DIM_TP], coord[DIM_TP]};
	return (struct param_part){m->size[DIM_EP], coord[DIM_EP], m->size[DIM_ETP], coord[DIM_ETP]};
}

uint64_t mesh_param_elements(const struct mesh *m, const struct param *p)
{
	const int64_t origin[DIM_ALL] = {0};
	const struct param_part part = mesh_param_part(m, origin, p);
	return param_local_elements(p, part.owners * part.ranks);
}
