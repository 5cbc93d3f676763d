/* Mamba-2's ops (step/ops.def): the causal convolution, the scan as the recurrence that defines it, the gated norm. */
#include <math.h>
#include <string.h>

#include "exec/host/ssm_jobs.h"

/* ---- the convolution ---- */

struct conv_job {
	struct shape s;
	int64_t taps;
	const float *in, *w, *b, *dxbc;
	float *xbc;           /* or the gradient before the activation */
	float *din, *partial; /* of a part: dw, then db */
	int64_t stride;
};

/* Row r of the convolution, group by group, before the activation. */
static void conv_row(const struct conv_job *c, int64_t r, float *out)
{
	const struct shape *s = &c->s;
	const int64_t t = r % s->seq;
	if (c->b)
		memcpy(out, c->b, (size_t)s->conv_row * sizeof *out);
	else
		memset(out, 0, (size_t)s->conv_row * sizeof *out);
	for (int64_t j = 0; j < c->taps; j++) {
		const int64_t back = c->taps - 1 - j;
		if (back > t)
			continue;
		for (int64_t g = 0; g < s->groups; g++) {
			const float *restrict x = c->in + (r - back) * s->in_row + g * s->in + s->z;
			const float *restrict w = c->w + g * s->conv * c->taps + j;
			float *restrict y = out + g * s->conv;
			for (int64_t i = 0; i < s->conv; i++)
				y[i] += w[i * c->taps] * x[i];
		}
	}
}

static void conv_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct conv_job *c = ctx;
	for (int64_t r = begin; r < end; r++) {
		float *y = c->xbc + r * c->s.conv_row;
		conv_row(c, r, y);
		for (int64_t i = 0; i < c->s.conv_row; i++)
			y[i] = silu(y[i]);
	}
}

enum status kernel_ssm_conv(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv_job c = {.s = shape_of(op),
		.taps = op->ssm.conv,
		.in = arg[ARG_SSM_CONV_in],
		.w = arg[ARG_SSM_CONV_w],
		.b = arg[ARG_SSM_CONV_b],
		.xbc = arg[ARG_SSM_CONV_xbc]};
	kernel_split(env, kernel_parts(env, c.s.rows, c.s.conv_row), c.s.rows, conv_part, &c);
	return ST_OK;
}

static void before_activation_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct conv_job *c = ctx;
	for (int64_t r = begin; r < end; r++) {
		float *y = c->xbc + r * c->s.conv_row;
		const float *dy = c->dxbc + r * c->s.conv_row;
		conv_row(c, r, y);
		for (int64_t i = 0; i < c->s.conv_row; i++)
			y[i] = dy[i] * silu_slope(y[i]);
	}
}

/* A tap of a row: the input that it reads gets its part of the gradient there, and the weight its own. */
static void tap_grad(const struct conv_job *c, int64_t r, int64_t j, float *dw)
{
	const struct shape *s = &c->s;
	const int64_t t = r % s->seq, back = c->taps - 1 - j;
	for (int64_t g = 0; g < s->groups; g++) {
		const float *restrict w = c->w + g * s->conv * c->taps + j, *restrict d = c->xbc + g * s->conv;
		float *restrict dwg = dw + g * s->conv * c->taps + j;
		if (t + back < s->seq) {
			const float *restrict later = d + (r + back) * s->conv_row;
			float *restrict dx = c->din + r * s->in_row + g * s->in + s->z;
			for (int64_t i = 0; i < s->conv; i++)
				dx[i] += w[i * c->taps] * later[i];
		}
		if (back <= t) {
			const float *restrict here = d + r * s->conv_row;
			const float *restrict x = c->in + (r - back) * s->in_row + g * s->in + s->z;
			for (int64_t i = 0; i < s->conv; i++)
				dwg[i * c->taps] += here[i] * x[i];
		}
	}
}

static void conv_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct conv_job *c = ctx;
	const struct shape *s = &c->s;
	float *dw = c->partial + part * c->stride, *restrict db = dw + s->conv_row * c->taps;
	memset(dw, 0, (size_t)c->stride * sizeof *dw);
	for (int64_t r = begin; r < end; r++) {
		const float *d = c->xbc + r * s->conv_row;
		for (int64_t g = 0; g < s->groups; g++)
			memset(c->din + r * s->in_row + g * s->in + s->z, 0, (size_t)s->conv * sizeof *c->din);
		for (int64_t j = 0; j < c->taps; j++)
			tap_grad(c, r, j, dw);
		for (int64_t i = 0; i < s->conv_row; i++)
			db[i] += d[i];
	}
}

