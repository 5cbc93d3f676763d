/* Prices of a role's ops. Layers and micro-steps repeat the same few ops many times: each different one is priced once. */
#ifndef STEPSIM_SIM_PRICE_H
#define STEPSIM_SIM_PRICE_H

#include "sim/cost.h"

struct prices {
	VEC(struct op_cost) different;
	uint32_t *of_op; /* index in `different`, by op */
};

enum status price_role(const struct program *p, const struct role *r, const struct machine *m, struct prices *out, struct error *e);
void prices_free(struct prices *p); /* NULL-safe */

#endif
