/* A line chart as an SVG picture, light and dark: scaling curves, bucket sizes, fronts of time and memory. */
#ifndef STEPSIM_REPORT_CHART_H
#define STEPSIM_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/quantity.h"

struct chart_point {
	double x, y;
	double low, high;  /* a band around y; with `dots` a bar through the point; NAN: none */
	bool hollow;       /* not usable: struct chart says why */
	const char *label; /* drawn beside it; borrowed; NULL: none */
};

struct chart_line {
	const char *name;             /* in the key; borrowed */
	const struct chart_point *at; /* borrowed; in order of x; y NAN: a gap */
	size_t n;
	bool dashed, dots; /* a reference; points alone */
	bool bars;         /* of dots: a bar from 0 to each */
};

struct chart {
	const char *title, *x_name, *y_name; /* borrowed */
	enum unit x_unit, y_unit;
	bool x_log, y_log;
	const char *const *x_words; /* NULL: numbers; else the names of x = 0, 1, ... */
	size_t n_words;
	const char *note;   /* the key's last line; NULL: none */
	const char *hollow; /* why points are hollow, for the key; NULL: none is */
	bool close;         /* a wide picture with axes close around the points, in place of a y from 0 */
	const struct chart_line *line;
	size_t lines;
};

#define CHART_LINES 12 /* styles of lines; the most lines of a chart */

/* Writes the chart as SVG; at least one y must be a number. Escapes all texts. */
void chart_write(const struct chart *c, FILE *out);
/* The same into a file ("-": standard output). */
enum status chart_save(const struct chart *c, const char *path, struct error *e);

#endif
