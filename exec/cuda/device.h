/* The CUDA device: exec/device.h's on one GPU. Private to exec/cuda/.
 *
 * One thread issues the ops in program order, each to its lane's stream. An op that depends on another lane's makes its
 * stream wait for that op's event; nothing waits on the host before the step's end, where the thread polls until all
 * streams have drained, tells the watchdog how far they are, and asks the communicators for errors.
 */
#ifndef STEPSIM_EXEC_CUDA_DEVICE_H
#define STEPSIM_EXEC_CUDA_DEVICE_H

#include <pthread.h>

#include "exec/cuda/attention.h"
#include "exec/cuda/check.h"
#include "exec/cuda/gemm.h"
#include "exec/cuda/backend.h"

/* Values that the host and the device exchange in every step. One copy is in pinned memory, one on the device. */
struct notes {
	int64_t step;
	int64_t wrong; /* place of the first wrong element, in verification */
	int32_t flag;
	char padding[236];
};

/* One lane: its stream, its ops, and those of them whose ends the host looks at (collectives, copies, what other lanes
 * wait for, and some between). */
struct cuda_lane {
	cudaStream_t stream;
	uint32_t *ops, n;
	uint32_t *marks, n_marks; /* places in `ops` */
	uint32_t passed;          /* marks that have ended in this step */
};

struct cuda_device {
	struct cuda_options options;
	const struct device_job *job;
	int sms;

	char *memory, *host_memory; /* the two arenas; the second is pinned, */
	bool pageable;              /* unless the role's copies are from pageable memory */
	struct cuda_host_lanes *host_lanes;
	char *scratch, *stage; /* stage: pinned, between the caller's memory and the device's */
	size_t scratch_B, staged_B;
	struct notes *notes, *device_notes;
	struct cuda_arg (*args)[OP_MAX_ARGS]; /* by op */
	struct gemm_plans *gemm;              /* NULL where the role has none */
	struct attention_plans *attention;
	struct error error; /* of a write, read or clear, which cannot say so themselves: told by the next step */

	struct cuda_lane lane[LANE_COUNT];
	uint32_t issued; /* ops, in this step */
	/* by op; NULL: none */
	cudaEvent_t *mark;   /* without times; polled, and awaited by other lanes */
	cudaEvent_t *joined; /* in a capture, awaited by other lanes: an event of a graph's inside cannot be polled */
	cudaEvent_t *begin, *end; /* with times; made when stamps are wanted first. No `begin` where the end of the op
	                             before on the lane says the same */
	uint32_t *before;         /* the op before on the lane + 1; 0: none */
	cudaEvent_t anchor, lane_event[LANE_COUNT];
	bool timed; /* begin and end exist */

	bool warm; /* a whole step has run: libraries have loaded what they load lazily, which a capture does not allow
	            */
	cudaGraphExec_t graph[2]; /* without and with stamps */
	bool in_graph;            /* the step under way is a graph's launch */
	bool profiled;            /* a profiler listens to NVTX */
};

static inline const struct op *cuda_op_at(const struct cuda_device *d, uint32_t op)
{
	return &d->job->role->ops.at[op];
}

enum status cuda_device_create(const struct cuda_options *o, struct device *out, struct error *e);

/* Writes that are still under way. */
enum status cuda_flush(struct cuda_device *d, struct error *e);

/* issue.c */
enum status cuda_issue_prepare(struct cuda_device *d, struct error *e); /* lanes, streams, events */
void cuda_issue_free(struct cuda_device *d);
enum status cuda_device_step(struct cuda_device *d, const struct device_step *s, struct error *e);
enum status cuda_issue_ops(struct cuda_device *d, const struct device_step *s, bool capturing, struct error *e);
enum status cuda_collective(struct cuda_device *d, uint32_t op, struct error *e); /* enqueues it */
/* verify_step.c: a step of collectives alone, each between its hooks. */
enum status cuda_verify_step(struct cuda_device *d, const struct step_hooks *hooks, struct error *e);

/* watch.c: the end of a step, or of what was issued so far, with progress for the watchdog. */
void cuda_watch(struct cuda_device *d);
void cuda_tell(struct cuda_device *d); /* the watchdog, where each lane is */
bool cuda_op_waits(const struct cuda_device *d,
	uint32_t op); /* an op that it names as a dependency has not ended, by the lanes' `passed` */
enum status cuda_ask_communicators(struct cuda_device *d, struct error *e);
enum status cuda_wait(struct cuda_device *d, struct error *e);
/* A communicator failed, or the device did: `why` becomes the error, and goes to job->broken where other ranks wait for
 * this one. */
enum status cuda_broken(struct cuda_device *d, const struct error *why, struct error *e);

/* host_lanes.c: the ops of the host's lanes. */
enum status cuda_host_lanes_open(struct cuda_device *d, struct error *e);
void cuda_host_lanes_close(struct cuda_device *d);
void cuda_host_lanes_reset(struct cuda_device *d); /* before the data changes */
void cuda_host_lanes_begin(struct cuda_device *d, const struct device_step *s);
void cuda_host_lanes_issued(struct cuda_device *d, uint32_t ops); /* so many ops are on their streams */
enum status cuda_host_lanes_run(struct cuda_device *d, const struct device_step *s, uint32_t op,
	struct error *e);                                      /* of LANE_HOST, here and now */
void cuda_host_lanes_wait(struct cuda_device *d, uint32_t op); /* the issuing thread, for an op of the host's */
bool cuda_host_lanes_ended(const struct cuda_device *d, uint32_t op);
enum status cuda_host_lanes_end(struct cuda_device *d, bool broken,
	struct error *e); /* all loads have ended; broken: what they wait for will not come */

/* stamps.c */
enum status cuda_stamps_prepare(struct cuda_device *d, struct error *e);
enum status cuda_stamps_anchor(struct cuda_device *d, int64_t *at_ns, struct error *e);
enum status cuda_stamps_read(const struct cuda_device *d, int64_t anchor_ns, struct stamp *out, struct error *e);

/* graph.c. prepare: captures the step and brings it to the device, so that its first launch takes no longer than the
 * others. Collective where the step has collectives; nothing may be under way. */
enum status cuda_graph_prepare(struct cuda_device *d, const struct device_step *s, struct error *e);
enum status cuda_graph_launch(struct cuda_device *d, const struct device_step *s, struct error *e);

#endif
