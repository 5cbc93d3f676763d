/* Verification: a step in which compute ops are skipped and every collective carries small whole numbers whose sum is
 * exact in any order, so that each element of each result on each rank has one right value, bit for bit, and what a
 * message brings is what its sender put there. The collectives go through the same threads, communicators and buffers
 * as in a timed step. Contents of the device are lost.
 */
#ifndef STEPSIM_EXEC_VERIFY_H
#define STEPSIM_EXEC_VERIFY_H

#include "exec/device.h"

/* ST_RUN with this rank's first wrong element: "verification failed: all_reduce bucket 3 (op 512) rank 1 element 77:
 * got 5, expected 6". The step always runs to its end. Right is what the groups of `mesh` give, with `rank` this
 * process's place in it: members are told apart by their ranks, so that a group of the right size with wrong members is
 * found. */
enum status verify_collectives(const struct mesh *mesh, const struct device_job *job, const struct device *d,
	int64_t rank, struct error *e);

/* Returns the value that rank `rank` writes at `element` of the full buffer of op `op`. In an all-gather a rank writes
 * its own part alone. */
int32_t verify_value(uint32_t op, int64_t rank, uint64_t element);

#endif
