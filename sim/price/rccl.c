#include "sim/price/rccl.h"

#include <math.h>

#include "sim/price/nccl.h"

/* The facts of a group that do not depend on the bytes. */
struct pricing {
	const struct parameters *k;
	const struct network_spec *net;
	double ranks, hosts, per_host, levels;
	double posting_s; /* to post a transfer between hosts */
	bool mesh;        /* all GPUs of a host are joined directly, and all take part */
	bool xgmi;        /* else PCIe */
	double ring;      /* B/s: of a ring inside a host */
	double chain;     /* B/s: of chains that enter and leave a host by its NICs */
	double nics;      /* B/s: of all ranks of a host */
};

bool rccl_runs_on(const struct rates *r) { return r->has_links && !r->is_host && r->machine->device.gfx[0]; }

static enum status pricing_of(const struct rates *r, int64_t size, int64_t stride, struct pricing *x, struct error *e)
{
	struct group all, inside;
	enum status st = rates_group(r, size, stride, &all, e);
	const int64_t per_host = st ? 1 : (size + all.hosts - 1) / all.hosts;
	inside = all;
	if (!st && all.hosts > 1 && per_host > 1)
		st = rates_group(r, per_host, stride, &inside, e);
	if (st)
		return st;
	const bool alone = all.hosts > 1 && per_host <= 1;
	const double h = (double)per_host;
	*x = (struct pricing){
		.k = r->parameters,
		.net = &r->network,
		.ranks = (double)size,
		.hosts = (double)all.hosts,
		.per_host = h,
		.levels = ceil(log2((double)all.hosts)),
		.posting_s = 1e-6 * (r->amd_cpus ? r->parameters->nccl_tuner.net_overhead_amd_us
						 : r->parameters->nccl_tuner.net_overhead_us),
		.xgmi = alone || inside.bottleneck == LINK_XGMI,
		.ring = alone ? INFINITY : r->parameters->nccl.nvlink_reached * inside.ring_Bps,
		.nics = all.hosts > 1 ? r->network.share * h * all.network_Bps : INFINITY,
	};
	/* every GPU has a link of its own to each other one: a mesh's rings use all of them */
	x->mesh = !alone && x->xgmi && per_host > 2 && per_host == r->box_gpus && inside.rings == per_host - 1;
	x->chain = x->mesh ? x->ring * h / (h - 1) : x->ring;
	if (all.hosts > 1 && r->network.node_Bps > 0)
		x->nics = fmin(x->nics, r->network.node_Bps);
	if (!(x->ring > 0) || !(x->nics > 0))
		return error_set(e, ST_INPUT, "%s: no rate of the links between %lld ranks is known", r->machine->name,
			(long long)size);
	return ST_OK;
}

/* ---- the candidates ---- */

struct candidate {
	double latency_s, time_s;
};

static double ramp_s(const struct pricing *x, double bytes) { return x->k->nccl.ramp * sqrt(bytes); }

static double hop_s(const struct pricing *x, enum nccl_algo a, enum nccl_proto p)
{
	return 1e-6 * (x->xgmi ? x->k->rccl.hop_xgmi_us[a][p] : x->k->rccl.hop_pci_us[a][p]);
}

static double net_hop_s(const struct pricing *x, enum nccl_algo a, enum nccl_proto p)
{
	const struct network_spec *n = x->net;
	const double own = 1e-6 * x->k->rccl.hop_net_us[a][p];
	return fmax(own, p == NCCL_SIMPLE ? n->simple_small_s : a == NCCL_TREE ? n->tree_ll_s : n->ring_ll_s);
}

/* Returns the share of a link that a protocol's bytes are: LL sends four bytes with four of a flag, LL128 120 of 128.
 */
static double share_of(const struct pricing *x, enum nccl_proto p)
{
	return p == NCCL_LL ? x->k->rccl.ll_share : p == NCCL_LL128 ? x->k->nccl_tuner.ring_ll128_share : 1;
}

static struct candidate by_ring(const struct pricing *x, enum collective c, enum nccl_proto p, double bytes)
{
	const double steps = (double)nccl_steps(c, (int64_t)x->ranks),
		     crossings = x->hosts > 1 ? (c == COLL_ALL_REDUCE ? 2 : 1) * (x->hosts - 1) : 0,
		     bus = share_of(x, p) * (x->hosts > 1 ? fmin(x->chain, x->nics) : x->ring),
		     posted = x->hosts > 1 ? x->posting_s * x->k->nccl_tuner.net_overheads[p] : 0,
		     latency = 1e-6 * x->k->rccl.base_us[NCCL_RING][p] +
	                       fmax(0, steps - crossings) * fmax(hop_s(x, NCCL_RING, p), posted) +
	                       crossings * net_hop_s(x, NCCL_RING, p),
		     transfer = bytes * (c == COLL_BROADCAST ? 1 : steps / x->ranks) / bus,
		     hidden = x->hosts > 1 ? x->net->hiding : 1;
	return (struct candidate){latency,
		ramp_s(x, bytes) + pow(pow(latency, hidden) + pow(transfer, hidden), 1 / hidden)};
}

