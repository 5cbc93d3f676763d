/* The link graph of one host of a described system. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/rates.h"
#include "topology/catalogue/system_parts.h"

struct builder {
	const struct system_spec *s;
	struct graph *g;
	enum evidence from;
	int64_t total, used; /* GPUs that the host has, and those in use */
	int64_t switches;
	int32_t *cpu;        /* [sockets] vertices */
	int32_t *pci_switch; /* [switches] */
	int32_t *port;       /* [total] host bridge of a GPU's slot; -1: below a switch, or on C2C */
	int32_t *gpu;        /* [total]; -1: not in use */
	struct error *e;
};

/* ---- vertices and links ---- */

static enum status add_vertex(struct builder *b, struct vertex v, int32_t *at)
{
	*at = graph_add_vertex(b->g, &v);
	return *at >= 0 ? ST_OK : error_nomem(b->e, "a host's graph");
}

static struct link link_of(const struct builder *b, enum link_kind kind, struct rate r, int64_t width, int64_t gen)
{
	return graph_link_at((struct link){.kind = kind, .width = (int32_t)width, .gen = (int32_t)gen, .from = b->from},
		r);
}

static enum status join(struct builder *b, int32_t from, int32_t to, struct link l)
{
	l.a = from;
	l.b = to;
	return graph_add_link(b->g, &l) >= 0 ? ST_OK : error_nomem(b->e, "a host's graph");
}

static struct link slot(const struct builder *b)
{
	struct rate r = rate_pcie(b->s->pcie_gen, b->s->pcie_lanes);
	if (b->s->fabric == FABRIC_NONE) { /* then the description is about the slot */
		r.Bps = b->s->intra_usable_Bps;
		r.datasheet_Bps = b->s->intra_datasheet_Bps;
		r.latency_s = b->s->intra_latency_s;
	}
	struct link l = link_of(b, LINK_PCIE, r, b->s->pcie_lanes, b->s->pcie_gen);
	l.assumed = b->s->pcie_gen == 0;
	return l;
}

/* A root port of this socket, and the way from it to the CPU. */
static enum status add_port(struct builder *b, int64_t socket, int32_t *at)
{
	enum status st = add_vertex(b, graph_vertex_init(VERTEX_BRIDGE, b->from), at);
	if (!st)
		b->g->vertex.at[*at].numa = (int32_t)socket;
	return st ? st : join(b, *at, b->cpu[socket], link_of(b, LINK_LOCAL, rate_local(), 0, 0));
}

/* Where item i of n sits when n items are spread over `over` places in order. */
static int64_t spread(int64_t i, int64_t n, int64_t over) { return i * over / n; }

/* ---- the parts of a host ---- */

static enum status add_sockets(struct builder *b)
{
	const struct system_spec *s = b->s;
	/* Processors without a name: PCIe 4 came with AMD's; both makers' have PCIe 5, and the slower of the two
	 * between sockets is AMD's; before that Intel's is. */
	struct rate rate = rate_socket(s->cpu[0] ? s->cpu : s->pcie_gen >= 4 ? "EPYC" : "", 0);
	if (s->socket_Bps > 0)
		rate.Bps = s->socket_Bps;
	enum status st = ST_OK;
	for (int64_t i = 0; i < s->sockets && !st; i++) {
		struct vertex v = graph_vertex_init(VERTEX_CPU, b->from);
		v.numa = v.cpu.package = (int32_t)i;
		snprintf(v.cpu.model, sizeof v.cpu.model, "%s", s->cpu);
		snprintf(v.name, sizeof v.name, "%s", s->cpu);
		st = add_vertex(b, v, &b->cpu[i]);
		for (int64_t j = 0; j < i && !st; j++) {
			struct link l = link_of(b, LINK_SOCKET, rate, 0, 0);
			l.assumed = !(s->socket_Bps > 0) && !s->cpu[0];
			st = join(b, b->cpu[j], b->cpu[i], l);
		}
	}
	return st;
}

static enum status add_switches(struct builder *b)
{
	enum status st = ST_OK;
	for (int64_t i = 0; i < b->switches && !st; i++) {
		int64_t socket = spread(i, b->switches, b->s->sockets);
		int32_t port;
		struct vertex v = graph_vertex_init(VERTEX_PCI_SWITCH, b->from);
		v.numa = (int32_t)socket;
		struct link uplink = slot(b);
		if (b->s->uplink_Bps > 0)
			uplink.Bps = uplink.datasheet_Bps = b->s->uplink_Bps;
		if (!(st = add_vertex(b, v, &b->pci_switch[i])) && !(st = add_port(b, socket, &port)))
			st = join(b, b->pci_switch[i], port, uplink);
	}
	return st;
}

