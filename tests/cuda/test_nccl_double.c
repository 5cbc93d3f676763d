/* The room's communicators on the doubles of NCCL and cudart, for test_nccl_double.sh.
 *
 *   mpirun -np N test_nccl_double MODE
 *
 * - all: every collective, format and place against sums by hand, over NCCL, its groups, and through the host.
 * - calls: ten all-reduces, for faults. The first line of standard error is what went wrong.
 * - ahead, wide: receives posted before anything is sent, with few and with many thread blocks.
 * - open: set-up alone. "strangers": each rank has an id of its own; "same": all ranks are on device 0; "hosts": the
 *   same, each with an NCCL_HOSTID.
 *
 * Exit code 0, or 1 with a line for each thing that is wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "exec/cuda/check.h"
#include "exec/cuda/nccl_comm.h"
#include "exec/cuda/staged_comm.h"
#include "exec/exec.h"
#include "tests/cuda/nccl_rig.h"

#define GUARD 16
#define LIMIT_S 20.0

/* Returns rank r's value at place i: small whole numbers, whose sums every format holds. */
static double brought(int64_t r, size_t i) { return (double)((r + 1) * ((int64_t)(i % 7) - 3)); }

static double reduced(enum reduce_op red, int64_t n, size_t i)
{
	double x = brought(0, i);
	for (int64_t r = 1; r < n; r++) {
		double y = brought(r, i);
		x = red == RED_SUM ? x + y : y > x ? y : x;
	}
	return x;
}

/* ---- one call ---- */

/* The stream's end, as a device waits for it: polling, and asking the communicator. */
static enum status drain(const struct comm *c, cudaStream_t stream, double limit_s, struct error *e)
{
	const struct timespec nap = {0, 20000};
	double end_s = clock_s() + limit_s;
	bool done;
	while (cudaStreamQuery(stream) == cudaErrorNotReady) {
		if (comm_test(c, &done, e))
			return ST_RUN;
		if (clock_s() > end_s)
			return error_set(e, ST_RUN, "a stream did not end within %g s", limit_s);
		nanosleep(&nap, NULL);
	}
	return comm_test(c, &done, e);
}

struct form {
	enum collective coll;
	enum reduce_op red;
	enum dtype dtype;
	bool in_place;
	size_t part;
};

static size_t in_elements(const struct form *f, size_t n) { return f->coll == COLL_ALL_GATHER ? f->part : f->part * n; }

static size_t out_elements(const struct form *f, size_t n)
{
	return f->coll == COLL_REDUCE_SCATTER ? f->part : f->part * n;
}

static double expected(const struct form *f, const struct comm *c, size_t i)
{
	if (f->coll == COLL_BROADCAST)
		return brought(0, i);
	if (f->coll == COLL_ALLTOALL)
		return brought((int64_t)(i / f->part), (size_t)c->rank * f->part + i % f->part);
	if (f->coll == COLL_SENDRECV)
		return brought((c->rank + c->size - 1) % c->size, i);
	if (f->coll == COLL_ALL_GATHER)
		return brought((int64_t)(i / f->part), i % f->part);
	return reduced(f->red, c->size, f->coll == COLL_REDUCE_SCATTER ? (size_t)c->rank * f->part + i : i);
}

static void try_form(const struct comm *c, struct rig *rig, const struct form *f, const char *where)
{
	size_t n = (size_t)c->size, each = size_of(f->dtype), own = (size_t)c->rank * f->part * each;
	char *in = rig->in, *out = rig->out;
	struct error e = {ST_OK, ""};
	memset(rig->in, 0x5a, rig->bytes);
	memset(rig->out, 0x5a, rig->bytes);
	if (f->in_place && f->coll == COLL_ALL_GATHER)
		in = out + own;
	else if (f->in_place)
		out = f->coll == COLL_REDUCE_SCATTER ? in + own : in;
	for (size_t i = 0; i < in_elements(f, n); i++)
		put(f->dtype, in, i, brought(c->rank, i));
	char *end = f->in_place && f->coll != COLL_ALL_GATHER ? in + in_elements(f, n) * each
	                                                      : out + out_elements(f, n) * each;
	struct comm_call call = {f->coll, f->red, f->dtype, f->part * n, in, out, rig->stream};
	if (comm_start(c, &call, &e) || drain(c, rig->stream, LIMIT_S, &e)) {
		complain("%s: %s", where, e.text);
		return;
	}
	checked++;
	for (size_t i = 0; i < out_elements(f, n); i++)
		if (get(f->dtype, out, i) != expected(f, c, i)) {
			complain("%s: %s %s of %zu %s%s: place %zu is %g, not %g", where, collective_name(f->coll),
				f->red ? "max" : "sum", f->part * n, dtype_name(f->dtype),
				f->in_place ? " in place" : "", i, get(f->dtype, out, i), expected(f, c, i));
			break;
		}
	for (size_t i = 0; i < GUARD; i++)
		if (end[i] != 0x5a) {
			complain("%s: %s of %zu %s: wrote behind its buffer", where, collective_name(f->coll),
				f->part * n, dtype_name(f->dtype));
			break;
		}
}

