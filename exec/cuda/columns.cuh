/* The second pass of sums over rows: partial sums of chunks of rows, [chunks, stride] in scratch, become one row. In
 * the order of the chunks, so that the same launch gives the same bytes. */
#ifndef STEPSIM_EXEC_CUDA_COLUMNS_CUH
#define STEPSIM_EXEC_CUDA_COLUMNS_CUH

#include "exec/cuda/dispatch.cuh"

#define COLUMNS_SMS_MAX 192 /* scratch is sized for as many SMs: GB300 has 160 */
#define COLUMNS_WARPS 16

/* Column c of `first`, and where gridDim.y is 2 column c + cols of `second`. */
template <class G>
__global__ void __launch_bounds__(COLUMNS_WARPS *WARP) columns_kernel(const float *partial, int64_t chunks,
	int64_t stride, int64_t cols, G *first, G *second, bool accumulate)
{
	__shared__ float part[COLUMNS_WARPS][WARP];
	const int64_t begin = (int64_t)blockIdx.x * WARP;
	const float *from = partial + (blockIdx.y ? cols : 0) + begin;
	G *to = (blockIdx.y ? second : first) + begin;
	for (int lane = lane_rank(); lane < WARP; lane += lane_count()) {
		float sum = 0.0f;
		if (begin + lane < cols)
			UNROLL_4
		for (int64_t k = warp_rank(); k < chunks; k += warp_count())
			sum += from[k * stride + lane];
		part[warp_rank()][lane] = sum;
	}
	block_sync();
	for (int lane = thread_rank(); lane < WARP; lane += thread_count())
		if (begin + lane < cols) {
			float sum = accumulate ? to_float(to[lane]) : 0.0f;
			for (int w = 0; w < warp_count(); w++)
				sum += part[w][lane];
			to[lane] = from_float<G>(sum);
		}
}

/* `second` NULL: one row alone. */
template <class G>
static enum status columns_finish(const struct cuda_env *env, const float *partial, int64_t chunks, int64_t stride,
	int64_t cols, G *first, G *second, bool accumulate, struct error *e)
{
	const dim3 grid((unsigned)((cols + WARP - 1) / WARP), second ? 2u : 1u);
	return start<columns_kernel<G>>(env->stream, grid, COLUMNS_WARPS * WARP, e, partial, chunks, stride, cols,
		first, second, accumulate);
}

/* Chunks for which there is scratch. */
static inline int64_t columns_chunks(int64_t chunks, size_t scratch_B, size_t chunk_B)
{
	const int64_t room = chunk_B ? (int64_t)(scratch_B / chunk_B) : 0;
	return chunks < room ? chunks : room;
}

#endif
