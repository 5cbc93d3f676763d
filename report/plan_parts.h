/* The parts of a search's result that the text, the picture and the page share. */
#ifndef STEPSIM_REPORT_PLAN_PARTS_H
#define STEPSIM_REPORT_PLAN_PARTS_H

#include "base/table.h"
#include "report/chart.h"
#include "report/plan.h"

/* Build the table of the best plans (if nothing fits, of the plan that needs least), and that of the Pareto front. The
 * caller frees it with table_destroy, also after a failure. */
enum status plan_rows_table(const struct plan_report *p, struct table **out, struct error *e);
enum status plan_front_table(const struct plan_report *p, struct table **out, struct error *e);
/* Writes what names point i of the front in its table and in the chart ("a", ..., "z", "a1"), and returns it. */
#define PLAN_MARK 24
const char *plan_front_mark(size_t i, char mark[PLAN_MARK]);

/* Print lines: the search, the best plan and the config's own, the meaning of the front, the words of plans, their
 * counts. */
void plan_title(const struct plan_report *p, FILE *out);
void plan_start(const struct plan_report *p, FILE *out);
void plan_front(const struct plan_report *p, FILE *out);
void plan_legend(const struct plan_report *p, FILE *out);
void plan_counts(const struct plan_report *p, FILE *out);

/* Builds the chart of step time over memory and hands it to `take`; it lives as long as the call. ST_INPUT if nothing
 * fits. */
enum status plan_chart(const struct plan_report *p,
	enum status (*take)(const struct chart *c, void *to, struct error *e), void *to, struct error *e);

#endif
