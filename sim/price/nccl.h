/* The time of a collective on GPUs, as NCCL runs it.
 *
 * NCCL prices each algorithm with each protocol as latency + bytes / bandwidth and takes the cheapest (nccl_tuner
 * below: its own composition and constants, untouched). Published measurements differ from that in a few ways that all
 * machines share, and in what a network does to a step between hosts (topology/catalogue/network.h). nccl_time prices
 * every candidate with these corrections and takes the cheapest:
 *
 *   one host     t = L + S/B + c sqrt(S); L has 0.43 us more than NCCL counts for each step over NVLink
 *   ring, hosts  t = c sqrt(S) + (L^p + (S/B)^p)^(1/p): a step's wait and other slices' transfers partly
 *                hide each other. L = base + (steps - crossings) x hop + crossings x hop of the network, by the
 *                block S/n, + steps x min(block, 64 KiB) / rate, as a small block is stored before it is sent on
 *   tree, hosts  t = c sqrt(S) + L + 2 log2(hosts) x min(S, 64 KiB) / rate + S/B
 *   all to all   t = base + a x ranks on other hosts + the slower of NICs and NVLink
 *   one to one   its rate inside a host is that of few channels until the message is large
 *
 * B is the lesser of the GPUs' links and of the share of the NICs' line rate that the network lets through.
 *
 * No time falls when bytes grow, none when hosts are added with as many ranks each, and none when ranks are added as
 * long as the same algorithm can run (NVLS, which needs all GPUs of a host, can be faster than the ring of a part of
 * them). */
#ifndef STEPSIM_SIM_NCCL_H
#define STEPSIM_SIM_NCCL_H

#include <stdbool.h>
#include <stdint.h>

#include "step/op.h"
#include "topology/machine.h"

enum nccl_algo {
	NCCL_TREE,
	NCCL_RING,
	NCCL_COLLNET_DIRECT,
	NCCL_COLLNET_CHAIN,
	NCCL_NVLS,
	NCCL_NVLS_TREE,
	NCCL_PAT,
	NCCL_ALGOS
};
enum nccl_proto { NCCL_LL, NCCL_LL128, NCCL_SIMPLE, NCCL_PROTOS };
enum nccl_arch { NCCL_VOLTA, NCCL_AMPERE, NCCL_HOPPER, NCCL_BLACKWELL, NCCL_ARCHS };

const char *nccl_algo_name(enum nccl_algo a); /* "ring" */
const char *nccl_proto_name(enum nccl_proto p);

/* Ranks that communicate: NCCL tunes by the first facts, the corrected model by all. */
struct nccl_group {
	const struct parameters *parameters;
	int64_t ranks, hosts, per_host;
	enum nccl_arch arch;
	bool nvlink;                   /* between the ranks of a host; else PCIe */
	bool amd;                      /* the hosts' CPUs */
	bool collnet;                  /* the network's switches add up */
	int version;                   /* 22800: 2.28; 0: the newest */
	double channels, channel_GBps; /* of rings and trees, as NCCL's search finds them, before channels are doubled;
	                                  nccl_time sets them */
	double nvls_channels, nvls_channel_GBps; /* the same of NVLS; 0: none */
	double net_latency_us;                   /* the NICs' own */

	bool peer;
	bool whole_box;    /* all GPUs of an NVLink switch that can add up (NVLS) */
	bool one_process;  /* drives all GPUs of a host */
	double inside_Bps; /* of a ring of its ranks on one host; infinite when there is one */
	double link_Bps;   /* PCIe, no peer-to-peer: of one GPU's slot */
	double nics_Bps;   /* line rate that its ranks on one host share; 0 on one host */
	double pair_Bps;   /* of those, what one rank's sends to another host can use */
	struct network_spec network;
	double latency_factor; /* of the rates (sim/price/rates.h): what a collective of no bytes takes, times this; 0:
	                          1 */
};

/* ---- NCCL's own model (nccl_tuner.c) ---- */

/* Fills the latency and the algorithm bandwidth (bytes / time) of one candidate. Returns false where NCCL does not run
 * it. */
bool nccl_tuner(const struct nccl_group *g, enum collective coll, enum nccl_algo a, enum nccl_proto p,
	double *latency_us, double *GBps);
/* Returns NCCL's factor on a tree's bandwidth by size, interpolated between its steps of two. */
double nccl_tree_factor(const struct parameters *k, enum nccl_proto p, double bytes);

/* The parts of NCCL's model that the corrected model uses, in microseconds and GB/s. */
enum nccl_hop { NCCL_HOP_NVLINK, NCCL_HOP_PCI, NCCL_HOP_NET };
enum nccl_hop nccl_hop_inside(const struct nccl_group *g);
/* Returns the constants of a version (21800: 2.18): those of the newest known one that is not newer. 0: the newest. */
const struct nccl_version *nccl_version_of(const struct parameters *k, int version);
double nccl_hop_us(const struct nccl_version *v, enum nccl_hop h, enum nccl_algo a, enum nccl_proto p);
double nccl_bandwidth_GBps(const struct nccl_group *g, enum collective coll, enum nccl_algo a,
	enum nccl_proto p); /* 0: not run */
int64_t nccl_steps(enum collective coll, int64_t ranks);

/* ---- the corrected model (nccl.c) ---- */

struct nccl_choice {
	int algo, proto; /* enum nccl_algo and nccl_proto, -1: any. One that cannot run leaves all (NVLS on part of a
	                    host); NCCL_COLLNET_DIRECT stands for both and takes the network's switches to add up */
};

enum nccl_bound { NCCL_BY_LATENCY, NCCL_BY_LINK, NCCL_BY_NETWORK };

struct nccl_result {
	double time_s;
	enum nccl_algo algo; /* alltoall and sendrecv: ring, over point-to-point channels */
	enum nccl_proto proto;
	int channels; /* each holds an SM while it runs */
	enum nccl_bound bound;
	double rel_sigma;
};

struct rates;
/* True where the GPUs are NVIDIA's and their links are known. */
bool nccl_runs_on(const struct rates *r);
/* Fills a group of `size` ranks, `stride` apart (machine_group). Fails with ST_INPUT where NCCL does not run or the
 * rate of the links is not known, with ST_RUN as machine_group does. */
enum status nccl_group_of(const struct rates *r, int64_t size, int64_t stride, struct nccl_group *out, struct error *e);

#define NCCL_ANY ((struct nccl_choice){-1, -1})
/* Returns the time of a collective of `bytes`, by the cheapest candidate that `forced` allows. Sizes count as in
 * nccl-tests: the whole buffer; for sendrecv, and for a message (send, recv), the bytes that a rank sends. */
struct nccl_result nccl_time(const struct nccl_group *g, enum collective coll, struct nccl_choice forced, double bytes);

#endif
