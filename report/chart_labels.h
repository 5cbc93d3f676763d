/* Labels of dots, each where it meets no other label and no dot. */
#ifndef STEPSIM_REPORT_CHART_LABELS_H
#define STEPSIM_REPORT_CHART_LABELS_H

#include <stddef.h>
#include <stdio.h>

struct chart_label {
	double x, y;      /* of the dot, in px */
	const char *text; /* NULL: the dot has none, but others keep clear of it */
};

/* A rectangle in px. */
struct chart_box {
	double left, top, right, bottom;
};

/* Writes each label as SVG text inside the frame, nearest to its dot where that is free, with a line to the dot where
 * it had to go further. A label for which there is no free place is left out. Escapes the texts. */
void chart_labels_write(const struct chart_label *label, size_t n, struct chart_box frame, FILE *out);

#endif
