/* Plans put together from pieces are the full prediction's within 1 % of the step and, but for a few, 0.1 % of memory.
 */
#include "base/array.h"
#include "tests/property/rounds.h"
#include "tests/random.h"
#include "tests/unit/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/search/evaluate.h"
#include "topology/machine.h"

#define PLANS 200
#define STEP_ERROR 0.01
#define EXPERTS_ERROR 0.12 /* of a few plans with experts (of 2,400 plans 7, the worst 11.7 % off) */
#define MEMORY_ERROR 0.01
#define MEMORY_USUAL \
	0.001 /* but for a few, of short stages whose peak lies at another place in the schedule (of 1,600 plans 14, \
	         the worst 0.9 % off) */
#define UNUSUAL_MOST (PLANS / 50)

static const char *const systems[] = {"dgx-a100", "dgx-h100", "aws-p4d", "azure-nd-h100-v5"};
static const char *const models[] = {"layers: 24, hidden: 4096, heads: 32, vocab: 51200, seq_len: 2048",
	"layers: 16, hidden: 6144, heads: 48, vocab: 51200, seq_len: 2048, tied_embeddings: false",
	"layers: 16, hidden: 8192, heads: 64, kv_heads: 8, ffn_hidden: 28672, vocab: 128256, seq_len: 4096, mlp: "
	"swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false",
	/* windows in five of six layers, as in Gemma 3 */
	"layers: 36, hidden: 2560, heads: 8, kv_heads: 4, head_dim: 256, ffn_hidden: 10240, vocab: 65536, "
	"seq_len: 4096, mlp: geglu, norm: rmsnorm, position: rope, bias: false, qk_norm: head, branch_norm: sandwich, "
	"sliding_window: 1024, global_attention_every: 6",
	/* in every other layer, as in gpt-oss */
	"layers: 24, hidden: 2880, heads: 64, kv_heads: 8, head_dim: 64, ffn_hidden: 2880, vocab: 65536, "
	"seq_len: 4096, mlp: swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, "
	"sliding_window: 128, "
	"global_attention_every: 2, experts: 16, experts_per_token: 4",
	/* experts in every other layer, chunks and rope in three of four, as in Llama 4 Maverick */
	"layers: 36, hidden: 2048, heads: 16, kv_heads: 8, ffn_hidden: 6144, moe_ffn_hidden: 2048, vocab: 65536, "
	"seq_len: 4096, mlp: swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, "
	"sliding_window: 1024, window_kind: chunked, global_attention_every: 4, no_rope_every: 4, moe_layer_freq: 2, "
	"experts: 16, experts_per_token: 1, shared_experts: 1",
	/* dense layers first, and a further token, as in GLM-4.5 */
	"layers: 18, hidden: 2048, heads: 32, kv_heads: 8, head_dim: 128, ffn_hidden: 6144, moe_ffn_hidden: 1408, "
	"vocab: 65536, seq_len: 4096, mlp: swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: "
	"false, experts: 32, experts_per_token: 4, shared_experts: 1, first_dense_layers: 2, mtp_layers: 1",
	"layers: 16, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000, seq_len: 4096, mlp: "
	"swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, experts: 8, experts_per_token: 2",
	"layers: 24, hidden: 2048, heads: 32, kv_heads: 8, ffn_hidden: 768, vocab: 151936, seq_len: 4096, mlp: "
	"swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, experts: 64, experts_per_token: 8",
	"layers: 18, hidden: 2048, heads: 16, ffn_hidden: 8192, vocab: 102400, seq_len: 4096, mlp: swiglu, "
	"norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, experts: 64, experts_per_token: 6, "
	"shared_experts: 2, moe_ffn_hidden: 1408, first_dense_layers: 2"};
#define DENSE 4   /* of the models */
#define FURTHER 6 /* the one that predicts a further token */
static const char *const stacks[] = {"megatron-core", "pytorch-ddp", "megatron-deepspeed", "pytorch-fsdp", "nanotron",
	"deepspeed"};

