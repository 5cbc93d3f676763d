/* Kimi delta attention's scan (step/ops.def): the recurrence that defines it, with a decay of each key's channel. */
#include "exec/host/delta_units.h"

struct kda_job {
	struct scan_job scan; /* `heads` has 1 + N values a head */
	const float *f;
	float *df;
};

/* A head in a sequence. k, q [seq, N] are of length 1 and 1 / sqrt(N); f: its decays' columns. */
struct head {
	const float *v, *k, *q, *b, *f, *bias;
	float A;
	int64_t row, in_row, f_row; /* distance of rows of v; of b; of f */
};

/* What a thread has for a group of a sequence. */
struct room {
	float *k, *q, *decay, *dg; /* [seq, N]; dg: of the logarithm of decay */
	float *beta, *dbeta;       /* [seq] */
	float *dstate;             /* [N] */
	float *state;              /* [P, N]; backward, a channel's states in a chunk: [chunk + 1, N] */
};

static struct room room_of(const struct shape *s, float *at)
{
	const int64_t keys = padded(s->seq * s->N), rows = padded(s->seq);
	struct room r = {.k = at, .q = at + keys, .decay = at + 2 * keys, .dg = at + 3 * keys, .beta = at + 4 * keys};
	r.dbeta = r.beta + rows;
	r.dstate = r.dbeta + rows;
	r.state = r.dstate + padded(s->N);
	return r;
}

static int64_t room_stride(const struct op *op)
{
	const struct shape s = shape_of(op);
	const int64_t history = (s.chunk + 1) * s.N, state = s.P * s.N;
	return 4 * padded(s.seq * s.N) + 2 * padded(s.seq) + padded(s.N) + padded(history > state ? history : state);
}

static struct head head_of(const struct kda_job *j, int64_t sequence, int64_t h, const struct room *r)
{
	const struct shape *s = &j->scan.s;
	const int64_t g = h / s->per_group, i = h % s->per_group, f_row = s->heads * s->N;
	const float *heads = j->scan.heads + (1 + s->N) * h;
	return (struct head){delta_group(&j->scan, sequence, g) + i * s->P, r->k, r->q,
		j->scan.in + sequence * s->seq * s->in_row + g * s->in + s->conv + i,
		j->f + sequence * s->seq * f_row + h * s->N, heads + 1, expf(heads[0]), s->conv_row, s->in_row, f_row};
}

static float softplus_of(const struct head *h, int64_t t, int64_t n)
{
	return softplus(h->f[t * h->f_row + n] + h->bias[n]);
}

static void fill_gates(const struct shape *s, const struct head *h, const struct room *r)
{
	for (int64_t t = 0; t < s->seq; t++) {
		for (int64_t n = 0; n < s->N; n++)
			r->decay[t * s->N + n] = expf(-h->A * softplus_of(h, t, n));
		r->beta[t] = 1.0f / (1.0f + expf(-h->b[t * h->in_row]));
	}
}

/* state = decay state + beta (v - decay state . k) k */
static void step(float *restrict state, const struct head *head, const struct room *r, int64_t t, int64_t N, float v)
{
	const float *restrict k = head->k + t * N, *restrict decay = r->decay + t * N;
	const float beta = r->beta[t];
	float lane[LANES] = {0};
	FOR_LANES(N, float d = decay[i] * state[i]; state[i] = d; lane[l] += d * k[i];);
	const float push = beta * (v - lanes_sum(lane));
	for (int64_t i = 0; i < N; i++)
		state[i] += push * k[i];
}

/* As exec/host/delta_loop.h says. */
static float row_grad(const struct head *head, int64_t t, int64_t N, float v, float dy, const float *restrict before,
	const float *restrict after, const struct room *r, float *restrict dk, float *restrict dq)
{
	const float *restrict k = head->k + t * N, *restrict q = head->q + t * N, *restrict decay = r->decay + t * N;
	const float beta = r->beta[t];
	float *restrict ds = r->dstate, *restrict dg = r->dg + t * N;
	float by_k[LANES] = {0}, by_state[LANES] = {0};
	FOR_LANES(N, float d = ds[i] + dy * q[i]; ds[i] = d; dq[i] += dy * after[i]; by_k[l] += d * k[i];
		  by_state[l] += decay[i] * before[i] * k[i];);
	const float through = lanes_sum(by_k), error = v - lanes_sum(by_state), dv = beta * through;
	for (int64_t i = 0; i < N; i++) {
		const float decayed = decay[i] * before[i];
		dk[i] += beta * error * ds[i] - dv * decayed;
		const float d = ds[i] - dv * k[i];
		dg[i] += d * decayed;
		ds[i] = decay[i] * d;
	}
	r->dbeta[t] += error * through;
	return dv;
}

#include "exec/host/delta_loop.h"

static void scan_task(void *ctx, int64_t task, int thread)
{
	const struct kda_job *j = ctx;
	const struct shape *s = &j->scan.s;
	const int64_t sequence = task / s->groups, g = task % s->groups;
	const struct room r = room_of(s, j->scan.scratch + thread * j->scan.stride);
	delta_units(&j->scan, sequence, g, r.k, r.q);
	for (int64_t h = g * s->per_group; h < (g + 1) * s->per_group; h++) {
		const struct head head = head_of(j, sequence, h, &r);
		fill_gates(s, &head, &r);
		run_head(&j->scan, sequence, h, &head, &r);
	}
}