static void try_all(const struct comm *c, struct rig *rig, const char *where)
{
	static const enum dtype dtypes[] = {DT_FP32, DT_TF32, DT_BF16, DT_FP16, DT_INT32};
	static const size_t parts[] = {1, 31, 1025};
	for (int coll = 0; coll < COLL_OF_GROUPS; coll++)
		for (int red = 0; red < (collective_reduces((enum collective)coll) ? RED_COUNT : 1); red++)
			for (size_t d = 0; d < COUNT(dtypes); d++)
				for (size_t p = 0; p < COUNT(parts); p++)
					for (int in_place = 0;
						in_place < (coll == COLL_ALLTOALL || coll == COLL_SENDRECV ? 1 : 2);
						in_place++)
						try_form(c, rig,
							&(struct form){(enum collective)coll, (enum reduce_op)red,
								dtypes[d], in_place, parts[p]},
							where);
}

/* A captured call is run again at each launch of the graph: three sums in place. */
static void try_graph(const struct comm *c, struct rig *rig, const char *where)
{
	struct comm_call call = {COLL_ALL_REDUCE, RED_SUM, DT_BF16, 3, rig->in, rig->in, rig->stream};
	struct error e = {ST_OK, ""};
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	enum status st = comm_start(c, &call, &e); /* what needs memory takes it outside */
	if (st || (st = drain(c, rig->stream, LIMIT_S, &e)) ||
		(st = CUDA_CHECK(cudaStreamBeginCapture(rig->stream, cudaStreamCaptureModeThreadLocal), &e)))
		goto out;
	st = comm_start(c, &call, &e);
	if (CUDA_CHECK(cudaStreamEndCapture(rig->stream, &graph), &e) || st ||
		(st = CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0), &e)))
		goto out;
	put(DT_BF16, rig->in, 2, 1);
	for (int i = 0; i < 3 && !st; i++)
		st = CUDA_CHECK(cudaGraphLaunch(exec, rig->stream), &e);
	if (!st)
		st = drain(c, rig->stream, LIMIT_S, &e);
	if (!st && get(DT_BF16, rig->in, 2) != (double)(c->size * c->size * c->size))
		complain("%s: three sums of a graph give %g", where, get(DT_BF16, rig->in, 2));
out:
	if (st)
		complain("%s: a graph: %s", where, e.text);
	checked++;
	if (exec)
		cudaGraphExecDestroy(exec);
	if (graph)
		cudaGraphDestroy(graph);
}

/* 256 + 1 + 1 + 1 is 259: in bf16, rounded once, 260 (and 263 is 264); rounded after each addition it stays 256. */
static void try_rounding(const struct comm *c, struct rig *rig, const char *where)
{
	struct error e = {ST_OK, ""};
	struct comm_call call = {COLL_ALL_REDUCE, RED_SUM, DT_BF16, 1, rig->in, rig->out, rig->stream};
	put(DT_BF16, rig->in, 0, c->rank == 0 ? 256 : 1);
	if (comm_start(c, &call, &e) || drain(c, rig->stream, LIMIT_S, &e))
		complain("%s: %s", where, e.text);
	else if (get(DT_BF16, rig->out, 0) != (c->size >= 4 ? 256 + (double)c->size : 256))
		complain("%s: 256 and ones sum up to %g in bf16", where, get(DT_BF16, rig->out, 0));
	checked++;
}

