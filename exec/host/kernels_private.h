/* Shared by the kernels of the host device; nothing outside exec/host/kernels*.c includes this. */
#ifndef STEPSIM_EXEC_HOST_KERNELS_PRIVATE_H
#define STEPSIM_EXEC_HOST_KERNELS_PRIVATE_H

#include "exec/host/kernels.h"

typedef enum status kernel_fn(const struct host_env *env, const struct op *op, void *const arg[], struct error *e);
typedef size_t scratch_fn(const struct op *op, int threads);

/* kernel_NAME of each kind. Those that are no kernels are NULL in kernels.c and defined nowhere. */
#define OP(kind, name, ...) kernel_fn kernel_##name;
#include "step/ops.def"

scratch_fn scratch_attention, scratch_attention_grad, scratch_attention_part_grad, scratch_rope, scratch_norm_grad,
	scratch_qk_norm_grad, scratch_bias_grad, scratch_loss, scratch_route, scratch_lamb_direction,
	scratch_ssm_conv_grad, scratch_ssm_scan, scratch_ssm_scan_grad, scratch_ssm_gate_grad, scratch_delta_scan,
	scratch_delta_scan_grad, scratch_delta_gate_grad, scratch_kda_scan, scratch_kda_scan_grad,
	scratch_short_conv_grad, scratch_muon_direction, scratch_adafactor_norms, scratch_conv, scratch_batch_norm;

/* ---- splitting rows over the pool ---- */

/* Part `part` of `parts`: rows [begin, end). */
typedef void part_fn(void *ctx, int64_t begin, int64_t end, int part, int thread);

/* a thread that loses its core for a while delays the others by a quarter of its share */
#define PARTS_PER_THREAD 4

/* Parts for `rows` rows of `cols` elements: at most PARTS_PER_THREAD a thread, none so small that handing it over costs
 * more than it. A function of sizes and threads alone. */
int kernel_parts(const struct host_env *env, int64_t rows, int64_t cols);
/* The same, at most one a thread: where each part carries a partial sum of its own. */
int kernel_parts_summed(const struct host_env *env, int64_t rows, int64_t cols);
void kernel_split(const struct host_env *env, int parts, int64_t rows, part_fn *fn, void *ctx);

/* db[i] = sum over parts of partial[part][i], or += with `accumulate`; in the order of the parts. */
void kernel_sum_parts(const float *partial, int parts, int64_t stride, int64_t n, float *db, bool accumulate);

/* True when OpenBLAS has been told one thread: only then may several threads of the pool call it at once and gain by
 * it. */
bool kernel_blas_is_serial(void);

/* Floats of a row of `n` in scratch: rows of different threads share no cache line. */
static inline int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }

#endif
