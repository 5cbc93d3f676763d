/* Gradients of layer and RMS norm. Rows are shared as in kernels_norm.cu.
 *
 * With g = dy w and h = (x - mean) / sigma: dx = (g - mean(g) - h mean(g h)) / sigma, without mean(g) for RMS; dw and
 * db are column sums of dy h and dy. A thread has the same columns of each row that its block takes, and sums dw and db
 * of them in registers: x and dy cross the memory interface once. What the next row needs is read before this one's
 * sums are waited for. */
#include "exec/cuda/norm.cuh"

#define GRAD_THREADS_MAX 512
#define GRAD_WARPS 4
#define GRAD_WARP_BLOCKS 3 /* an SM, with up to 168 registers a thread */

template <class A, class W> struct norm_grad_args {
	const A *dy, *x;
	const W *w;
	const float *stats;
	A *dx;
	float *partial; /* [blocks, 2, cols]: dw, db */
	int64_t rows;
	int cols;
	bool rms, add;
};

/* One vector's part of the row's sums, and of dw and db. */
template <class A, class W, int V>
static __device__ __forceinline__ void grad_sums_at(const norm_grad_args<A, W> &p, const vec<A, V> &dy,
	const vec<A, V> &x, float mean, float inverse, int i, float *sum_g, float *sum_gh, float dw[V], float db[V])
{
	float w[V], d[V], f[V];
	load_vec<W, V>(p.w + i * V, w);
	unpack_vec<A, V>(dy, d);
	unpack_vec<A, V>(x, f);
	UNROLL
	for (int v = 0; v < V; v++) {
		const float h = (f[v] - mean) * inverse, g = d[v] * w[v];
		*sum_g += g;
		*sum_gh += g * h;
		dw[v] += d[v] * h;
		db[v] += d[v];
	}
}

template <class A, class W, int V>
static __device__ __forceinline__ void grad_at(const norm_grad_args<A, W> &p, const vec<A, V> &dy, const vec<A, V> &x,
	const vec<A, V> &old, float mean, float inverse, float mean_g, float mean_gh, A *dx, int i)
{
	float w[V], d[V], f[V];
	load_vec<W, V>(p.w + i * V, w);
	unpack_vec<A, V>(dy, d);
	unpack_vec<A, V>(x, f);
	UNROLL
	for (int v = 0; v < V; v++)
		f[v] = inverse * (d[v] * w[v] - mean_g - (f[v] - mean) * inverse * mean_gh);
	if (p.add) {
		unpack_vec<A, V>(old, d);
		UNROLL
		for (int v = 0; v < V; v++)
			f[v] += d[v];
	}
	store_vec<A, V>(dx + i * V, f);
}

/* Columns beyond those kept: their sums stand in `partial`, where only this thread touches them. */
template <class A, class W, int V>
static __device__ __forceinline__ void grad_sums_far(const norm_grad_args<A, W> &p, const A *dy, const A *x, float mean,
	float inverse, int i, float *sum_g, float *sum_gh, float *dw, float *db)
{
	float w[V], b[V];
	UNROLL
	for (int v = 0; v < V; v++) {
		w[v] = dw[i * V + v];
		b[v] = db[i * V + v];
	}
	grad_sums_at<A, W, V>(p, vec_at<A, V>(dy + i * V), vec_at<A, V>(x + i * V), mean, inverse, i, sum_g, sum_gh, w,
		b);
	UNROLL
	for (int v = 0; v < V; v++) {
		dw[i * V + v] = w[v];
		db[i * V + v] = b[v];
	}
}

/* Reads a thread's part of row r; reads nothing behind the last row. */
template <class A, class W, int V, int KEEP, class G>
static __device__ __forceinline__ void grad_read(const norm_grad_args<A, W> &p, int64_t r, vec<A, V> dy[KEEP],
	vec<A, V> x[KEEP])
{
	UNROLL
	for (int k = 0; k < KEEP; k++) {
		const int i = G::rank() + k * G::count();
		if (r < p.rows && i < p.cols / V) {
			dy[k] = vec_at<A, V>(p.dy + r * p.cols + i * V);
			x[k] = vec_at<A, V>(p.x + r * p.cols + i * V);
		}
	}
}

static __device__ __forceinline__ float2 grad_stats(const float *stats, int64_t r, int64_t rows)
{
	return r < rows ? make_float2(stats[2 * r], stats[2 * r + 1]) : make_float2(0.0f, 0.0f);
}

