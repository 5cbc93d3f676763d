/* The event engine: tasks on lanes of actors, in virtual time.
 *
 * Start. A task starts when three things hold: it is issued, the task before it on its lane has ended, and its
 * dependencies have ended. Its actor's host thread issues tasks in order, `issue_ps` each. A task that holds the host
 * thread (`holds`) must have ended before the tasks behind it are issued. An actor's first task may have a negative
 * issue_ps: the host thread runs so far ahead of the device.
 *
 * Queue. A task that is `queued` starts only when all queued tasks that its actor was issued before have started: they
 * stand in one queue of the device, whose head holds up all behind it (CUDA_DEVICE_MAX_CONNECTIONS=1).
 *
 * Tail. A task that depends on one with a tail starts when no more of that is left than the tail. The tail moves on
 * beside it and keeps the lane (sim/engine/tile_overlap.h).
 *
 * Join. A task with join >= 0 is resident once it has started. All tasks of one join move together from the moment the
 * last is resident, at the slowest member's rate, and end together. Where their alone_ps differ, the longest counts. A
 * task without a join moves as soon as it starts.
 *
 * Rates. While several tasks move, each actor's resources (capacity 1 each) are shared max-min fairly among them
 * (sim/engine/maxmin.h): a task progresses at rate x <= 1. A task that is the only one moving on its actor has rate 1
 * whatever it demands, so that alone it takes exactly alone_ps. A demand above 1 says that it disturbs others by more
 * than its share. A member that waits for its join moves nothing, but may hold a part of its actor's compute (`held`):
 * each leaves 1 - held of the capacity to those that move, and to one that moves alone. Transfers that cores carry hold
 * the largest `held` of them once, waiting or moving, and do not lack it themselves. The share that a slower member
 * leaves unused on the others' actors is not given away.
 *
 * Clock. It is int64 picoseconds. Events are ordered by (time, sequence), so results do not depend on the order of sums
 * and ties are stable. All events that are due at one instant are collected before any of them acts.
 */
#ifndef STEPSIM_SIM_ENGINE_H
#define STEPSIM_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sim/engine/maxmin.h"

#define ENGINE_LANES 11

struct task {
	uint32_t actor;
	uint8_t lane;
	bool holds;
	bool queued;
	int64_t alone_ps, issue_ps, tail_ps; /* tail_ps: part of alone_ps; 0 for a task with a join */
	int32_t join;                        /* -1: none; else below the number of tasks */
	uint32_t dep0, n_dep;                /* in deps[]: indices in tasks[] of earlier tasks of the same actor */
	const struct activity *use;          /* borrowed: tasks that are alike share one */
};

struct task_time {
	int64_t start_ps, move_ps, end_ps;
};

/* Runs all tasks. tasks: by actor, then in issue order. times: filled, one a task. Fails with ST_RUN when tasks
 * deadlock (collectives in different orders), naming the first task that never ended. Fails with ST_RUN, too, when
 * tasks break the rules above (a caller's bug), and when memory is short. */
enum status engine_run(const struct task *tasks, size_t n, const uint32_t *deps, uint32_t actors,
	struct task_time *times, struct error *e);

#endif
