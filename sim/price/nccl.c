/* The time of each of NCCL's candidates: NCCL's own composition with corrections from published measurements. Times are
 * in seconds, rates in B/s. */
#include "sim/price/nccl.h"

#include <math.h>

/* ---- names ---- */

static const char *const algo_names[NCCL_ALGOS] = {"tree", "ring", "collnet direct", "collnet chain", "NVLS",
	"NVLS tree", "PAT"};
static const char *const proto_names[NCCL_PROTOS] = {"LL", "LL128", "Simple"};

const char *nccl_algo_name(enum nccl_algo a) { return algo_names[a]; }

const char *nccl_proto_name(enum nccl_proto p) { return proto_names[p]; }

/* ---- rates ---- */

/* The facts of a group that do not depend on the message size. */
struct pricing {
	const struct nccl_group *g;
	const struct network_spec *net;
	const struct parameters *k; /* section nccl: what all machines share; rows: tests/validation/collectives.csv */
	const struct nccl_version *version;
	struct nccl_group comm;   /* with its channels */
	double inside, nics, bus; /* B/s: a ring inside a host; NICs of a host; a ring over all */
	double levels;            /* of a tree over the hosts */
};

/* most: 0: no limit */
static double at_most(double rate, double most) { return most > 0 ? fmin(rate, most) : rate; }

/* Returns NCCL's channels before it doubles them: as many as the rate needs, up to channels_most. */
static double channels_for(const struct nccl_group *g, double GBps)
{
	return fmax(1, fmin(g->parameters->nccl.channels_most, ceil(GBps / g->parameters->nccl.channel_GBps[g->arch])));
}

static double inside_rate(const struct nccl_group *g)
{
	const struct parameters *k = g->parameters;
	if (g->nvlink)
		return k->nccl.nvlink_reached * g->inside_Bps;
	const double pcie_Bps = k->nccl.pcie_reached * g->inside_Bps;
	return g->peer ? pcie_Bps : fmin(pcie_Bps, k->nccl.host_copy_share * g->link_Bps);
}

static double bus_rate(const struct nccl_group *g, double inside, double nics)
{
	if (g->hosts <= 1)
		return inside;
	const struct parameters *k = g->parameters;
	return nics > k->nccl.nics_are_clear * g->inside_Bps && g->nvlink
	               ? fmin(k->nccl.nvlink_beside_nics * g->inside_Bps, nics)
	               : fmin(inside, nics);
}

static struct pricing pricing_of(const struct nccl_group *g)
{
	struct pricing x = {.g = g,
		.net = &g->network,
		.k = g->parameters,
		.version = nccl_version_of(g->parameters, g->version),
		.inside = inside_rate(g),
		.nics = at_most(g->nics_Bps * g->network.share, g->network.node_Bps),
		.levels = ceil(log2((double)g->hosts))};
	x.bus = bus_rate(g, x.inside, x.nics);
	double GBps = x.bus / 1e9, channels = channels_for(g, GBps);
	x.comm = *g;
	x.comm.channels = channels;
	x.comm.channel_GBps = GBps / channels;
	return x;
}

static double latency_s(const struct nccl_group *g, double s)
{
	return g->latency_factor > 0 ? s * g->latency_factor : s;
}

static double ramp_s(const struct nccl_group *g, double bytes)
{
	return latency_s(g, g->parameters->nccl.ramp * sqrt(bytes));
}

struct candidate {
	double latency_s, transfer_s, time_s;
};

/* Returns the candidate whose bytes move after its latency. */
static struct candidate one_after_other(const struct nccl_group *g, double ramp, double latency, double transfer)
{
	const double scaled_s = latency_s(g, latency);
	return (struct candidate){scaled_s, transfer, ramp + scaled_s + transfer};
}

/* ---- ring ---- */

static double crossings_of(const struct pricing *x, enum collective coll)
{
	double once = (double)(x->g->hosts - 1);
	return coll == COLL_ALL_REDUCE ? 2 * once : coll == COLL_BROADCAST ? (double)x->g->hosts : once;
}

/* Returns the step's time between two levels, the upper of which begins at `from_B`. It grows in proportion to the
 * block, so that fewer ranks with larger blocks are never slower than more ranks with smaller ones. */
