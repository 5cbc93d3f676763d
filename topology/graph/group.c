/* Groups over the hosts of a cluster: what each host's part gets, and the slowest of them. */
#include "topology/graph/group.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gcd.h"
#include "topology/graph/group_parts.h"

/* Hosts with the same links and the same members get the same: each such pattern is looked at once. */
struct pattern {
	int32_t shape, n, n_groups; /* shape: the one that it is like */
	uint64_t hash;
	int32_t *label;
	struct group_part *part;
};

struct survey {
	const struct cluster *c;
	int64_t size;
	VEC(struct pattern) seen;
	int32_t *label; /* scratch, of one host */
	size_t label_cap;
	double in_node_latency_s, network_latency_s; /* largest of the parts of groups that span */
};

static void survey_free(struct survey *s)
{
	for (size_t i = 0; i < s->seen.n; i++) {
		free(s->seen.at[i].label);
		free(s->seen.at[i].part);
	}
	vec_free(&s->seen);
	free(s->label);
}

static bool make_room(struct survey *s, int64_t gpus)
{
	return vec_reserve_((void **)&s->label, &s->label_cap, 0, (size_t)gpus + 1, sizeof *s->label);
}

static uint64_t hash_of(const int32_t *label, int32_t n)
{
	uint64_t hash = 0;
	for (int32_t i = 0; i < n; i++)
		hash = (hash ^ (uint64_t)(uint32_t)label[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 31);
}

/* Returns the pattern of the groups in s->label on a host of this shape; NULL on failure. */
static const struct pattern *look(struct survey *s, int32_t shape, int32_t n_groups, struct error *e)
{
	const struct cluster_shape *at = &s->c->shape.at[shape];
	struct pattern p = {.shape = at->like, .n = (int32_t)at->gpus, .n_groups = n_groups};
	size_t bytes = (size_t)p.n * sizeof *p.label;
	p.hash = hash_of(s->label, p.n);
	for (size_t i = s->seen.n; i-- > 0;) {
		const struct pattern *q = &s->seen.at[i];
		if (q->shape == p.shape && q->hash == p.hash && memcmp(q->label, s->label, bytes) == 0)
			return q;
	}
	p.label = malloc(bytes + 1);
	p.part = calloc((size_t)n_groups + 1, sizeof *p.part);
	if (!p.label || !p.part) {
		error_nomem(e, "a group");
		goto failed;
	}
	memcpy(p.label, s->label, bytes);
	if (host_groups(at->graph, p.label, n_groups, s->size, p.part, e))
		goto failed;
	if (!vec_push(&s->seen, p)) {
		error_nomem(e, "a group");
		goto failed;
	}
	for (int32_t k = 0; k < n_groups; k++)
		if (!p.part[k].group.in_node) {
			s->in_node_latency_s = fmax(s->in_node_latency_s, p.part[k].group.ring_latency_s);
			s->network_latency_s = fmax(s->network_latency_s,
				fmax(s->c->network_latency_s, p.part[k].network_latency_s));
		}
	return &s->seen.at[s->seen.n - 1];
failed:
	free(p.label);
	free(p.part);
	return NULL;
}

/* A ring over several hosts leaves each of them once. */
static void spread(const struct survey *s, struct group *g, int64_t hosts)
{
	g->hosts = hosts;
	if (hosts > 1)
		g->ring_latency_s = ((double)hosts * s->network_latency_s +
					    (double)(s->size - hosts) * s->in_node_latency_s) /
		                    (double)s->size;
}

static struct group alone(int32_t gpu)
{
	return (struct group){.size = 1,
		.hosts = 1,
		.in_node = true,
		.ring_Bps = INFINITY,
		.ring_datasheet_Bps = INFINITY,
		.pair_Bps = INFINITY,
		.n_order = 1,
		.order = {gpu}};
}

/* Where a host has one member only, the ring's first two neighbours are on two hosts. */
static enum status pair_across(const struct cluster *c, int64_t a, int64_t b, struct group *g, struct error *e)
{
	struct cluster_route route;
	if (g->pair_Bps > 0)
		return ST_OK;
	enum status st = cluster_route(c, a, b, &route, e);
	g->pair_Bps = route.Bps;
	return st;
}

/* ---- one group ---- */

struct spot {
	int64_t host, device;
	int32_t shape, gpu;
};

static int compare_spots(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	return (x->device > y->device) - (x->device < y->device);
}

static int32_t shape_of_host(const struct cluster *c, int64_t host)
{
	size_t low = 0, high = c->shape.n;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (c->shape.at[middle].first_host <= host)
			low = middle;
		else
			high = middle;
	}
	return (int32_t)low;
}

