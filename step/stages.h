/* The part of the model that a pipeline stage has. The model is cut into pipeline x virtual_stages parts, in order,
 * which the schedule places (step/schedule.h). The first part has the embedding; the last has the final norm, the head
 * and the loss. parallel.layers_per_stage gives the layers of each part, in order. first_stage_layers and
 * last_stage_layers give those of a stage, shared evenly by its parts, and the other stages share the rest evenly
 * (Megatron-LM's --decoder-first-pipeline-num-layers). count_ends counts the embedding, the head or both as a layer
 * (--account-for-embedding-in-pipeline-split, --account-for-loss-in-pipeline-split). Without these keys layers are cut
 * as evenly as they go, the remainder one each to the early parts, or as the software stack cuts them (step/stack.h). A
 * part may have no layers. */
#ifndef STEPSIM_STEP_STAGES_H
#define STEPSIM_STEP_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "step/config/config.h"

struct stage_part {
	int64_t first, layers; /* blocks [first, first + layers) */
	bool embedding, head;
};

/* Those of mtp_layers are the last part's. */
static inline bool stage_has_layer(struct stage_part s, int64_t layer)
{
	return layer >= s.first && (layer < s.first + s.layers || s.head);
}

/* Returns a part of the model. stage < parallel.pipeline, chunk < parallel.virtual_stages. */
struct stage_part stage_part(const struct config *c, int64_t stage, int64_t chunk);

/* The ends that count as a layer, 0 or 1 each: their parts have one layer less. */
struct counted_ends {
	int64_t embedding, head;
};
struct counted_ends stages_counted_ends(const struct config *c);

/* True where a key of the config says how layers are cut. */
bool stages_by_hand(const struct config *c);
/* Forgets what holds for one number of stages alone. */
void stages_forget(struct parallel *p);
/* Returns the layers of all stages but a first or a last one with a number of its own; *stages: how many those are. */
int64_t stages_middle_layers(const struct config *c, int64_t *stages);

/* Returns the stage with the final norm, the head and the loss: the last one, or with zbv the first. */
int64_t stages_head(const struct config *c);

/* True when a rank of the stage stores the parameter. Where the ends of the model are on two stages, both store a tied
 * table: the first to embed, the last for the head's product. */
bool stage_has_param(const struct config *c, int64_t stage, const struct param *p);

/* True for a tied table that the first and the last stage both store. Its gradient is summed over the two
 * (Megatron-LM's embedding group). */
bool stages_share(const struct config *c, const struct param *p);

#endif
