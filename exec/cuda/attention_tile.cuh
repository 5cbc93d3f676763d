/* Shared by the forward and backward kernels of our flash attention: the shape, the tiles of a block, the scores.
 * Private to attention_flash*.cu. */
#ifndef STEPSIM_EXEC_CUDA_ATTENTION_TILE_CUH
#define STEPSIM_EXEC_CUDA_ATTENTION_TILE_CUH

#include "exec/cuda/mma.cuh"

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f
#define HEAD_DIM_MAX 256

/* Counts of heads and rows fit 32 bits; offsets into the arrays do not (8 x 131072 rows of 49152 values) and are formed
 * in 64. */
struct attention_shape {
	int b, heads, kv_heads, s, head_dim;
	int64_t width, out_width, key_width; /* values in a row of qkv, of out, of keys with their values */
	float scale;                         /* 1 / sqrt(head_dim) */
	bool causal, alibi, vec;             /* vec: every row begins at a multiple of 16 bytes */
	bool adds;                           /* to what earlier keys gave */
	struct cut cut;
	int window; /* keys that a query sees, itself the last; 0: all. Then there is one chunk: positions are rows */
	int chunk, chunks;        /* rows whose positions follow each other; how many such a rank has of a sequence */
	int first_rank, sections; /* keys: of how many ranks, from which on */
	int alibi_first, alibi_power; /* number of head 0 in the whole model; the largest power of two within the
	                                 model's heads */
};

static inline bool attention_fits(const struct cuda_arg *a, int first, int n)
{
	for (int i = first; i < first + n; i++)
		if ((uintptr_t)a[i].at % 16)
			return false;
	return true;
}

static inline enum status attention_shape_of(const struct cuda_env *env, const struct op *op, struct attention_shape *z,
	struct error *e)
{
	const struct op_attn *d = &op->attn;
	if (d->head_dim < 1 || d->head_dim > HEAD_DIM_MAX)
		return error_set(e, ST_RUN, "flash attention: no kernel for heads of %lld values: 1 to %d",
			(long long)d->head_dim, HEAD_DIM_MAX);
	if (d->kv_heads < 1 || d->heads % d->kv_heads)
		return error_set(e, ST_RUN, "flash attention: %lld query heads do not share %lld key heads evenly",
			(long long)d->heads, (long long)d->kv_heads);
	/* a tile's end, and the count of the smallest tiles of a group, must fit an int */
	const int64_t ranks = cut_ranks(&env->cut), chunks = cut_chunks(&env->cut);
	if (d->batch > INT32_MAX || ranks * d->seq > INT32_MAX - 1024 ||
		d->heads > INT32_MAX / (ranks * d->seq / 16 + 2 * ranks))
		return error_set(e, ST_RUN,
			"flash attention: batch %lld, %lld heads, sequence %lld are beyond the kernel's counters",
			(long long)d->batch, (long long)d->heads, (long long)(ranks * d->seq));
	const bool part = op->kind == OP_ATTENTION_PART || op->kind == OP_ATTENTION_PART_GRAD,
		   gathered = part && d->back == 0;
	const int64_t first = gathered ? 0
	                      : part   ? (env->cut.rank - d->back + ranks) % ranks
	                               : env->cut.rank,
		      width = (d->heads + 2 * d->kv_heads) * d->head_dim;
	*z = attention_shape{(int)d->batch, (int)d->heads, (int)d->kv_heads, (int)d->seq, (int)d->head_dim, width,
		d->heads * d->head_dim, part ? 2 * d->kv_heads * d->head_dim : width, 1.0f / sqrtf((float)d->head_dim),
		(op->flags & OP_CAUSAL) != 0, (op->flags & OP_ALIBI) != 0, false, (op->flags & OP_ACCUMULATE) != 0,
		env->cut, (int)op_window(op), (int)(d->seq / chunks), (int)chunks, (int)first,
		(int)(gathered ? ranks : 1), (int)(env->tensor_coord * d->heads), 1};
	while (2 * (int64_t)z->alibi_power <= env->heads)
		z->alibi_power *= 2;
	return ST_OK;
}

