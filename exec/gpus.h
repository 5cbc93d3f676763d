/* The GPUs of a session: the CUDA backend, this rank's device, NCCL's communicator of all ranks. For exec/ alone;
 * session_use_gpus (exec/exec.h) makes it. */
#ifndef STEPSIM_EXEC_GPUS_H
#define STEPSIM_EXEC_GPUS_H

#include "exec/clocks.h"
#include "exec/cuda/backend.h"
#include "exec/session.h"
#include "step/work.h"

struct gpus {
	const struct cuda_backend *backend;
	struct cuda_gpu gpu;     /* this rank's */
	int device;              /* CUDA's number of it */
	struct work_device work; /* what work_of counts by: its SMs, and the tiles of products */
	bool shared, doubles;
	double timeout_s;
	struct gpu_sampler *sampler; /* NULL: NVML is not there, or several ranks share a GPU */
	struct comm world;           /* ops NULL: one rank, or NCCL cannot serve */
};

/* The communicator over GPU memory of the groups whose members are `stride` ranks apart, as comm_create_mpi
 * (exec/comm.h): NCCL's, or where it cannot serve, MPI's on host copies. Collective over the session. */
enum status gpus_comm(struct session *s, int64_t size, int64_t stride, struct comm *out, struct error *e);
/* The same of any groups, as comm_split_mpi. pair: of a sender and a receiver. */
enum status gpus_split(struct session *s, int64_t colour, int64_t key, bool pair, struct comm *out, struct error *e);
/* Sends one element from member 0 to member 1 of a communicator of two, where there is one (ops NULL: no part): NCCL
 * connects a pair at its first call, which does not return before both are there, and the ranks of a pipeline issue
 * their messages in orders in which they would wait for each other. */
enum status gpus_meet(struct session *s, const struct comm *c, struct error *e);

/* Collective: makes the memory known to communicators of gpus_comm (those with ops), so that NCCL need not copy it; to
 * all of them on all ranks, or to none, which -v tells and is no failure. Not where ranks share a GPU, nor with
 * NCCL_LOCAL_REGISTER=0. gpus_unregister comes before the memory goes; it does not communicate. */
enum status gpus_register(struct session *s, const struct comm *comms, size_t n, void *at, uint64_t bytes,
	struct error *e);
void gpus_unregister(struct session *s, const struct comm *comms, size_t n);

/* Samples this rank's GPU (clocks, power, what holds them down, other processes) from begin to end, about every 50 ms.
 * out->n is 0 where there is no NVML, and on the host's cores. */
void gpus_sample_begin(struct session *s);
void gpus_sample_end(struct session *s, struct gpu_samples *out);
/* Collective: all ranks' samples together, on every rank. */
enum status gpus_clocks(struct session *s, const struct gpu_samples *mine, struct result_clocks *out, struct error *e);

/* Fills the part of a profile's key that depends on the GPUs: GPU and SMs in `cpu`, NCCL and driver in `mpi`, cuBLASLt
 * and cuDNN in `blas`. cores_per_rank is 1, because only launches depend on the host's cores. */
void gpus_profile_key(const struct gpus *g, struct profile_key *k);

void gpus_close(struct gpus *g); /* NULL-safe */

#endif
