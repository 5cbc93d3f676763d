/* The plain reference of Adafactor's ops. */
#include <math.h>

#include "exec/host/kernels.h"
#include "exec/host/reference_private.h"
#include "step/factored.h"

/* Row and column of element i of the rank's part of a tensor. */
static int64_t row_of(const struct factored_tensor *t, int64_t i) { return (t->from + i) / t->cols; }
static int64_t col_of(const struct factored_tensor *t, int64_t i) { return (t->from + i) % t->cols; }

REFERENCE(ref_adafactor_sums)
{
	UNUSED();
	const struct factored_tensor *t = arg[ARG_ADAFACTOR_SUMS_bounds];
	const double *g = arg[ARG_ADAFACTOR_SUMS_g],
		     *w = arg[ARG_ADAFACTOR_SUMS_master] ? arg[ARG_ADAFACTOR_SUMS_master] : arg[ARG_ADAFACTOR_SUMS_w];
	double *sums = arg[ARG_ADAFACTOR_SUMS_sums];
	for (int64_t i = 0; i < op->factored.sums; i++)
		sums[i] = 0;
	for (int64_t k = 0; k < op->factored.tensors; k++, t++)
		for (int64_t i = 0; i < t->n; i++) {
			const double square = g[t->begin + i] * g[t->begin + i];
			sums[t->at_sum] += w[t->begin + i] * w[t->begin + i];
			if (t->cols > 1) {
				sums[t->at_row + row_of(t, i)] += square;
				sums[t->at_col + col_of(t, i)] += square;
			}
		}
	return ST_OK;
}

/* g over the root of its mean square: of a vector its own, of a matrix row x column / sum of the matrix. */
static double direction(const struct factored_tensor *t, const double *factors, const double *v, int64_t i, double g)
{
	if (t->cols == 1)
		return g / sqrt(v[t->at_vector + i]);
	double all = 0;
	if (t->cols == t->all_cols)
		for (int64_t c = 0; c < t->cols; c++)
			all += factors[t->at_col + c];
	else
		for (int64_t r = 0; r < t->rows; r++)
			all += factors[t->at_row + r];
	return g / sqrt(factors[t->at_row + row_of(t, i)] * factors[t->at_col + col_of(t, i)] / all);
}

REFERENCE(ref_adafactor_norms)
{
	(void)e;
	const struct factored_tensor *t = arg[ARG_ADAFACTOR_NORMS_bounds];
	const double *g = arg[ARG_ADAFACTOR_NORMS_g], *sums = arg[ARG_ADAFACTOR_NORMS_sums],
		     decay = 1 - pow((double)env->step, -(double)ADAFACTOR_DECAY), least = (double)ADAFACTOR_EPS;
	double *factors = arg[ARG_ADAFACTOR_NORMS_factors], *v = arg[ARG_ADAFACTOR_NORMS_v],
	       *norms = arg[ARG_ADAFACTOR_NORMS_norms];
	for (int64_t k = 0; k < op->factored.tensors; k++, t++) {
		for (int64_t i = 0; i < t->rows && t->cols > 1; i++)
			factors[t->at_row + i] = decay * factors[t->at_row + i] +
			                         (1 - decay) * (sums[t->at_row + i] + least * (double)t->all_cols);
		for (int64_t i = 0; i < t->cols && t->cols > 1; i++)
			factors[t->at_col + i] = decay * factors[t->at_col + i] +
			                         (1 - decay) * (sums[t->at_col + i] + least * (double)t->all_rows);
		norms[k] = 0;
		for (int64_t i = 0; i < t->n; i++) {
			const double x = g[t->begin + i];
			if (t->cols == 1)
				v[t->at_vector + i] = decay * v[t->at_vector + i] + (1 - decay) * (x * x + least);
			const double u = direction(t, factors, v, i, x);
			norms[k] += u * u;
		}
	}
	return ST_OK;
}

REFERENCE(ref_adafactor_step)
{
	UNUSED();
	const struct factored_tensor *t = arg[ARG_ADAFACTOR_STEP_bounds];
	const double *g = arg[ARG_ADAFACTOR_STEP_g], *sums = arg[ARG_ADAFACTOR_STEP_sums],
		     *norms = arg[ARG_ADAFACTOR_STEP_norms], *factors = arg[ARG_ADAFACTOR_STEP_factors],
		     *v = arg[ARG_ADAFACTOR_STEP_v];
	double *w = arg[ARG_ADAFACTOR_STEP_w], *master = arg[ARG_ADAFACTOR_STEP_master];
	for (int64_t k = 0; k < op->factored.tensors; k++, t++) {
		const double n = (double)t->elements, size = sqrt(sums[t->at_sum] / n), longest = sqrt(norms[k] / n),
			     rate = (double)ADAFACTOR_LR * fmax((double)ADAFACTOR_LEAST, size) /
		                    fmax(1, longest / (double)ADAFACTOR_CLIP);
		for (int64_t i = 0; i < t->n; i++) {
			const int64_t at = t->begin + i;
			w[at] = (master ? master[at] : w[at]) - rate * direction(t, factors, v, i, g[at]);
			if (master)
				master[at] = w[at];
		}
	}
	return ST_OK;
}