static void random_plan(unsigned system, char *text, size_t size, int64_t *ranks)
{
	static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble"},
				 *const pipelined[] = {"ddp", "zero1"},
				 *const flat[] = {"ddp", "zero1", "zero2", "fsdp"};
	const unsigned tensor = 1u << random_below(4), pipeline = 1u << random_below(4), data = 1u << random_below(4),
		       schedule = pipeline > 1 ? random_below(4) : 1, micro = 1u << random_below(2);
	static const char *const recompute[] = {"none", "full", "selective, recompute_modules: [layernorm, core_attn]",
		"selective, recompute_modules: [mlp, layernorm, core_attn]"};
	const char *const strategy = data == 1      ? "none"
	                             : pipeline > 1 ? pipelined[random_below(2)]
	                                            : flat[random_below(4)];
	const unsigned any = random_below(COUNT(models)),
		       model = any == FURTHER && (schedule == 3 || strcmp(strategy, "fsdp") == 0) ? any + 1 : any,
		       expert = model < DENSE ? 1 : 1u << random_below(4), /* of at most the stage's ranks */
		experts = expert <= tensor * data ? expert : tensor * data;
	const unsigned virtual = schedule == 2 ? 2 : 1,
		       micros = pipeline * (1 + random_below(4)) * (schedule == 2 ? 1 : 1 + random_below(2));
	const unsigned waits = system % 2; /* for each step, on every other system */
	*ranks = (int64_t)tensor * pipeline * data;
	snprintf(text, size,
		"model: {%s}\n"
		"train: {stack: %s, dtype: bf16, micro_batch: %u, global_batch: %u, recompute: %s, sync_every: %u}\n"
		"parallel: {strategy: %s, tensor: %u, sequence_parallel: %s, pipeline: %u, virtual_stages: %u, "
		"schedule: %s, overlap: %s, expert: %u}\n",
		models[model], stacks[random_below(5)], micro, micro * data * micros,
		recompute[random_below(model < DENSE ? 4 : 3)], waits, strategy, tensor,
		tensor > 1 && random_below(2) ? "true" : "false", pipeline, virtual, schedules[schedule],
		data == 1 || random_below(3) ? "true" : "false", experts);
}

static bool predicted(const struct config *c, int64_t ranks, const char *system, struct result *out, struct error *e)
{
	struct config *full = malloc(sizeof *full);
	struct machine m;
	struct program *p = NULL;
	struct timeline t = {0};
	if (full)
		*full = *c;
	bool good = full && !machine_load(system, strncmp(system, "node:", 5) ? (ranks + 7) / 8 : 1, 0, &m, e);
	if (good && !strncmp(system, "node:", 5))
		m.nodes = (ranks + 7) / 8;
	if (good) {
		good = !config_resolve(full, ranks, e) && !program_build(full, &p, e) && !predict(p, &m, out, &t, e);
		machine_free(&m);
	}
	timeline_free(&t);
	program_destroy(p);
	free(full);
	return good;
}

static int unusual, unusual_step;

static void compare(struct evaluator *v, const char *text, int64_t ranks, const char *system, int *timed, int *folded)
{
	struct config *c = malloc(sizeof *c);
	struct result *full = calloc(1, sizeof *full);
	struct evaluation quick;
	struct error e = {0};
	if (config_parse(text, strlen(text), "plan", NULL, 0, c, &e) || evaluate_plan(v, c, ranks, &quick, &e)) {
		fprintf(stderr, "%s%s\n", text, e.text);
		CU_FAIL("a plan that cannot be evaluated");
	} else if (!predicted(c, ranks, system, full, &e)) {
		CU_ASSERT_FALSE(quick.legal);
	} else {
		const bool fits = quick.fits || full->memory.fits;
		const double memory = !fits ? 0 : (double)quick.memory_B / (double)full->memory.total_B - 1,
			     step = quick.fits ? quick.step_s / full->time.step_s - 1 : 0;
		*timed += quick.fits;
		*folded += quick.folded;
		unusual += fabs(memory) > MEMORY_USUAL;
		unusual_step += fabs(step) > STEP_ERROR;
		if (fabs(memory) > MEMORY_ERROR || fabs(step) > STEP_ERROR || getenv("ALL"))
			fprintf(stderr,
				"%s on %s, %lld ranks%s: step %.5g, predicted %.5g (%+.2f %%); memory %.5g GB, "
				"predicted %.5g (%+.3f %%)\n%s",
				quick.folded ? "folded" : "predicted", system, (long long)ranks,
				quick.fits ? "" : ", too large", quick.step_s, full->time.step_s, 100 * step,
				(double)quick.memory_B / 1e9, (double)full->memory.total_B / 1e9, 100 * memory, text);
		CU_ASSERT_TRUE(quick.legal);
		CU_ASSERT_TRUE(fits || (double)quick.memory_B <= (double)full->memory.total_B * (1 + MEMORY_ERROR));
		CU_ASSERT_TRUE(fabs(memory) <= MEMORY_ERROR);
		CU_ASSERT_TRUE(fabs(step) <= (c->model.experts > 0 ? EXPERTS_ERROR : STEP_ERROR));
	}
	free(full);
	free(c);
}

