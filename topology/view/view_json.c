/* INTERFACE's "topo --json". Unknown figures are null. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/view/view.h"

#define LABEL_LEN 128

/* ---- values; a NULL that reaches an array or an object makes the whole fail, and is seen there ---- */

static json_t *rate_or_null(double x)
{
	return x > 0 && isfinite(x) ? json_real(x) : json_null();
}

static json_t *count_or_null(int64_t x)
{
	return x > 0 ? json_integer(x) : json_null();
}

static json_t *number_or_null(int32_t x)
{
	return x >= 0 ? json_integer(x) : json_null();
}

/* Dumps may hold bytes that are no UTF-8: those go as '?'. */
static json_t *text_or_null(const char *s)
{
	if (!*s)
		return json_null();
	json_t *j = json_string(s);
	if (j)
		return j;
	char *plain = strdup(s);
	for (char *at = plain; at && *at; at++)
		*at = (unsigned char)*at < 0x80 ? *at : '?';
	j = plain ? json_string(plain) : NULL;
	free(plain);
	return j;
}

/* Takes `value` over. */
static bool put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

static bool append(json_t *array, json_t *value)
{
	return json_array_append_new(array, value) == 0;
}

/* Every host of the cluster in turn. */
struct place {
	const struct cluster *cluster;
	const struct cluster_shape *shape;
	const struct graph *g;
	int64_t host;
};

static const char *label(char out[LABEL_LEN], const struct place *p, int32_t vertex)
{
	const char *own = p->g->vertex.at[vertex].label;
	if (p->cluster->hosts <= 1)
		return own;
	const char *host = view_host(p->cluster, p->shape, p->host);
	if ((size_t)p->host < p->cluster->host_name.n)
		snprintf(out, LABEL_LEN, "%s:%s", host, own);
	else
		snprintf(out, LABEL_LEN, "%s%lld:%s", *host ? host : "host", (long long)p->host, own);
	return out;
}

static json_t *host_json(const struct place *p)
{
	const char *name = view_host(p->cluster, p->shape, p->host);
	char text[LABEL_LEN];
	if (p->cluster->hosts > 1 && (size_t)p->host >= p->cluster->host_name.n) {
		snprintf(text, sizeof text, "%s%lld", *name ? name : "host", (long long)p->host);
		name = text;
	}
	json_t *j = text_or_null(name);
	if (j && json_is_null(j)) {
		json_decref(j);
		j = json_string("");
	}
	return j;
}

static json_t *vertex_json(const struct place *p, int32_t vertex)
{
	const struct vertex *v = &p->g->vertex.at[vertex];
	char text[LABEL_LEN];
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "label", text_or_null(label(text, p, vertex)), "host", host_json(p), "name", text_or_null(v->name), "pci", text_or_null(v->pci), "numa", number_or_null(v->numa), "cores",
	                 text_or_null(v->cores), "source", evidence_name(v->from));
}

static bool add_gpu(json_t *to, const struct place *p, int32_t vertex)
{
	const struct gpu_facts *f = &p->g->vertex.at[vertex].gpu;
	json_t *j = vertex_json(p, vertex);
	bool ok = j && put(j, "pcie_gen", count_or_null(f->pcie_gen)) && put(j, "pcie_width", count_or_null(f->pcie_width)) && put(j, "memory_bytes", count_or_null((int64_t)f->mem_B));
	ok = ok && put(j, "pcie_gen_max", count_or_null(f->pcie_gen_max)) && put(j, "pcie_width_max", count_or_null(f->pcie_width_max)) && put(j, "device", text_or_null(f->device));
	ok = ok && put(j, "compute_capability", count_or_null(f->compute_capability)) && put(j, "nvlinks", count_or_null(f->nvlinks)) && put(j, "peer_to_peer", json_boolean(!f->no_peer));
	ok = ok && put(j, "clock_Hz", rate_or_null(f->clock_Hz)) && put(j, "clock_max_Hz", rate_or_null(f->clock_max_Hz)) && put(j, "power_limit_W", rate_or_null(f->power_limit_W)) &&
	     put(j, "power_default_W", rate_or_null(f->power_default_W));
	if (!ok)
		json_decref(j);
	return ok && append(to, j);
}

