/* The parts of a step's report that the table and the page share. */
#ifndef STEPSIM_REPORT_TEXT_H
#define STEPSIM_REPORT_TEXT_H

#include <stdio.h>

#include "base/table.h"
#include "step/result.h"

/* Prints two or three lines: the workload, the plan and the machine. */
void text_header(const struct outcome *o, FILE *out);
/* Prints lines: the measurement, the interval, the bottleneck. */
void text_findings(const struct outcome *o, FILE *out);
/* Prints lines: warnings, and why nothing was executed. */
void text_warnings(const struct outcome *o, FILE *out);

/* Build a table. The caller frees it with table_destroy, also after a failure. A step of one stage has no table of
 * stages: NULL. */
enum status text_figures(const struct outcome *o, struct table **out, struct error *e);
enum status text_stages(const struct outcome *o, struct table **out, struct error *e);
#define TEXT_STAGES "The stages of the predicted step; the table above is of the one that ends last."

/* Print the heading of the advice in one line, and build the table of all its rows, freed as above. The outcome must
 * have advice. */
void text_advice_head(const struct outcome *o, FILE *out);
enum status text_advice(const struct outcome *o, struct table **out, struct error *e);

#endif
