/* Unit-test harness: one executable a file, an alarm against hangs, CUnit's failure count as the exit code.
 *
 *   static void test_something(void) { CU_ASSERT_EQUAL(1 + 1, 2); }
 *   UNIT_MAIN("suite", {"something", test_something}, ...)
 */
#ifndef STEPSIM_TESTS_UNIT_HARNESS_H
#define STEPSIM_TESTS_UNIT_HARNESS_H

#include <CUnit/Basic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"

#define HANG_S 600 /* after so long a suite fails, instead of the whole test command */

struct unit_test {
	const char *name;
	void (*run)(void);
};

static int unit_main(const char *suite_name, const struct unit_test *tests, size_t n)
{
	setenv("COLUMNS", "999", 1); /* lines are whole on every terminal */
	alarm(HANG_S);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
	if (!suite)
		return 2;
	for (size_t i = 0; i < n; i++)
		if (!CU_add_test(suite, tests[i].name, tests[i].run))
			return 2;
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}

#define UNIT_MAIN(suite, ...) \
	int main(void) \
	{ \
		static const struct unit_test tests[] = {__VA_ARGS__}; \
		return unit_main(suite, tests, COUNT(tests)); \
	}

#endif
