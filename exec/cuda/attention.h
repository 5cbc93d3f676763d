/* Flash attention: cuDNN's composite graph where an engine for it exists, else the kernel of our own
 * (attention_flash.cu). */
#ifndef STEPSIM_EXEC_CUDA_ATTENTION_H
#define STEPSIM_EXEC_CUDA_ATTENTION_H

#include "exec/cuda/kernels.h"

struct attention_plans;

/* Builds and finalizes the graphs of every distinct attention of the role. A shape for which cuDNN has no engine takes
 * the own kernel, and `why` says so once. */
enum status attention_plans_create(const struct role *role, int device, struct attention_plans **out, char why[256],
	struct error *e);
void attention_plans_destroy(struct attention_plans *a); /* NULL-safe */
size_t attention_workspace_B(const struct attention_plans *a);
bool attention_by_cudnn(const struct attention_plans *a, const struct op *op);
enum status attention_run(struct attention_plans *a, const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e);

#endif
