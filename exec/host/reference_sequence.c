#include "exec/host/reference_private.h"

/* Element (b, row, col) of sequences of so many rows. */
static int64_t at(const struct op_sequence *d, int64_t rows, int64_t b, int64_t row, int64_t col)
{
	return (b * rows + row) * d->cols + col;
}

#define FOR_ROWS(d, from, to) \
	for (int64_t b = 0; b < (d)->batch; b++) \
		for (int64_t row = (from); row < (to); row++) \
			for (int64_t col = 0; col < (d)->cols; col++)

REFERENCE(ref_pick)
{
	UNUSED();
	const struct op_sequence *d = &op->sequence;
	FOR_ROWS(d, 0, d->first)
	((double *)arg[1])[at(d, d->first, b, row, col)] = ((double *)arg[0])[at(d, d->seq, b, row, col)];
	return ST_OK;
}

REFERENCE(ref_pick_grad)
{
	UNUSED();
	const struct op_sequence *d = &op->sequence;
	FOR_ROWS(d, 0, d->seq)
	{
		double *dx = (double *)arg[1] + at(d, d->seq, b, row, col);
		*dx = (op->flags & OP_ACCUMULATE ? *dx : 0.0) +
		      (row < d->first ? ((double *)arg[0])[at(d, d->first, b, row, col)] : 0.0);
	}
	return ST_OK;
}

REFERENCE(ref_prepend)
{
	UNUSED();
	const struct op_sequence *d = &op->sequence;
	FOR_ROWS(d, 0, d->seq)
	((double *)arg[2])[at(d, d->seq, b, row, col)] =
		row < d->first ? ((double *)arg[0])[row * d->cols + col]
			       : ((double *)arg[1])[at(d, d->seq - d->first, b, row - d->first, col)];
	return ST_OK;
}

REFERENCE(ref_prepend_grad)
{
	UNUSED();
	const struct op_sequence *d = &op->sequence;
	const double *dx = arg[0];
	double *dw = arg[1];
	for (int64_t i = 0; dw && i < d->first * d->cols; i++)
		dw[i] = op->flags & OP_ACCUMULATE ? dw[i] : 0.0;
	FOR_ROWS(d, 0, d->seq)
	{
		const double x = dx[at(d, d->seq, b, row, col)];
		if (row >= d->first)
			((double *)arg[2])[at(d, d->seq - d->first, b, row - d->first, col)] = x;
		else if (dw)
			dw[row * d->cols + col] += x;
	}
	return ST_OK;
}
