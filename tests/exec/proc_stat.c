/* A double of /proc/stat, to be preloaded: between FROM and TO seconds after its first reading, others take SHARE of
 * the process's cores (STEPSIM_TEST_OTHERS="SHARE FROM TO"), whatever the machine really does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char text[65536];

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

/* Seconds from FROM on, at most up to TO. */
static double disturbed_s(double from_s, double to_s)
{
	static double first_s = -1;
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	const double now_s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	first_s = first_s < 0 ? now_s : first_s;
	const double at_s = now_s - first_s < to_s ? now_s - first_s : to_s;
	return at_s > from_s ? at_s - from_s : 0;
}

/* All of it on the first CPU of the process: its shares are of all of them. */
static FILE *proc_stat(void)
{
	double share = 0, from_s = 0, to_s = 0;
	cpu_set_t cpus;
	struct rusage own;
	const char *others = getenv("STEPSIM_TEST_OTHERS");
	if (others)
		sscanf(others, "%lf %lf %lf", &share, &from_s, &to_s);
	getrusage(RUSAGE_SELF, &own);
	sched_getaffinity(0, sizeof cpus, &cpus);
	double busy_s = seconds(own.ru_utime) + seconds(own.ru_stime) +
	                share * CPU_COUNT(&cpus) * disturbed_s(from_s, to_s);
	int n = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		n += snprintf(text + n, sizeof text - (size_t)n, "cpu%d %.0f 0 0 0 0 0 0 0 0 0\n", cpu,
			busy_s * (double)sysconf(_SC_CLK_TCK));
		busy_s = 0;
	}
	return fmemopen(text, (size_t)n, "r");
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
	return strcmp(path, "/proc/stat") == 0 ? proc_stat() : real(path, mode);
}
