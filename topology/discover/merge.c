/* Two graphs of the same host into one: facts of devices, devices that one source misses, NVLinks, and where they
 * disagree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/discover/merge.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

int join_rank(enum evidence from)
{
	static const int rank[EVIDENCES] = {
		[SAID_BY_HWLOC] = 1,
		[SAID_BY_HWLOC_XML] = 1,
		[SAID_BY_NCCL_XML] = 2,
		[SAID_BY_SMI_TOPO] = 3,
		[SAID_BY_SMI_QUERY] = 4,
		[SAID_BY_NVML] = 5,
	};
	return rank[from];
}

enum evidence merge_said_by(const struct graph *g, enum evidence from)
{
	return from == SAID_BY_CATALOGUE ? g->source : from;
}

static void take_text(char *to, size_t size, const char *text, bool wins)
{
	if (text[0] && (wins || !to[0]))
		snprintf(to, size, "%s", text);
}

static void take_int(int32_t *to, int32_t value, bool wins)
{
	if (value > 0 && (wins || *to <= 0))
		*to = value;
}

static void take_double(double *to, double value, bool wins)
{
	if (value > 0 && (wins || !(*to > 0)))
		*to = value;
}

static void take_pci(struct graph *g, int32_t at, const char *pci)
{
	struct vertex *b = &g->vertex.at[at];
	if (!b->pci[0] && pci[0] && graph_find_pci(g, pci) < 0)
		snprintf(b->pci, sizeof b->pci, "%s", pci);
}

static enum status take_numa(struct graph *g, int32_t at, const struct vertex *v, enum evidence from, struct error *e)
{
	struct vertex *b = &g->vertex.at[at];
	if (b->numa < 0)
		b->numa = v->numa;
	else if (v->numa >= 0 && v->numa != b->numa)
		return graph_remark(g, true, e,
			"%s is on NUMA node %d according to %s, on %d according to %s: %s is believed", b->label,
			b->numa, evidence_name(merge_said_by(g, b->from)), v->numa, evidence_name(from),
			evidence_name(merge_said_by(g, b->from)));
	return ST_OK;
}

/* Lanes are compared, the generation as trained is not: an idle GPU trains down and up again between two looks at it.
 * It may not lie above what the slot can, though. */
static enum status compare_pcie(struct graph *g, const struct vertex *b, const struct vertex *v, enum evidence from,
	struct error *e)
{
	const char *one = evidence_name(merge_said_by(g, b->from)), *two = evidence_name(from);
	enum status st = ST_OK;
	if (b->gpu.pcie_width > 0 && v->gpu.pcie_width > 0 && b->gpu.pcie_width != v->gpu.pcie_width)
		st = graph_remark(g, true, e, "%s has PCIe x%d according to %s, x%d according to %s", b->label,
			b->gpu.pcie_width, one, v->gpu.pcie_width, two);
	if (!st && v->gpu.pcie_gen_max > 0 && b->gpu.pcie_gen > v->gpu.pcie_gen_max)
		st = graph_remark(g, true, e, "%s has PCIe generation %d according to %s, at most %d according to %s",
			b->label, b->gpu.pcie_gen, one, v->gpu.pcie_gen_max, two);
	return st;
}

