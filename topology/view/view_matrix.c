/* The cells that text and JSON show. */
#include <math.h>
#include <stdlib.h>

#include "topology/view/view.h"

#define NICS_MOST 64

enum status view_cell(const struct graph *g, struct router *router, int32_t a, int32_t b, struct view_cell *out,
	struct error *e)
{
	struct route r;
	*out = (struct view_cell){0};
	enum status st = router_word(router, a, b, out->word, e);
	if (st || a == b)
		return st;
	if ((st = router_route(router, a, b, &r, e)))
		return st;
	out->Bps = r.Bps;
	out->through_memory = r.through_memory;
	for (int32_t i = 0; i < r.n; i++) {
		const struct link *l = &g->link.at[r.link[i]];
		out->assumed |= l->assumed && l->Bps <= r.Bps;
	}
	return ST_OK;
}

double view_nic_Bps(const struct graph *g, int32_t nic, bool *assumed)
{
	double Bps = g->vertex.at[nic].nic.Bps;
	*assumed = false;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		if (l->kind != LINK_NETWORK || (l->a != nic && l->b != nic))
			continue;
		*assumed = l->assumed;
		Bps = Bps > 0 ? Bps : l->Bps;
	}
	return Bps;
}

/* Finds the rate out of the host: of a GPU by the NICs that it uses and the route to the first of them, of a NIC by
 * itself. */
static enum status egress(const struct graph *g, struct router *router, int32_t at, double *Bps, struct error *e)
{
	bool assumed;
	int32_t nic[NICS_MOST];
	struct route way;
	*Bps = 0;
	if (g->vertex.at[at].kind == VERTEX_NIC) {
		*Bps = view_nic_Bps(g, at, &assumed);
		return ST_OK;
	}
	int32_t n = cluster_nics(router, g, at, nic, NICS_MOST);
	if (n < 0)
		return error_nomem(e, "the way out of a host");
	for (int32_t i = 0; i < n && i < NICS_MOST; i++)
		*Bps += view_nic_Bps(g, nic[i], &assumed);
	if (n == 0)
		return ST_OK;
	enum status st = router_route(router, at, nic[0], &way, e);
	*Bps = st ? 0 : fmin(*Bps, way.Bps);
	return st;
}

void view_matrix_free(struct view_matrix *m)
{
	if (!m)
		return;
	free(m->cell);
	free(m->egress_Bps);
	*m = (struct view_matrix){0};
}

enum status view_matrix(const struct graph *g, struct view_matrix *out, struct error *e)
{
	size_t n = graph_entries(g);
	struct router *router = router_create(g);
	*out = (struct view_matrix){n, calloc(n * n + 1, sizeof *out->cell), calloc(n + 1, sizeof *out->egress_Bps)};
	enum status st = router && out->cell && out->egress_Bps ? ST_OK : error_nomem(e, "the matrix");
	for (size_t i = 0; i < n && !st; i++) {
		st = egress(g, router, graph_entry(g, i), &out->egress_Bps[i], e);
		for (size_t j = 0; j < n && !st; j++)
			st = view_cell(g, router, graph_entry(g, i), graph_entry(g, j), &out->cell[i * n + j], e);
	}
	router_destroy(router);
	if (st)
		view_matrix_free(out);
	return st;
}
