/* Two graphs of the same host into one: facts of devices, devices that one source misses, NVLinks, and where they disagree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

int join_rank(enum evidence from)
{
	static const int rank[EVIDENCES] = {
		[SAID_BY_HWLOC] = 1, [SAID_BY_HWLOC_XML] = 1, [SAID_BY_NCCL_XML] = 2, [SAID_BY_SMI_TOPO] = 3, [SAID_BY_SMI_QUERY] = 4, [SAID_BY_NVML] = 5,
	};
	return rank[from];
}

/* The graph's own source where a builder left a vertex or a link without one. */
static enum evidence said_by(const struct graph *g, enum evidence from)
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
		return graph_remark(g, true, e, "%s is on NUMA node %d according to %s, on %d according to %s: %s is believed", b->label, b->numa, evidence_name(said_by(g, b->from)), v->numa, evidence_name(from),
				    evidence_name(said_by(g, b->from)));
	return ST_OK;
}

/* Lanes are compared, the generation as trained is not: an idle GPU trains down and up again between two looks at it. It may not lie above what the slot can, though. */
static enum status compare_pcie(struct graph *g, const struct vertex *b, const struct vertex *v, enum evidence from, struct error *e)
{
	const char *one = evidence_name(said_by(g, b->from)), *two = evidence_name(from);
	enum status st = ST_OK;
	if (b->gpu.pcie_width > 0 && v->gpu.pcie_width > 0 && b->gpu.pcie_width != v->gpu.pcie_width)
		st = graph_remark(g, true, e, "%s has PCIe x%d according to %s, x%d according to %s", b->label, b->gpu.pcie_width, one, v->gpu.pcie_width, two);
	if (!st && v->gpu.pcie_gen_max > 0 && b->gpu.pcie_gen > v->gpu.pcie_gen_max)
		st = graph_remark(g, true, e, "%s has PCIe generation %d according to %s, at most %d according to %s", b->label, b->gpu.pcie_gen, one, v->gpu.pcie_gen_max, two);
	return st;
}

enum status join_gpu(struct graph *g, int32_t at, const struct vertex *v, enum evidence from, struct error *e)
{
	struct vertex *b = &g->vertex.at[at];
	const struct gpu_facts *f = &v->gpu;
	bool wins = join_rank(from) > join_rank(said_by(g, b->from));
	enum status st = take_numa(g, at, v, from, e);
	if (!st)
		st = compare_pcie(g, b, v, from, e);
	if (!st && b->gpu.compute_capability > 0 && f->compute_capability > 0 && b->gpu.compute_capability != f->compute_capability)
		st = graph_remark(g, true, e, "%s is sm_%d according to %s, sm_%d according to %s", b->label, b->gpu.compute_capability, evidence_name(said_by(g, b->from)), f->compute_capability, evidence_name(from));
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

struct merge {
	struct graph *base;
	const struct graph *more;
	int32_t *to; /* as join_vertices gives it; kept up to date while vertices are added and taken away */
	struct error *e;
};

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
		return take_numa(m->base, at, v, said_by(m->more, v->from), m->e);
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
			st = v->kind == VERTEX_GPU ? join_gpu(m->base, m->to[i], v, said_by(m->more, v->from), m->e) : join_other(m, m->to[i], v);
	}
	return st;
}

/* The shortest way from a device towards a CPU, up to the first vertex that `goal` accepts; path[0] is the device. Its length, 0 where there is none or no memory. */
static size_t climb(const struct graph *g, int32_t from, bool (*goal)(const void *, int32_t), const void *ctx, int32_t *path)
{
	int32_t *before = malloc((g->vertex.n + 1) * sizeof *before), *queue = malloc((g->vertex.n + 1) * sizeof *queue);
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
			if (next < 0 || before[next] != -2 || (l->kind != LINK_PCIE && l->kind != LINK_LOCAL && l->kind != LINK_C2C))
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

/* A link of `more` between two vertices that base has by now. */
static enum status copy_link(struct merge *m, const struct link *l)
{
	struct link copy = *l;
	copy.a = m->to[l->a];
	copy.b = m->to[l->b];
	copy.from = said_by(m->more, l->from);
	if (graph_link(m->base, copy.a, copy.b, copy.kind))
		return ST_OK;
	return graph_add_link(m->base, &copy) < 0 ? error_nomem(m->e, "a link") : ST_OK;
}

static enum status copy_vertex(struct merge *m, int32_t i)
{
	struct vertex v = m->more->vertex.at[i];
	v.from = said_by(m->more, v.from);
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
			st = copy_vertex(m, net);
		if (!st)
			st = copy_link(m, l);
	}
	return st;
}