static int64_t conv_stride(const struct op *op) { return padded(shape_of(op).conv_row * (op->ssm.conv + 1)); }

size_t scratch_ssm_conv_grad(const struct op *op, int threads)
{
	const struct shape s = shape_of(op);
	return ((size_t)padded(s.rows * s.conv_row) + (size_t)threads * (size_t)conv_stride(op)) * sizeof(float);
}

enum status kernel_ssm_conv_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv_job c = {.s = shape_of(op),
		.taps = op->ssm.conv,
		.in = arg[ARG_SSM_CONV_GRAD_in],
		.w = arg[ARG_SSM_CONV_GRAD_w],
		.b = arg[ARG_SSM_CONV_GRAD_b],
		.dxbc = arg[ARG_SSM_CONV_GRAD_dxbc],
		.xbc = env->scratch,
		.din = arg[ARG_SSM_CONV_GRAD_din],
		.stride = conv_stride(op)};
	const int64_t cols = c.s.conv_row;
	const bool add = op->flags & OP_ACCUMULATE;
	c.partial = c.xbc + padded(c.s.rows * cols);
	kernel_split(env, kernel_parts(env, c.s.rows, cols), c.s.rows, before_activation_part, &c);
	const int parts = kernel_parts_summed(env, c.s.rows, cols);
	kernel_split(env, parts, c.s.rows, conv_grad_part, &c);
	kernel_sum_parts(c.partial, parts, c.stride, cols * c.taps, arg[ARG_SSM_CONV_GRAD_dw], add);
	if (arg[ARG_SSM_CONV_GRAD_db])
		kernel_sum_parts(c.partial + cols * c.taps, parts, c.stride, cols, arg[ARG_SSM_CONV_GRAD_db], add);
	return ST_OK;
}

/* ---- the scan ---- */

#define HEAD_VALUES 3 /* in a row of `heads` */

/* A head in a sequence. */
struct head {
	const float *x, *B, *C, *dt; /* of the sequence's first row */
	float A, bias, D;
	int64_t row, in_row; /* distance of rows of x, B and C; of dt */
};

static struct head head_of(const struct scan_job *j, int64_t sequence, int64_t h)
{
	const struct shape *s = &j->s;
	const int64_t g = h / s->per_group, i = h % s->per_group;
	const float *xbc = j->xbc + sequence * s->seq * s->conv_row + g * s->conv, *w = j->heads + HEAD_VALUES * h;
	const float *in = j->in + sequence * s->seq * s->in_row + g * s->in;
	return (struct head){xbc + i * s->P, xbc + s->x, xbc + s->x + s->N, in + s->x + s->conv + i, -expf(w[0]), w[1],
		w[2], s->conv_row, s->in_row};
}

static float dt_of(const struct head *h, int64_t t) { return softplus(h->dt[t * h->in_row] + h->bias); }

/* One row: state = decay state + push B; returns state . C. */
static float step(float *restrict state, const float *restrict B, const float *restrict C, int64_t N, float decay,
	float push)
{
	float lane[LANES] = {0};
	FOR_LANES(N, float v = decay * state[i] + push * B[i]; state[i] = v; lane[l] += v * C[i];);
	return lanes_sum(lane);
}

/* Runs a head through a sequence; y NULL: for the states alone. */
static void run_head(const struct scan_job *j, int64_t sequence, int64_t h, float *state, float *y)
{
	const struct shape *s = &j->s;
	const struct head head = head_of(j, sequence, h);
	memset(state, 0, (size_t)(s->P * s->N) * sizeof *state);
	for (int64_t t = 0; t < s->seq; t++) {
		const float *x = head.x + t * head.row, *B = head.B + t * head.row, *C = head.C + t * head.row;
		const float dt = dt_of(&head, t), decay = expf(dt * head.A);
		if (t % s->chunk == 0)
			memcpy(scan_states(j, sequence, t / s->chunk, h), state, (size_t)(s->P * s->N) * sizeof *state);
		for (int64_t p = 0; p < s->P; p++) {
			const float sum = step(state + p * s->N, B, C, s->N, decay, dt * x[p]);
			if (y)
				y[(sequence * s->seq + t) * s->heads * s->P + h * s->P + p] = sum + head.D * x[p];
		}
	}
}

