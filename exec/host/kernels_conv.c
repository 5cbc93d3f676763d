/* Convolutional networks (step/ops.def): convolutions as products of gathered patches, the norm over a batch, pools. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "exec/host/kernels_private.h"

/* ---- convolutions ---- */

struct conv {
	const struct op_conv *d;
	int64_t side, rows, taps, depth; /* of the result; its pixels; of a kernel; taps x channels in */
	const float *x, *w, *dy;
	float *y, *dx, *dw; /* dw: of a part, behind each other */
	float *columns;     /* of a thread: (rows, depth) */
	int64_t stride;     /* of `columns` */
};

static struct conv conv_of(const struct op *op, float *scratch)
{
	struct conv c = {.d = &op->conv, .side = op_conv_side(op), .columns = scratch};
	c.taps = c.d->kernel * (c.d->flat ? 1 : c.d->kernel);
	c.rows = c.side * (c.d->flat ? 1 : c.side);
	c.depth = c.taps * c.d->in;
	c.stride = padded(c.rows * c.depth);
	return c;
}

static int64_t weights_of(const struct conv *c) { return c->d->out * c->depth; }

/* Returns the pixel of the input under a tap of one of the result; -1: a zero around the image. */
static int64_t pixel_at(const struct conv *c, int64_t row, int64_t tap)
{
	const int64_t pad = (c->d->kernel - 1) / 2, side = c->d->side;
	const int64_t y = c->d->flat ? 0 : row / c->side * c->d->stride + tap / c->d->kernel - pad,
		      x = row % c->side * c->d->stride + tap % c->d->kernel - pad;
	return y < 0 || x < 0 || y >= side || x >= side ? -1 : y * side + x;
}

/* Gathers what each pixel of the result sees of an image. */
static void gather(const struct conv *c, const float *image, float *columns)
{
	const size_t bytes = (size_t)c->d->in * sizeof *columns;
	for (int64_t r = 0; r < c->rows; r++)
		for (int64_t t = 0; t < c->taps; t++, columns += c->d->in) {
			const int64_t at = pixel_at(c, r, t);
			if (at < 0)
				memset(columns, 0, bytes);
			else
				memcpy(columns, image + at * c->d->in, bytes);
		}
}

static int64_t pixels_in(const struct conv *c) { return c->d->side * (c->d->flat ? 1 : c->d->side) * c->d->in; }

/* The other way round: adds what was gathered to an image. */
static void scatter(const struct conv *c, const float *columns, float *image)
{
	memset(image, 0, (size_t)pixels_in(c) * sizeof *image);
	for (int64_t r = 0; r < c->rows; r++)
		for (int64_t t = 0; t < c->taps; t++, columns += c->d->in) {
			const int64_t at = pixel_at(c, r, t);
			for (int64_t i = 0; i < c->d->in && at >= 0; i++)
				image[at * c->d->in + i] += columns[i];
		}
}

static void forward_task(void *ctx, int64_t image, int thread)
{
	const struct conv *c = ctx;
	float *columns = c->columns + thread * c->stride;
	const int out = (int)c->d->out, depth = (int)c->depth, rows = (int)c->rows;
	gather(c, c->x + image * pixels_in(c), columns);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, out, depth, 1, columns, depth, c->w, depth, 0,
		c->y + image * c->rows * c->d->out, out);
}

static void data_task(void *ctx, int64_t image, int thread)
{
	const struct conv *c = ctx;
	float *columns = c->columns + thread * c->stride;
	const int out = (int)c->d->out, depth = (int)c->depth, rows = (int)c->rows;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, depth, out, 1, c->dy + image * c->rows * c->d->out,
		out, c->w, depth, 0, columns, depth);
	scatter(c, columns, c->dx + image * pixels_in(c));
}

