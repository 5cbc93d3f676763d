/* What NCCL's candidates take, by its own composition and what published measurements add to it. Times here are in seconds, rates in bytes a second. */
#include "sim/nccl.h"

#include <math.h>
#include <string.h>

/* ---- corrections that all machines share; rows: tests/validation/collectives.csv ---- */

#define NVLINK_REACHED 0.98     /* of the usable rate: a free fit of the h100-c01 and a100-sxm rows */
#define NVLINK_BESIDE_NICS 0.90 /* ... where NICs are not the clear bottleneck: ten full H100 hosts, h100-c01 */
#define NICS_ARE_CLEAR 0.85     /* NICs below this share of NVLink are */
#define PCIE_REACHED 0.85       /* judgement: no published row */
#define HOST_COPY_SHARE 0.4     /* of a slot, where bytes pass through host memory; judgement: the one published row is of a broken machine */
#define RAMP 0.005e-6           /* s / sqrt(B): free fits of the a100-sxm, h100-c01 and h200 rows */
#define PASS_LAUNCH_s 0.43e-6   /* one host: a step over NVLink more than NCCL's; a100-sxm under MPI, none on two PCIe GPUs */
#define ONE_PROCESS_s 14e-6     /* eight GPUs driven by one process, a100-sxm */
#define NVLS_BUS 1.3            /* of NVLink, H100: 482 GB/s in h100-c01; others by NCCL's own efficiencies */
#define NVLS_HOPPER_SHARE 0.85
#define NVLS_BLACKWELL_SHARE 0.74
#define NET_OVERHEAD_AMD_s 1.75e-6 /* NCCL has 2; small all-gathers of alcf-sophia and alcf-polaris */
#define TREE_POSTING 0.75         /* of that for a tree's step inside a host: small all-reduces of the same */
#define NET_OVERHEAD_s 1e-6
#define BLOCK_MOST_B 65536.0
#define TREE_LL128_BLOCK 0.6    /* of LL's cost, alcf-sophia */
#define ALLTOALL_NVLINK 0.95
#define ALLTOALL_HOST_s 24e-6   /* on one host; h100-c01 */
#define ALLTOALL_RAMP 0.7
#define PEER_EIGHT 8.0          /* hosts from which an all-to-all's share and cost change */
#define FEW_CHANNELS_SHARE 0.44 /* of NVLink that a send reaches with the few channels ... */
#define FEW_CHANNELS_B 134217728.0 /* ... that NCCL gives it up to here: h100-c01 sendrecv */
#define SIGMA_HOST_SMALL 0.12   /* scatter of the a100-sxm and h100-c01 rows */
#define SIGMA_HOST_LARGE 0.05
#define SIGMA_PCIE 0.15
#define SIGMA_HOST_COPY 0.5     /* a factor of two either way is normal */
#define LARGE_B 16777216.0

/* ---- names ---- */

static const char *const coll_names[NCCL_COLLS] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv"};
static const char *const algo_names[NCCL_ALGOS] = {"tree", "ring", "collnet direct", "collnet chain", "NVLS", "NVLS tree", "PAT"};
static const char *const proto_names[NCCL_PROTOS] = {"LL", "LL128", "Simple"};

const char *nccl_coll_name(enum nccl_coll c)
{
	return coll_names[c];
}

bool nccl_coll_of(const char *name, enum nccl_coll *out)
{
	for (int c = 0; c < NCCL_COLLS; c++) {
		if (strcmp(name, coll_names[c]) == 0) {
			*out = (enum nccl_coll)c;
			return true;
		}
	}
	return false;
}

const char *nccl_algo_name(enum nccl_algo a)
{
	return algo_names[a];
}

const char *nccl_proto_name(enum nccl_proto p)
{
	return proto_names[p];
}

/* ---- rates ---- */

/* Everything about a group that does not depend on the size. */
struct pricing {
	const struct nccl_group *g;
	const struct network_spec *net;
	struct nccl_comm comm;
	double inside, nics, bus; /* B/s: a ring inside a host; NICs of a host; a ring over all */
	double levels;            /* of a tree over the hosts */
};

static double share_of_nics(const struct nccl_group *g, double share, double most)
{
	return most > 0 ? fmin(g->nics_Bps * share, most) : g->nics_Bps * share;
}

