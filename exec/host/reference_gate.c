/* The reference of gates by a sigmoid and of gated short convolutions, as step/ops.def words them. */
#include <math.h>

#include "exec/host/reference_private.h"

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

REFERENCE(ref_sigmoid_gate)
{
	UNUSED();
	const int64_t cols = op->gate.cols, gates = op->gate.gates;
	const double *x = arg[0], *gate = arg[1];
	for (int64_t r = 0; r < op->gate.rows; r++)
		for (int64_t c = 0; c < cols; c++)
			((double *)arg[2])[r * cols + c] = x[r * cols + c] *
			                                   sigmoid(gate[r * gates + c * gates / cols]);
	return ST_OK;
}

REFERENCE(ref_sigmoid_gate_grad)
{
	UNUSED();
	const int64_t cols = op->gate.cols, gates = op->gate.gates;
	const double *dy = arg[0], *x = arg[1], *gate = arg[2];
	double *dx = arg[3], *dgate = arg[4];
	for (int64_t i = 0; i < op->gate.rows * gates; i++)
		dgate[i] = 0.0;
	for (int64_t r = 0; r < op->gate.rows; r++)
		for (int64_t c = 0; c < cols; c++) {
			const int64_t at = r * cols + c, g = r * gates + c * gates / cols;
			dx[at] = dy[at] * sigmoid(gate[g]);
			dgate[g] += dy[at] * x[at] * sigmoid(gate[g]) * (1.0 - sigmoid(gate[g]));
		}
	return ST_OK;
}

/* Where b, c and x of a channel in a row stand: their first number. */
static int64_t in_at(const struct op *op, int64_t r, int64_t c) { return 3 * (r * op->short_conv.channels + c); }

static double convolved(const struct op *op, const double *in, const double *w, int64_t r, int64_t c)
{
	const int64_t taps = op->short_conv.taps;
	double sum = 0.0;
	for (int64_t j = 0; j < taps; j++)
		if (r % op->short_conv.seq >= taps - 1 - j) {
			const int64_t at = in_at(op, r - (taps - 1 - j), c);
			sum += w[c * taps + j] * in[at] * in[at + 2];
		}
	return sum;
}

REFERENCE(ref_short_conv)
{
	UNUSED();
	const double *in = arg[0], *w = arg[1];
	for (int64_t r = 0; r < op->short_conv.batch * op->short_conv.seq; r++)
		for (int64_t c = 0; c < op->short_conv.channels; c++)
			((double *)arg[2])[in_at(op, r, c) / 3] = in[in_at(op, r, c) + 1] * convolved(op, in, w, r, c);
	return ST_OK;
}

REFERENCE(ref_short_conv_grad)
{
	UNUSED();
	const int64_t rows = op->short_conv.batch * op->short_conv.seq, channels = op->short_conv.channels,
		      taps = op->short_conv.taps;
	const double *in = arg[0], *w = arg[1], *dout = arg[2];
	double *din = arg[3], *dw = arg[4];
	for (int64_t i = 0; i < channels * taps && !(op->flags & OP_ACCUMULATE); i++)
		dw[i] = 0.0;
	for (int64_t i = 0; i < 3 * rows * channels; i++)
		din[i] = 0.0;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < channels; c++) {
			const double d = dout[r * channels + c] * in[in_at(op, r, c) + 1];
			din[in_at(op, r, c) + 1] = dout[r * channels + c] * convolved(op, in, w, r, c);
			for (int64_t j = 0; j < taps; j++) {
				const int64_t back = taps - 1 - j, at = in_at(op, r - back, c);
				if (r % op->short_conv.seq < back)
					continue;
				dw[c * taps + j] += d * in[at] * in[at + 2];
				din[at] += d * w[c * taps + j] * in[at + 2];
				din[at + 2] += d * w[c * taps + j] * in[at];
			}
		}
	return ST_OK;
}
