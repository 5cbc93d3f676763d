/* What an op costs on a machine: the time it takes alone, and what it takes from what runs beside it. */
#ifndef STEPSIM_SIM_COST_H
#define STEPSIM_SIM_COST_H

#include <stdbool.h>

#include "sim/engine.h"
#include "sim/nccl.h"
#include "step/program.h"
#include "step/result.h"
#include "step/work.h"
#include "topology/machine.h"

struct op_cost {
	double alone_s, issue_s; /* issue_s: the host thread's time for launching it. On a host device calling is part of alone_s */
	double beside_s;         /* so much of alone_s lies beside products at the most (sim/beside.h) */
	enum bound bound;        /* compute, memory, latency (the call or the launch lasts longer than the work), link, host */
	double rel_sigma;        /* relative uncertainty (one standard deviation) of alone_s: the profile's residual, or the catalogue's */
	bool holds;              /* the host thread waits until it has ended before it issues more */
	bool guessed;            /* there is a profile, but it has no entry for this: priced from peak rates */
	struct activity use;
};

/* With whose terms ops are priced on the machine: of a GPU with a profile, those of the number of SMs that it was measured on. */
struct work_device cost_device(const struct machine *m);

/* With a profile: its fits and curves (step/work.h), on a GPU not below bytes over its memory bandwidth, and its launch on the host thread. Without: the roofline of the device's shares of its datasheet rates, and a launch on the host thread for each kernel.
 * An optimizer on the host's lane, of a machine of GPUs: its bytes at what the host's cores are known to reach. The data loader's batches, the stack's pauses and the synchronisation: as the config says.
 * Depends on the op's kind, formats, flags, group and dimensions alone. ST_INPUT when the machine cannot do it (a format that the device does not support, a link of unknown rate). */
enum status cost_op(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out, struct error *e);

/* What a rank's update by the host's cores (train.offload) reads and writes in a second, its host's other ranks beside it, of a machine of GPUs; and how many times more or less may come true: hosts differ that much. */
double cost_host_update_Bps(const struct program *p, const struct machine *m);
double cost_host_update_factor(void);

/* True where parallel.tensor_overlap hides tensor-parallel collectives beside the products around them: on GPUs. What stepsim itself executes runs them by themselves, and a curve measured of them says so. */
bool cost_hides_tensor(const struct program *p, const struct machine *m);

/* Time of a collective over `size` ranks, `stride` apart, on S = elements x bytes of the full buffer; 0 for one rank.
 * From the profile's curve "<collective>.<size>" where there is one (of a GPU's profile only those measured inside one host, for groups inside one, or between hosts, for groups between them). Else from its curve
 * of the nearest size k: a ring's step on S/n bytes takes T_k(k S/n) / steps(k), so
 * T_n(S) = (n-1)/(k-1) T_k(k S/n); broadcast and sendrecv, which cut nothing, T_k(S). Where no curve was measured, on NVIDIA's GPUs whose links are known as NCCL runs it (sim/nccl.h), `forced` to an algorithm and a protocol. Else alpha-beta over the group's link: all-reduce by a ring 2(n-1) alpha + 2(n-1)/n S beta, all-gather and reduce-scatter
 * half of it, alltoall by pairwise exchange (n-1) alpha + (n-1)/n S beta (Thakur, Rabenseifner, Gropp 2005, IJHPCA 19(1)); broadcast along a chain of pipelined pieces (n-1) alpha + S beta (NVIDIA/nccl-tests
 * doc/PERFORMANCE.md: S/B); sendrecv and a message (send, recv) alpha + S beta. Between hosts a member of the last has its own share of the NICs: of alltoall the part of S that leaves the host crosses it, of sendrecv all.
 * Infinite when no rate of the link is known. */
struct collective_price {
	double time_s;
	enum bound bound;  /* latency or link */
	double rel_sigma;
	bool measured;     /* the group's own curve */
	int32_t channels;  /* SMs that it holds; 0: not known */
	int32_t algo, proto; /* enum nccl_algo, nccl_proto; -1: not priced as NCCL's */
};
struct collective_price collective_price(const struct machine *m, enum collective c, int64_t size, int64_t stride, struct nccl_choice forced, double bytes);
double collective_time_s(const struct machine *m, enum collective c, int64_t size, int64_t stride, double bytes); /* of NCCL's own choice */

/* What a config's collectives.algorithm and protocol force. */
struct nccl_choice collective_choice(const struct config *c);

/* Of two ranks with coordinates `from` and `to` along a dimension whose neighbours are `stride` ranks apart: the stride of groups of two that have their link. Ranks on two hosts have that of neighbouring hosts,
 * with all devices of a host sending at once. Decided on the first ranks of the mesh. */
int64_t pair_stride(const struct machine *m, int64_t stride, int64_t from, int64_t to);

#endif
