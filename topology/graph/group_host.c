/* All groups of one host while they run at once: rings share links, and those that leave the host share its NICs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "topology/graph/group_parts.h"

#define NICS_OF_A_GPU 64

/* One member's way to one of its NICs and out. */
struct exit_flow {
	int32_t group, nic, port; /* port: the NIC's link to the network */
	struct route route;
};

struct host {
	const struct graph *g;
	struct router *router;
	struct host_ring *ring;         /* of each group */
	int32_t *ring_load, *exit_load; /* flows, by 2 x link + direction */
	VEC(struct exit_flow) exits;
	enum route_level *nearest; /* scratch, by NIC's vertex */
};

/* Returns the rate of a NIC's transfers over a link. NCCL's search counts with 48 GB/s of a PCIe 5 x16 slot's 63, which
 * is not the most that was seen: NICs reached 49 GB/s through such a slot (published all-reduces on H100 with 400 Gb/s
 * a GPU), and copies between GPUs 56.5 (local-inference-lab/rtx6kpro, RTX PRO 6000): 0.9 of the raw rate, which leaves
 * headers of 256-byte payloads and flow control. */
#define SLOT_REACHED 0.9
static double exit_Bps(const struct link *l)
{
	return l->kind == LINK_PCIE && l->datasheet_Bps > 0 ? SLOT_REACHED * l->datasheet_Bps : l->Bps;
}

static bool without_limit(const struct link *l) { return l->kind == LINK_LOCAL && !(l->datasheet_Bps > 0); }

static void describe(const struct graph *g, int32_t link, int32_t flows, double Bps, struct group *out)
{
	const struct link *l = &g->link.at[link];
	char rate[QUANTITY_MAX];
	quantity_format(rate, Bps, UNIT_BYTE_PER_S);
	out->bottleneck = l->kind;
	int len = snprintf(out->bottleneck_text, sizeof out->bottleneck_text, "%s between %s and %s, ",
		link_kind_name(l->kind), g->vertex.at[l->a].label, g->vertex.at[l->b].label);
	if (len > 0 && (size_t)len < sizeof out->bottleneck_text)
		snprintf(out->bottleneck_text + len, sizeof out->bottleneck_text - (size_t)len,
			flows == 1 ? "%s" : "%2$" PRId32 " flows share %1$s", rate, flows);
}

/* ---- rings ---- */

static void describe_links(const struct graph *g, const struct host_ring *ring, struct group *out)
{
	const struct link *l = &g->link.at[ring->slowest];
	char rate[QUANTITY_MAX];
	describe(g, ring->slowest, 1, l->Bps, out);
	if (ring->kind == RING_SWITCH || ring->n == 2)
		return;
	quantity_format(rate, l->Bps / (l->width > 0 ? l->width : 1), UNIT_BYTE_PER_S);
	snprintf(out->bottleneck_text, sizeof out->bottleneck_text,
		"%s among %" PRId32 " GPUs, %" PRId32 " rings of %s", link_kind_name(l->kind), ring->n, ring->rings,
		rate);
}

static void ring_rate(const struct host *h, const struct host_ring *ring, struct group *out)
{
	bool known = true;
	if (ring->kind != RING_FLOWS) {
		out->ring_Bps = ring->Bps;
		out->ring_datasheet_Bps = ring->datasheet_Bps;
		if (ring->slowest >= 0)
			describe_links(h->g, ring, out);
		return;
	}
	out->ring_Bps = out->ring_datasheet_Bps = INFINITY;
	for (int32_t i = 0; i < ring->n; i++)
		for (int32_t k = 0; k < ring->hop[i].n; k++) {
			int32_t at = ring->hop[i].link[k], flows = h->ring_load[2 * at + ring->hop[i].reverse[k]];
			const struct link *l = &h->g->link.at[at];
			if (l->Bps / flows < out->ring_Bps) {
				out->ring_Bps = l->Bps / flows;
				describe(h->g, at, flows, l->Bps, out);
			}
			if (without_limit(l))
				continue;
			known = known && l->datasheet_Bps > 0;
			out->ring_datasheet_Bps = fmin(out->ring_datasheet_Bps, l->datasheet_Bps / flows);
		}
	if (!known || isinf(out->ring_datasheet_Bps))
		out->ring_datasheet_Bps = 0;
	if (ring->fixed_Bps > out->ring_Bps) {
		out->ring_Bps = ring->fixed_Bps;
		out->ring_datasheet_Bps = ring->fixed_datasheet_Bps;
	}
}

