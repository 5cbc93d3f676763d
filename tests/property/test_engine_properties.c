/* Random task sets, fixed seed, against a second solver written from the headers' definitions: no heap, no lanes'
 * heads, no incremental rates. It scans everything at every event, finds max-min rates by bisection, and keeps time in
 * doubles. */
#include "tests/random.h"
#include "tests/unit/harness.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/engine.h"

#define MAX_TASKS 160
#define MAX_ACTORS 4
#define MAX_DEPS (MAX_TASKS * 3)
#define ROUNDS 400

struct set {
	size_t n, n_deps;
	uint32_t actors;
	struct task task[MAX_TASKS];
	struct activity use[MAX_TASKS]; /* by task */
	uint32_t dep[MAX_DEPS];
};

/* ---- random sets ---- */

enum kind { CONTENDED, UNCONTENDED, SMALL_TIMES /* many events at one instant */, ONE_LANE, NO_JOINS, KIND_COUNT };

static struct activity random_activity(enum kind kind)
{
	struct activity a = {.weight = kind == SMALL_TIMES || random_below(2) ? 1 : 0.2 + 2 * random_unit()};
	for (size_t r = 0; r < RES_COUNT; r++)
		if (random_below(2))
			a.demand[r] = kind == UNCONTENDED   ? random_unit() / ENGINE_LANES
			              : kind == SMALL_TIMES ? 0.5 * (1 + random_below(2))
			              : kind == NO_JOINS    ? random_unit()
			                                    : 1.3 * random_unit();
	if (kind == CONTENDED && random_below(2))
		a.held = 0.9 * random_unit();
	return a;
}

static void random_task(struct set *s, enum kind kind, uint32_t actor, size_t first)
{
	struct task *t = &s->task[s->n];
	s->use[s->n] = random_activity(kind);
	*t = (struct task){.actor = actor,
		.lane = kind == ONE_LANE ? 3 : (uint8_t)random_below(5),
		.join = -1,
		.use = &s->use[s->n]};
	t->alone_ps = kind == SMALL_TIMES    ? random_below(4)
	              : random_below(8) == 0 ? 0
	                                     : (int64_t)(1 + random_below(1000000));
	t->issue_ps = kind == SMALL_TIMES ? random_below(2) : random_below(3) ? 0 : (int64_t)random_below(300000);
	t->dep0 = (uint32_t)s->n_deps;
	t->tail_ps = random_below(4) == 0 ? (int64_t)random_below((uint32_t)t->alone_ps + 1) : 0;
	for (uint32_t want = random_below(3); want > 0 && s->n > first; want--, t->n_dep++)
		s->dep[s->n_deps++] = (uint32_t)(first + random_below((uint32_t)(s->n - first)));
	s->n++;
}

/* Joins are drawn as one global sequence, each over a random set of actors, every member on lane 5: all actors meet
 * them in the same order, so none can deadlock. */
static void random_set(struct set *s, enum kind kind)
{
	bool member[MAX_TASKS][MAX_ACTORS] = {{false}};
	memset(s, 0, sizeof *s);
	s->actors = 1 + random_below(MAX_ACTORS);
	uint32_t joins = kind == ONE_LANE || kind == NO_JOINS ? 0 : random_below(8),
		 each = 1 + random_below(MAX_TASKS / MAX_ACTORS / 2);
	for (uint32_t j = 0; j < joins; j++)
		for (uint32_t a = 0; a < s->actors; a++)
			member[j][a] = random_below(4) > 0;
	for (uint32_t a = 0; a < s->actors; a++) {
		size_t first = s->n;
		for (uint32_t j = 0; j <= joins; j++) {
			for (uint32_t k = each / (joins + 1) + random_below(3); k > 0; k--)
				random_task(s, kind, a, first);
			if (j == joins || !member[j][a])
				continue;
			random_task(s, kind, a, first);
			s->task[s->n - 1].join = (int32_t)j;
			s->task[s->n - 1].lane = 5;
			s->task[s->n - 1].tail_ps = 0;
		}
	}
	for (size_t i = 0; i < s->n; i++) /* join ids are below the number of tasks */
		CU_ASSERT_FATAL(s->task[i].join < (int32_t)s->n);
}

