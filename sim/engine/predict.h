/* The prediction of a step: prices a program on a machine, runs the engine, and reads the result off the timeline. */
#ifndef STEPSIM_SIM_PREDICT_H
#define STEPSIM_SIM_PREDICT_H

#include "step/program.h"
#include "step/result.h"
#include "topology/machine.h"

/* Fills the result and the timeline, which has one actor a role; the caller frees it. Deterministic. Fails with
 * ST_INPUT when the machine cannot run an op (cost_op) or the step is out of range. Fails with ST_RUN when memory is
 * short or the program deadlocks. */
enum status predict(const struct program *p, const struct machine *m, struct result *out, struct timeline *timeline,
	struct error *e);

struct prices;
struct rates;
struct sums;

/* A program with its prices and its timeline. */
struct simulation {
	const struct program *p; /* borrowed, as the rates */
	const struct rates *rates;
	struct prices *prices;
	struct timeline timeline;
	double host_thread_s; /* struct result */
};
/* Fills *out, which the caller frees also after a failure. Fails as predict does. */
enum status simulation_run(const struct program *p, const struct rates *rates, struct simulation *out, struct error *e);
void simulation_free(struct simulation *s);
/* Fills the result, and the sums of the role that ends last as sums_of does. */
enum status simulation_result(const struct simulation *s, struct sums *sums, struct result *out, struct error *e);

/* Fills the timeline alone, and the time that the host thread needs to issue the step (struct result). `prices`: those
 * of like programs, as price_further takes them; the caller frees them. NULL: there are none. */
enum status predict_timeline(const struct program *p, const struct rates *rates, struct prices *prices,
	struct timeline *timeline, double *host_s, struct error *e);

#endif
