/* Moments in 8 bits for the tests of host and GPU kernels: filled with random bytes and scales, and compared with what
 * they should have become. The map is written out from its definition here, the nearest value is searched for among
 * all; exec/host/dynamic_map.h does neither. */
#ifndef STEPSIM_TESTS_UNIT_STATES8_CHECK_H
#define STEPSIM_TESTS_UNIT_STATES8_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "step/program.h"

#define STATES8_CODES 256
/* of the block's scale's neighbourhood: what rounding in fp32 may decide otherwise */
#define STATES8_NEAR 1e-5

static int states8_rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Seven decades up to 1; the lowest has one value of each sign (two where there is no sign), each next one twice as
 * many. */
static inline void states8_map(bool has_sign, double map[STATES8_CODES])
{
	int n = 0;
	for (int decade = 0; decade < 7; decade++) {
		int parts = (has_sign ? 1 : 2) << decade;
		for (int k = 0; k < parts; k++) {
			double lower = 0.1 + 0.9 * k / parts, upper = 0.1 + 0.9 * (k + 1) / parts,
			       x = pow(10.0, decade - 6) * (lower + upper) / 2.0;
			map[n++] = x;
			if (has_sign)
				map[n++] = -x;
		}
	}
	map[n++] = 0.0;
	map[n++] = 1.0;
	if (n != STATES8_CODES)
		abort();
	qsort(map, STATES8_CODES, sizeof *map, states8_rising);
}

struct states8_place {
	bool wide;
	int64_t block;
	uint64_t at_B; /* of the byte, or of the fp32 value */
};

static inline struct states8_place states8_place(const struct op *op, int64_t i)
{
	const struct states_8 s = states_8_of(op->update.elements, op->update.wide_from, op->update.wide_to);
	if (i >= op->update.wide_from && i < op->update.wide_to)
		return (struct states8_place){true, -1, s.wide_B + 4 * (uint64_t)(i - op->update.wide_from)};
	if (i < op->update.wide_from)
		return (struct states8_place){false, i / OPTIMIZER_BLOCK, s.codes_B + (uint64_t)i};
	return (struct states8_place){false, s.blocks[0] + (i - op->update.wide_to) / OPTIMIZER_BLOCK,
		s.codes_B + (uint64_t)(i - (op->update.wide_to - op->update.wide_from))};
}

/* Random bytes; the first block has scale 0, as when nothing was updated yet. `random`: in [-1, 1). exact: what the
 * moments are. */
static inline void states8_fill(const struct op *op, bool has_sign, double (*random)(void), unsigned char *at,
	double *exact)
{
	double map[STATES8_CODES];
	const struct states_8 s = states_8_of(op->update.elements, op->update.wide_from, op->update.wide_to);
	states8_map(has_sign, map);
	for (int64_t b = 0; b < s.blocks[0] + s.blocks[1]; b++)
		((float *)at)[b] = b == 0 ? 0.0f : (float)fabs(random());
	for (int64_t i = 0; i < op->update.elements; i++) {
		const struct states8_place p = states8_place(op, i);
		if (p.wide) {
			float x = (float)(has_sign ? random() : fabs(random()));
			*(float *)(at + p.at_B) = x;
			exact[i] = (double)x;
		} else {
			at[p.at_B] = (unsigned char)(128.0 + 128.0 * random());
			exact[i] = map[at[p.at_B]] * (double)((float *)at)[p.block];
		}
	}
}

static inline double states8_nearest(const double map[STATES8_CODES], double x, bool below)
{
	double best = INFINITY;
	for (int c = 0; c < STATES8_CODES; c++)
		if (fabs(map[c] - x) < fabs(best - x) && (!below || map[c] < 0.0))
			best = map[c];
	return best;
}

/* Elements of a moment that are not what `exact` has become: each block's scale is its largest value, each byte that of
 * the nearest value, below 0 one below 0. */
static inline size_t states8_wrong(const struct op *op, bool has_sign, const unsigned char *at, const double *exact)
{
	double map[STATES8_CODES];
	const struct states_8 s = states_8_of(op->update.elements, op->update.wide_from, op->update.wide_to);
	const int64_t blocks = s.blocks[0] + s.blocks[1];
	double *largest = calloc((size_t)blocks + 1, sizeof *largest);
	size_t wrong = 0;
	if (!largest)
		abort();
	states8_map(has_sign, map);
	for (int64_t i = 0; i < op->update.elements; i++) {
		const struct states8_place p = states8_place(op, i);
		if (!p.wide)
			largest[p.block] = fmax(largest[p.block], fabs(exact[i]));
	}
	for (int64_t b = 0; b < blocks; b++)
		wrong += !(fabs((double)((const float *)at)[b] - largest[b]) <= 1e-6 * largest[b]);
	for (int64_t i = 0; i < op->update.elements; i++) {
		const struct states8_place p = states8_place(op, i);
		if (p.wide) {
			wrong += !(fabs((double)*(const float *)(at + p.at_B) - exact[i]) <= 1e-6);
			continue;
		}
		const double scale = largest[p.block] > 0.0 ? largest[p.block] : 1.0, x = exact[i] / scale,
			     got = map[at[p.at_B]];
		const double best = states8_nearest(map, x, has_sign && x < 0.0);
		bool good = fabs(got - x) <= fabs(best - x) + STATES8_NEAR * fabs(x) && !(x < -1e-9 && got >= 0.0) &&
		            !(x == 0.0 && got != 0.0);
		wrong += !good;
		if (!good && wrong <= 5)
			fprintf(stderr,
				"element %lld of %lld: %.9g of its block's largest became %.9g, the nearest is %.9g\n",
				(long long)i, (long long)op->update.elements, x, got, best);
	}
	free(largest);
	return wrong;
}

#endif
