/* The lines of the picture, and the bars that stand for NVLink switches and the network. */
#include <math.h>
#include <stdlib.h>

#include "topology/view_svg.h"

#define SOCKETS_SHOWN 8

const char *const svg_wire_class[LINK_KINDS] = {
	[LINK_NVLINK] = "nv", [LINK_XGMI] = "xg", [LINK_C2C] = "c2c", [LINK_PCIE] = "tree", [LINK_LOCAL] = "tree", [LINK_SOCKET] = "sock", [LINK_NETWORK] = "wire",
};

static const struct line_of_panels *line_of(const struct picture *l, int32_t vertex)
{
	return &l->line.at[l->panel.at[l->spot[vertex].panel].line];
}

static void tree_svg(const struct picture *l, FILE *out)
{
	for (size_t i = 0; i < l->g->vertex.n; i++) {
		const struct spot *s = &l->spot[i];
		if (s->panel < 0 || s->parent < 0)
			continue;
		const struct spot *p = &l->spot[s->parent];
		double y0 = p->y + p->h, x1 = svg_middle(s), x0 = l->g->vertex.at[s->parent].kind == VERTEX_CPU && x1 > p->x && x1 < p->x + p->w ? x1 : svg_middle(p);
		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1fH%.1fV%.1f\"/>\n", svg_wire_class[l->g->link.at[s->parent_link].kind], x0, y0, y0 + 18, x1, s->y);
	}
}

bool svg_crowded(const struct graph *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->link.n; i++)
		n += g->link.at[i].kind == LINK_SOCKET;
	return n > SOCKETS_SHOWN;
}

/* Between CPUs: straight where they stand side by side, along the margin to another line, else an arc above. */
static void socket_svg(const struct picture *l, const struct link *k, FILE *out)
{
	const struct spot *a = &l->spot[k->a], *b = &l->spot[k->b];
	char rate[VIEW_RATE];
	view_rate(rate, k->Bps);
	if (a->panel > b->panel) {
		const struct spot *swap = a;
		a = b;
		b = swap;
	}
	double ya = a->y + a->h / 2, yb = b->y + b->h / 2;
	if (fabs(ya - yb) < 1 && b->panel - a->panel == 1) {
		fprintf(out, "<path class=\"sock\" stroke-width=\"3\" d=\"M%.1f %.1fH%.1f\"/>\n", a->x + a->w, ya, b->x);
		svg_words(out, (a->x + a->w + b->x) / 2, ya - 8, 0, "soft", "%s%s", k->assumed ? "~" : "", rate);
	} else if (fabs(ya - yb) < 1 && !svg_crowded(l->g)) {
		double rise = 8 + 4 * fmin(b->panel - a->panel, 4);
		fprintf(out, "<path class=\"sock\" stroke-width=\"1.6\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", svg_middle(a), a->y, svg_middle(a), a->y - rise, svg_middle(b), b->y - rise, svg_middle(b), b->y);
	} else if (!svg_crowded(l->g)) {
		fprintf(out, "<path class=\"sock\" stroke-width=\"3\" d=\"M%.1f %.1fH%.1fV%.1fH%.1f\"/>\n", a->x, ya, LAYOUT_MARGIN / 2, yb, b->x);
	}
}

/* Where on a GPU's lower edge the link to a peer begins: the nearest peers outermost on their side, so that arcs from one GPU do not cross. */
static double port(const struct picture *l, int32_t gpu, int32_t peer)
{
	const struct graph *g = l->g;
	const struct spot *s = &l->spot[gpu];
	double there = svg_middle(&l->spot[peer]) - svg_middle(s);
	int before = 0, all = 0;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *k = &g->link.at[i];
		int32_t other = k->a == gpu ? k->b : k->b == gpu ? k->a : -1;
		if (other < 0 || (k->kind != LINK_NVLINK && k->kind != LINK_XGMI) || g->vertex.at[other].kind != VERTEX_GPU)
			continue;
		double x = svg_middle(&l->spot[other]) - svg_middle(s);
		all++;
		if (other != peer)
			before += (x < 0) != (there < 0) ? x < 0 : x > there;
	}
	return svg_middle(s) + s->w * 0.8 * ((before + 0.5) / (all > 0 ? all : 1) - 0.5);
}

