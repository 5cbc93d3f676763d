#include "topology/discover/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/graph/rates.h"

void tree_free(struct tree *t) { vec_free(&t->node); }

int32_t tree_add(struct tree *t, enum vertex_kind kind, enum evidence from, int32_t parent)
{
	struct tree_node n = {.v = graph_vertex_init(kind, from), .parent = parent};
	if (t->node.n >= TREE_NODES || !vec_push(&t->node, n))
		return -1;
	return (int32_t)t->node.n - 1;
}

/* The nodes that lead to a GPU or a NIC, and all CPUs. Parents stand before their children, so one pass from the end is
 * enough. */
static void mark_used(const struct tree *t, bool *used)
{
	for (size_t i = t->node.n; i-- > 0;) {
		const struct tree_node *n = &t->node.at[i];
		used[i] = used[i] || n->v.kind == VERTEX_GPU || n->v.kind == VERTEX_NIC || n->v.kind == VERTEX_CPU;
		if (used[i] && n->parent >= 0)
			used[n->parent] = true;
	}
}

struct place {
	int32_t order, node;
};

static int by_order(const void *x, const void *y)
{
	const struct place *a = x, *b = y;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static const struct tree_node *cpu_above(const struct tree *t, int32_t node)
{
	while (t->node.at[node].parent >= 0)
		node = t->node.at[node].parent;
	return &t->node.at[node];
}

static enum status add_vertices(const struct tree *t, enum vertex_kind kind, const bool *used, struct place *places,
	struct graph *g, int32_t *vertex_of, struct error *e)
{
	size_t n = 0;
	for (size_t i = 0; i < t->node.n; i++)
		if (t->node.at[i].v.kind == kind && used[i])
			places[n++] = (struct place){t->node.at[i].order, (int32_t)i};
	qsort(places, n, sizeof *places, by_order);
	for (size_t i = 0; i < n; i++) {
		struct vertex v = t->node.at[places[i].node].v;
		const struct tree_node *cpu = cpu_above(t, places[i].node);
		v.numa = cpu->v.numa;
		memcpy(v.cores, cpu->v.cores, sizeof v.cores);
		int32_t at = graph_add_vertex(g, &v);
		if (at < 0)
			return error_nomem(e, "the topology");
		vertex_of[places[i].node] = at;
	}
	return ST_OK;
}

static enum status add_link(struct graph *g, enum link_kind kind, int32_t a, int32_t b, struct rate r, bool assumed,
	int32_t gen, int32_t width, struct error *e)
{
	struct link l = graph_link_at((struct link){.a = a,
					      .b = b,
					      .kind = kind,
					      .width = width,
					      .gen = gen,
					      .from = g->source,
					      .assumed = assumed},
		r);
	return graph_add_link(g, &l) < 0 ? error_nomem(e, "the topology's links") : ST_OK;
}

static enum status add_tree_links(const struct tree *t, struct graph *g, const int32_t *vertex_of, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < t->node.n && !st; i++) {
		const struct tree_node *n = &t->node.at[i];
		if (vertex_of[i] < 0 || n->parent < 0)
			continue;
		int32_t up = vertex_of[n->parent];
		if (n->v.kind == VERTEX_BRIDGE)
			st = add_link(g, LINK_LOCAL, vertex_of[i], up, rate_local(), false, 0, 0, e);
		else
			st = add_link(g, LINK_PCIE, vertex_of[i], up, rate_pcie(n->gen, n->lanes),
				n->gen == 0 || n->lanes == 0, n->gen, n->lanes, e);
	}
	return st;
}

static bool first_of_package(const struct graph *g, const struct vertex *v)
{
	for (const struct vertex *o = g->vertex.at; o < v; o++)
		if (o->kind == VERTEX_CPU && o->cpu.package == v->cpu.package)
			return false;
	return true;
}

static enum status add_socket_links(const struct tree *t, struct graph *g, const int32_t *vertex_of, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < t->node.n && !st; i++) {
		for (size_t j = i + 1; j < t->node.n && !st; j++) {
			if (t->node.at[i].v.kind != VERTEX_CPU || t->node.at[j].v.kind != VERTEX_CPU)
				continue;
			const struct vertex *a = &g->vertex.at[vertex_of[i]], *b = &g->vertex.at[vertex_of[j]];
			bool known = a->cpu.package >= 0 && b->cpu.package >= 0,
			     same = known && a->cpu.package == b->cpu.package;
			/* Two packages have one set of links between them, whatever number of NUMA nodes each is cut
			 * into. */
			if (known && !same && !(first_of_package(g, a) && first_of_package(g, b)))
				continue;
			st = add_link(g, LINK_SOCKET, vertex_of[i], vertex_of[j], rate_socket(a->cpu.model, same), true,
				0, 0, e);
		}
	}
	return st;
}

