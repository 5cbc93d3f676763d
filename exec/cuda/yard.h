/* Device memory and a stream for calls made by hand: what stands in room.h's table under yard_*. Private to exec/cuda/. */
#ifndef STEPSIM_EXEC_CUDA_YARD_H
#define STEPSIM_EXEC_CUDA_YARD_H

#include "exec/cuda/room.h"

enum status cuda_yard_open(int device, size_t bytes, struct cuda_yard *out, struct error *e);
void cuda_yard_close(struct cuda_yard *y);
enum status cuda_yard_copy(const struct cuda_yard *y, void *to, const void *from, size_t bytes, struct error *e);
enum status cuda_yard_idle(const struct cuda_yard *y, bool *idle, struct error *e);

#endif
