#include "topology/graph/route.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arc {
	int32_t link, to;
};

/* Best ways from one vertex to all others. */
struct reach {
	uint64_t cost; /* what was crossed, most significant first: sockets, host bridges, CPUs, switches, 16 bits each
	                */
	double Bps;
	int32_t hops, link /* the last one */, before;
};

struct open {
	uint64_t cost;
	double Bps;
	int32_t hops, vertex;
};

/* OVER_NV: NVLink and xGMI alone, across NVLink switches; OVER_PCI: everything else. */
enum way { OVER_NV, OVER_PCI, WAYS };

#define UNREACHED UINT64_MAX
#define COST_SWITCH UINT64_C(1)
#define COST_CPU (UINT64_C(1) << 16)
#define COST_BRIDGE (UINT64_C(1) << 32)
#define COST_SOCKET (UINT64_C(1) << 48)

struct router {
	const struct graph *g;
	int32_t *first; /* of each vertex's arcs, and one behind the last */
	struct arc *arc;
	struct reach **reach[WAYS]; /* by source; NULL until it is asked for */
	bool out_of_memory;
	/* Scratch, a heap with the nearest first: forwarding vertices that were reached and not yet gone on from. A
	 * vertex that is then reached by a better way stands in it again; the entry with its old way is passed over. */
	struct open *open;
	int32_t n_open;
};

void router_destroy(struct router *r)
{
	if (!r)
		return;
	for (int w = 0; w < WAYS; w++) {
		for (size_t i = 0; r->reach[w] && i < r->g->vertex.n; i++)
			free(r->reach[w][i]);
		free(r->reach[w]);
	}
	free(r->first);
	free(r->arc);
	free(r->open);
	free(r);
}

struct router *router_create(const struct graph *g)
{
	size_t n = g->vertex.n, m = g->link.n;
	struct router *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->g = g;
	r->first = calloc(n + 2, sizeof *r->first);
	r->arc = calloc(2 * m + 1, sizeof *r->arc);
	r->open = calloc(2 * m + 1, sizeof *r->open);
	for (int w = 0; w < WAYS; w++)
		r->reach[w] = calloc(n + 1, sizeof(struct reach *));
	if (!r->first || !r->arc || !r->open || !r->reach[OVER_NV] || !r->reach[OVER_PCI]) {
		router_destroy(r);
		return NULL;
	}
	/* Counted two places ahead, so that filling leaves first[v] where v's arcs begin. */
	for (size_t i = 0; i < m; i++) {
		r->first[g->link.at[i].a + 2]++;
		r->first[g->link.at[i].b + 2]++;
	}
	for (size_t v = 2; v <= n; v++)
		r->first[v] += r->first[v - 1];
	for (size_t i = 0; i < m; i++) {
		const struct link *l = &g->link.at[i];
		r->arc[r->first[l->a + 1]++] = (struct arc){(int32_t)i, l->b};
		r->arc[r->first[l->b + 1]++] = (struct arc){(int32_t)i, l->a};
	}
	return r;
}

bool router_out_of_memory(const struct router *r) { return r->out_of_memory; }

/* ---- shortest ways ---- */

static bool forwards(const struct graph *g, enum way w, int32_t v)
{
	enum vertex_kind k = g->vertex.at[v].kind;
	return w == OVER_NV ? k == VERTEX_NVSWITCH || (g->torus && k == VERTEX_GPU)
	                    : k == VERTEX_PCI_SWITCH || k == VERTEX_BRIDGE || k == VERTEX_CPU || k == VERTEX_NIC;
}

/* Going on from `v` (not the source) to `to`: what crossing v and this link adds. */
static uint64_t crossing(const struct graph *g, int32_t v, int32_t to, bool at_source)
{
	static const uint64_t of[VERTEX_KINDS] = {[VERTEX_NVSWITCH] = COST_SWITCH,
		[VERTEX_PCI_SWITCH] = COST_SWITCH,
		[VERTEX_CPU] = COST_CPU,
		[VERTEX_BRIDGE] = COST_BRIDGE};
	enum vertex_kind a = g->vertex.at[v].kind, b = g->vertex.at[to].kind;
	return (at_source ? 0 : of[a]) + (a == VERTEX_CPU && b == VERTEX_CPU ? COST_SOCKET : 0);
}

