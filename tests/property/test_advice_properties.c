/* Checks properties of elasticities and limits that hold for all figures, also on machines that differ from real ones.
 */
#include "base/array.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/rates.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sim/advise/advise.h"
#include "sim/price/cost.h"

/* Picoseconds are whole, and a change of rates may change what runs beside what. */
#define TINY 1e-3
#define SUM_SLACK 0.02

static const char *const plans[] = {
	"model: {preset: gpt2-350m, layers: 4}\ntrain: {dtype: bf16, global_batch: 64, micro_batch: 4}\n"
	"parallel: {strategy: ddp}",
	"model: {preset: gpt2-350m, layers: 4}\ntrain: {dtype: bf16, global_batch: 64, micro_batch: 4, sync_every: 1}\n"
	"parallel: {strategy: zero1, overlap: false}",
	"model: {preset: gpt2-124m, layers: 4}\n"
	"train: {stack: pytorch-ddp-eager, dtype: fp32, fused: false, attention: naive, global_batch: 32, micro_batch: "
	"1}\nparallel: {strategy: zero2}",
	"model: {preset: llama3-8b, layers: 4}\n"
	"train: {stack: pytorch-fsdp, dtype: bf16, global_batch: 16, micro_batch: 1}\nparallel: {strategy: fsdp}",
	"model: {preset: llama3-8b, layers: 4}\n"
	"train: {stack: megatron-core, dtype: bf16, global_batch: 16, micro_batch: 1}\n"
	"parallel: {strategy: zero1, tensor: 4, sequence_parallel: true}",
	"model: {preset: llama3-8b, layers: 4}\n"
	"train: {stack: megatron-core, dtype: bf16, global_batch: 64, micro_batch: 1}\n"
	"parallel: {strategy: ddp, pipeline: 4}",
	"model: {preset: gpt2-124m, layers: 2}\ntrain: {dtype: bf16, global_batch: 32, micro_batch: 2}\n"
	"data: {load_time: 20ms, workers: 2}\nparallel: {strategy: ddp}",
};
static const struct {
	const char *system;
	int64_t nodes;
} systems[] = {{"dgx-h100", 1}, {"dgx-a100", 2}, {"server-8xl40s", 1}};

static struct program *build(const char *text, int64_t ranks)
{
	struct config *c = malloc(sizeof *c);
	struct error e = {0};
	struct program *p = NULL;
	if (config_parse(text, strlen(text), "property.yaml", NULL, 0, c, &e) || config_resolve(c, ranks, &e) ||
		program_build(c, &p, &e)) {
		fprintf(stderr, "%s\n%s\n", text, e.text);
		CU_FAIL_FATAL("the config");
	}
	free(c);
	return p;
}

static double step_by(const struct program *p, const struct rates *rates)
{
	struct timeline t = {0};
	struct error e = {0};
	double host_s;
	CU_ASSERT_EQUAL_FATAL(predict_timeline(p, rates, NULL, &t, &host_s, &e), ST_OK);
	const double step = (double)t.step_ps * 1e-12;
	timeline_free(&t);
	return step;
}

static double step_s(const struct program *p, const struct machine *m) { return step_by(p, RATES(m)); }

static void check_sums(const struct program *p, const struct machine *m)
{
	struct advice *a = calloc(1, sizeof *a);
	struct error e = {0};
	const double step = step_s(p, m);
	double sum = 0;
	CU_ASSERT_EQUAL_FATAL(sensitivities(p, m, step, a, &e), ST_OK);
	CU_ASSERT(a->n_sensitivity >= 4 && a->n_sensitivity <= SENSITIVITIES);
	for (size_t i = 0; i < a->n_sensitivity; i++) {
		const struct sensitivity *s = &a->sensitivity[i];
		CU_ASSERT(s->limit_s > 0 && s->limit_s <= step * (1 + TINY));
		if (isnan(s->elasticity))
			continue;
		CU_ASSERT(s->elasticity >= -TINY);
		/* A tenth less of a part cannot gain more than the part. */
		CU_ASSERT(s->saves_s <= step - s->limit_s + TINY * step);
		sum += s->elasticity;
	}
	if (sum > 1 + SUM_SLACK)
		fprintf(stderr, "the elasticities add up to %.4f on %s\n", sum, m->name);
	CU_ASSERT(sum <= 1 + SUM_SLACK);
	free(a);
}

