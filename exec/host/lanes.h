/* The lanes of the host device: one thread walks the compute ops, one each the copies, the host thread's ops and the
 * loads, one all communication lanes; completion flags carry the dependencies between them. */
#ifndef STEPSIM_EXEC_HOST_LANES_H
#define STEPSIM_EXEC_HOST_LANES_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/device.h"
#include "exec/host/kernels.h"

typedef void *op_args[OP_MAX_ARGS];

enum { THREAD_COMM, THREAD_COPY, THREAD_HOST, THREAD_LOAD, LANES_THREADS };

struct lanes_thread {
	struct lanes *lanes;
	pthread_t id;
	bool started;
};

struct lanes {
	const struct device_job *job;
	op_args *args; /* by op; borrowed from the device */
	struct host_env env;
	uint32_t *list[LANE_COUNT]; /* ops by lane, in order */
	uint32_t n[LANE_COUNT];
	_Atomic uint32_t *done; /* by op: number of the round in which it ended last */
	bool *awaited;          /* by op: another lane depends on it */

	/* one round is one step */
	_Atomic uint32_t round;
	_Atomic uint32_t rounds_ended[LANES_THREADS];
	const struct device_step *step; /* written before `round` */
	atomic_bool failed, end;
	struct error error; /* under `lock` */

	/* who has nothing to do sleeps here; a waker takes the lock only when somebody sleeps */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	atomic_int sleepers;
	atomic_bool compute_waits; /* the compute lane needs nothing but what is under way */

	struct lanes_thread thread[LANES_THREADS];
	struct host_work *host;
};

enum status lanes_start(struct lanes *l, const struct device_job *job, op_args *args, const struct host_env *env,
	struct error *e);
enum status lanes_step(struct lanes *l, const struct device_step *step, struct error *e);
void lanes_stop(struct lanes *l);

/* Lets the calling thread, which polls, get its core at once and give it up as quickly. Linux wakes a thread beside a
 * busy one on the same core only after that one's slice, 2 to 3 ms, unless it asks for short slices (Linux 6.12 and
 * later heed it); and the kernel's thread that receives waits as long for one that polls. Timers are coarsened by 50 us
 * unless told otherwise. */
void lanes_quick_wakes(void);

#endif
