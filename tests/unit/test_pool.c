/* The thread pool: every task of every job runs once, on a valid thread, before pool_run returns. */
#include "exec/host/pool.h"

#include <stdatomic.h>
#include <time.h>

#include "tests/unit/harness.h"

#define TASKS 200

struct job {
	atomic_int runs[TASKS];
	atomic_int wrong_threads;
	int threads;
	long pause_ns;
};

static void pause_ns(long ns)
{
	struct timespec t = {0, ns};
	if (ns)
		nanosleep(&t, NULL);
}

static void count(void *ctx, int64_t task, int thread)
{
	struct job *j = ctx;
	atomic_fetch_add(&j->runs[task], 1);
	if (thread < 0 || thread >= j->threads)
		atomic_fetch_add(&j->wrong_threads, 1);
	pause_ns(j->pause_ns);
}

static void run_jobs(int threads, int jobs, int64_t tasks, long in_task_ns, long between_ns)
{
	struct error e = {0};
	struct pool *p;
	CU_ASSERT_EQUAL_FATAL(pool_create(threads, &p, &e), ST_OK);
	CU_ASSERT_EQUAL(pool_threads(p), threads);
	struct job j = {.threads = threads, .pause_ns = in_task_ns};
	int wrong = 0;
	for (int i = 1; i <= jobs; i++) {
		pool_run(p, count, &j, tasks);
		for (int64_t t = 0; t < TASKS; t++)
			wrong += atomic_load(&j.runs[t]) != (t < tasks ? i : 0);
		pause_ns(between_ns);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(atomic_load(&j.wrong_threads), 0);
	pool_destroy(p);
}

static void test_back_to_back(void)
{
	for (int threads = 1; threads <= 4; threads++) {
		run_jobs(threads, 2000, 7, 0, 0);
		run_jobs(threads, 200, TASKS, 0, 0);
		run_jobs(threads, 10, 1, 0, 0);
		run_jobs(threads, 10, 0, 0, 0);
	}
}

/* Workers fall asleep between the jobs, and the caller while it waits for them. */
static void test_with_pauses(void)
{
	run_jobs(3, 50, 7, 0, 300000);
	run_jobs(3, 50, 3, 300000, 0);
}

static void note_thread(void *ctx, int64_t task, int thread)
{
	(void)task;
	atomic_fetch_or((atomic_int *)ctx, 1 << thread);
	pause_ns(1000000);
}

/* Long tasks reach every thread. */
static void test_threads_take_part(void)
{
	struct error e = {0};
	struct pool *p;
	atomic_int seen;
	atomic_init(&seen, 0);
	CU_ASSERT_EQUAL_FATAL(pool_create(3, &p, &e), ST_OK);
	pool_run(p, note_thread, &seen, 300);
	CU_ASSERT_EQUAL(atomic_load(&seen), 7);
	pool_destroy(p);
}

static void add_task(void *ctx, int64_t task, int thread)
{
	(void)thread;
	*(int64_t *)ctx = *(int64_t *)ctx * 10 + task;
}

/* Without a pool: in order, on the caller's thread. */
static void test_no_pool(void)
{
	int64_t order = 0;
	pool_run(NULL, add_task, &order, 4);
	CU_ASSERT_EQUAL(order, 123);
	CU_ASSERT_EQUAL(pool_threads(NULL), 1);
	pool_destroy(NULL);
}

UNIT_MAIN("pool", {"back to back", test_back_to_back}, {"with pauses", test_with_pauses},
	{"threads take part", test_threads_take_part}, {"no pool", test_no_pool})
