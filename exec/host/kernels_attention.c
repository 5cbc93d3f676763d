/* Attention by tiles, without a matrix of scores: Dao 2023, "FlashAttention-2", algorithms 1 and 2.
 *
 * Tiles of scores are held transposed, [keys, FLASH_TILE queries]. Then Q, transposed once for a tile of queries, is
 * the operand read as vectors, K and V are broadcast element by element from where they lie, and the maxima and sums of
 * the softmax run along whole vectors: no tile of K or V is ever packed or transposed, and no sum crosses a vector.
 * Queries beyond the sequence are lanes of zeros.
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
	int64_t b, H, K, s, D, lanes_D, width,
		key_width; /* lanes_D: D padded to whole vectors; rows of qkv, of keys with their values */
	float scale;
	bool causal, alibi, adds; /* adds: to what earlier keys gave */
	struct cut cut;
	int64_t window; /* keys that a query sees, itself the last; 0: all. Then there is one chunk, so that tiles of
	                   queries and of keys are the same rows */
	int64_t chunk, first_rank, sections;  /* rows of a chunk; keys: of how many ranks, from which on */
	const float *qkv, *keys, *out, *dout; /* keys: the K columns of the first one's row 0 */
	float *o, *lse, *delta, *dqkv, *dkeys;
	int64_t own_floats; /* of scratch, a thread */
};

static struct flash flash_of(const struct host_env *env, const struct op *op, const float *qkv, const float *visitors)
{
	const struct op_attn *d = &op->attn;
	const int64_t K = d->kv_heads, s = d->seq, D = d->head_dim;
	const bool gathered = visitors && d->back == 0;
	struct flash f = {.env = env,
		.b = d->batch,
		.H = d->heads,
		.K = K,
		.s = s,
		.D = D,
		.lanes_D = padded(D),
		.width = (d->heads + 2 * K) * D,
		.scale = 1.0f / sqrtf((float)D),
		.causal = op->flags & OP_CAUSAL,
		.alibi = op->flags & OP_ALIBI,
		.adds = op->flags & OP_ACCUMULATE,
		.cut = env->cut,
		.window = op_window(op),
		.sections = gathered ? cut_ranks(&env->cut) : 1,
		.qkv = qkv};
	f.chunk = s / cut_chunks(&f.cut);
	f.first_rank = gathered   ? 0
	               : visitors ? (f.cut.rank - d->back + cut_ranks(&f.cut)) % cut_ranks(&f.cut)
	                          : f.cut.rank;
	f.keys = visitors ? visitors : qkv + d->heads * D;
	f.key_width = visitors ? 2 * K * D : f.width;
	return f;
}

/* A tile of queries of one head, and how the keys look from there. */
struct queries {
	int64_t first, n, position; /* first: of this rank's rows; position: in the whole sequence */
	float slope;                /* ALiBi; 0: none */
};

static int64_t query_tiles(const struct flash *f) { return cut_chunks(&f->cut) * ((f->chunk + TILE - 1) / TILE); }

static struct queries queries_of(const struct flash *f, int64_t h, int64_t tile)
{
	const int64_t per_chunk = (f->chunk + TILE - 1) / TILE, chunk = tile / per_chunk,
		      first = tile % per_chunk * TILE;
	struct queries q = {chunk * f->chunk + first, f->chunk - first < TILE ? f->chunk - first : TILE,
		cut_chunk(&f->cut, f->cut.rank, chunk) * f->chunk + first, 0.0f};
	if (f->alibi)
		q.slope = (float)alibi_slope(f->env->tensor_coord * f->H + h, f->env->heads);
	return q;
}

/* Keys whose positions follow each other: a chunk of one rank. */
struct keys {
	int64_t row, position; /* row: among all keys of a sequence here, rank by rank */
	int64_t at;            /* floats from the first row's on, of batch row and head */
};

static int64_t key_chunks(const struct flash *f) { return f->sections * cut_chunks(&f->cut); }

static struct keys keys_of(const struct flash *f, int64_t b, int64_t kv, int64_t i)
{
	const int64_t chunks = cut_chunks(&f->cut), section = i / chunks, row = i % chunks * f->chunk;
	return (struct keys){section * f->s + row, cut_chunk(&f->cut, f->first_rank + section, i % chunks) * f->chunk,
		((section * f->b + b) * f->s + row) * f->key_width + kv * f->D};
}

