/* Small matrix products for the flash kernels' tiles, on operands where they lie: no packing, which is what makes BLAS
 * slow at this size.
 *
 * One vector of the machine holds VEC_FLOATS floats. A block of R rows by NV vectors of C stays in registers over the
 * whole inner dimension; an element of A is broadcast, a row of B read as vectors.
 */
#ifndef STEPSIM_EXEC_HOST_KERNELS_TILE_H
#define STEPSIM_EXEC_HOST_KERNELS_TILE_H

#include <stdint.h>

#if defined(__AVX512F__)
#define VEC_FLOATS 16
#define TILE_NV 4 /* 24 of 32 registers hold C */
#elif defined(__AVX__)
#define VEC_FLOATS 8
#define TILE_NV 2 /* 12 of 16 */
#else
#define VEC_FLOATS 4
#define TILE_NV 2
#endif
#define TILE_ROWS 6

typedef float vec __attribute__((vector_size(VEC_FLOATS * sizeof(float))));
typedef float vec_unaligned __attribute__((vector_size(VEC_FLOATS * sizeof(float)), aligned(4), may_alias));

/* The initial value of C, to which the product is added: zero, C itself, or C times one factor a column. */
enum tile_start { TILE_ZERO, TILE_ADD, TILE_SCALE };

struct tile_product {
	int64_t rows, cols, inner; /* cols: a multiple of VEC_FLOATS */
	const float *a;            /* A(r, k) = a[r row_a + k col_a] */
	int64_t row_a, col_a;
	const float *b; /* B(k, c) = b[k row_b + c] */
	int64_t row_b;
	float *c;
	int64_t row_c;
	enum tile_start start;
	const float *factor; /* TILE_SCALE: [cols] */
};

/* R and NV are constants at each call: the loops over them unroll and c lives in registers. */
static inline __attribute__((always_inline)) void tile_block(const struct tile_product *t, int R, int NV, int64_t row,
	int64_t col)
{
	const float *a = t->a + row * t->row_a, *b = t->b + col;
	float *to = t->c + row * t->row_c + col;
	const int64_t row_a = t->row_a, col_a = t->col_a, row_b = t->row_b, row_c = t->row_c, inner = t->inner;
	vec c[TILE_ROWS][TILE_NV] = {0};
	if (t->start != TILE_ZERO)
#pragma GCC unroll 8
		for (int r = 0; r < R; r++)
#pragma GCC unroll 8
			for (int v = 0; v < NV; v++)
				c[r][v] = *(const vec_unaligned *)(to + r * row_c + v * VEC_FLOATS);
	if (t->start == TILE_SCALE)
#pragma GCC unroll 8
		for (int r = 0; r < R; r++)
#pragma GCC unroll 8
			for (int v = 0; v < NV; v++)
				c[r][v] *= *(const vec_unaligned *)(t->factor + col + v * VEC_FLOATS);
	for (int64_t k = 0; k < inner; k++) {
		vec from[TILE_NV];
#pragma GCC unroll 8
		for (int v = 0; v < NV; v++)
			from[v] = *(const vec_unaligned *)(b + k * row_b + v * VEC_FLOATS);
#pragma GCC unroll 8
		for (int r = 0; r < R; r++) {
			float x = a[r * row_a + k * col_a];
#pragma GCC unroll 8
			for (int v = 0; v < NV; v++)
				c[r][v] += x * from[v];
		}
	}
#pragma GCC unroll 8
	for (int r = 0; r < R; r++)
#pragma GCC unroll 8
		for (int v = 0; v < NV; v++)
			*(vec_unaligned *)(to + r * row_c + v * VEC_FLOATS) = c[r][v];
}

static inline __attribute__((always_inline)) void tile_columns(const struct tile_product *t, int NV, int64_t col)
{
	int64_t r = 0;
	for (; r + TILE_ROWS <= t->rows; r += TILE_ROWS)
		tile_block(t, TILE_ROWS, NV, r, col);
	for (; r + 2 <= t->rows; r += 2)
		tile_block(t, 2, NV, r, col);
	if (r < t->rows)
		tile_block(t, 1, NV, r, col);
}

/* C (+)= A B. */
static inline void tile_multiply(const struct tile_product *t)
{
	int64_t col = 0;
	for (; col + TILE_NV * VEC_FLOATS <= t->cols; col += TILE_NV * VEC_FLOATS)
		tile_columns(t, TILE_NV, col);
	for (; col < t->cols; col += VEC_FLOATS)
		tile_columns(t, 1, col);
}

#endif
