/* Experts: a warp chooses a row's, a block deals one expert's places; rows go to their slots and back a block a row. */
#include "exec/cuda/map.cuh"
#include "exec/cuda/stream.cuh"

#define MOE_THREADS 256

struct routing {
	int64_t R, E, k, C;
};

static struct routing routing_of(const struct op *op)
{
	return {op->route.rows, op->route.experts, op->route.choices, op->route.capacity};
}

/* ---- routing ---- */

struct choice {
	float logit;
	int64_t expert;
};

/* The largest logit behind `last`: smaller, or as large with a higher number. */
template <class T> static __device__ __forceinline__ choice next_choice(const T *logits, int64_t E, choice last)
{
	float best = -INFINITY;
	int64_t expert = E;
	for (int64_t e = lane_rank(); e < E; e += lane_count()) {
		const float x = to_float(logits[e]);
		if ((x < last.logit || (x == last.logit && e > last.expert)) && (x > best || expert == E)) {
			best = x;
			expert = e;
		}
	}
	const float most = warp_max(best), least = -warp_max(best == most ? -(float)expert : -(float)E);
	return {most,
		least < (float)E ? (int64_t)least : E - 1}; /* no number among them: the step is lost, memory is not */
}

/* Until places are dealt, a choice of expert e stands as -1 - e, as one that is dropped. */
template <class T>
__global__ void __launch_bounds__(MOE_THREADS)
	route_kernel(const T *logits, float *gates, int32_t *slots, struct routing m)
{
	for (int64_t r = warp_row::first(); r < m.R; r += warp_row::stride()) {
		const T *row = logits + r * m.E;
		choice c = {INFINITY, -1};
		float first = 0.0f, sum = 0.0f;
		for (int64_t j = 0; j < m.k; j++) {
			c = next_choice(row, m.E, c);
			first = j ? first : c.logit;
			sum += expf(c.logit - first);
			if (lane_rank() == 0) {
				gates[r * m.k + j] = expf(c.logit - first);
				slots[r * m.k + j] = (int32_t)(-1 - c.expert);
			}
		}
		if (m.k == 1) {
			sum = 0.0f;
			for (int64_t e = lane_rank(); e < m.E; e += lane_count())
				sum += expf(to_float(row[e]) - first);
			sum = warp_sum(sum);
		}
		for (int64_t j = 0; j < m.k && lane_rank() == 0; j++)
			gates[r * m.k + j] /= sum;
	}
}

/* An expert's places to its choices, first choices first, each in the order of rows. Every thread has a stretch of
 * them. */
__global__ void __launch_bounds__(MOE_THREADS) deal_kernel(int32_t *slots, int32_t *taken, struct routing m)
{
	__shared__ int32_t counts[MOE_THREADS];
	const int64_t n = m.R * m.k, stretch = (n + thread_count() - 1) / thread_count(),
		      begin = thread_rank() * stretch, end = begin + stretch < n ? begin + stretch : n;
	for (int64_t expert = blockIdx.x; expert < m.E; expert += gridDim.x) {
		int32_t own = 0;
		int64_t place = 0, all = 0;
		for (int64_t i = begin; i < end; i++)
			own += slots[i % m.R * m.k + i / m.R] == -1 - (int32_t)expert;
		counts[thread_rank()] = own;
		block_sync();
		for (int t = 0; t < thread_count(); t++) {
			place += t < thread_rank() ? counts[t] : 0;
			all += counts[t];
		}
		for (int64_t i = begin; i < end && place < m.C; i++) {
			const int64_t at = i % m.R * m.k + i / m.R;
			if (slots[at] != -1 - (int32_t)expert)
				continue;
			taken[expert * m.C + place] = (int32_t)at;
			slots[at] = (int32_t)(expert * m.C + place++);
		}
		for (int64_t p = all + thread_rank(); p < m.C; p += thread_count())
			taken[expert * m.C + p] = -1;
		block_sync();
	}
}

