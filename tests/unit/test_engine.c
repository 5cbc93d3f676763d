#include "tests/unit/harness.h"

#include <string.h>

#include "sim/engine/engine.h"

#define USE(...) (&(const struct activity){__VA_ARGS__})
#define FREE USE(.weight = 1)
#define CPU(share) USE(.weight = 1, .demand = {share})

static struct task_time times[16];
static struct error error;

static enum status run(const struct task *t, size_t n, const uint32_t *deps, uint32_t actors)
{
	error = (struct error){0};
	return engine_run(t, n, deps, actors, times, &error);
}

static void test_nothing(void)
{
	CU_ASSERT_EQUAL(run(NULL, 0, NULL, 0), ST_OK);
	CU_ASSERT_EQUAL(run(NULL, 0, NULL, 3), ST_OK);
}

static void test_alone_is_exact(void)
{
	/* Also with demands above the capacity, and at a size where a double still holds every picosecond. */
	struct task t[] = {{.lane = 2,
		.alone_ps = 1234567890123457,
		.join = -1,
		.use = USE(.weight = 0.1, .demand = {1.4, 0.3, 1, 1})}};
	CU_ASSERT_EQUAL(run(t, 1, NULL, 1), ST_OK);
	CU_ASSERT_EQUAL(times[0].start_ps, 0);
	CU_ASSERT_EQUAL(times[0].move_ps, 0);
	CU_ASSERT_EQUAL(times[0].end_ps, 1234567890123457);
}

static void test_lane_is_in_order(void)
{
	struct task t[] = {{.alone_ps = 5, .join = -1, .use = CPU(1)}, {.alone_ps = 0, .join = -1, .use = CPU(1)},
		{.alone_ps = 7, .join = -1, .use = CPU(1)}};
	CU_ASSERT_EQUAL(run(t, 3, NULL, 1), ST_OK);
	CU_ASSERT_EQUAL(times[0].end_ps, 5);
	CU_ASSERT_EQUAL(times[1].start_ps, 5);
	CU_ASSERT_EQUAL(times[1].end_ps, 5);
	CU_ASSERT_EQUAL(times[2].start_ps, 5);
	CU_ASSERT_EQUAL(times[2].end_ps, 12);
}

static void test_dependencies(void)
{
	const uint32_t deps[] = {0, 1};
	struct task t[] = {
		{.lane = 0, .alone_ps = 10, .join = -1, .use = FREE},
		{.lane = 1, .alone_ps = 30, .join = -1, .use = FREE},
		{.lane = 2, .alone_ps = 5, .join = -1, .dep0 = 0, .n_dep = 2, .use = FREE},
		{.lane = 0, .alone_ps = 100, .join = -1, .use = FREE},
	};
	CU_ASSERT_EQUAL(run(t, 4, deps, 1), ST_OK);
	CU_ASSERT_EQUAL(times[2].start_ps, 30);
	CU_ASSERT_EQUAL(times[2].end_ps, 35);
	CU_ASSERT_EQUAL(times[3].start_ps, 10); /* lanes run side by side */
	CU_ASSERT_EQUAL(times[3].end_ps, 110);
}

/* A task that depends on one with a tail starts when all but the tail has moved; the lane is free when all has. Both
 * slow each other down where they use the same resource. */
static void test_tail(void)
{
	const uint32_t deps[] = {0};
	struct task t[] = {
		{.lane = 1, .alone_ps = 100, .tail_ps = 70, .join = -1, .use = FREE},
		{.lane = 0, .alone_ps = 50, .join = -1, .dep0 = 0, .n_dep = 1, .use = FREE},
		{.lane = 1, .alone_ps = 5, .join = -1, .use = FREE},
	};
	CU_ASSERT_EQUAL(run(t, 3, deps, 1), ST_OK);
	CU_ASSERT_EQUAL(times[1].start_ps, 30);
	CU_ASSERT_EQUAL(times[1].end_ps, 80);
	CU_ASSERT_EQUAL(times[0].end_ps, 100);
	CU_ASSERT_EQUAL(times[2].start_ps, 100);
	t[0].use = t[1].use = CPU(1);
	CU_ASSERT_EQUAL(run(t, 3, deps, 1), ST_OK);
	CU_ASSERT_EQUAL(times[1].start_ps, 30);
	CU_ASSERT_EQUAL(times[1].end_ps, 130);
	CU_ASSERT_EQUAL(times[0].end_ps, 150);
	t[0].tail_ps = t[0].alone_ps;
	CU_ASSERT_EQUAL(run(t, 3, deps, 1), ST_OK);
	CU_ASSERT_EQUAL(times[1].start_ps, 0);
	t[0].tail_ps = 101;
	CU_ASSERT_EQUAL(run(t, 3, deps, 1), ST_RUN);
	t[0].tail_ps = 1;
	t[0].join = 0;
	CU_ASSERT_EQUAL(run(t, 3, deps, 1), ST_RUN);
}

