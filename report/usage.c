#include "report/usage.h"

#include <stdlib.h>

#include "step/layout.h"

size_t usage_next_actor(const struct timeline *t, size_t first)
{
	size_t next = first;
	while (next < t->spans.n && t->spans.at[next].actor == t->spans.at[first].actor)
		next++;
	return next;
}

/* Points come in order of time; of one instant the last counts, and what does not change is no point. */
static bool add(usage_points *out, int64_t at_ps, double value)
{
	if (out->n && out->at[out->n - 1].at_ps == at_ps) {
		out->at[out->n - 1].value = value;
		return true;
	}
	return (out->n && out->at[out->n - 1].value == value) || vec_push(out, ((struct usage_point){at_ps, value}));
}

enum status usage_memory(const struct program *p, const struct timeline *t, size_t first, size_t next,
	usage_points *out, struct error *e)
{
	uint64_t *live_B = NULL;
	size_t n = 0, ended = 0;
	enum status st = layout_live(timeline_role(t, p, t->spans.at[first].actor), &live_B, &n, e);
	bool good = st || add(out, 0, (double)live_B[0]);
	for (size_t i = first; i < next && !st && good; i++)
		if (t->spans.at[i].lane == LANE_COMPUTE && ++ended < n)
			good = add(out, t->spans.at[i].end_ps, (double)live_B[ended]);
	free(live_B);
	return good ? st : error_nomem(e, "the use of memory");
}

struct change {
	int64_t at_ps;
	double Bps;
};

static int by_time(const void *x, const void *y)
{
	const struct change *a = x, *b = y;
	return (a->at_ps > b->at_ps) - (a->at_ps < b->at_ps);
}

enum status usage_links(const struct program *p, const struct timeline *t, size_t first, size_t next, usage_points *out,
	struct error *e)
{
	const struct role *role = timeline_role(t, p, t->spans.at[first].actor);
	struct change *change = malloc((2 * (next - first) + 1) * sizeof *change);
	size_t n = 0, moving = 0;
	double Bps = 0;
	bool good = change && add(out, 0, 0);
	for (size_t i = first; i < next && good; i++) {
		const struct span *s = &t->spans.at[i];
		const struct op *op = &role->ops.at[s->op];
		if (!lane_is_comm((enum lane)s->lane) || s->end_ps <= s->move_ps)
			continue;
		double rate = op_wire_B(op, op_group_size(&p->mesh, op)) / ((double)(s->end_ps - s->move_ps) * 1e-12);
		if (!(rate > 0))
			continue;
		change[n++] = (struct change){s->move_ps, rate};
		change[n++] = (struct change){s->end_ps, -rate};
	}
	if (good)
		qsort(change, n, sizeof *change, by_time);
	for (size_t i = 0; i < n && good; i++) {
		moving = change[i].Bps > 0 ? moving + 1 : moving - 1;
		Bps = moving ? Bps + change[i].Bps : 0; /* no crumbs of rounding where nothing moves */
		good = add(out, change[i].at_ps, Bps);
	}
	free(change);
	return good ? ST_OK : error_nomem(e, "the use of links");
}