static bool in_use(const struct builder *b, int64_t i)
{
	if (b->s->fabric != FABRIC_NVSWITCH)
		return i < b->used;
	for (int64_t k = 0; k < b->used; k++)
		if (spread(k, b->used, b->total) == i)
			return true;
	return false;
}

static int64_t socket_of_gpu(const struct builder *b, int64_t i)
{
	return b->switches ? spread(i / b->s->gpus_per_switch, b->switches, b->s->sockets)
	                   : spread(i, b->total, b->s->sockets);
}

static struct vertex gpu_vertex(const struct builder *b, int64_t socket, int64_t links)
{
	const struct device_spec *d = &b->s->device;
	struct vertex v = graph_vertex_init(VERTEX_GPU, b->from);
	v.numa = (int32_t)socket;
	snprintf(v.name, sizeof v.name, "%.*s", (int)sizeof v.name - 1, d->name);
	v.gpu = (struct gpu_facts){
		.mem_B = d->mem_B,
		.compute_capability = (int32_t)d->compute_capability,
		.pcie_gen = b->s->c2c ? 0 : b->s->pcie_gen,
		.pcie_gen_max = b->s->c2c ? 0 : b->s->pcie_gen,
		.pcie_width = b->s->c2c ? 0 : b->s->pcie_lanes,
		.pcie_width_max = b->s->c2c ? 0 : b->s->pcie_lanes,
		.nvlinks = (int32_t)links,
		.nvlink_gen = links ? (int32_t)d->nvlink_gen : 0,
		.power_default_W = d->power_W,
		.no_peer = b->s->no_peer,
	};
	snprintf(v.gpu.device, sizeof v.gpu.device, "%s", d->id);
	return v;
}

static enum status add_gpus(struct builder *b, int64_t links)
{
	enum status st = ST_OK;
	for (int64_t i = 0; i < b->total && !st; i++) {
		int64_t socket = socket_of_gpu(b, i);
		b->gpu[i] = b->port[i] = -1;
		bool hosts_nic = !b->switches && b->s->nics >= b->total;
		if (!b->switches && !b->s->c2c && (in_use(b, i) || hosts_nic))
			st = add_port(b, socket, &b->port[i]);
		if (st || !in_use(b, i) || (st = add_vertex(b, gpu_vertex(b, socket, links), &b->gpu[i])))
			continue;
		if (b->s->c2c)
			st = join(b, b->gpu[i], b->cpu[socket], link_of(b, LINK_C2C, rate_c2c(), 0, 0));
		else
			st = join(b, b->gpu[i], b->switches ? b->pci_switch[i / b->s->gpus_per_switch] : b->port[i],
				slot(b));
	}
	return st;
}

/* A NIC sits below a switch, else at the root port of its GPU where every GPU has one, else on a root port of its own.
 */
static enum status place_nic(struct builder *b, int64_t j, int32_t *parent, int64_t *socket)
{
	const struct system_spec *s = b->s;
	int64_t below = s->nics_per_switch > 0 ? j / s->nics_per_switch : INT64_MAX;
	if (below < b->switches) {
		*parent = b->pci_switch[below];
		*socket = spread(below, b->switches, s->sockets);
		return ST_OK;
	}
	if (!b->switches && !s->c2c && s->nics >= b->total) {
		int64_t gpu = spread(j, s->nics, b->total);
		*parent = b->port[gpu];
		*socket = socket_of_gpu(b, gpu);
		return ST_OK;
	}
	*socket = spread(j, s->nics, s->sockets);
	return add_port(b, *socket, parent);
}

