/* The two halves of the report that people read: view_text.c and its tables, view_tables.c. Private to topology/view/.
 */
#ifndef STEPSIM_TOPOLOGY_VIEW_VIEW_TEXT_H
#define STEPSIM_TOPOLOGY_VIEW_VIEW_TEXT_H

#include "topology/view/view.h"

/* A GPU's own NVLinks (or their like) together. */
struct own_links {
	int32_t n, gen;
	double Bps, datasheet_Bps;
	const char *kind;
	bool assumed; /* the rate of any of them is a default */
};
struct own_links view_own_links(const struct graph *g, int32_t gpu);

/* Each begins with a blank line; nothing where there is nothing to tell. `numa`: with the NUMA nodes, which the matrix
 * does not tell then. */
enum status view_gpu_table(const struct graph *g, FILE *out, struct error *e);
enum status view_nic_table(const struct graph *g, bool numa, FILE *out, struct error *e);
enum status view_cpu_table(const struct graph *g, FILE *out, struct error *e);
enum status view_pci_table(const struct inventory *list, FILE *out, struct error *e);
enum status view_link_table(const struct graph *g, FILE *out, struct error *e);

#endif
