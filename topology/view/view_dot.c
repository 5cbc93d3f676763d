/* The link graph in graphviz's language. Vertices are h<shape>_<vertex>; the clusters are the parts of the PCI tree
 * below each CPU. */
#include <stdlib.h>
#include <string.h>

#include "topology/view/view.h"

static const struct {
	const char *shape, *fill;
} looks[VERTEX_KINDS] = {
	[VERTEX_GPU] = {"box", "#76b900"},
	[VERTEX_NIC] = {"component", "#8fb8de"},
	[VERTEX_NVSWITCH] = {"hexagon", "#cfe8a9"},
	[VERTEX_PCI_SWITCH] = {"trapezium", "#e4d6f5"},
	[VERTEX_BRIDGE] = {"house", "#f5e6c8"},
	[VERTEX_CPU] = {"box3d", "#dddddd"},
	[VERTEX_NETWORK] = {"ellipse", "#cde7f7"},
};

static const char *const colours[LINK_KINDS] = {
	[LINK_NVLINK] = "#4e7a00",
	[LINK_XGMI] = "#a02020",
	[LINK_C2C] = "#007a7a",
	[LINK_PCIE] = "#5b3f8c",
	[LINK_LOCAL] = "#999999",
	[LINK_SOCKET] = "#b06000",
	[LINK_NETWORK] = "#1f6fb2",
};

/* Between double quotes: names come from dumps. */
static void quoted(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
}

static void vertex_dot(const struct graph *g, size_t shape, size_t i, FILE *out)
{
	const struct vertex *v = &g->vertex.at[i];
	const char *name = v->kind == VERTEX_CPU && v->cpu.model[0] ? v->cpu.model : v->name;
	fprintf(out, "\t\th%zu_%zu [shape=%s, fillcolor=\"%s\", label=\"", shape, i, looks[v->kind].shape,
		looks[v->kind].fill);
	quoted(v->label, out);
	if (*name) {
		fputs("\\n", out);
		quoted(name, out);
	}
	if (*v->pci) {
		fputs("\\n", out);
		quoted(v->pci, out);
	}
	if (v->kind == VERTEX_CPU && v->numa >= 0)
		fprintf(out, "\\nNUMA %d", v->numa);
	fputs("\"];\n", out);
}

/* The PCI tree makes the rows, roots on top and NVLink switches at the bottom. Links inside a row have outer labels:
 * graphviz 2.43 fails on plain ones there ("trouble in init_rank"). */
static void link_dot(const struct graph *g, const struct link *l, size_t shape, FILE *out)
{
	bool to_switch = g->vertex.at[l->b].kind == VERTEX_NVSWITCH,
	     level = !to_switch && (l->kind == LINK_NVLINK || l->kind == LINK_XGMI || l->kind == LINK_SOCKET);
	char rate[VIEW_RATE], kind[VIEW_TEXT];
	int pen = l->kind == LINK_NVLINK || l->kind == LINK_XGMI ? 1 + l->width / 3 : 1;
	fprintf(out, "\th%zu_%d -- h%zu_%d [color=\"%s\", penwidth=%d%s", shape, to_switch ? l->b : l->a, shape,
		to_switch ? l->a : l->b, colours[l->kind], pen < 7 ? pen : 7, l->assumed ? ", style=dashed" : "");
	if (level)
		fputs(", constraint=false", out);
	if (l->kind != LINK_LOCAL) /* no limit of its own */
		fprintf(out, ", %s=\"%s\\n%s%s GB/s\"", level ? "xlabel" : "label", view_link(kind, l),
			l->assumed ? "~" : "", view_rate(rate, l->Bps));
	fputs("];\n", out);
}

/* part[vertex]: the CPU below which it hangs, or -1. */
static void under_cpus(const struct graph *g, int32_t *part)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		part[i] = g->vertex.at[i].kind == VERTEX_CPU ? (int32_t)i : -1;
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < g->link.n; i++) {
			const struct link *l = &g->link.at[i];
			if ((l->kind != LINK_PCIE && l->kind != LINK_LOCAL && l->kind != LINK_C2C) ||
				(part[l->a] < 0) == (part[l->b] < 0))
				continue;
			part[part[l->a] < 0 ? l->a : l->b] = part[l->a] < 0 ? part[l->b] : part[l->a];
			changed = true;
		}
	}
}

static enum status make_dot(const struct cluster *c, const struct view_make *make, FILE *out, struct error *e)
{
	size_t shape = make->shape;
	const struct cluster_shape *s = &c->shape.at[shape];
	const struct graph *g = s->graph;
	int32_t *part = malloc((g->vertex.n + 1) * sizeof *part);
	if (!part)
		return error_nomem(e, "the parts of a link graph");
	under_cpus(g, part);
	fprintf(out, "\tsubgraph cluster_host%zu {\n\t\tlabel=\"", shape);
	quoted(view_host(c, s, s->first_host), out);
	if (make->hosts > 1)
		fprintf(out, " (%lld hosts alike)", (long long)make->hosts);
	fputs("\";\n", out);
	for (size_t cpu = 0; cpu < g->vertex.n; cpu++) {
		if (g->vertex.at[cpu].kind != VERTEX_CPU)
			continue;
		fprintf(out, "\t\tsubgraph cluster_host%zu_%zu {\n\t\tlabel=\"\"; style=\"rounded,dashed\";\n", shape,
			cpu);
		for (size_t i = 0; i < g->vertex.n; i++)
			if (part[i] == (int32_t)cpu)
				vertex_dot(g, shape, i, out);
		fputs("\t\t}\n", out);
	}
	for (size_t i = 0; i < g->vertex.n; i++)
		if (part[i] < 0)
			vertex_dot(g, shape, i, out);
	fputs("\t}\n", out);
	for (size_t i = 0; i < g->link.n; i++)
		link_dot(g, &g->link.at[i], shape, out);
	free(part);
	return ST_OK;
}

enum status view_dot(const struct cluster *c, FILE *out, struct error *e)
{
	struct view_makes makes;
	enum status st = view_makes(c, &makes, e);
	if (st)
		return st;
	fputs("graph topology {\n\trankdir=BT; newrank=true;\n"
	      "\tnode [style=filled, fontname=\"Helvetica\", fontsize=11];\n"
	      "\tedge [fontname=\"Helvetica\", fontsize=9];\n",
		out);
	for (size_t i = 0; i < makes.list.n && !st; i++)
		st = make_dot(c, &makes.list.at[i], out, e);
	fputs("}\n", out);
	view_makes_free(&makes);
	return st;
}
