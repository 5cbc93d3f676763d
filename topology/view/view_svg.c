/* The picture, in plain SVG. Colours stand in one style sheet with a dark half, which viewers that do not know it leave
 * out. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "topology/view/view.h"
#include "topology/view/view_svg.h"

#define CLASSES_SHOWN 12

static const char style[] =
	"<style>\n"
	"text{font-family:Inter,\"Helvetica Neue\",Helvetica,Arial,sans-serif;font-size:12px;fill:#1d2430}\n"
	".paper{fill:#ffffff}.title{font-size:20px;font-weight:600}.soft{fill:#5b6676}"
	".b{font-weight:600;font-size:13px}.alarm{fill:#b42318;font-weight:600}\n"
	".up{font-weight:600;font-size:11px}.rate{font-size:11px}\n"
	".panel{fill:#f5f7fa;stroke:#dbe1e9}.cpu{fill:#e3e8ef;stroke:#8b98a9}.hb{fill:#fff;stroke:#b3bdca}"
	".sw{fill:#ece6fa;stroke:#8d78c9}\n"
	".gpu{fill:#e5f3d0;stroke:#5d9300}.nic{fill:#dcebfa;stroke:#3f84c4}.nvs{fill:#cfe8a8;stroke:#5d9300}"
	".xgb{fill:#fde3d3;stroke:#c2410c}.net{fill:#dcebfa;stroke:#3f84c4}\n"
	".tree{fill:none;stroke:#8d78c9;stroke-width:1.6}.nv{fill:none;stroke:#5d9300}.xg{fill:none;stroke:#c2410c}"
	".c2c{fill:none;stroke:#0f8a8a}.sock{fill:none;stroke:#64748b}\n"
	".wire{fill:none;stroke:#3f84c4;stroke-width:1.4;stroke-dasharray:4 4}"
	".rail{fill:none;stroke:#3f84c4;stroke-width:1.8}.dot{fill:#3f84c4}\n"
	"@media (prefers-color-scheme:dark){\n"
	"text{fill:#e6eaf0}.paper{fill:#12161c}.soft{fill:#9aa6b6}.alarm{fill:#ff9b8f}\n"
	".panel{fill:#1a2028;stroke:#2c3541}.cpu{fill:#2a333f;stroke:#6c7a8c}.hb{fill:#1f2731;stroke:#55616f}"
	".sw{fill:#2d2746;stroke:#9a86d8}\n"
	".gpu{fill:#24350f;stroke:#8bc63e}.nic{fill:#152c44;stroke:#63a8e6}.nvs{fill:#33491a;stroke:#8bc63e}"
	".xgb{fill:#47230f;stroke:#fb8a4f}.net{fill:#152c44;stroke:#63a8e6}\n"
	".tree{stroke:#9a86d8}.nv{stroke:#8bc63e}.xg{stroke:#fb8a4f}.c2c{stroke:#3fc4c4}.sock{stroke:#94a3b8}"
	".wire,.rail{stroke:#63a8e6}.dot{fill:#63a8e6}\n"
	"}\n"
	"</style>\n";

static const char *const box_class[VERTEX_KINDS] = {
	[VERTEX_GPU] = "gpu",
	[VERTEX_NIC] = "nic",
	[VERTEX_NVSWITCH] = "nvs",
	[VERTEX_PCI_SWITCH] = "sw",
	[VERTEX_BRIDGE] = "hb",
	[VERTEX_CPU] = "cpu",
	[VERTEX_NETWORK] = "net",
};

void svg_words(FILE *out, double x, double y, double room, const char *look, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (strcmp(look, "b") == 0)
		room /= 1.15; /* bold, and larger */
	bool cut = room > 0 && svg_width(text) > room;
	for (size_t n = strlen(text); cut && n > 0 && svg_width(text) > room - 12; n--)
		text[n - 1] = '\0';
	if (!text[0])
		return;
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", look, x, y);
	svg_escaped(text, out);
	fputs(cut ? "&#8230;</text>\n" : "</text>\n", out);
}

void svg_box(FILE *out, const char *look, double x, double y, double w, double h)
{
	fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>\n", look, x, y,
		w, h);
}

double svg_middle(const struct spot *s) { return s->x + s->w / 2; }

double svg_thickness(int32_t width) { return fmin(0.8 + 0.9 * (width > 0 ? width : 1), 6); }

/* ---- what stands in the boxes ---- */

static void pcie_words(char out[VIEW_TEXT], const struct link *k)
{
	char rate[VIEW_RATE];
	view_rate(rate, k->Bps);
	if (k->kind == LINK_PCIE && k->gen > 0 && k->width > 0)
		snprintf(out, VIEW_TEXT, "PCIe %d x%d: %s%s GB/s", k->gen, k->width, k->assumed ? "~" : "", rate);
	else
		snprintf(out, VIEW_TEXT, "%s: %s%s GB/s", link_kind_name(k->kind), k->assumed ? "~" : "", rate);
}

