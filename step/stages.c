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

static int64_t parts_of(const struct config *c) { return c->parallel.pipeline * c->parallel.virtual_stages; }

struct counted_ends stages_counted_ends(const struct config *c)
{
	const int64_t parts = parts_of(c), layers = c->model.layers;
	const bool fits = c->stack.stage_split == SPLIT_ENDS && layers % parts != 0 && (layers + 2) % parts == 0;
	if (parts == 1)
		return (struct counted_ends){0, 0};
	switch (c->parallel.count_ends) {
	case ENDS_EMBEDDING: return (struct counted_ends){1, 0};
	case ENDS_HEAD: return (struct counted_ends){0, 1};
	case ENDS_BOTH: return (struct counted_ends){1, 1};
	case ENDS_AUTO: return (struct counted_ends){fits, fits};
	case ENDS_NONE:
	case ENDS_COUNT: break;
	}
	return (struct counted_ends){0, 0};
}

bool stages_by_hand(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return p->n_layers_per_stage > 0 || p->first_stage_layers != AUTO || p->last_stage_layers != AUTO ||
	       p->count_ends > ENDS_NONE;
}

void stages_forget(struct parallel *p)
{
	p->n_layers_per_stage = 0;
	p->first_stage_layers = p->last_stage_layers = AUTO;
}

int64_t stages_middle_layers(const struct config *c, int64_t *stages)
{
	const struct parallel *p = &c->parallel;
	const bool first = p->first_stage_layers != AUTO, last = p->last_stage_layers != AUTO;
	*stages = p->pipeline - first - last;
	return c->model.layers - (first ? p->first_stage_layers : 0) - (last ? p->last_stage_layers : 0);
}

/* Returns the layers of a part that the user names, or whose stage the user names. */
static int64_t given_layers(const struct config *c, int64_t part)
{
	const struct parallel *p = &c->parallel;
	const int64_t stage = schedule_place(p->schedule, p->pipeline, part).stage;
	int64_t stages, layers = stages_middle_layers(c, &stages);
	if (p->n_layers_per_stage > 0)
		return p->layers_per_stage[part];
	if (stage == 0 && p->first_stage_layers != AUTO)
		return p->first_stage_layers / p->virtual_stages;
	if (stage == p->pipeline - 1 && p->last_stage_layers != AUTO)
		return p->last_stage_layers / p->virtual_stages;
	return layers / stages / p->virtual_stages;
}

/* Returns the number of blocks in the parts before `part`. */
static int64_t before(const struct config *c, int64_t part)
{
	const struct parallel *p = &c->parallel;
	const int64_t parts = parts_of(c), layers = c->model.layers;
	const struct counted_ends ends = stages_counted_ends(c);
	int64_t sum = 0;
	if (part == parts)
		return layers;
	if (p->n_layers_per_stage > 0 || p->first_stage_layers != AUTO || p->last_stage_layers != AUTO) {
		for (int64_t i = 0; i < part; i++)
			sum += given_layers(c, i);
		return sum;
	}
	if (ends.embedding || ends.head)
		return part * ((layers + ends.embedding + ends.head) / parts) - (part > 0 ? ends.embedding : 0);
	if (c->stack.stage_split == SPLIT_COST)
		return before_by_cost(&c->model, parts, part);
	return part * (layers / parts) + (part < layers % parts ? part : layers % parts);
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
