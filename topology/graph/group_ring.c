/* The ring of one group inside one host: over an NVLink switch, over direct links, or over whatever routes there are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/group_parts.h"

#define SEARCHED 64 /* members beyond which a ring keeps the order of their numbers */
#define STEPS 20000 /* placements tried: all orders of 8 members, about a millisecond */
#define PER_LINK_RATES 4

void ring_free(struct host_ring *ring)
{
	free(ring->order);
	free(ring->hop);
	*ring = (struct host_ring){.slowest = -1};
}

/* ---- NVLink switches ---- */

/* Every switch that all members have links to carries its part of the ring. */
static bool try_switch(const struct graph *g, const int32_t *index, int32_t n, struct host_ring *out)
{
	double all_Bps = 0, all_datasheet = 0, slow = INFINITY;
	bool known = true;
	for (size_t s = 0; s < g->vertex.n; s++) {
		double Bps = INFINITY, datasheet = INFINITY;
		int32_t joined = 0, slowest = -1;
		if (g->vertex.at[s].kind != VERTEX_NVSWITCH)
			continue;
		for (size_t i = 0; i < g->link.n; i++) {
			const struct link *l = &g->link.at[i];
			int32_t other = l->a == (int32_t)s ? l->b : l->b == (int32_t)s ? l->a : -1;
			if (other < 0 || index[other] < 0 || !link_is_nv(l))
				continue;
			joined++;
			slowest = l->Bps < Bps ? (int32_t)i : slowest;
			Bps = fmin(Bps, l->Bps);
			datasheet = fmin(datasheet, l->datasheet_Bps);
			out->latency_s = fmax(out->latency_s, l->latency_s);
		}
		if (joined < n)
			continue;
		all_Bps += Bps;
		all_datasheet += datasheet;
		known = known && datasheet > 0;
		out->slowest = Bps < slow ? slowest : out->slowest;
		slow = fmin(slow, Bps);
	}
	out->Bps = all_Bps;
	out->datasheet_Bps = known ? all_datasheet : 0;
	return all_Bps > 0;
}

/* ---- direct links ---- */

/* Widths of the links between members that reach `least_Bps` each; the others count as none. */
static void widths(const struct graph *g, const int32_t *index, int32_t n, double least_Bps, int32_t *width)
{
	memset(width, 0, (size_t)(n * n) * sizeof *width);
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		int32_t a = index[l->a], b = index[l->b], w = l->width > 0 ? l->width : 1;
		if (a < 0 || b < 0 || !link_is_nv(l) || l->Bps / w < least_Bps * (1 - 1e-9))
			continue;
		width[a * n + b] += w;
		width[b * n + a] += w;
	}
}

static void rates_of_links(const struct graph *g, int32_t n, struct host_ring *out)
{
	double slow = INFINITY, datasheet = INFINITY;
	out->latency_s = 0;
	for (int32_t i = 0; i < n; i++) {
		double best = 0, latency = 0;
		for (size_t k = 0; k < g->link.n; k++) {
			const struct link *l = &g->link.at[k];
			int32_t a = out->order[i], b = out->order[(i + 1) % n], w = l->width > 0 ? l->width : 1;
			if (!link_is_nv(l) || !((l->a == a && l->b == b) || (l->a == b && l->b == a)))
				continue;
			if (l->Bps / w > best) {
				best = l->Bps / w;
				latency = l->latency_s;
				out->slowest = best < slow ? (int32_t)k : out->slowest;
			}
			datasheet = fmin(datasheet, l->datasheet_Bps / w);
		}
		slow = fmin(slow, best);
		out->latency_s += latency / n;
	}
	out->datasheet_Bps = out->rings * datasheet;
}