extern "C" enum status launch_route(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct routing m = routing_of(op);
	float *gates = (float *)arg[1].at;
	int32_t *slots = (int32_t *)arg[2].at;
	enum status st = with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<route_kernel<T>>(env->stream, stream_grid(env, m.R, MOE_THREADS / WARP), MOE_THREADS, e,
			(const T *)arg[0].at, gates, slots, m);
	});
	return st ? st
	          : start<deal_kernel>(env->stream, dim3((unsigned)m.E), MOE_THREADS, e, slots, (int32_t *)arg[3].at,
			    m);
}

template <class T>
__global__ void __launch_bounds__(MOE_THREADS) route_grad_kernel(const T *logits, const float *gates,
	const int32_t *slots, const float *dgates, T *dlogits, struct routing m)
{
	for (int64_t r = warp_row::first(); r < m.R; r += warp_row::stride()) {
		const int64_t first = r * m.k;
		const auto expert = [&](int64_t i) {
			return slots[i] < 0 ? -1 - (int64_t)slots[i] : (int64_t)slots[i] / m.C;
		};
		const auto dgate = [&](int64_t i) { return slots[i] < 0 ? 0.0f : dgates[slots[i]]; };
		float mean = 0.0f;
		for (int64_t i = first; i < first + m.k; i++)
			mean += gates[i] * dgate(i);
		const float own = to_float(logits[r * m.E + expert(first)]);
		for (int64_t e = lane_rank(); e < m.E; e += lane_count()) {
			float d = m.k == 1 ? mean * ((e == expert(first) ? 1.0f : 0.0f) -
							    gates[first] * expf(to_float(logits[r * m.E + e]) - own))
			                   : 0.0f;
			for (int64_t i = first; i < first + m.k && m.k > 1; i++)
				d += e == expert(i) ? gates[i] * (dgate(i) - mean) : 0.0f;
			dlogits[r * m.E + e] = from_float<T>(d);
		}
	}
}

extern "C" enum status launch_route_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct routing m = routing_of(op);
	const enum status st = same_format(op, arg, 0, 1 << 4, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<route_grad_kernel<T>>(env->stream, stream_grid(env, m.R, MOE_THREADS / WARP), MOE_THREADS,
			e, (const T *)arg[0].at, (const float *)arg[1].at, (const int32_t *)arg[2].at,
			(const float *)arg[3].at, (T *)arg[4].at, m);
	});
}

/* ---- rows to slots and back ---- */

struct slot_rows {
	int64_t rows, cols, k; /* rows that the blocks go over: slots, or rows of tokens */
	bool spans, adds;
};

template <class T>
__global__ void __launch_bounds__(MOE_THREADS)
	dispatch_kernel(const T *x, const int32_t *taken, T *y, struct slot_rows m)
{
	for (int64_t s = blockIdx.x; s < m.rows; s += gridDim.x) {
		const int64_t row = taken[s] < 0 ? -1 : taken[s] / m.k;
		for_columns<vec_of<T>::N>(m.cols, m.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float v[C] = {};
			if (row >= 0)
				load_vec<T, C>(x + row * m.cols + c, v);
			store_vec<T, C>(y + s * m.cols + c, v);
		});
	}
}

template <class T>
__global__ void __launch_bounds__(MOE_THREADS)
	combine_kernel(const T *y, const int32_t *slots, const float *gates, T *x, struct slot_rows m)
{
	for (int64_t r = blockIdx.x; r < m.rows; r += gridDim.x)
		for_columns<vec_of<T>::N>(m.cols, m.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float sum[C] = {}, v[C];
			if (m.adds)
				load_vec<T, C>(x + r * m.cols + c, sum);
			for (int64_t j = r * m.k; j < (r + 1) * m.k; j++) {
				if (slots[j] < 0)
					continue;
				const float gate = gates ? gates[j] : 1.0f;
				load_vec<T, C>(y + slots[j] * m.cols + c, v);
				UNROLL
				for (int i = 0; i < C; i++)
					sum[i] += gate * v[i];
			}
			store_vec<T, C>(x + r * m.cols + c, sum);
		});
}