static void test_plans(void)
{
	const int each = PLANS / rounds_of(PLANS); /* of the same plans one in so many */
	int timed = 0, folded = 0, tried = 0;
	for (unsigned s = 0; s < COUNT(systems); s++) {
		struct machine m;
		struct evaluator *v = NULL;
		struct error e = {0};
		CU_ASSERT_EQUAL_FATAL(machine_load(systems[s], strncmp(systems[s], "node:", 5) ? 128 : 1, 0, &m, &e),
			ST_OK);
		CU_ASSERT_EQUAL_FATAL(evaluator_create(&m, &v, &e), ST_OK);
		for (int i = 0; i < PLANS / 4; i++) {
			char text[1024];
			int64_t ranks;
			random_plan(s, text, sizeof text, &ranks);
			if (i % each != 0)
				continue;
			compare(v, text, ranks, systems[s], &timed, &folded);
			tried++;
		}
		evaluator_destroy(v);
		machine_free(&m);
	}
	printf("(%d of %d fit) ", timed, tried);
	CU_ASSERT_TRUE(timed > tried / 4);
	CU_ASSERT_TRUE(unusual <= UNUSUAL_MOST);
	CU_ASSERT_TRUE(unusual_step <= UNUSUAL_MOST);
}

/* ---- keys of which each changes what a block has, keeps or sends ---- */

#define WAYS 120

static const char *const blocks[] = {
	/* experts of narrower rows, as in Nemotron 3 */
	"layers: 16, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000, seq_len: 4096, mlp: "
	"swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, experts: 16, "
	"experts_per_token: 4, moe_ffn_hidden: 2048, moe_latent: 1024",
	"layers: 16, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 4096, vocab: 65536, seq_len: 4096, mlp: "
	"swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, experts: 32, "
	"experts_per_token: 8, moe_ffn_hidden: 768, shared_experts: 1",
	/* Mamba, MLP and attention in turn, as in Nemotron-H */
	"layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, ffn_hidden: 16384, vocab: 131072, "
	"seq_len: 4096, mlp: squared_relu, norm: rmsnorm, position: none, bias: false, tied_embeddings: false, "
	"layer_pattern: 'M-*-', ssm_state: 128, ssm_heads: 128, ssm_groups: 8, ssm_chunk: 128",
	/* gated delta rules and experts, as in Qwen3-Next */
	"layers: 32, hidden: 2048, heads: 16, kv_heads: 8, head_dim: 128, ffn_hidden: 4096, vocab: 65536, "
	"seq_len: 4096, mlp: swiglu, norm: rmsnorm, position: rope, bias: false, tied_embeddings: false, "
	"experts: 32, experts_per_token: 8, moe_ffn_hidden: 512, shared_experts: 1, layer_pattern: 'GE*E', "
	"ssm_state: 128, ssm_heads: 32, ssm_head_dim: 128, ssm_groups: 16",
	/* with the ends as layers: 32 */
	"layers: 30, hidden: 4096, heads: 32, vocab: 51200, seq_len: 2048"};

static bool is_taken(const char *text, int64_t ranks)
{
	struct config *c = malloc(sizeof *c);
	struct error e = {0};
	const bool good = c && !config_parse(text, strlen(text), "plan", NULL, 0, c, &e) &&
	                  !config_resolve(c, ranks, &e);
	free(c);
	return good;
}

/* Draws until a plan is taken: not all keys go with all others. */
static void further_plan(char *text, size_t size, int64_t *ranks)
{
	static const char *const gates[] = {"auto", "result", "activation"}, *const ends[] = {"none", "both", "head"},
				 *const schedules[] = {"1f1b", "interleaved"},
				 *const strategies[] = {"ddp", "zero1", "fsdp"};
	do {
		const unsigned block = random_below(COUNT(blocks)), experts = strstr(blocks[block], "experts") != NULL,
			       tensor = 1u << random_below(3), pipeline = 1u << random_below(3),
			       data = 1u << random_below(3), schedule = pipeline > 1 ? random_below(2) : 0;
		char own[64] = "";
		if (experts)
			snprintf(own, sizeof own, ", expert_gates: %s", gates[random_below(3)]);
		*ranks = (int64_t)tensor * pipeline * data;
		snprintf(text, size,
			"model: {%s}\n"
			"train: {stack: %s, dtype: bf16, micro_batch: 4, global_batch: %u, recompute: %s, "
			"act_input_dtype: %s%s}\n"
			"parallel: {strategy: %s, data: %u, tensor: %u, sequence_parallel: %s, pipeline: %u, "
			"virtual_stages: %u, schedule: %s, count_ends: %s, expert: %u}\n",
			blocks[block], stacks[random_below(3)], 4 * data * pipeline * (1 + random_below(4)),
			random_below(2) ? "none" : "full", random_below(2) ? "fp8" : "auto", own,
			data > 1 ? strategies[random_below(pipeline > 1 ? 2 : 3)] : "none", data, tensor,
			tensor > 1 && random_below(2) ? "true" : "false", pipeline, schedule == 1 ? 2 : 1,
			schedules[schedule],
			block == COUNT(blocks) - 1 && pipeline > 1 ? ends[random_below(3)] : "auto",
			experts ? 1u << random_below(2) : 1);
	} while (!is_taken(text, *ranks));
}