static void expect_refusal(const struct comm *c, const struct comm_call *call, const char *words)
{
	struct error e = {ST_OK, ""};
	checked++;
	if (comm_start(c, call, &e) == ST_OK)
		complain("not refused: %s", words);
	else if (!strstr(e.text, words))
		complain("refused as \"%s\", without \"%s\"", e.text, words);
}

static void try_refusals(const struct comm *c, struct rig *rig)
{
	uint64_t odd = (uint64_t)c->size + 1;
	expect_refusal(c, &(struct comm_call){COLL_ALL_REDUCE, RED_SUM, DT_FP8, 4, rig->in, rig->out, rig->stream},
		"all_reduce of fp8");
	expect_refusal(c, &(struct comm_call){COLL_ALL_REDUCE, RED_SUM, DT_FP32, 4, rig->in, rig->out, NULL},
		"none was given");
	if (c->size > 1)
		expect_refusal(c,
			&(struct comm_call){COLL_ALL_GATHER, RED_SUM, DT_FP32, odd, rig->in, rig->out, rig->stream},
			"does not divide");
}

/* 10 us and a ring's bytes at 100 GB/s: what the double says. */
static void try_estimate(const struct comm *c, struct rig *rig)
{
	struct error e = {ST_OK, ""};
	double seconds, n = (double)c->size, should = 1e-6 * (10 + 2 * (n - 1) / n * 4096 / 1e5);
	struct comm_call call = {COLL_ALL_REDUCE, RED_SUM, DT_FP32, 1024, rig->in, rig->out, rig->stream};
	put(DT_FP32, rig->out, 0, 77);
	for (int i = 0; i < 2; i++) {
		if (nccl_comm_estimate(c, &call, &seconds, &e) || cudaStreamSynchronize(rig->stream) != cudaSuccess)
			complain("estimate: %s", e.text);
		else if (seconds < should * 0.999 || seconds > should * 1.001)
			complain("estimated as %g s, not %g", seconds, should);
	}
	if (get(DT_FP32, rig->out, 0) != 77)
		complain("an estimate moved data");
	checked += 2;
}

/* ---- communicators ---- */

static enum status make_world(const struct session_info *info, const char *mode, double limit_s, struct comm *out,
	struct error *e)
{
	unsigned char id[NCCL_ID_B];
	char host[32];
	int device = 0, devices = 1;
	enum status st = nccl_comm_id(id, e);
	if (st || (st = CUDA_CHECK(cudaGetDeviceCount(&devices), e)))
		return st;
	if (strcmp(mode, "strangers") != 0 && info->ranks > 1)
		MPI_Bcast(id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
	if (strcmp(mode, "same") != 0 && strcmp(mode, "hosts") != 0)
		device = (int)(info->rank % devices);
	snprintf(host, sizeof host, "host%lld", (long long)info->rank);
	if (strcmp(mode, "hosts") == 0)
		setenv("NCCL_HOSTID", host, 1);
	return nccl_comm_world(id, info->ranks, info->rank, device, limit_s, out, e);
}

static void try_groups(const struct comm *world, struct rig *rig)
{
	struct comm group, none;
	struct error e = {ST_OK, ""};
	int64_t groups = world->size >= 4 ? 2 : 1, part = world->size / groups;
	if (nccl_comm_split(world, (int32_t)(world->rank % groups), (int32_t)(world->size - world->rank), false, &group,
		    &e)) {
		complain("split: %s", e.text);
		return;
	}
	if (group.size != part || group.rank != part - 1 - world->rank / groups)
		complain("member %lld of %lld of its group", (long long)group.rank, (long long)group.size);
	try_all(&group, rig, "a group");
	try_estimate(&group, rig);
	if (nccl_comm_register(&group, rig->in, rig->bytes, &e))
		complain("register: %s", e.text);
	if (nccl_comm_split(world, world->rank == 0 ? -1 : 5, 0, false, &none, &e))
		complain("split: %s", e.text);
	else if ((none.ops == NULL) != (world->rank == 0) || (none.ops && none.size != world->size - 1))
		complain("colour -1 has a part, or others have none");
	comm_destroy(&none);
	comm_destroy(&group);
}

/* Two lanes through the host at once, in an order that ranks do not agree on. */
static void try_two_lanes(struct session *s, const struct session_info *info, struct rig *rig)
{
	struct comm host[2], staged[2] = {{0}, {0}};
	struct error e = {ST_OK, ""};
	cudaStream_t second;
	enum status st = CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), &e);
	for (int k = 0; k < 2 && !st; k++)
		if (!(st = comm_create_mpi(s, info->ranks, 1, &host[k], &e)))
			st = staged_comm_create(&host[k], LIMIT_S, &staged[k], &e);
	for (int round = 0; round < 20 && !st; round++) {
		put(DT_FP32, rig->in, 0, 1);
		put(DT_FP32, rig->in, 1, 2);
		for (int i = 0; i < 2 && !st; i++) {
			int k = (int)((info->rank + i) % 2);
			struct comm_call call = {COLL_ALL_REDUCE, RED_SUM, DT_FP32, 1, rig->in + 4 * k,
				rig->out + 4 * k, k ? second : rig->stream};
			st = comm_start(&staged[k], &call, &e);
		}
		if (!st && !(st = drain(&staged[0], rig->stream, LIMIT_S, &e)))
			st = drain(&staged[1], second, LIMIT_S, &e);
		if (!st && (get(DT_FP32, rig->out, 0) != (double)info->ranks ||
				   get(DT_FP32, rig->out, 1) != 2 * (double)info->ranks))
			complain("two lanes: %g and %g", get(DT_FP32, rig->out, 0), get(DT_FP32, rig->out, 1));
	}
	if (st)
		complain("two lanes: %s", e.text);
	checked++;
	comm_destroy(&staged[0]);
	comm_destroy(&staged[1]);
	cudaStreamDestroy(second);
}

