/* The data of a step's page, which the scripts of report/page draw. */
#ifndef STEPSIM_REPORT_HTML_STEP_H
#define STEPSIM_REPORT_HTML_STEP_H

#include <stdio.h>

#include "step/result.h"

/* How much of the timeline is there: actors op by op, in blocks (a micro-batch's forward or backward in one), and not at all. */
struct shown {
	uint32_t whole, blocks, left_out;
};

/* One JSON value, safe inside a script element. */
enum status html_step_data(const struct outcome *o, FILE *out, struct shown *predicted, struct shown *measured, struct error *e);

#endif
