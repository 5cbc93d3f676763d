/* The rows of naive attention's scores, a block a row. The products around them are cuBLASLt's, which can neither mask
 * nor bias: SCORES leaves Q K^T / sqrt(D), and the softmax adds ALiBi's bias and masks while it reads. Columns behind a
 * causal row's own place are never read, only written with zeros; where the keys are those of a context group
 * (attn.keys), whose positions do not follow each other, all are. */
#include "exec/cuda/stream.cuh"

#define SOFTMAX_KEEP 4
#define SOFTMAX_THREADS 512

struct softmax_job {
	int64_t rows, s, H, keys;
	bool causal, alibi, gathered;
	struct cut cut;
	int64_t first_head, power; /* power: of two, the largest that is not above the heads of the whole model */
};

/* alibi_slope of exec/host/kernels.h on the device. */
static __device__ __forceinline__ float slope_of(const struct softmax_job &j, int64_t head)
{
	return exp2f(head < j.power ? -8.0f * (float)(head + 1) / (float)j.power
				    : -4.0f * (float)(2 * (head - j.power) + 1) / (float)j.power);
}

/* Of the key in a column. */
static __device__ __forceinline__ int64_t key_position(const struct softmax_job &j, int column)
{
	const struct cut from = {j.cut.ranks, column / (int)j.s, j.cut.chunks};
	return cut_position(&from, j.s, column % (int)j.s);
}

/* Columns that a row at `place` reads. */
static __device__ __forceinline__ int64_t columns_of(const struct softmax_job &j, int64_t place)
{
	return j.causal && !j.gathered ? place + 1 : j.keys;
}

template <class T>
__global__ void __launch_bounds__(SOFTMAX_THREADS) attn_softmax_kernel(T *scores, struct softmax_job j)
{
	for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
		int64_t place;
		const int64_t head = divide(r, j.s, &place), n = columns_of(j, place),
			      position = j.gathered ? cut_position(&j.cut, j.s, place) : place;
		const float slope = j.alibi ? slope_of(j, j.first_head + head % j.H) : 0.0f;
		row_walk<T, SOFTMAX_KEEP> w(scores + r * j.keys, n);
		const auto biased = [&](float x, int column) {
			const int64_t ahead = (j.gathered ? key_position(j, column) : column) - position;
			return j.causal && ahead > 0 ? -INFINITY : x + slope * (float)ahead;
		};
		struct softmax_sum sum = {-INFINITY, 0.0f};
		w.fold([&](auto &x, int column) {
			UNROLL
			for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
				x[i] = biased(x[i], column + i);
			sum.add(x);
		});
		sum.meet();
		const float factor = 1.0f / sum.sum;
		w.map([&](auto &x, int column) {
			UNROLL
			for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
				x[i] = exp_below(biased(x[i], column + i) - sum.max) * factor;
		});
		clear_row(w.at, n, j.keys);
	}
}

/* dp becomes p (dp - sum of p dp). */
template <class T>
__global__ void __launch_bounds__(SOFTMAX_THREADS)
	attn_softmax_grad_kernel(const T *probs, T *dprobs, struct softmax_job j)
{
	constexpr int N = vec_of<T>::N;
	for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
		const T *p = probs + r * j.keys;
		int64_t place;
		divide(r, j.s, &place);
		const int64_t n = columns_of(j, place);
		row_walk<T, SOFTMAX_KEEP> w(dprobs + r * j.keys, n,
			((uintptr_t)p - (uintptr_t)(dprobs + r * j.keys)) % 16 == 0);
		const auto read = [&](auto &x, int column) {
			constexpr int C = (int)(sizeof x / sizeof x[0]);
			static_assert(C == 1 || C == N, "scalars or whole vectors");
			load_vec<T, C>(p + column, x);
		};
		float sum = 0.0f;
		w.fold([&](auto &x, int column) {
			typename std::remove_reference<decltype(x)>::type q;
			read(q, column);
			UNROLL
			for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
				sum += q[i] * x[i];
		});
		sum = block_sum(sum);
		w.map([&](auto &x, int column) {
			typename std::remove_reference<decltype(x)>::type q;
			read(q, column);
			UNROLL
			for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
				x[i] = q[i] * (x[i] - sum);
		});
		clear_row(w.at, n, j.keys);
	}
}

static struct softmax_job job_of(const struct cuda_env *env, const struct op *op)
{
	const struct op_attn *d = &op->attn;
	int64_t power = 1;
	while (2 * power <= env->heads)
		power *= 2;
	return {d->batch * d->heads * d->seq, d->seq, d->heads, d->keys > 0 ? d->keys : d->seq,
		(op->flags & OP_CAUSAL) != 0, (op->flags & OP_ALIBI) != 0, d->keys > 0, env->cut,
		env->tensor_coord * d->heads, power};
}

extern "C" enum status launch_attn_softmax(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct softmax_job j = job_of(env, op);
	const enum status st = row_check(op, j.keys, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<attn_softmax_kernel<T>>(env->stream, stream_grid(env, j.rows, 1),
			row_threads(j.keys, sizeof(T), 2, SOFTMAX_THREADS), e, (T *)arg[0].at, j);
	});
}

extern "C" enum status launch_attn_softmax_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct softmax_job j = job_of(env, op);
	enum status st = same_format(op, arg, 0, 3, e);
	st = st ? st : row_check(op, j.keys, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<attn_softmax_grad_kernel<T>>(env->stream, stream_grid(env, j.rows, 1),
			row_threads(j.keys, sizeof(T), 2, SOFTMAX_THREADS), e, (const T *)arg[0].at, (T *)arg[1].at, j);
	});
}