static enum status add_network(struct graph *g, struct error *e)
{
	if (g->nic.n == 0)
		return ST_OK;
	struct vertex v = graph_vertex_init(VERTEX_NETWORK, g->source);
	int32_t net = graph_add_vertex(g, &v);
	if (net < 0)
		return error_nomem(e, "the topology");
	enum status st = ST_OK;
	for (size_t i = 0; i < g->nic.n && !st; i++) {
		double Bps = g->vertex.at[g->nic.at[i]].nic.Bps;
		st = add_link(g, LINK_NETWORK, g->nic.at[i], net, rate_network(Bps * 8), Bps <= 0, 0, 0, e);
	}
	return st;
}

enum status tree_graph(const struct tree *t, struct graph *g, int32_t *vertex_of, struct error *e)
{
	static const enum vertex_kind turns[] = {VERTEX_GPU, VERTEX_NIC, VERTEX_PCI_SWITCH, VERTEX_BRIDGE, VERTEX_CPU};
	enum status st = ST_OK;
	bool *used = calloc(t->node.n + 1, sizeof *used);
	struct place *places = calloc(t->node.n + 1, sizeof *places);
	if (!used || !places) {
		st = error_nomem(e, "the PCI tree");
		goto out;
	}
	mark_used(t, used);
	for (size_t i = 0; i < t->node.n; i++)
		vertex_of[i] = -1;
	for (size_t k = 0; k < COUNT(turns) && !st; k++)
		st = add_vertices(t, turns[k], used, places, g, vertex_of, e);
	if (st || (st = add_tree_links(t, g, vertex_of, e)) || (st = add_socket_links(t, g, vertex_of, e)))
		goto out;
	st = add_network(g, e);
out:
	free(used);
	free(places);
	return st;
}

bool tree_is_gpu(uint32_t pci_class, uint32_t vendor, uint32_t device, uint32_t bus)
{
	/* Rage XL, ES1000 and Radeon 7000: what server boards carried as a text console. */
	static const uint32_t ati_consoles[] = {0x4752, 0x4750, 0x5159, 0x515e, 0x5969};
	/* Families of AMD's processors with graphics: Kaveri 13xx, Raven and Phoenix 15xx, Renoir and Raphael 16xx,
	 * Carrizo and Trinity 98xx and 99xx. */
	static const uint32_t amd_processors[] = {0x13, 0x15, 0x16, 0x98, 0x99};
	bool amd = vendor == 0x1002 || vendor == 0x1022;
	for (size_t i = 0; amd && i < COUNT(ati_consoles); i++)
		if (device == ati_consoles[i])
			return false;
	for (size_t i = 0; amd && i < COUNT(amd_processors); i++)
		if (device >> 8 == amd_processors[i])
			return false;
	if (vendor == 0)
		return pci_class == 0x0300 || pci_class == 0x0302 || pci_class == 0x0380 || pci_class >> 8 == 0x12;
	if (pci_class == 0x0300 || pci_class == 0x0302)
		return vendor == 0x10de || amd || (vendor == 0x8086 && bus > 0);
	if (pci_class == 0x0380)
		return amd || (vendor == 0x8086 && bus > 0);
	return pci_class >> 8 == 0x12 && amd;
}

/* Ids: the PCI ID repository (pci-ids.ucw.cz) and the recorded machines; names as nvidia-smi and rocm-smi print them.
 */
static const struct {
	uint32_t vendor, device;
	const char *name;
} gpu_names[] = {
	{0x10de, 0x15f8, "Tesla P100-PCIE-16GB"},
	{0x10de, 0x15f9, "Tesla P100-SXM2-16GB"},
	{0x10de, 0x1db1, "Tesla V100-SXM2-16GB"},
	{0x10de, 0x1db4, "Tesla V100-PCIE-16GB"},
	{0x10de, 0x1db5, "Tesla V100-SXM2-32GB"},
	{0x10de, 0x1db6, "Tesla V100-PCIE-32GB"},
	{0x10de, 0x1db8, "Tesla V100-SXM3-32GB"},
	{0x10de, 0x1eb8, "Tesla T4"},
	{0x10de, 0x20b0, "NVIDIA A100-SXM4-40GB"},
	{0x10de, 0x20b2, "NVIDIA A100-SXM4-80GB"},
	{0x10de, 0x20b5, "NVIDIA A100 80GB PCIe"},
	{0x10de, 0x20b7, "NVIDIA A30"},
	{0x10de, 0x20f1, "NVIDIA A100-PCIE-40GB"},
	{0x10de, 0x2204, "NVIDIA GeForce RTX 3090"},
	{0x10de, 0x2230, "NVIDIA RTX A6000"},
	{0x10de, 0x2235, "NVIDIA A40"},
	{0x10de, 0x2236, "NVIDIA A10"},
	{0x10de, 0x2321, "NVIDIA H100 NVL"},
	{0x10de, 0x2324, "NVIDIA H800"},
	{0x10de, 0x2329, "NVIDIA H20"},
	{0x10de, 0x2330, "NVIDIA H100 80GB HBM3"},
	{0x10de, 0x2331, "NVIDIA H100 PCIe"},
	{0x10de, 0x2335, "NVIDIA H200"},
	{0x10de, 0x2342, "NVIDIA GH200 480GB"},
	{0x10de, 0x2684, "NVIDIA GeForce RTX 4090"},
	{0x10de, 0x26b5, "NVIDIA L40"},
	{0x10de, 0x26b9, "NVIDIA L40S"},
	{0x10de, 0x26ba, "NVIDIA L20"},
	{0x10de, 0x27b2, "NVIDIA RTX 4000 Ada Generation"},
	{0x10de, 0x27b8, "NVIDIA L4"},
	{0x10de, 0x2901, "NVIDIA B200"},
	{0x10de, 0x2b85, "NVIDIA GeForce RTX 5090"},
	{0x1002, 0x66a1, "AMD Instinct MI50/MI60"},
	{0x1002, 0x738c, "AMD Instinct MI100"},
	{0x1002, 0x7408, "AMD Instinct MI250X"},
	{0x1002, 0x740c, "AMD Instinct MI250X/MI250"},
	{0x1002, 0x740f, "AMD Instinct MI210"},
	{0x1002, 0x74a0, "AMD Instinct MI300A"},
	{0x1002, 0x74a1, "AMD Instinct MI300X"},
	{0x1002, 0x74a5, "AMD Instinct MI325X"},
	{0x1002, 0x74b5, "AMD Instinct MI300X VF"},
};

