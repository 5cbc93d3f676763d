/* Flash attention, backward: Dao 2023, "FlashAttention-2", algorithm 2, as two kernels without atomic adds, so that its sums have one order: keys and values with the queries passing by (the query
 * heads of a group one after the other), then queries with the keys passing by. Products of queries and keys are formed in both. */
#include "exec/cuda/attention_tile.cuh"

/* Rows in a tile that passes by; columns of dK and dV that a block holds at once (a wider head takes several blocks, each with all scores). */
template <class T, int DP> constexpr int passing_rows = row_B<T, DP> <= 600 ? 32 : 16;
template <int DP> constexpr int held_cols = DP <= 128 ? DP : 128;
/* Two tiles that the block owns, two stages of two that pass by, and two stages of lse and delta. */
template <class T, int DP> __host__ __device__ constexpr size_t grad_shared_B(int rows)
{
	return attention_shared_B<T, DP>(2 * rows, passing_rows<T, DP>) + 4 * passing_rows<T, DP> * sizeof(float);
}

/* delta: row sums of dout x out; a warp a row of one head. */
template <class T> __global__ void attention_delta(const T *out, const T *dout, float *delta, attention_shape z)
{
	const int64_t rows = (int64_t)z.b * z.s * z.heads;
	for (int64_t i = (int64_t)blockIdx.x * warp_count() + warp_rank(); i < rows; i += (int64_t)gridDim.x * warp_count()) {
		float sum = 0.0f;
		for (int c = lane_rank(); c < z.head_dim; c += lane_count())
			sum += to_float(out[i * z.head_dim + c]) * to_float(dout[i * z.head_dim + c]);
		sum = warp_sum(sum);
		const int64_t token = i / z.heads;
		if (lane_rank() == 0)
			delta[stat_at(z, (int)(token / z.s), (int)(i % z.heads), (int)(token % z.s))] = sum;
	}
}

/* ---- dK and dV ---- */

template <class T, int DP> struct keys_state {
	frag_c dk[held_cols<DP> / 8], dv[held_cols<DP> / 8];
};

/* One tile of queries, of query head h from row `q0` on: scores are held transposed, keys by queries, so that a warp's keys gather all of it. */
template <class T, int DP>
static __device__ __forceinline__ void keys_step(keys_state<T, DP> &x, const T *k, const T *v, const T *q, const T *dout, const float *lse, const float *delta, const attention_shape &z, float slope, int q0,
	int key, int col)
{
	constexpr int LD = tile_stride<T>(DP), N = passing_rows<T, DP>, COLS = held_cols<DP>;
	frag_c p[N / 8], ds[N / 8];
	UNROLL for (int n = 0; n < N / 8; n++) {
		clear(p[n]);
		clear(ds[n]);
	}
	multiply_nt<LD, N, DP>(p, k, q);
	scores_from_products<N / 8, true>(p, z, slope, key, q0);
	UNROLL for (int n = 0; n < N / 8; n++)
		FOR_HELD(h)
			UNROLL for (int r = 0; r < 4; r++)
				p[n].v[h][r] = exp2_fast(p[n].v[h][r] - lse[8 * n + c_col(lane_of(h), r)]);
	multiply_held<LD, COLS, N>(x.dv, p, dout + col);
	multiply_nt<LD, N, DP>(ds, v, dout);
	UNROLL for (int n = 0; n < N / 8; n++)
		FOR_HELD(h)
			UNROLL for (int r = 0; r < 4; r++)
				ds[n].v[h][r] = p[n].v[h][r] * (ds[n].v[h][r] - delta[8 * n + c_col(lane_of(h), r)]);
	multiply_held<LD, COLS, N>(x.dk, ds, q + col);
}

