/* What cost.c and cost_collective.c share. */
#ifndef STEPSIM_SIM_COST_PARTS_H
#define STEPSIM_SIM_COST_PARTS_H

#include "sim/price/cost.h"

/* Returns the host thread's time for one op on a GPU. A graph launches all its ops at once (sim/engine/predict.c). */
double cost_issue_s(const struct program *p, const struct rates *r);

/* Sets the demand on memory of an op that moves so many bytes in alone_s. */
void cost_use_memory(double bytes, const struct rates *r, struct op_cost *out);

/* cost_op for a collective or a message. A group of one rank costs nothing. */
enum status cost_collective(const struct program *p, const struct op *asked, const struct rates *r, struct op_cost *out,
	struct error *e);

#endif
