/* Tests the CPU time that others took of a rank's cores, from a text in the form of /proc/stat. */
#include <string.h>

#include "base/clock.h"
#include "exec/cpu_steal.h"
#include "tests/unit/harness.h"

/* user nice system idle iowait irq softirq steal guest guest_nice */
static const char stat_text[] = "cpu  1000 0 0 0 0 0 0 0 0 0\n"
				"cpu0 100 10 20 5000 7 1 2 30 50 5\n"
				"cpu1 200 0 0 5000 0 0 0 0 0 0\n"
				"cpu65 300 0 100 5000 0 0 0 50 0 0\n"
				"intr 12 0 0\n";

/* Cores that are not the rank's, idle time, waiting for files and the guests' part of user do not count; the line of
 * all does not either. */
static void test_read(void)
{
	uint64_t cpus[BOARD_CPU_WORDS] = {1, 2};
	struct cpu_steal o = {0};
	cpu_steal_read(stat_text, cpus, 0.01, &o);
	CU_ASSERT_EQUAL(o.cpus, 2);
	CU_ASSERT_DOUBLE_EQUAL(o.busy_s, 1.33 + 4, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(o.stolen_s, 0.3 + 0.5, 1e-9);
	cpu_steal_read("", cpus, 0.01, &o);
	CU_ASSERT_EQUAL(o.cpus, 0);
	CU_ASSERT_EQUAL(o.busy_s, 0);
	cpu_steal_read("cpu0 1 2\ncpu1 x\ncpu99999999999 1 1 1 1 1 1 1 1\n", cpus, 0.01, &o);
	CU_ASSERT_EQUAL(o.cpus, 0);
}

/* This process's own cores are known, and time on them grows. */
static void test_begin(void)
{
	struct cpu_steal a, b;
	cpu_steal_begin(&a);
	for (double until_s = clock_thread_cpu_s() + 0.1; clock_thread_cpu_s() < until_s;)
		; /* ten ticks */
	cpu_steal_begin(&b);
	CU_ASSERT_TRUE(a.cpus >= 1);
	CU_ASSERT_EQUAL(a.cpus, b.cpus);
	CU_ASSERT_TRUE(b.own_s > a.own_s);
	CU_ASSERT_TRUE(b.busy_s > a.busy_s);
	CU_ASSERT_TRUE(b.at_s > a.at_s);
}

static void says(double taken, double stolen, const char *expected)
{
	char text[128];
	cpu_steal_words(&(struct cpu_steal_worst){1, taken, stolen}, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, expected);
}

static void test_words(void)
{
	says(0.38, 0, "other processes took 38 % of the time of rank 1's cores");
	says(0.38, 0.05, "other processes took 38 % of the time of rank 1's cores, other virtual machines 5 %");
	says(0, 0.2, "other virtual machines took 20 % of the time of rank 1's cores");
}

UNIT_MAIN("others", {"read", test_read}, {"begin", test_begin}, {"words", test_words})
