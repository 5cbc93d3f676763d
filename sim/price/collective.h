/* The time of a collective: dispatch to the pricer of the algorithm that is forced (step/algorithm.h). */
#ifndef STEPSIM_SIM_COLLECTIVE_H
#define STEPSIM_SIM_COLLECTIVE_H

#include <stdbool.h>

#include "sim/price/nccl.h"
#include "sim/price/rates.h"
#include "step/algorithm.h"
#include "step/program.h"
#include "step/result.h"

struct collective_price {
	double time_s;
	enum bound bound; /* latency or link */
	double rel_sigma;
	bool measured;         /* the group's own curve */
	int32_t channels;      /* SMs that it holds; 0: not known */
	int32_t algo, proto;   /* enum nccl_algo, nccl_proto; -1: not priced as NCCL's */
	const char *algorithm; /* the one that runs, in words: "ring", "NVLS"; or "measured" */
};

/* Returns the time of a collective over `size` ranks, `stride` apart, on a full buffer of `bytes`; 0 for one rank. An
 * algorithm that the collective or the group cannot run leaves the choice free. Infinite when no rate of the link is
 * known, or where the links cannot be looked up: then `e` says why (ST_RUN: memory ran out). */
typedef struct collective_price collective_pricer(const struct rates *r, enum collective c, int64_t size,
	int64_t stride, struct collective_choice forced, double bytes, struct error *e);

/* The same choice in NCCL's terms. */
struct nccl_choice collective_nccl_choice(struct collective_choice forced);
/* By the pricer of the algorithm's row. */
collective_pricer collective_price;
double collective_time_s(const struct rates *r, enum collective c, int64_t size, int64_t stride, double bytes,
	struct error *e); /* of a free choice */

/* The same of an op, whose rows may go to each host once (struct op_collective). `bytes`: as above. */
struct collective_price collective_price_of(const struct rates *r, const struct op *op, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, struct error *e);
struct collective_price price_once_a_host(const struct rates *r, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, double crossing_B, struct error *e);

/* The pricers. price_flat runs one algorithm over all ranks of the group. Its time is the profile's curve
 * "<collective>.<size>" where there is one (of a GPU's profile only those measured inside one host, for groups inside
 * one, or between hosts, for groups between them). Else it comes from the curve of the nearest size k: a
 * ring's step on S/n bytes takes T_k(k S/n) / steps(k), so T_n(S) = (n-1)/(k-1) T_k(k S/n); broadcast and sendrecv,
 * which cut nothing, T_k(S). Where no curve was measured, on NVIDIA's GPUs whose links are known as NCCL runs it
 * (sim/price/nccl.h), `forced` to an algorithm and a protocol; on AMD's as RCCL does (sim/price/rccl.h). Else
 * alpha-beta over the group's link: all-reduce by a ring 2(n-1) alpha + 2(n-1)/n S beta, all-gather and reduce-scatter
 * half of it, alltoall by pairwise exchange (n-1) alpha + (n-1)/n S beta (Thakur, Rabenseifner, Gropp 2005, IJHPCA
 * 19(1)); broadcast along a chain of pipelined pieces (n-1) alpha + S beta (NVIDIA/nccl-tests doc/PERFORMANCE.md: S/B);
 * sendrecv and a message (send, recv) alpha + S beta. Between hosts a member of the last has its own share of the NICs:
 * of alltoall the part of S that leaves the host crosses it, of sendrecv all. */
#define DECLARE_PRICER(id, name, nccl, protocol, portable, pricer, ...) collective_pricer price_##pricer;
ALGORITHMS(DECLARE_PRICER)
#undef DECLARE_PRICER

#endif
