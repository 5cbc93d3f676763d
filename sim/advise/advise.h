/* Advice on a predicted step: each lever (sim/advise/levers.h) that applies is set on the config as `--set` sets it,
 * and the config that results is resolved and predicted. What a lever saves is the step before less the step after,
 * whatever else changes with it; levers are tried one by one, so their savings do not add up.
 *
 * Work is bounded by counting, so that the same config gets the same advice on every machine. A change costs about as
 * many ops as its program has. Where all changes together cost more than `budget_ops`, they are first put together from
 * pieces (sim/search/evaluate.h) as far as they fold, and those that promise most are predicted in full until the
 * budget is used; of the others the estimate stands, and is marked. What neither folds nor finds room is left untried.
 */
#ifndef STEPSIM_SIM_ADVISE_H
#define STEPSIM_SIM_ADVISE_H

#include "sim/engine/predict.h"
#include "step/advice.h"

/* The ops that changes may cost together, and that sensitivities may: some half a second. */
#define ADVICE_BUDGET_OPS 500000
/* The same where a user asks for all of it: some half a minute. */
#define ADVICE_BUDGET_ALL_OPS 40000000

struct advise_case {
	struct config_reader *reader; /* the config, and the `--set` texts that came with it */
	const char *const *sets;
	size_t n_sets;
	const struct program *program; /* of the resolved config */
	const struct machine *machine;
	const struct result *predicted;
	int64_t budget_ops;
	bool sensitivity;
};

/* Deterministic, on any number of cores, all of which it uses. Shows a progress line (base/log.h). A change that a
 * config refuses is no error. */
enum status advise(const struct advise_case *a, struct advice *out, struct error *e);

/* Returns the main symptom of a step, by the parts of its time. */
enum symptom diagnose(const struct program *p, const struct machine *m, const struct result *r);

/* ---- sensitivity.c ---- */

/* The step on machines with one rate ten per cent higher, or one latency ten per cent lower, and with none of that time
 * at all; each a prediction of the same program. Rows whose part the program does not have are left out. Cost: two
 * predictions a row. */
enum status sensitivities(const struct program *p, const struct machine *m, double step_s, struct advice *out,
	struct error *e);

#endif
