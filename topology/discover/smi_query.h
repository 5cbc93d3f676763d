/* Parts of the reader of nvidia-smi's query that discovery on this host needs one by one. Private to
 * topology/discover/. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_SMI_QUERY_H
#define STEPSIM_TOPOLOGY_DISCOVER_SMI_QUERY_H

#include "topology/graph/graph.h"

/* smi_query_read; listed[number] is set for the GPUs of the graph that have a row, those that it adds included (NULL: a
 * remark names those without). `listed` has room for `most` of them. */
enum status join_query(const char *text, size_t len, const char *name, struct graph *g, bool *listed, size_t most,
	struct error *e);

/* Turns listed[i] around for the graph's first n GPUs: true for those without a row that NVIDIA may have made, and a
 * remark that names them. `missing` gets their number. */
enum status join_unlisted(struct graph *g, bool *listed, size_t n, size_t *missing, struct error *e);

#endif
