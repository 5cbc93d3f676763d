/* The reference's matrix product and attention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/reference_private.h"

/* ---- matrix product ---- */

REFERENCE(ref_gemm)
{
	UNUSED();
	const int64_t m = op->gemm.m, n = op->gemm.n, k = op->gemm.k;
	const double *a = arg[0], *b = arg[1], *bias = arg[2];
	double *c = arg[3];
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = op->flags & OP_ACCUMULATE ? c[i * n + j] : 0.0;
			for (int64_t l = 0; l < k; l++)
				sum += (op->flags & OP_TRANS_A ? a[l * m + i] : a[i * k + l]) *
				       (op->flags & OP_TRANS_B ? b[j * k + l] : b[l * n + j]);
			c[i * n + j] = sum + (bias ? bias[j] : 0.0);
		}
	return ST_OK;
}

/* ---- attention ---- */

struct shape {
	int64_t b, H, K, s, D, V;       /* V: columns of a head's values */
	int64_t width, key_width, keys; /* of rows with queries, of rows with keys; place of the first key's column */
	double scale;
};

static struct shape shape_of(const struct op *op)
{
	const struct op_attn *d = &op->attn;
	const int64_t V = op_value_dim(op), queries = d->heads * d->head_dim, keys = d->kv_heads * (d->head_dim + V);
	const bool apart = op_keys_apart(op);
	return (struct shape){d->batch, d->heads, d->kv_heads, d->seq, d->head_dim, V,
		queries + (apart || op_is_cross(op) ? 0 : keys), apart ? keys : queries + keys,
		apart ? d->batch * d->seq * queries : queries, 1.0 / sqrt((double)d->head_dim)};
}

/* Element d of query head h, or of the key or value head that it shares, at row i of batch b. */
static int64_t q_at(const struct shape *z, int64_t b, int64_t h, int64_t i, int64_t d)
{
	return (b * z->s + i) * z->width + h * z->D + d;
}
static int64_t k_at(const struct shape *z, int64_t b, int64_t h, int64_t i, int64_t d)
{
	return z->keys + (b * z->s + i) * z->key_width + h / (z->H / z->K) * z->D + d;
}
static int64_t v_at(const struct shape *z, int64_t b, int64_t h, int64_t i, int64_t d)
{
	return z->keys + (b * z->s + i) * z->key_width + z->K * z->D + h / (z->H / z->K) * z->V + d;
}
static int64_t o_at(const struct shape *z, int64_t b, int64_t h, int64_t i, int64_t d)
{
	return ((b * z->s + i) * z->H + h) * z->V + d;
}

/* c tanh(x / c) where scores of the op are capped, and its slope. */
static double capped(const struct op *op, double x)
{
	const double c = (double)op->attn.softcap;
	return c > 0.0 ? c * tanh(x / c) : x;
}

static double cap_slope(const struct op *op, double dot)
{
	const double c = (double)op->attn.softcap, t = c > 0.0 ? tanh(dot / c) : 0.0;
	return 1.0 - t * t;
}

static double score(const struct host_env *env, const struct op *op, const struct shape *z, const double *qkv,
	int64_t b, int64_t h, int64_t i, int64_t j)
{
	if ((op->flags & OP_CAUSAL && j > i) || (op_window(op) > 0 && i - j >= op_window(op)) ||
		(op_chunk(op) > 0 && i / op_chunk(op) != j / op_chunk(op)))
		return -INFINITY;
	const double *q = qkv + q_at(z, b, h, i, 0), *k = qkv + k_at(z, b, h, j, 0);
	double dot = 0.0;
	for (int64_t d = 0; d < z->D; d++)
		dot += q[d] * k[d];
	double bias = op->flags & OP_ALIBI
	                      ? alibi_slope(env->tensor_coord * z->H + h, env->heads) *
	                                (double)(cut_position(&env->cut, z->s, j) - cut_position(&env->cut, z->s, i))
	                      : 0.0;
	return capped(op, dot * z->scale) + bias;
}

/* row becomes softmax(row); returns log(sum(exp(row))). */
static double softmax_row(double *row, int64_t n)
{
	double max = -INFINITY, sum = 0.0;
	for (int64_t j = 0; j < n; j++)
		max = fmax(max, row[j]);
	for (int64_t j = 0; j < n; j++)
		sum += exp(row[j] - max);
	for (int64_t j = 0; j < n; j++)
		row[j] = exp(row[j] - max) / sum;
	return max + log(sum);
}

