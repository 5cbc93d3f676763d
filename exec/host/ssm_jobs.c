#include "exec/host/ssm_jobs.h"

#include <assert.h>

#define SAME(op, arg) static_assert((int)ARG_SSM_##op##_##arg == (int)ARG_DELTA_##op##_##arg, "one order of arguments")
SAME(SCAN, xbc);
SAME(SCAN, in);
SAME(SCAN, heads);
SAME(SCAN, states);
SAME(SCAN, y);
SAME(SCAN_GRAD, xbc);
SAME(SCAN_GRAD, in);
SAME(SCAN_GRAD, heads);
SAME(SCAN_GRAD, dy);
SAME(SCAN_GRAD, states);
SAME(SCAN_GRAD, dxbc);
SAME(SCAN_GRAD, din);
SAME(SCAN_GRAD, dheads);
SAME(GATE, y);
SAME(GATE, in);
SAME(GATE, w);
SAME(GATE, out);
SAME(GATE, sigma);
SAME(GATE_GRAD, dout);
SAME(GATE_GRAD, y);
SAME(GATE_GRAD, in);
SAME(GATE_GRAD, w);
SAME(GATE_GRAD, sigma);
SAME(GATE_GRAD, dy);
SAME(GATE_GRAD, din);
SAME(GATE_GRAD, dw);

/* ---- scans ---- */

void scan_forward(const struct host_env *env, const struct op *op, void *const arg[], pool_fn *task, int64_t tasks,
	int64_t stride)
{
	struct scan_job j = {.s = shape_of(op),
		.xbc = arg[ARG_SSM_SCAN_xbc],
		.in = arg[ARG_SSM_SCAN_in],
		.heads = arg[ARG_SSM_SCAN_heads],
		.states = arg[ARG_SSM_SCAN_states],
		.y = arg[ARG_SSM_SCAN_y],
		.scratch = env->scratch,
		.stride = stride};
	pool_run(env->pool, task, &j, j.s.batch * tasks);
}

size_t scan_backward_scratch(const struct op *op, int threads, int64_t per_head, int64_t stride)
{
	return ((size_t)threads * (size_t)stride + (size_t)(per_head * op->ssm.heads * op->ssm.batch)) * sizeof(float);
}

void scan_backward(const struct host_env *env, const struct op *op, void *const arg[], pool_fn *task, int64_t per_head,
	int64_t stride)
{
	struct scan_job j = {.s = shape_of(op),
		.xbc = arg[ARG_SSM_SCAN_GRAD_xbc],
		.in = arg[ARG_SSM_SCAN_GRAD_in],
		.heads = arg[ARG_SSM_SCAN_GRAD_heads],
		.dy = arg[ARG_SSM_SCAN_GRAD_dy],
		.states = arg[ARG_SSM_SCAN_GRAD_states],
		.dxbc = arg[ARG_SSM_SCAN_GRAD_dxbc],
		.din = arg[ARG_SSM_SCAN_GRAD_din],
		.scratch = env->scratch,
		.stride = stride};
	const int64_t n = per_head * j.s.heads;
	j.partial = j.scratch + pool_threads(env->pool) * j.stride;
	pool_run(env->pool, task, &j, j.s.batch * j.s.groups);
	kernel_sum_parts(j.partial, (int)j.s.batch, n, n, arg[ARG_SSM_SCAN_GRAD_dheads], op->flags & OP_ACCUMULATE);
}

/* ---- norms and their gates ---- */

void gate_forward(const struct host_env *env, const struct op *op, void *const arg[], part_fn *part)
{
	struct gate_job j = {.s = shape_of(op),
		.y = arg[ARG_SSM_GATE_y],
		.in = arg[ARG_SSM_GATE_in],
		.w = arg[ARG_SSM_GATE_w],
		.out = arg[ARG_SSM_GATE_out],
		.sigma = arg[ARG_SSM_GATE_sigma],
		.sigmoid = op->ssm.layout == SSM_LAYOUT_KDA};
	kernel_split(env, kernel_parts(env, j.s.rows, j.s.heads * j.s.P), j.s.rows, part, &j);
}

void gate_backward(const struct host_env *env, const struct op *op, void *const arg[], part_fn *part, int64_t cols)
{
	struct gate_job j = {.s = shape_of(op),
		.dout = arg[ARG_SSM_GATE_GRAD_dout],
		.y = arg[ARG_SSM_GATE_GRAD_y],
		.in = arg[ARG_SSM_GATE_GRAD_in],
		.w = arg[ARG_SSM_GATE_GRAD_w],
		.sigma = arg[ARG_SSM_GATE_GRAD_sigma],
		.dy = arg[ARG_SSM_GATE_GRAD_dy],
		.din = arg[ARG_SSM_GATE_GRAD_din],
		.partial = env->scratch,
		.stride = padded(cols),
		.sigmoid = op->ssm.layout == SSM_LAYOUT_KDA};
	const int parts = kernel_parts_summed(env, j.s.rows, j.s.heads * j.s.P);
	kernel_split(env, parts, j.s.rows, part, &j);
	kernel_sum_parts(j.partial, parts, j.stride, cols, arg[ARG_SSM_GATE_GRAD_dw], op->flags & OP_ACCUMULATE);
}
