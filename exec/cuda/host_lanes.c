/* The host's lanes beside a GPU. Ops on LANE_HOST run on the thread that issues, in their place among what it issues;
 * loads on a thread of their own, each when the events of what it waits for have passed. */
#include <stdlib.h>

#include "exec/cuda/device.h"

struct cuda_host_lanes {
	struct cuda_device *d;
	struct host_work *work;
	_Atomic uint32_t *done; /* by op: round in which it ended last */
	_Atomic uint32_t issued;
	bool loads;

	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct device_step *step; /* under `lock`, as those below */
	uint32_t round, loaded;         /* begun, and ended by the thread */
	bool end;
	struct error error;
	atomic_bool broken; /* the step's rest is not issued: nothing is waited for */
};

bool cuda_host_lanes_ended(const struct cuda_device *d, uint32_t op)
{
	return atomic_load(&d->host_lanes->done[op]) == d->host_lanes->round;
}

/* Whether an op has ended, in this step. An error of the device is told by those who wait for its streams. */
static bool has_ended(const struct cuda_device *d, uint32_t op)
{
	if (op_on_host(cuda_op_at(d, op)))
		return cuda_host_lanes_ended(d, op);
	return op < atomic_load(&d->host_lanes->issued) && cudaEventQuery(d->mark[op]) != cudaErrorNotReady;
}

static void wait_for_deps(struct cuda_device *d, uint32_t i)
{
	const struct op *op = cuda_op_at(d, i);
	for (uint32_t k = 0; k < op->n_dep; k++)
		while (!has_ended(d, d->job->role->deps.at[op->dep0 + k]) && !atomic_load(&d->host_lanes->broken))
			device_nap();
}

static enum status run_op(struct cuda_device *d, const struct device_step *s, uint32_t i, uint32_t round,
	struct error *e)
{
	struct cuda_host_lanes *f = d->host_lanes;
	enum status st = ST_OK;
	char name[OP_NAME_MAX];
	wait_for_deps(d, i);
	const int64_t begin_ns = stamp_now_ns();
	if (!s->collectives_only && !atomic_load(&f->broken) &&
		(st = host_work_run(f->work, cuda_op_at(d, i), d->args[i][0].at, d->args[i][1].at, e)))
		error_context(e, "op %u %s", i, op_name(cuda_op_at(d, i), name));
	if (s->stamps)
		s->stamps[i] = (struct stamp){begin_ns, stamp_now_ns()};
	atomic_store(&f->done[i], round);
	atomic_fetch_add_explicit(&d->job->beacon->progress, 1, memory_order_relaxed);
	return st;
}

/* ---- the loads' thread ---- */

static void *load_thread(void *arg)
{
	struct cuda_host_lanes *f = arg;
	struct cuda_device *d = f->d;
	cudaSetDevice(d->options.device);
	pthread_mutex_lock(&f->lock);
	for (;;) {
		while (!f->end && f->loaded == f->round)
			pthread_cond_wait(&f->changed, &f->lock);
		if (f->end)
			break;
		const struct device_step *s = f->step;
		const uint32_t round = f->round;
		struct error e = {ST_OK, ""};
		pthread_mutex_unlock(&f->lock);
		for (uint32_t k = 0; k < d->lane[LANE_LOAD].n; k++)
			run_op(d, s, d->lane[LANE_LOAD].ops[k], round, &e);
		pthread_mutex_lock(&f->lock);
		if (e.status)
			error_set(&f->error, e.status, "%s", e.text);
		f->loaded = round;
		pthread_cond_broadcast(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

enum status cuda_host_lanes_open(struct cuda_device *d, struct error *e)
{
	struct cuda_host_lanes *f = d->host_lanes = calloc(1, sizeof *f);
	if (!f || !(f->done = calloc(d->job->role->ops.n + 1, sizeof *f->done)))
		return error_nomem(e, "the host's lanes");
	f->d = d;
	f->loads = d->lane[LANE_LOAD].n > 0;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	enum status st = host_work_open(&d->job->host, &f->work, e);
	if (st || !f->loads)
		return st;
	if (pthread_create(&f->thread, NULL, load_thread, f))
		return error_set(e, ST_RUN, "no thread for the loads");
	f->started = true;
	return ST_OK;
}

void cuda_host_lanes_close(struct cuda_device *d)
{
	struct cuda_host_lanes *f = d->host_lanes;
	if (!f)
		return;
	if (f->started) {
		atomic_store(&f->broken, true);
		pthread_mutex_lock(&f->lock);
		f->end = true;
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->lock);
		pthread_join(f->thread, NULL);
	}
	host_work_close(f->work);
	free((void *)f->done);
	free(f);
	d->host_lanes = NULL;
}

void cuda_host_lanes_reset(struct cuda_device *d) { host_work_reset(d->host_lanes->work); }

/* ---- a step ---- */

void cuda_host_lanes_begin(struct cuda_device *d, const struct device_step *s)
{
	struct cuda_host_lanes *f = d->host_lanes;
	pthread_mutex_lock(&f->lock);
	atomic_store(&f->issued, 0);
	atomic_store(&f->broken, false);
	f->error = (struct error){ST_OK, ""};
	f->step = s;
	f->round++;
	if (!f->loads)
		f->loaded = f->round;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void cuda_host_lanes_issued(struct cuda_device *d, uint32_t ops) { atomic_store(&d->host_lanes->issued, ops); }

enum status cuda_host_lanes_run(struct cuda_device *d, const struct device_step *s, uint32_t i, struct error *e)
{
	return run_op(d, s, i, d->host_lanes->round, e);
}

void cuda_host_lanes_wait(struct cuda_device *d, uint32_t op)
{
	while (!cuda_host_lanes_ended(d, op) && !atomic_load(&d->host_lanes->broken)) {
		cuda_watch(d);
		device_nap();
	}
}

enum status cuda_host_lanes_end(struct cuda_device *d, bool broken, struct error *e)
{
	struct cuda_host_lanes *f = d->host_lanes;
	if (broken)
		atomic_store(&f->broken, true);
	pthread_mutex_lock(&f->lock);
	while (f->loaded != f->round)
		pthread_cond_wait(&f->changed, &f->lock);
	enum status st = f->error.status ? error_set(e, f->error.status, "%s", f->error.text) : ST_OK;
	pthread_mutex_unlock(&f->lock);
	return st;
}
