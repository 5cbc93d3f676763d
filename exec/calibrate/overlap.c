/* What a collective and a product that run together cost each other. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/stats.h"
#include "exec/calibrate/comm.h"

#define OVERLAP_S 0.5 /* for each of the roles that overlap is found with */
#define LOSS_S 1.5    /* for those whose difference is what GEMMs lose between hosts: a few per cent of either */
#define OVERLAP_B ((uint64_t)8 << 20)
#define OVERLAP_GPU_B ((uint64_t)64 << 20) /* about 0.3 ms on NVLink */
#define OVERLAP_DOUBLES_B ((uint64_t)256 << 10)
#define OVERLAP_COMM_S 20e-3 /* of collectives one after the other, beside GEMMs that take longer */
#define OVERLAP_CALLS_MAX 8
#define OVERLAP_COMPUTE 3 /* times as long as those collectives alone */
#define OVERLAP_GEMMS_MAX 512
#define BETWEEN_SIZES 3
#define BETWEEN_COMM_S 80e-3  /* several calls of a small one */
#define BETWEEN_CALL_S 150e-3 /* longer calls are left out, but for the first two sizes */
#define PENDING_S 80e-3       /* of waiting for a late peer, beside GEMMs */
#define LEAST_RATE 0.01

static const uint64_t between_B[BETWEEN_SIZES] = {512 << 10, 2 << 20, 8 << 20}; /* some 5 to 80 ms at 1 Gb/s */

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

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

/* What runs together: `gemms` GEMMs and `calls` all-reduces of `bytes` over groups of `size` neighbours. */
struct pairing {
	const struct op *gemm;
	int gemms, calls;
	uint64_t bytes;
	int64_t size;
	double loss_s; /* for GEMMs alone, and for all together */
	bool late;     /* the collectives of this rank begin when its GEMMs have ended */
};

/* Collectives come first, unless they are late: where one thread issues all lanes they are not to wait for the GEMMs'
 * launches. */
static bool add_ops(struct probe *probe, const struct pairing *w)
{
	int32_t args[OP_MAX_ARGS];
	bool ok = probe_buffer(probe, COMP_BUFFERS, DT_FP32, w->bytes) &&
	          probe_arguments(probe, w->gemm, 1u << 2 /* no bias */, args);
	struct op op = *w->gemm;
	op.lane = LANE_COMPUTE;
	for (int i = 0; i < w->calls && ok && !w->late; i++)
		ok = probe_collective(probe, COLL_ALL_REDUCE, DT_FP32, w->bytes, 0, 0);
	for (int i = 0; i < w->gemms && ok; i++)
		ok = probe_op(probe, &op, args);
	for (int i = 0; i < w->calls && ok && w->late; i++) {
		ok = probe_collective(probe, COLL_ALL_REDUCE, DT_FP32, w->bytes, 0, 0) &&
		     vec_push(&probe->role.deps, (uint32_t)w->gemms - 1);
		if (ok) {
			struct op *last = &probe->role.ops.at[probe->role.ops.n - 1];
			last->dep0 = (uint32_t)probe->role.deps.n - 1;
			last->n_dep = 1;
		}
	}
	return ok;
}