/* Plans with these keys in turn, so that a piece whose key leaves one out is taken for another plan's. */
static void test_further_keys(void)
{
	struct machine m;
	struct evaluator *v = NULL;
	struct error e = {0};
	int timed = 0, folded = 0;
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 16, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(evaluator_create(&m, &v, &e), ST_OK);
	for (int i = 0; i < rounds_of(WAYS); i++) {
		char text[1536];
		int64_t ranks;
		further_plan(text, sizeof text, &ranks);
		compare(v, text, ranks, "dgx-h100", &timed, &folded);
	}
	evaluator_destroy(v);
	machine_free(&m);
	printf("(%d fit, %d folded) ", timed, folded);
	CU_ASSERT_TRUE(folded > rounds_of(WAYS) / 6);
}

/* It is predicted, not put together from pieces. */
static void is_predicted(const char *text, int64_t nodes, int64_t ranks)
{
	struct machine m;
	struct evaluator *v = NULL;
	struct error e = {0};
	int timed = 0, folded = 0;
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", nodes, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(evaluator_create(&m, &v, &e), ST_OK);
	compare(v, text, ranks, "dgx-h100", &timed, &folded);
	CU_ASSERT_EQUAL(timed, 1);
	CU_ASSERT_EQUAL(folded, 0);
	evaluator_destroy(v);
	machine_free(&m);
}

/* More stages than a walk holds. */
static void test_deep_pipeline(void)
{
	is_predicted("model: {layers: 288, hidden: 256, heads: 4, vocab: 1024, seq_len: 256}\n"
		     "train: {stack: megatron-core, micro_batch: 1, global_batch: 4}\n"
		     "parallel: {strategy: none, pipeline: 144}\n",
		18, 144);
}

/* Weights of more layers than there are, gathered ahead: no pieces of so many are measured, which would take minutes.
 */
static void test_all_ahead(void)
{
	is_predicted("model: {layers: 6, hidden: 2048, heads: 16, vocab: 32000, seq_len: 1024}\n"
		     "train: {stack: pytorch-fsdp, micro_batch: 4, global_batch: 64}\n"
		     "parallel: {strategy: fsdp, prefetch: 10000}\n",
		1, 8);
}

/* Where the parameters alone do not fit, a plan that does not fold has a lower bound of memory, or all of it where that
 * is asked for. */
