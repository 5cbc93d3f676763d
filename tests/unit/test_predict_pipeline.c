/* Predictions of pipelines against closed forms: bubbles with uniform stages and free messages, what messages cost, and
 * what the timeline says of each stage. */
#include "base/array.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/machines.h"
#include "tests/unit/parse_with.h"
#include "tests/unit/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/price/cost.h"
#include "sim/engine/predict.h"

#define NEAR(x, y, share) CU_ASSERT_DOUBLE_EQUAL((x) / (y), 1, share)

/* Only matrix products take time: memory, vectors, launches and links are as good as free. */
static struct machine ideal(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "ideal",
		.nodes = 1,
		.devices_per_node = 64,
		.intra = {1e-15, 1e21},
		.inter = {1e-15, 1e21}};
	m.device = (struct device_spec){.name = "device",
		.vector_flop_per_s = 1e22,
		.mem_Bps = 1e22,
		.mem_B = 80000000000,
		.mem_share = 1,
		.gemm_share = 1,
		.pcie_Bps = 1e22};
	m.device.matrix_flop_per_s[DT_BF16] = 1e15;
	return m;
}

/* Embedding, head and loss are nothing beside a block. */
static const char base[] =
	"model: {layers: 24, hidden: 2048, heads: 16, vocab: 2, seq_len: 4096, position: none, tied_embeddings: "
	"false}\n"
	"train: {micro_batch: 1, dtype: bf16, param_dtype: bf16, grad_dtype: bf16, reduce_dtype: bf16, optimizer: "
	"none}\nparallel: {strategy: none}\n";

static struct program *build_text(const char *text, const char *more, int64_t ranks)
{
	struct config c;
	struct error e = {0};
	struct program *p = NULL;
	if (parse_with(text, "pipeline.yaml", more, &c, &e) || config_resolve(&c, ranks, &e) ||
		program_build(&c, &p, &e) || program_check(p, &e)) {
		fprintf(stderr, "%s: %s\n", more, e.text);
		CU_FAIL_FATAL("the config");
	}
	return p;
}

static struct program *plan(const char *schedule, int64_t pp, int64_t v, int64_t m)
{
	char more[256];
	snprintf(more, sizeof more,
		"parallel.schedule=%s parallel.pipeline=%lld parallel.virtual_stages=%lld train.global_batch=%lld",
		schedule, (long long)pp, (long long)v, (long long)m);
	return build_text(base, more, pp);
}

static struct result predicted(const struct program *p, const struct machine *m, struct timeline *t)
{
	struct result r;
	struct error e = {0};
	if (predict(p, m, &r, t, &e)) {
		fprintf(stderr, "%s\n", e.text);
		CU_FAIL_FATAL("predict");
	}
	return r;
}

/* (step - ideal) / ideal, ideal: what a stage computes. */
static double bubble_of(const char *schedule, int64_t pp, int64_t v, int64_t m, double *step_s)
{
	struct machine free_links = ideal();
	struct program *p = plan(schedule, pp, v, m);
	struct timeline t;
	struct breakdown b;
	struct result r = predicted(p, &free_links, &t);
	CU_ASSERT_EQUAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
	double bubble = (r.time.step_s - b.compute_s) / b.compute_s;
	*step_s = r.time.step_s;
	/* the first stage ends last: what it does not compute it waits for the next one */
	CU_ASSERT_DOUBLE_EQUAL(b.bubble_s / b.compute_s, bubble, 1e-6);
	timeline_free(&t);
	program_destroy(p);
	return bubble;
}