static void weight_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	const struct conv *c = ctx;
	float *columns = c->columns + thread * c->stride, *dw = c->dw + part * padded(weights_of(c));
	const int out = (int)c->d->out, depth = (int)c->depth, rows = (int)c->rows;
	memset(dw, 0, (size_t)weights_of(c) * sizeof *dw);
	for (int64_t image = begin; image < end; image++) {
		gather(c, c->x + image * pixels_in(c), columns);
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, depth, rows, 1,
			c->dy + image * c->rows * c->d->out, out, columns, depth, 1, dw, depth);
	}
}

size_t scratch_conv(const struct op *op, int threads)
{
	const struct conv c = conv_of(op, NULL);
	const int64_t weights = op->kind == OP_CONV_WEIGHT ? padded(weights_of(&c)) : 0;
	return (size_t)threads * (size_t)(c.stride + weights) * sizeof(float);
}

/* The caller alone where OpenBLAS has threads of its own. */
static struct pool *pool_of(const struct host_env *env) { return kernel_blas_is_serial() ? env->pool : NULL; }

enum status kernel_conv(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv c = conv_of(op, env->scratch);
	c.x = arg[ARG_CONV_x];
	c.w = arg[ARG_CONV_w];
	c.y = arg[ARG_CONV_y];
	pool_run(pool_of(env), forward_task, &c, c.d->batch);
	return ST_OK;
}

enum status kernel_conv_data(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv c = conv_of(op, env->scratch);
	c.dy = arg[ARG_CONV_DATA_dy];
	c.w = arg[ARG_CONV_DATA_w];
	c.dx = arg[ARG_CONV_DATA_dx];
	pool_run(pool_of(env), data_task, &c, c.d->batch);
	return ST_OK;
}

enum status kernel_conv_weight(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv c = conv_of(op, env->scratch);
	struct host_env own = *env;
	own.pool = pool_of(env);
	c.dy = arg[ARG_CONV_WEIGHT_dy];
	c.x = arg[ARG_CONV_WEIGHT_x];
	c.dw = c.columns + pool_threads(env->pool) * c.stride;
	const int parts = kernel_parts_summed(&own, c.d->batch, c.rows * c.depth);
	kernel_split(&own, parts, c.d->batch, weight_part, &c);
	kernel_sum_parts(c.dw, parts, padded(weights_of(&c)), weights_of(&c), arg[ARG_CONV_WEIGHT_dw],
		op->flags & OP_ACCUMULATE);
	return ST_OK;
}

/* ---- the norm over a batch ---- */

struct batch_norm {
	const float *x, *dy, *w, *b, *stats;
	float *y, *dx;
	float *partial; /* of a part: sums of columns, one or two of them */
	float *sums;    /* of all parts */
	int64_t rows, cols, stride;
	bool squares;
};

static struct batch_norm batch_norm_of(const struct host_env *env, const struct op *op)
{
	struct batch_norm n = {.rows = op->matrix.rows, .cols = op->matrix.cols, .stride = padded(op->matrix.cols)};
	n.sums = env->scratch;
	n.partial = n.sums + 2 * n.stride;
	return n;
}

size_t scratch_batch_norm(const struct op *op, int threads)
{
	return (size_t)(threads + 1) * 2 * (size_t)padded(op->matrix.cols) * sizeof(float);
}

/* Sums of x, or of (x - mean)^2. */
static void moments_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct batch_norm *n = ctx;
	float *restrict sum = n->partial + part * n->stride;
	memset(sum, 0, (size_t)n->cols * sizeof *sum);
	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = n->x + r * n->cols, *restrict mean = n->stats;
		if (n->squares)
			for (int64_t i = 0; i < n->cols; i++)
				sum[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
		else
			for (int64_t i = 0; i < n->cols; i++)
				sum[i] += x[i];
	}
}

static void normalise_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct batch_norm *n = ctx;
	const float *mean = n->stats, *inverse = mean + n->cols;
	for (int64_t r = begin; r < end; r++)
		for (int64_t i = 0; i < n->cols; i++) {
			const int64_t at = r * n->cols + i;
			n->y[at] = (n->x[at] - mean[i]) * inverse[i] * n->w[i] + n->b[i];
		}
}

