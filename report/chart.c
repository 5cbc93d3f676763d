#include "report/chart.h"

#include <math.h>
#include <stdlib.h>

#include "base/svg.h"
#include "report/figures.h"
#include "report/picture.h"

#define LEFT 86.0
#define TOP 52.0
#define PLOT_W 640.0
#define PLOT_H 360.0
#define BELOW 56.0
#define KEY_LINE 18.0

static const char style[] =
	"<style>\n"
	"text{font-family:Inter,\"Helvetica Neue\",Helvetica,Arial,sans-serif;font-size:12px;fill:#1d2430}\n"
	".paper{fill:#ffffff}.title{font-size:16px;font-weight:600}.soft{fill:#5b6676}.frame{fill:none;"
	"stroke:#8b98a9}.grid{stroke:#e5e9ef}\n"
	".line{fill:none;stroke-width:2.2;stroke-linejoin:round}.dash{stroke-dasharray:6 4;stroke-width:1.5}.band{"
	"opacity:.16}.hollow{fill:#ffffff;stroke-width:1.8}\n"
	"@media (prefers-color-scheme:dark){text{fill:#e6eaf0}.paper{fill:#12161c}.soft{fill:#9aa6b6}.frame{"
	"stroke:#6c7a8c}.grid{stroke:#252d37}"
	".hollow{fill:#12161c}}\n"
	"</style>\n";
static const char *const colours[CHART_LINES] = {"#2f6fd6", "#c2410c", "#5d9300", "#8d5bc9", "#0f8a8a", "#b4530a",
	"#d6457f", "#6b7280", "#9a8500", "#3b3fb8", "#a3341f", "#2c7a4b"};

struct axis {
	double from, to; /* log10 where log */
	bool log;
};

static double place(const struct axis *a, double v)
{
	double at = a->log ? log10(v) : v;
	return a->to > a->from ? (at - a->from) / (a->to - a->from) : 0.5;
}

static double at_x(const struct axis *a, double v) { return LEFT + PLOT_W * place(a, v); }

static double at_y(const struct axis *a, double v) { return TOP + PLOT_H * (1 - place(a, v)); }

static void words(FILE *out, const char *look, const char *anchor, double x, double y, const char *text)
{
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", look, x, y, anchor);
	svg_escaped(text, out);
	fputs("</text>\n", out);
}

static void widen(struct axis *a, double v, bool *any)
{
	if (!isfinite(v) || (a->log && v <= 0))
		return;
	double at = a->log ? log10(v) : v;
	a->from = *any ? fmin(a->from, at) : at;
	a->to = *any ? fmax(a->to, at) : at;
	*any = true;
}

static void find_axes(const struct chart *c, struct axis *x, struct axis *y)
{
	bool any_x = false, any_y = false;
	*x = (struct axis){.log = c->x_log};
	*y = (struct axis){.log = c->y_log};
	for (size_t l = 0; l < c->lines; l++)
		for (size_t i = 0; i < c->line[l].n; i++) {
			const struct chart_point *p = &c->line[l].at[i];
			if (isfinite(p->y))
				widen(x, p->x, &any_x);
			widen(y, p->y, &any_y);
			widen(y, p->low, &any_y);
			widen(y, p->high, &any_y);
		}
	if (c->x_words && c->lines > 0 && c->line[0].dots) { /* points alone stand clear of the frame */
		x->from -= 0.5;
		x->to += 0.5;
	}
	if (!y->log)
		widen(y, 0, &any_y);
	double pad = y->log ? fmax(0.04, 0.05 * (y->to - y->from)) : 0.05 * (y->to - y->from);
	y->to += pad;
	y->from -= y->log ? pad : 0;
}

/* Returns 1, 2 or 5 times a power of ten, so that there are about `most` ticks. */
static double tick_of(double length, double most)
{
	double step = pow(10, floor(log10(length / most)));
	static const double times[] = {1, 2, 5, 10};
	for (int i = 0; i < 4; i++)
		if (length / (step * times[i]) <= most)
			return step * times[i];
	return step * 10;
}

/* "16", not "16.0". */
static const char *tick_text(char buf[QUANTITY_MAX], double v, enum unit unit)
{
	if (unit != UNIT_NONE)
		return quantity_format(buf, v, unit);
	if (fabs(v) >= 1e4)
		return figure_count(buf, v);
	snprintf(buf, QUANTITY_MAX, "%.4g", v);
	return buf;
}

