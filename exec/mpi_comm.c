#include "base/array.h"
#include "exec/comm.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "exec/mpi_check.h"
#include "exec/session.h"

struct mpi_comm {
	MPI_Comm comm;
	int size, rank;
	MPI_Request request, sent; /* sent: sendrecv's other half */
	void *staged;              /* a result's first place, where it cannot go straight to `out` */
	size_t staged_B;
	void *out; /* NULL: the result is in its place already */
	size_t out_B;
};

static MPI_Datatype mpi_type(enum dtype d)
{
	return d == DT_FP32 || d == DT_TF32 ? MPI_FLOAT : d == DT_INT32 ? MPI_INT32_T : MPI_DATATYPE_NULL;
}

static MPI_Op mpi_op(enum reduce_op r)
{
	static_assert(RED_COUNT == 2, "every reduction");
	return r == RED_MAX ? MPI_MAX : MPI_SUM;
}

/* MPI allows no result inside the input of a reduce-scatter but at its beginning: elsewhere it is staged. */
static enum status stage(struct mpi_comm *c, void *out, size_t bytes, struct error *e)
{
	if (c->staged_B < bytes) {
		free(c->staged);
		c->staged = malloc(bytes);
		c->staged_B = c->staged ? bytes : 0;
		if (!c->staged)
			return error_nomem(e, "the staging buffer of a collective");
	}
	c->out = out;
	c->out_B = bytes;
	return ST_OK;
}

static enum status start_all_reduce(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type,
	struct error *e)
{
	const void *in = call->in == call->out ? MPI_IN_PLACE : call->in;
	return MPI_CHECK(MPI_Iallreduce(in, call->out, (int)call->elements, type, mpi_op(call->reduce), c->comm,
				 &c->request),
		e);
}

static enum status start_all_gather(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type,
	struct error *e)
{
	int part = (int)(call->elements / (uint64_t)c->size);
	const char *own = (char *)call->out + (size_t)part * (size_t)c->rank * 4;
	const void *in = call->in == own ? MPI_IN_PLACE : call->in;
	return MPI_CHECK(MPI_Iallgather(in, part, type, call->out, part, type, c->comm, &c->request), e);
}

static enum status start_reduce_scatter(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type,
	struct error *e)
{
	int part = (int)(call->elements / (uint64_t)c->size);
	const char *own = (const char *)call->in + (size_t)part * (size_t)c->rank * 4;
	enum status st = call->out == own ? stage(c, call->out, (size_t)part * 4, e) : ST_OK;
	if (st)
		return st;
	return MPI_CHECK(MPI_Ireduce_scatter_block(call->in, c->out ? c->staged : call->out, part, type,
				 mpi_op(call->reduce), c->comm, &c->request),
		e);
}

static enum status start_broadcast(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type, struct error *e)
{
	if (c->rank == 0 && call->in != call->out)
		memcpy(call->out, call->in, (size_t)call->elements * 4);
	return MPI_CHECK(MPI_Ibcast(call->out, (int)call->elements, type, 0, c->comm, &c->request), e);
}

static enum status start_alltoall(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type, struct error *e)
{
	int part = (int)(call->elements / (uint64_t)c->size);
	return MPI_CHECK(MPI_Ialltoall(call->in, part, type, call->out, part, type, c->comm, &c->request), e);
}

static enum status start_sendrecv(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type, struct error *e)
{
	int n = (int)call->elements, next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
	enum status st = MPI_CHECK(MPI_Irecv(call->out, n, type, before, 0, c->comm, &c->request), e);
	return st ? st : MPI_CHECK(MPI_Isend(call->in, n, type, next, 0, c->comm, &c->sent), e);
}

static enum status start_send(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type, struct error *e)
{
	return MPI_CHECK(MPI_Isend(call->in, (int)call->elements, type, 1 - c->rank, 0, c->comm, &c->request), e);
}

