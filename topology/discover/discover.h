/* Discovery: what this host, or a dumped one, is made of.
 *
 * One reader for each source; all of them give a link graph. On this host: hwloc has packages, NUMA nodes and the PCI
 * tree; `nvidia-smi` and NVML, where a driver is there, say what hwloc does not know (names, memory, PCIe as trained,
 * NVLinks, clocks, power); NCCL_TOPO_FILE overrides the tree as it does for NCCL. Sources are merged: each link says
 * where it came from, and where two disagree a remark says so.
 */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_H
#define STEPSIM_TOPOLOGY_DISCOVER_H

#include "topology/discover/inventory.h"
#include "topology/graph/graph.h"

#define DUMP_MOST_MIB 64 /* the largest file that is read as a dump, of any format */
#define DUMP_MOST_B ((size_t)DUMP_MOST_MIB << 20)

/* Every reader: *out is the caller's. ST_INPUT "name:line: what" on a text that cannot be read right; never a guess.
 * `name` is for messages. */
enum status smi_topo_read(const char *text, size_t len, const char *name, struct graph **out,
	struct error *e); /* nvidia-smi topo -m */
enum status nccl_xml_read(const char *text, size_t len, const char *name, struct graph **out,
	struct error *e); /* NCCL and RCCL topology files */
enum status hwloc_xml_read(const char *text, size_t len, const char *name, struct graph **out,
	struct error *e);                                    /* hwloc XML that the library at hand can load */
enum status hwloc_read(struct graph **out, struct error *e); /* this host */

/* Adds what `nvidia-smi --query-gpu=<SMI_QUERY> --format=csv` printed to the GPUs of the graph, joined by PCI address,
 * else by index; GPUs that the graph lacks are added. */
#define SMI_QUERY \
	"index,pci.bus_id,name,memory.total,compute_cap,pcie.link.gen.current,pcie.link.gen.max," \
	"pcie.link.width.current,pcie.link.width.max,clocks.sm,clocks.max.sm,power.limit,power.default_limit," \
	"clocks_throttle_reasons.active"
enum status smi_query_read(const char *text, size_t len, const char *name, struct graph *g, struct error *e);

/* NVLinks, their generation and remote ends from libnvidia-ml.so.1, opened at run time; ST_OK and nothing added where
 * there is no such library or no driver. */
enum status nvml_read(struct graph *g, struct error *e);

/* Adds to `base` what `more` knows and base does not (GPUs and NICs are joined by PCI address, else by number), and
 * remarks on what the two contradict. `more` is left as it is. */
enum status graph_merge(struct graph *base, const struct graph *more, struct error *e);

/* Catalogue ids of the GPUs by their names, NVLink rates by compute capability, and the remarks that save money: a GPU
 * trained down to fewer PCIe lanes or a lower generation than it can, a GPU on another socket than its NIC, a pair
 * without the bridge that other pairs have, a power limit under the default, clocks held down. Called once, when all
 * sources are in. */
enum status graph_finish(struct graph *g, struct error *e);

/* The files of another machine, NULL where not given; all NULL: this host, with NCCL_TOPO_FILE as NCCL takes it. Each
 * is read once, so that it may be a pipe. */
struct dumps {
	const char *smi, *nccl_xml, *hwloc_xml;
	struct inventory
		*inventory; /* filled from hwloc_xml where that is given, empty else; the caller's. NULL: not wanted */
};
enum status discover(const struct dumps *d, struct graph **out, struct error *e);

#endif
