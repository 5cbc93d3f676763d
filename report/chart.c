#include "report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/svg.h"
#include "report/chart_labels.h"
#include "report/figures.h"
#include "report/picture.h"

/* Half of a page's width in a picture's own size: its text keeps its size there. A close chart has all of it. */
#define LEFT 66.0
#define RIGHT 30.0
#define TOP 50.0
#define PLOT_W 464.0
#define PLOT_H 270.0
#define CLOSE_W 864.0
#define CLOSE_H 360.0
#define BELOW 56.0
#define KEY_LINE 18.0
#define KEY_TEXT (LEFT + 34)
#define LEAN 35 /* degrees */
#define LEAN_SIN 0.57
#define LEAN_COS 0.82
#define LEAN_MOST 150.0 /* px of a leaning name; longer ones are cut */
#define WIDEST 1.15     /* width of letters in a browser's widest font over svg_width */
#define CLOSE_SPAN 0.05 /* least part of a value that a close axis shows: three digits tell its ticks apart */

static const char style[] =
	"<style>\n"
	"text{font-family:Inter,\"Helvetica Neue\",Helvetica,Arial,sans-serif;font-size:12px;fill:#1d2430}\n"
	".paper{fill:#ffffff}.title{font-size:15px;font-weight:600}.soft{fill:#5b6676}.frame{fill:none;"
	"stroke:#8b98a9}.grid{stroke:#e5e9ef}\n"
	".label{font-weight:600;paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}\n"
	".lead{stroke:#8b98a9;stroke-width:.8}\n"
	".line{fill:none;stroke-width:2.2;stroke-linejoin:round}.dash{stroke-dasharray:6 4;stroke-width:1.5}.band{"
	"opacity:.16}.hollow{fill:#ffffff;stroke-width:1.8}\n"
	"@media (prefers-color-scheme:dark){text{fill:#e6eaf0}.paper{fill:#12161c}.soft{fill:#9aa6b6}.frame{"
	"stroke:#6c7a8c}.grid{stroke:#252d37}.hollow{fill:#12161c}.label{stroke:#12161c}"
	".line,circle,.band{filter:brightness(1.35)}}\n"
	"</style>\n";
static const char *const colours[CHART_LINES] = {"#2f6fd6", "#c2410c", "#5d9300", "#8d5bc9", "#0f8a8a", "#b4530a",
	"#d6457f", "#6b7280", "#9a8500", "#3b3fb8", "#a3341f", "#2c7a4b"};

#define REFERENCE "#8b98a9" /* grey: what belongs to no line */
#define LABELS 512          /* dots that labels keep clear of */

struct axis {
	double from, to; /* log10 where log */
	bool log;
	double start, length; /* in px; y's is negative */
};

static double plot_w(const struct chart *c) { return c->close ? CLOSE_W : PLOT_W; }
static double plot_h(const struct chart *c) { return c->close ? CLOSE_H : PLOT_H; }
static double width_of(const struct chart *c) { return LEFT + plot_w(c) + RIGHT; }
static double bottom_of(const struct chart *c) { return TOP + plot_h(c); }

/* Names of x that do not fit beside each other lean: returns the height that they take more, or 0. */
static double lean_h(const struct chart *c)
{
	double wide = 0;
	for (size_t i = 0; i < c->n_words; i++)
		wide = fmax(wide, WIDEST * svg_width(c->x_words[i]));
	return wide > plot_w(c) / (double)c->n_words - 8 ? fmin(wide, LEAN_MOST) * LEAN_SIN : 0;
}

static double below(const struct chart *c) { return bottom_of(c) + lean_h(c); }

static double place(const struct axis *a, double v)
{
	double at = a->log ? log10(v) : v;
	return a->to > a->from ? (at - a->from) / (a->to - a->from) : 0.5;
}

static double px(const struct axis *a, double v) { return a->start + a->length * place(a, v); }

/* A text that is wider than `room` px is cut; the pointer then shows all of it. */
static void words_within(FILE *out, const char *look, const char *anchor, double x, double y, const char *text,
	double room)
{
	char cut[256];
	size_t n = strlen(text);
	snprintf(cut, sizeof cut, "%s", text);
	while (n > 1 && (n >= sizeof cut - 2 || WIDEST * svg_width(cut) > room)) {
		n = n < sizeof cut - 2 ? n - 1 : sizeof cut - 3;
		strcpy(cut + n, "..");
	}
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", look, x, y, anchor);
	svg_escaped(cut, out);
	if (strcmp(cut, text) != 0) {
		fputs("<title>", out);
		svg_escaped(text, out);
		fputs("</title>", out);
	}
	fputs("</text>\n", out);
}

