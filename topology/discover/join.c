#include "topology/discover/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/rates.h"

static bool taken(const int32_t *to, size_t n, int32_t base)
{
	for (size_t i = 0; i < n; i++)
		if (to[i] == base)
			return true;
	return false;
}

static int32_t find_kind_pci(const struct graph *g, enum vertex_kind kind, const char *pci)
{
	int32_t at = pci[0] ? graph_find_pci(g, pci) : -1;
	return at >= 0 && g->vertex.at[at].kind == kind ? at : -1;
}

static int32_t gpu_of(const struct graph *base, const struct vertex *v, size_t number)
{
	int32_t at = find_kind_pci(base, VERTEX_GPU, v->pci);
	if (at >= 0 || number >= base->gpu.n)
		return at;
	at = base->gpu.at[number];
	return v->pci[0] && base->vertex.at[at].pci[0] ? -1 : at;
}

static int32_t nic_of(const struct graph *base, const struct graph *more, const struct vertex *v, size_t number)
{
	int32_t at = find_kind_pci(base, VERTEX_NIC, v->pci);
	for (size_t i = 0; at < 0 && v->name[0] && i < base->nic.n; i++)
		if (strcmp(base->vertex.at[base->nic.at[i]].name, v->name) == 0)
			at = base->nic.at[i];
	if (at >= 0 || base->nic.n != more->nic.n)
		return at;
	const struct vertex *same = &base->vertex.at[base->nic.at[number]];
	bool known = (v->pci[0] && same->pci[0]) || (v->name[0] && same->name[0]);
	return known ? -1 : base->nic.at[number];
}

static size_t count_kind(const struct graph *g, enum vertex_kind kind, int32_t *first)
{
	size_t n = 0;
	for (size_t i = g->vertex.n; i-- > 0;) {
		if (g->vertex.at[i].kind == kind) {
			*first = (int32_t)i;
			n++;
		}
	}
	return n;
}

static int32_t cpu_of(const struct graph *base, const struct graph *more, const struct vertex *v)
{
	int32_t first = -1, ignored;
	if (count_kind(base, VERTEX_CPU, &first) == 1 && count_kind(more, VERTEX_CPU, &ignored) == 1)
		return first;
	for (size_t i = 0; v->numa >= 0 && i < base->vertex.n; i++)
		if (base->vertex.at[i].kind == VERTEX_CPU && base->vertex.at[i].numa == v->numa)
			return (int32_t)i;
	return -1;
}

void join_vertices(const struct graph *base, const struct graph *more, int32_t *to)
{
	size_t gpus = 0, nics = 0;
	int32_t network = -1;
	count_kind(base, VERTEX_NETWORK, &network);
	for (size_t i = 0; i < more->vertex.n; i++) {
		const struct vertex *v = &more->vertex.at[i];
		int32_t at = -1;
		switch (v->kind) {
		case VERTEX_GPU: at = gpu_of(base, v, gpus++); break;
		case VERTEX_NIC: at = nic_of(base, more, v, nics++); break;
		case VERTEX_CPU: at = cpu_of(base, more, v); break;
		case VERTEX_NETWORK: at = network; break;
		case VERTEX_PCI_SWITCH:
		case VERTEX_BRIDGE: at = find_kind_pci(base, v->kind, v->pci); break;
		case VERTEX_NVSWITCH:
		case VERTEX_KINDS: break;
		}
		to[i] = at >= 0 && !taken(to, i, at) ? at : -1;
	}
}

/* The words between the entries that stay; from[i] is the old entry of the new entry i, -1 for a new one. */
static bool move_words(struct graph *g, size_t old_n, const int32_t *from, size_t n)
{
	char(*words)[GRAPH_WORD] = calloc(n * n + 1, sizeof *words);
	if (!words)
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (from[i] >= 0 && from[j] >= 0)
				memcpy(words[i * n + j], g->words[(size_t)from[i] * old_n + (size_t)from[j]],
					GRAPH_WORD);
	free(g->words);
	g->words = words;
	return true;
}

int32_t join_add(struct graph *g, const struct vertex *v)
{
	struct vertex copy = *v;
	size_t entries = graph_entries(g), gpus = g->gpu.n;
	copy.label[0] = '\0';
	int32_t at = graph_add_vertex(g, &copy);
	if (at < 0 || !g->words || graph_entries(g) == entries)
		return at;
	int32_t *from = calloc(entries + 1, sizeof *from);
	size_t added = v->kind == VERTEX_GPU ? gpus : entries;
	for (size_t i = 0; from && i <= entries; i++)
		from[i] = i == added ? -1 : (int32_t)(i - (i > added));
	bool good = from && move_words(g, entries, from, entries + 1);
	if (good)
		strcpy(g->words[added * (entries + 1) + added], "X");
	free(from);
	return good ? at : -1;
}

