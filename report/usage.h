/* Use of memory and links over time, for traces and the page. */
#ifndef STEPSIM_REPORT_USAGE_H
#define STEPSIM_REPORT_USAGE_H

#include "base/vec.h"
#include "step/timeline.h"

/* The value from `at_ps` on, until the next point. */
struct usage_point {
	int64_t at_ps;
	double value;
};
typedef VEC(struct usage_point) usage_points;

/* Returns the bytes that are alive on an actor's device: the program's buffers and what the stack holds
 * (step/layout.h), without the CUDA context and NCCL's buffers. The actor's spans are t->spans[first, next). The caller
 * frees `out` with vec_free. */
enum status usage_memory(const struct program *p, const struct timeline *t, size_t first, size_t next,
	usage_points *out, struct error *e);
/* Returns the wire bytes (step/program.h) a second of the actor's collectives and messages, each at its mean rate while
 * it moves. */
enum status usage_links(const struct program *p, const struct timeline *t, size_t first, size_t next, usage_points *out,
	struct error *e);

/* Returns the index at which the spans of the next actor begin; this one's begin at `first`. */
size_t usage_next_actor(const struct timeline *t, size_t first);

#endif