static void test_sums(void)
{
	for (size_t s = 0; s < COUNT(systems); s++) {
		struct machine m;
		struct error e = {0};
		CU_ASSERT_EQUAL_FATAL(machine_load(systems[s].system, systems[s].nodes, 0, &m, &e), ST_OK);
		for (size_t i = 0; i < COUNT(plans); i++) {
			struct program *p = build(plans[i], 8 * systems[s].nodes);
			check_sums(p, &m);
			program_destroy(p);
		}
		machine_free(&m);
	}
}

/* Nothing but arithmetic and memory, large enough that kernels hardly start and launches are early: the two make up the
 * step. */
static void test_roofline(void)
{
	struct machine m;
	struct error e = {0};
	struct advice *a = calloc(1, sizeof *a);
	struct program *p =
		build("model: {preset: llama3-8b, layers: 4}\ntrain: {dtype: bf16, global_batch: 2, micro_batch: 2}\n"
		      "parallel: {strategy: none}",
			1);
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:1 h100-sxm", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(sensitivities(p, &m, step_s(p, &m), a, &e), ST_OK);
	double sum = 0;
	for (size_t i = 0; i < a->n_sensitivity; i++)
		sum += a->sensitivity[i].elasticity;
	CU_ASSERT_EQUAL(a->n_sensitivity, 3);
	CU_ASSERT(sum > 0.95 && sum < 1.01);
	CU_ASSERT(a->sensitivity[0].elasticity > 0.5 && a->sensitivity[1].elasticity > 0.05);
	program_destroy(p);
	machine_free(&m);
	free(a);
}

/* ---- a machine that differs ---- */

static void test_as_it_is(void)
{
	const struct what_if none = {0}, ones = {1, 1, 1, 1, 1, 1};
	struct machine m;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-a100", 2, 0, &m, &e), ST_OK);
	for (size_t i = 0; i < COUNT(plans); i++) {
		struct program *p = build(plans[i], 16);
		const struct rates same = rates_what_if(&m, &none), times_one = rates_what_if(&m, &ones);
		CU_ASSERT_EQUAL(step_by(p, &same), step_s(p, &m));
		CU_ASSERT_DOUBLE_EQUAL(step_by(p, &times_one), step_s(p, &m), 1e-9 * step_s(p, &m));
		program_destroy(p);
	}
	machine_free(&m);
}

/* Each part by itself, and all of communication by its three parts. */
static void test_collectives(void)
{
	static const double sizes[] = {1e3, 1e6, 1e9};
	static const struct {
		const char *system;
		int64_t nodes, size;
	} groups[] = {{"dgx-h100", 1, 8}, {"dgx-h100", 4, 32}, {"dgx-a100", 2, 16}, {"server-8xl40s", 2, 16},
		{"azure-nc-a100-v4", 1, 4}};
	const struct what_if inside = {.inside = 2}, network = {.network = 2}, latency = {.latency = 0.5},
			     all = {.inside = 2, .network = 2, .latency = 0.5};
	for (size_t g = 0; g < COUNT(groups); g++) {
		struct machine m;
		struct error e = {0};
		CU_ASSERT_EQUAL_FATAL(machine_load(groups[g].system, groups[g].nodes, 0, &m, &e), ST_OK);
		const struct rates by_inside = rates_what_if(&m, &inside), by_network = rates_what_if(&m, &network),
				   by_latency = rates_what_if(&m, &latency), by_all = rates_what_if(&m, &all);
		for (int c = 0; c < COLL_OF_GROUPS; c++)
			for (size_t s = 0; s < COUNT(sizes); s++) {
				const double t = collective_time_s(RATES(&m), (enum collective)c, groups[g].size, 1,
					sizes[s], NULL);
				const double i = collective_time_s(&by_inside, (enum collective)c, groups[g].size, 1,
						     sizes[s], NULL),
					     n = collective_time_s(&by_network, (enum collective)c, groups[g].size, 1,
						     sizes[s], NULL);
				const double l = collective_time_s(&by_latency, (enum collective)c, groups[g].size, 1,
						     sizes[s], NULL),
					     a = collective_time_s(&by_all, (enum collective)c, groups[g].size, 1,
						     sizes[s], NULL);
				CU_ASSERT(i <= t * (1 + 1e-12) && n <= t * (1 + 1e-12) && l < t);
				CU_ASSERT(a <= fmin(i, fmin(n, l)) * (1 + 1e-12) && a >= t / 2 * (1 - 1e-12));
				CU_ASSERT(groups[g].nodes > 1 || n == t);
			}
		machine_free(&m);
	}
}

