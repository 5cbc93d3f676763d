/* Attention with the whole matrix of scores: batches of GEMMs, one for each batch row and head, and row-wise passes
 * between them. */
#include <cblas.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

struct naive {
	const struct host_env *env;
	int64_t b, H, K, s, D, width;
	int64_t keys; /* s; or those of another sequence, or of all ranks of a context group, whose keys and values, and
	                 their gradients, have rows of their own */
	bool gathered;
	float scale;
	bool causal, alibi;
	void *const *arg;
};

/* Runs one op for query head h of batch row b. */
typedef void head_fn(const struct naive *n, int64_t b, int64_t h);

static struct naive naive_of(const struct host_env *env, const struct op *op, void *const arg[])
{
	const struct op_attn *d = &op->attn;
	return (struct naive){.env = env,
		.b = d->batch,
		.H = d->heads,
		.K = d->kv_heads,
		.s = d->seq,
		.D = d->head_dim,
		.width = (d->heads + (op_is_cross(op) ? 0 : 2 * d->kv_heads)) * d->head_dim,
		.keys = d->keys > 0 ? d->keys : d->seq,
		.gathered = d->keys > 0,
		.scale = 1.0f / sqrtf((float)d->head_dim),
		.causal = op->flags & OP_CAUSAL,
		.alibi = op->flags & OP_ALIBI,
		.arg = arg};
}

/* Columns of qkv: query head h. Of qkv, or of gathered keys and values: the key and value heads that it shares. */
static float *q_of(const struct naive *n, float *qkv, int64_t b, int64_t h)
{
	return qkv + b * n->s * n->width + h * n->D;
}
static int64_t kv_width(const struct naive *n) { return n->gathered ? 2 * n->K * n->D : n->width; }
static float *k_of(const struct naive *n, float *kv, int64_t b, int64_t h)
{
	return kv + b * n->keys * kv_width(n) + ((n->gathered ? 0 : n->H) + h / (n->H / n->K)) * n->D;
}
static float *v_of(const struct naive *n, float *kv, int64_t b, int64_t h) { return k_of(n, kv, b, h) + n->K * n->D; }
static float *scores_of(const struct naive *n, float *scores, int64_t b, int64_t h)
{
	return scores + (b * n->H + h) * n->s * n->keys;
}
static float *out_of(const struct naive *n, float *out, int64_t b, int64_t h)
{
	return out + (b * n->s * n->H + h) * n->D;
}

/* The first query head of a group overwrites the gradient of the keys or values that the group shares, the others add.
 */
static float group_beta(const struct naive *n, int64_t h) { return h % (n->H / n->K) ? 1.0f : 0.0f; }

/* c [s, D] = alpha A B, A [s, keys]; with Trans c [keys, D] = alpha A^T B: the shape of all products with a score
 * matrix but the first. */
static void scores_times(const struct naive *n, enum CBLAS_TRANSPOSE trans, float alpha, const float *scores,
	const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
	blasint s = (blasint)n->s, keys = (blasint)n->keys;
	cblas_sgemm(CblasRowMajor, trans, CblasNoTrans, trans == CblasTrans ? keys : s, (blasint)n->D,
		trans == CblasTrans ? s : keys, alpha, scores, keys, b, (blasint)ldb, beta, c, (blasint)ldc);
}

/* scores [s, keys] = alpha A B^T, A [s, D], B [keys, D] */
static void rows_times_rows(const struct naive *n, float alpha, const float *a, int64_t lda, const float *b,
	int64_t ldb, float *scores)
{
	blasint keys = (blasint)n->keys;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)n->s, keys, (blasint)n->D, alpha, a, (blasint)lda,
		b, (blasint)ldb, 0.0f, scores, keys);
}

struct heads_job {
	const struct naive *n;
	head_fn *fn;
};

/* The query heads that share a key and value head, in order: they add to the same gradients. */
static void group_task(void *ctx, int64_t task, int thread)
{
	(void)thread;
	const struct heads_job *j = ctx;
	const int64_t b = task / j->n->K, kv = task % j->n->K, group = j->n->H / j->n->K;
	for (int64_t h = kv * group; h < (kv + 1) * group; h++)
		j->fn(j->n, b, h);
}

static enum status for_heads(const struct naive *n, head_fn *fn)
{
	struct heads_job j = {n, fn};
	pool_run(kernel_blas_is_serial() ? n->env->pool : NULL, group_task, &j, n->b * n->K);
	return ST_OK;
}

/* ALiBi's bias and the mask, of the scores of a query at `position` with n keys from `first` on. */
static void mask_keys(const struct naive *n, float *x, int64_t keys, int64_t position, int64_t first, float slope)
{
	const int64_t seen = position - first + 1;
	if (n->alibi)
		for (int64_t j = 0; j < keys; j++)
			x[j] += slope * (float)(first + j - position);
	if (n->causal)
		for (int64_t j = seen > 0 ? seen : 0; j < keys; j++)
			x[j] = -INFINITY;
}

