/* The report that people read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "topology/view_text.h"

#define NAMES_SHOWN 8

static const struct {
	const char *word, *meaning;
} words[] = {
	{"NV", "that many NVLinks or xGMI links (behind an NVLink switch: all of the GPU's)"},
	{"PIX", "one PCIe switch at most between them"},
	{"PXB", "several PCIe switches"},
	{"PHB", "through the host bridge of a CPU"},
	{"NODE", "between host bridges of one NUMA node"},
	{"SYS", "between NUMA nodes or sockets"},
	{"SOC", "between sockets (the word of old drivers)"},
	{"PSB", "over a PCIe switch on one board (the word of old drivers)"},
};

#define WORDS (sizeof words / sizeof words[0])

/* What the legend has to explain. */
struct seen {
	bool word[WORDS], assumed, through_memory;
};

static void note_word(struct seen *seen, const struct view_cell *cell)
{
	for (size_t i = 0; i < WORDS; i++)
		seen->word[i] |= i ? strcmp(cell->word, words[i].word) == 0 : strncmp(cell->word, "NV", 2) == 0;
	seen->assumed |= cell->assumed;
	seen->through_memory |= cell->through_memory;
}

/* A row of a table whose number of columns is not known when this is written. */
struct line {
	char *text;
	size_t len;
	FILE *out;
};

static enum status line_open(struct line *l, struct error *e)
{
	*l = (struct line){0};
	l->out = open_memstream(&l->text, &l->len);
	return l->out ? ST_OK : error_nomem(e, "a line of the matrix");
}

static enum status line_close(struct line *l, struct error *e)
{
	bool bad = l->out && fclose(l->out) != 0;
	l->out = NULL;
	return bad ? error_nomem(e, "a line of the matrix") : ST_OK;
}

static enum status matrix_row(const struct graph *g, struct router *router, size_t i, struct table *t, struct seen *seen, struct error *e)
{
	const struct vertex *v = &g->vertex.at[graph_entry(g, i)];
	struct line row;
	enum status st = line_open(&row, e);
	if (st)
		return st;
	fputs(v->label, row.out);
	for (size_t j = 0; j < graph_entries(g) && !st; j++) {
		struct view_cell cell;
		char rate[VIEW_RATE];
		if ((st = view_cell(g, router, graph_entry(g, i), graph_entry(g, j), &cell, e)))
			break;
		if (i == j)
			fputs("|X", row.out);
		else
			fprintf(row.out, "|%s %s%s%s", cell.word, cell.assumed ? "~" : "", view_rate(rate, cell.Bps), cell.through_memory ? "m" : "");
		if (i != j)
			note_word(seen, &cell);
	}
	if (v->numa >= 0)
		fprintf(row.out, "|%d|%s", v->numa, v->cores);
	else
		fprintf(row.out, "||%s", v->cores);
	enum status closed = line_close(&row, e);
	st = st ? st : closed;
	if (!st)
		st = table_row(t, e, "%s", row.text);
	free(row.text);
	return st;
}

static enum status matrix(const struct graph *g, struct seen *seen, FILE *out, struct error *e)
{
	struct line header;
	struct table *t = NULL;
	struct router *router = router_create(g);
	enum status st = router ? line_open(&header, e) : error_nomem(e, "the matrix");
	if (st) {
		router_destroy(router);
		return st;
	}
	fputs("<", header.out);
	for (size_t i = 0; i < graph_entries(g); i++)
		fprintf(header.out, "|<%s", g->vertex.at[graph_entry(g, i)].label);
	fputs("|NUMA|<CPUs", header.out);
	if ((st = line_close(&header, e)))
		goto out;
	if (!(t = table_create(header.text))) {
		st = error_nomem(e, "the matrix");
		goto out;
	}
	for (size_t i = 0; i < graph_entries(g) && !st; i++)
		st = matrix_row(g, router, i, t, seen, e);
	if (!st)
		table_print(t, out);
out:
	router_destroy(router);
	free(header.text);
	table_destroy(t);
	return st;
}

static void legend(const struct seen *seen, FILE *out)
{
	fputs("\nEach cell: link, and GB/s in one direction for a transfer between that pair alone.\n", out);
	for (size_t i = 0; i < WORDS; i++)
		if (seen->word[i])
			fprintf(out, "  %-4s  %s\n", i ? words[i].word : "NV#", words[i].meaning);
	if (seen->assumed)
		fputs("  ~     a default: no source says how fast this machine's slowest link on the way is\n", out);
	if (seen->through_memory)
		fputs("  m     through host memory: these two cannot read each other's memory\n", out);
}

/* ---- groups ---- */