/* Messages of two directions cross, each over a communicator of its own, in an order in which one communicator for both
 * would stand still. */
static void try_messages(const struct comm pair[2], struct rig *rig, const char *where)
{
	struct error e = {ST_OK, ""};
	cudaStream_t queue[2] = {rig->stream, NULL};
	if (!pair[0].ops)
		return;
	enum status st = CUDA_CHECK(cudaStreamCreateWithFlags(&queue[1], cudaStreamNonBlocking), &e);
	int64_t me = pair[0].rank;
	for (size_t i = 0; i < 100; i++)
		put(DT_BF16, rig->in, i, brought(me, i));
	for (int i = 0; i < 2 && !st; i++) { /* first what comes, then what goes */
		int64_t k = i ? me : 1 - me;
		struct comm_call call = {i ? COLL_SEND : COLL_RECV, RED_SUM, DT_BF16, 100, i ? rig->in : NULL,
			i ? NULL : rig->out, queue[k]};
		st = comm_start(&pair[k], &call, &e);
	}
	for (int k = 0; k < 2 && !st; k++)
		st = drain(&pair[k], queue[k], LIMIT_S, &e);
	for (size_t i = 0; i < 100 && !st; i++)
		if (get(DT_BF16, rig->out, i) != brought(1 - me, i)) {
			complain("%s: message element %zu is %g", where, i, get(DT_BF16, rig->out, i));
			break;
		}
	if (st)
		complain("%s: messages: %s", where, e.text);
	checked++;
	if (queue[1])
		cudaStreamDestroy(queue[1]);
}

/* Ranks 0 and 1, 2 and 3, ...; a rank without a partner has no part. Communicator k carries what rank k of the pair
 * sends. */
static void try_pairs(struct session *s, const struct session_info *info, const struct comm *world, struct rig *rig)
{
	struct comm pair[2] = {{0}}, host = {0};
	struct error e = {ST_OK, ""};
	int64_t colour = (info->rank | 1) < info->ranks ? info->rank / 2 : -1;
	enum status st = ST_OK;
	for (int k = 0; k < 2 && !st; k++)
		st = nccl_comm_split(world, (int32_t)colour, (int32_t)info->rank, true, &pair[k], &e);
	if (!st)
		try_messages(pair, rig, "pairs");
	for (int k = 0; k < 2 && !st; k++) {
		comm_destroy(&pair[k]);
		if (!(st = comm_split_mpi(s, colour, info->rank, &host, &e)) && host.ops)
			st = staged_comm_create(&host, LIMIT_S, &pair[k], &e);
	}
	if (!st)
		try_messages(pair, rig, "pairs through the host");
	else
		complain("pairs: %s", e.text);
	comm_destroy(&pair[0]);
	comm_destroy(&pair[1]);
}

