#include "sim/engine/tile_overlap.h"

bool tile_overlap_is_tail(const struct op *op) { return op->coll == COLL_ALL_GATHER; }

void tile_overlap_draw(const struct role *r, const int64_t *tile_overlap_ps, struct span *spans)
{
	int64_t free_ps = 0; /* the lane's */
	for (size_t i = 0; i < r->ops.n; i++) {
		struct span *s = &spans[i];
		if (r->ops.at[i].lane != LANE_MODEL_COMM)
			continue;
		const int64_t from_ps = s->move_ps - tile_overlap_ps[i];
		if (tile_overlap_ps[i] > 0 && !tile_overlap_is_tail(&r->ops.at[i]))
			s->move_ps = from_ps > free_ps ? from_ps : free_ps;
		s->start_ps = s->move_ps < s->start_ps ? s->move_ps : s->start_ps;
		free_ps = s->end_ps;
	}
}
