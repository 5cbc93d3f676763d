/* The report that people read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "base/table.h"
#include "base/wrap.h"
#include "topology/view/view_text.h"

#define NAMES_SHOWN 8
#define PAGE_WIDTH 200 /* the widest matrix, in characters */
#define COLUMN_GAP 2   /* base/table.c's */

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

#define WORDS COUNT(words)

/* The words and marks that the legend has to explain. */
struct seen {
	bool word[WORDS], assumed, through_memory, split, untold;
};

static void note_word(struct seen *seen, const struct view_cell *cell)
{
	seen->untold |= !cell->word[0];
	for (size_t i = 0; i < WORDS; i++)
		seen->word[i] |= i ? strcmp(cell->word, words[i].word) == 0 : strncmp(cell->word, "NV", 2) == 0;
	seen->assumed |= cell->assumed;
	seen->through_memory |= cell->through_memory;
}

/* ---- the matrix ---- */

static size_t cell_text(char out[VIEW_TEXT], const struct view_cell *cell)
{
	char rate[VIEW_RATE];
	bool bare = !cell->word[0] ||
	            strcmp(cell->word, "X") == 0; /* without a word: the dump does not tell of this pair */
	int n = bare ? snprintf(out, VIEW_TEXT, "%s", cell->word[0] ? "X" : "?")
	             : snprintf(out, VIEW_TEXT, "%s %s%s%s", cell->word, cell->assumed ? "~" : "",
			       view_rate(rate, cell->Bps), cell->through_memory ? "m" : "");
	return n > 0 ? (size_t)n : 0;
}

/* Some columns, for the first rows. */
struct block {
	size_t from, to, rows;
	bool affinity; /* with the columns of NUMA nodes and cores */
};

static size_t column_width(const struct graph *g, const struct view_matrix *m, size_t column, size_t rows)
{
	size_t width = strlen(g->vertex.at[graph_entry(g, column)].label);
	for (size_t i = 0; i < rows; i++) {
		char text[VIEW_TEXT];
		size_t n = cell_text(text, &m->cell[i * m->n + column]);
		width = n > width ? n : width;
	}
	return width + COLUMN_GAP;
}

/* Labels, and the affinity where it is wanted. */
static size_t frame_width(const struct graph *g, const struct block *b)
{
	size_t label = 0, cores = strlen("CPUs");
	for (size_t i = 0; i < b->rows; i++) {
		const struct vertex *v = &g->vertex.at[graph_entry(g, i)];
		label = strlen(v->label) > label ? strlen(v->label) : label;
		cores = strlen(v->cores) > cores ? strlen(v->cores) : cores;
	}
	return label + (b->affinity ? COLUMN_GAP + strlen("NUMA") + COLUMN_GAP + cores : 0);
}

/* The next columns that a page holds, at least one, up to `end`. */
static size_t block_end(const struct graph *g, const struct view_matrix *m, const struct block *b, size_t end)
{
	size_t width = frame_width(g, b), to = b->from;
	while (to < end && (to == b->from || width + column_width(g, m, to, b->rows) <= PAGE_WIDTH))
		width += column_width(g, m, to++, b->rows);
	return to;
}

static enum status header(const struct graph *g, const struct block *b, struct table **t, struct error *e)
{
	struct view_stream row; /* how many columns is not known when this is written */
	char *text;
	enum status st = view_open(&row, e);
	if (st)
		return st;
	fputs("<", row.out);
	for (size_t i = b->from; i < b->to; i++)
		fprintf(row.out, "|<%s", g->vertex.at[graph_entry(g, i)].label);
	fputs(b->affinity ? "|NUMA|<CPUs" : "", row.out);
	if ((st = view_close(&row, &text, NULL, e)))
		return st;
	*t = table_create(text);
	free(text);
	return *t ? ST_OK : error_nomem(e, "the matrix");
}

