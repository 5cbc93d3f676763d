/* The double of NCCL under NCCL's own calls that the room has no use for yet, for test_nccl_double.sh.
 *
 *   mpirun -np N test_nccl_calls
 *
 * Exit code 0, or 1 with a line for each thing that is wrong.
 */
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "exec/exec.h"
#include "tests/cuda/nccl_rig.h"

static void expect(ncclResult_t got_code, ncclResult_t code, const char *what)
{
	checked++;
	if (got_code != code)
		complain("%s: %s (%s) instead of %s", what, ncclGetErrorString(got_code), ncclGetLastError(NULL),
			ncclGetErrorString(code));
}

static void expect_value(const void *at, size_t i, double value, const char *what)
{
	checked++;
	if (get(DT_FP32, at, i) != value)
		complain("%s: %g instead of %g", what, get(DT_FP32, at, i), value);
}

static void try_blocking(ncclComm_t comm, const struct session_info *info, struct rig *rig)
{
	int n = (int)info->ranks, r = (int)info->rank;
	for (size_t i = 0; i < 1000; i++)
		put(DT_FP32, rig->in, i, (double)(r + 1));
	expect(ncclBroadcast(rig->in, rig->out, 1000, ncclFloat32, n - 1, comm, rig->stream), ncclSuccess, "broadcast");
	cudaStreamSynchronize(rig->stream);
	expect_value(rig->out, 999, n, "broadcast");
	ncclGroupStart();
	expect(ncclSend(rig->in, 1000, ncclFloat32, (r + 1) % n, comm, rig->stream), ncclSuccess, "send");
	expect(ncclRecv(rig->out, 1000, ncclFloat32, (r + n - 1) % n, comm, rig->stream), ncclSuccess, "receive");
	expect(ncclGroupEnd(), ncclSuccess, "a group");
	cudaStreamSynchronize(rig->stream);
	expect_value(rig->out, 999, (r + n - 1) % n + 1, "receive");
	expect(ncclAllReduce(rig->in, rig->out, 1, ncclFloat32, ncclAvg, comm, rig->stream), ncclSuccess, "average");
	cudaStreamSynchronize(rig->stream);
	expect_value(rig->out, 0, (n + 1) / 2.0, "average");
	expect(ncclAllReduce(rig->in, rig->in + 4, 2, ncclFloat32, ncclSum, comm, rig->stream), ncclInvalidArgument,
		"buffers that overlap");
	expect(ncclAllReduce(NULL, rig->out, 2, ncclFloat32, ncclSum, comm, rig->stream), ncclInvalidArgument,
		"no buffer");
	expect(ncclAllReduce(rig->in, rig->out, 2, ncclFloat8e4m3, ncclSum, comm, rig->stream), ncclInvalidArgument,
		"a sum of fp8");
	expect(ncclBroadcast(rig->in, rig->out, 2, ncclFloat32, n, comm, rig->stream), ncclInvalidArgument,
		"a root that is none");
	expect(ncclGroupEnd(), ncclInvalidUsage, "the end of no group");
}

/* A second call while the first is not on its stream yet. */
static void try_nonblocking(ncclComm_t comm, struct rig *rig)
{
	ncclResult_t state;
	expect(ncclAllReduce(rig->in, rig->out, 1, ncclFloat32, ncclSum, comm, rig->stream), ncclInProgress,
		"a non-blocking call");
	expect(ncclAllReduce(rig->in, rig->out, 1, ncclFloat32, ncclSum, comm, rig->stream), ncclInvalidArgument,
		"a call in between");
	expect(ncclCommGetAsyncError(comm, &state), ncclSuccess, "polling");
	expect(state, ncclInProgress, "after the first poll");
	expect(ncclCommGetAsyncError(comm, &state), ncclSuccess, "polling");
	expect(state, ncclSuccess, "after the second poll");
	cudaStreamSynchronize(rig->stream);
}

/* A split answers before it is done: until then the parent takes no other, and there is no child. */
static void try_nonblocking_split(ncclComm_t comm)
{
	const struct timespec nap = {0, 1000000};
	ncclComm_t child = NULL, second = NULL;
	ncclResult_t state = ncclSuccess;
	expect(ncclCommSplit(comm, 0, 0, &child, NULL), ncclSuccess, "a split");
	expect(child ? ncclInternalError : ncclSuccess, ncclSuccess, "a child before its time");
	expect(ncclCommSplit(comm, 0, 0, &second, NULL), ncclInvalidArgument, "a split in between");
	expect(ncclCommGetAsyncError(comm, &state), ncclSuccess, "polling");
	expect(state, ncclInProgress, "the parent after a split");
	while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress)
		nanosleep(&nap, NULL);
	expect(state, ncclSuccess, "a split's end");
	expect(child ? ncclSuccess : ncclInternalError, ncclSuccess, "a split's child");
	if (child)
		expect(ncclCommDestroy(child), ncclSuccess, "the end of a child");
}

static void try_calls(const struct session_info *info, struct rig *rig)
{
	for (int blocking = 0; blocking < 2; blocking++) {
		ncclUniqueId id;
		ncclComm_t comm;
		ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
		ncclResult_t state = ncclSuccess;
		const struct timespec nap = {0, 1000000};
		config.blocking = blocking;
		expect(ncclGetUniqueId(&id), ncclSuccess, "an id");
		if (info->ranks > 1)
			MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
		expect(ncclCommInitRankConfig(&comm, (int)info->ranks, id, (int)info->rank, &config),
			blocking || info->ranks == 1 ? ncclSuccess : ncclInProgress, "set-up");
		while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress)
			nanosleep(&nap, NULL);
		expect(state, ncclSuccess, "set-up");
		if (blocking)
			try_blocking(comm, info, rig);
		else {
			try_nonblocking(comm, rig);
			try_nonblocking_split(comm);
		}
		expect(ncclCommDestroy(comm), ncclSuccess, "the end");
	}
}

int main(void)
{
	struct error e = {ST_OK, ""};
	struct session *s = NULL;
	struct rig rig = {0};
	alarm(120);
	enum status st = session_open(60, &s, &e);
	if (!st)
		own_rank = session_info(s)->rank;
	if (!st && !(st = CUDA_CHECK(cudaSetDevice((int)own_rank % 8), &e)) && !(st = rig_open(&rig, &e)))
		try_calls(session_info(s), &rig);
	if (st) {
		fprintf(stderr, "%s\n", e.text);
		_exit(1); /* others may wait for this rank */
	}
	return rig_end(&rig, s);
}
