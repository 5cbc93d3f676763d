#include "base/array.h"
#include "tests/unit/harness.h"

#include <math.h>
#include <stdlib.h>

#include "sim/engine/maxmin.h"

#define MANY 12

static const double FULL[RES_COUNT] = {1, 1, 1, 1};

static void rates(const struct activity *a, size_t n, const double *cap, double *rate)
{
	const struct activity *at[MANY];
	for (size_t i = 0; i < n; i++)
		at[i] = &a[i];
	maxmin_rates(at, n, cap, rate);
}

static void test_alone(void)
{
	struct activity a = {.weight = 0.3, .demand = {1, 0.7, 0, 0}};
	double x;
	rates(&a, 1, FULL, &x);
	CU_ASSERT_EQUAL(x, 1);
}

static void test_nobody_in_the_way(void)
{
	struct activity a[] = {{.weight = 1, .demand = {0.5, 0.2}}, {.weight = 3, .demand = {0.4, 0.7}},
		{.weight = 7, .demand = {0}}};
	double x[3];
	rates(a, 3, FULL, x);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(x[i], 1); /* exactly */
}

/* Transfers that cores carry share the link alone, however much compute each would take of it: 1 and 0.5 on one link of
 * 1 make 2/3 each. Beside compute they have 0.8 and 0.4 at most: on the link 0.8 + 0.2 is all of it. Of compute they
 * leave 1 - 0.5 x 0.8 and 1 - 0.25 x 0.4, one after the other. */
static void test_transfers_come_first(void)
{
	struct activity a[] = {{.weight = 1, .demand = {1}},
		{.weight = 1, .demand = {0.5, [RES_LINK_INTER] = 1}, .beside = 0.8},
		{.weight = 1, .demand = {0.25, [RES_LINK_INTER] = 0.5}, .beside = 0.4}};
	double x[3];
	rates(a + 1, 2, FULL, x);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 2.0 / 3, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 2.0 / 3, 1e-15);
	rates(a, 3, FULL, x);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 0.8, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[2], 0.4, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 0.6 * 0.9, 1e-15);
	a[2].demand[RES_LINK_INTER] = 1; /* 1.2 of the link: both have 1 / 1.2 of their greatest */
	rates(a, 3, FULL, x);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 0.8 / 1.2, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[2], 0.4 / 1.2, 1e-15);
}

static void test_equal_share(void)
{
	struct activity a[] = {{.weight = 1, .demand = {1}}, {.weight = 1, .demand = {1}},
		{.weight = 1, .demand = {1}}};
	double x[3];
	rates(a, 3, FULL, x);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_DOUBLE_EQUAL(x[i], 1.0 / 3, 1e-15);
}

/* The first reaches rate 1 with a quarter of the resource; the others go on and share the rest: 0.25 + 0.375 + 0.375.
 */
static void test_what_is_left_over(void)
{
	struct activity a[] = {{.weight = 4, .demand = {0.25}}, {.weight = 0.5, .demand = {1}},
		{.weight = 0.5, .demand = {1}}};
	double x[3];
	rates(a, 3, FULL, x);
	CU_ASSERT_EQUAL(x[0], 1);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 0.375, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[2], 0.375, 1e-15);
}

static void test_weights(void)
{
	struct activity a[] = {{.weight = 1, .demand = {1}}, {.weight = 3, .demand = {1}}};
	double x[2];
	rates(a, 2, FULL, x);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 0.25, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 0.75, 1e-15);
}

/* The two rates measured with compute and one collective side by side come out again (sim/price/cost.c chooses weight
 * and demand so). */
static void test_measured_pair_is_reproduced(void)
{
	static const double pairs[][2] = {{0.5, 0.5}, {0.8, 1}, {0.9, 0.3}, {0.4, 0.35}, {0.99, 0.99}};
	for (size_t i = 0; i < COUNT(pairs); i++) {
		double x_g = pairs[i][0], x_c = pairs[i][1], x[2];
		struct activity a[] = {{.weight = 1, .demand = {1}},
			{.weight = x_c / x_g, .demand = {(1 - x_g) / x_c}}};
		rates(a, 2, FULL, x);
		CU_ASSERT_DOUBLE_EQUAL(x[0], x_g, 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(x[1], x_c, 1e-12);
	}
}

static void test_capacity(void)
{
	struct activity a[] = {{.weight = 1, .demand = {0, 1}}, {.weight = 1, .demand = {0, 1}}};
	const double cap[RES_COUNT] = {1, 1.5, 1, 1};
	double x[2];
	rates(a, 2, cap, x);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 0.75, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 0.75, 1e-15);
}

/* The theorem that the definition rests on (Bertsekas & Gallager, section 6.5.2): rates are max-min fair exactly when
 * they are feasible and everything below rate 1 has a bottleneck, a full resource that it uses and on which nobody has
 * a larger x / w. */
static int has_bottleneck(const struct activity *a, size_t n, const double *cap, const double *x, size_t i)
{
	for (size_t r = 0; r < RES_COUNT; r++) {
		double load = 0;
		int largest = 1;
		for (size_t j = 0; j < n; j++) {
			load += a[j].demand[r] * x[j];
			if (a[j].demand[r] > 0 && x[j] / a[j].weight > x[i] / a[i].weight * (1 + 1e-9))
				largest = 0;
		}
		if (a[i].demand[r] > 0 && load > cap[r] * (1 - 1e-9) && largest)
			return 1;
	}
	return 0;
}

static double unit(void) { return (double)random() / 2147483648.0; }

static void test_random_are_fair(void)
{
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		struct activity a[MANY];
		double x[MANY], cap[RES_COUNT];
		size_t n = 1 + (size_t)(unit() * MANY);
		for (size_t r = 0; r < RES_COUNT; r++)
			cap[r] = 0.2 + unit();
		for (size_t i = 0; i < n; i++) {
			a[i] = (struct activity){.weight = round % 3 ? 0.05 + 4 * unit() : 1};
			for (size_t r = 0; r < RES_COUNT; r++)
				a[i].demand[r] = unit() < 0.5 ? 0
				                 : round % 2  ? unit()
				                              : 1; /* ties on every other round */
		}
		rates(a, n, cap, x);
		int ok = 1;
		for (size_t r = 0; r < RES_COUNT; r++) {
			double load = 0;
			for (size_t i = 0; i < n; i++)
				load += a[i].demand[r] * x[i];
			ok = ok && load <= cap[r] * (1 + 1e-12);
		}
		for (size_t i = 0; i < n; i++)
			ok = ok && x[i] > 0 && x[i] <= 1 && (x[i] == 1 || has_bottleneck(a, n, cap, x, i));
		CU_ASSERT_FATAL(ok);
	}
}

UNIT_MAIN("maxmin", {"one alone has rate 1", test_alone}, {"enough for all", test_nobody_in_the_way},
	{"transfers that cores carry come first", test_transfers_come_first}, {"equal shares", test_equal_share},
	{"leftovers go to the others", test_what_is_left_over}, {"weights", test_weights},
	{"a measured pair of rates is reproduced", test_measured_pair_is_reproduced}, {"capacity", test_capacity},
	{"random activities: feasible, every one at rate 1 or at its bottleneck", test_random_are_fair})
