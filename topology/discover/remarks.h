/* The remarks of graph_finish, once rates are set. Private to topology/discover/. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_REMARKS_H
#define STEPSIM_TOPOLOGY_DISCOVER_REMARKS_H

#include "topology/catalogue/device.h"
#include "topology/graph/graph.h"
#include "topology/graph/route.h"

#define LIST 96
#define GB 1e9

enum status join_remarks(struct graph *g, struct error *e);

/* The data that the remarks are made from. */
struct advisor {
	struct graph *g;
	struct router *router;
	size_t n;                 /* GPUs */
	struct device_spec *spec; /* of each; id "" where the catalogue has none */
	bool *in, *done;          /* scratch */
	char list[LIST];
	struct error *e;
};

static inline const struct vertex *advisor_gpu(const struct advisor *a, size_t i)
{
	return &a->g->vertex.at[a->g->gpu.at[i]];
}
bool advisor_same_model(const struct vertex *x, const struct vertex *y);

/* On links between devices: remarks_links.c and remarks_nics.c. */
enum status remark_bridges(struct advisor *a);
enum status remark_pair(struct advisor *a);
enum status remark_switch(struct advisor *a);
enum status remark_peers(struct advisor *a);
enum status remark_nics(struct advisor *a);

/* The route between two vertices; *there false where they are not connected. ST_RUN: no memory. */
enum status advisor_route(const struct advisor *a, int32_t from, int32_t to, struct route *route, bool *there);

#endif