/* Two ranks of a host whose products, norms and all-reduces were measured; the rest is priced from its rates. On cores
 * nothing starts early: all of the step is one of the parts. */
static void test_cores(void)
{
	static const double gemm[] = {2e-6, 1e-11, 1e-10, 1e-10, 2e-10}, bytes[] = {1e3, 1e5, 1e7, 1e9},
			    reduce_s[] = {2e-5, 1e-4, 5e-3, 5e-1}, norm_s[] = {1e-9, 1e-9, 2e-9, 2e-9};
	static const char *const products[] = {"gemm.nn", "gemm.nt", "gemm.tn"};
	struct profile *profile = profile_create();
	struct machine m = {.parameters = read_constants(),
		.name = "cores",
		.nodes = 1,
		.devices_per_node = 2,
		.intra = {1e-5, 2e9},
		.inter = {1e-5, 2e9}};
	struct advice *a = calloc(1, sizeof *a);
	struct error e = {0};
	double sum = 0;
	m.device = (struct device_spec){.is_host = true,
		.vector_flop_per_s = 50e9,
		.mem_Bps = 10e9,
		.mem_B = 8000000000,
		.mem_share = 1,
		.gemm_share = 1,
		.launch_s = 2e-6};
	m.device.matrix_flop_per_s[DT_FP32] = 100e9;
	profile->key = (struct profile_key){.ranks = 2, .ranks_per_host = 2, .cores_per_rank = 1};
	for (size_t i = 0; i < COUNT(products); i++)
		CU_ASSERT_EQUAL(profile_set_fit(profile, products[i], gemm, COUNT(gemm), 0.05, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_curve(profile, "norm.layernorm", bytes, norm_s, COUNT(bytes), &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_curve(profile, "all_reduce.2", bytes, reduce_s, COUNT(bytes), &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_value(profile, "call_s", 2e-6, &e), ST_OK);
	m.profile = profile;
	struct program *p = build(
		"model: {layers: 2, hidden: 128, heads: 4, vocab: 512, seq_len: 64}\n"
		"train: {dtype: fp32, global_batch: 8, micro_batch: 2}\nparallel: {strategy: ddp, overlap: false}",
		2);
	check_sums(p, &m);
	CU_ASSERT_EQUAL(sensitivities(p, &m, step_s(p, &m), a, &e), ST_OK);
	for (size_t i = 0; i < a->n_sensitivity; i++)
		if (!isnan(a->sensitivity[i].elasticity)) {
			CU_ASSERT(a->sensitivity[i].elasticity > 1e-4);
			sum += a->sensitivity[i].elasticity;
		}
	CU_ASSERT_EQUAL(a->n_sensitivity, 6); /* compute, memory, inside, latency, calls; all communication */
	CU_ASSERT_DOUBLE_EQUAL(sum, 1, 0.03); /* where two roofs nearly meet, a tenth more of one gains less */
	program_destroy(p);
	profile_destroy(profile);
	free(a);
}

/* ---- the budget ---- */

static void advised(const char *text, const struct program *p, const struct machine *m, int64_t budget_ops,
	struct advice *out)
{
	struct result *r = malloc(sizeof *r);
	struct timeline t = {0};
	struct error e = {0};
	struct config_reader *reader;
	CU_ASSERT_EQUAL_FATAL(predict(p, m, r, &t, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_reader_create(text, strlen(text), "test", &reader, &e), ST_OK);
	const struct advise_case a = {.reader = reader,
		.program = p,
		.machine = m,
		.predicted = r,
		.budget_ops = budget_ops};
	if (advise(&a, out, &e))
		fprintf(stderr, "%s\n", e.text);
	CU_ASSERT_EQUAL_FATAL(e.status, ST_OK);
	config_reader_destroy(reader);
	timeline_free(&t);
	free(r);
}

static const struct advice_row *row_with(const struct advice *a, const struct advice_row *like)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->row[i].n_sets == like->n_sets && memcmp(a->row[i].set, like->set, sizeof like->set) == 0)
			return &a->row[i];
	return NULL;
}

/* Lets this process use one of its cores, or all that it had. */
static void on_one_core(bool one)
{
	static cpu_set_t all;
	cpu_set_t some;
	if (one)
		CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&some);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && CPU_COUNT(&some) == 0)
			CPU_SET(i, &some);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof all, one ? &some : &all), 0);
}

