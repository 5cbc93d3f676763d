/* The two halves of the JSON's writer: devices, links and groups (view_json.c), the matrix (view_json_matrix.c).
 * Private to topology/view/. */
#ifndef STEPSIM_TOPOLOGY_VIEW_VIEW_JSON_H
#define STEPSIM_TOPOLOGY_VIEW_VIEW_JSON_H

#include "topology/view/view.h"

#define VIEW_LABEL (VIEW_HOST + GRAPH_LABEL)

struct view_place {
	const struct cluster *cluster;
	const struct cluster_shape *shape;
	const struct graph *g;
	int64_t host;
};

/* New references; NULL when out of memory. */
json_t *view_rate_json(double x);      /* null where it is 0 or infinite */
json_t *view_text_json(const char *s); /* null where it is "" */
json_t *view_label_json(const struct view_place *p, int32_t vertex);
json_t *view_host_json(const struct view_place *p);

/* Whether one matrix holds all hosts. */
bool view_matrix_fits(const struct cluster *c);
enum status view_matrix_json(const struct cluster *c, const struct view_makes *makes, json_t **out, struct error *e);
/* One of each make, with its hosts and what leaves them. */
enum status view_matrices_json(const struct cluster *c, const struct view_makes *makes, json_t **out, struct error *e);

#endif
