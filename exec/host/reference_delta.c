/* The reference of the gated delta rule's ops: whole states, row by row, as step/ops.def words them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/reference_private.h"
#include "exec/host/reference_ssm.h"

/* ---- the scan ---- */

/* What a head reads in a row. k, q: of length 1 and 1 / sqrt(N), in a buffer of 2 N numbers. */
struct row {
	double *k, *q, decay, beta, soft, slope; /* softplus of dt's column and the bias, and its derivative */
};

static struct row row_of(const struct place *p, void *const arg[], int64_t r, int64_t h, double *units)
{
	const double *xbc = arg[0], *in = arg[1], *heads = (const double *)arg[2] + 2 * h;
	const int64_t N = p->d->state, k = key_column(p, h), q = k + N, dt = dt_at(p, r, h);
	const double by_k = key_length(p, xbc, r, k), by_q = key_length(p, xbc, r, q) * sqrt((double)N);
	const double x = in[dt] + heads[1], soft = log1p(exp(x));
	for (int64_t n = 0; n < N; n++) {
		units[n] = xbc[xbc_at(p, r, k + n)] / by_k;
		units[N + n] = xbc[xbc_at(p, r, q + n)] / by_q;
	}
	return (struct row){units, units + N, exp(-exp(heads[0]) * soft), sigmoid(in[dt + p->heads]), soft, sigmoid(x)};
}

/* Value i of head h less what its decayed state has for the key. */
static double miss(const struct place *p, const double *xbc, const struct row *row, int64_t r, int64_t h, int64_t i,
	const double *before)
{
	double error = xbc[xbc_at(p, r, value_column(p, h) + i)];
	for (int64_t n = 0; n < p->d->state; n++)
		error -= row->decay * before[i * p->d->state + n] * row->k[n];
	return error;
}

static void advance(const struct place *p, const double *xbc, const struct row *row, int64_t r, int64_t h,
	const double *before, double *after)
{
	for (int64_t i = 0; i < p->d->head_dim; i++) {
		const double error = miss(p, xbc, row, r, h, i, before);
		for (int64_t n = 0; n < p->d->state; n++)
			after[i * p->d->state + n] = row->decay * before[i * p->d->state + n] +
			                             row->beta * error * row->k[n];
	}
}

/* Fills the states around each row of a sequence, [seq + 1, head_dim, state]. */
static void fill_history(const struct place *p, void *const arg[], int64_t first, int64_t h, double *history,
	double *units, double *states)
{
	const int64_t size = p->d->head_dim * p->d->state;
	memset(history, 0, (size_t)size * sizeof *history);
	for (int64_t t = 0; t < p->d->seq; t++) {
		const struct row row = row_of(p, arg, first + t, h, units);
		keep_state(p, first + t, h, history + t * size, states);
		advance(p, arg[0], &row, first + t, h, history + t * size, history + (t + 1) * size);
	}
}

/* Room for the states of a sequence, two of their gradients, a row's units and their gradients. */
static double *room_of(const struct place *p, double **dstate, double **units)
{
	const int64_t size = p->d->head_dim * p->d->state;
	double *history = calloc((size_t)((p->d->seq + 2) * size + 4 * p->d->state), sizeof *history);
	*dstate = history ? history + (p->d->seq + 1) * size : NULL;
	*units = history ? *dstate + size : NULL;
	return history;
}

REFERENCE(ref_delta_scan)
{
	const struct place p = place_of(op);
	const int64_t P = p.d->head_dim, N = p.d->state;
	double *unused, *units, *history = room_of(&p, &unused, &units);
	(void)env;
	if (!history)
		return error_nomem(e, "the reference");
	for (int64_t h = 0; h < p.d->heads; h++)
		for (int64_t r = 0; r < p.d->batch * p.d->seq; r++) {
			if (r % p.d->seq == 0)
				fill_history(&p, arg, r, h, history, units, arg[3]);
			const struct row row = row_of(&p, arg, r, h, units);
			for (int64_t i = 0; i < P; i++) {
				double y = 0.0;
				for (int64_t n = 0; n < N; n++)
					y += history[((r % p.d->seq + 1) * P + i) * N + n] * row.q[n];
				((double *)arg[4])[(r * p.d->heads + h) * P + i] = y;
			}
		}
	free(history);
	return ST_OK;
}

/* The gradients of head h in row r. before, after: its states around the row; dstate: of the state behind the row on
 * the way in, of that before it on the way out; units: 4 N numbers. */
