/* The folded prediction is the full one within 1 %. */
#include "base/array.h"
#include "tests/property/realistic.h"
#include "tests/random.h"
#include "tests/unit/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/search/lower_bound.h"
#include "sim/engine/fold.h"
#include "topology/profile.h"

static void random_plan(char *text, size_t size)
{
	static const char *const strategies[] = {"ddp", "zero1", "fsdp", "hsdp"}, *const stacks[] = {"pytorch-ddp",
											  "composer-fsdp", "nanotron",
											  "megatron-core"};
	unsigned heads = 8u << random_below(2), tensor = 1u << random_below(3), context = 1u << random_below(2),
		 micro = 7 + random_below(20), data = 8 / tensor / context;
	snprintf(text, size,
		"model: {layers: %u, hidden: %u, heads: %u, vocab: %u, seq_len: %u}\n"
		"train: {stack: %s, dtype: bf16, micro_batch: %u, global_batch: %u, recompute: %s}\n"
		"parallel: {strategy: %s, tensor: %u, context: %u}\n",
		2 + random_below(4), 64 * heads, heads, 512 * (1 + random_below(20)), 256u << random_below(4),
		stacks[random_below(4)], 1u, data * micro, random_below(2) ? "full" : "none",
		data * context > 1 ? strategies[random_below(4)] : "none", tensor, context);
}

/* How far apart, as a share of the full one. */
static double apart(double folded, double full) { return fabs(folded / full - 1); }

/* Whether a stage of the full prediction multiplies so long: the one that ends last may be another than after fewer
 * micro-batches, and messages slow products more while a pipeline fills. */
static bool of_a_stage(double gemm_s, const struct timeline *t, double within)
{
	bool found = false;
	for (uint32_t stage = 0; stage < t->actors; stage++) {
		struct breakdown x;
		found = found || (timeline_breakdown(t, stage, &x, NULL) == ST_OK &&
					 apart(gemm_s, x.class_s[CLASS_GEMM]) <= within);
	}
	return found;
}

static void compare(const char *text, const struct machine *m, double within)
{
	struct config c;
	struct program *p = NULL;
	struct timeline t = {0};
	struct error e = {0};
	struct result full, folded;
	if (config_parse(text, strlen(text), "plan", NULL, 0, &c, &e) || config_resolve(&c, 8, &e) ||
		program_build(&c, &p, &e) || predict(p, m, &full, &t, &e) || fold_predict(&c, m, &folded, &e)) {
		fprintf(stderr, "%s%s\n", text, e.text);
		CU_FAIL("a plan that cannot be predicted");
	} else {
		if (apart(folded.time.step_s, full.time.step_s) > within ||
			apart((double)folded.memory.total_B, (double)full.memory.total_B) > within)
			fprintf(stderr, "%s%.6g %.6g s, %.6g %.6g B\n", text, folded.time.step_s, full.time.step_s,
				(double)folded.memory.total_B, (double)full.memory.total_B);
		CU_ASSERT_TRUE(apart(folded.time.step_s, full.time.step_s) <= within);
		const struct breakdown *x = &folded.time;
		CU_ASSERT_DOUBLE_EQUAL(x->compute_s + x->exposed_comm_s + x->copy_s + x->host_s + x->bubble_s +
					       x->optimizer_s + x->idle_s,
			x->step_s, 1e-9 * x->step_s);
		CU_ASSERT_TRUE(apart(folded.mfu, full.mfu) <= 1.1 * within);
		CU_ASSERT_TRUE(of_a_stage(folded.time.class_s[CLASS_GEMM], &t, 2 * within));
		CU_ASSERT_TRUE(apart((double)folded.memory.total_B, (double)full.memory.total_B) <= within);
	}
	timeline_free(&t);
	program_destroy(p);
}

static void load(struct machine *m)
{
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:8 h100-sxm nic:8x400Gb/s", 1, 0, m, &e), ST_OK);
}

static void test_folded(void)
{
	struct machine m;
	load(&m);
	for (int i = 0; i < 60; i++) {
		char text[512];
		random_plan(text, sizeof text);
		compare(text, &m, 0.01);
	}
	machine_free(&m);
}

/* gpipe keeps all micro-batches in flight: their number is memory, and nothing is counted. nanotron's stages, with
 * tensor ranks in pipelines across hosts, wait for their host threads once the pipeline is full: parts of the step
 * change places after the micro-batches that are simulated. */
