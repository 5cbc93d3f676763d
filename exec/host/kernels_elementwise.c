#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

struct add {
	const float *x, *y, *bias;
	float *sum;
	int64_t cols;
};

static void add_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct add *a = ctx;
	if (!a->bias) {
		const float *x = a->x, *y = a->y;
		float *sum = a->sum;
#pragma GCC ivdep
		for (int64_t i = begin * a->cols; i < end * a->cols; i++)
			sum[i] = x[i] + y[i];
		return;
	}
	for (int64_t r = begin; r < end; r++) {
		const float *x = a->x + r * a->cols, *y = a->y + r * a->cols, *bias = a->bias;
		float *sum = a->sum + r * a->cols;
#pragma GCC ivdep
		for (int64_t i = 0; i < a->cols; i++)
			sum[i] = x[i] + y[i] + bias[i];
	}
}

enum status kernel_add(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct add a = {arg[0], arg[1], arg[2], arg[3], op->matrix.cols};
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols), op->matrix.rows, add_part, &a);
	return ST_OK;
}

static void bias_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct add *a = ctx;
	for (int64_t r = begin; r < end; r++) {
		const float *restrict bias = a->bias;
		float *restrict x = a->sum + r * a->cols;
		for (int64_t i = 0; i < a->cols; i++)
			x[i] += bias[i];
	}
}

enum status kernel_bias(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct add a = {.bias = arg[1], .sum = arg[0], .cols = op->matrix.cols};
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols), op->matrix.rows, bias_part, &a);
	return ST_OK;
}

struct column_sums {
	const float *dy;
	float *partial;
	int64_t cols, stride;
};

/* Four rows at a time: the running sums are then loaded and stored once for four rows read. */
static void column_sums_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct column_sums *c = ctx;
	const int64_t cols = c->cols;
	float *restrict sum = c->partial + part * c->stride;
	memset(sum, 0, (size_t)cols * sizeof *sum);
	int64_t r = begin;
	for (; r + 4 <= end; r += 4) {
		const float *a = c->dy + r * cols, *b = a + cols, *d = b + cols, *f = d + cols;
		for (int64_t i = 0; i < cols; i++)
			sum[i] += (a[i] + b[i]) + (d[i] + f[i]);
	}
	for (; r < end; r++) {
		const float *a = c->dy + r * cols;
		for (int64_t i = 0; i < cols; i++)
			sum[i] += a[i];
	}
}

size_t scratch_bias_grad(const struct op *op, int threads)
{
	return (size_t)threads * (size_t)padded(op->matrix.cols) * sizeof(float);
}

enum status kernel_bias_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct column_sums c = {arg[0], env->scratch, op->matrix.cols, padded(op->matrix.cols)};
	int parts = kernel_parts_summed(env, op->matrix.rows, op->matrix.cols);
	kernel_split(env, parts, op->matrix.rows, column_sums_part, &c);
	kernel_sum_parts(c.partial, parts, c.stride, c.cols, arg[1], op->flags & OP_ACCUMULATE);
	return ST_OK;
}

struct fill {
	char *to;
	const char *from; /* NULL: zeros */
};

static void fill_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct fill *f = ctx;
	size_t at = (size_t)begin * sizeof(float), n = (size_t)(end - begin) * sizeof(float);
	if (f->from)
		memmove(f->to + at, f->from + at, n);
	else
		memset(f->to + at, 0, n);
}

enum status kernel_fill(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct fill f = {arg[0], NULL};
	kernel_split(env, kernel_parts(env, op->vector.elements, 1), op->vector.elements, fill_part, &f);
	return ST_OK;
}

enum status kernel_cast(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct fill f = {arg[1], arg[0]};
	if (arg[0] != arg[1])
		kernel_split(env, kernel_parts(env, op->vector.elements, 1), op->vector.elements, fill_part, &f);
	return ST_OK;
}

enum status kernel_copy(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)env, (void)e;
	memmove(arg[1], arg[0], (size_t)op->copy.bytes);
	return ST_OK;
}
