#include "base/array.h"
#include "tests/unit/harness.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "step/timeline.h"

#define S(ps) ((double)(ps)*1e-12)
#define COMPUTE_SPAN(i, from, to) \
	{ \
		.op = i, .lane = LANE_COMPUTE, .class_ = CLASS_GEMM, .phase = PHASE_BACKWARD, .start_ps = from, \
		.move_ps = from, .end_ps = to \
	}
#define COMM_SPAN(i, from, moves, to) \
	{ \
		.op = i, .lane = LANE_COMM, .class_ = CLASS_ALL_REDUCE, .phase = PHASE_BACKWARD, .start_ps = from, \
		.move_ps = moves, .end_ps = to \
	}

static struct timeline timeline_of(struct span *spans, size_t n, uint32_t actors, int64_t step_ps)
{
	struct timeline t = {.actors = actors, .step_ps = step_ps};
	t.spans.at = spans;
	t.spans.n = n;
	return t;
}

static void same(double a, double b) { CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-15); }

static double sum_of(const struct breakdown *b)
{
	return b->compute_s + b->exposed_comm_s + b->copy_s + b->host_s + b->bubble_s + b->optimizer_s + b->idle_s;
}

/*  compute   0----100      150--200
 *  comm           60 .(waits). 120=======180
 *  optimizer                                 210--240, its step ends at 300 because of the other actor */
static void test_partition(void)
{
	struct span s[] = {
		COMPUTE_SPAN(0, 0, 100),
		COMM_SPAN(1, 60, 120, 180),
		COMPUTE_SPAN(2, 150, 200),
		{.op = 3,
			.lane = LANE_COMPUTE,
			.class_ = CLASS_OPTIMIZER,
			.phase = PHASE_OPTIMIZER,
			.start_ps = 210,
			.move_ps = 210,
			.end_ps = 240},
		{.actor = 1, .op = 0, .lane = LANE_COMPUTE, .class_ = CLASS_NORM, .end_ps = 300},
	};
	struct timeline t = timeline_of(s, COUNT(s), 2, 300);
	struct breakdown b;
	struct error e = {0};
	CU_ASSERT_EQUAL(timeline_critical_actor(&t), 1);
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&t, 0, &b, &e), ST_OK);
	same(b.step_s, S(300));
	same(b.compute_s, S(150));
	same(b.exposed_comm_s, S(30)); /* 120 to 150 */
	same(b.optimizer_s, S(30));
	same(b.idle_s, S(90)); /* 100 to 120 while the collective waits, 200 to 210, 240 to 300 */
	same(b.comm_s, S(60));
	same(b.wait_s, S(60));
	same(b.overlap, 0.5);
	same(sum_of(&b), b.step_s);
	same(b.class_s[CLASS_GEMM], S(150));
	same(b.class_s[CLASS_ALL_REDUCE], S(60)); /* moving time */
	CU_ASSERT_EQUAL(b.class_n[CLASS_GEMM], 2);
	CU_ASSERT_EQUAL(b.class_n[CLASS_ALL_REDUCE], 1);
	CU_ASSERT_EQUAL(b.class_n[CLASS_NORM], 0);
}

