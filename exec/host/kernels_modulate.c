/* Adaptive norms and gated additions: a row of numbers for each sequence of rows. */
#include <math.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

struct modulate {
	const float *x, *y, *bias, *dy, *mod;
	float *out, *stats, *dmod;
	struct op_modulate d;
	bool rms, add;
};

static void run(const struct host_env *env, struct modulate *m, part_fn *fn)
{
	kernel_split(env, kernel_parts(env, m->d.batch, m->d.seq * m->d.cols), m->d.batch, fn, m);
}

/* The numbers of a sequence, from the op's first column on; NULL without any. */
static const float *numbers(const struct modulate *m, int64_t b)
{
	return m->mod ? m->mod + b * m->d.width + m->d.at : NULL;
}

/* Mean and 1/sigma of a row. */
static void row_stats(const float *x, int64_t cols, bool rms, float *stats)
{
	float lane[LANES] = {0}, square[LANES] = {0};
	if (!rms)
		FOR_LANES(cols, lane[l] += x[i];);
	const float mean = lanes_sum(lane) / (float)cols;
	FOR_LANES(cols, float v = x[i] - mean; square[l] += v * v;);
	stats[0] = mean;
	stats[1] = 1.0f / sqrtf(lanes_sum(square) / (float)cols + NORM_EPS);
}

static void modulate_row(const struct modulate *m, int64_t r, const float *shift)
{
	const int64_t cols = m->d.cols;
	const float *x = m->x + r * cols, *scale = shift + cols;
	float *y = m->out + r * cols;
	if (m->stats)
		row_stats(x, cols, m->rms, m->stats + 2 * r);
	const float mean = m->stats ? m->stats[2 * r] : 0.0f, inverse = m->stats ? m->stats[2 * r + 1] : 1.0f;
	if (shift)
#pragma GCC ivdep
		for (int64_t i = 0; i < cols; i++)
			y[i] = (x[i] - mean) * inverse * (1.0f + scale[i]) + shift[i];
	else
#pragma GCC ivdep
		for (int64_t i = 0; i < cols; i++)
			y[i] = (x[i] - mean) * inverse;
}

static void modulate_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct modulate *m = ctx;
	for (int64_t b = begin; b < end; b++)
		for (int64_t s = 0; s < m->d.seq; s++)
			modulate_row(m, b * m->d.seq + s, numbers(m, b));
}

enum status kernel_modulate(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct modulate m = {.x = arg[ARG_MODULATE_x],
		.mod = arg[ARG_MODULATE_mod],
		.out = arg[ARG_MODULATE_y],
		.stats = arg[ARG_MODULATE_stats],
		.d = op->modulate,
		.rms = op->flags & OP_RMS};
	run(env, &m, modulate_part);
	return ST_OK;
}

/* With h = (x - mean) / sigma and g = dy (1 + scale): dx = (g - mean(g) - h mean(g h)) / sigma, as a norm's; without
 * stats dx = g. */
static void modulate_grad_row(const struct modulate *m, int64_t r, const float *scale, float *restrict dshift)
{
	const int64_t cols = m->d.cols;
	const float *dy = m->dy + r * cols, *x = m->x + r * cols;
	const float mean = m->stats ? m->stats[2 * r] : 0.0f, inverse = m->stats ? m->stats[2 * r + 1] : 1.0f;
	float *dx = m->out + r * cols, sum_g[LANES] = {0}, sum_gh[LANES] = {0};
	if (m->stats)
		FOR_LANES(cols, float h = (x[i] - mean) * inverse; float g = scale ? dy[i] * (1.0f + scale[i]) : dy[i];
			  sum_g[l] += g; sum_gh[l] += g * h;);
	const float mean_g = m->rms ? 0.0f : lanes_sum(sum_g) / (float)cols, mean_gh = lanes_sum(sum_gh) / (float)cols;
	for (int64_t i = 0; i < cols; i++) {
		const float h = (x[i] - mean) * inverse, g = scale ? dy[i] * (1.0f + scale[i]) : dy[i];
		const float d = inverse * (g - mean_g - h * mean_gh);
		dx[i] = m->add ? dx[i] + d : d;
		if (dshift) {
			dshift[i] += dy[i];
			dshift[cols + i] += dy[i] * h;
		}
	}
}

