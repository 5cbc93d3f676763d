/* The gated delta rule's ops (step/ops.def): the recurrence that defines it, and the norm with its gate. */
#include <math.h>
#include <string.h>

#include "exec/host/delta_units.h"

/* ---- the scan ---- */

#define HEAD_VALUES 2 /* in a row of `heads` */

/* A head in a sequence. k, q [seq, N] are of length 1 and 1 / sqrt(N). */
struct head {
	const float *v, *k, *q, *dt, *b;
	float A, bias;
	int64_t row, in_row; /* distance of rows of v; of dt and b */
};

/* What a thread has for a group of a sequence. */
struct room {
	float *k, *q;                     /* [seq, N] */
	float *state;                     /* [P, N]; backward, a channel's states in a chunk: [chunk + 1, N] */
	float *dstate;                    /* [N] */
	float *decay, *beta, *dg, *dbeta; /* [seq]; dg: of the logarithm of decay */
};

static struct room room_of(const struct shape *s, float *at)
{
	const int64_t keys = padded(s->seq * s->N), rows = padded(s->seq);
	struct room r = {.k = at, .q = at + keys, .decay = at + 2 * keys};
	r.beta = r.decay + rows;
	r.dg = r.beta + rows;
	r.dbeta = r.dg + rows;
	r.dstate = r.dbeta + rows;
	r.state = r.dstate + padded(s->N);
	return r;
}

static int64_t room_stride(const struct op *op)
{
	const struct shape s = shape_of(op);
	const int64_t history = (s.chunk + 1) * s.N, state = s.P * s.N;
	return 2 * padded(s.seq * s.N) + 4 * padded(s.seq) + padded(s.N) + padded(history > state ? history : state);
}

static struct head head_of(const struct scan_job *j, int64_t sequence, int64_t h, const struct room *r)
{
	const struct shape *s = &j->s;
	const int64_t g = h / s->per_group, i = h % s->per_group;
	const float *dt = j->in + sequence * s->seq * s->in_row + g * s->in + s->z + s->conv + i;
	return (struct head){delta_group(j, sequence, g) + i * s->P, r->k, r->q, dt, dt + s->per_group,
		expf(j->heads[HEAD_VALUES * h]), j->heads[HEAD_VALUES * h + 1], s->conv_row, s->in_row};
}

static float softplus_of(const struct head *h, int64_t t) { return softplus(h->dt[t * h->in_row] + h->bias); }

static void fill_gates(const struct shape *s, const struct head *h, const struct room *r)
{
	for (int64_t t = 0; t < s->seq; t++) {
		r->decay[t] = expf(-h->A * softplus_of(h, t));
		r->beta[t] = 1.0f / (1.0f + expf(-h->b[t * h->in_row]));
	}
}

/* state = decay state + beta (v - decay state . k) k */
static void step(float *restrict state, const struct head *head, const struct room *r, int64_t t, int64_t N, float v)
{
	const float *restrict k = head->k + t * N;
	const float decay = r->decay[t], beta = r->beta[t];
	float lane[LANES] = {0};
	FOR_LANES(N, float d = decay * state[i]; state[i] = d; lane[l] += d * k[i];);
	const float push = beta * (v - lanes_sum(lane));
	for (int64_t i = 0; i < N; i++)
		state[i] += push * k[i];
}

/* As exec/host/delta_loop.h says. */
static float row_grad(const struct head *head, int64_t t, int64_t N, float v, float dy, const float *restrict before,
	const float *restrict after, const struct room *r, float *restrict dk, float *restrict dq)
{
	const float *restrict k = head->k + t * N, *restrict q = head->q + t * N;
	const float decay = r->decay[t], beta = r->beta[t];
	float *restrict ds = r->dstate;
	float by_k[LANES] = {0}, by_state[LANES] = {0}, by_decay[LANES] = {0};
	FOR_LANES(N, float d = ds[i] + dy * q[i]; ds[i] = d; dq[i] += dy * after[i]; by_k[l] += d * k[i];
		  by_state[l] += before[i] * k[i];);
	const float through = lanes_sum(by_k), error = v - decay * lanes_sum(by_state), dv = beta * through;
	FOR_LANES(N, dk[i] += beta * error * ds[i] - dv * decay * before[i]; float d = ds[i] - dv * k[i];
		  by_decay[l] += d * before[i]; ds[i] = decay * d;);
	r->dbeta[t] += error * through;
	r->dg[t] += decay * lanes_sum(by_decay);
	return dv;
}

#include "exec/host/delta_loop.h"

static void scan_task(void *ctx, int64_t task, int thread)
{
	const struct scan_job *j = ctx;
	const int64_t sequence = task / j->s.groups, g = task % j->s.groups;
	const struct room r = room_of(&j->s, j->scratch + thread * j->stride);
	delta_units(j, sequence, g, r.k, r.q);
	for (int64_t h = g * j->s.per_group; h < (g + 1) * j->s.per_group; h++) {
		const struct head head = head_of(j, sequence, h, &r);
		fill_gates(&j->s, &head, &r);
		run_head(j, sequence, h, &head, &r);
	}
}

size_t scratch_delta_scan(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)room_stride(op) * sizeof(float);
}

enum status kernel_delta_scan(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	scan_forward(env, op, arg, scan_task, op->ssm.groups, room_stride(op));
	return ST_OK;
}

