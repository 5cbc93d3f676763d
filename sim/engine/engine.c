#include "sim/engine/engine_state.h"

#include "base/array.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- numbers: libm's fmin, fmax and llround are calls, and mind what no time is ---- */

static double lesser(double a, double b) { return a < b ? a : b; }
static double greater(double a, double b) { return a > b ? a : b; }

/* Rounds x >= 0 as llround does. */
static int64_t rounded(double x)
{
	const int64_t whole = (int64_t)x;
	return whole + (x - (double)whole >= 0.5);
}

/* ---- heap of due slots, by (time, sequence) ---- */

static bool earlier(struct due x, struct due y)
{
	return x.at_ps != y.at_ps ? x.at_ps < y.at_ps : x.sequence < y.sequence;
}

static void heap_put(struct engine *g, uint32_t at, struct due x)
{
	g->heap[at] = x;
	g->slots[x.slot].heap_at = at;
}

static void sift_up(struct engine *g, uint32_t at, struct due x)
{
	while (at > 0 && earlier(x, g->heap[(at - 1) / 2])) {
		heap_put(g, at, g->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(g, at, x);
}

static void sift_down(struct engine *g, uint32_t at, struct due x)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= g->n_heap)
			break;
		if (child + 1 < g->n_heap && earlier(g->heap[child + 1], g->heap[child]))
			child++;
		if (!earlier(g->heap[child], x))
			break;
		heap_put(g, at, g->heap[child]);
		at = child;
	}
	heap_put(g, at, x);
}

static void schedule(struct engine *g, uint32_t slot, int64_t due_ps)
{
	const uint32_t at = g->slots[slot].heap_at;
	const struct due x = {due_ps, g->sequence++, slot};
	if (at == NONE)
		sift_up(g, g->n_heap++, x);
	else if (due_ps >= g->heap[at].at_ps)
		sift_down(g, at, x);
	else
		sift_up(g, at, x);
}

static uint32_t heap_pop(struct engine *g)
{
	const uint32_t top = g->heap[0].slot;
	const struct due last = g->heap[--g->n_heap];
	if (g->n_heap > 0)
		sift_down(g, 0, last);
	g->slots[top].heap_at = NONE;
	return top;
}

/* ---- lanes ---- */

static void mark_changed(struct engine *g, uint32_t actor)
{
	if (g->is_changed[actor])
		return;
	g->is_changed[actor] = true;
	g->changed[g->n_changed++] = actor;
}

/* Takes the lowest lane out of a set of them. */
static uint32_t take_lane(uint32_t *lanes)
{
	const uint32_t lane = (uint32_t)__builtin_ctz(*lanes);
	*lanes &= *lanes - 1;
	return lane;
}

static void begin_moving(struct engine *g, uint32_t leader, int64_t alone_ps)
{
	struct slot *l = &g->slots[leader];
	l->rate = 0;
	l->left_ps = (double)alone_ps;
	l->since_ps = g->now_ps;
	for (uint32_t i = leader; i != NONE; i = g->slots[i].next_member) {
		struct slot *s = &g->slots[i];
		set_state(g, i, SLOT_MOVING);
		s->own_rate = 0;
		g->times[s->task].move_ps = g->now_ps;
		mark_changed(g, i / ENGINE_LANES);
	}
}

static void start(struct engine *g, uint32_t slot)
{
	struct slot *s = &g->slots[slot];
	const struct task *t = &g->tasks[s->task];
	if (t->queued) {
		g->queue[t->actor] = engine_first_queued(g, s->task + (size_t)1, t->actor);
		mark_changed(g, t->actor);
	}
	g->times[s->task].start_ps = g->now_ps;
	s->next_member = NONE;
	s->leader = slot;
	if (t->join < 0) {
		begin_moving(g, slot, t->alone_ps);
		return;
	}
	struct join *j = &g->joins[t->join];
	set_state(g, slot, SLOT_WAITING);
	if (j->arrived++ == 0) {
		j->leader = slot;
	} else {
		s->leader = j->leader;
		s->next_member = g->slots[j->leader].next_member;
		g->slots[j->leader].next_member = slot;
	}
	if (j->arrived == j->members)
		begin_moving(g, j->leader, j->alone_ps);
	else if (t->use->held > 0)
		mark_changed(g, slot / ENGINE_LANES);
}

