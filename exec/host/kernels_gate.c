/* Gates by a sigmoid, and short convolutions between two gates (step/ops.def). */
#include <math.h>
#include <string.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

/* ---- a gate ---- */

struct gate_job {
	const float *x, *gate, *dy;
	float *y, *dx, *dgate;
	int64_t gates, width; /* columns of a gate */
};

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static void gate_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct gate_job *j = ctx;
	for (int64_t g = begin * j->gates; g < end * j->gates; g++) {
		const float *restrict x = j->x + g * j->width, open = sigmoid(j->gate[g]);
		float *restrict y = j->y + g * j->width;
		for (int64_t i = 0; i < j->width; i++)
			y[i] = open * x[i];
	}
}

static struct gate_job gate_job_of(const struct op *op)
{
	return (struct gate_job){.gates = op->gate.gates, .width = op->gate.cols / op->gate.gates};
}

enum status kernel_sigmoid_gate(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct gate_job j = gate_job_of(op);
	j.x = arg[ARG_SIGMOID_GATE_x];
	j.gate = arg[ARG_SIGMOID_GATE_gate];
	j.y = arg[ARG_SIGMOID_GATE_y];
	kernel_split(env, kernel_parts(env, op->gate.rows, op->gate.cols), op->gate.rows, gate_part, &j);
	return ST_OK;
}

static void gate_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct gate_job *j = ctx;
	for (int64_t g = begin * j->gates; g < end * j->gates; g++) {
		const float *restrict dy = j->dy + g * j->width, open = sigmoid(j->gate[g]);
		float *restrict dx = j->dx + g * j->width;
		j->dgate[g] = open * (1.0f - open) * row_dot(dy, j->x + g * j->width, j->width);
		for (int64_t i = 0; i < j->width; i++)
			dx[i] = open * dy[i];
	}
}

enum status kernel_sigmoid_gate_grad(const struct host_env *env, const struct op *op, void *const arg[],
	struct error *e)
{
	(void)e;
	struct gate_job j = gate_job_of(op);
	j.dy = arg[ARG_SIGMOID_GATE_GRAD_dy];
	j.x = arg[ARG_SIGMOID_GATE_GRAD_x];
	j.gate = arg[ARG_SIGMOID_GATE_GRAD_gate];
	j.dx = arg[ARG_SIGMOID_GATE_GRAD_dx];
	j.dgate = arg[ARG_SIGMOID_GATE_GRAD_dgate];
	kernel_split(env, kernel_parts(env, op->gate.rows, op->gate.cols), op->gate.rows, gate_grad_part, &j);
	return ST_OK;
}

/* ---- short convolutions ---- */

enum { GATE_IN, GATE_OUT, INPUT, PARTS_OF_IN }; /* b, c, x of a channel in a row of `in` */

struct short_conv {
	int64_t seq, channels, taps, stride;
	const float *in, *w, *dout;
	float *out, *din, *partial; /* of a part: dw */
};

static struct short_conv short_conv_of(const struct op *op)
{
	const struct op_short_conv *d = &op->short_conv;
	return (struct short_conv){.seq = d->seq, .channels = d->channels, .taps = d->taps};
}

static const float *at(const struct short_conv *s, int64_t r, int64_t c)
{
	return s->in + (r * s->channels + c) * PARTS_OF_IN;
}

/* The convolution of channel c in row r, before the gate behind it. */
static float convolved(const struct short_conv *s, int64_t r, int64_t c)
{
	float sum = 0;
	for (int64_t j = 0; j < s->taps; j++) {
		const int64_t back = s->taps - 1 - j;
		if (back <= r % s->seq) {
			const float *in = at(s, r - back, c);
			sum += s->w[c * s->taps + j] * (in[GATE_IN] * in[INPUT]);
		}
	}
	return sum;
}

static void short_conv_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct short_conv *s = ctx;
	for (int64_t r = begin; r < end; r++)
		for (int64_t c = 0; c < s->channels; c++)
			s->out[r * s->channels + c] = at(s, r, c)[GATE_OUT] * convolved(s, r, c);
}

enum status kernel_short_conv(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct short_conv s = short_conv_of(op);
	const int64_t rows = op->short_conv.batch * s.seq;
	s.in = arg[ARG_SHORT_CONV_in];
	s.w = arg[ARG_SHORT_CONV_w];
	s.out = arg[ARG_SHORT_CONV_out];
	kernel_split(env, kernel_parts(env, rows, s.channels * s.taps), rows, short_conv_part, &s);
	return ST_OK;
}

/* A row's gradients: of the gate behind the convolution, of what the row put into it for later rows, of the taps. */
static void short_conv_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct short_conv *s = ctx;
	float *dw = s->partial + part * s->stride;
	memset(dw, 0, (size_t)s->stride * sizeof *dw);
	for (int64_t r = begin; r < end; r++)
		for (int64_t c = 0; c < s->channels; c++) {
			const float *in = at(s, r, c), product = in[GATE_IN] * in[INPUT];
			float *din = s->din + (r * s->channels + c) * PARTS_OF_IN, d = 0;
			for (int64_t j = 0; j < s->taps; j++) {
				const int64_t later = r + s->taps - 1 - j;
				if (later / s->seq != r / s->seq)
					continue;
				const float behind = s->dout[later * s->channels + c] * at(s, later, c)[GATE_OUT];
				d += s->w[c * s->taps + j] * behind;
				dw[c * s->taps + j] += behind * product;
			}
			din[GATE_IN] = d * in[INPUT];
			din[GATE_OUT] = s->dout[r * s->channels + c] * convolved(s, r, c);
			din[INPUT] = d * in[GATE_IN];
		}
}

size_t scratch_short_conv_grad(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)padded(op->short_conv.channels * op->short_conv.taps) * sizeof(float);
}

enum status kernel_short_conv_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct short_conv s = short_conv_of(op);
	const int64_t rows = op->short_conv.batch * s.seq, taps = s.channels * s.taps;
	s.in = arg[ARG_SHORT_CONV_GRAD_in];
	s.w = arg[ARG_SHORT_CONV_GRAD_w];
	s.dout = arg[ARG_SHORT_CONV_GRAD_dout];
	s.din = arg[ARG_SHORT_CONV_GRAD_din];
	s.partial = env->scratch;
	s.stride = padded(taps);
	const int parts = kernel_parts_summed(env, rows, taps);
	kernel_split(env, parts, rows, short_conv_grad_part, &s);
	kernel_sum_parts(s.partial, parts, s.stride, taps, arg[ARG_SHORT_CONV_GRAD_dw], op->flags & OP_ACCUMULATE);
	return ST_OK;
}
