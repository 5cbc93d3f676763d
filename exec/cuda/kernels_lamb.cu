/* LAMB in its two ops (step/ops.def). A column of LAMB_BLOCKS blocks takes each tensor. Sums of squares run in a fixed
 * order: each block writes its own, and a second kernel adds a tensor's. Constants: exec/host/kernels.h. */
#include "exec/cuda/stream.cuh"
extern "C" {
#include "exec/host/kernels.h"
}

#define LAMB_BLOCKS 128    /* a tensor: enough for the SMs of one GPU to share the largest */
#define LAMB_TENSORS 65535 /* the grid's rows */

template <class P, class G> struct lamb_state {
	P *p;
	G *g;
	float *m, *v, *master; /* master: NULL where absent */
	const int64_t *bounds, *step;
	float *norms;
	int64_t tensors;
	float log_beta1, log_beta2;
};

/* f(i) for the elements of this block's tensor, by all blocks of its column. */
template <class F> static __device__ __forceinline__ void for_tensor(const int64_t *bounds, F f)
{
	const int64_t stride = (int64_t)gridDim.x * thread_count(), end = bounds[blockIdx.y + 1];
	for (int64_t i = bounds[blockIdx.y] + (int64_t)blockIdx.x * thread_count() + thread_rank(); i < end;
		i += stride)
		f(i);
}

/* partial [tensors, LAMB_BLOCKS, 2] */
template <class P, class G>
__global__ void __launch_bounds__(STREAM_THREADS) lamb_direction_kernel(struct lamb_state<P, G> s, float *partial)
{
	const float correct1 = -1.0f / expm1f((float)*s.step * s.log_beta1),
		    correct2 = -1.0f / expm1f((float)*s.step * s.log_beta2);
	float of_w = 0.0f, of_direction = 0.0f;
	for_tensor(s.bounds, [&](int64_t i) {
		const float g = to_float(s.g[i]), w = s.master ? s.master[i] : to_float(s.p[i]);
		const float m = ADAM_BETA1 * s.m[i] + (1.0f - ADAM_BETA1) * g;
		const float v = ADAM_BETA2 * s.v[i] + (1.0f - ADAM_BETA2) * g * g;
		const float direction = correct1 * m / (sqrtf(v * correct2) + LAMB_EPS) + LAMB_DECAY * w;
		s.m[i] = m;
		s.v[i] = v;
		s.g[i] = from_float<G>(direction);
		of_w += w * w;
		of_direction += direction * direction;
	});
	block_sum_pair(&of_w, &of_direction);
	if (thread_rank() == 0) {
		float *to = partial + ((int64_t)blockIdx.y * LAMB_BLOCKS + blockIdx.x) * 2;
		to[0] = of_w;
		to[1] = of_direction;
	}
}

__global__ void __launch_bounds__(LAMB_BLOCKS) lamb_norms_kernel(const float *partial, float *norms, int64_t tensors)
{
	float of_w = 0.0f, of_direction = 0.0f;
	for (int i = thread_rank(); i < LAMB_BLOCKS; i += thread_count()) {
		const float *from = partial + ((int64_t)blockIdx.x * LAMB_BLOCKS + i) * 2;
		of_w += from[0];
		of_direction += from[1];
	}
	block_sum_pair(&of_w, &of_direction);
	if (thread_rank() == 0) {
		norms[blockIdx.x] = of_w;
		norms[tensors + blockIdx.x] = of_direction;
	}
}

template <class P, class G>
__global__ void __launch_bounds__(STREAM_THREADS) lamb_step_kernel(struct lamb_state<P, G> s)
{
	const float of_w = s.norms[blockIdx.y], of_direction = s.norms[s.tensors + blockIdx.y];
	const float rate = LAMB_LR * (of_w > 0.0f && of_direction > 0.0f ? sqrtf(of_w / of_direction) : 1.0f);
	for_tensor(s.bounds, [&](int64_t i) {
		const float w = (s.master ? s.master[i] : to_float(s.p[i])) - rate * to_float(s.g[i]);
		if (s.master)
			s.master[i] = w;
		s.p[i] = from_float<P>(w);
	});
}

