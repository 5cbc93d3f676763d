#include "step/stages.h"

static int64_t layers_of(const struct config *c, int64_t part)
{
	const struct parallel *p = &c->parallel;
	int64_t parts = p->pipeline * p->virtual_stages;
	if (p->n_layers_per_stage > 0)
		return p->layers_per_stage[part];
	return c->model.layers / parts + (part < c->model.layers % parts ? 1 : 0);
}

struct stage_part stage_part(const struct config *c, int64_t stage, int64_t chunk)
{
	int64_t part = chunk * c->parallel.pipeline + stage, parts = c->parallel.pipeline * c->parallel.virtual_stages;
	struct stage_part s = {.layers = layers_of(c, part), .embedding = part == 0, .head = part == parts - 1};
	for (int64_t i = 0; i < part; i++)
		s.first += layers_of(c, i);
	return s;
}

bool stage_has_param(const struct config *c, int64_t stage, const struct param *p)
{
	int64_t last = c->parallel.pipeline - 1;
	if (p->layer >= 0) {
		for (int64_t chunk = 0; chunk < c->parallel.virtual_stages; chunk++) {
			struct stage_part s = stage_part(c, stage, chunk);
			if (p->layer >= s.first && p->layer < s.first + s.layers)
				return true;
		}
		return false;
	}
	switch (p->kind) {
	case PARAM_TOKEN_EMBEDDING: return stage == 0 || (stage == last && c->model.tied_embeddings);
	case PARAM_POSITION_EMBEDDING:
	case PARAM_TYPE_EMBEDDING:
	case PARAM_EMBEDDING_NORM_W:
	case PARAM_EMBEDDING_NORM_B: return stage == 0;
	default: return stage == last;
	}
}

bool stages_share(const struct config *c, const struct param *p)
{
	return p->kind == PARAM_TOKEN_EMBEDDING && c->model.tied_embeddings && c->parallel.pipeline > 1;
}