/* With no budget at all what folds is estimated, and near what a full prediction says; with some, the best are
 * predicted; nothing depends on when it is asked, or on how many cores. */
static void test_budget(void)
{
	static const char text[] =
		"model: {preset: llama3-8b, layers: 16}\n"
		"train: {stack: megatron-core, dtype: bf16, param_dtype: bf16, master_weights: true, global_batch: "
		"128, micro_batch: 1, recompute: full}\n"
		"parallel: {strategy: ddp, tensor: 4, bucket_mb: 25}\ncluster: {system: dgx-h100, nodes: 2}\n";
	struct machine m;
	struct error e = {0};
	struct advice *full = calloc(1, sizeof *full), *none = calloc(1, sizeof *none), *some = calloc(1, sizeof *some),
		      *again = calloc(1, sizeof *again);
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 2, 0, &m, &e), ST_OK);
	struct program *p = build(text, 16);
	const double step = step_s(p, &m);
	int matched = 0, exact = 0;
	advised(text, p, &m, INT64_MAX, full);
	advised(text, p, &m, 0, none);
	advised(text, p, &m, 3 * (int64_t)p->roles[0].ops.n, some);
	on_one_core(true);
	advised(text, p, &m, 3 * (int64_t)p->roles[0].ops.n, again);
	on_one_core(false);
	CU_ASSERT(full->n > 2 && full->untried == 0 && none->untried > 0 && none->n > 0);
	CU_ASSERT_EQUAL(full->tried, none->tried + none->untried);
	for (size_t i = 0; i < full->n; i++)
		CU_ASSERT(!full->row[i].estimated && full->row[i].saves_s >= m.parameters->advise.least_saving * step &&
			  (i == 0 || full->row[i].saves_s <= full->row[i - 1].saves_s));
	for (size_t i = 0; i < none->n; i++) {
		const struct advice_row *same = row_with(full, &none->row[i]);
		CU_ASSERT(none->row[i].estimated);
		if (same) {
			CU_ASSERT_DOUBLE_EQUAL(none->row[i].step_s, same->step_s, 0.015 * step);
			matched++;
		}
	}
	for (size_t i = 0; i < some->n; i++) {
		const struct advice_row *same = row_with(full, &some->row[i]);
		exact += !some->row[i].estimated;
		CU_ASSERT(some->row[i].estimated || (same && same->step_s == some->row[i].step_s));
	}
	CU_ASSERT(matched > 1 && exact >= 1);
	CU_ASSERT_EQUAL(memcmp(some, again, sizeof *some), 0);
	program_destroy(p);
	machine_free(&m);
	free(full);
	free(none);
	free(some);
	free(again);
}

UNIT_MAIN("advice", {"budget", test_budget}, {"cores", test_cores}, {"elasticities", test_sums},
	{"roofline", test_roofline}, {"as it is", test_as_it_is}, {"collectives", test_collectives})
