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

/* Cores that are not the rank's, idle time, interrupts, waiting for files and the guests' part of user do not count;
 * the line of all does not either. */
static void test_read(void)
{
	uint64_t cpus[BOARD_CPU_WORDS] = {1, 2};
	struct cpu_steal o = {0};
	cpu_steal_read(stat_text, cpus, 0.01, &o);
	CU_ASSERT_EQUAL(o.cpus, 2);
	CU_ASSERT_DOUBLE_EQUAL(o.busy_s, 1.30 + 4, 1e-9);
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

/* A second in which a rank computed for 0.9 s and its core was busy for 0.95 s. */
static struct cpu_steal_part part(const char *machine, uint64_t cpus)
{
	struct cpu_steal_part p = {.cpus = {cpus}, .available_s = 1, .busy_s = 0.95, .own_s = 0.9};
	strcpy(p.machine, machine);
	return p;
}

/* Two hosts that are one machine: what each other's rank uses of common cores is not others'. */
static void test_judge(void)
{
	struct cpu_steal_part p[2] = {part("a", 1), part("a", 2)};
	CU_ASSERT_EQUAL(cpu_steal_judge(p, 2).rank, -1);
	p[1].busy_s = 1.15;
	CU_ASSERT_EQUAL(cpu_steal_judge(p, 2).rank, 1);
	CU_ASSERT_DOUBLE_EQUAL(cpu_steal_judge(p, 2).taken, 0.25, 1e-9);
	/* Both have both cores. */
	p[0] = p[1] = part("a", 3);
	p[0].available_s = p[1].available_s = 2;
	p[0].busy_s = p[1].busy_s = 1.85;
	CU_ASSERT_EQUAL(cpu_steal_judge(p, 2).rank, -1);
	/* The same on two machines: each core has another process. */
	strcpy(p[1].machine, "b");
	CU_ASSERT_EQUAL(cpu_steal_judge(p, 2).rank, 0);
	CU_ASSERT_DOUBLE_EQUAL(cpu_steal_judge(p, 2).taken, 0.475, 1e-9);
	/* Of a rank on two cores, half its time is on the one that is shared. */
	p[0] = part("a", 1);
	p[1] = part("a", 3);
	p[1].available_s = 2;
	p[0].busy_s = 1;
	p[0].own_s = 0.3;
	p[1].busy_s = 1.2;
	CU_ASSERT_EQUAL(cpu_steal_judge(p, 2).rank, 0);
	CU_ASSERT_DOUBLE_EQUAL(cpu_steal_judge(p, 2).taken, 0.25, 1e-9);
	/* Nothing is known of a rank. */
	p[1] = (struct cpu_steal_part){0};
	p[0].stolen_s = 0.2;
	CU_ASSERT_DOUBLE_EQUAL(cpu_steal_judge(p, 2).stolen, 0.2, 1e-9);
}

UNIT_MAIN("others", {"judge", test_judge}, {"read", test_read}, {"begin", test_begin}, {"words", test_words})
