/* The JSON of `topo --json` (docs/reference.md). Unknown figures are null. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/view/view_json.h"

/* ---- values; a NULL that reaches an array or an object makes the whole fail, and is seen there ---- */

json_t *view_rate_json(double x) { return x > 0 && isfinite(x) ? json_real(x) : json_null(); }

static json_t *count_or_null(int64_t x) { return x > 0 ? json_integer(x) : json_null(); }

static json_t *number_or_null(int32_t x) { return x >= 0 ? json_integer(x) : json_null(); }

/* The length of the character at `s` as jansson takes it (RFC 3629); 0: none. */
static size_t character(const unsigned char *s)
{
	size_t n = s[0] < 0x80                   ? 1
	           : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
	           : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
	           : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
	                                         : 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
	bool outside = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
	return overlong || outside ? 0 : n;
}

/* Dumps may hold bytes that are no UTF-8: those go as '?'. */
json_t *view_text_json(const char *s)
{
	if (!*s)
		return json_null();
	char *plain = strdup(s);
	size_t n;
	for (char *at = plain; at && *at; at += n ? n : 1)
		if ((n = character((const unsigned char *)at)) == 0)
			*at = '?';
	json_t *j = plain ? json_string_nocheck(plain) : NULL;
	free(plain);
	return j;
}

/* Takes `value` over. */
static bool put(json_t *object, const char *key, json_t *value) { return json_object_set_new(object, key, value) == 0; }

static bool append(json_t *array, json_t *value) { return json_array_append_new(array, value) == 0; }

static const char *label(char out[VIEW_LABEL], const struct view_place *p, int32_t vertex)
{
	const char *own = p->g->vertex.at[vertex].label;
	char host[VIEW_HOST];
	if (p->cluster->hosts <= 1)
		return own;
	snprintf(out, VIEW_LABEL, "%s:%s", view_host_name(host, p->cluster, p->shape, p->host), own);
	return out;
}

json_t *view_label_json(const struct view_place *p, int32_t vertex)
{
	char text[VIEW_LABEL];
	return view_text_json(label(text, p, vertex));
}

json_t *view_host_json(const struct view_place *p)
{
	char text[VIEW_HOST];
	view_host_name(text, p->cluster, p->shape, p->host);
	return *text ? view_text_json(text) : json_string("");
}

static json_t *vertex_json(const struct view_place *p, int32_t vertex)
{
	const struct vertex *v = &p->g->vertex.at[vertex];
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "label", view_label_json(p, vertex), "host",
		view_host_json(p), "name", view_text_json(v->name), "pci", view_text_json(v->pci), "numa",
		number_or_null(v->numa), "cores", view_text_json(v->cores), "source", evidence_name(v->from));
}

static bool add_gpu(json_t *to, const struct view_place *p, int32_t vertex)
{
	const struct gpu_facts *f = &p->g->vertex.at[vertex].gpu;
	json_t *j = vertex_json(p, vertex);
	bool ok = j && put(j, "pcie_gen", count_or_null(f->pcie_gen)) &&
	          put(j, "pcie_width", count_or_null(f->pcie_width)) &&
	          put(j, "memory_bytes", count_or_null((int64_t)f->mem_B));
	ok = ok && put(j, "pcie_gen_max", count_or_null(f->pcie_gen_max)) &&
	     put(j, "pcie_width_max", count_or_null(f->pcie_width_max)) && put(j, "device", view_text_json(f->device));
	ok = ok && put(j, "compute_capability", count_or_null(f->compute_capability)) &&
	     put(j, "nvlinks", count_or_null(f->nvlinks)) && put(j, "peer_to_peer", json_boolean(!f->no_peer));
	ok = ok && put(j, "clock_Hz", view_rate_json(f->clock_Hz)) &&
	     put(j, "clock_max_Hz", view_rate_json(f->clock_max_Hz)) &&
	     put(j, "power_limit_W", view_rate_json(f->power_limit_W)) &&
	     put(j, "power_default_W", view_rate_json(f->power_default_W));
	if (!ok)
		json_decref(j);
	return ok && append(to, j);
}