/* (p-1)/m for gpipe and 1f1b, (p-1)/(v m) interleaved: Narayanan et al. 2021, section 2.2. */
static void test_bubbles(void)
{
	double step_s;
	static const int64_t sizes[][2] = {{2, 2}, {2, 8}, {4, 4}, {4, 12}, {8, 8}, {8, 32}};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		int64_t p = sizes[i][0], m = sizes[i][1];
		double expected = (double)(p - 1) / (double)m;
		NEAR(bubble_of("gpipe", p, 1, m, &step_s), expected, 0.01);
		NEAR(bubble_of("1f1b", p, 1, m, &step_s), expected, 0.01);
		for (int64_t v = 2; v <= 3 && 24 % (p * v) == 0; v++)
			NEAR(bubble_of("interleaved", p, v, m, &step_s), expected / (double)v,
				0.02); /* a chunk is as little as one block: the head, a whole tile wide, shows */
	}
	struct machine free_links = ideal();
	struct program *one = build_text(base, "train.global_batch=8", 1), *four = plan("1f1b", 4, 1, 8);
	struct timeline t, u;
	struct result a = predicted(one, &free_links, &t), b = predicted(four, &free_links, &u);
	NEAR(b.time.step_s, a.time.step_s / 4 * (1 + 3.0 / 8), 0.01); /* a quarter of the model each, and the bubble */
	timeline_free(&t);
	timeline_free(&u);
	program_destroy(one);
	program_destroy(four);
}

/* The stage's compute time of one micro-batch, forward, backward of the inputs and of the weights. */
static void passes_of(const struct program *p, const struct timeline *t, uint32_t actor, double pass_s[3])
{
	pass_s[0] = pass_s[1] = pass_s[2] = 0;
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		const struct op *op = &p->roles[actor].ops.at[s->op];
		if (s->actor != actor || s->lane != LANE_COMPUTE)
			continue;
		bool weights = op->kind == OP_GEMM && op->flags & OP_TRANS_A;
		pass_s[op->phase == PHASE_FORWARD ? 0
			: weights                 ? 2
				  : 1] += (double)(s->end_ps - s->start_ps) * 1e-12 / (double)p->config.micro_batches;
	}
}

/* ZB-H1: (p-1)(F + B - W) in place of (p-1)(F + B + W) (Qi et al. 2023, table 1). */
static void test_zero_bubble(void)
{
	static const int64_t sizes[][2] = {{2, 4}, {4, 8}, {4, 16}, {8, 24}};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		int64_t stages = sizes[i][0], m = sizes[i][1];
		double one_s, pass_s[3];
		bubble_of("1f1b", stages, 1, m, &one_s);
		struct machine free_links = ideal();
		struct program *p = plan("zero_bubble", stages, 1, m);
		struct timeline t;
		struct result r = predicted(p, &free_links, &t);
		passes_of(p, &t, 0, pass_s);
		double ideal_s = (double)m * (pass_s[0] + pass_s[1] + pass_s[2]),
		       bubble_s = (double)(stages - 1) * (pass_s[0] + pass_s[1] - pass_s[2]);
		CU_ASSERT(r.time.step_s < one_s);
		NEAR(r.time.step_s, ideal_s + bubble_s, 0.01);
		timeline_free(&t);
		program_destroy(p);
	}
}

/* A slow stage paces all: m times its passes, the first stage's forward before them and its backward after; what the
 * last stage does fits beside. */
static void test_uneven(void)
{
	struct machine free_links = ideal();
	struct program *p = build_text(base,
		"parallel.pipeline=3 parallel.layers_per_stage=[4,16,4] train.global_batch=12", 3);
	struct timeline t;
	struct result r = predicted(p, &free_links, &t);
	double layer_s[3];
	passes_of(p, &t, 1, layer_s);
	double slow_s = layer_s[0] + layer_s[1] + layer_s[2];
	NEAR(r.time.step_s, 12 * slow_s + slow_s / 4, 0.001);
	CU_ASSERT_EQUAL(r.n_warnings, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.warning[1], "stage 1 computes 100 % longer than the mean"));
	timeline_free(&t);
	program_destroy(p);
}

/* ---- messages ---- */