static double softmax_of_scores(const struct host_env *env, const struct op *op, const struct shape *z,
	const double *qkv, int64_t b, int64_t h, int64_t i, double *row)
{
	for (int64_t j = 0; j < z->s; j++)
		row[j] = score(env, op, z, qkv, b, h, i, j);
	return softmax_row(row, z->s);
}

/* for each batch row, head and query */
#define FOR_QUERIES(z) \
	for (int64_t b = 0; b < (z).b; b++) \
		for (int64_t h = 0; h < (z).H; h++) \
			for (int64_t i = 0; i < (z).s; i++)

REFERENCE(ref_attention)
{
	const struct shape z = shape_of(op);
	const double *qkv = arg[0];
	double *out = arg[1], *lse = arg[2], *p = calloc((size_t)z.s, sizeof *p);
	if (!p)
		return error_nomem(e, "reference attention");
	FOR_QUERIES(z)
	{
		lse[(b * z.H + h) * z.s + i] = softmax_of_scores(env, op, &z, qkv, b, h, i, p);
		for (int64_t d = 0; d < z.V; d++) {
			const double *v = qkv + v_at(&z, b, h, 0, d);
			double sum = 0.0;
			for (int64_t j = 0; j < z.s; j++)
				sum += p[j] * v[j * z.key_width];
			out[o_at(&z, b, h, i, d)] = sum;
		}
	}
	free(p);
	return ST_OK;
}

REFERENCE(ref_attention_grad)
{
	(void)e;
	const struct shape z = shape_of(op);
	const double *qkv = arg[0], *out = arg[1], *lse = arg[2], *dout = arg[3];
	double *delta = arg[4], *dqkv = arg[5];
	memset(dqkv, 0, (size_t)(z.b * z.s * (z.H * z.D + z.K * (z.D + z.V))) * sizeof *dqkv);
	FOR_QUERIES(z)
	{
		double *row_delta = &delta[(b * z.H + h) * z.s + i];
		const double *y = out + o_at(&z, b, h, i, 0), *dy = dout + o_at(&z, b, h, i, 0);
		*row_delta = 0.0;
		for (int64_t d = 0; d < z.V; d++)
			*row_delta += dy[d] * y[d];
		for (int64_t j = 0; j < z.s; j++) {
			double p = exp(score(env, op, &z, qkv, b, h, i, j) - lse[(b * z.H + h) * z.s + i]), dp = 0.0;
			int64_t q = q_at(&z, b, h, i, 0), k = k_at(&z, b, h, j, 0), v = v_at(&z, b, h, j, 0);
			for (int64_t d = 0; d < z.V; d++) {
				dp += dy[d] * qkv[v + d];
				dqkv[v + d] += p * dy[d];
			}
			double dot = 0.0;
			for (int64_t d = 0; d < z.D; d++)
				dot += qkv[q + d] * qkv[k + d] * z.scale;
			double ds = p * (dp - *row_delta) * z.scale * cap_slope(op, dot);
			for (int64_t d = 0; d < z.D; d++) {
				dqkv[q + d] += ds * qkv[k + d];
				dqkv[k + d] += ds * qkv[q + d];
			}
		}
	}
	return ST_OK;
}

/* ---- attention with the keys of other ranks, one query and key after the other ---- */

struct visitors {
	const struct host_env *env;
	const struct op *op;
	struct shape z;
	const double *qkv, *kv;
	int64_t keys, first; /* first: the rank whose keys come first */
	int64_t rows;        /* of a rank's keys of a sequence */
};

static struct visitors visitors_of(const struct host_env *env, const struct op *op, const double *qkv, const double *kv)
{
	const int64_t ranks = cut_ranks(&env->cut), place = op->attn.back;
	return (struct visitors){env, op, shape_of(op), qkv, kv, op->attn.keys,
		place > 0 ? (env->cut.rank + ranks - place) % ranks : 0,
		op_is_cross(op) ? op->attn.keys : op->attn.seq};
}

static int64_t visitor_at(const struct visitors *v, int64_t b, int64_t h, int64_t j, int64_t d)
{
	const struct shape *z = &v->z;
	return ((j / v->rows * z->b + b) * v->rows + j % v->rows) * 2 * z->K * z->D + h / (z->H / z->K) * z->D + d;
}