static bool add_nic(json_t *to, const struct view_place *p, int32_t vertex)
{
	const struct nic_facts *f = &p->g->vertex.at[vertex].nic;
	json_t *j = vertex_json(p, vertex);
	bool ok = j && put(j, "bandwidth_Bps", view_rate_json(f->Bps)) && put(j, "port", count_or_null(f->port)) &&
	          put(j, "infiniband", json_boolean(f->infiniband));
	if (!ok)
		json_decref(j);
	return ok && append(to, j);
}

static bool add_cpu(json_t *to, const struct view_place *p, int32_t vertex)
{
	const struct cpu_facts *f = &p->g->vertex.at[vertex].cpu;
	json_t *j = vertex_json(p, vertex);
	bool ok = j && put(j, "package", number_or_null(f->package)) && put(j, "model", view_text_json(f->model)) &&
	          put(j, "memory_bytes", count_or_null((int64_t)f->mem_B));
	if (!ok)
		json_decref(j);
	return ok && append(to, j);
}

static bool add_link(json_t *to, const struct view_place *p, const struct link *l)
{
	json_t *j = json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:f, s:s, s:b}", "a", view_label_json(p, l->a), "b",
		view_label_json(p, l->b), "kind", link_kind_name(l->kind), "width", count_or_null(l->width), "gen",
		count_or_null(l->gen), "bandwidth_Bps", view_rate_json(l->Bps), "datasheet_Bps",
		view_rate_json(l->datasheet_Bps), "latency_s", l->latency_s, "source", evidence_name(l->from),
		"assumed", l->assumed);
	return j && append(to, j);
}

struct parts {
	json_t *hosts, *gpus, *nics, *cpus, *links, *warnings, *contradictions;
};

static bool add_host(const struct parts *to, const struct view_place *p, bool links)
{
	bool ok = append(to->hosts, view_host_json(p));
	for (size_t i = 0; i < p->g->gpu.n && ok; i++)
		ok = add_gpu(to->gpus, p, p->g->gpu.at[i]);
	for (size_t i = 0; i < p->g->nic.n && ok; i++)
		ok = add_nic(to->nics, p, p->g->nic.at[i]);
	for (size_t i = 0; i < p->g->vertex.n && ok; i++)
		ok = p->g->vertex.at[i].kind != VERTEX_CPU || add_cpu(to->cpus, p, (int32_t)i);
	for (size_t i = 0; i < p->g->link.n && ok && links; i++)
		ok = add_link(to->links, p, &p->g->link.at[i]);
	return ok;
}

static enum status add_remarks(const struct parts *to, const struct cluster *c, const struct view_makes *makes,
	struct error *e)
{
	struct view_remarks remarks;
	enum status st = view_remarks(c, makes, VIEW_ALL_MAKES, &remarks, e);
	for (size_t i = 0; i < remarks.list.n && !st; i++) {
		const struct view_remark *r = &remarks.list.at[i];
		char text[sizeof r->who + sizeof r->remark->text];
		snprintf(text, sizeof text, "%s%s", r->who, r->remark->text);
		if (!append(to->warnings, view_text_json(text)) ||
			(r->remark->contradiction && !append(to->contradictions, view_text_json(text))))
			st = error_nomem(e, "the JSON of the topology");
	}
	view_remarks_free(&remarks);
	return st;
}

/* ---- groups ---- */

static json_t *members_json(const struct cluster *c, const struct view_group *v)
{
	json_t *j = json_array();
	const struct cluster_shape *s = c->shape.at;
	for (int64_t i = 0; i < v->n && j; i++) { /* devices ascend, and with them the shapes */
		struct device_place d = cluster_device(c, v->device[i]);
		while (d.host >= s->first_host + s->hosts)
			s++;
		struct view_place p = {c, s, d.graph, d.host};
		if (!append(j, view_label_json(&p, d.vertex))) {
			json_decref(j);
			j = NULL;
		}
	}
	return j;
}