static enum status find_spots(const struct cluster *c, const int64_t *devices, size_t n, struct spot *spot,
	struct error *e)
{
	for (size_t i = 0; i < n; i++) {
		struct device_place at = cluster_device(c, devices[i]);
		if (!at.graph)
			return error_set(e, ST_INPUT, "device %" PRId64 " of a group: the cluster has %" PRId64,
				devices[i], c->devices);
		spot[i] = (struct spot){.host = at.host, .device = devices[i], .shape = shape_of_host(c, at.host)};
		const struct cluster_shape *s = &c->shape.at[spot[i].shape];
		spot[i].gpu = (int32_t)((devices[i] - s->first_device) % s->gpus);
	}
	qsort(spot, n, sizeof *spot, compare_spots);
	for (size_t i = 1; i < n; i++)
		if (spot[i].device == spot[i - 1].device)
			return error_set(e, ST_INPUT, "device %" PRId64 " is in a group twice", spot[i].device);
	return ST_OK;
}

/* The slowest host decides; the ring's order is the first host's. */
static void join(struct group *g, const struct group *part, bool first)
{
	if (first) {
		*g = *part;
		return;
	}
	bool unknown = g->ring_datasheet_Bps <= 0 || part->ring_datasheet_Bps <= 0;
	g->ring_datasheet_Bps = unknown ? 0 : fmin(g->ring_datasheet_Bps, part->ring_datasheet_Bps);
	g->network_Bps = fmin(g->network_Bps, part->network_Bps);
	g->rings = part->rings > 0 && (g->rings == 0 || part->rings < g->rings) ? part->rings : g->rings;
	if (!(part->ring_Bps < g->ring_Bps))
		return;
	g->ring_Bps = part->ring_Bps;
	g->bottleneck = part->bottleneck;
	memcpy(g->bottleneck_text, part->bottleneck_text, sizeof g->bottleneck_text);
}

enum status cluster_group(const struct cluster *c, const int64_t *devices, size_t n, struct group *out, struct error *e)
{
	struct survey s = {.c = c, .size = (int64_t)n};
	struct spot *spot = malloc((n + 1) * sizeof *spot);
	enum status st = spot ? ST_OK : error_nomem(e, "a group");
	struct group g = {0};
	int64_t hosts = 0;
	if (!st && !n)
		st = error_set(e, ST_INPUT, "a group without devices");
	if (!st)
		st = find_spots(c, devices, n, spot, e);
	if (!st && n == 1) {
		*out = alone(spot[0].gpu);
		goto out;
	}
	for (size_t i = 0, end; i < n && !st; i = end) {
		int64_t gpus = c->shape.at[spot[i].shape].gpus;
		if (!make_room(&s, gpus)) {
			st = error_nomem(e, "a group");
			break;
		}
		memset(s.label, -1, (size_t)gpus * sizeof *s.label);
		for (end = i; end < n && spot[end].host == spot[i].host; end++)
			s.label[spot[end].gpu] = 0;
		const struct pattern *p = look(&s, spot[i].shape, 1, e);
		if (p)
			join(&g, &p->part[0].group, i == 0);
		else
			st = e ? e->status : ST_RUN;
		hosts++;
	}
	if (!st)
		st = pair_across(c, spot[0].device, spot[n > 1].device, &g, e);
	if (!st) {
		g.size = (int64_t)n;
		spread(&s, &g, hosts);
		*out = g;
	}
out:
	free(spot);
	survey_free(&s);
	return st;
}

