/* Work on several threads of this process. */
#ifndef STEPSIM_BASE_THREADS_H
#define STEPSIM_BASE_THREADS_H

#include <stddef.h>

/* Returns the cores that this process may use, at least 1. */
int threads_here(void);

#define THREADS_MOST 64
typedef void thread_work(void *of, int thread, size_t i);
/* Calls work(of, thread, i) once for each i < n, in order of i as threads become free. `thread` is 0 ... threads - 1
 * (THREADS_MOST at most), 0 of them the caller's own; no number is in use twice at once. Where fewer threads start, it
 * takes longer. */
void threads_run(int threads, size_t n, thread_work *work, void *of);

#endif