/* f(std::integral_constant<int, columns>): heads are padded with zeros to so many values. */
template <class F> static enum status with_head_dim(int head_dim, F f)
{
	if (head_dim <= 32)
		return f(std::integral_constant<int, 32>{});
	if (head_dim <= 64)
		return f(std::integral_constant<int, 64>{});
	if (head_dim <= 96)
		return f(std::integral_constant<int, 96>{});
	if (head_dim <= 128)
		return f(std::integral_constant<int, 128>{});
	return f(std::integral_constant<int, HEAD_DIM_MAX>{});
}

/* Warps of a block, each with 16 rows, by the bytes of a row in shared memory: a block fits the 163 KiB of compute
 * capability 8.0. GPUs with less (99 KiB on 8.6, 8.9 and 12.0) take fewer warps (warps_that_fit). */
template <class T, int DP> constexpr int row_B = tile_stride<T>(DP) * (int)sizeof(T);
template <class T, int DP> constexpr int attention_warps = row_B<T, DP> <= 300 ? 8 : row_B<T, DP> <= 600 ? 4 : 2;

/* Rows that the warps of a block own, and two stages of a pair of tiles of N rows that pass by. */
template <class T, int DP> __host__ __device__ constexpr size_t attention_shared_B(int own_rows, int passing)
{
	return (size_t)(own_rows + 4 * passing) * tile_stride<T>(DP) * sizeof(T);
}

/* ---- which tile a block takes ---- */

struct tile_item {
	int tile, head, batch;
};

/* Tiles of a head follow each other, so that its other operand stays in cache; the last tile, which a causal mask
 * leaves the most work, first where `last_first`. */
static __device__ __forceinline__ struct tile_item item_at(int64_t item, int tiles, int heads, bool last_first)
{
	const int tile = (int)(item % tiles);
	const int64_t head = item / tiles;
	return {last_first ? tiles - 1 - tile : tile, (int)(head % heads), (int)(head / heads)};
}

static __host__ __device__ __forceinline__ int tiles_of(int n, int of) { return (n + of - 1) / of; }

template <class T> static __device__ __forceinline__ T *q_at(T *qkv, const attention_shape &z, int b, int h, int row)
{
	return qkv + ((int64_t)b * z.s + row) * z.width + (int64_t)h * z.head_dim;
}
/* Rows of keys are counted rank by rank. */
template <class T> static __device__ __forceinline__ T *k_at(T *keys, const attention_shape &z, int b, int k, int row)
{
	return keys + (((int64_t)(row / z.s) * z.b + b) * z.s + row % z.s) * z.key_width + (int64_t)k * z.head_dim;
}
template <class T> static __device__ __forceinline__ T *v_at(T *keys, const attention_shape &z, int b, int k, int row)
{
	return k_at(keys, z, b, z.kv_heads + k, row);
}
template <class T> static __device__ __forceinline__ T *out_at(T *out, const attention_shape &z, int b, int h, int row)
{
	return out + ((int64_t)b * z.s + row) * z.out_width + (int64_t)h * z.head_dim;
}
static __device__ __forceinline__ int64_t stat_at(const attention_shape &z, int b, int h, int row)
{
	return ((int64_t)b * z.heads + h) * z.s + row;
}

/* ---- where tiles lie in the sequence: none reaches from one chunk into the next ---- */

struct place {
	int row, rows, position; /* the first row; rows from there to the chunk's end; position of the first one in the
	                            whole sequence */
};

static __host__ __device__ __forceinline__ int query_tiles(const attention_shape &z, int of)
{
	return z.chunks * tiles_of(z.chunk, of);
}
static __host__ __device__ __forceinline__ int key_tiles(const attention_shape &z, int of)
{
	return z.sections * query_tiles(z, of);
}

static __device__ __forceinline__ struct place place_of(const attention_shape &z, int rank, int tile, int of)
{
	const int per_chunk = tiles_of(z.chunk, of), chunk = tile / per_chunk, row = tile % per_chunk * of;
	return {chunk * z.chunk + row, z.chunk - row,
		(int)cut_chunk(&z.cut, rank + chunk / z.chunks, chunk % z.chunks) * z.chunk + row};
}