static enum status start_recv(struct mpi_comm *c, const struct comm_call *call, MPI_Datatype type, struct error *e)
{
	return MPI_CHECK(MPI_Irecv(call->out, (int)call->elements, type, 1 - c->rank, 0, c->comm, &c->request), e);
}

static enum status mpi_start(void *ctx, const struct comm_call *call, struct error *e)
{
	typedef enum status start_fn(struct mpi_comm *, const struct comm_call *, MPI_Datatype, struct error *);
	static start_fn *const start[] = {[COLL_ALL_REDUCE] = start_all_reduce,
		[COLL_ALL_GATHER] = start_all_gather,
		[COLL_REDUCE_SCATTER] = start_reduce_scatter,
		[COLL_BROADCAST] = start_broadcast,
		[COLL_ALLTOALL] = start_alltoall,
		[COLL_SENDRECV] = start_sendrecv,
		[COLL_SEND] = start_send,
		[COLL_RECV] = start_recv};
	static_assert(COUNT(start) == COLL_COUNT, "a row for each collective");
	struct mpi_comm *c = ctx;
	MPI_Datatype type = mpi_type(call->dtype);
	if (type == MPI_DATATYPE_NULL)
		return error_set(e, ST_RUN, "%s of %s: the host backend communicates fp32 and int32 only",
			collective_name(call->coll), dtype_name(call->dtype));
	if (call->elements > INT_MAX)
		return error_set(e, ST_RUN, "%s of %llu elements: one MPI call carries at most %d",
			collective_name(call->coll), (unsigned long long)call->elements, INT_MAX);
	if (collective_cuts(call->coll) && call->elements % (uint64_t)c->size)
		return error_set(e, ST_RUN, "%s of %llu elements does not divide among %d ranks",
			collective_name(call->coll), (unsigned long long)call->elements, c->size);
	c->out = NULL;
	return start[call->coll](c, call, type, e);
}

static enum status mpi_test(void *ctx, bool *done, struct error *e)
{
	struct mpi_comm *c = ctx;
	int flag = 0;
	enum status st = MPI_CHECK(MPI_Test(&c->request, &flag, MPI_STATUS_IGNORE), e);
	if (!st && flag && c->sent != MPI_REQUEST_NULL)
		st = MPI_CHECK(MPI_Test(&c->sent, &flag, MPI_STATUS_IGNORE), e);
	*done = flag;
	if (!st && flag && c->out) {
		memcpy(c->out, c->staged, c->out_B);
		c->out = NULL;
	}
	return st;
}

static void mpi_destroy(void *ctx)
{
	struct mpi_comm *c = ctx;
	free(c->staged);
	if (c->comm != MPI_COMM_NULL)
		MPI_Comm_free(&c->comm);
	free(c);
}

enum status comm_create_mpi(struct session *s, int64_t size, int64_t stride, struct comm *out, struct error *e)
{
	int64_t member = s->info.rank / stride % size;
	return comm_split_mpi(s, s->info.rank - member * stride, member, out, e);
}

enum status comm_split_mpi(struct session *s, int64_t colour, int64_t key, struct comm *out, struct error *e)
{
	static const struct comm_ops ops = {mpi_start, mpi_test, mpi_destroy};
	struct mpi_comm *c = calloc(1, sizeof *c);
	if (!c)
		return error_nomem(e, "a communicator");
	c->comm = MPI_COMM_NULL;
	c->request = c->sent = MPI_REQUEST_NULL;
	*out = (struct comm){0};
	enum status st = MPI_CHECK(MPI_Comm_split(s->world, colour < 0 ? MPI_UNDEFINED : (int)colour, (int)key,
					   &c->comm),
		e);
	if (st || c->comm == MPI_COMM_NULL) {
		mpi_destroy(c);
		return st;
	}
	MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
	MPI_Comm_size(c->comm, &c->size);
	MPI_Comm_rank(c->comm, &c->rank);
	*out = (struct comm){&ops, c, c->size, c->rank};
	return ST_OK;
}
