/* The reference of Mamba-2's ops: index by index, as step/ops.def words them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/reference_private.h"
#include "exec/host/reference_ssm.h"

static double convolved(const struct place *p, const double *in, const double *w, const double *b, int64_t r, int64_t c)
{
	const int64_t taps = p->d->conv;
	double sum = b ? b[c] : 0.0;
	for (int64_t j = 0; j < taps; j++)
		if (r % p->d->seq >= taps - 1 - j)
			sum += w[c * taps + j] * in[conv_at(p, r - (taps - 1 - j), c)];
	return sum;
}

REFERENCE(ref_ssm_conv)
{
	UNUSED();
	const struct place p = place_of(op);
	for (int64_t r = 0; r < p.d->batch * p.d->seq; r++)
		for (int64_t c = 0; c < p.d->groups * p.conv; c++) {
			const double y = convolved(&p, arg[0], arg[1], arg[2], r, c);
			((double *)arg[3])[xbc_at(&p, r, c)] = y * sigmoid(y);
		}
	return ST_OK;
}

REFERENCE(ref_ssm_conv_grad)
{
	UNUSED();
	const struct place p = place_of(op);
	const int64_t rows = p.d->batch * p.d->seq, cols = p.d->groups * p.conv, taps = p.d->conv;
	const double *in = arg[0], *w = arg[1], *dxbc = arg[3];
	double *din = arg[4], *dw = arg[5], *db = arg[6];
	for (int64_t i = 0; i < cols * taps && !(op->flags & OP_ACCUMULATE); i++)
		dw[i] = 0.0;
	for (int64_t i = 0; db && i < cols && !(op->flags & OP_ACCUMULATE); i++)
		db[i] = 0.0;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			din[conv_at(&p, r, c)] = 0.0;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++) {
			const double d = dxbc[xbc_at(&p, r, c)] * silu_slope(convolved(&p, in, w, arg[2], r, c));
			if (db)
				db[c] += d;
			for (int64_t j = 0; j < taps; j++) {
				const int64_t back = taps - 1 - j;
				if (r % p.d->seq < back)
					continue;
				dw[c * taps + j] += d * in[conv_at(&p, r - back, c)];
				din[conv_at(&p, r - back, c)] += d * w[c * taps + j];
			}
		}
	return ST_OK;
}

/* ---- the scan ---- */

struct head {
	int64_t x, B, C; /* columns of xbc */
	double A, bias, D;
};

static struct head head_of(const struct place *p, const double *heads, int64_t h)
{
	const int64_t group = h / p->heads * p->conv;
	return (struct head){group + h % p->heads * p->d->head_dim, group + p->x, group + p->x + p->d->state,
		-exp(heads[3 * h]), heads[3 * h + 1], heads[3 * h + 2]};
}

static double dt_of(const struct place *p, const double *in, const struct head *head, int64_t r, int64_t h)
{
	return log1p(exp(in[dt_at(p, r, h)] + head->bias));
}

/* state [head_dim, state] of head h behind row r, from that before it. */
static void advance(const struct place *p, const double *xbc, const struct head *head, int64_t r, double dt,
	double *state)
{
	for (int64_t i = 0; i < p->d->head_dim; i++)
		for (int64_t n = 0; n < p->d->state; n++) {
			double *s = state + i * p->d->state + n;
			*s = exp(dt * head->A) * *s +
			     dt * xbc[xbc_at(p, r, head->x + i)] * xbc[xbc_at(p, r, head->B + n)];
		}
}

REFERENCE(ref_ssm_scan)
{
	const struct place p = place_of(op);
	const double *xbc = arg[0], *in = arg[1];
	const int64_t P = p.d->head_dim, N = p.d->state;
	double *state = calloc((size_t)(P * N), sizeof *state);
	(void)env;
	if (!state)
		return error_nomem(e, "the reference");
	for (int64_t h = 0; h < p.d->heads; h++) {
		const struct head head = head_of(&p, arg[2], h);
		for (int64_t r = 0; r < p.d->batch * p.d->seq; r++) {
			if (r % p.d->seq == 0)
				memset(state, 0, (size_t)(P * N) * sizeof *state);
			keep_state(&p, r, h, state, arg[3]);
			advance(&p, xbc, &head, r, dt_of(&p, in, &head, r, h), state);
			for (int64_t i = 0; i < P; i++) {
				double y = head.D * xbc[xbc_at(&p, r, head.x + i)];
				for (int64_t n = 0; n < N; n++)
					y += state[i * N + n] * xbc[xbc_at(&p, r, head.C + n)];
				((double *)arg[4])[(r * p.d->heads + h) * P + i] = y;
			}
		}
	}
	free(state);
	return ST_OK;
}

/* The gradients of head h in row r. before, after: its states around the row; dstate: of the state behind the row on
 * the way in, of that before it on the way out. */