static enum status add_nics(struct builder *b)
{
	const struct system_spec *s = b->s;
	int32_t network;
	enum status st = s->nics ? add_vertex(b, graph_vertex_init(VERTEX_NETWORK, b->from), &network) : ST_OK;
	for (int64_t j = 0; j < s->nics && !st; j++) {
		int32_t parent, nic;
		int64_t socket;
		if ((st = place_nic(b, j, &parent, &socket)))
			break;
		struct vertex v = graph_vertex_init(VERTEX_NIC, b->from);
		v.numa = (int32_t)socket;
		v.nic = (struct nic_facts){.Bps = s->nic_Bps, .port = 1};
		struct link bus = slot(b), wire = link_of(b, LINK_NETWORK, rate_network(8 * s->nic_Bps), 0, 0);
		bus.Bps = fmax(bus.Bps, s->nic_Bps); /* its slot is made for it */
		bus.datasheet_Bps = fmax(bus.datasheet_Bps, s->nic_Bps);
		wire.latency_s = s->nic_latency_s;
		if (!(st = add_vertex(b, v, &nic)) && !(st = join(b, nic, parent, bus)))
			st = join(b, nic, network, wire);
	}
	return st;
}

/* ---- the fabric ---- */

static struct link fabric_link(const struct builder *b, int64_t width, double share)
{
	const struct device_spec *d = &b->s->device;
	struct rate r = {b->s->intra_usable_Bps * share, b->s->intra_datasheet_Bps * share, b->s->intra_latency_s,
		NULL};
	return link_of(b, links_are_nvlink(d) ? LINK_NVLINK : LINK_XGMI, r, width, d->nvlink_gen);
}

static enum status join_by_switch(struct builder *b)
{
	int32_t nvswitch;
	enum status st = add_vertex(b, graph_vertex_init(VERTEX_NVSWITCH, b->from), &nvswitch);
	for (size_t i = 0; i < b->g->gpu.n && !st; i++)
		st = join(b, b->g->gpu.at[i], nvswitch, fabric_link(b, b->s->device.nvlink_links, 1));
	return st;
}

static enum status join_by_wires(struct builder *b, const struct wires *wires)
{
	enum status st = ST_OK;
	b->g->torus = b->s->fabric == FABRIC_TORUS;
	for (size_t i = 0; i < wires->wire.n && !st; i++) {
		const struct wire *w = &wires->wire.at[i];
		if (b->gpu[w->a] >= 0 && b->gpu[w->b] >= 0)
			st = join(b, b->gpu[w->a], b->gpu[w->b],
				fabric_link(b, w->width, (double)w->width / (double)wires->most));
	}
	return st;
}

static enum status build(struct builder *b)
{
	struct wires wires = {0};
	enum status st = system_wires(b->s, b->total, &wires, b->e);
	int64_t links = b->s->fabric == FABRIC_NVSWITCH ? b->s->device.nvlink_links : wires.most;
	if (st || (st = add_sockets(b)) || (st = add_switches(b)) || (st = add_gpus(b, links)) || (st = add_nics(b)))
		goto out;
	if (b->used > 1)
		st = b->s->fabric == FABRIC_NVSWITCH ? join_by_switch(b) : join_by_wires(b, &wires);
out:
	vec_free(&wires.wire);
	return st;
}

enum status system_graph(const struct system_spec *s, int64_t gpus, struct graph **out, struct error *e)
{
	struct builder b = {.s = s, .from = s->from_line ? SAID_BY_LINE : SAID_BY_CATALOGUE, .e = e};
	b.used = gpus > 0 ? gpus : s->gpus;
	b.total = b.used > s->gpus ? b.used : s->gpus;
	b.switches = s->gpus_per_switch > 0 && !s->c2c ? (b.total + s->gpus_per_switch - 1) / s->gpus_per_switch : 0;
	if (b.used < 1 || b.used > SYSTEM_GPUS)
		return error_set(e, ST_INPUT, "%s: %" PRId64 " GPUs a host: expected 1 to %d", s->name, b.used,
			SYSTEM_GPUS);
	enum status st = ST_OK;
	b.g = graph_create(b.from);
	b.cpu = calloc((size_t)s->sockets, sizeof *b.cpu);
	b.pci_switch = calloc((size_t)b.switches + 1, sizeof *b.pci_switch);
	b.port = calloc((size_t)b.total, sizeof *b.port);
	b.gpu = calloc((size_t)b.total, sizeof *b.gpu);
	if (!b.g || !b.cpu || !b.pci_switch || !b.port || !b.gpu)
		st = error_nomem(e, "a host's graph");
	if (!st) {
		snprintf(b.g->model, sizeof b.g->model, "%.*s", (int)sizeof b.g->model - 1, s->name);
		st = build(&b);
	}
	free(b.cpu);
	free(b.pci_switch);
	free(b.port);
	free(b.gpu);
	if (st) {
		graph_destroy(b.g);
		return st;
	}
	*out = b.g;
	return ST_OK;
}
