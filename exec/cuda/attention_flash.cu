/* Flash attention, forward: Dao 2023, "FlashAttention-2", algorithm 1. A warp owns 16 queries; tiles of keys and values
 * pass by, one ahead of the one in use. */
#include "exec/cuda/attention_tile.cuh"

/* Keys in a tile. */
template <class T, int DP> constexpr int forward_keys = row_B<T, DP> <= 300 ? 64 : row_B<T, DP> <= 600 ? 32 : 16;

/* Of the 16 queries of a warp: values not yet divided, the largest score so far (to base 2), and each lane's part of
 * the sum of exponentials; two rows a lane. */
template <int DP> struct forward_state {
	frag_c o[DP / 8];
	float max[2][HELD_MAX], sum[2][HELD_MAX];
};

template <int DP> static __device__ __forceinline__ void state_clear(forward_state<DP> &x)
{
	UNROLL for (int n = 0; n < DP / 8; n++) clear(x.o[n]);
	UNROLL for (int half = 0; half < 2; half++) FOR_HELD(h)
	{
		x.max[half][h] = -INFINITY;
		x.sum[half][h] = 0.0f;
	}
}

/* Loads the warp's state over earlier keys, for its queries from `row` on. Only `rows` of them exist. */
template <class T, int DP>
static __device__ __forceinline__ void state_load(forward_state<DP> &x, const T *out, const float *lse,
	const attention_shape &z, const tile_item &at, int row, int rows)
{
	UNROLL for (int half = 0; half < 2; half++) FOR_HELD(h)
	{
		const int i = c_row(lane_of(h), 2 * half);
		if (i >= rows)
			continue;
		const T *from = out_at(out, z, at.batch, at.head, row + i);
		x.max[half][h] = lse[stat_at(z, at.batch, at.head, row + i)] * LOG2_E;
		x.sum[half][h] = lane_of(h) % 4 == 0 ? 1.0f : 0.0f;
		UNROLL for (int n = 0; n < DP / 8; n++) UNROLL for (int r = 0; r < 2; r++)
		{
			const int col = 8 * n + c_col(lane_of(h), r);
			x.o[n].v[h][2 * half + r] = col < z.head_dim ? to_float(from[col]) : 0.0f;
		}
	}
}

/* of a query without keys so far: each one weighs nothing, and any other score is larger */
#define LEAST_SCORE -1e30f

/* p becomes exp2(p - max) with the maximum so far; what was summed before is brought to it. The first keys that come
 * are masked for no query, or there is a maximum from before: it is finite; but under a window, where the first tile's
 * keys may all lie before a query's. */
template <int DP, int KEYS>
static __device__ __forceinline__ void softmax_step(forward_state<DP> &x, frag_c p[KEYS / 8])
{
	UNROLL for (int half = 0; half < 2; half++)
	{
		float top[HELD_MAX];
		FOR_HELD(h)
		{
			top[h] = x.max[half][h];
			UNROLL for (int n = 0; n < KEYS / 8; n++)
				top[h] = fmaxf(top[h], fmaxf(p[n].v[h][2 * half], p[n].v[h][2 * half + 1]));
		}
		quad_max(top);
		FOR_HELD(h)
		{
			if (top[h] == -INFINITY)
				top[h] = LEAST_SCORE;
			const float shrink = exp2_fast(x.max[half][h] - top[h]);
			float sum = x.sum[half][h] * shrink;
			x.max[half][h] = top[h];
			UNROLL for (int n = 0; n < KEYS / 8; n++) UNROLL for (int r = 2 * half; r < 2 * half + 2; r++)
				sum += p[n].v[h][r] = exp2_fast(p[n].v[h][r] - top[h]);
			x.sum[half][h] = sum;
			UNROLL for (int n = 0; n < DP / 8; n++) UNROLL for (int r = 2 * half; r < 2 * half + 2; r++)
				x.o[n]
					.v[h][r] *= shrink;
		}
	}
}

/* out and lse of the warp's queries from `row` on. */
template <class T, int DP>
static __device__ __forceinline__ void state_store(forward_state<DP> &x, T *out, float *lse, const attention_shape &z,
	const tile_item &at, int row, int rows)
{
	UNROLL for (int half = 0; half < 2; half++)
	{
		quad_sum(x.sum[half]);
		FOR_HELD(h)
		{
			const int i = c_row(lane_of(h), 2 * half);
			if (i < rows && lane_of(h) % 4 == 0)
				lse[stat_at(z, at.batch, at.head, row + i)] = (x.max[half][h] + log2f(x.sum[half][h])) *
				                                              LN_2;
		}
	}
	if (rows > 0)
		store_rows<DP>(out_at(out, z, at.batch, at.head, row), z.out_width, rows, z.head_dim, z.vec, x.o,
			[&](int h, int half) { return 1.0f / x.sum[half][h]; });
}

