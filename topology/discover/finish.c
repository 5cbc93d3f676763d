/* Completes a graph once all sources are in: finds the products of the GPUs, and the rates that follow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/catalogue/device.h"
#include "topology/discover/discover.h"
#include "topology/discover/remarks.h"
#include "topology/discover/tree.h"
#include "topology/graph/rates.h"

/* GeForce of Turing and later: the driver refuses peer access over PCIe (`nvidia-smi topo -p2p w` shows GNS or CNS on
 * every pair); Pascal and older had it. */
static bool refuses_peers(const char *name) { return strstr(name, "GeForce RTX") || strstr(name, "GeForce GTX 16"); }

static enum status match_gpu(struct vertex *v, struct error *e)
{
	struct device_spec spec;
	enum status st = ST_OK;
	if (!v->gpu.device[0] && v->name[0])
		st = device_by_shown_name(v->name, v->gpu.mem_B, v->gpu.device, e);
	if (!st && v->gpu.device[0]) {
		if ((st = device_load(v->gpu.device, &spec, e)))
			return st;
		if (v->gpu.compute_capability == 0)
			v->gpu.compute_capability = (int32_t)spec.compute_capability;
		if (!v->gpu.peer_known)
			v->gpu.no_peer |= spec.no_peer;
	}
	if (!v->gpu.peer_known)
		v->gpu.no_peer |= refuses_peers(v->name);
	return st;
}

/* Where no source names the GPUs, the links of one tell the generation: more than 12 are Hopper's or later, 7 to 12
 * A100's, 5 and 6 V100's, 4 to a single peer a GeForce's or workstation card's bridge of Ampere. 0: cannot be told. */
static int32_t capability_by_links(const struct graph *g)
{
	int32_t most = 0, widest = 0;
	for (size_t i = 0; i < g->gpu.n; i++) {
		int32_t total = 0;
		for (size_t k = 0; k < g->link.n; k++) {
			const struct link *l = &g->link.at[k];
			if (l->kind != LINK_NVLINK || (l->a != g->gpu.at[i] && l->b != g->gpu.at[i]))
				continue;
			total += l->width;
			widest = l->width > widest ? l->width : widest;
		}
		most = total > most ? total : most;
	}
	return most > 12 ? 90 : most > 6 ? 80 : most > 4 ? 70 : most == 4 && widest == 4 ? 86 : 0;
}

static void set_nvlinks(struct graph *g)
{
	int32_t guess = capability_by_links(g);
	for (size_t i = 0; i < g->link.n; i++) {
		struct link *l = &g->link.at[i];
		if (l->kind != LINK_NVLINK || l->width <= 0)
			continue;
		int32_t gpu = g->vertex.at[l->a].kind == VERTEX_GPU ? l->a : l->b,
			known = g->vertex.at[gpu].kind == VERTEX_GPU ? g->vertex.at[gpu].gpu.compute_capability : 0;
		struct rate r = rate_nvlink(known > 0 ? known : guess);
		l->Bps = l->width * r.Bps;
		l->datasheet_Bps = l->width * r.datasheet_Bps;
		l->latency_s = r.latency_s;
		l->assumed = known <= 0;
	}
	for (size_t i = 0; i < g->gpu.n; i++) {
		int32_t total = 0;
		for (size_t k = 0; k < g->link.n; k++)
			if (g->link.at[k].kind == LINK_NVLINK &&
				(g->link.at[k].a == g->gpu.at[i] || g->link.at[k].b == g->gpu.at[i]))
				total += g->link.at[k].width;
		struct gpu_facts *f = &g->vertex.at[g->gpu.at[i]].gpu;
		if (f->nvlinks == 0)
			f->nvlinks = total;
		if (f->nvlinks > 0 && f->nvlink_gen == 0)
			f->nvlink_gen = tree_nvlink_gen(f->compute_capability);
	}
}

/* The lanes as trained, because a link does not widen again under load; the highest generation that slot and card can,
 * because an idle GPU trains down to generation 1 to save power and comes up again with the first transfer. */
static enum status set_slot(struct graph *g, int32_t gpu, struct error *e)
{
	const struct gpu_facts *f = &g->vertex.at[gpu].gpu;
	struct link *slot = NULL;
	struct device_spec spec = {0};
	for (size_t i = 0; i < g->link.n && !slot; i++)
		if (g->link.at[i].kind == LINK_PCIE && (g->link.at[i].a == gpu || g->link.at[i].b == gpu))
			slot = &g->link.at[i];
	if (!slot)
		return ST_OK;
	int32_t width = f->pcie_width > 0 ? f->pcie_width : slot->width,
		gen = f->pcie_gen_max > f->pcie_gen ? f->pcie_gen_max : f->pcie_gen;
	if (gen == 0)
		gen = slot->gen;
	bool known = width > 0 && gen > 0;
	if (!known && f->device[0]) {
		enum status st = device_load(f->device, &spec, e);
		if (st)
			return st;
		width = width > 0 ? width : (int32_t)spec.pcie_lanes;
		gen = gen > 0 ? gen : (int32_t)spec.pcie_gen;
	}
	if (width <= 0 && gen <= 0)
		return ST_OK;
	struct rate r = rate_pcie(gen, width);
	slot->width = width;
	slot->gen = gen;
	slot->Bps = r.Bps;
	slot->datasheet_Bps = r.datasheet_Bps;
	slot->assumed = !known;
	return ST_OK;
}

enum status graph_finish(struct graph *g, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < g->gpu.n && !st; i++)
		st = match_gpu(&g->vertex.at[g->gpu.at[i]], e);
	if (!st)
		set_nvlinks(g);
	for (size_t i = 0; i < g->gpu.n && !st; i++)
		st = set_slot(g, g->gpu.at[i], e);
	return st ? st : join_remarks(g, e);
}
