/* Biases of scores that are learned by distance: a table's rows for each query and key, and their gradients. */
#include <math.h>
#include <string.h>

#include "exec/host/kernels_private.h"

int64_t relative_bucket(int64_t distance, int64_t buckets, bool causal)
{
	const int64_t n = causal ? buckets : buckets / 2, exact = n / 2, most = 4 * buckets;
	const int64_t behind = !causal && distance > 0 ? n : 0, d = distance > 0 ? (causal ? 0 : distance) : -distance;
	if (d < exact || n < 2)
		return behind + (d < n ? d : n - 1);
	const double wide = log((double)d / (double)exact) / log((double)most / (double)exact) * (double)(n - exact);
	const int64_t bucket = exact + (int64_t)(wide + 1e-9); /* whole steps are no less than themselves */
	return behind + (bucket < n ? bucket : n - 1);
}

struct relative {
	const struct op_relative *d;
	bool causal;
	const float *table;
	float *bias;
};

/* Rows: a head's queries, one head after the other. */
static void bias_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct relative *r = ctx;
	const int64_t s = r->d->seq, heads = r->d->heads;
	for (int64_t row = begin; row < end; row++)
		for (int64_t j = 0; j < s; j++)
			r->bias[row * s + j] =
				r->table[relative_bucket(j - row % s, r->d->buckets, r->causal) * heads + row / s];
}

enum status kernel_relative_bias(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct op_relative *d = &op->relative;
	struct relative r = {d, op->flags & OP_CAUSAL, arg[ARG_RELATIVE_BIAS_table], arg[ARG_RELATIVE_BIAS_bias]};
	kernel_split(env, kernel_parts(env, d->heads * d->seq, d->seq), d->heads * d->seq, bias_part, &r);
	return ST_OK;
}

/* Distances of a head share a bucket, so each is summed along its diagonal first. */
enum status kernel_relative_bias_grad(const struct host_env *env, const struct op *op, void *const arg[],
	struct error *e)
{
	(void)env, (void)e;
	const struct op_relative *d = &op->relative;
	const int64_t s = d->seq;
	const float *dbias = arg[ARG_RELATIVE_BIAS_GRAD_dbias];
	float *dtable = arg[ARG_RELATIVE_BIAS_GRAD_dtable];
	if (!(op->flags & OP_ACCUMULATE))
		memset(dtable, 0, (size_t)(d->buckets * d->heads) * sizeof *dtable);
	for (int64_t h = 0; h < d->heads; h++)
		for (int64_t distance = 1 - s; distance < s; distance++) {
			const int64_t from = distance < 0 ? -distance : 0, n = distance < 0 ? s - from : s - distance;
			const float *x = dbias + (h * s + from) * s + from + distance;
			float sum = 0.0f;
			for (int64_t i = 0; i < n; i++)
				sum += x[i * (s + 1)];
			dtable[relative_bucket(distance, d->buckets, op->flags & OP_CAUSAL) * d->heads + h] += sum;
		}
	return ST_OK;
}

/* ---- scores ---- */

struct biases {
	int64_t sequences, each; /* each: scores of a sequence */
	float *scores;
	float *bias;
	bool adds;
};

static void add_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct biases *b = ctx;
	for (int64_t k = 0; k < b->sequences; k++) {
		float *restrict scores = b->scores + k * b->each;
		for (int64_t i = begin; i < end; i++)
			scores[i] += b->bias[i];
	}
}

static void sum_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct biases *b = ctx;
	for (int64_t i = begin; i < end && !b->adds; i++)
		b->bias[i] = 0.0f;
	for (int64_t k = 0; k < b->sequences; k++) {
		float *restrict sum = b->bias;
		for (int64_t i = begin; i < end; i++)
			sum[i] += b->scores[k * b->each + i];
	}
}

static struct biases biases_of(const struct op *op, void *scores, void *bias)
{
	const struct op_attn *d = &op->attn;
	return (struct biases){d->batch, d->heads * d->seq * op_keys(op), scores, bias, op->flags & OP_ACCUMULATE};
}

enum status kernel_attn_bias(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct biases b = biases_of(op, arg[ARG_ATTN_BIAS_scores], arg[ARG_ATTN_BIAS_bias]);
	kernel_split(env, kernel_parts(env, b.each, b.sequences), b.each, add_part, &b);
	return ST_OK;
}

enum status kernel_attn_bias_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct biases b = biases_of(op, arg[ARG_ATTN_BIAS_GRAD_dscores], arg[ARG_ATTN_BIAS_GRAD_dbias]);
	kernel_split(env, kernel_parts(env, b.each, b.sequences), b.each, sum_part, &b);
	return ST_OK;
}
