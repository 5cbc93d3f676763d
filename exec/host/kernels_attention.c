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
	int64_t b, H, K, s;
	int64_t D, V, lanes_D, lanes_V; /* of queries and keys; of values; both padded to whole vectors */
	int64_t width, key_width;       /* of rows with queries, of rows with keys and their values */
	float scale, cap;               /* cap: of scores; 0: none */
	bool causal, alibi, adds;       /* adds: to what earlier keys gave */
	bool apart;                     /* all rows' queries come before all rows' keys */
	bool cross;                     /* keys of another sequence, all one behind the other */
	struct cut cut;
	int64_t alone;  /* positions that see themselves alone, in place of a window; 0: all */
	int64_t window; /* keys that a query sees, itself the last; 0: all. Then there is one chunk, so that tiles of
	                   queries and of keys are the same rows */
	int64_t chunk, key_chunk;             /* rows of a chunk of queries, of keys */
	int64_t key_rows;                     /* of a rank's keys of a sequence */
	int64_t first_rank, sections;         /* keys: of how many ranks, from which on */
	const float *qkv, *keys, *out, *dout; /* keys: the K columns of the first one's row 0 */
	float *o, *lse, *delta, *dqkv, *dkeys;
	int64_t own_floats; /* of scratch, a thread */
};

/* Floats before the K columns of the first row. */
static int64_t keys_from(const struct flash *f) { return f->apart ? f->b * f->s * f->width : f->H * f->D; }

static struct flash flash_of(const struct host_env *env, const struct op *op, const float *qkv, const float *visitors)
{
	const struct op_attn *d = &op->attn;
	const int64_t K = d->kv_heads, s = d->seq, D = d->head_dim, V = op_value_dim(op);
	const bool apart = op_keys_apart(op), gathered = visitors && d->back == 0, cross = op_is_cross(op);
	struct flash f = {.env = env,
		.b = d->batch,
		.H = d->heads,
		.K = K,
		.s = s,
		.D = D,
		.V = V,
		.lanes_D = padded(D),
		.lanes_V = padded(V),
		.width = apart || cross ? d->heads * D : (d->heads + 2 * K) * D,
		.scale = 1.0f / sqrtf((float)D),
		.cap = (float)op->attn.softcap,
		.causal = op->flags & OP_CAUSAL,
		.alibi = op->flags & OP_ALIBI,
		.adds = op->flags & OP_ACCUMULATE,
		.apart = apart,
		.cross = cross,
		.cut = cross ? (struct cut){0} : env->cut,
		.window = op_window(op),
		.alone = op_chunk(op),
		.sections = gathered ? cut_ranks(&env->cut) : 1,
		.qkv = qkv};
	f.chunk = s / cut_chunks(&f.cut);
	f.key_rows = cross ? d->keys : s;
	f.key_chunk = f.key_rows / cut_chunks(&f.cut);
	f.first_rank = gathered   ? 0
	               : visitors ? (f.cut.rank - d->back + cut_ranks(&f.cut)) % cut_ranks(&f.cut)
	                          : f.cut.rank;
	f.keys = visitors ? visitors : qkv + keys_from(&f);
	f.key_width = visitors || apart ? K * (D + V) : f.width;
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
	int64_t at, values_at; /* floats from the first row's on, of batch row and head */
};

static int64_t key_chunks(const struct flash *f) { return f->sections * cut_chunks(&f->cut); }

static struct keys keys_of(const struct flash *f, int64_t b, int64_t kv, int64_t i)
{
	const int64_t chunks = cut_chunks(&f->cut), section = i / chunks, row = i % chunks * f->key_chunk;
	const int64_t at = ((section * f->b + b) * f->key_rows + row) * f->key_width;
	return (struct keys){section * f->key_rows + row,
		cut_chunk(&f->cut, f->first_rank + section, i % chunks) * f->key_chunk, at + kv * f->D,
		at + f->K * f->D + kv * f->V};
}

/* The first so many of the chunk are seen by some of the queries. */
static int64_t keys_end(const struct flash *f, const struct queries *q, const struct keys *k)
{
	const int64_t seen = f->causal ? q->position + q->n - k->position : f->key_chunk;
	return seen < 0 ? 0 : seen < f->key_chunk ? seen : f->key_chunk;
}

