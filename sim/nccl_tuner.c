/* NCCL's own time model: constants and composition of NVIDIA/nccl src/graph/tuning.cc, in its units (microseconds, GB/s). */
#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "sim/nccl.h"

#define NODE_COLUMNS 3 /* 1, 2, 4 and more */

struct constants {
	int since; /* version */
	double base[NCCL_ALGOS][NCCL_PROTOS];
	double hop[NCCL_HOPS][NCCL_ALGOS][NCCL_PROTOS];
	double ll_max[NCCL_ARCHS][NODE_COLUMNS];
	double ring_ll_share;     /* of the bus */
	double nvls_share[NCCL_ARCHS];
	double nvls_tree_max[NCCL_ARCHS][NODE_COLUMNS];
	bool pat;
};

#define NEVER {0, 0, 0}

/* Newest last. 2.18: as read in NVIDIA/nccl@b6475625 (2.21; its NVLS bandwidth is 5/6 of the bus, not an efficiency of the architecture). 2.28: as read in 2.30.7 (commit 5067397c). */
static const struct constants versions[] = {
	{
		21800,
		{{6.8, 14.0, 0}, {6.6, 14.0, 8.4}, NEVER, NEVER, NEVER, NEVER, {8, 8, 8}},
		{{{0.6, 1.25, 28}, {0.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 23}, {0, 0, 23}, {0, 0, 4}},
		 {{1.0, 1.9, 28}, {1.0, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, NEVER, NEVER, {0, 0, 4}},
		 {{5.0, 8.5, 28}, {2.7, 4.0, 14.0}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 14}, {0, 0, 14}}},
		{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}},
		0.25,
		{0, 0, 0.85, 0.85},
		{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {38.7, 41.4, 36.0}},
		false,
	},
	{
		22800,
		{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, NEVER, NEVER, NEVER, NEVER, {8, 8, 8}},
		{{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}},
		 {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, NEVER, NEVER, {0, 0, 4}},
		 {{5.0, 8.5, 14}, {2.7, 4.0, 14.0}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}},
		{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282, 90, 70}},
		0.5,
		{0, 0, 0.85, 0.74},
		{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}},
		true,
	},
};

/* The same in all versions since 2.18; Blackwell since 2.26. */
static const double ring_ll128_max[NCCL_ARCHS] = {20, 20, 36.7, 40}; /* of a channel */
static const double tree_ll128_max[NCCL_ARCHS][NODE_COLUMNS] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}};
static const double tree_max[NCCL_ARCHS][NODE_COLUMNS] = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}};

