/* Whether a plan fits into a device's memory, in words that the text and the pages share. */
#ifndef STEPSIM_REPORT_VERDICT_H
#define STEPSIM_REPORT_VERDICT_H

#include <stdio.h>

#include "report/sweep.h"
#include "step/result.h"

/* FIT_TIGHT: it fits, but fills more of the device than `stepsim plan` uses where some plan needs no more. */
enum fit { FIT_NOT, FIT_TIGHT, FIT_WELL };

enum fit verdict_fit(const struct result_memory *m);
/* True where it does not fit by less than such predictions err (struct result_memory, low_B). */
bool verdict_may_fit(const struct result_memory *m);
/* Prints a sentence that says so, after a full stop; nothing elsewhere. */
void verdict_error(const struct result_memory *m, FILE *out);

/* Print one line without its end. What is missing where it does not fit ("a rank needs 112 GiB, the device has 79.6 GiB
 * (32.4 GiB short; largest: activations 60.1 GiB)"), and how full the device is where it is tight. */
void verdict_missing(const struct result_memory *m, FILE *out);
void verdict_tight(const struct result_memory *m, FILE *out);

/* Prints one line without its end: the step, its interval, how far communication hides behind compute, and whether it
 * fits. With a measurement it has both times in place of the interval; NULL: there is none. */
void verdict_step(const struct result *predicted, const struct result *measured, FILE *out);

/* Returns the row with most tokens/s among those that fit well; if none does, among those that are tight; NULL: nothing
 * fits. */
const struct sweep_row *verdict_sweep_best(const struct sweep *s);
/* Prints one line without its end: that row, or why there is none. At least one row must have been predicted. */
void verdict_sweep(const struct sweep *s, FILE *out);

#endif
