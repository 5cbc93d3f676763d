#include "sim/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inside a host GPUs have other links than between hosts: a time of one says nothing of the other. On cores one path was measured for all. */
static bool comparable(const struct machine *m, int64_t size, int64_t stride, int64_t measured)
{
	return m->device.is_host || machine_group_in_node(m, size, stride) == (measured <= m->profile->key.ranks_per_host);
}

/* The curve of this collective whose group size is nearest to `size` in ratio, and that size; NULL when there is none. */
static const struct profile_curve *nearest_curve(const struct machine *m, enum collective c, int64_t size, int64_t stride, int64_t *found)
{
	const struct profile *p = m->profile;
	const struct profile_curve *best = NULL;
	const char *name = collective_name(c);
	size_t len = strlen(name);
	double best_ratio = INFINITY;
	for (size_t i = 0; i < p->n_curves; i++) {
		const char *text = p->curves[i].name;
		if (strncmp(text, name, len) != 0 || text[len] != '.')
			continue;
		char *end;
		long long ranks = strtoll(text + len + 1, &end, 10);
		if (*end || ranks < 2 || !comparable(m, size, stride, ranks))
			continue;
		double ratio = fabs(log((double)size / (double)ranks));
		if (ratio < best_ratio) {
			best_ratio = ratio;
			best = &p->curves[i];
			*found = ranks;
		}
	}
	return best;
}

bool collective_measured(const struct machine *m, enum collective c, int64_t size, int64_t stride)
{
	int64_t found = 0;
	return m->profile && nearest_curve(m, c, size, stride, &found) && found == size;
}

/* Of a chain of sends every member but the last passes the whole buffer on; what is dealt out in parts leaves a host by this member's share of its NICs. */
static double exchange_Bps(const struct group *g, enum collective c)
{
	double rate = c != COLL_ALLTOALL ? fmin(g->pair_Bps, g->ring_Bps) : g->ring_Bps;
	if (g->hosts < 2 || !(g->network_Bps > 0))
		return rate;
	double n = (double)g->size, outside = c == COLL_ALLTOALL ? (n - n / (double)g->hosts) / (n - 1) : 1;
	return fmin(rate, g->network_Bps / outside);
}

int64_t pair_stride(const struct machine *m, int64_t stride, int64_t from, int64_t to)
{
	int64_t low = (from < to ? from : to) * stride, distance = (from < to ? to - from : from - to) * stride, host = m->devices_per_node, last = low + stride - 1;
	bool one_host = m->nodes == 1 || (low / host == (low + distance) / host && last / host == (last + distance) / host);
	if (!one_host)
		return host;
	return host % (2 * distance) == 0 ? distance : 1;
}

double collective_time_s(const struct machine *m, enum collective c, int64_t size, int64_t stride, double bytes)
{
	if (size <= 1)
		return 0;
	double n = (double)size;
	int64_t k = size;
	bool parts = collective_reduces(c) || collective_cuts(c);
	const struct profile_curve *curve = m->profile ? nearest_curve(m, c, size, stride, &k) : NULL;
	if (curve)
		return parts ? (n - 1) / (double)(k - 1) * profile_curve_at(curve, bytes * (double)k / n, 0) : profile_curve_at(curve, bytes, 0);
	struct group g;
	if (machine_group(m, size, stride, &g, NULL) || !(g.ring_Bps > 0))
		return INFINITY;
	bool message = c == COLL_SEND || c == COLL_RECV, exchange = message || c == COLL_ALLTOALL || c == COLL_SENDRECV;
	double hops = c == COLL_ALL_REDUCE ? 2 * (n - 1) : message || c == COLL_SENDRECV ? 1 : n - 1;
	return hops * g.ring_latency_s + collective_wire_factor(c, size) * bytes / (exchange ? exchange_Bps(&g, c) : g.ring_Bps);
}