static void arc_svg(const struct picture *l, const struct link *k, FILE *out)
{
	double x0 = port(l, k->a, k->b), x1 = port(l, k->b, k->a);
	double y0 = l->spot[k->a].y + l->spot[k->a].h, y1 = l->spot[k->b].y + l->spot[k->b].h;
	double depth = 1.33 * picture_arc_depth(x0, x1);
	char kind[VIEW_TEXT], rate[VIEW_RATE];
	fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"><title>", svg_wire_class[k->kind], svg_thickness(k->width), x0, y0, x0, y0 + depth, x1, y1 + depth, x1, y1);
	svg_escaped(l->g->vertex.at[k->a].label, out);
	fputs(" - ", out);
	svg_escaped(l->g->vertex.at[k->b].label, out);
	fprintf(out, ": %s, %s GB/s</title></path>\n", view_link(kind, k), view_rate(rate, k->Bps));
}

static bool is_direct(const struct graph *g, const struct link *k)
{
	return (k->kind == LINK_NVLINK || k->kind == LINK_XGMI) && g->vertex.at[k->a].kind == VERTEX_GPU && g->vertex.at[k->b].kind == VERTEX_GPU;
}

/* One bar below each line for more links between GPUs than eyes can follow. */
static void bundle_svg(const struct picture *l, FILE *out)
{
	const struct graph *g = l->g;
	const struct link *one = NULL;
	bool alike = true;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *k = &g->link.at[i];
		if (!is_direct(g, k))
			continue;
		one = one ? one : k;
		alike &= k->kind == one->kind && k->width == one->width && fabs(k->Bps - one->Bps) < 1;
	}
	for (size_t i = 0; i < g->gpu.n && one; i++) {
		const struct spot *s = &l->spot[g->gpu.at[i]];
		if (s->panel >= 0)
			fprintf(out, "<path class=\"%s\" stroke-width=\"3\" d=\"M%.1f %.1fV%.1f\"/>\n", svg_wire_class[one->kind], svg_middle(s), s->y + s->h, line_of(l, g->gpu.at[i])->nvlink + 32);
	}
	for (size_t i = 0; i < l->line.n && one; i++) {
		const struct line_of_panels *row = &l->line.at[i];
		char kind[VIEW_TEXT], rate[VIEW_RATE];
		bool all = l->direct == g->gpu.n * (g->gpu.n - 1) / 2;
		svg_box(out, one->kind == LINK_XGMI ? "xgb" : "nvs", row->x0, row->nvlink + 32, row->x1 - row->x0, LAYOUT_BAR);
		if (alike)
			svg_words(out, (row->x0 + row->x1) / 2, row->nvlink + 54, row->x1 - row->x0, "b", "%s: %zu direct links, %s and %s%s GB/s each", all ? "all pairs of GPUs" : "GPUs", l->direct, view_link(kind, one), one->assumed ? "~" : "",
			      view_rate(rate, one->Bps));
		else
			svg_words(out, (row->x0 + row->x1) / 2, row->nvlink + 54, row->x1 - row->x0, "b", "%zu direct links between GPUs: the matrix tells which", l->direct);
	}
}

/* The x of NVLink switch number `i` of `n` below one line. */
static double switch_x(const struct line_of_panels *row, size_t i, size_t n, double *w)
{
	double each = (row->x1 - row->x0) / (double)(n ? n : 1);
	*w = each - (n > 1 ? 8 : 0);
	return row->x0 + each * (double)i;
}

static size_t number_of(const struct graph *g, int32_t vertex, enum vertex_kind kind, size_t *all)
{
	size_t before = 0;
	*all = 0;
	for (size_t i = 0; i < g->vertex.n; i++) {
		before += g->vertex.at[i].kind == kind && (int32_t)i < vertex;
		*all += g->vertex.at[i].kind == kind;
	}
	return before;
}

static double switch_y(const struct line_of_panels *row)
{
	return row->nvlink + row->arcs + 40;
}

