/* How many of the `all` random cases of a property are tried: STEPSIM_TEST_PART=4 asks for one in four, where a
 * sanitizer makes each of them slow. */
#ifndef STEPSIM_TESTS_PROPERTY_ROUNDS_H
#define STEPSIM_TESTS_PROPERTY_ROUNDS_H

#include <stdlib.h>

static inline int rounds_of(int all)
{
	const char *part = getenv("STEPSIM_TEST_PART");
	return part && atoi(part) > 1 ? all / atoi(part) : all;
}

#endif
