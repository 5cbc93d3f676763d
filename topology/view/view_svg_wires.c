/* The lines of the picture, and the bars that stand for NVLink switches and the network. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "topology/view/view_svg.h"

#define SOCKETS_SHOWN 8
#define LABELS_MOST 96

const char *const svg_wire_class[LINK_KINDS] = {
	[LINK_NVLINK] = "nv",
	[LINK_XGMI] = "xg",
	[LINK_C2C] = "c2c",
	[LINK_PCIE] = "tree",
	[LINK_LOCAL] = "tree",
	[LINK_SOCKET] = "sock",
	[LINK_NETWORK] = "wire",
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
		double y0 = p->y + p->h, x1 = svg_middle(s),
		       x0 = l->g->vertex.at[s->parent].kind == VERTEX_CPU && x1 > p->x && x1 < p->x + p->w
		                    ? x1
		                    : svg_middle(p);
		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1fH%.1fV%.1f\"/>\n",
			svg_wire_class[l->g->link.at[s->parent_link].kind], x0, y0, y0 + 18, x1, s->y);
	}
}

bool svg_crowded(const struct graph *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->link.n; i++)
		n += g->link.at[i].kind == LINK_SOCKET;
	return n > SOCKETS_SHOWN;
}

/* ---- rates beside lines ---- */

/* Where words stand already. What finds no room is left to the key below the picture. */
struct labels {
	size_t n;
	struct {
		double x, y, w;
	} at[LABELS_MOST];
};

/* A cubic from (x0, y0) to (x1, y1) that leaves both ends upright, `depth` below them (negative: above). */
struct arc {
	double x0, y0, x1, y1, depth;
};

static void arc_path(const char *look, double thickness, const struct arc *a, FILE *out)
{
	fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\">", look,
		thickness, a->x0, a->y0, a->x0, a->y0 + a->depth, a->x1, a->y1 + a->depth, a->x1, a->y1);
}

static bool write_rate(struct labels *l, double x, double y, const struct link *k, FILE *out)
{
	char rate[VIEW_RATE], text[2 * VIEW_RATE];
	snprintf(text, sizeof text, "%s%s GB/s", k->assumed ? "~" : "", view_rate(rate, k->Bps));
	double w = svg_width(text);
	for (size_t i = 0; i < l->n; i++)
		if (fabs(l->at[i].x - x) < (l->at[i].w + w) / 2 + 4 && fabs(l->at[i].y - y) < 14)
			return false;
	if (l->n == LABELS_MOST)
		return false;
	l->at[l->n].x = x;
	l->at[l->n].y = y;
	l->at[l->n++].w = w;
	w *= 11.0 / 12;
	fprintf(out,
		"<rect class=\"paper\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" rx=\"3\"/><text "
		"class=\"rate\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
		x - w / 2 - 2, y - 7, w + 4, x, y + 4, text);
	return true;
}

/* In the middle of the arc if there is room, else to either side of it. */
static void arc_rate(struct labels *l, const struct arc *a, const struct link *k, FILE *out)
{
	static const double at[] = {0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73};
	for (size_t i = 0; i < COUNT(at); i++) {
		double t = at[i], s = 1 - t, first = s * s * s + 3 * s * s * t, last = 1 - first;
		if (write_rate(l, first * a->x0 + last * a->x1, first * a->y0 + last * a->y1 + 3 * s * t * a->depth, k,
			    out))
			return;
	}
}

/* ---- lines ---- */

/* Between CPUs: straight where they stand side by side, along the margin to another line, else an arc above. */
enum way { SIDE_BY_SIDE, ARC_ABOVE, MARGIN, NOT_DRAWN };

static enum way socket_way(const struct picture *l, const struct link *k, const struct spot **a, const struct spot **b,
	struct arc *arc)
{
	bool swap = l->spot[k->a].panel > l->spot[k->b].panel;
	*a = &l->spot[swap ? k->b : k->a];
	*b = &l->spot[swap ? k->a : k->b];
	*arc = (struct arc){svg_middle(*a), (*a)->y, svg_middle(*b), (*b)->y,
		3 - 9 * fmin((*b)->panel - (*a)->panel, 4)};
	bool same_line = fabs((*a)->y - (*b)->y) < 1;
	if (same_line && (*b)->panel - (*a)->panel == 1)
		return SIDE_BY_SIDE;
	return svg_crowded(l->g) ? NOT_DRAWN : same_line ? ARC_ABOVE : MARGIN;
}

static void socket_svg(const struct picture *l, const struct link *k, FILE *out)
{
	const struct spot *a, *b;
	struct arc arc;
	enum way way = socket_way(l, k, &a, &b, &arc);
	double ya = a->y + a->h / 2, yb = b->y + b->h / 2;
	if (way == SIDE_BY_SIDE) {
		fprintf(out, "<path class=\"sock\" stroke-width=\"3\" d=\"M%.1f %.1fH%.1f\"/>\n", a->x + a->w, ya,
			b->x);
	} else if (way == ARC_ABOVE) {
		arc_path("sock", 1.6, &arc, out);
		fputs("</path>\n", out);
	} else if (way == MARGIN) {
		fprintf(out, "<path class=\"sock\" stroke-width=\"3\" d=\"M%.1f %.1fH%.1fV%.1fH%.1f\"/>\n", a->x, ya,
			LAYOUT_MARGIN / 2, yb, b->x);
	}
}

