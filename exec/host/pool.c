#include "exec/host/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* About 20 us of polling: longer than the gap between two ops of a step, shorter than what anything else on the core
 * would miss. */
#define SPINS 1000

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() atomic_signal_fence(memory_order_seq_cst)
#endif

/* The state of the job in one word: its number, whether it may be joined, and how many workers are in it. A worker that
 * wakes up late finds the job closed and is not waited for: a small job costs its caller no more than doing it alone.
 */
#define NUMBER_SHIFT 32
#define OPEN (UINT64_C(1) << 31)
#define JOINED(state) ((state) & (OPEN - 1))
#define NUMBER(state) ((state) >> NUMBER_SHIFT)

struct worker {
	struct pool *pool;
	pthread_t thread;
	int index;
};

struct pool {
	int threads;
	int started; /* workers that run */
	struct worker *workers;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* a new job or the end */
	pthread_cond_t idle; /* the last worker left a closed job */
	atomic_int sleepers; /* workers that wait for `wake` */
	atomic_bool end;

	atomic_uint_fast64_t state;
	pool_fn *fn; /* these three are written while the job is closed and empty */
	void *ctx;
	int64_t n_tasks;
	atomic_int_fast64_t next;
};

static void work(struct pool *p, int thread)
{
	for (;;) {
		int64_t task = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
		if (task >= p->n_tasks)
			return;
		p->fn(p->ctx, task, thread);
	}
}

static bool is_new_job(struct pool *p, uint64_t last, uint64_t *state)
{
	*state = atomic_load(&p->state);
	return (*state & OPEN) && NUMBER(*state) != last;
}

/* False at the pool's end. */
static bool wait_for_job(struct pool *p, uint64_t last, uint64_t *state)
{
	for (int i = 0; i < SPINS; i++) {
		if (is_new_job(p, last, state) || atomic_load(&p->end))
			return !atomic_load(&p->end);
		RELAX();
	}
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->sleepers, 1);
	while (!is_new_job(p, last, state) && !atomic_load(&p->end))
		pthread_cond_wait(&p->wake, &p->lock);
	atomic_fetch_sub(&p->sleepers, 1);
	pthread_mutex_unlock(&p->lock);
	return !atomic_load(&p->end);
}

/* The last worker of a job that the caller has closed tells it. */
static void leave_job(struct pool *p)
{
	uint64_t before = atomic_fetch_sub(&p->state, 1);
	if ((before & OPEN) || JOINED(before) != 1)
		return;
	pthread_mutex_lock(&p->lock);
	pthread_cond_signal(&p->idle);
	pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;
	uint64_t last = 0;
	uint_fast64_t state;
	while (wait_for_job(p, last, &state)) {
		if (!atomic_compare_exchange_strong(&p->state, &state, state + 1))
			continue; /* somebody else joined, or it was closed: look again */
		last = NUMBER(state);
		work(p, w->index);
		leave_job(p);
	}
	return NULL;
}

static void wake_sleepers(struct pool *p)
{
	if (atomic_load(&p->sleepers) == 0)
		return;
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

/* No worker may join any more; returns when those that had have left. */
static void close_job(struct pool *p)
{
	if (JOINED(atomic_fetch_and(&p->state, ~OPEN)) == 0)
		return;
	for (int i = 0; i < SPINS; i++) {
		if (JOINED(atomic_load(&p->state)) == 0)
			return;
		RELAX();
	}
	pthread_mutex_lock(&p->lock);
	while (JOINED(atomic_load(&p->state)) != 0)
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static enum status start_workers(struct pool *p, struct error *e)
{
	p->workers = calloc((size_t)p->threads, sizeof *p->workers);
	if (!p->workers)
		return error_nomem(e, "thread pool");
	for (int i = 1; i < p->threads; i++) {
		struct worker *w = &p->workers[i];
		w->pool = p;
		w->index = i;
		int rc = pthread_create(&w->thread, NULL, worker_main, w);
		if (rc)
			return error_set(e, ST_RUN, "cannot start thread %d of %d: %s", i + 1, p->threads,
				strerror(rc));
		p->started++;
	}
	return ST_OK;
}

enum status pool_create(int threads, struct pool **out, struct error *e)
{
	*out = NULL;
	struct pool *p = calloc(1, sizeof *p);
	if (!p)
		return error_nomem(e, "thread pool");
	p->threads = threads > 1 ? threads : 1;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	pthread_cond_init(&p->idle, NULL);
	atomic_init(&p->sleepers, 0);
	atomic_init(&p->end, false);
	atomic_init(&p->state, 0);
	atomic_init(&p->next, 0);
	enum status st = start_workers(p, e);
	if (st) {
		pool_destroy(p);
		return st;
	}
	*out = p;
	return ST_OK;
}

void pool_destroy(struct pool *p)
{
	if (!p)
		return;
	atomic_store(&p->end, true);
	wake_sleepers(p);
	for (int i = 1; i <= p->started; i++)
		pthread_join(p->workers[i].thread, NULL);
	free(p->workers);
	pthread_cond_destroy(&p->idle);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int pool_threads(const struct pool *p) { return p ? p->threads : 1; }

void pool_run(struct pool *p, pool_fn *fn, void *ctx, int64_t n_tasks)
{
	if (pool_threads(p) == 1 || n_tasks <= 1) {
		for (int64_t i = 0; i < n_tasks; i++)
			fn(ctx, i, 0);
		return;
	}
	p->fn = fn;
	p->ctx = ctx;
	p->n_tasks = n_tasks;
	atomic_store(&p->next, 0);
	/* the next number, open, nobody in it; the numbers wrap after 2^32 jobs and 0, where a worker begins, is only
	 * met then */
	atomic_store(&p->state, ((NUMBER(atomic_load(&p->state)) + 1) << NUMBER_SHIFT) | OPEN);
	wake_sleepers(p);
	work(p, 0);
	close_job(p);
}