static void tick(FILE *out, const struct chart *c, const struct axis *a, bool is_x, double v)
{
	char text[QUANTITY_MAX];
	double share = place(a, v);
	if (share < -1e-9 || share > 1 + 1e-9)
		return;
	tick_text(text, v, is_x ? c->x_unit : c->y_unit);
	if (is_x) {
		fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", at_x(a, v),
			at_x(a, v), TOP, TOP + PLOT_H);
		words(out, "soft", "middle", at_x(a, v), TOP + PLOT_H + 18, text);
	} else {
		fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
			LEFT + PLOT_W, at_y(a, v), at_y(a, v));
		words(out, "soft", "end", LEFT - 8, at_y(a, v) + 4, text);
	}
}

/* The least distance between neighbours' labels. */
#define TICK_ROOM 44.0
#define POINTS_FEW 10

/* Returns whether every line has few points. Their x are then the ticks, in place of round numbers: 8, 16, 32 GPUs. */
static bool few_points(const struct chart *c)
{
	for (size_t l = 0; l < c->lines; l++)
		if (c->line[l].n > POINTS_FEW)
			return false;
	return c->lines > 0;
}

static void tick_points(FILE *out, const struct chart *c, const struct axis *a)
{
	double last = -INFINITY;
	for (size_t i = 0; i < c->line[0].n; i++)
		if (at_x(a, c->line[0].at[i].x) >= last + TICK_ROOM) {
			last = at_x(a, c->line[0].at[i].x);
			tick(out, c, a, true, c->line[0].at[i].x);
		}
}

static void draw_axis(FILE *out, const struct chart *c, const struct axis *a, bool is_x)
{
	if (is_x && a->log && few_points(c)) {
		tick_points(out, c, a);
		return;
	}
	if (!a->log) {
		double length = a->to > a->from ? a->to - a->from : 1, most = is_x ? 8 : 6;
		double step = (is_x ? c->x_unit : c->y_unit) == UNIT_BYTE ? exp2(ceil(log2(length / most)))
		                                                          : tick_of(length, most);
		for (double v = ceil(a->from / step) * step; v <= a->to + step * 1e-9; v += step)
			tick(out, c, a, is_x, v);
		return;
	}
	bool many = a->to - a->from > 2.5;
	for (double e = floor(a->from); e <= a->to; e++)
		for (int k = 1; k < 10; k = k == 1 ? 2 : k == 2 ? 5 : 10)
			if (k == 1 || !many)
				tick(out, c, a, is_x, k * pow(10, e));
}

static void draw_words(FILE *out, const struct chart *c, const struct axis *a)
{
	for (size_t i = 0; i < c->n_words; i++)
		words(out, "soft", "middle", at_x(a, (double)i), TOP + PLOT_H + 18, c->x_words[i]);
}

static void draw_band(FILE *out, const struct chart_line *l, const struct axis *x, const struct axis *y,
	const char *colour)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		n += isfinite(l->at[i].low) && isfinite(l->at[i].high) && isfinite(l->at[i].y);
	if (n < 2)
		return;
	fprintf(out, "<polygon class=\"band\" fill=\"%s\" points=\"", colour);
	for (size_t i = 0; i < l->n; i++)
		if (isfinite(l->at[i].high) && isfinite(l->at[i].y))
			fprintf(out, "%.1f,%.1f ", at_x(x, l->at[i].x), at_y(y, l->at[i].high));
	for (size_t i = l->n; i-- > 0;)
		if (isfinite(l->at[i].low) && isfinite(l->at[i].y))
			fprintf(out, "%.1f,%.1f ", at_x(x, l->at[i].x), at_y(y, l->at[i].low));
	fputs("\"/>\n", out);
}

/* Opens a circle's element. */
static void draw_dot(FILE *out, double x, double y, const char *colour, bool hollow)
{
	fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" %s=\"%s\">", x, y,
		hollow ? "class=\"hollow\" stroke" : "fill", colour);
}

