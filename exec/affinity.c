#include "exec/affinity.h"

#include "base/array.h"

#include <dirent.h>
#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Launchers that bind their children more narrowly than themselves. slurmstepd is not one of them: what it is given
 * itself says nothing about the job's share. */
static const char *const binders[] = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "mpiexec.hydra",
	"hydra_pmi_proxy"};

static bool is_binder(const char *name)
{
	for (size_t i = 0; i < COUNT(binders); i++)
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

/* The nearest ancestor that is a binding launcher (there may be a shell or a debugger between), else 0: this process
 * itself. */
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

/* mpirun tells its children that it bound them, and which options its user gave (Open MPI 4). */
static bool bound_by_default(void)
{
	const char *mapping = getenv("OMPI_MCA_rmaps_base_mapping_policy");
	bool asked = getenv("OMPI_MCA_hwloc_base_binding_policy") || getenv("OMPI_MCA_hwloc_base_cpu_list") ||
	             getenv("OMPI_MCA_rmaps_rank_file_path") || (mapping && strcasestr(mapping, "pe="));
	return getenv("OMPI_MCA_orte_bound_at_launch") && !asked;
}

void affinity_own(uint64_t cpus[BOARD_CPU_WORDS])
{
	size_t bytes = BOARD_CPU_WORDS * sizeof cpus[0];
	memset(cpus, 0, bytes);
	if (!bound_by_default())
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
		if (tid > 0 && sched_setaffinity(tid, BOARD_CPU_WORDS * sizeof cpus[0], (const cpu_set_t *)cpus) &&
			errno != ESRCH)
			st = error_set(e, ST_RUN, "cannot bind to the rank's cores: %s", strerror(errno));
	}
	closedir(tasks);
	return st;
}

enum status affinity_text(const uint64_t cpus[BOARD_CPU_WORDS], char **out, struct error *e)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	*out = NULL;
	bool good = set != NULL;
	for (int cpu = 0; good && cpu < 64 * BOARD_CPU_WORDS; cpu++)
		good = !(cpus[cpu / 64] >> cpu % 64 & 1) || hwloc_bitmap_set(set, (unsigned)cpu) == 0;
	good = good && hwloc_bitmap_list_asprintf(out, set) >= 0;
	hwloc_bitmap_free(set);
	return good ? ST_OK : error_nomem(e, "the list of CPUs");
}

enum status affinity_bind(const char *list, struct error *e)
{
	uint64_t cpus[BOARD_CPU_WORDS] = {0};
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (!set || hwloc_bitmap_list_sscanf(set, list)) {
		hwloc_bitmap_free(set);
		return error_nomem(e, "a set of CPUs");
	}
	for (int cpu = hwloc_bitmap_first(set); cpu >= 0 && cpu < 64 * BOARD_CPU_WORDS;
		cpu = hwloc_bitmap_next(set, cpu))
		cpus[cpu / 64] |= 1ULL << cpu % 64;
	hwloc_bitmap_free(set);
	return bind_threads(cpus, e);
}
