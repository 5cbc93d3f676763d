/* The ops of the host's threads (LOAD, PAUSE, SYNC), executed: a data loader with workers of its own that really
 * prepares batches and takes its time over it, and waits that last as long as the stack's.
 *
 * A batch is prepared by copying it out of the data and sleeping until load_s have passed. Workers keep up to workers x
 * prefetch batches prepared or under way, in the order of the step program's LOAD ops, over the ends of steps. They
 * start with the first load.
 */
#ifndef STEPSIM_EXEC_HOST_WORK_H
#define STEPSIM_EXEC_HOST_WORK_H

#include "step/program.h"

struct host_times {
	double load_s, micro_batch_s, step_s; /* of one batch by one worker; of the stack's pauses */
	int64_t workers, prefetch, micro_batches;
};
struct host_times host_times_of(const struct config *c);

struct host_work;
enum status host_work_open(const struct host_times *t, struct host_work **out, struct error *e);
/* Runs an op to its end, on the caller's thread. data, batch: a LOAD's arguments. One caller at a time. ST_RUN: no
 * thread or memory for a worker. */
enum status host_work_run(struct host_work *w, const struct op *op, const void *data, void *batch, struct error *e);
/* Forgets what is prepared: before the data changes. */
void host_work_reset(struct host_work *w); /* NULL-safe */
void host_work_close(struct host_work *w); /* NULL-safe */

#endif