/* Latency and bytes over a pair's link, inside a host and between hosts; both ends move together. */
static void test_message_cost(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "nodes",
		.nodes = 8,
		.devices_per_node = 4,
		.intra = {2e-6, 100e9},
		.inter = {9e-6, 25e9}};
	m.device = round_gpu();
	struct program *p = build_text(base,
		"parallel.pipeline=4 parallel.tensor=2 parallel.sequence_parallel=true model.vocab=4 "
		"train.global_batch=8",
		8);
	double message_B = 2048.0 * 2048 * 2;
	size_t messages = 0;
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++) {
			const struct op *op = &p->roles[r].ops.at[i];
			struct op_cost c;
			if (!op_is_message(op))
				continue;
			CU_ASSERT_EQUAL_FATAL(cost_op(p, op, RATES(&m), &c, NULL), ST_OK);
			bool inside = (op->message.peer < 2) ==
			              (op->message.own < 2); /* two stages of two ranks fill a host */
			NEAR(c.alone_s, inside ? 2e-6 + message_B / 100e9 : 9e-6 + message_B / 25e9, 1e-9);
			CU_ASSERT_EQUAL(c.use.demand[inside ? RES_LINK_INTRA : RES_LINK_INTER], 0.5);
			messages++;
		}
	CU_ASSERT_EQUAL(messages, 2 * 2 * 3 * 8);
	CU_ASSERT_EQUAL(pair_stride(RATES(&m), 2, 0, 1), 2);
	CU_ASSERT_EQUAL(pair_stride(RATES(&m), 2, 2, 1), 4);
	CU_ASSERT_EQUAL(pair_stride(RATES(&m), 2, 3, 0), 4);
	CU_ASSERT_EQUAL(pair_stride(RATES(&m), 1, 0, 3),
		1); /* three apart in one host of four: no groups of two are so */
	CU_ASSERT_EQUAL(pair_stride(RATES(&m), 4, 1, 2), 4);

	struct timeline t;
	predicted(p, &m, &t);
	int64_t sends_end = 0, receives_end = 0;
	size_t n = 0;
	for (size_t i = 0; i < t.spans.n; i++) {
		const struct span *s = &t.spans.at[i];
		const struct op *op = &p->roles[s->actor].ops.at[s->op];
		if (!op_is_message(op))
			continue;
		n++;
		CU_ASSERT_EQUAL(s->class_, CLASS_SENDRECV);
		*(op->coll == COLL_SEND ? &sends_end : &receives_end) += s->end_ps + s->move_ps;
	}
	CU_ASSERT_EQUAL(n, messages);
	CU_ASSERT_EQUAL(sends_end, receives_end);
	for (uint32_t a = 0; a < t.actors; a++) {
		struct breakdown b;
		CU_ASSERT_EQUAL(timeline_breakdown(&t, a, &b, NULL), ST_OK);
		CU_ASSERT_DOUBLE_EQUAL(b.compute_s + b.exposed_comm_s + b.copy_s + b.host_s + b.bubble_s +
					       b.optimizer_s + b.idle_s,
			b.step_s, 1e-12);
		CU_ASSERT(b.bubble_s > 0);
		CU_ASSERT_EQUAL(b.wait_s, 0); /* messages are early, and all ranks of a stage arrive at once */
	}
	timeline_free(&t);
	program_destroy(p);
}

/* Eight GPUs share a NIC of 25 Gb/s. Of a stage of four, four send at once; of a stage of one, one sends, and has it
 * all. A stage of a host or more, and GPUs with a NIC each, gain nothing. */
static void test_message_shares(void)
{
	static const struct {
		const char *system;
		int64_t nodes, stride;
		double relief;
	} cases[] = {
		{"gpu:8 rtx4090 nic:1x25Gb/s", 2, 1, 8},
		{"gpu:8 rtx4090 nic:1x25Gb/s", 2, 2, 4},
		{"gpu:8 rtx4090 nic:1x25Gb/s", 2, 4, 2},
		{"gpu:8 rtx4090 nic:1x25Gb/s", 2, 8, 1},
		{"gpu:8 rtx4090 nic:1x25Gb/s", 4, 16, 1},
		{"gpu:8 rtx4090 nic:1x25Gb/s", 1, 4, 1},
		{"gpu:8 rtx4090 nic:2x25Gb/s", 2, 4, 1},
		{"gpu:8 rtx4090 nic:2x25Gb/s", 2, 1, 4},
		{"dgx-h100", 2, 1, 1},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		struct machine m;
		CU_ASSERT_EQUAL_FATAL(machine_load(cases[i].system, cases[i].nodes, 0, &m, &e), ST_OK);
		NEAR(stage_relief(RATES(&m), cases[i].stride, &e), cases[i].relief, 0.01);
		machine_free(&m);
	}
}

