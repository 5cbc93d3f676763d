/* The link graph of one host: its devices and the links that each byte crosses between them.
 *
 * Vertices are GPUs, NICs, NVLink switches, PCIe switches, host bridges (PCIe root complexes), CPUs (a NUMA node, or
 * what the driver tells apart as one) and the port to the network outside, one a host at most. Links join two vertices
 * and carry `Bps` in each direction at once; what shares a link shares that rate. A GPU reaches its CPU over PCIe
 * switches and a host bridge as the PCI tree has it; CPUs are joined by socket links; a NIC has a link to the network
 * port.
 *
 * Readers of dumps (topology/discover/), the catalogue and system lines (topology/catalogue/system.h) all build this
 * one structure; routes and link words (topology/graph/route.h), groups (topology/graph/group.h), the printed matrix
 * and the picture are functions of it.
 */
#ifndef STEPSIM_TOPOLOGY_GRAPH_GRAPH_H
#define STEPSIM_TOPOLOGY_GRAPH_GRAPH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "topology/graph/rates.h"

#define GRAPH_LABEL 24
#define GRAPH_NAME 96
#define GRAPH_PCI 20
#define GRAPH_CORES 256
#define GRAPH_WORD 8

enum vertex_kind {
	VERTEX_GPU,
	VERTEX_NIC,
	VERTEX_NVSWITCH,
	VERTEX_PCI_SWITCH,
	VERTEX_BRIDGE,
	VERTEX_CPU,
	VERTEX_NETWORK,
	VERTEX_KINDS
};
enum link_kind {
	LINK_NVLINK,
	LINK_XGMI /* AMD's Infinity Fabric between GPUs, and other accelerators' own links */,
	LINK_C2C,
	LINK_PCIE,
	LINK_LOCAL /* host bridge to its CPU */,
	LINK_SOCKET,
	LINK_NETWORK,
	LINK_KINDS
};

/* Who says so. */
enum evidence {
	SAID_BY_CATALOGUE,
	SAID_BY_LINE /* a system line */,
	SAID_BY_HWLOC,
	SAID_BY_HWLOC_XML,
	SAID_BY_NCCL_XML,
	SAID_BY_SMI_TOPO,
	SAID_BY_SMI_QUERY,
	SAID_BY_NVML,
	SAID_BY_PROFILE,
	EVIDENCES
};

/* 0, "" and false mean "not known" everywhere, and -1 in `numa`. */
struct gpu_facts {
	char device[64]; /* id in configs/gpus that it was matched to */
	uint64_t mem_B;
	int32_t compute_capability;                                 /* 90 for sm_90; AMD's gfx90a and the like: 0 */
	int32_t pcie_gen, pcie_gen_max, pcie_width, pcie_width_max; /* as trained now; as the card and slot can */
	int32_t nvlinks, nvlink_gen;   /* active links of this GPU, to all peers together */
	double clock_Hz, clock_max_Hz; /* of the SMs */
	double power_limit_W, power_default_W;
	uint64_t throttle; /* nvmlClocksEventReasons bits that were on */
	bool no_peer;      /* its driver refuses peer-to-peer over PCIe (GeForce): bytes pass through host memory */
	bool peer_known;   /* no_peer is the driver's own answer (NVML), not a conclusion from the name */
};

struct nic_facts {
	double Bps; /* one direction */
	int32_t port;
	bool infiniband;
};

struct cpu_facts {
	int32_t package; /* -1: not known */
	char model[GRAPH_NAME];
	uint64_t mem_B;
};

struct vertex {
	enum vertex_kind kind;
	char label[GRAPH_LABEL]; /* unique in its graph: "GPU0", "NIC3", "NVS0", "PCI2", "HB1", "CPU0", "NET" */
	char name[GRAPH_NAME];   /* GPU: as sold; NIC: "mlx5_0"; else free */
	char pci[GRAPH_PCI];     /* "0000:1b:00.0", lower case */
	int32_t numa;            /* the operating system's number, -1: not known */
	char cores[GRAPH_CORES]; /* CPU affinity as a list, "0-31,64-95" */
	enum evidence from;
	union {
		struct gpu_facts gpu;
		struct nic_facts nic;
		struct cpu_facts cpu;
	};
};

