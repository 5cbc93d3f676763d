/* Out of memory: each allocation of an operation fails once, in turn; every time the operation must report it and leave
 * nothing behind.
 *
 * The program's own malloc counts and fails. AddressSanitizer and valgrind bring theirs, which wins: then there is
 * nothing to test and the suite says so. */
#ifndef STEPSIM_TESTS_UNIT_FAILING_MALLOC_H
#define STEPSIM_TESTS_UNIT_FAILING_MALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tests/unit/harness.h"

static atomic_long until_fails; /* the allocation that fails: 1 is the next one; below 1: none */

#ifndef __SANITIZE_ADDRESS__
#include "tests/counting_malloc.h"

static bool fails(void)
{
	if (atomic_load(&until_fails) < 1 || atomic_fetch_sub(&until_fails, 1) != 1)
		return false;
	errno = ENOMEM;
	return true;
}

#else
static atomic_long live;
#endif

/* Runs `operation` with its 1st, 2nd, ... allocation failing, until it needs no more of them. `contexts`: callers of
 * what fails put words before "out of memory"; else the text begins with it. */
static inline void fail_each(enum status (*operation)(struct error *e), long at_least, bool contexts)
{
	long failures = 0;
	for (;; failures++) {
		CU_ASSERT_FATAL(failures < 100000);
		struct error e = {0};
		long before = atomic_load(&live);
		atomic_store(&until_fails, failures + 1);
		enum status st = operation(&e);
		bool reached = atomic_exchange(&until_fails, 0) < 1;
		if (atomic_load(&live) != before)
			CU_FAIL("something is left behind");
		if (!reached) {
			CU_ASSERT_EQUAL(st, ST_OK);
			break;
		}
		CU_ASSERT_EQUAL(st, ST_RUN);
		CU_ASSERT_EQUAL(e.status, ST_RUN);
		const char *said = strstr(e.text, "out of memory");
		CU_ASSERT_TRUE(said && (contexts || said == e.text));
	}
	CU_ASSERT(failures >= at_least);
}

static bool allocator_is_ours(void)
{
	long before = atomic_load(&live);
	void *volatile p = malloc(1);
	bool counts = atomic_load(&live) == before + 1;
	free(p);
	return counts;
}

#endif
