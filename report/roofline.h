/* A measured roofline for people and programs. Pure functions of it; where it ran on doubles there are no figures, and all of these say so or stay empty. */
#ifndef STEPSIM_REPORT_ROOFLINE_H
#define STEPSIM_REPORT_ROOFLINE_H

#include <jansson.h>
#include <stdio.h>

#include "base/status.h"
#include "step/roofline.h"

#define ROOF_RMS_MOST 0.05 /* runs that differ by more are warned of */

/* Tables: polynomial, products, levels of memory, roofs measured and as the datasheet has them with their ridge points; Little's law, occupancy, and a verdict. */
enum status report_roofline_text(const struct roofline *r, FILE *out, struct error *e);
/* Columns k,ai,gflops,bandwidth,percent_peak (GB/s; per cent of the datasheet's rate, else of the highest measured one), then kind,dtype,size,percent_roof,rms_percent,mean_gflops. Products have k = size. "-" is standard output. */
enum status report_roofline_csv(const struct roofline *r, const char *path, struct error *e);
/* New reference, NULL when out of memory. */
json_t *report_roofline_json(const struct roofline *r);
/* The roofline plot: log-log, points, measured roofs, datasheet's roofs, ridge points. Self-contained SVG, light and dark. */
enum status report_roofline_svg(const struct roofline *r, const char *path, struct error *e);

#endif