static void socket_rate(const struct picture *l, const struct link *k, struct labels *labels, FILE *out)
{
	const struct spot *a, *b;
	struct arc arc;
	enum way way = socket_way(l, k, &a, &b, &arc);
	if (way == SIDE_BY_SIDE)
		write_rate(labels, (a->x + a->w + b->x) / 2, a->y + a->h / 2 - 12, k, out);
	else if (way == ARC_ABOVE)
		arc_rate(labels, &arc, k, out);
	else if (way == MARGIN)
		write_rate(labels, LAYOUT_MARGIN / 2 + 40, l->line.at[l->panel.at[a->panel].line].end + 32, k, out);
}

/* Where on a GPU's lower edge the link to a peer begins: the nearest peers outermost on their side, so that arcs from
 * one GPU do not cross. */
static double port(const struct picture *l, int32_t gpu, int32_t peer)
{
	const struct graph *g = l->g;
	const struct spot *s = &l->spot[gpu];
	double there = svg_middle(&l->spot[peer]) - svg_middle(s);
	int before = 0, all = 0;
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *k = &g->link.at[i];
		int32_t other = k->a == gpu ? k->b : k->b == gpu ? k->a : -1;
		if (other < 0 || (k->kind != LINK_NVLINK && k->kind != LINK_XGMI) ||
			g->vertex.at[other].kind != VERTEX_GPU)
			continue;
		double x = svg_middle(&l->spot[other]) - svg_middle(s);
		all++;
		if (other != peer)
			before += (x < 0) != (there < 0) ? x < 0 : x > there;
	}
	return svg_middle(s) + s->w * 0.8 * ((before + 0.5) / (all > 0 ? all : 1) - 0.5);
}

static struct arc arc_of(const struct picture *l, const struct link *k)
{
	double x0 = port(l, k->a, k->b), x1 = port(l, k->b, k->a);
	return (struct arc){x0, l->spot[k->a].y + l->spot[k->a].h, x1, l->spot[k->b].y + l->spot[k->b].h,
		1.33 * picture_arc_depth(x0, x1)};
}

static void arc_svg(const struct picture *l, const struct link *k, FILE *out)
{
	struct arc arc = arc_of(l, k);
	char kind[VIEW_TEXT], rate[VIEW_RATE];
	arc_path(svg_wire_class[k->kind], svg_thickness(k->width), &arc, out);
	fputs("<title>", out);
	svg_escaped(l->g->vertex.at[k->a].label, out);
	fputs(" - ", out);
	svg_escaped(l->g->vertex.at[k->b].label, out);
	fprintf(out, ": %s, %s%s GB/s</title></path>\n", view_link(kind, k), k->assumed ? "~" : "",
		view_rate(rate, k->Bps));
}

static bool is_direct(const struct graph *g, const struct link *k)
{
	return (k->kind == LINK_NVLINK || k->kind == LINK_XGMI) && g->vertex.at[k->a].kind == VERTEX_GPU &&
	       g->vertex.at[k->b].kind == VERTEX_GPU;
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
			fprintf(out, "<path class=\"%s\" stroke-width=\"3\" d=\"M%.1f %.1fV%.1f\"/>\n",
				svg_wire_class[one->kind], svg_middle(s), s->y + s->h,
				line_of(l, g->gpu.at[i])->nvlink + 32);
	}
	for (size_t i = 0; i < l->line.n && one; i++) {
		const struct line_of_panels *row = &l->line.at[i];
		char kind[VIEW_TEXT], rate[VIEW_RATE];
		bool all = l->direct == g->gpu.n * (g->gpu.n - 1) / 2;
		svg_box(out, one->kind == LINK_XGMI ? "xgb" : "nvs", row->x0, row->nvlink + 32, row->x1 - row->x0,
			LAYOUT_BAR);
		if (alike)
			svg_words(out, (row->x0 + row->x1) / 2, row->nvlink + 54, row->x1 - row->x0, "b",
				"%s: %zu direct links, %s and %s%s GB/s each", all ? "all pairs of GPUs" : "GPUs",
				l->direct, view_link(kind, one), one->assumed ? "~" : "", view_rate(rate, one->Bps));
		else
			svg_words(out, (row->x0 + row->x1) / 2, row->nvlink + 54, row->x1 - row->x0, "b",
				"%zu direct links between GPUs: the matrix tells which", l->direct);
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

static double switch_y(const struct line_of_panels *row) { return row->nvlink + row->arcs + 40; }

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
	fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", svg_wire_class[k->kind],
		svg_thickness(k->width), from, s->y + s->h, to, switch_y(row));
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
				k = l->g->link.at[j].a == (int32_t)v || l->g->link.at[j].b == (int32_t)v
				            ? &l->g->link.at[j]
				            : NULL;
			char rate[VIEW_RATE];
			svg_box(out, "nvs", x, y, w, LAYOUT_BAR);
			if (k && all == 1)
				svg_words(out, x + w / 2, y + 22, w, "b",
					"NVLink switch%s: %d links and %s%s GB/s to each GPU", row ? " (the same)" : "",
					k->width, k->assumed ? "~" : "", view_rate(rate, k->Bps));
			else
				svg_words(out, x + w / 2, y + 22, w, "b", "%s", l->g->vertex.at[v].label);
		}
	}
}

