/* The plain reference of Muon's ops beside its products. */
#include <math.h>

#include "exec/host/kernels.h"
#include "exec/host/reference_private.h"

REFERENCE(ref_muon_direction)
{
	UNUSED();
	const double *g = arg[ARG_MUON_DIRECTION_g], beta = (double)MUON_MOMENTUM;
	double *m = arg[ARG_MUON_DIRECTION_m], *x = arg[ARG_MUON_DIRECTION_x];
	const int64_t n = op->muon.rows * op->muon.cols;
	for (int64_t first = 0; first < op->muon.groups * n; first += n) {
		double sum = 0.0;
		for (int64_t i = first; i < first + n; i++) {
			m[i] = beta * m[i] + g[i];
			x[i] = g[i] + beta * m[i];
			sum += x[i] * x[i];
		}
		for (int64_t i = first; i < first + n; i++)
			x[i] /= sqrt(sum) + (double)MUON_EPS;
	}
	return ST_OK;
}

REFERENCE(ref_muon_mix)
{
	UNUSED();
	const double *x = arg[ARG_MUON_MIX_x];
	double *y = arg[ARG_MUON_MIX_y];
	for (int64_t i = 0; i < op->muon.groups * op->muon.rows * op->muon.cols; i++)
		y[i] = op->flags & OP_ACCUMULATE ? (double)MUON_A * x[i] + y[i]
		                                 : (double)MUON_B * x[i] + (double)MUON_C * y[i];
	return ST_OK;
}

REFERENCE(ref_muon_step)
{
	UNUSED();
	const double *x = arg[ARG_MUON_STEP_x],
		     longest = (double)(op->muon.rows > op->muon.cols ? op->muon.rows : op->muon.cols);
	double *w = arg[ARG_MUON_STEP_w], *master = arg[ARG_MUON_STEP_master];
	for (int64_t i = 0; i < op->muon.groups * op->muon.rows * op->muon.cols; i++) {
		const double old = master ? master[i] : w[i];
		w[i] = old - (double)MUON_LR * ((double)MUON_DECAY * old + (double)MUON_RMS * sqrt(longest) * x[i]);
		if (master)
			master[i] = w[i];
	}
	return ST_OK;
}
