/* Collectives between hosts.
 *
 * A group of all ranks is timed in trains: one call right after the other, as a step's buckets are. A single one would
 * begin on an idle network, whose shapers have saved up rate. Of a train the time from the end of the first to the end
 * of the last counts, at the member that ends each of them last: what an early one sent may still lie in its buffers.
 * Members have clocks of their own, and begin together.
 *
 * Groups that share links are timed call by call, all groups at once, as ranks that compute the same begin them. In a
 * train they would take turns, one on a slow link while another is on a fast one, which a step's few buckets do not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "exec/calibrate/comm.h"

#define TRAIN_S 0.02 /* is what a train lasts at least, so that timers and slices of a core even out */
#define CALLS_MIN 3
#define CALLS_MAX 24
#define PILOT_B ((uint64_t)512 << 10)
#define SIZES_MIN 5      /* up to 512 KiB are timed on any network */
#define PASSES 9         /* that the budget is to allow: a warm-up and eight that count */
#define LEAST_S 1e-9     /* a curve's times are positive */
#define STEADY_B (128e3) /* from here on time is latency and bytes over rate */
#define TRAINS (CALIBRATION_COLLECTIVES * CALIBRATION_COMM_SIZES)

/* Calls of one collective and size; a single one where groups share links. */
struct call_train {
	size_t coll, size; /* in calibration_collectives, in calibration_comm_sizes */
	int calls;
	size_t first; /* op */
	double x;     /* bytes */
	double call_s;
};

/* Trains of a group; those of one step follow each other. `idle`: this rank's group takes no part. */
struct line {
	struct probe probe;
	const struct calibration_unit *unit;
	bool idle;
	struct call_train *at;
	size_t n;
};

static bool add_trains(struct line *l)
{
	uint64_t largest = 0;
	for (size_t k = 0; k < l->n; k++)
		largest = calibration_comm_sizes[l->at[k].size] > largest ? calibration_comm_sizes[l->at[k].size]
		                                                          : largest;
	bool ok = probe_buffer(&l->probe, COMP_BUFFERS, DT_FP32, largest) &&
	          probe_buffer(&l->probe, COMP_BUFFERS, DT_FP32, largest);
	for (size_t k = 0; k < l->n; k++) {
		struct call_train *t = &l->at[k];
		t->first = l->probe.role.ops.n;
		for (int i = 0; i < t->calls && ok && !l->idle; i++)
			ok = calibration_add_collective(&l->probe, calibration_collectives[t->coll], l->unit->size,
				calibration_comm_sizes[t->size], &t->x);
	}
	return ok;
}

/* When this rank's first or last call of a train ended, from the step's begin, which is the same for all ranks. */
static double ended_s(const struct line *l, const struct call_train *t, bool last)
{
	const struct stamp *stamps = l->probe.stamps;
	return 1e-9 * (double)(stamps[t->first + (last ? (size_t)t->calls - 1 : 0)].end_ns - stamps->begin_ns);
}

/* The time of a call of each train in the last step; the same on all ranks. */
static enum status calls_s(const struct line *l, double time_s[TRAINS], struct error *e)
{
	double ends_s[2 * TRAINS]; /* first calls, then last ones */
	for (size_t k = 0; k < 2 * l->n; k++)
		ends_s[k] = l->idle ? 0 : ended_s(l, &l->at[k % l->n], k >= l->n);
	enum status st = session_max(l->probe.session, ends_s, 2 * l->n, e);
	for (size_t k = 0; k < l->n && !st; k++) {
		const int calls = l->at[k].calls;
		time_s[k] = fmax(LEAST_S, calls > 1 ? (ends_s[l->n + k] - ends_s[k]) / (calls - 1) : ends_s[k]);
	}
	return st;
}

/* Fills the typical time of a call of each train. */
static enum status time_steps(struct line *l, double budget_s, struct error *e)
{
	struct session *s = l->probe.session;
	double times[TRAINS][CALIBRATION_STEPS_MAX], now_s[TRAINS], begin_s = clock_s();
	int steps = 0;
	bool go_on = true;
	enum status st = probe_step(&l->probe, true, e);
	while (!st && !(st = calibration_another_step(s, steps, begin_s, budget_s, &go_on, e)) && go_on) {
		if ((st = probe_step(&l->probe, true, e)) || (st = calls_s(l, now_s, e)))
			break;
		for (size_t k = 0; k < l->n; k++)
			times[k][steps] = now_s[k];
		steps++;
	}
	for (size_t k = 0; k < l->n && !st; k++)
		l->at[k].call_s = stats_percentile(times[k], (size_t)steps, CALIBRATION_PERCENTILE);
	return st;
}

/* The warm-up, and at least the fewest steps. */
static enum status time_line(struct session *s, const struct calibration_unit *unit, struct call_train *trains,
	size_t n, bool alone, double budget_s, struct error *e)
{
	struct line l = {.probe = {.session = s, .alone = alone}, .unit = unit, .at = trains, .n = n};
	l.idle = alone && s->info.rank % unit->stride > 0;
	enum status st = probe_load(&l.probe, unit->size, unit->stride, add_trains(&l), e);
	st = st ? st : time_steps(&l, budget_s, e);
	probe_close(&l.probe);
	return st;
}

