/* Tests the JSON and the trace of an outcome made by hand: every key that the interface promises, a trace that can be
 * read back. */
#include "base/array.h"
#include "harness.h"
#include "report_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/figures.h"
#include "report/report.h"

static const char *const result_keys[] = {"step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu",
	"mfu", "hfu", "mfu_convention", "compute_s", "exposed_comm_s", "copy_s", "host_s", "bubble_s", "optimizer_s",
	"idle_s", "comm_s", "overlap", "wait_s", "interval90_s", "memory", "by_class", "bottleneck", "advice",
	"warnings"};
static const char *const memory_keys[] = {"total_bytes", "weights_bytes", "gradients_bytes", "optimizer_bytes",
	"activations_bytes", "buffers_bytes", "overhead_bytes", "capacity_bytes", "fits"};
static const char *const measured_keys[] = {"steps", "step_time_min_s", "step_time_max_s", "verified"};
static const char *const comparison_keys[] = {"step_time_error", "exposed_comm_error", "overlap_error", "by_class"};

static void expect_keys(const json_t *o, const char *const *keys, size_t n)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	for (size_t i = 0; i < n; i++) {
		if (!json_object_get(o, keys[i])) {
			printf("\n  key %s is missing", keys[i]);
			CU_FAIL("a promised key is missing");
		}
	}
}

#define EXPECT_KEYS(o, keys) expect_keys(o, keys, COUNT(keys))

static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

static void test_json_keys(void)
{
	struct fixture f;
	set_up(&f, true);
	json_t *j = report_json(&f.outcome);
	const char *const top[] = {"stepsim", "config", "system", "prediction", "measurement", "comparison"};
	EXPECT_KEYS(j, top);
	const json_t *p = json_object_get(j, "prediction"), *m = json_object_get(j, "measurement"),
		     *c = json_object_get(j, "comparison");
	EXPECT_KEYS(p, result_keys);
	EXPECT_KEYS(m, result_keys);
	EXPECT_KEYS(m, measured_keys);
	EXPECT_KEYS(json_object_get(p, "memory"), memory_keys);
	EXPECT_KEYS(c, comparison_keys);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "stepsim")), STEPSIM_VERSION);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(p, "mfu_convention")),
		"6N+12Lhs, non-causal, dense peak");
	const json_t *row = json_array_get(json_object_get(c, "by_class"), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(c, "by_class")), 2);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(row, "class")), "gemm");
	CU_ASSERT_DOUBLE_EQUAL(number(row, "predicted_s"), 0.05, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(number(row, "measured_s"), 0.04, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(number(row, "error"), 0.25, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(number(c, "step_time_error"), 0.25, 1e-12);
	CU_ASSERT(json_is_true(json_object_get(m, "verified")));
	json_decref(j);
	tear_down(&f);
}

/* Clocks are there only where they were sampled; what the driver did not say is null. */
static void test_json_clocks(void)
{
	struct fixture f;
	set_up(&f, true);
	json_t *j = report_json(&f.outcome);
	CU_ASSERT_PTR_NULL(json_object_get(json_object_get(j, "measurement"), "clocks"));
	json_decref(j);
	f.measured.clocks = (struct result_clocks){.samples = 40,
		.gpus = 2,
		.clock_Hz = 1.5e9,
		.boost_Hz = 2e9,
		.slowest_rank = 1,
		.slowest_Hz = 1.4e9,
		.temperature_C = 70,
		.n_events = 1,
		.event = {{.what = "power cap", .slows = true, .rank = 1, .share = 0.5, .gpus = 2}}};
	j = report_json(&f.outcome);
	const json_t *c = json_object_get(json_object_get(j, "measurement"), "clocks"),
		     *event = json_array_get(json_object_get(c, "events"), 0);
	CU_ASSERT_EQUAL(number(c, "samples"), 40);
	CU_ASSERT_EQUAL(number(c, "boost_clock_Hz"), 2e9);
	CU_ASSERT_EQUAL(number(c, "slowest_rank"), 1);
	CU_ASSERT_EQUAL(number(c, "temperature_C"), 70);
	CU_ASSERT(json_is_null(json_object_get(c, "power_W")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(c, "events")), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(event, "what")), "power cap");
	CU_ASSERT_EQUAL(number(event, "share"), 0.5);
	json_decref(j);
	tear_down(&f);
}

static void test_json_figures(void)
{
	struct fixture f;
	set_up(&f, false);
	f.predicted.time.overlap = NAN;
	json_t *j = report_json(&f.outcome);
	const json_t *p = json_object_get(j, "prediction"), *memory = json_object_get(p, "memory");
	CU_ASSERT(json_is_null(json_object_get(j, "measurement")));
	CU_ASSERT(json_is_null(json_object_get(j, "comparison")));
	CU_ASSERT(json_is_null(json_object_get(p, "overlap")));
	double sum = 0;
	for (size_t i = 7; i < 14; i++)
		sum += number(p, result_keys[i]);
	CU_ASSERT_DOUBLE_EQUAL(sum, number(p, "step_time_s"), 1e-12);
	double bytes = 0;
	for (size_t i = 1; i < 7; i++)
		bytes += number(memory, memory_keys[i]);
	CU_ASSERT_DOUBLE_EQUAL(bytes, number(memory, "total_bytes"), 0);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_array_get(json_object_get(p, "interval90_s"), 1)), 0.11, 0);
	json_decref(j);
	tear_down(&f);
}