/* Row i: its keys lie in chunks, within which positions follow each other. */
static void mask_row(const struct naive *n, float *x, int64_t i, float slope)
{
	const struct cut *cut = &n->env->cut;
	if (!n->gathered || (!n->causal && !n->alibi)) {
		mask_keys(n, x, n->keys, i, 0, slope);
		return;
	}
	const int64_t chunks = cut_chunks(cut), rows = n->s / chunks, position = cut_position(cut, n->s, i);
	for (int64_t c = 0; c < cut_ranks(cut) * chunks; c++)
		mask_keys(n, x + c * rows, rows, position, cut_chunk(cut, c / chunks, c % chunks) * rows, slope);
}

static void scores_head(const struct naive *n, int64_t b, int64_t h)
{
	float *scores = scores_of(n, n->arg[1], b, h), *kv = n->arg[n->gathered ? 2 : 0];
	const float slope = n->alibi ? (float)alibi_slope(n->env->tensor_coord * n->H + h, n->env->heads) : 0.0f;
	rows_times_rows(n, n->scale, q_of(n, n->arg[0], b, h), n->width, k_of(n, kv, b, h), kv_width(n), scores);
	for (int64_t i = 0; i < n->s; i++)
		mask_row(n, scores + i * n->keys, i, slope);
}

enum status kernel_attn_scores(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct naive n = naive_of(env, op, arg);
	return for_heads(&n, scores_head);
}

static void softmax_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct naive *n = ctx;
	for (int64_t r = begin; r < end; r++) {
		float *x = (float *)n->arg[0] + r * n->keys;
		const float inverse = 1.0f / row_exp(x, n->keys, row_max(x, n->keys));
		for (int64_t j = 0; j < n->keys; j++)
			x[j] *= inverse;
	}
}

enum status kernel_attn_softmax(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct naive n = naive_of(env, op, arg);
	kernel_split(env, kernel_parts(env, n.b * n.H * n.s, n.keys), n.b * n.H * n.s, softmax_part, &n);
	return ST_OK;
}

static void values_head(const struct naive *n, int64_t b, int64_t h)
{
	scores_times(n, CblasNoTrans, 1.0f, scores_of(n, n->arg[0], b, h), v_of(n, n->arg[1], b, h), kv_width(n), 0.0f,
		out_of(n, n->arg[2], b, h), n->H * n->D);
}

enum status kernel_attn_values(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct naive n = naive_of(env, op, arg);
	return for_heads(&n, values_head);
}

static void values_grad_head(const struct naive *n, int64_t b, int64_t h)
{
	const float *dout = out_of(n, n->arg[2], b, h);
	rows_times_rows(n, 1.0f, dout, n->H * n->D, v_of(n, n->arg[1], b, h), kv_width(n),
		scores_of(n, n->arg[3], b, h));
	scores_times(n, CblasTrans, 1.0f, scores_of(n, n->arg[0], b, h), dout, n->H * n->D, group_beta(n, h),
		v_of(n, n->arg[4], b, h), kv_width(n));
}

enum status kernel_attn_values_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct naive n = naive_of(env, op, arg);
	return for_heads(&n, values_grad_head);
}

/* ds = p (dp - sum of p dp) */
static void softmax_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct naive *n = ctx;
	for (int64_t r = begin; r < end; r++) {
		const float *restrict p = (float *)n->arg[0] + r * n->keys;
		float *restrict dp = (float *)n->arg[1] + r * n->keys;
		const float sum = row_dot(p, dp, n->keys);
		for (int64_t j = 0; j < n->keys; j++)
			dp[j] = p[j] * (dp[j] - sum);
	}
}

enum status kernel_attn_softmax_grad(const struct host_env *env, const struct op *op, void *const arg[],
	struct error *e)
{
	(void)e;
	struct naive n = naive_of(env, op, arg);
	kernel_split(env, kernel_parts(env, n.b * n.H * n.s, n.keys), n.b * n.H * n.s, softmax_grad_part, &n);
	return ST_OK;
}

static void scores_grad_head(const struct naive *n, int64_t b, int64_t h)
{
	const float *ds = scores_of(n, n->arg[0], b, h);
	float *kv = n->arg[n->gathered ? 3 : 1], *dkv = n->arg[n->gathered ? 4 : 2];
	scores_times(n, CblasNoTrans, n->scale, ds, k_of(n, kv, b, h), kv_width(n), 0.0f, q_of(n, n->arg[2], b, h),
		n->width);
	scores_times(n, CblasTrans, n->scale, ds, q_of(n, n->arg[1], b, h), n->width, group_beta(n, h),
		k_of(n, dkv, b, h), kv_width(n));
}

enum status kernel_attn_scores_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct naive n = naive_of(env, op, arg);
	return for_heads(&n, scores_grad_head);
}
