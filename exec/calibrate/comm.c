/* Timing the communicator, through the very lanes (and on the host the progress thread) that a run uses: roles made by
 * hand, with collectives alone and beside GEMMs. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "exec/calibrate/calibrate.h"
#include "exec/calibrate/probe.h"
#include "exec/mpi_check.h"
#include "exec/session.h"

#define STEPS_MAX 15 /* timed; one more before them as the warm-up */
#define STEPS_MIN 2  /* however slow the machine is */
#define COLLECTIVES_S \
	4.0 /* for the collectives of all group sizes together, where that allows more than the fewest steps */
#define OVERLAP_S 0.5 /* for each of the roles that overlap is found with */
#define OVERLAP_B ((uint64_t)8 << 20)
#define OVERLAP_GPU_B ((uint64_t)64 << 20) /* about 0.3 ms on NVLink */
#define OVERLAP_DOUBLES_B ((uint64_t)256 << 10)
#define OVERLAP_COMM_S 20e-3 /* of collectives one after the other, beside GEMMs that take longer */
#define OVERLAP_CALLS_MAX 8
#define OVERLAP_COMPUTE 3 /* times as long as those collectives alone */
#define OVERLAP_GEMMS_MAX 512
#define PING_SMALL_B 8
#define PING_LARGE_B ((size_t)4 << 20)
#define PINGS 200
#define PINGS_LARGE 12
#define TAG 4711
#define PAIRS_AND_OVERLAP 4 /* measurements: a latency, a rate, and what a collective and a GEMM cost each other */

/* The collectives that calibration times. */
static const enum collective calibrated[] = {COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_REDUCE_SCATTER, COLL_ALLTOALL};
#define CALIBRATED COUNT(calibrated)

/* NCCL moves bytes: the format matters little. Of doubles, whose times nobody keeps, the small ones do. */
static const uint64_t *sizes_of(const struct session *s, size_t *n)
{
	*n = s->info.gpu_doubles ? CALIBRATION_COMM_SIZES / 2 : CALIBRATION_COMM_SIZES;
	return s->gpus ? calibration_gpu_comm_sizes : calibration_comm_sizes;
}

/* Whether to take another step: rank 0's clock decides for all. */
static enum status another_step(struct session *s, int done, double begin_s, double budget_s, bool *go_on,
	struct error *e)
{
	char yes = done < STEPS_MIN || (done < STEPS_MAX && clock_s() - begin_s < budget_s);
	enum status st = session_broadcast(s, &yes, 1, e);
	watchdog_progress(s->watchdog);
	*go_on = yes && !st;
	return st;
}

/* ---- collectives alone ---- */

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

/* How long op `op` moved: from the last member's arrival to the last one's end, in the slowest group. Clocks of
 * different hosts do not agree, those of GPUs not to some microseconds; there it is the shortest stay of a member, the
 * last one's to arrive. `all`: stamps by rank, then op. */
static double moved_s(const struct session *s, const struct stamp *all, size_t n_ops, size_t op, int64_t size)
{
	double slowest = 1e-9; /* a curve's times are positive */
	for (int64_t first = 0; first < s->info.ranks; first += size) {
		int64_t begin = INT64_MIN, end = INT64_MIN, shortest = INT64_MAX;
		for (int64_t r = first; r < first + size; r++) {
			const struct stamp *t = &all[(size_t)r * n_ops + op];
			begin = t->begin_ns > begin ? t->begin_ns : begin;
			end = t->end_ns > end ? t->end_ns : end;
			shortest = t->end_ns - t->begin_ns < shortest ? t->end_ns - t->begin_ns : shortest;
		}
		slowest = fmax(slowest, seconds(s->info.hosts == 1 && !s->gpus ? end - begin : shortest));
	}
	return slowest;
}

