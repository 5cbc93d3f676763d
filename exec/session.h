/* The inside of a session, for exec/ alone; exec/exec.h is what others see. */
#ifndef STEPSIM_EXEC_SESSION_H
#define STEPSIM_EXEC_SESSION_H

#include <mpi.h>

#include "exec/board.h"
#include "exec/exec.h"
#include "exec/watchdog.h"
#include "topology/placement.h"

struct session {
	struct session_info info;
	MPI_Comm world; /* a duplicate, errors returned */
	struct board *board;
	struct watchdog *watchdog;
	int32_t *host_of; /* by rank: index of its host, in the order of their first ranks */
	int64_t host_cores;
	char seat[SEAT_TEXT], (*seats)[SEAT_TEXT]; /* of this rank in words; of all ranks, on rank 0 alone */
	bool under_mpirun; /* Open MPI's */
	struct gpus *gpus; /* owned; NULL: the host's cores compute */
};

/* Polls until the request is done: no call of exec/ blocks inside MPI. */
enum status session_wait(struct session *s, MPI_Request *request, struct error *e);
/* All ranks, leaving as close together as polling can. */
enum status session_barrier(struct session *s, struct error *e);
/* Everybody's `n` bytes, by rank, on every rank. */
enum status session_gather_all(struct session *s, const void *mine, size_t n, void *all, struct error *e);
/* Element-wise sum over all ranks, in place. */
enum status session_sum(struct session *s, double *x, size_t n, struct error *e);

#endif
