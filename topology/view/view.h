/* Views of a cluster's link graphs: the matrix of `nvidia-smi topo -m` with GB/s, JSON, graphviz, a picture. They
 * depend on the cluster and on hwloc's inventory alone.
 *
 * Rates are of one direction, as a transfer alone can use them. Hosts of one make (the same links between parts of the
 * same names, whatever their clocks and PCI addresses) are shown once, with the first one's devices; remarks name their
 * hosts. With several hosts labels are "HOST:GPU0".
 */
#ifndef STEPSIM_TOPOLOGY_VIEW_VIEW_H
#define STEPSIM_TOPOLOGY_VIEW_VIEW_H

#include <jansson.h>
#include <stdio.h>

#include "topology/discover/inventory.h"
#include "topology/graph/group.h"
#include "topology/graph/route.h"
#include "topology/messages.h"

struct view_beside {
	const struct inventory *inventory;    /* of the first host; NULL: not known */
	bool links;                           /* every link too (-v) */
	const struct message_links *messages; /* what ranks measured; NULL: nothing */
};

/* Matrix, legend, fabric, groups, devices, CPUs, remarks. */
enum status view_text(const struct cluster *c, const struct view_beside *beside, FILE *out, struct error *e);

/* Returns the JSON of `topo --json` (docs/reference.md), a new reference. With more than VIEW_MATRIX_MOST entries,
 * `matrix` is null, `matrices` has one for each make of hosts, and `links` has those of each make's first host. */
#define VIEW_MATRIX_MOST 512
enum status view_json(const struct cluster *c, const struct view_beside *beside, json_t **out, struct error *e);

/* The link graph for graphviz: a cluster for each host and each of its CPUs, links with kind and GB/s. One host a make.
 */
enum status view_dot(const struct cluster *c, FILE *out, struct error *e);

/* A picture that needs nothing else to be drawn: from the top CPUs, host bridges, PCIe switches, GPUs and NICs,
 * NVLinks, the network. Follows the reader's light or dark scheme. One host a make. */
enum status view_svg(const struct cluster *c, FILE *out, struct error *e);

/* A view's whole text, terminated; the caller's. */
typedef enum status view_fn(const struct cluster *c, FILE *out, struct error *e);
enum status view_to_text(view_fn *view, const struct cluster *c, char **text, size_t *len, struct error *e);

/* ---- what these share ---- */

/* A stream into memory that knows when memory ran out (glibc's open_memstream drops text then and says nothing). Stays
 * where it is while open. */
struct view_stream {
	FILE *out;
	VEC(char) text;
	bool lost;
	char buffer[4096];
};
enum status view_open(struct view_stream *s, struct error *e);
/* *text, terminated, is the caller's; NULL on failure. `len`: NULL where not wanted. */
enum status view_close(struct view_stream *s, char **text, size_t *len, struct error *e);

#define VIEW_TEXT 96
#define VIEW_RATE 24
#define VIEW_HOST 96

/* GB/s in three digits: "371", "12.5", "0.125"; "-" where infinite or 0. */
char *view_rate(char buf[VIEW_RATE], double Bps);

/* "NVLink gen 4 x18", "PCIe gen 4 x16", "network": kind, generation and width of a link as far as known. */
char *view_link(char buf[VIEW_TEXT], const struct link *l);

/* One direction of a NIC: as stated, else its link's to the network; *assumed where nobody stated it. */
double view_nic_Bps(const struct graph *g, int32_t nic, bool *assumed);

/* The host's own name, else its shape's; "" where it has none. */
const char *view_host(const struct cluster *c, const struct cluster_shape *s, int64_t host);
/* The same, never "" and never shared with another host where there are several: "node7", "host12". */
const char *view_host_name(char buf[VIEW_HOST], const struct cluster *c, const struct cluster_shape *s, int64_t host);

struct view_make {
	size_t shape;  /* its first */
	int64_t hosts; /* of all its shapes */
};
struct view_makes {
	VEC(struct view_make) list;
	size_t *of_shape; /* the make of each shape of the cluster; owned */
};
enum status view_makes(const struct cluster *c, struct view_makes *out, struct error *e);
void view_makes_free(struct view_makes *makes); /* NULL-safe */

/* The remarks on the hosts of a make (VIEW_ALL_MAKES: on all hosts), each once for all hosts with the same text. */
#define VIEW_ALL_MAKES SIZE_MAX
struct view_remark {
	const struct remark *remark; /* of the cluster */
	size_t order;
	int64_t hosts;
	char who[4 * VIEW_HOST + 64]; /* "node3, node5: "; "" where it is all of them */
};
struct view_remarks {
	VEC(struct view_remark) list;
};
enum status view_remarks(const struct cluster *c, const struct view_makes *makes, size_t make, struct view_remarks *out,
	struct error *e);
void view_remarks_free(struct view_remarks *remarks); /* NULL-safe */

/* One cell of the matrix; `router` is of the graph. */
struct view_cell {
	char word[GRAPH_WORD];
	double Bps;
	bool assumed;        /* the slowest link's rate is a default */
	bool through_memory; /* written to host memory and read again */
};
enum status view_cell(const struct graph *g, struct router *router, int32_t a, int32_t b, struct view_cell *out,
	struct error *e);

/* All of a host's cells, and the rate at which a lone transfer of each entry leaves the host (0: it does not). */
struct view_matrix {
	size_t n;               /* entries */
	struct view_cell *cell; /* [i * n + j]; owned */
	double *egress_Bps;     /* owned */
};
enum status view_matrix(const struct graph *g, struct view_matrix *out, struct error *e);
void view_matrix_free(struct view_matrix *m); /* NULL-safe */

/* The first hosts that have GPUs and no NIC: no ring goes over all hosts then. NULL: none. */
const struct cluster_shape *view_without_nic(const struct cluster *c);

/* The groups that are worth a line: all GPUs of all hosts (where NICs join them), of each make's first host, its NVLink
 * islands, the GPUs of each package. */
struct view_group {
	char what[32];   /* "all GPUs", "NVLink island", "socket" */
	int64_t *device; /* owned */
	int64_t n;
	size_t shape;
	bool everywhere; /* spans hosts */
	bool nvls;       /* every member can have its sums made by the switch */
	struct group group;
};
struct view_groups {
	VEC(struct view_group) list;
};
enum status view_groups(const struct cluster *c, const struct view_makes *makes, struct view_groups *out,
	struct error *e);
void view_groups_free(struct view_groups *groups); /* NULL-safe */

#endif
