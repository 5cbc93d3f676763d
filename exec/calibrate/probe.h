/* Roles made by hand, on either device of a session: the host's cores, or the session's GPU. What calibration times ops
 * and collectives with, through the very device, lanes and communicators that a run uses.
 *
 * Zero a struct probe, set `session`; add buffers and ops (false: out of memory, to be passed on as !built); load,
 * step, close. Argument a of an op is all of the buffer args[a] (-1: absent); ops depend on nothing but their lane.
 */
#ifndef STEPSIM_EXEC_PROBE_H
#define STEPSIM_EXEC_PROBE_H

#include "exec/device.h"
#include "exec/session.h"

struct probe {
	struct session *session;
	bool graph; /* GPUs: the step is captured at its second run and replayed, so that no op waits for the host's
	               launching */
	bool span;  /* GPUs: only the first op's begin and the last one's end are stamped; no event lies between them */
	bool alone; /* other ranks of the host sleep meanwhile: this one need not make room for them while it waits */
	struct role role;
	struct layout layout;
	struct device_job job;
	struct device device;
	struct comm comm;
	struct stamp *stamps; /* by op, of the last step */
};

/* The next buffer; its index is the number of those before. COMP_HOST lies in host memory (pinned on GPUs). */
bool probe_buffer(struct probe *probe, enum component component, enum dtype dtype, uint64_t bytes);
/* One buffer for each argument of the op that is not in `absent` (a bit each), in its format; args[a] is its index. */
bool probe_arguments(struct probe *probe, const struct op *op, unsigned absent, int32_t args[OP_MAX_ARGS]);
/* A copy of the op at the end of its lane. */
bool probe_op(struct probe *probe, const struct op *op, const int32_t args[OP_MAX_ARGS]);
/* On LANE_COMM, over groups of as many ranks as probe_load says; `bytes` of the full buffer. */
bool probe_collective(struct probe *probe, enum collective coll, enum dtype dtype, uint64_t bytes, int32_t in,
	int32_t out);

/* Loads the role into a device, with a communicator over groups of `size` ranks, `stride` apart (size 1: none).
 * Collective; all ranks agree. Floating-point buffers hold numbers, not zeros, where ops only read (products of zeros
 * take less power and run faster); on the host everywhere. */
enum status probe_load(struct probe *probe, int64_t size, int64_t stride, bool built, struct error *e);

/* One step of the role, begun by all ranks together. `stamped`: times in probe->stamps. */
enum status probe_step(struct probe *probe, bool stamped, struct error *e);

void probe_close(struct probe *probe); /* also of one that was never loaded */

#endif
