/* The reference of Kimi delta attention's scan: whole states, row by row, as step/ops.def words it. */
#include <stdlib.h>

#include "exec/host/reference_private.h"
#include "exec/host/reference_ssm.h"

/* What a head has for a row: k, q of length 1 and 1 / sqrt(N), decays, and what these come from, N numbers each. */
struct row {
	double *k, *q, *decay, *soft, *slope; /* softplus of f and its bias, and its derivative */
	double beta;
};

/* What a head's sequence has: states around each row [seq + 1, P, N], a state's gradient, those of k and q. */
struct room {
	struct row row;
	double *history, *dstate, *dk, *dq;
};

static double *open_room(const struct place *p, struct room *r)
{
	const int64_t size = p->d->head_dim * p->d->state, N = p->d->state;
	double *at = calloc((size_t)((p->d->seq + 2) * size + 7 * N), sizeof *at);
	if (!at)
		return NULL;
	*r = (struct room){.history = at, .dstate = at + (p->d->seq + 1) * size};
	r->dk = r->dstate + size;
	r->dq = r->dk + N;
	r->row = (struct row){r->dq + N, r->dq + 2 * N, r->dq + 3 * N, r->dq + 4 * N, r->dq + 5 * N, 0};
	return at;
}

#define SAME(arg) _Static_assert((int)ARG_KDA_SCAN_##arg == (int)ARG_KDA_SCAN_GRAD_##arg, "one order of arguments")
SAME(xbc);
SAME(in);
SAME(f);
SAME(heads);

/* Where f of a row and head stands; it has N columns. */
static int64_t f_at(const struct place *p, int64_t r, int64_t h) { return (r * p->d->heads + h) * p->d->state; }

static void fill_row(const struct place *p, void *const arg[], int64_t r, int64_t h, struct row *row)
{
	const double *xbc = arg[ARG_KDA_SCAN_xbc], *in = arg[ARG_KDA_SCAN_in], *f = arg[ARG_KDA_SCAN_f];
	const int64_t N = p->d->state, k = key_column(p, h);
	const double *heads = (const double *)arg[ARG_KDA_SCAN_heads] + (1 + N) * h;
	const double by_k = key_length(p, xbc, r, k), by_q = key_length(p, xbc, r, k + N) * sqrt((double)N);
	for (int64_t n = 0; n < N; n++) {
		const double x = f[f_at(p, r, h) + n] + heads[1 + n];
		row->k[n] = xbc[xbc_at(p, r, k + n)] / by_k;
		row->q[n] = xbc[xbc_at(p, r, k + N + n)] / by_q;
		row->soft[n] = log1p(exp(x));
		row->slope[n] = sigmoid(x);
		row->decay[n] = exp(-exp(heads[0]) * row->soft[n]);
	}
	row->beta = sigmoid(in[dt_at(p, r, h)]);
}

/* Value i of head h less what its decayed state has for the key. */
static double miss(const struct place *p, const double *xbc, const struct row *row, int64_t r, int64_t h, int64_t i,
	const double *before)
{
	double error = xbc[xbc_at(p, r, value_column(p, h) + i)];
	for (int64_t n = 0; n < p->d->state; n++)
		error -= row->decay[n] * before[i * p->d->state + n] * row->k[n];
	return error;
}

/* Fills the states around each row of a sequence. */
static void fill_history(const struct place *p, void *const arg[], int64_t first, int64_t h, struct room *room,
	double *states)
{
	const int64_t P = p->d->head_dim, N = p->d->state;
	memset(room->history, 0, (size_t)(P * N) * sizeof(double));
	for (int64_t t = 0; t < p->d->seq; t++) {
		const double *before = room->history + t * P * N;
		double *after = room->history + (t + 1) * P * N;
		fill_row(p, arg, first + t, h, &room->row);
		keep_state(p, first + t, h, before, states);
		for (int64_t i = 0; i < P; i++) {
			const double push = room->row.beta * miss(p, arg[0], &room->row, first + t, h, i, before);
			for (int64_t n = 0; n < N; n++)
				after[i * N + n] = room->row.decay[n] * before[i * N + n] + push * room->row.k[n];
		}
	}
}

