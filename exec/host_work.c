#include "exec/host_work.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct host_work {
	struct host_times times;
	const char *data; /* the first micro-batch's */
	uint64_t batch_B;
	int64_t first; /* micro-batch that is prepared first */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running, end;
	int64_t slots;        /* batches prepared or under way at once */
	char *ring;           /* batch i in slot i mod slots */
	bool *ready;          /* by slot */
	int64_t begun, taken; /* batches */
	pthread_t *thread;
	int64_t threads;
};

struct host_times host_times_of(const struct config *c)
{
	return (struct host_times){c->data.load_time_s, c->stack.micro_batch_s, c->stack.step_s, c->data.workers,
		c->data.prefetch, c->micro_batches};
}

static void sleep_until(struct timespec t, double s)
{
	t.tv_sec += (time_t)s;
	t.tv_nsec += (long)((s - (double)(time_t)s) * 1e9);
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static struct timespec now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t;
}

/* ---- workers ---- */

static void prepare(const struct host_work *w, int64_t micro, void *to)
{
	const struct timespec begin = now();
	memcpy(to, w->data + (uint64_t)micro * w->batch_B, w->batch_B);
	sleep_until(begin, w->times.load_s);
}

static void *worker(void *arg)
{
	struct host_work *w = arg;
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->end && w->begun - w->taken == w->slots)
			pthread_cond_wait(&w->changed, &w->lock);
		if (w->end)
			break;
		const int64_t batch = w->begun++;
		pthread_mutex_unlock(&w->lock);
		prepare(w, (w->first + batch) % w->times.micro_batches,
			w->ring + (uint64_t)(batch % w->slots) * w->batch_B);
		pthread_mutex_lock(&w->lock);
		w->ready[batch % w->slots] = true;
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static enum status start(struct host_work *w, const struct op *op, const void *data, struct error *e)
{
	w->batch_B = (uint64_t)op->copy.bytes;
	w->data = (const char *)data - (uint64_t)op->micro * w->batch_B;
	w->first = op->micro;
	w->slots = w->times.workers * w->times.prefetch;
	w->begun = w->taken = 0;
	w->end = false;
	w->running = true;
	w->ring = malloc((size_t)w->slots * w->batch_B);
	w->ready = calloc((size_t)w->slots, sizeof *w->ready);
	w->thread = calloc((size_t)w->times.workers, sizeof *w->thread);
	if (!w->ring || !w->ready || !w->thread)
		return error_nomem(e, "the data loader");
	for (w->threads = 0; w->threads < w->times.workers; w->threads++) {
		int code = pthread_create(&w->thread[w->threads], NULL, worker, w);
		if (code)
			return error_set(e, ST_RUN, "no thread for worker %lld of data.workers: %s",
				(long long)w->threads + 1, strerror(code));
	}
	return ST_OK;
}

static void take(struct host_work *w, void *batch)
{
	pthread_mutex_lock(&w->lock);
	const int64_t slot = w->taken % w->slots;
	while (!w->ready[slot])
		pthread_cond_wait(&w->changed, &w->lock);
	memcpy(batch, w->ring + (uint64_t)slot * w->batch_B, w->batch_B);
	w->ready[slot] = false;
	w->taken++;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* ---- ops ---- */

static enum status load(struct host_work *w, const struct op *op, const void *data, void *batch, struct error *e)
{
	if (w->times.workers * w->times.prefetch == 0) {
		w->batch_B = (uint64_t)op->copy.bytes;
		w->data = data;
		prepare(w, 0, batch);
		return ST_OK;
	}
	enum status st = w->running ? ST_OK : start(w, op, data, e);
	if (st)
		host_work_reset(w);
	else
		take(w, batch);
	return st;
}

enum status host_work_run(struct host_work *w, const struct op *op, const void *data, void *batch, struct error *e)
{
	if (op->kind == OP_LOAD)
		return load(w, op, data, batch, e);
	if (op->kind == OP_PAUSE)
		sleep_until(now(), op->pause.of_step ? w->times.step_s : w->times.micro_batch_s);
	return ST_OK; /* a synchronisation is nothing but its place behind all else */
}

/* ---- */

enum status host_work_open(const struct host_times *t, struct host_work **out, struct error *e)
{
	struct host_work *w = calloc(1, sizeof *w);
	if (!w)
		return error_nomem(e, "the host's work");
	w->times = *t;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	*out = w;
	return ST_OK;
}

void host_work_reset(struct host_work *w)
{
	if (!w || !w->running)
		return;
	pthread_mutex_lock(&w->lock);
	w->end = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	for (int64_t i = 0; i < w->threads; i++)
		pthread_join(w->thread[i], NULL);
	free(w->ring);
	free(w->ready);
	free(w->thread);
	w->ring = NULL;
	w->ready = NULL;
	w->thread = NULL;
	w->threads = 0;
	w->running = false;
}

void host_work_close(struct host_work *w)
{
	if (!w)
		return;
	host_work_reset(w);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
