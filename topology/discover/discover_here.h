/* Discovery on this host with its tools named, for tests. Private to topology/discover/. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_DISCOVER_HERE_H
#define STEPSIM_TOPOLOGY_DISCOVER_DISCOVER_HERE_H

#include "topology/graph/graph.h"

/* discover() on this host, with the limit of each run of nvidia-smi, and the file that NCCL reads when NCCL_TOPO_FILE
 * is not set (NULL: none). */
struct discover_tools {
	double smi_limit_s;
	const char *virtual_topology;
};
enum status discover_here(const struct discover_tools *tools, struct graph **out, struct error *e);

#endif
