/* Vector clocks over the lanes of a role say which ops are known to have ended when an op begins (Fidge 1988; Mattern
 * 1989).
 *
 * at[i][l] is the number of lane l's ops that have certainly ended when op i begins; place[i] is op i's own place on
 * its lane, from 0. Op a happens before op b iff place[a] < at[b][lane of a].
 */
#ifndef STEPSIM_STEP_CLOCKS_H
#define STEPSIM_STEP_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "step/program.h"

/* Entries of a clock: the lanes, in whole vectors of 4, which a processor compares at once. */
#define CLOCK_LANES ((LANE_COUNT + 3) / 4 * 4)

struct clock {
	uint32_t known[CLOCK_LANES];
};

struct clocks {
	VEC(struct clock) at;
	VEC(uint32_t) place;
	int64_t last[LANE_COUNT]; /* the latest op of each lane, -1: none */
	uint32_t count[LANE_COUNT];
};

void clocks_init(struct clocks *c);
void clocks_free(struct clocks *c);

/* Returns the ops known to have ended when the next op on `lane` begins, by its lane alone. */
static inline struct clock clocks_lane(const struct clocks *c, enum lane lane)
{
	if (c->last[lane] < 0)
		return (struct clock){{0}};
	struct clock known = c->at.at[c->last[lane]];
	known.known[lane] = c->count[lane];
	return known;
}

/* Adds to `known` the ops that have ended once op `dep` has. */
static inline void clocks_join(const struct clocks *c, const struct role *r, uint32_t dep, struct clock *known)
{
	const struct clock *d = &c->at.at[dep];
	for (int l = 0; l < CLOCK_LANES; l++)
		known->known[l] = known->known[l] < d->known[l] ? d->known[l] : known->known[l];
	uint32_t *own = &known->known[r->ops.at[dep].lane];
	if (*own < c->place.at[dep] + 1)
		*own = c->place.at[dep] + 1;
}

/* Appends the next op, of `lane`, and what it knows. Returns false when out of memory. */
static inline bool clocks_append(struct clocks *c, uint8_t lane, const struct clock *known)
{
	if (!vec_push(&c->at, *known) || !vec_push(&c->place, c->count[lane]))
		return false;
	c->last[lane] = (int64_t)c->at.n - 1;
	c->count[lane]++;
	return true;
}

/* Fills the clocks of a whole role from its dependencies. The caller frees them with clocks_free. */
enum status clocks_of(const struct role *r, struct clocks *c, struct error *e);

/* True when op a has certainly ended before op b begins. */
static inline bool clocks_before(const struct clocks *c, const struct role *r, uint32_t a, uint32_t b)
{
	return c->place.at[a] < c->at.at[b].known[r->ops.at[a].lane];
}

#endif
