/* Private to the reader of NCCL's topology files: the document (nccl_xml.c), what its elements become
 * (nccl_xml_elements.c), and what makes the graph of that (nccl_xml_graph.c). */
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

/* Ends the reading with ST_INPUT at the parser's line; the first refusal stays. */
void nccl_refuse(struct nccl_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void nccl_no_memory(struct nccl_reader *r); /* the same with ST_RUN */

/* Returns the text as messages have it: short and without control characters. */
#define NCCL_SHOWN 48
const char *nccl_shown(const char *text, char out[NCCL_SHOWN]);

const char *nccl_attribute(const char **atts, const char *key); /* NULL: the element has none of that name */
/* Returns a whole number; `missing` where the attribute is absent or empty. Refuses what is none from min to max. */
int64_t nccl_number(struct nccl_reader *r, const char **atts, const char *key, int base, int64_t min, int64_t max,
	int64_t missing);

/* An element: where it may stand, and what it adds to the tree. */
struct nccl_tag {
	const char *name;
	unsigned parents; /* bits of enum tag */
	void (*start)(struct nccl_reader *r, const char **atts, struct nccl_level *l);
};
extern const struct nccl_tag nccl_tags[TAGS];

/* Orders and names the devices, makes the graph of the tree, joins the accelerators. */
enum status nccl_xml_graph(struct nccl_reader *r);

#endif
