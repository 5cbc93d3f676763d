#include "sim/beside.h"

#include <math.h>

#define PS_PER_S 1e12

bool beside_is_tail(const struct op *op)
{
	return op->coll == COLL_ALL_GATHER;
}

void beside_find(const struct role *r, const struct prices *prices, double spread, int64_t *beside_ps)
{
	for (size_t i = 0; i < r->ops.n; i++)
		beside_ps[i] = llround(prices->different.at[prices->of_op[i]].beside_s * spread * PS_PER_S);
}

void beside_draw(const struct role *r, const int64_t *beside_ps, struct span *spans)
{
	int64_t free_ps = 0; /* the lane's */
	for (size_t i = 0; i < r->ops.n; i++) {
		struct span *s = &spans[i];
		if (r->ops.at[i].lane != LANE_MODEL_COMM)
			continue;
		const int64_t from_ps = s->move_ps - beside_ps[i];
		if (beside_ps[i] > 0 && !beside_is_tail(&r->ops.at[i]))
			s->move_ps = from_ps > free_ps ? from_ps : free_ps;
		s->start_ps = s->move_ps < s->start_ps ? s->move_ps : s->start_ps;
		free_ps = s->end_ps;
	}
}
