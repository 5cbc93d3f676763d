/* Attention by tiles, without a matrix of scores: Dao 2023, "FlashAttention-2", algorithms 1 and 2.
 *
 * Tiles of scores are held transposed, [keys, FLASH_TILE queries]. Then Q, transposed once for a tile of queries, is the operand read as vectors, K and V are broadcast element by element from where they lie,
 * and the maxima and sums of the softmax run along whole vectors: no tile of K or V is ever packed or transposed, and no sum crosses a vector. Queries beyond the sequence are lanes of zeros.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"
#include "exec/host/kernels_tile.h"
#include "step/work.h"

#define TILE FLASH_TILE

double alibi_slope(int64_t head, int64_t heads)
{
	int64_t power = 1;
	while (2 * power <= heads)
		power *= 2;
	if (head < power)
		return pow(2.0, -8.0 * (double)(head + 1) / (double)power);
	/* the heads beyond the power of two: every second slope of twice as many */
	return pow(2.0, -4.0 * (double)(2 * (head - power) + 1) / (double)power);
}

struct flash {
	const struct host_env *env;
	int64_t b, H, K, s, D, lanes_D, width; /* lanes_D: D padded to whole vectors */
	float scale;
	bool causal, alibi;
	const float *qkv, *out, *dout;
	float *o, *lse, *delta, *dqkv;
	int64_t own_floats; /* of scratch, a thread */
};

static struct flash flash_of(const struct host_env *env, const struct op *op)
{
	const int64_t *d = op->d;
	return (struct flash){.env = env, .b = d[0], .H = d[1], .K = d[2], .s = d[3], .D = d[4], .lanes_D = padded(d[4]), .width = (d[1] + 2 * d[2]) * d[4], .scale = 1.0f / sqrtf((float)d[4]),
		.causal = op->flags & OP_CAUSAL, .alibi = op->flags & OP_ALIBI};
}

/* A tile of queries of one head, and how the keys look from there. */
struct queries {
	int64_t first, n;
	float slope; /* ALiBi; 0: none */
};

static struct queries queries_of(const struct flash *f, int64_t h, int64_t first)
{
	struct queries q = {first, f->s - first < TILE ? f->s - first : TILE, 0.0f};
	if (f->alibi)
		q.slope = (float)alibi_slope(f->env->tensor_coord * f->H + h, f->env->heads);
	return q;
}

static int64_t keys_end(const struct flash *f, const struct queries *q)
{
	return f->causal ? q->first + q->n : f->s;
}

/* to [D, TILE] = factor x rows^T */
static void transpose_in(float *restrict to, const float *rows, int64_t stride, int64_t n, int64_t D, float factor)
{
	if (n < TILE)
		memset(to, 0, (size_t)(D * TILE) * sizeof *to);
	for (int64_t i = 0; i < n; i++)
		for (int64_t d = 0; d < D; d++)
			to[d * TILE + i] = factor * rows[i * stride + d];
}

/* rows [n, D] = from^T x factor of the row */
static void transpose_out(float *rows, int64_t stride, const float *from, int64_t n, int64_t D, const float *factor)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t d = 0; d < D; d++)
			rows[i * stride + d] = factor[i] * from[d * TILE + i];
}

/* scores [n, TILE] = k q^T, with ALiBi's bias and the mask */
static void score_tile(const struct flash *f, const struct queries *q, const float *k, int64_t first, int64_t n, const float *qt, float *scores)
{
	tile_multiply(&(struct tile_product){n, TILE, f->D, k, f->width, 1, qt, TILE, scores, TILE, TILE_ZERO, NULL});
	if (f->alibi)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < TILE; i++)
				scores[j * TILE + i] += q->slope * (float)(first + j - q->first - i);
	if (f->causal && first + n > q->first)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < first + j - q->first; i++)
				scores[j * TILE + i] = -INFINITY;
}

/* ---- forward ---- */

static size_t forward_floats(int64_t D)
{
	return (size_t)(2 * D * TILE + TILE * TILE);
}

size_t scratch_attention(const struct op *op, int threads)
{
	return (size_t)threads * forward_floats(op->d[4]) * sizeof(float);
}

/* Scores become exp(score - maximum so far); factor: what the sums of earlier tiles are to be multiplied with. */
static void softmax_tile(float *restrict scores, int64_t n, float *restrict max, float *restrict sum, float *restrict factor)
{
	float top[TILE], total[TILE] = {0};
	memcpy(top, max, sizeof top);
	for (int64_t j = 0; j < n; j++)
		for (int i = 0; i < TILE; i++)
			top[i] = scores[j * TILE + i] > top[i] ? scores[j * TILE + i] : top[i];
	for (int64_t j = 0; j < n; j++)
		for (int i = 0; i < TILE; i++) {
			float p = fast_expf(scores[j * TILE + i] - top[i]);
			scores[j * TILE + i] = p;
			total[i] += p;
		}
	for (int i = 0; i < TILE; i++) {
		factor[i] = fast_expf(max[i] - top[i]);
		sum[i] = sum[i] * factor[i] + total[i];
		max[i] = top[i];
	}
}

