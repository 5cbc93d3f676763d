/* The curves of a sweep, for the picture and the page. */
#ifndef STEPSIM_REPORT_SWEEP_CHART_H
#define STEPSIM_REPORT_SWEEP_CHART_H

#include "base/table.h"
#include "report/chart.h"
#include "report/sweep.h"

enum sweep_curve { CURVE_STEP, CURVE_TOKENS, CURVE_EXPOSED, CURVE_MEMORY, CURVE_COUNT };

/* Builds a curve over the first axis, with one line for each combination of the others (at most CHART_LINES). The
 * caller frees it with sweep_curves_free, also after a failure; the sweep is borrowed. ST_INPUT if fewer than two
 * points were predicted. */
struct sweep_curves;
enum status sweep_curves_of(const struct sweep *s, enum sweep_curve which, struct sweep_curves **out,
	const struct chart **chart, struct error *e);
void sweep_curves_free(struct sweep_curves *c); /* NULL-safe */

/* Builds the table of the rows. The caller frees it with table_destroy, also after a failure. */
enum status sweep_table(const struct sweep *s, struct table **out, struct error *e);

#endif
