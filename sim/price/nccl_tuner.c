/* NCCL's own time model: the composition of NVIDIA/nccl src/graph/tuning.cc, in its units (microseconds, GB/s). Its
 * constants are the sections nccl_tuner, nccl_2_18 and nccl_2_28 of configs/model. */
#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/array.h"
#include "sim/price/nccl.h"

static_assert((int)NCCL_ALGOS == NCCL_ALGO_COUNT && (int)NCCL_PROTOS == NCCL_PROTO_COUNT &&
		      (int)NCCL_ARCHS == NCCL_ARCH_COUNT,
	"the tables of configs/model have a row or a column for each");

const struct nccl_version *nccl_version_of(const struct parameters *k, int version)
{
	const struct nccl_version *const newest_first[] = {&k->nccl_2_28, &k->nccl_2_18};
	size_t i = 0;
	while (version > 0 && i + 1 < COUNT(newest_first) && newest_first[i]->since > version)
		i++;
	return newest_first[i];
}

static int column(const struct nccl_group *g) { return g->hosts <= 1 ? 0 : g->hosts == 2 ? 1 : 2; }

/* Returns the most that LL reaches: on one host by its GPUs, across hosts by their CPUs. */
static double ll_max_GBps(const struct nccl_group *g, const struct nccl_version *v)
{
	return v->ll_max_GBps[g->hosts <= 1 ? g->arch : g->amd ? NCCL_AMPERE : NCCL_VOLTA][column(g)];
}

enum nccl_hop nccl_hop_inside(const struct nccl_group *g) { return g->nvlink ? NCCL_HOP_NVLINK : NCCL_HOP_PCI; }

int64_t nccl_steps(enum collective coll, int64_t ranks)
{
	return coll == COLL_ALL_REDUCE                                  ? 2 * (ranks - 1)
	       : coll == COLL_ALL_GATHER || coll == COLL_REDUCE_SCATTER ? ranks - 1
	                                                                : ranks;
}

double nccl_hop_us(const struct nccl_version *v, enum nccl_hop h, enum nccl_algo a, enum nccl_proto p)
{
	return h == NCCL_HOP_NVLINK ? v->hop_nvlink_us[a][p]
	       : h == NCCL_HOP_PCI  ? v->hop_pci_us[a][p]
	                            : v->hop_net_us[a][p];
}

double nccl_tree_factor(const struct parameters *k, enum nccl_proto p, double bytes)
{
	double at = log2(fmax(bytes, 64) / 64);
	int low = (int)at;
	if (low >= NCCL_TREE_SIZES)
		return 1;
	const double *factor = k->nccl_tuner.tree_factor[p];
	double a = factor[low], b = low + 1 < NCCL_TREE_SIZES ? factor[low + 1] : 1;
	return a * pow(b / a, at - low); /* in logarithms, so that size / factor never falls */
}

/* ---- bandwidth ---- */

static double ring_bus(const struct nccl_group *g, const struct nccl_version *v, enum collective coll,
	enum nccl_proto p)
{
	double bus = g->channels * g->channel_GBps;
	const struct parameters *k = g->parameters;
	if (p == NCCL_LL) {
		bool inside = g->hosts <= 1 && coll != COLL_ALL_REDUCE;
		return fmin(ll_max_GBps(g, v), (inside ? v->ring_ll_share_inside : v->ring_ll_share) * bus);
	}
	return p == NCCL_LL128 ? fmin(k->nccl_tuner.ring_ll128_share * bus,
					 g->channels * k->nccl_tuner.ring_ll128_max_GBps[g->arch])
	                       : bus;
}

static double tree_bus(const struct nccl_group *g, const struct nccl_version *v, enum nccl_proto p)
{
	const struct parameters *k = g->parameters;
	int n = column(g);
	double bus = fmin(k->nccl_tuner.tree_share * g->channels * g->channel_GBps,
		g->channels * k->nccl_tuner.tree_max_GBps[g->arch][n]);
	if (p == NCCL_LL)
		return fmin(bus / k->nccl_tuner.tree_ll_divisor, ll_max_GBps(g, v));
	if (p != NCCL_LL128)
		return bus;
	return fmin(bus * (g->hosts <= 1 ? k->nccl_tuner.tree_ll128_inside : k->nccl_tuner.tree_ll128_across),
		g->channels * k->nccl_tuner.tree_ll128_max_GBps[g->arch][n]);
}

/* Returns the bus bandwidth of NVLS, which reduces up and broadcasts down at the same time. */
static double nvls_bus(const struct nccl_group *g, const struct nccl_version *v, enum nccl_algo a)
{
	double n = g->nvls_channels, bw = g->nvls_channel_GBps * v->nvls_share[g->arch] * (n - 1) / n * 2;
	if (a == NCCL_NVLS_TREE)
		bw = fmin(fmin(bw, g->channels / n * g->channel_GBps * (g->hosts <= 2 ? 2 : 1)),
			v->nvls_tree_max_GBps[g->arch][column(g)]);
	return n * bw;
}

static double collnet_bus(const struct nccl_group *g, enum nccl_algo a)
{
	double bus = g->channels * g->channel_GBps, gpus_a_channel = (double)g->ranks / (double)g->hosts / g->channels;
	if (a == NCCL_COLLNET_CHAIN)
		return bus;
	return bus / ((gpus_a_channel + 1) / 2) *
	       (g->arch >= NCCL_HOPPER ? g->parameters->nccl_tuner.collnet_direct_share : 1);
}

