/* Timing the communicator, through the very lanes and the progress thread that a run uses: roles made by hand, with collectives alone and beside GEMMs. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "exec/calibrate.h"
#include "exec/device.h"
#include "exec/host/device.h"
#include "exec/mpi_check.h"
#include "exec/session.h"

#define STEPS_MAX 15 /* timed; one more before them as the warm-up */
#define STEPS_MIN 2  /* however slow the machine is */
#define COLLECTIVES_S 4.0 /* for the collectives of all group sizes together, where that allows more than the fewest steps */
#define OVERLAP_S 0.5     /* for each of the roles that overlap is found with */
#define OVERLAP_B ((uint64_t)8 << 20)
#define OVERLAP_COMM_S 20e-3 /* of collectives one after the other, beside GEMMs that take longer */
#define OVERLAP_CALLS_MAX 8
#define OVERLAP_COMPUTE 3    /* times as long as those collectives alone */
#define OVERLAP_GEMMS_MAX 512
#define PING_SMALL_B 8
#define PING_LARGE_B ((size_t)4 << 20)
#define PINGS 200
#define PINGS_LARGE 12
#define TAG 4711

/* ---- roles made by hand ---- */

struct hand {
	struct session *s;
	struct role role;
	struct layout layout;
	struct device_job job;
	struct device device;
	struct comm comm;
	struct stamp *stamps;
};

static bool hand_buffer(struct hand *h, uint64_t bytes)
{
	struct buffer b = {.component = COMP_BUFFERS, .dtype = DT_FP32, .bytes = bytes, .persistent = true, .layer = -1, .what = "calibration"};
	return vec_push(&h->role.buffers, b);
}

/* Argument a of the op is all of buffer args[a]; -1: absent. Ops depend on nothing but their lane. */
static bool hand_op(struct hand *h, const struct op *op, const int32_t *args)
{
	struct op o = *op;
	o.dtype = o.out_dtype = DT_FP32;
	o.layer = o.bucket = o.micro = -1;
	o.what = "calibration";
	o.arg0 = (uint32_t)h->role.args.n;
	for (int i = 0; i < op_kind_info(o.kind)->n_args; i++) {
		struct view v = {.buffer = args[i]};
		if (!vec_push(&h->role.args, v))
			return false;
	}
	return vec_push(&h->role.ops, o);
}

static bool hand_collective(struct hand *h, enum collective coll, uint64_t bytes, int32_t in, int32_t out)
{
	struct op op = {.kind = OP_COLLECTIVE, .lane = LANE_COMM, .phase = PHASE_BACKWARD, .coll = (uint8_t)coll, .reduce = RED_SUM, .group = DIM_DP, .d = {(int64_t)(bytes / sizeof(float))}};
	int32_t args[] = {in, out};
	return hand_op(h, &op, args);
}