static void head_backward(const struct scan_job *j, int64_t sequence, int64_t h, const struct room *r)
{
	const struct shape *s = &j->s;
	const struct head head = head_of(j, sequence, h, r);
	const int64_t column = h / s->per_group * s->in + s->z + s->conv + h % s->per_group;
	double A = 0, bias = 0;
	fill_gates(s, &head, r);
	run_head(j, sequence, h, &head, r);
	memset(r->dg, 0, (size_t)s->seq * sizeof *r->dg);
	memset(r->dbeta, 0, (size_t)s->seq * sizeof *r->dbeta);
	channels_grad(j, &head, sequence, h, r);
	for (int64_t t = 0; t < s->seq; t++) {
		const float soft = softplus_of(&head, t), d = -head.A * r->dg[t] * (1.0f - expf(-soft));
		float *din = j->din + (sequence * s->seq + t) * s->in_row + column;
		din[0] = d; /* softplus' = sigmoid = 1 - exp(-softplus) */
		din[s->per_group] = r->dbeta[t] * r->beta[t] * (1.0f - r->beta[t]);
		A -= (double)(head.A * soft * r->dg[t]);
		bias += (double)d;
	}
	float *out = j->partial + (sequence * s->heads + h) * HEAD_VALUES;
	out[0] = (float)A;
	out[1] = (float)bias;
}

/* All heads of a group add to its k and q. */
static void scan_grad_task(void *ctx, int64_t task, int thread)
{
	const struct scan_job *j = ctx;
	const struct shape *s = &j->s;
	const int64_t sequence = task / s->groups, g = task % s->groups;
	const struct room r = room_of(s, j->scratch + thread * j->stride);
	delta_units(j, sequence, g, r.k, r.q);
	delta_units_clear(j, sequence, g);
	for (int64_t h = g * s->per_group; h < (g + 1) * s->per_group; h++)
		head_backward(j, sequence, h, &r);
	delta_units_grad(j, sequence, g, r.k, r.q);
}

size_t scratch_delta_scan_grad(const struct op *op, int threads)
{
	return scan_backward_scratch(op, threads, HEAD_VALUES, room_stride(op));
}

enum status kernel_delta_scan_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	scan_backward(env, op, arg, scan_grad_task, HEAD_VALUES, room_stride(op));
	return ST_OK;
}

/* ---- the norm and its gate ---- */

/* Head h of row r: its gate among the columns of `in`. */
static int64_t gate_at(const struct shape *s, int64_t r, int64_t h)
{
	return r * s->in_row + h / s->per_group * s->in + h % s->per_group * s->P;
}

static float gate_of(const struct gate_job *j, float z) { return j->sigmoid ? fast_sigmoidf(z) : silu(z); }

static float gate_slope(const struct gate_job *j, float z)
{
	const float s = fast_sigmoidf(z);
	return j->sigmoid ? s * (1.0f - s) : silu_slope(z);
}

static void gate_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct gate_job *j = ctx;
	const struct shape *s = &j->s;
	for (int64_t r = begin; r < end; r++)
		for (int64_t h = 0; h < s->heads; h++) {
			const int64_t at = (r * s->heads + h) * s->P;
			const float *y = j->y + at, *z = j->in + gate_at(s, r, h);
			const float sigma = 1.0f / sqrtf(row_dot(y, y, s->P) / (float)s->P + NORM_EPS);
			j->sigma[r * s->heads + h] = sigma;
			for (int64_t i = 0; i < s->P; i++)
				j->out[at + i] = j->w[i] * y[i] * sigma * gate_of(j, z[i]);
		}
}

enum status kernel_delta_gate(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	gate_forward(env, op, arg, gate_part);
	return ST_OK;
}

/* With h = y sigma and g = dout w silu(z): dy = sigma (g - h mean(g h)). */
static void gate_grad_head(const struct gate_job *j, int64_t r, int64_t head, float *restrict dw)
{
	const struct shape *s = &j->s;
	const int64_t at = (r * s->heads + head) * s->P, in = gate_at(s, r, head);
	const float *y = j->y + at, *z = j->in + in, *w = j->w, *dout = j->dout + at;
	const float sigma = j->sigma[r * s->heads + head];
	float *dy = j->dy + at, *dz = j->din + in;
	float sum[LANES] = {0};
	FOR_LANES(s->P, float h = y[i] * sigma, g = dout[i] * gate_of(j, z[i]); sum[l] += g * w[i] * h;
		  dw[i] += g * h;);
	const float mean = lanes_sum(sum) / (float)s->P;
	for (int64_t i = 0; i < s->P; i++) {
		const float h = y[i] * sigma;
		dz[i] = dout[i] * w[i] * h * gate_slope(j, z[i]);
		dy[i] = sigma * (dout[i] * w[i] * gate_of(j, z[i]) - h * mean);
	}
}

static void gate_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct gate_job *j = ctx;
	float *dw = j->partial + part * j->stride;
	memset(dw, 0, (size_t)j->stride * sizeof *dw);
	for (int64_t r = begin; r < end; r++)
		for (int64_t h = 0; h < j->s.heads; h++)
			gate_grad_head(j, r, h, dw);
}

size_t scratch_delta_gate_grad(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)padded(op->ssm.head_dim) * sizeof(float);
}

enum status kernel_delta_gate_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	gate_backward(env, op, arg, gate_grad_part, op->ssm.head_dim);
	return ST_OK;
}
