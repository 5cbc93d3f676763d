#include "step/clocks.h"

#include <string.h>

void clocks_init(struct clocks *c)
{
	memset(c, 0, sizeof *c);
	for (int l = 0; l < LANE_COUNT; l++)
		c->last[l] = -1;
}

void clocks_free(struct clocks *c)
{
	vec_free(&c->at);
	vec_free(&c->place);
}

enum status clocks_of(const struct role *r, struct clocks *c, struct error *e)
{
	clocks_init(c);
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		struct clock known = clocks_lane(c, op->lane);
		for (uint32_t k = 0; k < op->n_dep; k++)
			clocks_join(c, r, r->deps.at[op->dep0 + k], &known);
		if (!clocks_append(c, op->lane, &known)) {
			clocks_free(c);
			return error_nomem(e, "the program's clocks");
		}
	}
	return ST_OK;
}