static enum status hand_layout(struct hand *h, struct error *e)
{
	h->layout.offset_B = calloc(h->role.buffers.n, sizeof *h->layout.offset_B);
	h->stamps = calloc(h->role.ops.n, sizeof *h->stamps);
	if (!h->layout.offset_B || !h->stamps)
		return error_nomem(e, "calibration");
	for (size_t i = 0; i < h->role.buffers.n; i++) {
		h->layout.offset_B[i] = h->layout.total_B;
		h->layout.total_B += (h->role.buffers.at[i].bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
	}
	return ST_OK;
}

static void comm_broken(void *ctx, const char *text)
{
	watchdog_fail(((struct session *)ctx)->watchdog, text);
}

/* Sine-like values everywhere: sums over ranks and steps stay finite, and no denormal slows them. */
static void hand_fill(struct hand *h)
{
	float block[1024];
	for (size_t i = 0; i < 1024; i++)
		block[i] = (float)(i % 31) / 31.0f - 0.49f;
	for (size_t i = 0; i < h->role.buffers.n; i++)
		for (uint64_t at = 0, bytes = h->role.buffers.at[i].bytes; at < bytes; at += sizeof block)
			h->device.ops->write(h->device.ctx, (int32_t)i, at, block, bytes - at < sizeof block ? bytes - at : sizeof block);
}

/* Loads the role into a device, with a communicator over groups of `size` neighbouring ranks. Collective; all ranks agree. */
static enum status hand_load(struct hand *h, int64_t size, bool built, struct error *e)
{
	struct session *s = h->s;
	enum status st = built ? hand_layout(h, e) : error_nomem(e, "calibration");
	st = session_agree(s, st, e);
	if (st || (st = comm_create_mpi(s, size, 1, &h->comm, e)))
		return st;
	h->role.ranks = s->info.ranks;
	h->job = (struct device_job){.role = &h->role, .layout = &h->layout, .heads = 1, .loss_scale = 1, .beacon = watchdog_beacon(s->watchdog), .cores = s->info.cores_per_rank,
		.oversubscribed = s->info.oversubscribed, .broken = comm_broken, .broken_ctx = s};
	h->job.comm[LANE_COMM][DIM_DP] = h->comm;
	st = host_device_create(&h->device, e);
	if (!st)
		st = h->device.ops->load(h->device.ctx, &h->job, e);
	st = session_agree(s, st, e);
	if (st)
		return st;
	hand_fill(h);
	watchdog_roles(s->watchdog, &h->role, 1, 0);
	return ST_OK;
}

static void hand_close(struct hand *h)
{
	watchdog_roles(h->s->watchdog, NULL, 0, 0);
	device_destroy(&h->device);
	comm_destroy(&h->comm);
	free(h->layout.offset_B);
	free(h->stamps);
	vec_free(&h->role.ops);
	vec_free(&h->role.args);
	vec_free(&h->role.buffers);
}

/* One step of the role, begun by all ranks together; stamps in h->stamps. */
static enum status hand_step(struct hand *h, struct error *e)
{
	struct device_step step = {.number = 1, .stamps = h->stamps};
	enum status st = session_barrier(h->s, e);
	return st ? st : h->device.ops->step(h->device.ctx, &step, e);
}

/* Whether to take another step: rank 0's clock decides for all. */
static enum status another_step(struct session *s, int done, double begin_s, double budget_s, bool *go_on, struct error *e)
{
	char yes = done < STEPS_MIN || (done < STEPS_MAX && clock_s() - begin_s < budget_s);
	enum status st = session_broadcast(s, &yes, 1, e);
	watchdog_progress(s->watchdog);
	*go_on = yes && !st;
	return st;
}

/* ---- collectives alone ---- */

static double seconds(int64_t ns)
{
	return (double)ns * 1e-9;
}

/* How long op `op` moved: from the last member's arrival to the last one's end, in the slowest group. Clocks of different hosts do not agree; there it is the shortest stay of a member, the last one's
 * to arrive. `all`: stamps by rank, then op. */
static double moved_s(const struct session *s, const struct stamp *all, size_t n_ops, size_t op, int64_t size)
{
	double slowest = 0;
	for (int64_t first = 0; first < s->info.ranks; first += size) {
		int64_t begin = INT64_MIN, end = INT64_MIN, shortest = INT64_MAX;
		for (int64_t r = first; r < first + size; r++) {
			const struct stamp *t = &all[(size_t)r * n_ops + op];
			begin = t->begin_ns > begin ? t->begin_ns : begin;
			end = t->end_ns > end ? t->end_ns : end;
			shortest = t->end_ns - t->begin_ns < shortest ? t->end_ns - t->begin_ns : shortest;
		}
		slowest = fmax(slowest, seconds(s->info.hosts == 1 ? end - begin : shortest));
	}
	return slowest;
}

/* The typical time of every op over some steps; the first step is the warm-up. */
static enum status time_ops(struct hand *h, int64_t size, double budget_s, double *typical_s, struct error *e)
{
	struct session *s = h->s;
	size_t n = h->role.ops.n;
	int steps = 0;
	bool go_on = true;
	double begin_s = clock_s(), *times = calloc(n * STEPS_MAX, sizeof *times);
	struct stamp *all = calloc((size_t)s->info.ranks * n, sizeof *all);
	enum status st = times && all ? hand_step(h, e) : error_nomem(e, "calibration's times");
	while (!st && !(st = another_step(s, steps, begin_s, budget_s, &go_on, e)) && go_on) {
		if ((st = hand_step(h, e)) || (st = session_gather_all(s, h->stamps, n * sizeof *h->stamps, all, e)))
			break;
		for (size_t i = 0; i < n; i++)
			times[i * STEPS_MAX + (size_t)steps] = moved_s(s, all, n, i, size);
		steps++;
	}
	for (size_t i = 0; i < n && !st; i++)
		typical_s[i] = stats_percentile(times + i * STEPS_MAX, (size_t)steps, CALIBRATION_PERCENTILE);
	free(times);
	free(all);
	return st;
}

/* CPU time that other threads than this one took during a step of collectives alone, as a share of it: what the progress thread takes from a core. */
static enum status progress_share(struct hand *h, double *share, struct error *e)
{
	enum status st = session_barrier(h->s, e);
	struct timespec cpu;
	double begin_s = clock_s(), own_s = clock_thread_cpu_s();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double all_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
	if (st || (st = hand_step(h, e)))
		return st;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double others_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec - all_s - (clock_thread_cpu_s() - own_s);
	*share = others_s / (clock_s() - begin_s);
	return st;
}

#define RING_COLLECTIVES (COLL_REDUCE_SCATTER + 1) /* those before the messages between stages */

static enum status collectives(struct session *s, int64_t size, double budget_s, struct profile *p, struct error *e)
{
	enum { FULL, SHARD };
	const uint64_t largest = calibration_comm_sizes[CALIBRATION_COMM_SIZES - 1];
	struct hand h = {.s = s};
	double typical_s[RING_COLLECTIVES * CALIBRATION_COMM_SIZES], x[CALIBRATION_COMM_SIZES], share = 0;
	uint64_t bytes[CALIBRATION_COMM_SIZES];
	bool ok = hand_buffer(&h, largest) && hand_buffer(&h, largest);
	for (int c = 0; c < RING_COLLECTIVES; c++)
		for (size_t i = 0; i < CALIBRATION_COMM_SIZES && ok; i++) {
			bytes[i] = calibration_comm_sizes[i] / (4 * (uint64_t)size) * (4 * (uint64_t)size); /* shards are whole elements */
			bytes[i] = bytes[i] ? bytes[i] : 4 * (uint64_t)size;
			x[i] = (double)bytes[i];
			ok = hand_collective(&h, (enum collective)c, bytes[i], c == COLL_ALL_GATHER ? SHARD : FULL, c == COLL_REDUCE_SCATTER ? SHARD : FULL);
		}
	enum status st = hand_load(&h, size, ok, e);
	if (!st)
		st = time_ops(&h, size, budget_s, typical_s, e);
	if (!st)
		st = progress_share(&h, &share, e);
	for (int c = 0; c < RING_COLLECTIVES && !st && p; c++) {
		char name[PROFILE_NAME];
		snprintf(name, sizeof name, "%s.%lld", collective_name((enum collective)c), (long long)size);
		st = profile_set_curve(p, name, x, typical_s + c * CALIBRATION_COMM_SIZES, CALIBRATION_COMM_SIZES, e);
	}
	if (!st && p)
		st = profile_set_value(p, "progress.share", share, e);
	hand_close(&h);
	return st;
}

/* ---- what a collective and a GEMM cost each other ---- */

/* From the beginning of the first op of the lane to the end of its last. */
static double lane_s(const struct hand *h, enum lane lane)
{
	int64_t begin = INT64_MAX, end = INT64_MIN;
	for (size_t i = 0; i < h->role.ops.n; i++) {
		if (h->role.ops.at[i].lane != lane)
			continue;
		begin = h->stamps[i].begin_ns < begin ? h->stamps[i].begin_ns : begin;
		end = h->stamps[i].end_ns > end ? h->stamps[i].end_ns : end;
	}
	return end > begin ? seconds(end - begin) : 0;
}

/* How long this rank's compute lane and communication lane take in a role of `gemms` GEMMs beside `calls` collectives, over some steps. */
static enum status beside(struct session *s, const struct op *gemm, int gemms, int calls, double *compute_s, double *comm_s, struct error *e)
{
	struct hand h = {.s = s};
	double compute[STEPS_MAX], comm[STEPS_MAX], begin_s = 0;
	int steps = 0;
	bool go_on = true, ok = hand_buffer(&h, OVERLAP_B);
	for (int i = 0; i < op_kind_info(gemm->kind)->n_args && ok; i++)
		ok = hand_buffer(&h, op_arg_bytes(gemm, i, 1));
	struct op op = *gemm;
	op.lane = LANE_COMPUTE;
	int32_t args[OP_MAX_ARGS] = {1, 2, -1, 4}; /* no bias */
	for (int i = 0; i < gemms && ok; i++)
		ok = hand_op(&h, &op, args);
	for (int i = 0; i < calls && ok; i++)
		ok = hand_collective(&h, COLL_ALL_REDUCE, OVERLAP_B, 0, 0);
	enum status st = hand_load(&h, s->info.ranks, ok, e);
	st = st ? st : hand_step(&h, e); /* the warm-up */
	begin_s = clock_s();
	while (!st && !(st = another_step(s, steps, begin_s, OVERLAP_S, &go_on, e)) && go_on && !(st = hand_step(&h, e))) {
		compute[steps] = lane_s(&h, LANE_COMPUTE);
		comm[steps++] = lane_s(&h, LANE_COMM);
	}
	if (!st) {
		*compute_s = stats_percentile(compute, (size_t)steps, CALIBRATION_PERCENTILE);
		*comm_s = stats_percentile(comm, (size_t)steps, CALIBRATION_PERCENTILE);
	}
	hand_close(&h);
	return st;
}

static double within(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static enum status mean_over_ranks(struct session *s, double *x, size_t n, struct error *e)
{
	enum status st = session_sum(s, x, n, e);
	for (size_t i = 0; i < n; i++)
		x[i] /= (double)s->info.ranks;
	return st;
}

/* GEMMs that take longer than the collectives beside them lose D seconds while these are in flight for L: they ran at 1 - D / L of their speed. */
static enum status overlap(struct session *s, const struct op *gemm, struct profile *p, struct error *e)
{
	double none, one[2], alone[2], beside_s[2]; /* compute lane, communication lane */
	enum status st = beside(s, gemm, 2, 0, &one[0], &none, e);
	if (!st)
		st = beside(s, gemm, 0, 1, &none, &one[1], e);
	if (st || (st = mean_over_ranks(s, one, 2, e)))
		return st;
	int calls = (int)within(ceil(OVERLAP_COMM_S / one[1]), 1, OVERLAP_CALLS_MAX);
	int gemms = (int)within(ceil(OVERLAP_COMPUTE * calls * one[1] / (one[0] / 2)), 2, OVERLAP_GEMMS_MAX);
	if ((st = beside(s, gemm, gemms, 0, &alone[0], &none, e)) || (st = beside(s, gemm, 0, calls, &none, &alone[1], e)) || (st = beside(s, gemm, gemms, calls, &beside_s[0], &beside_s[1], e)))
		return st;
	double together_s = fmin(beside_s[0], beside_s[1]), rates[2] = {within(1 - (beside_s[0] - alone[0]) / together_s, 0.01, 1), within(alone[1] / beside_s[1], 0.01, 1)};
	if ((st = mean_over_ranks(s, rates, 2, e)) || !p)
		return st;
	st = profile_set_value(p, "overlap.compute_rate", rates[0], e);
	return st ? st : profile_set_value(p, "overlap.comm_rate", rates[1], e);
}

/* ---- point to point ---- */

static enum status wait_polling(MPI_Request *r, struct error *e)
{
	for (int done = 0;;) {
		enum status st = MPI_CHECK(MPI_Test(r, &done, MPI_STATUS_IGNORE), e);
		if (st || done)
			return st;
		sched_yield();
	}
}

/* Neighbours 2i and 2i+1 send `bytes` to and fro; half a round trip, over `n` of them. */
static enum status ping_pong(struct session *s, char *buffer, size_t bytes, int n, double *one_way_s, struct error *e)
{
	double times[PINGS];
	int peer = (int)(s->info.rank ^ 1);
	bool first = s->info.rank % 2 == 0;
	enum status st = session_barrier(s, e);
	for (int i = 0; i < n && !st && peer < s->info.ranks; i++) {
		double begin_s = clock_s();
		for (int leg = 0; leg < 2 && !st; leg++) {
			MPI_Request r;
			st = first == (leg == 0) ? MPI_CHECK(MPI_Isend(buffer, (int)bytes, MPI_BYTE, peer, TAG, s->world, &r), e) : MPI_CHECK(MPI_Irecv(buffer, (int)bytes, MPI_BYTE, peer, TAG, s->world, &r), e);
			st = st ? st : wait_polling(&r, e);
		}
		times[i] = (clock_s() - begin_s) / 2;
	}
	watchdog_progress(s->watchdog);
	if (!st && peer < s->info.ranks)
		*one_way_s = stats_percentile(times, (size_t)n, CALIBRATION_PERCENTILE);
	return st;
}

static enum status point_to_point(struct session *s, struct profile *p, struct error *e)
{
	double t[2] = {0, 0}; /* rank 0 has a neighbour always */
	char *buffer = calloc(1, PING_LARGE_B);
	enum status st = session_agree(s, buffer ? ST_OK : error_nomem(e, "calibration"), e);
	if (!st)
		st = ping_pong(s, buffer, PING_SMALL_B, PINGS, &t[0], e);
	if (!st)
		st = ping_pong(s, buffer, PING_LARGE_B, PINGS_LARGE, &t[1], e);
	free(buffer);
	if (st || !p)
		return st;
	st = profile_set_value(p, "p2p.latency_s", t[0], e);
	return st ? st : profile_set_value(p, "p2p.Bps", (double)PING_LARGE_B / fmax(t[1] - t[0], 1e-9), e);
}

/* ---- */

enum status calibrate_comm(struct session *s, const struct calibration_case *gemm, struct profile *p, double begin, double end, struct error *e)
{
	int64_t ranks = s->info.ranks;
	if (ranks < 2)
		return ST_OK;
	int sizes = 0;
	for (int64_t size = 2; size <= ranks; size++)
		sizes += ranks % size == 0;
	enum status st = point_to_point(s, p, e);
	for (int64_t size = 2; size <= ranks && !st; size++) {
		if (ranks % size)
			continue;
		progress_update(begin + (end - begin) * 0.8 * (double)size / (double)ranks, "collectives");
		st = collectives(s, size, COLLECTIVES_S / sizes, p, e);
	}
	progress_update(begin + (end - begin) * 0.9, "overlap");
	return st ? st : overlap(s, &gemm->op, p, e);
}
