/* The executor, as cli/ sees it: a session under MPI, calibration, and the execution of a program. */
#ifndef STEPSIM_EXEC_EXEC_H
#define STEPSIM_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "step/bench.h"
#include "step/program.h"
#include "step/result.h"
#include "topology/graph/cluster.h"
#include "topology/machine.h"
#include "topology/messages.h"
#include "topology/profile.h"

struct session;

struct session_info {
	int64_t rank, ranks;
	int64_t local_rank, ranks_per_host, hosts;
	int64_t cores_per_rank; /* cores bound to this rank; at least 1 */
	bool oversubscribed;    /* ranks share cores */
	char host[64], mpi[64], blas[128], binding[64];
	/* after session_use_gpus */
	bool gpus, gpu_shared; /* several ranks a GPU: correctness only */
	bool gpu_doubles;      /* the CUDA libraries are the tests' doubles: nothing measured may be reported */
	char gpu[96];          /* name of this rank's, as the driver shows it */
	uint64_t gpu_mem_B;
};

/* Starts MPI (MPI_THREAD_MULTIPLE, errors returned), binds this rank to its share of the host's cores, sets the BLAS
 * threads, and starts the watchdog: a rank that dies, or no progress for timeout_s, takes the job down with one line
 * that names rank and op, exit code 1. Collective over all ranks. */
enum status session_open(double timeout_s, struct session **out, struct error *e);
void session_timeout(struct session *s, double timeout_s); /* once the config is known */
const struct session_info *session_info(const struct session *s);
/* Where a rank runs, in one line: "rank 3: host vm, cores 3, no GPU". Rank 0 alone may ask; the session keeps the text.
 */
const char *session_placement(const struct session *s, int64_t rank);
/* Agrees on success: the worst status of all ranks, on every rank; when rank 0's own status is ST_OK but another's is
 * not, its error text arrives in rank 0's `e`. */
enum status session_agree(struct session *s, enum status st, struct error *e);
/* Rank 0's bytes to every rank. */
enum status session_broadcast(struct session *s, void *bytes, size_t n, struct error *e);
/* Collective. On rank 0 *out is the cluster of all hosts of the session, in the order of their first ranks, with their
 * names, each as its first rank discovered it; NULL on the others. The caller destroys it. ST_RUN or ST_INPUT, on all
 * ranks, names the first host whose discovery failed. */
enum status session_cluster(struct session *s, struct cluster **out, struct error *e);
/* Collective. Times messages, one pair of ranks at a time: between each two of the first LINKS_HOSTS_MOST hosts, and
 * inside each host of several ranks. *out is the same on all ranks; the caller frees it. */
#define LINKS_HOSTS_MOST 16
enum status session_message_links(struct session *s, struct message_links *out, struct error *e);
void session_close(struct session *s); /* finalizes MPI; NULL-safe */

/* Collective; watches for a second, in which the ranks sleep. `text` says what others take of the ranks' cores, on
 * every rank: "other processes took 38 % of the time of rank 1's cores"; "" where that is too little to show in a
 * measurement, and where ranks share cores. */
#define SESSION_CPU_STEAL_TEXT 128
enum status session_cpu_steal(struct session *s, char text[SESSION_CPU_STEAL_TEXT], struct error *e);

/* Whether `run.backend: auto` means GPUs on this host: a driver shows some, and the CUDA part finds a device. A warning
 * says why GPUs that the driver shows are not used, unless CUDA_VISIBLE_DEVICES hides them. Cheap where there is no
 * driver. */
bool gpus_here(void);
/* Collective. From now on this session executes on GPUs: local rank r on the r-th device that CUDA shows it, bound to
 * that GPU's share of cores as topology/placement.h says (unless its user bound it himself, or the host's topology does
 * not have the GPU, which a warning tells); session_placement names GPU, cores and NIC. ST_RUN, on all ranks, with the
 * first reason: no CUDA part, no device and why, two ranks with one GPU (by PCI address) without `share_gpu`, a GPU
 * that another process uses. timeout_s: how long NCCL may take to start. */
enum status session_use_gpus(struct session *s, bool share_gpu, double timeout_s, struct error *e);

/* Before session_use_gpus: what collectives.algorithm and protocol force, as NCCL's environment variables NCCL_ALGO and
 * NCCL_PROTO, which it reads when it makes its first communicator. Those that the user has set stay. An algorithm is
 * forced upon the collectives that NCCL has it for, in its form FUNCTION:ALGORITHM (2.24 and later); the others choose
 * freely, as the prediction has it. */
void nccl_env_force(struct collective_choice c);

/* The kernels that OpenBLAS has taken: their name, such as "Haswell", and whether products of several sizes with them
 * are what plain loops find. Without a session. */
struct blas_kernels {
	char name[32];
	bool right;
};
void exec_blas_kernels(struct blas_kernels *out);

/* The libraries that execute, for `stepsim --version`: a line on MPI and BLAS, and one on CUDA's libraries and devices,
 * or why there are none; each with its line feed. Without a session; MPI is not started. */
#define EXEC_VERSIONS_TEXT 1536
void exec_versions(char text[EXEC_VERSIONS_TEXT]);

/* The key of this session's profile. */
void session_profile_key(const struct session *s, struct profile_key *k);

/* Measures this session's ceilings, all ranks together; rank 0 gets the profile, the others NULL. Under 30 s, with a
 * progress line. Reads no config. On cores, what others disturbed is measured again, at most 20 s more; the profile has
 * what stayed disturbed (PROFILE_DISTURBED_SHARE), which a warning tells. */
enum status calibrate(struct session *s, struct profile **out, struct error *e);

/* Collective, on cores, well under a second. How fast they are now, over the times of rank 0's `p`, this placement's
 * profile; the same on all ranks. 1 where the profile does not say, and where ranks share cores. */
enum status session_pace(struct session *s, const struct profile *p, struct pace *out, struct error *e);

/* Executes the program, on the host's cores or on the session's GPUs: verification (run.verify), warm-up, timed steps.
 * On rank 0 `out` and `timeline` (actors are ranks; the median step) are filled; the caller frees the timeline. `out`
 * breaks down the step of the rank of `role` (rank 0 says it) that ended last. losses: NULL, or room for the mean loss
 * of each timed step. ST_RUN: a wrong sum names bucket, rank and index; not enough memory says how much is missing. */
enum status execute(struct session *s, const struct program *p, uint32_t role, struct result *out,
	struct timeline *timeline, double *losses, struct error *e);

/* Collective, on GPUs, after execute(): what NCCL itself expects each collective of the program to take, by op of role
 * 0; NAN for other ops, for messages and what the two ends of a pipeline sum, and where it gives none. Nothing is sent.
 * ST_RUN: no memory for buffers as large as the largest collective's. */
enum status execute_estimates(struct session *s, const struct program *p, double *seconds, struct error *e);

/* Times the plan's collective over all ranks, on the host's cores over MPI or on the session's GPUs over NCCL, and
 * checks it; all ranks get the table, without predictions. The caller frees it, also when this fails. What NCCL
 * estimates and chooses stands in rank 0's. ST_RUN: not enough memory. A call that fails in the middle ends the job. */
enum status bench(struct session *s, const struct bench_plan *plan, struct bench_table *out, struct error *e);

#endif
