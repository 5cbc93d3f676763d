/* The data of a step's page, which the scripts of report/page draw. */
#ifndef STEPSIM_REPORT_HTML_STEP_H
#define STEPSIM_REPORT_HTML_STEP_H

#include <stdio.h>

#include "step/result.h"

/* The number of actors drawn op by op, drawn in blocks (one pass of a micro-batch each), and left out. */
struct shown {
	uint32_t whole, blocks, left_out;
};

/* Writes one JSON value that is safe inside a script element. `predicted`, `measured`: returned counts. */
enum status html_step_data(const struct outcome *o, FILE *out, struct shown *predicted, struct shown *measured,
	struct error *e);

#endif