/* The typical time of every op over some steps; the first step is the warm-up. */
static enum status time_ops(struct probe *probe, int64_t size, double budget_s, double *typical_s, struct error *e)
{
	struct session *s = probe->session;
	size_t n = probe->role.ops.n;
	int steps = 0;
	bool go_on = true;
	double begin_s = clock_s(), *times = calloc(n * STEPS_MAX, sizeof *times);
	struct stamp *all = calloc((size_t)s->info.ranks * n, sizeof *all);
	enum status st = times && all ? probe_step(probe, true, e) : error_nomem(e, "calibration's times");
	while (!st && !(st = another_step(s, steps, begin_s, budget_s, &go_on, e)) && go_on) {
		if ((st = probe_step(probe, true, e)) ||
			(st = session_gather_all(s, probe->stamps, n * sizeof *probe->stamps, all, e)))
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

/* CPU time that other threads than this one took during a step of collectives alone, as a share of it: what the
 * progress thread takes from a core. */
static enum status progress_share(struct probe *probe, double *share, struct error *e)
{
	enum status st = session_barrier(probe->session, e);
	struct timespec cpu;
	double begin_s = clock_s(), own_s = clock_thread_cpu_s();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double all_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
	if (st || (st = probe_step(probe, true, e)))
		return st;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double others_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec - all_s - (clock_thread_cpu_s() - own_s);
	*share = others_s / (clock_s() - begin_s);
	return st;
}

/* Which collective, of which size, is op k of the role. On GPUs the largest come first: while they move the host gets
 * ahead with issuing, so that a small one's time is not that of its launch. */
static void which(const struct session *s, size_t n, size_t k, size_t *coll, size_t *size)
{
	*coll = s->gpus ? k % CALIBRATED : k / n;
	*size = s->gpus ? n - 1 - k / CALIBRATED : k % n;
}

static bool add_collectives(struct probe *probe, int64_t size, double x[CALIBRATION_COMM_SIZES], size_t *n)
{
	enum { FULL, SHARD }; /* an exchange has the one as what comes and the other as what goes */
	const uint64_t *sizes = sizes_of(probe->session, n), largest = sizes[*n - 1];
	bool ok = probe_buffer(probe, COMP_BUFFERS, DT_FP32, largest) &&
	          probe_buffer(probe, COMP_BUFFERS, DT_FP32, largest);
	for (size_t k = 0, c, i; k < CALIBRATED * *n && ok; k++) {
		which(probe->session, *n, k, &c, &i);
		uint64_t bytes = sizes[i] / (4 * (uint64_t)size) * (4 * (uint64_t)size); /* shards are whole elements */
		bytes = bytes ? bytes : 4 * (uint64_t)size;
		x[i] = (double)bytes;
		ok = probe_collective(probe, calibrated[c], DT_FP32, bytes,
			calibrated[c] == COLL_ALL_GATHER || calibrated[c] == COLL_ALLTOALL ? SHARD : FULL,
			calibrated[c] == COLL_REDUCE_SCATTER ? SHARD : FULL);
	}
	return ok;
}

static enum status collectives(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	struct probe probe = {.session = s};
	const int64_t size = unit->size;
	double typical_s[CALIBRATED * CALIBRATION_COMM_SIZES], curve_s[CALIBRATED][CALIBRATION_COMM_SIZES],
		x[CALIBRATION_COMM_SIZES], share = 0;
	size_t n;
	bool ok = add_collectives(&probe, size, x, &n);
	enum status st = probe_load(&probe, size, ok, e);
	if (!st)
		st = time_ops(&probe, size, unit->budget_s, typical_s, e);
	if (!st && !s->gpus)
		st = progress_share(&probe, &share, e);
	for (size_t k = 0, c, i; k < CALIBRATED * n && !st; k++) {
		which(s, n, k, &c, &i);
		curve_s[c][i] = typical_s[k];
	}
	for (size_t c = 0; c < CALIBRATED && !st && p; c++) {
		char name[PROFILE_NAME];
		profile_collective_curve(name, collective_name(calibrated[c]), size);
		st = profile_set_curve(p, name, x, curve_s[c], n, e);
	}
	if (!st && p && !s->gpus)
		st = profile_set_value(p, PROFILE_PROGRESS_SHARE, share, e);
	probe_close(&probe);
	return st;
}

/* ---- what a collective and a GEMM cost each other ---- */

/* From the beginning of the first op of the lane to the end of its last. */
static double lane_s(const struct probe *probe, enum lane lane)
{
	int64_t begin = INT64_MAX, end = INT64_MIN;
	for (size_t i = 0; i < probe->role.ops.n; i++) {
		if (probe->role.ops.at[i].lane != lane)
			continue;
		begin = probe->stamps[i].begin_ns < begin ? probe->stamps[i].begin_ns : begin;
		end = probe->stamps[i].end_ns > end ? probe->stamps[i].end_ns : end;
	}
	return end > begin ? seconds(end - begin) : 0;
}

/* How long this rank's compute lane and communication lane take in a role of `gemms` GEMMs beside `calls` collectives,
 * over some steps. */
static enum status beside(struct session *s, const struct op *gemm, int gemms, int calls, double *compute_s,
	double *comm_s, struct error *e)
{
	struct probe probe = {.session = s};
	const uint64_t bytes = s->info.gpu_doubles ? OVERLAP_DOUBLES_B : s->gpus ? OVERLAP_GPU_B : OVERLAP_B;
	double compute[STEPS_MAX], comm[STEPS_MAX], begin_s = 0;
	int steps = 0;
	int32_t args[OP_MAX_ARGS];
	bool go_on = true, ok = probe_buffer(&probe, COMP_BUFFERS, DT_FP32, bytes) &&
	                        probe_arguments(&probe, gemm, 1u << 2 /* no bias */, args);
	struct op op = *gemm;
	op.lane = LANE_COMPUTE;
	/* Collectives first: where one thread issues all lanes they are not to wait for the GEMMs' launches. */
	for (int i = 0; i < calls && ok; i++)
		ok = probe_collective(&probe, COLL_ALL_REDUCE, DT_FP32, bytes, 0, 0);
	for (int i = 0; i < gemms && ok; i++)
		ok = probe_op(&probe, &op, args);
	enum status st = probe_load(&probe, s->info.ranks, ok, e);
	st = st ? st : probe_step(&probe, true, e); /* the warm-up */
	begin_s = clock_s();
	while (!st && !(st = another_step(s, steps, begin_s, OVERLAP_S, &go_on, e)) && go_on &&
		!(st = probe_step(&probe, true, e))) {
		compute[steps] = lane_s(&probe, LANE_COMPUTE);
		comm[steps++] = lane_s(&probe, LANE_COMM);
	}
	if (!st) {
		*compute_s = stats_percentile(compute, (size_t)steps, CALIBRATION_PERCENTILE);
		*comm_s = stats_percentile(comm, (size_t)steps, CALIBRATION_PERCENTILE);
	}
	probe_close(&probe);
	return st;
}

static double within(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static enum status mean_over_ranks(struct session *s, double *x, size_t n, struct error *e)
{
	enum status st = session_sum(s, x, n, e);
	for (size_t i = 0; i < n; i++)
		x[i] /= (double)s->info.ranks;
	return st;
}

/* GEMMs that take longer than the collectives beside them lose D seconds while these are in flight for L: they ran at 1
 * - D / L of their speed. */
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
	if ((st = beside(s, gemm, gemms, 0, &alone[0], &none, e)) ||
		(st = beside(s, gemm, 0, calls, &none, &alone[1], e)) ||
		(st = beside(s, gemm, gemms, calls, &beside_s[0], &beside_s[1], e)))
		return st;
	double together_s = fmin(beside_s[0], beside_s[1]),
	       rates[2] = {within(1 - (beside_s[0] - alone[0]) / together_s, 0.01, 1),
		       within(alone[1] / beside_s[1], 0.01, 1)};
	if ((st = mean_over_ranks(s, rates, 2, e)) || !p)
		return st;
	st = profile_set_value(p, PROFILE_COMPUTE_RATE, rates[0], e);
	return st ? st : profile_set_value(p, PROFILE_COMM_RATE, rates[1], e);
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
			st = first == (leg == 0)
			             ? MPI_CHECK(MPI_Isend(buffer, (int)bytes, MPI_BYTE, peer, TAG, s->world, &r), e)
			             : MPI_CHECK(MPI_Irecv(buffer, (int)bytes, MPI_BYTE, peer, TAG, s->world, &r), e);
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
	st = profile_set_value(p, PROFILE_P2P_LATENCY_S, t[0], e);
	return st ? st : profile_set_value(p, PROFILE_P2P_BPS, (double)PING_LARGE_B / fmax(t[1] - t[0], 1e-9), e);
}

/* ---- */

/* Between GPUs the collectives say all of messages. */
static enum status pairs_and_overlap(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	enum status st = s->gpus ? ST_OK : point_to_point(s, p, e);
	return st || !unit->gemm ? st : overlap(s, unit->gemm, p, e);
}

/* GPUs' times are hardly the cores'. */
static enum status measure_unit(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct calibration_noise *noise, struct error *e)
{
	return s->gpus ? unit->measure(s, unit, p, e) : calibration_undisturbed(s, unit, p, noise, e);
}

enum status calibrate_comm(struct session *s, const struct calibration_case *gemm, struct profile *p,
	struct calibration_noise *noise, double begin, double end, struct error *e)
{
	int64_t ranks = s->info.ranks;
	if (ranks < 2)
		return ST_OK;
	int sizes = 0;
	for (int64_t size = 2; size <= ranks; size++)
		sizes += ranks % size == 0;
	enum status st = ST_OK;
	for (int64_t size = 2; size <= ranks && !st; size++) {
		if (ranks % size)
			continue;
		progress_update(begin + (end - begin) * 0.8 * (double)size / (double)ranks, "collectives");
		const struct calibration_unit unit = {.measure = collectives,
			.size = size,
			.budget_s = COLLECTIVES_S / sizes,
			.measurements = CALIBRATED * CALIBRATION_COMM_SIZES};
		st = measure_unit(s, &unit, p, noise, e);
	}
	progress_update(begin + (end - begin) * 0.9, "overlap");
	const struct calibration_unit unit = {.measure = pairs_and_overlap,
		.gemm = gemm ? &gemm->op : NULL,
		.measurements = PAIRS_AND_OVERLAP};
	return st ? st : measure_unit(s, &unit, p, noise, e);
}
