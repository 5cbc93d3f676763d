/* Layer and RMS norm, alone and behind a residual add, and their gradients.
 *
 * A row is shared by a warp when it is short, else by a block. Each of its threads keeps KEEP vectors of the row in
 * registers, as stored, from the first pass over them to the last; of rows too long for that the rest is read again. */
#include "exec/cuda/columns.cuh"
#include "exec/cuda/map.cuh"

#include <limits.h>

extern "C" {
#include "exec/host/kernels.h"
}

#define ROW_THREADS_MAX 1024
#define ROW_WARPS 8  /* rows of a block whose warps have one each */
#define ROW_WAVES 64 /* blocks an SM at most */
#define GRAD_THREADS_MAX 512
#define GRAD_WARPS 4
#define GRAD_WARP_BLOCKS 3 /* an SM, with up to 168 registers a thread */

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int sms_of(const struct cuda_env *env) { return env->sms > 0 ? env->sms : 1; }

static enum status check_cols(const struct op *op, struct error *e)
{
	return op->matrix.cols <= INT_MAX / 2
	               ? ST_OK
	               : error_set(e, ST_RUN, "%s: %lld columns, at most %d",
				 op_kind_info((enum op_kind)op->kind)->name, (long long)op->matrix.cols, INT_MAX / 2);
}

/* ---- forward ---- */

template <class A, class W> struct norm_args {
	const A *x, *y; /* y NULL: norm alone */
	const W *bias, *w, *b;
	A *sum, *out;
	float *stats;
	int64_t rows;
	int cols;
	bool rms;
};

template <class W, int V> static __device__ __forceinline__ void add_vec(const W *p, float to[V])
{
	float f[V];
	load_vec<W, V>(p, f);
	UNROLL
	for (int v = 0; v < V; v++)
		to[v] += f[v];
}

/* x + y + bias at column i V, as stored, which is what the gradient will see. */
template <class A, class W, int V>
static __device__ __forceinline__ vec<A, V> add_at(const vec<A, V> &x, const vec<A, V> &y, const W *bias, int i)
{
	float f[V], g[V];
	unpack_vec<A, V>(x, f);
	unpack_vec<A, V>(y, g);
	UNROLL
	for (int v = 0; v < V; v++)
		f[v] += g[v];
	if (bias)
		add_vec<W, V>(bias + i * V, f);
	return pack_vec<A, V>(f);
}

template <class A, class W, int V>
static __device__ __forceinline__ void norm_at(const norm_args<A, W> &p, const vec<A, V> &x, float mean, float inverse,
	A *out, int i)
{
	float f[V], w[V];
	unpack_vec<A, V>(x, f);
	load_vec<W, V>(p.w + i * V, w);
	UNROLL
	for (int v = 0; v < V; v++)
		f[v] = (f[v] - mean) * inverse * w[v];
	if (p.b)
		add_vec<W, V>(p.b + i * V, f);
	store_vec<A, V>(out + i * V, f);
}

template <class A, int V> static __device__ __forceinline__ float sum_of(const vec<A, V> &x)
{
	float f[V], sum = 0.0f;
	unpack_vec<A, V>(x, f);
	UNROLL
	for (int v = 0; v < V; v++)
		sum += f[v];
	return sum;
}

template <class A, int V> static __device__ __forceinline__ float square_of(const vec<A, V> &x, float mean)
{
	float f[V], sum = 0.0f;
	unpack_vec<A, V>(x, f);
	UNROLL
	for (int v = 0; v < V; v++)
		sum += (f[v] - mean) * (f[v] - mean);
	return sum;
}

template <class A, class W, int V, int KEEP, class G, bool ADD>
__global__ void __launch_bounds__(G::WARPS ? ROW_WARPS *WARP : ROW_THREADS_MAX, G::WARPS ? 2 : 1)
	norm_kernel(norm_args<A, W> p)
{
	const int n = p.cols / V, count = G::count(), rank = G::rank();
	for (int64_t r = G::first(); r < p.rows; r += G::stride()) {
		const A *x = p.x + r * p.cols;
		const A *y = ADD ? p.y + r * p.cols : NULL;
		A *sum = ADD ? p.sum + r * p.cols : NULL, *out = p.out + r * p.cols;
		vec<A, V> kept[KEEP], other[ADD ? KEEP : 1];
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (rank + k * count < n) {
				kept[k] = vec_at<A, V>(x + (rank + k * count) * V);
				if (ADD)
					other[ADD ? k : 0] = vec_at<A, V>(y + (rank + k * count) * V);
			}
		if (ADD) {
			UNROLL
			for (int k = 0; k < KEEP; k++)
				if (rank + k * count < n) {
					kept[k] = add_at<A, W, V>(kept[k], other[ADD ? k : 0], p.bias,
						rank + k * count);
					vec_put<A, V>(sum + (rank + k * count) * V, kept[k]);
				}
			for (int i = rank + KEEP * count; i < n; i += count)
				vec_put<A, V>(sum + i * V,
					add_at<A, W, V>(vec_at<A, V>(x + i * V), vec_at<A, V>(y + i * V), p.bias, i));
			x = sum;
		}
		float mean = 0.0f, square = 0.0f;
		if (!p.rms) {
			UNROLL
			for (int k = 0; k < KEEP; k++)
				if (rank + k * count < n)
					mean += sum_of<A, V>(kept[k]);
			for (int i = rank + KEEP * count; i < n; i += count)
				mean += sum_of<A, V>(vec_at<A, V>(x + i * V));
			mean = G::sum(mean) / (float)p.cols;
		}
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (rank + k * count < n)
				square += square_of<A, V>(kept[k], mean);
		for (int i = rank + KEEP * count; i < n; i += count)
			square += square_of<A, V>(vec_at<A, V>(x + i * V), mean);
		const float inverse = 1.0f / sqrtf(G::sum(square) / (float)p.cols + NORM_EPS);
		if (rank == 0) {
			p.stats[2 * r] = mean;
			p.stats[2 * r + 1] = inverse;
		}
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (rank + k * count < n)
				norm_at<A, W, V>(p, kept[k], mean, inverse, out, rank + k * count);
		for (int i = rank + KEEP * count; i < n; i += count)
			norm_at<A, W, V>(p, vec_at<A, V>(x + i * V), mean, inverse, out, i);
	}
}

