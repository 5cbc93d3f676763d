#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/sweep_chart.h"

#include "base/array.h"
#include "report/verdict.h"

#define NAME 160

struct sweep_curves {
	struct chart chart;
	struct chart_line line[CHART_LINES];
	char name[CHART_LINES][NAME];
	char note[NAME];
	struct chart_point *points; /* all lines', one after the other */
	double *x;                  /* of the first axis' values */
};

static double step_of(const struct result *r) { return r->time.step_s; }
static double tokens_of(const struct result *r) { return r->tokens_per_s; }
static double exposed_of(const struct result *r) { return r->time.exposed_comm_s; }
static double memory_of(const struct result *r) { return (double)r->memory.total_B; }

static const struct {
	const char *title, *name;
	enum unit unit;
	double (*value)(const struct result *r);
} curves[CURVE_COUNT] = {
	[CURVE_STEP] = {"Predicted step time", "step time", UNIT_SECOND, step_of},
	[CURVE_TOKENS] = {"Predicted tokens/s", "tokens/s", UNIT_NONE, tokens_of},
	[CURVE_EXPOSED] = {"Predicted exposed communication of a step", "exposed communication", UNIT_SECOND,
		exposed_of},
	[CURVE_MEMORY] = {"Predicted memory of a device", "memory", UNIT_BYTE, memory_of},
};

/* Rows of one line: those that agree in all axes but the first. The first axis varies slowest, so they lie a stride
 * apart. Axes that vary in step make one line. */
static size_t stride_of(const struct sweep *s)
{
	size_t n = 1;
	for (size_t a = 1; a < s->axes && !s->zip; a++)
		n *= s->axis[a].n;
	return n;
}

/* The first axis as numbers: with units, or plain. */
static bool numbers(const struct sweep_axis *a, double *out, enum unit *unit)
{
	static const enum unit units[] = {UNIT_NONE, UNIT_BYTE, UNIT_SECOND};
	for (size_t u = 0; u < COUNT(units); u++) {
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

static size_t gather(const struct sweep *s, enum sweep_curve which, struct sweep_curves *c)
{
	size_t stride = stride_of(s), n = s->axis[0].n, there = 0;
	c->chart.lines = stride < CHART_LINES ? stride : CHART_LINES;
	if (stride > CHART_LINES) {
		snprintf(c->note, NAME, "The first %d of %zu lines; the table has the others.", CHART_LINES, stride);
		c->chart.note = c->note;
	}
	const bool band = which == CURVE_STEP && c->chart.lines == 1;
	if (band)
		c->chart.note = "The band is the 90 % interval.";
	for (size_t k = 0; k < c->chart.lines; k++) {
		size_t at = 0;
		for (size_t a = 1; a < s->axes && at < NAME && !s->zip; a++)
			at += (size_t)snprintf(c->name[k] + at, NAME - at, "%s%s=%s", a > 1 ? ", " : "", s->axis[a].key,
				s->axis[a].value[s->rows.at[k].at[a]]);
		for (size_t i = 0; i < n; i++) {
			const struct result *r = s->rows.at[i * stride + k].predicted;
			const bool hollow = r && verdict_fit(&r->memory) == FIT_NOT;
			c->points[k * n + i] = (struct chart_point){.x = c->x[i],
				.y = r ? curves[which].value(r) : NAN,
				.low = r && band ? r->interval90_s[0] : NAN,
				.high = r && band ? r->interval90_s[1] : NAN,
				.hollow = hollow};
			c->chart.hollow = hollow ? "does not fit in memory" : c->chart.hollow;
			there += r != NULL;
		}
		qsort(c->points + k * n, n, sizeof *c->points, by_x);
		c->line[k] = (struct chart_line){.name = c->name[k], .at = c->points + k * n, .n = n};
	}
	return there;
}

/* A dashed line to judge the others by: a value for each row of the first line that was predicted, where a line is left
 * for it. */
static void add_reference(const struct sweep *s, struct sweep_curves *c, const char *name,
	double (*value)(const struct sweep_row *r, const void *of), const void *of)
{
	const size_t stride = stride_of(s), n = s->axis[0].n, k = c->chart.lines;
	if (k >= CHART_LINES)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct sweep_row *r = &s->rows.at[i * stride];
		c->points[k * n + i] = (struct chart_point){.x = c->x[i],
			.y = r->predicted ? value(r, of) : NAN,
			.low = NAN,
			.high = NAN};
	}
	qsort(c->points + k * n, n, sizeof *c->points, by_x);
	snprintf(c->name[k], NAME, "%s", name);
	if (!c->name[0][0])
		snprintf(c->name[0], NAME, "predicted");
	c->line[k] = (struct chart_line){.name = c->name[k], .at = c->points + k * n, .n = n, .dashed = true};
	c->chart.lines++;
}

static double capacity_of(const struct sweep_row *r, const void *of)
{
	(void)of;
	return r->predicted->memory.capacity_B ? (double)r->predicted->memory.capacity_B : NAN;
}

static double perfect_of(const struct sweep_row *r, const void *of)
{
	const struct sweep_row *least = of;
	return least->predicted->tokens_per_s * (double)r->ranks / (double)least->ranks;
}

/* Adds the line of perfect scaling if the ranks vary along numbers: the first line's tokens/s at its fewest ranks,
 * scaled with the ranks. */
static void add_perfect(const struct sweep *s, struct sweep_curves *c)
{
	const size_t stride = stride_of(s);
	const struct sweep_row *least = NULL;
	bool vary = false;
	if (c->chart.x_words) /* systems, say: ranks are not all that varies */
		return;
	for (size_t i = 0; i < s->axis[0].n; i++) {
		const struct sweep_row *r = &s->rows.at[i * stride];
		vary = vary || (r->predicted && least && r->ranks != least->ranks);
		if (r->predicted && (!least || r->ranks < least->ranks))
			least = r;
	}
	if (vary)
		add_reference(s, c, "perfect scaling", perfect_of, least);
}

/* Step times over a range of GPUs: straight lines on two log axes. What may be 0 has none. */
static bool spans_decades(const struct sweep_curves *c, size_t n)
{
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < c->chart.lines * n; i++) {
		least = fmin(least, c->points[i].y); /* a gap is NAN, which fmin and fmax leave out */
		most = fmax(most, c->points[i].y);
	}
	return least > 0 && most / least >= 8;
}

