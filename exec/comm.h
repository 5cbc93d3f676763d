/* A communicator: collectives of one group of ranks, started without waiting and polled until they are done.
 *
 * Every member starts the same calls in the same order, the next one when the one before is done. One thread at a time
 * uses a communicator. A call moves only while somebody polls it.
 */
#ifndef STEPSIM_EXEC_COMM_H
#define STEPSIM_EXEC_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "step/program.h"

/* elements: of the full buffer (all-gather: `out`; reduce-scatter: `in`; the others: both), a multiple of the group's
 * size where it is cut (collective_cuts). broadcast: from member 0, whose `in` alone is read. alltoall: part i of `in`
 * goes to member i, part i of `out` comes from it. sendrecv: `in` goes to the next member, `out` comes from the one
 * before. send, recv: a communicator of two; `in` of one member arrives in the other's `out`, and nothing goes the
 * other way: each direction has a communicator of its own, so that no message waits for one that it could pass. In
 * place: all-reduce and broadcast with in == out, all-gather and reduce-scatter with the own part inside the full
 * buffer at its place. Otherwise `in` and `out` do not overlap. */
struct comm_call {
	enum collective coll;
	enum reduce_op reduce;
	enum dtype dtype; /* fp32, tf32 (stored alike), int32; on GPUs bf16 and fp16 too */
	uint64_t elements;
	const void *in;
	void *out;
	void *queue; /* a CUDA stream: the call is enqueued there, starts when what stands before it is done, and test()
	                tells only of errors. NULL on the host */
};

struct comm_ops {
	enum status (*start)(void *ctx, const struct comm_call *call, struct error *e);
	enum status (*test)(void *ctx, bool *done, struct error *e);
	void (*destroy)(void *ctx);
};

struct comm {
	const struct comm_ops *ops;
	void *ctx;
	int64_t size, rank; /* members; this rank's place among them */
};

static inline enum status comm_start(const struct comm *c, const struct comm_call *call, struct error *e)
{
	return c->ops->start(c->ctx, call, e);
}

static inline enum status comm_test(const struct comm *c, bool *done, struct error *e)
{
	return c->ops->test(c->ctx, done, e);
}

static inline void comm_destroy(struct comm *c)
{
	if (c->ops)
		c->ops->destroy(c->ctx);
	c->ops = NULL;
}

struct session;

/* The communicator over MPI of the groups whose members are `stride` ranks apart, `size` of them: rank r is member (r /
 * stride) % size of the group that begins at r - member x stride. Collective over all ranks of the session, at set-up
 * only. At the end of the job's ranks a group may have fewer members (see comm.size). */
enum status comm_create_mpi(struct session *s, int64_t size, int64_t stride, struct comm *out, struct error *e);

/* The same of any groups: ranks of one colour form a communicator, in the order of their keys; colour -1: no part,
 * out->ops is NULL. Collective over all ranks of the session, at set-up only. */
enum status comm_split_mpi(struct session *s, int64_t colour, int64_t key, struct comm *out, struct error *e);

#endif
