/* The folded prediction: what repeats is simulated a few times and then counted, by the same program, prices and engine (sim/predict.h). For searches and tables; what they select is predicted in full.
 *
 * Micro-batches: after the first few every further one lengthens each part of the step by the same time. Programs of FOLD_FEW and FOLD_MORE micro-batches (with a pipeline: so many beyond what fills it) give
 * that period, and the rest is counted: sums over ops (sim/sums.h), from which the result is read as any other's. Equal to the full prediction within 1 % (tests/property).
 */
#ifndef STEPSIM_SIM_FOLD_H
#define STEPSIM_SIM_FOLD_H

#include "sim/predict.h"

/* A step too long to be simulated whole: its program would take more than about a GB (blocks x micro-batches, some 15 kB each in program, tasks and timeline). */
bool fold_is_long(const struct config *c);

/* Of the micro-batches of a resolved config, how many are in the program of predict_step. Fewer than all where the step is long, unless they are about as many as fill its pipeline. */
int64_t fold_simulated(const struct config *c);

/* ST_INPUT for a long step that does not fold: gpipe, whose memory depends on all micro-batches. Of a resolved config. */
enum status fold_check(const struct config *c, struct error *e);
/* Blocks x micro-batches that predict_folded simulates: what it takes grows with them. */
double fold_blocks(const struct config *c);

/* Instead of program_build and predict, of a resolved config: `out` is the folded prediction where fold_is_long, with a word on it among its warnings; the program and the timeline are then those of a step with as many micro-batches as were simulated.
 * ST_INPUT as fold_check. *program is the caller's in any case. */
enum status predict_step(const struct config *c, const struct machine *m, struct program **program, struct result *out, struct timeline *timeline, struct error *e);

/* The result alone. */
enum status predict_result(const struct config *c, const struct machine *m, struct result *out, struct error *e);

/* Of a resolved config; ST_INPUT as fold_check. */
enum status predict_folded(const struct config *c, const struct machine *m, struct result *out, struct error *e);
/* The same; of a plan that does not fit only `memory` is found, which takes no simulation. */
enum status predict_fitting(const struct config *c, const struct machine *m, struct result *out, struct error *e);

#endif
