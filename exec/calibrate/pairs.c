/* Messages between two ranks, all pairs at once. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/stats.h"
#include "exec/calibrate/comm.h"
#include "exec/mpi_check.h"

#define TAG 4711
#define PINGS_MAX 200

/* Sizes, and how many go to and fro at each. */
static const struct ping {
	size_t bytes;
	int n;
} pings[] = {{8, PINGS_MAX}, {64 << 10, 24}, {512 << 10, 12}, {4 << 20, 6}};

static enum status wait_polling(MPI_Request *r, struct error *e)
{
	for (int done = 0;;) {
		enum status st = MPI_CHECK(MPI_Test(r, &done, MPI_STATUS_IGNORE), e);
		if (st || done)
			return st;
		sched_yield();
	}
}

/* Half a round trip of `ping`, of the slowest pair. The last ranks may have no peer. */
static enum status ping_pong(struct session *s, char *buffer, const struct ping *ping, int64_t stride,
	double *one_way_s, struct error *e)
{
	double times[PINGS_MAX];
	const bool first = s->info.rank / stride % 2 == 0;
	const int64_t peer = s->info.rank + (first ? stride : -stride);
	enum status st = session_barrier(s, e);
	*one_way_s = 0;
	for (int i = 0; i < ping->n && !st && peer < s->info.ranks; i++) {
		double begin_s = clock_s();
		for (int leg = 0; leg < 2 && !st; leg++) {
			MPI_Request r;
			const int bytes = (int)ping->bytes, to = (int)peer;
			st = first == (leg == 0)
			             ? MPI_CHECK(MPI_Isend(buffer, bytes, MPI_BYTE, to, TAG, s->world, &r), e)
			             : MPI_CHECK(MPI_Irecv(buffer, bytes, MPI_BYTE, to, TAG, s->world, &r), e);
			st = st ? st : wait_polling(&r, e);
		}
		times[i] = (clock_s() - begin_s) / 2;
	}
	watchdog_progress(s->watchdog);
	if (!st && peer < s->info.ranks)
		*one_way_s = stats_percentile(times, (size_t)ping->n, CALIBRATION_PERCENTILE);
	return st ? st : session_max(s, one_way_s, 1, e);
}

/* A latency, and the rate of the largest. */
static enum status set_link(struct profile *p, const char *latency, const char *rate, const double *times_s,
	struct error *e)
{
	const size_t last = COUNT(pings) - 1;
	enum status st = profile_set_value(p, latency, times_s[0], e);
	return st ? st
	          : profile_set_value(p, rate, (double)pings[last].bytes / fmax(times_s[last] - times_s[0], 1e-9), e);
}

/* Neighbours stand for any two ranks of a host, ranks of neighbouring hosts for any two hosts. */
enum status calibration_messages(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	const size_t last = COUNT(pings) - 1;
	double x[COUNT(pings)], times_s[COUNT(pings)];
	char name[PROFILE_NAME], *buffer = calloc(1, pings[last].bytes);
	enum status st = session_agree(s, buffer ? ST_OK : error_nomem(e, "calibration"), e);
	for (size_t i = 0; i < COUNT(pings) && !st; i++) {
		x[i] = (double)pings[i].bytes;
		st = ping_pong(s, buffer, &pings[i], unit->stride, &times_s[i], e);
	}
	free(buffer);
	if (st || !p)
		return st;
	const bool inside = calibration_inside(s, unit->size, unit->stride);
	if (unit->stride == 1)
		st = set_link(p, PROFILE_P2P_LATENCY_S, PROFILE_P2P_BPS, times_s, e);
	if (!st && !inside && unit->stride == s->info.ranks_per_host)
		st = set_link(p, PROFILE_BETWEEN_LATENCY_S, PROFILE_BETWEEN_BPS, times_s, e);
	profile_collective_curve(name, collective_name(COLL_SEND), unit->size, unit->stride);
	return st || inside ? st : profile_set_curve(p, name, x, times_s, COUNT(pings), e);
}
