/* Residual adds, biases and their gradients. */
#include "exec/cuda/map.cuh"

#include "exec/cuda/columns.cuh"

/* sum = x + y (+ bias, one value a column); y NULL: x + bias */
template <class A, class W, int V> struct add_map {
	const A *x, *y;
	const W *bias;
	A *sum;
	int64_t width; /* vectors in a row */
	struct item {
		vec<A, V> x, y;
	};

	__device__ __forceinline__ item read(int64_t i) const
	{
		item in;
		in.x = vec_at<A, V>(x + i * V);
		if (y)
			in.y = vec_at<A, V>(y + i * V);
		return in;
	}

	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float s[V], t[V];
		unpack_vec<A, V>(in.x, s);
		if (y) {
			unpack_vec<A, V>(in.y, t);
			UNROLL
			for (int v = 0; v < V; v++)
				s[v] += t[v];
		}
		if (bias) {
			int64_t column;
			divide(i, width, &column);
			load_vec<W, V>(bias + column * V, t);
			UNROLL
			for (int v = 0; v < V; v++)
				s[v] += t[v];
		}
		store_vec<A, V>(sum + i * V, s);
	}
};

/* Without a bias rows do not matter: what is left behind the whole vectors goes one by one. */
template <class A>
static enum status add_flat(const struct cuda_env *env, const A *x, const A *y, A *sum, int64_t n, bool vectors,
	struct error *e)
{
	constexpr int V = vec_of<A>::N;
	const int64_t whole = vectors ? n / V : 0, done = whole * V;
	enum status st = map(env, add_map<A, A, V>{x, y, NULL, sum, 1}, whole, e);
	return st ? st : map(env, add_map<A, A, 1>{x + done, y + done, NULL, sum + done, 1}, n - done, e);
}

extern "C" enum status launch_add(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t rows = op->matrix.rows, cols = op->matrix.cols;
	if (same_format(op, arg, 0, 1 << 1 | 1 << 3, e))
		return ST_RUN;
	if (!arg[2].at)
		return with_format(arg[0].dtype, e, [&](auto a) {
			using A = typename decltype(a)::type;
			return add_flat(env, (const A *)arg[0].at, (const A *)arg[1].at, (A *)arg[3].at, rows * cols,
				all_aligned(arg, 1 << 0 | 1 << 1 | 1 << 3), e);
		});
	return with_format_or_fp32(arg[0].dtype, arg[2].dtype, e, [&](auto a, auto w) {
		using A = typename decltype(a)::type;
		using W = typename decltype(w)::type;
		return with_width<A>(all_aligned(arg, 0xf) && cols % vec_of<A>::N == 0, [&](auto v) {
			constexpr int V = decltype(v)::value;
			return map_rows(env, op,
				add_map<A, W, V>{(const A *)arg[0].at, (const A *)arg[1].at, (const W *)arg[2].at,
					(A *)arg[3].at, cols / V},
				rows * (cols / V), e);
		});
	});
}

extern "C" enum status launch_bias(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t rows = op->matrix.rows, cols = op->matrix.cols;
	return with_format_or_fp32(arg[0].dtype, arg[1].dtype, e, [&](auto a, auto w) {
		using A = typename decltype(a)::type;
		using W = typename decltype(w)::type;
		return with_width<A>(all_aligned(arg, 0x3) && cols % vec_of<A>::N == 0, [&](auto v) {
			constexpr int V = decltype(v)::value;
			return map_rows(env, op,
				add_map<A, W, V>{(const A *)arg[0].at, NULL, (const W *)arg[1].at, (A *)arg[0].at,
					cols / V},
				rows * (cols / V), e);
		});
	});
}

/* ---- column sums: partial sums of chunks of rows first ---- */

#define TILE_WARPS 8
#define TILE_BLOCKS 8 /* an SM holds as many */
#define TILE_ROWS 32  /* of a chunk at least */

