/* Rotary positions. */
#include "exec/cuda/map.cuh"

extern "C" {
#include "exec/host/kernels.h"
}

#define ROPE_HALF_MAX 256 /* head_dim 512 */
#define ROPE_ANGLES 512   /* a block turns as many angles into sines at once, for several rows */
#define ROPE_THREADS 256

/* Frequencies in turns a position, as fractions of 2^64: position times frequency then wraps as the angle does, and
 * keeps its last digit at any position. */
struct rope_turns {
	uint64_t at[ROPE_HALF_MAX];
};

struct rope_shape {
	int64_t rows, s, width; /* rows of `width` values, s of each sequence */
	struct cut cut;
	int heads, half; /* heads that turn */
	int group;       /* rows whose angles a block holds at once */
	bool inverse;
};

/* Of -1/2 <= turns < 1/2. */
static __device__ __forceinline__ void turn(float turns, float *sine, float *cosine)
{
#ifdef STEPSIM_TWIN
	*sine = (float)sin(2.0 * M_PI * (double)turns);
	*cosine = (float)cos(2.0 * M_PI * (double)turns);
#else
	sincospif(2.0f * turns, sine, cosine);
#endif
}

template <class A, int V>
__global__ void __launch_bounds__(ROPE_THREADS) rope_kernel(A *qkv, rope_shape z, rope_turns turns)
{
	__shared__ float sine[ROPE_ANGLES], cosine[ROPE_ANGLES];
	const int width = z.half / V, items = z.heads * width;
	for (int64_t first = (int64_t)blockIdx.x * z.group; first < z.rows; first += (int64_t)gridDim.x * z.group) {
		const int rows = z.rows - first < z.group ? (int)(z.rows - first) : z.group;
		for (int i = thread_rank(); i < rows * z.half; i += thread_count()) {
			const uint64_t phase = (uint64_t)cut_position(&z.cut, z.s, (first + i / z.half) % z.s) *
			                       turns.at[i % z.half];
			turn((float)(int32_t)(phase >> 32) * 0x1p-32f, &sine[i], &cosine[i]);
			if (z.inverse)
				sine[i] = -sine[i];
		}
		block_sync();
		for (int i = thread_rank(); i < rows * items; i += thread_count()) {
			const int row = i / items, item = i % items, head = item / width, at = item % width * V;
			A *place = qkv + (first + row) * z.width + (int64_t)head * 2 * z.half + at;
			float x[V], y[V];
			load_vec<A, V>(place, x);
			load_vec<A, V>(place + z.half, y);
			UNROLL
			for (int v = 0; v < V; v++) {
				const float a = x[v], b = y[v], s = sine[row * z.half + at + v],
					    c = cosine[row * z.half + at + v];
				x[v] = a * c - b * s;
				y[v] = a * s + b * c;
			}
			store_vec<A, V>(place, x);
			store_vec<A, V>(place + z.half, y);
		}
		block_sync();
	}
}

extern "C" enum status launch_rope(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t H = op->attn.heads, K = op->attn.kv_heads, D = op->attn.head_dim, half = D / 2;
	if (half > ROPE_HALF_MAX)
		return error_set(e, ST_RUN, "rope: heads of %lld values, at most %d", (long long)D, 2 * ROPE_HALF_MAX);
	if (D % 2)
		return error_set(e, ST_RUN, "rope: heads of %lld values, an odd number", (long long)D);
	if (half == 0)
		return ST_OK;
	struct rope_turns turns;
	for (int64_t i = 0; i < half; i++)
		turns.at[i] = (uint64_t)llround(ldexp(pow(ROPE_THETA, -2.0 * (double)i / (double)D) / (2.0 * M_PI), 62))
		              << 2;
	const struct rope_shape z = {op->attn.batch * op->attn.seq, op->attn.seq, (H + 2 * K) * D, env->cut,
		(int)(H + K), (int)half, (int)(ROPE_ANGLES / half), (op->flags & OP_INVERSE) != 0};
	const int64_t groups = (z.rows + z.group - 1) / z.group,
		      most = (int64_t)(env->sms > 0 ? env->sms : 1) * MAP_WAVES;
	return with_format(arg[0].dtype, e, [&](auto a) {
		using A = typename decltype(a)::type;
		return with_width<A>(is_aligned(arg[0].at) && half % vec_of<A>::N == 0, [&](auto v) {
			return start<rope_kernel<A, decltype(v)::value>>(env->stream,
				dim3((unsigned)(groups < most ? groups : most)), ROPE_THREADS, e, (A *)arg[0].at, z,
				turns);
		});
	});
}
