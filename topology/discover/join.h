/* Changing a link graph that is already built: which vertices of two graphs are the same device, adding one, taking
 * some away. Private to topology/discover/.
 *
 * All of them keep what topology_check asks for: labels stay unique and in order, link words keep their places. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_JOIN_H
#define STEPSIM_TOPOLOGY_DISCOVER_JOIN_H

#include "topology/graph/graph.h"

/* to[i]: the vertex of `base` that vertex i of `more` is, or -1; each vertex of base at most once. `to` has
 * more->vertex.n elements. GPUs: by PCI address, by number where one of the two has no address. NICs: by PCI address,
 * by name, by number where one side has neither and both have as many. CPUs: by NUMA number, and the only one with the
 * only one. PCIe switches and host bridges: by PCI address. NVLink switches are never joined. */
void join_vertices(const struct graph *base, const struct graph *more, int32_t *to);

/* Appends a vertex under the next free label of its kind and makes room in the link words; its index, or -1 when out of
 * memory. */
int32_t join_add(struct graph *g, const struct vertex *v);

/* Gives vertex `v` a slot of its own: a new host bridge at the CPU of its NUMA node (the first CPU where that is not
 * known, a new one where there is none), over PCIe at the rate of `gen` and `width` (0: not known). */
enum status join_attach(struct graph *g, int32_t v, int32_t gen, int32_t width, enum evidence from, struct error *e);

/* Takes the vertices with keep[i] false away, with their links and words; GPUs are labelled anew from GPU0. `moved` (or
 * NULL) gets the new index of each old vertex, -1 for those that went. */
enum status join_keep(struct graph *g, const bool *keep, int32_t *moved, struct error *e);

/* "GPU0-3, GPU6" of the GPUs with in[number] true. */
char *join_gpu_list(char *buf, size_t size, const bool *in, size_t n);

#endif
