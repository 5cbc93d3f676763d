/* How kernels that do little arithmetic walk over memory: long arrays element by element (for_spans), and rows that a
 * block reduces and changes (row_walk). Both take 16 bytes at a time where addresses allow, and keep several such
 * accesses of a thread in flight. */
#ifndef STEPSIM_EXEC_CUDA_STREAM_CUH
#define STEPSIM_EXEC_CUDA_STREAM_CUH

#include <limits.h>
#include <string.h>

#include <type_traits>

#include "exec/cuda/dispatch.cuh"

/* ---- long arrays ---- */

/* True when spans of N values can begin at `p`; absent arrays are in nobody's way. */
template <int N, class T> static inline bool span_fits(const T *p)
{
	constexpr int W = N < vec_of<T>::N ? N : vec_of<T>::N;
	return (uintptr_t)p % (W * sizeof(T)) == 0;
}

#define STREAM_THREADS 256
#define STREAM_WAVES \
	64 /* blocks an SM at most: enough that the last of them end together, few enough that what a thread computes \
	      once costs nothing */

static inline unsigned stream_grid(const struct cuda_env *env, int64_t items, int64_t items_a_block)
{
	int64_t blocks = (items + items_a_block - 1) / items_a_block,
		most = (int64_t)(env->sms > 0 ? env->sms : 1) * STREAM_WAVES;
	return (unsigned)(blocks < most ? blocks : most);
}

/* f(i, count): elements [i, i + count) for a constant count, N where `spans` allows it and at the end 1. Each of the
 * grid's threads takes some, all together take [0, n) once. */
template <int N, class F> static __device__ __forceinline__ void for_spans(int64_t n, bool spans, F f)
{
	const int64_t first = (int64_t)blockIdx.x * thread_count() + thread_rank(),
		      stride = (int64_t)gridDim.x * thread_count();
	const int64_t whole = spans ? n / N : 0;
	for (int64_t i = first; i < whole; i += stride)
		f(i * N, std::integral_constant<int, N>{});
	for (int64_t i = whole * N + first; i < n; i += stride)
		f(i, std::integral_constant<int, 1>{});
}

/* ---- rows ---- */

/* f(c, count) for the columns of a row, as for_spans, by one block's threads. */
template <int N, class F> static __device__ __forceinline__ void for_columns(int64_t cols, bool spans, F f)
{
	const int64_t whole = spans ? cols / N : 0;
	for (int64_t i = thread_rank(); i < whole; i += thread_count())
		f(i * N, std::integral_constant<int, N>{});
	for (int64_t i = whole * N + thread_rank(); i < cols; i += thread_count())
		f(i, std::integral_constant<int, 1>{});
}

/* 16 bytes as four registers: narrow numbers held one by one would take a register each. */
struct alignas(16) packed {
	uint32_t at[4];
};

template <class T, int N> static __device__ __forceinline__ void unpack(const packed &from, float to[N])
{
	vec<T, N> v;
	memcpy(&v, &from, sizeof v);
	unpack_vec<T, N>(v, to);
}

template <class T, int N> static __device__ __forceinline__ packed pack(const float from[N])
{
	const vec<T, N> v = pack_vec<T, N>(from);
	packed to;
	memcpy(&to, &v, sizeof to);
	return to;
}

static __device__ __forceinline__ packed load_packed(const void *from)
{
#ifdef STEPSIM_TWIN
	packed p;
	memcpy(&p, __builtin_assume_aligned(from, 16), sizeof p);
	return p;
#else
	const uint4 u = *(const uint4 *)from;
	return {{u.x, u.y, u.z, u.w}};
#endif
}

static __device__ __forceinline__ void store_packed(void *to, packed p)
{
#ifdef STEPSIM_TWIN
	memcpy(__builtin_assume_aligned(to, 16), &p, sizeof p);
#else
	__stcg((uint4 *)to, make_uint4(p.at[0], p.at[1], p.at[2],
				    p.at[3])); /* a plain store of constant zeros would be cut in two */
#endif
}

/* exp(x) for x <= 0; results too small for a normal number are 0 on the device. */
static __device__ __forceinline__ float exp_below(float x)
{
#ifdef STEPSIM_TWIN
	return expf(x);
#else
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
	return y;
#endif
}

/* Summed on its own before it joins a long sum: less rounding, and the sums of different vectors go on beside each
 * other. */
template <int C> static __device__ __forceinline__ float exp_sum(const float (&x)[C], float max)
{
	float sum = 0.0f;
	UNROLL
	for (int i = 0; i < C; i++)
		sum += exp_below(x[i] - max);
	return sum;
}

/* A row of n values that begins anywhere, shared by the threads of a block: scalars before the first 16-byte boundary
 * and behind the last, vectors between them. The vectors are taken in groups of KEEP a thread. fold takes the groups
 * from the last to the first, which stays in registers; map takes them from the first on, so that what it has to read
 * again is what was read last. */