static void test_pipelines(void)
{
	static const char *const stacks[] = {"megatron-core", "nanotron"};
	static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble", "zbv", "dualpipev"},
				 *const strategies[] = {"ddp", "zero1", "none"};
	struct machine m[2];
	load(&m[0]);
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:4 h100-sxm nic:4x400Gb/s", 2, 0, &m[1], NULL), ST_OK);
	for (unsigned i = 0; i < 60; i++) {
		char text[512];
		const unsigned schedule = i % 6, slow_host = i / 6 % 2, pipeline = 2u << random_below(2),
			       data = 1u << random_below(2), tensor = 8 / pipeline / data,
			       micro = pipeline * (5 + random_below(slow_host ? 24 : 4)),
			       layers = slow_host && schedule != 2 && schedule < 4 ? 8 + random_below(4) : 8;
		snprintf(text, sizeof text,
			"model: {layers: %u, hidden: %u, heads: 16, vocab: 8192, seq_len: 1024}\n"
			"train: {stack: %s, dtype: bf16, micro_batch: 1, global_batch: %u, recompute: %s}\n"
			"parallel: {strategy: %s, tensor: %u, pipeline: %u, schedule: %s, virtual_stages: %u}\n",
			layers, 1024 << random_below(2), stacks[slow_host], data * micro,
			random_below(2) ? "full" : "none", strategies[data > 1 ? random_below(2) : 2], tensor, pipeline,
			schedules[schedule], schedule == 2 || schedule >= 4 ? 2 : 1);
		compare(text, &m[slow_host], schedule == 0 ? 0 : 0.01);
	}
	machine_free(&m[0]);
	machine_free(&m[1]);
}

#define REALISTIC 150
#define REALISTIC_APART 3 /* of them, whose waiting changes places while the pipeline fills */

static int percent_of(const char *bottleneck)
{
	const char *space = strstr(bottleneck, " %"), *at = space;
	while (at && at > bottleneck && at[-1] != ' ')
		at--;
	return at ? atoi(at) : 0;
}

/* All that a result says is of the step with all its micro-batches, and not of one that was simulated. */
static bool agree(const struct result *folded, const struct result *full)
{
	bool same = apart(folded->time.step_s, full->time.step_s) <= 0.015 && apart(folded->mfu, full->mfu) <= 0.02 &&
	            apart(folded->hfu, full->hfu) <= 0.02 &&
	            apart(folded->interval90_s[0], full->interval90_s[0]) <= 0.02 &&
	            apart(folded->interval90_s[1], full->interval90_s[1]) <= 0.02 &&
	            folded->n_warnings == full->n_warnings &&
	            abs(percent_of(folded->bottleneck) - percent_of(full->bottleneck)) <= 2;
	for (int k = 0; k < CLASS_COUNT; k++)
		same = same && fabs(folded->time.class_s[k] - full->time.class_s[k]) <= 0.02 * full->time.step_s;
	return same;
}

/* A prediction that begins with memory agrees on what fits, and on the step of what does. `refused`: the plan needs 1 %
 * more than there is. */
static void check_fitting(const struct config *c, struct machine m, const struct result *full, bool refused)
{
	struct result fitting = {0};
	struct error e = {0};
	if (refused)
		m.device.mem_B = full->memory.total_B - full->memory.total_B / 100;
	CU_ASSERT_EQUAL_FATAL(fold_result_fitting(c, &m, &fitting, &e), ST_OK);
	CU_ASSERT_EQUAL(fitting.memory.fits, full->memory.total_B <= m.device.mem_B);
	CU_ASSERT_TRUE(fitting.memory.total_B <= full->memory.total_B);
	if (!fitting.memory.fits)
		return;
	CU_ASSERT_EQUAL(fitting.memory.total_B, full->memory.total_B);
	CU_ASSERT_TRUE(fold_simulated(c) < c->micro_batches || fitting.time.step_s == full->time.step_s);
}

static void test_realistic(void)
{
	int differ = 0, counted = 0;
	for (int i = 0; i < REALISTIC; i++) {
		char text[1024];
		struct config c;
		struct machine m;
		struct program *p = NULL;
		struct timeline t = {0};
		struct error e = {0};
		struct result full, folded;
		struct evaluator *v = NULL;
		struct plan_lower_bound bound;
		realistic_draw(text, sizeof text, &c, &m);
		if (program_build(&c, &p, &e) || predict(p, &m, &full, &t, &e) || fold_predict(&c, &m, &folded, &e) ||
			evaluator_create(&m, &v, &e) || lower_bound_of(v, &c, &bound, &e)) {
			fprintf(stderr, "%s%s\n", text, e.text);
			CU_FAIL("a plan that cannot be predicted");
		} else {
			const bool good = agree(&folded, &full);
			check_fitting(&c, m, &full, i % 2 == 1);
			const struct result_memory *mem = &folded.memory;
			counted += fold_blocks(&c) < (double)(c.model.layers * c.micro_batches);
			differ += !good;
			if (!good || bound.step_s > full.time.step_s ||
				apart((double)mem->total_B, (double)full.memory.total_B) > 0.003)
				fprintf(stderr, "%s%.6g s, folded %.6g, at least %.6g; %.6g B, folded %.6g; %s; %s\n",
					text, full.time.step_s, folded.time.step_s, bound.step_s,
					(double)full.memory.total_B, (double)mem->total_B, full.bottleneck,
					folded.bottleneck);
			CU_ASSERT_TRUE(bound.step_s <= full.time.step_s * (1 + 1e-9) &&
				       bound.memory_B <= (double)full.memory.total_B);
			CU_ASSERT_TRUE(apart((double)mem->total_B, (double)full.memory.total_B) <= 0.003);
			CU_ASSERT_EQUAL(mem->total_B, mem->weights_B + mem->gradients_B + mem->optimizer_B +
							      mem->activations_B + mem->buffers_B + mem->overhead_B);
		}
		evaluator_destroy(v);
		timeline_free(&t);
		program_destroy(p);
		machine_free(&m);
	}
	printf("(%d of %d counted, %d apart) ", counted, REALISTIC, differ);
	CU_ASSERT_TRUE(counted > REALISTIC / 4 && differ <= REALISTIC_APART);
}