enum status join_gpu(struct graph *g, int32_t at, const struct vertex *v, enum evidence from, struct error *e)
{
	struct vertex *b = &g->vertex.at[at];
	const struct gpu_facts *f = &v->gpu;
	bool wins = join_rank(from) > join_rank(merge_said_by(g, b->from));
	enum status st = take_numa(g, at, v, from, e);
	if (!st)
		st = compare_pcie(g, b, v, from, e);
	if (!st && b->gpu.compute_capability > 0 && f->compute_capability > 0 &&
		b->gpu.compute_capability != f->compute_capability)
		st = graph_remark(g, true, e, "%s is sm_%d according to %s, sm_%d according to %s", b->label,
			b->gpu.compute_capability, evidence_name(merge_said_by(g, b->from)), f->compute_capability,
			evidence_name(from));
	if (st)
		return st;
	take_pci(g, at, v->pci);
	take_text(b->name, sizeof b->name, v->name, wins);
	take_text(b->cores, sizeof b->cores, v->cores, false);
	take_text(b->gpu.device, sizeof b->gpu.device, f->device, wins);
	take_int(&b->gpu.compute_capability, f->compute_capability, wins);
	take_int(&b->gpu.pcie_gen, f->pcie_gen, wins);
	take_int(&b->gpu.pcie_gen_max, f->pcie_gen_max, wins);
	take_int(&b->gpu.pcie_width, f->pcie_width, wins);
	take_int(&b->gpu.pcie_width_max, f->pcie_width_max, wins);
	take_int(&b->gpu.nvlinks, f->nvlinks, wins);
	take_int(&b->gpu.nvlink_gen, f->nvlink_gen, wins);
	take_double(&b->gpu.clock_Hz, f->clock_Hz, wins);
	take_double(&b->gpu.clock_max_Hz, f->clock_max_Hz, wins);
	take_double(&b->gpu.power_limit_W, f->power_limit_W, wins);
	take_double(&b->gpu.power_default_W, f->power_default_W, wins);
	if (f->mem_B > 0 && (wins || b->gpu.mem_B == 0))
		b->gpu.mem_B = f->mem_B;
	b->gpu.throttle |= f->throttle;
	if (f->peer_known) { /* the driver was asked */
		b->gpu.no_peer = f->no_peer;
		b->gpu.peer_known = true;
	} else if (!b->gpu.peer_known) {
		b->gpu.no_peer |= f->no_peer;
	}
	return ST_OK;
}

static enum status join_other(struct merge *m, int32_t at, const struct vertex *v)
{
	struct vertex *b = &m->base->vertex.at[at];
	take_pci(m->base, at, v->pci);
	take_text(b->name, sizeof b->name, v->name, false);
	take_text(b->cores, sizeof b->cores, v->cores, false);
	if (v->kind == VERTEX_NIC) {
		take_double(&b->nic.Bps, v->nic.Bps, false);
		take_int(&b->nic.port, v->nic.port, false);
		b->nic.infiniband |= v->nic.infiniband;
		return take_numa(m->base, at, v, merge_said_by(m->more, v->from), m->e);
	}
	if (v->kind == VERTEX_CPU) {
		if (b->numa < 0)
			b->numa = v->numa;
		if (b->cpu.package < 0)
			b->cpu.package = v->cpu.package;
		take_text(b->cpu.model, sizeof b->cpu.model, v->cpu.model, false);
		if (b->cpu.mem_B == 0)
			b->cpu.mem_B = v->cpu.mem_B;
	}
	return ST_OK;
}

static enum status merge_facts(struct merge *m)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < m->more->vertex.n && !st; i++) {
		const struct vertex *v = &m->more->vertex.at[i];
		if (m->to[i] >= 0)
			st = v->kind == VERTEX_GPU
			             ? join_gpu(m->base, m->to[i], v, merge_said_by(m->more, v->from), m->e)
			             : join_other(m, m->to[i], v);
	}
	return st;
}

/* The shortest way from a device towards a CPU, up to the first vertex that `goal` accepts; path[0] is the device. Its
 * length, 0 where there is none or no memory. */