static enum status pair_rate(const struct host *h, const struct host_ring *ring, double *Bps, struct error *e)
{
	struct route route;
	if (ring->n < 2)
		return ST_OK;
	enum status st = router_route(h->router, ring->order[0], ring->order[1], &route, e);
	*Bps = route.Bps;
	return st;
}

/* ---- the way out ---- */

static void count_exit(struct host *h, const struct exit_flow *f)
{
	for (int32_t i = 0; i < f->route.n; i++)
		h->exit_load[2 * f->route.link[i] + f->route.reverse[i]]++;
	h->exit_load[2 * f->port]++; /* all leave by it: one direction is enough */
}

static enum status add_exits(struct host *h, int32_t group, int32_t gpu, struct error *e)
{
	int32_t nics[NICS_OF_A_GPU], n = cluster_nics(h->router, h->g, gpu, nics, NICS_OF_A_GPU);
	if (n < 0)
		return error_nomem(e, "a group's way out");
	if (n < 1)
		return error_set(e, ST_RUN, "%s has no NIC that leads out of its host", h->g->vertex.at[gpu].label);
	for (int32_t i = 0; i < n && i < NICS_OF_A_GPU; i++) {
		struct exit_flow f = {.group = group, .nic = nics[i], .port = router_port(h->router, nics[i])};
		enum status st = router_route(h->router, gpu, nics[i], &f.route, e);
		if (st)
			return st;
		if (!vec_push(&h->exits, f))
			return error_nomem(e, "a group's way out");
	}
	return ST_OK;
}

/* A ring leaves the host by the member that is nearest to the NIC: of the flows from `first` on, all of one group,
 * keeps those that no other member could spare. */
static void keep_nearest(struct host *h, size_t first)
{
	size_t kept = first;
	for (size_t i = first; i < h->exits.n; i++)
		h->nearest[h->exits.at[i].nic] = ROUTE_LEVELS;
	for (size_t i = first; i < h->exits.n; i++) {
		const struct exit_flow *f = &h->exits.at[i];
		if (f->route.level < h->nearest[f->nic])
			h->nearest[f->nic] = f->route.level;
	}
	for (size_t i = first; i < h->exits.n; i++) {
		struct exit_flow f = h->exits.at[i];
		if (f.route.level > h->nearest[f.nic])
			continue;
		h->exits.at[kept++] = f;
		count_exit(h, &f);
	}
	h->exits.n = kept;
}

/* Takes a link of the way out into account; true when it is the slowest so far. */
static bool narrows(const struct host *h, int32_t link, int32_t at, double *Bps, double *datasheet, bool *known)
{
	const struct link *l = &h->g->link.at[link];
	double share = exit_Bps(l) / h->exit_load[at];
	bool slower = share < *Bps;
	*Bps = fmin(*Bps, share);
	if (!without_limit(l)) {
		*known = *known && l->datasheet_Bps > 0;
		*datasheet = fmin(*datasheet, l->datasheet_Bps / h->exit_load[at]);
	}
	return slower;
}

/* Adds up what the group's members get out of the host, and lowers the group's rate to it. */
static void leave(const struct host *h, int32_t group, struct group_part *part)
{
	double out_Bps = 0, out_datasheet = 0, slowest = INFINITY;
	int32_t link = -1, flows = 0;
	bool known = true;
	for (size_t i = 0; i < h->exits.n; i++) {
		const struct exit_flow *f = &h->exits.at[i];
		double Bps = INFINITY, datasheet = INFINITY;
		if (f->group != group)
			continue;
		int32_t at = f->port, load = h->exit_load[2 * at];
		narrows(h, at, 2 * at, &Bps, &datasheet, &known);
		for (int32_t k = 0; k < f->route.n; k++) {
			int32_t where = 2 * f->route.link[k] + f->route.reverse[k];
			if (narrows(h, f->route.link[k], where, &Bps, &datasheet, &known)) {
				at = f->route.link[k];
				load = h->exit_load[where];
			}
		}
		out_Bps += Bps;
		out_datasheet += datasheet;
		if (Bps < slowest) {
			slowest = Bps;
			link = at;
			flows = load;
		}
		part->network_latency_s = fmax(part->network_latency_s,
			fmax(f->route.latency_s, h->g->link.at[f->port].latency_s));
	}
	part->group.network_Bps = out_Bps / part->members;
	part->group.ring_datasheet_Bps = known ? fmin(part->group.ring_datasheet_Bps, out_datasheet) : 0;
	if (out_Bps < part->group.ring_Bps) {
		part->group.ring_Bps = out_Bps;
		describe(h->g, link, flows, exit_Bps(&h->g->link.at[link]), &part->group);
	}
}

