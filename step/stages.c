#include "step/stages.h"

#include "step/schedule.h"

/* Returns the first block of a part by nanotron's cost: 4 h^2 + 3 h f a layer, h V the head. The block that passes a
 * part's share closes it. */
static int64_t before_by_cost(const struct model *m, int64_t parts, int64_t part)
{
	double h = (double)m->hidden, layer = 4 * h * h + 3 * h * (double)m->ffn_hidden,
	       total = layer * (double)m->layers + h * (double)m->vocab, sum = 0;
	int64_t now = 0, i = 0;
	for (; i < m->layers && now < part; i++) {
		sum += layer;
		if (now < parts - 1 && sum > total * (double)(now + 1) / (double)parts * (1 + 1e-12))
			now++;
	}
	return i;
}

/* Returns the number of blocks in the parts before `part`. */
static int64_t before(const struct config *c, int64_t part)
{
	const struct parallel *p = &c->parallel;
	int64_t parts = p->pipeline * p->virtual_stages, layers = c->model.layers, sum = 0;
	if (part == parts)
		return layers;
	if (p->n_layers_per_stage > 0) {
		for (int64_t i = 0; i < part; i++)
			sum += p->layers_per_stage[i];
		return sum;
	}
	if (stages_count_ends(c))
		return part * ((layers + 2) / parts) - (part > 0);
	if (c->stack.stage_split == SPLIT_COST)
		return before_by_cost(&c->model, parts, part);
	return part * (layers / parts) + (part < layers % parts ? part : layers % parts);
}

bool stages_count_ends(const struct config *c)
{
	int64_t parts = c->parallel.pipeline * c->parallel.virtual_stages;
	return c->stack.stage_split == SPLIT_ENDS && parts > 1 && c->model.layers % parts != 0 &&
	       (c->model.layers + 2) % parts == 0;
}

struct stage_part stage_part(const struct config *c, int64_t stage, int64_t chunk)
{
	int64_t part = schedule_part(c->parallel.schedule, c->parallel.pipeline, stage, chunk),
		parts = c->parallel.pipeline * c->parallel.virtual_stages, first = before(c, part);
	return (struct stage_part){.first = first,
		.layers = before(c, part + 1) - first,
		.embedding = part == 0,
		.head = part == parts - 1};
}

int64_t stages_head(const struct config *c)
{
	return schedule_place(c->parallel.schedule, c->parallel.pipeline,
		c->parallel.pipeline * c->parallel.virtual_stages - 1)
	        .stage;
}

bool stage_has_param(const struct config *c, int64_t stage, const struct param *p)
{
	int64_t head = stages_head(c);
	if (p->layer >= 0) {
		for (int64_t chunk = 0; chunk < c->parallel.virtual_stages; chunk++) {
			if (stage_has_layer(stage_part(c, stage, chunk), p->layer))
				return true;
		}
		return false;
	}
	switch (p->kind) {
	case PARAM_TOKEN_EMBEDDING: return stage == 0 || (stage == head && model_table_ends(&c->model));
	case PARAM_CLASS_TOKEN:
	case PARAM_PATCH_W:
	case PARAM_PATCH_B:
	case PARAM_FRAMES1_W:
	case PARAM_FRAMES1_B:
	case PARAM_FRAMES2_W:
	case PARAM_FRAMES2_B:
	case PARAM_ENCODER_POSITION:
	case PARAM_POSITION_EMBEDDING:
	case PARAM_TYPE_EMBEDDING:
	case PARAM_EMBEDDING_NORM_W:
	case PARAM_EMBEDDING_NORM_B: return stage == 0;
	default: return stage == head;
	}
}

bool stages_share(const struct config *c, const struct param *p)
{
	return p->kind == PARAM_TOKEN_EMBEDDING && model_table_ends(&c->model) && stages_head(c) != 0;
}