/* Down to the network; where a bar of NVLinks is in the way, along a rail that goes around its right end. */
static void network_svg(const struct picture *l, FILE *out)
{
	for (size_t i = 0; i < l->line.n; i++) {
		const struct line_of_panels *row = &l->line.at[i];
		double rail = row->nvlink + 18, from = row->x1;
		for (size_t k = 0; k < l->g->nic.n; k++) {
			int32_t nic = l->g->nic.at[k];
			const struct spot *s = &l->spot[nic];
			if (s->panel < 0 || line_of(l, nic) != row)
				continue;
			from = fmin(from, svg_middle(s));
			fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n", row->barred ? "rail" : "wire",
				svg_middle(s), s->y + s->h, row->barred ? rail : row->network);
			if (row->barred)
				fprintf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", svg_middle(s),
					rail);
		}
		if (row->barred && row->has_network)
			fprintf(out, "<path class=\"rail\" d=\"M%.1f %.1fH%.1fV%.1fH%.1f\"/>\n", from, rail,
				row->x1 + LAYOUT_MARGIN / 2, row->network + LAYOUT_BAR / 2, row->x1);
	}
}

static void network_bars_svg(const struct picture *l, FILE *out)
{
	bool again = false;
	for (size_t i = 0; i < l->line.n; i++) {
		const struct line_of_panels *row = &l->line.at[i];
		if (!row->has_network)
			continue;
		svg_box(out, "net", row->x0, row->network, row->x1 - row->x0, LAYOUT_BAR);
		svg_words(out, (row->x0 + row->x1) / 2, row->network + 22, row->x1 - row->x0, "b",
			again ? "network (the same)" : "network");
		again = true;
	}
}

enum drawing { NOTHING, TO_SWITCH, SOCKET, ARC, SECOND_WAY /* to a CPU: C2C beside PCIe, NVLink of POWER */ };

static enum drawing drawing_of(const struct picture *l, size_t link)
{
	const struct graph *g = l->g;
	const struct link *k = &g->link.at[link];
	enum vertex_kind a = g->vertex.at[k->a].kind, b = g->vertex.at[k->b].kind;
	if (a == VERTEX_NVSWITCH || b == VERTEX_NVSWITCH)
		return TO_SWITCH;
	bool in_tree = l->spot[k->a].parent_link == (int32_t)link || l->spot[k->b].parent_link == (int32_t)link;
	if (in_tree || k->kind == LINK_NETWORK || (l->bundled && is_direct(g, k)) || l->spot[k->a].panel < 0 ||
		l->spot[k->b].panel < 0)
		return NOTHING;
	return a == VERTEX_CPU && b == VERTEX_CPU ? SOCKET : a == VERTEX_GPU && b == VERTEX_GPU ? ARC : SECOND_WAY;
}

static void second_way_svg(const struct picture *l, const struct link *k, FILE *out)
{
	const struct spot *a = &l->spot[k->a], *b = &l->spot[k->b], *low = a->y > b->y ? a : b,
			  *high = low == a ? b : a;
	fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", svg_wire_class[k->kind],
		svg_thickness(k->width), svg_middle(low) + 10, low->y, svg_middle(high) + 10, high->y + high->h);
}

static void wires_svg(const struct picture *l, FILE *out)
{
	for (size_t i = 0; i < l->g->link.n; i++) {
		const struct link *k = &l->g->link.at[i];
		enum drawing d = drawing_of(l, i);
		if (d == TO_SWITCH)
			to_switch_svg(l, k, out);
		else if (d == SOCKET)
			socket_svg(l, k, out);
		else if (d == ARC)
			arc_svg(l, k, out);
		else if (d == SECOND_WAY)
			second_way_svg(l, k, out);
	}
}

/* Over all lines. */
static void rates_svg(const struct picture *l, FILE *out)
{
	struct labels labels = {0};
	for (size_t i = 0; i < l->g->link.n; i++) {
		const struct link *k = &l->g->link.at[i];
		enum drawing d = drawing_of(l, i);
		if (d == SOCKET) {
			socket_rate(l, k, &labels, out);
		} else if (d == ARC) {
			struct arc arc = arc_of(l, k);
			arc_rate(&labels, &arc, k, out);
		}
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
	rates_svg(l, out);
}
