/* What people and programs read of a cluster's link graphs: the matrix of `nvidia-smi topo -m` with GB/s, JSON, graphviz, a picture. Functions of the cluster and of what hwloc lists beside it alone.
 *
 * Rates are of one direction, as a transfer alone can use them. Hosts that share a graph (one shape) are shown once, under all their names. With several hosts labels are "HOST:GPU0".
 */
#ifndef STEPSIM_TOPOLOGY_VIEW_VIEW_H
#define STEPSIM_TOPOLOGY_VIEW_VIEW_H

#include <jansson.h>
#include <stdio.h>

#include "topology/discover/inventory.h"
#include "topology/graph/group.h"
#include "topology/graph/route.h"

struct view_beside {
	const struct inventory *inventory; /* of the first host; NULL: not known */
	bool links;                        /* every link too (-v) */
};

/* Matrix, legend, fabric, groups, devices, CPUs, remarks. */
enum status view_text(const struct cluster *c, const struct view_beside *beside, FILE *out, struct error *e);

/* INTERFACE's "topo --json", and beside it cpus, links, groups, contradictions, pci_devices. New reference. */
enum status view_json(const struct cluster *c, const struct view_beside *beside, json_t **out, struct error *e);

/* The link graph for graphviz: a cluster for each host and each of its CPUs, links with kind and GB/s. One host a shape. */
enum status view_dot(const struct cluster *c, FILE *out, struct error *e);

/* A picture that needs nothing else to be drawn: from the top CPUs, host bridges, PCIe switches, GPUs and NICs, NVLinks, the network. Follows the reader's light or dark scheme. One host a shape. */
enum status view_svg(const struct cluster *c, FILE *out, struct error *e);

/* ---- what these share ---- */

#define VIEW_TEXT 96
#define VIEW_RATE 24

/* GB/s in three digits: "371", "12.5", "0.125"; "-" where infinite or 0. */
char *view_rate(char buf[VIEW_RATE], double Bps);

/* "NVLink gen 4 x18", "PCIe gen 4 x16", "network": kind, generation and width of a link as far as known. */
char *view_link(char buf[VIEW_TEXT], const struct link *l);

/* One direction of a NIC: as stated, else its link's to the network; *assumed where nobody stated it. */
double view_nic_Bps(const struct graph *g, int32_t nic, bool *assumed);

/* The host's name at which hosts of this shape begin; "" where it has none. */
const char *view_host(const struct cluster *c, const struct cluster_shape *s, int64_t host);

/* One cell of the matrix; `router` is of the graph. */
struct view_cell {
	char word[GRAPH_WORD];
	double Bps;
	bool assumed;        /* the slowest link's rate is a default */
	bool through_memory; /* written to host memory and read again */
};
enum status view_cell(const struct graph *g, struct router *router, int32_t a, int32_t b, struct view_cell *out, struct error *e);

/* The first hosts that have GPUs and no NIC: no ring goes over all hosts then. NULL: none. */
const struct cluster_shape *view_without_nic(const struct cluster *c);

/* The groups that are worth a line: all GPUs of all hosts (where NICs join them), of each shape's first host, its NVLink islands, the GPUs of each package. */
struct view_group {
	char what[32];      /* "all GPUs", "NVLink island", "socket" */
	int64_t *device;    /* owned */
	int64_t n;
	size_t shape;
	bool everywhere;    /* spans hosts */
	bool nvls;          /* every member can have its sums made by the switch */
	struct group group;
};
struct view_groups {
	VEC(struct view_group) list;
};
enum status view_groups(const struct cluster *c, struct view_groups *out, struct error *e);
void view_groups_free(struct view_groups *groups); /* NULL-safe */

#endif