/* Unverified and unmeasurable are null, not false and not 0. */
static void test_json_null(void)
{
	struct fixture f;
	set_up(&f, true);
	f.measured.verified = -1;
	f.measured.time.exposed_comm_s = 0;
	f.measured.time.overlap = NAN;
	json_t *j = report_json(&f.outcome);
	const json_t *c = json_object_get(j, "comparison");
	CU_ASSERT(json_is_null(json_object_get(json_object_get(j, "measurement"), "verified")));
	CU_ASSERT(json_is_null(json_object_get(c, "exposed_comm_error")));
	CU_ASSERT(json_is_null(json_object_get(c, "overlap_error")));
	json_decref(j);
	tear_down(&f);
}

static void test_write_json(void)
{
	char path[] = "/tmp/stepsim-report-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	struct error e = {0};
	json_t *j = json_pack("{s:f}", "x", 0.1), *back;
	CU_ASSERT_EQUAL(report_write_json(j, path, &e), ST_OK);
	back = json_load_file(path, 0, NULL);
	CU_ASSERT_EQUAL(json_equal(j, back), 1);
	CU_ASSERT_EQUAL(report_write_json(j, "/nowhere/at/all.json", &e), ST_INPUT);
	json_decref(j);
	json_decref(back);
	unlink(path);
}

/* Complete events of one process: how many, and that every one lies where its span does. */
static size_t count_events(const json_t *events, json_int_t pid, const char *category)
{
	size_t n = 0, i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		const char *ph = json_string_value(json_object_get(event, "ph")),
			   *cat = json_string_value(json_object_get(event, "cat"));
		if (strcmp(ph, "X") == 0 && json_integer_value(json_object_get(event, "pid")) == pid &&
			(!category || strcmp(cat, category) == 0))
			n++;
	}
	return n;
}

static void test_trace(void)
{
	char path[] = "/tmp/stepsim-trace-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	struct fixture f;
	struct error e = {0};
	set_up(&f, true);
	CU_ASSERT_EQUAL(report_trace(&f.outcome, path, &e), ST_OK);
	json_t *trace = json_load_file(path, 0, NULL);
	const json_t *events = json_object_get(trace, "traceEvents");
	CU_ASSERT_PTR_NOT_NULL_FATAL(events);
	size_t ops = f.program->roles[0].ops.n, waits = count_events(events, 1, "wait");
	CU_ASSERT(waits > 0);
	for (json_int_t pid = 1; pid <= 3; pid++) /* the predicted role, then two measured ranks */
		CU_ASSERT_EQUAL(count_events(events, pid, NULL), ops + waits);
	CU_ASSERT_EQUAL(count_events(events, 4, NULL), 0);

	size_t i, processes = 0;
	double last_us = 0;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "name")), "process_name") == 0) {
			const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
			CU_ASSERT(strncmp(name, processes ? "measured: rank" : "predicted", processes ? 14 : 9) == 0);
			processes++;
		}
		if (json_object_get(event, "ts") && number(event, "ts") + number(event, "dur") > last_us)
			last_us = number(event, "ts") + number(event, "dur");
	}
	CU_ASSERT_EQUAL(processes, 3);
	CU_ASSERT_DOUBLE_EQUAL(last_us, (double)ops, 1e-9); /* the last op ends after `ops` microseconds */
	json_decref(trace);
	tear_down(&f);
	unlink(path);
}

UNIT_MAIN("report_json", {"JSON: the promised keys", test_json_keys}, {"JSON: figures", test_json_figures},
	{"JSON: clocks", test_json_clocks}, {"JSON: null where there is no value", test_json_null},
	{"JSON: written and read back", test_write_json}, {"trace: written and read back", test_trace})
