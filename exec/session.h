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
	struct heartbeat *heartbeat; /* owned; see exec/heartbeat.h */
	int32_t *host_of;            /* by rank: index of its host, in the order of their first ranks */
	char (*host_name)[64];       /* by rank */
	struct graph *graph;         /* of this host, once it was discovered (session_graph); owned */
	int64_t host_cores;
	char placement[PLACEMENT_TEXT],
		(*placements)[PLACEMENT_TEXT]; /* of this rank in words; of all ranks, on rank 0 alone */
	bool under_mpirun;                     /* Open MPI's */
	struct gpus *gpus;                     /* owned; NULL: the host's cores compute */
};

/* The versions of MPI and BLAS, also before MPI was started. */
void session_name_libraries(struct session_info *info);
/* Polls until the request is done: no call of exec/ blocks inside MPI. */
enum status session_wait(struct session *s, MPI_Request *request, struct error *e);
/* All ranks, leaving as close together as polling can. */
enum status session_barrier(struct session *s, struct error *e);
/* Everybody's `n` bytes, by rank, on every rank. */
enum status session_gather_all(struct session *s, const void *mine, size_t n, void *all, struct error *e);
/* Element-wise sum over all ranks, in place. */
enum status session_sum(struct session *s, double *x, size_t n, struct error *e);
/* The same, of the largest: times become the slowest rank's. */
enum status session_max(struct session *s, double *x, size_t n, struct error *e);

/* The name of a rank's host. */
const char *session_host_name(const struct session *s, int64_t rank);

/* The CPUs that each rank of this host may use, as lists by local rank: what it was started on, where the user of any
 * of them chose that; else what its launcher has. The caller frees them. */
enum status session_allowed(const struct session *s, char ***out, struct error *e);
void session_allowed_free(const struct session *s, char **lists); /* NULL-safe */
/* Binds this rank to a placement and keeps what is said of it: `text` is placement_text's. */
enum status session_bind(struct session *s, const struct placement *placement, const char *text, struct error *e);
/* Collective: rank 0 hears where each rank sits (session_placement). */
enum status session_gather_placements(struct session *s, struct error *e);
/* This host's link graph under its name in the session, discovered at most once: nvidia-smi takes seconds. *out belongs
 * to the session. */
enum status session_graph(struct session *s, const struct graph **out, struct error *e);

/* gpu_placement.c. Collective, with the address of the GPU of each rank, by rank, as graph_normal_pci: binds each rank
 * to its GPU's cores, unless its user bound it himself. A host whose graph cannot be had or lacks one of its ranks'
 * GPUs keeps the placements that it has, with a warning. */
enum status session_place_at_gpus(struct session *s, char (*pci)[GRAPH_PCI], struct error *e);

#endif