/* Links of several speeds: as many rings as all of them allow at the slowest's pace, or fewer over the fast ones. */
static enum status try_links(const struct graph *g, const int32_t *index, const int32_t *member, int32_t n,
	struct host_ring *out, struct error *e)
{
	double rates[PER_LINK_RATES];
	int32_t n_rates = 0;
	if (n > RING_PACK_MOST)
		return ST_OK;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		double rate = l->Bps / (l->width > 0 ? l->width : 1);
		bool known = index[l->a] < 0 || index[l->b] < 0 || !link_is_nv(l);
		for (int32_t k = 0; k < n_rates && !known; k++)
			known = fabs(rates[k] - rate) <= 1e-9 * rate;
		if (!known && n_rates < PER_LINK_RATES)
			rates[n_rates++] = rate;
	}
	if (!n_rates)
		return ST_OK;
	int32_t *width = malloc((size_t)(n * n) * sizeof *width), *order = malloc((size_t)n * sizeof *order);
	enum status st = width && order ? ST_OK : error_nomem(e, "a group's rings");
	for (int32_t k = 0; k < n_rates && !st; k++) {
		widths(g, index, n, rates[k], width);
		int32_t rings = ring_pack(n, width, order);
		if (rings < 0)
			st = error_nomem(e, "a group's rings");
		if (!(rings * rates[k] > out->Bps))
			continue;
		out->Bps = rings * rates[k];
		out->rings = rings;
		for (int32_t i = 0; i < n; i++)
			out->order[i] = member[order[i]];
	}
	if (!st && out->Bps > 0)
		rates_of_links(g, n, out);
	free(width);
	free(order);
	return st;
}

/* A compiler lays each dimension of a mesh along axes of a torus of its own, so that its groups do not share links with
 * those of other dimensions (jax.experimental.mesh_utils.create_device_mesh). Of a torus with equal axes, n of N chips
 * that span a of its A axes have the links of these: a / A = log n / log N of a chip's, and one at least. */
static void try_axes(const struct graph *g, const int32_t *member, int32_t n, struct host_ring *out)
{
	double Bps = 0, datasheet = 0, share = log(n) / log((double)g->gpu.n);
	for (size_t k = 0; k < g->link.n; k++) {
		const struct link *l = &g->link.at[k];
		if (!link_is_nv(l) || (l->a != member[0] && l->b != member[0]))
			continue;
		out->slowest = (int32_t)k;
		out->latency_s = l->latency_s;
		Bps += l->Bps;
		datasheet += l->datasheet_Bps;
	}
	if (out->slowest < 0)
		return;
	const struct link *one = &g->link.at[out->slowest];
	share = fmax(share, one->Bps / Bps);
	out->Bps = share * Bps;
	out->datasheet_Bps = share * datasheet;
	out->rings = (int32_t)fmax(1, out->Bps / (one->Bps / (one->width > 0 ? one->width : 1)));
	memcpy(out->order, member, (size_t)n * sizeof *member);
}

/* ---- any routes ---- */

struct search {
	const struct graph *g;
	const struct route *route; /* n x n */
	int32_t n, steps;
	int32_t *load;      /* flows, by 2 x link + direction */
	double bound, best; /* seconds a byte of the slowest link: no order can have less; the least so far */
	int32_t order[SEARCHED], best_order[SEARCHED];
	bool used[SEARCHED];
};

/* Adds a hop's flow (by = 1) or takes it away; the largest time a byte on the links it touches. */
static double put(struct search *s, int32_t a, int32_t b, int32_t by)
{
	const struct route *r = &s->route[a * s->n + b];
	double worst = 0;
	for (int32_t i = 0; i < r->n; i++) {
		int32_t *load = &s->load[2 * r->link[i] + r->reverse[i]];
		*load += by;
		worst = fmax(worst, *load / s->g->link.at[r->link[i]].Bps);
	}
	return worst;
}

static double cost_of(struct search *s, const int32_t *order)
{
	double worst = 0;
	for (int32_t i = 0; i < s->n; i++)
		worst = fmax(worst, put(s, order[i], order[(i + 1) % s->n], 1));
	for (int32_t i = 0; i < s->n; i++)
		put(s, order[i], order[(i + 1) % s->n], -1);
	return worst;
}

