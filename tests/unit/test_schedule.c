/* Pipeline schedules against the literature: orders drawn there, and lengths of the step in units of a pass, from a
 * schedule's order and the messages between stages alone. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "step/schedule.h"
#include "step/stages.h"

#define MOST 16

/* "F0.1 B0.1 W0.1": kind, chunk (where there are several), micro-batch. */
static void text_of(const struct schedule_shape *s, int64_t stage, char *buf, size_t size)
{
	action_list l = {0};
	CU_ASSERT_EQUAL_FATAL(schedule_actions(s, stage, &l, NULL), ST_OK);
	buf[0] = '\0';
	for (size_t i = 0; i < l.n; i++) {
		size_t at = strlen(buf);
		if (s->chunks > 1)
			snprintf(buf + at, size - at, "%s%c%c%d", i ? " " : "", "FBW"[l.at[i].kind],
				'a' + l.at[i].chunk, l.at[i].micro);
		else
			snprintf(buf + at, size - at, "%s%c%d", i ? " " : "", "FBW"[l.at[i].kind], l.at[i].micro);
	}
	vec_free(&l);
}

#define ORDER(kind, p, v, m, stage, expected) \
	do { \
		char got[2048]; \
		text_of(&(struct schedule_shape){kind, p, v, m, 0}, stage, got, sizeof got); \
		CU_ASSERT_STRING_EQUAL(got, expected); \
	} while (0)