/* A folded step reports the same gaps of a profile as a whole one. */
static void test_guessed(void)
{
	static const char text[] =
		"model: {layers: 4, hidden: 1024, heads: 16, vocab: 8192, seq_len: 512}\n"
		"train: {stack: pytorch-ddp, dtype: bf16, micro_batch: 1, global_batch: 96, optimizer: lion}\n"
		"parallel: {strategy: zero1, data: 4}\n";
	static const char *const products[] = {"gemm.nt.bf16", "gemm.nn.bf16", "gemm.tn.bf16", "attention.bf16.64",
		"attention_grad.bf16.64"};
	static const char *const others[] = {"fill", "cast", "embed", "position", "norm.layernorm",
		"add_norm.layernorm", "act.gelu", "add", "loss", "norm_grad.layernorm", "bias_grad", "act_grad.gelu"};
	static const double coef[] = {3e-6, 1.5e-15, 1e-13, 0, 0}, x[] = {1e6, 1e9}, y[] = {1e-12, 1e-12};
	struct machine m;
	struct config c;
	struct program *p = NULL;
	struct timeline t = {0};
	struct result full, folded;
	struct profile *profile = profile_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(profile);
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:4 h100-sxm", 1, 0, &m, NULL), ST_OK);
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 4;
	for (size_t i = 0; i < COUNT(products); i++)
		CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, products[i], coef, 5, 0.04, NULL), ST_OK);
	for (size_t i = 0; i < COUNT(others); i++)
		CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, others[i], x, y, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "sms", 132, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "mem_Bps", 3e12, NULL), ST_OK);
	machine_attach_profile(&m, profile);
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "plan", NULL, 0, &c, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 4, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(predict(p, &m, &full, &t, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(fold_predict(&c, &m, &folded, NULL), ST_OK);
	CU_ASSERT_TRUE(full.n_warnings > 2 && full.n_warnings < RESULT_MAX_NOTES);
	CU_ASSERT_EQUAL(folded.n_warnings, full.n_warnings);
	for (size_t i = 0; i < full.n_warnings; i++) {
		bool said = false;
		for (size_t k = 0; k < folded.n_warnings; k++)
			said = said || strcmp(full.warning[i], folded.warning[k]) == 0;
		CU_ASSERT_TRUE(said);
	}
	timeline_free(&t);
	program_destroy(p);
	machine_free(&m);
	profile_destroy(profile);
}

/* A step too long to be simulated whole is as long as its micro-batches are many, and says that it was counted; the
 * report's program knows how many there are. */
static void test_long(void)
{
	double step_s[2];
	struct machine m;
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:1 h100-sxm", 1, 0, &m, NULL), ST_OK);
	for (int i = 0; i < 3; i++) {
		static const char *const more[] = {"train.global_batch=10500", "train.global_batch=15750",
			"train.global_batch=16384"};
		static const char text[] = "model: {layers: 4, hidden: 256, heads: 4, vocab: 512, seq_len: 128}\n"
					   "train: {micro_batch: 1, dtype: bf16}\nparallel: {strategy: none}\n";
		const char *sets[] = {more[i], "parallel.pipeline=2", "parallel.schedule=gpipe"};
		struct config c;
		struct program *p = NULL;
		struct timeline t = {0};
		struct result r;
		struct error e = {0};
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "plan", sets, i < 2 ? 1 : 3, &c, &e), ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&c, i < 2 ? 1 : 2, &e), ST_OK);
		CU_ASSERT_TRUE(fold_is_long(&c));
		enum status st = fold_step(&c, &m, &p, &r, &t, &e);
		CU_ASSERT_EQUAL_FATAL(st, i < 2 ? ST_OK : ST_INPUT);
		if (i == 2) {
			CU_ASSERT_PTR_NOT_NULL(strstr(e.text,
				"train.global_batch=16384: gpipe keeps 16384 micro-batches of 4 layers in flight"));
			continue;
		}
		step_s[i] = r.time.step_s;
		CU_ASSERT_EQUAL(p->config.micro_batches, c.micro_batches);
		CU_ASSERT_TRUE(t.spans.n < 10000);
		CU_ASSERT_PTR_NOT_NULL(strstr(r.warning[r.n_warnings - 1], "the rest counted"));
		timeline_free(&t);
		program_destroy(p);
	}
	CU_ASSERT_DOUBLE_EQUAL(step_s[1] / step_s[0], 1.5, 0.001);
	machine_free(&m);
}

UNIT_MAIN("fold", {"folded and full", test_folded}, {"pipelines", test_pipelines},
	{"as people have them", test_realistic}, {"what a profile lacks", test_guessed}, {"long steps", test_long})
