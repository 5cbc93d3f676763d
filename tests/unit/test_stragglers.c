/* The slowest of many ranks, and jobs that fail: against closed forms, published values and a simulated job. */
#include "base/array.h"
#include "tests/unit/harness.h"

#include <math.h>

#include "sim/engine/stragglers.h"

static void test_largest(void)
{
	/* 1/sqrt(pi), 3/(2 sqrt(pi)); then Tippett 1925 (Biometrika 17), table of mean extremes */
	CU_ASSERT_DOUBLE_EQUAL(stragglers_expected_max(1), 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(stragglers_expected_max(2), 1 / sqrt(M_PI), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(stragglers_expected_max(3), 1.5 / sqrt(M_PI), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(stragglers_expected_max(10), 1.53875, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(stragglers_expected_max(100), 2.50759, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(stragglers_expected_max(1000), 3.24144, 1e-5);
	double last = 0;
	for (double n = 2; n < 1e7; n *= 3) {
		double here = stragglers_expected_max(n);
		CU_ASSERT(here > last && here < sqrt(2 * log(n)));
		last = here;
	}
	CU_ASSERT(stragglers_expected_max(1e7) > 0.9 * sqrt(2 * log(1e7)));
}

static uint64_t state = 1;

static double uniform(void)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u; /* Knuth, MMIX */
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

/* The share of time that work takes in a job that fails at random, played out segment by segment. */
static double played(double mtbf_s, double checkpoint_s, double interval_s)
{
	double elapsed_s = 0, next_s = -mtbf_s * log(uniform());
	int segments = 200000;
	for (int i = 0; i < segments; i++) {
		double need_s = interval_s + checkpoint_s;
		while (next_s < elapsed_s + need_s) { /* it fails, reads the checkpoint, which may fail as well, and
			                                 begins the segment again */
			elapsed_s = next_s;
			next_s = elapsed_s - mtbf_s * log(uniform());
			need_s = checkpoint_s + interval_s + checkpoint_s;
		}
		elapsed_s += need_s;
	}
	return segments * interval_s / elapsed_s;
}

static void test_goodput(void)
{
	/* Failures that are rare against checkpoints: Young's sqrt(2 d M), and about sqrt(2 d / M) lost. */
	struct goodput g = stragglers_best_goodput(1e8, 10);
	CU_ASSERT_DOUBLE_EQUAL(g.interval_s / sqrt(2 * 10 * 1e8), 1, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL((1 - g.goodput) / sqrt(2 * 10 / 1e8), 1, 1e-3);
	static const double cases[][2] = {{3600 * 3, 120}, {86400, 300}, {3600, 600}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		double mtbf_s = cases[i][0], checkpoint_s = cases[i][1];
		g = stragglers_best_goodput(mtbf_s, checkpoint_s);
		CU_ASSERT_DOUBLE_EQUAL(played(mtbf_s, checkpoint_s, g.interval_s), g.goodput, 0.01);
		/* and it is the best */
		CU_ASSERT(played(mtbf_s, checkpoint_s, 2 * g.interval_s) < g.goodput);
		CU_ASSERT(played(mtbf_s, checkpoint_s, g.interval_s / 2) < g.goodput);
	}
	CU_ASSERT(stragglers_best_goodput(100, 1000).goodput >
		  0); /* Daly: where a checkpoint takes as long as that, every mean time between failures */
	CU_ASSERT_EQUAL(stragglers_best_goodput(100, 1000).interval_s, 100);
}

UNIT_MAIN("stragglers", {"the largest of many", test_largest}, {"failures and checkpoints", test_goodput})
