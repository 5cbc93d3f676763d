/* Flash attention, forward: Dao 2023, "FlashAttention-2", algorithm 1. A warp owns 16 queries; tiles of keys and values pass by, one ahead of the one in use. */
#include "exec/cuda/attention_tile.cuh"

/* Keys in a tile. */
template <class T, int DP> constexpr int forward_keys = row_B<T, DP> <= 300 ? 64 : row_B<T, DP> <= 600 ? 32 : 16;

/* Of the 16 queries of a warp: values not yet divided, the largest score so far (to base 2), and each lane's part of the sum of exponentials; two rows a lane. */
template <int DP> struct forward_state {
	frag_c o[DP / 8];
	float max[2][HELD_MAX], sum[2][HELD_MAX];
};

template <int DP> static __device__ __forceinline__ void state_clear(forward_state<DP> &x)
{
	UNROLL for (int n = 0; n < DP / 8; n++)
		clear(x.o[n]);
	UNROLL for (int half = 0; half < 2; half++)
		FOR_HELD(h) {
			x.max[half][h] = -INFINITY;
			x.sum[half][h] = 0.0f;
		}
}

/* p becomes exp2(p - max) with the maximum so far; what was summed before is brought to it. Key 0 is masked for no query and comes first: the maximum is finite. */
template <int DP, int KEYS> static __device__ __forceinline__ void softmax_step(forward_state<DP> &x, frag_c p[KEYS / 8])
{
	UNROLL for (int half = 0; half < 2; half++) {
		float top[HELD_MAX];
		FOR_HELD(h) {
			top[h] = x.max[half][h];
			UNROLL for (int n = 0; n < KEYS / 8; n++)
				top[h] = fmaxf(top[h], fmaxf(p[n].v[h][2 * half], p[n].v[h][2 * half + 1]));
		}
		quad_max(top);
		FOR_HELD(h) {
			const float shrink = exp2_fast(x.max[half][h] - top[h]);
			float sum = x.sum[half][h] * shrink;
			x.max[half][h] = top[h];
			UNROLL for (int n = 0; n < KEYS / 8; n++)
				UNROLL for (int r = 2 * half; r < 2 * half + 2; r++)
					sum += p[n].v[h][r] = exp2_fast(p[n].v[h][r] - top[h]);
			x.sum[half][h] = sum;
			UNROLL for (int n = 0; n < DP / 8; n++)
				UNROLL for (int r = 2 * half; r < 2 * half + 2; r++)
					x.o[n].v[h][r] *= shrink;
		}
	}
}

/* out and lse of the warp's queries from `row` on. */
template <class T, int DP> static __device__ __forceinline__ void state_store(forward_state<DP> &x, T *out, float *lse, const attention_shape &z, const tile_item &at, int row)
{
	UNROLL for (int half = 0; half < 2; half++) {
		quad_sum(x.sum[half]);
		FOR_HELD(h) {
			const int i = row + c_row(lane_of(h), 2 * half);
			if (i < z.s && lane_of(h) % 4 == 0)
				lse[stat_at(z, at.batch, at.head, i)] = (x.max[half][h] + log2f(x.sum[half][h])) * LN_2;
		}
	}
	if (row < z.s)
		store_rows<DP>(out_at(out, z, at.batch, at.head, row), z.out_width, z.s - row, z.head_dim, z.vec, x.o, [&](int h, int half) { return 1.0f / x.sum[half][h]; });
}

template <class T, int DP> static __device__ __forceinline__ void forward_tile(const T *qkv, T *out, float *lse, const attention_shape &z, const tile_item &at)
{
	constexpr int LD = tile_stride<T>(DP), KEYS = forward_keys<T, DP>;
	const int rows = 16 * warp_count(), q0 = at.tile * rows, row = q0 + 16 * warp_rank(), kv = at.head / (z.heads / z.kv_heads);
	T *q = (T *)dynamic_shared(attention_shared_B<T, DP>(rows, KEYS)), *passing = q + rows * LD;
	const int n_tiles = tiles_of(z.causal && q0 + rows < z.s ? q0 + rows : z.s, KEYS);
	const float slope = slope_of(z, at.head);
	auto fetch = [&](int tile) {
		T *k = passing + tile % 2 * 2 * KEYS * LD;
		load_tile<DP>(k, KEYS, k_at(qkv, z, at.batch, kv, tile * KEYS), z.width, z.s - tile * KEYS, z.head_dim, z.vec);
		load_tile<DP>(k + KEYS * LD, KEYS, v_at(qkv, z, at.batch, kv, tile * KEYS), z.width, z.s - tile * KEYS, z.head_dim, z.vec);
	};
	block_sync(); /* the tile before has been read */
	load_tile<DP>(q, rows, q_at(qkv, z, at.batch, at.head, q0), z.width, z.s - q0, z.head_dim, z.vec);
	fetch(0);
	forward_state<DP> x;
	state_clear(x);
	for (int tile = 0; tile < n_tiles; tile++) {
		copies_wait();
		block_sync();
		if (tile + 1 < n_tiles)
			fetch(tile + 1);
		if (z.causal && tile * KEYS > row + 15)
			continue;
		const T *k = passing + tile % 2 * 2 * KEYS * LD;
		frag_c p[KEYS / 8];
		UNROLL for (int n = 0; n < KEYS / 8; n++)
			clear(p[n]);
		multiply_nt<LD, KEYS, DP>(p, q + 16 * warp_rank() * LD, k);
		scores_from_products<KEYS / 8, false>(p, z, slope, row, tile * KEYS);
		softmax_step<DP, KEYS>(x, p);
		multiply_held<LD, DP, KEYS>(x.o, p, k + KEYS * LD);
	}
	state_store(x, out, lse, z, at, row);
}

template <class T, int DP> __global__ void __launch_bounds__(attention_warps<T, DP> * 32) attention_forward(const T *qkv, T *out, float *lse, attention_shape z)
{
	const int tiles = tiles_of(z.s, 16 * warp_count());
	for (int64_t i = blockIdx.x; i < (int64_t)tiles * z.heads * z.b; i += gridDim.x)
		forward_tile<T, DP>(qkv, out, lse, z, item_at(i, tiles, z.heads, z.causal));
}

enum status launch_attention(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	struct attention_shape z = {};
	enum status st = attention_shape_of(env, op, &z, e);
	if (st || (st = same_format(op, arg, 0, 1u << 1, e)))
		return st;
	return with_format(arg[0].dtype, e, [&](auto format) {
		using T = typename decltype(format)::type;
		z.vec = attention_fits(arg, 0, 2) && z.head_dim % vec_of<T>::N == 0;
		return with_head_dim(z.head_dim, [&](auto dim) {
			constexpr int DP = decltype(dim)::value, warps = attention_warps<T, DP>;
			return start_shared<attention_forward<T, DP>>(env->stream, (int64_t)tiles_of(z.s, 16 * warps) * z.heads * z.b, 32 * warps, attention_shared_B<T, DP>(16 * warps, forward_keys<T, DP>), e,
				(const T *)arg[0].at, (T *)arg[1].at, (float *)arg[2].at, z);
		});
	});
}