template <class T, int KEEP> struct row_walk {
	static constexpr int N = vec_of<T>::N;
	T *at;
	int n, head, vectors, groups, held;
	packed kept[KEEP];

	__device__ __forceinline__ row_walk(T *row, int64_t cols, bool aligned = true) : at(row), n((int)cols), held(-1)
	{
		const int past = (int)((uintptr_t)row % 16 / sizeof(T));
		head = past ? N - past : 0;
		head = !aligned || head > n ? n : head;
		vectors = (n - head) / N;
		groups = (vectors + KEEP * thread_count() - 1) / (KEEP * thread_count());
	}

	__device__ __forceinline__ int index(int group, int k) const
	{
		return (group * KEEP + k) * thread_count() + thread_rank();
	}
	__device__ __forceinline__ T *body(int vector) const { return at + head + (int64_t)vector * N; }

	__device__ __forceinline__ void load(int group)
	{
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (index(group, k) < vectors)
				kept[k] = load_packed(body(index(group, k)));
		held = group;
	}

	/* f(x, column): an array of N values or of one, and the place of its first in the row. */
	template <class F> __device__ __forceinline__ void fold(F f)
	{
		scalars([&](float(&x)[1], int column) { f(x, column); });
		for (int g = groups - 1; g >= 0; g--) {
			load(g);
			UNROLL
			for (int k = 0; k < KEEP; k++)
				if (index(g, k) < vectors) {
					float x[N];
					unpack<T, N>(kept[k], x);
					f(x, head + index(g, k) * N);
				}
		}
	}

	/* As fold, but f changes the values, which are stored. */
	template <class F> __device__ __forceinline__ void map(F f)
	{
		scalars([&](float(&x)[1], int column) {
			f(x, column);
			at[column] = from_float<T>(x[0]);
		});
		for (int g = 0; g < groups; g++) {
			if (g != held)
				load(g);
			UNROLL
			for (int k = 0; k < KEEP; k++)
				if (index(g, k) < vectors) {
					float x[N];
					unpack<T, N>(kept[k], x);
					f(x, head + index(g, k) * N);
					store_packed(body(index(g, k)), pack<T, N>(x));
				}
		}
		held = -1;
	}

	template <class F> __device__ __forceinline__ void scalars(F f)
	{
		const int between = vectors * N;
		for (int i = thread_rank(); i < n - between; i += thread_count()) {
			const int column = i < head ? i : i + between;
			float x[1] = {to_float(at[column])};
			f(x, column);
		}
	}
};

/* Zeros in columns [from, n). */
template <class T> static __device__ __forceinline__ void clear_row(T *row, int64_t from, int64_t n)
{
	row_walk<T, 1> w(row + from, n - from);
	for (int i = thread_rank(); i < w.vectors; i += thread_count())
		store_packed(w.body(i), {{0, 0, 0, 0}});
	w.scalars([&](float(&)[1], int column) { w.at[column] = from_float<T>(0.0f); });
}

/* Maximum and sum of exp(x - maximum) in one reading (Milakov and Gimelshein 2018, "Online normalizer calculation for
 * softmax"): a sum is scaled when its maximum grows. */
struct softmax_sum {
	float max, sum;

	template <int C> __device__ __forceinline__ void add(const float (&x)[C])
	{
		float m = x[0];
		UNROLL
		for (int i = 1; i < C; i++)
			m = fmaxf(m, x[i]);
		if (m > max) {
			sum *= exp_below(max - m);
			max = m;
		}
		if (max == -INFINITY)
			return;
		sum += exp_sum(x, max);
	}

	/* Of all threads of the block. */
	__device__ __forceinline__ void meet(void)
	{
		const float all = block_max(max);
		sum = block_sum(max == -INFINITY ? 0.0f : sum * exp_below(max - all));
		max = all;
	}
};

/* Threads for rows of `cols` values of `bytes` each with `keep` vectors a thread: whole warps, at most `most`. */
static inline int row_threads(int64_t cols, int64_t bytes, int keep, int most)
{
	int64_t vectors = (cols * bytes + 15) / 16, threads = ((vectors + keep - 1) / keep + WARP - 1) / WARP * WARP;
	return threads < WARP ? WARP : threads < most ? (int)threads : most;
}

/* Columns are counted in int, and rows by a grid that goes over them in turns. */
static inline enum status row_check(const struct op *op, int64_t cols, struct error *e)
{
	return cols <= INT_MAX / 2 ? ST_OK
	                           : error_set(e, ST_RUN, "%s: rows of %lld columns are beyond the GPU's kernels",
					     op_kind_info((enum op_kind)op->kind)->name, (long long)cols);
}

#endif
