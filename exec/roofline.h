/* Measures a roofline (step/roofline.h) on the session's devices: the polynomial sweep, products, streams through each
 * level of memory, pointer chases. */
#ifndef STEPSIM_EXEC_ROOFLINE_H
#define STEPSIM_EXEC_ROOFLINE_H

#include "exec/exec.h"
#include "step/roofline.h"

#define ROOFLINE_S 40.0 /* by default; levels of memory add up to ten seconds */

/* Collective: every rank measures its own device, all at the same time. 3 warm-ups and 10 timed runs of everything, in
 * about `seconds` however slow the device is: sizes shrink to what the time allows, and a product that would take too
 * long is left out. Results are checked against closed forms. `only`: DT_COUNT, or the one format in which products are
 * measured. `out` is filled on every rank (the slowest rank's figures, and means); the caller frees it, also after an
 * error. On doubles of the CUDA libraries everything is tiny. ST_INPUT: the device executes no products in `only`;
 * ST_RUN: memory, a failed kernel, a wrong result. */
enum status roofline_measure(struct session *s, enum dtype only, double seconds, struct roofline *out, struct error *e);

#endif
