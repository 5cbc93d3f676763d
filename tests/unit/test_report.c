/* Tests the tables of an outcome made by hand: every figure in its place. (tests/unit/test_report_json.c has JSON.) */
#include "base/array.h"
#include "harness.h"
#include "report_case.h"

#include <stdlib.h>
#include <string.h>

#include "report/figures.h"
#include "report/report.h"

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
	{"memory beside the buffers", test_memory_beside}, {"stages of a pipeline", test_stages})
