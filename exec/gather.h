/* Collecting what the ranks stamped into timelines on rank 0. */
#ifndef STEPSIM_EXEC_GATHER_H
#define STEPSIM_EXEC_GATHER_H

#include "exec/device.h"
#include "exec/session.h"
#include "step/timeline.h"

/* One rank's record of one step. */
struct record {
	int64_t begin_ns;     /* this rank left the barrier */
	struct stamp *stamps; /* by op */
};

/* Collective. On rank 0 *out is the step's timeline: an actor a rank, times from the moment at which the first rank of
 * the same host began (ranks of a host share a clock; the barrier aligns hosts). A collective moves from the last
 * member's arrival on; a message at both ends until it has arrived. On other ranks *out is empty. The caller frees it.
 */
enum status gather_timeline(struct session *s, const struct program *p, const struct record *mine, struct timeline *out,
	struct error *e);

#endif