/* The tile before which no query sees a key of the chunk. */
static int64_t keys_begin(const struct flash *f, const struct queries *q, const struct keys *k)
{
	const int64_t first = f->window > 0  ? q->position - f->window + 1 - k->position
	                      : f->alone > 0 ? q->position / f->alone * f->alone - k->position
	                                     : 0;
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

/* Scores become capped ones; slope, where it is given, the slopes there. */
static void cap_tile(const struct flash *f, int64_t n, float *restrict scores, float *restrict slope)
{
	for (int64_t i = 0; i < n * TILE; i++) {
		const float t = fast_tanhf(scores[i] / f->cap);
		scores[i] = f->cap * t;
		if (slope)
			slope[i] = 1.0f - t * t;
	}
}

/* Keys of other chunks than a query's are not seen. */
static void mask_chunks(const struct flash *f, const struct queries *q, int64_t ahead, int64_t n, float *scores)
{
	for (int64_t j = 0; j < n; j++) {
		const int64_t end = ((q->position + ahead + j) / f->alone + 1) * f->alone - q->position;
		for (int64_t i = end > 0 ? end : 0; i < q->n; i++)
			scores[j * TILE + i] = -INFINITY;
	}
}

/* scores [n, TILE] = k q^T, capped, with ALiBi's bias and the mask; ahead: positions from the first query to the first
 * of the keys. slope: of the cap, in the backward pass. */
static void score_tile(const struct flash *f, const struct queries *q, const float *k, int64_t ahead, int64_t n,
	const float *qt, float *scores, float *slope)
{
	tile_multiply(
		&(struct tile_product){n, TILE, f->D, k, f->key_width, 1, qt, TILE, scores, TILE, TILE_ZERO, NULL});
	if (f->cap > 0)
		cap_tile(f, n, scores, slope);
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
	if (f->alone > 0)
		mask_chunks(f, q, ahead, n, scores);
}

/* ---- forward ---- */

static size_t forward_floats(int64_t D, int64_t V) { return (size_t)((D + V) * TILE + TILE * TILE); }

size_t scratch_attention(const struct op *op, int threads)
{
	return (size_t)threads * forward_floats(op->attn.head_dim, op_value_dim(op)) * sizeof(float);
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
	memset(w->ot, 0, (size_t)(f->V * TILE) * sizeof *w->ot);
	if (f->adds)
		transpose_in(w->ot, o, f->H * f->V, q->n, f->V, 1.0f);
}

static void forward_keys(const struct flash *f, const struct queries *q, const struct keys *k, struct forward *w)
{
	const float *keys = f->keys + k->at, *values = f->keys + k->values_at;
	const int64_t begin = keys_begin(f, q, k), tiles = (keys_end(f, q, k) - begin + TILE - 1) / TILE;
	float factor[TILE];
	for (int64_t tile = 0; tile < tiles; tile++) {
		/* under a window backwards: each query has a key, its own, in the first tile that it meets */
		const int64_t first = begin + (f->window > 0 || f->alone > 0 ? tiles - 1 - tile : tile) * TILE;
		const int64_t n = f->key_chunk - first < TILE ? f->key_chunk - first : TILE;
		score_tile(f, q, keys + first * f->key_width, k->position + first - q->position, n, w->qt, w->scores,
			NULL);
		softmax_tile(w->scores, n, w->max, w->sum, factor);
		tile_multiply(&(struct tile_product){f->V, TILE, n, values + first * f->key_width, 1, f->key_width,
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
	      *o = f->o + row * f->H * f->V + h * f->V, factor[TILE];
	struct forward w = {.qt = scratch, .ot = scratch + f->D * TILE, .scores = scratch + (f->D + f->V) * TILE};
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
	transpose_out(o, f->H * f->V, w.ot, q.n, f->V, factor);
}

static enum status forward_run(const struct host_env *env, struct flash *f, float *out, float *lse)
{
	f->o = out;
	f->lse = lse;
	f->own_floats = (int64_t)forward_floats(f->D, f->V);
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
	float *dk, *dv;  /* [keys, lanes_D], [keys, lanes_V] of one key and value head, over all its query heads */
	float *qt, *dot; /* [D, TILE], [V, TILE]: queries (scaled) and the gradient of the output, transposed */
	float *q, *dout; /* [TILE, lanes_D], [TILE, lanes_V]: the same as rows */
	float *dqt;      /* [D, TILE] */
	float *p, *ds;   /* [TILE keys, TILE queries] */
	float *slope;    /* the same, of capped scores */
	float *lse, *delta;
};

static size_t backward_floats(int64_t keys, int64_t D, int64_t V)
{
	return (size_t)((keys + TILE) * (padded(D) + padded(V)) + (2 * D + V) * TILE + 3 * TILE * TILE + 2 * TILE);
}

size_t scratch_attention_grad(const struct op *op, int threads)
{
	return (size_t)threads * backward_floats(op->attn.seq, op->attn.head_dim, op_value_dim(op)) * sizeof(float);
}

size_t scratch_attention_part_grad(const struct op *op, int threads)
{
	return (size_t)threads * backward_floats(op->attn.keys, op->attn.head_dim, op->attn.head_dim) * sizeof(float);
}

static struct backward backward_of(const struct flash *f, int thread)
{
	const int64_t rows = f->sections * f->key_rows, columns = f->D * TILE;
	struct backward w;
	w.dk = (float *)f->env->scratch + thread * f->own_floats;
	w.dv = w.dk + rows * f->lanes_D;
	w.qt = w.dv + rows * f->lanes_V;
	w.dot = w.qt + columns;
	w.q = w.dot + f->V * TILE;
	w.dout = w.q + TILE * f->lanes_D;
	w.dqt = w.dout + TILE * f->lanes_V;
	w.p = w.dqt + columns;
	w.ds = w.p + TILE * TILE;
	w.slope = w.ds + TILE * TILE;
	w.lse = w.slope + TILE * TILE;
	w.delta = w.lse + TILE;
	return w;
}

/* to [n, lanes] = factor x rows [n, D]; columns beyond D are zero */
static void copy_in(float *restrict to, const float *rows, int64_t stride, int64_t n, int64_t D, int64_t lanes,
	float factor)
{
	for (int64_t i = 0; i < n; i++) {
		for (int64_t d = 0; d < D; d++)
			to[i * lanes + d] = factor * rows[i * stride + d];
		for (int64_t d = D; d < lanes; d++)
			to[i * lanes + d] = 0.0f;
	}
}

static void load_queries(const struct flash *f, const struct queries *q, int64_t b, int64_t h, const struct backward *w)
{
	const int64_t row = b * f->s + q->first, stride = f->H * f->V, stats = (b * f->H + h) * f->s + q->first;
	const float *rows = f->qkv + row * f->width + h * f->D, *out = f->out + row * stride + h * f->V,
		    *dout = f->dout + row * stride + h * f->V;
	transpose_in(w->qt, rows, f->width, q->n, f->D, f->scale);
	transpose_in(w->dot, dout, stride, q->n, f->V, 1.0f);
	copy_in(w->q, rows, f->width, q->n, f->D, f->lanes_D, f->scale);
	copy_in(w->dout, dout, stride, q->n, f->V, f->lanes_V, 1.0f);
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
			f->delta[stats + i] = row_dot(x, y, f->V);
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
	const int64_t D = f->lanes_D, V = f->lanes_V;
	for (int64_t first = keys_begin(f, q, at), end = keys_end(f, q, at); first < end; first += TILE) {
		const int64_t n = f->key_chunk - first < TILE ? f->key_chunk - first : TILE, row = at->row + first;
		const float *k = f->keys + at->at + first * f->key_width,
			    *v = f->keys + at->values_at + first * f->key_width;
		score_tile(f, q, k, at->position + first - q->position, n, w->qt, w->p, w->slope);
		tile_multiply(&(struct tile_product){n, TILE, f->V, v, f->key_width, 1, w->dot, TILE, w->ds, TILE,
			TILE_ZERO, NULL});
		softmax_grad_tile(w->p, w->ds, n, w->lse, w->delta);
		for (int64_t i = 0; f->cap > 0 && i < n * TILE; i++)
			w->ds[i] *= w->slope[i];
		tile_multiply(&(struct tile_product){n, V, q->n, w->p, TILE, 1, w->dout, V, w->dv + row * V, V,
			TILE_ADD, NULL});
		tile_multiply(&(
			struct tile_product){n, D, q->n, w->ds, TILE, 1, w->q, D, w->dk + row * D, D, TILE_ADD, NULL});
		tile_multiply(&(struct tile_product){f->D, TILE, n, k, 1, f->key_width, w->ds, TILE, w->dqt, TILE,
			TILE_ADD, NULL});
	}
}

static void copy_out(float *rows, const float *from, const struct flash *f, int64_t D, int64_t lanes)
{
	for (int64_t i = 0; i < f->key_chunk; i++)
		memcpy(rows + i * f->key_width, from + i * lanes, (size_t)D * sizeof *rows);
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
	memset(w.dk, 0, (size_t)(f->sections * f->key_rows * (f->lanes_D + f->lanes_V)) * sizeof *w.dk); /* and dv */
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
		copy_out(f->dkeys + k.at, w.dk + k.row * f->lanes_D, f, f->D, f->lanes_D);
		copy_out(f->dkeys + k.values_at, w.dv + k.row * f->lanes_V, f, f->V, f->lanes_V);
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
	f->own_floats = (int64_t)backward_floats(f->sections * f->key_rows, f->D, f->V);
	pool_run(env->pool, backward_task, f, f->b * f->K);
	return ST_OK;
}

enum status kernel_attention_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op, arg[0], NULL);
	return backward_run(env, &f, arg + 1, (float *)arg[5] + keys_from(&f));
}

enum status kernel_attention_part_grad(const struct host_env *env, const struct op *op, void *const arg[],
	struct error *e)
{
	(void)e;
	struct flash f = flash_of(env, op, arg[0], arg[1]);
	return backward_run(env, &f, arg + 2, arg[7]);
}