template <class T, int DP>
static __device__ __forceinline__ void keys_tile(const T *qkv, const T *dout, const float *lse, const float *delta, T *dqkv, const attention_shape &z, const tile_item &at, int col)
{
	constexpr int LD = tile_stride<T>(DP), N = passing_rows<T, DP>, COLS = held_cols<DP>;
	const int rows = 16 * warp_count(), k0 = at.tile * rows, key = k0 + 16 * warp_rank(), group = z.heads / z.kv_heads;
	T *k = (T *)dynamic_shared(grad_shared_B<T, DP>(rows)), *v = k + rows * LD, *passing = v + rows * LD;
	float *stats = (float *)(passing + 4 * N * LD);
	const int first = z.causal ? k0 / N : 0, tiles = tiles_of(z.s, N) - first;
	auto fetch = [&](int step) {
		const int q0 = (first + step % tiles) * N, head = at.head * group + step / tiles;
		T *q = passing + step % 2 * 2 * N * LD;
		load_tile<DP>(q, N, q_at(qkv, z, at.batch, head, q0), z.width, z.s - q0, z.head_dim, z.vec);
		load_tile<DP>(q + N * LD, N, out_at(dout, z, at.batch, head, q0), z.out_width, z.s - q0, z.head_dim, z.vec);
		float *x = stats + step % 2 * 2 * N;
		for (int i = thread_rank(); i < N; i += thread_count()) {
			x[i] = q0 + i < z.s ? lse[stat_at(z, at.batch, head, q0 + i)] * LOG2_E : INFINITY; /* beyond the end: no weight */
			x[N + i] = q0 + i < z.s ? delta[stat_at(z, at.batch, head, q0 + i)] : 0.0f;
		}
	};
	block_sync(); /* the tile before has been read */
	load_tile<DP>(k, rows, k_at(qkv, z, at.batch, at.head, k0), z.width, z.s - k0, z.head_dim, z.vec);
	load_tile<DP>(v, rows, v_at(qkv, z, at.batch, at.head, k0), z.width, z.s - k0, z.head_dim, z.vec);
	fetch(0);
	keys_state<T, DP> x;
	UNROLL for (int n = 0; n < COLS / 8; n++) {
		clear(x.dk[n]);
		clear(x.dv[n]);
	}
	for (int step = 0; step < group * tiles; step++) {
		copies_wait();
		block_sync();
		if (step + 1 < group * tiles)
			fetch(step + 1);
		const int q0 = (first + step % tiles) * N;
		if (key >= z.s || (z.causal && q0 + N <= key))
			continue;
		const T *q = passing + step % 2 * 2 * N * LD;
		const float *s = stats + step % 2 * 2 * N;
		keys_step<T, DP>(x, k + 16 * warp_rank() * LD, v + 16 * warp_rank() * LD, q, q + N * LD, s, s + N, z, slope_of(z, at.head * group + step / tiles), q0, key, col);
	}
	if (key >= z.s)
		return;
	store_rows<COLS>(k_at(dqkv, z, at.batch, at.head, key) + col, z.width, z.s - key, z.head_dim - col, z.vec, x.dk, [&](int, int) { return z.scale; });
	store_rows<COLS>(v_at(dqkv, z, at.batch, at.head, key) + col, z.width, z.s - key, z.head_dim - col, z.vec, x.dv, [](int, int) { return 1.0f; });
}

template <class T, int DP>
__global__ void __launch_bounds__(attention_warps<T, DP> * 32) attention_grad_keys(const T *qkv, const T *dout, const float *lse, const float *delta, T *dqkv, attention_shape z)
{
	const int tiles = tiles_of(z.s, 16 * warp_count());
	for (int64_t i = blockIdx.x; i < (int64_t)tiles * z.kv_heads * z.b * (DP / held_cols<DP>); i += gridDim.x)
		keys_tile<T, DP>(qkv, dout, lse, delta, dqkv, z, item_at(i / (DP / held_cols<DP>), tiles, z.kv_heads, false), (int)(i % (DP / held_cols<DP>)) * held_cols<DP>);
}

/* ---- dQ ---- */