static bool add_nic(json_t *to, const struct place *p, int32_t vertex)
{
	const struct nic_facts *f = &p->g->vertex.at[vertex].nic;
	json_t *j = vertex_json(p, vertex);
	bool ok = j && put(j, "bandwidth_Bps", rate_or_null(f->Bps)) && put(j, "port", count_or_null(f->port)) && put(j, "infiniband", json_boolean(f->infiniband));
	if (!ok)
		json_decref(j);
	return ok && append(to, j);
}

static bool add_cpu(json_t *to, const struct place *p, int32_t vertex)
{
	const struct cpu_facts *f = &p->g->vertex.at[vertex].cpu;
	json_t *j = vertex_json(p, vertex);
	bool ok = j && put(j, "package", number_or_null(f->package)) && put(j, "model", text_or_null(f->model)) && put(j, "memory_bytes", count_or_null((int64_t)f->mem_B));
	if (!ok)
		json_decref(j);
	return ok && append(to, j);
}

static bool add_link(json_t *to, const struct place *p, const struct link *l)
{
	char a[LABEL_LEN], b[LABEL_LEN];
	json_t *j = json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:f, s:s, s:b}", "a", text_or_null(label(a, p, l->a)), "b", text_or_null(label(b, p, l->b)), "kind", link_kind_name(l->kind), "width", count_or_null(l->width), "gen",
	                      count_or_null(l->gen), "bandwidth_Bps", rate_or_null(l->Bps), "datasheet_Bps", rate_or_null(l->datasheet_Bps), "latency_s", l->latency_s, "source", evidence_name(l->from), "assumed", l->assumed);
	return j && append(to, j);
}

struct parts {
	json_t *hosts, *gpus, *nics, *cpus, *links, *warnings, *contradictions;
};

static bool add_host(const struct parts *to, const struct place *p)
{
	bool ok = append(to->hosts, host_json(p));
	for (size_t i = 0; i < p->g->gpu.n && ok; i++)
		ok = add_gpu(to->gpus, p, p->g->gpu.at[i]);
	for (size_t i = 0; i < p->g->nic.n && ok; i++)
		ok = add_nic(to->nics, p, p->g->nic.at[i]);
	for (size_t i = 0; i < p->g->vertex.n && ok; i++)
		ok = p->g->vertex.at[i].kind != VERTEX_CPU || add_cpu(to->cpus, p, (int32_t)i);
	for (size_t i = 0; i < p->g->link.n && ok; i++)
		ok = add_link(to->links, p, &p->g->link.at[i]);
	return ok;
}

/* Remarks are of the shape: said once for all its hosts. */
static bool add_remarks(const struct parts *to, const struct place *p)
{
	bool ok = true;
	for (size_t i = 0; i < p->g->remark.n && ok; i++) {
		char text[sizeof p->g->remark.at[i].text + LABEL_LEN];
		const char *host = view_host(p->cluster, p->shape, p->host);
		bool named = p->cluster->shape.n > 1 && *host;
		snprintf(text, sizeof text, "%s%s%s", named ? host : "", named ? ": " : "", p->g->remark.at[i].text);
		ok = append(to->warnings, text_or_null(text)) && (!p->g->remark.at[i].contradiction || append(to->contradictions, text_or_null(text)));
	}
	return ok;
}

/* ---- the matrix ---- */

struct entry {
	struct place place;
	int32_t vertex;
	int64_t device; /* number of the GPU in the cluster; -1: a NIC */
	double egress_Bps;
};
struct entries {
	VEC(struct entry) list;
};