static void name_x(const struct sweep *s, struct sweep_curves *c)
{
	bool plain = numbers(&s->axis[0], c->x, &c->chart.x_unit);
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < s->axis[0].n; i++) {
		c->x[i] = plain ? c->x[i] : (double)i;
		least = fmin(least, c->x[i]);
		most = fmax(most, c->x[i]);
	}
	c->chart.x_log = plain && least > 0 && most / least >= 8;
	if (!plain) {
		c->chart.x_words = s->axis[0].value;
		c->chart.n_words = s->axis[0].n;
	}
}

enum status sweep_curves_of(const struct sweep *s, enum sweep_curve which, struct sweep_curves **out,
	const struct chart **chart, struct error *e)
{
	const size_t n = s->axis[0].n;
	struct sweep_curves *c = *out = calloc(1, sizeof *c);
	if (!c || !(c->x = calloc(n, sizeof *c->x)) || !(c->points = calloc(CHART_LINES * n, sizeof *c->points)))
		return error_nomem(e, "the curves");
	*chart = &c->chart;
	c->chart = (struct chart){.title = curves[which].title,
		.x_name = s->axis[0].key,
		.y_name = curves[which].name,
		.y_unit = curves[which].unit,
		.line = c->line};
	name_x(s, c);
	if (gather(s, which, c) < 2)
		return error_set(e, ST_INPUT, "a curve needs two points, and fewer could be predicted");
	if (which == CURVE_TOKENS)
		add_perfect(s, c);
	if (which == CURVE_MEMORY)
		add_reference(s, c, "capacity", capacity_of, NULL);
	c->chart.y_log = c->chart.x_log && spans_decades(c, n);
	return ST_OK;
}

void sweep_curves_free(struct sweep_curves *c)
{
	if (!c)
		return;
	free(c->points);
	free(c->x);
	free(c);
}

enum status report_sweep_svg(const struct sweep *s, const char *path, struct error *e)
{
	struct sweep_curves *c = NULL;
	const struct chart *chart;
	enum status st = sweep_curves_of(s, CURVE_STEP, &c, &chart, e);
	if (st == ST_INPUT)
		error_context(e, "--plot");
	if (!st)
		st = chart_save(chart, path, e);
	sweep_curves_free(c);
	return st;
}