static size_t climb(const struct graph *g, int32_t from, bool (*goal)(const void *, int32_t), const void *ctx,
	int32_t *path)
{
	int32_t *before = malloc((g->vertex.n + 1) * sizeof *before),
		*queue = malloc((g->vertex.n + 1) * sizeof *queue);
	size_t head = 0, tail = 0, n = 0;
	if (!before || !queue)
		goto out;
	for (size_t i = 0; i < g->vertex.n; i++)
		before[i] = -2;
	before[from] = -1;
	queue[tail++] = from;
	while (head < tail && n == 0) {
		int32_t at = queue[head++];
		if (at != from && goal(ctx, at)) {
			for (int32_t v = at; v >= 0; v = before[v])
				n++;
			size_t k = n;
			for (int32_t v = at; v >= 0; v = before[v])
				path[--k] = v;
		}
		for (size_t i = 0; i < g->link.n; i++) {
			const struct link *l = &g->link.at[i];
			int32_t next = l->a == at ? l->b : l->b == at ? l->a : -1;
			if (next < 0 || before[next] != -2 ||
				(l->kind != LINK_PCIE && l->kind != LINK_LOCAL && l->kind != LINK_C2C))
				continue;
			enum vertex_kind kind = g->vertex.at[next].kind;
			if (kind != VERTEX_PCI_SWITCH && kind != VERTEX_BRIDGE && kind != VERTEX_CPU)
				continue;
			before[next] = at;
			queue[tail++] = next;
		}
	}
out:
	free(before);
	free(queue);
	return n;
}

static bool goal_joined(const void *ctx, int32_t v)
{
	const struct merge *m = ctx;
	return m->to[v] >= 0;
}

static bool goal_cpu(const void *ctx, int32_t v)
{
	return ((const struct graph *)ctx)->vertex.at[v].kind == VERTEX_CPU;
}

enum status merge_copy_link(struct merge *m, const struct link *l)
{
	struct link copy = *l;
	copy.a = m->to[l->a];
	copy.b = m->to[l->b];
	copy.from = merge_said_by(m->more, l->from);
	if (graph_link(m->base, copy.a, copy.b, copy.kind))
		return ST_OK;
	return graph_add_link(m->base, &copy) < 0 ? error_nomem(m->e, "a link") : ST_OK;
}

enum status merge_copy_vertex(struct merge *m, int32_t i)
{
	struct vertex v = m->more->vertex.at[i];
	v.from = merge_said_by(m->more, v.from);
	if (v.pci[0] && graph_find_pci(m->base, v.pci) >= 0)
		v.pci[0] = '\0';
	m->to[i] = join_add(m->base, &v);
	return m->to[i] < 0 ? error_nomem(m->e, "a device") : ST_OK;
}

/* A NIC needs its way to the network outside. */
static enum status copy_network(struct merge *m, int32_t i)
{
	enum status st = ST_OK;
	for (size_t k = 0; k < m->more->link.n && !st; k++) {
		const struct link *l = &m->more->link.at[k];
		if (l->kind != LINK_NETWORK || (l->a != i && l->b != i))
			continue;
		int32_t net = l->a == i ? l->b : l->a;
		if (m->to[net] < 0)
			st = merge_copy_vertex(m, net);
		if (!st)
			st = merge_copy_link(m, l);
	}
	return st;
}

/* A source without PCI addresses cannot say which of base's slots a NIC is in; its words say which GPU is nearest: the
 * NIC goes under that GPU's switch or host bridge. *parent: -1 where they do not say. */
static enum status place_by_words(struct merge *m, int32_t nic, int32_t *path, int32_t *parent)
{
	struct router *r = router_create(m->more);
	bool memory = r != NULL;
	*parent = -1;
	for (int level = ROUTE_PIX; level <= ROUTE_PHB && memory && *parent < 0; level++) {
		for (size_t i = 0; i < m->more->gpu.n && memory && *parent < 0; i++) {
			char word[GRAPH_WORD];
			struct error none = {0};
			int32_t gpu = m->more->gpu.at[i];
			bool known = m->to[gpu] >= 0 && !router_word(r, gpu, nic, word, &none);
			memory = !router_out_of_memory(r);
			if (!known || route_level_of_word(word) != level)
				continue;
			size_t n = climb(m->base, m->to[gpu], goal_cpu, m->base, path);
			if (n >= 3)
				*parent = level == ROUTE_PIX ? path[1] : path[n - 2];
		}
	}
	router_destroy(r);
	return memory ? ST_OK : error_nomem(m->e, "link words");
}

