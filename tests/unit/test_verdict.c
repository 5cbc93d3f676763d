/* Tests whether a plan fits, in words: the limits, what is missing, which combination of a sweep leads. */
#include "base/array.h"
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/verdict.h"

#define GiB ((uint64_t)1 << 30)

/* A device of 80 GiB, of which a search fills 72. */
static struct result needs(uint64_t total_B, double tokens_per_s)
{
	return (struct result){.tokens_per_s = tokens_per_s,
		.time = {.step_s = 2},
		.memory = {.weights_B = 2 * GiB,
			.activations_B = total_B - 2 * GiB,
			.total_B = total_B,
			.capacity_B = 80 * GiB,
			.usual_B = 72 * GiB,
			.fits = total_B <= 80 * GiB}};
}

static char *words(void (*print)(const struct result_memory *m, FILE *out), uint64_t total_B)
{
	const struct result r = needs(total_B, 1);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	print(&r.memory, out);
	fclose(out);
	return text;
}

static void test_limits(void)
{
	static const struct {
		uint64_t total_B;
		enum fit fit;
	} cases[] = {{72 * GiB, FIT_WELL}, {72 * GiB + 1, FIT_TIGHT}, {80 * GiB, FIT_TIGHT}, {80 * GiB + 1, FIT_NOT}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct result r = needs(cases[i].total_B, 1);
		CU_ASSERT_EQUAL(verdict_fit(&r.memory), cases[i].fit);
	}
}

/* A plan may fit if a tenth of published peaks would. */
static void test_may_fit(void)
{
	struct result r = needs(84 * GiB, 1);
	CU_ASSERT_FALSE(verdict_may_fit(&r.memory)); /* not known */
	r.memory.low_B = 80 * GiB;
	CU_ASSERT_TRUE(verdict_may_fit(&r.memory));
	r.memory.low_B++;
	CU_ASSERT_FALSE(verdict_may_fit(&r.memory));
	r = needs(70 * GiB, 1); /* it fits anyway */
	r.memory.low_B = 60 * GiB;
	CU_ASSERT_FALSE(verdict_may_fit(&r.memory));
}

/* By 4 of 80 GiB: the verdict says what such predictions err by, before the time. */
static void test_may_fit_words(void)
{
	struct result r = needs(84 * GiB, 1);
	char *text = NULL;
	size_t len;
	r.memory.low_B = 63 * GiB; /* 75 % */
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	verdict_step(&r, NULL, out);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "It may fit all the same: one in ten published peaks is over 25 % lower than "
			     "predicted. With more memory: a step takes"));
	free(text);
}

static void test_words(void)
{
	char *missing = words(verdict_missing, 100 * GiB), *tight = words(verdict_tight, 76 * GiB);
	CU_ASSERT_STRING_EQUAL(missing,
		"a rank needs 100 GiB, the device has 80.0 GiB (20.0 GiB short; largest: activations 98.0 GiB)");
	CU_ASSERT_STRING_EQUAL(tight,
		"it fills 95.0 % of the memory; a search for plans stays within 90 % where it can");
	free(missing);
	free(tight);
}

static void check_step(const struct result *p, const struct result *m, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	verdict_step(p, m, out);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, want);
	free(text);
}

static void test_step(void)
{
	struct result p = needs(60 * GiB, 1), m;
	p.interval90_s[0] = 1.5;
	p.interval90_s[1] = 2.5;
	check_step(&p, NULL, "A step takes 2.00 s (90 % interval: 1.50 s to 2.50 s); it fits, 20.0 GiB are free.");
	p.time.comm_s = 0.5;
	p.time.exposed_comm_s = 0.2;
	p.time.overlap = 0.6;
	check_step(&p, NULL,
		"A step takes 2.00 s (90 % interval: 1.50 s to 2.50 s); 60 % of communication hides behind compute, "
		"the rest takes 10.0 % of the step; it fits, 20.0 GiB are free.");
	m = p;
	m.time.step_s = 2.5;
	m.time.overlap = NAN;
	check_step(&p, &m,
		"A step took 2.50 s; predicted: 2.00 s, 20.0 % too short; communication takes 8.0 % of it; it fits, "
		"20.0 GiB are free.");
	p.memory = needs(76 * GiB, 1).memory;
	p.time.comm_s = 0;
	check_step(&p, NULL,
		"A step takes 2.00 s (90 % interval: 1.50 s to 2.50 s); it fits, 4.00 GiB are free, but tightly: it "
		"fills 95.0 % of the memory; a search for plans stays within 90 % where it can.");
	p.memory = needs(100 * GiB, 1).memory;
	check_step(&p, NULL,
		"DOES NOT FIT: a rank needs 100 GiB, the device has 80.0 GiB (20.0 GiB short; largest: activations "
		"98.0 GiB). With more memory: a step takes 2.00 s (90 % interval: 1.50 s to 2.50 s).");
}

/* Checks which row of a sweep leads (-1: none) and how its line begins. */
static void check_sweep(struct result *r, size_t n, int best, const char *begin)
{
	const char *values[] = {"1", "2", "4"};
	struct sweep_row rows[COUNT(values)];
	struct sweep s = {.axis = {{.key = "cluster.nodes", .value = values, .n = n}}, .axes = 1};
	char *text = NULL;
	size_t len;
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct sweep_row){.at = {i}, .ranks = 8, .predicted = &r[i]};
	s.rows.at = rows;
	s.rows.n = n;
	CU_ASSERT_PTR_EQUAL(verdict_sweep_best(&s), best < 0 ? NULL : &rows[best]);
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	verdict_sweep(&s, out);
	fclose(out);
	CU_ASSERT(strncmp(text, begin, strlen(begin)) == 0);
	free(text);
}

static void test_sweep(void)
{
	struct result well[] = {needs(90 * GiB, 30), needs(76 * GiB, 20), needs(60 * GiB, 10)};
	check_sweep(well, 3, 2, "Most tokens/s with cluster.nodes = 4: 10 tokens/s, 2.00 s a step on 8 ranks");
	check_sweep(well, 2, 1,
		"None of this leaves 10 % of the memory free, as a search for plans does. Of what fits");
	struct result none[] = {needs(120 * GiB, 30), needs(90 * GiB, 20)};
	check_sweep(none, 2, -1, "None of this fits. With cluster.nodes = 2 a rank needs 90.0 GiB");
}

UNIT_MAIN("verdict", {"limits", test_limits}, {"words", test_words}, {"may fit", test_may_fit},
	{"may fit, in words", test_may_fit_words}, {"a step", test_step}, {"the best of a sweep", test_sweep})
