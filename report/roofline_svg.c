/* The roofline as a picture: log-log, FLOP/s over FLOP/B. Colours stand in one style sheet with a dark half, which
 * viewers that do not know it leave out.
 *
 * Horizontal roofs are named at their right ends, moved apart where they would touch; slopes and the datasheet's roofs
 * in the key below; ridge points on the picture.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "base/svg.h"
#include "report/picture.h"
#include "report/roofline.h"

#define LEFT 78.0
#define TOP 74.0
#define PLOT_W 640.0
#define PLOT_H 430.0
#define RIGHT 250.0
#define LINE_H 17.0 /* of texts above each other */
#define KEY_COLUMN 440.0
#define MARKS 24

static const char style[] =
	"<style>\n"
	"text{font-family:Inter,\"Helvetica Neue\",Helvetica,Arial,sans-serif;font-size:12px;fill:#1d2430}\n"
	".paper{fill:#ffffff}.title{font-size:18px;font-weight:600}.soft{fill:#5b6676}.frame{fill:none;"
	"stroke:#8b98a9}.grid{stroke:#e5e9ef}\n"
	".halo{paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}.lead{fill:none;"
	"stroke:#b3bdca}\n"
	".roof{fill:none;stroke-width:2.2}.sheet{fill:none;stroke:#8b98a9;stroke-width:1.5;stroke-dasharray:6 4}\n"
	".l0{stroke:#b45309}.l1{stroke:#0f8a8a}.l2{stroke:#8d5bc9}.memory{stroke:#1d4ed8}.vector{stroke:#5d9300}"
	".matrix{stroke:#c2410c}\n"
	".poly{fill:#5d9300;stroke:#ffffff}.gemm{fill:#c2410c;stroke:#ffffff}.ridge{fill:#ffffff;stroke:#1d2430;"
	"stroke-width:1.6}\n"
	"@media (prefers-color-scheme:dark){\n"
	"text{fill:#e6eaf0}.paper{fill:#12161c}.soft{fill:#9aa6b6}.frame{stroke:#6c7a8c}.grid{stroke:#252d37}.halo{"
	"stroke:#12161c}.lead{stroke:#55616f}.sheet{stroke:#8794a5}\n"
	".l0{stroke:#f5a65b}.l1{stroke:#3fc4c4}.l2{stroke:#b79ae8}.memory{stroke:#6ea0ff}.vector{stroke:#8bc63e}"
	".matrix{stroke:#fb8a4f}\n"
	".poly{fill:#8bc63e;stroke:#12161c}.gemm{fill:#fb8a4f;stroke:#12161c}.ridge{fill:#12161c;stroke:#e6eaf0}\n"
	"}\n"
	"</style>\n";

/* The visible range: whole decades. */
struct axes {
	double x0, x1, y0, y1; /* powers of ten */
};

static double at_x(const struct axes *a, double ai) { return LEFT + PLOT_W * (log10(ai) - a->x0) / (a->x1 - a->x0); }

static double at_y(const struct axes *a, double flop_per_s)
{
	return TOP + PLOT_H * (a->y1 - log10(flop_per_s)) / (a->y1 - a->y0);
}

