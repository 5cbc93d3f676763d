/* Routes over the link graph, and the words of `nvidia-smi topo -m` for them. */
#ifndef STEPSIM_TOPOLOGY_GRAPH_ROUTE_H
#define STEPSIM_TOPOLOGY_GRAPH_ROUTE_H

#include "topology/graph/graph.h"

#define ROUTE_HOPS 48

/* A link of accelerators among themselves, that "NV" stands for. */
static inline bool link_is_nv(const struct link *l) { return l->kind == LINK_NVLINK || l->kind == LINK_XGMI; }

/* How far two vertices are apart, nearest first. */
enum route_level { ROUTE_SELF, ROUTE_NV, ROUTE_PIX, ROUTE_PXB, ROUTE_PHB, ROUTE_NODE, ROUTE_SYS, ROUTE_LEVELS };

/* The links that bytes from `from` to `to` cross, in order. Bps: of a lone transfer, the slowest link (0 hops:
 * infinite). latency_s: the largest of its links' (rates.h gives each link the latency of a whole hop between two
 * ranks, so they do not add up). `level` is that of the fabric, whether bytes pass through memory or not. */
struct route {
	enum route_level level;
	int32_t n;
	int32_t link[ROUTE_HOPS];
	bool reverse[ROUTE_HOPS]; /* crossed from b to a */
	double Bps, latency_s;
	bool through_memory; /* peers cannot talk directly: written to host memory by one and read by the other */
};

/* The route that a driver takes: a direct NVLink (or xGMI), else NVLink switches, else C2C and PCIe with the fewest
 * levels climbed (the order PIX, PXB, PHB, NODE, SYS); among equals the widest, then the lowest indices. GPUs never
 * forward for others, but on a torus, whose way is the shortest over it. Where either GPU has no_peer and no NVLink
 * joins them, the route goes through the CPU of the first GPU, and so it does between such a GPU and a NIC. NICs
 * forward to and from the network port alone. ST_RUN when the two are not connected. */
enum status graph_route(const struct graph *g, int32_t from, int32_t to, struct route *out, struct error *e);

/* The level of a link word of nvidia-smi, those of old drivers included (PSB, SOC); -1 where it is none, and for "". */
int route_level_of_word(const char *word);

/* "X", "NV12", "PIX", "PXB", "PHB", "NODE", "SYS" between two vertices (GPUs and NICs): where the graph keeps a dump's
 * words, the dump's own, and "" for a pair that the dump does not tell; else derived from the route, XGMI links counted
 * as NV. NIC to NIC as well. The number behind NV is the links to that peer, or on an NVLink switch the links of the
 * GPU to it; on a torus the fewest side by side on the way. */
enum status graph_word(const struct graph *g, int32_t a, int32_t b, char out[GRAPH_WORD], struct error *e);

/* Both for many pairs of one graph, which it borrows: what was found out for one is kept for the next. One thread at a
 * time. */
struct router;
struct router *router_create(const struct graph *g); /* NULL when out of memory */
void router_destroy(struct router *r);               /* NULL-safe */
enum status router_route(struct router *r, int32_t from, int32_t to, struct route *out, struct error *e);
/* Returns the level of the route from a GPU to a NIC, sooner than the route itself; ROUTE_LEVELS where there is none.
 */
enum route_level router_level_of_nic(struct router *r, int32_t gpu, int32_t nic);
int32_t router_port(const struct router *r, int32_t nic); /* the NIC's link to the network, -1: none */
enum status router_word(struct router *r, int32_t a, int32_t b, char out[GRAPH_WORD], struct error *e);
bool router_out_of_memory(const struct router *r); /* tells such a failure from vertices that are not connected */

/* "nvswitch", "mesh" (NVLink or xGMI among more than pairs), "bridge" (in pairs only), "pcie", "none" (fewer than two
 * GPUs) */
const char *graph_fabric(const struct graph *g);

#endif