static enum status matrix_row(const struct graph *g, const struct view_matrix *m, const struct block *b, size_t i,
	struct table *t, struct error *e)
{
	const struct vertex *v = &g->vertex.at[graph_entry(g, i)];
	struct view_stream row; /* how many columns is not known when this is written */
	char *text;
	enum status st = view_open(&row, e);
	if (st)
		return st;
	fputs(v->label, row.out);
	for (size_t j = b->from; j < b->to; j++) {
		char cell[VIEW_TEXT];
		cell_text(cell, &m->cell[i * m->n + j]);
		fprintf(row.out, "|%s", cell);
	}
	if (b->affinity && v->numa >= 0)
		fprintf(row.out, "|%d|%s", v->numa, v->cores);
	else if (b->affinity)
		fprintf(row.out, "||%s", v->cores);
	if ((st = view_close(&row, &text, NULL, e)))
		return st;
	st = table_row(t, e, "%s", text);
	free(text);
	return st;
}

static enum status print_block(const struct graph *g, const struct view_matrix *m, const struct block *b,
	struct seen *seen, FILE *out, struct error *e)
{
	struct table *t = NULL;
	enum status st = header(g, b, &t, e);
	for (size_t i = 0; i < b->rows && !st; i++) {
		st = matrix_row(g, m, b, i, t, e);
		for (size_t j = b->from; j < b->to; j++)
			if (i != j)
				note_word(seen, &m->cell[i * m->n + j]);
	}
	if (!st)
		table_print_within(t, PAGE_WIDTH, out); /* a matrix is read across: its rows stay whole */
	table_destroy(t);
	return st;
}

/* In one piece where it fits on a page; else GPUs by GPUs, then GPUs by NICs, each in as many blocks as it takes. */
static enum status matrix(const struct graph *g, struct seen *seen, FILE *out, struct error *e)
{
	struct view_matrix m;
	enum status st = view_matrix(g, &m, e);
	if (st)
		return st;
	struct block b = {.to = m.n, .rows = m.n, .affinity = true};
	size_t gpus = g->gpu.n ? g->gpu.n : m.n; /* NICs alone are shown by NICs */
	if (block_end(g, &m, &b, m.n) == m.n) {
		st = print_block(g, &m, &b, seen, out, e);
		goto out;
	}
	b.rows = gpus;
	seen->split = gpus < m.n;
	while (b.from < m.n && !st) {
		if (b.from)
			putc('\n', out);
		b.to = block_end(g, &m, &b, b.from < gpus ? gpus : m.n);
		st = print_block(g, &m, &b, seen, out, e);
		b.from = b.to;
		b.affinity = false;
	}
out:
	view_matrix_free(&m);
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
	if (seen->untold)
		fputs("  ?     the dump does not tell of this pair\n", out);
	if (seen->split)
		fputs("Rows of NICs would not fit here: --json has them.\n", out);
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
	return a->shape == b->shape && a->everywhere == b->everywhere && a->n == b->n &&
	       strcmp(a->what, b->what) == 0 &&
	       fabs(a->group.ring_Bps - b->group.ring_Bps) <= 1e-6 * b->group.ring_Bps &&
	       a->group.bottleneck == b->group.bottleneck;
}