static struct candidate by_tree(const struct pricing *x, enum nccl_proto p, double bytes)
{
	const double rate = share_of(x, p) *
	                    fmin(x->k->nccl_tuner.tree_share * x->chain / 2, x->hosts <= 2 ? x->nics : x->nics / 2),
		     stored = p == NCCL_SIMPLE ? 0 : fmin(bytes, x->k->nccl.block_most_B) / x->net->block_tree_Bps,
		     latency = 1e-6 * x->k->rccl.base_us[NCCL_TREE][p] +
	                       2 * (x->per_host - 1) * hop_s(x, NCCL_TREE, p) +
	                       2 * x->levels * (net_hop_s(x, NCCL_TREE, p) + stored);
	return (struct candidate){latency, latency + bytes / rate + ramp_s(x, bytes)};
}

/* Each GPU sends a part to every other one over their own link, sums what it got, and sends the sums likewise. */
static struct candidate all_pairs(const struct pricing *x, enum collective c, double bytes)
{
	const double hops = c == COLL_ALL_REDUCE ? 2 : 1,
		     latency = 1e-6 * x->k->rccl.base_us[NCCL_RING][NCCL_LL] + hops * hop_s(x, NCCL_RING, NCCL_LL);
	return (struct candidate){latency,
		latency + hops * bytes * (x->ranks - 1) / x->ranks / (share_of(x, NCCL_LL) * x->ring)};
}

/* Each rank has a part for every other one; a message's are all for one. */
static struct candidate pairs(const struct pricing *x, enum collective c, double bytes)
{
	const bool all = c == COLL_ALLTOALL;
	const double here = all            ? bytes * (x->per_host - 1) / x->ranks
	                    : x->hosts > 1 ? 0
	                                   : bytes,
		     away = all            ? bytes * (x->ranks - x->per_host) / x->ranks
	                    : x->hosts > 1 ? bytes
	                                   : 0,
		     latency = 1e-6 * x->k->rccl.base_us[NCCL_RING][NCCL_SIMPLE] +
	                       (x->hosts > 1 ? net_hop_s(x, NCCL_RING, NCCL_SIMPLE) : hop_s(x, NCCL_RING, NCCL_SIMPLE));
	return (struct candidate){latency, latency + fmax(here / x->ring, away * x->per_host / x->nics)};
}

static void offer(struct candidate c, const char *algorithm, struct rccl_result *best)
{
	if (c.time_s < best->time_s)
		*best = (struct rccl_result){c.time_s, c.latency_s, best->rel_sigma, algorithm};
}

static double sigma_of(const struct pricing *x, double bytes)
{
	const bool large = bytes >= x->k->nccl.large_B;
	if (x->hosts > 1)
		return large ? x->k->rccl.sigma_hosts_large : x->k->rccl.sigma_hosts_small;
	return large ? x->k->rccl.sigma_host_large : x->k->rccl.sigma_host_small;
}

enum status rccl_time(const struct rates *r, enum collective c, int64_t size, int64_t stride, bool ring, double bytes,
	struct rccl_result *out, struct error *e)
{
	struct pricing x;
	*out = (struct rccl_result){.time_s = INFINITY, .algorithm = "ring"};
	enum status st = pricing_of(r, size, stride, &x, e);
	if (st)
		return st;
	out->rel_sigma = sigma_of(&x, bytes);
	if (c > COLL_BROADCAST) {
		offer(pairs(&x, c, bytes), "pairs", out);
		return ST_OK;
	}
	for (int p = 0; p < NCCL_PROTOS; p++) {
		offer(by_ring(&x, c, (enum nccl_proto)p, bytes), "ring", out);
		if (!ring && c == COLL_ALL_REDUCE && x.hosts > 1)
			offer(by_tree(&x, (enum nccl_proto)p, bytes), "tree", out);
	}
	if (!ring && x.mesh && x.hosts <= 1 && (c == COLL_ALL_REDUCE || c == COLL_ALL_GATHER))
		offer(all_pairs(&x, c, bytes), "all pairs", out);
	return ST_OK;
}
