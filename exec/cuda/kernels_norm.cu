/* Layer and RMS norm, alone and behind a residual add.
 *
 * A row is shared by a warp when it is short, else by a block. Each of its threads keeps KEEP vectors of the row in
 * registers, as stored, from the first pass over them to the last; of rows too long for that the rest is read again. */
#include "exec/cuda/norm.cuh"

#define ROW_THREADS_MAX 1024
#define ROW_WARPS 8  /* rows of a block whose warps have one each */
#define ROW_WAVES 64 /* blocks an SM at most */

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