/* From registers to `partial`; where each warp has rows of its own they are added up first, warp after warp. */
template <class G, int KEEP, int V>
static __device__ __forceinline__ void grad_partial(const float sum[KEEP][V], int cols, float *partial)
{
	const int count = G::count(), rank = G::rank(), n = cols / V;
	if constexpr (!G::WARPS) {
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (rank + k * count < n)
				UNROLL
		for (int v = 0; v < V; v++)
			partial[(rank + k * count) * V + v] = sum[k][v];
	} else {
		__shared__ float total[KEEP * WARP * V];
		for (int w = 0; w < warp_count(); w++) {
			if (warp_rank() == w)
				UNROLL
			for (int k = 0; k < KEEP; k++)
				UNROLL
			for (int v = 0; v < V; v++) {
				float *at = &total[(k * V + v) * WARP + rank];
				*at = w ? *at + sum[k][v] : sum[k][v];
			}
			block_sync();
		}
		const int kept = n < KEEP * count ? cols : KEEP * count * V;
		for (int c = thread_rank(); c < kept; c += thread_count())
			partial[c] = total[(c / V / count * V + c % V) * WARP + c / V % count];
		block_sync();
	}
}

template <class A, class W, int V, int KEEP, class G, bool AHEAD>
__global__ void __launch_bounds__(G::WARPS ? GRAD_WARPS *WARP : GRAD_THREADS_MAX,
	G::WARPS ? (sizeof(W) > sizeof(A) ? 2 : GRAD_WARP_BLOCKS) : 1) norm_grad_kernel(norm_grad_args<A, W> p)
{
	const int n = p.cols / V, count = G::count(), rank = G::rank();
	float *const part_w = p.partial + (int64_t)blockIdx.x * 2 * p.cols, *const part_b = part_w + p.cols;
	float dw[KEEP][V] = {{0}}, db[KEEP][V] = {{0}};
	for (int i = rank + KEEP * count; i < n; i += count)
		for (int v = 0; v < V; v++)
			part_w[i * V + v] = part_b[i * V + v] = 0.0f;
	vec<A, V> dy[KEEP], x[KEEP], next_dy[AHEAD ? KEEP : 1], next_x[AHEAD ? KEEP : 1];
	float2 stats = {}, next_stats = {};
	if (AHEAD) {
		stats = grad_stats(p.stats, G::first(), p.rows);
		grad_read<A, W, V, KEEP, G>(p, G::first(), dy, x);
	}
	for (int64_t r = G::first(), next; r < p.rows; r = next) {
		next = r + G::stride();
		const A *row_dy = p.dy + r * p.cols, *row_x = p.x + r * p.cols;
		A *row_dx = p.dx + r * p.cols;
		vec<A, V> old[KEEP];
		if constexpr (AHEAD) {
			next_stats = grad_stats(p.stats, next, p.rows);
			grad_read<A, W, V, KEEP, G>(p, next, next_dy, next_x);
		} else {
			stats = grad_stats(p.stats, r, p.rows);
			grad_read<A, W, V, KEEP, G>(p, r, dy, x);
		}
		const float mean = stats.x, inverse = stats.y;
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (p.add && rank + k * count < n)
				old[k] = vec_at<A, V>(row_dx + (rank + k * count) * V);
		float mean_g = 0.0f, mean_gh = 0.0f;
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (rank + k * count < n)
				grad_sums_at<A, W, V>(p, dy[k], x[k], mean, inverse, rank + k * count, &mean_g,
					&mean_gh, dw[k], db[k]);
		for (int i = rank + KEEP * count; i < n; i += count)
			grad_sums_far<A, W, V>(p, row_dy, row_x, mean, inverse, i, &mean_g, &mean_gh, part_w, part_b);
		G::sum_pair(&mean_g, &mean_gh);
		mean_g = p.rms ? 0.0f : mean_g / (float)p.cols;
		mean_gh /= (float)p.cols;
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (rank + k * count < n)
				grad_at<A, W, V>(p, dy[k], x[k], old[k], mean, inverse, mean_g, mean_gh, row_dx,
					rank + k * count);
		for (int i = rank + KEEP * count; i < n; i += count)
			grad_at<A, W, V>(p, vec_at<A, V>(row_dy + i * V), vec_at<A, V>(row_x + i * V),
				vec_at<A, V>(row_dx + i * V), mean, inverse, mean_g, mean_gh, row_dx, i);
		if constexpr (AHEAD) {
			stats = next_stats;
			UNROLL
			for (int k = 0; k < KEEP; k++) {
				dy[k] = next_dy[k];
				x[k] = next_x[k];
			}
		}
	}
	grad_partial<G, KEEP, V>(dw, p.cols, part_w);
	grad_partial<G, KEEP, V>(db, p.cols, part_b);
}

#define GRAD_ROWS \
	8 /* of a block at least, where there are enough for all SMs: a partial sum costs as much memory traffic as \
	     three rows */

/* `an_sm`: blocks that fit an SM's registers. */
static int64_t grad_blocks(int64_t rows, int64_t an_sm, int64_t rows_at_once, int64_t sms)
{
	const int64_t most = sms * an_sm, least = rows < sms ? rows : sms,
		      fair = ceil_div(rows, GRAD_ROWS * rows_at_once);
	return fair < least ? least : fair < most ? fair : most;
}