/* The first so many of the chunk are seen by some of the queries. */
static int64_t keys_end(const struct flash *f, const struct queries *q, const struct keys *k)
{
	const int64_t seen = f->causal ? q->position + q->n - k->position : f->chunk;
	return seen < 0 ? 0 : seen < f->chunk ? seen : f->chunk;
}

/* The tile before which no query sees a key of the chunk. */
static int64_t keys_begin(const struct flash *f, const struct queries *q, const struct keys *k)
{
	const int64_t first = f->window > 0 ? q->position - f->window + 1 - k->position : 0;
	return first > 0 ? first / TILE * TILE : 0;
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

/* scores [n, TILE] = k q^T, with ALiBi's bias and the mask; ahead: positions from the first query to the first of the
 * keys */
static void score_tile(const struct flash *f, const struct queries *q, const float *k, int64_t ahead, int64_t n,
	const float *qt, float *scores)
{
	tile_multiply(
		&(struct tile_product){n, TILE, f->D, k, f->key_width, 1, qt, TILE, scores, TILE, TILE_ZERO, NULL});
	if (f->alibi)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < TILE; i++)
				scores[j * TILE + i] += q->slope * (float)(ahead + j - i);
	if (f->causal && ahead + n > 0)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < ahead + j && i < TILE; i++)
				scores[j * TILE + i] = -INFINITY;
	if (f->window > 0)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = ahead + j + f->window > 0 ? ahead + j + f->window : 0; i < q->n; i++)
				scores[j * TILE + i] = -INFINITY;
}

/* ---- forward ---- */

static size_t forward_floats(int64_t D) { return (size_t)(2 * D * TILE + TILE * TILE); }

size_t scratch_attention(const struct op *op, int threads)
{
	return (size_t)threads * forward_floats(op->attn.head_dim) * sizeof(float);
}

/* Scores become exp(score - maximum so far); factor: what the sums of earlier tiles are to be multiplied with. */
static void softmax_tile(float *restrict scores, int64_t n, float *restrict max, float *restrict sum,
	float *restrict factor)
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

/* The forward state of a tile of queries: values by column, not yet divided by the sums. */
struct forward {
	float *qt, *ot, *scores;
	float max[TILE], sum[TILE];
};

static void forward_begin(const struct flash *f, const struct queries *q, struct forward *w, const float *lse,
	const float *o)
{
	for (int i = 0; i < TILE; i++) {
		w->max[i] = f->adds && i < q->n ? lse[i] : -INFINITY;
		w->sum[i] = f->adds ? 1.0f : 0.0f;
	}
	memset(w->ot, 0, (size_t)(f->D * TILE) * sizeof *w->ot);
	if (f->adds)
		transpose_in(w->ot, o, f->H * f->D, q->n, f->D, 1.0f);
}

static void forward_keys(const struct flash *f, const struct queries *q, const struct keys *k, struct forward *w)
{
	const float *keys = f->keys + k->at, *values = keys + f->K * f->D;
	const int64_t begin = keys_begin(f, q, k), tiles = (keys_end(f, q, k) - begin + TILE - 1) / TILE;
	float factor[TILE];
	for (int64_t tile = 0; tile < tiles; tile++) {
		/* under a window backwards: each query has a key, its own, in the first tile that it meets */
		const int64_t first = begin + (f->window > 0 ? tiles - 1 - tile : tile) * TILE;
		const int64_t n = f->chunk - first < TILE ? f->chunk - first : TILE;
		score_tile(f, q, keys + first * f->key_width, k->position + first - q->position, n, w->qt, w->scores);
		softmax_tile(w->scores, n, w->max, w->sum, factor);
		tile_multiply(&(struct tile_product){f->D, TILE, n, values + first * f->key_width, 1, f->key_width,
			w->scores, TILE, w->ot, TILE, TILE_SCALE, factor});
	}
}