static double level_s(double lower_s, double upper_s, double block, uint64_t from_B)
{
	return fmax(lower_s, fmin(upper_s, lower_s * block / (double)from_B));
}

static double simple_hop_s(const struct network_spec *n, double block)
{
	return fmax(level_s(n->simple_small_s, n->simple_middle_s, block, n->simple_middle_B),
		block > (double)n->simple_large_B
			? level_s(n->simple_middle_s, n->simple_large_s, block, n->simple_large_B)
			: 0);
}

static double ring_hop_s(const struct pricing *x, enum nccl_proto p, double block)
{
	const struct network_spec *n = x->net;
	if (p == NCCL_SIMPLE)
		return simple_hop_s(n, block);
	if (p == NCCL_LL128)
		return n->ring_ll128_s;
	double near_s = x->g->hosts > n->far_hosts ? n->ring_ll_far_s : n->ring_ll_s;
	return n->simple_middle_s > n->simple_small_s
	               ? level_s(near_s, fmax(near_s, n->simple_middle_s), 2 * block, n->simple_middle_B)
	               : near_s; /* LL sends two bytes for one: beyond the eager size it waits as Simple does */
}

/* Returns the time of a step inside a host of a group across hosts: it waits for the proxies that post its neighbours'
 * transfers. */
static double posting_s(const struct nccl_group *g, enum nccl_proto p)
{
	const struct parameters *k = g->parameters;
	return (g->amd ? k->nccl.net_overhead_amd_s : k->nccl.net_overhead_s) * k->nccl.posting[p];
}

static double ring_latency_s(const struct pricing *x, enum collective coll, enum nccl_proto p, double bytes)
{
	const struct nccl_group *g = x->g;
	double base = 1e-6 * x->version->base_us[NCCL_RING][p],
	       intra = 1e-6 * nccl_hop_us(x->version, nccl_hop_inside(x->g), NCCL_RING, p);
	double steps = (double)nccl_steps(coll, g->ranks), crossings = crossings_of(x, coll),
	       block = bytes / (double)g->ranks;
	if (g->hosts <= 1)
		return base + steps * intra + (g->nvlink ? steps * x->k->nccl.pass_launch_s : 0);
	intra = fmax(intra, posting_s(g, p));
	double stored = p == NCCL_SIMPLE ? 0
	                                 : steps * fmin(block, x->k->nccl.block_most_B) /
	                                           (p == NCCL_LL ? x->net->block_ll_Bps : x->net->block_ll128_Bps);
	return base + fmax(0, steps - crossings) * intra + crossings * ring_hop_s(x, p, block) + stored;
}

/* ---- the candidates of one algorithm and protocol ---- */

static struct candidate ring(const struct pricing *x, enum collective coll, enum nccl_proto p, double bytes)
{
	struct candidate c = {.latency_s = latency_s(x->g, ring_latency_s(x, coll, p, bytes)),
		.transfer_s = bytes / (1e9 * nccl_bandwidth_GBps(&x->comm, coll, NCCL_RING, p))};
	double hidden = x->g->hosts > 1 ? x->net->hiding : 1;
	c.time_s = ramp_s(x->g, bytes) + pow(pow(c.latency_s, hidden) + pow(c.transfer_s, hidden), 1 / hidden);
	return c;
}

/* Returns the rate of a tree. Two hosts are each the root of one of NCCL's two trees, so that each byte leaves a host
 * once, and the channels inside limit it. */
static double tree_rate(const struct pricing *x, enum nccl_proto p)
{
	const struct parameters *k = x->k;
	const double rate = 1e9 * nccl_bandwidth_GBps(&x->comm, COLL_ALL_REDUCE, NCCL_TREE, p),
		     inside = fmin(x->inside, 1e9 * x->comm.channels * k->nccl.tree_channel_GBps[x->g->arch]);
	return x->g->hosts == 2 && p == NCCL_SIMPLE ? fmax(rate, fmin(k->nccl_tuner.tree_share * inside / 2, x->nics))
	                                            : rate;
}

