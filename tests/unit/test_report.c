/* Tests the reports of an outcome made by hand: every figure in its place, every key that the interface promises, a
 * trace that can be read back. */
#include "base/array.h"
#include "harness.h"
#include "tiny_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/figures.h"
#include "report/report.h"

static struct config tiny(void)
{
	struct config c = tiny_config();
	snprintf(c.model.name, sizeof c.model.name, "tiny");
	c.train.recompute_layers = AUTO;
	c.parallel.bucket_B = 25 * 1048576;
	c.parallel.first_bucket_B = 1 * 1048576;
	c.cluster = (struct cluster_config){.system = "auto", .nodes = 1};
	c.run = (struct run){.warmup = 3, .steps = 10, .timeout_s = 60, .verify = true};
	return c;
}

/* One side: 100 ms (times `scale`) with every kind of time in it, two classes of ops. */
static struct result side(double scale)
{
	struct result r = {
		.time = {.step_s = 0.1,
			.compute_s = 0.06,
			.exposed_comm_s = 0.01,
			.copy_s = 0.002,
			.host_s = 0.003,
			.bubble_s = 0.004,
			.optimizer_s = 0.02,
			.idle_s = 0.001,
			.comm_s = 0.04,
			.overlap = 0.75,
			.wait_s = 0.005},
		.tokens_per_s = 2560 / scale,
		.tokens_per_s_per_gpu = 1280 / scale,
		.tflops_per_gpu = 0.002,
		.mfu = 0.4,
		.hfu = 0.4,
		.interval90_s = {0.09, 0.11},
		.memory = {.weights_B = 1 << 20,
			.gradients_B = 1 << 20,
			.optimizer_B = 2 << 20,
			.activations_B = 3 << 20,
			.buffers_B = 1 << 19,
			.overhead_B = 1 << 19,
			.total_B = 8 << 20,
			.capacity_B = 1 << 30,
			.fits = true},
		.bottleneck = "compute",
		.steps = 10,
		.step_min_s = 0.09 * scale,
		.step_max_s = 0.12 * scale,
		.verified = 1,
	};
	for (double *t = &r.time.step_s; t <= &r.time.comm_s; t++)
		*t *= scale;
	r.time.class_s[CLASS_GEMM] = 0.05 * scale;
	r.time.class_n[CLASS_GEMM] = 12;
	r.time.class_s[CLASS_ALL_REDUCE] = 0.04 * scale;
	r.time.class_n[CLASS_ALL_REDUCE] = 2;
	r.class_bound[CLASS_ALL_REDUCE] = BOUND_LINK;
	return r;
}

/* Every op of role 0 one microsecond after the other; collectives wait 0.25 us of it. */
static struct timeline line_of(const struct program *p, uint32_t actors)
{
	struct timeline t = {.actors = actors};
	const struct role *r = &p->roles[0];
	for (uint32_t actor = 0; actor < actors; actor++) {
		for (uint32_t i = 0; i < r->ops.n; i++) {
			const struct op *op = &r->ops.at[i];
			struct span s = {.actor = actor,
				.op = i,
				.lane = op->lane,
				.class_ = (uint8_t)op_class_of(op),
				.phase = op->phase,
				.start_ps = i * 1000000LL,
				.end_ps = (i + 1) * 1000000LL};
			s.move_ps = s.start_ps + (op->kind == OP_COLLECTIVE ? 250000 : 0);
			CU_ASSERT_FATAL(vec_push(&t.spans, s));
		}
	}
	t.step_ps = (int64_t)r->ops.n * 1000000;
	return t;
}

struct fixture {
	struct program *program;
	struct result predicted, measured;
	struct timeline predicted_line, measured_line;
	struct outcome outcome;
};

static void set_up(struct fixture *f, bool measured)
{
	struct config c = tiny();
	struct error e = {0};
	memset(f, 0, sizeof *f);
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &f->program, &e), ST_OK);
	f->predicted = side(1);
	f->measured = side(0.8);
	f->predicted_line = line_of(f->program, 1);
	f->measured_line = line_of(f->program, 2);
	f->outcome = (struct outcome){.program = f->program,
		.predicted = &f->predicted,
		.predicted_timeline = &f->predicted_line};
	f->outcome.system = json_pack("{s:s, s:s, s:{s:s}}", "name", "a machine", "source", "made up", "device", "name",
		"a device");
	if (measured) {
		f->outcome.measured = &f->measured;
		f->outcome.measured_timeline = &f->measured_line;
	} else {
		f->outcome.mode = "nobody asked";
	}
}

