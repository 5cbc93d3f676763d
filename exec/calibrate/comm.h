/* The inside of timing the communicator (comm.c), shared among its files: each measures one kind of thing through the
 * very lanes, and on the host the progress thread, that a run uses. Times are the slowest rank's. All are collective.
 */
#ifndef STEPSIM_EXEC_CALIBRATE_COMM_H
#define STEPSIM_EXEC_CALIBRATE_COMM_H

#include "exec/calibrate/calibrate.h"
#include "exec/calibrate/probe.h"

#define CALIBRATION_STEPS_MAX 15 /* timed; one more before them as the warm-up */
#define CALIBRATION_STEPS_MIN 2  /* however slow the machine is */

/* The collectives that are timed. */
#define CALIBRATION_COLLECTIVES 4
extern const enum collective calibration_collectives[CALIBRATION_COLLECTIVES];

/* Whether to take another step after `done` of them: rank 0's clock decides for all. */
enum status calibration_another_step(struct session *s, int done, double begin_s, double budget_s, bool *go_on,
	struct error *e);

/* Returns whether groups of `size` ranks, `stride` apart, lie inside hosts of as many ranks as this one. */
bool calibration_inside(const struct session *s, int64_t size, int64_t stride);

/* Adds collective `coll` over groups of `size` ranks on `bytes`, cut to whole elements; *x: what it moves then. The
 * probe's first two buffers are to hold as much. */
bool calibration_add_collective(struct probe *probe, enum collective coll, int64_t size, uint64_t bytes, double *x);

/* Each sets values and curves of rank 0's profile for the unit's groups (collectives.c, between.c). */
enum status calibration_collectives_inside(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e);
enum status calibration_collectives_between(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e);
/* What a collective and a product cost each other: both rates (overlap.c). */
enum status calibration_overlap(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e);
/* Between hosts: what a byte that moves, and what waiting for others, take of compute (overlap.c). */
enum status calibration_overlap_between(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e);
/* Messages between ranks that are `stride` apart, all pairs at once (pairs.c). */
enum status calibration_messages(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e);

#endif