static struct candidate tree(const struct pricing *x, enum nccl_proto p, double bytes)
{
	const struct nccl_group *g = x->g;
	double intra = nccl_hop_us(x->version, nccl_hop_inside(x->g), NCCL_TREE, p) * 1e-6, hops = 2 * x->levels,
	       rate = tree_rate(x, p);
	double hop = p == NCCL_SIMPLE ? simple_hop_s(x->net, bytes / x->k->nccl.tree_pieces)
	             : p == NCCL_LL   ? x->net->tree_ll_s
	                              : x->net->tree_ll128_s;
	double passes = 2 * (double)(g->per_host - 1);
	intra = g->hosts > 1 ? fmax(intra, x->k->nccl.tree_posting * posting_s(g, p == NCCL_LL128 ? NCCL_LL : p))
	                     : intra;
	double latency = 1e-6 * x->version->base_us[NCCL_TREE][p] + passes * intra;
	if (g->hosts <= 1 || p == NCCL_LL128)
		rate *= nccl_tree_factor(x->k, p, bytes);
	if (g->hosts <= 1)
		latency += g->nvlink ? passes * x->k->nccl.pass_launch_s : 0;
	else
		latency += hops *
		           (hop + (p == NCCL_SIMPLE ? 0
						    : fmin(bytes, x->k->nccl.block_most_B) / x->net->block_tree_Bps *
							      (p == NCCL_LL128 ? x->k->nccl.tree_ll128_block : 1)));
	return one_after_other(g, ramp_s(g, bytes), latency, bytes / rate);
}

/* Returns the algorithm rate of NVLS inside a host. Each GPU sends its bytes to the switch once and receives the sums
 * once, however many GPUs there are. */
static double nvls_rate(const struct pricing *x)
{
	const double *share = nccl_version_of(x->k, 0)->nvls_share;
	const enum nccl_arch arch = x->g->arch == NCCL_BLACKWELL ? NCCL_BLACKWELL : NCCL_HOPPER;
	return x->k->nccl.nvls_rate * share[arch] / share[NCCL_HOPPER] * x->g->inside_Bps;
}

/* Returns the time to fill one crossing of hosts: the chunks that all channels have on their way at once, one for each
 * GPU of a host, go through its NICs. NCCL takes larger chunks where few hosts have many bytes. */
static double nvls_fill_s(const struct pricing *x, double bytes)
{
	const struct parameters *k = x->k;
	const double at_once = k->nccl.channels_nvls * fmin((double)x->g->per_host, k->nccl.nvls_heads);
	double moving = fmin(at_once * k->nccl.nvls_chunk_B, bytes);
	if (x->g->hosts < (int64_t)k->nccl.nvls_far_hosts)
		moving = fmax(moving, fmin(at_once * k->nccl.nvls_large_chunk_B, bytes / k->nccl.nvls_pieces));
	return moving / x->nics;
}

/* Prices NVLS by its algorithm rate. Two hosts swap their sums, so each byte leaves a host once; on a deeper tree it
 * leaves twice. */
static struct candidate nvls(const struct pricing *x, enum nccl_algo a, double bytes)
{
	const struct nccl_group *g = x->g;
	double rate = nvls_rate(x), latency = 1e-6 * nccl_hop_us(x->version, NCCL_HOP_NVLINK, NCCL_NVLS, NCCL_SIMPLE),
	       fill = 0;
	if (a == NCCL_NVLS_TREE) {
		rate = fmin(x->k->nccl.nvls_tree_share * rate, g->hosts == 2 ? x->nics : x->nics / 2);
		latency += 2 * x->levels *
		           fmax(1e-6 * nccl_hop_us(x->version, NCCL_HOP_NET, NCCL_NVLS_TREE, NCCL_SIMPLE),
				   simple_hop_s(x->net, bytes / (double)g->per_host));
		fill = 2 * x->levels * nvls_fill_s(x, bytes);
	}
	return one_after_other(g, ramp_s(g, bytes), latency, fill + bytes / rate);
}

/* Prices CollNet and PAT as NCCL does, with the network's own hops where those are slower. */
static struct candidate by_tuner(const struct pricing *x, enum collective coll, enum nccl_algo a, enum nccl_proto p,
	double bytes)
{
	double latency_us, GBps;
	if (!nccl_tuner(&x->comm, coll, a, p, &latency_us, &GBps))
		return (struct candidate){.time_s = INFINITY};
	double slower = fmax(0,
		simple_hop_s(x->net, bytes / (double)x->g->ranks) - 1e-6 * nccl_hop_us(x->version, NCCL_HOP_NET, a, p));
	return one_after_other(x->g, ramp_s(x->g, bytes), 1e-6 * latency_us + (a == NCCL_PAT ? x->levels : 1) * slower,
		bytes / (1e9 * GBps));
}