static void words(FILE *out, const char *look, const char *anchor, double x, double y, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
static void words(FILE *out, const char *look, const char *anchor, double x, double y, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", look, x, y, anchor);
	svg_escaped(text, out);
	fputs("</text>\n", out);
}

/* ---- what is drawn ---- */

struct mark {
	const char *look;
	char text[96];
	double peak, Bps; /* of the roof; one of them 0 */
	double y;         /* of its text */
};

struct drawing {
	const struct roofline *r;
	struct axes axes;
	struct mark flat[MARKS], slope[MARKS];
	int flats, slopes;
};

static void add_flat(struct drawing *g, const char *look, double peak, const char *what, enum dtype d,
	const char *source)
{
	char text[QUANTITY_MAX];
	if (peak <= 0 || g->flats == MARKS)
		return;
	struct mark *m = &g->flat[g->flats++];
	*m = (struct mark){.look = look, .peak = peak};
	snprintf(m->text, sizeof m->text, "%s %s: %s%s", what, dtype_name(d),
		quantity_format(text, peak, UNIT_FLOP_PER_S), source);
}

static void add_slope(struct drawing *g, const char *look, double Bps, const char *what, const char *source)
{
	char text[QUANTITY_MAX];
	if (Bps <= 0 || g->slopes == MARKS)
		return;
	struct mark *m = &g->slope[g->slopes++];
	*m = (struct mark){.look = look, .Bps = Bps};
	snprintf(m->text, sizeof m->text, "%s: %s%s", what, quantity_format(text, Bps, UNIT_BYTE_PER_S), source);
}

static void collect(struct drawing *g)
{
	static const char *const cache_look[] = {"roof l0", "roof l1", "roof l2"};
	const struct roofline *r = g->r;
	for (int i = 0; i < r->levels; i++)
		add_slope(g, i == r->levels - 1 ? "roof memory" : cache_look[i % 3],
			i == r->levels - 1 ? roofline_mem_Bps(r) : roof_level_Bps(&r->level[i]), r->level[i].name,
			", measured");
	add_slope(g, "sheet", r->sheet.mem_Bps, "memory", ", datasheet");
	for (int k = 0; k < 2; k++)
		for (int d = 0; d < DT_COUNT; d++)
			add_flat(g, k ? "roof matrix" : "roof vector",
				roofline_peak(r, k ? ROOF_GEMM : ROOF_POLY, (enum dtype)d), k ? "matrix" : "vector",
				(enum dtype)d, "");
	/* A datasheet says more formats than are measured: those that are not would only fill the picture. */
	for (int k = 0; k < 2; k++)
		for (int d = 0; d < DT_COUNT; d++) {
			const enum roof_kind kind = k ? ROOF_GEMM : ROOF_POLY;
			if (roofline_peak(r, kind, (enum dtype)d) > 0 ||
				(r->rows.n == 0 && (d == DT_FP32 || d == DT_BF16)))
				add_flat(g, "sheet", roofline_sheet_peak(r, kind, (enum dtype)d),
					k ? "matrix" : "vector", (enum dtype)d, ", datasheet");
		}
}

static void widen(struct axes *a, double ai, double flop_per_s)
{
	if (ai > 0) {
		a->x0 = fmin(a->x0, floor(log10(ai)));
		a->x1 = fmax(a->x1, ceil(log10(ai)));
	}
	if (flop_per_s > 0) {
		a->y0 = fmin(a->y0, floor(log10(flop_per_s)));
		a->y1 = fmax(a->y1, ceil(log10(flop_per_s) + 0.08));
	}
}

/* Around all points, all roofs, and the slopes' left ends. */
static struct axes find_axes(const struct drawing *g)
{
	struct axes a = {-1, 3, INFINITY, -INFINITY};
	for (size_t i = 0; i < g->r->rows.n; i++)
		widen(&a, g->r->rows.at[i].ai, g->r->rows.at[i].flop_per_s);
	for (int i = 0; i < g->flats; i++)
		widen(&a, 0, g->flat[i].peak);
	for (int i = 0; i < g->slopes; i++)
		widen(&a, 0, g->slope[i].Bps * pow(10, a.x0));
	if (!isfinite(a.y0)) {
		a.y0 = 9;
		a.y1 = 12;
	}
	return a;
}

/* ---- the frame ---- */

static void frame(const struct drawing *g, FILE *out)
{
	const struct axes *a = &g->axes;
	char text[QUANTITY_MAX];
	for (double x = a->x0; x <= a->x1 + 0.1; x++) {
		const double at = at_x(a, pow(10, x));
		fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/>\n", at, TOP, PLOT_H);
		words(out, "soft", "middle", at, TOP + PLOT_H + 18, "%g", pow(10, x));
	}
	for (double y = a->y0; y <= a->y1 + 0.1; y++) {
		const double at = at_y(a, pow(10, y));
		fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/>\n", LEFT, at, PLOT_W);
		quantity_format(text, pow(10, y) * 1.0000001, UNIT_FLOP_PER_S);
		double value = strtod(text, NULL);
		const char *unit = strchr(text, ' ');
		char *prefix = unit ? strstr(text, "FLOP/s") : NULL;
		if (prefix)
			*prefix = '\0';
		words(out, "soft", "end", LEFT - 8, at + 4, "%g%s", value, unit ? unit : "");
	}
	fprintf(out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", LEFT, TOP,
		PLOT_W, PLOT_H);
	words(out, "soft", "middle", LEFT + PLOT_W / 2, TOP + PLOT_H + 40, "arithmetic intensity, FLOP/B");
	fprintf(out,
		"<text class=\"soft\" text-anchor=\"middle\" transform=\"translate(20 %.1f) "
		"rotate(-90)\">FLOP/s</text>\n",
		TOP + PLOT_H / 2);
}

/* ---- roofs ---- */

static double highest(const struct drawing *g)
{
	double most = 0;
	for (int i = 0; i < g->flats; i++)
		most = fmax(most, g->flat[i].peak);
	return most > 0 ? most : pow(10, g->axes.y1);
}

static void draw_slopes(const struct drawing *g, FILE *out)
{
	const struct axes *a = &g->axes;
	const double top = highest(g), left = pow(10, a->x0), right = pow(10, a->x1);
	for (int i = 0; i < g->slopes; i++) {
		const struct mark *m = &g->slope[i];
		const double end = fmin(top / m->Bps, right);
		if (end > left)
			fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", m->look, at_x(a, left),
				at_y(a, left * m->Bps), at_x(a, end), at_y(a, end * m->Bps));
	}
}

