/* Tables of embeddings: a block goes over rows of the activations, its threads over the columns. Gradients of the token
 * table are added atomically, several columns at once; those of the position table are summed by the block that owns
 * the position, and the type's are the column sums of a bias gradient. */
#include "exec/cuda/stream.cuh"

#define EMBED_THREADS 256

/* Columns in spans of both formats' common length, the wider one in whole 16-byte vectors. */
template <class A, class B> struct both {
	static constexpr int N = 16 / (int)(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));
	static bool fit(const A *a, const B *b, int64_t cols)
	{
		return cols % N == 0 && span_fits<N>(a) && span_fits<N>(b);
	}
};

/* ---- tokens ---- */

struct table {
	const int32_t *tokens;
	int64_t T, cols, first, rows; /* rows: [first, first + rows) of the whole table */
	bool part, spans;             /* part: of a table that the tensor group shares */
	int32_t *flag, op;
};

/* Row of this rank's part that a token reads, -1 where it is another rank's, or nobody's, which is flagged. */
static __device__ __forceinline__ int64_t table_row(const struct table &t, int64_t token)
{
	const int64_t id = t.tokens[token], row = id - t.first;
	const bool here = row >= 0 && row < t.rows;
	if (!here && (!t.part || id < 0) && thread_rank() == 0)
		*t.flag = t.op;
	return here ? row : -1;
}

template <class W, class Y>
__global__ void __launch_bounds__(EMBED_THREADS) embed_kernel(const W *w, Y *y, struct table t)
{
	for (int64_t i = blockIdx.x; i < t.T; i += gridDim.x) {
		const int64_t row = table_row(t, i);
		Y *to = y + i * t.cols;
		const W *from = w + (row < 0 ? 0 : row) * t.cols;
		for_columns<both<W, Y>::N>(t.cols, t.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float x[C] = {};
			if (row >= 0)
				load_vec<W, C>(from + c, x);
			store_vec<Y, C>(to + c, x);
		});
	}
}

/* Values that the device adds in one atomic operation. */
#ifdef STEPSIM_TWIN
template <class T> struct at_once {
	static constexpr int N = 1;
};
template <class T> static __device__ __forceinline__ void atomic_add_some(T *at, const float *x) { atomic_add(at, *x); }
#else
template <class T> struct at_once {
#if __CUDA_ARCH__ >= 900
	static constexpr int N = sizeof(T) == 4 ? 4 : 2;
#else
	static constexpr int N = sizeof(T) == 4 ? 1 : 2;
#endif
};
static __device__ __forceinline__ void atomic_add_some(__half *at, const float *x)
{
	atomicAdd((__half2 *)at, __floats2half2_rn(x[0], x[1]));
}
static __device__ __forceinline__ void atomic_add_some(__nv_bfloat16 *at, const float *x)
{
	atomicAdd((__nv_bfloat162 *)at, __floats2bfloat162_rn(x[0], x[1]));
}
static __device__ __forceinline__ void atomic_add_some(float *at, const float *x)
{
#if __CUDA_ARCH__ >= 900
	atomicAdd((float4 *)at, make_float4(x[0], x[1], x[2], x[3]));
#else
	atomicAdd(at, x[0]);
#endif
}
#endif

/* at[0..C) += x; C > 1 only where `at` is aligned for it. */
template <int C, class T> static __device__ __forceinline__ void atomic_add_vec(T *at, const float (&x)[C])
{
	if constexpr (C % at_once<T>::N == 0) {
		UNROLL
		for (int i = 0; i < C; i += at_once<T>::N)
			atomic_add_some(at + i, x + i);
	} else {
		UNROLL
		for (int i = 0; i < C; i++)
			atomic_add(at + i, x[i]);
	}
}

template <class Y, class W>
__global__ void __launch_bounds__(EMBED_THREADS) embed_grad_kernel(const Y *dy, W *dw, struct table t)
{
	for (int64_t i = blockIdx.x; i < t.T; i += gridDim.x) {
		const int64_t row = table_row(t, i);
		if (row < 0)
			continue;
		const Y *from = dy + i * t.cols;
		W *to = dw + row * t.cols;
		for_columns<both<Y, W>::N>(t.cols, t.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float x[C];
			load_vec<Y, C>(from + c, x);
			atomic_add_vec<C>(to + c, x);
		});
	}
}

static struct table table_of(const struct cuda_env *env, const struct op *op, const struct cuda_arg *tokens)
{
	const bool part = op->flags & OP_VOCAB_PARALLEL;
	return {(const int32_t *)tokens->at, op->embed.rows, op->embed.cols,
		part ? env->tensor_coord * op->embed.table_rows : 0, op->embed.table_rows, part, false, env->flag,
		(int32_t)env->op + 1};
}

extern "C" enum status launch_embed(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return with_formats(arg[1].dtype, arg[2].dtype, e, [&](auto a, auto b) {
		using W = typename decltype(a)::type;
		using Y = typename decltype(b)::type;
		struct table t = table_of(env, op, &arg[0]);
		t.spans = both<W, Y>::fit((const W *)arg[1].at, (const Y *)arg[2].at, t.cols);
		return start<embed_kernel<W, Y>>(env->stream, stream_grid(env, t.T, 1),
			row_threads(t.cols, sizeof(Y), 1, EMBED_THREADS), e, (const W *)arg[1].at, (Y *)arg[2].at, t);
	});
}

