/* Random numbers of the tests, from a seed: the same on every machine. splitmix64 (Steele, Lea, Flood 2014,
 * https://doi.org/10.1145/2660193.2660195). */
#ifndef STEPSIM_TESTS_RANDOM_H
#define STEPSIM_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = UINT64_C(88172645463325252);

static inline uint64_t random_next(void)
{
	uint64_t z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* From 0 to n - 1. */
static inline uint32_t random_below(uint32_t n) { return (uint32_t)(random_next() % n); }

/* From 0 up to 1, without it. */
static inline double random_unit(void) { return (double)(random_next() >> 11) / 9007199254740992.0; }

#endif
