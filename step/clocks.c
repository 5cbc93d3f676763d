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

void clocks_join(const struct clocks *c, const struct role *r, uint32_t dep, struct clock *known)
{
	const struct clock *d = &c->at.at[dep];
	for (int l = 0; l < CLOCK_LANES; l++)
		known->known[l] = known->known[l] < d->known[l] ? d->known[l] : known->known[l];
	uint32_t *own = &known->known[r->ops.at[dep].lane];
	if (*own < c->place.at[dep] + 1)
		*own = c->place.at[dep] + 1;
}

struct clock clocks_lane(const struct clocks *c, enum lane lane)
{
	if (c->last[lane] < 0)
		return (struct clock){{0}};
	struct clock known = c->at.at[c->last[lane]];
	known.known[lane] = c->count[lane];
	return known;
}

bool clocks_append(struct clocks *c, const struct op *op, const struct clock *known)
{
	if (!vec_push(&c->at, *known) || !vec_push(&c->place, c->count[op->lane]))
		return false;
	c->last[op->lane] = (int64_t)c->at.n - 1;
	c->count[op->lane]++;
	return true;
}

enum status clocks_of(const struct role *r, struct clocks *c, struct error *e)
{
	clocks_init(c);
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		struct clock known = clocks_lane(c, op->lane);
		for (uint32_t k = 0; k < op->n_dep; k++)
			clocks_join(c, r, r->deps.at[op->dep0 + k], &known);
		if (!clocks_append(c, op, &known)) {
			clocks_free(c);
			return error_nomem(e, "the program's clocks");
		}
	}
	return ST_OK;
}