static bool runs(const struct nccl_group *g, const struct nccl_version *v, enum collective coll, enum nccl_algo a,
	enum nccl_proto p)
{
	bool reduces_all = coll == COLL_ALL_REDUCE;
	if (p == NCCL_LL128 && !g->nvlink)
		return false;
	switch (a) {
	case NCCL_RING: return coll <= COLL_BROADCAST;
	case NCCL_TREE: return reduces_all;
	case NCCL_COLLNET_DIRECT:
	case NCCL_COLLNET_CHAIN: return reduces_all && p == NCCL_SIMPLE && g->collnet && g->hosts > 1;
	case NCCL_NVLS: return reduces_all && p == NCCL_SIMPLE && g->nvls_channels > 1 && (g->hosts <= 1 || g->collnet);
	case NCCL_NVLS_TREE: return reduces_all && p == NCCL_SIMPLE && g->nvls_channels > 1 && g->hosts > 1;
	case NCCL_PAT:
		return v->pat > 0 && (coll == COLL_ALL_GATHER || coll == COLL_REDUCE_SCATTER) && p == NCCL_SIMPLE &&
		       g->hosts > 1 && g->ranks == g->hosts;
	case NCCL_ALGOS: break;
	}
	return false;
}

double nccl_bandwidth_GBps(const struct nccl_group *g, enum collective coll, enum nccl_algo a, enum nccl_proto p)
{
	const struct nccl_version *v = nccl_version_of(g->parameters, g->version);
	double ring = (double)g->ranks / (double)nccl_steps(coll, g->ranks); /* from bus to algorithm bandwidth */
	if (!runs(g, v, coll, a, p))
		return 0;
	if (a == NCCL_RING)
		return ring_bus(g, v, coll, p) * ring;
	if (a == NCCL_TREE)
		return tree_bus(g, v, p) * 0.5;
	if (a == NCCL_NVLS || a == NCCL_NVLS_TREE)
		return v->nvls_bus_share > 0 ? g->nvls_channels * g->nvls_channel_GBps * v->nvls_bus_share
		                             : nvls_bus(g, v, a) * ring;
	return a == NCCL_PAT ? g->channels * g->channel_GBps * g->parameters->nccl_tuner.pat_share * ring
	                     : collnet_bus(g, a) * 0.5;
}

/* ---- latency ---- */

static double ring_latency_us(const struct nccl_group *g, const struct nccl_version *v, enum collective coll,
	enum nccl_proto p)
{
	const struct parameters *k = g->parameters;
	double steps = (double)nccl_steps(coll, g->ranks), intra = nccl_hop_us(v, nccl_hop_inside(g), NCCL_RING, p);
	double inter = v->hop_net_us[g->ranks == g->hosts ? NCCL_TREE : NCCL_RING][p] +
	               g->net_latency_us * k->nccl_tuner.net_latencies[p];
	double crossings = g->hosts <= 1             ? 0
	                   : coll == COLL_ALL_REDUCE ? 2 * (double)(g->hosts - 1)
	                                             : (double)(g->hosts - 1);
	if (coll == COLL_BROADCAST) /* a chain, pipelined */
		return steps * nccl_hop_us(v, g->hosts > 1 ? NCCL_HOP_NET : nccl_hop_inside(g),
				       p == NCCL_SIMPLE ? NCCL_TREE : NCCL_RING, p);
	if (g->hosts > 1)
		intra = fmax(intra, (g->amd ? k->nccl_tuner.net_overhead_amd_us : k->nccl_tuner.net_overhead_us) *
					    k->nccl_tuner.net_overheads[p]);
	return (steps - crossings) * intra + crossings * inter;
}

bool nccl_tuner(const struct nccl_group *g, enum collective coll, enum nccl_algo a, enum nccl_proto p,
	double *latency_us, double *GBps)
{
	const struct nccl_version *v = nccl_version_of(g->parameters, g->version);
	const struct parameters *k = g->parameters;
	double intra = nccl_hop_us(v, nccl_hop_inside(g), a, p),
	       inter = v->hop_net_us[a][p] + g->net_latency_us * k->nccl_tuner.net_latencies[p];
	double per_node = (double)g->ranks / (double)g->hosts, levels = floor(log2((double)g->hosts)),
	       lat = v->base_us[a][p];
	*GBps = nccl_bandwidth_GBps(g, coll, a, p);
	if (!(*GBps > 0))
		return false;
	if (a == NCCL_RING)
		lat += ring_latency_us(g, v, coll, p);
	else if (a == NCCL_TREE)
		lat += 2 * ((per_node - 1) * intra + levels * inter);
	else if (a == NCCL_COLLNET_DIRECT)
		lat += 2 * (fmin(1, per_node - 1) * intra + (per_node - 1) * k->nccl_tuner.collnet_direct_us) + inter;
	else if (a == NCCL_COLLNET_CHAIN)
		lat += 2 * (per_node - 1) * intra + inter;
	else if (a == NCCL_NVLS)
		lat = intra + (g->hosts > 1 ? inter : 0);
	else if (a == NCCL_NVLS_TREE)
		lat += intra + 2 * levels * inter;
	else
		lat += levels * inter / k->nccl_tuner.pat_hop_divisor + k->nccl_tuner.pat_rank_us * (double)g->ranks;
	*latency_us = lat;
	return true;
}
