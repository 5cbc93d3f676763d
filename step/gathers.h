/* When updated weights are gathered under strategies that cut the optimizer's states alone, and how often. */
#ifndef STEPSIM_STEP_GATHERS_H
#define STEPSIM_STEP_GATHERS_H

#include <stdbool.h>

#include "step/config/config.h"

/* At the beginning of the next step, beside its forward pass; else behind each update. */
static inline bool gathers_ahead(const struct config *c)
{
	return c->stack.gather_ahead && c->parallel.overlap && strategy_cuts_states_alone(c->parallel.strategy);
}

/* Each bucket so many times in a step (stack.gathers_twice). */
static inline int gathers_of_bucket(const struct config *c)
{
	return c->stack.gathers_twice && c->parallel.expert > 1 && !gathers_ahead(c) ? 2 : 1;
}

#endif
