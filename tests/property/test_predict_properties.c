/* Checks properties of predictions that hold for all figures, over strategies, meshes, recompute and machines. */
#include "base/array.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/machines.h"
#include "tests/unit/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/price/price.h"
#include "sim/engine/predict.h"

/* Eight devices in one node, so that every group has the same link. */
#define RANKS 8

static const char *const plans[] = {
	"parallel: {strategy: ddp}\ntrain: {global_batch: 16, micro_batch: 1}",
	"parallel: {strategy: ddp, bucket_mb: 4, overlap: false}\ntrain: {global_batch: 32, micro_batch: 2}",
	"parallel: {strategy: zero1}\n"
	"train: {global_batch: 16, micro_batch: 1, recompute: selective, attention: naive}",
	"parallel: {strategy: zero2}\ntrain: {global_batch: 16, micro_batch: 2}",
	"parallel: {strategy: fsdp}\ntrain: {global_batch: 16, micro_batch: 1, recompute: full}",
	"parallel: {strategy: fsdp, prefetch: 2, reshard_after_forward: false}\n"
	"train: {global_batch: 8, micro_batch: 1}",
	"parallel: {strategy: ddp, tensor: 2}\ntrain: {global_batch: 16, micro_batch: 2}",
	"parallel: {strategy: ddp, tensor: 8, sequence_parallel: true}\n"
	"train: {global_batch: 4, micro_batch: 2, recompute: full}",
	"parallel: {strategy: fsdp, tensor: 2, sequence_parallel: true}\ntrain: {global_batch: 16, micro_batch: 2}",
	"parallel: {strategy: zero1, tensor: 4}\ntrain: {global_batch: 8, micro_batch: 2}",
};
static const char *const expert_plans[] = {
	"parallel: {strategy: ddp, expert: 8}\ntrain: {global_batch: 16, micro_batch: 1}",
	"parallel: {strategy: zero1, expert: 2}\ntrain: {global_batch: 16, micro_batch: 2, recompute: full}",
	"parallel: {strategy: zero2, expert: 4, tensor: 2, sequence_parallel: true}\n"
	"train: {global_batch: 16, micro_batch: 2}",
	"parallel: {strategy: fsdp}\ntrain: {global_batch: 16, micro_batch: 1}",
	"parallel: {strategy: hsdp, shard: 4, expert: 4}\ntrain: {global_batch: 16, micro_batch: 1}",
	"parallel: {strategy: zero1, tensor: 4, sequence_parallel: true, expert: 2, expert_tensor: 2}\n"
	"train: {global_batch: 16, micro_batch: 2}",
};
static const char experts[] =
	"model: {preset: mixtral-8x7b, layers: 3, hidden: 1024, heads: 16, kv_heads: 8, head_dim: 64, ffn_hidden: "
	"1024, seq_len: 1024, shared_experts: 1}";
static const char *const models[] = {
	"model: {preset: gpt2-350m, layers: 4, vocab: 50304}",
	"model: {preset: llama3-8b, layers: 3, hidden: 1024, heads: 16, kv_heads: 8, head_dim: 64, ffn_hidden: 2816, "
	"seq_len: 1024, vocab: 32000}",
};

static struct machine node(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "node",
		.nodes = 1,
		.devices_per_node = RANKS,
		.intra = {4e-6, 100e9},
		.inter = {10e-6, 25e9}};
	m.device = round_gpu();
	m.device.launch_s = 2e-6;
	return m;
}

/* The same, where what is measured says that collectives and compute do not disturb each other. */
static struct profile measured = {
	.n_values = 2,
	.values = {{"overlap.compute_rate", 1}, {"overlap.comm_rate", 1}},
};

static struct machine undisturbed(void)
{
	struct machine m = node();
	m.profile = &measured;
	return m;
}

static struct program *build_for(int64_t ranks, const char *model, const char *plan, const char *set)
{
	char text[2048];
	struct config c;
	struct error e = {0};
	struct program *p = NULL;
	snprintf(text, sizeof text, "%s\n%s\n", model, plan);
	if (config_parse(text, strlen(text), "property.yaml", &set, set ? 1 : 0, &c, &e) ||
		config_resolve(&c, ranks, &e) || program_build(&c, &p, &e)) {
		fprintf(stderr, "%s\n%s\n", text, e.text);
		CU_FAIL_FATAL("the config");
	}
	return p;
}

static struct program *build(const char *model, const char *plan, const char *set)
{
	return build_for(RANKS, model, plan, set);
}

static struct result predicted(const struct program *p, const struct machine *m, struct timeline *keep)
{
	struct result r;
	struct timeline t;
	struct error e = {0};
	if (predict(p, m, &r, &t, &e)) {
		fprintf(stderr, "%s\n", e.text);
		CU_FAIL_FATAL("predict");
	}
	if (keep)
		*keep = t;
	else
		timeline_free(&t);
	return r;
}