static int by_height(const void *x, const void *y)
{
	const struct mark *a = x, *b = y;
	return a->y < b->y ? -1 : a->y > b->y;
}

/* Texts in order of their roofs, at least a line apart, within the frame's height where that is enough. */
static void part(struct mark *m, int n, double from, double to)
{
	qsort(m, (size_t)n, sizeof *m, by_height);
	for (int i = 0; i < n; i++)
		m[i].y = fmax(m[i].y, i ? m[i - 1].y + LINE_H : from);
	for (int i = n - 1; i >= 0; i--)
		m[i].y = fmin(m[i].y, i == n - 1 ? fmax(to, from + (n - 1) * LINE_H) : m[i + 1].y - LINE_H);
}

static void draw_flats(struct drawing *g, FILE *out)
{
	const struct axes *a = &g->axes;
	const double end = LEFT + PLOT_W;
	double Bps = 0;
	for (int i = 0; i < g->slopes; i++)
		Bps = fmax(Bps, g->slope[i].Bps);
	for (int i = 0; i < g->flats; i++) {
		struct mark *m = &g->flat[i];
		const double y = at_y(a, m->peak), x = Bps > 0 ? fmin(fmax(at_x(a, m->peak / Bps), LEFT), end) : LEFT;
		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>\n", m->look, x, y, end);
		m->y = y + 4;
	}
	part(g->flat, g->flats, TOP + 4, TOP + PLOT_H + 4);
	for (int i = 0; i < g->flats; i++) {
		const struct mark *m = &g->flat[i];
		fprintf(out, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", end, at_y(a, m->peak), end + 14,
			m->y - 4);
		words(out, strcmp(m->look, "sheet") == 0 ? "soft" : "", "start", end + 18, m->y, "%s", m->text);
	}
}

/* Draws the ridge points, at which measured roofs meet memory's. Texts stand left of their points, above the slope. Of
 * points that lie close together, the highest has a text. */
static void draw_ridges(const struct drawing *g, FILE *out)
{
	const double Bps = roofline_mem_Bps(g->r);
	const struct axes *a = &g->axes;
	struct mark text[MARKS];
	int n = 0;
	for (int i = 0; i < g->flats; i++) {
		const struct mark *m = &g->flat[i];
		const double ridge = roof_ridge(m->peak, Bps);
		if (strcmp(m->look, "sheet") == 0 || !(ridge > pow(10, a->x0) && ridge < pow(10, a->x1)))
			continue;
		fprintf(out, "<circle class=\"ridge\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", at_x(a, ridge),
			at_y(a, m->peak));
		text[n] = *m;
		text[n].Bps = ridge;
		text[n++].y = at_y(a, m->peak) - 8;
	}
	qsort(text, (size_t)n, sizeof *text, by_height);
	int kept = 0;
	for (int i = 0; i < n; i++)
		if (kept == 0 || text[i].y > text[kept - 1].y + LINE_H / 2)
			text[kept++] = text[i];
	part(text, kept, TOP + 12, TOP + PLOT_H);
	for (int i = 0; i < kept; i++)
		words(out, "halo", "end", at_x(a, text[i].Bps) - 8, text[i].y,
			text[i].Bps < 10 ? "ridge %.2f FLOP/B" : "ridge %.0f FLOP/B", text[i].Bps);
}

