/* Device memory and a stream for calls made by hand: what stands in backend.h's table under scratch_*, where their
 * contracts are. Private to exec/cuda/. */
#ifndef STEPSIM_EXEC_CUDA_SCRATCH_H
#define STEPSIM_EXEC_CUDA_SCRATCH_H

#include "exec/cuda/backend.h"

enum status cuda_scratch_open(int device, size_t bytes, struct cuda_scratch *out, struct error *e);
void cuda_scratch_close(struct cuda_scratch *y);
enum status cuda_scratch_copy(const struct cuda_scratch *y, void *to, const void *from, size_t bytes, struct error *e);
enum status cuda_scratch_idle(const struct cuda_scratch *y, bool *idle, struct error *e);

#endif