REFERENCE(ref_kda_scan)
{
	const struct place p = place_of(op);
	const int64_t P = p.d->head_dim, N = p.d->state;
	struct room room;
	double *at = open_room(&p, &room), *y = arg[ARG_KDA_SCAN_y];
	(void)env;
	if (!at)
		return error_nomem(e, "the reference");
	for (int64_t h = 0; h < p.d->heads; h++)
		for (int64_t r = 0; r < p.d->batch * p.d->seq; r++) {
			if (r % p.d->seq == 0)
				fill_history(&p, arg, r, h, &room, arg[ARG_KDA_SCAN_states]);
			fill_row(&p, arg, r, h, &room.row);
			for (int64_t i = 0; i < P; i++) {
				double sum = 0.0;
				for (int64_t n = 0; n < N; n++)
					sum += room.history[((r % p.d->seq + 1) * P + i) * N + n] * room.row.q[n];
				y[(r * p.d->heads + h) * P + i] = sum;
			}
		}
	free(at);
	return ST_OK;
}

/* The gradients of head h in row r. before, after: its states around the row; room->dstate: of the state behind the row
 * on the way in, of that before it on the way out. */
static void row_grad(const struct place *p, void *const arg[], int64_t r, int64_t h, const double *before,
	const double *after, struct room *room)
{
	const int64_t P = p->d->head_dim, N = p->d->state, key = key_column(p, h);
	const double *xbc = arg[ARG_KDA_SCAN_GRAD_xbc];
	const double *dy = (const double *)arg[ARG_KDA_SCAN_GRAD_dy] + (r * p->d->heads + h) * P;
	const double A = exp(((const double *)arg[ARG_KDA_SCAN_GRAD_heads])[(1 + N) * h]);
	double *dxbc = arg[ARG_KDA_SCAN_GRAD_dxbc], *df = (double *)arg[ARG_KDA_SCAN_GRAD_df] + f_at(p, r, h);
	double *dheads = (double *)arg[ARG_KDA_SCAN_GRAD_dheads] + (1 + N) * h, dbeta = 0.0;
	struct row *row = &room->row;
	fill_row(p, arg, r, h, row);
	memset(room->dk, 0, (size_t)(2 * N) * sizeof(double));
	memset(df, 0, (size_t)N * sizeof(double));
	for (int64_t i = 0; i < P; i++) {
		const double error = miss(p, xbc, row, r, h, i, before);
		double through = 0.0;
		for (int64_t n = 0; n < N; n++) {
			double *d = room->dstate + i * N + n;
			*d += dy[i] * row->q[n];
			room->dq[n] += dy[i] * after[i * N + n];
			through += *d * row->k[n];
		}
		dbeta += error * through;
		dxbc[xbc_at(p, r, value_column(p, h) + i)] = row->beta * through;
		for (int64_t n = 0; n < N; n++) {
			double *d = room->dstate + i * N + n;
			const double decayed = row->decay[n] * before[i * N + n];
			room->dk[n] += row->beta * (error * *d - through * decayed);
			*d -= row->beta * through * row->k[n];
			df[n] += *d * decayed; /* of the decay's logarithm */
			*d *= row->decay[n];
		}
	}
	add_unit_grad(p, xbc, r, key, 1.0, room->dk, dxbc);
	add_unit_grad(p, xbc, r, key + N, 1.0 / sqrt((double)N), room->dq, dxbc);
	((double *)arg[ARG_KDA_SCAN_GRAD_din])[dt_at(p, r, h)] = dbeta * row->beta * (1.0 - row->beta);
	for (int64_t n = 0; n < N; n++) {
		dheads[0] -= df[n] * A * row->soft[n];
		df[n] *= -A * row->slope[n];
		dheads[1 + n] += df[n];
	}
}

REFERENCE(ref_kda_scan_grad)
{
	const struct place p = place_of(op);
	const int64_t N = p.d->state, size = p.d->head_dim * N, s = p.d->seq;
	double *dheads = arg[ARG_KDA_SCAN_GRAD_dheads];
	struct room room;
	double *at = open_room(&p, &room);
	(void)env;
	if (!at)
		return error_nomem(e, "the reference");
	if (!(op->flags & OP_ACCUMULATE))
		memset(dheads, 0, (size_t)((1 + N) * p.d->heads) * sizeof *dheads);
	memset(arg[ARG_KDA_SCAN_GRAD_dxbc], 0, (size_t)(p.d->batch * s * p.d->groups * p.conv) * sizeof(double));
	for (int64_t h = 0; h < p.d->heads; h++)
		for (int64_t first = 0; first < p.d->batch * s; first += s) {
			fill_history(&p, arg, first, h, &room, arg[ARG_KDA_SCAN_GRAD_states]);
			memset(room.dstate, 0, (size_t)size * sizeof(double));
			for (int64_t t = s; t-- > 0;)
				row_grad(&p, arg, first + t, h, room.history + t * size, room.history + (t + 1) * size,
					&room);
		}
	free(at);
	return ST_OK;
}