static bool better(const struct reach *x, const struct reach *y)
{
	if (x->cost != y->cost)
		return x->cost < y->cost;
	return x->Bps != y->Bps ? x->Bps > y->Bps : x->hops < y->hops;
}

/* ---- the heap of open vertices ---- */

static bool nearer(const struct open *x, const struct open *y)
{
	if (x->cost != y->cost)
		return x->cost < y->cost;
	if (x->Bps != y->Bps)
		return x->Bps > y->Bps;
	return x->hops != y->hops ? x->hops < y->hops : x->vertex < y->vertex;
}

static void open_vertex(struct router *r, const struct reach *way, int32_t vertex)
{
	const struct open x = {way->cost, way->Bps, way->hops, vertex};
	int32_t at = r->n_open++;
	for (; at > 0 && nearer(&x, &r->open[(at - 1) / 2]); at = (at - 1) / 2)
		r->open[at] = r->open[(at - 1) / 2];
	r->open[at] = x;
}

static struct open pop_open(struct router *r)
{
	const struct open top = r->open[0], last = r->open[--r->n_open];
	int32_t at = 0;
	for (int32_t child; (child = 2 * at + 1) < r->n_open; at = child) {
		if (child + 1 < r->n_open && nearer(&r->open[child + 1], &r->open[child]))
			child++;
		if (!nearer(&r->open[child], &last))
			break;
		r->open[at] = r->open[child];
	}
	r->open[at] = last;
	return top;
}

/* Takes out the nearest open vertex; -1: none is left. */
static int32_t next_open(struct router *r, const struct reach *ways)
{
	while (r->n_open > 0) {
		const struct open top = pop_open(r);
		const struct reach *way = &ways[top.vertex];
		if (way->cost == top.cost && way->Bps == top.Bps && way->hops == top.hops)
			return top.vertex;
	}
	return -1;
}

/* Dijkstra's algorithm; only the vertices that forward are ever gone on from. */
static const struct reach *ways_from(struct router *r, enum way w, int32_t source)
{
	const struct graph *g = r->g;
	if (r->reach[w][source])
		return r->reach[w][source];
	struct reach *at = malloc(g->vertex.n * sizeof *at);
	if (!at) {
		r->out_of_memory = true;
		return NULL;
	}
	for (size_t v = 0; v < g->vertex.n; v++)
		at[v] = (struct reach){.cost = UNREACHED, .link = -1, .before = -1};
	at[source] = (struct reach){.cost = 0, .Bps = INFINITY, .link = -1, .before = -1};
	r->n_open = 0;
	bool from_network = g->vertex.at[source].kind == VERTEX_NETWORK;
	for (int32_t v = source; v >= 0; v = next_open(r, at)) {
		bool nic = v != source && g->vertex.at[v].kind == VERTEX_NIC;
		for (int32_t i = r->first[v]; i < r->first[v + 1]; i++) {
			const struct link *l = &g->link.at[r->arc[i].link];
			int32_t to = r->arc[i].to;
			if ((w == OVER_NV && !link_is_nv(l)) ||
				(nic && !from_network && g->vertex.at[to].kind != VERTEX_NETWORK))
				continue;
			struct reach next = {at[v].cost + crossing(g, v, to, v == source), fmin(at[v].Bps, l->Bps),
				at[v].hops + 1, r->arc[i].link, v};
			if (!better(&next, &at[to]))
				continue;
			at[to] = next;
			if (forwards(g, w, to))
				open_vertex(r, &next, to);
		}
	}
	r->reach[w][source] = at;
	return at;
}

static enum route_level level_of(uint64_t cost)
{
	if (cost >= COST_SOCKET)
		return ROUTE_SYS;
	if (cost >= 2 * COST_BRIDGE)
		return ROUTE_NODE;
	if (cost >= COST_CPU)
		return ROUTE_PHB;
	return cost >= 2 * COST_SWITCH ? ROUTE_PXB : ROUTE_PIX;
}