static void scan_task(void *ctx, int64_t task, int thread)
{
	const struct scan_job *j = ctx;
	run_head(j, task / j->s.heads, task % j->s.heads, j->scratch + thread * j->stride, j->y);
}

static int64_t scan_stride(const struct op *op) { return padded(op->ssm.head_dim * op->ssm.state); }

size_t scratch_ssm_scan(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)scan_stride(op) * sizeof(float);
}

enum status kernel_ssm_scan(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	scan_forward(env, op, arg, scan_task, op->ssm.heads, scan_stride(op));
	return ST_OK;
}

/* Gradients of one head that gather over its channels. */
struct head_grad {
	float *ddt;     /* [seq]: of dt */
	float *history; /* [chunk + 1, N]: a channel's states, each row's behind it */
	float *dstate;  /* [N] */
	double A, D;
};

/* A channel's gradients in one chunk, rows from the last to the first. g->dstate is that of the state behind it. */
static void channel_grad(const struct scan_job *j, const struct head *head, int64_t sequence, int64_t h, int64_t p,
	int64_t chunk, struct head_grad *g)
{
	const struct shape *s = &j->s;
	const int64_t N = s->N, first = chunk * s->chunk, group = h / s->per_group;
	const int64_t n = s->seq - first < s->chunk ? s->seq - first : s->chunk;
	memcpy(g->history, scan_states(j, sequence, chunk, h) + p * N, (size_t)N * sizeof *g->history);
	for (int64_t i = 0; i < n; i++) {
		const int64_t t = first + i, at = t * head->row;
		const float dt = dt_of(head, t);
		memcpy(g->history + (i + 1) * N, g->history + i * N, (size_t)N * sizeof *g->history);
		step(g->history + (i + 1) * N, head->B + at, head->C + at, N, expf(dt * head->A), dt * head->x[at + p]);
	}
	for (int64_t k = n; k-- > 0;) {
		const int64_t t = first + k, at = t * head->row, row = sequence * s->seq + t;
		const float dt = dt_of(head, t), decay = expf(dt * head->A), x = head->x[at + p],
			    dy = j->dy[(row * s->heads + h) * s->P + p];
		const float *restrict B = head->B + at, *restrict C = head->C + at;
		const float *restrict before = g->history + k * N, *restrict after = before + N;
		float *dx = j->dxbc + row * s->conv_row + group * s->conv;
		float *restrict dB = dx + s->x, *restrict dC = dB + N, *restrict ds = g->dstate;
		float by_B[LANES] = {0}, by_state[LANES] = {0};
		FOR_LANES(N, float d = ds[i] + dy * C[i]; dC[i] += dy * after[i]; dB[i] += dt * x * d;
			  by_B[l] += d * B[i]; by_state[l] += d * before[i]; ds[i] = decay * d;);
		const float through_B = lanes_sum(by_B), through_state = decay * lanes_sum(by_state);
		dx[h % s->per_group * s->P + p] = head->D * dy + dt * through_B;
		g->ddt[t] += x * through_B + head->A * through_state;
		g->A += (double)(dt * through_state);
		g->D += (double)(dy * x);
	}
}

static void head_backward(const struct scan_job *j, int64_t sequence, int64_t h, float *scratch)
{
	const struct shape *s = &j->s;
	const struct head head = head_of(j, sequence, h);
	const int64_t g = h / s->per_group, column = g * s->in + s->x + s->conv + h % s->per_group;
	struct head_grad grad = {.ddt = scratch, .dstate = scratch + padded(s->seq)};
	grad.history = grad.dstate + padded(s->N);
	run_head(j, sequence, h, grad.history, NULL);
	memset(grad.ddt, 0, (size_t)s->seq * sizeof *grad.ddt);
	for (int64_t p = 0; p < s->P; p++) {
		memset(grad.dstate, 0, (size_t)s->N * sizeof *grad.dstate);
		for (int64_t chunk = s->chunks; chunk-- > 0;)
			channel_grad(j, &head, sequence, h, p, chunk, &grad);
	}
	double bias = 0;
	for (int64_t t = 0; t < s->seq; t++) {
		const float d = grad.ddt[t] * (1.0f - expf(-dt_of(&head, t))); /* softplus' = sigmoid = 1 - exp(-dt) */
		j->din[(sequence * s->seq + t) * s->in_row + column] = d;
		bias += (double)d;
	}
	float *out = j->partial + (sequence * s->heads + h) * HEAD_VALUES;
	out[0] = (float)(grad.A * (double)head.A);
	out[1] = (float)bias;
	out[2] = (float)grad.D;
}

