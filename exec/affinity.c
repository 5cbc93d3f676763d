#include "exec/affinity.h"

#include "base/array.h"
#include "base/launch.h"
#include "exec/launcher.h"

#include <dirent.h>
#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* mpirun tells its children that it bound them, and which options its user gave (Open MPI 4). */
static bool bound_unasked(void)
{
	const char *mapping = getenv("OMPI_MCA_rmaps_base_mapping_policy");
	bool asked = getenv("OMPI_MCA_hwloc_base_binding_policy") || getenv("OMPI_MCA_hwloc_base_cpu_list") ||
	             getenv("OMPI_MCA_rmaps_rank_file_path") || (mapping && strcasestr(mapping, "pe="));
	return getenv("OMPI_MCA_orte_bound_at_launch") && !asked;
}

/* Whether mpirun may have chosen the set by itself. It binds two ranks to a core each, more to NUMA nodes or packages
 * (mpirun(1) of Open MPI 4.1, "--bind-to"). */
static bool chosen_by_mpirun(hwloc_const_bitmap_t set)
{
	static const hwloc_obj_type_t wide[] = {HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE};
	hwloc_topology_t topology;
	struct launch launch;
	bool found = false;
	if (hwloc_topology_init(&topology))
		return false;
	launch_read(&launch);
	if (hwloc_topology_load(topology) == 0) {
		hwloc_obj_t core = launch.local_rank < 0 ? NULL
		                                         : hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE,
								   (unsigned)launch.local_rank);
		found = core && hwloc_bitmap_isequal(core->cpuset, set);
		for (size_t i = 0; i < COUNT(wide); i++)
			for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, wide[i], o));)
				found |= hwloc_bitmap_isequal(o->cpuset, set) != 0;
	}
	hwloc_topology_destroy(topology);
	return found;
}

static hwloc_bitmap_t bitmap_of(const uint64_t cpus[BOARD_CPU_WORDS])
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	bool good = set != NULL;
	for (int cpu = 0; good && cpu < 64 * BOARD_CPU_WORDS; cpu++)
		good = !(cpus[cpu / 64] >> cpu % 64 & 1) || hwloc_bitmap_set(set, (unsigned)cpu) == 0;
	if (good)
		return set;
	hwloc_bitmap_free(set);
	return NULL;
}

void affinity_read(struct affinity *out)
{
	memset(out, 0, sizeof *out);
	sched_getaffinity(0, sizeof out->own, (cpu_set_t *)out->own);
	if (sched_getaffinity(launcher_find(), sizeof out->launcher, (cpu_set_t *)out->launcher))
		memcpy(out->launcher, out->own, sizeof out->launcher);
	out->asked = true;
	if (bound_unasked()) {
		hwloc_bitmap_t set = bitmap_of(out->own);
		out->asked = set && !chosen_by_mpirun(set);
		hwloc_bitmap_free(set);
	}
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
	hwloc_bitmap_t set = bitmap_of(cpus);
	*out = NULL;
	bool good = set && hwloc_bitmap_list_asprintf(out, set) >= 0;
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
