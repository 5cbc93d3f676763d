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

/* Changes a byte, cuts some, or puts in one of the pieces or the beginning of a seed. */
static inline void mutate_from(struct text *t, const char *const *seeds, size_t n_seeds, const char *const *pieces,
	size_t n_pieces)
{
	const size_t where = below(t->n + 1), rest = t->n - where, len = below(rest < 32 ? rest + 1 : 32);
	const char *piece = pieces[below(n_pieces)];
	switch (below(4)) {
	case 0:
		if (rest)
			t->at[where] = (char)below(256);
		break;
	case 1: cut(t, where, len); break;
	case 2: insert(t, where, piece, strlen(piece)); break;
	default: piece = seeds[below(n_seeds)]; insert(t, where, piece, below(strlen(piece)));
	}
}

static const char *broken; /* the promise that does not hold */

static inline void check(bool holds, const char *promise)
{
	if (!holds)
		broken = promise;
}

/* For libFuzzer (https://llvm.org/docs/LibFuzzer.html), which brings main and the changes: `make VARIANT=fuzz fuzzers`.
 * What try_text draws depends on the text alone, so that a text that fails fails again. */
#define FUZZ_ONE(try_text) \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_one(data, size, try_text); }

static inline int fuzz_one(const uint8_t *data, size_t size, void (*try_text)(const struct text *))
{
	static struct text t;
	if (size > TEXT_MAX)
		return 0;
	random_state = size;
	for (size_t i = 0; i < size; i++)
		random_state = random_state * 31 + data[i];
	t.n = size;
	if (size)
		memcpy(t.at, data, size);
	try_text(&t);
	if (broken) {
		fprintf(stderr, "broken promise: %s\n", broken);
		abort();
	}
	return 0;
}

/* `name seeds FOLDER` writes the seeds as files, for libFuzzer. */
static inline int write_seeds(const char *folder, const char *const *seeds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/seed%zu", folder, i);
		FILE *f = fopen(path, "w");
		bool good = f && fputs(seeds[i], f) >= 0;
		if ((f && fclose(f)) || !good)
			return 1;
	}
	return 0;
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
	if (argc > 2 && !strcmp(argv[1], "seeds"))
		return write_seeds(argv[2], seeds, n);
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
