/* The search for plans on random small problems: pruned and exhaustive find the same, on any number of threads; no
 * bound is above what it bounds; the winner's file is the winner. */
#include "tests/unit/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/search/lower_bound.h"
#include "sim/search/search.h"
#include "sim/search/search_space.h"

#define PROBLEMS 50
#define SAMPLES 24 /* shapes of a problem whose bounds are looked at */

static uint64_t state = 0x2545f4914f6cdd1du;

static unsigned below(unsigned n) /* xorshift64 (Marsaglia 2003) */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

static const char *pick(const char *const *words, unsigned n) { return words[below(n)]; }

struct problem {
	char text[1536], line[96];
	int64_t ranks;
	uint32_t held;
	struct config config;
	struct machine machine;
};

static void die(const struct problem *p, const struct error *e)
{
	fprintf(stderr, "%s%s\n", p->text, e->text);
	CU_FAIL_FATAL("a problem that cannot be searched");
}

/* The memory of the smaller GPUs decides much; the fewer layers, the faster all are predicted. */
static void random_problem(struct problem *p)
{
	static const char *const gpus[] = {"rtx4090 none", "a100-sxm-40 nvswitch", "h100-sxm nvswitch",
		"v100-sxm-16 nvswitch"},
				 *const stacks[] = {"pytorch-ddp", "pytorch-fsdp", "megatron-core", "deepspeed"};
	static const char *const strategies[] = {"ddp", "zero1", "zero2", "fsdp"},
				 *const recomputes[] = {"none", "full"},
				 *const attentions[] = {"flash", "flash", "flash", "naive"};
	/* layers that are alike, or that repeat in some order; the last is left out where it is refused */
	static const char *const orders[] = {"", "", ", experts: 8, experts_per_token: 2",
		", experts: 8, experts_per_token: 2, first_dense_layers: 1",
		", experts: 8, experts_per_token: 2, moe_layer_freq: 2",
		", sliding_window: 512, global_attention_every: 2",
		", sliding_window: 512, window_kind: chunked, global_attention_every: 2, no_rope_every: 2, experts: 8, "
		"experts_per_token: 2, moe_layer_freq: 2",
		", mtp_layers: 1"};
	const char *const strategy = pick(strategies, 4);
	const bool tied = below(2);
	const char *const order = pick(orders, tied || strcmp(strategy, "fsdp") == 0 ? 7 : 8);
	const unsigned per_node = 1u << below(3), nodes = per_node == 1 ? 1 + below(2) : 1, heads = 8u << below(3),
		       layers = strstr(order, "every: 2") || strstr(order, "freq: 2") ? 4 : 2 + below(3);
	struct error e = {0};
	/* what makes the larger problems large; held keys are a part of the search as well */
	static const uint32_t holds[] = {1u << PLAN_SCHEDULE | 1u << PLAN_RECOMPUTE,
		1u << PLAN_SCHEDULE | 1u << PLAN_STRATEGY, 1u << PLAN_PIPELINE,
		1u << PLAN_MICRO_BATCH | 1u << PLAN_TENSOR, 1u << PLAN_STRATEGY | 1u << PLAN_OVERLAP};
	p->ranks = (int64_t)per_node * nodes;
	p->held = p->ranks > 1 ? holds[below(5)] : 0;
	snprintf(p->line, sizeof p->line, "gpu:%u %s nic:1x100Gb/s", per_node, pick(gpus, 4));
	snprintf(p->text, sizeof p->text,
		"model: {layers: %u, hidden: %u, heads: %u, vocab: %u, seq_len: %u, tied_embeddings: %s, mlp: %s, "
		"position: rope%s}\n"
		"train: {stack: %s, dtype: %s, micro_batch: 1, global_batch: %lld, recompute: %s, attention: %s}\n"
		"parallel: {strategy: %s}\n"
		"cluster: {system: \"%s\", nodes: %u}\n",
		layers, 128 * heads, heads, 1024 * (8 + below(24)), 1024u << below(2), tied ? "true" : "false",
		below(2) ? "swiglu" : "gelu", order, pick(stacks, 4), strstr(p->line, "v100") ? "fp16" : "bf16",
		(long long)p->ranks * (1 + below(2)), pick(recomputes, 2), pick(attentions, 4), strategy, p->line,
		nodes);
	if (config_parse(p->text, strlen(p->text), "problem", NULL, 0, &p->config, &e) ||
		machine_load(p->line, nodes, 0, &p->machine, &e))
		die(p, &e);
	p->config.node_ranks = p->machine.devices_per_node;
}