static void forward_task(void *ctx, int64_t task, int thread)
{
	const struct flash *f = ctx;
	const int64_t tiles = (f->s + TILE - 1) / TILE, head = task / tiles, b = head / f->H, h = head % f->H;
	/* the last tile of queries has the most keys: long tasks first */
	const struct queries q = queries_of(f, h, (tiles - 1 - task % tiles) * TILE);
	const float *rows = f->qkv + b * f->s * f->width, *keys = rows + (f->H + h / (f->H / f->K)) * f->D, *values = keys + f->K * f->D;
	float *qt = (float *)f->env->scratch + thread * f->own_floats, *ot = qt + f->D * TILE, *scores = ot + f->D * TILE;
	float max[TILE], sum[TILE] = {0}, factor[TILE];
	for (int i = 0; i < TILE; i++)
		max[i] = -INFINITY;
	memset(ot, 0, (size_t)(f->D * TILE) * sizeof *ot);
	transpose_in(qt, rows + q.first * f->width + h * f->D, f->width, q.n, f->D, f->scale);
	for (int64_t first = 0; first < keys_end(f, &q); first += TILE) {
		const int64_t n = f->s - first < TILE ? f->s - first : TILE;
		score_tile(f, &q, keys + first * f->width, first, n, qt, scores);
		softmax_tile(scores, n, max, sum, factor);
		tile_multiply(&(struct tile_product){f->D, TILE, n, values + first * f->width, 1, f->width, scores, TILE, ot, TILE, TILE_SCALE, factor});
	}
	for (int64_t i = 0; i < q.n; i++)
		f->lse[head * f->s + q.first + i] = max[i] + logf(sum[i]);
	for (int i = 0; i < TILE; i++)
		factor[i] = 1.0f / sum[i];
	transpose_out(f->o + (b * f->s + q.first) * f->H * f->D + h * f->D, f->H * f->D, ot, q.n, f->D, factor);
}

enum status kernel_attention(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op);
	f.qkv = arg[0];
	f.o = arg[1];
	f.lse = arg[2];
	f.own_floats = (int64_t)forward_floats(f.D);
	pool_run(env->pool, forward_task, &f, f.b * f.H * ((f.s + TILE - 1) / TILE));
	return ST_OK;
}

/* ---- backward ---- */

/* A thread's scratch. */
struct backward {
	float *dk, *dv;   /* [s, lanes_D] of one key and value head, over all its query heads */
	float *qt, *dot;  /* [D, TILE]: queries (scaled) and the gradient of the output, transposed */
	float *q, *dout;  /* [TILE, lanes_D]: the same as rows */
	float *dqt;       /* [D, TILE] */
	float *p, *ds;    /* [TILE keys, TILE queries] */
	float *lse, *delta;
};

static size_t backward_floats(int64_t s, int64_t D)
{
	return (size_t)(2 * s * padded(D) + 3 * D * TILE + 2 * TILE * padded(D) + 2 * TILE * TILE + 2 * TILE);
}

size_t scratch_attention_grad(const struct op *op, int threads)
{
	return (size_t)threads * backward_floats(op->d[3], op->d[4]) * sizeof(float);
}

static struct backward backward_of(const struct flash *f, int thread)
{
	const int64_t rows = f->s * f->lanes_D, columns = f->D * TILE, tile = TILE * f->lanes_D;
	struct backward w;
	w.dk = (float *)f->env->scratch + thread * f->own_floats;
	w.dv = w.dk + rows;
	w.qt = w.dv + rows;
	w.dot = w.qt + columns;
	w.q = w.dot + columns;
	w.dout = w.q + tile;
	w.dqt = w.dout + tile;
	w.p = w.dqt + columns;
	w.ds = w.p + TILE * TILE;
	w.lse = w.ds + TILE * TILE;
	w.delta = w.lse + TILE;
	return w;
}

/* to [n, lanes_D] = factor x rows; columns beyond D are zero */
static void copy_in(float *restrict to, const float *rows, int64_t stride, int64_t n, const struct flash *f, float factor)
{
	for (int64_t i = 0; i < n; i++) {
		for (int64_t d = 0; d < f->D; d++)
			to[i * f->lanes_D + d] = factor * rows[i * stride + d];
		for (int64_t d = f->D; d < f->lanes_D; d++)
			to[i * f->lanes_D + d] = 0.0f;
	}
}

