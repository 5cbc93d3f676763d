/* Context parallelism cuts a sequence into chunks of equal length, one or two a rank (step/program.h says why). Rank i
 * of c has chunk i; with two a rank, chunks i and 2c-1-i, in this order. */
#ifndef STEPSIM_STEP_CUT_H
#define STEPSIM_STEP_CUT_H

#include <stdint.h>

#ifdef __CUDACC__
#define CUT_ANYWHERE static inline __host__ __device__
#else
#define CUT_ANYWHERE static inline
#endif

/* A rank's place in its context group. All zero: the rank has whole sequences. */
struct cut {
	int64_t ranks, rank;
	int64_t chunks; /* of each rank */
};

CUT_ANYWHERE int64_t cut_ranks(const struct cut *c) { return c->ranks > 1 ? c->ranks : 1; }

CUT_ANYWHERE int64_t cut_chunks(const struct cut *c) { return c->ranks > 1 ? c->chunks : 1; }

/* Returns the place in the sequence of the rank's chunk i. */
CUT_ANYWHERE int64_t cut_chunk(const struct cut *c, int64_t rank, int64_t i)
{
	return i > 0 ? 2 * cut_ranks(c) - 1 - rank : rank;
}

/* Returns the position in the whole sequence of row `row`, one of the s rows that this rank has. */
CUT_ANYWHERE int64_t cut_position(const struct cut *c, int64_t s, int64_t row)
{
	const int64_t rows = s / cut_chunks(c);
	return cut_chunk(c, c->rank, row / rows) * rows + row % rows;
}

#endif
