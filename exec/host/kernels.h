/* The ops of a step program as kernels of the host device: what each computes, from which arguments, stands in
 * step/ops.def.
 *
 * Number formats: every floating-point argument is fp32, whatever the op's dtype says; token and target ids are int32.
 * OP_CAST therefore copies. Aliasing: an argument that is written is the same memory as one that is read, element for
 * element, or does not overlap it. Determinism: the same op on the same bytes with the same number of threads gives the
 * same bytes (with OpenBLAS told one thread). Errors: ST_RUN for ids outside their table, sizes that BLAS cannot take,
 * scratch that is too small.
 *
 * Optimizers (step counts from 1):
 *   adamw  Loshchilov and Hutter 2019; lr 1e-3, betas 0.9 and 0.95, eps 1e-8, decoupled weight decay 0.1
 *   adam   Kingma and Ba 2015; the same constants, no weight decay
 *   sgd    PyTorch's form, buf = momentum buf + g, p -= lr buf; lr 1e-3, momentum 0.9 (without m: p -= lr g)
 *   lion   Chen et al. 2023; lr 1e-4, betas 0.9 and 0.99, decoupled weight decay 0.1
 *   muon   Jordan et al. 2024, Liu et al. 2025: matrices of the blocks; lr 1e-3, momentum 0.95, decay 0.1; else adamw
 *   lamb   You et al. 2020, algorithm 2, with the identity for phi; lr 1e-3, betas 0.9 and 0.95, eps 1e-6, decay 0.01
 */
#ifndef STEPSIM_EXEC_HOST_KERNELS_H
#define STEPSIM_EXEC_HOST_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/host/pool.h"
#include "step/cut.h"
#include "step/program.h"

#define ADAM_LR 1e-3f
#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.95f
#define ADAM_EPS 1e-8f
#define ADAMW_DECAY 0.1f
#define SGD_LR 1e-3f
#define SGD_MOMENTUM 0.9f
#define LION_LR 1e-4f
#define LION_BETA1 0.9f
#define LION_BETA2 0.99f
#define LION_DECAY 0.1f

#define LAMB_LR 1e-3f
#define LAMB_EPS 1e-6f
#define LAMB_DECAY 0.01f

/* Shazeer and Stern 2018, arXiv:1804.04235, table 2 and section 8: the decay's exponent, the least relative step, what
 * keeps roots from 0, the threshold of clipping; the step is the largest of their relative ones. */
#define ADAFACTOR_LR 1e-2f
#define ADAFACTOR_DECAY 0.8f
#define ADAFACTOR_LEAST 1e-3f
#define ADAFACTOR_EPS 1e-30f
#define ADAFACTOR_CLIP 1.0f

#define MUON_LR 1e-3f
#define MUON_MOMENTUM 0.95f
#define MUON_DECAY 0.1f
#define MUON_EPS 1e-7f
#define MUON_RMS 0.2f /* of a step, over lr: Liu et al. 2025, arXiv:2502.16982, equation 4 */
/* x = a x + b (x x^T) x + c (x x^T)^2 x */
#define MUON_A 3.4445f
#define MUON_B (-4.7750f)
#define MUON_C 2.0315f

#define NORM_EPS 1e-5f
#define UNIT_EPS 1e-6f /* of keys and queries of length 1 (flash-linear-attention, fla/modules/l2norm.py) */
#define ROPE_THETA 10000.0

/* The environment of a kernel. Everything is borrowed for the time of a call. An env has one caller at a time. Only
 * OP_COPY may run beside another op (the copy lane), because it uses neither pool nor scratch. */
struct host_env {
	struct pool *pool;    /* NULL: the caller alone */
	void *scratch;        /* aligned to 64 bytes; contents have no meaning between calls */
	size_t scratch_B;     /* at least host_kernel_scratch_B of the op */
	int64_t tensor_coord; /* this rank's coordinate in its tensor group */
	int64_t heads;  /* query heads of the whole model; ALiBi slopes: this rank's first head is tensor_coord x H */
	struct cut cut; /* this rank's place in its context group */
	double loss_scale; /* program.loss_scale */
	int64_t step;      /* number of this optimizer step, from 1 */
};

/* Bytes of scratch that the op needs with so many threads; 0 for most. Linear in the sequence length. */
size_t host_kernel_scratch_B(const struct op *op, int threads);

/* Computes the op on `arg`, op_kind_info(kind)->n_args pointers, NULL where an argument is absent. All of it runs on
 * the pool, matrix products too when OpenBLAS has been told one thread (openblas_set_num_threads(1), the faster way);
 * told more, they are single calls on its own threads. OP_COLLECTIVE is no kernel: ST_RUN. */
enum status host_kernel_run(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS],
	struct error *e);

/* ALiBi's slope of query head `head` (from 0) among `heads`: Press et al. 2022, "Train Short, Test Long", section 3 and
 * its published code for counts that are no power of two. */
double alibi_slope(int64_t head, int64_t heads);

/* The row of RELATIVE_BIAS's table for a key `distance` positions behind its query (below 0: before it), as
 * step/ops.def says; causal: all rows are for keys before. */
int64_t relative_bucket(int64_t distance, int64_t buckets, bool causal);

#endif