static void consider(struct search *s, const int32_t *order)
{
	double cost = cost_of(s, order);
	if (!(cost < s->best))
		return;
	s->best = cost;
	memcpy(s->best_order, order, (size_t)s->n * sizeof *order);
}

/* -1 when out of memory. Whatever the order, a member sends over the links that all its routes have in common, and
 * receives over those that all routes to it have. */
static double lower_bound(struct search *s, int32_t links)
{
	double worst = 0;
	int32_t *sum = calloc((size_t)links * 2 + 1, sizeof *sum);
	for (int32_t way = 0; way < 2 && sum; way++) {
		memset(sum, 0, (size_t)links * 2 * sizeof *sum);
		for (int32_t m = 0; m < s->n; m++) {
			for (int32_t k = 0; k < s->n; k++) {
				if (k != m)
					way ? put(s, k, m, 1) : put(s, m, k, 1);
			}
			const struct route *any = way ? &s->route[(m ? 0 : 1) * s->n + m]
			                              : &s->route[m * s->n + (m ? 0 : 1)];
			for (int32_t i = 0; i < any->n; i++) {
				int32_t at = 2 * any->link[i] + any->reverse[i];
				if (s->load[at] >= s->n - 1)
					worst = fmax(worst, ++sum[at] / s->g->link.at[any->link[i]].Bps);
			}
			for (int32_t k = 0; k < s->n; k++) {
				if (k != m)
					way ? put(s, k, m, -1) : put(s, m, k, -1);
			}
		}
	}
	if (!sum)
		return -1;
	free(sum);
	return worst;
}

static void place(struct search *s, int32_t at, double worst)
{
	if (s->best <= s->bound || s->steps <= 0)
		return;
	int32_t last = s->order[at - 1];
	if (at == s->n) {
		double cost = s->order[1] <= last ? fmax(worst, put(s, last, s->order[0], 1))
		                                  : INFINITY; /* either way round is the same */
		if (s->order[1] <= last)
			put(s, last, s->order[0], -1);
		if (cost < s->best) {
			s->best = cost;
			memcpy(s->best_order, s->order, (size_t)s->n * sizeof *s->order);
		}
		return;
	}
	for (int32_t v = 1; v < s->n; v++) {
		if (s->used[v] || s->steps <= 0)
			continue;
		s->steps--;
		double next = fmax(worst, put(s, last, v, 1));
		if (next < s->best) {
			s->used[v] = true;
			s->order[at] = v;
			place(s, at + 1, next);
			s->used[v] = false;
		}
		put(s, last, v, -1);
	}
}

/* Always on to the nearest member that is left. */
static void greedy(const struct search *s, int32_t *order)
{
	bool used[SEARCHED] = {true};
	order[0] = 0;
	for (int32_t i = 1; i < s->n; i++) {
		int32_t best = -1;
		for (int32_t v = 1; v < s->n; v++) {
			const struct route *x = &s->route[order[i - 1] * s->n + v],
					   *y = best < 0 ? NULL : &s->route[order[i - 1] * s->n + best];
			if (!used[v] && (!y || x->level < y->level || (x->level == y->level && x->Bps > y->Bps)))
				best = v;
		}
		used[best] = true;
		order[i] = best;
	}
}

static enum status best_order(struct router *r, const struct graph *g, const int32_t *member, int32_t n, int32_t *order,
	struct error *e)
{
	struct search s = {.g = g, .n = n, .steps = STEPS, .best = INFINITY, .used = {true}};
	int32_t first[SEARCHED];
	struct route *route = calloc((size_t)(n * n), sizeof *route);
	enum status st = ST_OK;
	s.load = calloc(2 * g->link.n + 1, sizeof *s.load);
	if (!route || !s.load)
		st = error_nomem(e, "a group's ring");
	for (int32_t i = 0; i < n * n && !st; i++)
		st = router_route(r, member[i / n], member[i % n], &route[i], e);
	s.route = route;
	if (!st && (s.bound = lower_bound(&s, (int32_t)g->link.n) * (1 + 1e-12)) < 0)
		st = error_nomem(e, "a group's ring");
	if (!st) {
		for (int32_t i = 0; i < n; i++)
			first[i] = i;
		consider(&s, first);
		greedy(&s, first);
		consider(&s, first);
		place(&s, 1, 0);
		for (int32_t i = 0; i < n; i++)
			order[i] = member[s.best_order[i]];
	}
	free(route);
	free(s.load);
	return st;
}

