/* The pipeline of a plan, one task for each action of a stage (step/schedule.h) and each message between stages (step/build_pipeline.c). Nothing shares a resource in so coarse a program,
 * so that what the engine would find is its longest path. */
#ifndef STEPSIM_SIM_WALK_H
#define STEPSIM_SIM_WALK_H

#include "step/schedule.h"

struct walk_times {
	/* [0]: the part with the embedding, [1]: any between, [2]: the part with the head; begin: the first micro-batch */
	double begin_s[3][ACTION_KIND_COUNT], steady_s[3][ACTION_KIND_COUNT];
	double message_s[CONFIG_MAX_STAGES]; /* between stage i and the next; the last one's next is the first */
};

/* When the first and the last stage have ended their actions. More micro-batches than fill the pipeline twice are counted by the period that they add. */
enum status walk_pipeline(const struct schedule_shape *s, const struct walk_times *t, double *first_s, double *last_s, struct error *e);

#endif