/* ---- all together ---- */

static int32_t gpu_number(const struct graph *g, int32_t vertex)
{
	for (size_t i = 0; i < g->gpu.n; i++)
		if (g->gpu.at[i] == vertex)
			return (int32_t)i;
	return -1;
}

static enum status fill(const struct host *h, int32_t group, int64_t size, struct group_part *part, struct error *e)
{
	const struct host_ring *ring = &h->ring[group];
	struct group *out = &part->group;
	*part = (struct group_part){.members = ring->n,
		.group = {.in_node = ring->n == size, .rings = ring->rings, .ring_latency_s = ring->latency_s}};
	ring_rate(h, ring, out);
	out->nvlink_switch = ring->kind == RING_SWITCH && out->in_node;
	out->n_order = ring->n < GROUP_ORDER ? ring->n : GROUP_ORDER;
	for (int32_t i = 0; i < out->n_order; i++)
		out->order[i] = gpu_number(h->g, ring->order[i]);
	if (!out->in_node)
		leave(h, group, part);
	return pair_rate(h, ring, &out->pair_Bps, e);
}

static enum status set_up(struct host *h, const int32_t *label, int32_t n_groups, int64_t size, struct error *e)
{
	size_t links = h->g->link.n;
	h->router = router_create(h->g);
	h->ring = calloc((size_t)n_groups + 1, sizeof *h->ring);
	h->ring_load = calloc(2 * links + 1, sizeof *h->ring_load);
	h->exit_load = calloc(2 * links + 1, sizeof *h->exit_load);
	h->nearest = calloc(h->g->vertex.n + 1, sizeof *h->nearest);
	int32_t *member = malloc((h->g->gpu.n + 1) * sizeof *member);
	enum status st = h->router && h->ring && h->ring_load && h->exit_load && h->nearest && member
	                         ? ST_OK
	                         : error_nomem(e, "a host's groups");
	for (int32_t k = 0; k < n_groups && !st; k++) {
		int32_t n = 0;
		for (size_t i = 0; i < h->g->gpu.n; i++)
			if (label[i] == k)
				member[n++] = h->g->gpu.at[i];
		size_t first = h->exits.n;
		for (int32_t i = 0; i < n && n < size && !st; i++)
			st = add_exits(h, k, member[i], e);
		keep_nearest(h, first);
		struct host_ring *ring = &h->ring[k];
		if (st || (st = ring_choose(h->router, h->g, member, n, ring, e)))
			break;
		for (int32_t i = 0; ring->kind == RING_FLOWS && i < n; i++)
			for (int32_t m = 0; m < ring->hop[i].n; m++)
				h->ring_load[2 * ring->hop[i].link[m] + ring->hop[i].reverse[m]]++;
	}
	free(member);
	return st;
}

enum status host_groups(const struct graph *g, const int32_t *label, int32_t n_groups, int64_t size,
	struct group_part *out, struct error *e)
{
	struct host h = {.g = g};
	enum status st = set_up(&h, label, n_groups, size, e);
	for (int32_t k = 0; k < n_groups && !st; k++)
		st = fill(&h, k, size, &out[k], e);
	for (int32_t k = 0; k < n_groups && h.ring; k++)
		ring_free(&h.ring[k]);
	router_destroy(h.router);
	free(h.ring);
	free(h.ring_load);
	free(h.exit_load);
	free(h.nearest);
	vec_free(&h.exits);
	return st;
}
