/* Remarks on links between GPUs. */
#include <string.h>

#include "topology/discover/join.h"
#include "topology/discover/remarks.h"

static bool has_nvlink(const struct graph *g, int32_t v)
{
	for (size_t i = 0; i < g->link.n; i++)
		if (link_is_nv(&g->link.at[i]) && (g->link.at[i].a == v || g->link.at[i].b == v))
			return true;
	return false;
}

/* A dump that was cut does not show all links. */
static bool is_cut(const struct graph *g)
{
	size_t n = graph_entries(g);
	for (size_t i = 0; i < g->gpu.n && g->words; i++)
		for (size_t j = 0; j < g->gpu.n; j++)
			if (i != j && !g->words[i * n + j][0])
				return true;
	return false;
}

enum status advisor_route(const struct advisor *a, int32_t from, int32_t to, struct route *route, bool *there)
{
	struct error none = {0};
	*there = router_route(a->router, from, to, route, &none) == ST_OK;
	return router_out_of_memory(a->router) ? error_nomem(a->e, "a route") : ST_OK;
}

/* GPUs without any NVLink beside GPUs of the same name that have some. */
enum status remark_bridges(struct advisor *a)
{
	size_t without = 0, with = 0, lone = 0;
	double joined = 0;
	if (is_cut(a->g))
		return ST_OK;
	for (size_t i = 0; i < a->n; i++) {
		a->in[i] = !has_nvlink(a->g, a->g->gpu.at[i]);
		without += a->in[i];
		lone = a->in[i] ? i : lone;
		if (!advisor_same_model(advisor_gpu(a, i), advisor_gpu(a, 0)))
			return ST_OK;
	}
	with = a->n - without;
	if (with == 0 || without == 0)
		return ST_OK;
	for (size_t i = 0; i < a->g->link.n; i++)
		if (a->g->link.at[i].kind == LINK_NVLINK && a->g->link.at[i].Bps > joined)
			joined = a->g->link.at[i].Bps;
	struct route alone;
	bool there;
	enum status st = advisor_route(a, a->g->gpu.at[lone], a->g->gpu.at[lone == 0 ? 1 : 0], &alone, &there);
	if (st || !there)
		return st;
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e,
		"%s %s no NVLink, the other %zu GPUs have: %.3g GB/s to their peers instead of %.3g (is a bridge "
		"missing or loose?)",
		a->list, without == 1 ? "has" : "have", with, alone.Bps / GB, joined / GB);
}

/* Two GPUs alone, of which nothing but their link is known: NV8, NV12 and NV18 are both what bridges make of a pair
 * (A800, A100 and H100 NVL, H200 NVL) and what two GPUs of a machine with NVLink switches show. */
enum status remark_pair(struct advisor *a)
{
	const struct link *l = a->n == 2 ? graph_link(a->g, a->g->gpu.at[0], a->g->gpu.at[1], LINK_NVLINK) : NULL;
	if (!l || l->from != SAID_BY_SMI_TOPO || l->width < 8 || advisor_gpu(a, 0)->name[0])
		return ST_OK;
	return graph_remark(a->g, false, a->e,
		"NV%d between two GPUs alone: a bridge, or two GPUs of a machine with NVLink switches; the dump cannot "
		"tell, it is counted as a bridge, and the pair has the same %.3g GB/s either way",
		l->width, l->Bps / GB);
}

/* Fewer links to the NVLink switch than the others. */
enum status remark_switch(struct advisor *a)
{
	double most = 0, least = 0;
	size_t n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < a->n; i++) {
			double sum = 0;
			for (size_t k = 0; k < a->g->link.n; k++) {
				const struct link *l = &a->g->link.at[k];
				if ((l->a == a->g->gpu.at[i] && a->g->vertex.at[l->b].kind == VERTEX_NVSWITCH) ||
					(l->b == a->g->gpu.at[i] && a->g->vertex.at[l->a].kind == VERTEX_NVSWITCH))
					sum += l->Bps;
			}
			most = sum > most ? sum : most;
			a->in[i] = sum > 0 && sum < 0.99 * most;
			least = a->in[i] && (least == 0 || sum < least) ? sum : least;
			n += pass == 1 && a->in[i];
		}
	}
	if (n == 0 || is_cut(a->g))
		return ST_OK;
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e,
		"%s %s fewer NVLinks to the switch than the others: %.3g GB/s instead of %.3g, and every collective "
		"waits for it",
		a->list, n == 1 ? "has" : "have", least / GB, most / GB);
}

enum status remark_peers(struct advisor *a)
{
	double Bps = 0;
	bool any = false, there;
	memset(a->in, 0, a->n * sizeof *a->in);
	for (size_t i = 0; i < a->n; i++) {
		for (size_t j = i + 1; j < a->n; j++) {
			struct route r;
			enum status st = advisor_route(a, a->g->gpu.at[i], a->g->gpu.at[j], &r, &there);
			if (st)
				return st;
			if (!there || !r.through_memory)
				continue;
			Bps = Bps > 0 && Bps < r.Bps ? Bps : r.Bps; /* the slowest pair's */
			a->in[i] = a->in[j] = any = true;
		}
	}
	if (!any)
		return ST_OK;
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e,
		"%s: no peer-to-peer over PCIe (%s): what they exchange is written to host memory and read again, "
		"twice over PCIe, at %.3g GB/s on the farthest pair",
		a->list,
		advisor_gpu(a, 0)->gpu.peer_known ? "the driver says so" : "the driver refuses it on these cards",
		Bps / GB);
}
