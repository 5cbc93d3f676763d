/* Which GPU, which cores and which NIC each rank of a host gets: the executor binds to it, and -v prints it. */
#ifndef STEPSIM_TOPOLOGY_PLACEMENT_H
#define STEPSIM_TOPOLOGY_PLACEMENT_H

#include "topology/graph.h"

struct seat {
	int32_t gpu;              /* number of the GPU; -1: none */
	char cores[GRAPH_CORES];  /* CPUs (hardware threads) as a list */
	char nic[GRAPH_LABEL];    /* label of the nearest NIC; "" none */
	int64_t n_cores;          /* physical */
	bool shared;              /* another rank has these cores as well */
};

/* Seats for `ranks` ranks of this host, by local rank, from the CPUs in `allowed` (a list as in `cores`; "" all that this process may use).
 * With GPUs (`use_gpus`): local rank r gets GPU r of the graph, and an even share of the allowed cores of that GPU's NUMA node (of all, where the node has none allowed); ST_RUN when there are fewer GPUs than
 * ranks, unless `share_gpu`. Without: an even share of all cores, neighbours in hwloc's order. `g` may be NULL without GPUs. */
enum status placement_seats(const struct graph *g, const char *allowed, int64_t ranks, bool use_gpus, bool share_gpu, struct seat *out, struct error *e);

#endif
