#include "exec/affinity.h"

#include <dirent.h>
#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Launchers that bind their children more narrowly than themselves. slurmstepd is not one of them: what it is given itself says nothing about the job's share. */
static const char *const binders[] = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "mpiexec.hydra", "hydra_pmi_proxy"};

static bool is_binder(const char *name)
{
	for (size_t i = 0; i < sizeof binders / sizeof binders[0]; i++)
		if (!strcmp(name, binders[i]))
			return true;
	return false;
}

/* Name and parent of a process; false when there is none. */
static bool process_of(int pid, char name[64], int *parent)
{
	char path[64], line[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(line, 1, sizeof line - 1, f);
	fclose(f);
	line[n] = 0;
	char *begin = strchr(line, '('), *end = strrchr(line, ')');
	if (!begin || !end || sscanf(end + 1, " %*c %d", parent) != 1)
		return false;
	snprintf(name, 64, "%.*s", (int)(end - begin - 1), begin + 1);
	return true;
}

/* The nearest ancestor that is a binding launcher (there may be a shell or a debugger between), else 0: this process itself. */
static int launcher(void)
{
	int pid = getppid(), parent;
	char name[64];
	for (int depth = 0; depth < 16 && pid > 1 && process_of(pid, name, &parent); depth++) {
		if (is_binder(name))
			return pid;
		pid = parent;
	}
	return 0;
}

void affinity_given(uint64_t cpus[BOARD_CPU_WORDS])
{
	size_t bytes = BOARD_CPU_WORDS * sizeof cpus[0];
	memset(cpus, 0, bytes);
	if (sched_getaffinity(launcher(), bytes, (cpu_set_t *)cpus))
		sched_getaffinity(0, bytes, (cpu_set_t *)cpus);
}

static enum status bind_threads(const uint64_t cpus[BOARD_CPU_WORDS], struct error *e)
{
	/* Libraries that were loaded before have threads already: BLAS its workers, MPI its own. */
	DIR *tasks = opendir("/proc/self/task");
	if (!tasks)
		return error_set(e, ST_RUN, "/proc/self/task: %s", strerror(errno));
	enum status st = ST_OK;
	for (const struct dirent *d; !st && (d = readdir(tasks));) {
		int tid = atoi(d->d_name);
		if (tid > 0 && sched_setaffinity(tid, BOARD_CPU_WORDS * sizeof cpus[0], (const cpu_set_t *)cpus) && errno != ESRCH)
			st = error_set(e, ST_RUN, "cannot bind to the rank's cores: %s", strerror(errno));
	}
	closedir(tasks);
	return st;
}

/* The cores that have a CPU in `cpus`, in hwloc's order (neighbours share caches and memory). */
static int64_t list_cores(hwloc_topology_t topology, const uint64_t cpus[BOARD_CPU_WORDS], uint64_t (*mask)[BOARD_CPU_WORDS])
{
	hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
	int64_t n = 0;
	for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(topology, type, core));) {
		bool any = false;
		memset(mask[n], 0, sizeof mask[n]);
		for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0 && cpu < 64 * BOARD_CPU_WORDS; cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
			uint64_t bit = cpus[cpu / 64] & 1ULL << cpu % 64;
			mask[n][cpu / 64] |= bit;
			any = any || bit;
		}
		n += any;
	}
	return n;
}

enum status affinity_bind(const uint64_t cpus[BOARD_CPU_WORDS], int64_t local_rank, int64_t local_ranks, struct share *out, struct error *e)
{
	enum status st = ST_OK;
	uint64_t (*cores)[BOARD_CPU_WORDS] = NULL, mine[BOARD_CPU_WORDS] = {0};
	hwloc_topology_t topology = NULL;
	if (hwloc_topology_init(&topology) || hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) ||
	    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) || hwloc_topology_load(topology)) {
		st = error_set(e, ST_RUN, "hwloc cannot read this host's cores: %s", strerror(errno));
		goto out;
	}
	cores = calloc((size_t)hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU) + 1, sizeof *cores);
	if (!cores) {
		st = error_nomem(e, "the list of cores");
		goto out;
	}
	int64_t n = list_cores(topology, cpus, cores);
	if (n < 1) {
		st = error_set(e, ST_RUN, "hwloc finds none of the CPUs that this process may use");
		goto out;
	}
	*out = (struct share){.cores = n, .cores_per_rank = n >= local_ranks ? n / local_ranks : 1, .shared = n < local_ranks};
	int64_t first = out->shared ? local_rank * n / local_ranks : local_rank * out->cores_per_rank;
	for (int64_t i = first; i < first + out->cores_per_rank; i++)
		for (size_t w = 0; w < BOARD_CPU_WORDS; w++)
			mine[w] |= cores[i][w];
	st = bind_threads(mine, e);
out:
	free(cores);
	if (topology)
		hwloc_topology_destroy(topology);
	return st;
}