/* A GPU or NIC that base lacks, with its way up to the first vertex that both have. */
static enum status add_missing(struct merge *m, int32_t i)
{
	const struct vertex *v = &m->more->vertex.at[i];
	enum evidence from = merge_said_by(m->more, v->from);
	int32_t *path = malloc((m->more->vertex.n + m->base->vertex.n + 1) * sizeof *path), parent = -1;
	enum status st = path ? ST_OK : error_nomem(m->e, "a path");
	size_t n = 0;
	if (!st && v->kind == VERTEX_NIC && !v->pci[0])
		st = place_by_words(m, i, path, &parent);
	if (!st && parent < 0)
		n = climb(m->more, i, goal_joined, m, path);
	if (!st)
		st = merge_copy_vertex(m, i);
	for (size_t k = 1; k + 1 < n && !st; k++)
		st = merge_copy_vertex(m, path[k]);
	for (size_t k = 0; k + 1 < n && !st; k++)
		st = merge_copy_link(m, graph_link(m->more, path[k], path[k + 1], LINK_KINDS));
	if (!st && parent >= 0) {
		struct rate slot = rate_pcie(0, 0);
		struct link l = graph_link_at(
			(struct link){.a = m->to[i], .b = parent, .kind = LINK_PCIE, .from = from, .assumed = true},
			slot);
		st = graph_add_link(m->base, &l) < 0 ? error_nomem(m->e, "a link") : ST_OK;
	} else if (!st && n == 0) {
		st = join_attach(m->base, m->to[i], v->kind == VERTEX_GPU ? v->gpu.pcie_gen_max : 0,
			v->kind == VERTEX_GPU ? v->gpu.pcie_width : 0, from, m->e);
	}
	if (!st && v->kind == VERTEX_NIC)
		st = copy_network(m, i);
	free(path);
	return st;
}

/* NICs are only added, never complained of: sources differ in which network devices they count. */
static enum status merge_missing(struct merge *m)
{
	size_t base_gpus = m->base->gpu.n, missing = 0;
	enum status st = ST_OK;
	for (size_t i = 0; i < m->more->gpu.n; i++)
		missing += m->to[m->more->gpu.at[i]] < 0;
	if (base_gpus > 0 && m->more->gpu.n > 0 && (missing > 0 || base_gpus != m->more->gpu.n))
		st = graph_remark(m->base, true, m->e, "%s has %zu GPUs, %s %zu%s", evidence_name(m->base->source),
			base_gpus, evidence_name(m->more->source), m->more->gpu.n,
			missing > 0 && base_gpus == m->more->gpu.n ? ", not the same ones: are both of one machine?"
								   : "");
	for (size_t i = 0; i < m->more->vertex.n && !st; i++) {
		enum vertex_kind kind = m->more->vertex.at[i].kind;
		if (m->to[i] < 0 && (kind == VERTEX_GPU || kind == VERTEX_NIC))
			st = add_missing(m, (int32_t)i);
	}
	return st;
}

enum status graph_merge(struct graph *base, const struct graph *more, struct error *e)
{
	struct merge m = {.base = base, .more = more, .to = calloc(more->vertex.n + 1, sizeof(int32_t)), .e = e};
	if (!m.to)
		return error_nomem(e, "joined devices");
	join_vertices(base, more, m.to);
	take_text(base->host, sizeof base->host, more->host, false);
	take_text(base->model, sizeof base->model, more->model, false);
	enum status st = merge_facts(&m);
	if (!st && more->source != SAID_BY_NVML)
		st = merge_compare_words(&m);
	if (!st)
		st = merge_missing(&m);
	if (!st)
		st = merge_nvlinks(&m);
	if (!st)
		st = merge_fill_words(&m);
	for (size_t i = 0; i < more->remark.n && !st; i++)
		st = graph_remark(base, more->remark.at[i].contradiction, e, "%s", more->remark.at[i].text);
	free(m.to);
	return st;
}