#define GRAD_AN_SM_MAX 4
static int64_t grad_blocks_an_sm(int64_t threads)
{
	const int64_t fit = GRAD_THREADS_MAX / threads;
	return fit < 1 ? 1 : fit > GRAD_AN_SM_MAX ? GRAD_AN_SM_MAX : fit;
}

/* With the most values a thread, hence the fewest threads and the most blocks, that any instance takes. */
extern "C" size_t cuda_scratch_norm_grad_B(const struct op *op)
{
	const int64_t blocks = grad_blocks(op->matrix.rows, grad_blocks_an_sm(1 + op->matrix.cols / 16), 1,
		COLUMNS_SMS_MAX);
	return (size_t)blocks * 2 * (size_t)op->matrix.cols * sizeof(float);
}

template <class A, class W, int V, int KEEP, class G, bool AHEAD>
static enum status norm_grad_instance(const struct cuda_env *env, const norm_grad_args<A, W> &p, int64_t threads,
	int64_t *blocks, struct error *e)
{
	threads = threads < GRAD_THREADS_MAX ? threads : GRAD_THREADS_MAX;
	const int64_t wanted = G::WARPS ? grad_blocks(p.rows, GRAD_WARP_BLOCKS, GRAD_WARPS, sms_of(env))
	                                : grad_blocks(p.rows, grad_blocks_an_sm(threads), 1, sms_of(env));
	*blocks = columns_chunks(wanted, env->scratch_B, (size_t)p.cols * 2 * sizeof(float));
	if (p.rows && p.cols && !*blocks)
		return error_set(e, ST_RUN, "norm_grad needs more than %zu B of scratch", env->scratch_B);
	return start<norm_grad_kernel<A, W, V, KEEP, G, AHEAD>>(env->stream, dim3((unsigned)*blocks), (int)threads, e,
		p);
}

/* *blocks: how many partial sums there are then. */
template <class A, class W, int V>
static enum status norm_grad_start(const struct cuda_env *env, const norm_grad_args<A, W> &p, int64_t *blocks,
	struct error *e)
{
	constexpr int SHORT = V == 1 ? 8 : 4, LONG = V == 1 ? 8 : 2, LONGEST = 3;
	const int64_t n = p.cols / V;
	if (n <= WARP * SHORT)
		return norm_grad_instance<A, W, V, SHORT, warp_row, false>(env, p, GRAD_WARPS * WARP, blocks, e);
	if constexpr (V > 1 &&
		      sizeof(W) == sizeof(A)) /* fp32 weights beside narrow activations would not fit the registers */
		if (n > GRAD_THREADS_MAX * LONG)
			return norm_grad_instance<A, W, V, LONGEST, block_row, false>(env, p,
				ceil_div(ceil_div(n, LONGEST), WARP) * WARP, blocks, e);
	return norm_grad_instance<A, W, V, LONG, block_row, (V > 1)>(env, p, ceil_div(ceil_div(n, LONG), WARP) * WARP,
		blocks, e);
}

extern "C" enum status launch_norm_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t rows = op->matrix.rows, cols = op->matrix.cols;
	const unsigned activations = 1 << 0 | 1 << 1 | 1 << 4;
	if (same_format(op, arg, 0, activations, e) || same_format(op, arg, 5, 1 << 5 | 1 << 6, e) || check_cols(op, e))
		return ST_RUN;
	if (arg[3].dtype != DT_FP32)
		return error_set(e, ST_RUN, "norm_grad: stats as %s, must be fp32", dtype_name(arg[3].dtype));
	int64_t blocks = 0;
	float *partial = (float *)env->scratch;
	enum status st = with_format_or_fp32(arg[0].dtype, arg[2].dtype, e, [&](auto a, auto w) {
		using A = typename decltype(a)::type;
		using W = typename decltype(w)::type;
		const norm_grad_args<A, W> p = {(const A *)arg[0].at, (const A *)arg[1].at, (const W *)arg[2].at,
			(const float *)arg[3].at, (A *)arg[4].at, partial, rows, (int)cols, (op->flags & OP_RMS) != 0,
			(op->flags & OP_DX_ACCUMULATE) != 0};
		return with_width<A>(all_aligned(arg, activations | 1 << 2) && cols % vec_of<A>::N == 0,
			[&](auto v) { return norm_grad_start<A, W, decltype(v)::value>(env, p, &blocks, e); });
	});
	if (st)
		return st;
	return with_format(arg[5].dtype, e, [&](auto g) {
		using T = typename decltype(g)::type;
		return columns_finish<T>(env, partial, blocks, 2 * cols, cols, (T *)arg[5].at, (T *)arg[6].at,
			(op->flags & OP_ACCUMULATE) != 0, e);
	});
}
