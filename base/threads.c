#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

int threads_here(void)
{
	cpu_set_t cpus;
	return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

struct shared {
	thread_work *work;
	void *of;
	size_t n;
	atomic_size_t next; /* what a free thread takes */
};

struct member {
	struct shared *shared;
	int number;
	pthread_t thread;
};

static void *take(void *member)
{
	const struct member *m = member;
	struct shared *s = m->shared;
	for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n;)
		s->work(s->of, m->number, i);
	return NULL;
}

void threads_run(int threads, size_t n, thread_work *work, void *of)
{
	struct shared s = {.work = work, .of = of, .n = n};
	struct member members[THREADS_MOST];
	int started = 0;
	for (int t = 1; t < threads && t < THREADS_MOST && (size_t)t < n; t++) {
		members[started] = (struct member){.shared = &s, .number = t};
		started += pthread_create(&members[started].thread, NULL, take, &members[started]) == 0;
	}
	struct member own = {.shared = &s};
	take(&own);
	for (int t = 0; t < started; t++)
		pthread_join(members[t].thread, NULL);
}