template <class T>
__global__ void __launch_bounds__(MOE_THREADS) combine_grad_kernel(const T *y, const T *dx, const int32_t *taken,
	const float *gates, T *dy, float *dgates, struct slot_rows m)
{
	for (int64_t s = blockIdx.x; s < m.rows; s += gridDim.x) {
		const int32_t choice = taken[s];
		const float gate = choice < 0 ? 0.0f : gates[choice];
		float dot = 0.0f;
		for_columns<vec_of<T>::N>(m.cols, m.spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float d[C] = {}, v[C] = {};
			if (choice >= 0) {
				load_vec<T, C>(dx + choice / m.k * m.cols + c, d);
				load_vec<T, C>(y + s * m.cols + c, v);
			}
			UNROLL
			for (int i = 0; i < C; i++) {
				dot += d[i] * v[i];
				d[i] *= gate;
			}
			store_vec<T, C>(dy + s * m.cols + c, d);
		});
		dot = block_sum(dot);
		if (thread_rank() == 0)
			dgates[s] = dot;
	}
}

/* f(format, rows): the launch over `rows` rows; all arguments of the mask `args`, and argument 0, are in one format. */
template <class F>
static enum status over_rows(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], int64_t rows, unsigned args,
	struct error *e, F f)
{
	const enum status st = same_format(op, arg, 0, args, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		const bool vectors = op->dispatch.cols % vec_of<T>::N == 0 && all_aligned(arg, args | 1);
		return f(x,
			slot_rows{rows, op->dispatch.cols, op->dispatch.choices, vectors,
				(op->flags & OP_ACCUMULATE) != 0},
			row_threads(op->dispatch.cols, sizeof(T), 1, MOE_THREADS));
	});
}

extern "C" enum status launch_dispatch(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return over_rows(op, arg, op->dispatch.slots, 1 << 2, e, [&](auto x, slot_rows m, int threads) {
		using T = typename decltype(x)::type;
		return start<dispatch_kernel<T>>(env->stream, stream_grid(env, m.rows, 1), threads, e,
			(const T *)arg[0].at, (const int32_t *)arg[1].at, (T *)arg[2].at, m);
	});
}

extern "C" enum status launch_combine(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return over_rows(op, arg, op->dispatch.rows, 1 << 3, e, [&](auto x, slot_rows m, int threads) {
		using T = typename decltype(x)::type;
		return start<combine_kernel<T>>(env->stream, stream_grid(env, m.rows, 1), threads, e,
			(const T *)arg[0].at, (const int32_t *)arg[1].at, (const float *)arg[2].at, (T *)arg[3].at, m);
	});
}

extern "C" enum status launch_combine_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return over_rows(op, arg, op->dispatch.slots, 1 << 1 | 1 << 4, e, [&](auto x, slot_rows m, int threads) {
		using T = typename decltype(x)::type;
		return start<combine_grad_kernel<T>>(env->stream, stream_grid(env, m.rows, 1), threads, e,
			(const T *)arg[0].at, (const T *)arg[1].at, (const int32_t *)arg[2].at,
			(const float *)arg[3].at, (T *)arg[4].at, (float *)arg[5].at, m);
	});
}

/* ---- between ranks and experts ---- */

template <class T>
__global__ void __launch_bounds__(MOE_THREADS)
	swap_kernel(const T *x, T *y, int64_t a, int64_t b, int64_t cols, bool spans)
{
	for (int64_t i = blockIdx.x; i < a * b; i += gridDim.x) {
		const T *from = x + (i % a * b + i / a) * cols;
		for_columns<vec_of<T>::N>(cols, spans, [&](int64_t c, auto count) {
			constexpr int C = decltype(count)::value;
			float v[C];
			load_vec<T, C>(from + c, v);
			store_vec<T, C>(y + i * cols + c, v);
		});
	}
}

extern "C" enum status launch_swap(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t a = op->swap.outer, b = op->swap.inner, cols = op->swap.cols;
	const enum status st = same_format(op, arg, 0, 1 << 1, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		const bool vectors = cols % vec_of<T>::N == 0 && all_aligned(arg, 3);
		return start<swap_kernel<T>>(env->stream, stream_grid(env, a * b, 1),
			row_threads(cols, sizeof(T), 1, MOE_THREADS), e, (const T *)arg[0].at, (T *)arg[1].at, a, b,
			cols, vectors);
	});
}