static void row_grad(const struct place *p, const struct op *op, void *const arg[], const struct head *head, int64_t r,
	int64_t h, const double *before, const double *after, double *dstate)
{
	const double *xbc = arg[0], *in = arg[1],
		     *dy = (const double *)arg[3] + (r * op->ssm.heads + h) * op->ssm.head_dim;
	double *dxbc = arg[5], *din = arg[6], *dheads = (double *)arg[7] + 3 * h;
	const double dt = dt_of(p, in, head, r, h), decay = exp(dt * head->A);
	double ddt = 0.0;
	for (int64_t i = 0; i < op->ssm.head_dim; i++) {
		const double x = xbc[xbc_at(p, r, head->x + i)];
		double *dx = dxbc + xbc_at(p, r, head->x + i);
		*dx = head->D * dy[i];
		dheads[2] += dy[i] * x;
		for (int64_t n = 0; n < op->ssm.state; n++) {
			const int64_t s = i * op->ssm.state + n;
			const double B = xbc[xbc_at(p, r, head->B + n)], C = xbc[xbc_at(p, r, head->C + n)];
			const double d = dstate[s] + dy[i] * C;
			dxbc[xbc_at(p, r, head->C + n)] += dy[i] * after[s];
			dxbc[xbc_at(p, r, head->B + n)] += dt * x * d;
			*dx += dt * B * d;
			ddt += x * B * d + head->A * decay * before[s] * d;
			dheads[0] += head->A * dt * decay * before[s] * d;
			dstate[s] = decay * d;
		}
	}
	ddt *= sigmoid(in[dt_at(p, r, h)] + head->bias);
	din[dt_at(p, r, h)] = ddt;
	dheads[1] += ddt;
}

REFERENCE(ref_ssm_scan_grad)
{
	const struct place p = place_of(op);
	const int64_t size = p.d->head_dim * p.d->state, s = p.d->seq;
	double *history = calloc((size_t)((s + 2) * size), sizeof *history), *dstate = history + (s + 1) * size;
	(void)env;
	if (!history)
		return error_nomem(e, "the reference");
	for (int64_t i = 0; i < 3 * p.d->heads && !(op->flags & OP_ACCUMULATE); i++)
		((double *)arg[7])[i] = 0.0;
	for (int64_t r = 0; r < p.d->batch * s; r++)
		for (int64_t c = 0; c < p.d->groups * p.conv; c++)
			((double *)arg[5])[xbc_at(&p, r, c)] = 0.0;
	for (int64_t h = 0; h < p.d->heads; h++) {
		const struct head head = head_of(&p, arg[2], h);
		for (int64_t first = 0; first < p.d->batch * s; first += s) {
			memset(history, 0, (size_t)size * sizeof *history);
			memset(dstate, 0, (size_t)size * sizeof *dstate);
			for (int64_t t = 0; t < s; t++) {
				double *state = history + (t + 1) * size;
				keep_state(&p, first + t, h, state - size, arg[4]);
				memcpy(state, state - size, (size_t)size * sizeof *state);
				advance(&p, arg[0], &head, first + t, dt_of(&p, arg[1], &head, first + t, h), state);
			}
			for (int64_t t = s; t-- > 0;)
				row_grad(&p, op, arg, &head, first + t, h, history + t * size, history + (t + 1) * size,
					dstate);
		}
	}
	free(history);
	return ST_OK;
}

/* ---- the gated norm ---- */

static double gated(const struct place *p, const double *y, const double *in, int64_t r, int64_t c)
{
	const double z = in[z_at(p, r, c)];
	return y[r * p->d->groups * p->x + c] * z * sigmoid(z);
}

REFERENCE(ref_ssm_gate)
{
	UNUSED();
	const struct place p = place_of(op);
	const int64_t cols = p.d->groups * p.x;
	for (int64_t r = 0; r < p.d->batch * p.d->seq; r++)
		for (int64_t g = 0; g < p.d->groups; g++) {
			double square = 0.0;
			for (int64_t c = g * p.x; c < (g + 1) * p.x; c++)
				square += gated(&p, arg[0], arg[1], r, c) * gated(&p, arg[0], arg[1], r, c) /
				          (double)p.x;
			const double sigma = 1.0 / sqrt(square + (double)NORM_EPS);
			((double *)arg[4])[r * p.d->groups + g] = sigma;
			for (int64_t c = g * p.x; c < (g + 1) * p.x; c++)
				((double *)arg[3])[r * cols + c] = ((double *)arg[2])[c] * sigma *
				                                   gated(&p, arg[0], arg[1], r, c);
		}
	return ST_OK;
}

REFERENCE(ref_ssm_gate_grad)
{
	UNUSED();
	const struct place p = place_of(op);
	const int64_t cols = p.d->groups * p.x;
	const double *dout = arg[0], *y = arg[1], *in = arg[2], *w = arg[3];
	double *dy = arg[5], *din = arg[6], *dw = arg[7];
	for (int64_t c = 0; c < cols && !(op->flags & OP_ACCUMULATE); c++)
		dw[c] = 0.0;
	for (int64_t r = 0; r < p.d->batch * p.d->seq; r++)
		for (int64_t g = 0; g < p.d->groups; g++) {
			const double sigma = ((double *)arg[4])[r * p.d->groups + g];
			double mean = 0.0;
			for (int64_t c = g * p.x; c < (g + 1) * p.x; c++)
				mean += dout[r * cols + c] * w[c] * sigma * gated(&p, y, in, r, c) / (double)p.x;
			for (int64_t c = g * p.x; c < (g + 1) * p.x; c++) {
				const double h = sigma * gated(&p, y, in, r, c), z = in[z_at(&p, r, c)];
				const double du = sigma * (dout[r * cols + c] * w[c] - h * mean);
				dw[c] += dout[r * cols + c] * h;
				dy[r * cols + c] = du * z * sigmoid(z);
				din[z_at(&p, r, c)] = du * y[r * cols + c] * silu_slope(z);
			}
		}
	return ST_OK;
}