/* With time on the way gpipe's first message and last gradient cross every boundary: (p-1)(F + B + 2 t); all others
 * travel while their receiver computes. */
static void test_message_time(void)
{
	struct machine free_links = ideal(), slow = ideal();
	slow.intra.latency_s = 20e-6;
	for (int64_t stages = 2; stages <= 4; stages += 2) {
		struct program *p = plan("gpipe", stages, 1, 12);
		struct timeline t, u;
		double fast_s = predicted(p, &free_links, &t).time.step_s, slow_s = predicted(p, &slow, &u).time.step_s;
		NEAR(slow_s - fast_s, 2 * (double)(stages - 1) * 20e-6, 1e-6);
		timeline_free(&t);
		timeline_free(&u);
		program_destroy(p);
	}
}

/* Ops that begin before an op that they depend on has ended. An actor is a role, which has a span for each op. */
static size_t too_early(const struct program *p, const struct timeline *t)
{
	size_t early = 0, first = 0;
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		const struct role *r = &p->roles[s->actor];
		const struct op *op = &r->ops.at[s->op];
		first = s->op == 0 ? i : first;
		early += s->op != i - first;
		for (uint32_t k = 0; k < op->n_dep; k++)
			early += s->start_ps < t->spans.at[first + r->deps.at[op->dep0 + k]].end_ps;
	}
	return early;
}

/* Whatever the cut, the links and the schedule: no deadlock, the same result twice, no stage busier than the step is
 * long, and every stage's partition adds up. */
static void test_random(void)
{
	static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble", "zbv", "dualpipev"};
	srandom(11);
	for (int i = 0; i < 100; i++) {
		int64_t s = random() % 6, pp = 2 + random() % 4,
			v = s == 2   ? 2 + random() % 2
		            : s >= 4 ? 2
		                     : 1,
			m = s == 2 ? pp * (1 + random() % 3) : 1 + random() % 10;
		char more[512], cut[128] = "";
		int64_t left = 24 - pp * v;
		for (int64_t k = 0; k < pp * v; k++) {
			int64_t extra = k == pp * v - 1 ? left : random() % (left + 1);
			left -= extra;
			snprintf(cut + strlen(cut), sizeof cut - strlen(cut), "%s%lld", k ? "," : "",
				(long long)(1 + extra));
		}
		snprintf(more, sizeof more,
			"parallel.schedule=%s parallel.pipeline=%lld parallel.virtual_stages=%lld "
			"train.global_batch=%lld parallel.layers_per_stage=[%s] model.tied_embeddings=%s "
			"train.optimizer=adamw",
			schedules[s], (long long)pp, (long long)v, (long long)m, cut, random() % 2 ? "true" : "false");
		struct program *p = build_text(base, more, pp);
		struct machine links = ideal();
		links.intra = (struct link_spec){1e-6 * (double)(1 + random() % 3000),
			1e9 * (double)(1 + random() % 100)};
		links.device.launch_s = 1e-6 * (double)(random() % 20);
		struct timeline t, u;
		struct result a = predicted(p, &links, &t), b = predicted(p, &links, &u);
		CU_ASSERT_EQUAL(a.time.step_s, b.time.step_s);
		CU_ASSERT_EQUAL_FATAL(t.spans.n, u.spans.n);
		size_t differ = 0;
		for (size_t k = 0; k < t.spans.n; k++)
			differ += t.spans.at[k].start_ps != u.spans.at[k].start_ps ||
			          t.spans.at[k].end_ps != u.spans.at[k].end_ps;
		CU_ASSERT_EQUAL(differ, 0);
		CU_ASSERT_EQUAL(too_early(p, &t), 0);
		for (uint32_t actor = 0; actor < t.actors; actor++) {
			struct breakdown x;
			CU_ASSERT_EQUAL(timeline_breakdown(&t, actor, &x, NULL), ST_OK);
			CU_ASSERT(x.compute_s <= a.time.step_s && x.overlap >= 0 && x.overlap <= 1);
			CU_ASSERT_DOUBLE_EQUAL(x.compute_s + x.exposed_comm_s + x.copy_s + x.host_s + x.bubble_s +
						       x.optimizer_s + x.idle_s,
				x.step_s, 1e-12);
		}
		timeline_free(&t);
		timeline_free(&u);
		program_destroy(p);
	}
}