static void for_each(void (*check)(const char *model, const char *plan, const struct program *p))
{
	for (size_t m = 0; m < COUNT(models); m++)
		for (size_t k = 0; k < COUNT(plans); k++) {
			struct program *p = build(models[m], plans[k], NULL);
			check(models[m], plans[k], p);
			program_destroy(p);
		}
}

static double step_s(const struct program *p, const struct machine *m) { return predicted(p, m, NULL).time.step_s; }

/* ---- sums and bounds ---- */

static void check_sums(const char *model, const char *plan, const struct program *p)
{
	(void)model, (void)plan;
	struct machine m = node();
	struct timeline t;
	struct result r = predicted(p, &m, &t);
	const struct breakdown *b = &r.time;
	const struct result_memory *mem = &r.memory;
	CU_ASSERT_EQUAL(timeline_check(&t, NULL), ST_OK);
	CU_ASSERT_EQUAL(t.spans.n, p->roles[0].ops.n);
	CU_ASSERT_DOUBLE_EQUAL(b->compute_s + b->exposed_comm_s + b->copy_s + b->host_s + b->bubble_s + b->optimizer_s +
				       b->idle_s,
		b->step_s, 1e-12);
	CU_ASSERT(b->exposed_comm_s <= b->comm_s && b->comm_s <= b->step_s && b->overlap >= 0 && b->overlap <= 1);
	CU_ASSERT_EQUAL(b->wait_s, 0); /* one role: all ranks arrive at once */
	CU_ASSERT_EQUAL(mem->weights_B + mem->gradients_B + mem->optimizer_B + mem->activations_B + mem->buffers_B +
				mem->overhead_B,
		mem->total_B);
	CU_ASSERT(mem->weights_B > 0 && mem->optimizer_B > 0); /* the peak may come when the last activation is gone */
	CU_ASSERT(
		r.interval90_s[0] > 0 && r.interval90_s[0] <= 0.9 * b->step_s && r.interval90_s[1] >= 1.3 * b->step_s);
	CU_ASSERT(r.mfu > 0 && r.mfu < 1 && r.hfu >= r.mfu);
	CU_ASSERT(r.bottleneck[0] != '\0');
	timeline_free(&t);
}

static void test_sums(void) { for_each(check_sums); }

/* From costs alone, without the engine: each lane's ops one after the other, and the longest chain through lanes,
 * dependencies and the host's launches. */
static void check_bounds(const char *model, const char *plan, const struct program *of)
{
	(void)model, (void)plan;
	static struct program drained; /* nothing is launched before the step begins */
	drained = *of;
	drained.config.train.sync_every = 1;
	const struct program *p = &drained;
	struct machine m = node();
	const struct role *r = &p->roles[0];
	double lane_s[LANE_COUNT] = {0}, lane_end_s[LANE_COUNT] = {0}, issued_s = 0, longest_s = 0,
	       step = step_s(p, &m);
	double *end_s = calloc(r->ops.n, sizeof *end_s);
	CU_ASSERT_PTR_NOT_NULL_FATAL(end_s);
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		struct op_cost c;
		CU_ASSERT_EQUAL_FATAL(cost_op(p, op, RATES(&m), &c, NULL), ST_OK);
		issued_s += c.issue_s;
		lane_s[op->lane] += c.alone_s;
		double begin_s = fmax(issued_s, lane_end_s[op->lane]);
		for (uint32_t k = 0; k < op->n_dep; k++)
			begin_s = fmax(begin_s, end_s[r->deps.at[op->dep0 + k]]);
		end_s[i] = lane_end_s[op->lane] = begin_s + c.alone_s;
		longest_s = fmax(longest_s, end_s[i]);
	}
	double rounding_s = 1e-12 * (double)r->ops.n;
	for (int l = 0; l < LANE_COUNT; l++)
		CU_ASSERT(step >= lane_s[l] - rounding_s);
	CU_ASSERT(step >= longest_s - rounding_s);
	/* Where nothing disturbs anything, the longest chain is the step. */
	if (p->mesh.size[DIM_TP] * p->mesh.size[DIM_EP] == 1) { /* one lane of collectives */
		struct machine u = undisturbed();
		CU_ASSERT_DOUBLE_EQUAL(step_s(p, &u) / longest_s, 1,
			1e-3); /* a copy and a collective's launch beside memory-bound kernels disturb a little */
	}
	free(end_s);
}

static void test_bounds(void) { for_each(check_bounds); }

/* ---- prices ---- */

