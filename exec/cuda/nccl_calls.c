#include "exec/cuda/nccl_calls.h"

#include <assert.h>

#include "base/array.h"

/* Came after the oldest NCCL that loads (exec/cuda_open.c): NULL where the library at hand is older, whatever the
 * header was. */
extern ncclResult_t ncclAlltoAll(const void *in, void *out, size_t n, ncclDataType_t type, ncclComm_t comm,
	cudaStream_t queue) __attribute__((weak)); /* 2.28 */

bool nccl_has_alltoall(void) { return ncclAlltoAll != NULL; }

struct nccl_format {
	ncclDataType_t type;
	bool known;
};

static const struct nccl_format formats[DT_COUNT] = {
	[DT_FP32] = {ncclFloat32, true},
	[DT_TF32] = {ncclFloat32, true},
	[DT_FP16] = {ncclFloat16, true},
	[DT_BF16] = {ncclBfloat16, true},
	[DT_INT32] = {ncclInt32, true},
};

static ncclResult_t call_all_reduce(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	(void)part;
	return ncclAllReduce(call->in, call->out, call->elements, type, op, comm, call->queue);
}

static ncclResult_t call_all_gather(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	(void)op;
	return ncclAllGather(call->in, call->out, part, type, comm, call->queue);
}

static ncclResult_t call_reduce_scatter(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	return ncclReduceScatter(call->in, call->out, part, type, op, comm, call->queue);
}

static ncclResult_t call_broadcast(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	(void)part, (void)op;
	return ncclBroadcast(call->in, call->out, call->elements, type, 0, comm, call->queue);
}

/* Both halves of an exchange start together; the group ends in any case. */
static ncclResult_t exchange(const void *in, int to, void *out, int from, size_t n, ncclDataType_t type,
	ncclComm_t comm, void *queue)
{
	ncclResult_t code = ncclSend(in, n, type, to, comm, queue);
	return code == ncclSuccess || code == ncclInProgress ? ncclRecv(out, n, type, from, comm, queue) : code;
}

static ncclResult_t end_group(ncclResult_t code)
{
	ncclResult_t end = ncclGroupEnd();
	return code == ncclSuccess || code == ncclInProgress ? end : code;
}

static ncclResult_t call_alltoall(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	(void)op;
	if (ncclAlltoAll)
		return ncclAlltoAll(call->in, call->out, part, type, comm, call->queue);
	size_t part_B = part * (type == ncclFloat16 || type == ncclBfloat16 ? 2 : 4);
	int size = (int)(part ? call->elements / part : 0);
	ncclResult_t code = ncclGroupStart();
	if (code != ncclSuccess)
		return code;
	for (int i = 0; i < size && (code == ncclSuccess || code == ncclInProgress); i++)
		code = exchange((const char *)call->in + part_B * (size_t)i, i, (char *)call->out + part_B * (size_t)i,
			i, part, type, comm, call->queue);
	return end_group(code);
}

static ncclResult_t call_sendrecv(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	(void)part, (void)op;
	int size, rank;
	ncclResult_t code;
	if ((code = ncclCommCount(comm, &size)) != ncclSuccess ||
		(code = ncclCommUserRank(comm, &rank)) != ncclSuccess || (code = ncclGroupStart()) != ncclSuccess)
		return code;
	return end_group(exchange(call->in, (rank + 1) % size, call->out, (rank + size - 1) % size, call->elements,
		type, comm, call->queue));
}

/* One way alone, in a communicator of two that has one stream at either end: in order, and behind no other lane's call.
 */
static ncclResult_t call_one_way(const struct comm_call *call, size_t part, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm)
{
	(void)part, (void)op;
	int rank;
	ncclResult_t code = ncclCommUserRank(comm, &rank);
	if (code != ncclSuccess)
		return code;
	return call->coll == COLL_SEND ? ncclSend(call->in, call->elements, type, 1 - rank, comm, call->queue)
	                               : ncclRecv(call->out, call->elements, type, 1 - rank, comm, call->queue);
}

ncclResult_t nccl_issue(const struct comm_call *call, ncclComm_t comm, int size)
{
	typedef ncclResult_t call_fn(const struct comm_call *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t);
	static call_fn *const calls[] = {[COLL_ALL_REDUCE] = call_all_reduce,
		[COLL_ALL_GATHER] = call_all_gather,
		[COLL_REDUCE_SCATTER] = call_reduce_scatter,
		[COLL_BROADCAST] = call_broadcast,
		[COLL_ALLTOALL] = call_alltoall,
		[COLL_SENDRECV] = call_sendrecv,
		[COLL_SEND] = call_one_way,
		[COLL_RECV] = call_one_way};
	static_assert(COUNT(calls) == COLL_COUNT, "a row for each collective");
	static const ncclRedOp_t ops[] = {[RED_SUM] = ncclSum, [RED_MAX] = ncclMax};
	static_assert(COUNT(ops) == RED_COUNT, "every reduction");
	return calls[call->coll](call, (size_t)(call->elements / (uint64_t)size), formats[call->dtype].type,
		ops[call->reduce], comm);
}

enum status nccl_call_check(const struct comm_call *call, int size, struct error *e)
{
	if (!formats[call->dtype].known)
		return error_set(e, ST_RUN, "%s of %s: NCCL is used for fp32, bf16, fp16 and int32 only",
			collective_name(call->coll), dtype_name(call->dtype));
	if (collective_cuts(call->coll) && call->elements % (uint64_t)size)
		return error_set(e, ST_RUN, "%s of %llu elements does not divide among %d ranks",
			collective_name(call->coll), (unsigned long long)call->elements, size);
	if (!call->queue)
		return error_set(e, ST_RUN, "%s: NCCL's communicators enqueue on a stream, and none was given",
			collective_name(call->coll));
	return ST_OK;
}