/* A block has the columns of a tile, a vector for each lane of a warp; its warps take the chunk's rows in turn. */
static int64_t tiles_of(int64_t cols, int64_t width) { return (cols + WARP * width - 1) / (WARP * width); }

static int64_t tile_chunks(int64_t rows, int64_t tiles, int64_t sms)
{
	const int64_t fill = tiles ? (TILE_BLOCKS * (sms > 0 ? sms : 1) + tiles - 1) / tiles : 0,
		      most = (rows + TILE_ROWS - 1) / TILE_ROWS;
	return fill < most ? fill : most;
}

template <class A, int V>
__global__ void __launch_bounds__(TILE_WARPS *WARP)
	column_tile_kernel(const A *dy, float *partial, int64_t rows, int64_t cols)
{
	__shared__ float part[TILE_WARPS][WARP * V];
	const int64_t begin = rows * blockIdx.y / gridDim.y, end = rows * (blockIdx.y + 1) / gridDim.y,
		      first = (int64_t)blockIdx.x * WARP * V;
	const int64_t step = warp_count();
	for (int lane = lane_rank(); lane < WARP; lane += lane_count()) {
		const int64_t column = first + lane * V;
		float sum[V] = {0};
		int64_t r = column < cols ? begin + warp_rank() : end;
		const A *at = dy + r * cols + column;
		for (; r + 3 * step < end; r += 4 * step, at += 4 * step * cols) {
			vec<A, V> row[4];
			UNROLL
			for (int k = 0; k < 4; k++)
				row[k] = vec_at<A, V>(at + k * step * cols);
			UNROLL
			for (int k = 0; k < 4; k++)
				for (int v = 0; v < V; v++)
					sum[v] += to_float(row[k].at[v]);
		}
		for (; r < end; r += step, at += step * cols) {
			const vec<A, V> row = vec_at<A, V>(at);
			for (int v = 0; v < V; v++)
				sum[v] += to_float(row.at[v]);
		}
		for (int v = 0; v < V; v++)
			part[warp_rank()][v * WARP + lane] = sum[v];
	}
	block_sync();
	for (int i = thread_rank(); i < WARP * V; i += thread_count()) {
		float sum = 0.0f;
		for (int w = 0; w < warp_count(); w++)
			sum += part[w][i % V * WARP + i / V];
		if (first + i < cols)
			partial[blockIdx.y * cols + first + i] = sum;
	}
}

extern "C" size_t cuda_scratch_bias_grad_B(const struct op *op)
{
	return (size_t)tile_chunks(op->matrix.rows, tiles_of(op->matrix.cols, vec_of<__half>::N), COLUMNS_SMS_MAX) *
	       (size_t)op->matrix.cols * sizeof(float);
}

extern "C" enum status launch_bias_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t rows = op->matrix.rows, cols = op->matrix.cols;
	float *partial = (float *)env->scratch;
	const bool accumulate = op->flags & OP_ACCUMULATE;
	return with_formats(arg[0].dtype, arg[1].dtype, e, [&](auto a, auto g) {
		using A = typename decltype(a)::type;
		using G = typename decltype(g)::type;
		const bool vectors = is_aligned(arg[0].at) && cols % vec_of<A>::N == 0;
		const int64_t tiles = tiles_of(cols, vectors ? vec_of<A>::N : 1);
		const int64_t chunks = columns_chunks(tile_chunks(rows, tiles, env->sms), env->scratch_B,
			(size_t)cols * sizeof(float));
		if (rows && cols && !chunks)
			return error_set(e, ST_RUN, "bias_grad needs scratch, has %zu B", env->scratch_B);
		enum status st = with_width<A>(vectors, [&](auto v) {
			return start<column_tile_kernel<A, decltype(v)::value>>(env->stream,
				dim3((unsigned)tiles, (unsigned)chunks), TILE_WARPS * WARP, e, (const A *)arg[0].at,
				partial, rows, cols);
		});
		return st ? st
		          : columns_finish<G>(env, partial, chunks, cols, cols, (G *)arg[1].at, NULL, accumulate, e);
	});
}
