#include <math.h>

#include "exec/host/kernels_private.h"

/* a task: the angles of its first position are computed exactly, the others follow by rotation */
#define POSITIONS 128

/* Doubles of scratch: the frequencies, their rotation by one position, and for each thread the current one. */
struct rope {
	float *qkv;
	double *frequency, *step_cos, *step_sin, *own;
	struct cut cut;
	int64_t batch, s, chunk, heads, D, width, half, stride; /* chunk: rows whose positions follow each other; half:
	                                                           of the last columns of a head, which rotate */
	double sign;
};

static void rotate_row(float *restrict row, const double *restrict c, const double *restrict s, int64_t heads,
	int64_t D, int64_t half)
{
	for (int64_t h = 0; h < heads; h++) {
		float *restrict a = row + (h + 1) * D - 2 * half, *restrict b = a + half;
		for (int64_t i = 0; i < half; i++) {
			float co = (float)c[i], si = (float)s[i], x = a[i], y = b[i];
			a[i] = x * co - y * si;
			b[i] = x * si + y * co;
		}
	}
}

/* Rotating in double loses about 1e-16 a position: nothing at fp32. */
static void next_position(double *restrict c, double *restrict s, const double *restrict dc, const double *restrict ds,
	int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		double x = c[i], y = s[i];
		c[i] = x * dc[i] - y * ds[i];
		s[i] = x * ds[i] + y * dc[i];
	}
}

static int64_t tasks_of(int64_t rows) { return (rows + POSITIONS - 1) / POSITIONS; }

static void rope_part(void *ctx, int64_t task, int thread)
{
	const struct rope *r = ctx;
	int64_t per_chunk = tasks_of(r->chunk), first = task / per_chunk * r->chunk,
		in_chunk = task % per_chunk * POSITIONS, position = cut_position(&r->cut, r->s, first + in_chunk);
	int64_t begin = first + in_chunk,
		end = first + (in_chunk + POSITIONS < r->chunk ? in_chunk + POSITIONS : r->chunk);
	double *c = r->own + 2 * thread * r->stride, *s = c + r->stride;
	for (int64_t i = 0; i < r->half; i++) {
		c[i] = cos((double)position * r->frequency[i]);
		s[i] = r->sign * sin((double)position * r->frequency[i]);
	}
	for (int64_t p = begin; p < end; p++) {
		for (int64_t b = 0; b < r->batch; b++)
			rotate_row(r->qkv + (b * r->s + p) * r->width, c, s, r->heads, r->D, r->half);
		next_position(c, s, r->step_cos, r->step_sin, r->half);
	}
}

/* Columns of a head that rotate. */
static int64_t rotated(const struct op *op) { return op->attn.rotated > 0 ? op->attn.rotated : op->attn.head_dim; }

size_t scratch_rope(const struct op *op, int threads)
{
	return (size_t)(3 + 2 * threads) * (size_t)padded(rotated(op) / 2) * sizeof(double);
}

enum status kernel_rope(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const int64_t H = op->attn.heads, K = op->attn.kv_heads, D = op->attn.head_dim, half = rotated(op) / 2,
		      stride = padded(half);
	double *at = env->scratch;
	struct rope r = {arg[0], at, at + stride, at + 2 * stride, at + 3 * stride, env->cut, op->attn.batch,
		op->attn.seq, op->attn.seq / cut_chunks(&env->cut), H + K, D, (H + 2 * K) * D, half, stride,
		op->flags & OP_INVERSE ? -1.0 : 1.0};
	for (int64_t i = 0; i < half; i++) {
		r.frequency[i] = pow(ROPE_THETA, -(double)i / (double)half);
		r.step_cos[i] = cos(r.frequency[i]);
		r.step_sin[i] = r.sign * sin(r.frequency[i]);
	}
	pool_run(env->pool, rope_part, &r, cut_chunks(&r.cut) * tasks_of(r.chunk));
	return ST_OK;
}