/* Whether the network's software takes this algorithm and protocol from host to host. */
static bool crosses(const struct nccl_group *g, enum nccl_algo a, enum nccl_proto p)
{
	const struct network_spec *net = &g->network;
	return (p == NCCL_SIMPLE || !net->simple_only) && (p != NCCL_LL128 || net->ll128) &&
	       (a != NCCL_TREE || !net->no_tree) && (a != NCCL_NVLS_TREE || !net->no_nvls);
}

static bool runs(const struct pricing *x, enum collective coll, enum nccl_algo a, enum nccl_proto p)
{
	const struct nccl_group *g = x->g;
	if (g->hosts > 1 && !crosses(g, a, p))
		return false;
	if (a == NCCL_NVLS || a == NCCL_NVLS_TREE)
		return coll == COLL_ALL_REDUCE && p == NCCL_SIMPLE && g->whole_box &&
		       (g->hosts == 1) == (a == NCCL_NVLS);
	return nccl_bandwidth_GBps(&x->comm, coll, a, p) > 0;
}

static struct candidate price(const struct pricing *x, enum collective coll, enum nccl_algo a, enum nccl_proto p,
	double bytes)
{
	if (!runs(x, coll, a, p))
		return (struct candidate){.time_s = INFINITY};
	if (a == NCCL_RING)
		return ring(x, coll, p, bytes);
	if (a == NCCL_TREE)
		return tree(x, p, bytes);
	return a == NCCL_NVLS || a == NCCL_NVLS_TREE ? nvls(x, a, bytes) : by_tuner(x, coll, a, p, bytes);
}

/* ---- point to point ---- */

static struct candidate alltoall(const struct pricing *x, double bytes)
{
	const struct nccl_group *g = x->g;
	const struct network_spec *net = x->net;
	double n = (double)g->ranks, here = (double)g->per_host,
	       growth = fmax(1, (double)g->hosts / x->k->nccl.alltoall_hosts),
	       inside = x->inside * (g->nvlink ? x->k->nccl.alltoall_nvlink : 1);
	double latency = x->k->nccl.alltoall_host_s, transfer = here > 1 ? bytes * (here - 1) / n / inside : 0;
	if (g->hosts > 1) {
		double nics = at_most(g->nics_Bps * net->alltoall_share, net->alltoall_node_Bps) *
		              pow(growth, -net->alltoall_share_power),
		       block = bytes / n;
		double peer = level_s(net->peer_small_s, net->peer_large_s, block, net->peer_large_B);
		latency = net->alltoall_base_s + (n - here) * peer * pow(growth, net->peer_power);
		transfer = fmax(transfer, bytes * (n - here) / n * here / nics);
	}
	return one_after_other(g, g->hosts > 1 ? 0 : x->k->nccl.alltoall_ramp * ramp_s(g, bytes), latency, transfer);
}

static struct candidate sendrecv(const struct pricing *x, double bytes)
{
	const struct nccl_group *g = x->g;
	const struct network_spec *net = x->net;
	double latency = 1e-6 * (x->version->base_us[NCCL_RING][NCCL_LL] +
					nccl_hop_us(x->version, nccl_hop_inside(x->g), NCCL_RING, NCCL_LL)),
	       transfer = 0;
	/* The time is flat between few and many channels, where NCCL's own time steps down as the message grows. */
	const double few_Bps = x->k->nccl.few_channels_share * x->inside;
	if (g->per_host > 1)
		transfer = g->nvlink
		                   ? fmin(bytes / few_Bps, fmax(x->k->nccl.few_channels_B / few_Bps, bytes / x->inside))
		                   : bytes / x->inside;
	if (g->hosts > 1) {
		double share = g->hosts == 2 ? net->pair_share : net->far_pair_share;
		latency += net->ring_ll_s;
		transfer = fmax(transfer, bytes / at_most(g->pair_Bps * share, net->node_Bps));
	}
	return one_after_other(g, ramp_s(g, bytes), latency, transfer);
}

