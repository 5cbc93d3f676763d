/* Collectives over MPI for buffers on a GPU, where NCCL cannot serve: through pinned memory. Contract: backend.h,
 * `staged`. Private to exec/cuda/. */
#ifndef STEPSIM_EXEC_CUDA_STAGED_COMM_H
#define STEPSIM_EXEC_CUDA_STAGED_COMM_H

#include "exec/cuda/backend.h"

enum status staged_comm_create(const struct comm *host_comm, double timeout_s, struct comm *out, struct error *e);

#endif
