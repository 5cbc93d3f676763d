/* Cross-entropy over rows of up to some hundred thousand logits, a block a row. Rows begin at any element, since
 * vocabularies are seldom a multiple of a vector (row_walk). What a block keeps of its row in registers is not read
 * again for the gradient; the rest is, mostly from the L2 cache. */
#include "exec/cuda/stream.cuh"

#define LOSS_KEEP 8
#define LOSS_THREADS 512 /* two blocks an SM: one loads while the other stores */
/* for rows beyond what two blocks keep: fewer rows at once, so that they stay in L2 */
#define LOSS_WIDE 1024
#define LOSS_REGISTERS __launch_bounds__(LOSS_WIDE)

struct loss_job {
	const int32_t *targets;
	const float *max;
	float *sums, *loss;
	int64_t rows, cols, first; /* first: the vocabulary's id of column 0 here */
	float scale;
	int32_t *flag, op;
};

/* The gradient of a row of which maximum and sum of exponentials are known. The target's own column (-1: another
 * rank's) is written last, from its logit, so that it is rounded once. */
template <class T>
static __device__ __forceinline__ void write_gradient(row_walk<T, LOSS_KEEP> &w, const struct loss_job &j, float max,
	float sum, int64_t target, float logit)
{
	const float factor = j.scale / sum;
	w.map([&](auto &x, int) {
		UNROLL
		for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
			x[i] = exp_below(x[i] - max) * factor;
	});
	block_sync();
	if (thread_rank() == 0 && target >= 0)
		w.at[target] = from_float<T>(j.scale * (exp_below(logit - max) / sum - 1.0f));
	block_sync();
}

/* logits [rows, cols] become their gradient. Rows without a target give zeros and no loss; rows whose target is no
 * column are flagged. */
template <class T> __global__ void LOSS_REGISTERS loss_kernel(T *logits, struct loss_job j)
{
	float total = 0.0f;
	for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
		T *row = logits + r * j.cols;
		const int64_t id = j.targets[r], target = id < j.cols ? id : -1;
		if (id < 0) {
			clear_row(row, 0, j.cols);
			continue;
		}
		if (target < 0 && thread_rank() == 0)
			*j.flag = j.op;
		const float logit = target < 0 ? 0.0f : to_float(row[target]);
		row_walk<T, LOSS_KEEP> w(row, j.cols);
		struct softmax_sum s = {-INFINITY, 0.0f};
		w.fold([&](auto &x, int) { s.add(x); });
		s.meet();
		write_gradient(w, j, s.max, s.sum, target, logit);
		total += target < 0 ? 0.0f : logf(s.sum) + (s.max - logit);
	}
	if (thread_rank() == 0 && total != 0.0f)
		atomic_add(j.loss, j.scale * total);
}

template <class T> __global__ void LOSS_REGISTERS loss_max_kernel(T *logits, float *max, int64_t rows, int64_t cols)
{
	for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
		row_walk<T, LOSS_KEEP> w(logits + r * cols, cols);
		float m = -INFINITY;
		w.fold([&](auto &x, int) {
			UNROLL
			for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
				m = fmaxf(m, x[i]);
		});
		m = block_max(m);
		if (thread_rank() == 0)
			max[r] = m;
	}
}

template <class T> __global__ void LOSS_REGISTERS loss_sum_kernel(T *logits, struct loss_job j)
{
	for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
		T *row = logits + r * j.cols;
		row_walk<T, LOSS_KEEP> w(row, j.cols);
		const float max = j.max[r];
		float sum = 0.0f;
		w.fold([&](auto &x, int) { sum += exp_sum(x, max); });
		sum = block_sum(sum);
		if (thread_rank() == 0) {
			const int64_t id = j.targets[r], target = id - j.first;
			j.sums[r] = sum;
			j.sums[j.rows + r] = id >= 0 && target >= 0 && target < j.cols ? to_float(row[target]) - max
			                                                               : 0.0f;
		}
	}
}