extern "C" enum status launch_embed_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return with_formats(arg[1].dtype, arg[2].dtype, e, [&](auto a, auto b) {
		using Y = typename decltype(a)::type;
		using W = typename decltype(b)::type;
		struct table t = table_of(env, op, &arg[0]);
		t.spans = both<Y, W>::fit((const Y *)arg[1].at, (const W *)arg[2].at, t.cols);
		return start<embed_grad_kernel<Y, W>>(env->stream, stream_grid(env, t.T, 1),
			row_threads(t.cols, sizeof(Y), 1, EMBED_THREADS), e, (const Y *)arg[1].at, (W *)arg[2].at, t);
	});
}

/* ---- positions ---- */

struct positions {
	int64_t T, cols, s, first; /* s: this rank's rows of a sequence; first: the token of row 0 */
	struct cut cut;
	bool spans;
};

template <class W, class X>
__global__ void __launch_bounds__(EMBED_THREADS) position_kernel(const W *w, const W *type, X *x, struct positions p)
{
	for (int64_t i = blockIdx.x; i < p.T; i += gridDim.x) {
		int64_t place;
		divide(p.first + i, p.s, &place);
		const W *from = w ? w + cut_position(&p.cut, p.s, place) * p.cols : NULL;
		X *to = x + i * p.cols;
		for_columns<both<W, X>::N>(p.cols, p.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float v[C], a[C] = {}, b[C] = {};
			load_vec<X, C>(to + c, v);
			if (from)
				load_vec<W, C>(from + c, a);
			if (type)
				load_vec<W, C>(type + c, b);
			UNROLL
			for (int k = 0; k < C; k++)
				v[k] += a[k] + b[k];
			store_vec<X, C>(to + c, v);
		});
	}
}

/* A block a position of this rank's: the rows of its sequences that stand there, in their order. */
template <class X, class W>
__global__ void __launch_bounds__(EMBED_THREADS) position_grad_kernel(const X *dx, W *dw, struct positions p)
{
	for (int64_t place = blockIdx.x; place < p.s; place += gridDim.x) {
		const int64_t row = (place - p.first % p.s + p.s) % p.s;
		if (row >= p.T)
			continue;
		W *to = dw + cut_position(&p.cut, p.s, place) * p.cols;
		for_columns<both<X, W>::N>(p.cols, p.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float sum[C], v[C];
			load_vec<W, C>(to + c, sum);
			for (int64_t i = row; i < p.T; i += p.s) {
				load_vec<X, C>(dx + i * p.cols + c, v);
				UNROLL
				for (int k = 0; k < C; k++)
					sum[k] += v[k];
			}
			store_vec<W, C>(to + c, sum);
		});
	}
}

static struct positions positions_of(const struct cuda_env *env, const struct op *op)
{
	return {op->embed.rows, op->embed.cols, op->embed.table_rows / cut_ranks(&env->cut),
		op->flags & OP_SEQUENCE_PARALLEL ? env->tensor_coord * op->embed.rows : 0, env->cut, false};
}

extern "C" enum status launch_position(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct cuda_arg *const table = arg[0].at ? &arg[0] : &arg[1];
	const enum status st = same_format(op, arg, table == &arg[0] ? 0 : 1, 3, e);
	if (st || !table->at)
		return st;
	return with_formats(table->dtype, arg[2].dtype, e, [&](auto a, auto b) {
		using W = typename decltype(a)::type;
		using X = typename decltype(b)::type;
		const W *w = (const W *)arg[0].at, *type = (const W *)arg[1].at;
		X *x = (X *)arg[2].at;
		struct positions p = positions_of(env, op);
		p.spans = both<W, X>::fit(w, x, p.cols) && both<W, X>::fit(type, x, p.cols);
		return start<position_kernel<W, X>>(env->stream, stream_grid(env, p.T, 1),
			row_threads(p.cols, sizeof(X), 1, EMBED_THREADS), e, w, type, x, p);
	});
}

/* The type's gradient as what it is: a bias gradient that is added to. */
static struct op type_grad(const struct op *op)
{
	struct op sums = *op;
	sums.kind = OP_BIAS_GRAD;
	sums.flags = OP_ACCUMULATE;
	return sums;
}

extern "C" size_t cuda_scratch_position_grad_B(const struct op *op)
{
	const struct op sums = type_grad(op);
	return cuda_scratch_B(&sums);
}

extern "C" enum status launch_position_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	enum status st = ST_OK;
	if (arg[1].at)
		st = with_formats(arg[0].dtype, arg[1].dtype, e, [&](auto a, auto b) {
			using X = typename decltype(a)::type;
			using W = typename decltype(b)::type;
			struct positions p = positions_of(env, op);
			p.spans = both<X, W>::fit((const X *)arg[0].at, (const W *)arg[1].at, p.cols);
			return start<position_grad_kernel<X, W>>(env->stream, stream_grid(env, p.s, 1),
				row_threads(p.cols, sizeof(X), 1, EMBED_THREADS), e, (const X *)arg[0].at,
				(W *)arg[1].at, p);
		});
	if (st || !arg[2].at)
		return st;
	const struct op sums = type_grad(op);
	const struct cuda_arg sums_arg[OP_MAX_ARGS] = {arg[0], arg[2]};
	return launch_bias_grad(env, &sums, sums_arg, e);
}
