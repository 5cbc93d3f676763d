/* Shared by text, JSON and pictures: cells, words for links, the groups that get a line. */
#include "topology/view/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

char *view_rate(char buf[VIEW_RATE], double Bps)
{
	double GBps = Bps / 1e9;
	if (!(GBps > 0) || !isfinite(GBps))
		snprintf(buf, VIEW_RATE, "-");
	else
		snprintf(buf, VIEW_RATE, GBps >= 999.5 ? "%.0f" : "%.3g", GBps);
	return buf;
}

char *view_link(char buf[VIEW_TEXT], const struct link *l)
{
	int n = snprintf(buf, VIEW_TEXT, "%s", link_kind_name(l->kind));
	if (l->gen > 0 && n >= 0)
		n += snprintf(buf + n, VIEW_TEXT - (size_t)n, " gen %d", l->gen);
	if (l->width > 0 && n >= 0 && l->kind != LINK_SOCKET && l->kind != LINK_LOCAL)
		snprintf(buf + n, VIEW_TEXT - (size_t)n, " x%d", l->width);
	return buf;
}

/* ---- streams ---- */

static ssize_t take(void *cookie, const char *text, size_t n)
{
	struct view_stream *s = cookie;
	if (s->lost || !vec_reserve(&s->text, n + 1)) { /* room for the terminator */
		s->lost = true;
		return 0;
	}
	memcpy(s->text.at + s->text.n, text, n);
	s->text.n += n;
	return (ssize_t)n;
}

enum status view_open(struct view_stream *s, struct error *e)
{
	s->lost = false;
	memset(&s->text, 0, sizeof s->text);
	s->out = fopencookie(s, "w", (cookie_io_functions_t){.write = take});
	if (!s->out)
		return error_nomem(e, "a text");
	setvbuf(s->out, s->buffer, _IOFBF, sizeof s->buffer);
	return ST_OK;
}

enum status view_close(struct view_stream *s, char **text, size_t *len, struct error *e)
{
	bool lost = fclose(s->out) != 0;
	*text = NULL;
	if (lost || s->lost || !vec_reserve(&s->text, 1)) {
		vec_free(&s->text);
		return error_nomem(e, "a text");
	}
	s->text.at[s->text.n] = '\0';
	*text = s->text.at;
	if (len)
		*len = s->text.n;
	return ST_OK;
}

enum status view_to_text(view_fn *view, const struct cluster *c, char **text, size_t *len, struct error *e)
{
	struct view_stream s;
	*text = NULL;
	enum status st = view_open(&s, e);
	if (st)
		return st;
	st = view(c, s.out, e);
	enum status closed = view_close(&s, text, len, st ? NULL : e);
	if (st) {
		free(*text);
		*text = NULL;
	}
	return st ? st : closed;
}

/* ---- groups ---- */

void view_groups_free(struct view_groups *groups)
{
	if (!groups)
		return;
	for (size_t i = 0; i < groups->list.n; i++)
		free(groups->list.at[i].device);
	vec_free(&groups->list);
}

/* Takes `device` over. */
static enum status add_group(const struct cluster *c, struct view_groups *out, const char *what, size_t shape,
	int64_t *device, int64_t n, struct error *e)
{
	struct view_group v = {.device = device, .n = n, .shape = shape, .nvls = true};
	snprintf(v.what, sizeof v.what, "%s", what);
	enum status st = cluster_group(c, device, (size_t)n, &v.group, e);
	if (!st && !vec_push(&out->list, v))
		st = error_nomem(e, "the list of groups");
	if (st) {
		free(device);
		return st;
	}
	struct view_group *added = &out->list.at[out->list.n - 1];
	added->everywhere = added->group.hosts > 1;
	/* NVLink SHARP came with the switches of Hopper's time (NVIDIA/nccl src/transport/nvls.cc asks for sm_90). */
	for (int64_t i = 0; i < n; i++) {
		struct device_place p = cluster_device(c, device[i]);
		added->nvls &= p.graph->vertex.at[p.vertex].gpu.compute_capability >= 90;
	}
	added->nvls &= added->group.nvlink_switch && n > 1;
	return ST_OK;
}

static enum status add_range(const struct cluster *c, struct view_groups *out, size_t shape, int64_t first, int64_t n,
	struct error *e)
{
	int64_t *device = malloc((size_t)n * sizeof *device);
	if (!device)
		return error_nomem(e, "a group's devices");
	for (int64_t i = 0; i < n; i++)
		device[i] = first + i;
	return add_group(c, out, "all GPUs", shape, device, n, e);
}

static void merge(int32_t *part, size_t n, int32_t a, int32_t b)
{
	for (size_t i = 0; i < n && a != b; i++)
		part[i] = part[i] == b ? a : part[i];
}

