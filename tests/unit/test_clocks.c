/* Tests the report of GPUs' clocks, from samples written by hand. */
#include "tests/unit/harness.h"

#include <string.h>

#include "exec/clocks.h"

static char lines[4][256];
static size_t n_lines;

static void say(void *ctx, const char *text)
{
	(void)ctx;
	if (n_lines < 4)
		snprintf(lines[n_lines], sizeof lines[0], "%s", text);
	n_lines++;
}

static struct result_clocks sum(const struct gpu_samples *all, int64_t ranks)
{
	struct result_clocks c;
	memset(&c, 0xff, sizeof c);
	clocks_sum(all, ranks, &c);
	n_lines = 0;
	clocks_say(&c, say, NULL);
	return c;
}

static void test_nothing(void)
{
	const struct gpu_samples none[2] = {{.n = 0}, {.n = 0}};
	struct result_clocks c = sum(none, 2);
	CU_ASSERT_EQUAL(c.samples, 0);
	CU_ASSERT_EQUAL(c.gpus, 0);
	CU_ASSERT_EQUAL(c.slowest_rank, -1);
	CU_ASSERT_EQUAL(n_lines, 0);
}

static void test_well(void)
{
	const struct gpu_samples all[3] =
		{{.n = 10, .clock_Hz = 2e9, .boost_Hz = 2e9, .power_W = 500, .power_limit_W = 700, .temperature_C = 60},
			{.n = 0}, /* its NVML did not answer */
			{.n = 12,
				.clock_Hz = 1.8e9,
				.boost_Hz = 2e9,
				.power_W = 600,
				.power_limit_W = 700,
				.temperature_C = 65}};
	struct result_clocks c = sum(all, 3);
	CU_ASSERT_EQUAL(c.samples, 22);
	CU_ASSERT_EQUAL(c.gpus, 2);
	CU_ASSERT_DOUBLE_EQUAL(c.clock_Hz, 1.9e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(c.boost_Hz, 2e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(c.power_W, 550, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(c.power_limit_W, 700, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(c.temperature_C, 65, 0);
	CU_ASSERT_EQUAL(c.slowest_rank, 2);
	CU_ASSERT_DOUBLE_EQUAL(c.slowest_Hz, 1.8e9, 0);
	CU_ASSERT_EQUAL(c.n_events, 0);
	CU_ASSERT_EQUAL(n_lines, 0);
}

/* The rank that was hit most by share, not by count, is named. */
static void test_slowed(void)
{
	const struct gpu_samples all[3] =
		{{.n = 100, .clock_Hz = 1.6e9, .boost_Hz = 2e9, .reason = {[GPU_REASON_POWER_CAP] = 20}},
			{.n = 40,
				.clock_Hz = 1.5e9,
				.boost_Hz = 2e9,
				.reason = {[GPU_REASON_POWER_CAP] = 20, [GPU_REASON_THERMAL_HARDWARE] = 10}},
			{.n = 50, .shared = 5}};
	struct result_clocks c = sum(all, 3);
	CU_ASSERT_EQUAL_FATAL(c.n_events, 3);
	CU_ASSERT_EQUAL(c.event[0].rank, 1);
	CU_ASSERT_EQUAL(c.event[0].gpus, 2);
	CU_ASSERT_DOUBLE_EQUAL(c.event[0].share, 0.5, 1e-12);
	CU_ASSERT_EQUAL(c.slowest_rank, 1); /* what said nothing of its clock is not the slowest */
	CU_ASSERT_EQUAL_FATAL(n_lines, 3);
	CU_ASSERT_STRING_EQUAL(lines[0],
		"rank 1's GPU was slowed in 50 % of 40 samples: power cap; its SMs ran at 75 % of boost on average (2 "
		"of 3 GPUs)");
	CU_ASSERT_STRING_EQUAL(lines[1],
		"rank 1's GPU was slowed in 25 % of 40 samples: thermal slowdown by the hardware; its SMs ran at 75 % "
		"of boost on average (1 of 3 GPUs)");
	CU_ASSERT_STRING_EQUAL(lines[2],
		"rank 2's GPU was shared with another process in 10 % of 50 samples (1 of 3 GPUs)");
}

UNIT_MAIN("clocks", {"not sampled", test_nothing}, {"all well", test_well}, {"slowed and shared", test_slowed})