/* ---- the naive solver ---- */

struct naive {
	const struct set *s;
	bool resident[MAX_TASKS], moving[MAX_TASKS], ended[MAX_TASKS], released[MAX_TASKS];
	double start[MAX_TASKS], move[MAX_TASKS], end[MAX_TASKS], left[MAX_TASKS], rate[MAX_TASKS];
};

/* What those that wait for their join leave of an actor's resource. */
static double naive_capacity(const struct naive *v, uint32_t actor, size_t resource)
{
	double left = 1;
	for (size_t i = 0; i < v->s->n && resource == RES_COMPUTE; i++)
		if (v->s->task[i].actor == actor && v->resident[i] && !v->moving[i] && !v->ended[i])
			left -= left * v->s->task[i].use->held;
	return left;
}

/* Demand at level t: frozen activities stay, the others have min(1, w t). */
static bool feasible(const struct naive *v, const size_t *who, size_t n, const bool *frozen, double level)
{
	for (size_t r = 0; r < RES_COUNT; r++) {
		double load = 0;
		for (size_t k = 0; k < n; k++) {
			const struct activity *a = v->s->task[who[k]].use;
			load += a->demand[r] * (frozen[k] ? v->rate[who[k]] : fmin(1, a->weight * level));
		}
		if (load > naive_capacity(v, v->s->task[who[0]].actor, r))
			return false;
	}
	return true;
}

static void naive_share(struct naive *v, uint32_t actor)
{
	size_t who[MAX_TASKS], n = 0;
	bool frozen[MAX_TASKS] = {false};
	for (size_t i = 0; i < v->s->n; i++)
		if (v->s->task[i].actor == actor && v->moving[i])
			who[n++] = i;
	if (n == 1) {
		const double demand = v->s->task[who[0]].use->demand[RES_COMPUTE],
			     left = naive_capacity(v, actor, RES_COMPUTE);
		v->rate[who[0]] = demand > left ? left / fmin(1, demand) : 1;
		return;
	}
	for (size_t left = n; left > 0;) {
		double low = 0, high = 1e6;
		for (int k = 0; k < 200; k++) {
			double middle = (low + high) / 2;
			*(feasible(v, who, n, frozen, middle) ? &low : &high) = middle;
		}
		/* Raise all to `low`; who cannot be raised by a hair more is frozen there. */
		size_t before = left;
		bool stops[MAX_TASKS] = {false};
		for (size_t k = 0; k < n; k++) {
			if (frozen[k])
				continue;
			const struct activity *a = v->s->task[who[k]].use;
			v->rate[who[k]] = fmin(1, a->weight * low);
			stops[k] = a->weight * low >= 1;
			for (size_t r = 0; r < RES_COUNT && !stops[k]; r++) {
				double load = 0;
				for (size_t j = 0; j < n; j++)
					load += v->s->task[who[j]].use->demand[r] *
					        (frozen[j] ? v->rate[who[j]]
							   : fmin(1, v->s->task[who[j]].use->weight * low));
				stops[k] = a->demand[r] > 0 && load > naive_capacity(v, actor, r) - 1e-9;
			}
		}
		for (size_t k = 0; k < n; k++)
			if (stops[k] && !frozen[k]) {
				frozen[k] = true;
				left--;
			}
		CU_ASSERT_FATAL(left < before);
	}
}

static double naive_issued(const struct set *s, size_t i)
{
	double sum = 0;
	for (size_t k = 0; k <= i; k++)
		if (s->task[k].actor == s->task[i].actor)
			sum += (double)s->task[k].issue_ps;
	return sum;
}

