/* Prints where each rank's threads may run and what its profile's key has of that, for test_binding.sh:
 *
 *   mpirun -np N test_binding
 *   rank 0 threads 0-1 cores 2 binding 2 of 2 cores a rank
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/affinity.h"
#include "exec/session.h"

/* The CPUs that any thread of this process may use. */
static void union_of_threads(uint64_t cpus[BOARD_CPU_WORDS])
{
	uint64_t one[BOARD_CPU_WORDS];
	DIR *tasks = opendir("/proc/self/task");
	memset(cpus, 0, sizeof one);
	for (const struct dirent *d; tasks && (d = readdir(tasks));) {
		memset(one, 0, sizeof one);
		if (atoi(d->d_name) > 0 && sched_getaffinity(atoi(d->d_name), sizeof one, (cpu_set_t *)one) == 0)
			for (size_t w = 0; w < BOARD_CPU_WORDS; w++)
				cpus[w] |= one[w];
	}
	if (tasks)
		closedir(tasks);
}

int main(void)
{
	struct error e = {ST_OK, ""};
	struct session *s = NULL;
	struct profile_key key;
	uint64_t cpus[BOARD_CPU_WORDS];
	char *list = NULL;
	enum status st = session_open(60, &s, &e);
	if (!st) {
		union_of_threads(cpus);
		session_profile_key(s, &key);
		st = session_agree(s, affinity_text(cpus, &list, &e), &e);
	}
	if (st)
		fprintf(stderr, "test_binding: %s\n", e.text);
	else
		printf("rank %lld threads %s cores %lld binding %s\n", (long long)session_info(s)->rank, list,
			(long long)key.cores_per_rank, key.binding);
	fflush(stdout);
	free(list);
	session_close(s);
	return (int)st;
}