/* Each instant belongs to the first of optimizer, compute, communication, copy, host. */
static void test_precedence(void)
{
	struct span s[] = {
		{.op = 0, .lane = LANE_HOST, .class_ = CLASS_HOST, .end_ps = 50},
		{.op = 1, .lane = LANE_COPY, .class_ = CLASS_COPY, .end_ps = 40},
		{.op = 2, .lane = LANE_COMM, .class_ = CLASS_ALL_GATHER, .phase = PHASE_OPTIMIZER, .end_ps = 30},
		{.op = 3, .lane = LANE_MODEL_COMM, .class_ = CLASS_ALL_REDUCE, .phase = PHASE_FORWARD, .end_ps = 25},
		{.op = 4, .lane = LANE_COMPUTE, .class_ = CLASS_OPTIMIZER, .phase = PHASE_OPTIMIZER, .end_ps = 10},
		{.op = 5,
			.lane = LANE_COMPUTE,
			.class_ = CLASS_MEMORY,
			.phase = PHASE_OPTIMIZER,
			.start_ps = 10,
			.move_ps = 10,
			.end_ps = 15}, /* a cast of the optimizer's */
		{.op = 6,
			.lane = LANE_COMPUTE,
			.class_ = CLASS_LOSS,
			.phase = PHASE_FORWARD,
			.start_ps = 15,
			.move_ps = 15,
			.end_ps = 20},
	};
	struct timeline t = timeline_of(s, COUNT(s), 1, 60);
	struct breakdown b;
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
	same(b.optimizer_s, S(15));
	same(b.compute_s, S(5));
	same(b.exposed_comm_s, S(10));
	same(b.copy_s, S(10));
	same(b.host_s, S(10));
	same(b.idle_s, S(10));
	same(b.comm_s, S(30)); /* two at once count once */
	same(b.overlap, 1 - 10.0 / 30);
}

/* A receive that waits while nothing else runs is a bubble; a send that waits, and a receive behind compute, are not.
 * Neither is lateness. */
static void test_bubble(void)
{
	struct span s[] = {
		{.op = 0, .lane = LANE_RECV_PREV, .class_ = CLASS_SENDRECV, .move_ps = 10, .end_ps = 12},
		{.op = 1, .lane = LANE_COMPUTE, .class_ = CLASS_GEMM, .start_ps = 12, .move_ps = 12, .end_ps = 20},
		{.op = 2,
			.lane = LANE_RECV_NEXT,
			.class_ = CLASS_SENDRECV,
			.phase = PHASE_BACKWARD,
			.start_ps = 15,
			.move_ps = 23,
			.end_ps = 24},
		{.op = 3,
			.lane = LANE_SEND_NEXT,
			.class_ = CLASS_SENDRECV,
			.start_ps = 20,
			.move_ps = 28,
			.end_ps = 29},
	};
	struct timeline t = timeline_of(s, COUNT(s), 1, 30);
	struct breakdown b;
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
	same(b.bubble_s, S(13)); /* 0 to 10, 20 to 23 */
	same(b.exposed_comm_s, S(4));
	same(b.comm_s, S(4));
	same(b.compute_s, S(8));
	same(b.idle_s, S(5));
	same(b.wait_s, 0);
	CU_ASSERT_EQUAL(b.class_n[CLASS_SENDRECV], 3);
}

/* Three ranks of a host of one core, and one of another; all run three ops, of which the second is a collective that
 * waits for the first, and the third for both. While rank 1 computes, or could if it had the core, rank 0 can do
 * nothing else: that is compute. On two cores it is so only while both others are at it.
 *
 * Rank 0 computes from 0 to 100, its collective moves from 140 to 200, and its last op, which is ready then, runs from
 * 230 to 240. Rank 1 computes from 110 to 150 and from 170 to 180, rank 2 from 175 to 220. */
