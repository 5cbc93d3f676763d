/* Two sources on the same host. Private to topology/discover/. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_MERGE_H
#define STEPSIM_TOPOLOGY_DISCOVER_MERGE_H

#include "topology/graph/graph.h"

/* Adds what another source, `from`, knows of GPU `at` (a vertex of g) to it. Of two values the more direct source's
 * stays (NVML, nvidia-smi, its matrix, NCCL's file, hwloc); where PCIe lanes, generations beyond the slot's or NUMA
 * nodes disagree, a remark names both sources. */
enum status join_gpu(struct graph *g, int32_t at, const struct vertex *v, enum evidence from, struct error *e);
int join_rank(enum evidence from); /* how directly a source sees the GPUs and their NVLinks: the larger wins */

/* The graph's own source where a builder left a vertex or a link without one. */
enum evidence merge_said_by(const struct graph *g, enum evidence from);

/* graph_merge at work. */
struct merge {
	struct graph *base;
	const struct graph *more;
	int32_t *to; /* as join_vertices gives it; kept up to date while vertices are added and taken away */
	struct error *e;
};
enum status merge_copy_vertex(struct merge *m, int32_t i);
enum status merge_copy_link(struct merge *m,
	const struct link *l); /* a link of `more` between two vertices that base has by now */

enum status merge_nvlinks(struct merge *m);

/* A remark where the words of the two disagree; before devices are added. */
enum status merge_compare_words(struct merge *m);
/* Fills words that base does not tell and `more` does. */
enum status merge_fill_words(struct merge *m);
/* Words of base that its NVLinks, which are others now, have made untrue. The PCIe way below a link that went is not
 * told. */
enum status merge_renew_words(struct graph *g, struct error *e);

#endif
