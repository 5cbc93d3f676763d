/* Private to what reads hwloc: loading (hwloc_read.c), a look at exports before that (hwloc_read_check.c), the device
 * tree (hwloc_read_tree.c), what sysfs adds on this host (hwloc_read_live.c), the matrices of NVLink and xGMI
 * (hwloc_read_fabric.c). */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_HWLOC_READ_H
#define STEPSIM_TOPOLOGY_DISCOVER_HWLOC_READ_H

#include <hwloc.h>

#include "topology/discover/tree.h"

struct hwloc_reader {
	hwloc_topology_t t;
	struct graph *g;
	struct error *e;
	struct tree tree;
	VEC(hwloc_obj_t)
	object; /* of each node of the tree: NUMA node, bridge, PCI device, or the OS device of a GPU that has none */
	int cpus, unplaced, silent, loose;
	int32_t loose_bridge[TREE_CPUS]; /* for GPUs without a PCI device; 0: none yet */
	char loose_name[32];
};

/* This host (`xml` NULL) or an export that hwloc_xml_check has let through, with all its devices, and without hwloc's
 * remarks on standard error. On failure *t is NULL. */
enum status hwloc_load(hwloc_topology_t *t, const char *xml, size_t len, const char *name, struct error *e);

/* Refuses what hwloc's own XML parser must not see: ST_INPUT "name:line: what". */
enum status hwloc_xml_check(const char *text, size_t len, const char *name, struct error *e);

/* The OS devices that make a PCI device a GPU. */
bool hwloc_is_compute(hwloc_obj_t os);

/* The nodes of the tree, in g the remarks. */
enum status hwloc_tree(struct hwloc_reader *r);
/* Adds to the nodes what sysfs (normally "/sys") says of this host: PCIe as trained, rates of NICs. */
void hwloc_live(struct hwloc_reader *r, const char *sysfs);
/* The links between GPUs, once the graph has its vertices. */
enum status hwloc_fabric(struct hwloc_reader *r, const int32_t *vertex_of);

#endif
