/* Keys and values by themselves: packed for other ranks, and of latent attention, where what the up product gives joins
 * the columns that all heads' keys share. */
#include <math.h>
#include <string.h>

#include "exec/host/kernels_private.h"

struct kv {
	float *kv, *qkv; /* qkv: from the K columns on */
	int64_t cols, width;
	bool adds;
};

static void pack_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct kv *p = ctx;
	for (int64_t i = begin; i < end; i++)
		memcpy(p->kv + i * p->cols, p->qkv + i * p->width, (size_t)p->cols * sizeof *p->kv);
}

static void unpack_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct kv *p = ctx;
	for (int64_t i = begin; i < end; i++) {
		const float *restrict from = p->kv + i * p->cols;
		float *restrict to = p->qkv + i * p->width;
		for (int64_t c = 0; c < p->cols; c++)
			to[c] = p->adds ? to[c] + from[c] : from[c];
	}
}

enum status kernel_kv_pack(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct kv p = {arg[1], (float *)arg[0] + op->pack.qkv_cols - op->pack.kv_cols, op->pack.kv_cols,
		op->pack.qkv_cols, false};
	kernel_split(env, kernel_parts(env, op->pack.rows, op->pack.kv_cols), op->pack.rows, pack_part, &p);
	return ST_OK;
}

enum status kernel_kv_unpack(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct kv p = {arg[0], (float *)arg[1] + op->pack.qkv_cols - op->pack.kv_cols, op->pack.kv_cols,
		op->pack.qkv_cols, op->flags & OP_ACCUMULATE};
	kernel_split(env, kernel_parts(env, op->pack.rows, op->pack.kv_cols), op->pack.rows, unpack_part, &p);
	return ST_OK;
}

/* ---- of latent attention ---- */

struct latent {
	const struct op_latent *d;
	const struct cut *cut;
	const float *kv, *shared; /* shared: from the first row's columns that rotate on */
	float *keys;
	const float *dkeys;
	float *dkv, *dshared;
};

static int64_t own_cols(const struct op_latent *d) { return d->head_dim - d->rope_dim; }

static int64_t kv_width(const struct op_latent *d) { return d->heads * (own_cols(d) + d->value_dim); }

static int64_t keys_width(const struct op_latent *d) { return d->heads * (d->head_dim + d->value_dim); }

/* Rotates the columns of `row` among all rows; sign -1: back. */
static void turn(const struct latent *l, int64_t row, double sign, float *x)
{
	const int64_t half = l->d->still ? 0 : l->d->rope_dim / 2;
	const double position = (double)cut_position(l->cut, l->d->seq, row % l->d->seq);
	for (int64_t i = 0; i < half; i++) {
		const double angle = position * pow(ROPE_THETA, -(double)i / (double)half);
		const float c = (float)cos(angle), s = (float)(sign * sin(angle)), a = x[i], b = x[i + half];
		x[i] = a * c - b * s;
		x[i + half] = a * s + b * c;
	}
}

static void join_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct latent *l = ctx;
	const struct op_latent *d = l->d;
	const int64_t own = own_cols(d), V = d->value_dim;
	for (int64_t r = begin; r < end; r++) {
		const float *kv = l->kv + r * kv_width(d);
		float *k = l->keys + r * keys_width(d), *v = k + d->heads * d->head_dim;
		if (d->rope_dim > 0) { /* the first head's, which the others copy */
			memcpy(k + own, l->shared + r * d->width, (size_t)d->rope_dim * sizeof *k);
			turn(l, r, 1.0, k + own);
		}
		for (int64_t h = 0; h < d->heads; h++) {
			memcpy(k + h * d->head_dim, kv + h * (own + V), (size_t)own * sizeof *k);
			memcpy(v + h * V, kv + h * (own + V) + own, (size_t)V * sizeof *v);
			if (h > 0)
				memcpy(k + h * d->head_dim + own, k + own, (size_t)d->rope_dim * sizeof *k);
		}
	}
}

enum status kernel_latent_keys(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct op_latent *d = &op->latent;
	const float *latent = arg[ARG_LATENT_KEYS_latent];
	struct latent l = {.d = d,
		.cut = &env->cut,
		.kv = arg[ARG_LATENT_KEYS_kv],
		.shared = latent ? latent + d->width - d->rope_dim : NULL,
		.keys = arg[ARG_LATENT_KEYS_keys]};
	const int64_t rows = d->batch * d->seq;
	kernel_split(env, kernel_parts(env, rows, keys_width(d)), rows, join_part, &l);
	return ST_OK;
}

static void part_grad(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct latent *l = ctx;
	const struct op_latent *d = l->d;
	const int64_t own = own_cols(d), V = d->value_dim;
	for (int64_t r = begin; r < end; r++) {
		const float *dk = l->dkeys + r * keys_width(d), *dv = dk + d->heads * d->head_dim;
		float *dkv = l->dkv + r * kv_width(d);
		for (int64_t h = 0; h < d->heads; h++) {
			memcpy(dkv + h * (own + V), dk + h * d->head_dim, (size_t)own * sizeof *dkv);
			memcpy(dkv + h * (own + V) + own, dv + h * V, (size_t)V * sizeof *dkv);
		}
		if (d->rope_dim == 0)
			continue;
		float *restrict sum = l->dshared + r * d->rope_dim;
		memcpy(sum, dk + own, (size_t)d->rope_dim * sizeof *sum);
		for (int64_t h = 1; h < d->heads; h++)
			for (int64_t i = 0; i < d->rope_dim; i++)
				sum[i] += dk[h * d->head_dim + own + i];
		turn(l, r, -1.0, sum);
	}
}

enum status kernel_latent_keys_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct op_latent *d = &op->latent;
	struct latent l = {.d = d,
		.cut = &env->cut,
		.dkeys = arg[ARG_LATENT_KEYS_GRAD_dkeys],
		.dkv = arg[ARG_LATENT_KEYS_GRAD_dkv],
		.dshared = arg[ARG_LATENT_KEYS_GRAD_drope]};
	const int64_t rows = d->batch * d->seq;
	kernel_split(env, kernel_parts(env, rows, keys_width(d)), rows, part_grad, &l);
	return ST_OK;
}
