/* A host's inventory from hwloc: packages, cores, memory, and the PCI devices that lstopo lists. It includes devices
 * that are no vertex of the link graph (disks, management controllers). */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_INVENTORY_H
#define STEPSIM_TOPOLOGY_DISCOVER_INVENTORY_H

#include "topology/graph/graph.h"

struct pci_device {
	char address[GRAPH_PCI];
	char what[32];         /* "storage", "network", "display", ...; "class 0b40" where the class has no word here */
	char name[GRAPH_NAME]; /* vendor and device, in words where hwloc knows them, else "1af4:1001" */
	char os[64];           /* the names under which the operating system has it: "vda", "eth0" */
	double Bps;            /* of its link, one direction, as hwloc states it; 0: not known */
	int32_t numa;          /* -1: not known */
};

struct inventory {
	int64_t packages, cores, threads,
		numa_nodes;       /* that this host's kernel lets any process have, whatever this one is bound to */
	uint64_t mem_B;           /* of this host as its kernel counts it; of an export: of all NUMA nodes */
	uint64_t mem_available_B; /* of this host, to a process like this one; 0: an export */
	uint64_t l2_B, l3_B;      /* of the first; 0: none */
	VEC(struct pci_device) device; /* in hwloc's order */
};

/* This host's (`xml` NULL), or those of an hwloc export of `len` bytes. ST_INPUT where hwloc cannot load it. */
enum status inventory_read(const char *xml, size_t len, const char *name, struct inventory *out, struct error *e);
void inventory_free(struct inventory *l); /* NULL-safe */

#endif
