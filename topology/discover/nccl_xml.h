/* Private to the reader of NCCL's topology files: what the parser collects (nccl_xml.c) and what makes the graph of it
 * (nccl_xml_graph.c). */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_NCCL_XML_H
#define STEPSIM_TOPOLOGY_DISCOVER_NCCL_XML_H

#include <expat.h>

#include "topology/discover/tree.h"

#define DEPTH_MAX 32
#define PEERS_MAX 16384

enum tag { TAG_SYSTEM, TAG_CPU, TAG_PCI, TAG_GPU, TAG_NVLINK, TAG_XGMI, TAG_C2C, TAG_NIC, TAG_NET, TAGS };

/* One end of a link between accelerators, as its GPU tells it. */
struct nccl_peer {
	int32_t node, count;
	enum tag tag;
	char target[GRAPH_PCI];
	uint32_t tclass;
	double Bps; /* C2C */
};

struct nccl_level {
	enum tag tag;
	int32_t node;             /* the tree's node that children hang on */
	int32_t nets, gpus, pcis; /* so far directly inside */
	bool stand_in;            /* a <pci> that stands for the CPU's own host bridge */
	bool bridge;              /* a <pci> that says that it is a bridge: what is inside hangs on it */
};

/* The attributes of a node that only this format has, beside the tree. */
struct nccl_extra {
	uint32_t vendor, device;
	int32_t dev, gfx;
	long line;
};

struct nccl_reader {
	XML_Parser parser;
	const char *name;
	struct error *e;
	enum status st;
	struct graph *g;
	struct tree tree;
	VEC(struct nccl_extra) extra; /* one a node */
	VEC(struct nccl_peer) peer;
	VEC(int32_t) pci; /* nodes with a PCI address */
	struct nccl_level level[DEPTH_MAX];
	int depth, skip; /* open elements; those of them inside a part that is left out */
	int cpus, nets_virtual, other_hosts, unknown, speeds_odd;
	char unknown_name[48], virtual_name[48], odd_name[48];
	long unknown_line;
	char host_hash[40];
};

/* Orders and names the devices, makes the graph of the tree, joins the accelerators. */
enum status nccl_xml_graph(struct nccl_reader *r);

#endif
