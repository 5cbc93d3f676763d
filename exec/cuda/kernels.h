/* The ops of a step program on a GPU: what each computes, from which arguments, stands in step/ops.def; the same ops
 * on the host, slow and plain, in exec/host/reference.h.
 *
 * Formats: every argument comes with the format it is stored in (fp32, bf16, fp16; int32 for token and target ids);
 * arithmetic is fp32, sums too. tf32 is stored as fp32. Rounding to nearest even on store. Matrix products take
 * cuBLASLt (gemm.c); flash attention cuDNN's graph (attention_cudnn.c) or the kernel of our own (attention_flash.cu);
 * all else is kernels of our own, one .cu file a family, which read and write global memory in 16-byte vectors where
 * addresses and sizes allow, and any size where not. Determinism: sums over rows for bias and norm gradients run in a
 * fixed order, embedding gradients by atomic adds do not. Errors: ids outside their table set env->flag on the device
 * (checked after the step); launches that fail, sizes beyond the grid, formats that a kernel has no instance for:
 * ST_RUN.
 */
#ifndef STEPSIM_EXEC_CUDA_KERNELS_H
#define STEPSIM_EXEC_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/dtype.h"
#include "base/status.h"
#include "exec/pattern.h"
#include "step/cut.h"
#include "step/program.h"

struct cuda_arg {
	void *at;         /* device address; NULL: absent */
	enum dtype dtype; /* as stored */
};

struct cuda_env {
	cudaStream_t stream;
	void *scratch; /* device memory, 256-byte aligned, at least cuda_scratch_B of the op; contents have no meaning
	                  between calls */
	size_t scratch_B;
	int32_t *flag; /* on the device: an op that finds an id out of range writes its number + 1 here */
	const int64_t
		*step; /* on the device: number of this optimizer step, from 1 (a captured graph keeps reading it) */
	int64_t tensor_coord; /* this rank's coordinate in its tensor group */
	int64_t heads;        /* query heads of the whole model */
	struct cut cut;       /* this rank's place in its context group */
	double loss_scale;
	int sms;     /* of the device */
	uint32_t op; /* number of the op, for `flag` */
};

/* How a kind is done on the device. */
enum cuda_way {
	CUDA_KERNEL,        /* cuda_kernel_run */
	CUDA_PRODUCT,       /* gemm.h: gemm_run */
	CUDA_NAIVE_PRODUCT, /* gemm.h: gemm_attention_run */
	CUDA_ATTENTION,     /* attention.h: cuDNN's graph, or cuda_kernel_run */
	CUDA_COPY,          /* issue.c */
	CUDA_NONE,          /* not by the device */
};
enum cuda_way cuda_way_of(const struct op *op);

/* Enqueues the op on env->stream; never waits. Kinds without a launcher: ST_RUN. */
enum status cuda_kernel_run(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	struct error *e);
size_t cuda_scratch_B(const struct op *op); /* 0 for most */

/* One launcher an op kind, in the family's .cu file; cuda_kernel_run's table holds them. */
typedef enum status cuda_launcher(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e);
/* launch_NAME of each kind. Those that are no kernels, and the products, which are gemm.c's, are NULL in kernels.c and
 * defined nowhere. attention_flash*.cu: the fall-back; parts of attention have no graph of cuDNN's. kernels_memory.cu:
 * casts to and from fp8 (E4M3, scale 1) too. */
#define OP(kind, name, ...) cuda_launcher launch_##name;
#include "step/ops.def"

/* Parts of cuda_scratch_B, in the family's .cu file. */
size_t cuda_scratch_norm_grad_B(const struct op *op);
size_t cuda_scratch_bias_grad_B(const struct op *op);
size_t cuda_scratch_optimizer_B(const struct op *op);
size_t cuda_scratch_lamb_direction_B(const struct op *op);
size_t cuda_scratch_position_grad_B(const struct op *op);

/* ---- kernels_check.cu: what buffers are filled with, and compared with, outside of a step ---- */

/* Normal numbers of standard deviation sigma, the same for the same seed. */
enum status cuda_fill_normal(cudaStream_t stream, void *at, enum dtype dtype, int64_t n, uint64_t seed, double sigma,
	struct error *e);

enum status cuda_fill_pattern(cudaStream_t stream, void *at, enum dtype dtype, int64_t n, const struct pattern *p,
	struct error *e);
/* *wrong, on the device, becomes the place in the buffer of the first element that differs, where that is less than
 * what stands there. */
enum status cuda_check_pattern(cudaStream_t stream, const void *at, enum dtype dtype, int64_t n,
	const struct pattern *p, int64_t *wrong, struct error *e);

#ifdef __cplusplus
}
#endif

#endif
