/* Text in the pictures: escaping it for SVG, and its width. */
#ifndef STEPSIM_BASE_SVG_H
#define STEPSIM_BASE_SVG_H

#include <stdio.h>

void svg_escaped(const char *text, FILE *out);
/* Returns the approximate width in pixels, in a sans-serif font of 12 px. */
double svg_width(const char *text);

#endif