static bool may_start(const struct naive *v, size_t i)
{
	const struct task *t = &v->s->task[i];
	for (size_t k = 0; k < i; k++)
		if (v->s->task[k].actor == t->actor && v->s->task[k].lane == t->lane && !v->ended[k])
			return false;
	for (uint32_t k = 0; k < t->n_dep; k++)
		if (!v->released[v->s->dep[t->dep0 + k]])
			return false;
	return !v->resident[i];
}

static bool complete(const struct naive *v, int32_t join)
{
	for (size_t i = 0; i < v->s->n; i++)
		if (v->s->task[i].join == join && !v->resident[i])
			return false;
	return true;
}

static void naive_starts(struct naive *v, double now, double *next_issue)
{
	*next_issue = INFINITY;
	for (size_t i = 0; i < v->s->n; i++) {
		if (!may_start(v, i))
			continue;
		double issued = naive_issued(v->s, i);
		if (issued > now) {
			*next_issue = fmin(*next_issue, issued);
			continue;
		}
		v->resident[i] = true;
		v->start[i] = now;
	}
	for (size_t i = 0; i < v->s->n; i++) {
		if (!v->resident[i] || v->moving[i] || v->ended[i] ||
			(v->s->task[i].join >= 0 && !complete(v, v->s->task[i].join)))
			continue;
		v->moving[i] = true;
		v->move[i] = now;
		v->left[i] = (double)v->s->task[i].alone_ps;
		for (size_t k = 0; k < v->s->n && v->s->task[i].join >= 0; k++)
			if (v->s->task[k].join == v->s->task[i].join)
				v->left[i] = fmax(v->left[i], (double)v->s->task[k].alone_ps);
	}
}

static double naive_pace(const struct naive *v, size_t i)
{
	double pace = v->rate[i];
	for (size_t k = 0; k < v->s->n && v->s->task[i].join >= 0; k++)
		if (v->s->task[k].join == v->s->task[i].join)
			pace = fmin(pace, v->rate[k]);
	return pace;
}

static void naive_run(struct naive *v)
{
	double now = 0, next_issue;
	for (;;) {
		naive_starts(v, now, &next_issue);
		for (uint32_t a = 0; a < v->s->actors; a++)
			naive_share(v, a);
		double next = next_issue;
		for (size_t i = 0; i < v->s->n; i++)
			if (v->moving[i])
				next = fmin(next,
					now + (v->left[i] - (v->released[i] ? 0 : (double)v->s->task[i].tail_ps)) /
							naive_pace(v, i));
		if (isinf(next))
			return;
		for (size_t i = 0; i < v->s->n; i++) {
			if (!v->moving[i])
				continue;
			double pace = naive_pace(v, i);
			bool ends = now + v->left[i] / pace <= next + 1e-6; /* a millionth of a picosecond */
			v->left[i] -= pace * (next - now);
			v->released[i] = v->released[i] || ends ||
			                 (v->s->task[i].tail_ps > 0 &&
						 v->left[i] <= (double)v->s->task[i].tail_ps + 1e-6);
			v->ended[i] = ends;
			v->end[i] = next;
		}
		for (size_t i = 0; i < v->s->n; i++)
			v->moving[i] = v->moving[i] && !v->ended[i];
		now = next;
	}
}

/* ---- helpers ---- */

static struct set set, other;
static struct task_time times[MAX_TASKS], others[MAX_TASKS];

static void run(const struct set *s, struct task_time *t)
{
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(engine_run(s->task, s->n, s->dep, s->actors, t, &e), ST_OK);
}

static int64_t makespan(const struct set *s, const struct task_time *t)
{
	int64_t latest = 0;
	for (size_t i = 0; i < s->n; i++)
		latest = t[i].end_ps > latest ? t[i].end_ps : latest;
	return latest;
}

static void for_each_set(uint64_t seed, enum kind first, enum kind last, int rounds, void (*check)(enum kind kind))
{
	random_state = seed;
	for (int k = 0; k < rounds; k++) {
		enum kind kind = (enum kind)((int)first + k % ((int)last - (int)first + 1));
		random_set(&set, kind);
		run(&set, times);
		check(kind);
	}
}