static void test_parameters_alone(void)
{
	static const char text[] = "model: {preset: llama3-8b}\n"
				   "train: {stack: megatron-core, dtype: bf16, micro_batch: 1, global_batch: 8, "
				   "recompute: full, recompute_layers: 3}\n"
				   "parallel: {strategy: ddp, data: 8}\n";
	struct machine m;
	struct evaluator *v = NULL;
	struct config *c = malloc(sizeof *c);
	struct result *full = calloc(1, sizeof *full);
	struct evaluation bound, exact;
	struct error e = {0};
	CU_ASSERT_TRUE_FATAL(c && full);
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(evaluator_create(&m, &v, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "plan", NULL, 0, c, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(evaluate_plan(v, c, 8, &bound, &e), ST_OK);
	evaluator_exact_memory(v);
	CU_ASSERT_EQUAL_FATAL(evaluate_plan(v, c, 8, &exact, &e), ST_OK);
	CU_ASSERT_TRUE_FATAL(predicted(c, 8, "dgx-h100", full, &e));
	CU_ASSERT_TRUE(bound.legal && !bound.fits && !bound.folded && !exact.fits && !exact.folded);
	CU_ASSERT_TRUE(bound.memory_B > m.device.mem_B && bound.memory_B < exact.memory_B);
	CU_ASSERT_EQUAL(exact.memory_B, full->memory.total_B);
	evaluator_destroy(v);
	machine_free(&m);
	free(full);
	free(c);
}

static void evaluate_below(struct evaluator *v, const struct config *c, uint64_t below_B, struct evaluation *out)
{
	struct error e = {0};
	evaluator_time_below(v, below_B);
	CU_ASSERT_EQUAL_FATAL(evaluate_plan(v, c, 8, out, &e), ST_OK);
}

/* A plan of so much memory as another that is as fast needs no time: by a prediction's own memory, or well above it by
 * that of pieces, which may be off by 1 %. */
static void is_dominated_from(const char *parallel, bool folds)
{
	char text[512];
	struct machine m;
	struct evaluator *v = NULL;
	struct config *c = malloc(sizeof *c);
	struct evaluation all, at, above, far_below;
	struct error e = {0};
	snprintf(text, sizeof text,
		"model: {preset: llama3-8b}\n"
		"train: {stack: megatron-core, micro_batch: 1, global_batch: 32, recompute: full}\n"
		"parallel: {strategy: ddp, %s}\n",
		parallel);
	CU_ASSERT_TRUE_FATAL(c != NULL);
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(evaluator_create(&m, &v, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "plan", NULL, 0, c, &e), ST_OK);
	evaluate_below(v, c, UINT64_MAX, &all);
	evaluate_below(v, c, all.memory_B, &at);
	evaluate_below(v, c, all.memory_B + 1, &above);
	evaluate_below(v, c, all.memory_B / 100 * 98, &far_below);
	CU_ASSERT_TRUE(all.fits && all.folded == folds && all.step_s > 0 && !all.dominated);
	CU_ASSERT_EQUAL(at.dominated, !folds);
	CU_ASSERT_TRUE(at.step_s == (folds ? all.step_s : 0));
	CU_ASSERT_TRUE(!above.dominated && above.step_s == all.step_s && above.memory_B == all.memory_B);
	CU_ASSERT_TRUE(far_below.legal && far_below.fits && far_below.dominated && far_below.step_s == 0);
	evaluator_destroy(v);
	machine_free(&m);
	free(c);
}

static void test_dominated(void)
{
	is_dominated_from("tensor: 4, pipeline: 2, schedule: zero_bubble", false);
	is_dominated_from("tensor: 8", true);
	is_dominated_from("tensor: 4, pipeline: 2", true);
}

/* Gradients of a layer are, from its last parameter on, 4, 4, 1 and 3 times those of a matrix [4096, 4096], 33.6 MB.
 * Buckets of at least 7 of them take 8: they begin at the last parameter of every other layer. Buckets of at least 11
 * take 12, a layer. Buckets of at least 13 take 16, 16, 13 and 15: they begin there in every fifth layer. */
static void spans(const char *parallel, const char *bucket, bool folds)
{
	char text[512];
	int timed = 0, folded = 0;
	struct machine m;
	struct evaluator *v = NULL;
	struct error e = {0};
	snprintf(text, sizeof text,
		"model: {layers: 17, hidden: 4096, heads: 32, vocab: 51200, seq_len: 2048}\n"
		"train: {stack: megatron-core, dtype: bf16, micro_batch: 1, global_batch: 32}\n"
		"parallel: {%s, bucket_mb: %s}\n",
		parallel, bucket);
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(evaluator_create(&m, &v, &e), ST_OK);
	compare(v, text, 8, "dgx-h100", &timed, &folded);
	CU_ASSERT_EQUAL(timed, 1);
	CU_ASSERT_EQUAL(folded, folds);
	evaluator_destroy(v);
	machine_free(&m);
}

static void test_spanning(void)
{
	static const char *const parallel[] = {"strategy: zero1", "strategy: zero2", "strategy: zero2, overlap: false"};
	for (size_t i = 0; i < COUNT(parallel); i++) {
		spans(parallel[i], "235MB", true);
		spans(parallel[i], "369MB", true);
		spans(parallel[i], "436MB", false);
	}
	spans("strategy: zero1, overlap: false", "436MB", true); /* one bucket */
}

UNIT_MAIN("evaluate", {"parameters alone", test_parameters_alone}, {"dominated", test_dominated}, {"plans", test_plans},
	{"further keys", test_further_keys}, {"deep_pipeline", test_deep_pipeline}, {"all_ahead", test_all_ahead},
	{"spanning", test_spanning})
