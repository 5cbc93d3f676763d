/* The timeline: what ran when, from the simulator or from a run; and what follows from it alone. */
#ifndef STEPSIM_STEP_TIMELINE_H
#define STEPSIM_STEP_TIMELINE_H

#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "step/program.h"

/* One row. Times in picoseconds from the step's begin. A collective is resident from start_ps (this actor has arrived) and moves bytes from move_ps (all have); for other ops move_ps == start_ps. */
struct span {
	uint32_t actor; /* role (simulated) or rank (measured) */
	uint32_t op;    /* index in the actor's role.ops */
	uint8_t lane, class_, phase, recomputed;
	int64_t start_ps, move_ps, end_ps;
};

struct timeline {
	VEC(struct span) spans; /* by actor, then in op order */
	uint32_t actors;
	int64_t step_ps; /* the slowest actor's end */
};

void timeline_free(struct timeline *t);

/* Spans inside [0, step_ps], start <= move <= end, each lane of an actor in order and without overlap. ST_RUN with the first violation. */
enum status timeline_check(const struct timeline *t, struct error *e);

/* The actor whose last span ends last (the first of several). */
uint32_t timeline_critical_actor(const struct timeline *t);

/* The partition of one actor's step: each instant belongs to the first of optimizer, compute, communication, copy, host, bubble, idle that is going on.
 * The seven add up to step_s. comm_s: time in which any collective moves bytes; overlap = 1 - exposed_comm_s / comm_s, 1 when there is none; wait_s: time in which collectives waited for late members.
 * bubble: waiting for a message of another pipeline stage, which does not count as wait_s. */
struct breakdown {
	double step_s, compute_s, exposed_comm_s, copy_s, host_s, bubble_s, optimizer_s, idle_s;
	double comm_s, overlap, wait_s;
	double class_s[CLASS_COUNT]; /* summed durations (moving time for collectives) */
	int64_t class_n[CLASS_COUNT];
};
enum status timeline_breakdown(const struct timeline *t, uint32_t actor, struct breakdown *out, struct error *e);

/* What most of an actor's host work is, in words: loading data, the stack's pauses, synchronisation. NULL where there is none. */
const char *timeline_host_cause(const struct timeline *t, const struct role *r, uint32_t actor);

/* The role whose ops an actor's spans count: simulated timelines have an actor a role, measured ones an actor a rank. */
const struct role *timeline_role(const struct timeline *t, const struct program *p, uint32_t actor);

/* The longest chain of spans through lanes and dependencies, as a sum of durations: no schedule of this program with these durations is shorter, but where gathers go on beside what reads them (parallel.tensor_overlap). */
enum status timeline_critical_path(const struct timeline *t, const struct program *p, double *path_s, struct error *e);

#endif
