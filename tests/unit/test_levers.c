/* Levers that no config accepts would be passed over in silence: each has a case here in which it is a legal change. */
#include "base/array.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"

#include <stdlib.h>
#include <string.h>

#include "sim/advise/advise.h"
#include "sim/advise/levers.h"

struct example {
	const char *text, *system;
	int64_t nodes;
	bool fits;
};

static const struct example examples[] = {
	{"model: {layers: 4, hidden: 400, heads: 4, ffn_hidden: 1001, vocab: 50257, seq_len: 256}\n"
	 "train: {stack: pytorch-ddp-eager, dtype: fp32, fused: false, attention: naive, recompute: full, "
	 "global_batch: 64, micro_batch: 1, sync_every: 1, launch_blocking: true}\n"
	 "data: {load_time: 10ms, workers: 1, prefetch: 0, pin_memory: false}\n"
	 "parallel: {strategy: ddp, overlap: false, bucket_mb: 1}\n",
		"dgx-h100", 1, true},
	{"model: {preset: gpt2-124m}\ntrain: {dtype: bf16, global_batch: 64, micro_batch: 2}\n"
	 "parallel: {strategy: ddp}\n",
		"dgx-h100", 1, true},
	{"model: {preset: gpt2-124m}\ntrain: {dtype: fp32, global_batch: 64, micro_batch: 2}\n"
	 "parallel: {strategy: ddp}\n",
		"dgx-1-v100", 1, true},
	{"model: {preset: llama3-8b}\ntrain: {stack: pytorch-fsdp, dtype: bf16, global_batch: 64, micro_batch: 1}\n"
	 "parallel: {strategy: fsdp, prefetch: 0}\n",
		"dgx-h100", 2, true},
	{"model: {preset: llama3-8b}\ntrain: {stack: nanotron, dtype: bf16, global_batch: 64, micro_batch: 2}\n"
	 "parallel: {strategy: ddp, tensor: 4, context: 2, data: 2}\ncollectives: {algorithm: tree}\n",
		"dgx-h100", 2, true},
	{"model: {preset: llama3-8b}\ntrain: {stack: megatron-core, dtype: bf16, global_batch: 64, micro_batch: 4}\n"
	 "parallel: {strategy: ddp, pipeline: 4, layers_per_stage: [9, 8, 8, 7]}\n",
		"dgx-h100", 2, true},
	{"model: {preset: llama3-70b}\ntrain: {stack: nanotron, dtype: bf16, global_batch: 64, micro_batch: 4}\n"
	 "parallel: {strategy: ddp, tensor: 8}\n",
		"dgx-h100", 2, false},
	{"model: {preset: mixtral-8x7b, layers: 2}\ntrain: {stack: pytorch-fsdp-eager, dtype: bf16, global_batch: 16, "
	 "micro_batch: 1, expert_loop: true}\nparallel: {strategy: fsdp}\n",
		"dgx-h100", 2, true},
};

static void load(const struct example *x, const struct advice_row *row, struct config *c, enum status *st,
	struct error *e)
{
	const char *sets[ADVICE_SETS];
	for (size_t i = 0; row && i < row->n_sets; i++)
		sets[i] = row->set[i];
	*st = config_parse(x->text, strlen(x->text), "example", sets, row ? row->n_sets : 0, c, e);
	c->node_ranks = 8;
	if (!*st)
		*st = config_resolve(c, 8 * x->nodes, e);
}

/* Marks the levers of which some variant is accepted, and fails on a text that no config could accept. */
static void try_levers(const struct example *x, bool *alive)
{
	struct machine m;
	struct error e = {0};
	struct config *c = malloc(sizeof *c), *changed = malloc(sizeof *changed);
	enum status st;
	CU_ASSERT_EQUAL_FATAL(machine_load(x->system, x->nodes, 0, &m, &e), ST_OK);
	load(x, NULL, c, &st, &e);
	if (st)
		fprintf(stderr, "%s\n%s\n", x->text, e.text);
	CU_ASSERT_EQUAL_FATAL(st, ST_OK);
	const struct lever_case k = {.c = c, .m = &m, .fits = x->fits, .mesh_is_free = true};
	for (size_t l = 0; l < n_levers; l++) {
		struct advice_row row = {0};
		for (int i = 0; lever_variant(&levers[l], &k, i, &row); i++, row = (struct advice_row){0}) {
			struct error refused = {0};
			CU_ASSERT_FATAL(i < 16 && row.n_sets > 0 && row.n_sets <= ADVICE_SETS);
			load(x, &row, changed, &st, &refused);
			CU_ASSERT_PTR_NULL(strstr(refused.text, "unknown"));
			CU_ASSERT_PTR_NULL(strstr(refused.text, "expected"));
			alive[l] = alive[l] || (!st && memcmp(c, changed, offsetof(struct config, origin)) != 0);
		}
	}
	machine_free(&m);
	free(c);
	free(changed);
}

