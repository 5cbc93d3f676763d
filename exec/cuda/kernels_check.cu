/* Fills buffers and checks the results of collectives on the device, so that their bytes need not be copied. */
#include "exec/cuda/stream.cuh"

/* SplitMix64 (Steele, Lea and Flood 2014), as a hash of a counter: the same numbers for any number of threads. */
static __device__ __forceinline__ uint64_t mixed(uint64_t seed, uint64_t counter)
{
	uint64_t x = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Two independent normal numbers (Box and Muller 1958). */
static __device__ __forceinline__ void normal_pair(uint64_t bits, float out[2])
{
	const float u = ((float)(uint32_t)(bits >> 40) + 0.5f) * 0x1p-24f,
		    turn = (float)(uint32_t)(bits & 0xffffffu) * 0x1p-24f;
	const float r = sqrtf(-2.0f * logf(u)), angle = 6.2831853071795865f * turn;
	out[0] = r * cosf(angle);
	out[1] = r * sinf(angle);
}

template <class T>
__global__ void __launch_bounds__(STREAM_THREADS) normal_kernel(T *at, int64_t n, uint64_t seed, float sigma)
{
	const int64_t first = (int64_t)blockIdx.x * thread_count() + thread_rank(),
		      stride = (int64_t)gridDim.x * thread_count();
	for (int64_t i = 2 * first; i < n; i += 2 * stride) {
		float x[2];
		normal_pair(mixed(seed, (uint64_t)i / 2), x);
		at[i] = from_float<T>(sigma * x[0]);
		if (i + 1 < n)
			at[i + 1] = from_float<T>(sigma * x[1]);
	}
}

/* Nobody tells which device: enough blocks for any. */
static unsigned any_grid(int64_t items, int64_t items_a_block)
{
	struct cuda_env env = {};
	env.sms = 256;
	return stream_grid(&env, items, items_a_block);
}

extern "C" enum status cuda_fill_normal(cudaStream_t stream, void *at, enum dtype dtype, int64_t n, uint64_t seed,
	double sigma, struct error *e)
{
	return with_format(dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<normal_kernel<T>>(stream, any_grid(n, 2 * STREAM_THREADS), STREAM_THREADS, e, (T *)at, n,
			seed, (float)sigma);
	});
}

/* ---- patterns ---- */

static __device__ __forceinline__ int32_t pattern_value(uint32_t op, int64_t rank, uint64_t element, int bits)
{
	const uint32_t x = ((uint32_t)element + (uint32_t)(element >> 32) * 77u) * 2654435761u +
	                   (uint32_t)rank * 0x85ebca6bu + op * 0xc2b2ae35u;
	return (int32_t)(x >> (32 - bits));
}

static __device__ __forceinline__ int32_t pattern_expected(const struct pattern &p, uint64_t element)
{
	int32_t sum = 0, max = 0;
	for (int64_t m = 0; m < p.members; m++) {
		const int32_t v = pattern_value(p.op, p.first + m * p.stride, element, p.bits);
		sum += v;
		max = v > max ? v : max;
	}
	return p.max ? max : sum;
}

/* Whole numbers in int32 buffers, else as the format rounds them. */
template <class T> static __device__ __forceinline__ T stored_as(int32_t value) { return from_float<T>((float)value); }
template <> __device__ __forceinline__ int32_t stored_as<int32_t>(int32_t value) { return value; }
static __device__ __forceinline__ bool differ(int32_t got, int32_t want) { return got != want; }
template <class T> static __device__ __forceinline__ bool differ(T got, T want)
{
	return !(to_float(got) == to_float(want));
}

static __device__ __forceinline__ void lower_to(int64_t *at, int64_t x)
{
#ifdef STEPSIM_TWIN
	*at = x < *at ? x : *at;
#else
	atomicMin((long long *)at, (long long)x);
#endif
}

template <class T>
__global__ void __launch_bounds__(STREAM_THREADS) pattern_kernel(T *at, int64_t n, struct pattern p, int64_t *wrong)
{
	const int64_t first = (int64_t)blockIdx.x * thread_count() + thread_rank(),
		      stride = (int64_t)gridDim.x * thread_count();
	for (int64_t i = first; i < n; i += stride) {
		const T want = stored_as<T>(pattern_expected(p, p.element + (uint64_t)i));
		if (!wrong)
			at[i] = want;
		else if (differ(at[i], want))
			lower_to(wrong, i);
	}
}

static enum status run_pattern(cudaStream_t stream, void *at, enum dtype dtype, int64_t n, const struct pattern *p,
	int64_t *wrong, struct error *e)
{
	const auto run = [&](auto x) {
		using T = typename decltype(x)::type;
		return start<pattern_kernel<T>>(stream, any_grid(n, STREAM_THREADS), STREAM_THREADS, e, (T *)at, n, *p,
			wrong);
	};
	return dtype == DT_INT32 ? run(format<int32_t>{}) : with_format(dtype, e, run);
}

extern "C" enum status cuda_fill_pattern(cudaStream_t stream, void *at, enum dtype dtype, int64_t n,
	const struct pattern *p, struct error *e)
{
	return run_pattern(stream, at, dtype, n, p, NULL, e);
}

extern "C" enum status cuda_check_pattern(cudaStream_t stream, const void *at, enum dtype dtype, int64_t n,
	const struct pattern *p, int64_t *wrong, struct error *e)
{
	return run_pattern(stream, (void *)at, dtype, n, p, wrong, e);
}