static void modulate_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct modulate *m = ctx;
	for (int64_t b = begin; b < end; b++) {
		const float *shift = numbers(m, b);
		float *dshift = m->dmod ? m->dmod + b * m->d.width + m->d.at : NULL;
		if (dshift)
			memset(dshift, 0, (size_t)(2 * m->d.cols) * sizeof *dshift);
		for (int64_t s = 0; s < m->d.seq; s++)
			modulate_grad_row(m, b * m->d.seq + s, shift ? shift + m->d.cols : NULL, dshift);
	}
}

enum status kernel_modulate_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct modulate m = {.dy = arg[ARG_MODULATE_GRAD_dy],
		.x = arg[ARG_MODULATE_GRAD_x],
		.mod = arg[ARG_MODULATE_GRAD_mod],
		.stats = arg[ARG_MODULATE_GRAD_stats],
		.out = arg[ARG_MODULATE_GRAD_dx],
		.dmod = arg[ARG_MODULATE_GRAD_dmod],
		.d = op->modulate,
		.rms = op->flags & OP_RMS,
		.add = op->flags & OP_DX_ACCUMULATE};
	run(env, &m, modulate_grad_part);
	return ST_OK;
}

static void gated_add_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct modulate *m = ctx;
	const int64_t cols = m->d.cols;
	for (int64_t r = begin * m->d.seq; r < end * m->d.seq; r++) {
		const float *x = m->x + r * cols, *y = m->y + r * cols, *bias = m->bias,
			    *gate = numbers(m, r / m->d.seq);
		float *sum = m->out + r * cols;
		if (bias)
#pragma GCC ivdep
			for (int64_t i = 0; i < cols; i++)
				sum[i] = x[i] + gate[i] * (y[i] + bias[i]);
		else
#pragma GCC ivdep
			for (int64_t i = 0; i < cols; i++)
				sum[i] = x[i] + gate[i] * y[i];
	}
}

enum status kernel_gated_add(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct modulate m = {.x = arg[ARG_GATED_ADD_x],
		.y = arg[ARG_GATED_ADD_y],
		.bias = arg[ARG_GATED_ADD_bias],
		.mod = arg[ARG_GATED_ADD_mod],
		.out = arg[ARG_GATED_ADD_sum],
		.d = op->modulate};
	run(env, &m, gated_add_part);
	return ST_OK;
}

static void gated_add_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct modulate *m = ctx;
	const int64_t cols = m->d.cols;
	for (int64_t b = begin; b < end; b++) {
		const float *gate = numbers(m, b);
		float *restrict dgate = m->dmod + b * m->d.width + m->d.at;
		memset(dgate, 0, (size_t)cols * sizeof *dgate);
		for (int64_t r = b * m->d.seq; r < (b + 1) * m->d.seq; r++) {
			const float *dsum = m->dy + r * cols, *y = m->y + r * cols;
			float *restrict dy = m->out + r * cols;
			for (int64_t i = 0; i < cols; i++) {
				dy[i] = gate[i] * dsum[i];
				dgate[i] += dsum[i] * (m->bias ? y[i] + m->bias[i] : y[i]);
			}
		}
	}
}

enum status kernel_gated_add_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct modulate m = {.dy = arg[ARG_GATED_ADD_GRAD_dsum],
		.y = arg[ARG_GATED_ADD_GRAD_y],
		.bias = arg[ARG_GATED_ADD_GRAD_bias],
		.mod = arg[ARG_GATED_ADD_GRAD_mod],
		.out = arg[ARG_GATED_ADD_GRAD_dy],
		.dmod = arg[ARG_GATED_ADD_GRAD_dmod],
		.d = op->modulate};
	run(env, &m, gated_add_grad_part);
	return ST_OK;
}
