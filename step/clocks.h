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
struct clock clocks_lane(const struct clocks *c, enum lane lane);
/* Adds to `known` the ops that have ended once op `dep` has. */
void clocks_join(const struct clocks *c, const struct role *r, uint32_t dep, struct clock *known);
/* Appends the next op and what it knows. Returns false when out of memory. */
bool clocks_append(struct clocks *c, const struct op *op, const struct clock *known);
/* Fills the clocks of a whole role from its dependencies. The caller frees them with clocks_free. */
enum status clocks_of(const struct role *r, struct clocks *c, struct error *e);

/* True when op a has certainly ended before op b begins. */
static inline bool clocks_before(const struct clocks *c, const struct role *r, uint32_t a, uint32_t b)
{
	return c->place.at[a] < c->at.at[b].known[r->ops.at[a].lane];
}

#endif