static void tear_down(struct fixture *f)
{
	timeline_free(&f->predicted_line);
	timeline_free(&f->measured_line);
	program_destroy(f->program);
	json_decref(f->outcome.system);
}

/* The table as text; the caller frees it. */
static char *text_of(const struct outcome *o, enum status (*write)(const struct outcome *, FILE *, struct error *))
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(write(o, out, &e), ST_OK);
	fclose(out);
	return text;
}

/* True when one line of `text` holds all the words, in order. */
static bool has_line(const char *text, const char *const *words, size_t n)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t len = strcspn(line, "\n"), found = 0;
		const char *at = line;
		while (found < n && (at = strstr(at, words[found])) && at + strlen(words[found]) <= line + len)
			at += strlen(words[found++]);
		if (found == n)
			return true;
	}
	printf("\n  no line with '%s' ... '%s' in:\n%s", words[0], words[n - 1], text);
	return false;
}

#define LINE(text, ...) \
	CU_ASSERT(has_line(text, (const char *const[]){__VA_ARGS__}, \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static void test_error(void)
{
	CU_ASSERT_DOUBLE_EQUAL(figure_error(11, 10), 0.1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(figure_error(9, 10), -0.1, 1e-12);
	CU_ASSERT_EQUAL(figure_error(0, 0), 0);
	CU_ASSERT(isnan(figure_error(1, 0)));
	CU_ASSERT(isnan(figure_error(NAN, 1)));
}

static void test_table_of_both(void)
{
	struct fixture f;
	set_up(&f, true);
	json_object_update_new(f.outcome.system, json_pack("{s:i, s:{}}", "nodes", 3, "session"));
	result_warn(&f.predicted, "first");
	result_warn(&f.measured, "first");
	result_warn(&f.measured, "second");
	char *text = text_of(&f.outcome, report_text);
	LINE(text, "predicted", "measured", "error");
	LINE(text, "step time", "100 ms", "80.0 ms", "+25.0 %");
	LINE(text, "tokens/s", "2.56 k", "3.20 k", "-20.0 %");
	LINE(text, "compute", "60.0 ms", "48.0 ms", "+25.0 %");
	LINE(text, "exposed communication", "10.0 ms", "8.00 ms", "+25.0 %");
	LINE(text, "bubble", "4.00 ms");
	LINE(text, "overlap", "75.0 %", "75.0 %", "+0.0 %");
	LINE(text, "waiting for late ranks", "5.00 ms");
	LINE(text, "gemm (12)", "50.0 ms", "40.0 ms", "+25.0 %", "compute");
	LINE(text, "all_reduce (2)", "40.0 ms", "32.0 ms", "link");
	LINE(text, "total", "8.00 MiB", "8.00 MiB", "fits in 1.00 GiB");
	LINE(text, "on: a machine and 2 other hosts, 2 x a device (made up)");
	LINE(text, "tiny (", "k parameters), ddp on 2 ranks (dp 2), fp32");
	LINE(text, "interval", "90.0 ms to 110 ms", "OUTSIDE");
	LINE(text, "median of 10 steps", "72.0 ms to 96.0 ms", "verified");
	LINE(text, "warning: second");
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "warning: first"));
	CU_ASSERT_PTR_NULL(strstr(strstr(text, "warning: first") + 1, "warning: first"));
	free(text);
	tear_down(&f);
}

static void test_table_of_prediction(void)
{
	struct fixture f;
	set_up(&f, false);
	f.predicted.time.overlap = NAN;
	f.predicted.time.bubble_s = 0;
	f.predicted.memory.fits = false;
	char *text = text_of(&f.outcome, report_text);
	LINE(text, "compute", "60.0 ms", "60.0 %");
	LINE(text, "overlap", "-", "means nothing on a single core");
	LINE(text, "total", "DOES NOT FIT in");
	LINE(text, "on: a machine, 2 x a device (made up)");
	LINE(text, "Not executed: nobody asked");
	CU_ASSERT_PTR_NULL(strstr(text, "measured"));
	CU_ASSERT_PTR_NULL(strstr(text, "bubble"));
	free(text);
	tear_down(&f);
}

static void test_memory_beside(void)
{
	struct fixture f;
	set_up(&f, false);
	f.predicted.memory.context_B = 1 << 18;
	f.predicted.memory.communicators_B = 1 << 18;
	f.predicted.memory.communicators = 2;
	struct held held[] = {{COMP_ACTIVATIONS, 1 << 20, 0, 1, "gate"},
		{COMP_GRADIENTS, 1 << 21, 0, HELD_ALWAYS, "gradient copies"},
		{COMP_ACTIVATIONS, 1 << 20, 1, 2, "gate"}};
	struct role *r = &f.program->roles[0];
	for (size_t i = 0; i < COUNT(held); i++)
		CU_ASSERT_TRUE(vec_push(&r->held, held[i]));
	char *text = text_of(&f.outcome, report_memory);
	LINE(text, "CUDA context and libraries", "1", "256 KiB");
	LINE(text, "NCCL communicator", "2", "128 KiB");
	LINE(text, "gate", "2", "1.00 MiB");
	LINE(text, "gradient copies", "1", "2.00 MiB");
	free(text);
	tear_down(&f);
}

static void test_prices(void)
{
	struct fixture f;
	set_up(&f, true);
	char *text = text_of(&f.outcome, report_prices);
	double flop = 0;
	char gemms[32];
	for (size_t i = 0; i < f.program->roles[0].ops.n; i++)
		flop += op_flop(&f.program->roles[0].ops.at[i]);
	CU_ASSERT(flop > 0);
	LINE(text, "price", "count", "predicted", "measured");
	LINE(text, "all_reduce.2", "750 ns", "750 ns");
	snprintf(gemms, sizeof gemms, "gemm.");
	LINE(text, gemms, "FLOP", "us");
	free(text);
	tear_down(&f);
}

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

/* ---- stages ---- */

/* Two stages, each with a timeline of its own: a row and an object for each, none for a plan without a pipeline. */
static void test_stages(void)
{
	struct config c = tiny();
	struct error e = {0};
	struct program *p = NULL;
	c.parallel.pipeline = 2;
	c.parallel.schedule = SCHED_1F1B;
	c.model.layers = 2;
	c.ranks *= 2;
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(p->n_roles, 2);
	struct result r = side(1);
	struct timeline t = {.actors = 2};
	for (uint32_t actor = 0; actor < 2; actor++)
		for (uint32_t i = 0; i < p->roles[actor].ops.n; i++) {
			const struct op *op = &p->roles[actor].ops.at[i];
			struct span s = {.actor = actor,
				.op = i,
				.lane = op->lane,
				.class_ = (uint8_t)op_class_of(op),
				.phase = op->phase,
				.start_ps = i * 1000000LL,
				.move_ps = i * 1000000LL,
				.end_ps = (i + 1) * 1000000LL};
			CU_ASSERT_FATAL(vec_push(&t.spans, s));
			t.step_ps = s.end_ps > t.step_ps ? s.end_ps : t.step_ps;
		}
	struct outcome o = {.program = p, .predicted = &r, .predicted_timeline = &t};
	char *text = text_of(&o, report_text);
	LINE(text, "stage", "layers", "compute", "exposed comm.", "bubble", "memory");
	LINE(text, "0", "us", "MiB");
	free(text);
	json_t *j = report_json(&o), *stages = json_object_get(json_object_get(j, "prediction"), "stages");
	CU_ASSERT_EQUAL(json_array_size(stages), 2);
	json_int_t layers = 0;
	for (size_t i = 0; i < 2; i++) {
		const json_t *s = json_array_get(stages, i);
		double sum = 0;
		for (size_t k = 0; k < FIGURE_PARTS; k++)
			sum += json_real_value(json_object_get(s, figure_parts[k].key));
		CU_ASSERT_DOUBLE_EQUAL(sum, (double)t.step_ps * 1e-12, 1e-15);
		CU_ASSERT(json_integer_value(json_object_get(s, "memory_bytes")) > (json_int_t)r.memory.overhead_B);
		layers += json_integer_value(json_object_get(s, "layers"));
	}
	CU_ASSERT_EQUAL(layers, c.model.layers);
	json_decref(j);
	timeline_free(&t);
	program_destroy(p);
}

UNIT_MAIN("report", {"relative error", test_error}, {"table of both sides", test_table_of_both},
	{"table of a prediction", test_table_of_prediction}, {"prices", test_prices},
	{"memory beside the buffers", test_memory_beside}, {"JSON: the promised keys", test_json_keys},
	{"JSON: figures", test_json_figures}, {"JSON: clocks", test_json_clocks},
	{"JSON: null where there is no value", test_json_null}, {"JSON: written and read back", test_write_json},
	{"trace: written and read back", test_trace}, {"stages of a pipeline", test_stages})
