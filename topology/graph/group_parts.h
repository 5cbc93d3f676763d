/* The parts that groups are computed from: the ring inside one host, and what all groups of one host get while they run
 * at once. Private to topology/graph/group*.c, cluster.c and their tests. */
#ifndef STEPSIM_TOPOLOGY_GRAPH_GROUP_PARTS_H
#define STEPSIM_TOPOLOGY_GRAPH_GROUP_PARTS_H

#include "topology/graph/group.h"
#include "topology/graph/route.h"

/* Rings over all `n` vertices of a multigraph that use no link twice in the same direction: width[i * n + j] parallel
 * links join i and j (symmetric), each in both directions. The number of directed rings, and the first one's order.
 * Undirected rings count twice, once each way; where that leaves links idle, directed ones are looked for as well.
 * Bounded: exact where few orders differ, else what was found. */
#define RING_PACK_MOST 256 /* members; 0 rings are found among more */
int32_t ring_pack(int32_t n, const int32_t *width, int32_t *order);

enum ring_kind { RING_ALONE /* one member */, RING_SWITCH, RING_LINKS, RING_FLOWS };

/* How the members on one host run their ring when nobody else does. */
struct host_ring {
	enum ring_kind kind;
	int32_t n, rings;
	int32_t *order;            /* vertices */
	struct route *hop;         /* RING_FLOWS: from order[i] to the next */
	double Bps, datasheet_Bps; /* of all rings */
	double latency_s;          /* mean of the hops */
	double fixed_Bps,
		fixed_datasheet_Bps; /* RING_FLOWS: what direct links alone reach, whoever else runs; 0: nothing */
	int32_t slowest;             /* link, -1: none */
};

enum status ring_choose(struct router *r, const struct graph *g, const int32_t *member, int32_t n,
	struct host_ring *out, struct error *e);
void ring_free(struct host_ring *ring);

/* The part of one group on one host. */
struct group_part {
	struct group group; /* all but size, hosts and latency of groups that span */
	int32_t members;
	double network_latency_s; /* largest on the way out */
};

/* All groups of a host at once: label[i] is the group of GPU i, -1: idle; labels count from 0 without gaps to n_groups
 * - 1. A group with fewer than `size` members here spans hosts. */
enum status host_groups(const struct graph *g, const int32_t *label, int32_t n_groups, int64_t size,
	struct group_part *out, struct error *e);

#endif
