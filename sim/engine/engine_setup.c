#include "sim/engine/engine_state.h"

#include <math.h>
#include <stdlib.h>

static bool is_sane(const struct activity *use)
{
	bool sane = use->weight > 0 && isfinite(use->weight) && use->held >= 0 && use->held < 1 && use->beside >= 0 &&
	            use->beside <= 1;
	for (size_t r = 0; r < RES_COUNT; r++)
		sane = sane && use->demand[r] >= 0 && isfinite(use->demand[r]);
	return sane;
}

/* Activities that were found sane. Tasks share a few of them, which come again and again: each is remembered at a place
 * that follows from its address. */
#define SANE_PLACES 64
struct sane {
	const struct activity *at[SANE_PLACES];
};

static bool remembers_sane(struct sane *known, const struct activity *use)
{
	const struct activity **at = &known->at[(uintptr_t)use / sizeof *use % SANE_PLACES];
	if (*at == use)
		return true;
	*at = is_sane(use) ? use : NULL;
	return *at != NULL;
}

static enum status check_task(const struct engine *g, size_t i, struct sane *known, struct error *e)
{
	const struct task *t = &g->tasks[i];
	if (t->actor >= g->actors || (i > 0 && t->actor < g->tasks[i - 1].actor))
		return error_set(e, ST_RUN, "engine: task %zu: actor %u out of order or range", i, t->actor);
	if (t->lane >= ENGINE_LANES)
		return error_set(e, ST_RUN, "engine: task %zu: lane %u, of %d", i, t->lane, ENGINE_LANES);
	if (t->alone_ps < 0 || (t->issue_ps < 0 && i > 0 && t->actor == g->tasks[i - 1].actor))
		return error_set(e, ST_RUN, "engine: task %zu: negative time", i);
	if (t->join >= 0 && (size_t)t->join >= g->n)
		return error_set(e, ST_RUN, "engine: task %zu: join %d, of %zu tasks", i, t->join, g->n);
	if (t->tail_ps < 0 || t->tail_ps > t->alone_ps || (t->tail_ps > 0 && (t->join >= 0 || t->holds)))
		return error_set(e, ST_RUN, "engine: task %zu: a tail out of range, or of a task that others wait for",
			i);
	if (!remembers_sane(known, t->use))
		return error_set(e, ST_RUN, "engine: task %zu: weight or demand out of range", i);
	for (uint32_t k = 0; k < t->n_dep; k++) {
		uint32_t dep = g->deps[t->dep0 + k];
		if (dep >= i || g->tasks[dep].actor != t->actor)
			return error_set(e, ST_RUN,
				"engine: task %zu depends on task %u, which is no earlier task of its actor", i, dep);
	}
	return ST_OK;
}

enum status engine_set_up(struct engine *g, struct error *e)
{
	if (g->n >= NONE || g->actors > NONE / ENGINE_LANES)
		return error_set(e, ST_RUN, "engine: too many tasks or actors");
	g->n_slots = g->actors * ENGINE_LANES;
	size_t n = g->n ? g->n : 1, slots = g->n_slots ? g->n_slots : 1;
	g->slots = calloc(slots, sizeof *g->slots);
	g->state = malloc(n * sizeof *g->state);
	g->joins = calloc(n, sizeof *g->joins);
	g->heap = calloc(slots, sizeof *g->heap);
	g->lists = calloc(3 * slots, sizeof *g->lists);
	g->is_changed = calloc(slots, sizeof *g->is_changed);
	g->lanes = calloc(slots, sizeof *g->lanes);
	g->queue = calloc(slots, sizeof *g->queue);
	if (!g->queue || !g->lanes || !g->slots || !g->state || !g->joins || !g->heap || !g->lists || !g->is_changed)
		return error_nomem(e, "engine");
	g->due = g->lists;
	g->changed = g->due + slots;
	g->leaders = g->changed + slots;

	struct sane known = {{NULL}};
	for (size_t i = 0; i < g->n; i++) {
		if (check_task(g, i, &known, e))
			return ST_RUN;
		const struct task *t = &g->tasks[i];
		bool first = i == 0 || t[-1].actor != t->actor;
		if (first)
			g->queue[t->actor] = engine_first_queued(g, i, t->actor);
		const bool held = !first && t[-1].holds;
		g->state[i] = (struct task_state){
			.held_by = first  ? NONE
		                   : held ? (uint32_t)i - 1
		                          : g->state[i - 1].held_by,
			.issued_ps = (first || held ? 0 : g->state[i - 1].issued_ps) + t->issue_ps,
		};
		g->times[i] = (struct task_time){.start_ps = NOT_ENDED, .move_ps = NOT_ENDED, .end_ps = NOT_ENDED};
		if (t->join < 0)
			continue;
		struct join *j = &g->joins[t->join];
		j->members++;
		j->alone_ps = t->alone_ps > j->alone_ps ? t->alone_ps : j->alone_ps;
	}
	for (uint32_t i = 0; i < g->n_slots; i++)
		g->slots[i] =
			(struct slot){.task = NONE, .awaits = NONE, .heap_at = NONE, .leader = i, .next_member = NONE};
	for (size_t i = g->n; i-- > 0;) {
		struct slot *s = &g->slots[g->tasks[i].actor * ENGINE_LANES + g->tasks[i].lane];
		g->state[i].next_on_lane = s->task;
		s->task = (uint32_t)i;
	}
	for (uint32_t i = 0; i < g->n_slots; i++)
		if (g->slots[i].task != NONE)
			set_state(g, i, SLOT_BLOCKED);
	return ST_OK;
}

void engine_tear_down(struct engine *g)
{
	free(g->slots);
	free(g->state);
	free(g->joins);
	free(g->heap);
	free(g->lists);
	free(g->is_changed);
	free(g->lanes);
	free(g->queue);
}
