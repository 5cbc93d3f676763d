/* What a step uses over time: memory of a device, and its links. For traces and the page. */
#ifndef STEPSIM_REPORT_USAGE_H
#define STEPSIM_REPORT_USAGE_H

#include "base/vec.h"
#include "step/timeline.h"

/* From `at_ps` on the value is `value`, until the next point. */
struct usage_point {
	int64_t at_ps;
	double value;
};
typedef VEC(struct usage_point) usage_points;

/* Bytes that are alive on the device of an actor, by the program's buffers and what the stack holds (step/layout.h: known by the compute ops that have ended), without the CUDA context and NCCL's own. Its spans are
 * t->spans[first, next). Freed with vec_free. */
enum status usage_memory(const struct program *p, const struct timeline *t, size_t first, size_t next, usage_points *out, struct error *e);
/* Wire bytes (step/program.h) a second of the actor's collectives and messages, each at its mean rate while it moves. */
enum status usage_links(const struct program *p, const struct timeline *t, size_t first, size_t next, usage_points *out, struct error *e);

/* Of the actor whose spans begin at `first`: where the next one's begin. */
size_t usage_next_actor(const struct timeline *t, size_t first);

#endif