/* From a GPU down to an NVLink switch. */
static void to_switch_svg(const struct picture *l, const struct link *k, FILE *out)
{
	int32_t at = l->g->vertex.at[k->a].kind == VERTEX_NVSWITCH ? k->a : k->b, gpu = at == k->a ? k->b : k->a;
	if (l->spot[gpu].panel < 0)
		return;
	const struct line_of_panels *row = line_of(l, gpu);
	const struct spot *s = &l->spot[gpu];
	size_t all, i = number_of(l->g, at, VERTEX_NVSWITCH, &all);
	double w, x = switch_x(row, i, all, &w), from = s->x + s->w * ((double)i + 1) / ((double)all + 1);
	double to = from < x + 4 ? x + 4 : from > x + w - 4 ? x + w - 4 : from;
	fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", svg_wire_class[k->kind], svg_thickness(k->width), from, s->y + s->h, to, switch_y(row));
}

static void switches_svg(const struct picture *l, FILE *out)
{
	for (size_t row = 0; row < l->line.n; row++) {
		for (size_t v = 0; v < l->g->vertex.n; v++) {
			if (l->g->vertex.at[v].kind != VERTEX_NVSWITCH)
				continue;
			size_t all, i = number_of(l->g, (int32_t)v, VERTEX_NVSWITCH, &all);
			double w, x = switch_x(&l->line.at[row], i, all, &w), y = switch_y(&l->line.at[row]);
			const struct link *k = NULL;
			for (size_t j = 0; j < l->g->link.n && !k; j++)
				k = l->g->link.at[j].a == (int32_t)v || l->g->link.at[j].b == (int32_t)v ? &l->g->link.at[j] : NULL;
			char rate[VIEW_RATE];
			svg_box(out, "nvs", x, y, w, LAYOUT_BAR);
			if (k && all == 1)
				svg_words(out, x + w / 2, y + 22, w, "b", "NVLink switch%s: %d links and %s%s GB/s to each GPU", row ? " (the same)" : "", k->width, k->assumed ? "~" : "", view_rate(rate, k->Bps));
			else
				svg_words(out, x + w / 2, y + 22, w, "b", "%s", l->g->vertex.at[v].label);
		}
	}
}

static void network_svg(const struct picture *l, FILE *out)
{
	for (size_t i = 0; i < l->g->nic.n; i++) {
		int32_t nic = l->g->nic.at[i];
		if (l->spot[nic].panel >= 0)
			fprintf(out, "<path class=\"wire\" d=\"M%.1f %.1fV%.1f\"/>\n", svg_middle(&l->spot[nic]), l->spot[nic].y + l->spot[nic].h, line_of(l, nic)->network);
	}
}

static void network_bars_svg(const struct picture *l, FILE *out)
{
	for (size_t i = 0; i < l->line.n; i++) {
		const struct line_of_panels *row = &l->line.at[i];
		if (!row->has_network)
			continue;
		svg_box(out, "net", row->x0, row->network, row->x1 - row->x0, LAYOUT_BAR);
		svg_words(out, (row->x0 + row->x1) / 2, row->network + 22, row->x1 - row->x0, "b", "network");
	}
}

static void wires_svg(const struct picture *l, FILE *out)
{
	const struct graph *g = l->g;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *k = &g->link.at[i];
		enum vertex_kind a = g->vertex.at[k->a].kind, b = g->vertex.at[k->b].kind;
		bool drawn = l->spot[k->a].parent_link == (int32_t)i || l->spot[k->b].parent_link == (int32_t)i;
		if (a == VERTEX_NVSWITCH || b == VERTEX_NVSWITCH)
			to_switch_svg(l, k, out);
		else if (drawn || k->kind == LINK_NETWORK || (l->bundled && is_direct(g, k)) || l->spot[k->a].panel < 0 || l->spot[k->b].panel < 0)
			continue;
		else if (a == VERTEX_CPU && b == VERTEX_CPU)
			socket_svg(l, k, out);
		else if (a == VERTEX_GPU && b == VERTEX_GPU)
			arc_svg(l, k, out);
		else /* a second way to a CPU: C2C beside PCIe, NVLink of POWER */
			fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", svg_wire_class[k->kind], svg_thickness(k->width), svg_middle(&l->spot[k->a]) + 10, l->spot[k->a].y, svg_middle(&l->spot[k->b]) + 10, l->spot[k->b].y + l->spot[k->b].h);
	}
}

void svg_wires(const struct picture *l, FILE *out)
{
	network_svg(l, out);
	tree_svg(l, out);
	wires_svg(l, out);
	if (l->bundled)
		bundle_svg(l, out);
	switches_svg(l, out);
	network_bars_svg(l, out);
}