static double visitor_score(const struct visitors *v, int64_t b, int64_t h, int64_t i, int64_t j)
{
	const struct shape *z = &v->z;
	struct cut there = v->env->cut;
	there.rank = v->first + j / v->rows;
	const int64_t distance = cut_position(&there, v->rows, j % v->rows) - cut_position(&v->env->cut, z->s, i);
	double dot = 0.0;
	if (v->op->flags & OP_CAUSAL && distance > 0)
		return -INFINITY;
	for (int64_t d = 0; d < z->D; d++)
		dot += v->qkv[q_at(z, b, h, i, d)] * v->kv[visitor_at(v, b, h, j, d)];
	return capped(v->op, dot * z->scale) +
	       (v->op->flags & OP_ALIBI ? alibi_slope(v->env->tensor_coord * z->H + h, v->env->heads) * (double)distance
					: 0.0);
}

/* One query: what it had counts exp(lse) of old, each key exp(score). */
static void visit_query(const struct visitors *v, int64_t b, int64_t h, int64_t i, double *out, double *lse)
{
	const struct shape *z = &v->z;
	const bool adds = v->op->flags & OP_ACCUMULATE;
	double top = adds ? *lse : -INFINITY, sum = 0.0;
	for (int64_t j = 0; j < v->keys; j++)
		top = fmax(top, visitor_score(v, b, h, i, j));
	sum = adds ? exp(*lse - top) : 0.0;
	for (int64_t d = 0; d < z->D; d++)
		out[d] = adds ? out[d] * sum : 0.0;
	for (int64_t j = 0; j < v->keys; j++) {
		double p = exp(visitor_score(v, b, h, i, j) - top);
		sum += p;
		for (int64_t d = 0; d < z->D; d++)
			out[d] += p * v->kv[visitor_at(v, b, h, j, z->K * z->D + d)];
	}
	for (int64_t d = 0; d < z->D; d++)
		out[d] /= sum;
	*lse = top + log(sum);
}

REFERENCE(ref_attention_part)
{
	UNUSED();
	const struct visitors v = visitors_of(env, op, arg[0], arg[1]);
	const struct shape z = v.z;
	FOR_QUERIES(z)
	visit_query(&v, b, h, i, (double *)arg[2] + o_at(&z, b, h, i, 0), (double *)arg[3] + (b * z.H + h) * z.s + i);
	return ST_OK;
}

REFERENCE(ref_attention_part_grad)
{
	UNUSED();
	const struct visitors v = visitors_of(env, op, arg[0], arg[1]);
	const struct shape z = v.z;
	const double *out = arg[2], *lse = arg[3], *dout = arg[4];
	double *delta = arg[5], *dqkv = arg[6], *dkv = arg[7];
	memset(dkv, 0, (size_t)(z.b * v.keys * 2 * z.K * z.D) * sizeof *dkv);
	FOR_QUERIES(z)
	{
		const int64_t stat = (b * z.H + h) * z.s + i;
		double *row_delta = &delta[stat], own = 0.0;
		for (int64_t d = 0; d < z.D; d++)
			own += dout[o_at(&z, b, h, i, d)] * out[o_at(&z, b, h, i, d)];
		for (int64_t d = 0; d < z.D && !(op->flags & OP_ACCUMULATE); d++)
			dqkv[q_at(&z, b, h, i, d)] = 0.0;
		if (!(op->flags & OP_ACCUMULATE))
			*row_delta = own;
		for (int64_t j = 0; j < v.keys; j++) {
			double p = exp(visitor_score(&v, b, h, i, j) - lse[stat]), dp = 0.0;
			for (int64_t d = 0; d < z.D; d++)
				dp += dout[o_at(&z, b, h, i, d)] * v.kv[visitor_at(&v, b, h, j, z.K * z.D + d)];
			double dot = 0.0;
			for (int64_t d = 0; d < z.D; d++)
				dot += v.qkv[q_at(&z, b, h, i, d)] * v.kv[visitor_at(&v, b, h, j, d)] * z.scale;
			double ds = p * (dp - *row_delta) * z.scale * cap_slope(op, dot);
			for (int64_t d = 0; d < z.D; d++) {
				dqkv[q_at(&z, b, h, i, d)] += ds * v.kv[visitor_at(&v, b, h, j, d)];
				dkv[visitor_at(&v, b, h, j, d)] += ds * v.qkv[q_at(&z, b, h, i, d)];
				dkv[visitor_at(&v, b, h, j, z.K * z.D + d)] += p * dout[o_at(&z, b, h, i, d)];
			}
		}
	}
	return ST_OK;
}

