/* Matrix products by cuBLASLt: all GEMM ops of a role planned once, by shape and formats, then enqueued. */
#ifndef STEPSIM_EXEC_CUDA_GEMM_H
#define STEPSIM_EXEC_CUDA_GEMM_H

#include "exec/cuda/kernels.h"

struct gemm_plans;

/* Workspace that every product may use; NVIDIA recommends 32 MiB from Hopper on (cuBLAS documentation,
 * cublasSetWorkspace). */
#define GEMM_WORKSPACE_B ((size_t)32 << 20)

/* Plans every distinct product of the role (and of naive attention), asking the heuristic for the fastest algorithm
 * within the workspace; with `tune` the first few are timed on random data. */
enum status gemm_plans_create(const struct role *role, int device, bool tune, struct gemm_plans **out, struct error *e);
void gemm_plans_destroy(struct gemm_plans *g); /* NULL-safe */

/* C = op(A) op(B) (+ bias), OP_ACCUMULATE adds to C; row-major as step/ops.def has it. tf32 and fp32 by the op's
 * dtype; fp8 takes scales of 1 on data that were cast. Never waits. */
enum status gemm_run(struct gemm_plans *g, const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e);

/* The two batched products of naive attention and their four gradients' (ATTN_SCORES, ATTN_VALUES, ...), strided over
 * batch and heads. `env` NULL: only plans them. */
enum status gemm_attention_run(struct gemm_plans *g, const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e);

#endif
