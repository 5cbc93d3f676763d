/* The folded prediction: what repeats is simulated a few times and then counted, by the same program, prices and engine (sim/predict.h). For searches and tables; what they select is predicted in full.
 *
 * Micro-batches: after the first few every further one lengthens each part of the step by the same time. Programs of FOLD_FEW and FOLD_MORE micro-batches (with a pipeline: so many beyond what fills it) give
 * that period, and the rest is counted. Equal to the full prediction within 1 % (tests/property).
 */
#ifndef STEPSIM_SIM_FOLD_H
#define STEPSIM_SIM_FOLD_H

#include "sim/predict.h"

/* Of a resolved config. */
enum status predict_folded(const struct config *c, const struct machine *m, struct result *out, struct error *e);

#endif