static void group_name(const struct cluster *c, const struct view_makes *makes, const struct view_groups *groups,
	size_t from, size_t to, FILE *out)
{
	const struct view_group *v = &groups->list.at[from];
	const struct cluster_shape *s = &c->shape.at[v->shape];
	if (v->everywhere) {
		fprintf(out, "all %lld GPUs of %lld hosts", (long long)v->n, (long long)v->group.hosts);
		return;
	}
	if (makes->list.n > 1)
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

static enum status group_table(const struct cluster *c, const struct view_makes *makes, FILE *out, struct error *e)
{
	struct view_groups groups;
	struct table *t = NULL;
	enum status st = view_groups(c, makes, &groups, e);
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
		struct view_stream name;
		char *text, rate[VIEW_RATE], sheet[VIEW_RATE];
		if ((st = view_open(&name, e)))
			break;
		group_name(c, makes, &groups, i, to, name.out);
		if (!(st = view_close(&name, &text, NULL, e)))
			st = table_row(t, e, "%s|%s%s|%s|%s%s", text, on_default(c, &groups.list.at[i]) ? "~" : "",
				view_rate(rate, g->ring_Bps), view_rate(sheet, g->ring_datasheet_Bps),
				g->bottleneck_text, groups.list.at[i].nvls ? "; NVLS possible" : "");
		free(text);
	}
	if (!st) {
		fputs("\n"
		      "Rings: one direction, every member at once; a long all-reduce's busbw in nccl-tests tends to "
		      "this.\n",
			out);
		table_print(t, out);
	}
out:
	table_destroy(t);
	view_groups_free(&groups);
	return st;
}

/* ---- the whole ---- */

/* The names of a make's hosts, as far as they fit in a line. */
static void host_names(const struct cluster *c, const struct view_makes *makes, size_t make, FILE *out)
{
	int64_t shown = 0;
	for (size_t i = makes->list.at[make].shape; i < c->shape.n; i++) {
		const struct cluster_shape *s = &c->shape.at[i];
		for (int64_t h = s->first_host;
			h < s->first_host + s->hosts && makes->of_shape[i] == make && shown < NAMES_SHOWN;
			h++, shown++) {
			const char *name = view_host(c, s, h);
			if (shown && (size_t)h >= c->host_name.n)
				return;
			fprintf(out, "%s%s", shown ? ", " : "", *name ? name : "one host");
		}
	}
	if (shown < makes->list.at[make].hosts)
		fputs(", ...", out);
}

static void heading(const struct cluster *c, const struct view_makes *makes, size_t make, FILE *out)
{
	const struct graph *g = c->shape.at[makes->list.at[make].shape].graph;
	int64_t hosts = makes->list.at[make].hosts;
	host_names(c, makes, make, out);
	if (hosts > 1)
		fprintf(out, " (%lld hosts alike)", (long long)hosts);
	fprintf(out, ":%s%s%s %zu GPU%s, %zu NIC%s; source: %s\n", *g->model ? " " : "", g->model, *g->model ? ";" : "",
		g->gpu.n, g->gpu.n == 1 ? "" : "s", g->nic.n, g->nic.n == 1 ? "" : "s", evidence_name(g->source));
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
	size(out, ", of which ", i->mem_available_B, " are available");
	size(out, "; L2 ", i->l2_B, "");
	size(out, ", L3 ", i->l3_B, "");
	putc('\n', out);
}

/* Explains a datasheet's figure in this machine's own numbers. */
static void convention(const struct graph *g, FILE *out)
{
	static const char *const fabrics[][2] = {
		{"nvswitch", "an NVLink switch joins all GPUs"},
		{"mesh", "NVLinks join GPUs directly"},
		{"bridge", "NVLink bridges join pairs of GPUs"},
		{"pcie", "GPUs reach each other over PCIe"},
		{"none", "fewer than two GPUs"},
	};
	const char *fabric = graph_fabric(g);
	for (size_t i = 0; i < COUNT(fabrics); i++)
		if (strcmp(fabric, fabrics[i][0]) == 0)
			fprintf(out, "\nFabric: %s (%s)\n", fabric, fabrics[i][1]);
	for (size_t i = 0; i < g->gpu.n; i++) {
		struct own_links o = view_own_links(g, g->gpu.at[i]);
		char both[VIEW_RATE], one[VIEW_RATE], usable[VIEW_RATE];
		if (!(o.datasheet_Bps > 0))
			continue;
		fprintf(out,
			"A datasheet counts both directions: %s GB/s are %d %s x 2 directions; one direction is %s, of "
			"which %s%s carry data.\n",
			view_rate(both, 2 * o.datasheet_Bps), o.n, o.n == 1 ? "link" : "links",
			view_rate(one, o.datasheet_Bps), o.assumed ? "~" : "", view_rate(usable, o.Bps));
		return;
	}
}