static void forward_task(void *ctx, int64_t task, int thread)
{
	const struct flash *f = ctx;
	const int64_t tiles = query_tiles(f), head = task / tiles, b = head / f->H, h = head % f->H;
	/* the last tile of queries has the most keys: long tasks first */
	const struct queries q = queries_of(f, h, tiles - 1 - task % tiles);
	const int64_t row = b * f->s + q.first;
	float *scratch = (float *)f->env->scratch + thread * f->own_floats, *lse = f->lse + head * f->s + q.first,
	      *o = f->o + row * f->H * f->D + h * f->D, factor[TILE];
	struct forward w = {.qt = scratch, .ot = scratch + f->D * TILE, .scores = scratch + 2 * f->D * TILE};
	transpose_in(w.qt, f->qkv + row * f->width + h * f->D, f->width, q.n, f->D, f->scale);
	forward_begin(f, &q, &w, lse, o);
	for (int64_t i = 0; i < key_chunks(f); i++) {
		const struct keys k = keys_of(f, b, h / (f->H / f->K), i);
		forward_keys(f, &q, &k, &w);
	}
	for (int64_t i = 0; i < q.n; i++)
		lse[i] = w.max[i] + logf(w.sum[i]);
	for (int i = 0; i < TILE; i++)
		factor[i] = 1.0f / w.sum[i];
	transpose_out(o, f->H * f->D, w.ot, q.n, f->D, factor);
}

static enum status forward_run(const struct host_env *env, struct flash *f, float *out, float *lse)
{
	f->o = out;
	f->lse = lse;
	f->own_floats = (int64_t)forward_floats(f->D);
	pool_run(env->pool, forward_task, f, f->b * f->H * query_tiles(f));
	return ST_OK;
}

enum status kernel_attention(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op, arg[0], NULL);
	return forward_run(env, &f, arg[1], arg[2]);
}

enum status kernel_attention_part(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op, arg[0], arg[1]);
	return forward_run(env, &f, arg[2], arg[3]);
}

/* ---- backward ---- */

/* A thread's scratch. */
struct backward {
	float *dk, *dv;  /* [keys, lanes_D] of one key and value head, over all its query heads */
	float *qt, *dot; /* [D, TILE]: queries (scaled) and the gradient of the output, transposed */
	float *q, *dout; /* [TILE, lanes_D]: the same as rows */
	float *dqt;      /* [D, TILE] */
	float *p, *ds;   /* [TILE keys, TILE queries] */
	float *lse, *delta;
};

static size_t backward_floats(int64_t keys, int64_t D)
{
	return (size_t)(2 * keys * padded(D) + 3 * D * TILE + 2 * TILE * padded(D) + 2 * TILE * TILE + 2 * TILE);
}

size_t scratch_attention_grad(const struct op *op, int threads)
{
	return (size_t)threads * backward_floats(op->attn.seq, op->attn.head_dim) * sizeof(float);
}

size_t scratch_attention_part_grad(const struct op *op, int threads)
{
	return (size_t)threads * backward_floats(op->attn.keys, op->attn.head_dim) * sizeof(float);
}

static struct backward backward_of(const struct flash *f, int thread)
{
	const int64_t rows = f->sections * f->s * f->lanes_D, columns = f->D * TILE, tile = TILE * f->lanes_D;
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
static void copy_in(float *restrict to, const float *rows, int64_t stride, int64_t n, const struct flash *f,
	float factor)
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
	const float *rows = f->qkv + row * f->width + h * f->D, *out = f->out + row * stride + h * f->D,
		    *dout = f->dout + row * stride + h * f->D;
	transpose_in(w->qt, rows, f->width, q->n, f->D, f->scale);
	transpose_in(w->dot, dout, stride, q->n, f->D, 1.0f);
	copy_in(w->q, rows, f->width, q->n, f, f->scale);
	copy_in(w->dout, dout, stride, q->n, f, 1.0f);
	memset(w->dqt, 0, (size_t)(f->D * TILE) * sizeof *w->dqt);
	if (f->adds) /* before the scale that the end brings */
		transpose_in(w->dqt, f->dqkv + row * f->width + h * f->D, f->width, q->n, f->D, 1.0f / f->scale);
	for (int64_t i = 0; i < TILE; i++) {
		w->lse[i] = INFINITY; /* lanes without a query: probability 0 */
		w->delta[i] = 0.0f;
	}
	for (int64_t i = 0; i < q->n; i++) {
		const float *x = out + i * stride, *y = dout + i * stride;
		w->lse[i] = f->lse[stats + i];
		if (!f->adds)
			f->delta[stats + i] = row_dot(x, y, f->D);
		w->delta[i] = f->delta[stats + i];
	}
}

