#include "topology/graph/cluster.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/group_parts.h"

struct cluster *cluster_create(double network_latency_s)
{
	struct cluster *c = calloc(1, sizeof *c);
	if (c)
		c->network_latency_s = network_latency_s;
	return c;
}

void cluster_destroy(struct cluster *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->shape.n; i++)
		graph_destroy(c->shape.at[i].graph);
	for (size_t i = 0; i < c->host_name.n; i++)
		free(c->host_name.at[i]);
	vec_free(&c->shape);
	vec_free(&c->host_name);
	vec_free(&c->distinct);
	free(c);
}

/* ---- shapes ---- */

static void mix(uint64_t *hash, const void *data, size_t n) /* FNV-1a */
{
	for (size_t i = 0; i < n; i++)
		*hash = (*hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
}

static uint64_t hash_of(const struct graph *g)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < g->vertex.n; i++) {
		int32_t what = (int32_t)g->vertex.at[i].kind * 2 +
		               (g->vertex.at[i].kind == VERTEX_GPU && g->vertex.at[i].gpu.no_peer);
		mix(&hash, &what, sizeof what);
	}
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		int32_t what[] = {l->a, l->b, (int32_t)l->kind, l->width};
		double rates[] = {l->Bps, l->datasheet_Bps, l->latency_s};
		mix(&hash, what, sizeof what);
		mix(&hash, rates, sizeof rates);
	}
	return hash;
}

static bool same_links(const struct graph *a, const struct graph *b)
{
	if (a->vertex.n != b->vertex.n || a->link.n != b->link.n || a->gpu.n != b->gpu.n || a->nic.n != b->nic.n)
		return false;
	for (size_t i = 0; i < a->vertex.n; i++) {
		const struct vertex *x = &a->vertex.at[i], *y = &b->vertex.at[i];
		if (x->kind != y->kind || (x->kind == VERTEX_GPU && x->gpu.no_peer != y->gpu.no_peer))
			return false;
	}
	for (size_t i = 0; i < a->link.n; i++) {
		const struct link *x = &a->link.at[i], *y = &b->link.at[i];
		double rates_x[] = {x->Bps, x->datasheet_Bps, x->latency_s},
		       rates_y[] = {y->Bps, y->datasheet_Bps, y->latency_s};
		if (x->a != y->a || x->b != y->b || x->kind != y->kind || x->width != y->width ||
			memcmp(rates_x, rates_y, sizeof rates_x))
			return false;
	}
	for (size_t i = 0; i < graph_entries(a); i++)
		if (graph_entry(a, i) != graph_entry(b, i))
			return false;
	return true;
}

/* Makes host_name.n the number of hosts again, where hosts have names. False when out of memory. */
static bool add_names(struct cluster *c, int64_t hosts, const char *name)
{
	if (!name && !c->host_name.n)
		return true;
	for (int64_t missing = c->hosts + hosts - (int64_t)c->host_name.n; missing > 0; missing--) {
		char *copy = strdup(missing == 1 && name ? name : "");
		if (!copy || !vec_push(&c->host_name, copy)) {
			free(copy);
			return false;
		}
	}
	return true;
}

static bool add_shape(struct cluster *c, struct graph *g, int64_t hosts)
{
	int32_t at = (int32_t)c->shape.n;
	struct cluster_shape s = {g, c->hosts, hosts, c->devices, (int64_t)g->gpu.n, hash_of(g), at};
	for (size_t i = 0; i < c->distinct.n && s.like == at; i++) {
		const struct cluster_shape *other = &c->shape.at[c->distinct.at[i]];
		if (other->link_hash == s.link_hash && same_links(other->graph, g))
			s.like = c->distinct.at[i];
	}
	if (!vec_reserve(&c->distinct, 1) || !vec_push(&c->shape, s))
		return false;
	if (s.like == at)
		c->distinct.at[c->distinct.n++] = at;
	return true;
}

