/* A fork-join thread pool: the cores of one rank's device. The thread that calls pool_run is thread 0 and works too.
 *
 * Workers inherit the affinity of the thread that creates the pool. Between jobs they spin for some microseconds (ops
 * follow each other closely) and then sleep. One caller at a time.
 */
#ifndef STEPSIM_EXEC_HOST_POOL_H
#define STEPSIM_EXEC_HOST_POOL_H

#include <stdint.h>

#include "base/status.h"

struct pool;

/* One task of a job; `thread` is in [0, pool_threads). */
typedef void pool_fn(void *ctx, int64_t task, int thread);

/* A pool of `threads` threads with the caller's own, at least 1. ST_RUN when threads cannot be started. */
enum status pool_create(int threads, struct pool **out, struct error *e);
void pool_destroy(struct pool *p);      /* NULL-safe; ends and joins the workers */
int pool_threads(const struct pool *p); /* 1 for NULL */

/* Runs fn(ctx, 0 .. n_tasks - 1), each once, and returns when all have ended. Which thread runs a task is open: what a
 * task writes must not depend on it. A worker that sleeps too long to take part is not waited for. With a NULL pool,
 * one thread or one task the caller runs them in order. */
void pool_run(struct pool *p, pool_fn *fn, void *ctx, int64_t n_tasks);

#endif