static void words(FILE *out, const char *look, const char *anchor, double x, double y, const char *text)
{
	words_within(out, look, anchor, x, y, text, INFINITY);
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

/* Leaves room around the points, for their labels, and shows at least CLOSE_SPAN of the largest. */
static void close_up(struct axis *a)
{
	const double lacks = a->log ? 0 : fmax(0, CLOSE_SPAN * a->to - (a->to - a->from)),
		     pad = 0.07 * (a->to - a->from) + lacks / 2;
	a->from -= pad;
	a->to += pad;
}

static void find_axes(const struct chart *c, struct axis *x, struct axis *y)
{
	bool any_x = false, any_y = false;
	*x = (struct axis){.log = c->x_log, .start = LEFT, .length = plot_w(c)};
	*y = (struct axis){.log = c->y_log, .start = bottom_of(c), .length = -plot_h(c)};
	for (size_t l = 0; l < c->lines; l++)
		for (size_t i = 0; i < c->line[l].n; i++) {
			const struct chart_point *p = &c->line[l].at[i];
			if (isfinite(p->y))
				widen(x, p->x, &any_x);
			widen(y, p->y, &any_y);
			widen(y, p->low, &any_y);
			widen(y, p->high, &any_y);
		}
	if (c->close) {
		close_up(x);
		close_up(y);
		return;
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
		return quantity_format(buf, v, UNIT_NONE);
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
		fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", px(a, v),
			px(a, v), TOP, bottom_of(c));
		words(out, "soft", "middle", px(a, v), bottom_of(c) + 18, text);
	} else {
		fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
			LEFT + plot_w(c), px(a, v), px(a, v));
		words(out, "soft", "end", LEFT - 8, px(a, v) + 4, text);
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
		if (px(a, c->line[0].at[i].x) >= last + TICK_ROOM) {
			last = px(a, c->line[0].at[i].x);
			tick(out, c, a, true, c->line[0].at[i].x);
		}
}

static void draw_axis(FILE *out, const struct chart *c, const struct axis *a, bool is_x)
{
	if (is_x && (a->log || c->x_unit == UNIT_NONE) && few_points(c)) {
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
	const bool leans = lean_h(c) > 0;
	for (size_t i = 0; i < c->n_words; i++) {
		const double x = px(a, (double)i), y = bottom_of(c) + (leans ? 14 : 18);
		const double room = leans ? fmin(LEAN_MOST, (x - 4) / LEAN_COS) : 2 * fmin(x, width_of(c) - x) - 8;
		if (leans)
			fprintf(out, "<g transform=\"rotate(%d %.1f %.1f)\">", -LEAN, x, y);
		words_within(out, "soft", leans ? "end" : "middle", x, y, c->x_words[i], room);
		fputs(leans ? "</g>\n" : "", out);
	}
}

static bool has_band(const struct chart_point *p) { return isfinite(p->y) && isfinite(p->low) && isfinite(p->high); }

/* A gap of the line is one of its band. */
static void draw_band(FILE *out, const struct chart_line *l, const struct axis *x, const struct axis *y,
	const char *colour)
{
	for (size_t i = 0, end; i < l->n; i = end + 1) {
		for (end = i; end < l->n && has_band(&l->at[end]); end++)
			;
		if (end < i + 2)
			continue;
		fprintf(out, "<polygon class=\"band\" fill=\"%s\" points=\"", colour);
		for (size_t k = i; k < end; k++)
			fprintf(out, "%.1f,%.1f ", px(x, l->at[k].x), px(y, l->at[k].high));
		for (size_t k = end; k-- > i;)
			fprintf(out, "%.1f,%.1f ", px(x, l->at[k].x), px(y, l->at[k].low));
		fputs("\"/>\n", out);
	}
}

/* `what` is for the pointer, and escaped; "": nothing. */
static void draw_dot(FILE *out, double x, double y, const char *colour, bool hollow, const char *what)
{
	fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" %s=\"%s\">", x, y,
		hollow ? "class=\"hollow\" stroke" : "fill", colour);
	if (*what) {
		fputs("<title>", out);
		svg_escaped(what, out);
		fputs("</title>", out);
	}
	fputs("</circle>\n", out);
}

static void describe(const struct chart *c, const struct chart_point *p, char *what, size_t size)
{
	char x[QUANTITY_MAX], y[QUANTITY_MAX];
	snprintf(what, size, "%s%s%s: %s%s%s", p->label ? p->label : "", p->label ? ", " : "",
		c->x_words ? c->x_words[(size_t)p->x] : tick_text(x, p->x, c->x_unit),
		quantity_format(y, p->y, c->y_unit), p->hollow ? ", " : "", p->hollow ? c->hollow : "");
}