#define TREE_SIZES 24 /* powers of two from 64 B */
static const double tree_factor[NCCL_PROTOS][TREE_SIZES] = {
	{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
	{1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
	{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
};

static const struct constants *constants_of(int version)
{
	size_t n = sizeof versions / sizeof versions[0], i = n - 1;
	while (version > 0 && i > 0 && versions[i].since > version)
		i--;
	return &versions[i];
}

static int column(int64_t nodes)
{
	return nodes <= 1 ? 0 : nodes == 2 ? 1 : 2;
}

int64_t nccl_steps(enum nccl_coll coll, int64_t ranks)
{
	return coll == NCCL_ALL_REDUCE ? 2 * (ranks - 1) : coll == NCCL_ALL_GATHER || coll == NCCL_REDUCE_SCATTER ? ranks - 1 : ranks;
}

double nccl_base_us(int version, enum nccl_algo a, enum nccl_proto p)
{
	return constants_of(version)->base[a][p];
}

double nccl_hop_us(int version, enum nccl_hop h, enum nccl_algo a, enum nccl_proto p)
{
	return constants_of(version)->hop[h][a][p];
}

double nccl_tree_factor(enum nccl_proto p, double bytes, bool smooth)
{
	double at = log2(fmax(bytes, 64) / 64);
	int low = (int)at;
	if (low >= TREE_SIZES)
		return 1;
	double a = tree_factor[p][low], b = low + 1 < TREE_SIZES ? tree_factor[p][low + 1] : 1;
	return smooth ? a * pow(b / a, at - low) : a; /* in logarithms: size / factor then never falls */
}

/* ---- bandwidth ---- */

static double ring_bus(const struct nccl_comm *c, const struct constants *k, enum nccl_coll coll, enum nccl_proto p)
{
	double bus = c->channels * c->channel_GBps;
	int row = c->nodes <= 1 ? (int)c->arch : c->amd ? NCCL_AMPERE : NCCL_VOLTA; /* across hosts the CPU decides */
	if (p == NCCL_LL) {
		double share = k->ring_ll_share == 0.25 && c->nodes <= 1 && coll != NCCL_ALL_REDUCE ? 1.0 / 3 : k->ring_ll_share;
		return fmin(k->ll_max[row][column(c->nodes)], share * bus);
	}
	return p == NCCL_LL128 ? fmin(0.92 * bus, c->channels * ring_ll128_max[c->arch]) : bus;
}

static double tree_bus(const struct nccl_comm *c, const struct constants *k, enum nccl_proto p)
{
	int n = column(c->nodes), row = c->nodes <= 1 ? (int)c->arch : c->amd ? NCCL_AMPERE : NCCL_VOLTA;
	double bus = fmin(0.92 * c->channels * c->channel_GBps, c->channels * tree_max[c->arch][n]);
	if (p == NCCL_LL)
		return fmin(bus / 3.8, k->ll_max[row][n]);
	return p == NCCL_LL128 ? fmin(bus * (c->nodes <= 1 ? 7.0 / 9 : 120.0 / 128), c->channels * tree_ll128_max[c->arch][n]) : bus;
}

/* Two operations at once, up and down. */
static double nvls_bus(const struct nccl_comm *c, const struct constants *k, enum nccl_algo a)
{
	double n = c->nvls_channels, bw = c->nvls_channel_GBps * k->nvls_share[c->arch] * (n - 1) / n * 2;
	if (a == NCCL_NVLS_TREE)
		bw = fmin(fmin(bw, c->channels / n * c->channel_GBps * (c->nodes <= 2 ? 2 : 1)), k->nvls_tree_max[c->arch][column(c->nodes)]);
	return n * bw;
}

static double collnet_bus(const struct nccl_comm *c, enum nccl_algo a)
{
	double bus = c->channels * c->channel_GBps, gpus_a_channel = (double)c->ranks / (double)c->nodes / c->channels;
	if (a == NCCL_COLLNET_CHAIN)
		return bus;
	return bus / ((gpus_a_channel + 1) / 2) * (c->arch >= NCCL_HOPPER ? 0.85 : 1);
}

static bool runs(const struct nccl_comm *c, const struct constants *k, enum nccl_coll coll, enum nccl_algo a, enum nccl_proto p)
{
	bool reduces_all = coll == NCCL_ALL_REDUCE;
	if (p == NCCL_LL128 && !c->nvlink)
		return false;
	switch (a) {
	case NCCL_RING:
		return coll <= NCCL_BROADCAST;
	case NCCL_TREE:
		return reduces_all;
	case NCCL_COLLNET_DIRECT:
	case NCCL_COLLNET_CHAIN:
		return reduces_all && p == NCCL_SIMPLE && c->collnet && c->nodes > 1;
	case NCCL_NVLS:
		return reduces_all && p == NCCL_SIMPLE && c->nvls_channels > 1 && (c->nodes <= 1 || c->collnet);
	case NCCL_NVLS_TREE:
		return reduces_all && p == NCCL_SIMPLE && c->nvls_channels > 1 && c->nodes > 1;
	case NCCL_PAT:
		return k->pat && (coll == NCCL_ALL_GATHER || coll == NCCL_REDUCE_SCATTER) && p == NCCL_SIMPLE && c->nodes > 1 && c->ranks == c->nodes;
	case NCCL_ALGOS:
		break;
	}
	return false;
}

double nccl_bandwidth_GBps(const struct nccl_comm *c, enum nccl_coll coll, enum nccl_algo a, enum nccl_proto p)
{
	const struct constants *k = constants_of(c->version);
	double ring = (double)c->ranks / (double)nccl_steps(coll, c->ranks); /* bus to algorithm */
	if (!runs(c, k, coll, a, p))
		return 0;
	if (a == NCCL_RING)
		return ring_bus(c, k, coll, p) * ring;
	if (a == NCCL_TREE)
		return tree_bus(c, k, p) * 0.5;
	if (a == NCCL_NVLS || a == NCCL_NVLS_TREE)
		return k->since >= 22800 ? nvls_bus(c, k, a) * ring : c->nvls_channels * c->nvls_channel_GBps * 5 / 6;
	return a == NCCL_PAT ? c->channels * c->channel_GBps * 0.75 * ring : collnet_bus(c, a) * 0.5;
}

/* ---- latency ---- */

static double ring_latency_us(const struct nccl_comm *c, const struct constants *k, enum nccl_coll coll, enum nccl_proto p)
{
	enum nccl_hop inside = c->nvlink ? NCCL_HOP_NVLINK : NCCL_HOP_PCI;
	double steps = (double)nccl_steps(coll, c->ranks), intra = k->hop[inside][NCCL_RING][p];
	double inter = k->hop[NCCL_HOP_NET][c->ranks == c->nodes ? NCCL_TREE : NCCL_RING][p] + c->net_latency_us * (p == NCCL_SIMPLE ? 2 : 1); /* Simple: a flush too */
	double crossings = c->nodes <= 1 ? 0 : coll == NCCL_ALL_REDUCE ? 2 * (double)(c->nodes - 1) : (double)(c->nodes - 1);
	if (coll == NCCL_BROADCAST) /* a pipeline */
		return steps * k->hop[c->nodes > 1 ? NCCL_HOP_NET : inside][p == NCCL_SIMPLE ? NCCL_TREE : NCCL_RING][p];
	if (c->nodes > 1)
		intra = fmax(intra, (c->amd ? 2.0 : 1.0) * (p == NCCL_SIMPLE ? 3 : 1));
	return (steps - crossings) * intra + crossings * inter;
}

bool nccl_tuner(const struct nccl_comm *c, enum nccl_coll coll, enum nccl_algo a, enum nccl_proto p, double *latency_us, double *GBps)
{
	const struct constants *k = constants_of(c->version);
	enum nccl_hop inside = c->nvlink ? NCCL_HOP_NVLINK : NCCL_HOP_PCI;
	double intra = k->hop[inside][a][p], inter = k->hop[NCCL_HOP_NET][a][p] + c->net_latency_us * (p == NCCL_SIMPLE ? 2 : 1);
	double per_node = (double)c->ranks / (double)c->nodes, levels = floor(log2((double)c->nodes)), lat = k->base[a][p];
	*GBps = nccl_bandwidth_GBps(c, coll, a, p);
	if (!(*GBps > 0))
		return false;
	if (a == NCCL_RING)
		lat += ring_latency_us(c, k, coll, p);
	else if (a == NCCL_TREE)
		lat += 2 * ((per_node - 1) * intra + levels * inter);
	else if (a == NCCL_COLLNET_DIRECT)
		lat += 2 * (fmin(1, per_node - 1) * intra + (per_node - 1) * 0.4) + inter;
	else if (a == NCCL_COLLNET_CHAIN)
		lat += 2 * (per_node - 1) * intra + inter;
	else if (a == NCCL_NVLS)
		lat = intra + (c->nodes > 1 ? inter : 0);
	else if (a == NCCL_NVLS_TREE)
		lat += intra + 2 * levels * inter;
	else
		lat += levels * inter / 3.5 + 2.8 * (double)c->ranks;
	*latency_us = lat;
	return true;
}
