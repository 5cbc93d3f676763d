/* topology_check: what every builder of a link graph keeps. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/graph.h"
#include "topology/graph/route.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status check_unique(const struct graph *g, size_t offset, const char *what, struct error *e)
{
	enum status st = ST_OK;
	const char **names = calloc(g->vertex.n + 1, sizeof *names);
	if (!names)
		return error_nomem(e, "the check of the topology");
	size_t n = 0;
	for (size_t i = 0; i < g->vertex.n; i++) {
		const char *text = (const char *)&g->vertex.at[i] + offset;
		if (*text)
			names[n++] = text;
	}
	qsort(names, n, sizeof *names, compare_names);
	for (size_t i = 1; i < n && !st; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			st = error_set(e, ST_INPUT, "two vertices have the %s %s", what, names[i]);
	free(names);
	return st;
}

static enum status check_vertices(const struct graph *g, struct error *e)
{
	size_t ports = 0;
	for (size_t i = 0; i < g->vertex.n; i++) {
		const struct vertex *v = &g->vertex.at[i];
		char normal[GRAPH_PCI];
		if ((unsigned)v->kind >= VERTEX_KINDS || (unsigned)v->from >= EVIDENCES)
			return error_set(e, ST_INPUT, "vertex %zu: no such kind or source", i);
		if (!memchr(v->label, 0, sizeof v->label) || !memchr(v->name, 0, sizeof v->name) ||
			!memchr(v->pci, 0, sizeof v->pci) || !memchr(v->cores, 0, sizeof v->cores))
			return error_set(e, ST_INPUT, "vertex %zu: a text without an end", i);
		if (!v->label[0])
			return error_set(e, ST_INPUT, "vertex %zu has no label", i);
		if (v->pci[0] && (!graph_normal_pci(v->pci, normal) || strcmp(normal, v->pci)))
			return error_set(e, ST_INPUT, "%s: '%s' is no PCI address as it is kept", v->label, v->pci);
		if (v->numa < -1)
			return error_set(e, ST_INPUT, "%s: NUMA node %" PRId32, v->label, v->numa);
		if (v->kind == VERTEX_NIC && !(v->nic.Bps >= 0 && isfinite(v->nic.Bps)))
			return error_set(e, ST_INPUT, "%s: a rate of %g B/s", v->label, v->nic.Bps);
		ports += v->kind == VERTEX_NETWORK;
	}
	if (ports > 1)
		return error_set(e, ST_INPUT, "%zu network ports", ports);
	enum status st = check_unique(g, offsetof(struct vertex, label), "label", e);
	return st ? st : check_unique(g, offsetof(struct vertex, pci), "PCI address", e);
}

/* The list has every vertex of its kind once, and labels' numbers rise ("GPU2" before "GPU10"). */
static enum status check_list(const struct graph *g, const int32_t *at, size_t n, enum vertex_kind kind,
	const char *prefix, struct error *e)
{
	size_t all = 0;
	long before = -1;
	for (size_t i = 0; i < g->vertex.n; i++)
		all += g->vertex.at[i].kind == kind;
	if (all != n)
		return error_set(e, ST_INPUT, "%zu of %zu %ss are listed", n, all, vertex_kind_name(kind));
	for (size_t i = 0; i < n; i++) {
		if (at[i] < 0 || (size_t)at[i] >= g->vertex.n || g->vertex.at[at[i]].kind != kind)
			return error_set(e, ST_INPUT, "the list of %ss names vertex %" PRId32 ", which is none",
				vertex_kind_name(kind), at[i]);
		const char *label = g->vertex.at[at[i]].label, *digits = label + strlen(prefix);
		bool fits = strncmp(label, prefix, strlen(prefix)) == 0 && *digits &&
		            strspn(digits, "0123456789") == strlen(digits);
		long number = fits ? strtol(digits, NULL, 10) : -1;
		if (number <= before)
			return error_set(e, ST_INPUT, "%s %zu is labelled '%s': labels are %s and a number that rises",
				vertex_kind_name(kind), i, label, prefix);
		before = number;
	}
	return ST_OK;
}

struct ends {
	int32_t low, high, kind;
};

