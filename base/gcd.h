#ifndef STEPSIM_BASE_GCD_H
#define STEPSIM_BASE_GCD_H

#include <stdint.h>

/* The greatest common divisor of numbers that are not negative; gcd(a, 0) is a. */
static inline int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

#endif
