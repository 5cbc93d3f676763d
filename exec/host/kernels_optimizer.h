/* Shared by the optimizers of the host device: kernels_optimizer.c has the rules, kernels_states8.c runs them on
 * moments in 8 bits. */
#ifndef STEPSIM_EXEC_HOST_KERNELS_OPTIMIZER_H
#define STEPSIM_EXEC_HOST_KERNELS_OPTIMIZER_H

#include "exec/host/kernels_private.h"

/* `w` is what the update works on: the master copy where there is one, else p itself. */
struct update {
	float *p, *m, *v, *w;
	const float *g;
	float lr, beta1, beta2, decay; /* decay: lr times the weight decay */
	float correct1, correct2;      /* 1 / (1 - beta^step) */
};
/* Elements [begin, end). */
typedef void pass_fn(const struct update *u, int64_t begin, int64_t end);

/* One pass over elements [0, n), on the pool. */
void kernel_update(const struct host_env *env, const struct update *u, int64_t n, pass_fn *pass);
/* The op with OP_STATES_8 by a pass that updates all state at once; m and v of `u` are as struct states_8 says, v may
 * be NULL. */
void kernel_optimizer_8(const struct host_env *env, const struct op *op, const struct update *u, pass_fn *pass);

#endif
