/* A pipeline's program, its check and its prediction when memory runs out: an error each time, and nothing left behind.
 */
#include "tests/unit/constants.h"
#include "tests/unit/failing_malloc.h"
#include "tests/unit/machines.h"

#include "base/array.h"
#include "sim/engine/predict.h"
#include "sim/price/collective.h"

static struct config config;
static struct machine machine = {.name = "node",
	.nodes = 1,
	.devices_per_node = 8,
	.intra = {4e-6, 100e9},
	.inter = {10e-6, 25e9}};

static double step_s; /* of the last prediction that was made */

static enum status predicted(struct error *e)
{
	struct program *p = NULL;
	struct result r;
	struct timeline t = {0};
	enum status st = program_build(&config, &p, e);
	if (!st)
		st = program_check(p, e);
	if (!st)
		st = predict(p, &machine, &r, &t, e);
	if (!st)
		step_s = r.time.step_s;
	timeline_free(&t);
	program_destroy(p);
	return st;
}

/* qsort does without the memory that it asks for: a failure may go unnoticed, if the result is the same. */
static void fail_each_or_do_without(void)
{
	struct error none = {0};
	CU_ASSERT_EQUAL_FATAL(predicted(&none), ST_OK);
	double expected_s = step_s;
	long failures = 0, unnoticed = 0;
	for (bool reached = true; reached; failures++) {
		struct error e = {0};
		long before = atomic_load(&live);
		atomic_store(&until_fails, failures + 1);
		enum status st = predicted(&e);
		reached = atomic_exchange(&until_fails, 0) < 1;
		CU_ASSERT_EQUAL(atomic_load(&live), before);
		if (st == ST_OK) {
			CU_ASSERT_EQUAL(step_s, expected_s);
			unnoticed += reached;
		} else {
			CU_ASSERT(st == ST_RUN && e.status == ST_RUN && strstr(e.text, "out of memory") == e.text);
		}
	}
	CU_ASSERT(failures > 100 && unnoticed <= 4);
}

static void test_predict(void)
{
	static const char text[] = "model: {layers: 4, hidden: 64, heads: 4, vocab: 128, seq_len: 32}\n"
				   "train: {global_batch: 8, micro_batch: 1, dtype: bf16}\n"
				   "parallel: {strategy: zero1, pipeline: 2, data: 2}\n";
	static const char *const sets[][2] = {{"parallel.schedule=zero_bubble", "parallel.virtual_stages=1"},
		{"parallel.schedule=interleaved", "parallel.virtual_stages=2"},
		{"parallel.schedule=zbv", "parallel.virtual_stages=2"}};
	struct error e = {0};
	machine.parameters = read_constants();
	machine.device = round_gpu();
	for (int i = 0; i < 3 && allocator_is_ours(); i++) {
		CU_ASSERT_EQUAL_FATAL(config_parse(text, sizeof text - 1, "nomem.yaml", sets[i], 2, &config, &e),
			ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&config, 4, &e), ST_OK);
		fail_each_or_do_without();
	}
}

/* A price looks the links of its groups up. Without memory for that there is no price, and none of a simpler model. */
static void test_prices(void)
{
	static const struct collective_choice forced[] = {{ALGO_AUTO, PROTO_AUTO}, {ALGO_HIERARCHICAL, PROTO_AUTO}};
	const struct parameters *parameters = read_constants();
	for (size_t i = 0; i < COUNT(forced) && allocator_is_ours(); i++) {
		double expected_s = 0;
		long at = 0, refused = 0;
		for (bool reached = true; reached; at++) {
			struct machine m;
			struct error e = {0};
			CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 4, 0, &m, &e), ST_OK);
			m.parameters = parameters;
			const struct rates r = rates_of(&m);
			atomic_store(&until_fails, at);
			const double s = collective_price(&r, COLL_ALL_REDUCE, 32, 1, forced[i], 1e8, &e).time_s;
			reached = atomic_exchange(&until_fails, 0) < 1;
			machine_free(&m);
			expected_s = at == 0 ? s : expected_s;
			if (e.status) {
				CU_ASSERT(isinf(s) && e.status == ST_RUN && strstr(e.text, "out of memory") == e.text);
				refused++;
			} else {
				CU_ASSERT_EQUAL(s, expected_s);
			}
		}
		CU_ASSERT(isfinite(expected_s) && refused > 20);
	}
}

UNIT_MAIN("pipeline_nomem", {"build, check and predict", test_predict}, {"prices of collectives", test_prices})
