/* The GPUs of a session: the CUDA room, this rank's device, NCCL's communicator of all ranks. For exec/ alone; session_use_gpus (exec/exec.h) makes it. */
#ifndef STEPSIM_EXEC_GPUS_H
#define STEPSIM_EXEC_GPUS_H

#include "exec/cuda/room.h"
#include "exec/session.h"

struct gpus {
	const struct cuda_room *room;
	struct cuda_gpu gpu; /* this rank's */
	int device;          /* CUDA's number of it */
	bool shared, doubles;
	double timeout_s;
	struct comm world;   /* ops NULL: one rank, or NCCL cannot serve */
};

/* The communicator over GPU memory of the groups whose members are `stride` ranks apart, as comm_create_mpi (exec/comm.h): NCCL's, or where it cannot serve, MPI's on host copies. Collective over the session. */
enum status gpus_comm(struct session *s, int64_t size, int64_t stride, struct comm *out, struct error *e);

/* What a profile of these GPUs depends on beside the numbers of ranks: GPU and SMs in `cpu`, NCCL and driver in `mpi`, cuBLASLt and cuDNN in `blas`. cores_per_rank is 1: of the host's cores only launches depend. */
void gpus_profile_key(const struct gpus *g, struct profile_key *k);

void gpus_close(struct gpus *g); /* NULL-safe */

#endif
