/* Shared by the fuzzers: numbers from a seed, a text of at most TEXT_MAX bytes (which the fuzzer defines before it
 * includes this), mutations of it, promises, and the rounds. */
#ifndef STEPSIM_TESTS_FUZZ_FUZZ_H
#define STEPSIM_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/random.h"

/* From 0 to n - 1. */
static inline size_t below(size_t n) { return (size_t)(random_next() % n); }

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

static const char *broken; /* the promise that does not hold */

static inline void check(bool holds, const char *promise)
{
	if (!holds)
		broken = promise;
}

/* `name SECONDS SEED`: each round one of n seeds, changed up to seven times (the first n rounds: as it is), is tried. A
 * broken promise prints the text. Returns main's status. */
static inline int fuzz_texts(const char *name, const char *const *seeds, size_t n, void (*mutate)(struct text *),
	void (*try_text)(const struct text *), int argc, char **argv)
{
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : 10, end_s = clock_s() + seconds;
	const unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	unsigned long long rounds = 0;
	random_state = seed;
	do {
		struct text t;
		const char *start = seeds[below(n)];
		t.n = strlen(start);
		memcpy(t.at, start, t.n);
		for (size_t i = rounds < n ? 0 : below(8); i > 0; i--)
			mutate(&t);
		try_text(&t);
		rounds++;
		if (broken) {
			fprintf(stderr, "%s: round %llu of seed %llu: broken promise: %s\n", name, rounds, seed,
				broken);
			fwrite(t.at, 1, t.n, stderr);
			return 1;
		}
	} while (clock_s() < end_s);
	printf("%s: %llu texts, seed %llu: all promises held\n", name, rounds, seed);
	return 0;
}

#endif