REFERENCE(ref_kv_pack)
{
	UNUSED();
	const int64_t cols = op->pack.kv_cols, width = op->pack.qkv_cols;
	for (int64_t i = 0; i < op->pack.rows * cols; i++)
		((double *)arg[1])[i] = ((double *)arg[0])[i / cols * width + width - cols + i % cols];
	return ST_OK;
}

REFERENCE(ref_kv_unpack)
{
	UNUSED();
	const int64_t cols = op->pack.kv_cols, width = op->pack.qkv_cols;
	for (int64_t i = 0; i < op->pack.rows * cols; i++) {
		double *to = (double *)arg[1] + i / cols * width + width - cols + i % cols;
		*to = (op->flags & OP_ACCUMULATE ? *to : 0.0) + ((double *)arg[0])[i];
	}
	return ST_OK;
}

/* ---- naive attention ---- */

/* Where keys and values, and their gradients, lie: in rows of qkv; or gathered, [b, k, 2 K D], each sequence's rank by
 * rank. */
struct keys {
	struct shape z;
	bool gathered;
	int64_t n, width, first; /* of a sequence; values in a row; column of key head 0 */
};

static struct keys keys_of(const struct op *op)
{
	const struct shape z = shape_of(op);
	return op->attn.keys > 0 ? (struct keys){z, true, op->attn.keys, 2 * z.K * z.D, 0}
	                         : (struct keys){z, false, z.s, z.width, z.H * z.D};
}

static int64_t s_at(const struct keys *k, int64_t b, int64_t h, int64_t i, int64_t j)
{
	return ((b * k->z.H + h) * k->z.s + i) * k->n + j;
}
static int64_t key_at(const struct keys *k, int64_t b, int64_t h, int64_t j, int64_t d)
{
	return (b * k->n + j) * k->width + k->first + h / (k->z.H / k->z.K) * k->z.D + d;
}
static int64_t value_at(const struct keys *k, int64_t b, int64_t h, int64_t j, int64_t d)
{
	return key_at(k, b, h, j, d) + k->z.K * k->z.D;
}

static double gathered_score(const struct host_env *env, const struct op *op, const struct keys *k, const double *qkv,
	const double *kv, int64_t b, int64_t h, int64_t i, int64_t j)
{
	const struct cut from = {env->cut.ranks, j / k->z.s, env->cut.chunks};
	const int64_t ahead = cut_position(&from, k->z.s, j % k->z.s) - cut_position(&env->cut, k->z.s, i);
	double dot = 0.0;
	for (int64_t d = 0; d < k->z.D; d++)
		dot += qkv[q_at(&k->z, b, h, i, d)] * kv[key_at(k, b, h, j, d)];
	return op->flags & OP_CAUSAL && ahead > 0
	               ? -INFINITY
	               : dot * k->z.scale + (op->flags & OP_ALIBI
							    ? alibi_slope(env->tensor_coord * k->z.H + h, env->heads) *
								      (double)ahead
							    : 0.0);
}

REFERENCE(ref_attn_scores)
{
	UNUSED();
	const struct keys k = keys_of(op);
	const struct shape z = k.z;
	double *scores = arg[1];
	FOR_QUERIES(z)
	for (int64_t j = 0; j < k.n; j++)
		scores[s_at(&k, b, h, i, j)] = k.gathered ? gathered_score(env, op, &k, arg[0], arg[2], b, h, i, j)
		                                          : score(env, op, &z, arg[0], b, h, i, j);
	return ST_OK;
}

REFERENCE(ref_attn_softmax)
{
	UNUSED();
	const struct keys k = keys_of(op);
	const struct shape z = k.z;
	double *scores = arg[0];
	FOR_QUERIES(z)
	softmax_row(scores + s_at(&k, b, h, i, 0), k.n);
	return ST_OK;
}