/* Appends the way to `to`. False when it has too many hops. */
static bool append(const struct graph *g, const struct reach *at, int32_t to, struct route *out)
{
	int32_t n = at[to].hops;
	if (out->n + n > ROUTE_HOPS)
		return false;
	for (int32_t v = to, i = out->n + n - 1; i >= out->n; v = at[v].before, i--) {
		const struct link *l = &g->link.at[at[v].link];
		out->link[i] = at[v].link;
		out->reverse[i] = l->b == at[v].before;
		out->Bps = fmin(out->Bps, l->Bps);
		out->latency_s = fmax(out->latency_s, l->latency_s);
	}
	out->n += n;
	return true;
}

static bool has_no_peer(const struct graph *g, int32_t v)
{
	return g->vertex.at[v].kind == VERTEX_GPU && g->vertex.at[v].gpu.no_peer;
}

/* The nearest CPU, or -1. */
static int32_t cpu_of(const struct graph *g, const struct reach *at)
{
	int32_t best = -1;
	for (size_t v = 0; v < g->vertex.n; v++)
		if (g->vertex.at[v].kind == VERTEX_CPU && at[v].cost != UNREACHED &&
			(best < 0 || better(&at[v], &at[best])))
			best = (int32_t)v;
	return best;
}

enum status router_route(struct router *r, int32_t from, int32_t to, struct route *out, struct error *e)
{
	const struct graph *g = r->g;
	memset(out, 0, sizeof *out);
	out->Bps = INFINITY;
	if (from == to)
		return ST_OK;
	enum vertex_kind kind_from = g->vertex.at[from].kind, kind_to = g->vertex.at[to].kind;
	const bool peers = kind_from == VERTEX_GPU && kind_to == VERTEX_GPU; /* NVLink leads to no other vertex */
	const struct reach *at = peers ? ways_from(r, OVER_NV, from) : NULL;
	if (peers && !at)
		return error_nomem(e, "a route");
	bool fits = peers && at[to].cost != UNREACHED && append(g, at, to, out);
	if (fits) {
		out->level = ROUTE_NV;
	} else {
		at = ways_from(r, OVER_PCI, from);
		if (!at)
			return error_nomem(e, "a route");
		if (at[to].cost == UNREACHED)
			return error_set(e, ST_RUN, "no link leads from %s to %s", g->vertex.at[from].label,
				g->vertex.at[to].label);
		out->level = level_of(at[to].cost);
		bool ends = kind_from == VERTEX_CPU || kind_to == VERTEX_CPU; /* in host memory anyway */
		int32_t gpu = kind_from == VERTEX_GPU ? from : to, cpu = -1;
		if (!ends && (has_no_peer(g, from) || has_no_peer(g, to))) {
			const struct reach *near = ways_from(r, OVER_PCI, gpu);
			if (!near)
				return error_nomem(e, "a route");
			cpu = cpu_of(g, near);
			out->through_memory = true;
		}
		if (cpu >= 0 && at[cpu].cost != UNREACHED) {
			const struct reach *second = ways_from(r, OVER_PCI, cpu);
			if (!second)
				return error_nomem(e, "a route");
			fits = append(g, at, cpu, out) && append(g, second, to, out);
		} else {
			fits = append(g, at, to, out);
		}
	}
	return fits ? ST_OK
	            : error_set(e, ST_RUN, "the route from %s to %s has more than %d links", g->vertex.at[from].label,
			      g->vertex.at[to].label, ROUTE_HOPS);
}

enum route_level router_level_of_nic(struct router *r, int32_t gpu, int32_t nic)
{
	const struct reach *at = ways_from(r, OVER_PCI, gpu);
	return at && at[nic].cost != UNREACHED ? level_of(at[nic].cost) : ROUTE_LEVELS;
}

int32_t router_port(const struct router *r, int32_t nic)
{
	for (int32_t i = r->first[nic]; i < r->first[nic + 1]; i++)
		if (r->g->vertex.at[r->arc[i].to].kind == VERTEX_NETWORK)
			return r->arc[i].link;
	return -1;
}

enum status graph_route(const struct graph *g, int32_t from, int32_t to, struct route *out, struct error *e)
{
	struct router *r = router_create(g);
	enum status st = r ? router_route(r, from, to, out, e) : error_nomem(e, "a route");
	router_destroy(r);
	return st;
}

/* ---- words ---- */

static const char *const level_words[ROUTE_LEVELS] = {"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"};