/* ---- properties ---- */

static void check_against_naive(enum kind kind)
{
	static struct naive v;
	memset(&v, 0, sizeof v);
	v.s = &set;
	naive_run(&v);
	/* The engine rounds each event to a picosecond; where rates are below 1 a rounding travels on. Equal instants
	 * must stay equal in SMALL_TIMES with its exact rates. */
	double slack = kind == SMALL_TIMES ? 8 : 2 + (double)set.n;
	double worst = 0;
	for (size_t i = 0; i < set.n; i++) {
		CU_ASSERT_FATAL(v.ended[i]);
		worst = fmax(worst, fabs(v.start[i] - (double)times[i].start_ps));
		worst = fmax(worst, fabs(v.move[i] - (double)times[i].move_ps));
		worst = fmax(worst, fabs(v.end[i] - (double)times[i].end_ps));
	}
	CU_ASSERT(worst <= slack);
}

static void test_naive(void) { for_each_set(1, CONTENDED, NO_JOINS, ROUNDS, check_against_naive); }

/* Lower bounds of every schedule: the longest chain through lanes, dependencies and issue; and, on each actor, its
 * busiest lane. */
static void check_bounds(enum kind kind)
{
	(void)kind;
	static int64_t chain[MAX_TASKS];
	int64_t lane_end[MAX_ACTORS][ENGINE_LANES] = {{0}}, busy[MAX_ACTORS][ENGINE_LANES] = {{0}},
		issued[MAX_ACTORS] = {0}, end = makespan(&set, times);
	for (size_t i = 0; i < set.n; i++) {
		const struct task *t = &set.task[i];
		issued[t->actor] += t->issue_ps;
		int64_t from = issued[t->actor] > lane_end[t->actor][t->lane] ? issued[t->actor]
		                                                              : lane_end[t->actor][t->lane];
		for (uint32_t k = 0; k < t->n_dep; k++)
			from = chain[set.dep[t->dep0 + k]] - set.task[set.dep[t->dep0 + k]].tail_ps > from
			               ? chain[set.dep[t->dep0 + k]] - set.task[set.dep[t->dep0 + k]].tail_ps
			               : from;
		chain[i] = lane_end[t->actor][t->lane] = from + t->alone_ps;
		busy[t->actor][t->lane] += t->alone_ps;
		CU_ASSERT(times[i].end_ps >= chain[i]);
		CU_ASSERT(times[i].end_ps - times[i].move_ps >= t->alone_ps);
		CU_ASSERT(end >= busy[t->actor][t->lane]);
		CU_ASSERT(end >= issued[t->actor]);
	}
}

static void test_bounds(void) { for_each_set(2, CONTENDED, NO_JOINS, ROUNDS, check_bounds); }

/* An upper bound where it is one: without joins and with demands of at most 1, something on each actor always moves at
 * rates that add up to 1 or more, so that an actor's makespan is at most its issue time and its alone times one after
 * the other. */
static void check_serial(enum kind kind)
{
	(void)kind;
	int64_t serial[MAX_ACTORS] = {0};
	for (size_t i = 0; i < set.n; i++)
		serial[set.task[i].actor] += set.task[i].alone_ps + set.task[i].issue_ps;
	for (size_t i = 0; i < set.n; i++)
		CU_ASSERT(times[i].end_ps <=
			  serial[set.task[i].actor] + (int64_t)set.n); /* a picosecond of rounding a task */
}

static void test_serial(void) { for_each_set(3, NO_JOINS, NO_JOINS, ROUNDS, check_serial); }

/* Lanes are in order, so there is no list-scheduling anomaly (Graham 1969): with rates of 1 every start is a maximum of
 * sums of durations, and a shorter task or issue can make nothing later. Where rates are shared that is no theorem (a
 * task that ends sooner may let two others meet that did not); it is one again on a single lane. */
