/* The parts of a search's result that the text, the picture and the page share. */
#ifndef STEPSIM_REPORT_PLAN_PARTS_H
#define STEPSIM_REPORT_PLAN_PARTS_H

#include "base/table.h"
#include "report/chart.h"
#include "report/plan.h"

/* The best plans, or the one that needs least; the front. Each is freed with table_destroy, also when it fails. */
enum status plan_rows_table(const struct plan_report *p, struct table **out, struct error *e);
enum status plan_front_table(const struct plan_report *p, struct table **out, struct error *e);

/* Lines: what was searched; what fits, and the config's own plan beside the best; what the front is; how many plans there were. */
void plan_title(const struct plan_report *p, FILE *out);
void plan_start(const struct plan_report *p, FILE *out);
void plan_front(const struct plan_report *p, FILE *out);
void plan_counts(const struct plan_report *p, FILE *out);

/* Step time over memory. Hands the chart, which lives as long as the call, to `take`. ST_INPUT where nothing fits. */
enum status plan_chart(const struct plan_report *p, enum status (*take)(const struct chart *c, void *to, struct error *e), void *to, struct error *e);

#endif