/* What a byte on its way out of the host finds: the NICs that a GPU uses, or the NIC itself. */
static enum status egress(const struct entry *x, double *Bps, struct error *e)
{
	const struct graph *g = x->place.g;
	bool assumed;
	*Bps = 0;
	if (x->device < 0) {
		*Bps = view_nic_Bps(g, x->vertex, &assumed);
		return ST_OK;
	}
	double near = INFINITY;
	int32_t hops = INT32_MAX;
	for (size_t i = 0; i < g->nic.n; i++) {
		struct route r;
		enum status st = graph_route(g, x->vertex, g->nic.at[i], &r, e);
		if (st)
			return st;
		double nic = view_nic_Bps(g, g->nic.at[i], &assumed);
		if (r.n > hops)
			continue;
		if (r.n < hops)
			*Bps = 0;
		hops = r.n;
		near = r.Bps;
		*Bps += nic;
	}
	*Bps = hops == INT32_MAX ? 0 : fmin(*Bps, near);
	return ST_OK;
}

/* `router`: of the graph of `a`. */
static enum status cell_json(const struct entry *a, const struct entry *b, struct router *router, json_t *link, json_t *rate, struct error *e)
{
	struct view_cell cell = {.word = "NET"};
	enum status st = ST_OK;
	if (a->place.host == b->place.host) {
		st = view_cell(a->place.g, router, a->vertex, b->vertex, &cell, e);
	} else {
		cell.Bps = fmin(a->egress_Bps, b->egress_Bps);
	}
	if (!st && (!append(link, text_or_null(cell.word)) || !append(rate, rate_or_null(cell.Bps))))
		st = error_nomem(e, "the JSON matrix");
	return st;
}

static enum status matrix_json(const struct entries *x, json_t **out, struct error *e)
{
	json_t *labels = json_array(), *links = json_array(), *rates = json_array();
	struct router *router = NULL; /* of the row's graph: hosts alike share it */
	const struct graph *routed = NULL;
	enum status st = labels && links && rates ? ST_OK : error_nomem(e, "the JSON matrix");
	for (size_t i = 0; i < x->list.n && !st; i++)
		st = egress(&x->list.at[i], &x->list.at[i].egress_Bps, e);
	for (size_t i = 0; i < x->list.n && !st; i++) {
		char text[LABEL_LEN];
		const struct entry *from = &x->list.at[i];
		json_t *link = json_array(), *rate = json_array();
		if (from->place.g != routed) {
			router_destroy(router);
			router = router_create(routed = from->place.g);
		}
		bool ok = append(links, link) & append(rates, rate);
		if (!ok || !router || !append(labels, text_or_null(label(text, &from->place, from->vertex))))
			st = error_nomem(e, "the JSON matrix");
		for (size_t j = 0; j < x->list.n && !st; j++)
			st = cell_json(from, &x->list.at[j], router, link, rate, e);
	}
	if (!st && !(*out = json_pack("{s:O, s:O, s:O}", "labels", labels, "link", links, "bandwidth_Bps", rates)))
		st = error_nomem(e, "the JSON matrix");
	router_destroy(router);
	json_decref(labels);
	json_decref(links);
	json_decref(rates);
	return st;
}

/* ---- groups ---- */

static json_t *members_json(const struct cluster *c, const struct view_group *v)
{
	json_t *j = json_array();
	for (int64_t i = 0; i < v->n && j; i++) {
		struct device_place d = cluster_device(c, v->device[i]);
		const struct cluster_shape *s = &c->shape.at[0];
		while (d.host >= s->first_host + s->hosts)
			s++;
		struct place p = {c, s, d.graph, d.host};
		char text[LABEL_LEN];
		if (!append(j, text_or_null(label(text, &p, d.vertex)))) {
			json_decref(j);
			j = NULL;
		}
	}
	return j;
}

static enum status groups_json(const struct cluster *c, json_t **out, struct error *e)
{
	struct view_groups groups;
	enum status st = view_groups(c, &groups, e);
	if (st)
		return st;
	*out = json_array();
	for (size_t i = 0; i < groups.list.n && !st; i++) {
		const struct view_group *v = &groups.list.at[i];
		const struct group *g = &v->group;
		json_t *j = json_pack("{s:s, s:o, s:o, s:o, s:i, s:f, s:o, s:o, s:b, s:b, s:s}", "what", v->what, "gpus", members_json(c, v), "ring_Bps", rate_or_null(g->ring_Bps), "ring_datasheet_Bps",
		                      rate_or_null(g->ring_datasheet_Bps), "rings", g->rings, "hop_latency_s", g->ring_latency_s, "pair_Bps", rate_or_null(g->pair_Bps), "network_Bps", rate_or_null(g->network_Bps), "nvlink_switch",
		                      g->nvlink_switch, "nvls", v->nvls, "bottleneck", g->bottleneck_text);
		if (!*out || !j || !append(*out, j))
			st = error_nomem(e, "the JSON of groups");
	}
	view_groups_free(&groups);
	return st;
}

