/* The time of a collective on AMD's GPUs, as RCCL runs it.
 *
 * RCCL is NCCL with latencies of its own (ROCm/rccl src/graph/tuning.cc: baseLat, and hwLat of the tables for gfx942
 * and gfx950), and with an algorithm for hosts whose GPUs are all joined directly: each sends a part to every other one
 * (tools/msccl-algorithms, allreduce-allpairs-8n-ll.xml). The cheapest of these runs:
 *
 *   all pairs, one host   t = base + 2 hops + 2 (n-1)/n S / (LL's share of the links); an all-gather takes one hop and
 *                         half of the bytes
 *   ring, one host        t = base + steps x hop + S/B + c sqrt(S)
 *   ring, hosts           t = c sqrt(S) + (L^p + (S/B)^p)^(1/p), L = base + (steps - crossings) x max(hop, the time to
 *                         post a transfer) + crossings x hop between hosts
 *   tree, hosts           t = base + 2 (GPUs a host - 1) x hop + 2 log2(hosts) x (hop between hosts + min(S, 64 KiB) /
 *                         rate) + S/B + c sqrt(S)
 *   all to all            t = base + hop + the slower of links and NICs
 *
 * A ring through a full mesh of h GPUs uses h of its links, a chain that enters and leaves by NICs h - 1. So chains
 * reach h / (h - 1) of a ring's rate. A tree's chains carry bytes up and down, so half of that.
 *
 * Hops between hosts are the network's (topology/catalogue/network.h) where those are longer than RCCL's. */
#ifndef STEPSIM_SIM_RCCL_H
#define STEPSIM_SIM_RCCL_H

#include "sim/price/rates.h"
#include "step/op.h"

struct rccl_result {
	double time_s, latency_s; /* latency_s: of it, what no bytes take */
	double rel_sigma;
	const char *algorithm; /* "ring", "tree", "all pairs", "pairs" */
};

/* True where the GPUs are AMD's and their links are known. */
bool rccl_runs_on(const struct rates *r);
/* Fills the time of `bytes`, counted as in nccl-tests, over `size` ranks `stride` apart; `ring`: by a ring, if the
 * collective can run as one. Fails with ST_INPUT where no rate of their links is known, with ST_RUN as machine_group
 * does. */
enum status rccl_time(const struct rates *r, enum collective c, int64_t size, int64_t stride, bool ring, double bytes,
	struct rccl_result *out, struct error *e);

#endif