static void same(const struct problem *p, const struct search_result *a, const struct search_result *b)
{
	char words[2][PLAN_WORDS];
	const unsigned before = CU_get_number_of_failures();
	CU_ASSERT_EQUAL(a->n_best, b->n_best);
	for (size_t i = 0; i < a->n_best && i < b->n_best; i++) {
		CU_ASSERT_STRING_EQUAL(plan_words(&a->best[i].config, words[0]),
			plan_words(&b->best[i].config, words[1]));
		CU_ASSERT_EQUAL(a->best[i].full.time.step_s, b->best[i].full.time.step_s);
	}
	CU_ASSERT_EQUAL(a->front.n, b->front.n);
	for (size_t i = 0; i < a->front.n && i < b->front.n; i++)
		CU_ASSERT_TRUE(a->front.at[i].step_s == b->front.at[i].step_s &&
			       a->front.at[i].memory_B == b->front.at[i].memory_B);
	CU_ASSERT_EQUAL(a->has_least, b->has_least);
	CU_ASSERT_EQUAL(a->counts.plans, b->counts.plans);
	if (CU_get_number_of_failures() > before)
		fprintf(stderr, "%s", p->text);
}

/* No plan of the list beats a plan of the front in both time and memory: both are predicted in full. */
static void check_front(const struct search_result *r)
{
	for (size_t i = 0; i < r->front.n; i++)
		for (size_t k = 0; k < r->n_best; k++)
			CU_ASSERT_FALSE(r->best[k].full.time.step_s < r->front.at[i].step_s &&
					r->best[k].full.memory.total_B < r->front.at[i].memory_B);
}

static void find(const struct problem *p, bool exhaustive, int threads, struct search_result *out)
{
	const struct search_options o = {.held = p->held, .best = 5, .exhaustive = exhaustive, .threads = threads};
	struct error e = {0};
	if (search(&p->config, &p->machine, p->ranks, &o, out, &e))
		die(p, &e);
}

/* The file of the best plan, read again, is predicted to the same step. */
static void check_file(const struct problem *p, const struct search_plan *best)
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	struct config *c = malloc(sizeof *c);
	struct program *program = NULL;
	struct result r;
	struct timeline t = {0};
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(plan_write_yaml(&best->chosen, "# a plan\n", out, &e), ST_OK);
	fclose(out);
	if (config_parse(text, len, "winner", NULL, 0, c, &e))
		die(p, &e);
	c->node_ranks = p->machine.devices_per_node;
	if (config_resolve(c, p->ranks, &e) || program_build(c, &program, &e) ||
		predict(program, &p->machine, &r, &t, &e))
		die(p, &e);
	CU_ASSERT_EQUAL(r.time.step_s, best->full.time.step_s);
	CU_ASSERT_EQUAL(r.memory.total_B, best->full.memory.total_B);
	if (r.time.step_s != best->full.time.step_s)
		fprintf(stderr, "%s%s", p->text, text);
	timeline_free(&t);
	program_destroy(program);
	free(text);
	free(c);
}

