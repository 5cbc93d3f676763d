/* Communicators over NCCL, behind exec/comm.h: what stands in backend.h's table under nccl_*, where their contracts
 * are. Private to exec/cuda/. */
#ifndef STEPSIM_EXEC_CUDA_NCCL_COMM_H
#define STEPSIM_EXEC_CUDA_NCCL_COMM_H

#include "exec/cuda/backend.h"

enum status nccl_comm_id(unsigned char id[NCCL_ID_B], struct error *e);
enum status nccl_comm_world(const unsigned char id[NCCL_ID_B], int64_t ranks, int64_t rank, int device,
	double timeout_s, struct comm *out, struct error *e);
enum status nccl_comm_split(const struct comm *world, int32_t colour, int32_t key, bool pair, struct comm *out,
	struct error *e);
enum status nccl_comm_register(const struct comm *c, void *at, size_t bytes, struct error *e);
void nccl_comm_deregister(const struct comm *c);
enum status nccl_comm_estimate(const struct comm *c, const struct comm_call *call, double *seconds, struct error *e);
bool nccl_comm_tells(const char *path);

#endif