static void load_queries(const struct flash *f, const struct queries *q, int64_t b, int64_t h, const struct backward *w)
{
	const int64_t row = b * f->s + q->first, stride = f->H * f->D, stats = (b * f->H + h) * f->s + q->first;
	const float *rows = f->qkv + row * f->width + h * f->D, *out = f->out + row * stride + h * f->D, *dout = f->dout + row * stride + h * f->D;
	transpose_in(w->qt, rows, f->width, q->n, f->D, f->scale);
	transpose_in(w->dot, dout, stride, q->n, f->D, 1.0f);
	copy_in(w->q, rows, f->width, q->n, f, f->scale);
	copy_in(w->dout, dout, stride, q->n, f, 1.0f);
	memset(w->dqt, 0, (size_t)(f->D * TILE) * sizeof *w->dqt);
	for (int64_t i = 0; i < TILE; i++) {
		w->lse[i] = INFINITY; /* lanes without a query: probability 0 */
		w->delta[i] = 0.0f;
	}
	for (int64_t i = 0; i < q->n; i++) {
		const float *x = out + i * stride, *y = dout + i * stride;
		w->lse[i] = f->lse[stats + i];
		w->delta[i] = f->delta[stats + i] = row_dot(x, y, f->D);
	}
}

/* p from scores that hold Q K^T, ds from what holds dO V^T. */
static void softmax_grad_tile(float *restrict p, float *restrict ds, int64_t n, const float *restrict lse, const float *restrict delta)
{
	for (int64_t j = 0; j < n; j++)
		for (int i = 0; i < TILE; i++) {
			float x = fast_expf(p[j * TILE + i] - lse[i]);
			p[j * TILE + i] = x;
			ds[j * TILE + i] = x * (ds[j * TILE + i] - delta[i]);
		}
}

static void backward_queries(const struct flash *f, const struct queries *q, const float *keys, const float *values, const struct backward *w)
{
	for (int64_t first = 0; first < keys_end(f, q); first += TILE) {
		const int64_t n = f->s - first < TILE ? f->s - first : TILE, D = f->lanes_D;
		const float *k = keys + first * f->width, *v = values + first * f->width;
		score_tile(f, q, k, first, n, w->qt, w->p);
		tile_multiply(&(struct tile_product){n, TILE, f->D, v, f->width, 1, w->dot, TILE, w->ds, TILE, TILE_ZERO, NULL});
		softmax_grad_tile(w->p, w->ds, n, w->lse, w->delta);
		tile_multiply(&(struct tile_product){n, D, q->n, w->p, TILE, 1, w->dout, D, w->dv + first * D, D, TILE_ADD, NULL});
		tile_multiply(&(struct tile_product){n, D, q->n, w->ds, TILE, 1, w->q, D, w->dk + first * D, D, TILE_ADD, NULL});
		tile_multiply(&(struct tile_product){f->D, TILE, n, k, 1, f->width, w->ds, TILE, w->dqt, TILE, TILE_ADD, NULL});
	}
}

static void copy_out(float *rows, int64_t stride, const float *from, const struct flash *f)
{
	for (int64_t i = 0; i < f->s; i++)
		memcpy(rows + i * stride, from + i * f->lanes_D, (size_t)f->D * sizeof *rows);
}

/* One key and value head of one batch row, with all query heads that share it: their sums then need no second writer. */
static void backward_task(void *ctx, int64_t task, int thread)
{
	const struct flash *f = ctx;
	const int64_t b = task / f->K, kv = task % f->K, group = f->H / f->K, base = b * f->s * f->width, key = base + (f->H + kv) * f->D, value = key + f->K * f->D;
	const struct backward w = backward_of(f, thread);
	float scale[TILE];
	for (int i = 0; i < TILE; i++)
		scale[i] = f->scale;
	memset(w.dk, 0, (size_t)(2 * f->s * f->lanes_D) * sizeof *w.dk); /* and dv */
	for (int64_t h = kv * group; h < (kv + 1) * group; h++)
		for (int64_t first = 0; first < f->s; first += TILE) {
			const struct queries q = queries_of(f, h, first);
			load_queries(f, &q, b, h, &w);
			backward_queries(f, &q, f->qkv + key, f->qkv + value, &w);
			transpose_out(f->dqkv + base + first * f->width + h * f->D, f->width, w.dqt, q.n, f->D, scale);
		}
	copy_out(f->dqkv + key, f->width, w.dk, f);
	copy_out(f->dqkv + value, f->width, w.dv, f);
}

enum status kernel_attention_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op);
	f.qkv = arg[0];
	f.out = arg[1];
	f.lse = arg[2];
	f.dout = arg[3];
	f.delta = arg[4];
	f.dqkv = arg[5];
	f.own_floats = (int64_t)backward_floats(f.s, f.D);
	pool_run(env->pool, backward_task, &f, f.b * f.K);
	return ST_OK;
}
