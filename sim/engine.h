/* The event engine: tasks on lanes of actors, in virtual time.
 *
 * A task starts when it is issued (its actor's host thread issues tasks in order, `issue_ps` each), the task before it on its lane has ended, and its dependencies have ended.
 * What depends on a task with a tail starts when no more of it is left than the tail, which moves on beside it and keeps the lane (sim/beside.h).
 * A task that holds the host thread (`holds`) must have ended before the tasks behind it are issued. An actor's first task may have a negative issue_ps: the host thread runs so far ahead of the device.
 * A task with join >= 0 is then resident; all tasks of one join move together from the moment the last is resident, at the slowest member's rate, and end together
 * (where their alone_ps differ, the longest counts). A task without a join moves as soon as it starts.
 * While tasks move at once, each actor's resources (capacity 1 each) are shared max-min fairly among them (sim/maxmin.h): a task progresses at rate x <= 1. A task that is
 * the only one moving on its actor has rate 1 whatever it demands, so that alone it takes exactly alone_ps: a demand above 1 says that it disturbs others by more than its share.
 * A member that waits for its join takes nothing, and what a slower member leaves unused on the others' actors is not given away.
 * The clock is int64 picoseconds; events are ordered by (time, sequence), so results do not depend on the order of sums and ties are stable.
 * Everything that is due at one instant is collected before any of it acts.
 */
#ifndef STEPSIM_SIM_ENGINE_H
#define STEPSIM_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sim/maxmin.h"

#define ENGINE_LANES 11

struct task {
	uint32_t actor;
	uint8_t lane;
	bool holds;
	int64_t alone_ps, issue_ps, tail_ps; /* tail_ps: of alone_ps; no join */
	int32_t join;         /* -1: none; else below the number of tasks */
	uint32_t dep0, n_dep; /* in deps[]: indices in tasks[] of earlier tasks of the same actor */
	struct activity use;
};

struct task_time {
	int64_t start_ps, move_ps, end_ps;
};

/* tasks: by actor, then in issue order. times: one a task, filled. ST_RUN when tasks deadlock (collectives in different orders), naming the first task that never ended,
 * and when the tasks break the rules above (a caller's bug). */
enum status engine_run(const struct task *tasks, size_t n, const uint32_t *deps, uint32_t actors, struct task_time *times, struct error *e);

#endif
