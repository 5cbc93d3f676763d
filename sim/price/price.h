/* Prices of a program's ops. Roles, layers and micro-batches repeat the same few ops many times, so each different op
 * is priced once. */
#ifndef STEPSIM_SIM_PRICE_H
#define STEPSIM_SIM_PRICE_H

#include "sim/price/cost.h"

struct prices {
	struct price_memo *memo; /* owned: which op has which price */
	VEC(struct op_cost) different;
	uint32_t *of_op;  /* index in `different`, by op: the ops of the first role, then those of the next */
	size_t *first_op; /* place of a role's first op in of_op; one more for the number of all ops */
};

/* Returns the price of op i of a role. */
static inline const struct op_cost *price_of(const struct prices *p, size_t role, size_t i)
{
	return &p->different.at[p->of_op[p->first_op[role] + i]];
}

/* Prices the ops of all roles. The caller frees *out with prices_free, also after a failure. Fails as cost_op does, and
 * with ST_RUN when memory is short. */
enum status price_program(const struct program *p, const struct rates *r, struct prices *out, struct error *e);
/* The same with the prices of earlier programs, which *all holds, or is zeroed. The configs of all may differ in their
 * layers, micro-batches and global batch, of which no price depends. */
enum status price_further(const struct program *p, const struct rates *r, struct prices *all, struct error *e);
void prices_free(struct prices *p); /* NULL-safe */

#endif
