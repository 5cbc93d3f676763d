/* The parameters of NCCL's transfers between hosts over a kind of network: one file in configs/fabrics each, every
 * number with its source. The NICs' line rates are the system's (topology/catalogue/system.h). */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_NETWORK_H
#define STEPSIM_TOPOLOGY_CATALOGUE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define NETWORK_ID 32

struct network_spec {
	char id[NETWORK_ID], name[96];
	double share;          /* of its NICs' line rate that a host's rings and trees reach */
	double node_Bps;       /* a host gets no more than this, whatever its NICs; 0: no such limit */
	bool ll128;            /* NCCL uses its LL128 protocol across it */
	bool simple_only;      /* neither LL nor LL128 runs across it */
	bool no_tree, no_nvls; /* its settings keep NCCL from these algorithms across hosts */
	bool sharp;            /* its switches add up (CollNet) */
	double hiding; /* p of t = (latency^p + transfer^p)^(1/p) of a ring: 1 adds them up, infinity takes the larger
	                */
	/* A ring's or a tree's step from host to host, seconds. Simple: by the block that a rank sends in one step. */
	double ring_ll_s, ring_ll128_s, ring_ll_far_s; /* far: with more than far_hosts hosts */
	double tree_ll_s, tree_ll128_s;
	int64_t far_hosts;
	double simple_small_s, simple_middle_s, simple_large_s;
	uint64_t simple_middle_B, simple_large_B; /* blocks of so many bytes begin to take the middle, the large one */
	/* A block, or its first 64 KiB, that is stored and sent on whole at every step: its rate. */
	double block_ll_Bps, block_ll128_Bps, block_tree_Bps;
	/* All to all: seconds that it costs at least, and for each rank on other hosts; beyond eight hosts the latter
	 * grows and the share falls with the hosts to these powers. */
	double alltoall_node_Bps; /* as node_Bps, of an all-to-all, which has more connections; 0: none */
	double alltoall_share, alltoall_base_s, peer_small_s, peer_large_s, alltoall_share_power, peer_power;
	uint64_t peer_large_B; /* of one rank for another */
	double pair_share,
		far_pair_share; /* of a NIC that one rank's sends to one other reach, among two hosts and among more */
	double crowding;        /* all times across hosts x hosts^this: a cluster shared with other jobs */
	double sigma_small, sigma_large; /* relative uncertainty (one standard deviation) below and above 16 MiB */
	bool unverified;
};

/* The id of what is taken where nobody names the network: hosts of modules that NVLink joins, with NICs of 200 Gb/s and
 * more, are made for InfiniBand. */
const char *network_by_default(bool modules, double nic_Bps);

/* Multiplies all times of the network by `factor`. */
void network_scale_times(struct network_spec *n, double factor);

/* Reads configs/fabrics/<id>.yaml. ST_INPUT with the nearest id. */
enum status network_load(const char *id, struct network_spec *out, struct error *e);

#endif
