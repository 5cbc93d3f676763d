/* The reference of convolutional networks: index by index, as step/ops.def words the ops. */
#include <math.h>
#include <string.h>

#include "exec/host/reference_private.h"

/* Calls `each` for all pairs of an element of the result and one of the input under a tap. */
struct pair {
	int64_t out, in, weight; /* elements of y, of x, of w */
};
typedef void pair_fn(const struct pair *p, void *const arg[]);

static void each_pair(const struct op *op, void *const arg[], pair_fn *each)
{
	const struct op_conv *d = &op->conv;
	const int64_t side = op_conv_side(op), pad = (d->kernel - 1) / 2, high = d->flat ? 1 : side;
	const int64_t taps = d->kernel * (d->flat ? 1 : d->kernel), rows = d->flat ? 1 : d->side;
	for (int64_t n = 0; n < d->batch; n++)
		for (int64_t oy = 0; oy < high; oy++)
			for (int64_t ox = 0; ox < side; ox++)
				for (int64_t o = 0; o < d->out; o++)
					for (int64_t k = 0; k < taps * d->in; k++) {
						const int64_t tap = k / d->in,
							      y = d->flat ? 0 : oy * d->stride + tap / d->kernel - pad,
							      x = ox * d->stride + tap % d->kernel - pad;
						if (y < 0 || x < 0 || y >= rows || x >= d->side)
							continue;
						const struct pair p = {((n * high + oy) * side + ox) * d->out + o,
							((n * rows + y) * d->side + x) * d->in + k % d->in,
							o * taps * d->in + k};
						each(&p, arg);
					}
}

static void forward_pair(const struct pair *p, void *const arg[])
{
	((double *)arg[2])[p->out] += ((double *)arg[0])[p->in] * ((double *)arg[1])[p->weight];
}

static void data_pair(const struct pair *p, void *const arg[])
{
	((double *)arg[2])[p->in] += ((double *)arg[0])[p->out] * ((double *)arg[1])[p->weight];
}

static void weight_pair(const struct pair *p, void *const arg[])
{
	((double *)arg[2])[p->weight] += ((double *)arg[0])[p->out] * ((double *)arg[1])[p->in];
}

static void clear(double *x, int64_t n) { memset(x, 0, (size_t)n * sizeof *x); }

REFERENCE(ref_conv)
{
	UNUSED();
	clear(arg[2], (int64_t)op_arg_bytes(op, ARG_CONV_y, 1) / 4);
	each_pair(op, arg, forward_pair);
	return ST_OK;
}

REFERENCE(ref_conv_data)
{
	UNUSED();
	clear(arg[2], (int64_t)op_arg_bytes(op, ARG_CONV_DATA_dx, 1) / 4);
	each_pair(op, arg, data_pair);
	return ST_OK;
}

REFERENCE(ref_conv_weight)
{
	UNUSED();
	if (!(op->flags & OP_ACCUMULATE))
		clear(arg[2], (int64_t)op_arg_bytes(op, ARG_CONV_WEIGHT_dw, 1) / 4);
	each_pair(op, arg, weight_pair);
	return ST_OK;
}

REFERENCE(ref_batch_norm)
{
	UNUSED();
	const int64_t rows = op->matrix.rows, cols = op->matrix.cols;
	const double *x = arg[0], *w = arg[1], *b = arg[2];
	double *y = arg[3], *stats = arg[4];
	for (int64_t c = 0; c < cols; c++) {
		double mean = 0.0, square = 0.0;
		for (int64_t r = 0; r < rows; r++)
			mean += x[r * cols + c] / (double)rows;
		for (int64_t r = 0; r < rows; r++)
			square += (x[r * cols + c] - mean) * (x[r * cols + c] - mean) / (double)rows;
		stats[c] = mean;
		stats[cols + c] = 1.0 / sqrt(square + (double)NORM_EPS);
		for (int64_t r = 0; r < rows; r++)
			y[r * cols + c] = (x[r * cols + c] - mean) * stats[cols + c] * w[c] + b[c];
	}
	return ST_OK;
}