static void draw_points(const struct drawing *g, FILE *out)
{
	const struct axes *a = &g->axes;
	for (size_t i = 0; i < g->r->rows.n; i++) {
		const struct roof_row *x = &g->r->rows.at[i];
		const double px = at_x(a, x->ai), py = at_y(a, x->flop_per_s);
		char rate[QUANTITY_MAX];
		quantity_format(rate, x->flop_per_s, UNIT_FLOP_PER_S);
		if (x->kind == ROOF_POLY)
			fprintf(out, "<circle class=\"poly\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\">", px, py);
		else
			fprintf(out, "<rect class=\"gemm\" x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\">", px - 4.5,
				py - 4.5);
		fprintf(out, "<title>%s %s = %lld: %.3g FLOP/B, %s</title></%s>\n", dtype_name(x->dtype),
			x->kind == ROOF_POLY ? "polynomial, k" : "product, size", (long long)x->size, x->ai, rate,
			x->kind == ROOF_POLY ? "circle" : "rect");
	}
}

/* ---- the key ---- */

static int key_rows(const struct drawing *g) { return (g->slopes + (g->r->rows.n > 0 ? 2 : 0) + 1) / 2; }

static void draw_key(const struct drawing *g, FILE *out)
{
	const double top = TOP + PLOT_H + 70;
	int n = 0;
	for (; n < g->slopes; n++) {
		const double x = LEFT + KEY_COLUMN * (n % 2), y = top + LINE_H * (n / 2);
		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fh34\"/>\n", g->slope[n].look, x, y - 4);
		words(out, "", "start", x + 44, y, "%s", g->slope[n].text);
	}
	for (int i = 0; i < 2 && g->r->rows.n > 0; i++, n++) {
		const double x = LEFT + KEY_COLUMN * (n % 2), y = top + LINE_H * (n / 2);
		if (i == 0)
			fprintf(out, "<circle class=\"poly\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n", x + 17, y - 4);
		else
			fprintf(out, "<rect class=\"gemm\" x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\"/>\n",
				x + 12.5, y - 8.5);
		words(out, "", "start", x + 44, y, "%s",
			i == 0 ? "polynomial a + a^2 + ... + a^k, k = 1 to 1000"
			       : "square products, size doubling to the right");
	}
}

static void draw(const struct roofline *r, FILE *out)
{
	struct drawing g = {.r = r};
	collect(&g);
	g.axes = find_axes(&g);
	const double width = LEFT + PLOT_W + RIGHT, height = TOP + PLOT_H + 70 + LINE_H * key_rows(&g) + 8;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
		"height=\"%.0f\" role=\"img\">\n",
		width, height, width, height);
	fputs(style, out);
	fprintf(out, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
	words(out, "title", "start", LEFT, 32, "Roofline of %s", r->device);
	words(out, "soft", "start", LEFT, 54, "%lld %s%s of %s%s%s", (long long)r->units, r->gpu ? "SM" : "core",
		r->units == 1 ? "" : "s", r->host,
		r->doubles     ? "; executed on doubles of the CUDA libraries: nothing was measured"
		: r->ranks > 1 ? "; the slowest rank of those that measured at once"
			       : "",
		*r->sheet.name ? "; dashed: datasheet" : "");
	frame(&g, out);
	draw_slopes(&g, out);
	draw_flats(&g, out);
	draw_ridges(&g, out);
	draw_points(&g, out);
	draw_key(&g, out);
	fputs("</svg>\n", out);
}

static void write_picture(const void *of, FILE *out) { draw(of, out); }

enum status report_roofline_svg(const struct roofline *r, const char *path, struct error *e)
{
	return picture_save(path, write_picture, r, "a picture", e);
}