/* part[vertex]: the same number for all that links of these kinds join. */
static void join(const struct graph *g, const bool kinds[LINK_KINDS], int32_t *part)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		part[i] = (int32_t)i;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		if (kinds[l->kind])
			merge(part, g->vertex.n, part[l->a], part[l->b]);
	}
}

/* NUMA nodes of one package are one part. */
static void join_packages(const struct graph *g, int32_t *part)
{
	for (size_t i = 0; i < g->vertex.n; i++) {
		const struct vertex *v = &g->vertex.at[i];
		for (size_t j = 0; j < i && v->kind == VERTEX_CPU && v->cpu.package >= 0; j++)
			if (g->vertex.at[j].kind == VERTEX_CPU && g->vertex.at[j].cpu.package == v->cpu.package)
				merge(part, g->vertex.n, part[j], part[i]);
	}
}

/* part[vertex] -> groups of at least two GPUs, unless all GPUs are one part. */
static enum status add_parts(const struct cluster *c, struct view_groups *out, const char *what, size_t shape,
	const int32_t *part, struct error *e)
{
	const struct graph *g = c->shape.at[shape].graph;
	int64_t first = c->shape.at[shape].first_device;
	enum status st = ST_OK;
	for (size_t i = 0; i < g->gpu.n && !st; i++) {
		int64_t n = 0, *device = malloc(g->gpu.n * sizeof *device);
		bool seen = false;
		if (!device)
			return error_nomem(e, "a group's devices");
		for (size_t j = 0; j < g->gpu.n; j++) {
			if (part[g->gpu.at[j]] != part[g->gpu.at[i]])
				continue;
			seen |= j < i;
			device[n++] = first + (int64_t)j;
		}
		if (seen || n < 2 || n == (int64_t)g->gpu.n)
			free(device);
		else
			st = add_group(c, out, what, shape, device, n, e);
	}
	return st;
}

/* The same GPUs are not listed twice under two names. */
static void drop_repeated(struct view_groups *out)
{
	size_t kept = 0;
	for (size_t i = 0; i < out->list.n; i++) {
		struct view_group *v = &out->list.at[i];
		bool repeated = false;
		for (size_t j = 0; j < kept; j++)
			repeated |= out->list.at[j].n == v->n &&
			            memcmp(out->list.at[j].device, v->device, (size_t)v->n * sizeof *v->device) == 0;
		if (repeated)
			free(v->device);
		else
			out->list.at[kept++] = *v;
	}
	out->list.n = kept;
}

static bool has_xgmi(const struct graph *g)
{
	for (size_t i = 0; i < g->link.n; i++)
		if (g->link.at[i].kind == LINK_XGMI)
			return true;
	return false;
}

static enum status groups_of_shape(const struct cluster *c, struct view_groups *out, size_t shape, struct error *e)
{
	static const bool fabric[LINK_KINDS] = {[LINK_NVLINK] = true, [LINK_XGMI] = true};
	static const bool below[LINK_KINDS] = {[LINK_PCIE] = true, [LINK_LOCAL] = true, [LINK_C2C] = true};
	const struct graph *g = c->shape.at[shape].graph;
	if (g->gpu.n < 2)
		return ST_OK;
	enum status st = add_range(c, out, shape, c->shape.at[shape].first_device, (int64_t)g->gpu.n, e);
	int32_t *part = malloc(g->vertex.n * sizeof *part);
	if (!part && !st)
		st = error_nomem(e, "the parts of a link graph");
	if (st)
		goto out;
	enum link_kind slowest = out->list.at[out->list.n - 1].group.bottleneck;
	join(g, fabric, part);
	if ((st = add_parts(c, out, has_xgmi(g) ? "xGMI island" : "NVLink island", shape, part, e)))
		goto out;
	join(g, below, part);
	join_packages(g, part);
	/* Where NVLink carries the whole ring, sockets make no difference to it. */
	if (!fabric[slowest])
		st = add_parts(c, out, "socket", shape, part, e);
out:
	free(part);
	return st;
}

const struct cluster_shape *view_without_nic(const struct cluster *c)
{
	for (size_t i = 0; i < c->shape.n; i++)
		if (c->shape.at[i].graph->gpu.n && !c->shape.at[i].graph->nic.n)
			return &c->shape.at[i];
	return NULL;
}

enum status view_groups(const struct cluster *c, const struct view_makes *makes, struct view_groups *out,
	struct error *e)
{
	*out = (struct view_groups){0};
	enum status st = c->hosts > 1 && c->devices > 1 && !view_without_nic(c) ? add_range(c, out, 0, 0, c->devices, e)
	                                                                        : ST_OK;
	for (size_t i = 0; i < makes->list.n && !st; i++)
		st = groups_of_shape(c, out, makes->list.at[i].shape, e);
	if (st)
		view_groups_free(out);
	else
		drop_repeated(out);
	return st;
}