/* NCCL's channels before it doubles them: as many as the rate needs, up to its usual dozen. */
static double channels_for(enum nccl_arch arch, double GBps)
{
	static const double a_channel[NCCL_ARCHS] = {20, 20, 30, 50};
	return fmax(1, fmin(12, ceil(GBps / a_channel[arch])));
}

static double inside_rate(const struct nccl_group *g)
{
	if (g->nvlink)
		return NVLINK_REACHED * g->inside_Bps;
	return g->peer ? PCIE_REACHED * g->inside_Bps : fmin(PCIE_REACHED * g->inside_Bps, HOST_COPY_SHARE * g->link_Bps);
}

static double bus_rate(const struct nccl_group *g, double inside, double nics)
{
	if (g->hosts <= 1)
		return inside;
	return nics > NICS_ARE_CLEAR * g->inside_Bps && g->nvlink ? fmin(NVLINK_BESIDE_NICS * g->inside_Bps, nics) : fmin(inside, nics);
}

static struct pricing pricing_of(const struct nccl_group *g)
{
	struct pricing x = {.g = g, .net = &g->network, .inside = inside_rate(g), .nics = share_of_nics(g, g->network.share, g->network.node_Bps), .levels = ceil(log2((double)g->hosts))};
	x.bus = bus_rate(g, x.inside, x.nics);
	double GBps = x.bus / 1e9, channels = channels_for(g->arch, GBps);
	x.comm = (struct nccl_comm){.ranks = g->ranks, .nodes = g->hosts, .arch = g->arch, .nvlink = g->nvlink, .amd = g->amd, .version = g->version, .channels = channels, .channel_GBps = GBps / channels};
	return x;
}

static double latency_s(const struct nccl_group *g, double s)
{
	return s * what_if_factor(g->latency);
}

static double ramp_s(const struct nccl_group *g, double bytes)
{
	return latency_s(g, RAMP * sqrt(bytes));
}

/* ---- ring ---- */

static enum nccl_hop inside_hop(const struct pricing *x)
{
	return x->g->nvlink ? NCCL_HOP_NVLINK : NCCL_HOP_PCI;
}

static double crossings_of(const struct pricing *x, enum nccl_coll coll)
{
	double once = (double)(x->g->hosts - 1);
	return coll == NCCL_ALL_REDUCE ? 2 * once : coll == NCCL_BROADCAST ? (double)x->g->hosts : once;
}

/* From one level to the next, which begins at `from_B`, in proportion to the block: fewer ranks with larger blocks are then never slower than more with smaller ones. */
static double level_s(double lower_s, double upper_s, double block, uint64_t from_B)
{
	return fmax(lower_s, fmin(upper_s, lower_s * block / (double)from_B));
}

static double simple_hop_s(const struct network_spec *n, double block)
{
	return fmax(level_s(n->simple_small_s, n->simple_middle_s, block, n->simple_middle_B), block > (double)n->simple_large_B ? level_s(n->simple_middle_s, n->simple_large_s, block, n->simple_large_B) : 0);
}

static double ring_hop_s(const struct pricing *x, enum nccl_proto p, double block)
{
	const struct network_spec *n = x->net;
	if (p == NCCL_SIMPLE)
		return simple_hop_s(n, block);
	if (p == NCCL_LL128)
		return n->ring_ll128_s;
	double near_s = x->g->hosts > n->far_hosts ? n->ring_ll_far_s : n->ring_ll_s;
	return n->simple_middle_s > n->simple_small_s ? level_s(near_s, fmax(near_s, n->simple_middle_s), 2 * block, n->simple_middle_B) : near_s; /* LL sends two bytes for one: beyond the eager size it waits as Simple does */
}

/* Across hosts a step inside one waits for the proxies that post its neighbours' transfers. NCCL has 1 for LL128; medium all-gathers of alcf-sophia take twice that. */
static double posting_s(const struct nccl_group *g, enum nccl_proto p)
{
	return (g->amd ? NET_OVERHEAD_AMD_s : NET_OVERHEAD_s) * (p == NCCL_SIMPLE ? 3 : p == NCCL_LL128 ? 2 : 1);
}

