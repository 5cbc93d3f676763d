/* Collectives between hosts, in trains: one right after the other, as a step's buckets are. A single one would begin on
 * an idle network, whose shapers have saved up rate, and its first member to end says little: what it sent last may
 * still lie in its own buffers. Of a train the time from the end of the first to the end of the last counts, on one
 * clock. */
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
#define PASSES 3         /* that the budget is to allow: a warm-up and two that count */
#define STEADY_B (128e3) /* from here on time is latency and bytes over rate */
#define TRAINS (CALIBRATION_COLLECTIVES * CALIBRATION_COMM_SIZES)

struct trains {
	struct probe probe;
	size_t n; /* sizes */
	int calls[CALIBRATION_COMM_SIZES];
	double x[CALIBRATION_COMM_SIZES]; /* bytes */
	size_t first[TRAINS];             /* op; by collective, then size */
};

static size_t train(const struct trains *t, size_t coll, size_t size) { return coll * t->n + size; }

static bool add_train(struct trains *t, size_t coll, size_t size, int64_t members, uint64_t bytes)
{
	bool ok = true;
	t->first[train(t, coll, size)] = t->probe.role.ops.n;
	for (int k = 0; k < t->calls[size] && ok; k++)
		ok = calibration_add_collective(&t->probe, calibration_collectives[coll], members, bytes, &t->x[size]);
	return ok;
}

static bool add_buffers(struct probe *probe, uint64_t bytes)
{
	return probe_buffer(probe, COMP_BUFFERS, DT_FP32, bytes) && probe_buffer(probe, COMP_BUFFERS, DT_FP32, bytes);
}

/* This rank's time for one of the train's calls. */
static double call_s(const struct trains *t, size_t coll, size_t size)
{
	const struct stamp *first = &t->probe.stamps[t->first[train(t, coll, size)]];
	const int calls = t->calls[size];
	return fmax(1e-9, 1e-9 * (double)(first[calls - 1].end_ns - first->end_ns) / (calls - 1));
}

/* Finds about how long a byte of an all-reduce takes, the same on all ranks. */
static enum status pilot(struct session *s, const struct calibration_unit *unit, double *s_per_B, struct error *e)
{
	struct trains t = {.probe = {.session = s}, .n = 1, .calls = {CALLS_MIN}};
	bool ok = add_buffers(&t.probe, PILOT_B) && add_train(&t, 0, 0, unit->size, PILOT_B);
	enum status st = probe_load(&t.probe, unit->size, unit->stride, ok, e);
	st = st ? st : probe_step(&t.probe, true, e);
	if (!st) {
		*s_per_B = call_s(&t, 0, 0) / t.x[0];
		st = session_max(s, s_per_B, 1, e);
	}
	probe_close(&t.probe);
	return st;
}

/* Decides how many calls a train of each size has, and which sizes the budget allows. */
static void plan(struct trains *t, double s_per_B, double budget_s)
{
	double pass_s = 0;
	for (t->n = 0; t->n < CALIBRATION_COMM_SIZES; t->n++) {
		const double one_s = s_per_B * (double)calibration_comm_sizes[t->n],
			     calls = fmin(CALLS_MAX, fmax(CALLS_MIN, ceil(TRAIN_S / one_s)));
		pass_s += CALIBRATION_COLLECTIVES * one_s * calls;
		if (t->n >= SIZES_MIN && pass_s * PASSES > budget_s)
			return;
		t->calls[t->n] = (int)calls;
	}
}

static enum status build(struct trains *t, const struct calibration_unit *unit, struct error *e)
{
	bool ok = add_buffers(&t->probe, calibration_comm_sizes[t->n - 1]);
	for (size_t c = 0; c < CALIBRATION_COLLECTIVES && ok; c++)
		for (size_t i = 0; i < t->n && ok; i++)
			ok = add_train(t, c, i, unit->size, calibration_comm_sizes[i]);
	return probe_load(&t->probe, unit->size, unit->stride, ok, e);
}

/* The typical time of a call of each train, the slowest rank's. */
static enum status time_trains(struct trains *t, double budget_s, double typical_s[TRAINS], struct error *e)
{
	struct session *s = t->probe.session;
	const size_t n = CALIBRATION_COLLECTIVES * t->n;
	double times[TRAINS][CALIBRATION_STEPS_MAX], mine[TRAINS], begin_s = clock_s();
	int steps = 0;
	bool go_on = true;
	enum status st = probe_step(&t->probe, true, e);
	while (!st && !(st = calibration_another_step(s, steps, begin_s, budget_s, &go_on, e)) && go_on) {
		if ((st = probe_step(&t->probe, true, e)))
			break;
		for (size_t k = 0; k < n; k++)
			mine[k] = call_s(t, k / t->n, k % t->n);
		if ((st = session_max(s, mine, n, e)))
			break;
		for (size_t k = 0; k < n; k++)
			times[k][steps] = mine[k];
		steps++;
	}
	for (size_t k = 0; k < n && !st; k++)
		typical_s[k] = stats_percentile(times[k], (size_t)steps, CALIBRATION_PERCENTILE);
	return st;
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

enum status calibration_collectives_between(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	struct trains t = {.probe = {.session = s}};
	double s_per_B = 0, typical_s[TRAINS];
	enum status st = pilot(s, unit, &s_per_B, e);
	if (st)
		return st;
	plan(&t, s_per_B, unit->budget_s);
	if (!(st = build(&t, unit, e)))
		st = time_trains(&t, unit->budget_s, typical_s, e);
	for (size_t c = 0; c < CALIBRATION_COLLECTIVES && !st && p; c++) {
		char name[PROFILE_NAME];
		double x[CALIBRATION_COMM_SIZES], y[CALIBRATION_COMM_SIZES];
		memcpy(x, t.x, sizeof x);
		memcpy(y, typical_s + c * t.n, t.n * sizeof *y);
		profile_collective_curve(name, collective_name(calibration_collectives[c]), unit->size, unit->stride);
		st = profile_set_curve(p, name, x, y, extend(x, y, t.n), e);
	}
	probe_close(&t.probe);
	return st;
}