static void draw_line(FILE *out, const struct chart *c, size_t k, const struct axis *x, const struct axis *y)
{
	const struct chart_line *l = &c->line[k];
	const char *colour = l->dashed ? "#8b98a9" : colours[k % CHART_LINES];
	if (!l->dots)
		draw_band(out, l, x, y, colour);
	bool open = false;
	for (size_t i = 0; i < l->n && !l->dots; i++) {
		bool there = isfinite(l->at[i].y);
		if (there && !open)
			fprintf(out, "<polyline class=\"line%s\" stroke=\"%s\" points=\"", l->dashed ? " dash" : "",
				colour);
		if (there)
			fprintf(out, "%.1f,%.1f ", at_x(x, l->at[i].x), at_y(y, l->at[i].y));
		else if (open)
			fputs("\"/>\n", out);
		open = there;
	}
	if (open)
		fputs("\"/>\n", out);
	const double wide = fmin(90, 0.55 * PLOT_W / (double)(l->n + 1));
	for (size_t i = 0; i < l->n && !l->dashed; i++) {
		if (!isfinite(l->at[i].y))
			continue;
		if (l->bars)
			fprintf(out,
				"<rect fill=\"%s\" opacity=\".35\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				"height=\"%.1f\"/>\n",
				colour, at_x(x, l->at[i].x) - wide / 2, at_y(y, l->at[i].y), wide,
				at_y(y, 0) - at_y(y, l->at[i].y));
		char a[QUANTITY_MAX], b[QUANTITY_MAX];
		if (l->dots && isfinite(l->at[i].low) && isfinite(l->at[i].high))
			fprintf(out,
				"<line class=\"line\" stroke=\"%s\" opacity=\".45\" x1=\"%.1f\" x2=\"%.1f\" "
				"y1=\"%.1f\" y2=\"%.1f\"/>\n",
				colour, at_x(x, l->at[i].x), at_x(x, l->at[i].x), at_y(y, l->at[i].low),
				at_y(y, l->at[i].high));
		draw_dot(out, at_x(x, l->at[i].x), at_y(y, l->at[i].y), colour, l->at[i].hollow);
		fputs("<title>", out);
		svg_escaped(c->x_words ? c->x_words[(size_t)l->at[i].x] : tick_text(a, l->at[i].x, c->x_unit), out);
		fprintf(out, ": %s%s%s</title></circle>\n", quantity_format(b, l->at[i].y, c->y_unit),
			l->at[i].hollow ? ", " : "", l->at[i].hollow ? c->hollow : "");
	}
}

static size_t key_lines(const struct chart *c) { return (c->lines > 1 ? c->lines : 0) + (c->hollow ? 1 : 0); }

static void draw_key(FILE *out, const struct chart *c)
{
	double y = TOP + PLOT_H + BELOW;
	for (size_t k = 0; k < c->lines && c->lines > 1; k++, y += KEY_LINE) {
		fprintf(out, "<line class=\"line%s\" stroke=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			c->line[k].dashed ? " dash" : "", c->line[k].dashed ? "#8b98a9" : colours[k % CHART_LINES],
			LEFT, LEFT + 26, y - 4, y - 4);
		words(out, "key", "start", LEFT + 34, y, c->line[k].name);
	}
	if (c->hollow) {
		draw_dot(out, LEFT + 13, y - 4, "#8b98a9", true);
		fputs("</circle>\n", out);
		words(out, "key", "start", LEFT + 34, y, c->hollow);
	}
}

void chart_write(const struct chart *c, FILE *out)
{
	struct axis x, y;
	double width = LEFT + PLOT_W + 30, height = TOP + PLOT_H + BELOW + KEY_LINE * (double)key_lines(c);
	find_axes(c, &x, &y);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
		"height=\"%.0f\">\n%s<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n",
		width, height, width, height, style);
	words(out, "title", "start", LEFT, 24, c->title);
	words(out, "soft", "start", LEFT, TOP - 8, c->y_name);
	draw_axis(out, c, &y, false);
	if (c->x_words)
		draw_words(out, c, &x);
	else
		draw_axis(out, c, &x, true);
	fprintf(out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", LEFT, TOP,
		PLOT_W, PLOT_H);
	words(out, "soft", "middle", LEFT + PLOT_W / 2, TOP + PLOT_H + 38, c->x_name);
	for (size_t k = 0; k < c->lines && k < CHART_LINES; k++)
		draw_line(out, c, k, &x, &y);
	draw_key(out, c);
	fputs("</svg>\n", out);
}

static void write_chart(const void *of, FILE *out) { chart_write(of, out); }

enum status chart_save(const struct chart *c, const char *path, struct error *e)
{
	return picture_save(path, write_chart, c, "the plot", e);
}
