/* What the fuzzers share: numbers from a seed, a text of at most TEXT_MAX bytes (which the fuzzer defines before it includes this), and what mutations do to it. */
#ifndef STEPSIM_TESTS_FUZZ_FUZZ_H
#define STEPSIM_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/random.h"

/* From 0 to n - 1. */
static inline size_t below(size_t n)
{
	return (size_t)(random_next() % n);
}

struct text {
	char at[TEXT_MAX];
	size_t n;
};

/* A text that would become too long stays as it is. */
static inline void insert(struct text *t, size_t where, const char *piece, size_t len)
{
	if (t->n + len > TEXT_MAX)
		return;
	memmove(t->at + where + len, t->at + where, t->n - where);
	memcpy(t->at + where, piece, len);
	t->n += len;
}

static inline void cut(struct text *t, size_t where, size_t len)
{
	memmove(t->at + where, t->at + where + len, t->n - where - len);
	t->n -= len;
}

#endif