static void test_orders(void)
{
	ORDER(SCHED_GPIPE, 4, 1, 3, 1, "F0 F1 F2 B0 B1 B2");
	/* Narayanan et al. 2021, figure 4, top: four stages, eight micro-batches */
	ORDER(SCHED_1F1B, 4, 1, 8, 0, "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
	ORDER(SCHED_1F1B, 4, 1, 8, 2, "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
	ORDER(SCHED_1F1B, 4, 1, 8, 3, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
	ORDER(SCHED_1F1B, 4, 1, 2, 0, "F0 F1 B0 B1"); /* fewer micro-batches than stages */
	ORDER(SCHED_1F1B, 1, 1, 2, 0, "F0 B0 F1 B1");
	/* figure 4, bottom: two chunks a stage; device 1 and device 4 */
	ORDER(SCHED_INTERLEAVED, 4, 2, 8, 0,
		"Fa0 Fa1 Fa2 Fa3 Fb0 Fb1 Fb2 Fb3 Fa4 Fa5 Fa6 Bb0 Fa7 Bb1 Fb4 Bb2 Fb5 Bb3 Fb6 Ba0 Fb7 Ba1 Ba2 Ba3 Bb4 "
		"Bb5 Bb6 Bb7 Ba4 Ba5 Ba6 Ba7");
	ORDER(SCHED_INTERLEAVED, 4, 2, 8, 3,
		"Fa0 Fa1 Fa2 Fa3 Fb0 Bb0 Fb1 Bb1 Fb2 Bb2 Fb3 Bb3 Fa4 Ba0 Fa5 Ba1 Fa6 Ba2 Fa7 Ba3 Fb4 Bb4 Fb5 Bb5 Fb6 "
		"Bb6 Fb7 Bb7 Ba4 Ba5 Ba6 Ba7");
	/* ZB-H1: the first stage never delays W, the last one by three micro-batches */
	ORDER(SCHED_ZERO_BUBBLE, 4, 1, 5, 0, "F0 F1 F2 F3 B0 W0 F4 B1 W1 B2 W2 B3 W3 B4 W4");
	ORDER(SCHED_ZERO_BUBBLE, 4, 1, 5, 3, "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 W2 W3 W4");
	ORDER(SCHED_ZERO_BUBBLE, 4, 1, 2, 3, "F0 B0 F1 B1 W0 W1");
	/* torch.distributed.pipelining's ScheduleInterleavedZeroBubble: two stages of two chunks */
	ORDER(SCHED_INTERLEAVED_ZB, 2, 2, 4, 0,
		"Fa0 Fa1 Fb0 Fb1 Bb0 Wb0 Fa2 Bb1 Wb1 Fa3 Ba0 Wa0 Fb2 Ba1 Wa1 Fb3 Bb2 Wb2 Bb3 Wb3 Ba2 Wa2 Ba3 Wa3");
	ORDER(SCHED_INTERLEAVED_ZB, 2, 2, 4, 1,
		"Fa0 Fa1 Fb0 Bb0 Fb1 Bb1 Wb0 Fa2 Ba0 Wb1 Fa3 Ba1 Wa0 Fb2 Bb2 Wa1 Fb3 Bb3 Wb2 Ba2 Wb3 Ba3 Wa2 Wa3");
	/* V-ZB: chunk a goes down the stages, chunk b comes back up */
	ORDER(SCHED_ZBV, 2, 2, 4, 0,
		"Fa0 Fa1 Fa2 Fb0 Bb0 Wb0 Fb1 Bb1 Wb1 Fa3 Ba0 Wa0 Fb2 Bb2 Wb2 Ba1 Wa1 Fb3 Bb3 Wb3 Ba2 Wa2 Ba3 Wa3");
	ORDER(SCHED_ZBV, 2, 2, 4, 1,
		"Fa0 Fb0 Fa1 Fb1 Bb0 Wb0 Fa2 Ba0 Wa0 Fb2 Bb1 Wb1 Fa3 Ba1 Wa1 Fb3 Bb2 Wb2 Ba2 Bb3 Ba3 Wa2 Wb3 Wa3");
	ORDER(SCHED_ZBV, 2, 2, 1, 0, "Fa0 Fb0 Bb0 Wb0 Ba0 Wa0");
	/* DualPipeV, by hand from dualpipev.py: two ranks, five micro-batches */
	ORDER(SCHED_DUALPIPEV, 2, 2, 5, 0,
		"Fa0 Fa1 Fa2 Fb0 Bb0 Wb0 Fb1 Fa3 Bb1 Wb1 Fb2 Ba0 Wa0 Fa4 Bb2 Wb2 Fb3 Ba1 Wa1 Bb3 Wb3 Fb4 Ba2 Wa2 Bb4 "
		"Wb4 Ba3 Wa3 Ba4 Wa4");
	ORDER(SCHED_DUALPIPEV, 2, 2, 5, 1,
		"Fa0 Fb0 Fa1 Fb1 Fa2 Bb0 Wb0 Fb2 Ba0 Wa0 Fa3 Bb1 Wb1 Fb3 Ba1 Wa1 Fa4 Bb2 Wb2 Fb4 Ba2 Wa2 Bb3 Wb3 Ba3 "
		"Wa3 Bb4 Ba4 Wb4 Wa4");
	ORDER(SCHED_DUALPIPEV, 2, 2, 1, 0, "Fa0 Fb0 Bb0 Wb0 Ba0 Wa0");
}

/* ---- the length of the step ---- */

struct lengths {
	int64_t forward, backward, weights; /* of one chunk */
	int64_t together; /* > 0: of a forward and a backward pass with its W that run as one (is_pair) */
};

/* When each (kind, chunk, micro) of a stage ends; -1: not yet. */
struct ends {
	int64_t *at;
};

static int64_t *end_of(const struct schedule_shape *s, struct ends *e, int64_t stage, enum action_kind kind,
	int64_t chunk, int64_t micro)
{
	return &e[stage].at[((int64_t)kind * s->chunks + chunk) * s->micro_batches + micro];
}

/* Returns when the inputs of an action from other actions are there, besides the one before it on its stage. -1: not
 * yet. */
static int64_t ready(const struct schedule_shape *s, struct ends *e, int64_t stage, const struct action *a)
{
	int64_t part = schedule_part(s->kind, s->stages, stage, a->chunk), parts = s->chunks * s->stages;
	if (a->kind == ACTION_WEIGHTS)
		return *end_of(s, e, stage, ACTION_BACKWARD, a->chunk, a->micro);
	struct schedule_place before = schedule_place(s->kind, s->stages, part - 1),
			      behind = schedule_place(s->kind, s->stages, part + 1);
	if (a->kind == ACTION_FORWARD)
		return part == 0 ? 0 : *end_of(s, e, before.stage, ACTION_FORWARD, before.chunk, a->micro);
	if (part == parts - 1)
		return *end_of(s, e, stage, ACTION_FORWARD, a->chunk, a->micro);
	return *end_of(s, e, behind.stage, ACTION_BACKWARD, behind.chunk, a->micro);
}

/* True where DualPipeV runs a forward pass and a backward one with its W together: in its fourth and fifth step, but on
 * the last rank, which begins the fourth apart. */
static bool is_pair(const struct schedule_shape *s, int64_t stage, const action_list *l, size_t i)
{
	const struct action *a = &l->at[i];
	return i + 2 < l->n && a[0].kind == ACTION_FORWARD && a[1].kind == ACTION_BACKWARD &&
	       a[2].kind == ACTION_WEIGHTS && a[0].chunk != a[1].chunk &&
	       (stage < s->stages - 1 || i != (size_t)(2 * s->stages));
}

/* The step's length with free messages, -1 for a deadlock; in_flight: the most activations of a whole stage held at
 * once, in chunks. */
static int64_t length_of(const struct schedule_shape *s, struct lengths l, int64_t *in_flight)
{
	action_list lists[MOST] = {{0}};
	struct ends e[MOST];
	size_t at[MOST] = {0}, slots = (size_t)(ACTION_KIND_COUNT * s->chunks * s->micro_batches);
	int64_t now[MOST] = {0}, longest = 0;
	for (int64_t i = 0; i < s->stages; i++) {
		CU_ASSERT_EQUAL_FATAL(schedule_actions(s, i, &lists[i], NULL), ST_OK);
		e[i].at = malloc(slots * sizeof(int64_t));
		CU_ASSERT_PTR_NOT_NULL_FATAL(e[i].at);
		memset(e[i].at, 0xff, slots * sizeof(int64_t));
	}
	for (bool moved = true; moved;) {
		moved = false;
		for (int64_t i = 0; i < s->stages; i++)
			while (at[i] < lists[i].n) {
				const struct action *a = &lists[i].at[at[i]];
				int64_t begin = ready(s, e, i, a);
				if (begin < 0)
					break;
				begin = begin > now[i] ? begin : now[i];
				if (l.together > 0 && is_pair(s, i, &lists[i], at[i])) {
					const int64_t other = ready(s, e, i, a + 1);
					if (other < 0)
						break;
					now[i] = (other > begin ? other : begin) + l.together;
					for (int k = 0; k < 3; k++)
						*end_of(s, e, i, a[k].kind, a[k].chunk, a[k].micro) = now[i];
					longest = now[i] > longest ? now[i] : longest;
					at[i] += 3;
					moved = true;
					continue;
				}
				now[i] = begin + (a->kind == ACTION_FORWARD           ? l.forward
							 : a->kind == ACTION_BACKWARD ? l.backward
										      : l.weights);
				CU_ASSERT_EQUAL(*end_of(s, e, i, a->kind, a->chunk, a->micro), -1); /* once each */
				*end_of(s, e, i, a->kind, a->chunk, a->micro) = now[i];
				longest = now[i] > longest ? now[i] : longest;
				at[i]++;
				moved = true;
			}
	}
	for (int64_t i = 0; i < s->stages; i++) {
		int64_t held = 0;
		in_flight[i] = 0;
		if (at[i] < lists[i].n)
			longest = -1;
		CU_ASSERT_EQUAL(lists[i].n,
			(size_t)((schedule_splits_backward(s->kind) ? 3 : 2) * s->chunks * s->micro_batches));
		for (size_t k = 0; k < lists[i].n; k++) {
			held += lists[i].at[k].kind == ACTION_FORWARD;
			in_flight[i] = held > in_flight[i] ? held : in_flight[i];
			held -= lists[i].at[k].kind == ACTION_BACKWARD;
		}
		free(e[i].at);
		vec_free(&lists[i]);
	}
	return longest;
}

/* Bubble: (p-1)(F + B) for gpipe and 1f1b, 1/v of it interleaved (Narayanan et al. 2021, section 2.2), (p-1)(F + B - W)
 * for ZB-H1 (Qi et al. 2023, section 2.3, table 1). */
static void test_bubbles(void)
{
	int64_t held[MOST];
	for (int64_t p = 2; p <= 8; p++)
		for (int64_t m = 1; m <= 24; m++) {
			struct schedule_shape s = {SCHED_GPIPE, p, 1, m, 0};
			CU_ASSERT_EQUAL(length_of(&s, (struct lengths){1, 2, 0, 0}, held), 3 * m + 3 * (p - 1));
			for (int64_t i = 0; i < p; i++)
				CU_ASSERT_EQUAL(held[i], m);
			s.kind = SCHED_1F1B;
			CU_ASSERT_EQUAL(length_of(&s, (struct lengths){1, 2, 0, 0}, held), 3 * m + 3 * (p - 1));
			for (int64_t i = 0; i < p; i++)
				CU_ASSERT_EQUAL(held[i], p - i < m ? p - i : m);
			int64_t one = length_of(&s, (struct lengths){1, 2, 0, 0}, held);
			s.kind = SCHED_ZERO_BUBBLE;
			int64_t zero = length_of(&s, (struct lengths){1, 1, 1, 0}, held);
			CU_ASSERT(zero > 0 && zero < one);
			if (m >= p)
				CU_ASSERT_EQUAL(zero, 3 * m + (p - 1));
			CU_ASSERT(length_of(&s, (struct lengths){5, 7, 4, 0}, held) > 0);
			struct schedule_shape down_and_up = {SCHED_ZBV, p, 2, m, 0};
			int64_t v_zb = length_of(&down_and_up, (struct lengths){1, 1, 1, 0},
				held); /* in passes of a chunk, half of a stage's */
			CU_ASSERT(v_zb > 0 && v_zb < 2 * one);
			if (m >=
				2 * p - 1) { /* no stage waits once it has begun: the last one begins p - 1 passes late,
				                and all hold p micro-batches' activations (Qi et al. 2024, section 3) */
				CU_ASSERT_EQUAL(v_zb, 6 * m + (p - 1));
				for (int64_t i = 0; i < p; i++)
					CU_ASSERT_EQUAL(held[i], 2 * p);
			}
			CU_ASSERT(length_of(&down_and_up, (struct lengths){5, 7, 4, 0}, held) > 0);
			struct schedule_shape dual = {SCHED_DUALPIPEV, p, 2, m, 0};
			int64_t apart = length_of(&dual, (struct lengths){1, 1, 1, 0}, held);
			CU_ASSERT(apart > 0 && apart < 2 * one);
			if (m >= 2 * p) {
				/* DeepSeek-AI 2024, table 2, with PP = 2 p parts: (PP / 2 - 1) (F&B + B - 3 W), where B
				 * has its W, and PP + 1 activations. Here F&B takes as long as F and B. Passes of other
				 * lengths than one another wait less. */
				const struct lengths alike = {1, 1, 1, 3}, other = {20, 30, 10, 60};
				CU_ASSERT_EQUAL(length_of(&dual, alike, held), 6 * m + (p - 1) * (3 + 2 - 3));
				CU_ASSERT(length_of(&dual, other, held) <= 120 * m + (p - 1) * (60 + 40 - 30));
				for (int64_t i = 0; i < p; i++)
					CU_ASSERT_EQUAL(held[i], 2 * p + 1);
			}
			CU_ASSERT(length_of(&dual, (struct lengths){5, 7, 4, 0}, held) > 0);
			for (int64_t v = 2; v <= 4 && m % p == 0; v++) {
				struct schedule_shape many = {SCHED_INTERLEAVED, p, v, m, 0};
				CU_ASSERT_EQUAL(length_of(&many, (struct lengths){1, 2, 0, 0}, held),
					3 * m * v + 3 * (p - 1));
				many.kind = SCHED_INTERLEAVED_ZB; /* the bubble of ZB-H1, 1/v of it */
				CU_ASSERT_EQUAL(length_of(&many, (struct lengths){1, 1, 1, 0}, held),
					3 * m * v + (p - 1));
			}
		}
}

static void test_in_flight(void)
{
	for (int64_t i = 0; i < 4; i++) {
		action_list l = {0};
		struct schedule_shape s = {SCHED_1F1B, 4, 1, 8, 0};
		CU_ASSERT_EQUAL_FATAL(schedule_actions(&s, i, &l, NULL), ST_OK);
		CU_ASSERT_EQUAL(schedule_in_flight(&l, 1, false), 4 - i);
		vec_free(&l);
		l.n = 0;
		s.kind = SCHED_ZERO_BUBBLE; /* with what W still needs, no stage holds more than the first */
		CU_ASSERT_EQUAL_FATAL(schedule_actions(&s, i, &l, NULL), ST_OK);
		CU_ASSERT_EQUAL(schedule_in_flight(&l, 1, true), 4);
		vec_free(&l);
		l.n = 0;
		CU_ASSERT_EQUAL_FATAL(schedule_actions(&(struct schedule_shape){SCHED_ZBV, 4, 2, 8, 0}, i, &l, NULL),
			ST_OK);
		CU_ASSERT_EQUAL(schedule_in_flight(&l, 2, true), 8 - i); /* of the first chunk: the warm-up and one */
		vec_free(&l);
	}
}

/* ---- which layers ---- */

static void test_parts(void)
{
	struct config c;
	memset(&c, 0, sizeof c);
	stages_forget(&c.parallel);
	c.model.layers = 14;
	c.model.tied_embeddings = c.model.lm_head = true;
	c.parallel.pipeline = 4;
	c.parallel.virtual_stages = 1;
	static const int64_t first[] = {0, 4, 8, 11}, layers[] = {4, 4, 3, 3};
	for (int64_t i = 0; i < 4; i++) {
		struct stage_part s = stage_part(&c, i, 0);
		CU_ASSERT(
			s.first == first[i] && s.layers == layers[i] && s.embedding == (i == 0) && s.head == (i == 3));
	}
	c.parallel.virtual_stages = 2; /* parts of 2 2 2 2 2 2 1 1 */
	struct stage_part s = stage_part(&c, 1, 1);
	CU_ASSERT(s.first == 10 && s.layers == 2 && !s.embedding && !s.head);
	s = stage_part(&c, 3, 1);
	CU_ASSERT(s.first == 13 && s.layers == 1 && s.head);
	struct param table = {.kind = PARAM_TOKEN_EMBEDDING, .layer = -1},
		     norm = {.kind = PARAM_FINAL_NORM_W, .layer = -1}, fc1 = {.kind = PARAM_FC1_W, .layer = 10};
	for (int64_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(stage_has_param(&c, i, &table), i == 0 || i == 3);
		CU_ASSERT_EQUAL(stage_has_param(&c, i, &norm), i == 3);
		CU_ASSERT_EQUAL(stage_has_param(&c, i, &fc1), i == 1);
	}
	CU_ASSERT_TRUE(stages_share(&c, &table));
	c.parallel.schedule = SCHED_ZBV; /* a V: both ends are the first stage's */
	s = stage_part(&c, 3, 1);
	CU_ASSERT(s.first == 8 && s.layers == 2 && !s.head);
	s = stage_part(&c, 0, 1);
	CU_ASSERT(s.first == 13 && s.layers == 1 && s.head && !s.embedding && stage_part(&c, 0, 0).embedding);
	for (int64_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(stage_has_param(&c, i, &table), i == 0);
		CU_ASSERT_EQUAL(stage_has_param(&c, i, &norm), i == 0);
		CU_ASSERT_EQUAL(stage_has_param(&c, i, &fc1), i == 2);
	}
	CU_ASSERT_FALSE(stages_share(&c, &table));
	c.parallel.schedule = SCHED_INTERLEAVED;
	c.model.tied_embeddings = false;
	CU_ASSERT_FALSE(stage_has_param(&c, 3, &table));
	CU_ASSERT_FALSE(stages_share(&c, &table));
	static const int64_t uneven[] = {1, 3, 5, 5};
	c.parallel.virtual_stages = 1;
	memcpy(c.parallel.layers_per_stage, uneven, sizeof uneven);
	c.parallel.n_layers_per_stage = 4;
	s = stage_part(&c, 2, 0);
	CU_ASSERT(s.first == 4 && s.layers == 5);
}

/* 62 layers on 8 stages of 4 chunks: with both ends 64, two a part; Megatron-LM's --account-for-...-in-pipeline-split.
 */
static void test_ends(void)
{
	struct config c;
	memset(&c, 0, sizeof c);
	stages_forget(&c.parallel);
	c.model.layers = 62;
	c.parallel.schedule = SCHED_INTERLEAVED;
	c.parallel.pipeline = 8;
	c.parallel.virtual_stages = 4;
	c.parallel.count_ends = ENDS_BOTH;
	CU_ASSERT(stage_part(&c, 0, 0).layers == 1 && stage_part(&c, 7, 3).layers == 1);
	struct stage_part s = stage_part(&c, 0, 1);
	CU_ASSERT(s.first == 15 && s.layers == 2);
	c.model.layers = 63;
	c.parallel.count_ends = ENDS_HEAD;
	CU_ASSERT(stage_part(&c, 0, 0).layers == 2 && stage_part(&c, 7, 3).first == 62);
	c.parallel.count_ends = ENDS_EMBEDDING;
	CU_ASSERT(stage_part(&c, 0, 0).layers == 1 && stage_part(&c, 7, 3).first == 61);
	c.model.layers = 30; /* an end's part without a layer */
	c.parallel.count_ends = ENDS_BOTH;
	CU_ASSERT(stage_part(&c, 0, 0).layers == 0 && stage_part(&c, 7, 3).layers == 0);
	s = stage_part(&c, 1, 0);
	CU_ASSERT(s.first == 0 && s.layers == 1 && !s.embedding);
	/* --decoder-first-pipeline-num-layers 4, --decoder-last-pipeline-num-layers 8: each chunk has its share */
	c.model.layers = 4 + 8 + 6 * 8;
	c.parallel.count_ends = ENDS_AUTO;
	c.parallel.first_stage_layers = 4;
	c.parallel.last_stage_layers = 8;
	CU_ASSERT(stage_part(&c, 0, 0).layers == 1 && stage_part(&c, 0, 3).layers == 1);
	s = stage_part(&c, 3, 1);
	CU_ASSERT(s.first == 1 + 6 * 2 + 2 + 1 + 2 * 2 && s.layers == 2);
	CU_ASSERT(stage_part(&c, 7, 3).first == 58 && stage_part(&c, 7, 3).layers == 2);
	c.parallel.schedule = SCHED_ZBV;
	c.parallel.virtual_stages = 2;
	CU_ASSERT(stage_part(&c, 0, 0).layers == 2);
	CU_ASSERT(stage_part(&c, 0, 1).first == 58 && stage_part(&c, 0, 1).layers == 2);
	CU_ASSERT(stage_part(&c, 7, 1).first == 2 + 6 * 4 + 4 && stage_part(&c, 7, 1).layers == 4);
}

UNIT_MAIN("schedule", {"orders of the literature", test_orders}, {"bubbles and activations in flight", test_bubbles},
	{"slots for micro-batches", test_in_flight}, {"layers of the stages", test_parts},
	{"ends that count as layers", test_ends})