int route_level_of_word(const char *word)
{
	if (strncmp(word, "NV", 2) == 0)
		return word[2] && strspn(word + 2, "0123456789") == strlen(word + 2) ? ROUTE_NV : -1;
	for (int i = 0; i < ROUTE_LEVELS; i++)
		if (strcmp(word, level_words[i]) == 0)
			return i;
	/* Of old drivers: PSB, one PCIe switch on a board; SOC, what SYS is called now. */
	return strcmp(word, "PSB") == 0 ? ROUTE_PIX : strcmp(word, "SOC") == 0 ? ROUTE_SYS : -1;
}

static int64_t entry_of(const struct graph *g, int32_t v)
{
	for (size_t i = 0; i < graph_entries(g); i++)
		if (graph_entry(g, i) == v)
			return (int64_t)i;
	return -1;
}

/* NULL: not a pair of the matrix. */
static const char *kept_word(const struct graph *g, int32_t a, int32_t b)
{
	if (!g->words)
		return NULL;
	int64_t i = entry_of(g, a), j = entry_of(g, b), n = (int64_t)graph_entries(g);
	if (i < 0 || j < 0)
		return NULL;
	return g->words[i * n + j][0] ? g->words[i * n + j] : g->words[j * n + i];
}

/* Links of a vertex to the neighbour `to` (-1: to NVLink switches). */
static int32_t nv_width(const struct router *r, int32_t v, int32_t to)
{
	int32_t sum = 0;
	for (int32_t i = r->first[v]; i < r->first[v + 1]; i++) {
		const struct link *l = &r->g->link.at[r->arc[i].link];
		int32_t other = r->arc[i].to;
		if (link_is_nv(l) && (to >= 0 ? other == to : r->g->vertex.at[other].kind == VERTEX_NVSWITCH))
			sum += l->width > 0 ? l->width : 1;
	}
	return sum;
}

/* Links side by side where a way has the fewest. */
static int32_t narrowest(const struct graph *g, const struct route *r)
{
	int32_t least = INT32_MAX;
	for (int32_t i = 0; i < r->n; i++) {
		const int32_t width = g->link.at[r->link[i]].width;
		least = width < least ? width : least;
	}
	return least;
}

enum status router_word(struct router *router, int32_t a, int32_t b, char out[GRAPH_WORD], struct error *e)
{
	const struct graph *g = router->g;
	struct route r;
	const char *kept = kept_word(g, a, b);
	if (kept) {
		snprintf(out, GRAPH_WORD, "%s", kept);
		return ST_OK;
	}
	enum status st = router_route(router, a, b, &r, e);
	if (st)
		return st;
	if (r.level == ROUTE_NV) {
		int32_t of_a = nv_width(router, a, r.n == 1 ? b : -1), of_b = nv_width(router, b, r.n == 1 ? a : -1);
		int32_t least = of_a < of_b ? of_a : of_b;
		snprintf(out, GRAPH_WORD, "NV%" PRId32, g->torus && r.n > 1 ? narrowest(g, &r) : least);
	} else {
		snprintf(out, GRAPH_WORD, "%s", level_words[r.level]);
	}
	return ST_OK;
}

enum status graph_word(const struct graph *g, int32_t a, int32_t b, char out[GRAPH_WORD], struct error *e)
{
	struct router *r = router_create(g);
	enum status st = r ? router_word(r, a, b, out, e) : error_nomem(e, "a route");
	router_destroy(r);
	return st;
}

const char *graph_fabric(const struct graph *g)
{
	size_t joined = 0;
	bool pairs = true;
	if (g->gpu.n < 2)
		return "none";
	for (size_t i = 0; i < g->gpu.n; i++) {
		int32_t v = g->gpu.at[i], peers = 0;
		for (size_t k = 0; k < g->link.n; k++) {
			const struct link *l = &g->link.at[k];
			if ((l->a != v && l->b != v) || !link_is_nv(l))
				continue;
			enum vertex_kind other = g->vertex.at[l->a == v ? l->b : l->a].kind;
			if (other == VERTEX_NVSWITCH)
				return "nvswitch";
			peers += other == VERTEX_GPU;
		}
		joined += peers > 0;
		pairs = pairs && peers <= 1;
	}
	return joined == 0 ? "pcie" : pairs ? "bridge" : "mesh";
}
