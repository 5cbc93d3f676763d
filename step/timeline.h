/* The timeline: the times of all ops, from the simulator or from a run, and figures that follow from it alone. */
#ifndef STEPSIM_STEP_TIMELINE_H
#define STEPSIM_STEP_TIMELINE_H

#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "step/program.h"

/* One row. Times are picoseconds from the step's begin. A collective is resident from start_ps, when this actor has
 * arrived, and moves bytes from move_ps, when all have. For other ops move_ps == start_ps. */
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

/* Checks that spans are inside [0, step_ps], that start <= move <= end, and that each lane of an actor is in order and
 * without overlap. Fails with ST_RUN at the first violation. */
enum status timeline_check(const struct timeline *t, struct error *e);

/* Returns the actor whose last span ends last (the first of several). */
uint32_t timeline_critical_actor(const struct timeline *t);

/* The same among the actors of a role (timeline_role). Results set a measured actor beside the role that is predicted
 * to end last: stages that end together do different things. */
uint32_t timeline_last_of_role(const struct timeline *t, const struct program *p, uint32_t role);

/* The partition of one actor's step. Each instant belongs to the first of optimizer, compute, communication, copy,
 * host, bubble and idle that is active, and the seven add up to step_s. The bubble is the time spent waiting for a
 * message of another pipeline stage. wait_s is the time in which collectives waited for late members, bubble excluded.
 * comm_s is the time in which any collective moves bytes; overlap = 1 - exposed_comm_s / comm_s, or 1 without
 * communication. */
struct breakdown {
	double step_s, compute_s, exposed_comm_s, copy_s, host_s, bubble_s, optimizer_s, idle_s;
	double comm_s, overlap, wait_s;
	double class_s[CLASS_COUNT]; /* summed durations (moving time for collectives) */
	int64_t class_n[CLASS_COUNT];
};
/* Fails as timeline_check does, of the actor's spans. */
enum status timeline_breakdown(const struct timeline *t, uint32_t actor, struct breakdown *out, struct error *e);

/* The same of ranks that share cores and take turns on them. A profile's times are those of all computing at once: an
 * op takes as long as its turn is away, too. So an op begins here when the ops before it have ended, though another
 * rank has the core; and an instant in which other ranks of the host take all of its cores is compute, as this one can
 * do nothing else. host_of: by actor, of a measured timeline of `program`; cores: of a host, at least 1. */
struct shared_cores {
	const struct program *program;
	const int32_t *host_of;
	int64_t cores;
};
enum status timeline_breakdown_shared(const struct timeline *t, uint32_t actor, const struct shared_cores *shared,
	struct breakdown *out, struct error *e);
/* Makes the step last step_s, and its parts in proportion. The ops' own durations stay. */
void breakdown_scale(struct breakdown *b, double step_s);
/* Takes more_s, which events around the ops made the step longer by, off the durations of the compute lane's ops: each
 * loses the same, down to 0 for a class. Does nothing where more_s is negative, as noise has it. */
void breakdown_less_events(struct breakdown *b, double more_s);
/* Adds the step and the parts of another one to `b`, from 0 on. The ops' own durations stay. */
void breakdown_add(struct breakdown *b, const struct breakdown *more);

/* Returns the largest part of an actor's host work in words: loading data, the stack's pauses, synchronisation. NULL
 * where there is none. */
const char *timeline_host_cause(const struct timeline *t, const struct role *r, uint32_t actor);

/* Returns the role whose ops an actor's spans count. Simulated timelines have an actor a role, measured ones an actor a
 * rank. */
const struct role *timeline_role(const struct timeline *t, const struct program *p, uint32_t actor);

#endif