static bool same_cost(const struct op_cost *a, const struct op_cost *b)
{
	return a->alone_s == b->alone_s && a->issue_s == b->issue_s && a->tile_overlap_s == b->tile_overlap_s &&
	       a->bound == b->bound && a->rel_sigma == b->rel_sigma && a->holds == b->holds && a->capped == b->capped;
}

/* Ops that share a price cost the same one by one, and in any phase of a step. */
static void check_prices(const char *model, const char *plan, const struct program *p)
{
	(void)model, (void)plan;
	struct machine m = node();
	struct prices prices;
	size_t wrong = 0;
	CU_ASSERT_EQUAL_FATAL(price_program(p, RATES(&m), &prices, NULL), ST_OK);
	CU_ASSERT(prices.different.n < p->roles[0].ops.n);
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		struct op op = p->roles[0].ops.at[i];
		for (op.phase = 0; op.phase < PHASE_COUNT; op.phase++) {
			struct op_cost own;
			CU_ASSERT_EQUAL_FATAL(cost_op(p, &op, RATES(&m), &own, NULL), ST_OK);
			wrong += !same_cost(&own, price_of(&prices, 0, i));
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	prices_free(&prices);
}

static void test_prices(void) { for_each(check_prices); }

/* ---- faster parts ---- */

static void scale_link(struct machine *m, double f) { m->intra.Bps *= f; }

static void scale_latency(struct machine *m, double f) { m->intra.latency_s /= f; }

static void scale_memory(struct machine *m, double f) { m->device.mem_Bps *= f; }

static void scale_matrix(struct machine *m, double f)
{
	for (int t = 0; t < DT_COUNT; t++)
		m->device.matrix_flop_per_s[t] *= f;
}

static void scale_launch(struct machine *m, double f) { m->device.launch_s /= f; }

/* Every lane is in order, so that without disturbance every start is a maximum of sums of times: nothing can be slower
 * on faster parts. With disturbance that is no theorem (a collective that ends sooner may have taken more while it
 * ran), but it has to hold for plans like these. A copy and a collective's launch disturb memory-bound kernels a little
 * on either machine, so what starts sooner may meet one: that is worth SLIGHTLY. */
#define SLIGHTLY 1e-4
static void check_faster(const char *model, const char *plan, const struct program *p)
{
	static void (*const scales[])(struct machine *, double) = {scale_link, scale_latency, scale_memory,
		scale_matrix, scale_launch};
	(void)model;
	for (int disturbed = 0; disturbed < 2; disturbed++)
		for (size_t k = 0; k < COUNT(scales); k++) {
			double slowest_s = 0, last_s = INFINITY;
			for (double f = 0.02; f < 60; f *= 1.7) {
				struct machine m = disturbed ? node() : undisturbed();
				scales[k](&m, f);
				double s = step_s(p, &m);
				if (s > last_s * (1 + SLIGHTLY)) {
					fprintf(stderr, "%s: scale %zu, factor %g: %g s after %g s\n", plan, k, f, s,
						last_s);
					CU_FAIL("slower on faster parts");
				}
				slowest_s = fmax(slowest_s, s);
				last_s = s;
			}
			CU_ASSERT(last_s < slowest_s || (k <= 1 && p->mesh.size[DIM_DP] == 1)); /* and it matters */
		}
}

static void test_faster(void) { for_each(check_faster); }

/* ---- more work ---- */

static void check_more_work(const char *model, const char *plan, const struct program *p)
{
	static const char *const more[] = {"model.layers=6", "model.ffn_hidden=8192", "model.vocab=64000",
		"train.global_batch=64"};
	struct machine m = node();
	double before_s = step_s(p, &m);
	for (size_t k = 0; k < COUNT(more); k++) {
		struct program *q = build(model, plan, more[k]);
		CU_ASSERT(step_s(q, &m) > before_s);
		program_destroy(q);
	}
}

static void test_more_work(void) { for_each(check_more_work); }

/* Experts: the same of plans that share them; what makes their work more, and what a group of more ranks does to
 * memory. */
static void test_experts(void)
{
	static const char *const more[] = {"model.moe_ffn_hidden=2048", "model.capacity_factor=1.5",
		"model.experts_per_token=3", "model.shared_experts=2", "model.layers=6", "train.global_batch=64"};
	struct machine m = node();
	for (size_t k = 0; k < COUNT(expert_plans); k++) {
		struct program *p = build(experts, expert_plans[k], NULL);
		check_sums(experts, expert_plans[k], p);
		check_bounds(experts, expert_plans[k], p);
		check_faster(experts, expert_plans[k], p);
		double before_s = step_s(p, &m);
		for (size_t i = 0; i < COUNT(more); i++) {
			struct program *q = build(experts, expert_plans[k], more[i]);
			CU_ASSERT(step_s(q, &m) > before_s);
			program_destroy(q);
		}
		program_destroy(p);
	}
}

/* ---- who is who ---- */

static void check_permuted(const char *model, const char *plan, const struct program *p)
{
	struct machine m = node();
	struct program *q = build(model, plan, "parallel.order=dp-tp-cp-ep-pp");
	struct result a = predicted(p, &m, NULL), b = predicted(q, &m, NULL);
	CU_ASSERT(memcmp(&a.time, &b.time, sizeof a.time) == 0);
	CU_ASSERT_EQUAL(a.memory.total_B, b.memory.total_B);
	program_destroy(q);
}

static void test_permuted(void) { for_each(check_permuted); }

static void check_deterministic(const char *model, const char *plan, const struct program *p)
{
	struct machine m = node();
	struct program *q = build(model, plan, NULL);
	struct timeline t, u;
	struct result a = predicted(p, &m, &t), b = predicted(q, &m, &u);
	CU_ASSERT(memcmp(&a.time, &b.time, sizeof a.time) == 0);
	CU_ASSERT_EQUAL_FATAL(t.spans.n, u.spans.n);
	for (size_t i = 0; i < t.spans.n; i++)
		CU_ASSERT(t.spans.at[i].start_ps == u.spans.at[i].start_ps &&
			  t.spans.at[i].end_ps == u.spans.at[i].end_ps);
	timeline_free(&t);
	timeline_free(&u);
	program_destroy(q);
}

static void test_deterministic(void) { for_each(check_deterministic); }

/* ---- slow ranks ---- */

static void check_slow(const char *model, const char *plan, const struct program *p)
{
	struct machine m = node();
	double healthy_s = step_s(p, &m), last_s = healthy_s;
	static const char *const factors[] = {"cluster.slow_ranks={7: 1.1}", "cluster.slow_ranks={7: 1.1, 2: 1.5}",
		"cluster.slow_ranks={n0: 2}"};
	for (size_t k = 0; k < COUNT(factors); k++) {
		struct program *q = build(model, plan, factors[k]);
		double s = step_s(q, &m);
		CU_ASSERT(s > last_s && s <= 2 * healthy_s);
		last_s = s;
		program_destroy(q);
	}
	/* Spread over eight ranks: the slowest is 1.42 standard deviations slow. */
	struct program *jitters = build(model, plan, "cluster.jitter=0.1"),
		       *slow = build(model, plan, "cluster.slow_ranks={0: 1.142360031}");
	CU_ASSERT_DOUBLE_EQUAL(step_s(jitters, &m) / step_s(slow, &m), 1, 1e-6);
	program_destroy(jitters);
	program_destroy(slow);
}

static void test_slow(void) { for_each(check_slow); }

/* What jitter adds grows with the ranks as the mean of the largest of so many normal values does: 1 / sqrt(pi), then
 * Tippett 1925 (Biometrika 17). Without overlap all of it is compute, as communication does not change. */
static void test_jitter_scale(void)
{
	static const struct {
		int64_t ranks;
		double largest;
	} at[] = {{2, 0.56419}, {10, 1.53875}, {100, 2.50759}, {1000, 3.24144}};
	for (size_t k = 0; k < COUNT(at); k++) {
		struct machine m = node();
		struct result r[2];
		m.devices_per_node = at[k].ranks;
		for (int jitters = 0; jitters < 2; jitters++) {
			char plan[128];
			snprintf(plan, sizeof plan,
				"parallel: {strategy: ddp, overlap: false}\n"
				"train: {global_batch: %lld, micro_batch: 1}",
				(long long)at[k].ranks);
			struct program *p = build_for(at[k].ranks, models[0], plan,
				jitters ? "cluster.jitter=0.1" : NULL);
			r[jitters] = predicted(p, &m, NULL);
			program_destroy(p);
		}
		const double compute_s = r[0].time.compute_s + r[0].time.optimizer_s;
		CU_ASSERT_DOUBLE_EQUAL((r[1].time.step_s - r[0].time.step_s) / compute_s, 0.1 * at[k].largest,
			0.002 * at[k].largest);
	}
}

UNIT_MAIN("predict properties", {"the slowest rank paces all", test_slow},
	{"jitter grows with the ranks", test_jitter_scale}, {"parts add up", test_sums},
	{"prices are shared by ops alike", test_prices},
	{"at least the longest chain and the busiest lane", test_bounds},
	{"faster parts are never slower", test_faster}, {"more work is never faster", test_more_work},
	{"experts", test_experts}, {"permuting ranks changes nothing", test_permuted},
	{"deterministic", test_deterministic})
