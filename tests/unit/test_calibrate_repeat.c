/* Which measurements of a calibration are taken again, which of their times are kept, and what the profile then says of
 * those that stayed disturbed. */
#include <math.h>

#include "exec/calibrate/calibrate.h"
#include "tests/unit/harness.h"

enum { CASES = 2, ROUNDS = 8, INDEX = 1 };

/* Rounds of a single case, from the warm-up on: times (0: not taken) and what others took meanwhile. */
static struct calibration_rounds rounds(const double time_s[ROUNDS], const double others[ROUNDS])
{
	struct calibration_rounds r;
	CU_ASSERT_EQUAL_FATAL(calibration_rounds_create(&r, CASES, ROUNDS, NULL), ST_OK);
	for (size_t k = 0; k < ROUNDS; k++) {
		calibration_rounds_set(&r, k, INDEX, time_s[k], time_s[k] + (k == 3));
		r.others[k * CASES + INDEX] = others[k];
	}
	return r;
}

static void check(const double time_s[ROUNDS], const double others[ROUNDS], bool again, double kept_s,
	double kept_others)
{
	struct calibration_rounds r = rounds(time_s, others);
	double meanwhile = -1;
	CU_ASSERT_EQUAL(calibration_again(&r, INDEX), again);
	CU_ASSERT_FALSE(calibration_again(&r, 0)); /* never timed, never again */
	CU_ASSERT_DOUBLE_EQUAL(calibration_kept_s(&r, INDEX, &meanwhile), kept_s, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(meanwhile, kept_others, 1e-12);
	calibration_rounds_free(&r);
}

/* The median of undisturbed times: of 4, 5, 6, 7, 8 it is 6, of 4, 6, 8 too. Of what may be disturbed the 25th
 * percentile: of 4, 6, 8 it is 5, of two times a quarter of the way. */
static void test_kept(void)
{
	static const double none[ROUNDS] = {0}, all[ROUNDS] = {1, 0.4, 0.2, 0.6};
	check((double[ROUNDS]){9, 4, 5, 6, 7, 8}, none, false, 6, 0);
	/* however few there are */
	check((double[ROUNDS]){9, 4}, none, false, 4, 0);
	check((double[ROUNDS]){9}, none, false, 9, 0);
	/* disturbed times count for nothing beside undisturbed ones: enough of these, or too few */
	check((double[ROUNDS]){9, 4, 1, 6, 2, 8}, (double[ROUNDS]){0, 0, 0.3, 0, 0.3, 0}, false, 6, 0);
	check((double[ROUNDS]){9, 1, 4, 8}, (double[ROUNDS]){0, 0.3, 0, 0}, true, 5, 0);
	/* all were disturbed; the warm-up's 1 is not among them */
	check((double[ROUNDS]){9, 4, 6, 8}, all, true, 5, 0.4);
	check((double[ROUNDS]){9}, all, true, 9, 1);
}

/* The means of 4, 4, 7, 4, 4 after the warm-up and of a stall of 1 are 4.8, against a median of 4. */
static void test_stalls(void)
{
	static const double none[ROUNDS] = {0};
	struct calibration_rounds r = rounds((double[ROUNDS]){9, 4, 4, 7, 4, 4}, none);
	CU_ASSERT_DOUBLE_EQUAL(calibration_stalls(&r), 4.8 / 4, 1e-12);
	r.others[3 * CASES + INDEX] = 0.3; /* what others disturbed says nothing of stalls */
	CU_ASSERT_DOUBLE_EQUAL(calibration_stalls(&r), 1, 1e-12);
	r.others[4 * CASES + INDEX] = r.others[5 * CASES + INDEX] = 0.3; /* too few are left */
	CU_ASSERT_DOUBLE_EQUAL(calibration_stalls(&r), 1, 1e-12);
	calibration_rounds_free(&r);
}

/* Two windows at the usual pace and two that take 1.2 times as long: their standard deviation is 0.2 / sqrt(3), of a
 * mean of 1.1. What others disturbed, and the warm-up, count for nothing. */
static void test_pace(void)
{
	enum { N = CALIBRATION_WINDOW };
	double kept_s[N];
	struct calibration_rounds r;
	CU_ASSERT_EQUAL_FATAL(calibration_rounds_create(&r, N, 6, NULL), ST_OK);
	for (size_t i = 0; i < N; i++) {
		kept_s[i] = 1e-3 * (double)(i + 1);
		for (size_t k = 0; k < 6; k++) {
			const double longer = k == 0 ? 7 : k == 3 ? 5 : k == 2 || k == 5 ? 1.2 : 1;
			calibration_rounds_set(&r, k, i, kept_s[i], longer * kept_s[i]);
			r.others[k * N + i] = k == 3 ? 0.3 : 0;
		}
	}
	CU_ASSERT_DOUBLE_EQUAL(calibration_pace_spread(&r, kept_s), sqrt(0.04 / 3) / 1.1, 1e-12);
	for (size_t i = 0; i < N; i++)
		for (size_t k = 2; k < 6; k++)
			r.others[k * N + i] = 0.3;
	CU_ASSERT_EQUAL(calibration_pace_spread(&r, kept_s), 0); /* one window says nothing */
	calibration_rounds_free(&r);
}

static void test_noise(void)
{
	struct calibration_noise noise = {0};
	static struct profile p;
	calibration_noise_add(&noise, 30, 0);
	CU_ASSERT_EQUAL(calibration_noise_set(&noise, &p, NULL), ST_OK);
	CU_ASSERT_EQUAL(p.n_values, 0);
	noise.pace_spread = 0.1;
	calibration_noise_add(&noise, 9, 0.2);
	calibration_noise_add(&noise, 1, 0.7);
	CU_ASSERT_EQUAL(calibration_noise_set(&noise, &p, NULL), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL(profile_get_value(&p, PROFILE_DISTURBED_SHARE, -1), 0.25, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(profile_get_value(&p, PROFILE_CPU_STEAL_SHARE, -1), 0.25, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(profile_get_value(&p, PROFILE_PACE_SPREAD, -1), 0.1, 1e-12);
}

UNIT_MAIN("calibrate repeat", {"times to keep", test_kept}, {"short stalls", test_stalls},
	{"how the pace varies", test_pace}, {"what stayed disturbed", test_noise})
