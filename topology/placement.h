/* Which GPU, which cores and which NIC each rank of a host gets: the executor binds to it, and -v prints it. */
#ifndef STEPSIM_TOPOLOGY_PLACEMENT_H
#define STEPSIM_TOPOLOGY_PLACEMENT_H

#include "topology/graph/graph.h"

#define PLACEMENT_CORES 4096
#define PLACEMENT_TEXT 704

struct placement {
	int32_t gpu;                 /* number of the GPU; -1: none */
	char cores[PLACEMENT_CORES]; /* CPUs (hardware threads) as a list */
	char nic[GRAPH_LABEL];       /* label of the nearest NIC; "" none */
	int64_t n_cores;    /* physical, at least 1: what the rank can keep busy, which a CPU quota (cpu.max) makes less
	                       than `cores` holds */
	int64_t host_cores; /* physical, that all ranks of the host have together, under that quota */
	bool shared;        /* another rank has these cores as well, or there is less CPU time than ranks */
};

/* Placements for `ranks` ranks of this host, by local rank, from the CPUs that each may use: allowed[r] is a list as in
 * `cores`; "", or allowed NULL: all that this process may use. A rank never gets another CPU. With GPUs (`use_gpus`):
 * local rank r gets GPU r of the graph, and an even share of the allowed cores of that GPU's NUMA node (of all, where
 * the node has none allowed); ST_RUN when there are fewer GPUs than ranks, unless `share_gpu`. Without, and where a
 * rank may use less than the host's other ranks: an even share of all that it may use, neighbours in hwloc's order. `g`
 * may be NULL without GPUs. Among equally near NICs, GPU i takes the i-th (modulo their number). Where there are more
 * ranks than cores, or sets that overlap cannot be shared out in order, cores are shared. ST_INPUT: a list of
 * `allowed`, or a GPU's own, is no list of CPUs. ST_RUN: none of a rank's CPUs exists here. */
enum status placement_choose(const struct graph *g, const char *const *allowed, int64_t ranks, bool use_gpus,
	bool share_gpu, struct placement *out, struct error *e);

/* The same where each rank's GPU is decided already: gpu[r] is the number in the graph of local rank r's. */
enum status placement_choose_at(const struct graph *g, const char *const *allowed, int64_t ranks, const int32_t *gpu,
	struct placement *out, struct error *e);

/* Cuts the placements of one host to a CPU quota: its ranks together have the time of `quota` cores (whole; a fraction
 * counts as one). placement_choose has done it for this host's quota. */
void placement_limit(struct placement *placements, int64_t ranks, int64_t quota);

/* "rank 3: host h1, GPU3 (NVIDIA H100 80GB HBM3, 0000:5d:00.0), cores 24-31, NIC3 (mlx5_3)"; "rank 3: host vm, cores 3
 * (shared), no GPU". A long list of cores is cut at a comma. `g`: the placements' graph, or NULL. */
void placement_text(const struct placement *s, const struct graph *g, const char *host, int64_t rank,
	char out[PLACEMENT_TEXT]);

#endif