template <class T, int DP>
static __device__ __forceinline__ void forward_tile(const T *qkv, const T *keys, T *out, float *lse,
	const attention_shape &z, const tile_item &at)
{
	constexpr int LD = tile_stride<T>(DP), KEYS = forward_keys<T, DP>;
	const int own = 16 * warp_count(), kv = at.head / (z.heads / z.kv_heads);
	const struct place first = query_place(z, at.tile, own);
	const int row = first.row + 16 * warp_rank(), rows = first.rows - 16 * warp_rank(),
		  position = first.position + 16 * warp_rank(),
		  last = first.position + (own < first.rows ? own : first.rows) - 1;
	T *q = (T *)dynamic_shared(attention_shared_B<T, DP>(own, KEYS)), *passing = q + own * LD;
	const int n_tiles = key_tiles(z, KEYS);
	const float slope = slope_of(z, at.head);
	auto fetch = [&](int tile, int stage) {
		const struct place from = key_place(z, tile, KEYS);
		T *k = passing + stage * 2 * KEYS * LD;
		load_tile<DP>(k, KEYS, k_at(keys, z, at.batch, kv, from.row), z.key_width, from.rows, z.head_dim,
			z.vec);
		load_tile<DP>(k + KEYS * LD, KEYS, v_at(keys, z, at.batch, kv, from.row), z.key_width, from.rows,
			z.head_dim, z.vec);
	};
	int tile = next_keys(z, 0, KEYS, first.position, last);
	block_sync(); /* the tile before has been read */
	load_tile<DP>(q, own, q_at(qkv, z, at.batch, at.head, first.row), z.width, first.rows, z.head_dim, z.vec);
	if (tile < n_tiles)
		fetch(tile, 0);
	forward_state<DP> x;
	state_clear(x);
	if (z.adds)
		state_load(x, out, lse, z, at, row, rows);
	for (int stage = 0, next; tile < n_tiles; tile = next, stage = 1 - stage) {
		copies_wait();
		block_sync();
		next = next_keys(z, tile + 1, KEYS, first.position, last);
		if (next < n_tiles)
			fetch(next, 1 - stage);
		const struct place at_keys = key_place(z, tile, KEYS);
		if ((z.causal && at_keys.position > position + 15) ||
			beyond_window(z, position, at_keys.position + KEYS - 1))
			continue;
		const T *k = passing + stage * 2 * KEYS * LD;
		frag_c p[KEYS / 8];
		UNROLL for (int n = 0; n < KEYS / 8; n++) clear(p[n]);
		multiply_nt<LD, KEYS, DP>(p, q + 16 * warp_rank() * LD, k);
		scores_from_products<KEYS / 8, false>(p, z, slope, position, at_keys.position,
			at_keys.position + at_keys.rows);
		softmax_step<DP, KEYS>(x, p);
		multiply_held<LD, DP, KEYS>(x.o, p, k + KEYS * LD);
	}
	copies_wait(); /* where there were no keys, the queries have come unused */
	state_store(x, out, lse, z, at, row, rows);
}

template <class T, int DP>
__global__ void __launch_bounds__(attention_warps<T, DP> * 32)
	attention_forward(const T *qkv, const T *keys, T *out, float *lse, attention_shape z)
{
	const int tiles = query_tiles(z, 16 * warp_count());
	for (int64_t i = blockIdx.x; i < (int64_t)tiles * z.heads * z.b; i += gridDim.x)
		forward_tile<T, DP>(qkv, keys, out, lse, z, item_at(i, tiles, z.heads, z.causal));
}

/* `visitors`: the argument that has the keys of other ranks, 0: the rank's own, in qkv. Behind it out and lse. */
static enum status forward_start(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], int visitors, struct error *e)
{
	struct attention_shape z = {};
	enum status st = attention_shape_of(env, op, &z, e);
	if (st || (st = same_format(op, arg, 0, 1u << visitors | 1u << (visitors + 1), e)))
		return st;
	return with_format(arg[0].dtype, e, [&](auto format) {
		using T = typename decltype(format)::type;
		const T *keys = (const T *)arg[visitors].at + (visitors ? 0 : z.out_width);
		z.vec = attention_fits(arg, 0, visitors + 2) && z.head_dim % vec_of<T>::N == 0;
		return with_head_dim(z.head_dim, [&](auto dim) {
			constexpr int DP = decltype(dim)::value;
			auto shared_of = [](int n) { return attention_shared_B<T, DP>(16 * n, forward_keys<T, DP>); };
			int warps = 0;
			enum status fits = warps_that_fit(attention_warps<T, DP>, shared_of, &warps, e);
			if (fits)
				return fits;
			return start_shared<attention_forward<T, DP>>(env->stream,
				(int64_t)query_tiles(z, 16 * warps) * z.heads * z.b, 32 * warps, shared_of(warps), e,
				(const T *)arg[0].at, keys, (T *)arg[visitors + 1].at, (float *)arg[visitors + 2].at,
				z);
		});
	});
}

enum status launch_attention(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	struct error *e)
{
	return forward_start(env, op, arg, 0, e);
}

enum status launch_attention_part(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return forward_start(env, op, arg, 1, e);
}