static void test_shared_cores(void)
{
	struct span s[12] = {
		COMPUTE_SPAN(0, 0, 100),
		COMM_SPAN(1, 100, 140, 200),
		COMPUTE_SPAN(2, 230, 240), /* rank 0 */
		COMPUTE_SPAN(0, 110, 150),
		COMM_SPAN(1, 155, 155, 160),
		COMPUTE_SPAN(2, 170, 180),
		COMPUTE_SPAN(0, 0, 0),
		COMM_SPAN(1, 0, 0, 175),
		COMPUTE_SPAN(2, 175, 220),
		COMPUTE_SPAN(0, 0, 0),
		COMM_SPAN(1, 0, 0, 0),
		COMPUTE_SPAN(2, 0, 240),
	};
	const int32_t host_of[] = {0, 0, 0, 1};
	struct op ops[] = {{.lane = LANE_COMPUTE}, {.lane = LANE_COMM, .dep0 = 0, .n_dep = 1},
		{.lane = LANE_COMPUTE, .dep0 = 0, .n_dep = 2}};
	uint32_t deps[] = {0, 1};
	struct role role = {.ranks = 4};
	role.ops.at = ops;
	role.ops.n = COUNT(ops);
	role.deps.at = deps;
	role.deps.n = COUNT(deps);
	struct program program = {.n_roles = 1, .roles = &role};
	program.mesh.ranks = 4;
	for (int d = 0; d < DIM_COUNT; d++)
		program.mesh.size[d] = program.mesh.stride[d] = 1;
	struct shared_cores shared = {&program, host_of, 1};
	struct timeline t = timeline_of(s, COUNT(s), 4, 240);
	struct breakdown b;
	for (uint32_t i = 0; i < COUNT(s); i++)
		s[i].actor = i / 3;
	/* Rank 1's first op is ready from the beginning. Taken: 0 to 150, 160 to 220; rank 0's own from 200 on. */
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown_shared(&t, 0, &shared, &b, NULL), ST_OK);
	same(b.compute_s, S(150 + 80));
	same(b.exposed_comm_s, S(10));
	same(b.idle_s, 0);
	same(b.comm_s, S(60));
	same(b.overlap, 1 - 10.0 / 60);
	same(sum_of(&b), S(240));
	shared.cores = 2; /* both others from 175 to 180 */
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown_shared(&t, 0, &shared, &b, NULL), ST_OK);
	same(b.compute_s, S(100 + 5 + 40));
	same(b.exposed_comm_s, S(55));
	same(b.idle_s, S(40));
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
	same(b.compute_s, S(110));
	same(b.exposed_comm_s, S(60));
}

static void test_scale(void)
{
	struct breakdown b =
		{.step_s = 4, .compute_s = 2, .exposed_comm_s = 1, .idle_s = 1, .comm_s = 2, .overlap = 0.5};
	b.class_s[CLASS_GEMM] = 1.5;
	breakdown_scale(&b, 2);
	same(b.step_s, 2);
	same(b.compute_s + b.exposed_comm_s + b.idle_s, 2);
	same(1 - b.exposed_comm_s / b.comm_s, b.overlap);
	same(b.class_s[CLASS_GEMM], 1.5);
	/* 2 s with 1 s of communication, half of it hidden, and 4 s with 3 s bare. */
	const struct breakdown more = {.step_s = 4, .exposed_comm_s = 3, .compute_s = 1, .comm_s = 3};
	breakdown_add(&b, &more);
	same(b.step_s, 6);
	same(b.compute_s + b.exposed_comm_s + b.idle_s, 6);
	same(b.overlap, 1 - 3.5 / 4);
}

/* 30 us of events on 3 products and 2 norms: 6 us an op, and no class below nothing. */
static void test_less_events(void)
{
	struct breakdown b = {.step_s = 1}, kept;
	b.class_s[CLASS_GEMM] = 100e-6;
	b.class_n[CLASS_GEMM] = 3;
	b.class_s[CLASS_NORM] = 5e-6;
	b.class_n[CLASS_NORM] = 2;
	b.class_s[CLASS_COPY] = 50e-6;
	b.class_n[CLASS_COPY] = 4;
	kept = b;
	breakdown_less_events(&b, -1e-6);
	CU_ASSERT(memcmp(&b, &kept, sizeof b) == 0);
	breakdown_less_events(&b, 30e-6);
	same(b.class_s[CLASS_GEMM], 82e-6);
	same(b.class_s[CLASS_NORM], 0);
	same(b.class_s[CLASS_COPY], 50e-6);
	same(b.step_s, 1);
}