static double ring_latency_s(const struct pricing *x, enum nccl_coll coll, enum nccl_proto p, double bytes)
{
	const struct nccl_group *g = x->g;
	double base = 1e-6 * nccl_base_us(g->version, NCCL_RING, p), intra = 1e-6 * nccl_hop_us(g->version, inside_hop(x), NCCL_RING, p);
	double steps = (double)nccl_steps(coll, g->ranks), crossings = crossings_of(x, coll), block = bytes / (double)g->ranks;
	if (g->hosts <= 1)
		return base + steps * intra + (g->nvlink ? steps * PASS_LAUNCH_s : 0);
	intra = fmax(intra, posting_s(g, p));
	double stored = p == NCCL_SIMPLE ? 0 : steps * fmin(block, BLOCK_MOST_B) / (p == NCCL_LL ? x->net->block_ll_Bps : x->net->block_ll128_Bps);
	return base + fmax(0, steps - crossings) * intra + crossings * ring_hop_s(x, p, block) + stored;
}

/* ---- the candidates of one algorithm and protocol ---- */

struct candidate {
	double latency_s, transfer_s, time_s;
};

static struct candidate ring(const struct pricing *x, enum nccl_coll coll, enum nccl_proto p, double bytes)
{
	struct candidate c = {.latency_s = latency_s(x->g, ring_latency_s(x, coll, p, bytes)), .transfer_s = bytes / (1e9 * nccl_bandwidth_GBps(&x->comm, coll, NCCL_RING, p))};
	double hidden = x->g->hosts > 1 ? x->net->hiding : 1;
	c.time_s = ramp_s(x->g, bytes) + pow(pow(c.latency_s, hidden) + pow(c.transfer_s, hidden), 1 / hidden);
	return c;
}

static struct candidate tree(const struct pricing *x, enum nccl_proto p, double bytes)
{
	const struct nccl_group *g = x->g;
	double intra = nccl_hop_us(g->version, inside_hop(x), NCCL_TREE, p) * 1e-6, hops = 2 * x->levels, rate = 1e9 * nccl_bandwidth_GBps(&x->comm, NCCL_ALL_REDUCE, NCCL_TREE, p);
	double hop = p == NCCL_SIMPLE ? simple_hop_s(x->net, bytes / 8) : p == NCCL_LL ? x->net->tree_ll_s : x->net->tree_ll128_s;
	double passes = 2 * (double)(g->per_host - 1);
	intra = g->hosts > 1 ? fmax(intra, TREE_POSTING * posting_s(g, p == NCCL_LL128 ? NCCL_LL : p)) : intra;
	struct candidate c = {.latency_s = 1e-6 * nccl_base_us(g->version, NCCL_TREE, p) + passes * intra};
	if (g->hosts <= 1 || p == NCCL_LL128)
		rate *= nccl_tree_factor(p, bytes, true);
	if (g->hosts <= 1)
		c.latency_s += g->nvlink ? passes * PASS_LAUNCH_s : 0;
	else
		c.latency_s += hops * (hop + (p == NCCL_SIMPLE ? 0 : fmin(bytes, BLOCK_MOST_B) / x->net->block_tree_Bps * (p == NCCL_LL128 ? TREE_LL128_BLOCK : 1)));
	c.latency_s = latency_s(g, c.latency_s);
	c.transfer_s = bytes / rate;
	c.time_s = ramp_s(g, bytes) + c.latency_s + c.transfer_s;
	return c;
}

static double nvls_bus(const struct pricing *x)
{
	double share = x->g->arch == NCCL_BLACKWELL ? NVLS_BLACKWELL_SHARE : NVLS_HOPPER_SHARE;
	return NVLS_BUS * share / NVLS_HOPPER_SHARE * x->g->inside_Bps;
}