/* Tensor-parallel collectives beside products: they move as long as ever, and what is exposed is the stack's share of
 * that. */
static void test_tensor_overlap(void)
{
	static const char more[] =
		"parallel.tensor=4 parallel.sequence_parallel=true train.global_batch=3 model.vocab=4";
	struct machine m = ideal();
	m.intra = (struct link_spec){1e-9, 4e11};
	struct program *p = build_text(base, more, 4);
	struct timeline t;
	struct breakdown plain, beside;
	predicted(p, &m, &t);
	CU_ASSERT_EQUAL(timeline_breakdown(&t, 0, &plain, NULL), ST_OK);
	timeline_free(&t);
	p->config.parallel.tensor_overlap = true;
	p->config.stack.tensor_exposed = 0.25;
	predicted(p, &m, &t);
	CU_ASSERT_EQUAL(timeline_breakdown(&t, 0, &beside, NULL), ST_OK);
	timeline_free(&t);
	program_destroy(p);
	CU_ASSERT(plain.exposed_comm_s > 0.1 * plain.step_s);
	NEAR(beside.class_s[CLASS_REDUCE_SCATTER], plain.class_s[CLASS_REDUCE_SCATTER], 0.03);
	NEAR(beside.class_s[CLASS_ALL_GATHER], plain.class_s[CLASS_ALL_GATHER], 1e-3);
	NEAR(beside.comm_s, plain.comm_s, 0.01);
	CU_ASSERT(beside.compute_s <= plain.compute_s);
	NEAR(beside.exposed_comm_s / beside.comm_s, 0.25 * plain.exposed_comm_s / plain.comm_s, 0.1);
	NEAR(beside.overlap, 1 - beside.exposed_comm_s / beside.comm_s, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(beside.step_s, beside.compute_s + beside.exposed_comm_s, 0.01 * beside.step_s);
}

/* A tied table's gradient crosses from end to end once; messages that are missing on one side are found. */
static void test_ends_and_missing(void)
{
	struct machine m = ideal();
	struct program *p = build_text(base,
		"model.tied_embeddings=true train.optimizer=adamw parallel.pipeline=4 train.global_batch=8", 4);
	struct timeline t;
	predicted(p, &m, &t);
	int64_t end_ps[2] = {0, 1};
	size_t n = 0;
	for (size_t i = 0; i < t.spans.n; i++)
		if (p->roles[t.spans.at[i].actor].ops.at[t.spans.at[i].op].flags & OP_ENDS)
			end_ps[n++ % 2] = t.spans.at[i].end_ps;
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_EQUAL(end_ps[0], end_ps[1]);
	timeline_free(&t);
	struct role *second = &p->roles[1];
	size_t n_ops = second->ops.n;
	for (second->ops.n = 0; second->ops.at[second->ops.n].coll != COLL_RECV; second->ops.n++)
		;
	struct result r;
	struct error e = {0};
	CU_ASSERT_EQUAL(predict(p, &m, &r, &t, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "stage 0 sends more messages than stage 1 receives"));
	second->ops.n = n_ops;
	program_destroy(p);
}

UNIT_MAIN("predict_pipeline", {"bubbles", test_bubbles}, {"zero bubble", test_zero_bubble},
	{"a slow stage paces", test_uneven}, {"messages", test_message_cost},
	{"messages share a NIC", test_message_shares}, {"time on the way", test_message_time},
	{"random pipelines", test_random}, {"tensor-parallel collectives beside products", test_tensor_overlap},
	{"ends and missing messages", test_ends_and_missing})