static enum status try_flows(struct router *r, const struct graph *g, const int32_t *member, int32_t n,
	struct host_ring *out, struct error *e)
{
	enum status st = ST_OK;
	memcpy(out->order, member, (size_t)n * sizeof *member);
	out->hop = calloc((size_t)n, sizeof *out->hop);
	int32_t *load = calloc(2 * g->link.n + 1, sizeof *load);
	if (!out->hop || !load)
		st = error_nomem(e, "a group's ring");
	if (!st && n > 3 && n <= SEARCHED)
		st = best_order(r, g, member, n, out->order, e);
	for (int32_t i = 0; i < n && !st; i++) {
		st = router_route(r, out->order[i], out->order[(i + 1) % n], &out->hop[i], e);
		out->latency_s += out->hop[i].latency_s / n;
		for (int32_t k = 0; k < out->hop[i].n; k++)
			load[2 * out->hop[i].link[k] + out->hop[i].reverse[k]]++;
	}
	out->Bps = INFINITY;
	for (size_t k = 0; k < 2 * g->link.n && load; k++)
		if (load[k])
			out->Bps = fmin(out->Bps, g->link.at[k / 2].Bps / load[k]);
	out->rings = 1;
	free(load);
	return st;
}

/* ---- the choice ---- */

enum status ring_choose(struct router *r, const struct graph *g, const int32_t *member, int32_t n,
	struct host_ring *out, struct error *e)
{
	enum status st = ST_OK;
	*out = (struct host_ring){.kind = RING_ALONE,
		.n = n,
		.Bps = INFINITY,
		.datasheet_Bps = INFINITY,
		.slowest = -1};
	struct host_ring links = {.n = n, .slowest = -1}, flows = {.n = n, .slowest = -1};
	int32_t *index = malloc((g->vertex.n + 1) * sizeof *index);
	out->order = malloc((size_t)n * sizeof *out->order);
	links.order = malloc((size_t)n * sizeof *links.order);
	flows.order = malloc((size_t)n * sizeof *flows.order);
	if (!index || !out->order || !links.order || !flows.order) {
		st = error_nomem(e, "a group's ring");
		goto out;
	}
	memcpy(out->order, member, (size_t)n * sizeof *member);
	memset(index, -1, g->vertex.n * sizeof *index);
	for (int32_t i = 0; i < n; i++)
		index[member[i]] = i;
	if (n == 1)
		goto out;
	out->latency_s = 0;
	if (try_switch(g, index, n, out)) {
		out->kind = RING_SWITCH;
		out->rings = 1;
		goto out;
	}
	if ((st = try_links(g, index, member, n, &links, e)))
		goto out;
	if (g->torus && !(links.Bps > 0))
		try_axes(g, member, n, &links);
	links.kind = RING_LINKS;
	flows.kind = RING_FLOWS;
	if (!(g->torus && links.Bps > 0) && (n > 2 || !(links.Bps > 0)))
		if ((st = try_flows(r, g, member, n, &flows, e)))
			goto out;
	bool direct = links.Bps > 0 && links.Bps >= flows.Bps;
	struct host_ring empty = *out;
	*out = direct ? links : flows;
	out->fixed_Bps = links.Bps;
	out->fixed_datasheet_Bps = links.datasheet_Bps;
	*(direct ? &links : &flows) = empty;
out:
	free(index);
	ring_free(&links);
	ring_free(&flows);
	if (st)
		ring_free(out);
	return st;
}
