/* Host facts: hwloc for what the hardware is, the kernel for what this process may have of it. */
#include <errno.h>
#include <hwloc.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "topology/machine.h"

#define FILE_LIMIT_B 65536

/* The number after `key` in a small text file (key "": at its beginning); false when the file or the number is not
 * there ("max" is none). */
static bool number_in(const char *path, const char *key, uint64_t *value)
{
	char *text = NULL;
	size_t len;
	struct error ignored = {0};
	if (file_read(path, FILE_LIMIT_B, &text, &len, &ignored))
		return false;
	const char *at = strstr(text, key);
	char *end = NULL;
	errno = 0;
	unsigned long long v = at ? strtoull(at + strlen(key), &end, 10) : 0;
	bool ok = at && end != at + strlen(key) && errno == 0;
	if (ok)
		*value = v;
	free(text);
	return ok;
}

/* Finds the memory left under one cgroup's limit. The kernel counts the page cache as used but gives it back, so it is
 * added again (memory.stat's inactive_file). */
static bool cgroup_left(const char *folder, const char *limit_file, const char *used_file, const char *cache_key,
	uint64_t *left_B)
{
	char path[PATH_MAX_LEN + 64];
	uint64_t limit, used, cache = 0;
	snprintf(path, sizeof path, "%s/%s", folder, limit_file);
	if (!number_in(path, "", &limit) || limit >= UINT64_C(1)
							     << 60) /* version 1 writes a huge number for "no limit" */
		return false;
	snprintf(path, sizeof path, "%s/%s", folder, used_file);
	if (!number_in(path, "", &used))
		return false;
	snprintf(path, sizeof path, "%s/memory.stat", folder);
	number_in(path, cache_key, &cache);
	used -= cache < used ? cache : used;
	*left_B = limit > used ? limit - used : 0;
	return true;
}

/* A folder of cgroups; `top` characters of it are the mount's, with the root before it. */
struct cgroup {
	char folder[PATH_MAX_LEN];
	size_t top;
};

/* Finds this process's cgroup below `mount`: the line of /proc/self/cgroup that begins after `tag` ("0::" for
 * version 2, ":memory:" for 1). */
static bool cgroup_find(const char *root, const char *mount, const char *tag, struct cgroup *out)
{
	char path[PATH_MAX_LEN], *text = NULL;
	size_t len;
	struct error ignored = {0};
	snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	if (file_read(path, FILE_LIMIT_B, &text, &len, &ignored))
		return false;
	const char *at = strstr(text, tag);
	if (at) {
		at += strlen(tag);
		size_t n = strcspn(at, "\n");
		snprintf(out->folder, sizeof out->folder, "%s%s%.*s", root, mount, (int)n, at);
		out->top = strlen(root) + strlen(mount);
	}
	free(text);
	return at != NULL;
}

/* A limit holds at every level up to the mount; inside a container the own folder is often the mount itself. False when
 * the folder was the mount. */
static bool level_up(struct cgroup *g)
{
	char *slash = strrchr(g->folder, '/');
	if (strlen(g->folder) <= g->top || !slash)
		return false;
	*slash = '\0';
	return true;
}

static void cgroup_limits(const char *root, const char *mount, const char *tag, const char *limit_file,
	const char *used_file, const char *cache_key, uint64_t *available_B)
{
	struct cgroup g;
	if (!cgroup_find(root, mount, tag, &g))
		return;
	do {
		uint64_t left;
		if (cgroup_left(g.folder, limit_file, used_file, cache_key, &left) && left < *available_B)
			*available_B = left;
	} while (level_up(&g));
}

uint64_t host_memory_under(const char *root, uint64_t available_B)
{
	cgroup_limits(root, "/sys/fs/cgroup", "0::", "memory.max", "memory.current", "inactive_file ", &available_B);
	cgroup_limits(root, "/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes", "memory.usage_in_bytes",
		"total_inactive_file ", &available_B);
	return available_B;
}