static enum status remarks(const struct cluster *c, const struct view_makes *makes, size_t make, FILE *out,
	struct error *e)
{
	struct view_remarks list;
	enum status st = view_remarks(c, makes, make, &list, e);
	if (st)
		return st;
	if (list.list.n)
		putc('\n', out);
	for (size_t i = 0; i < list.list.n; i++)
		fprintf(out, "%s: %s%s\n", list.list.at[i].remark->contradiction ? "sources disagree" : "warning",
			list.list.at[i].who, list.list.at[i].remark->text);
	view_remarks_free(&list);
	return ST_OK;
}

static bool has_cpu(const struct graph *g)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		if (g->vertex.at[i].kind == VERTEX_CPU)
			return true;
	return false;
}

/* Prints what stands below the matrix. */
static enum status below(const struct cluster *c, const struct view_makes *makes, size_t make,
	const struct view_beside *beside, const struct inventory *inventory, const struct seen *seen, FILE *out,
	struct error *e)
{
	const struct graph *g = c->shape.at[makes->list.at[make].shape].graph;
	enum status st;
	if ((g->gpu.n || g->nic.n > 1) && graph_entries(g) > 1)
		legend(seen, out);
	if (g->gpu.n)
		convention(g, out);
	if (makes->list.n == 1 && (st = group_table(c, makes, out, e)))
		return st;
	if (g->gpu.n && (st = view_gpu_table(g, out, e)))
		return st;
	if (g->nic.n && (st = view_nic_table(g, seen->split, out, e)))
		return st;
	if (has_cpu(g) && (st = view_cpu_table(g, out, e)))
		return st;
	if (inventory && inventory->device.n && (st = view_pci_table(inventory, out, e)))
		return st;
	if (beside->links && g->link.n && (st = view_link_table(g, out, e)))
		return st;
	return remarks(c, makes, make, out, e);
}

static enum status make_text(const struct cluster *c, const struct view_makes *makes, size_t make,
	const struct view_beside *beside, FILE *out, struct error *e)
{
	const struct graph *g = c->shape.at[makes->list.at[make].shape].graph;
	const struct inventory *inventory = make == 0 ? beside->inventory : NULL; /* of the first host */
	struct seen seen = {0};
	struct wrap w;
	enum status st = wrap_open(&w, out, e);
	if (st)
		return st;
	heading(c, makes, make, w.out);
	if (inventory)
		counts(inventory, w.out);
	st = wrap_close(&w, ST_OK, e);
	if (!st && (g->gpu.n || g->nic.n > 1)) {
		putc('\n', out);
		st = matrix(g, &seen, out, e);
	}
	if (!st)
		st = wrap_open(&w, out, e);
	return st ? st : wrap_close(&w, below(c, makes, make, beside, inventory, &seen, w.out, e), e);
}

enum status view_text(const struct cluster *c, const struct view_beside *beside, FILE *out, struct error *e)
{
	struct view_makes makes;
	enum status st = view_makes(c, &makes, e);
	if (st)
		return st;
	for (size_t i = 0; i < makes.list.n && !st; i++) {
		if (i)
			putc('\n', out);
		st = make_text(c, &makes, i, beside, out, e);
	}
	if (!st && makes.list.n > 1)
		st = group_table(c, &makes, out, e);
	const struct cluster_shape *cut_off = c->hosts > 1 ? view_without_nic(c) : NULL;
	if (!st && cut_off) {
		const char *host = view_host(c, cut_off, cut_off->first_host);
		fprintf(out, "\nNo ring over all hosts: no NIC is known of %s.\n", *host ? host : "these hosts");
	}
	view_makes_free(&makes);
	if (st || !beside->messages)
		return st;
	putc('\n', out);
	return message_links_text(beside->messages, out, e);
}
