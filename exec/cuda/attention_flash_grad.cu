/* Flash attention, backward: Dao 2023, "FlashAttention-2", algorithm 2, as two kernels without atomic adds, so that its
 * sums have one order: keys and values with the queries passing by (the query heads of a group one after the other),
 * then queries with the keys passing by. Products of queries and keys are formed in both. */
#include "exec/cuda/attention_tile.cuh"

/* Rows in a tile that passes by; columns of dK and dV that a block holds at once (a wider head takes several blocks,
 * each with all scores). */
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
	for (int64_t i = (int64_t)blockIdx.x * warp_count() + warp_rank(); i < rows;
		i += (int64_t)gridDim.x * warp_count()) {
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

/* One tile of queries, the first at position `query`, and keys from position `key` on, before `end`: scores are held
 * transposed, keys by queries, so that a warp's keys gather all of it. */
template <class T, int DP>
static __device__ __forceinline__ void keys_step(keys_state<T, DP> &x, const T *k, const T *v, const T *q,
	const T *dout, const float *lse, const float *delta, const attention_shape &z, float slope, int query, int key,
	int end, int col)
{
	constexpr int LD = tile_stride<T>(DP), N = passing_rows<T, DP>, COLS = held_cols<DP>;
	frag_c p[N / 8], ds[N / 8];
	UNROLL for (int n = 0; n < N / 8; n++)
	{
		clear(p[n]);
		clear(ds[n]);
	}
	multiply_nt<LD, N, DP>(p, k, q);
	scores_from_products<N / 8, true>(p, z, slope, key, query, end);
	UNROLL for (int n = 0; n < N / 8; n++) FOR_HELD(h) UNROLL for (int r = 0; r < 4; r++) p[n].v[h][r] = exp2_fast(
		p[n].v[h][r] - lse[8 * n + c_col(lane_of(h), r)]);
	multiply_held<LD, COLS, N>(x.dv, p, dout + col);
	multiply_nt<LD, N, DP>(ds, v, dout);
	UNROLL for (int n = 0; n < N / 8; n++) FOR_HELD(h) UNROLL for (int r = 0; r < 4; r++) ds[n].v[h][r] =
		p[n].v[h][r] * (ds[n].v[h][r] - delta[8 * n + c_col(lane_of(h), r)]);
	multiply_held<LD, COLS, N>(x.dk, ds, q + col);
}

/* Arguments of both backward kernels. */
template <class T> struct grad_args {
	const T *qkv, *keys, *dout;
	const float *lse, *delta;
	T *dqkv, *dkeys;
};

template <class T, int DP>
static __device__ __forceinline__ void keys_tile(const grad_args<T> &g, const attention_shape &z, const tile_item &at,
	int col)
{
	constexpr int LD = tile_stride<T>(DP), N = passing_rows<T, DP>, COLS = held_cols<DP>;
	const int own = 16 * warp_count(), group = z.heads / z.kv_heads, tiles = query_tiles(z, N),
		  steps = group * tiles;
	const struct place first = key_place(z, at.tile, own);
	const int row = first.row + 16 * warp_rank(), rows = first.rows - 16 * warp_rank(),
		  key = first.position + 16 * warp_rank();
	T *k = (T *)dynamic_shared(grad_shared_B<T, DP>(own)), *v = k + own * LD, *passing = v + own * LD;
	float *stats = (float *)(passing + 4 * N * LD);
	auto fetch = [&](int step, int stage) {
		const struct place from = query_place(z, step % tiles, N);
		const int head = at.head * group + step / tiles;
		T *q = passing + stage * 2 * N * LD;
		load_tile<DP>(q, N, q_at(g.qkv, z, at.batch, head, from.row), z.width, from.rows, z.head_dim, z.vec);
		load_tile<DP>(q + N * LD, N, out_at(g.dout, z, at.batch, head, from.row), z.out_width, from.rows,
			z.head_dim, z.vec);
		float *x = stats + stage * 2 * N;
		for (int i = thread_rank(); i < N; i += thread_count()) {
			x[i] = i < from.rows ? g.lse[stat_at(z, at.batch, head, from.row + i)] * LOG2_E
			                     : INFINITY; /* beyond the end: no weight */
			x[N + i] = i < from.rows ? g.delta[stat_at(z, at.batch, head, from.row + i)] : 0.0f;
		}
	};
	int step = next_queries(z, 0, steps, N, first.position, own);
	block_sync(); /* the tile before has been read */
	load_tile<DP>(k, own, k_at(g.keys, z, at.batch, at.head, first.row), z.key_width, first.rows, z.head_dim,
		z.vec);
	load_tile<DP>(v, own, v_at(g.keys, z, at.batch, at.head, first.row), z.key_width, first.rows, z.head_dim,
		z.vec);
	if (step < steps)
		fetch(step, 0);
	keys_state<T, DP> x;
	UNROLL for (int n = 0; n < COLS / 8; n++)
	{
		clear(x.dk[n]);
		clear(x.dv[n]);
	}
	for (int stage = 0, next; step < steps; step = next, stage = 1 - stage) {
		copies_wait();
		block_sync();
		next = next_queries(z, step + 1, steps, N, first.position, own);
		if (next < steps)
			fetch(next, 1 - stage);
		const struct place from = query_place(z, step % tiles, N);
		if (rows <= 0 || (z.causal && from.position + N <= key) || beyond_window(z, from.position, key + 15))
			continue;
		const T *q = passing + stage * 2 * N * LD;
		const float *s = stats + stage * 2 * N;
		keys_step<T, DP>(x, k + 16 * warp_rank() * LD, v + 16 * warp_rank() * LD, q, q + N * LD, s, s + N, z,
			slope_of(z, at.head * group + step / tiles), from.position, key, key + rows, col);
	}
	copies_wait(); /* where no query sees the keys, they have come unused */
	if (rows <= 0)
		return;
	store_rows<COLS>(k_at(g.dkeys, z, at.batch, at.head, row) + col, z.key_width, rows, z.head_dim - col, z.vec,
		x.dk, [&](int, int) { return z.scale; });
	store_rows<COLS>(v_at(g.dkeys, z, at.batch, at.head, row) + col, z.key_width, rows, z.head_dim - col, z.vec,
		x.dv, [](int, int) { return 1.0f; });
}

template <class T, int DP>
__global__ void __launch_bounds__(attention_warps<T, DP> * 32) attention_grad_keys(grad_args<T> g, attention_shape z)
{
	const int tiles = key_tiles(z, 16 * warp_count());
	for (int64_t i = blockIdx.x; i < (int64_t)tiles * z.kv_heads * z.b * (DP / held_cols<DP>); i += gridDim.x)
		keys_tile<T, DP>(g, z, item_at(i / (DP / held_cols<DP>), tiles, z.kv_heads, false),
			(int)(i % (DP / held_cols<DP>)) * held_cols<DP>);
}

/* ---- dQ ---- */

/* Loads the sums over earlier keys. The last step applies the scale. */
template <class T, int DP>
static __device__ __forceinline__ void queries_load(frag_c dq[DP / 8], const T *from, const attention_shape &z,
	int rows)
{
	FOR_HELD(h)
	UNROLL for (int n = 0; n < DP / 8; n++) UNROLL for (int r = 0; r < 4; r++)
	{
		const int i = c_row(lane_of(h), r), col = 8 * n + c_col(lane_of(h), r);
		dq[n].v[h][r] = i < rows && col < z.head_dim ? to_float(from[i * z.width + col]) / z.scale : 0.0f;
	}
}

template <class T, int DP>
static __device__ __forceinline__ void queries_tile(const grad_args<T> &g, const attention_shape &z,
	const tile_item &at)
{
	constexpr int LD = tile_stride<T>(DP), N = passing_rows<T, DP>;
	const int own = 16 * warp_count(), kv = at.head / (z.heads / z.kv_heads);
	const struct place first = query_place(z, at.tile, own);
	const int row = first.row + 16 * warp_rank(), rows = first.rows - 16 * warp_rank(),
		  position = first.position + 16 * warp_rank(),
		  last = first.position + (own < first.rows ? own : first.rows) - 1;
	T *q = (T *)dynamic_shared(grad_shared_B<T, DP>(own)), *o = q + own * LD, *passing = o + own * LD;
	const int n_tiles = key_tiles(z, N);
	const float slope = slope_of(z, at.head);
	auto fetch = [&](int tile, int stage) {
		const struct place from = key_place(z, tile, N);
		T *k = passing + stage * 2 * N * LD;
		load_tile<DP>(k, N, k_at(g.keys, z, at.batch, kv, from.row), z.key_width, from.rows, z.head_dim, z.vec);
		load_tile<DP>(k + N * LD, N, v_at(g.keys, z, at.batch, kv, from.row), z.key_width, from.rows,
			z.head_dim, z.vec);
	};
	int tile = next_keys(z, 0, N, first.position, last);
	block_sync(); /* the tile before has been read */
	load_tile<DP>(q, own, q_at(g.qkv, z, at.batch, at.head, first.row), z.width, first.rows, z.head_dim, z.vec);
	load_tile<DP>(o, own, out_at(g.dout, z, at.batch, at.head, first.row), z.out_width, first.rows, z.head_dim,
		z.vec);
	if (tile < n_tiles)
		fetch(tile, 0);
	frag_c dq[DP / 8];
	UNROLL for (int n = 0; n < DP / 8; n++) clear(dq[n]);
	if (z.adds && rows > 0)
		queries_load<T, DP>(dq, q_at(g.dqkv, z, at.batch, at.head, row), z, rows);
	float row_lse[2][HELD_MAX], row_delta[2][HELD_MAX];
	UNROLL for (int half = 0; half < 2; half++) FOR_HELD(h)
	{
		const int i = c_row(lane_of(h), 2 * half);
		row_lse[half][h] = i < rows ? g.lse[stat_at(z, at.batch, at.head, row + i)] * LOG2_E : INFINITY;
		row_delta[half][h] = i < rows ? g.delta[stat_at(z, at.batch, at.head, row + i)] : 0.0f;
	}
	for (int stage = 0, next; tile < n_tiles; tile = next, stage = 1 - stage) {
		copies_wait();
		block_sync();
		next = next_keys(z, tile + 1, N, first.position, last);
		if (next < n_tiles)
			fetch(next, 1 - stage);
		const struct place at_keys = key_place(z, tile, N);
		if (rows <= 0 || (z.causal && at_keys.position > position + 15) ||
			beyond_window(z, position, at_keys.position + N - 1))
			continue;
		const T *k = passing + stage * 2 * N * LD;
		frag_c p[N / 8], ds[N / 8];
		UNROLL for (int n = 0; n < N / 8; n++)
		{
			clear(p[n]);
			clear(ds[n]);
		}
		multiply_nt<LD, N, DP>(p, q + 16 * warp_rank() * LD, k);
		multiply_nt<LD, N, DP>(ds, o + 16 * warp_rank() * LD, k + N * LD);
		scores_from_products<N / 8, false>(p, z, slope, position, at_keys.position,
			at_keys.position + at_keys.rows);
		UNROLL for (int n = 0; n < N / 8; n++) FOR_HELD(h) UNROLL for (int r = 0; r < 4; r++) ds[n].v[h][r] =
			exp2_fast(p[n].v[h][r] - row_lse[r / 2][h]) * (ds[n].v[h][r] - row_delta[r / 2][h]);
		multiply_held<LD, DP, N>(dq, ds, k);
	}
	copies_wait(); /* as in keys_tile */
	if (rows > 0)
		store_rows<DP>(q_at(g.dqkv, z, at.batch, at.head, row), z.width, rows, z.head_dim, z.vec, dq,
			[&](int, int) { return z.scale; });
}

template <class T, int DP>
__global__ void __launch_bounds__(attention_warps<T, DP> * 32) attention_grad_queries(grad_args<T> g, attention_shape z)
{
	const int tiles = query_tiles(z, 16 * warp_count());
	for (int64_t i = blockIdx.x; i < (int64_t)tiles * z.heads * z.b; i += gridDim.x)
		queries_tile<T, DP>(g, z, item_at(i, tiles, z.heads, z.causal));
}

/* ---- launch ---- */

#define DELTA_WARPS 8

template <class T, int DP>
static enum status grad_start(const struct cuda_env *env, const grad_args<T> &g, const struct attention_shape &z,
	struct error *e)
{
	auto shared_of = [](int n) { return grad_shared_B<T, DP>(16 * n); };
	int warps = 0;
	enum status st = warps_that_fit(attention_warps<T, DP>, shared_of, &warps, e);
	if (st)
		return st;
	const size_t shared_B = shared_of(warps);
	st = start_shared<attention_grad_keys<T, DP>>(env->stream,
		(int64_t)key_tiles(z, 16 * warps) * z.b * z.kv_heads * (DP / held_cols<DP>), 32 * warps, shared_B, e, g,
		z);
	return st ? st
	          : start_shared<attention_grad_queries<T, DP>>(env->stream,
			    (int64_t)query_tiles(z, 16 * warps) * z.b * z.heads, 32 * warps, shared_B, e, g, z);
}

/* `visitors` as in forward_start, dkeys likewise. Behind visitors out, lse, dout, delta, dqkv. */
static enum status grads_start(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	int visitors, int dkeys, struct error *e)
{
	const int out = visitors + 1, lse = out + 1, dout = lse + 1, delta = dout + 1, dqkv = delta + 1;
	struct attention_shape z = {};
	enum status st = attention_shape_of(env, op, &z, e);
	if (st || (st = same_format(op, arg, 0, 1u << visitors | 1u << out | 1u << dout | 1u << dqkv | 1u << dkeys, e)))
		return st;
	return with_format(arg[0].dtype, e, [&](auto format) {
		using T = typename decltype(format)::type;
		const grad_args<T> g = {(const T *)arg[0].at,
			(const T *)arg[visitors].at + (visitors ? 0 : z.out_width), (const T *)arg[dout].at,
			(const float *)arg[lse].at, (const float *)arg[delta].at, (T *)arg[dqkv].at,
			(T *)arg[dkeys].at + (visitors ? 0 : z.out_width)};
		z.vec = attention_fits(arg, 0, out) && attention_fits(arg, dout, 1) &&
		        attention_fits(arg, dqkv, dkeys - dqkv + 1) && z.head_dim % vec_of<T>::N == 0;
		const int64_t rows = (int64_t)z.b * z.s * z.heads, blocks = (rows + DELTA_WARPS - 1) / DELTA_WARPS;
		enum status first = ST_OK;
		if (!z.adds) /* else delta is there */
			first = start_shared<attention_delta<T>>(env->stream, blocks, 32 * DELTA_WARPS, 0, e,
				(const T *)arg[out].at, g.dout, (float *)arg[delta].at, z);
		return first ? first : with_head_dim(z.head_dim, [&](auto dim) {
			return grad_start<T, decltype(dim)::value>(env, g, z, e);
		});
	});
}

enum status launch_attention_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return grads_start(env, op, arg, 0, 5, e);
}

enum status launch_attention_part_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return grads_start(env, op, arg, 1, 7, e);
}
