/* The reference of adaptive norms, gated additions and the loss of predicted numbers. */
#include "exec/host/reference_private.h"

/* Column `col` of those that the op reads for the sequence of row `r`. */
static double *number(const struct op_modulate *d, double *mod, int64_t r, int64_t col)
{
	return mod + r / d->seq * d->width + d->at + col;
}

REFERENCE(ref_modulate)
{
	UNUSED();
	const struct op_modulate *d = &op->modulate;
	double *mod = arg[ARG_MODULATE_mod], *stats = arg[ARG_MODULATE_stats];
	for (int64_t r = 0; r < d->batch * d->seq; r++) {
		const double *x = (double *)arg[ARG_MODULATE_x] + r * d->cols;
		double *y = (double *)arg[ARG_MODULATE_y] + r * d->cols, own[2] = {0.0, 1.0};
		if (stats) {
			reference_row_stats(op, x, d->cols, own);
			stats[2 * r] = own[0];
			stats[2 * r + 1] = own[1];
		}
		for (int64_t i = 0; i < d->cols; i++) {
			y[i] = (x[i] - own[0]) * own[1];
			if (mod)
				y[i] = y[i] * (1.0 + *number(d, mod, r, d->cols + i)) + *number(d, mod, r, i);
		}
	}
	return ST_OK;
}

/* Zeros in columns 0 to `cols` of those that the op writes. */
static void clear(const struct op_modulate *d, double *dmod, int64_t cols)
{
	for (int64_t b = 0; dmod && b < d->batch; b++)
		for (int64_t i = 0; i < cols; i++)
			*number(d, dmod, b * d->seq, i) = 0.0;
}

REFERENCE(ref_modulate_grad)
{
	UNUSED();
	const struct op_modulate *d = &op->modulate;
	double *mod = arg[ARG_MODULATE_GRAD_mod], *dmod = arg[ARG_MODULATE_GRAD_dmod];
	const double *stats = arg[ARG_MODULATE_GRAD_stats], plain[2] = {0.0, 1.0}, n = (double)d->cols;
	clear(d, dmod, 2 * d->cols);
	for (int64_t r = 0; r < d->batch * d->seq; r++) {
		const double *dy = (double *)arg[ARG_MODULATE_GRAD_dy] + r * d->cols,
			     *x = (double *)arg[ARG_MODULATE_GRAD_x] + r * d->cols, *s = stats ? stats + 2 * r : plain;
		double *dx = (double *)arg[ARG_MODULATE_GRAD_dx] + r * d->cols, mean_g = 0.0, mean_gh = 0.0;
		for (int64_t i = 0; i < d->cols; i++) {
			const double h = (x[i] - s[0]) * s[1],
				     g = dy[i] * (1.0 + (mod ? *number(d, mod, r, d->cols + i) : 0.0));
			mean_g += stats && !(op->flags & OP_RMS) ? g / n : 0.0;
			mean_gh += stats ? g * h / n : 0.0;
			if (dmod) {
				*number(d, dmod, r, i) += dy[i];
				*number(d, dmod, r, d->cols + i) += dy[i] * h;
			}
		}
		for (int64_t i = 0; i < d->cols; i++) {
			const double h = (x[i] - s[0]) * s[1],
				     g = dy[i] * (1.0 + (mod ? *number(d, mod, r, d->cols + i) : 0.0));
			dx[i] = (op->flags & OP_DX_ACCUMULATE ? dx[i] : 0.0) + s[1] * (g - mean_g - h * mean_gh);
		}
	}
	return ST_OK;
}

REFERENCE(ref_gated_add)
{
	UNUSED();
	const struct op_modulate *d = &op->modulate;
	const double *x = arg[ARG_GATED_ADD_x], *y = arg[ARG_GATED_ADD_y], *bias = arg[ARG_GATED_ADD_bias];
	for (int64_t i = 0; i < d->batch * d->seq * d->cols; i++)
		((double *)arg[ARG_GATED_ADD_sum])[i] = x[i] +
		                                        *number(d, arg[ARG_GATED_ADD_mod], i / d->cols, i % d->cols) *
		                                                (y[i] + (bias ? bias[i % d->cols] : 0.0));
	return ST_OK;
}

REFERENCE(ref_gated_add_grad)
{
	UNUSED();
	const struct op_modulate *d = &op->modulate;
	const double *dsum = arg[ARG_GATED_ADD_GRAD_dsum], *y = arg[ARG_GATED_ADD_GRAD_y],
		     *bias = arg[ARG_GATED_ADD_GRAD_bias];
	clear(d, arg[ARG_GATED_ADD_GRAD_dmod], d->cols);
	for (int64_t i = 0; i < d->batch * d->seq * d->cols; i++) {
		const int64_t r = i / d->cols, col = i % d->cols;
		((double *)arg[ARG_GATED_ADD_GRAD_dy])[i] = *number(d, arg[ARG_GATED_ADD_GRAD_mod], r, col) * dsum[i];
		*number(d, arg[ARG_GATED_ADD_GRAD_dmod], r, col) += dsum[i] * (y[i] + (bias ? bias[col] : 0.0));
	}
	return ST_OK;
}

REFERENCE(ref_square_loss)
{
	UNUSED();
	const double each = env->loss_scale / (double)op->matrix.cols, *target = arg[ARG_SQUARE_LOSS_target];
	double *x = arg[ARG_SQUARE_LOSS_prediction];
	for (int64_t i = 0; i < op->matrix.rows * op->matrix.cols; i++) {
		const double off = x[i] - target[i];
		*(double *)arg[ARG_SQUARE_LOSS_loss] += each * off * off;
		x[i] = 2.0 * each * off;
	}
	return ST_OK;
}
