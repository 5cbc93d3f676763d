#include "sim/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inside a host GPUs have other links than between hosts: a time of one says nothing of the other. On cores one path was measured for all. */
static bool comparable(const struct machine *m, int64_t size, int64_t stride, int64_t measured)
{
	return m->device.is_host || machine_group_in_node(m, size, stride) == (measured <= m->profile->key.ranks_per_host);
}

/* Relative uncertainties, one standard deviation. */
#define SIGMA_LINK_CURVE 0.15
#define SIGMA_ALPHA_BETA 0.25

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

static double link_time_s(const struct machine *m, enum collective c, int64_t size, int64_t stride, double bytes)
{
	struct group g;
	double n = (double)size;
	if (machine_group(m, size, stride, &g, NULL) || !(g.ring_Bps > 0))
		return INFINITY;
	bool lone = c == COLL_SENDRECV || c == COLL_SEND || c == COLL_RECV, exchange = lone || c == COLL_ALLTOALL;
	double hops = c == COLL_ALL_REDUCE ? 2 * (n - 1) : lone ? 1 : n - 1;
	return hops * g.ring_latency_s + collective_wire_factor(c, size) * bytes / (exchange ? exchange_Bps(&g, c) : g.ring_Bps);
}

/* The group's links as NCCL finds them. False: nothing of that kind, or not NCCL's. */
static bool find_group(const struct machine *m, enum collective c, int64_t size, int64_t stride, struct nccl_group *g, enum nccl_coll *coll)
{
	bool measured_path = m->profile && profile_get_value(m->profile, "p2p.Bps", 0) > 0;
	return !measured_path && nccl_coll_of(collective_name(c == COLL_SEND || c == COLL_RECV ? COLL_SENDRECV : c), coll) && nccl_group_of(m, size, stride, g, NULL) == ST_OK;
}

static struct collective_price price_as_nccl(const struct nccl_group *g, enum nccl_coll coll, struct nccl_choice forced, double bytes)
{
	struct nccl_result r = nccl_time(g, coll, forced, bytes);
	return (struct collective_price){r.time_s, r.bound == NCCL_BY_LATENCY ? BOUND_LATENCY : BOUND_LINK, r.rel_sigma, false, r.channels, (int32_t)r.algo, (int32_t)r.proto};
}

/* Of what a curve says of `k` ranks: the time of its first point is latency, the rest moves bytes. */
static double curve_what_if(const struct machine *m, int64_t k, double empty_s, double time_s)
{
	const struct what_if *w = &m->what_if;
	const double rate = m->device.is_host || k <= m->profile->key.ranks_per_host ? w->inside : w->network;
	return fmin(empty_s, time_s) * what_if_factor(w->latency) + fmax(0, time_s - empty_s) / what_if_factor(rate);
}

struct collective_price collective_price(const struct machine *m, enum collective c, int64_t size, int64_t stride, struct nccl_choice forced, double bytes)
{
	struct collective_price p = {.rel_sigma = SIGMA_ALPHA_BETA, .algo = -1, .proto = -1};
	struct nccl_group g;
	enum nccl_coll coll;
	if (size <= 1)
		return p;
	double n = (double)size, empty_s;
	int64_t k = size;
	const struct profile_curve *curve = m->profile ? nearest_curve(m, c, size, stride, &k) : NULL;
	bool parts = collective_reduces(c) || collective_cuts(c);
	if (curve) {
		double steps = parts ? (n - 1) / (double)(k - 1) : 1;
		p.time_s = steps * profile_curve_at(curve, parts ? bytes * (double)k / n : bytes, 0);
		empty_s = steps * profile_curve_at(curve, 0, 0);
		p.time_s = curve_what_if(m, k, empty_s, p.time_s);
		p.measured = k == size;
		p.rel_sigma = p.measured ? SIGMA_LINK_CURVE : SIGMA_ALPHA_BETA;
	} else if (find_group(m, c, size, stride, &g, &coll)) {
		return price_as_nccl(&g, coll, forced, bytes);
	} else {
		p.time_s = link_time_s(m, c, size, stride, bytes);
		empty_s = link_time_s(m, c, size, stride, 0);
	}
	p.bound = empty_s > p.time_s / 2 ? BOUND_LATENCY : BOUND_LINK;
	return p;
}

double collective_time_s(const struct machine *m, enum collective c, int64_t size, int64_t stride, double bytes)
{
	return collective_price(m, c, size, stride, NCCL_ANY, bytes).time_s;
}

struct nccl_choice collective_choice(const struct config *c)
{
	static const int algos[ALGO_COUNT] = {[ALGO_AUTO] = -1, [ALGO_RING] = NCCL_RING, [ALGO_TREE] = NCCL_TREE, [ALGO_NVLS] = NCCL_NVLS, [ALGO_COLLNET] = NCCL_COLLNET_DIRECT, [ALGO_PAT] = NCCL_PAT};
	static const int protos[PROTO_COUNT] = {[PROTO_AUTO] = -1, [PROTO_LL] = NCCL_LL, [PROTO_LL128] = NCCL_LL128, [PROTO_SIMPLE] = NCCL_SIMPLE};
	return (struct nccl_choice){algos[c->algorithm], protos[c->protocol]};
}