const char *tree_gpu_name(uint32_t vendor, uint32_t device)
{
	for (size_t i = 0; i < COUNT(gpu_names); i++)
		if (gpu_names[i].vendor == vendor && gpu_names[i].device == device)
			return gpu_names[i].name;
	return NULL;
}

int32_t tree_nvlink_gen(int32_t compute_capability)
{
	static const struct {
		int32_t from, gen;
	} rows[] = {{100, 5}, {90, 4}, {80, 3}, {70, 2}, {60, 1}};
	for (size_t i = 0; i < COUNT(rows); i++)
		if (compute_capability >= rows[i].from)
			return rows[i].gen;
	return 0;
}

bool tree_core_list(const uint32_t *words, size_t n, char out[GRAPH_CORES])
{
	size_t used = 0, bits = n * 32;
	out[0] = '\0';
	for (size_t i = 0; i < bits; i++) {
		if (!(words[i / 32] >> (i % 32) & 1))
			continue;
		size_t last = i;
		while (last + 1 < bits && (words[(last + 1) / 32] >> ((last + 1) % 32) & 1))
			last++;
		char piece[48];
		int len = last > i ? snprintf(piece, sizeof piece, "%s%zu-%zu", used ? "," : "", i, last)
		                   : snprintf(piece, sizeof piece, "%s%zu", used ? "," : "", i);
		if (used + (size_t)len >= GRAPH_CORES) {
			out[0] = '\0';
			return false;
		}
		memcpy(out + used, piece, (size_t)len + 1);
		used += (size_t)len;
		i = last;
	}
	return true;
}

void fabric_free(struct fabric *f) { vec_free(&f->pair); }

enum status fabric_add(struct fabric *f, enum link_kind kind, int32_t a, int32_t b, int32_t n, bool one_sided,
	struct rate_of_link rate, struct error *e)
{
	bool turned = a > b;
	struct fabric_pair *p = NULL;
	for (size_t i = 0; i < f->pair.n && !p; i++)
		if (f->pair.at[i].kind == kind && f->pair.at[i].a == (turned ? b : a) &&
			f->pair.at[i].b == (turned ? a : b))
			p = &f->pair.at[i];
	if (!p) {
		struct fabric_pair fresh = {.a = turned ? b : a, .b = turned ? a : b, .kind = kind, .one = rate};
		if (!vec_push(&f->pair, fresh))
			return error_nomem(e, "the links between GPUs");
		p = &f->pair.at[f->pair.n - 1];
	}
	if (one_sided || !turned)
		p->ab += n;
	if (one_sided || turned)
		p->ba += n;
	return ST_OK;
}

enum status fabric_graph(const struct fabric *f, struct graph *g, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < f->pair.n && !st; i++) {
		const struct fabric_pair *p = &f->pair.at[i];
		int32_t width = p->ab && p->ba ? (p->ab < p->ba ? p->ab : p->ba) : p->ab + p->ba;
		struct rate r = {.Bps = p->one.Bps * width,
			.datasheet_Bps = p->one.datasheet_Bps * width,
			.latency_s = rate_nvlink(0).latency_s};
		if ((st = add_link(g, p->kind, p->a, p->b, r, p->one.assumed, p->one.gen, width, e)))
			break;
		for (int side = 0; side < 2; side++) {
			struct vertex *v = &g->vertex.at[side ? p->b : p->a];
			if (v->kind == VERTEX_GPU && p->kind == LINK_NVLINK) {
				v->gpu.nvlinks += width;
				v->gpu.nvlink_gen = p->one.gen;
			}
		}
		if (p->ab != p->ba) {
			const char *a = g->vertex.at[p->a].label, *b = g->vertex.at[p->b].label;
			st = graph_remark(g, true, e,
				"%s counts %" PRId32 " %s links to %s, which counts %" PRId32
				" back: taken as %" PRId32,
				a, p->ab, link_kind_name(p->kind), b, p->ba, width);
		}
	}
	return st;
}