enum status kernel_batch_norm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct batch_norm n = batch_norm_of(env, op);
	const int parts = kernel_parts_summed(env, n.rows, n.cols);
	float *stats = arg[ARG_BATCH_NORM_stats];
	n.x = arg[ARG_BATCH_NORM_x];
	n.w = arg[ARG_BATCH_NORM_w];
	n.b = arg[ARG_BATCH_NORM_b];
	n.y = arg[ARG_BATCH_NORM_y];
	n.stats = stats;
	kernel_split(env, parts, n.rows, moments_part, &n);
	kernel_sum_parts(n.partial, parts, n.stride, n.cols, stats, false);
	for (int64_t i = 0; i < n.cols; i++)
		stats[i] /= (float)n.rows;
	n.squares = true;
	kernel_split(env, parts, n.rows, moments_part, &n);
	kernel_sum_parts(n.partial, parts, n.stride, n.cols, stats + n.cols, false);
	for (int64_t i = n.cols; i < 2 * n.cols; i++)
		stats[i] = 1.0f / sqrtf(stats[i] / (float)n.rows + NORM_EPS);
	kernel_split(env, kernel_parts(env, n.rows, n.cols), n.rows, normalise_part, &n);
	return ST_OK;
}

/* Sums of dy, and of dy h with h = (x - mean) / sigma. */
static void grad_sums_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct batch_norm *n = ctx;
	const float *mean = n->stats, *inverse = mean + n->cols;
	float *restrict db = n->partial + part * 2 * n->stride, *restrict dw = db + n->stride;
	memset(db, 0, (size_t)(2 * n->stride) * sizeof *db);
	for (int64_t r = begin; r < end; r++) {
		const float *x = n->x + r * n->cols, *dy = n->dy + r * n->cols;
		for (int64_t i = 0; i < n->cols; i++) {
			db[i] += dy[i];
			dw[i] += dy[i] * (x[i] - mean[i]) * inverse[i];
		}
	}
}

/* dx = w / sigma (dy - mean(dy) - h mean(dy h)). */
static void batch_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct batch_norm *n = ctx;
	const float *mean = n->stats, *inverse = mean + n->cols, *db = n->sums, *dw = db + n->stride;
	const float share = 1.0f / (float)n->rows;
	for (int64_t r = begin; r < end; r++)
		for (int64_t i = 0; i < n->cols; i++) {
			const int64_t at = r * n->cols + i;
			const float h = (n->x[at] - mean[i]) * inverse[i];
			n->dx[at] = n->w[i] * inverse[i] * (n->dy[at] - share * db[i] - h * share * dw[i]);
		}
}

enum status kernel_batch_norm_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct batch_norm n = batch_norm_of(env, op);
	const int parts = kernel_parts_summed(env, n.rows, n.cols);
	n.dy = arg[ARG_BATCH_NORM_GRAD_dy];
	n.x = arg[ARG_BATCH_NORM_GRAD_x];
	n.w = arg[ARG_BATCH_NORM_GRAD_w];
	n.stats = arg[ARG_BATCH_NORM_GRAD_stats];
	n.dx = arg[ARG_BATCH_NORM_GRAD_dx];
	kernel_split(env, parts, n.rows, grad_sums_part, &n);
	for (int k = 0; k < 2; k++)
		kernel_sum_parts(n.partial + k * n.stride, parts, 2 * n.stride, n.cols, n.sums + k * n.stride, false);
	kernel_sum_parts(n.sums, 1, 0, n.cols, arg[ARG_BATCH_NORM_GRAD_db], op->flags & OP_ACCUMULATE);
	kernel_sum_parts(n.sums + n.stride, 1, 0, n.cols, arg[ARG_BATCH_NORM_GRAD_dw], op->flags & OP_ACCUMULATE);
	kernel_split(env, kernel_parts(env, n.rows, n.cols), n.rows, batch_grad_part, &n);
	return ST_OK;
}

/* ---- pools ---- */

