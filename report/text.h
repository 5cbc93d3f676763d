/* The parts of the table of a step, which the page shows too. */
#ifndef STEPSIM_REPORT_TEXT_H
#define STEPSIM_REPORT_TEXT_H

#include <stdio.h>

#include "base/table.h"
#include "step/result.h"

/* Two or three lines: what was asked, and of which machine. */
void text_header(const struct outcome *o, FILE *out);
/* Lines: what was measured, interval, bottleneck. */
void text_findings(const struct outcome *o, FILE *out);
/* Lines: warnings, why nothing was executed. */
void text_warnings(const struct outcome *o, FILE *out);

/* Each is freed with table_destroy, also when it fails; NULL: a step of one stage has no table of stages. */
enum status text_figures(const struct outcome *o, struct table **out, struct error *e);
enum status text_stages(const struct outcome *o, struct table **out, struct error *e);
#define TEXT_STAGES "The stages of the predicted step; above stands the one that ends last."

/* Where there is advice: its heading, a line; all its rows, freed as above. */
void text_advice_head(const struct outcome *o, FILE *out);
enum status text_advice(const struct outcome *o, struct table **out, struct error *e);

#endif
