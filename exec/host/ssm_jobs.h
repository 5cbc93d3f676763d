/* The scans and gated norms of Mamba-2 and of the gated delta rule: what a thread is told, and how the threads are
 * started. Both families have the same arguments in the same order (step/ops.def). */
#ifndef STEPSIM_EXEC_HOST_SSM_JOBS_H
#define STEPSIM_EXEC_HOST_SSM_JOBS_H

#include "exec/host/kernels_private.h"
#include "exec/host/ssm_shape.h"

struct scan_job {
	struct shape s;
	const float *xbc, *in, *heads, *dy;
	float *states, *y, *dxbc, *din;
	float *scratch, *partial; /* of a thread; of a sequence: the gradient of `heads` */
	int64_t stride;
};

struct gate_job {
	struct shape s;
	const float *y, *in, *w, *dout;
	float *out, *sigma, *dy, *din, *partial; /* partial: of a thread, the gradient of w */
	int64_t stride;
	bool sigmoid; /* gates of SSM_LAYOUT_KDA; else silu */
};

/* The state of a head before a chunk: [P, N]. */
static inline float *scan_states(const struct scan_job *j, int64_t sequence, int64_t chunk, int64_t h)
{
	const struct shape *s = &j->s;
	return j->states + ((sequence * s->chunks + chunk) * s->heads + h) * s->P * s->N;
}

/* Runs the tasks of each sequence. stride: floats of scratch that a thread has. */
void scan_forward(const struct host_env *env, const struct op *op, void *const arg[], pool_fn *task, int64_t tasks,
	int64_t stride);
/* Runs a task for each group of a sequence, and sums the gradient of `heads`, of so many values a head. */
void scan_backward(const struct host_env *env, const struct op *op, void *const arg[], pool_fn *task, int64_t per_head,
	int64_t stride);
size_t scan_backward_scratch(const struct op *op, int threads, int64_t per_head, int64_t stride);

/* Run the norm on parts of the rows. cols: of w. */
void gate_forward(const struct host_env *env, const struct op *op, void *const arg[], part_fn *part);
void gate_backward(const struct host_env *env, const struct op *op, void *const arg[], part_fn *part, int64_t cols);

#endif