static void test_no_communication(void)
{
	struct span s[] = {COMPUTE_SPAN(0, 5, 5), COMPUTE_SPAN(1, 5, 9)};
	struct timeline t = timeline_of(s, COUNT(s), 1, 9);
	struct breakdown b;
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
	same(b.overlap, 1);
	same(b.idle_s, S(5));
	CU_ASSERT_EQUAL(b.class_n[CLASS_GEMM], 2);

	struct timeline empty = timeline_of(NULL, 0, 1, 7);
	CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&empty, 0, &b, NULL), ST_OK);
	same(b.idle_s, S(7));
	CU_ASSERT_EQUAL(timeline_critical_actor(&empty), 0);
}

static void refused(struct span *s, size_t n, const char *says)
{
	struct timeline t = timeline_of(s, n, 1, 100);
	struct breakdown b;
	struct error e = {0};
	CU_ASSERT_EQUAL(timeline_check(&t, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, says));
	CU_ASSERT_EQUAL(timeline_breakdown(&t, 0, &b, NULL), ST_RUN);
}

static void test_check(void)
{
	struct span good[] = {COMPUTE_SPAN(0, 0, 10), COMM_SPAN(1, 0, 5, 50), COMPUTE_SPAN(2, 10, 100)};
	struct timeline t = timeline_of(good, COUNT(good), 1, 100);
	CU_ASSERT_EQUAL(timeline_check(&t, NULL), ST_OK);

	struct span overlapping[] = {COMPUTE_SPAN(0, 0, 10), COMM_SPAN(1, 0, 0, 50), COMPUTE_SPAN(2, 9, 20)};
	refused(overlapping, 3, "op 2 starts before op 0 has ended");
	struct span late[] = {COMPUTE_SPAN(0, 0, 101)};
	refused(late, 1, "step 100");
	struct span backwards[] = {COMPUTE_SPAN(0, 7, 5)};
	refused(backwards, 1, "does not hold");
	struct span moves_first[] = {COMM_SPAN(0, 5, 4, 9)};
	refused(moves_first, 1, "does not hold");
	struct span waits[] = {{.class_ = CLASS_GEMM, .start_ps = 0, .move_ps = 1, .end_ps = 2}};
	refused(waits, 1, "only a collective waits");
	struct span twice[] = {COMPUTE_SPAN(3, 0, 1), COMPUTE_SPAN(3, 1, 2)};
	refused(twice, 2, "not in order of actor and op");
	struct span lane[] = {{.lane = LANE_COUNT}};
	refused(lane, 1, "out of range");
	struct span actor[] = {{.actor = 1}};
	refused(actor, 1, "out of range");
}