static void draw_line(FILE *out, const struct chart *c, size_t k, const struct axis *x, const struct axis *y)
{
	const struct chart_line *l = &c->line[k];
	const char *colour = l->dashed ? REFERENCE : colours[k % CHART_LINES];
	if (!l->dots)
		draw_band(out, l, x, y, colour);
	bool open = false;
	for (size_t i = 0; i < l->n && !l->dots; i++) {
		bool there = isfinite(l->at[i].y);
		if (there && !open)
			fprintf(out, "<polyline class=\"line%s\" stroke=\"%s\" points=\"", l->dashed ? " dash" : "",
				colour);
		if (there)
			fprintf(out, "%.1f,%.1f ", px(x, l->at[i].x), px(y, l->at[i].y));
		else if (open)
			fputs("\"/>\n", out);
		open = there;
	}
	if (open)
		fputs("\"/>\n", out);
	const double wide = fmin(90, 0.55 * plot_w(c) / (double)(l->n + 1));
	for (size_t i = 0; i < l->n && !l->dashed; i++) {
		if (!isfinite(l->at[i].y))
			continue;
		if (l->bars)
			fprintf(out,
				"<rect fill=\"%s\" opacity=\".35\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				"height=\"%.1f\"/>\n",
				colour, px(x, l->at[i].x) - wide / 2, px(y, l->at[i].y), wide,
				px(y, 0) - px(y, l->at[i].y));
		char what[256];
		if (l->dots && isfinite(l->at[i].low) && isfinite(l->at[i].high))
			fprintf(out,
				"<line class=\"line\" stroke=\"%s\" opacity=\".45\" x1=\"%.1f\" x2=\"%.1f\" "
				"y1=\"%.1f\" y2=\"%.1f\"/>\n",
				colour, px(x, l->at[i].x), px(x, l->at[i].x), px(y, l->at[i].low),
				px(y, l->at[i].high));
		describe(c, &l->at[i], what, sizeof what);
		draw_dot(out, px(x, l->at[i].x), px(y, l->at[i].y), colour, l->at[i].hollow, what);
	}
}

static size_t key_lines(const struct chart *c)
{
	return (c->lines > 1 ? c->lines : 0) + (c->hollow ? 1 : 0) + (c->note ? 1 : 0);
}

static void draw_key(FILE *out, const struct chart *c)
{
	const double room = width_of(c) - KEY_TEXT - 8;
	double y = below(c) + BELOW;
	for (size_t k = 0; k < c->lines && c->lines > 1; k++, y += KEY_LINE) {
		const char *colour = c->line[k].dashed ? REFERENCE : colours[k % CHART_LINES];
		if (c->line[k].dots)
			draw_dot(out, LEFT + 13, y - 4, colour, false, "");
		else
			fprintf(out,
				"<line class=\"line%s\" stroke=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
				"y2=\"%.1f\"/>\n",
				c->line[k].dashed ? " dash" : "", colour, LEFT, LEFT + 26, y - 4, y - 4);
		words_within(out, "key", "start", KEY_TEXT, y, c->line[k].name, room);
	}
	if (c->hollow) {
		draw_dot(out, LEFT + 13, y - 4, REFERENCE, true, "");
		words_within(out, "key", "start", KEY_TEXT, y, c->hollow, room);
		y += KEY_LINE;
	}
	if (c->note)
		words_within(out, "key", "start", LEFT, y, c->note, room);
}

/* All dots are drawn before the first label, which keeps clear of them. */
static void draw_labels(FILE *out, const struct chart *c, const struct axis *x, const struct axis *y)
{
	const struct chart_box frame = {LEFT + 2, TOP + 2, LEFT + plot_w(c) - 2, bottom_of(c) - 2};
	struct chart_label label[LABELS];
	size_t n = 0;
	bool any = false;
	for (size_t k = 0; k < c->lines; k++)
		for (size_t i = 0; i < c->line[k].n && n < LABELS; i++) {
			const struct chart_point *p = &c->line[k].at[i];
			if (c->line[k].dashed || !isfinite(p->y))
				continue;
			any = any || p->label;
			label[n++] = (struct chart_label){px(x, p->x), px(y, p->y), p->label};
		}
	if (any)
		chart_labels_write(label, n, frame, out);
}

void chart_write(const struct chart *c, FILE *out)
{
	struct axis x, y;
	const double width = width_of(c), height = below(c) + BELOW + KEY_LINE * (double)key_lines(c);
	find_axes(c, &x, &y);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
		"height=\"%.0f\">\n%s<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n",
		width, height, width, height, style);
	words(out, "title", "start", LEFT, 22, c->title);
	words(out, "soft", "start", LEFT, TOP - 8, c->y_name);
	draw_axis(out, c, &y, false);
	if (c->x_words)
		draw_words(out, c, &x);
	else
		draw_axis(out, c, &x, true);
	fprintf(out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", LEFT, TOP,
		plot_w(c), plot_h(c));
	words(out, "soft", "middle", LEFT + plot_w(c) / 2, below(c) + 38, c->x_name);
	for (size_t k = 0; k < c->lines && k < CHART_LINES; k++)
		draw_line(out, c, k, &x, &y);
	draw_labels(out, c, &x, &y);
	draw_key(out, c);
	fputs("</svg>\n", out);
}

static void write_chart(const void *of, FILE *out) { chart_write(of, out); }

enum status chart_save(const struct chart *c, const char *path, struct error *e)
{
	return picture_save(path, write_chart, c, "the plot", e);
}