/* p from scores that hold Q K^T, ds from what holds dO V^T. */
static void softmax_grad_tile(float *restrict p, float *restrict ds, int64_t n, const float *restrict lse,
	const float *restrict delta)
{
	for (int64_t j = 0; j < n; j++)
		for (int i = 0; i < TILE; i++) {
			float x = fast_expf(p[j * TILE + i] - lse[i]);
			p[j * TILE + i] = x;
			ds[j * TILE + i] = x * (ds[j * TILE + i] - delta[i]);
		}
}

static void backward_keys(const struct flash *f, const struct queries *q, const struct keys *at,
	const struct backward *w)
{
	for (int64_t first = keys_begin(f, q, at), end = keys_end(f, q, at), D = f->lanes_D; first < end;
		first += TILE) {
		const int64_t n = f->chunk - first < TILE ? f->chunk - first : TILE, row = (at->row + first) * D;
		const float *k = f->keys + at->at + first * f->key_width, *v = k + f->K * f->D;
		score_tile(f, q, k, at->position + first - q->position, n, w->qt, w->p);
		tile_multiply(&(struct tile_product){n, TILE, f->D, v, f->key_width, 1, w->dot, TILE, w->ds, TILE,
			TILE_ZERO, NULL});
		softmax_grad_tile(w->p, w->ds, n, w->lse, w->delta);
		tile_multiply(
			&(struct tile_product){n, D, q->n, w->p, TILE, 1, w->dout, D, w->dv + row, D, TILE_ADD, NULL});
		tile_multiply(
			&(struct tile_product){n, D, q->n, w->ds, TILE, 1, w->q, D, w->dk + row, D, TILE_ADD, NULL});
		tile_multiply(&(struct tile_product){f->D, TILE, n, k, 1, f->key_width, w->ds, TILE, w->dqt, TILE,
			TILE_ADD, NULL});
	}
}

static void copy_out(float *rows, const float *from, const struct flash *f)
{
	for (int64_t i = 0; i < f->chunk; i++)
		memcpy(rows + i * f->key_width, from + i * f->lanes_D, (size_t)f->D * sizeof *rows);
}

/* One key and value head of one batch row, with all query heads that share it: their sums then need no second writer.
 */
static void backward_task(void *ctx, int64_t task, int thread)
{
	const struct flash *f = ctx;
	const int64_t b = task / f->K, kv = task % f->K, group = f->H / f->K;
	const struct backward w = backward_of(f, thread);
	float scale[TILE];
	for (int i = 0; i < TILE; i++)
		scale[i] = f->scale;
	memset(w.dk, 0, (size_t)(2 * f->sections * f->s * f->lanes_D) * sizeof *w.dk); /* and dv */
	for (int64_t h = kv * group; h < (kv + 1) * group; h++)
		for (int64_t tile = 0; tile < query_tiles(f); tile++) {
			const struct queries q = queries_of(f, h, tile);
			load_queries(f, &q, b, h, &w);
			for (int64_t i = 0; i < key_chunks(f); i++) {
				const struct keys k = keys_of(f, b, kv, i);
				backward_keys(f, &q, &k, &w);
			}
			transpose_out(f->dqkv + (b * f->s + q.first) * f->width + h * f->D, f->width, w.dqt, q.n, f->D,
				scale);
		}
	for (int64_t i = 0; i < key_chunks(f); i++) {
		const struct keys k = keys_of(f, b, kv, i);
		copy_out(f->dkeys + k.at, w.dk + k.row * f->lanes_D, f);
		copy_out(f->dkeys + k.at + f->K * f->D, w.dv + k.row * f->lanes_D, f);
	}
}

/* out, lse, dout, delta, dqkv */
static enum status backward_run(const struct host_env *env, struct flash *f, void *const arg[], float *dkeys)
{
	f->out = arg[0];
	f->lse = arg[1];
	f->dout = arg[2];
	f->delta = arg[3];
	f->dqkv = arg[4];
	f->dkeys = dkeys;
	f->own_floats = (int64_t)backward_floats(f->sections * f->s, f->D);
	pool_run(env->pool, backward_task, f, f->b * f->K);
	return ST_OK;
}

enum status kernel_attention_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op, arg[0], NULL);
	return backward_run(env, &f, arg + 1, (float *)arg[5] + f.H * f.D);
}

enum status kernel_attention_part_grad(const struct host_env *env, const struct op *op, void *const arg[],
	struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op, arg[0], arg[1]);
	return backward_run(env, &f, arg + 2, arg[7]);
}

/* ---- keys and values by themselves ---- */

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