static void test_pruned(void)
{
	int64_t plans = 0, pruned = 0, none = 0, roomy = 0;
	struct problem *p = malloc(sizeof *p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	for (int i = 0; i < PROBLEMS; i++) {
		struct search_result quick, all;
		random_problem(p);
		find(p, false, 2, &quick);
		find(p, true, 2, &all);
		same(p, &quick, &all);
		check_front(&all);
		CU_ASSERT_EQUAL(all.counts.pruned, 0);
		plans += quick.counts.plans;
		pruned += quick.counts.pruned;
		none += quick.n_best == 0;
		if (i % 10 == 0) {
			struct search_result one;
			find(p, false, 1, &one);
			same(p, &quick, &one);
			CU_ASSERT_EQUAL(memcmp(&quick.counts, &one.counts, sizeof one.counts), 0);
			search_free(&one);
		}
		if (quick.n_best > 0) {
			CU_ASSERT_TRUE((double)quick.best[0].full.memory.total_B <=
				       quick.memory_share * (double)quick.best[0].full.memory.capacity_B);
			roomy += quick.memory_share < 1;
			check_file(p, &quick.best[0]);
		}
		search_free(&quick);
		search_free(&all);
		machine_free(&p->machine);
	}
	printf("(%lld plans, %lld pruned; nothing fits %lld times) ", (long long)plans, (long long)pruned,
		(long long)none);
	CU_ASSERT_TRUE(pruned > 0 && none < PROBLEMS / 2 && roomy > PROBLEMS / 2);
	free(p);
}

static void check_lower_bound(const struct problem *p, struct search_space *s, struct evaluator *v, int *bounded,
	double *tightest)
{
	struct variant variants[VARIANTS_MAX];
	struct config *c = malloc(sizeof *c);
	struct evaluation x;
	struct plan_lower_bound bound;
	struct error e = {0};
	const struct shape *shape = &s->shapes.at[below((unsigned)s->shapes.n)];
	const size_t n = search_variants(s, shape, variants);
	search_config(s, shape, &variants[below((unsigned)n)], c);
	if (evaluate_plan(v, c, p->ranks, &x, &e))
		die(p, &e);
	if (x.fits) {
		if (config_resolve(c, p->ranks, &e) || lower_bound_of(v, c, &bound, &e))
			die(p, &e);
		const struct parallel *l = &c->parallel;
		const bool unfetched = strategy_has(l->strategy, STRATEGY_UNITS) && !(l->overlap && l->prefetch > 0);
		const double least_s = unfetched ? bound.unfetched_s : bound.step_s;
		CU_ASSERT_TRUE(bound.step_s > 0 && bound.step_s <= bound.unfetched_s);
		CU_ASSERT_TRUE(least_s <= x.step_s * (1 + 1e-9));
		CU_ASSERT_TRUE(bound.memory_B > 0 && bound.memory_B <= (double)x.memory_B);
		if (least_s > x.step_s * (1 + 1e-9) || bound.memory_B > (double)x.memory_B) {
			char words[PLAN_WORDS];
			fprintf(stderr, "%s%s: %.6g s of %.6g, %.6g B of %.6g\n", p->text, plan_words(c, words),
				least_s, x.step_s, bound.memory_B, (double)x.memory_B);
		}
		*tightest = fmax(*tightest, least_s / x.step_s);
		++*bounded;
	}
	free(c);
}

/* Of a model whose plans are put together from pieces. */
static void test_large_floors(void)
{
	static const char *const models[] = {"llama3-70b", "gpt3-175b, vocab_padding: 128", "llama3-8b", "mixtral-8x7b",
		"qwen3-30b-a3b"},
				 *const stacks[] = {"megatron-core", "megatron-deepspeed", "pytorch-fsdp",
					 "megatron-core", "megatron-core"};
	int bounded = 0;
	double tightest = 0;
	struct problem *p = malloc(sizeof *p);
	struct search_space *s = malloc(sizeof *s);
	CU_ASSERT_TRUE_FATAL(p && s);
	for (unsigned i = 0; i < COUNT(models); i++) {
		struct evaluator *v = NULL;
		struct error e = {0};
		p->ranks = 128;
		snprintf(p->text, sizeof p->text,
			"model: {preset: %s}\ntrain: {stack: %s, dtype: bf16, global_batch: 256, micro_batch: 1}\n"
			"parallel: {strategy: zero1, bucket_mb: 25, schedule: 1f1b}\n",
			models[i], stacks[i]);
		if (config_parse(p->text, strlen(p->text), "large", NULL, 0, &p->config, &e) ||
			machine_load("dgx-h100", p->ranks / 8, 0, &p->machine, &e))
			die(p, &e);
		p->config.node_ranks = p->machine.devices_per_node;
		if (search_space_create(&p->config, p->ranks, 1u << PLAN_BUCKET_MB | 1u << PLAN_SCHEDULE, s, &e) ||
			evaluator_create(&p->machine, &v, &e))
			die(p, &e);
		for (int k = 0; k < 150 && s->shapes.n; k++)
			check_lower_bound(p, s, v, &bounded, &tightest);
		evaluator_destroy(v);
		search_space_free(s);
		machine_free(&p->machine);
	}
	printf("(%d bounds, the tightest %.1f %% of the step) ", bounded, 100 * tightest);
	CU_ASSERT_TRUE(bounded > 50);
	free(s);
	free(p);
}

static void test_floors(void)
{
	int bounded = 0;
	double tightest = 0;
	struct problem *p = malloc(sizeof *p);
	struct search_space *s = malloc(sizeof *s);
	CU_ASSERT_TRUE_FATAL(p && s);
	for (int i = 0; i < PROBLEMS; i++) {
		struct evaluator *v = NULL;
		struct error e = {0};
		random_problem(p);
		if (search_space_create(&p->config, p->ranks, 0, s, &e) || evaluator_create(&p->machine, &v, &e))
			die(p, &e);
		for (int k = 0; k < SAMPLES && s->shapes.n; k++)
			check_lower_bound(p, s, v, &bounded, &tightest);
		evaluator_destroy(v);
		search_space_free(s);
		machine_free(&p->machine);
	}
	printf("(%d bounds, the tightest %.1f %% of the step) ", bounded, 100 * tightest);
	CU_ASSERT_TRUE(bounded > PROBLEMS * SAMPLES / 4);
	free(s);
	free(p);
}

/* Tried where the config has them: the head is on the first stage, and gradients of weights are deferred. */
static void test_turning_back(void)
{
	static const char *const lines[] = {"gpu:4 rtx4090 none", "gpu:4 a100-sxm-40 nvswitch",
		"gpu:2 v100-sxm-16 nvswitch"};
	int bounded = 0, chosen = 0;
	double tightest = 0;
	struct problem *p = malloc(sizeof *p);
	struct search_space *s = malloc(sizeof *s);
	CU_ASSERT_TRUE_FATAL(p && s);
	for (int i = 0; i < 6; i++) {
		struct search_result quick, all;
		struct evaluator *v = NULL;
		struct error e = {0};
		const enum schedule schedule = i < 3 ? SCHED_ZBV : SCHED_DUALPIPEV;
		snprintf(p->text, sizeof p->text,
			"model: {layers: %u, hidden: 1024, heads: 8, vocab: %u, seq_len: 1024}\n"
			"train: {stack: megatron-core, dtype: %s, micro_batch: 1, global_batch: %u}\n"
			"parallel: {strategy: zero1, pipeline: 2, schedule: %s}\n",
			8u, 1024 * (8 + below(24)), i % 3 == 2 ? "fp16" : "bf16", 2u << below(5),
			schedule_traits[schedule].name);
		p->held = 1u << PLAN_SCHEDULE | 1u << PLAN_RECOMPUTE | 1u << PLAN_TENSOR;
		if (config_parse(p->text, strlen(p->text), "turning", NULL, 0, &p->config, &e) ||
			machine_load(lines[i % 3], 1, 0, &p->machine, &e))
			die(p, &e);
		p->ranks = p->config.node_ranks = p->machine.devices_per_node;
		find(p, false, 2, &quick);
		find(p, true, 2, &all);
		same(p, &quick, &all);
		if (search_space_create(&p->config, p->ranks, p->held | 1u << PLAN_PIPELINE, s, &e) ||
			evaluator_create(&p->machine, &v, &e))
			die(p, &e);
		for (int k = 0; k < 10 * SAMPLES && s->shapes.n; k++)
			check_lower_bound(p, s, v, &bounded, &tightest);
		for (size_t k = 0; k < all.n_best; k++)
			chosen += all.best[k].config.parallel.schedule == schedule;
		evaluator_destroy(v);
		search_space_free(s);
		search_free(&quick);
		search_free(&all);
		machine_free(&p->machine);
	}
	printf("(%d bounds, the tightest %.1f %% of the step) ", bounded, 100 * tightest);
	CU_ASSERT_TRUE(bounded > SAMPLES && chosen > 0);
	free(s);
	free(p);
}

/* Of a mixture of experts every plan that the space has is one that config_resolve takes, and its program keeps the
 * invariants. Pruned and exhaustive searches agree. */
static void test_experts(void)
{
	int cut = 0, hidden = 0, hybrid = 0;
	struct problem *p = malloc(sizeof *p);
	struct search_space *s = malloc(sizeof *s);
	struct error e = {0};
	CU_ASSERT_TRUE_FATAL(p && s);
	p->ranks = 16;
	snprintf(p->text, sizeof p->text,
		"model: {layers: 8, hidden: 512, heads: 8, vocab: 1024, seq_len: 256, mlp: swiglu, experts: 8, "
		"moe_ffn_hidden: 256, shared_experts: 1}\n"
		"train: {stack: megatron-core, dtype: bf16, global_batch: 64, micro_batch: 1}\n"
		"parallel: {strategy: ddp}\n");
	if (config_parse(p->text, strlen(p->text), "experts", NULL, 0, &p->config, &e) ||
		machine_load("dgx-h100", 2, 0, &p->machine, &e))
		die(p, &e);
	p->config.node_ranks = p->machine.devices_per_node;
	if (search_space_create(&p->config, p->ranks, 1u << PLAN_RECOMPUTE, s, &e))
		die(p, &e);
	CU_ASSERT(s->shapes.n > 1000);
	for (size_t i = below(7); i < s->shapes.n; i += 1 + below(13)) {
		const struct shape *shape = &s->shapes.at[i];
		struct variant v[VARIANTS_MAX];
		static struct config c;
		struct program *program = NULL;
		char words[PLAN_WORDS];
		search_variants(s, shape, v);
		search_config(s, shape, &v[0], &c);
		if (config_resolve(&c, p->ranks, &e) || program_build(&c, &program, &e) || program_check(program, &e)) {
			fprintf(stderr, "%s: %s\n", plan_words(&c, words), e.text);
			CU_FAIL("a plan that is not legal");
		}
		cut += c.parallel.expert_tensor > 1;
		hidden += c.parallel.expert_overlap;
		hybrid += program && program->mesh.size[DIM_REPLICA] > 1 && program->mesh.size[DIM_EP] > 1;
		program_destroy(program);
	}
	CU_ASSERT(cut > 10 && hidden > 10 && hybrid > 10);
	search_space_free(s);
	p->held = 1u << PLAN_RECOMPUTE | 1u << PLAN_STRATEGY | 1u << PLAN_PIPELINE | 1u << PLAN_MICRO_BATCH |
	          1u << PLAN_CONTEXT;
	struct search_result quick, all;
	find(p, false, 2, &quick);
	find(p, true, 2, &all);
	CU_ASSERT(quick.counts.left == 0 && quick.counts.illegal == 0);
	same(p, &quick, &all);
	search_free(&quick);
	search_free(&all);
	machine_free(&p->machine);
	free(s);
	free(p);
}

UNIT_MAIN("search", {"no bound is above what it bounds", test_floors}, {"nor of large models", test_large_floors},
	{"pruned and exhaustive agree", test_pruned}, {"zbv and dualpipev", test_turning_back},
	{"experts", test_experts})