struct link {
	int32_t a, b; /* vertices, a != b */
	enum link_kind kind;
	int32_t width, gen;   /* NVLinks or PCIe lanes, and their generation */
	double Bps;           /* one direction, as a lone transfer can use it */
	double datasheet_Bps; /* one direction, without protocol overhead; 0: not known */
	double latency_s;
	enum evidence from;
	bool assumed; /* the rate is a default for want of a source about this machine */
};

/* Where sources disagree, and what a buyer or an administrator should look at: one line each. */
struct remark {
	char text[224];
	bool contradiction; /* two sources disagree; else a warning */
};

struct graph {
	char host[64], model[GRAPH_NAME]; /* the host's name; the machine's, as far as known */
	enum evidence source;             /* the main one */
	VEC(struct vertex) vertex;
	VEC(struct link) link;
	VEC(int32_t) gpu, nic; /* vertices, in the order of their labels' numbers */
	VEC(struct remark) remark;
	/* Link words as a dump has them, between matrix entries (GPUs, then NICs): words[i * n + j]; "" where the dump
	 * was cut. NULL: words are derived from the graph. */
	char (*words)[GRAPH_WORD];
	bool torus; /* the GPUs' own links are a torus, whose chips pass on what is for others (TPU, Trainium) */
};

struct graph *graph_create(enum evidence source); /* NULL when out of memory */
void graph_destroy(struct graph *g);              /* NULL-safe */

/* Appends; the index, or -1 when out of memory. An empty label becomes the kind's prefix and the next free number
 * ("GPU0"); numa starts at -1 where `v` leaves it to graph_vertex_init. */
int32_t graph_add_vertex(struct graph *g, const struct vertex *v);
struct vertex graph_vertex_init(enum vertex_kind kind, enum evidence from);
int32_t graph_add_link(struct graph *g, const struct link *l);
/* Returns a link with the bandwidths and the latency of a rate. */
struct link graph_link_at(struct link l, struct rate r);

/* The link between two vertices, of this kind (LINK_KINDS: of any), or NULL. */
struct link *graph_link(const struct graph *g, int32_t a, int32_t b, enum link_kind kind);
int32_t graph_find_pci(const struct graph *g,
	const char *pci); /* -1 when no vertex has this address (compared as normalized by graph_normal_pci) */
int32_t graph_find_label(const struct graph *g, const char *label); /* -1 */

/* "00000000:1B:00.0", "1b:00.0" -> "0000:1b:00.0". False when the text is no PCI address. */
bool graph_normal_pci(const char *text, char out[GRAPH_PCI]);

enum status graph_remark(struct graph *g, bool contradiction, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Matrix entries: GPUs, then NICs. */
size_t graph_entries(const struct graph *g);
int32_t graph_entry(const struct graph *g, size_t i); /* its vertex */

const char *vertex_kind_name(enum vertex_kind k); /* "GPU", "PCIe switch", ... */
const char *link_kind_name(enum link_kind k);     /* "NVLink", "PCIe", ... */
const char *evidence_name(enum evidence e);       /* "nvidia-smi topo", "nccl xml", "hwloc xml", "hwloc", ... */

/* The invariants that every builder keeps and every test calls: indices in range, labels and PCI addresses unique, no
 * link twice between the same two vertices in the same kind, positive finite rates, every GPU and NIC reaches every
 * other one, GPUs labelled in order, at most one network port, words symmetric where there are any. ST_INPUT names the
 * first one that does not hold; ST_RUN: out of memory. */
enum status topology_check(const struct graph *g, struct error *e);

/* The form in which ranks exchange graphs. graph_parse gives back an equal graph; ST_INPUT on anything else. */
json_t *graph_json(const struct graph *g); /* new reference; NULL when out of memory */
enum status graph_parse(const json_t *json, struct graph **out, struct error *e);

bool graph_same(const struct graph *a, const struct graph *b); /* equal in all but the host's name */

#endif
