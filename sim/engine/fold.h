/* The folded prediction: micro-batches that repeat are simulated a few times and then counted, with the program, prices
 * and engine of sim/engine/predict.h. It serves searches and tables; plans that they select are predicted in full.
 *
 * After the first few micro-batches every further one lengthens each part of the step by the same time. Programs of
 * FOLD_SHORTER and FOLD_LONGER micro-batches give that period; with a pipeline, so many beyond those that fill it. The
 * rest is counted in sums over ops (sim/engine/sums.h), from which the result is read as any other's. The folded step
 * equals the full prediction within 1 % (tests/property).
 */
#ifndef STEPSIM_SIM_FOLD_H
#define STEPSIM_SIM_FOLD_H

#include "sim/engine/predict.h"

/* True for a step that is too long to be simulated whole. Its program, tasks and timeline would take more than about a
 * GB (blocks x micro-batches, some 15 kB each). */
bool fold_is_long(const struct config *c);

/* Returns how many micro-batches of a resolved config are in the program of fold_step. They are fewer than all where
 * the step is long, unless it has about as many as fill its pipeline. */
int64_t fold_simulated(const struct config *c);

/* Fails with ST_INPUT when a resolved config has a long step that does not fold: gpipe, whose memory depends on all
 * micro-batches. */
enum status fold_check(const struct config *c, struct error *e);
/* Returns the blocks x micro-batches that fold_predict simulates: its run time grows with them. */
double fold_blocks(const struct config *c);

/* Builds and predicts a resolved config. Where fold_is_long, `out` is the folded prediction and a warning says so; the
 * program and the timeline are then of a step with as many micro-batches as were simulated. Fails with ST_INPUT as
 * fold_check and predict do. The caller destroys *program and frees *timeline, also after a failure. */
enum status fold_step(const struct config *c, const struct machine *m, struct program **program, struct result *out,
	struct timeline *timeline, struct error *e);

/* Fills the result alone. */
enum status fold_result(const struct config *c, const struct machine *m, struct result *out, struct error *e);
/* The same, but a plan that does not fit in memory is not simulated: only `memory` is filled. It may then be of the
 * first and the last stage alone, where these do not fit. No warnings tell of a long step. */
enum status fold_result_fitting(const struct config *c, const struct machine *m, struct result *out, struct error *e);

/* Fills the folded prediction of a resolved config. Fails with ST_INPUT as fold_check does. */
enum status fold_predict(const struct config *c, const struct machine *m, struct result *out, struct error *e);
/* As fold_predict, but a plan that does not fit in memory is not simulated: only `memory` is filled. */
enum status fold_fitting(const struct config *c, const struct machine *m, struct result *out, struct error *e);
/* As fold_fitting, but a plan that needs below_B or more is not simulated either. The memory of a plan that is not
 * simulated may be a lower bound. */
enum status fold_below(const struct config *c, const struct machine *m, uint64_t below_B, struct result *out,
	struct error *e);

#endif