static int32_t cpu_at(struct graph *g, int32_t numa, enum evidence from)
{
	int32_t first = -1;
	for (size_t i = g->vertex.n; i-- > 0;) {
		if (g->vertex.at[i].kind != VERTEX_CPU)
			continue;
		if (numa >= 0 && g->vertex.at[i].numa == numa)
			return (int32_t)i;
		first = (int32_t)i;
	}
	if (first >= 0)
		return first;
	struct vertex cpu = graph_vertex_init(VERTEX_CPU, from);
	cpu.numa = numa;
	return join_add(g, &cpu);
}

enum status join_attach(struct graph *g, int32_t v, int32_t gen, int32_t width, enum evidence from, struct error *e)
{
	struct vertex bridge = graph_vertex_init(VERTEX_BRIDGE, from);
	bridge.numa = g->vertex.at[v].numa;
	int32_t cpu = cpu_at(g, bridge.numa, from);
	int32_t hb = cpu < 0 ? -1 : join_add(g, &bridge);
	if (hb < 0)
		return error_nomem(e, "a host bridge");
	struct rate slot = rate_pcie(gen, width), local = rate_local();
	struct link pcie = graph_link_at((struct link){.a = v,
						 .b = hb,
						 .kind = LINK_PCIE,
						 .gen = gen,
						 .width = width,
						 .from = from,
						 .assumed = gen <= 0 || width <= 0},
		slot);
	struct link up =
		graph_link_at((struct link){.a = hb, .b = cpu, .kind = LINK_LOCAL, .from = from, .assumed = true},
			local);
	return graph_add_link(g, &pcie) < 0 || graph_add_link(g, &up) < 0 ? error_nomem(e, "a link") : ST_OK;
}

/* Links between kept vertices, at their new places. */
static void keep_links(struct graph *g, const int32_t *moved)
{
	size_t n = 0;
	for (size_t i = 0; i < g->link.n; i++) {
		struct link l = g->link.at[i];
		l.a = moved[l.a];
		l.b = moved[l.b];
		if (l.a >= 0 && l.b >= 0)
			g->link.at[n++] = l;
	}
	g->link.n = n;
}

/* The list's vertices at their new places; lists only shrink here. */
static size_t keep_list(int32_t *list, size_t n, const int32_t *moved)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (moved[list[i]] >= 0)
			list[kept++] = moved[list[i]];
	return kept;
}

enum status join_keep(struct graph *g, const bool *keep, int32_t *moved, struct error *e)
{
	size_t entries = graph_entries(g), kept_entries = 0, n = 0;
	int32_t *to = calloc(g->vertex.n + 1, sizeof *to), *from = calloc(entries + 1, sizeof *from);
	enum status st = to && from ? ST_OK : error_nomem(e, "a smaller topology");
	if (st)
		goto out;
	for (size_t i = 0; i < entries; i++)
		if (keep[graph_entry(g, i)])
			from[kept_entries++] = (int32_t)i;
	if (g->words && !move_words(g, entries, from, kept_entries)) {
		st = error_nomem(e, "link words");
		goto out;
	}
	for (size_t i = 0; i < g->vertex.n; i++)
		to[i] = keep[i] ? (int32_t)n++ : -1;
	if (moved)
		memcpy(moved, to, g->vertex.n * sizeof *to);
	for (size_t i = 0; i < g->vertex.n; i++)
		if (to[i] >= 0)
			g->vertex.at[to[i]] = g->vertex.at[i];
	g->vertex.n = n;
	keep_links(g, to);
	g->gpu.n = keep_list(g->gpu.at, g->gpu.n, to);
	g->nic.n = keep_list(g->nic.at, g->nic.n, to);
	for (size_t i = 0; i < g->gpu.n; i++)
		snprintf(g->vertex.at[g->gpu.at[i]].label, GRAPH_LABEL, "GPU%zu", i);
out:
	free(to);
	free(from);
	return st;
}

char *join_gpu_list(char *buf, size_t size, const bool *in, size_t n)
{
	size_t used = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < n && used + 1 < size; i++) {
		if (!in[i])
			continue;
		size_t last = i;
		while (last + 1 < n && in[last + 1])
			last++;
		int wrote = last > i ? snprintf(buf + used, size - used, "%sGPU%zu-%zu", used ? ", " : "", i, last)
		                     : snprintf(buf + used, size - used, "%sGPU%zu", used ? ", " : "", i);
		used += wrote > 0 ? (size_t)wrote : 0;
		i = last;
	}
	return buf;
}
