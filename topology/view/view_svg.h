/* Shared by the two halves of the picture's writer: boxes and words (view_svg.c), lines and bars (view_svg_wires.c).
 * Private to topology/view/. */
#ifndef STEPSIM_TOPOLOGY_VIEW_VIEW_SVG_H
#define STEPSIM_TOPOLOGY_VIEW_VIEW_SVG_H

#include <stdio.h>

#include "base/svg.h"
#include "topology/view/view.h"
#include "topology/view/view_layout.h"

extern const char *const svg_wire_class[LINK_KINDS]; /* of the style sheet */

/* A text centred at x, cut to `room` where that is positive. */
void svg_words(FILE *out, double x, double y, double room, const char *look, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
void svg_box(FILE *out, const char *look, double x, double y, double w, double h);
double svg_middle(const struct spot *s);
double svg_thickness(int32_t width); /* of a line for so many NVLinks */

/* Many sockets joined in all pairs would cover the picture: then only neighbours are joined, and the key says so. */
bool svg_crowded(const struct graph *g);

/* All lines and bars. Boxes are drawn over them. */
void svg_wires(const struct picture *l, FILE *out);

#endif