REFERENCE(ref_batch_norm_grad)
{
	UNUSED();
	const int64_t rows = op->matrix.rows, cols = op->matrix.cols;
	const double *dy = arg[0], *x = arg[1], *w = arg[2], *stats = arg[3];
	double *dx = arg[4], *dw = arg[5], *db = arg[6];
	for (int64_t c = 0; c < cols; c++) {
		const double mean = stats[c], inverse = stats[cols + c];
		double sum = 0.0, sum_h = 0.0;
		for (int64_t r = 0; r < rows; r++) {
			sum += dy[r * cols + c];
			sum_h += dy[r * cols + c] * (x[r * cols + c] - mean) * inverse;
		}
		for (int64_t r = 0; r < rows; r++)
			dx[r * cols + c] = w[c] * inverse *
			                   (dy[r * cols + c] - sum / (double)rows -
						   (x[r * cols + c] - mean) * inverse * sum_h / (double)rows);
		dw[c] = (op->flags & OP_ACCUMULATE ? dw[c] : 0.0) + sum_h;
		db[c] = (op->flags & OP_ACCUMULATE ? db[c] : 0.0) + sum;
	}
	return ST_OK;
}

/* ---- pools ---- */

/* The pixel that a place of the result takes of a channel's image. */
static int64_t largest(const struct op *op, const double *x, int64_t place)
{
	const struct op_conv *d = &op->conv;
	const int64_t side = op_conv_side(op), pad = (d->kernel - 1) / 2;
	int64_t best = -1;
	for (int64_t tap = 0; tap < d->kernel * d->kernel; tap++) {
		const int64_t row = place / side * d->stride + tap / d->kernel - pad,
			      col = place % side * d->stride + tap % d->kernel - pad;
		if (row < 0 || col < 0 || row >= d->side || col >= d->side)
			continue;
		if (best < 0 || x[(row * d->side + col) * d->in] > x[best * d->in])
			best = row * d->side + col;
	}
	return best;
}

REFERENCE(ref_max_pool)
{
	UNUSED();
	const struct op_conv *d = &op->conv;
	const int64_t places = op_conv_side(op) * op_conv_side(op);
	for (int64_t i = 0; i < d->batch * places * d->in; i++) {
		const double *x = (const double *)arg[0] + i / d->in / places * d->side * d->side * d->in + i % d->in;
		const int64_t best = largest(op, x, i / d->in % places);
		((double *)arg[1])[i] = x[best * d->in];
		((int32_t *)arg[2])[i] = (int32_t)best;
	}
	return ST_OK;
}

REFERENCE(ref_max_pool_grad)
{
	UNUSED();
	const struct op_conv *d = &op->conv;
	const int64_t places = op_conv_side(op) * op_conv_side(op), pixels = d->side * d->side;
	clear(arg[2], d->batch * pixels * d->in);
	for (int64_t i = 0; i < d->batch * places * d->in; i++)
		((double *)arg[2])[(i / d->in / places * pixels + ((int32_t *)arg[1])[i]) * d->in + i % d->in] += ((
			double *)arg[0])[i];
	return ST_OK;
}

REFERENCE(ref_mean_pool)
{
	UNUSED();
	const int64_t pixels = op->conv.side * op->conv.side, n = op->conv.in;
	clear(arg[1], op->conv.batch * n);
	for (int64_t i = 0; i < op->conv.batch * pixels * n; i++)
		((double *)arg[1])[i / n / pixels * n + i % n] += ((double *)arg[0])[i] / (double)pixels;
	return ST_OK;
}

REFERENCE(ref_mean_pool_grad)
{
	UNUSED();
	const int64_t pixels = op->conv.side * op->conv.side, n = op->conv.in;
	for (int64_t i = 0; i < op->conv.batch * pixels * n; i++)
		((double *)arg[1])[i] = ((double *)arg[0])[i / n / pixels * n + i % n] / (double)pixels;
	return ST_OK;
}