static int compare_ends(const void *a, const void *b)
{
	const struct ends *x = a, *y = b;
	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high < y->high ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static bool is_rate(double x) { return x > 0 && isfinite(x); }

static enum status check_link(const struct graph *g, size_t i, struct error *e)
{
	const struct link *l = &g->link.at[i];
	int64_t n = (int64_t)g->vertex.n;
	if (l->a < 0 || l->b < 0 || l->a >= n || l->b >= n || l->a == l->b)
		return error_set(e, ST_INPUT, "link %zu joins vertices %" PRId32 " and %" PRId32 " of %" PRId64, i,
			l->a, l->b, n);
	const char *a = g->vertex.at[l->a].label, *b = g->vertex.at[l->b].label;
	if ((unsigned)l->kind >= LINK_KINDS || (unsigned)l->from >= EVIDENCES)
		return error_set(e, ST_INPUT, "link %s-%s: no such kind or source", a, b);
	if (!is_rate(l->Bps) || !(l->datasheet_Bps >= 0 && isfinite(l->datasheet_Bps)))
		return error_set(e, ST_INPUT, "link %s-%s: a rate of %g B/s (%g by the datasheet)", a, b, l->Bps,
			l->datasheet_Bps);
	if (!(l->latency_s >= 0 && isfinite(l->latency_s)))
		return error_set(e, ST_INPUT, "link %s-%s: a latency of %g s", a, b, l->latency_s);
	if (l->width < 0 || l->gen < 0)
		return error_set(e, ST_INPUT, "link %s-%s: width %" PRId32 ", generation %" PRId32, a, b, l->width,
			l->gen);
	return ST_OK;
}

static enum status check_links(const struct graph *g, struct error *e)
{
	enum status st = ST_OK;
	struct ends *ends = calloc(g->link.n + 1, sizeof *ends);
	if (!ends)
		return error_nomem(e, "the check of the topology");
	for (size_t i = 0; i < g->link.n && !(st = check_link(g, i, e)); i++) {
		const struct link *l = &g->link.at[i];
		ends[i] = (struct ends){l->a < l->b ? l->a : l->b, l->a < l->b ? l->b : l->a, (int32_t)l->kind};
	}
	if (!st)
		qsort(ends, g->link.n, sizeof *ends, compare_ends);
	for (size_t i = 1; i < g->link.n && !st; i++)
		if (compare_ends(&ends[i - 1], &ends[i]) == 0)
			st = error_set(e, ST_INPUT, "%s and %s are joined twice by %s", g->vertex.at[ends[i].low].label,
				g->vertex.at[ends[i].high].label, link_kind_name((enum link_kind)ends[i].kind));
	free(ends);
	return st;
}

static int32_t root_of(int32_t *up, int32_t v)
{
	while (up[v] != v)
		v = up[v] = up[up[v]];
	return v;
}

static bool carries(enum vertex_kind k) { return k == VERTEX_PCI_SWITCH || k == VERTEX_BRIDGE || k == VERTEX_CPU; }

static enum status check_pairs(const struct graph *g, struct error *e)
{
	size_t n = graph_entries(g);
	struct router *r = router_create(g);
	struct route route;
	enum status st = r ? ST_OK : error_nomem(e, "the check of the topology");
	for (size_t i = 0; i < n && !st; i++)
		for (size_t j = 0; j < n && !st; j++)
			st = router_route(r, graph_entry(g, i), graph_entry(g, j), &route, e);
	if (st && r && !router_out_of_memory(r)) {
		st = ST_INPUT; /* not connected: the graph's fault */
		if (e)
			e->status = st;
	}
	router_destroy(r);
	return st;
}

/* Where all hang on one tree of switches, bridges and CPUs, they reach each other; only else pairs are looked at one by
 * one. */
static enum status check_reach(const struct graph *g, struct error *e)
{
	size_t n = g->vertex.n, on_tree = 0;
	int32_t tree = -1, *up = calloc(n + 1, sizeof *up);
	bool *seen = calloc(n + 1, sizeof *seen);
	if (!up || !seen) {
		free(up);
		free(seen);
		return error_nomem(e, "the check of the topology");
	}
	for (size_t v = 0; v < n; v++)
		up[v] = (int32_t)v;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		if (carries(g->vertex.at[l->a].kind) && carries(g->vertex.at[l->b].kind))
			up[root_of(up, l->a)] = root_of(up, l->b);
	}
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		bool a_carries = carries(g->vertex.at[l->a].kind);
		if (a_carries == carries(g->vertex.at[l->b].kind))
			continue;
		int32_t leaf = a_carries ? l->b : l->a, root = root_of(up, a_carries ? l->a : l->b);
		enum vertex_kind kind = g->vertex.at[leaf].kind;
		if (kind != VERTEX_GPU && kind != VERTEX_NIC)
			continue;
		tree = tree < 0 ? root : tree;
		on_tree += tree == root && !seen[leaf];
		seen[leaf] = seen[leaf] || tree == root;
	}
	free(up);
	free(seen);
	return on_tree == graph_entries(g) ? ST_OK : check_pairs(g, e);
}

static enum status check_words(const struct graph *g, struct error *e)
{
	size_t n = g->words ? graph_entries(g) : 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const char *word = g->words[i * n + j], *back = g->words[j * n + i];
			const char *a = g->vertex.at[graph_entry(g, i)].label,
				   *b = g->vertex.at[graph_entry(g, j)].label;
			if (!memchr(word, 0, GRAPH_WORD) || (*word && route_level_of_word(word) < 0))
				return error_set(e, ST_INPUT, "%s to %s: '%.*s' is no word for a link", a, b,
					GRAPH_WORD, word);
			if (*word && (i == j) != (strcmp(word, "X") == 0))
				return error_set(e, ST_INPUT, "%s to %s: the word is %s", a, b, word);
			if (*word && *back && strcmp(word, back))
				return error_set(e, ST_INPUT, "%s to %s is %s, but back it is %s", a, b, word, back);
		}
	return ST_OK;
}

enum status topology_check(const struct graph *g, struct error *e)
{
	enum status st;
	if ((unsigned)g->source >= EVIDENCES)
		return error_set(e, ST_INPUT, "the graph has no such source: %d", (int)g->source);
	if ((st = check_vertices(g, e)) || (st = check_list(g, g->gpu.at, g->gpu.n, VERTEX_GPU, "GPU", e)) ||
		(st = check_list(g, g->nic.at, g->nic.n, VERTEX_NIC, "NIC", e)))
		return st;
	if ((st = check_links(g, e)) || (st = check_reach(g, e)))
		return st;
	return check_words(g, e);
}
