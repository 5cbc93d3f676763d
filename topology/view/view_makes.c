/* Finds what is shown once: hosts of one make, and remarks on several hosts in the same words. */
#include <stdlib.h>
#include <string.h>

#include "topology/view/view.h"

#define MEMORY_SLACK \
	0.02 /* drivers and ECC keep a little of a GPU's memory for themselves, not the same on every host */
#define WHO_SHOWN 4

const char *view_host(const struct cluster *c, const struct cluster_shape *s, int64_t host)
{
	if (host >= 0 && (size_t)host < c->host_name.n && c->host_name.at[host])
		return c->host_name.at[host];
	return s->graph->host;
}

const char *view_host_name(char buf[VIEW_HOST], const struct cluster *c, const struct cluster_shape *s, int64_t host)
{
	const char *name = view_host(c, s, host);
	bool own = (size_t)host < c->host_name.n && *name;
	if (own || c->hosts <= 1)
		snprintf(buf, VIEW_HOST, "%s", name);
	else
		snprintf(buf, VIEW_HOST, "%s%lld", *name ? name : "host", (long long)host);
	return buf;
}

/* ---- makes ---- */

static bool near(uint64_t a, uint64_t b)
{
	double x = (double)a, y = (double)b;
	return (x > y ? x - y : y - x) <= MEMORY_SLACK * (x > y ? x : y);
}

static bool same_vertex(const struct vertex *x, const struct vertex *y)
{
	if (x->kind != y->kind || x->numa != y->numa || strcmp(x->label, y->label) || strcmp(x->name, y->name) ||
		strcmp(x->cores, y->cores))
		return false;
	if (x->kind == VERTEX_GPU)
		return strcmp(x->gpu.device, y->gpu.device) == 0 &&
		       x->gpu.compute_capability == y->gpu.compute_capability && near(x->gpu.mem_B, y->gpu.mem_B);
	if (x->kind == VERTEX_NIC)
		return x->nic.infiniband == y->nic.infiniband;
	return x->kind != VERTEX_CPU || (x->cpu.package == y->cpu.package && strcmp(x->cpu.model, y->cpu.model) == 0);
}

/* Of two graphs with the same links in the cluster's sense (struct cluster_shape, `like`). */
static bool same_names(const struct graph *a, const struct graph *b)
{
	if (strcmp(a->model, b->model) || a->source != b->source || !a->words != !b->words)
		return false;
	for (size_t i = 0; i < a->vertex.n; i++)
		if (!same_vertex(&a->vertex.at[i], &b->vertex.at[i]))
			return false;
	for (size_t i = 0; i < a->link.n; i++)
		if (a->link.at[i].assumed != b->link.at[i].assumed || a->link.at[i].gen != b->link.at[i].gen)
			return false;
	size_t n = a->words ? graph_entries(a) : 0;
	return n == 0 || memcmp(a->words, b->words, n * n * sizeof *a->words) == 0;
}

void view_makes_free(struct view_makes *makes)
{
	if (!makes)
		return;
	vec_free(&makes->list);
	free(makes->of_shape);
	makes->of_shape = NULL;
}

enum status view_makes(const struct cluster *c, struct view_makes *out, struct error *e)
{
	*out = (struct view_makes){.of_shape = calloc(c->shape.n + 1, sizeof *out->of_shape)};
	if (!out->of_shape)
		return error_nomem(e, "the makes of hosts");
	for (size_t i = 0; i < c->shape.n; i++) {
		const struct cluster_shape *s = &c->shape.at[i];
		size_t at = 0;
		while (at < out->list.n && (c->shape.at[out->list.at[at].shape].like != s->like ||
						   !same_names(c->shape.at[out->list.at[at].shape].graph, s->graph)))
			at++;
		if (at == out->list.n && !vec_push(&out->list, ((struct view_make){.shape = i}))) {
			view_makes_free(out);
			return error_nomem(e, "the makes of hosts");
		}
		out->of_shape[i] = at;
		out->list.at[at].hosts += s->hosts;
	}
	return ST_OK;
}

/* ---- remarks ---- */

struct said {
	const struct remark *remark;
	size_t shape, order;
};

static int by_text(const void *a, const void *b)
{
	const struct said *x = a, *y = b;
	int text = strcmp(x->remark->text, y->remark->text);
	if (text || x->remark->contradiction != y->remark->contradiction)
		return text ? text : (int)x->remark->contradiction - (int)y->remark->contradiction;
	return (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
	const struct view_remark *x = a, *y = b;
	return (x->order > y->order) - (x->order < y->order);
}

/* "node3, node5: ", or as many names as there is room for and how many more. */
static void name_hosts(const struct cluster *c, const struct said *said, size_t n, struct view_remark *r)
{
	int64_t shown = 0;
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		const struct cluster_shape *s = &c->shape.at[said[i].shape];
		for (int64_t h = 0; h < s->hosts && shown < WHO_SHOWN; h++, shown++) {
			char name[VIEW_HOST];
			used += (size_t)snprintf(r->who + used, sizeof r->who - used, "%s%s", shown ? ", " : "",
				view_host_name(name, c, s, s->first_host + h));
		}
	}
	if (r->hosts > shown)
		used += (size_t)snprintf(r->who + used, sizeof r->who - used, " and %lld more",
			(long long)(r->hosts - shown));
	snprintf(r->who + used, sizeof r->who - used, ": ");
}

void view_remarks_free(struct view_remarks *remarks)
{
	if (remarks)
		vec_free(&remarks->list);
}

enum status view_remarks(const struct cluster *c, const struct view_makes *makes, size_t make, struct view_remarks *out,
	struct error *e)
{
	VEC(struct said) all = {0};
	int64_t hosts = make == VIEW_ALL_MAKES ? c->hosts : makes->list.at[make].hosts;
	size_t order = 0;
	enum status st = ST_OK;
	*out = (struct view_remarks){0};
	for (size_t s = 0; s < c->shape.n && !st; s++) {
		const struct graph *g = c->shape.at[s].graph;
		bool wanted = make == VIEW_ALL_MAKES || makes->of_shape[s] == make;
		for (size_t i = 0; i < g->remark.n && wanted && !st; i++)
			if (!vec_push(&all, ((struct said){&g->remark.at[i], s, order++})))
				st = error_nomem(e, "the remarks");
	}
	if (all.n)
		qsort(all.at, all.n, sizeof *all.at, by_text);
	for (size_t i = 0, to; i < all.n && !st; i = to) {
		struct view_remark r = {.remark = all.at[i].remark,
			.order = all.at[i].order,
			.hosts = c->shape.at[all.at[i].shape].hosts};
		for (to = i + 1; to < all.n && strcmp(all.at[to].remark->text, r.remark->text) == 0 &&
				 all.at[to].remark->contradiction == r.remark->contradiction;
			to++)
			r.hosts += all.at[to].shape != all.at[to - 1].shape ? c->shape.at[all.at[to].shape].hosts : 0;
		if (r.hosts < hosts)
			name_hosts(c, all.at + i, to - i, &r);
		if (!vec_push(&out->list, r))
			st = error_nomem(e, "the remarks");
	}
	if (out->list.n)
		qsort(out->list.at, out->list.n, sizeof *out->list.at, by_order);
	vec_free(&all);
	if (st)
		view_remarks_free(out);
	return st;
}