template <class T> __global__ void LOSS_REGISTERS loss_grad_kernel(T *logits, struct loss_job j)
{
	float total = 0.0f;
	for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
		T *row = logits + r * j.cols;
		const int64_t id = j.targets[r], column = id - j.first,
			      target = column >= 0 && column < j.cols ? column : -1;
		if (id < 0) {
			clear_row(row, 0, j.cols);
			continue;
		}
		const float logit = target < 0 ? 0.0f : to_float(row[target]);
		block_sync(); /* the target's logit is read before its column is written */
		row_walk<T, LOSS_KEEP> w(row, j.cols);
		write_gradient(w, j, j.max[r], j.sums[r], target, logit);
		total += logf(j.sums[r]) - j.sums[j.rows + r];
	}
	if (thread_rank() == 0 && total != 0.0f)
		atomic_add(j.loss, j.scale * total);
}

/* ---- */

static struct loss_job job_of(const struct cuda_env *env, const struct op *op, const struct cuda_arg *targets,
	const struct cuda_arg *max, const struct cuda_arg *sums, const struct cuda_arg *loss)
{
	return {(const int32_t *)targets->at, max ? (const float *)max->at : NULL, sums ? (float *)sums->at : NULL,
		loss ? (float *)loss->at : NULL, op->matrix.rows, op->matrix.cols, env->tensor_coord * op->matrix.cols,
		(float)env->loss_scale, env->flag, (int32_t)env->op + 1};
}

static int threads_of(const struct op *op, size_t bytes)
{
	const bool wide = op->matrix.cols * (int64_t)bytes > (int64_t)LOSS_THREADS * LOSS_KEEP * 16 * 2;
	return row_threads(op->matrix.cols, (int64_t)bytes, LOSS_KEEP, wide ? LOSS_WIDE : LOSS_THREADS);
}

/* Argument 0 is the logits; what else the op has is ids, fp32, or fp32 sums. */
static enum status loss_check(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	for (int i = 1; i < info->n_args; i++) {
		const enum dtype want = (op->kind != OP_LOSS_MAX && i == 1) ? DT_INT32 : DT_FP32;
		if (arg[i].dtype != want)
			return error_set(e, ST_RUN, "%s: no kernel for %s as %s", info->name, info->arg[i].name,
				dtype_name(arg[i].dtype));
	}
	return row_check(op, op->matrix.cols, e);
}

extern "C" enum status launch_loss(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = loss_check(op, arg, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<loss_kernel<T>>(env->stream, stream_grid(env, op->matrix.rows, 1),
			threads_of(op, sizeof(T)), e, (T *)arg[0].at, job_of(env, op, &arg[1], NULL, NULL, &arg[2]));
	});
}

extern "C" enum status launch_loss_max(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = loss_check(op, arg, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<loss_max_kernel<T>>(env->stream, stream_grid(env, op->matrix.rows, 1),
			threads_of(op, sizeof(T)), e, (T *)arg[0].at, (float *)arg[1].at, op->matrix.rows,
			op->matrix.cols);
	});
}

extern "C" enum status launch_loss_sum(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = loss_check(op, arg, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<loss_sum_kernel<T>>(env->stream, stream_grid(env, op->matrix.rows, 1),
			threads_of(op, sizeof(T)), e, (T *)arg[0].at, job_of(env, op, &arg[1], &arg[2], &arg[3], NULL));
	});
}

extern "C" enum status launch_loss_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = loss_check(op, arg, e);
	return st ? st : with_format(arg[0].dtype, e, [&](auto x) {
		using T = typename decltype(x)::type;
		return start<loss_grad_kernel<T>>(env->stream, stream_grid(env, op->matrix.rows, 1),
			threads_of(op, sizeof(T)), e, (T *)arg[0].at,
			job_of(env, op, &arg[1], &arg[2], &arg[3], &arg[4]));
	});
}