template <class A, class W, int V, bool ADD>
static enum status norm_start(const struct cuda_env *env, const norm_args<A, W> &p, struct error *e)
{
	constexpr int SHORT = V == 1 ? 8 : 4, LONG = V == 1 ? 4 : 2;
	const int64_t n = p.cols / V, most = (int64_t)sms_of(env) * ROW_WAVES;
	if (n <= WARP * SHORT) {
		const int64_t blocks = ceil_div(p.rows, ROW_WARPS);
		return start<norm_kernel<A, W, V, SHORT, warp_row, ADD>>(env->stream,
			dim3((unsigned)(blocks < most ? blocks : most)), ROW_WARPS * WARP, e, p);
	}
	const int64_t threads = ceil_div(ceil_div(n, LONG), WARP) * WARP;
	return start<norm_kernel<A, W, V, LONG, block_row, ADD>>(env->stream,
		dim3((unsigned)(p.rows < most ? p.rows : most)),
		(int)(threads < ROW_THREADS_MAX ? threads : ROW_THREADS_MAX), e, p);
}

/* `at`: where the arguments x, w, b, out, stats stand, and with ADD y, bias, sum. */
struct norm_places {
	int x, y, bias, w, b, sum, out, stats;
};

template <bool ADD>
static enum status norm_launch(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	norm_places at, struct error *e)
{
	const unsigned activations = 1u << at.x | 1u << at.out | (ADD ? 1u << at.y | 1u << at.sum : 0),
		       weights = 1u << at.w | 1u << at.b | (ADD ? 1u << at.bias : 0);
	if (same_format(op, arg, at.x, activations, e) || same_format(op, arg, at.w, weights, e) || check_cols(op, e))
		return ST_RUN;
	if (arg[at.stats].dtype != DT_FP32)
		return error_set(e, ST_RUN, "%s: stats as %s, must be fp32", op_kind_info((enum op_kind)op->kind)->name,
			dtype_name(arg[at.stats].dtype));
	if (!op->matrix.rows || !op->matrix.cols)
		return ST_OK;
	return with_format_or_fp32(arg[at.x].dtype, arg[at.w].dtype, e, [&](auto a, auto w) {
		using A = typename decltype(a)::type;
		using W = typename decltype(w)::type;
		norm_args<A, W> p = {(const A *)arg[at.x].at, NULL, NULL, (const W *)arg[at.w].at,
			(const W *)arg[at.b].at, NULL, (A *)arg[at.out].at, (float *)arg[at.stats].at, op->matrix.rows,
			(int)op->matrix.cols, (op->flags & OP_RMS) != 0};
		if (ADD) {
			p.y = (const A *)arg[at.y].at;
			p.bias = (const W *)arg[at.bias].at;
			p.sum = (A *)arg[at.sum].at;
		}
		return with_width<A>(all_aligned(arg, activations | weights) && p.cols % vec_of<A>::N == 0,
			[&](auto v) { return norm_start<A, W, decltype(v)::value, ADD>(env, p, e); });
	});
}

extern "C" enum status launch_norm(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return norm_launch<false>(env, op, arg,
		norm_places{.x = 0, .y = -1, .bias = -1, .w = 1, .b = 2, .sum = -1, .out = 3, .stats = 4}, e);
}

extern "C" enum status launch_add_norm(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return norm_launch<true>(env, op, arg,
		norm_places{.x = 0, .y = 1, .bias = 2, .w = 3, .b = 4, .sum = 5, .out = 6, .stats = 7}, e);
}

/* ---- gradients ----
 * With g = dy w and h = (x - mean) / sigma: dx = (g - mean(g) - h mean(g h)) / sigma, without mean(g) for RMS; dw and
 * db are column sums of dy h and dy. A thread has the same columns of each row that its block takes, and sums dw and db
 * of them in registers: x and dy cross the memory interface once. What the next row needs is read before this one's
 * sums are waited for. */

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
