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

/* Columns of a row of x and dx. */
static int64_t row_width(const struct op *op) { return op->matrix.width > 0 ? op->matrix.width : op->matrix.cols; }

struct norm_job {
	const float *x, *y, *bias, *w, *b;
	float *sum, *out, *stats;
	int64_t cols, width; /* width: of a row of x */
	bool rms;
};

static void norm_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct norm_job *n = ctx;
	for (int64_t r = begin; r < end; r++)
		norm_row(n->x + r * n->width, n->w, n->b, n->out + r * n->cols, n->stats + 2 * r, n->cols, n->rms);
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
		.width = row_width(op),
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
		op->matrix.cols, op->flags & OP_RMS};
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols), op->matrix.rows, add_norm_part, &n);
	return ST_OK;
}

struct norm_grad {
	const float *dy, *x, *w, *stats;
	float *dx, *partial;         /* partial: for each part dw, then db */
	int64_t cols, width, stride; /* width: of a row of x and dx */
	bool rms, bias, add;
};

/* With g = dy w and h = (x - mean) / sigma: dx = (g - mean(g) - h mean(g h)) / sigma; RMS norm has no mean, hence no
 * mean(g). */
static void norm_grad_row(const struct norm_grad *n, int64_t r, float *restrict dw, float *restrict db)
{
	const int64_t cols = n->cols;
	const float *dy = n->dy + r * cols, *x = n->x + r * n->width, *w = n->w;
	const float mean = n->stats[2 * r], inverse = n->stats[2 * r + 1];
	float *dx = n->dx + r * n->width;
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
	struct norm_grad n = {arg[0], arg[1], arg[2], arg[3], arg[4], env->scratch, cols, row_width(op), stride,
		op->flags & OP_RMS, db != NULL, op->flags & OP_DX_ACCUMULATE};
	int parts = kernel_parts_summed(env, op->matrix.rows, cols);
	kernel_split(env, parts, op->matrix.rows, norm_grad_part, &n);
	kernel_sum_parts(n.partial, parts, 2 * stride, cols, dw, op->flags & OP_ACCUMULATE);
	if (db)
		kernel_sum_parts(n.partial + stride, parts, 2 * stride, cols, db, op->flags & OP_ACCUMULATE);
	return ST_OK;
}

/* ---- norms of queries and keys ---- */

/* The norms of a row of QKV: of each head, or of all Q columns and of all K columns. */
struct heads_norm {
	int64_t queries, norms; /* of queries; of queries and keys */
	int64_t width;          /* columns of a row of QKV */
	int64_t q_cols, k_cols; /* of a norm */
};

static struct heads_norm heads_norm_of(const struct op *op)
{
	const struct op_attn *d = &op->attn;
	return (struct heads_norm){d->full ? 1 : d->heads, d->full ? 2 : d->heads + d->kv_heads,
		(d->heads + 2 * d->kv_heads) * d->head_dim, (d->full ? d->heads : 1) * d->head_dim,
		(d->full ? d->kv_heads : 1) * d->head_dim};
}

/* Where a norm's columns begin. */
static int64_t norm_at(const struct heads_norm *h, int64_t i)
{
	return i < h->queries ? i * h->q_cols : h->queries * h->q_cols + (i - h->queries) * h->k_cols;
}

struct qk_norm_job {
	struct heads_norm h;
	const float *x, *wq, *wk;
	float *y, *stats;
	bool rms;
};

static void qk_norm_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct qk_norm_job *n = ctx;
	const struct heads_norm *h = &n->h;
	const int64_t normed = norm_at(h, h->norms);
	for (int64_t r = begin; r < end; r++) {
		const float *x = n->x + r * h->width;
		float *y = n->y + r * h->width, *stats = n->stats + 2 * r * h->norms;
		for (int64_t i = 0; i < h->norms; i++) {
			const int64_t at = norm_at(h, i);
			const bool query = i < h->queries;
			norm_row(x + at, query ? n->wq : n->wk, NULL, y + at, stats + 2 * i,
				query ? h->q_cols : h->k_cols, n->rms);
		}
		memcpy(y + normed, x + normed, (size_t)(h->width - normed) * sizeof *y);
	}
}

enum status kernel_qk_norm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct qk_norm_job n = {heads_norm_of(op), arg[ARG_QK_NORM_x], arg[ARG_QK_NORM_wq], arg[ARG_QK_NORM_wk],
		arg[ARG_QK_NORM_y], arg[ARG_QK_NORM_stats], op->flags & OP_RMS};
	const int64_t rows = op->attn.batch * op->attn.seq;
	kernel_split(env, kernel_parts(env, rows, n.h.width), rows, qk_norm_part, &n);
	return ST_OK;
}

struct qk_norm_grad {
	struct heads_norm h;
	struct norm_grad q, k; /* dy is dx, in place: each element is read before it is written */
	float *partial;        /* of a part: dwq, then dwk */
	int64_t stride;
};

/* norm_grad_row of one norm, whose rows lie where this row's do. */
static void head_grad(struct norm_grad n, float *dx, const float *x, const float *stats, float *dw)
{
	n.dy = n.dx = dx;
	n.x = x;
	n.stats = stats;
	norm_grad_row(&n, 0, dw, NULL);
}

static void qk_norm_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct qk_norm_grad *n = ctx;
	const struct heads_norm *h = &n->h;
	float *dwq = n->partial + part * 2 * n->stride, *dwk = dwq + n->stride;
	memset(dwq, 0, (size_t)(2 * n->stride) * sizeof *dwq);
	for (int64_t r = begin; r < end; r++)
		for (int64_t i = 0; i < h->norms; i++) {
			const int64_t at = r * h->width + norm_at(h, i);
			const bool query = i < h->queries;
			head_grad(query ? n->q : n->k, n->q.dx + at, n->q.x + at, n->q.stats + 2 * (r * h->norms + i),
				query ? dwq : dwk);
		}
}

static int64_t qk_norm_stride(const struct op *op)
{
	const struct heads_norm h = heads_norm_of(op);
	return padded(h.q_cols > h.k_cols ? h.q_cols : h.k_cols);
}

size_t scratch_qk_norm_grad(const struct op *op, int threads)
{
	return (size_t)threads * 2 * (size_t)qk_norm_stride(op) * sizeof(float);
}

enum status kernel_qk_norm_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct heads_norm h = heads_norm_of(op);
	const bool accumulate = op->flags & OP_ACCUMULATE;
	struct norm_grad q = {.x = arg[ARG_QK_NORM_GRAD_x],
				 .w = arg[ARG_QK_NORM_GRAD_wq],
				 .stats = arg[ARG_QK_NORM_GRAD_stats],
				 .dx = arg[ARG_QK_NORM_GRAD_dqkv],
				 .cols = h.q_cols,
				 .rms = op->flags & OP_RMS},
			 k = q;
	k.w = arg[ARG_QK_NORM_GRAD_wk];
	k.cols = h.k_cols;
	struct qk_norm_grad n = {h, q, k, env->scratch, qk_norm_stride(op)};
	const int64_t rows = op->attn.batch * op->attn.seq;
	const int parts = kernel_parts_summed(env, rows, h.width);
	kernel_split(env, parts, rows, qk_norm_grad_part, &n);
	kernel_sum_parts(n.partial, parts, 2 * n.stride, h.q_cols, arg[ARG_QK_NORM_GRAD_dwq], accumulate);
	kernel_sum_parts(n.partial + n.stride, parts, 2 * n.stride, h.k_cols, arg[ARG_QK_NORM_GRAD_dwk], accumulate);
	return ST_OK;
}
