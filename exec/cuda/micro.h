/* exec/micro.h's kernels on a GPU: their launchers (micro.cu), and the device made of them (micro.c). */
#ifndef STEPSIM_EXEC_CUDA_MICRO_H
#define STEPSIM_EXEC_CUDA_MICRO_H

#include "exec/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All enqueue on env->stream. Formats: fp32; bf16 and fp16 two to an instruction where the hardware has that. */
enum status micro_poly(const struct cuda_env *env, enum dtype d, const void *a, void *b, int64_t n, int64_t k,
	struct error *e);
enum status micro_constant(const struct cuda_env *env, enum dtype d, void *at, int64_t n, double value,
	struct error *e);
/* The polynomial kernel in fp32, for the runtime to say how many blocks of `threads` threads an SM holds. */
const void *micro_poly_kernel(int *threads);

/* `passes` times over arrays of n floats, past the first-level caches: those of all SMs together would hold what the
 * second level is asked for. `sink`: a float that nobody reads. */
enum status micro_read(const struct cuda_env *env, const float *x, int64_t n, int64_t passes, float *sink,
	struct error *e);
enum status micro_copy(const struct cuda_env *env, const float *x, float *y, int64_t n, int64_t passes,
	struct error *e);
enum status micro_triad(const struct cuda_env *env, const float *x, const float *y, float *z, int64_t n, int64_t passes,
	struct error *e);

/* Lays the lines, MICRO_CUDA_LINE_B apart; and follows them, `steps` loads by one thread, from *place (bytes into `at`,
 * on the device) on, which it leaves where it ended: what one run has read, and caches hold, is not what the next one
 * reads. */
#define MICRO_CUDA_LINE_B 256
enum status micro_lay(const struct cuda_env *env, void *at, uint64_t lines, struct error *e);
enum status micro_chase(const struct cuda_env *env, const void *at, int64_t steps, uint64_t *place, struct error *e);

#ifdef __cplusplus
}
#endif

struct micro;
/* On CUDA's device of that number, with an arena of `most_B` or half of what is free there. */
enum status micro_cuda_create(int device, uint64_t most_B, struct micro *out, struct error *e);

#endif