REFERENCE(ref_attn_values)
{
	UNUSED();
	const struct keys k = keys_of(op);
	const struct shape z = k.z;
	const double *p = arg[0], *kv = arg[1];
	double *out = arg[2];
	FOR_QUERIES(z)
	for (int64_t d = 0; d < z.D; d++) {
		double sum = 0.0;
		for (int64_t j = 0; j < k.n; j++)
			sum += p[s_at(&k, b, h, i, j)] * kv[value_at(&k, b, h, j, d)];
		out[o_at(&z, b, h, i, d)] = sum;
	}
	return ST_OK;
}

static void clear_columns(double *rows, int64_t n, int64_t width, int64_t from, int64_t to)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t c = from; c < to; c++)
			rows[i * width + c] = 0.0;
}

REFERENCE(ref_attn_values_grad)
{
	UNUSED();
	const struct keys k = keys_of(op);
	const struct shape z = k.z;
	const double *p = arg[0], *kv = arg[1], *dout = arg[2];
	double *dp = arg[3], *dkv = arg[4];
	clear_columns(dkv, z.b * k.n, k.width, k.first + z.K * z.D, k.width);
	FOR_QUERIES(z)
	for (int64_t j = 0; j < k.n; j++) {
		double sum = 0.0;
		for (int64_t d = 0; d < z.D; d++) {
			sum += dout[o_at(&z, b, h, i, d)] * kv[value_at(&k, b, h, j, d)];
			dkv[value_at(&k, b, h, j, d)] += p[s_at(&k, b, h, i, j)] * dout[o_at(&z, b, h, i, d)];
		}
		dp[s_at(&k, b, h, i, j)] = sum;
	}
	return ST_OK;
}

REFERENCE(ref_attn_softmax_grad)
{
	UNUSED();
	const struct keys k = keys_of(op);
	const struct shape z = k.z;
	FOR_QUERIES(z)
	{
		const double *p = (double *)arg[0] + s_at(&k, b, h, i, 0);
		double *dp = (double *)arg[1] + s_at(&k, b, h, i, 0), sum = 0.0;
		for (int64_t j = 0; j < k.n; j++)
			sum += p[j] * dp[j];
		for (int64_t j = 0; j < k.n; j++)
			dp[j] = p[j] * (dp[j] - sum);
	}
	return ST_OK;
}

REFERENCE(ref_attn_scores_grad)
{
	UNUSED();
	const struct keys k = keys_of(op);
	const struct shape z = k.z;
	const double *ds = arg[0], *qkv = arg[1], *kv = k.gathered ? arg[3] : arg[1];
	double *dqkv = arg[2], *dkv = k.gathered ? arg[4] : arg[2];
	clear_columns(dqkv, z.b * z.s, z.width, 0, z.H * z.D);
	clear_columns(dkv, z.b * k.n, k.width, k.first, k.first + z.K * z.D);
	FOR_QUERIES(z)
	for (int64_t j = 0; j < k.n; j++)
		for (int64_t d = 0; d < z.D; d++) {
			double x = z.scale * ds[s_at(&k, b, h, i, j)];
			dqkv[q_at(&z, b, h, i, d)] += x * kv[key_at(&k, b, h, j, d)];
			dkv[key_at(&k, b, h, j, d)] += x * qkv[q_at(&z, b, h, i, d)];
		}
	return ST_OK;
}

void reference_rotate(double *x, int64_t cols, int64_t position)
{
	for (int64_t i = 0; i < cols / 2; i++) {
		double *y = x + cols / 2, a = x[i], c = y[i],
		       angle = (double)position * pow(ROPE_THETA, -2.0 * (double)i / (double)cols);
		x[i] = a * cos(angle) - c * sin(angle);
		y[i] = a * sin(angle) + c * cos(angle);
	}
}

REFERENCE(ref_rope)
{
	UNUSED();
	const struct shape z = shape_of(op);
	const int64_t turns = op->attn.rotated > 0 ? op->attn.rotated : z.D;
	for (int64_t row = 0; row < z.b * z.s; row++)
		for (int64_t h = 0; h < z.H + z.K; h++)
			reference_rotate((double *)arg[0] + row * z.width + (h + 1) * z.D - turns, turns,
				cut_position(&env->cut, z.s, row % z.s) * (op->flags & OP_INVERSE ? -1 : 1));
	return ST_OK;
}