static void check_shorter_is_never_slower(enum kind kind)
{
	(void)kind;
	other = set;
	for (size_t i = 0; i < other.n; i++) {
		other.task[i].alone_ps = random_below(3) ? other.task[i].alone_ps
		                                         : (int64_t)((double)other.task[i].alone_ps * random_unit());
		other.task[i].tail_ps = other.task[i].tail_ps < other.task[i].alone_ps ? other.task[i].tail_ps
		                                                                       : other.task[i].alone_ps;
		other.task[i].issue_ps = random_below(3) ? other.task[i].issue_ps
		                                         : (int64_t)((double)other.task[i].issue_ps * random_unit());
	}
	run(&other, others);
	for (size_t i = 0; i < set.n; i++) {
		CU_ASSERT(others[i].start_ps <= times[i].start_ps);
		CU_ASSERT(others[i].end_ps <= times[i].end_ps);
	}
}

static void test_shorter_is_never_slower(void)
{
	for_each_set(4, UNCONTENDED, UNCONTENDED, ROUNDS, check_shorter_is_never_slower);
	for_each_set(5, ONE_LANE, ONE_LANE, ROUNDS / 4, check_shorter_is_never_slower);
}

/* Without contention nobody is slowed: what moves lasts alone_ps, or its join's longest. */
static void check_full_rate(enum kind kind)
{
	(void)kind;
	for (size_t i = 0; i < set.n; i++) {
		int64_t lasts = set.task[i].alone_ps;
		for (size_t k = 0; k < set.n && set.task[i].join >= 0; k++)
			if (set.task[k].join == set.task[i].join && set.task[k].alone_ps > lasts)
				lasts = set.task[k].alone_ps;
		CU_ASSERT_EQUAL(times[i].end_ps - times[i].move_ps, lasts);
	}
}

static void test_full_rate(void) { for_each_set(6, UNCONTENDED, UNCONTENDED, ROUNDS / 4, check_full_rate); }

static void check_permuted_actors(enum kind kind)
{
	(void)kind;
	size_t first[MAX_ACTORS + 1] = {0}, moved_to[MAX_TASKS];
	other = (struct set){.actors = set.actors, .n_deps = set.n_deps};
	memcpy(other.dep, set.dep, sizeof set.dep);
	for (uint32_t a = 0; a < set.actors; a++)
		for (first[a + 1] = first[a]; first[a + 1] < set.n && set.task[first[a + 1]].actor == a;)
			first[a + 1]++;
	for (uint32_t k = 0; k < set.actors; k++) {
		uint32_t a = set.actors - 1 - k;
		for (size_t i = first[a]; i < first[a + 1]; i++) {
			moved_to[i] = other.n;
			other.task[other.n] = set.task[i];
			other.task[other.n].actor = k;
			for (uint32_t d = 0; d < set.task[i].n_dep; d++)
				other.dep[set.task[i].dep0 + d] = (uint32_t)moved_to[set.dep[set.task[i].dep0 + d]];
			other.n++;
		}
	}
	run(&other, others);
	for (size_t i = 0; i < set.n; i++)
		CU_ASSERT(memcmp(&times[i], &others[moved_to[i]], sizeof times[i]) == 0);
}

static void test_permuted_actors(void) { for_each_set(7, CONTENDED, NO_JOINS, ROUNDS, check_permuted_actors); }

static void check_deterministic(enum kind kind)
{
	(void)kind;
	run(&set, others);
	CU_ASSERT(memcmp(times, others, set.n * sizeof times[0]) == 0);
}

static void test_deterministic(void) { for_each_set(8, CONTENDED, NO_JOINS, ROUNDS / 4, check_deterministic); }

UNIT_MAIN("engine properties", {"agrees with the naive solver", test_naive},
	{"at least the longest chain and the busiest lane", test_bounds}, {"at most one after the other", test_serial},
	{"shorter is never slower where that is a theorem", test_shorter_is_never_slower},
	{"full rate without contention", test_full_rate}, {"permuting actors changes nothing", test_permuted_actors},
	{"deterministic", test_deterministic})