static void end(struct engine *g, uint32_t leader)
{
	for (uint32_t i = leader, next; i != NONE; i = next) {
		struct slot *s = &g->slots[i];
		next = s->next_member;
		g->times[s->task].end_ps = g->now_ps;
		g->state[s->task].released = true;
		g->ended++;
		s->task = g->state[s->task].next_on_lane;
		s->deps_ended = 0;
		s->awaits = NONE;
		set_state(g, i, s->task == NONE ? SLOT_EMPTY : SLOT_BLOCKED);
		mark_changed(g, i / ENGINE_LANES);
	}
}

static void schedule_end(struct engine *g, uint32_t leader, double left_ps)
{
	const double last_ps = lesser(left_ps / g->slots[leader].rate,
		(double)(INT64_MAX / 4)); /* a rate near 0 must not overflow the clock */
	schedule(g, leader, g->now_ps + rounded(last_ps));
}

/* A task with a tail has no join, so that its slot leads itself. */
static bool has_tail_left(const struct engine *g, uint32_t slot)
{
	const uint32_t task = g->slots[slot].task;
	return g->tasks[task].tail_ps > 0 && !g->state[task].released;
}

static void release(struct engine *g, uint32_t slot)
{
	struct slot *s = &g->slots[slot];
	g->state[s->task].released = true;
	s->left_ps = (double)g->tasks[s->task].tail_ps;
	s->since_ps = g->now_ps;
	schedule_end(g, slot, s->left_ps);
	mark_changed(g, slot / ENGINE_LANES);
}

/* Starts each task at the head of an actor's lane that nothing holds back any more, or makes it due when it is issued.
 */
static void advance(struct engine *g, uint32_t actor)
{
	for (uint32_t blocked = g->lanes[actor].in[SLOT_BLOCKED]; blocked;) {
		const uint32_t i = actor * ENGINE_LANES + take_lane(&blocked);
		struct slot *s = &g->slots[i];
		if (s->awaits != NONE && !g->state[s->awaits].released)
			continue;
		const struct task *t = &g->tasks[s->task];
		if (t->queued && g->queue[actor] != s->task)
			continue;
		while (s->deps_ended < t->n_dep && g->state[g->deps[t->dep0 + s->deps_ended]].released)
			s->deps_ended++;
		if (s->deps_ended < t->n_dep) {
			s->awaits = g->deps[t->dep0 + s->deps_ended];
			continue;
		}
		const uint32_t held_by = g->state[s->task].held_by;
		if (held_by != NONE && g->times[held_by].end_ps == NOT_ENDED)
			continue;
		const int64_t issued_ps = g->state[s->task].issued_ps +
		                          (held_by != NONE ? g->times[held_by].end_ps : 0);
		if (issued_ps <= g->now_ps) {
			start(g, i);
			if (t->queued) /* the next of the queue may be of any lane */
				blocked = g->lanes[actor].in[SLOT_BLOCKED];
		} else {
			set_state(g, i, SLOT_ISSUING);
			schedule(g, i, issued_ps);
		}
	}
}

/* ---- rates ---- */

/* Returns the rates of n tasks that move together on an actor with so much compute. */
static const double *rates_together(struct engine *g, const struct activity *const act[], size_t n, double compute)
{
	const double capacity[] = {compute, 1, 1, 1};
	static_assert(COUNT(capacity) == RES_COUNT && RES_COMPUTE == 0, "a capacity for each resource");
	uint64_t h = 0;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uintptr_t)act[i]) *
		    UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio (Knuth, TAOCP 3, section 6.4) */
	struct shares *s = &g->shares[h >> (64 - SHARES_BITS)];
	if (s->n != n || s->compute != compute || memcmp(s->act, act, n * sizeof *act) != 0) {
		maxmin_rates(act, n, capacity, s->rate);
		memcpy(s->act, act, n * sizeof *act);
		s->n = n;
		s->compute = compute;
	}
	return s->rate;
}