static void row_grad(const struct place *p, void *const arg[], int64_t r, int64_t h, const double *before,
	const double *after, double *dstate, double *units)
{
	const int64_t P = p->d->head_dim, N = p->d->state, key = key_column(p, h), dt = dt_at(p, r, h);
	const struct row row = row_of(p, arg, r, h, units);
	const double *xbc = arg[0], *dy = (const double *)arg[3] + (r * p->d->heads + h) * P;
	const double A = exp(((const double *)arg[2])[2 * h]);
	double *dxbc = arg[5], *din = arg[6], *dheads = (double *)arg[7] + 2 * h, *dk = units + 2 * N, *dq = dk + N;
	double dbeta = 0.0, ddecay = 0.0;
	memset(dk, 0, (size_t)(2 * N) * sizeof *dk);
	for (int64_t i = 0; i < P; i++) {
		const double error = miss(p, xbc, &row, r, h, i, before);
		double through = 0.0;
		for (int64_t n = 0; n < N; n++) {
			double *d = dstate + i * N + n;
			*d += dy[i] * row.q[n];
			dq[n] += dy[i] * after[i * N + n];
			through += *d * row.k[n];
		}
		dbeta += error * through;
		dxbc[xbc_at(p, r, value_column(p, h) + i)] = row.beta * through;
		for (int64_t n = 0; n < N; n++) {
			double *d = dstate + i * N + n;
			dk[n] += row.beta * (error * *d - through * row.decay * before[i * N + n]);
			*d -= row.beta * through * row.k[n];
			ddecay += *d * before[i * N + n];
			*d *= row.decay;
		}
	}
	add_unit_grad(p, xbc, r, key, 1.0, dk, dxbc);
	add_unit_grad(p, xbc, r, key + N, 1.0 / sqrt((double)N), dq, dxbc);
	din[dt] = -ddecay * row.decay * A * row.slope;
	din[dt + p->heads] = dbeta * row.beta * (1.0 - row.beta);
	dheads[0] -= ddecay * row.decay * A * row.soft;
	dheads[1] += din[dt];
}

REFERENCE(ref_delta_scan_grad)
{
	const struct place p = place_of(op);
	const int64_t size = p.d->head_dim * p.d->state, s = p.d->seq;
	double *dstate, *units, *history = room_of(&p, &dstate, &units);
	(void)env;
	if (!history)
		return error_nomem(e, "the reference");
	for (int64_t i = 0; i < 2 * p.d->heads && !(op->flags & OP_ACCUMULATE); i++)
		((double *)arg[7])[i] = 0.0;
	for (int64_t i = 0; i < p.d->batch * s * p.d->groups * p.conv; i++)
		((double *)arg[5])[i] = 0.0;
	for (int64_t h = 0; h < p.d->heads; h++)
		for (int64_t first = 0; first < p.d->batch * s; first += s) {
			fill_history(&p, arg, first, h, history, units, arg[4]);
			memset(dstate, 0, (size_t)size * sizeof *dstate);
			for (int64_t t = s; t-- > 0;)
				row_grad(&p, arg, first + t, h, history + t * size, history + (t + 1) * size, dstate,
					units);
		}
	free(history);
	return ST_OK;
}

/* ---- the norm and its gate ---- */

/* A gate and its slope: silu, or the sigmoid of SSM_LAYOUT_KDA. */
static double gate_of(const struct place *p, double z)
{
	return p->d->layout == SSM_LAYOUT_KDA ? sigmoid(z) : z * sigmoid(z);
}

static double gate_slope(const struct place *p, double z)
{
	return p->d->layout == SSM_LAYOUT_KDA ? sigmoid(z) * (1.0 - sigmoid(z)) : silu_slope(z);
}

REFERENCE(ref_delta_gate)
{
	UNUSED();
	const struct place p = place_of(op);
	const int64_t P = p.d->head_dim;
	const double *y = arg[0], *in = arg[1], *w = arg[2];
	double *out = arg[3], *sigma = arg[4];
	for (int64_t r = 0; r < p.d->batch * p.d->seq; r++)
		for (int64_t h = 0; h < p.d->heads; h++) {
			const int64_t row = r * p.d->heads + h;
			double square = (double)NORM_EPS;
			for (int64_t i = 0; i < P; i++)
				square += y[row * P + i] * y[row * P + i] / (double)P;
			sigma[row] = 1.0 / sqrt(square);
			for (int64_t i = 0; i < P; i++) {
				const double z = in[z_at(&p, r, h * P + i)];
				out[row * P + i] = w[i] * y[row * P + i] * sigma[row] * gate_of(&p, z);
			}
		}
	return ST_OK;
}

REFERENCE(ref_delta_gate_grad)
{
	UNUSED();
	const struct place p = place_of(op);
	const int64_t P = p.d->head_dim;
	const double *dout = arg[0], *y = arg[1], *in = arg[2], *w = arg[3], *sigma = arg[4];
	double *dy = arg[5], *din = arg[6], *dw = arg[7];
	for (int64_t i = 0; i < P && !(op->flags & OP_ACCUMULATE); i++)
		dw[i] = 0.0;
	for (int64_t r = 0; r < p.d->batch * p.d->seq; r++)
		for (int64_t h = 0; h < p.d->heads; h++) {
			const int64_t row = r * p.d->heads + h;
			double mean = 0.0;
			for (int64_t i = 0; i < P; i++) {
				const double z = in[z_at(&p, r, h * P + i)], normed = y[row * P + i] * sigma[row];
				mean += dout[row * P + i] * w[i] * gate_of(&p, z) * normed / (double)P;
			}
			for (int64_t i = 0; i < P; i++) {
				const double z = in[z_at(&p, r, h * P + i)], normed = y[row * P + i] * sigma[row];
				const double d = dout[row * P + i];
				dw[i] += d * gate_of(&p, z) * normed;
				dy[row * P + i] = sigma[row] * (d * w[i] * gate_of(&p, z) - normed * mean);
				din[z_at(&p, r, h * P + i)] = d * w[i] * normed * gate_slope(&p, z);
			}
		}
	return ST_OK;
}