enum status host_memory_read(uint64_t *total_B, uint64_t *available_B, struct error *e)
{
	uint64_t kB;
	if (!number_in("/proc/meminfo", "MemTotal:", &kB))
		return error_set(e, ST_RUN, "cannot read the size of memory from /proc/meminfo");
	*total_B = kB * 1024;
	*available_B = number_in("/proc/meminfo", "MemAvailable:", &kB) ? kB * 1024 : *total_B;
	*available_B = host_memory_under("", *available_B);
	return ST_OK;
}

static void read_name(hwloc_topology_t topology, struct host_facts *out)
{
	hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
	const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
	if (!model)
		model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
	snprintf(out->cpu, sizeof out->cpu, "%s", model ? model : "unknown CPU");
	if (gethostname(out->host, sizeof out->host - 1))
		strcpy(out->host, "unknown");
}

static uint64_t cache_size(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
	return cache ? cache->attr->cache.size : 0;
}

/* Cores with at least one hardware thread that the affinity mask leaves to this process. */
static int64_t allowed_cores(hwloc_topology_t topology, hwloc_const_bitmap_t allowed)
{
	int64_t cores = 0;
	for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core));)
		cores += hwloc_bitmap_intersects(core->cpuset, allowed) ? 1 : 0;
	return cores ? cores : hwloc_bitmap_weight(allowed); /* machines that show hardware threads only */
}

/* Where each version of cgroups keeps CPU time: quota and period in microseconds, each the number behind a key in a
 * file. "max" and -1, which reads as a huge number, are no quota. */
static const struct {
	const char *mount, *tag, *quota_file, *period_file, *period_key;
} cpu_limits[] = {
	{"/sys/fs/cgroup", "0::", "cpu.max", "cpu.max", " "},
	{"/sys/fs/cgroup/cpu", ":cpu:", "cpu.cfs_quota_us", "cpu.cfs_period_us", ""},
	{"/sys/fs/cgroup/cpu", ":cpu,cpuacct:", "cpu.cfs_quota_us", "cpu.cfs_period_us", ""},
	{"/sys/fs/cgroup/cpu", ":cpuacct,cpu:", "cpu.cfs_quota_us", "cpu.cfs_period_us", ""},
};

double host_cpu_time_under(const char *root, double cores)
{
	for (size_t i = 0; i < COUNT(cpu_limits); i++) {
		char quota_path[PATH_MAX_LEN + 32], period_path[PATH_MAX_LEN + 32];
		struct cgroup g;
		if (!cgroup_find(root, cpu_limits[i].mount, cpu_limits[i].tag, &g))
			continue;
		do {
			uint64_t quota, period;
			snprintf(quota_path, sizeof quota_path, "%s/%s", g.folder, cpu_limits[i].quota_file);
			snprintf(period_path, sizeof period_path, "%s/%s", g.folder, cpu_limits[i].period_file);
			if (number_in(quota_path, "", &quota) &&
				number_in(period_path, cpu_limits[i].period_key, &period) && period > 0)
				cores = fmin(cores, (double)quota / (double)period);
		} while (level_up(&g));
	}
	return cores;
}

double host_cpu_time(double cores) { return host_cpu_time_under("", cores); }

int64_t host_quota(int64_t cores)
{
	const double left = host_cpu_time((double)cores);
	return left < 1 ? 1 : (int64_t)left;
}

enum status host_facts_read(struct host_facts *out, struct error *e)
{
	memset(out, 0, sizeof *out);
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology))
		return error_nomem(e, "hwloc's topology");
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	enum status st = allowed ? ST_OK : error_nomem(e, "a CPU set");
	if (!st && hwloc_topology_load(topology))
		st = error_set(e, ST_RUN, "hwloc cannot read this machine's topology: %s", strerror(errno));
	if (st)
		goto out;
	if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) || hwloc_bitmap_iszero(allowed))
		hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
	read_name(topology, out);
	out->cores = host_quota(allowed_cores(topology, allowed));
	out->l2_B = cache_size(topology, HWLOC_OBJ_L2CACHE);
	out->l3_B = cache_size(topology, HWLOC_OBJ_L3CACHE);
	out->numa_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
	out->packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
	st = host_memory_read(&out->mem_total_B, &out->mem_available_B, e);
out:
	hwloc_bitmap_free(allowed);
	hwloc_topology_destroy(topology);
	return st;
}