static const char *short_name(const struct vertex *v)
{
	static const char *const makers[] = {"NVIDIA ", "GeForce ", "Tesla ", "AMD "};
	const char *name = v->name;
	for (size_t i = 0; i < COUNT(makers); i++)
		if (strncmp(name, makers[i], strlen(makers[i])) == 0)
			name += strlen(makers[i]);
	return name;
}

static void upright(const struct spot *s, const char *text, FILE *out)
{
	fprintf(out, "<text class=\"up\" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) rotate(-90)\">",
		svg_middle(s) + 4, s->y + s->h / 2);
	svg_escaped(text, out);
	fputs("</text>\n", out);
}

static void leaf_words(const struct picture *l, int32_t at, FILE *out)
{
	const struct vertex *v = &l->g->vertex.at[at];
	const struct spot *s = &l->spot[at];
	double x = svg_middle(s), room = s->w - 6;
	if (l->compact) {
		upright(s, v->label, out);
		return;
	}
	char slot[VIEW_TEXT] = "";
	const struct link *up = s->parent_link >= 0 ? &l->g->link.at[s->parent_link] : NULL;
	if (up)
		pcie_words(slot, up);
	char second[QUANTITY_MAX + 8] = "", rate[VIEW_RATE], *below = slot + strlen(slot);
	if (v->kind == VERTEX_GPU && v->gpu.mem_B) {
		quantity_format(second, (double)v->gpu.mem_B, UNIT_BYTE);
	} else if (v->kind == VERTEX_NIC) {
		bool assumed;
		view_rate(rate, view_nic_Bps(l->g, at, &assumed));
		snprintf(second, sizeof second, "net %s%s GB/s", assumed ? "~" : "", rate);
	}
	if (svg_width(slot) > room && strchr(slot, ':')) { /* in two rows */
		below = strchr(slot, ':');
		*below = '\0';
		below += 2;
	}
	bool narrow = v->kind == VERTEX_GPU && v->gpu.pcie_width > 0 && v->gpu.pcie_width < v->gpu.pcie_width_max;
	const char *const rows[] = {short_name(v), second, slot, below};
	double y = s->y + 20;
	for (size_t i = 0; i < 4; i++)
		y += *rows[i] ? 0 : 9;
	svg_words(out, x, y, room, "b", "%s", v->label);
	for (size_t i = 0; i < 4; i++) {
		y += *rows[i] ? 18 : 0;
		svg_words(out, x, y, room, narrow && i >= 2 ? "alarm" : "soft", "%s", rows[i]);
	}
}

static void inner_words(const struct picture *l, int32_t at, FILE *out)
{
	const struct vertex *v = &l->g->vertex.at[at];
	const struct spot *s = &l->spot[at];
	double x = svg_middle(s), room = s->w - 8;
	const struct link *up = s->parent_link >= 0 ? &l->g->link.at[s->parent_link] : NULL;
	char slot[VIEW_TEXT] = "";
	if (up && up->kind == LINK_PCIE)
		pcie_words(slot, up);
	if (v->kind == VERTEX_CPU) {
		char numa[32] = "";
		if (v->numa >= 0)
			snprintf(numa, sizeof numa, ", NUMA node %d", v->numa);
		bool model = v->cpu.model[0] || v->name[0];
		svg_words(out, x, s->y + (model ? 19 : 28), room, "b", "%s%s", v->label, numa);
		svg_words(out, x, s->y + 37, room, "soft", "%s", v->cpu.model[0] ? v->cpu.model : v->name);
		return;
	}
	if (s->w < 60) {
		upright(s, v->label, out);
		return;
	}
	bool wide = l->narrowest[v->kind] >= 150;
	svg_words(out, x, s->y + (*slot ? 19 : 27), room, "b", "%s%s%s", v->label, wide ? " " : "",
		wide ? vertex_kind_name(v->kind) : "");
	const char *rate = svg_width(slot) > room ? strchr(slot, ':') : NULL; /* then this alone */
	if (*slot)
		svg_words(out, x, s->y + 37, room, "soft", "%s", rate ? rate + 2 : slot);
}

static void vertex_svg(const struct picture *l, int32_t at, FILE *out)
{
	const struct vertex *v = &l->g->vertex.at[at];
	const struct spot *s = &l->spot[at];
	fputs("<g><title>", out);
	svg_escaped(v->label, out);
	fputs(*v->name ? " " : "", out);
	svg_escaped(v->name, out);
	fputs(*v->pci ? " " : "", out);
	svg_escaped(v->pci, out);
	fputs("</title>", out);
	svg_box(out, box_class[v->kind], s->x, s->y, s->w, s->h);
	if (v->kind == VERTEX_GPU || v->kind == VERTEX_NIC)
		leaf_words(l, at, out);
	else
		inner_words(l, at, out);
	fputs("</g>\n", out);
}

/* ---- the whole ---- */

static const char *const conventions[] = {"Rates are of one direction, as a transfer alone can use them.",
	"Those of PCIe stand in the box at the lower end, a NIC's own behind \"net\".",
	"~ is a default, not found on this machine."};