template <class T, int DP>
static __device__ __forceinline__ void queries_tile(const T *qkv, const T *dout, const float *lse, const float *delta, T *dqkv, const attention_shape &z, const tile_item &at)
{
	constexpr int LD = tile_stride<T>(DP), N = passing_rows<T, DP>;
	const int rows = 16 * warp_count(), q0 = at.tile * rows, row = q0 + 16 * warp_rank(), kv = at.head / (z.heads / z.kv_heads);
	T *q = (T *)dynamic_shared(grad_shared_B<T, DP>(rows)), *o = q + rows * LD, *passing = o + rows * LD;
	const int n_tiles = tiles_of(z.causal && q0 + rows < z.s ? q0 + rows : z.s, N);
	const float slope = slope_of(z, at.head);
	auto fetch = [&](int tile) {
		T *k = passing + tile % 2 * 2 * N * LD;
		load_tile<DP>(k, N, k_at(qkv, z, at.batch, kv, tile * N), z.width, z.s - tile * N, z.head_dim, z.vec);
		load_tile<DP>(k + N * LD, N, v_at(qkv, z, at.batch, kv, tile * N), z.width, z.s - tile * N, z.head_dim, z.vec);
	};
	block_sync(); /* the tile before has been read */
	load_tile<DP>(q, rows, q_at(qkv, z, at.batch, at.head, q0), z.width, z.s - q0, z.head_dim, z.vec);
	load_tile<DP>(o, rows, out_at(dout, z, at.batch, at.head, q0), z.out_width, z.s - q0, z.head_dim, z.vec);
	fetch(0);
	frag_c dq[DP / 8];
	UNROLL for (int n = 0; n < DP / 8; n++)
		clear(dq[n]);
	float row_lse[2][HELD_MAX], row_delta[2][HELD_MAX];
	UNROLL for (int half = 0; half < 2; half++)
		FOR_HELD(h) {
			const int i = row + c_row(lane_of(h), 2 * half);
			row_lse[half][h] = i < z.s ? lse[stat_at(z, at.batch, at.head, i)] * LOG2_E : INFINITY;
			row_delta[half][h] = i < z.s ? delta[stat_at(z, at.batch, at.head, i)] : 0.0f;
		}
	for (int tile = 0; tile < n_tiles; tile++) {
		copies_wait();
		block_sync();
		if (tile + 1 < n_tiles)
			fetch(tile + 1);
		if (row >= z.s || (z.causal && tile * N > row + 15))
			continue;
		const T *k = passing + tile % 2 * 2 * N * LD;
		frag_c p[N / 8], ds[N / 8];
		UNROLL for (int n = 0; n < N / 8; n++) {
			clear(p[n]);
			clear(ds[n]);
		}
		multiply_nt<LD, N, DP>(p, q + 16 * warp_rank() * LD, k);
		multiply_nt<LD, N, DP>(ds, o + 16 * warp_rank() * LD, k + N * LD);
		scores_from_products<N / 8, false>(p, z, slope, row, tile * N);
		UNROLL for (int n = 0; n < N / 8; n++)
			FOR_HELD(h)
				UNROLL for (int r = 0; r < 4; r++)
					ds[n].v[h][r] = exp2_fast(p[n].v[h][r] - row_lse[r / 2][h]) * (ds[n].v[h][r] - row_delta[r / 2][h]);
		multiply_held<LD, DP, N>(dq, ds, k);
	}
	if (row < z.s)
		store_rows<DP>(q_at(dqkv, z, at.batch, at.head, row), z.width, z.s - row, z.head_dim, z.vec, dq, [&](int, int) { return z.scale; });
}

template <class T, int DP>
__global__ void __launch_bounds__(attention_warps<T, DP> * 32) attention_grad_queries(const T *qkv, const T *dout, const float *lse, const float *delta, T *dqkv, attention_shape z)
{
	const int tiles = tiles_of(z.s, 16 * warp_count());
	for (int64_t i = blockIdx.x; i < (int64_t)tiles * z.heads * z.b; i += gridDim.x)
		queries_tile<T, DP>(qkv, dout, lse, delta, dqkv, z, item_at(i, tiles, z.heads, z.causal));
}

/* ---- launch ---- */

enum { QKV, OUT, LSE, DOUT, DELTA, DQKV };
#define DELTA_WARPS 8

template <class T, int DP> static enum status grad_start(const struct cuda_env *env, const struct cuda_arg *arg, const struct attention_shape &z, struct error *e)
{
	constexpr int warps = attention_warps<T, DP>;
	constexpr size_t shared_B = grad_shared_B<T, DP>(16 * warps);
	const int64_t tiles = (int64_t)tiles_of(z.s, 16 * warps) * z.b;
	const T *qkv = (const T *)arg[QKV].at, *dout = (const T *)arg[DOUT].at;
	const float *lse = (const float *)arg[LSE].at, *delta = (const float *)arg[DELTA].at;
	T *dqkv = (T *)arg[DQKV].at;
	enum status st = start_shared<attention_grad_keys<T, DP>>(env->stream, tiles * z.kv_heads * (DP / held_cols<DP>), 32 * warps, shared_B, e, qkv, dout, lse, delta, dqkv, z);
	return st ? st : start_shared<attention_grad_queries<T, DP>>(env->stream, tiles * z.heads, 32 * warps, shared_B, e, qkv, dout, lse, delta, dqkv, z);
}

enum status launch_attention_grad(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	struct attention_shape z = {};
	enum status st = attention_shape_of(env, op, &z, e);
	if (st || (st = same_format(op, arg, QKV, 1u << OUT | 1u << DOUT | 1u << DQKV, e)))
		return st;
	return with_format(arg[QKV].dtype, e, [&](auto format) {
		using T = typename decltype(format)::type;
		z.vec = attention_fits(arg, QKV, 1) && attention_fits(arg, DOUT, 1) && attention_fits(arg, DQKV, 1) && z.head_dim % vec_of<T>::N == 0;
		const int64_t rows = (int64_t)z.b * z.s * z.heads, blocks = (rows + DELTA_WARPS - 1) / DELTA_WARPS;
		enum status first = start_shared<attention_delta<T>>(env->stream, blocks, 32 * DELTA_WARPS, 0, e, (const T *)arg[OUT].at, (const T *)arg[DOUT].at, (float *)arg[DELTA].at, z);
		return first ? first : with_head_dim(z.head_dim, [&](auto dim) { return grad_start<T, decltype(dim)::value>(env, arg, z, e); });
	});
}
