/* The curves of a sweep, for the picture and the page. */
#ifndef STEPSIM_REPORT_SWEEP_CHART_H
#define STEPSIM_REPORT_SWEEP_CHART_H

#include "base/table.h"
#include "report/chart.h"
#include "report/sweep.h"

enum sweep_curve { CURVE_STEP, CURVE_TOKENS, CURVE_EXPOSED, CURVE_MEMORY, CURVE_COUNT };

/* Over the first axis, a line for each combination of the others (at most CHART_LINES). Freed with sweep_curves_free, also when it fails; the sweep is borrowed. ST_INPUT when fewer than two points were predicted. */
struct sweep_curves;
enum status sweep_curves_of(const struct sweep *s, enum sweep_curve which, struct sweep_curves **out, const struct chart **chart, struct error *e);
void sweep_curves_free(struct sweep_curves *c); /* NULL-safe */

/* The rows as a table; freed with table_destroy, also when it fails. */
enum status sweep_table(const struct sweep *s, struct table **out, struct error *e);

#endif
