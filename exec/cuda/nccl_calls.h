/* NCCL's functions for each collective. Private to exec/cuda/nccl_comm.c. */
#ifndef STEPSIM_EXEC_CUDA_NCCL_CALLS_H
#define STEPSIM_EXEC_CUDA_NCCL_CALLS_H

#include <nccl.h>
#include <stdbool.h>

#include "exec/comm.h"

/* Whether the library at hand has ncclAlltoAll (2.28); else nccl_issue makes one of sends and receives. */
bool nccl_has_alltoall(void);

/* ST_RUN: a format that NCCL is not used for, elements that `size` ranks cannot share, or no stream. */
enum status nccl_call_check(const struct comm_call *call, int size, struct error *e);

/* Enqueues a call that was checked on its stream, in a communicator of `size` ranks. Returns NCCL's code, which for a
 * non-blocking communicator can be ncclInProgress. */
ncclResult_t nccl_issue(const struct comm_call *call, ncclComm_t comm, int size);

#endif
