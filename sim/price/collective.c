#include "sim/price/collective.h"

#include <math.h>

#include "sim/price/cost.h"
#include "sim/price/rccl.h"

/* Returns the rate of an exchange across hosts. In a chain every member but the last passes on the whole buffer. Parts
 * for other hosts leave through this member's share of the NICs. */
static double exchange_Bps(const struct group *g, enum collective c)
{
	double rate = c != COLL_ALLTOALL ? fmin(g->pair_Bps, g->ring_Bps) : g->ring_Bps;
	if (g->hosts < 2 || !(g->network_Bps > 0))
		return rate;
	double n = (double)g->size, outside = c == COLL_ALLTOALL ? (n - n / (double)g->hosts) / (n - 1) : 1;
	return fmin(rate, g->network_Bps / outside);
}

int64_t pair_stride(const struct rates *r, int64_t stride, int64_t from, int64_t to)
{
	int64_t low = (from < to ? from : to) * stride, distance = (from < to ? to - from : from - to) * stride,
		host = r->devices_per_node, last = low + stride - 1;
	bool one_host = r->nodes == 1 ||
	                (low / host == (low + distance) / host && last / host == (last + distance) / host);
	if (!one_host)
		return r->is_host ? distance : host;
	return host % (2 * distance) == 0 ? distance : 1;
}

double stage_relief(const struct rates *r, int64_t stride, struct error *e)
{
	struct group g;
	const int64_t host = r->devices_per_node;
	if (r->is_host || r->nodes == 1 || stride >= host || rates_group(r, 2, host, &g, e) || !(g.network_Bps > 0))
		return 1;
	const double beside = g.pair_Bps / g.network_Bps; /* devices that share a NIC while all of them send */
	return fmax(1, beside / fmin((double)stride, beside));
}

static double link_time_s(const struct rates *r, enum collective c, int64_t size, int64_t stride, double bytes,
	struct error *e)
{
	struct group g;
	if (rates_group(r, size, stride, &g, e) || !(g.ring_Bps > 0))
		return INFINITY;
	bool exchange = c == COLL_SENDRECV || c == COLL_SEND || c == COLL_RECV || c == COLL_ALLTOALL;
	return collective_rounds(c, size) * g.ring_latency_s +
	       collective_wire_factor(c, size) * bytes / (exchange ? exchange_Bps(&g, c) : g.ring_Bps);
}

#define ALGORITHM_OF_NCCL(id, name, nccl, protocol, portable, pricer, price) [ALGO_##id] = (price),
#define PROTOCOL_OF_NCCL(id, name, nccl, price) [PROTO_##id] = (price),

struct nccl_choice collective_nccl_choice(struct collective_choice forced)
{
	static const int algorithms[] = {ALGORITHMS(ALGORITHM_OF_NCCL)}, protocols[] = {PROTOCOLS(PROTOCOL_OF_NCCL)};
	return (struct nccl_choice){algorithms[forced.algorithm], protocols[forced.protocol]};
}

static struct collective_price price_as_nccl(const struct nccl_group *g, enum collective c,
	struct collective_choice forced, double bytes)
{
	const struct nccl_result r = nccl_time(g, c, collective_nccl_choice(forced), bytes);
	return (struct collective_price){r.time_s, r.bound == NCCL_BY_LATENCY ? BOUND_LATENCY : BOUND_LINK, r.rel_sigma,
		false, r.channels, (int32_t)r.algo, (int32_t)r.proto, nccl_algo_name(r.algo)};
}

struct collective_price price_flat(const struct rates *r, enum collective c, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, struct error *e)
{
	struct collective_price p = {.rel_sigma = r->parameters->cost.sigma_alpha_beta,
		.algo = -1,
		.proto = -1,
		.algorithm = algorithm_traits[ALGO_RING].name};
	struct nccl_group g;
	if (size <= 1)
		return p;
	double empty_s;
	struct measured_collective measured;
	if (rates_collective(r, c, size, stride, bytes, &measured)) {
		p.time_s = measured.time_s;
		empty_s = measured.empty_s;
		p.measured = measured.same_size;
		p.rel_sigma = p.measured ? r->parameters->cost.sigma_link_curve : r->parameters->cost.sigma_alpha_beta;
		p.algorithm = p.measured ? "measured" : p.algorithm;
	} else if (!r->path_is_measured && nccl_runs_on(r)) {
		if (nccl_group_of(r, size, stride, &g, e) == ST_OK)
			return price_as_nccl(&g, c, forced, bytes);
		p.time_s = empty_s = INFINITY;
	} else if (!r->path_is_measured && rccl_runs_on(r)) {
		struct rccl_result found;
		rccl_time(r, c, size, stride, forced.algorithm == ALGO_RING, bytes, &found,
			e); /* infinite where it fails */
		p.time_s = found.time_s;
		empty_s = found.latency_s;
		p.rel_sigma = found.rel_sigma;
		p.algorithm = found.algorithm;
	} else {
		p.time_s = link_time_s(r, c, size, stride, bytes, e);
		empty_s = link_time_s(r, c, size, stride, 0, e);
		if (!r->path_is_measured && bytes < r->parameters->nccl.large_B)
			p.rel_sigma = r->parameters->cost.sigma_alpha_beta_small;
	}
	p.bound = empty_s > p.time_s / 2 ? BOUND_LATENCY : BOUND_LINK;
	return p;
}

#define PRICER(id, name, nccl, protocol, portable, pricer, ...) [ALGO_##id] = price_##pricer,

struct collective_price collective_price(const struct rates *r, enum collective c, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, struct error *e)
{
	static collective_pricer *const pricers[] = {ALGORITHMS(PRICER)};
	return pricers[forced.algorithm](r, c, size, stride, forced, bytes, e);
}

double collective_time_s(const struct rates *r, enum collective c, int64_t size, int64_t stride, double bytes,
	struct error *e)
{
	return collective_price(r, c, size, stride, COLLECTIVE_ANY, bytes, e).time_s;
}