/* In an algorithm's rate. Two hosts swap their sums: each byte leaves a host once. On a deeper tree it leaves twice, and the links share with the rings' ways through a host. */
static struct candidate nvls(const struct pricing *x, enum nccl_algo a, double bytes)
{
	const struct nccl_group *g = x->g;
	double n = (double)g->ranks, to_algorithm = n / (2 * (n - 1)), rate = nvls_bus(x) * to_algorithm, latency = 1e-6 * nccl_hop_us(g->version, NCCL_HOP_NVLINK, NCCL_NVLS, NCCL_SIMPLE);
	if (a == NCCL_NVLS_TREE) {
		rate = g->hosts == 2 ? fmin(rate, x->nics) : fmin(x->bus * to_algorithm, x->nics / 2);
		latency += 2 * x->levels * fmax(1e-6 * nccl_hop_us(g->version, NCCL_HOP_NET, NCCL_NVLS_TREE, NCCL_SIMPLE), simple_hop_s(x->net, bytes / (double)g->per_host));
	}
	struct candidate c = {.latency_s = latency_s(g, latency), .transfer_s = bytes / rate};
	c.time_s = ramp_s(g, bytes) + c.latency_s + c.transfer_s;
	return c;
}

/* CollNet and PAT: as NCCL has them, with the network's own hops where those are slower. */
static struct candidate by_tuner(const struct pricing *x, enum nccl_coll coll, enum nccl_algo a, enum nccl_proto p, double bytes)
{
	double latency_us, GBps;
	if (!nccl_tuner(&x->comm, coll, a, p, &latency_us, &GBps))
		return (struct candidate){.time_s = INFINITY};
	double slower = fmax(0, simple_hop_s(x->net, bytes / (double)x->g->ranks) - 1e-6 * nccl_hop_us(x->g->version, NCCL_HOP_NET, a, p));
	struct candidate c = {.latency_s = latency_s(x->g, 1e-6 * latency_us + (a == NCCL_PAT ? x->levels : 1) * slower), .transfer_s = bytes / (1e9 * GBps)};
	c.time_s = ramp_s(x->g, bytes) + c.latency_s + c.transfer_s;
	return c;
}

static bool runs(const struct pricing *x, enum nccl_coll coll, enum nccl_algo a, enum nccl_proto p)
{
	const struct nccl_group *g = x->g;
	if (a == NCCL_NVLS || a == NCCL_NVLS_TREE)
		return coll == NCCL_ALL_REDUCE && p == NCCL_SIMPLE && g->whole_box && (g->hosts == 1) == (a == NCCL_NVLS);
	if (p == NCCL_LL128 && g->hosts > 1 && !g->network.ll128)
		return false;
	return nccl_bandwidth_GBps(&x->comm, coll, a, p) > 0;
}

static struct candidate price(const struct pricing *x, enum nccl_coll coll, enum nccl_algo a, enum nccl_proto p, double bytes)
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
	double n = (double)g->ranks, here = (double)g->per_host, growth = fmax(1, (double)g->hosts / PEER_EIGHT), inside = x->inside * (g->nvlink ? ALLTOALL_NVLINK : 1);
	struct candidate c = {.latency_s = ALLTOALL_HOST_s, .transfer_s = bytes * (here - 1) / n / inside};
	if (here <= 1)
		c.transfer_s = 0;
	if (g->hosts > 1) {
		double nics = share_of_nics(g, net->alltoall_share, net->alltoall_node_Bps) * pow(growth, -net->alltoall_share_power), block = bytes / n;
		double peer = level_s(net->peer_small_s, net->peer_large_s, block, net->peer_large_B);
		c.latency_s = net->alltoall_base_s + (n - here) * peer * pow(growth, net->peer_power);
		c.transfer_s = fmax(c.transfer_s, bytes * (n - here) / n * here / nics);
	}
	c.latency_s = latency_s(g, c.latency_s);
	c.time_s = (g->hosts > 1 ? 0 : ALLTOALL_RAMP * ramp_s(g, bytes)) + c.latency_s + c.transfer_s;
	return c;
}