/* ---- the choice ---- */

/* Returns the channels of a collective. NCCL takes fewer where a thread would have less than thread_B of the protocol.
 */
static int channels_of(const struct pricing *x, enum nccl_algo a, enum nccl_proto p, double bytes)
{
	const struct parameters *k = x->k;
	double most = 2 * x->comm.channels;
	if (x->g->hosts > 1 && x->g->arch >= NCCL_HOPPER && x->g->nvlink && most < k->nccl.channels_across)
		most *= 2;
	if (a == NCCL_NVLS || a == NCCL_NVLS_TREE)
		return (int)k->nccl.channels_nvls;
	double of_a_channel = k->nccl.threads[p] * k->nccl.thread_B[p] *
	                      (a == NCCL_RING && p == NCCL_LL ? (double)x->g->ranks : 1);
	return (int)fmax(1, fmin(most, floor(bytes / of_a_channel)));
}

static double sigma_of(const struct nccl_group *g, double bytes)
{
	const struct parameters *k = g->parameters;
	bool large = bytes >= k->nccl.large_B;
	double inside = g->nvlink ? large ? k->nccl.sigma_host_large : k->nccl.sigma_host_small
	                : g->peer ? k->nccl.sigma_pcie
	                          : k->nccl.sigma_host_copy;
	return g->hosts > 1 ? fmax(inside, large ? g->network.sigma_large : g->network.sigma_small) : inside;
}

static bool wanted(struct nccl_choice forced, int a, int p)
{
	bool collnet = a == NCCL_COLLNET_DIRECT || a == NCCL_COLLNET_CHAIN,
	     nvls = a == NCCL_NVLS || a == NCCL_NVLS_TREE;
	bool algo = forced.algo < 0 || forced.algo == a || (forced.algo == NCCL_COLLNET_DIRECT && collnet) ||
	            (forced.algo == NCCL_NVLS && nvls);
	return algo && (forced.proto < 0 || forced.proto == p);
}

static struct candidate cheapest(const struct pricing *x, enum collective coll, struct nccl_choice forced, double bytes,
	struct nccl_result *out)
{
	struct candidate best = {.time_s = INFINITY};
	for (int a = 0; a < NCCL_ALGOS; a++) {
		for (int p = 0; p < NCCL_PROTOS; p++) {
			if (!wanted(forced, a, p))
				continue;
			struct candidate c = price(x, coll, (enum nccl_algo)a, (enum nccl_proto)p, bytes);
			if (!(c.time_s < best.time_s))
				continue;
			best = c;
			out->algo = (enum nccl_algo)a;
			out->proto = (enum nccl_proto)p;
		}
	}
	return best;
}

struct nccl_result nccl_time(const struct nccl_group *g, enum collective coll, struct nccl_choice forced, double bytes)
{
	struct nccl_result r = {.algo = NCCL_RING, .proto = NCCL_SIMPLE, .rel_sigma = sigma_of(g, bytes)};
	struct candidate c;
	if (g->ranks <= 1)
		return r;
	struct pricing x = pricing_of(g);
	x.comm.collnet = g->network.sharp || forced.algo == NCCL_COLLNET_DIRECT;
	if (coll > COLL_BROADCAST) {
		c = coll == COLL_ALLTOALL ? alltoall(&x, bytes) : sendrecv(&x, bytes);
	} else {
		c = cheapest(&x, coll, forced, bytes, &r);
		if (!isfinite(c.time_s))
			c = cheapest(&x, coll, (struct nccl_choice){-1, forced.proto}, bytes, &r);
		if (!isfinite(c.time_s))
			c = cheapest(&x, coll, NCCL_ANY, bytes, &r);
	}
	r.time_s = fmax(c.time_s * (g->hosts > 1 ? pow((double)g->hosts, g->network.crowding) : 1),
		g->one_process ? (double)g->per_host * g->parameters->nccl.one_process_s : 0);
	r.channels = channels_of(&x, r.algo, r.proto, bytes);
	r.bound = c.latency_s > c.transfer_s           ? NCCL_BY_LATENCY
	          : g->hosts > 1 && x.nics <= x.inside ? NCCL_BY_NETWORK
	                                               : NCCL_BY_LINK;
	return r;
}