struct pool_job {
	struct conv c;
	const int32_t *taken_from;
	int32_t *taken;
};

static void max_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct pool_job *j = ctx;
	const struct conv *c = &j->c;
	const int64_t n = c->d->in, taps = c->d->kernel * c->d->kernel;
	for (int64_t image = begin; image < end; image++)
		for (int64_t r = 0; r < c->rows; r++)
			for (int64_t i = 0; i < n; i++) {
				const float *x = c->x + image * pixels_in(c) + i;
				const int64_t to = (image * c->rows + r) * n + i;
				int64_t best = -1;
				for (int64_t t = 0; t < taps; t++) {
					const int64_t at = pixel_at(c, r, t);
					if (at >= 0 && (best < 0 || x[at * n] > x[best * n]))
						best = at;
				}
				c->y[to] = x[best * n];
				j->taken[to] = (int32_t)best;
			}
}

enum status kernel_max_pool(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct pool_job j = {.c = conv_of(op, NULL), .taken = arg[ARG_MAX_POOL_taken]};
	j.c.x = arg[ARG_MAX_POOL_x];
	j.c.y = arg[ARG_MAX_POOL_y];
	kernel_split(env, kernel_parts(env, j.c.d->batch, pixels_in(&j.c)), j.c.d->batch, max_part, &j);
	return ST_OK;
}

static void max_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct pool_job *j = ctx;
	const struct conv *c = &j->c;
	const int64_t n = c->d->in;
	for (int64_t image = begin; image < end; image++) {
		float *dx = c->dx + image * pixels_in(c);
		memset(dx, 0, (size_t)pixels_in(c) * sizeof *dx);
		for (int64_t k = image * c->rows * n; k < (image + 1) * c->rows * n; k++)
			dx[j->taken_from[k] * n + k % n] += c->dy[k];
	}
}

enum status kernel_max_pool_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct pool_job j = {.c = conv_of(op, NULL), .taken_from = arg[ARG_MAX_POOL_GRAD_taken]};
	j.c.dy = arg[ARG_MAX_POOL_GRAD_dy];
	j.c.dx = arg[ARG_MAX_POOL_GRAD_dx];
	kernel_split(env, kernel_parts(env, j.c.d->batch, pixels_in(&j.c)), j.c.d->batch, max_grad_part, &j);
	return ST_OK;
}

static void mean_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct conv *c = ctx;
	const int64_t n = c->d->in, pixels = c->d->side * c->d->side;
	for (int64_t image = begin; image < end; image++) {
		float *restrict y = c->y + image * n;
		memset(y, 0, (size_t)n * sizeof *y);
		for (int64_t p = 0; p < pixels; p++)
			for (int64_t i = 0; i < n; i++)
				y[i] += c->x[(image * pixels + p) * n + i];
		for (int64_t i = 0; i < n; i++)
			y[i] /= (float)pixels;
	}
}

enum status kernel_mean_pool(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv c = conv_of(op, NULL);
	c.x = arg[ARG_MEAN_POOL_x];
	c.y = arg[ARG_MEAN_POOL_y];
	kernel_split(env, kernel_parts(env, c.d->batch, pixels_in(&c)), c.d->batch, mean_part, &c);
	return ST_OK;
}

static void mean_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct conv *c = ctx;
	const int64_t n = c->d->in, pixels = c->d->side * c->d->side;
	for (int64_t k = begin * pixels; k < end * pixels; k++)
		for (int64_t i = 0; i < n; i++)
			c->dx[k * n + i] = c->dy[k / pixels * n + i] / (float)pixels;
}

enum status kernel_mean_pool_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct conv c = conv_of(op, NULL);
	c.dy = arg[ARG_MEAN_POOL_GRAD_dy];
	c.dx = arg[ARG_MEAN_POOL_GRAD_dx];
	kernel_split(env, kernel_parts(env, c.d->batch, pixels_in(&c)), c.d->batch, mean_grad_part, &c);
	return ST_OK;
}
