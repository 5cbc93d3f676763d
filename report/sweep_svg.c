#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "report/chart.h"
#include "report/sweep.h"

#define NAME 160

struct plot {
	struct chart_line line[CHART_LINES];
	char name[CHART_LINES][NAME];
	struct chart_point *points; /* all lines', one after the other */
	size_t lines;
};

/* Rows of one line: those that agree in all axes but the first. The first axis varies slowest, so they lie a stride apart. */
static size_t stride_of(const struct sweep *s)
{
	size_t n = 1;
	for (size_t a = 1; a < s->axes; a++)
		n *= s->axis[a].n;
	return n;
}

/* The first axis as numbers: with units, or plain. */
static bool numbers(const struct sweep_axis *a, double *out, enum unit *unit)
{
	static const enum unit units[] = {UNIT_NONE, UNIT_BYTE, UNIT_SECOND};
	for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
		bool good = true;
		for (size_t i = 0; i < a->n && good; i++)
			good = quantity_parse(a->value[i], units[u], &out[i], NULL) == ST_OK && isfinite(out[i]);
		*unit = units[u];
		if (good)
			return true;
	}
	return false;
}

static int by_x(const void *a, const void *b)
{
	const struct chart_point *x = a, *y = b;
	return (x->x > y->x) - (x->x < y->x);
}

static size_t gather(const struct sweep *s, const double *x, struct plot *p)
{
	size_t stride = stride_of(s), n = s->axis[0].n, there = 0;
	p->lines = stride < CHART_LINES ? stride : CHART_LINES;
	for (size_t k = 0; k < p->lines; k++) {
		size_t at = 0;
		for (size_t a = 1; a < s->axes && at < NAME; a++)
			at += (size_t)snprintf(p->name[k] + at, NAME - at, "%s%s=%s", a > 1 ? ", " : "", s->axis[a].key, s->axis[a].value[s->rows.at[k].at[a]]);
		for (size_t i = 0; i < n; i++) {
			const struct result *r = s->rows.at[i * stride + k].predicted;
			p->points[k * n + i] = (struct chart_point){.x = x[i], .y = r ? r->time.step_s : NAN, .low = r && p->lines == 1 ? r->interval90_s[0] : NAN, .high = r && p->lines == 1 ? r->interval90_s[1] : NAN};
			there += r != NULL;
		}
		qsort(p->points + k * n, n, sizeof *p->points, by_x);
		p->line[k] = (struct chart_line){.name = p->name[k], .at = p->points + k * n, .n = n};
	}
	return there;
}

/* Step times over a range of GPUs: straight lines on two log axes. */
static bool spans_decades(const struct plot *p, size_t n)
{
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < p->lines * n; i++) {
		least = fmin(least, p->points[i].y); /* a gap is NAN, which fmin and fmax leave out */
		most = fmax(most, p->points[i].y);
	}
	return most / least >= 8;
}

static enum status draw(const struct sweep *s, struct plot *p, double *x, const char *path, struct error *e)
{
	struct chart c = {.title = "Predicted step time", .x_name = s->axis[0].key, .y_name = "step time", .y_unit = UNIT_SECOND, .line = p->line};
	bool plain = numbers(&s->axis[0], x, &c.x_unit);
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < s->axis[0].n; i++) {
		x[i] = plain ? x[i] : (double)i;
		least = fmin(least, x[i]);
		most = fmax(most, x[i]);
	}
	c.x_log = plain && least > 0 && most / least >= 8;
	if (!plain) {
		c.x_words = s->axis[0].value;
		c.n_words = s->axis[0].n;
	}
	size_t there = gather(s, x, p);
	if (there < 2)
		return error_set(e, ST_INPUT, "--plot: fewer than two of the points could be predicted");
	c.lines = p->lines;
	c.y_log = c.x_log && spans_decades(p, s->axis[0].n);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return error_nomem(e, "the plot");
	chart_write(&c, out);
	bool good = !ferror(out);
	good = fclose(out) == 0 && good;
	enum status st = good ? file_write(path, text, len, e) : error_nomem(e, "the plot");
	free(text);
	return st;
}

enum status report_sweep_svg(const struct sweep *s, const char *path, struct error *e)
{
	struct plot *p = calloc(1, sizeof *p);
	double *x = calloc(s->axis[0].n, sizeof *x);
	enum status st = p && x && (p->points = calloc(CHART_LINES * s->axis[0].n, sizeof *p->points)) ? ST_OK : error_nomem(e, "the plot");
	if (!st)
		st = draw(s, p, x, path, e);
	if (p)
		free(p->points);
	free(p);
	free(x);
	return st;
}
