/* The reference of norms: of rows, and of the heads of queries and keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/reference_private.h"

/* Columns of a row of x and dx. */
static int64_t row_width(const struct op *op) { return op->matrix.width > 0 ? op->matrix.width : op->matrix.cols; }

void reference_row_stats(const struct op *op, const double *x, int64_t n, double stats[2])
{
	double mean = 0.0, square = 0.0;
	for (int64_t i = 0; i < n && !(op->flags & OP_RMS); i++)
		mean += x[i] / (double)n;
	for (int64_t i = 0; i < n; i++)
		square += (x[i] - mean) * (x[i] - mean) / (double)n;
	stats[0] = mean;
	stats[1] = 1.0 / sqrt(square + (double)NORM_EPS);
}

static void norm_row(const struct op *op, const double *x, const double *w, const double *b, double *y, double *stats)
{
	const int64_t n = op->matrix.cols;
	reference_row_stats(op, x, n, stats);
	for (int64_t i = 0; i < n; i++)
		y[i] = (x[i] - stats[0]) * stats[1] * w[i] + (b ? b[i] : 0.0);
}

REFERENCE(ref_norm)
{
	UNUSED();
	for (int64_t r = 0; r < op->matrix.rows; r++)
		norm_row(op, (double *)arg[0] + r * row_width(op), arg[1], arg[2],
			(double *)arg[3] + r * op->matrix.cols, (double *)arg[4] + 2 * r);
	return ST_OK;
}

REFERENCE(ref_norm_grad)
{
	UNUSED();
	const int64_t n = op->matrix.cols;
	const double *w = arg[2];
	double *dw = arg[5], *db = arg[6];
	for (int64_t i = 0; i < n && !(op->flags & OP_ACCUMULATE); i++) {
		dw[i] = 0.0;
		if (db)
			db[i] = 0.0;
	}
	for (int64_t r = 0; r < op->matrix.rows; r++) {
		const double *dy = (double *)arg[0] + r * n, *x = (double *)arg[1] + r * row_width(op),
			     *stats = (double *)arg[3] + 2 * r;
		double *dx = (double *)arg[4] + r * row_width(op), mean_g = 0.0, mean_gh = 0.0;
		for (int64_t i = 0; i < n; i++) {
			double h = (x[i] - stats[0]) * stats[1];
			mean_g += op->flags & OP_RMS ? 0.0 : dy[i] * w[i] / (double)n;
			mean_gh += dy[i] * w[i] * h / (double)n;
			dw[i] += dy[i] * h;
			if (db)
				db[i] += dy[i];
		}
		for (int64_t i = 0; i < n; i++)
			dx[i] = (op->flags & OP_DX_ACCUMULATE ? dx[i] : 0.0) +
			        stats[1] * (dy[i] * w[i] - mean_g - (x[i] - stats[0]) * stats[1] * mean_gh);
	}
	return ST_OK;
}

/* Where the norm of one of a row's heads stands, with its columns; with attn.full "head" 0 is all queries, 1 all keys.
 */
static int64_t head_columns(const struct op_attn *d, int64_t head, int64_t *cols)
{
	const int64_t D = d->head_dim;
	*cols = !d->full ? D : head == 0 ? d->heads * D : d->kv_heads * D;
	return !d->full ? head * D : head == 0 ? 0 : d->heads * D;
}

/* A norm of one row. */
static struct op norm_of(const struct op *op, int64_t cols)
{
	struct op norm = {.flags = op->flags & OP_RMS};
	norm.matrix.rows = 1;
	norm.matrix.cols = cols;
	return norm;
}

REFERENCE(ref_qk_norm)
{
	UNUSED();
	const struct op_attn *d = &op->attn;
	const int64_t rows = d->batch * d->seq, norms = d->full ? 2 : d->heads + d->kv_heads,
		      queries = d->full ? 1 : d->heads, width = (d->heads + 2 * d->kv_heads) * d->head_dim;
	memmove(arg[3], arg[0], (size_t)(rows * width) * sizeof(double));
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < norms; i++) {
			int64_t cols, at = r * width + head_columns(d, i, &cols);
			const struct op norm = norm_of(op, cols);
			norm_row(&norm, (double *)arg[0] + at, arg[i < queries ? 1 : 2], NULL, (double *)arg[3] + at,
				(double *)arg[4] + 2 * (r * norms + i));
		}
	return ST_OK;
}

REFERENCE(ref_qk_norm_grad)
{
	const struct op_attn *d = &op->attn;
	const int64_t rows = d->batch * d->seq, norms = d->full ? 2 : d->heads + d->kv_heads,
		      queries = d->full ? 1 : d->heads, width = (d->heads + 2 * d->kv_heads) * d->head_dim;
	bool begun[2] = {op->flags & OP_ACCUMULATE, op->flags & OP_ACCUMULATE}; /* dwq, dwk */
	double *dy = malloc((size_t)width * sizeof *dy);
	if (!dy)
		return error_nomem(e, "the reference");
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < norms; i++) {
			int64_t cols, at = r * width + head_columns(d, i, &cols);
			const int key = i >= queries;
			double *dx = (double *)arg[0] + at;
			struct op norm = norm_of(op, cols);
			memcpy(dy, dx, (size_t)cols * sizeof *dy);
			norm.flags |= begun[key] ? OP_ACCUMULATE : 0;
			begun[key] = true;
			ref_norm_grad(env, &norm,
				(void *const[]){dy, (double *)arg[1] + at, arg[2 + key],
					(double *)arg[4] + 2 * (r * norms + i), dx, arg[5 + key], NULL},
				e);
		}
	free(dy);
	return ST_OK;
}
