/* The PCI tree that the XML readers share: nodes are collected in the order of the file, each with its parent and the
 * PCIe link towards it; tree_graph makes the link graph of them.
 *
 * Kinds: a VERTEX_CPU is a root (parent -1), a VERTEX_BRIDGE hangs on a CPU, all others hang on a bridge or a PCIe
 * switch. Switches and bridges with no GPU and no NIC below them are left out of the graph. GPUs, NICs and CPUs are
 * numbered by `order`, then as they came. Every NIC is joined to one network port. CPUs of one package are joined all
 * to all, packages by their first CPUs; CPUs whose package is not known all to all.
 */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_TREE_H
#define STEPSIM_TOPOLOGY_DISCOVER_TREE_H

#include "topology/graph/graph.h"

#define TREE_NODES 4096 /* most nodes of one host */
#define TREE_CPUS 64

struct tree_node {
	struct vertex v;
	int32_t parent;
	int32_t gen, lanes; /* of the PCIe link towards the parent; 0: not known */
	int32_t order;
};

struct tree {
	VEC(struct tree_node) node;
};

void tree_free(struct tree *t);

/* The index of the new node, or -1 when there are TREE_NODES already or memory ran out. */
int32_t tree_add(struct tree *t, enum vertex_kind kind, enum evidence from, int32_t parent);

/* Adds all vertices, and the links of PCIe, host bridges, sockets and the network. vertex_of[node]: its vertex, or -1.
 */
enum status tree_graph(const struct tree *t, struct graph *g, int32_t *vertex_of, struct error *e);

/* PCI class as 0x0302. GPUs are display and 3D controllers of NVIDIA, AMD and Intel (but not a processor's own
 * graphics: Intel's on bus 0, AMD's by their ids), AMD's other displays (0380: MI50 to MI250X) and AMD's processing
 * accelerators (12xx: MI300). Management controllers (ASPEED, Matrox, the ATI parts on server boards) and FPGA cards
 * are none. vendor 0: not known, the class decides. */
bool tree_is_gpu(uint32_t pci_class, uint32_t vendor, uint32_t device, uint32_t bus);

/* As sold, by PCI id ("NVIDIA H100 80GB HBM3"), or NULL. */
const char *tree_gpu_name(uint32_t vendor, uint32_t device);

/* The NVLink generation of a compute capability; 0 when not known. */
int32_t tree_nvlink_gen(int32_t compute_capability);

/* A set of processors as a list, "0-31,64-95". False, and "", when it does not fit. */
bool tree_core_list(const uint32_t *words, size_t n, char out[GRAPH_CORES]);

/* The links of accelerators, as both ends tell them. `fabric_graph` adds one link for each pair; where the two ends
 * count differently the smaller count is taken, and a remark says so. */
struct fabric_pair {
	int32_t a, b; /* vertices, a < b */
	enum link_kind kind;
	int32_t ab, ba;
	struct rate_of_link {
		double Bps, datasheet_Bps;
		int32_t gen;
		bool assumed;
	} one;
};
struct fabric {
	VEC(struct fabric_pair) pair;
};
void fabric_free(struct fabric *f);
/* `n` more links from a to b as a tells it; `one_sided`: b does not tell its side (switches, CPUs). */
enum status fabric_add(struct fabric *f, enum link_kind kind, int32_t a, int32_t b, int32_t n, bool one_sided,
	struct rate_of_link rate, struct error *e);
enum status fabric_graph(const struct fabric *f, struct graph *g, struct error *e);

#endif
