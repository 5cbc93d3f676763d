/* The pipeline of a plan as a graph of tasks: one for each action of a stage (step/schedule.h) and one for each message
 * between stages (step/builder/pipeline.c). Nothing shares a resource in so coarse a program. So the engine's answer
 * would be the longest path, which is found here directly. */
#ifndef STEPSIM_SIM_PIPELINE_WALK_H
#define STEPSIM_SIM_PIPELINE_WALK_H

#include "step/config/config.h"

enum { END_FIRST, END_LAST, END_COUNT }; /* the stage with the embedding, the stage with the head */
enum { PASS_COUNT = 2 };                 /* ACTION_FORWARD, ACTION_BACKWARD: the backward pass is not split */

struct pipeline {
	struct schedule_shape shape; /* of a schedule that does not split the backward pass */
	/* Time of an action on the part with the embedding [0], any part between [1], the part with the head [2].
	 * begin_s: of the first micro-batch. */
	double begin_s[3][PASS_COUNT], steady_s[3][PASS_COUNT];
	double message_s[CONFIG_MAX_STAGES]; /* between stage i and the next; the last one's next is the first */
};

/* Fills the times at which the first and the last stage have ended their actions. Fails with ST_RUN when memory is
 * short, or when the schedule deadlocks. */
enum status pipeline_walk(const struct pipeline *p, double ends_s[END_COUNT], struct error *e);

/* Micro-batches beyond those that fill the pipeline twice lengthen it by a period each: the ends of all lie `periods`
 * times the way from those of `shorter` to those of `longer` behind the latter. All 0: a pipeline that is walked
 * whole. */
struct pipeline_fold {
	int64_t shorter, longer; /* micro-batches */
	double periods;
};
struct pipeline_fold pipeline_fold(const struct schedule_shape *s);

#endif