size_t scratch_kda_scan(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)room_stride(op) * sizeof(float);
}

enum status kernel_kda_scan(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct kda_job j = {.scan = {.s = shape_of(op),
				    .xbc = arg[ARG_KDA_SCAN_xbc],
				    .in = arg[ARG_KDA_SCAN_in],
				    .heads = arg[ARG_KDA_SCAN_heads],
				    .states = arg[ARG_KDA_SCAN_states],
				    .y = arg[ARG_KDA_SCAN_y],
				    .scratch = env->scratch,
				    .stride = room_stride(op)},
		.f = arg[ARG_KDA_SCAN_f]};
	(void)e;
	pool_run(env->pool, scan_task, &j, j.scan.s.batch * j.scan.s.groups);
	return ST_OK;
}

/* The gradients of f and of a head's 1 + N values, given those of the logarithms. */
static void decays_grad(const struct kda_job *j, const struct head *head, int64_t sequence, int64_t h,
	const struct room *r)
{
	const struct shape *s = &j->scan.s;
	float *out = j->scan.partial + (sequence * s->heads + h) * (1 + s->N);
	double A = 0;
	for (int64_t n = 0; n < s->N; n++) {
		double bias = 0;
		for (int64_t t = 0; t < s->seq; t++) {
			const float soft = softplus_of(head, t, n), dg = r->dg[t * s->N + n];
			const float d = -head->A * dg * (1.0f - expf(-soft)); /* softplus' = 1 - exp(-softplus) */
			j->df[(sequence * s->seq + t) * head->f_row + h * s->N + n] = d;
			A -= (double)(head->A * soft * dg);
			bias += (double)d;
		}
		out[1 + n] = (float)bias;
	}
	out[0] = (float)A;
}

static void head_backward(const struct kda_job *j, int64_t sequence, int64_t h, const struct room *r)
{
	const struct scan_job *scan = &j->scan;
	const struct shape *s = &scan->s;
	const struct head head = head_of(j, sequence, h, r);
	fill_gates(s, &head, r);
	run_head(scan, sequence, h, &head, r);
	memset(r->dg, 0, (size_t)(s->seq * s->N) * sizeof *r->dg);
	memset(r->dbeta, 0, (size_t)s->seq * sizeof *r->dbeta);
	channels_grad(scan, &head, sequence, h, r);
	for (int64_t t = 0; t < s->seq; t++)
		scan->din[(sequence * s->seq + t) * s->in_row + h / s->per_group * s->in + s->conv + h % s->per_group] =
			r->dbeta[t] * r->beta[t] * (1.0f - r->beta[t]);
	decays_grad(j, &head, sequence, h, r);
}

/* All heads of a group add to its k and q. */
static void scan_grad_task(void *ctx, int64_t task, int thread)
{
	const struct kda_job *j = ctx;
	const struct shape *s = &j->scan.s;
	const int64_t sequence = task / s->groups, g = task % s->groups;
	const struct room r = room_of(s, j->scan.scratch + thread * j->scan.stride);
	delta_units(&j->scan, sequence, g, r.k, r.q);
	delta_units_clear(&j->scan, sequence, g);
	for (int64_t h = g * s->per_group; h < (g + 1) * s->per_group; h++)
		head_backward(j, sequence, h, &r);
	delta_units_grad(&j->scan, sequence, g, r.k, r.q);
}

size_t scratch_kda_scan_grad(const struct op *op, int threads)
{
	return scan_backward_scratch(op, threads, 1 + op->ssm.state, room_stride(op));
}

enum status kernel_kda_scan_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct kda_job j = {.scan = {.s = shape_of(op),
				    .xbc = arg[ARG_KDA_SCAN_GRAD_xbc],
				    .in = arg[ARG_KDA_SCAN_GRAD_in],
				    .heads = arg[ARG_KDA_SCAN_GRAD_heads],
				    .dy = arg[ARG_KDA_SCAN_GRAD_dy],
				    .states = arg[ARG_KDA_SCAN_GRAD_states],
				    .dxbc = arg[ARG_KDA_SCAN_GRAD_dxbc],
				    .din = arg[ARG_KDA_SCAN_GRAD_din],
				    .scratch = env->scratch,
				    .stride = room_stride(op)},
		.f = arg[ARG_KDA_SCAN_GRAD_f],
		.df = arg[ARG_KDA_SCAN_GRAD_df]};
	const int64_t n = (1 + j.scan.s.N) * j.scan.s.heads;
	(void)e;
	j.scan.partial = j.scan.scratch + pool_threads(env->pool) * j.scan.stride;
	pool_run(env->pool, scan_grad_task, &j, j.scan.s.batch * j.scan.s.groups);
	kernel_sum_parts(j.scan.partial, (int)j.scan.s.batch, n, n, arg[ARG_KDA_SCAN_GRAD_dheads],
		op->flags & OP_ACCUMULATE);
	return ST_OK;
}