/* GPU numbers as ranges: "GPU0-3,8". Of the shape's first host. */
static void members_text(const struct cluster *c, const struct view_group *v, FILE *out)
{
	int64_t from = -1, last = -2;
	const char *before = "GPU";
	for (int64_t i = 0; i <= v->n; i++) {
		int64_t number = -2;
		if (i < v->n) {
			struct device_place p = cluster_device(c, v->device[i]);
			number = strtol(p.graph->vertex.at[p.vertex].label + 3, NULL, 10);
		}
		if (i < v->n && number == last + 1) {
			last = number;
			continue;
		}
		if (from >= 0) {
			fprintf(out, last > from ? "%s%lld-%lld" : "%s%lld", before, (long long)from, (long long)last);
			before = ",";
		}
		from = last = number;
	}
}

static bool alike(const struct view_group *a, const struct view_group *b)
{
	return a->shape == b->shape && a->everywhere == b->everywhere && a->n == b->n && strcmp(a->what, b->what) == 0 && fabs(a->group.ring_Bps - b->group.ring_Bps) <= 1e-6 * b->group.ring_Bps &&
	       a->group.bottleneck == b->group.bottleneck;
}

static void group_name(const struct cluster *c, const struct view_groups *groups, size_t from, size_t to, FILE *out)
{
	const struct view_group *v = &groups->list.at[from];
	const struct cluster_shape *s = &c->shape.at[v->shape];
	if (v->everywhere) {
		fprintf(out, "all %lld GPUs of %lld hosts", (long long)v->n, (long long)v->group.hosts);
		return;
	}
	if (c->shape.n > 1)
		fprintf(out, "%s: ", view_host(c, s, s->first_host));
	if (v->n == (int64_t)s->graph->gpu.n) {
		if (v->n == 2)
			fputs("both GPUs", out);
		else
			fprintf(out, "all %lld GPUs", (long long)v->n);
		fputs(c->hosts > 1 ? " of a host" : "", out);
		return;
	}
	if (to - from > 1)
		fprintf(out, "each %s of %lld: ", v->what, (long long)v->n);
	else
		fprintf(out, "%s: ", v->what);
	for (size_t i = from; i < to && i < from + NAMES_SHOWN; i++) {
		fputs(i > from ? "; " : "", out);
		members_text(c, &groups->list.at[i], out);
	}
	if (to - from > NAMES_SHOWN)
		fprintf(out, "; %zu more", to - from - NAMES_SHOWN);
}

/* Whether links of the kind that limits the ring have a default for their rate here. */
static bool on_default(const struct cluster *c, const struct view_group *v)
{
	const struct graph *g = c->shape.at[v->shape].graph;
	for (size_t i = 0; i < g->link.n; i++)
		if (g->link.at[i].kind == v->group.bottleneck && g->link.at[i].assumed)
			return true;
	return false;
}

static enum status group_table(const struct cluster *c, FILE *out, struct error *e)
{
	struct view_groups groups;
	struct table *t = NULL;
	enum status st = view_groups(c, &groups, e);
	if (st || groups.list.n == 0)
		goto out;
	if (!(t = table_create("<GPUs|ring, GB/s|datasheet|<the slowest link"))) {
		st = error_nomem(e, "the table of groups");
		goto out;
	}
	for (size_t i = 0, to; i < groups.list.n && !st; i = to) {
		for (to = i + 1; to < groups.list.n && alike(&groups.list.at[i], &groups.list.at[to]);)
			to++;
		const struct group *g = &groups.list.at[i].group;
		struct line name;
		char rate[VIEW_RATE], sheet[VIEW_RATE];
		if ((st = line_open(&name, e)))
			break;
		group_name(c, &groups, i, to, name.out);
		st = line_close(&name, e);
		if (!st)
			st = table_row(t, e, "%s|%s%s|%s|%s%s", name.text, on_default(c, &groups.list.at[i]) ? "~" : "", view_rate(rate, g->ring_Bps), view_rate(sheet, g->ring_datasheet_Bps), g->bottleneck_text, groups.list.at[i].nvls ? "; NVLS possible" : "");
		free(name.text);
	}
	if (!st) {
		fputs("\nRings: one direction, every member at once; a long all-reduce's busbw in nccl-tests tends to this.\n", out);
		table_print(t, out);
	}
out:
	table_destroy(t);
	view_groups_free(&groups);
	return st;
}

/* ---- the whole ---- */

static void heading(const struct cluster *c, const struct cluster_shape *s, FILE *out)
{
	const struct graph *g = s->graph;
	const char *before = "";
	int64_t shown = s->hosts < NAMES_SHOWN ? s->hosts : NAMES_SHOWN;
	for (int64_t i = 0; i < shown; i++) {
		const char *name = view_host(c, s, s->first_host + i);
		if (i > 0 && (size_t)(s->first_host + i) >= c->host_name.n)
			break;
		fprintf(out, "%s%s", before, *name ? name : "one host");
		before = ", ";
	}
	if (s->hosts > 1)
		fprintf(out, " (%lld hosts alike)", (long long)s->hosts);
	fprintf(out, ":%s%s%s %zu GPU%s, %zu NIC%s; source: %s\n", *g->model ? " " : "", g->model, *g->model ? ";" : "", g->gpu.n, g->gpu.n == 1 ? "" : "s", g->nic.n, g->nic.n == 1 ? "" : "s", evidence_name(g->source));
}

