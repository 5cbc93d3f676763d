#include <math.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

/* The row stays in the first-level cache between the passes, so that memory is read once. */
static void norm_row(const float *x, const float *w, const float *b, float *y, float *stats, int64_t cols, bool rms)
{
	float mean = 0.0f;
	float lane[LANES] = {0};
	if (!rms) {
		FOR_LANES(cols, lane[l] += x[i];);
		mean = lanes_sum(lane) / (float)cols;
	}
	float square[LANES] = {0};
	FOR_LANES(cols, float v = x[i] - mean; square[l] += v * v;);
	float inverse = 1.0f / sqrtf(lanes_sum(square) / (float)cols + NORM_EPS);
	stats[0] = mean;
	stats[1] = inverse;
	if (b)
#pragma GCC ivdep
		for (int64_t i = 0; i < cols; i++)
			y[i] = (x[i] - mean) * inverse * w[i] + b[i];
	else
#pragma GCC ivdep
		for (int64_t i = 0; i < cols; i++)
			y[i] = (x[i] - mean) * inverse * w[i];
}

struct norm_job {
	const float *x, *y, *bias, *w, *b;
	float *sum, *out, *stats;
	int64_t cols;
	bool rms;
};

static void norm_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct norm_job *n = ctx;
	for (int64_t r = begin; r < end; r++)
		norm_row(n->x + r * n->cols, n->w, n->b, n->out + r * n->cols, n->stats + 2 * r, n->cols, n->rms);
}

enum status kernel_norm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct norm_job n = {.x = arg[0],
		.w = arg[1],
		.b = arg[2],
		.out = arg[3],
		.stats = arg[4],
		.cols = op->matrix.cols,
		.rms = op->flags & OP_RMS};
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols), op->matrix.rows, norm_part, &n);
	return ST_OK;
}

static void add_norm_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct norm_job *n = ctx;
	for (int64_t r = begin; r < end; r++) {
		const float *x = n->x + r * n->cols, *y = n->y + r * n->cols, *bias = n->bias;
		float *sum = n->sum + r * n->cols;
		if (bias)
#pragma GCC ivdep
			for (int64_t i = 0; i < n->cols; i++)
				sum[i] = x[i] + y[i] + bias[i];
		else
#pragma GCC ivdep
			for (int64_t i = 0; i < n->cols; i++)
				sum[i] = x[i] + y[i];
		norm_row(sum, n->w, n->b, n->out + r * n->cols, n->stats + 2 * r, n->cols, n->rms);
	}
}

enum status kernel_add_norm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct norm_job n = {arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6], arg[7], op->matrix.cols,
		op->flags & OP_RMS};
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols), op->matrix.rows, add_norm_part, &n);
	return ST_OK;
}

struct norm_grad {
	const float *dy, *x, *w, *stats;
	float *dx, *partial; /* partial: for each part dw, then db */
	int64_t cols, stride;
	bool rms, bias, add;
};

/* With g = dy w and h = (x - mean) / sigma: dx = (g - mean(g) - h mean(g h)) / sigma; RMS norm has no mean, hence no
 * mean(g). */
static void norm_grad_row(const struct norm_grad *n, int64_t r, float *restrict dw, float *restrict db)
{
	const int64_t cols = n->cols;
	const float *dy = n->dy + r * cols, *x = n->x + r * cols, *w = n->w;
	const float mean = n->stats[2 * r], inverse = n->stats[2 * r + 1];
	float *dx = n->dx + r * cols;
	float sum_g[LANES] = {0}, sum_gh[LANES] = {0};
	if (n->bias)
		FOR_LANES(cols, float h = (x[i] - mean) * inverse; float g = dy[i] * w[i]; sum_g[l] += g;
			  sum_gh[l] += g * h; dw[i] += dy[i] * h; db[i] += dy[i];);
	else
		FOR_LANES(cols, float h = (x[i] - mean) * inverse; float g = dy[i] * w[i]; sum_g[l] += g;
			  sum_gh[l] += g * h; dw[i] += dy[i] * h;);
	const float mean_g = n->rms ? 0.0f : lanes_sum(sum_g) / (float)cols, mean_gh = lanes_sum(sum_gh) / (float)cols;
	if (n->add)
#pragma GCC ivdep
		for (int64_t i = 0; i < cols; i++)
			dx[i] += inverse * (dy[i] * w[i] - mean_g - (x[i] - mean) * inverse * mean_gh);
	else
#pragma GCC ivdep
		for (int64_t i = 0; i < cols; i++)
			dx[i] = inverse * (dy[i] * w[i] - mean_g - (x[i] - mean) * inverse * mean_gh);
}

static void norm_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct norm_grad *n = ctx;
	float *dw = n->partial + part * 2 * n->stride, *db = dw + n->stride;
	memset(dw, 0, (size_t)(2 * n->stride) * sizeof *dw);
	for (int64_t r = begin; r < end; r++)
		norm_grad_row(n, r, dw, db);
}

size_t scratch_norm_grad(const struct op *op, int threads)
{
	return (size_t)threads * 2 * (size_t)padded(op->matrix.cols) * sizeof(float);
}

enum status kernel_norm_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	float *dw = arg[5], *db = arg[6];
	const int64_t cols = op->matrix.cols, stride = padded(cols);
	struct norm_grad n = {arg[0], arg[1], arg[2], arg[3], arg[4], env->scratch, cols, stride, op->flags & OP_RMS,
		db != NULL, op->flags & OP_DX_ACCUMULATE};
	int parts = kernel_parts_summed(env, op->matrix.rows, cols);
	kernel_split(env, parts, op->matrix.rows, norm_grad_part, &n);
	kernel_sum_parts(n.partial, parts, 2 * stride, cols, dw, op->flags & OP_ACCUMULATE);
	if (db)
		kernel_sum_parts(n.partial + stride, parts, 2 * stride, cols, db, op->flags & OP_ACCUMULATE);
	return ST_OK;
}