/* Finds about how long a byte of an all-reduce takes, the same on all ranks. */
static enum status pilot(struct session *s, const struct calibration_unit *unit, double *s_per_B, struct error *e)
{
	struct call_train t = {.calls = CALLS_MIN};
	while (calibration_comm_sizes[t.size] < PILOT_B)
		t.size++;
	enum status st = time_line(s, unit, &t, 1, false, 0, e);
	*s_per_B = st ? 0 : t.call_s / t.x;
	return st;
}

/* Decides which sizes the budget allows, and how many calls a train of each has: by collective, then size. Returns the
 * number of sizes. */
static size_t plan(struct call_train trains[TRAINS], bool single, double s_per_B, double budget_s)
{
	double pass_s = 0;
	int calls[CALIBRATION_COMM_SIZES];
	size_t n = 0;
	for (; n < CALIBRATION_COMM_SIZES; n++) {
		const double one_s = s_per_B * (double)calibration_comm_sizes[n],
			     most = single ? 1 : fmin(CALLS_MAX, fmax(CALLS_MIN, ceil(TRAIN_S / one_s)));
		pass_s += CALIBRATION_COLLECTIVES * one_s * most;
		if (n >= SIZES_MIN && pass_s * PASSES > budget_s)
			break;
		calls[n] = (int)most;
	}
	for (size_t k = 0; k < CALIBRATION_COLLECTIVES * n; k++)
		trains[k] = (struct call_train){.coll = k / n, .size = k % n, .calls = calls[k % n]};
	return n;
}

/* Adds the sizes that were too long to time: at the rate that a latency and a rate, fitted to the steady points, have
 * in common. Returns the number of points. */
static size_t extend(double x[CALIBRATION_COMM_SIZES], double y[CALIBRATION_COMM_SIZES], size_t n)
{
	double rows[2 * CALIBRATION_COMM_SIZES], ones[CALIBRATION_COMM_SIZES], fit[2];
	size_t used = 0, last = n - 1;
	for (size_t i = 0; i < n; i++) {
		if (x[i] < STEADY_B)
			continue;
		rows[2 * used] = 1 / y[i];
		rows[2 * used + 1] = x[i] / y[i];
		ones[used++] = 1;
	}
	stats_nnls(rows, ones, used, 2, fit);
	for (; n < CALIBRATION_COMM_SIZES && fit[1] > 0; n++) {
		x[n] = (double)calibration_comm_sizes[n];
		y[n] = y[last] + fit[1] * (x[n] - x[last]);
	}
	return n;
}

static enum status set_curves(const struct calibration_unit *unit, const struct call_train *trains, size_t n,
	struct profile *p, struct error *e)
{
	enum status st = ST_OK;
	for (size_t c = 0; c < CALIBRATION_COLLECTIVES && !st; c++) {
		char name[PROFILE_NAME];
		double x[CALIBRATION_COMM_SIZES], y[CALIBRATION_COMM_SIZES];
		for (size_t i = 0; i < n; i++) {
			x[i] = trains[c * n + i].x;
			y[i] = trains[c * n + i].call_s;
		}
		profile_collective_curve(name, collective_name(calibration_collectives[c]), unit->size, unit->stride);
		st = profile_set_curve(p, name, x, y, extend(x, y, n), e);
	}
	return st;
}

/* True for groups of one rank of each host, whose other ranks share its cores. */
static bool shares_cores(const struct session *s, const struct calibration_unit *unit)
{
	return s->info.oversubscribed && s->info.ranks_per_host > 1 && unit->size == s->info.hosts &&
	       unit->stride == s->info.ranks_per_host;
}

/* Times the smallest size with one group, while the other ranks sleep, and sets the factor on its latency. */
static enum status time_alone(struct session *s, const struct calibration_unit *unit, const struct call_train *trains,
	size_t n, struct profile *p, struct error *e)
{
	double shared_s = 0, alone_s = 0;
	enum status st = ST_OK;
	for (size_t c = 0; c < CALIBRATION_COLLECTIVES && !st; c++) {
		struct call_train t = trains[c * n];
		st = time_line(s, unit, &t, 1, true, unit->budget_s / TRAINS, e);
		shared_s += trains[c * n].call_s;
		alone_s += t.call_s;
	}
	return st || !p ? st : profile_set_value(p, PROFILE_BETWEEN_ALONE_LATENCY, fmin(1, alone_s / shared_s), e);
}

enum status calibration_collectives_between(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	struct call_train trains[TRAINS];
	const bool single = unit->size < s->info.ranks;
	double s_per_B = 0;
	enum status st = pilot(s, unit, &s_per_B, e);
	if (st)
		return st;
	const size_t n = plan(trains, single, s_per_B, unit->budget_s), all = CALIBRATION_COLLECTIVES * n,
		     steps = single ? all : 1;
	for (size_t k = 0; k < steps && !st; k++)
		st = time_line(s, unit, trains + k, single ? 1 : all, false, unit->budget_s / (double)steps, e);
	if (!st && shares_cores(s, unit))
		st = time_alone(s, unit, trains, n, p, e);
	return st || !p ? st : set_curves(unit, trains, n, p, e);
}