/* Three lanes' random spans, one actor: the merged sweep against counting every picosecond. */
static void test_against_counting(void)
{
	enum { STEP = 400 };
	static const struct {
		uint8_t class_, phase;
	} lanes[LANE_COUNT] = {[LANE_COMPUTE] = {CLASS_GEMM, 0},
		[LANE_COMM] = {CLASS_ALL_REDUCE, 0},
		[LANE_MODEL_COMM] = {CLASS_ALL_GATHER, 0},
		[LANE_COPY] = {CLASS_COPY, 0},
		[LANE_HOST] = {CLASS_HOST, 0},
		[LANE_LOAD] = {CLASS_HOST, 0}};
	srandom(5);
	for (int round = 0; round < 300; round++) {
		struct span s[60];
		int64_t lane_end[LANE_COUNT] = {0};
		size_t n = 0;
		for (uint32_t i = 0; i < COUNT(s); i++) {
			uint8_t l = (uint8_t)(random() % LANE_COUNT);
			int64_t start = lane_end[l] + random() % 20,
				move = start + (op_class_is_comm(lanes[l].class_) ? random() % 9 : 0),
				end = move + random() % 25;
			if (end > STEP)
				continue;
			bool optimizer = l == LANE_COMPUTE && random() % 3 == 0;
			s[n++] = (struct span){.op = i,
				.lane = l,
				.class_ = optimizer ? CLASS_OPTIMIZER : lanes[l].class_,
				.start_ps = start,
				.move_ps = move,
				.end_ps = end};
			lane_end[l] = end;
		}
		int64_t part[CLASS_COUNT + 1] = {0}, comm = 0,
					   wait = 0; /* by the class of the first in line; the last: idle */
		for (int64_t at = 0; at < STEP; at++) {
			static const int order[] = {CLASS_OPTIMIZER, CLASS_GEMM, CLASS_ALL_REDUCE, CLASS_ALL_GATHER,
				CLASS_COPY, CLASS_HOST};
			bool on[CLASS_COUNT] = {false}, waits = false;
			for (size_t i = 0; i < n; i++) {
				on[s[i].class_] |= s[i].move_ps <= at && at < s[i].end_ps;
				waits |= s[i].start_ps <= at && at < s[i].move_ps;
			}
			size_t first = 0;
			while (first < COUNT(order) && !on[order[first]])
				first++;
			part[first < COUNT(order) ? order[first] : CLASS_COUNT]++;
			comm += on[CLASS_ALL_REDUCE] || on[CLASS_ALL_GATHER];
			wait += waits;
		}
		struct timeline t = timeline_of(s, n, 1, STEP);
		struct breakdown b;
		CU_ASSERT_EQUAL_FATAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
		same(b.optimizer_s, S(part[CLASS_OPTIMIZER]));
		same(b.compute_s, S(part[CLASS_GEMM]));
		same(b.exposed_comm_s, S(part[CLASS_ALL_REDUCE] + part[CLASS_ALL_GATHER]));
		same(b.copy_s, S(part[CLASS_COPY]));
		same(b.host_s, S(part[CLASS_HOST]));
		same(b.idle_s, S(part[CLASS_COUNT]));
		same(b.comm_s, S(comm));
		same(b.wait_s, S(wait));
	}
}

/* Two stages of two ranks: rank 1 of stage 0 ends last of all, rank 2 last of stage 1. */
static void test_last_of_role(void)
{
	struct role roles[2] = {{0}};
	struct program p = {.roles = roles, .n_roles = 2, .mesh = {.ranks = 4}};
	for (int d = 0; d < DIM_COUNT; d++)
		p.mesh.size[d] = p.mesh.stride[d] = 1;
	p.mesh.size[DIM_DP] = p.mesh.size[DIM_PP] = p.mesh.stride[DIM_PP] = 2;
	static const int64_t ends_ps[] = {50, 90, 80, 70};
	struct span s[COUNT(ends_ps)];
	for (uint32_t r = 0; r < COUNT(ends_ps); r++) {
		s[r] = (struct span)COMPUTE_SPAN(0, 0, ends_ps[r]);
		s[r].actor = r;
	}
	struct timeline measured = timeline_of(s, 4, 4, 90), predicted = timeline_of(s, 2, 2, 90);
	CU_ASSERT_EQUAL(timeline_critical_actor(&measured), 1);
	CU_ASSERT_EQUAL(timeline_last_of_role(&measured, &p, 0), 1);
	CU_ASSERT_EQUAL(timeline_last_of_role(&measured, &p, 1), 2);
	CU_ASSERT_EQUAL(timeline_last_of_role(&predicted, &p, 1), 1);
}

static void test_free(void)
{
	struct timeline t = {.actors = 1, .step_ps = 3};
	CU_ASSERT_FATAL(vec_push(&t.spans, ((struct span)COMPUTE_SPAN(0, 0, 3))));
	timeline_free(&t);
	CU_ASSERT_EQUAL(t.spans.n, 0);
	CU_ASSERT_PTR_NULL(t.spans.at);
	timeline_free(NULL);
}

UNIT_MAIN("timeline", {"the partition of a step", test_partition}, {"precedence", test_precedence},
	{"bubbles", test_bubble}, {"ranks that share cores", test_shared_cores}, {"scaled", test_scale},
	{"less events", test_less_events}, {"no communication", test_no_communication}, {"the check", test_check},
	{"random spans against counting picoseconds", test_against_counting}, {"the last of a role", test_last_of_role},
	{"free", test_free})
