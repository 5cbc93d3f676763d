#include "base/clock.h"

#include <time.h>

static double read_s(clockid_t id)
{
	struct timespec t = {0};
	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_s(void) { return read_s(CLOCK_MONOTONIC); }

double clock_thread_cpu_s(void) { return read_s(CLOCK_THREAD_CPUTIME_ID); }