/* The host issues one after the other whatever the lanes do: short kernels wait for it, long ones hide it. */
/* The second transfer waits for the first, and the queue behind it with it: compute that depends on neither. What is
 * not queued goes on, and another actor has a queue of its own. */
static void test_queue(void)
{
	struct task t[] = {
		{.lane = 1, .alone_ps = 10, .queued = true, .join = -1, .use = FREE},
		{.lane = 1, .alone_ps = 10, .queued = true, .join = -1, .use = FREE},
		{.lane = 0, .alone_ps = 5, .queued = true, .join = -1, .use = FREE},
		{.lane = 2, .alone_ps = 5, .join = -1, .use = FREE},
		{.actor = 1, .lane = 0, .alone_ps = 5, .queued = true, .join = -1, .use = FREE},
	};
	CU_ASSERT_EQUAL(run(t, 5, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[1].start_ps, 10);
	CU_ASSERT_EQUAL(times[2].start_ps, 10);
	CU_ASSERT_EQUAL(times[3].start_ps, 0);
	CU_ASSERT_EQUAL(times[4].start_ps, 0);
	for (int i = 0; i < 5; i++)
		t[i].queued = false;
	CU_ASSERT_EQUAL(run(t, 5, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[1].start_ps, 10);
	CU_ASSERT_EQUAL(times[2].start_ps, 0);
}

static void test_issue(void)
{
	struct task t[] = {
		{.alone_ps = 2, .issue_ps = 5, .join = -1, .use = CPU(1)},
		{.alone_ps = 2, .issue_ps = 5, .join = -1, .use = CPU(1)},
		{.alone_ps = 50, .issue_ps = 5, .join = -1, .use = CPU(1)},
		{.alone_ps = 2, .issue_ps = 5, .join = -1, .use = CPU(1)},
	};
	CU_ASSERT_EQUAL(run(t, 4, NULL, 1), ST_OK);
	CU_ASSERT_EQUAL(times[0].start_ps, 5);
	CU_ASSERT_EQUAL(times[1].start_ps, 10);
	CU_ASSERT_EQUAL(times[2].start_ps, 15);
	CU_ASSERT_EQUAL(times[3].start_ps, 65);
}

/* Both at 1/2 until the short one ends at 20; the long one has 20 left and goes on alone. */
static void test_sharing(void)
{
	struct task t[] = {{.lane = 0, .alone_ps = 30, .join = -1, .use = CPU(1)},
		{.lane = 1, .alone_ps = 10, .join = -1, .use = CPU(1)}};
	CU_ASSERT_EQUAL(run(t, 2, NULL, 1), ST_OK);
	CU_ASSERT_EQUAL(times[1].end_ps, 20);
	CU_ASSERT_EQUAL(times[0].end_ps, 40);
}

static void test_actors_share_nothing(void)
{
	struct task t[] = {{.actor = 0, .alone_ps = 30, .join = -1, .use = CPU(1)},
		{.actor = 1, .lane = 1, .alone_ps = 10, .join = -1, .use = CPU(1)}};
	CU_ASSERT_EQUAL(run(t, 2, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[0].end_ps, 30);
	CU_ASSERT_EQUAL(times[1].end_ps, 10);
}

/* The collective waits for actor 1, which computes until 40, and takes nothing from actor 0 while it waits: actor 0's
 * compute ends at 25, undisturbed. */
static void test_join_waits(void)
{
	struct task t[] = {
		{.actor = 0, .lane = 0, .alone_ps = 25, .join = -1, .use = CPU(1)},
		{.actor = 0, .lane = 1, .alone_ps = 10, .join = 3, .use = CPU(1)},
		{.actor = 1, .lane = 0, .alone_ps = 40, .join = -1, .use = CPU(1)},
		{.actor = 1, .lane = 0, .alone_ps = 12, .join = 3, .use = CPU(1)},
	};
	CU_ASSERT_EQUAL(run(t, 4, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[0].end_ps, 25);
	CU_ASSERT_EQUAL(times[1].start_ps, 0);
	CU_ASSERT_EQUAL(times[1].move_ps, 40);
	CU_ASSERT_EQUAL(times[1].end_ps, 52); /* the longest member counts */
	CU_ASSERT_EQUAL(times[3].start_ps, 40);
	CU_ASSERT_EQUAL(times[3].move_ps, 40);
	CU_ASSERT_EQUAL(times[3].end_ps, 52);
}

/* Actor 1 computes beside the collective, which therefore moves at 1/2 on both; actor 0 has nothing else. At 40 actor
 * 1's compute is done. */
static void test_join_moves_at_the_slowest_rate(void)
{
	struct task t[] = {
		{.actor = 0, .lane = 1, .alone_ps = 50, .join = 0, .use = CPU(1)},
		{.actor = 1, .lane = 0, .alone_ps = 20, .join = -1, .use = CPU(1)},
		{.actor = 1, .lane = 1, .alone_ps = 50, .join = 0, .use = CPU(1)},
	};
	CU_ASSERT_EQUAL(run(t, 3, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[1].end_ps, 40);
	CU_ASSERT_EQUAL(times[0].end_ps, 70); /* 20 done by 40, 30 left */
	CU_ASSERT_EQUAL(times[2].end_ps, 70);
}

/* At 10 a task ends, another is issued and a join completes: none of the three may see a state between. */
static void test_all_that_is_due_is_collected(void)
{
	struct task t[] = {
		{.actor = 0, .lane = 0, .alone_ps = 10, .join = -1, .use = CPU(1)},
		{.actor = 0, .lane = 1, .alone_ps = 4, .issue_ps = 10, .join = 0, .use = CPU(1)},
		{.actor = 0, .lane = 2, .alone_ps = 6, .join = -1, .use = CPU(1)},
		{.actor = 1, .lane = 0, .alone_ps = 4, .issue_ps = 10, .join = 0, .use = CPU(1)},
	};
	CU_ASSERT_EQUAL(run(t, 4, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[0].end_ps, 10);
	CU_ASSERT_EQUAL(times[1].move_ps, 10);
	CU_ASSERT_EQUAL(times[2].start_ps, 10);
	CU_ASSERT_EQUAL(times[1].end_ps, 18); /* both at 1/2 from 10 */
	CU_ASSERT_EQUAL(times[2].end_ps, 20);
	CU_ASSERT_EQUAL(times[3].end_ps, 18);
}

/* A receive that is posted early holds a quarter of compute while it waits for its sender, and nothing of it once it
 * moves. A task that moves alone has the rest, too; one that needs less than the rest is not slowed. */
static void test_waiting_holds(void)
{
	const struct activity *posted = USE(.weight = 1, .held = 0.25);
	struct task t[] = {
		{.actor = 0, .lane = 0, .alone_ps = 90, .join = -1, .use = CPU(1)},
		{.actor = 0, .lane = 1, .alone_ps = 6, .join = 1, .use = posted},
		{.actor = 1, .lane = 0, .alone_ps = 40, .join = -1, .use = CPU(1)},
		{.actor = 1, .lane = 1, .alone_ps = 6, .join = 1, .issue_ps = 40, .use = posted},
	};
	CU_ASSERT_EQUAL(run(t, 4, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[1].move_ps, 40);
	CU_ASSERT_EQUAL(times[0].end_ps, 100); /* 3/4 until 40, then all */
	CU_ASSERT_EQUAL(times[2].end_ps, 40);
	t[0].use = CPU(0.7);
	CU_ASSERT_EQUAL(run(t, 4, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[0].end_ps, 90);
	t[0].use = CPU(1);
	t[2].actor = 0; /* beside a second task: each has half of what is left */
	t[2].lane = 2;
	t[2].alone_ps = 30;
	CU_ASSERT_EQUAL(run(t, 4, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[2].end_ps, 70); /* 3/8 until 40, then 1/2 */
}

/* One thread polls for all transfers of an actor: a tenth of compute is held once, by one that waits and by one that
 * moves. The one that moves lacks nothing of it. */
static void test_transfers_hold_once(void)
{
	const struct activity *transfer = USE(.weight = 1, .demand = {0.5}, .held = 0.1, .beside = 0.5);
	struct task t[] = {
		{.actor = 0, .lane = 0, .alone_ps = 90, .join = -1, .use = CPU(1)},
		{.actor = 0, .lane = 2, .alone_ps = 10, .join = 1, .use = transfer},
		{.actor = 0, .lane = 1, .alone_ps = 10, .join = 0, .use = transfer},
		{.actor = 1, .lane = 2, .alone_ps = 10, .join = 1, .use = transfer},
		{.actor = 1, .lane = 1, .alone_ps = 10, .join = 0, .issue_ps = 200, .use = transfer},
	};
	CU_ASSERT_EQUAL(run(t, 5, NULL, 2), ST_OK);
	CU_ASSERT_EQUAL(times[1].end_ps, 20);      /* half its rate, as actor 0 computes */
	CU_ASSERT_EQUAL(times[0].end_ps, 20 + 85); /* 0.9 x 0.75 of 20 are 13.5; 76.5 are left, of which 0.9 a ps */
	CU_ASSERT_EQUAL(times[2].end_ps, 210);
}

static void test_deadlock(void)
{
	struct task t[] = {
		{.actor = 0, .lane = 0, .alone_ps = 5, .join = -1, .use = FREE},
		{.actor = 0, .lane = 1, .alone_ps = 5, .join = 0, .use = FREE},
		{.actor = 0, .lane = 1, .alone_ps = 5, .join = 1, .use = FREE},
		{.actor = 1, .lane = 1, .alone_ps = 5, .join = 1, .use = FREE},
		{.actor = 1, .lane = 1, .alone_ps = 5, .join = 0, .use = FREE},
	};
	CU_ASSERT_EQUAL(run(t, 5, NULL, 2), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(error.text, "deadlock: task 1 (actor 0, lane 1) waits forever: 1 of the 2 members"));
}

/* A task that holds the host thread: what is behind it is issued when it has ended. One that was issued before time 0
 * starts there. */
static void test_holding(void)
{
	const struct task t[] = {
		{.lane = 0, .alone_ps = 10, .issue_ps = -7, .join = -1, .use = FREE},
		{.lane = 1, .alone_ps = 20, .issue_ps = 3, .join = -1, .holds = true, .use = FREE},
		{.lane = 0, .alone_ps = 5, .issue_ps = 4, .join = -1, .use = FREE},
		{.lane = 2, .alone_ps = 1, .issue_ps = 1, .join = -1, .use = FREE},
	};
	CU_ASSERT_EQUAL_FATAL(run(t, 4, NULL, 1), ST_OK);
	CU_ASSERT_EQUAL(times[0].start_ps, 0);
	CU_ASSERT_EQUAL(times[1].start_ps, 0);
	CU_ASSERT_EQUAL(times[2].start_ps, 24);
	CU_ASSERT_EQUAL(times[3].start_ps, 25);
}

static void test_broken_rules(void)
{
	const uint32_t later[] = {1};
	struct task good[2] = {{.alone_ps = 1, .join = -1, .use = FREE}, {.alone_ps = 1, .join = -1, .use = FREE}};
	struct task bad[2];
	CU_ASSERT_EQUAL(run(good, 2, later, 1), ST_OK);
#define REFUSED(change, says) \
	do { \
		memcpy(bad, good, sizeof bad); \
		change; \
		CU_ASSERT_EQUAL(run(bad, 2, later, 1), ST_RUN); \
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, says)); \
	} while (0)
	REFUSED(bad[1].actor = 1, "actor 1 out of order or range");
	REFUSED(bad[1].lane = ENGINE_LANES, "lane 11");
	REFUSED(bad[1].alone_ps = -1, "negative time");
	REFUSED(bad[1].issue_ps = -1, "negative time");
	REFUSED(bad[0].join = 2, "join 2");
	REFUSED(bad[0].use = USE(.weight = 0), "weight or demand");
	REFUSED(bad[0].use = USE(.weight = 1, .demand = {0, -0.1}), "weight or demand");
	REFUSED(bad[0].use = USE(.weight = 1, .held = 1), "weight or demand");
	REFUSED(bad[1].n_dep = 1, "depends on task 1");
#undef REFUSED
}

UNIT_MAIN("engine", {"one queue for all lanes", test_queue}, {"no task, no actor", test_nothing},
	{"alone exactly alone_ps", test_alone_is_exact}, {"a lane is in order", test_lane_is_in_order},
	{"dependencies across lanes", test_dependencies}, {"a tail beside what depends on it", test_tail},
	{"issue by the host", test_issue}, {"two share a resource", test_sharing},
	{"actors share nothing", test_actors_share_nothing}, {"a join waits for its last member", test_join_waits},
	{"a join moves at its slowest member's rate", test_join_moves_at_the_slowest_rate},
	{"what is due at one instant is collected first", test_all_that_is_due_is_collected},
	{"what waits for its join holds compute", test_waiting_holds},
	{"transfers that cores carry hold it once", test_transfers_hold_once}, {"deadlock is reported", test_deadlock},
	{"a task that holds the host thread", test_holding}, {"broken rules are refused", test_broken_rules})