/* All heads of a group add to its B and C. */
static void scan_grad_task(void *ctx, int64_t task, int thread)
{
	const struct scan_job *j = ctx;
	const struct shape *s = &j->s;
	const int64_t sequence = task / s->groups, g = task % s->groups;
	for (int64_t t = 0; t < s->seq; t++)
		memset(j->dxbc + (sequence * s->seq + t) * s->conv_row + g * s->conv + s->x, 0,
			(size_t)(2 * s->N) * sizeof *j->dxbc);
	for (int64_t i = 0; i < s->per_group; i++)
		head_backward(j, sequence, g * s->per_group + i, j->scratch + thread * j->stride);
}

static int64_t scan_grad_stride(const struct op *op)
{
	const struct shape s = shape_of(op);
	const int64_t history = (s.chunk + 1) * s.N, state = s.P * s.N;
	return padded(s.seq) + padded(s.N) + padded(history > state ? history : state);
}

size_t scratch_ssm_scan_grad(const struct op *op, int threads)
{
	return scan_backward_scratch(op, threads, HEAD_VALUES, scan_grad_stride(op));
}

enum status kernel_ssm_scan_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	scan_backward(env, op, arg, scan_grad_task, HEAD_VALUES, scan_grad_stride(op));
	return ST_OK;
}

/* ---- the gated norm ---- */

static void gate_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct gate_job *j = ctx;
	const struct shape *s = &j->s;
	for (int64_t r = begin; r < end; r++)
		for (int64_t g = 0; g < s->groups; g++) {
			const int64_t at = (r * s->groups + g) * s->x;
			const float *y = j->y + at, *z = j->in + r * s->in_row + g * s->in, *w = j->w + g * s->x;
			float *out = j->out + at;
			float square[LANES] = {0};
			FOR_LANES(s->x, float u = y[i] * silu(z[i]); out[i] = u; square[l] += u * u;);
			const float sigma = 1.0f / sqrtf(lanes_sum(square) / (float)s->x + NORM_EPS);
			j->sigma[r * s->groups + g] = sigma;
			for (int64_t i = 0; i < s->x; i++)
				out[i] *= sigma * w[i];
		}
}

enum status kernel_ssm_gate(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	gate_forward(env, op, arg, gate_part);
	return ST_OK;
}

/* With u = y silu(z), h = u sigma and g = dout w: du = sigma (g - h mean(g h)). */
static void gate_grad_group(const struct gate_job *j, int64_t r, int64_t g, float *restrict dw)
{
	const struct shape *s = &j->s;
	const int64_t at = (r * s->groups + g) * s->x, in = r * s->in_row + g * s->in;
	const float *y = j->y + at, *z = j->in + in, *w = j->w + g * s->x, *dout = j->dout + at;
	const float sigma = j->sigma[r * s->groups + g];
	float *dy = j->dy + at, *dz = j->din + in;
	float sum[LANES] = {0};
	FOR_LANES(s->x, float h = y[i] * silu(z[i]) * sigma; sum[l] += dout[i] * w[i] * h; dw[i] += dout[i] * h;);
	const float mean = lanes_sum(sum) / (float)s->x;
	for (int64_t i = 0; i < s->x; i++) {
		const float gate = silu(z[i]), du = sigma * (dout[i] * w[i] - y[i] * gate * sigma * mean);
		dz[i] = du * y[i] * silu_slope(z[i]);
		dy[i] = du * gate;
	}
}

static void gate_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct gate_job *j = ctx;
	float *dw = j->partial + part * j->stride;
	memset(dw, 0, (size_t)j->stride * sizeof *dw);
	for (int64_t r = begin; r < end; r++)
		for (int64_t g = 0; g < j->s.groups; g++)
			gate_grad_group(j, r, g, dw + g * j->s.x);
}

size_t scratch_ssm_gate_grad(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)padded(op->ssm.heads * op->ssm.head_dim) * sizeof(float);
}

enum status kernel_ssm_gate_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	gate_backward(env, op, arg, gate_grad_part, op->ssm.heads * op->ssm.head_dim);
	return ST_OK;
}