/* ---- the whole ---- */

static json_t *pci_json(const struct inventory *l)
{
	json_t *out = json_array();
	for (size_t i = 0; l && i < l->device.n && out; i++) {
		const struct pci_device *d = &l->device.at[i];
		json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "pci", d->address, "class", d->what, "name", text_or_null(d->name), "known_as", text_or_null(d->os), "bandwidth_Bps", rate_or_null(d->Bps), "numa", number_or_null(d->numa));
		if (!j || !append(out, j)) {
			json_decref(out);
			out = NULL;
		}
	}
	return out;
}

static json_t *counts_json(const struct inventory *i)
{
	if (!i)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "packages", count_or_null(i->packages), "cores", count_or_null(i->cores), "threads", count_or_null(i->threads), "numa_nodes", count_or_null(i->numa_nodes),
	                 "memory_bytes", count_or_null((int64_t)i->mem_B), "l2_bytes", count_or_null((int64_t)i->l2_B), "l3_bytes", count_or_null((int64_t)i->l3_B));
}

static bool collect(const struct cluster *c, const struct parts *to, struct entries *x)
{
	int64_t device = 0;
	bool ok = true;
	for (size_t s = 0; s < c->shape.n; s++) {
		const struct cluster_shape *shape = &c->shape.at[s];
		struct place p = {c, shape, shape->graph, shape->first_host};
		ok = ok && add_remarks(to, &p);
		for (int64_t h = 0; h < shape->hosts && ok; h++) {
			p.host = shape->first_host + h;
			ok = add_host(to, &p);
			for (size_t i = 0; i < graph_entries(p.g) && ok; i++)
				ok = vec_push(&x->list, ((struct entry){p, graph_entry(p.g, i), i < p.g->gpu.n ? device++ : -1, 0}));
		}
	}
	return ok;
}

enum status view_json(const struct cluster *c, const struct view_beside *beside, json_t **out, struct error *e)
{
	struct parts to = {json_array(), json_array(), json_array(), json_array(), json_array(), json_array(), json_array()};
	struct entries x = {0};
	json_t *matrix = NULL, *groups = NULL;
	enum status st = ST_OK;
	*out = NULL;
	if (c->shape.n == 0) {
		st = error_set(e, ST_RUN, "no host to describe");
		goto out;
	}
	const struct graph *first = c->shape.at[0].graph;
	if (!collect(c, &to, &x)) {
		st = error_nomem(e, "the JSON of the topology");
		goto out;
	}
	if ((st = matrix_json(&x, &matrix, e)) || (st = groups_json(c, &groups, e)))
		goto out;
	*out = json_pack("{s:O, s:O, s:O, s:O, s:s, s:O, s:s, s:O, s:O, s:O, s:O, s:o, s:o, s:o}", "hosts", to.hosts, "gpus", to.gpus, "nics", to.nics, "matrix", matrix, "fabric", graph_fabric(first), "warnings", to.warnings, "source",
	                 evidence_name(first->source), "cpus", to.cpus, "links", to.links, "groups", groups, "contradictions", to.contradictions, "model", text_or_null(first->model), "inventory", counts_json(beside->inventory),
	                 "pci_devices", pci_json(beside->inventory));
	if (!*out)
		st = error_nomem(e, "the JSON of the topology");
out:
	vec_free(&x.list);
	json_decref(matrix);
	json_decref(groups);
	json_decref(to.hosts);
	json_decref(to.gpus);
	json_decref(to.nics);
	json_decref(to.cpus);
	json_decref(to.links);
	json_decref(to.warnings);
	json_decref(to.contradictions);
	return st;
}