static void try_staged(struct session *s, const struct session_info *info, struct rig *rig)
{
	struct comm host, staged;
	struct error e = {ST_OK, ""};
	if (comm_create_mpi(s, info->ranks, 1, &host, &e) || staged_comm_create(&host, LIMIT_S, &staged, &e)) {
		complain("through the host: %s", e.text);
		return;
	}
	try_all(&staged, rig, "through the host");
	try_rounding(&staged, rig, "through the host");
	try_graph(&staged, rig, "through the host");
	comm_destroy(&staged);
	try_two_lanes(s, info, rig);
}

/* ---- faults ---- */

static enum status ten_calls(const struct comm *world, struct rig *rig, struct error *e)
{
	for (int i = 0; i < 10; i++) {
		struct comm_call call = {COLL_ALL_REDUCE, RED_SUM, DT_FP32, 64, rig->in, rig->out, rig->stream};
		enum status st = comm_start(world, &call, e);
		if (st || (st = drain(world, rig->stream, 3, e)))
			return st;
	}
	return ST_OK;
}

/* Rank 0 posts receives on WIDE communicators before rank 1 sends anything. `pair`: as messages of a pipeline have
 * them, with few thread blocks. */
#define WIDE 5
static enum status receives_ahead(const struct comm *world, bool pair, struct rig *rig, struct error *e)
{
	struct comm c[WIDE] = {{0}};
	cudaStream_t stream[WIDE] = {NULL};
	enum status st = ST_OK;
	for (int k = 0; k < WIDE && !st; k++)
		if (!(st = nccl_comm_split(world, 0, (int32_t)world->rank, pair, &c[k], e)))
			st = CUDA_CHECK(cudaStreamCreateWithFlags(&stream[k], cudaStreamNonBlocking), e);
	for (int k = 0; k < WIDE && !st; k++) {
		const struct comm_call call = {world->rank ? COLL_SEND : COLL_RECV, RED_SUM, DT_FP32, 64,
			world->rank ? rig->in : NULL, world->rank ? NULL : rig->out, stream[k]};
		if (world->rank && k == 0)
			usleep(300000);
		st = comm_start(&c[k], &call, e);
	}
	for (int k = 0; k < WIDE && !st; k++)
		st = drain(&c[k], stream[k], LIMIT_S, e);
	for (int k = 0; k < WIDE && !st; k++) {
		comm_destroy(&c[k]);
		cudaStreamDestroy(stream[k]);
	}
	return st;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "all";
	bool opens = strcmp(mode, "all") != 0 && strcmp(mode, "calls") != 0 && strcmp(mode, "ahead") != 0 &&
	             strcmp(mode, "wide") != 0;
	struct error e = {ST_OK, ""};
	struct session *s = NULL;
	struct comm world = {0};
	struct rig rig = {0};
	alarm(120);
	enum status st = session_open(60, &s, &e);
	if (st)
		goto out;
	const struct session_info *info = session_info(s);
	own_rank = info->rank;
	if ((st = make_world(info, mode, opens ? 2 : LIMIT_S, &world, &e)) || opens)
		goto out;
	if ((st = rig_open(&rig, &e)))
		goto out;
	if (strcmp(mode, "calls") == 0) {
		st = ten_calls(&world, &rig, &e);
		goto out;
	}
	if (strcmp(mode, "ahead") == 0 || strcmp(mode, "wide") == 0) {
		st = receives_ahead(&world, strcmp(mode, "ahead") == 0, &rig, &e);
		goto out;
	}
	try_all(&world, &rig, "all ranks");
	try_rounding(&world, &rig, "all ranks");
	try_graph(&world, &rig, "all ranks");
	try_refusals(&world, &rig);
	if (nccl_comm_register(&world, rig.in, rig.bytes, &e))
		complain("register: %s", e.text);
	try_groups(&world, &rig);
	try_staged(s, info, &rig);
	try_pairs(s, info, &world, &rig);
out:
	if (st)
		fprintf(stderr, "%s\n", e.text);
	fflush(stderr);
	if (st && !opens)
		_exit(1); /* what others still wait for cannot be taken down in order */
	comm_destroy(&world);
	if (st)
		_exit(1);
	return rig_end(&rig, s);
}
