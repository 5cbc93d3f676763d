/* Prices of a role's ops. Layers and micro-batches repeat the same few ops many times, so each different op is priced
 * once. */
#ifndef STEPSIM_SIM_PRICE_H
#define STEPSIM_SIM_PRICE_H

#include "sim/price/cost.h"

struct prices {
	VEC(struct op_cost) different;
	uint32_t *of_op; /* index in `different`, by op */
};

/* Returns the price of op i. */
static inline const struct op_cost *price_of(const struct prices *p, size_t i) { return &p->different.at[p->of_op[i]]; }

/* Prices the ops of a role. The caller frees *out with prices_free. Fails as cost_op does, and with ST_RUN when memory
 * is short. */
enum status price_role(const struct program *p, const struct role *role, const struct rates *r, struct prices *out,
	struct error *e);
void prices_free(struct prices *p); /* NULL-safe */

#endif