/* How long this rank's compute lane and communication lane take, over some steps. */
static enum status beside(struct session *s, const struct pairing *w, double budget_s, double *compute_s,
	double *comm_s, struct error *e)
{
	struct probe probe = {.session = s};
	double compute[CALIBRATION_STEPS_MAX], comm[CALIBRATION_STEPS_MAX], begin_s = 0;
	int steps = 0;
	bool go_on = true;
	enum status st = probe_load(&probe, w->size, 1, add_ops(&probe, w), e);
	st = st ? st : probe_step(&probe, true, e); /* the warm-up */
	begin_s = clock_s();
	while (!st && !(st = calibration_another_step(s, steps, begin_s, budget_s, &go_on, e)) && go_on &&
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

/* What a pairing takes of each lane, alone and together; this rank's. */
struct paired {
	double compute_alone_s, comm_alone_s, compute_s, comm_s;
};

/* Makes the collectives last comm_s, up to calls_max of them, and the GEMMs longer; then times them. */
static enum status pair(struct session *s, struct pairing *w, double comm_s, int calls_max, struct paired *out,
	struct error *e)
{
	double none, one[2]; /* compute lane, communication lane */
	struct pairing gemms = *w, calls = *w;
	gemms.calls = calls.gemms = 0;
	gemms.gemms = 2;
	calls.calls = 1;
	enum status st = beside(s, &gemms, OVERLAP_S, &one[0], &none, e);
	if (!st)
		st = beside(s, &calls, OVERLAP_S, &none, &one[1], e);
	if (st || (st = mean_over_ranks(s, one, 2, e)))
		return st;
	w->calls = calls.calls = (int)within(ceil(comm_s / one[1]), 1, calls_max);
	w->gemms = gemms.gemms = (int)within(ceil(OVERLAP_COMPUTE * w->calls * one[1] / (one[0] / 2)), 2,
		OVERLAP_GEMMS_MAX);
	if ((st = beside(s, &gemms, w->loss_s, &out->compute_alone_s, &none, e)) ||
		(st = beside(s, &calls, OVERLAP_S, &none, &out->comm_alone_s, e)))
		return st;
	return beside(s, w, w->loss_s, &out->compute_s, &out->comm_s, e);
}

/* GEMMs that take longer than the collectives beside them lose D seconds while these are in flight for L: they ran at 1
 * - D / L of their speed. */
enum status calibration_overlap(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	struct pairing w = {.gemm = unit->gemm,
		.bytes = s->info.gpu_doubles ? OVERLAP_DOUBLES_B
	                 : s->gpus           ? OVERLAP_GPU_B
	                                     : OVERLAP_B,
		.size = unit->size,
		.loss_s = OVERLAP_S};
	struct paired t;
	enum status st = pair(s, &w, OVERLAP_COMM_S, OVERLAP_CALLS_MAX, &t, e);
	if (st)
		return st;
	double rates[2] = {within(1 - (t.compute_s - t.compute_alone_s) / fmin(t.compute_s, t.comm_s), LEAST_RATE, 1),
		within(t.comm_alone_s / t.comm_s, LEAST_RATE, 1)};
	if ((st = mean_over_ranks(s, rates, 2, e)) || !p)
		return st;
	st = profile_set_value(p, PROFILE_COMPUTE_RATE, rates[0], e);
	return st ? st : profile_set_value(p, PROFILE_COMM_RATE, rates[1], e);
}

/* ---- between hosts ---- */

/* The share of compute that the progress thread takes on hosts that wait in a collective for the others, by GEMMs that
 * run meanwhile. */
static enum status wait_share(struct session *s, const struct pairing *pairing, int64_t gemms, double *share,
	struct error *e)
{
	const bool late = s->host_of[s->info.rank] % 2 == 0;
	struct pairing w = *pairing;
	double alone_s, beside_s, none;
	w.gemms = (int)gemms;
	w.calls = 0;
	enum status st = beside(s, &w, w.loss_s, &alone_s, &none, e);
	w.calls = 1;
	w.late = late;
	if (st || (st = beside(s, &w, w.loss_s, &beside_s, &none, e)))
		return st;
	double sums[2] = {late ? 0 : 1 - alone_s / beside_s, late ? 0 : 1};
	st = session_sum(s, sums, 2, e);
	*share = within(sums[0] / sums[1], 0, 1 - LEAST_RATE);
	return st;
}

/* What GEMMs and collectives of a size lost beside each other. */
struct losses {
	double alone_s, beside_s, call_B; /* of a collective; what comes and goes */
	double compute_s, in_flight_s;    /* that GEMMs lost, while collectives were in flight for so long */
	int calls;
};

static enum status find_losses(struct session *s, struct pairing *w, struct losses *out, struct paired *t,
	struct error *e)
{
	const struct op call = {.kind = OP_COLLECTIVE,
		.coll = COLL_ALL_REDUCE,
		.dtype = DT_FP32,
		.collective.elements = (int64_t)(w->bytes / 4)};
	const enum status st = pair(s, w, BETWEEN_COMM_S, OVERLAP_CALLS_MAX, t, e);
	if (!st)
		*out = (struct losses){.alone_s = t->comm_alone_s / w->calls,
			.beside_s = t->comm_s / w->calls,
			.call_B = 2 * op_wire_B(&call, w->size),
			.compute_s = t->compute_s - t->compute_alone_s,
			.in_flight_s = fmin(t->compute_s, t->comm_s),
			.calls = w->calls};
	return st;
}

struct between_fit {
	double compute_s_per_B, comm_s_per_B, turn_s;
};

/* A collective beside GEMMs takes beside = alone + turn x messages + c x bytes, whose relative errors are to be small.
 * GEMMs lose waits x flight + s_per_B x bytes. */
static struct between_fit fit_losses(const struct losses *sizes, size_t n, double waits, int64_t ranks)
{
	double rows[2 * BETWEEN_SIZES], longer[BETWEEN_SIZES], fit[2], lost_s = 0, moved_B = 0;
	for (size_t i = 0; i < n; i++) {
		const struct losses *x = &sizes[i];
		rows[2 * i] = x->call_B / x->beside_s;
		rows[2 * i + 1] = collective_rounds(COLL_ALL_REDUCE, ranks) / x->beside_s;
		longer[i] = 1 - x->alone_s / x->beside_s;
		lost_s += x->compute_s - waits * x->in_flight_s;
		moved_B += x->calls * x->call_B;
	}
	stats_nnls(rows, longer, n, 2, fit);
	return (struct between_fit){fmax(0, lost_s) / moved_B, fit[0], fit[1]};
}

/* The kernel, and the threads that copy and add, take a core's time for each byte of a network that comes or goes. So
 * GEMMs beside collectives lose D = w L + c V seconds: w by waiting, for as long as these are in flight; c for each of
 * V bytes. Collectives lose time for each byte, too, and for each message that they wait for a turn on the core. All of
 * this is the same at any rate of the network. */
enum status calibration_overlap_between(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	struct pairing w = {.gemm = unit->gemm, .size = unit->size, .loss_s = LOSS_S};
	struct losses sizes[BETWEEN_SIZES];
	struct paired t;
	double waits = 0, call_s = 0; /* call_s: the next size's, about; the same on all ranks */
	size_t n = 0;
	enum status st = ST_OK;
	for (; n < BETWEEN_SIZES && (n < 2 || call_s < BETWEEN_CALL_S) && !st; n++) {
		w.bytes = between_B[n];
		if (!(st = find_losses(s, &w, &sizes[n], &t, e))) {
			call_s = sizes[n].alone_s * (double)between_B[1] / (double)between_B[0];
			st = session_max(s, &call_s, 1, e);
		}
	}
	if (st)
		return st;
	const int64_t gemms = (int64_t)within(PENDING_S / t.compute_alone_s * w.gemms, 2, OVERLAP_GEMMS_MAX);
	w.bytes = between_B[0];
	if ((st = wait_share(s, &w, gemms, &waits, e)))
		return st;
	const struct between_fit fit = fit_losses(sizes, n, waits, unit->size);
	double found[] = {fit.compute_s_per_B, fit.comm_s_per_B, fit.turn_s};
	if ((st = mean_over_ranks(s, found, COUNT(found), e)) || !p)
		return st;
	if ((st = profile_set_value(p, PROFILE_BETWEEN_WAIT_SHARE, waits, e)) ||
		(st = profile_set_value(p, PROFILE_BETWEEN_S_PER_B, found[0], e)) ||
		(st = profile_set_value(p, PROFILE_BETWEEN_COMM_S_PER_B, found[1], e)))
		return st;
	return profile_set_value(p, PROFILE_BETWEEN_TURN_S, found[2], e);
}
