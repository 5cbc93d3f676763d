/* The rates of a group of devices over the links: the ring it can run, the limit of that ring, and the fabric's other
 * rates.
 *
 * A ring's rate is that of its slowest link, with every link's rate divided by the flows that cross it in that
 * direction at the same time: those of this ring, of the other rings of the group and of the other groups that run at
 * once (8 GPUs behind two PCIe switches share each switch's uplink). The ring's order is chosen to make the slowest
 * link fastest, as NCCL's search does (NVIDIA/nccl src/graph/search.cc): exhaustively where few orders differ, greedily
 * along fast links elsewhere. On an NVLink or xGMI mesh several rings without a common link in the same direction add
 * up (NCCL's channels); their number is what a bounded exhaustive packing finds. On NVLink switches every GPU's links
 * carry one ring at full rate.
 *
 * A group on several hosts leaves each of them by the NICs that are nearest to its members there, each NIC by the
 * members nearest to it: NCCL's rings enter and leave a node at different GPUs. Its rate is the ring's inside, or what
 * those NICs let out if that is less; NICs, slots and socket links on the way out are shared evenly by all members of
 * all groups that use them at once. On that way PCIe counts by its datasheet rate, as the NIC does. The slowest host
 * decides. A hop's latency is the largest of its links', and the network's where it leaves the host.
 *
 * Datasheet rates leave out links that are no limit (a bridge to its CPU). All functions are deterministic, keep no
 * state, and may run in several threads at once. Searches are bounded: exact up to 8 members (routes) or where few
 * rings differ (NVLink), the best found within about a millisecond elsewhere. A square torus of up to 256 members has
 * two rings without a common link by construction; other groups on a torus have axes of their own, where no ring over
 * direct links is found. Rings of more than 64 members over PCIe, and of more than 256 over direct links, keep the
 * order of their numbers.
 */
#ifndef STEPSIM_TOPOLOGY_GRAPH_GROUP_H
#define STEPSIM_TOPOLOGY_GRAPH_GROUP_H

#include "topology/graph/cluster.h"

#define GROUP_ORDER 128

struct group {
	int64_t size, hosts;
	bool in_node;
	double ring_Bps; /* one direction, all rings together: what busbw of a long all-reduce tends to. size 1:
	                    infinite */
	double ring_datasheet_Bps; /* the same sum over datasheet rates; 0 where a link has none */
	double ring_latency_s;     /* of a hop, mean over the ring */
	int32_t rings;             /* disjoint */
	double pair_Bps;           /* of a lone transfer between the first two neighbours of the ring */
	bool nvlink_switch; /* all members on one NVLink switch fabric: a switch may reduce (NVLS) where the GPUs have
	                       it */
	double network_Bps; /* spanning hosts: of one member's share out of its host; else 0 */
	int32_t n_order;    /* the ring's order on the first host, as GPU numbers; at most GROUP_ORDER */
	int32_t order[GROUP_ORDER];
	enum link_kind bottleneck; /* kind of the slowest link, and in words: "PCIe between PCI0 and HB0, 4 flows share
	                              24 GB/s" */
	char bottleneck_text[160];
};

/* One group alone: `n` different devices. ST_INPUT: a device out of range or twice. */
enum status cluster_group(const struct cluster *c, const int64_t *devices, size_t n, struct group *out,
	struct error *e);

/* All groups of one mesh dimension, which communicate at the same time: groups of `size` devices, neighbours `stride`
 * apart, groups beginning at multiples of size x stride; the slowest of them. Hosts may differ: what is alike is looked
 * at once, and it is O(one host) where all are. Where blocks and hosts do not divide each other, every way in which a
 * group can straddle hosts counts. Devices behind the last whole block are idle. `out` describes the first group that
 * is as slow as the slowest; its order is on the host that makes it so. ST_INPUT: a block exceeds the cluster; ST_RUN:
 * hosts without a network. */
enum status cluster_mesh_groups(const struct cluster *c, int64_t size, int64_t stride, struct group *out,
	struct error *e);

#endif