static void number(FILE *out, const char *before, int64_t n, const char *what)
{
	if (n > 0)
		fprintf(out, "%s%lld %s%s", before, (long long)n, what, n == 1 ? "" : "s");
}

static void size(FILE *out, const char *before, uint64_t B, const char *what)
{
	char text[QUANTITY_MAX];
	if (B > 0)
		fprintf(out, "%s%s%s", before, quantity_format(text, (double)B, UNIT_BYTE), what);
}

static void counts(const struct inventory *i, FILE *out)
{
	number(out, "", i->threads, "hardware thread");
	number(out, ", ", i->cores, "core");
	number(out, ", ", i->packages, "package");
	number(out, ", ", i->numa_nodes, "NUMA node");
	size(out, ", ", i->mem_B, " of memory");
	size(out, "; L2 ", i->l2_B, "");
	size(out, ", L3 ", i->l3_B, "");
	putc('\n', out);
}

/* What a datasheet's figure is, in this machine's own numbers. */
static void convention(const struct graph *g, FILE *out)
{
	static const char *const fabrics[][2] = {
		{"nvswitch", "an NVLink switch joins all GPUs"}, {"mesh", "NVLinks join GPUs directly"}, {"bridge", "NVLink bridges join pairs of GPUs"}, {"pcie", "GPUs reach each other over PCIe"}, {"none", "fewer than two GPUs"},
	};
	const char *fabric = graph_fabric(g);
	for (size_t i = 0; i < sizeof fabrics / sizeof fabrics[0]; i++)
		if (strcmp(fabric, fabrics[i][0]) == 0)
			fprintf(out, "\nFabric: %s (%s)\n", fabric, fabrics[i][1]);
	for (size_t i = 0; i < g->gpu.n; i++) {
		struct own_links o = view_own_links(g, g->gpu.at[i]);
		char both[VIEW_RATE], one[VIEW_RATE], usable[VIEW_RATE];
		if (!(o.datasheet_Bps > 0))
			continue;
		fprintf(out, "A datasheet counts both directions: %s GB/s are %d %s x 2 directions; one direction is %s, of which %s%s carry data.\n", view_rate(both, 2 * o.datasheet_Bps), o.n, o.n == 1 ? "link" : "links",
		        view_rate(one, o.datasheet_Bps), o.assumed ? "~" : "", view_rate(usable, o.Bps));
		return;
	}
}

static void remarks(const struct graph *g, FILE *out)
{
	if (g->remark.n)
		putc('\n', out);
	for (size_t i = 0; i < g->remark.n; i++)
		fprintf(out, "%s: %s\n", g->remark.at[i].contradiction ? "sources disagree" : "warning", g->remark.at[i].text);
}

static bool has_cpu(const struct graph *g)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		if (g->vertex.at[i].kind == VERTEX_CPU)
			return true;
	return false;
}

static enum status shape_text(const struct cluster *c, const struct cluster_shape *s, const struct view_beside *beside, FILE *out, struct error *e)
{
	const struct graph *g = s->graph;
	struct seen seen = {0};
	enum status st = ST_OK;
	bool first = s->first_host == 0;
	heading(c, s, out);
	if (first && beside->inventory)
		counts(beside->inventory, out);
	if (g->gpu.n || g->nic.n > 1) {
		putc('\n', out);
		if ((st = matrix(g, &seen, out, e)))
			return st;
		if (graph_entries(g) > 1)
			legend(&seen, out);
	}
	if (g->gpu.n)
		convention(g, out);
	if (c->shape.n == 1 && (st = group_table(c, out, e)))
		return st;
	if (g->gpu.n && (st = view_gpu_table(g, out, e)))
		return st;
	if (g->nic.n && (st = view_nic_table(g, out, e)))
		return st;
	if (has_cpu(g) && (st = view_cpu_table(g, out, e)))
		return st;
	if (first && beside->inventory && beside->inventory->device.n && (st = view_pci_table(beside->inventory, out, e)))
		return st;
	if (beside->links && g->link.n && (st = view_link_table(g, out, e)))
		return st;
	remarks(g, out);
	return ST_OK;
}

enum status view_text(const struct cluster *c, const struct view_beside *beside, FILE *out, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < c->shape.n && !st; i++) {
		if (i)
			putc('\n', out);
		st = shape_text(c, &c->shape.at[i], beside, out, e);
	}
	if (!st && c->shape.n > 1)
		st = group_table(c, out, e);
	const struct cluster_shape *cut_off = c->hosts > 1 ? view_without_nic(c) : NULL;
	if (!st && cut_off) {
		const char *host = view_host(c, cut_off, cut_off->first_host);
		fprintf(out, "\nNo ring over all hosts: no NIC is known of %s.\n", *host ? host : "these hosts");
	}
	return st;
}
