/* Reports of a measured roofline. Pure functions. A roofline of the tests' doubles has no figures: texts say so, and
 * values stay empty. */
#ifndef STEPSIM_REPORT_ROOFLINE_H
#define STEPSIM_REPORT_ROOFLINE_H

#include <jansson.h>
#include <stdio.h>

#include "base/status.h"
#include "step/roofline.h"

#define ROOF_RMS_MOST 0.05 /* larger relative differences of runs are warned of */

/* Prints tables of the polynomial, products, levels of memory, and roofs (measured and datasheet's, with ridge points).
 * Little's law, occupancy and a verdict follow. */
enum status report_roofline_text(const struct roofline *r, FILE *out, struct error *e);
/* Writes the columns k,ai,gflops,bandwidth,percent_peak, then kind,dtype,size,percent_roof,rms_percent,mean_gflops.
 * bandwidth is in GB/s; percent_peak is of the datasheet's rate, else of the highest measured one. Products have k =
 * size. "-" is standard output. */
enum status report_roofline_csv(const struct roofline *r, const char *path, struct error *e);
/* Returns a new reference, or NULL when out of memory. */
json_t *report_roofline_json(const struct roofline *r);
/* Draws the roofline, log-log: points, measured roofs, the datasheet's roofs, ridge points. The SVG is self-contained,
 * light and dark. */
enum status report_roofline_svg(const struct roofline *r, const char *path, struct error *e);

#endif