static void share(struct engine *g, uint32_t actor)
{
	const struct activity *act[ENGINE_LANES];
	uint32_t who[ENGINE_LANES];
	double compute = 1, polled = 0, alone = 1;
	const double *rate = &alone;
	size_t n = 0;
	const struct lanes *lanes = &g->lanes[actor];
	for (uint32_t here = lanes->in[SLOT_WAITING] | lanes->in[SLOT_MOVING]; here;) {
		const uint32_t i = actor * ENGINE_LANES + take_lane(&here);
		const enum slot_state state = g->slots[i].state;
		const struct activity *use = g->tasks[g->slots[i].task].use;
		if (use->beside > 0)
			polled = greater(polled, use->held);
		else if (state == SLOT_WAITING)
			compute *= 1 - use->held;
		if (state != SLOT_MOVING)
			continue;
		act[n] = use;
		who[n++] = i;
	}
	compute *= 1 - polled;
	if (n > 1)
		rate = rates_together(g, act, n, compute);
	else if (n == 1 && !(act[0]->beside > 0) && act[0]->demand[RES_COMPUTE] > compute)
		alone = compute / lesser(1, act[0]->demand[RES_COMPUTE]);
	for (size_t k = 0; k < n; k++) {
		struct slot *s = &g->slots[who[k]], *leader = &g->slots[s->leader];
		if (s->own_rate == rate[k])
			continue;
		s->own_rate = rate[k];
		if (!leader->repace)
			g->leaders[g->n_leaders++] = s->leader;
		leader->repace = true;
	}
}

static void repace(struct engine *g, uint32_t leader)
{
	struct slot *l = &g->slots[leader];
	l->repace = false;
	double rate = l->own_rate;
	for (uint32_t i = l->next_member; i != NONE; i = g->slots[i].next_member)
		rate = lesser(rate, g->slots[i].own_rate);
	if (rate == l->rate)
		return; /* updating left_ps without need would only add rounding */
	l->left_ps = greater(0, l->left_ps - l->rate * (double)(g->now_ps - l->since_ps));
	l->since_ps = g->now_ps;
	l->rate = rate;
	schedule_end(g, leader,
		has_tail_left(g, leader) ? greater(0, l->left_ps - (double)g->tasks[l->task].tail_ps) : l->left_ps);
}

/* ---- running ---- */

static void run(struct engine *g)
{
	for (uint32_t a = 0; a < g->actors; a++)
		mark_changed(g, a);
	for (;;) {
		for (uint32_t i = 0; i < g->n_changed; i++)
			advance(g, g->changed[i]); /* may add actors: a join that is complete */
		for (uint32_t i = 0; i < g->n_changed; i++) {
			g->is_changed[g->changed[i]] = false;
			share(g, g->changed[i]);
		}
		for (uint32_t i = 0; i < g->n_leaders; i++)
			repace(g, g->leaders[i]);
		g->n_changed = g->n_leaders = 0;
		if (g->n_heap == 0)
			return;

		g->now_ps = g->heap[0].at_ps;
		uint32_t n_due = 0;
		while (g->n_heap > 0 && g->heap[0].at_ps == g->now_ps)
			g->due[n_due++] = heap_pop(g);
		for (uint32_t i = 0; i < n_due; i++) {
			if (g->slots[g->due[i]].state == SLOT_ISSUING)
				start(g, g->due[i]);
			else if (has_tail_left(g, g->due[i]))
				release(g, g->due[i]);
			else
				end(g, g->due[i]);
		}
	}
}

static enum status deadlock(const struct engine *g, struct error *e)
{
	size_t i = 0;
	while (g->times[i].end_ps != NOT_ENDED)
		i++;
	/* Every task that it could wait for on its own actor comes earlier and has ended. So it is resident and waits
	 * for its join. */
	const struct task *t = &g->tasks[i];
	const struct join *j = &g->joins[t->join];
	return error_set(e, ST_RUN,
		"deadlock: task %zu (actor %u, lane %u) waits forever: %u of the %u members of its collective arrive",
		i, t->actor, t->lane, j->arrived, j->members);
}

enum status engine_run(const struct task *tasks, size_t n, const uint32_t *deps, uint32_t actors,
	struct task_time *times, struct error *e)
{
	struct engine g = {.tasks = tasks, .deps = deps, .times = times, .n = n, .actors = actors};
	enum status st = engine_set_up(&g, e);
	if (st)
		goto out;
	run(&g);
	if (g.ended < n)
		st = deadlock(&g, e);
out:
	engine_tear_down(&g);
	return st;
}