/* A source without PCI addresses cannot say which of base's slots a NIC is in; its words say which GPU is nearest: the NIC goes under that GPU's switch or host bridge. */
static int32_t place_by_words(struct merge *m, int32_t nic, int32_t *path)
{
	static const char *const words[] = {"PIX", "PXB", "PHB"};
	for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
		for (size_t i = 0; i < m->more->gpu.n; i++) {
			char word[GRAPH_WORD];
			struct error ignored = {0};
			int32_t gpu = m->more->gpu.at[i];
			if (m->to[gpu] < 0 || graph_word(m->more, gpu, nic, word, &ignored) || strcmp(word, words[w]) != 0)
				continue;
			size_t n = climb(m->base, m->to[gpu], goal_cpu, m->base, path);
			if (n >= 3)
				return w == 0 ? path[1] : path[n - 2];
		}
	}
	return -1;
}

/* A GPU or NIC that base lacks, with its way up to the first vertex that both have. */
static enum status add_missing(struct merge *m, int32_t i)
{
	const struct vertex *v = &m->more->vertex.at[i];
	enum evidence from = said_by(m->more, v->from);
	int32_t *path = malloc((m->more->vertex.n + m->base->vertex.n + 1) * sizeof *path), parent = -1;
	enum status st = path ? ST_OK : error_nomem(m->e, "a path");
	size_t n = 0;
	if (!st && v->kind == VERTEX_NIC && !v->pci[0])
		parent = place_by_words(m, i, path);
	if (!st && parent < 0)
		n = climb(m->more, i, goal_joined, m, path);
	if (!st)
		st = copy_vertex(m, i);
	for (size_t k = 1; k + 1 < n && !st; k++)
		st = copy_vertex(m, path[k]);
	for (size_t k = 0; k + 1 < n && !st; k++)
		st = copy_link(m, graph_link(m->more, path[k], path[k + 1], LINK_KINDS));
	if (!st && parent >= 0) {
		struct rate slot = rate_pcie(0, 0);
		struct link l = {.a = m->to[i], .b = parent, .kind = LINK_PCIE, .Bps = slot.Bps, .datasheet_Bps = slot.datasheet_Bps, .latency_s = slot.latency_s, .from = from, .assumed = true};
		st = graph_add_link(m->base, &l) < 0 ? error_nomem(m->e, "a link") : ST_OK;
	} else if (!st && n == 0) {
		st = join_attach(m->base, m->to[i], v->kind == VERTEX_GPU ? v->gpu.pcie_gen_max : 0, v->kind == VERTEX_GPU ? v->gpu.pcie_width : 0, from, m->e);
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
		st = graph_remark(m->base, true, m->e, "%s has %zu GPUs, %s %zu%s", evidence_name(m->base->source), base_gpus, evidence_name(m->more->source), m->more->gpu.n,
				  missing > 0 && base_gpus == m->more->gpu.n ? ", not the same ones: are both of one machine?" : "");
	for (size_t i = 0; i < m->more->vertex.n && !st; i++) {
		enum vertex_kind kind = m->more->vertex.at[i].kind;
		if (m->to[i] < 0 && (kind == VERTEX_GPU || kind == VERTEX_NIC))
			st = add_missing(m, (int32_t)i);
	}
	return st;
}

static bool is_nvlink(const struct link *l)
{
	return l->kind == LINK_NVLINK || l->kind == LINK_XGMI;
}

/* Links of each of base's GPUs, as one of the two graphs has them: column j < n to GPU j, column n to a switch, column n + 1 to a CPU. `to` is NULL for base itself. */
static int32_t *count_nvlinks(const struct graph *base, const struct graph *g, const int32_t *to, bool *any)
{
	size_t n = base->gpu.n, columns = n + 2;
	int32_t *count = calloc(n * columns + 1, sizeof *count), *number = malloc((base->vertex.n + 1) * sizeof *number);
	*any = false;
	if (!count || !number) {
		free(count);
		free(number);
		return NULL;
	}
	for (size_t i = 0; i < base->vertex.n; i++)
		number[i] = -1;
	for (size_t i = 0; i < n; i++)
		number[base->gpu.at[i]] = (int32_t)i;
	for (size_t k = 0; k < g->link.n; k++) {
		const struct link *l = &g->link.at[k];
		if (!is_nvlink(l))
			continue;
		for (int side = 0; side < 2; side++) {
			int32_t v = side ? l->b : l->a, w = side ? l->a : l->b, bv = to ? to[v] : v, bw = to ? to[w] : w;
			if (g->vertex.at[v].kind != VERTEX_GPU || bv < 0)
				continue;
			enum vertex_kind other = g->vertex.at[w].kind;
			size_t column = other == VERTEX_NVSWITCH ? n : other == VERTEX_CPU ? n + 1 : bw >= 0 && number[bw] >= 0 ? (size_t)number[bw] : columns;
			if (column < columns)
				count[(size_t)number[bv] * columns + column] += l->width > 0 ? l->width : 1;
			*any = true;
		}
	}
	free(number);
	return count;
}

/* Who says how NVLinks are wired; no link at all is a statement of the graph's source. */
static enum evidence nvlinks_said_by(const struct graph *g)
{
	for (size_t i = 0; i < g->link.n; i++)
		if (is_nvlink(&g->link.at[i]))
			return said_by(g, g->link.at[i].from);
	return g->source;
}

/* hwloc and NCCL's file leave NVLinks out where they could not see them; the driver's own matrix and NVML do not. */
static bool silence_counts(enum evidence from)
{
	return from == SAID_BY_SMI_TOPO || from == SAID_BY_NVML;
}

static enum status adopt_nvlinks(struct merge *m)
{
	struct graph *base = m->base;
	bool *keep = malloc(base->vertex.n + 1);
	int32_t *moved = malloc((base->vertex.n + 1) * sizeof *moved);
	enum status st = keep && moved ? ST_OK : error_nomem(m->e, "NVLinks");
	for (size_t i = 0; i < base->vertex.n && !st; i++)
		keep[i] = base->vertex.at[i].kind != VERTEX_NVSWITCH;
	if (!st)
		st = join_keep(base, keep, moved, m->e);
	if (st)
		goto out;
	for (size_t i = 0; i < m->more->vertex.n; i++)
		m->to[i] = m->to[i] >= 0 ? moved[m->to[i]] : -1;
	size_t n = 0;
	for (size_t i = 0; i < base->link.n; i++)
		if (!is_nvlink(&base->link.at[i]))
			base->link.at[n++] = base->link.at[i];
	base->link.n = n;
	for (size_t i = 0; i < m->more->gpu.n; i++) {
		int32_t at = m->to[m->more->gpu.at[i]];
		if (at >= 0) {
			base->vertex.at[at].gpu.nvlinks = m->more->vertex.at[m->more->gpu.at[i]].gpu.nvlinks;
			base->vertex.at[at].gpu.nvlink_gen = m->more->vertex.at[m->more->gpu.at[i]].gpu.nvlink_gen;
		}
	}
	free(base->words); /* they say what no longer holds */
	base->words = NULL;
	for (size_t i = 0; i < m->more->link.n && !st; i++) {
		const struct link *l = &m->more->link.at[i];
		for (int side = 0; side < 2 && is_nvlink(l) && !st; side++) {
			int32_t v = side ? l->b : l->a;
			if (m->to[v] < 0 && m->more->vertex.at[v].kind == VERTEX_NVSWITCH)
				st = copy_vertex(m, v);
		}
		if (!st && is_nvlink(l) && m->to[l->a] >= 0 && m->to[l->b] >= 0)
			st = copy_link(m, l);
	}
out:
	free(keep);
	free(moved);
	return st;
}

static enum status remark_nvlinks(struct merge *m, const int32_t *ours, const int32_t *theirs, enum evidence winner)
{
	size_t n = m->base->gpu.n, columns = n + 2, differ = 0, first = 0;
	int32_t a = 0, b = 0;
	for (size_t i = 0; i < n; i++) {
		int32_t x = 0, y = 0;
		for (size_t j = 0; j < columns; j++) {
			x += ours[i * columns + j];
			y += theirs[i * columns + j];
		}
		if (x != y && differ++ == 0) {
			first = i;
			a = x;
			b = y;
		}
	}
	const char *one = evidence_name(nvlinks_said_by(m->base)), *two = evidence_name(nvlinks_said_by(m->more)), *believed = evidence_name(winner);
	if (differ == 0)
		return graph_remark(m->base, true, m->e, "NVLinks join other GPUs according to %s than according to %s: %s is believed", one, two, believed);
	return graph_remark(m->base, true, m->e, "GPU%zu has %d NVLinks according to %s, %d according to %s%s: %s is believed", first, a, one, b, two, differ > 1 ? ", and other GPUs differ as well" : "", believed);
}

static enum status merge_nvlinks(struct merge *m)
{
	bool ours_any, theirs_any;
	int32_t *ours = count_nvlinks(m->base, m->base, NULL, &ours_any), *theirs = count_nvlinks(m->base, m->more, m->to, &theirs_any);
	enum evidence one = nvlinks_said_by(m->base), two = nvlinks_said_by(m->more);
	enum status st = ours && theirs ? ST_OK : error_nomem(m->e, "NVLinks");
	size_t size = m->base->gpu.n * (m->base->gpu.n + 2) * sizeof *ours;
	if (st || (!theirs_any && (!ours_any || !silence_counts(two))))
		goto out;
	bool same = memcmp(ours, theirs, size) == 0, silent = !ours_any && !silence_counts(one), wins = silent || join_rank(two) > join_rank(one);
	if (!same && !silent)
		st = remark_nvlinks(m, ours, theirs, wins ? two : one);
	if (!st && wins && !same)
		st = adopt_nvlinks(m);
	for (size_t i = 0; same && wins && !silent && i < m->base->link.n; i++)
		if (is_nvlink(&m->base->link.at[i]))
			m->base->link.at[i].from = two;
out:
	free(ours);
	free(theirs);
	return st;
}

/* 0: below one host bridge, 1: on one CPU, 2: between CPUs; -1: not a word about PCIe. Finer differences do not change what a transfer gets, and sources draw them differently. */
static int word_class(const char *word)
{
	static const struct {
		const char *word;
		int class;
	} classes[] = {{"PIX", 0}, {"PXB", 0}, {"PHB", 1}, {"NODE", 1}, {"SYS", 2}, {"SOC", 2}};
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		if (strcmp(word, classes[i].word) == 0)
			return classes[i].class;
	return -1;
}

static enum status compare_words(struct merge *m)
{
	const struct graph *more = m->more;
	size_t n = graph_entries(more), differ = 0;
	char first[2 * GRAPH_LABEL + 2] = "", ours[GRAPH_WORD] = "", theirs[GRAPH_WORD] = "";
	for (size_t i = 0; i < more->gpu.n; i++) {
		for (size_t j = i + 1; j < n; j++) {
			int32_t a = graph_entry(more, i), b = graph_entry(more, j);
			char x[GRAPH_WORD], y[GRAPH_WORD];
			struct error ignored = {0};
			if (m->to[a] < 0 || m->to[b] < 0 || graph_word(m->base, m->to[a], m->to[b], x, &ignored) || graph_word(more, a, b, y, &ignored))
				continue;
			if (word_class(x) < 0 || word_class(y) < 0 || word_class(x) == word_class(y) || differ++ > 0)
				continue;
			snprintf(first, sizeof first, "%s-%s", m->base->vertex.at[m->to[a]].label, m->base->vertex.at[m->to[b]].label);
			memcpy(ours, x, sizeof ours);
			memcpy(theirs, y, sizeof theirs);
		}
	}
	if (differ == 0)
		return ST_OK;
	return graph_remark(m->base, true, m->e, "%s is %s according to %s, %s according to %s%s", first, ours, evidence_name(m->base->source), theirs, evidence_name(more->source), differ > 1 ? "; other pairs differ as well" : "");
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
		st = compare_words(&m);
	if (!st)
		st = merge_missing(&m);
	if (!st)
		st = merge_nvlinks(&m);
	for (size_t i = 0; i < more->remark.n && !st; i++)
		st = graph_remark(base, more->remark.at[i].contradiction, e, "%s", more->remark.at[i].text);
	free(m.to);
	return st;
}