static void test_alive(void)
{
	bool *alive = calloc(n_levers, sizeof *alive);
	for (size_t i = 0; i < COUNT(examples); i++)
		try_levers(&examples[i], alive);
	for (size_t l = 0; l < n_levers; l++) {
		if (!alive[l])
			fprintf(stderr, "no example accepts: %s\n", levers[l].what);
		CU_ASSERT(alive[l]);
		CU_ASSERT(levers[l].stage >= 0 && levers[l].stage < WORK_STAGES && levers[l].symptoms < 2 * LEVER_FITS);
	}
	free(alive);
}

/* Advice on cores leaves out levers that do not exist there: formats, graphs, other stacks. */
static void test_cores(void)
{
	static const char *const unreal[] = {"train.dtype", "train.cuda_graph", "train.stack", "train.param_dtype",
		"train.reduce_dtype", "train.optimizer_bits", "parallel.tensor_overlap",
		"parallel.tensor=", "parallel.pipeline="};
	struct machine cores = {.nodes = 1, .devices_per_node = 2, .device = {.is_host = true}};
	struct config *c = malloc(sizeof *c);
	struct error e = {0};
	enum status st;
	load(&examples[0], NULL, c, &st, &e);
	CU_ASSERT_EQUAL_FATAL(st, ST_OK);
	const struct lever_case k = {.c = c, .m = &cores, .fits = true};
	for (size_t l = 0; l < n_levers; l++) {
		struct advice_row row = {0};
		for (int i = 0; lever_variant(&levers[l], &k, i, &row); i++, row = (struct advice_row){0})
			for (size_t s = 0; s < row.n_sets; s++)
				for (size_t u = 0; u < COUNT(unreal); u++)
					CU_ASSERT_NOT_EQUAL(strncmp(row.set[s], unreal[u], strlen(unreal[u])), 0);
	}
	free(c);
}

/* ---- the symptom ---- */

static void diagnosed(const char *model_and_train, enum dtype dtype, struct breakdown t, double host_thread_s,
	enum bound gemm, enum symptom expected)
{
	struct program *p = calloc(1, sizeof *p);
	struct result *r = calloc(1, sizeof *r);
	struct machine m = {.device = {.matrix_flop_per_s = {[DT_FP32] = 1e12, [DT_BF16] = 8e12}},
		.parameters = read_constants()};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(config_parse(model_and_train, strlen(model_and_train), "symptom", NULL, 0, &p->config,
				      &e),
		ST_OK);
	p->config.train.dtype = dtype;
	r->time = t;
	r->time.class_s[CLASS_GEMM] = t.compute_s;
	r->class_bound[CLASS_GEMM] = gemm;
	r->host_thread_s = host_thread_s;
	CU_ASSERT_EQUAL(diagnose(p, &m, r), expected);
	free(p);
	free(r);
}

static void test_symptoms(void)
{
	static const char plain[] = "model: {layers: 1}\n", fed[] = "model: {layers: 1}\ndata: {load_time: 1ms}\n",
			  drained[] = "model: {layers: 1}\ntrain: {sync_every: 1}\n";
	diagnosed(fed, DT_BF16, (struct breakdown){.step_s = 1, .compute_s = 0.5, .host_s = 0.5}, 0, BOUND_COMPUTE,
		SYMPTOM_DATA);
	diagnosed(drained, DT_BF16, (struct breakdown){.step_s = 1, .compute_s = 0.8, .idle_s = 0.2}, 0, BOUND_COMPUTE,
		SYMPTOM_SYNC);
	diagnosed(plain, DT_BF16, (struct breakdown){.step_s = 1, .compute_s = 0.4, .idle_s = 0.6}, 1, BOUND_COMPUTE,
		SYMPTOM_LAUNCH);
	diagnosed(plain, DT_BF16, (struct breakdown){.step_s = 1, .compute_s = 0.7, .exposed_comm_s = 0.3}, 0,
		BOUND_COMPUTE, SYMPTOM_COMM);
	diagnosed(plain, DT_BF16,
		(struct breakdown){.step_s = 1, .compute_s = 0.6, .bubble_s = 0.3, .exposed_comm_s = 0.1}, 0,
		BOUND_COMPUTE, SYMPTOM_BUBBLE);
	diagnosed(plain, DT_FP32, (struct breakdown){.step_s = 1, .compute_s = 1}, 0, BOUND_COMPUTE, SYMPTOM_DTYPE);
	diagnosed(plain, DT_BF16, (struct breakdown){.step_s = 1, .compute_s = 1}, 0, BOUND_MEMORY, SYMPTOM_MEMORY);
	diagnosed(plain, DT_BF16, (struct breakdown){.step_s = 1, .compute_s = 0.95, .exposed_comm_s = 0.05}, 0,
		BOUND_COMPUTE, SYMPTOM_COMPUTE);
}

UNIT_MAIN("levers", {"each is a legal change somewhere", test_alive}, {"on cores what is real there", test_cores},
	{"symptoms", test_symptoms})