size_t cuda_scratch_lamb_direction_B(const struct op *op)
{
	return (size_t)op->tensors.tensors * LAMB_BLOCKS * 2 * sizeof(float);
}

static enum status lamb_check(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], unsigned states,
	struct error *e)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	if (op->tensors.tensors > LAMB_TENSORS)
		return error_set(e, ST_RUN, "%s: %lld tensors in a bucket, %d at most", info->name,
			(long long)op->tensors.tensors, LAMB_TENSORS);
	for (int i = 0; i < info->n_args; i++)
		if (states >> i & 1 && arg[i].at && arg[i].dtype != DT_FP32)
			return error_set(e, ST_RUN, "%s: no kernel for %s as %s, only as fp32", info->name,
				info->arg[i].name, dtype_name(arg[i].dtype));
	return ST_OK;
}

static dim3 tensor_grid(const struct op *op) { return dim3(LAMB_BLOCKS, (unsigned)op->tensors.tensors); }

extern "C" enum status launch_lamb_direction(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const unsigned states = 1u << ARG_LAMB_DIRECTION_m | 1u << ARG_LAMB_DIRECTION_v |
	                        1u << ARG_LAMB_DIRECTION_master | 1u << ARG_LAMB_DIRECTION_norms;
	const enum status st = lamb_check(op, arg, states, e);
	if (st)
		return st;
	if (env->scratch_B < cuda_scratch_lamb_direction_B(op))
		return error_set(e, ST_RUN, "lamb_direction: no scratch memory");
	return with_formats(arg[ARG_LAMB_DIRECTION_w].dtype, arg[ARG_LAMB_DIRECTION_g].dtype, e, [&](auto x, auto y) {
		using P = typename decltype(x)::type;
		using G = typename decltype(y)::type;
		const struct lamb_state<P, G> s = {
			(P *)arg[ARG_LAMB_DIRECTION_w].at, (G *)arg[ARG_LAMB_DIRECTION_g].at,
				(float *)arg[ARG_LAMB_DIRECTION_m].at, (float *)arg[ARG_LAMB_DIRECTION_v].at,
				(float *)arg[ARG_LAMB_DIRECTION_master].at,
				(const int64_t *)arg[ARG_LAMB_DIRECTION_bounds].at, env->step,
				(float *)arg[ARG_LAMB_DIRECTION_norms].at, op->tensors.tensors,
				(float)log((double)ADAM_BETA1), (float)log((double)ADAM_BETA2)
		};
		float *partial = (float *)env->scratch;
		const enum status did = start<lamb_direction_kernel<P, G>>(env->stream, tensor_grid(op), STREAM_THREADS,
			e, s, partial);
		return did ? did
		           : start<lamb_norms_kernel>(env->stream, (unsigned)s.tensors, LAMB_BLOCKS, e,
				     (const float *)partial, s.norms, s.tensors);
	});
}

extern "C" enum status launch_lamb_step(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = lamb_check(op, arg, 1u << ARG_LAMB_STEP_master | 1u << ARG_LAMB_STEP_norms, e);
	if (st)
		return st;
	return with_formats(arg[ARG_LAMB_STEP_w].dtype, arg[ARG_LAMB_STEP_direction].dtype, e, [&](auto x, auto y) {
		using P = typename decltype(x)::type;
		using G = typename decltype(y)::type;
		const struct lamb_state<P, G> s = {
			(P *)arg[ARG_LAMB_STEP_w].at, (G *)arg[ARG_LAMB_STEP_direction].at, NULL, NULL,
				(float *)arg[ARG_LAMB_STEP_master].at,
				(const int64_t *)arg[ARG_LAMB_STEP_bounds].at, env->step,
				(float *)arg[ARG_LAMB_STEP_norms].at, op->tensors.tensors, 0.0f, 0.0f
		};
		return start<lamb_step_kernel<P, G>>(env->stream, tensor_grid(op), STREAM_THREADS, e, s);
	});
}