enum status cluster_add(struct cluster *c, struct graph *g, int64_t hosts, const char *name, struct error *e)
{
	enum status st = ST_OK;
	struct cluster_shape *last = c->shape.n ? &c->shape.at[c->shape.n - 1] : NULL;
	size_t names = c->host_name.n;
	int64_t gpus = (int64_t)g->gpu.n;
	if (hosts < 1 || (name && hosts != 1))
		st = error_set(e, ST_INPUT,
			name ? "%" PRId64 " hosts with the one name %s" : "%" PRId64 " hosts: expected at least one",
			hosts, name);
	else if (hosts > (INT64_MAX / 2 - c->devices) / (gpus + 1) || hosts > INT64_MAX / 2 - c->hosts)
		st = error_set(e, ST_INPUT, "%" PRId64 " hosts are too many", hosts);
	else if (!add_names(c, hosts, name))
		st = error_nomem(e, "a cluster");
	else if (last && graph_same(last->graph, g))
		last->hosts += hosts;
	else if (add_shape(c, g, hosts))
		g = NULL;
	else
		st = error_nomem(e, "a cluster");
	graph_destroy(g);
	if (st) {
		while (c->host_name.n > names)
			free(c->host_name.at[--c->host_name.n]);
		return st;
	}
	c->hosts += hosts;
	c->devices += hosts * gpus;
	return ST_OK;
}

struct device_place cluster_device(const struct cluster *c, int64_t device)
{
	if (device < 0 || device >= c->devices)
		return (struct device_place){-1, NULL, -1};
	size_t low = 0, high = c->shape.n; /* the last shape that begins at or before it; those without GPUs begin where
	                                      the next does */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (c->shape.at[middle].first_device <= device)
			low = middle;
		else
			high = middle;
	}
	const struct cluster_shape *s = &c->shape.at[low];
	int64_t in_shape = device - s->first_device;
	return (struct device_place){s->first_host + in_shape / s->gpus, s->graph,
		s->graph->gpu.at[in_shape % s->gpus]};
}

/* ---- ways between hosts ---- */

int32_t cluster_nics(struct router *r, const struct graph *g, int32_t gpu, int32_t *nics, int32_t most)
{
	enum route_level nearest = ROUTE_LEVELS;
	int32_t n = 0;
	for (size_t i = 0; i < g->nic.n; i++) {
		struct route route;
		int32_t nic = g->nic.at[i];
		/* a host of many GPUs has many NICs, and most are far from each GPU */
		if (router_level_of_nic(r, gpu, nic) > nearest || router_port(r, nic) < 0 ||
			router_route(r, gpu, nic, &route, NULL))
			continue;
		n = route.level < nearest ? 0 : n;
		nearest = route.level;
		if (n < most)
			nics[n] = nic;
		n++;
	}
	return router_out_of_memory(r) ? -1 : n;
}

struct exit_way {
	int32_t nic, nics;
	struct route route;
	double Bps, latency_s;
};

/* Out of a host by all of a GPU's NICs at once: as a group of which it is the only member there. */
static enum status way_out(struct device_place at, struct exit_way *out, struct error *e)
{
	const struct graph *g = at.graph;
	struct group_part part;
	struct router *r = router_create(g);
	int32_t *label = malloc(g->gpu.n * sizeof *label);
	enum status st = r && label ? ST_OK : error_nomem(e, "a route between hosts");
	for (size_t i = 0; i < g->gpu.n && !st; i++)
		label[i] = g->gpu.at[i] == at.vertex ? 0 : -1;
	if (!st && !(st = host_groups(g, label, 1, 2, &part, e))) {
		out->nics = cluster_nics(r, g, at.vertex, &out->nic, 1);
		out->Bps = part.group.network_Bps;
		out->latency_s = part.network_latency_s;
		st = out->nics < 1 ? error_nomem(e, "a route between hosts")
		                   : router_route(r, at.vertex, out->nic, &out->route, e);
	}
	router_destroy(r);
	free(label);
	return st;
}

enum status cluster_route(const struct cluster *c, int64_t a, int64_t b, struct cluster_route *out, struct error *e)
{
	struct device_place from = cluster_device(c, a), to = cluster_device(c, b);
	struct exit_way first, second;
	enum status st;
	memset(out, 0, sizeof *out);
	out->nic_a = out->nic_b = -1;
	if (!from.graph || !to.graph)
		return error_set(e, ST_INPUT, "device %" PRId64 ": the cluster has %" PRId64, from.graph ? b : a,
			c->devices);
	if (from.host == to.host) {
		out->in_node = true;
		st = graph_route(from.graph, from.vertex, to.vertex, &out->out, e);
		out->Bps = out->out.Bps;
		out->latency_s = out->out.latency_s;
		return st;
	}
	if ((st = way_out(from, &first, e)) || (st = way_out(to, &second, e)))
		return st;
	out->nics = first.Bps <= second.Bps ? first.nics : second.nics;
	out->nic_a = first.nic;
	out->nic_b = second.nic;
	out->out = first.route;
	out->in = second.route;
	out->Bps = fmin(first.Bps, second.Bps);
	out->latency_s = fmax(c->network_latency_s, fmax(first.latency_s, second.latency_s));
	return ST_OK;
}