#define LINE_H 18.0
#define KEY_H (74 + LINE_H * COUNT(conventions)) /* below a picture */

/* One sample of each sort of link. */
static void key_svg(const struct picture *l, FILE *out)
{
	const struct graph *g = l->g;
	double x = LAYOUT_MARGIN, y = l->height + 38;
	size_t shown[CLASSES_SHOWN], n = 0;
	for (size_t i = 0; i < g->link.n && n < CLASSES_SHOWN; i++) {
		const struct link *k = &g->link.at[i];
		bool known = k->kind == LINK_PCIE || k->kind == LINK_LOCAL || k->kind == LINK_NETWORK;
		for (size_t j = 0; j < n; j++) {
			const struct link *other = &g->link.at[shown[j]];
			known |= other->kind == k->kind && other->width == k->width && fabs(other->Bps - k->Bps) < 1;
		}
		if (known)
			continue;
		shown[n++] = i;
		char kind[VIEW_TEXT], rate[VIEW_RATE], text[3 * VIEW_TEXT];
		snprintf(text, sizeof text, "%s: %s%s GB/s%s", view_link(kind, k), k->assumed ? "~" : "",
			view_rate(rate, k->Bps),
			k->kind == LINK_SOCKET && svg_crowded(g) ? ", between neighbours alone drawn" : "");
		double w = 46 + svg_width(text) + 24;
		if (x > LAYOUT_MARGIN && x + w > l->width) {
			x = LAYOUT_MARGIN;
			y += 20;
		}
		fprintf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fh36\"/>\n",
			svg_wire_class[k->kind], k->kind == LINK_SOCKET ? 3 : svg_thickness(k->width), x, y - 4);
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 44, y);
		svg_escaped(text, out);
		fputs("</text>\n", out);
		x += w;
	}
	y += n ? 24 : 0;
	for (size_t i = 0; i < COUNT(conventions); i++)
		fprintf(out, "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", LAYOUT_MARGIN,
			y + LINE_H * (double)i, conventions[i]);
}

static void make_svg(const struct cluster *c, const struct view_make *make, const struct picture *l, FILE *out)
{
	const struct cluster_shape *s = &c->shape.at[make->shape];
	const struct graph *g = l->g;
	const char *host = view_host(c, s, s->first_host);
	fprintf(out, "<text class=\"title\" x=\"%.1f\" y=\"34\">", LAYOUT_MARGIN);
	svg_escaped(host, out);
	if (*g->model) {
		fputs(*host ? ": " : "", out);
		svg_escaped(g->model, out);
	}
	if (make->hosts > 1)
		fprintf(out, " (%lld hosts alike)", (long long)make->hosts);
	fprintf(out,
		"<tspan class=\"soft\" font-size=\"13\" font-weight=\"400\" dx=\"14\">%zu GPU%s, %zu NIC%s; source: "
		"%s</tspan></text>\n",
		g->gpu.n, g->gpu.n == 1 ? "" : "s", g->nic.n, g->nic.n == 1 ? "" : "s", evidence_name(g->source));
	for (size_t i = 0; i < l->panel.n; i++) {
		const struct panel *p = &l->panel.at[i];
		const struct line_of_panels *row = &l->line.at[p->line];
		svg_box(out, "panel", p->x, row->top, p->w, row->nvlink - row->top + 8);
	}
	svg_wires(l, out);
	for (size_t i = 0; i < g->vertex.n; i++)
		if (l->spot[i].panel >= 0)
			vertex_svg(l, (int32_t)i, out);
	key_svg(l, out);
}

enum status view_svg(const struct cluster *c, FILE *out, struct error *e)
{
	struct view_makes makes;
	double width = 0, height = 0;
	struct picture *layout = NULL;
	for (size_t i = 0; i < COUNT(conventions); i++)
		width = fmax(width, svg_width(conventions[i]) + 2 * LAYOUT_MARGIN);
	enum status st = view_makes(c, &makes, e);
	if (!st && !(layout = calloc(makes.list.n + 1, sizeof *layout)))
		st = error_nomem(e, "a picture's layout");
	for (size_t i = 0; i < makes.list.n && !st; i++) {
		if ((st = picture_make(c->shape.at[makes.list.at[i].shape].graph, &layout[i], e)))
			break;
		width = fmax(width, layout[i].width);
		height += layout[i].height + KEY_H;
	}
	if (st)
		goto out;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
		"role=\"img\">\n",
		width, height, width, height);
	fputs(style, out);
	fprintf(out, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
	double y = 0;
	for (size_t i = 0; i < makes.list.n; i++) {
		fprintf(out, "<g transform=\"translate(0 %.0f)\">\n", y);
		make_svg(c, &makes.list.at[i], &layout[i], out);
		fputs("</g>\n", out);
		y += layout[i].height + KEY_H;
	}
	fputs("</svg>\n", out);
out:
	for (size_t i = 0; layout && i < makes.list.n; i++)
		picture_free(&layout[i]);
	free(layout);
	view_makes_free(&makes);
	return st;
}
