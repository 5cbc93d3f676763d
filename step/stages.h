/* Which part of the model a pipeline stage has. The model is cut into pipeline x virtual_stages parts in order, which the schedule places (step/schedule.h). The first part has the embedding, the last one the final norm, the head and the loss. Layers: as parallel.layers_per_stage says, in the order of the parts; without it as even as they go,
 * the remainder one each to the early parts, or as the software stack cuts them (step/stack.h). A part may be without layers. */
#ifndef STEPSIM_STEP_STAGES_H
#define STEPSIM_STEP_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "step/config.h"

struct stage_part {
	int64_t first, layers; /* blocks [first, first + layers) */
	bool embedding, head;
};

static inline bool stage_has_layer(struct stage_part s, int64_t layer)
{
	return layer >= s.first && layer < s.first + s.layers;
}

/* stage < parallel.pipeline, chunk < parallel.virtual_stages. */
struct stage_part stage_part(const struct config *c, int64_t stage, int64_t chunk);

/* True when the stack's rule gives the two ends one layer less each. */
bool stages_count_ends(const struct config *c);

/* The stage with the final norm, the head and the loss: the last one, or with zbv the first. */
int64_t stages_head(const struct config *c);

/* True when a rank of the stage stores the parameter. A tied table is stored by both ends, where these are two: what embeds by the first stage, what the head multiplies with by the last. */
bool stage_has_param(const struct config *c, int64_t stage, const struct param *p);

/* True when this is a table that the first and the last stage both hold, so that its gradient is summed over the two (Megatron-LM's embedding group). */
bool stages_share(const struct config *c, const struct param *p);

#endif