static enum status groups_json(const struct cluster *c, const struct view_makes *makes, json_t **out, struct error *e)
{
	struct view_groups groups;
	enum status st = view_groups(c, makes, &groups, e);
	if (st)
		return st;
	if (!(*out = json_array()))
		st = error_nomem(e, "the JSON of groups");
	for (size_t i = 0; i < groups.list.n && !st; i++) {
		const struct view_group *v = &groups.list.at[i];
		const struct group *g = &v->group;
		json_t *j = json_pack("{s:s, s:o, s:o, s:o, s:i, s:f, s:o, s:o, s:b, s:b, s:s}", "what", v->what,
			"gpus", members_json(c, v), "ring_Bps", view_rate_json(g->ring_Bps), "ring_datasheet_Bps",
			view_rate_json(g->ring_datasheet_Bps), "rings", g->rings, "hop_latency_s", g->ring_latency_s,
			"pair_Bps", view_rate_json(g->pair_Bps), "network_Bps", view_rate_json(g->network_Bps),
			"nvlink_switch", g->nvlink_switch, "nvls", v->nvls, "bottleneck", g->bottleneck_text);
		if (!j || !append(*out, j))
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
		json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "pci", d->address, "class", d->what, "name",
			view_text_json(d->name), "known_as", view_text_json(d->os), "bandwidth_Bps",
			view_rate_json(d->Bps), "numa", number_or_null(d->numa));
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
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "packages", count_or_null(i->packages), "cores",
		count_or_null(i->cores), "threads", count_or_null(i->threads), "numa_nodes",
		count_or_null(i->numa_nodes), "memory_bytes", count_or_null((int64_t)i->mem_B),
		"available_memory_bytes", count_or_null((int64_t)i->mem_available_B), "l2_bytes",
		count_or_null((int64_t)i->l2_B), "l3_bytes", count_or_null((int64_t)i->l3_B));
}

static enum status collect(const struct cluster *c, const struct view_makes *makes, bool every_link,
	const struct parts *to, struct error *e)
{
	bool ok = true;
	for (size_t s = 0; s < c->shape.n && ok; s++) {
		const struct cluster_shape *shape = &c->shape.at[s];
		bool first = makes->list.at[makes->of_shape[s]].shape == s;
		for (int64_t h = 0; h < shape->hosts && ok; h++)
			ok = add_host(to, &(struct view_place){c, shape, shape->graph, shape->first_host + h},
				every_link || (first && h == 0));
	}
	return ok ? add_remarks(to, c, makes, e) : error_nomem(e, "the JSON of the topology");
}

enum status view_json(const struct cluster *c, const struct view_beside *beside, json_t **out, struct error *e)
{
	struct parts to = {json_array(), json_array(), json_array(), json_array(), json_array(), json_array(),
		json_array()};
	struct view_makes makes = {0};
	json_t *matrix = NULL, *groups = NULL;
	bool small = view_matrix_fits(c);
	enum status st = c->shape.n ? view_makes(c, &makes, e) : error_set(e, ST_RUN, "no host to describe");
	*out = NULL;
	if (st || (st = collect(c, &makes, small, &to, e)) ||
		(st = small ? view_matrix_json(c, &makes, &matrix, e) : view_matrices_json(c, &makes, &matrix, e)) ||
		(st = groups_json(c, &makes, &groups, e)))
		goto out;
	const struct graph *first = c->shape.at[0].graph;
	*out = json_pack("{s:O, s:O, s:O, s:o, s:s, s:O, s:s, s:O, s:O, s:O, s:O, s:o, s:o, s:o, s:o}", "hosts",
		to.hosts, "gpus", to.gpus, "nics", to.nics, "matrix", small ? json_incref(matrix) : json_null(),
		"fabric", graph_fabric(first), "warnings", to.warnings, "source", evidence_name(first->source), "cpus",
		to.cpus, "links", to.links, "groups", groups, "contradictions", to.contradictions, "model",
		view_text_json(first->model), "inventory", counts_json(beside->inventory), "pci_devices",
		pci_json(beside->inventory), "messages",
		beside->messages ? message_links_json(beside->messages) : json_null());
	if (!*out || (!small && json_object_set(*out, "matrices", matrix))) {
		json_decref(*out);
		*out = NULL;
		st = error_nomem(e, "the JSON of the topology");
	}
out:
	view_makes_free(&makes);
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