static struct candidate sendrecv(const struct pricing *x, double bytes)
{
	const struct nccl_group *g = x->g;
	const struct network_spec *net = x->net;
	struct candidate c = {.latency_s = 1e-6 * (nccl_base_us(g->version, NCCL_RING, NCCL_LL) + nccl_hop_us(g->version, inside_hop(x), NCCL_RING, NCCL_LL))};
	if (g->per_host > 1) /* flat from where it has few channels to where many make up for it: NCCL's steps fall here */
		c.transfer_s = g->nvlink ? fmin(bytes / (FEW_CHANNELS_SHARE * x->inside), fmax(FEW_CHANNELS_B / (FEW_CHANNELS_SHARE * x->inside), bytes / x->inside)) : bytes / x->inside;
	if (g->hosts > 1) {
		double share = g->hosts == 2 ? net->pair_share : net->far_pair_share;
		c.latency_s += net->ring_ll_s;
		c.transfer_s = fmax(c.transfer_s, bytes / (net->node_Bps > 0 ? fmin(g->pair_Bps * share, net->node_Bps) : g->pair_Bps * share));
	}
	c.latency_s = latency_s(g, c.latency_s);
	c.time_s = ramp_s(g, bytes) + c.latency_s + c.transfer_s;
	return c;
}

/* ---- the choice ---- */

/* Bytes a thread of a channel at least, for each protocol: below, NCCL takes fewer channels. */
static int channels_of(const struct pricing *x, enum nccl_algo a, enum nccl_proto p, double bytes)
{
	static const double thread_B[NCCL_PROTOS] = {8, 8, 64};
	static const double threads[NCCL_PROTOS] = {512, 640, 512};
	double most = 2 * x->comm.channels;
	if (x->g->hosts > 1 && x->g->arch >= NCCL_HOPPER && x->g->nvlink && most < 16)
		most *= 2;
	if (a == NCCL_NVLS || a == NCCL_NVLS_TREE)
		return 16;
	double of_a_channel = threads[p] * thread_B[p] * (a == NCCL_RING && p == NCCL_LL ? (double)x->g->ranks : 1);
	return (int)fmax(1, fmin(most, floor(bytes / of_a_channel)));
}

static double sigma_of(const struct nccl_group *g, double bytes)
{
	bool large = bytes >= LARGE_B;
	double inside = g->nvlink ? large ? SIGMA_HOST_LARGE : SIGMA_HOST_SMALL : g->peer ? SIGMA_PCIE : SIGMA_HOST_COPY;
	return g->hosts > 1 ? fmax(inside, large ? g->network.sigma_large : g->network.sigma_small) : inside;
}

static bool wanted(struct nccl_choice forced, int a, int p)
{
	bool collnet = a == NCCL_COLLNET_DIRECT || a == NCCL_COLLNET_CHAIN, nvls = a == NCCL_NVLS || a == NCCL_NVLS_TREE;
	bool algo = forced.algo < 0 || forced.algo == a || (forced.algo == NCCL_COLLNET_DIRECT && collnet) || (forced.algo == NCCL_NVLS && nvls);
	return algo && (forced.proto < 0 || forced.proto == p);
}

static struct candidate cheapest(const struct pricing *x, enum nccl_coll coll, struct nccl_choice forced, double bytes, struct nccl_result *out)
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

struct nccl_result nccl_time(const struct nccl_group *g, enum nccl_coll coll, struct nccl_choice forced, double bytes)
{
	struct nccl_result r = {.algo = NCCL_RING, .proto = NCCL_SIMPLE, .rel_sigma = sigma_of(g, bytes)};
	struct candidate c;
	if (g->ranks <= 1)
		return r;
	struct pricing x = pricing_of(g);
	x.comm.collnet = g->network.sharp || forced.algo == NCCL_COLLNET_DIRECT;
	if (coll == NCCL_ALLTOALL || coll == NCCL_SENDRECV) {
		c = coll == NCCL_ALLTOALL ? alltoall(&x, bytes) : sendrecv(&x, bytes);
	} else {
		c = cheapest(&x, coll, forced, bytes, &r);
		if (!isfinite(c.time_s))
			c = cheapest(&x, coll, (struct nccl_choice){-1, forced.proto}, bytes, &r);
		if (!isfinite(c.time_s))
			c = cheapest(&x, coll, NCCL_ANY, bytes, &r);
	}
	r.time_s = c.time_s * (g->hosts > 1 ? pow((double)g->hosts, g->network.crowding) : 1) + (g->one_process ? ONE_PROCESS_s : 0);
	r.channels = channels_of(&x, r.algo, r.proto, bytes);
	r.bound = c.latency_s > c.transfer_s ? NCCL_BY_LATENCY : g->hosts > 1 && x.nics <= x.inside ? NCCL_BY_NETWORK : NCCL_BY_LINK;
	return r;
}