static __device__ __forceinline__ struct place query_place(const attention_shape &z, int tile, int of)
{
	return place_of(z, (int)z.cut.rank, tile, of);
}
static __device__ __forceinline__ struct place key_place(const attention_shape &z, int tile, int of)
{
	return place_of(z, z.first_rank, tile, of);
}

/* The first tile of keys from `tile` on that a query between `first` and `last` sees; their number where there is none.
 */
static __device__ __forceinline__ int next_keys(const attention_shape &z, int tile, int of, int first, int last)
{
	const int per_chunk = tiles_of(z.chunk, of), all = key_tiles(z, of), seen = first - z.window + 1;
	if (z.window > 0 && tile * of < seen - seen % of)
		tile = seen / of;
	while (z.causal && tile < all && key_place(z, tile, of).position > last)
		tile = (tile / per_chunk + 1) * per_chunk;
	return tile;
}

/* No query of a tile from `query` on sees a key up to `last`. */
static __device__ __forceinline__ bool beyond_window(const attention_shape &z, int query, int last)
{
	return z.window > 0 && query - last >= z.window;
}

/* The first step from `step` on, through `steps` of them and all tiles of queries again and again, whose queries see
 * one of `own` keys from `position` on; `steps` where there is none. */
static __device__ __forceinline__ int next_queries(const attention_shape &z, int step, int steps, int of, int position,
	int own)
{
	const int per_chunk = tiles_of(z.chunk, of), tiles = query_tiles(z, of);
	while (z.causal && step < steps) {
		const struct place q = query_place(z, step % tiles, of);
		const int ahead = position - q.position;
		if (beyond_window(z, q.position, position + own - 1)) {
			step += tiles - step % tiles;
			continue;
		}
		if (ahead < q.rows && ahead < of)
			break;
		step += ahead < q.rows ? ahead / of : per_chunk - step % per_chunk;
	}
	return step;
}

/* ---- scores, to base 2 ---- */

/* Press et al. 2022, as alibi_slope of the host. */
static __device__ __forceinline__ float slope_of(const attention_shape &z, int h)
{
	if (!z.alibi)
		return 0.0f;
	const int head = z.alibi_first + h, power = z.alibi_power;
	return head < power ? exp2f(-8.0f * (float)(head + 1) / (float)power)
	                    : exp2f(-4.0f * (float)(2 * (head - power) + 1) / (float)power);
}

/* Products of queries and keys become log2(e) times their scores, -inf where masked. Rows are 16 queries from position
 * `row` on, columns keys from `col` on, before `end`; TRANSPOSED: rows are keys, columns queries. Most tiles lie wholly
 * inside the mask and skip its comparisons. */
template <int TILES, bool TRANSPOSED>
static __device__ __forceinline__ void scores_from_products(frag_c p[TILES], const attention_shape &z, float slope,
	int row, int col, int end)
{
	const int last_key = TRANSPOSED ? row + 15 : col + 8 * TILES - 1, first_query = TRANSPOSED ? col : row,
		  first_key = TRANSPOSED ? row : col, last_query = TRANSPOSED ? col + 8 * TILES - 1 : row + 15;
	UNROLL for (int n = 0; n < TILES; n++) FOR_HELD(h) UNROLL for (int r = 0; r < 4; r++) p[n].v[h][r] *= z.scale *
	                                                                                                      LOG2_E;
	auto each = [&](auto f) {
		UNROLL for (int n = 0; n < TILES; n++) FOR_HELD(h) UNROLL for (int r = 0; r < 4; r++)
		{
			const int x = row + c_row(lane_of(h), r), y = col + 8 * n + c_col(lane_of(h), r);
			f(p[n].v[h][r], TRANSPOSED ? y : x, TRANSPOSED ? x : y);
		}
	};
	if (z.alibi)
		each([&](float &score, int query, int key) { score += slope * LOG2_E * (float)(key - query); });
	if (last_key >= end || (z.causal && last_key > first_query))
		each([&](float &score, int query, int key) {
			if (key >= end || (z.causal && key > query))
				score = -INFINITY;
		});
	if (z.window > 0 && last_query - first_key >= z.window)
		each([&](float &score, int query, int key) {
			if (query - key >= z.window)
				score = -INFINITY;
		});
}

#endif
