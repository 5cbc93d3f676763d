/* Matrix products on OpenBLAS. The pool cuts C into a grid and every thread calls BLAS for its cell. That is as fast as
 * OpenBLAS's own threads, which keep spinning on the pool's cores after each call (version 0.3.21 on 2 cores: 201
 * against 206 GFLOP/s, but the elementwise op behind a product took half the time). */
#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "exec/host/kernels_private.h"

#define ROW_UNIT 16 /* cells of whole blocks of the BLAS kernels */
#define COL_UNIT 64
#define CELL_MULTIPLY_ADDS 1e6 /* at least, in a cell: tens of microseconds */

struct gemm {
	const float *a, *b, *bias;
	float *c;
	int64_t m, n, k;
	bool trans_a, trans_b, add;
	int64_t grid_rows, grid_cols;
};

bool kernel_blas_is_serial(void) { return openblas_get_num_threads() == 1; }

/* Beginning of part i of `parts` of n, in whole units. */
static int64_t cut(int64_t n, int64_t i, int64_t parts, int64_t unit)
{
	int64_t at = (n + unit - 1) / unit * i / parts * unit;
	return at < n ? at : n;
}

/* A bias is laid into C before the product is added to it: with beta = 0 OpenBLAS would fill C with zeros there. */
static void lay_bias(const struct gemm *g, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
	const float *restrict bias = g->bias + col;
	for (int64_t r = row; r < row + rows; r++) {
		float *restrict c = g->c + r * g->n + col;
		if (!g->add)
			memcpy(c, bias, (size_t)cols * sizeof *c);
		else
			for (int64_t i = 0; i < cols; i++)
				c[i] += bias[i];
	}
}

static void gemm_cell(void *ctx, int64_t cell, int thread)
{
	(void)thread;
	const struct gemm *g = ctx;
	const int64_t i = cell / g->grid_cols, j = cell % g->grid_cols;
	const int64_t row = cut(g->m, i, g->grid_rows, ROW_UNIT), rows = cut(g->m, i + 1, g->grid_rows, ROW_UNIT) - row;
	const int64_t col = cut(g->n, j, g->grid_cols, COL_UNIT), cols = cut(g->n, j + 1, g->grid_cols, COL_UNIT) - col;
	if (rows == 0 || cols == 0)
		return;
	if (g->bias)
		lay_bias(g, row, rows, col, cols);
	cblas_sgemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans, g->trans_b ? CblasTrans : CblasNoTrans,
		(blasint)rows, (blasint)cols, (blasint)g->k, 1.0f, g->a + (g->trans_a ? row : row * g->k),
		(blasint)(g->trans_a ? g->m : g->k), g->b + (g->trans_b ? col * g->k : col),
		(blasint)(g->trans_b ? g->k : g->n), g->add || g->bias ? 1.0f : 0.0f, g->c + row * g->n + col,
		(blasint)g->n);
}

/* The grid of as many cells as there are threads whose cells have the shortest border: the least to read and pack. */
static void choose_grid(struct gemm *g, int threads)
{
	double room = (double)g->m * (double)g->n * (double)g->k / CELL_MULTIPLY_ADDS, best = 0.0;
	int64_t cells = room < 1.0 ? 1 : room < (double)threads ? (int64_t)room : threads;
	for (int64_t r = 1; r <= cells; r++) {
		if (cells % r)
			continue;
		double border = (double)g->m / (double)r + (double)g->n / (double)(cells / r);
		if (r == 1 || border < best) {
			best = border;
			g->grid_rows = r;
			g->grid_cols = cells / r;
		}
	}
}

enum status kernel_gemm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct gemm g = {arg[0], arg[1], arg[2], arg[3], op->gemm.m, op->gemm.n, op->gemm.k, op->flags & OP_TRANS_A,
		op->flags & OP_TRANS_B, op->flags & OP_ACCUMULATE, 1, 1};
	if (g.m > INT_MAX || g.n > INT_MAX || g.k > INT_MAX)
		return error_set(e, ST_RUN, "a GEMM of %lld x %lld x %lld is too large for BLAS", (long long)g.m,
			(long long)g.n, (long long)g.k);
	choose_grid(&g, kernel_blas_is_serial() ? pool_threads(env->pool) : 1);
	pool_run(env->pool, gemm_cell, &g, g.grid_rows * g.grid_cols);
	return ST_OK;
}
