#include "topology/graph/graph.h"

#include "base/array.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *prefix;
} kinds[] = {
	[VERTEX_GPU] = {"GPU", "GPU"},
	[VERTEX_NIC] = {"NIC", "NIC"},
	[VERTEX_NVSWITCH] = {"NVLink switch", "NVS"},
	[VERTEX_PCI_SWITCH] = {"PCIe switch", "PCI"},
	[VERTEX_BRIDGE] = {"host bridge", "HB"},
	[VERTEX_CPU] = {"CPU", "CPU"},
	[VERTEX_NETWORK] = {"network", "NET"},
};
static_assert(COUNT(kinds) == VERTEX_KINDS, "a row for each kind of vertex");

static const char *const link_names[] = {
	[LINK_NVLINK] = "NVLink",
	[LINK_XGMI] = "xGMI",
	[LINK_C2C] = "C2C",
	[LINK_PCIE] = "PCIe",
	[LINK_LOCAL] = "local",
	[LINK_SOCKET] = "socket",
	[LINK_NETWORK] = "network",
};
static_assert(COUNT(link_names) == LINK_KINDS, "a name for each kind of link");

static const char *const evidence_names[] = {
	[SAID_BY_CATALOGUE] = "catalogue",
	[SAID_BY_LINE] = "description",
	[SAID_BY_HWLOC] = "hwloc",
	[SAID_BY_HWLOC_XML] = "hwloc xml",
	[SAID_BY_NCCL_XML] = "nccl xml",
	[SAID_BY_SMI_TOPO] = "nvidia-smi topo",
	[SAID_BY_SMI_QUERY] = "nvidia-smi",
	[SAID_BY_NVML] = "nvml",
	[SAID_BY_PROFILE] = "profile",
};
static_assert(COUNT(evidence_names) == EVIDENCES, "a name for each source");

const char *vertex_kind_name(enum vertex_kind k) { return kinds[k].name; }

const char *link_kind_name(enum link_kind k) { return link_names[k]; }

const char *evidence_name(enum evidence e) { return evidence_names[e]; }

struct graph *graph_create(enum evidence source)
{
	struct graph *g = calloc(1, sizeof *g);
	if (g)
		g->source = source;
	return g;
}

void graph_destroy(struct graph *g)
{
	if (!g)
		return;
	vec_free(&g->vertex);
	vec_free(&g->link);
	vec_free(&g->gpu);
	vec_free(&g->nic);
	vec_free(&g->remark);
	free(g->words);
	free(g);
}

struct vertex graph_vertex_init(enum vertex_kind kind, enum evidence from)
{
	struct vertex v = {.kind = kind, .numa = -1, .from = from};
	if (kind == VERTEX_CPU)
		v.cpu.package = -1;
	return v;
}

int32_t graph_add_vertex(struct graph *g, const struct vertex *v)
{
	int32_t at = (int32_t)g->vertex.n;
	bool listed = v->kind == VERTEX_GPU || v->kind == VERTEX_NIC;
	if (listed && !(v->kind == VERTEX_GPU ? vec_reserve(&g->gpu, 1) : vec_reserve(&g->nic, 1)))
		return -1;
	if (!vec_push(&g->vertex, *v))
		return -1;
	struct vertex *added = &g->vertex.at[at];
	if (!added->label[0]) {
		int32_t number = 0;
		char label[GRAPH_LABEL];
		for (int32_t i = 0; i < at; i++)
			number += g->vertex.at[i].kind == v->kind;
		do
			snprintf(label, sizeof label, v->kind == VERTEX_NETWORK ? "%s" : "%s%d", kinds[v->kind].prefix,
				number++);
		while (v->kind != VERTEX_NETWORK && graph_find_label(g, label) >= 0);
		memcpy(added->label, label, sizeof label);
	}
	if (v->kind == VERTEX_GPU)
		g->gpu.at[g->gpu.n++] = at;
	else if (v->kind == VERTEX_NIC)
		g->nic.at[g->nic.n++] = at;
	return at;
}

int32_t graph_add_link(struct graph *g, const struct link *l)
{
	return vec_push(&g->link, *l) ? (int32_t)g->link.n - 1 : -1;
}

struct link graph_link_at(struct link l, struct rate r)
{
	l.Bps = r.Bps;
	l.datasheet_Bps = r.datasheet_Bps;
	l.latency_s = r.latency_s;
	return l;
}

struct link *graph_link(const struct graph *g, int32_t a, int32_t b, enum link_kind kind)
{
	for (size_t i = 0; i < g->link.n; i++) {
		struct link *l = &g->link.at[i];
		if (((l->a == a && l->b == b) || (l->a == b && l->b == a)) && (kind == LINK_KINDS || l->kind == kind))
			return l;
	}
	return NULL;
}

bool graph_normal_pci(const char *text, char out[GRAPH_PCI])
{
	unsigned domain = 0, bus, device, function;
	int end = -1, end_short = -1;
	if (text[strspn(text, "0123456789abcdefABCDEF:.")]) /* sscanf would pass signs, blanks and "0x" */
		return false;
	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) < 4 || end < 0 || text[end]) {
		domain = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end_short) < 3 || end_short < 0 ||
			text[end_short])
			return false;
	}
	snprintf(out, GRAPH_PCI, "%04x:%02x:%02x.%x", domain, bus, device, function);
	return true;
}

int32_t graph_find_pci(const struct graph *g, const char *pci)
{
	char normal[GRAPH_PCI];
	if (!graph_normal_pci(pci, normal))
		return -1;
	for (size_t i = 0; i < g->vertex.n; i++)
		if (strcmp(g->vertex.at[i].pci, normal) == 0)
			return (int32_t)i;
	return -1;
}

int32_t graph_find_label(const struct graph *g, const char *label)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		if (strcmp(g->vertex.at[i].label, label) == 0)
			return (int32_t)i;
	return -1;
}

enum status graph_remark(struct graph *g, bool contradiction, struct error *e, const char *fmt, ...)
{
	struct remark r = {.contradiction = contradiction};
	va_list args;
	va_start(args, fmt);
	vsnprintf(r.text, sizeof r.text, fmt, args);
	va_end(args);
	return vec_push(&g->remark, r) ? ST_OK : error_nomem(e, "a remark on the topology");
}

size_t graph_entries(const struct graph *g) { return g->gpu.n + g->nic.n; }

int32_t graph_entry(const struct graph *g, size_t i) { return i < g->gpu.n ? g->gpu.at[i] : g->nic.at[i - g->gpu.n]; }