/* ---- all groups of a mesh dimension ---- */

/* Labels of one host's GPUs, the first of which is device `first`; the number of groups. Devices behind the last whole
 * block are in no group. */
static int32_t label_host(const struct survey *s, int64_t stride, int64_t first, int64_t gpus)
{
	int64_t block = s->size * stride, whole = s->c->devices / block * block;
	int32_t n = 0;
	for (int64_t i = 0; i < gpus; i++) {
		bool with_before = i >= stride && (first + i) / block == (first + i - stride) / block;
		s->label[i] = first + i >= whole ? -1 : with_before ? s->label[i - stride] : n++;
	}
	return n;
}

static int64_t hosts_of_group(const struct cluster *c, int64_t first, int64_t size, int64_t stride)
{
	int64_t hosts = 0, before = -1;
	if (c->shape.n == 1 && stride <= c->shape.at[0].gpus) /* no host is passed over */
		return (first + (size - 1) * stride) / c->shape.at[0].gpus - first / c->shape.at[0].gpus + 1;
	if (c->shape.n == 1)
		return size;
	for (int64_t k = 0; k < size; k++) {
		int64_t host = cluster_device(c, first + k * stride).host;
		hosts += host != before;
		before = host;
	}
	return hosts;
}

/* Slowest so far. */
struct worst {
	struct group group;
	int64_t first; /* device of its group that is on its host */
};

static enum status survey_host(struct survey *s, int32_t shape, int64_t first, int64_t stride, struct worst *worst,
	struct error *e)
{
	int64_t gpus = s->c->shape.at[shape].gpus;
	int32_t n = label_host(s, stride, first, gpus);
	const struct pattern *p = look(s, shape, n, e);
	if (!p)
		return e ? e->status : ST_RUN;
	for (int32_t k = 0; k < n; k++) {
		if (worst->first >= 0 && !(p->part[k].group.ring_Bps < worst->group.ring_Bps))
			continue;
		worst->group = p->part[k].group;
		for (int64_t i = 0; i < gpus; i++)
			if (s->label[i] == k) {
				worst->first = first + i;
				break;
			}
	}
	return ST_OK;
}

enum status cluster_mesh_groups(const struct cluster *c, int64_t size, int64_t stride, struct group *out,
	struct error *e)
{
	struct survey s = {.c = c, .size = size};
	struct worst worst = {.first = -1};
	enum status st = ST_OK;
	if (size < 1 || stride < 1 || stride > c->devices || size > c->devices / stride)
		return error_set(e, ST_INPUT, "groups of %" PRId64 " devices %" PRId64 " apart on %" PRId64 " devices",
			size, stride, c->devices);
	if (size == 1) {
		*out = alone(0);
		return ST_OK;
	}
	int64_t block = size * stride;
	for (size_t i = 0; i < c->shape.n && !st; i++) {
		const struct cluster_shape *shape = &c->shape.at[i];
		if (!shape->gpus)
			continue;
		if (!make_room(&s, shape->gpus))
			st = error_nomem(e, "a group");
		/* Blocks fall on hosts in the same way again after this many hosts; where either divides the other, all
		 * hosts look alike. */
		int64_t common = gcd(block, shape->gpus), period = block / common;
		if (common == block || (common == shape->gpus && shape->first_device % shape->gpus == 0))
			period = 1;
		for (int64_t h = 0; h < shape->hosts && h < period && !st; h++)
			st = survey_host(&s, (int32_t)i, shape->first_device + h * shape->gpus, stride, &worst, e);
	}
	if (!st) {
		int64_t first = worst.first / block * block + worst.first % block % stride;
		st = pair_across(c, first, first + stride, &worst.group, e);
		worst.group.size = size;
		spread(&s, &worst.group, hosts_of_group(c, first, size, stride));
		*out = worst.group;
	}
	survey_free(&s);
	return st;
}
