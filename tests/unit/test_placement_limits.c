#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/harness.h"
#include "topology/machine.h"
#include "topology/placement.h"

/* ---- less CPU time than cores ---- */

static void same_limit(int64_t ranks, int64_t quota, int64_t n_cores, int64_t host_cores, bool shared)
{
	struct placement s[4];
	for (int64_t r = 0; r < ranks; r++)
		s[r] = (struct placement){.gpu = -1, .cores = "0-3", .n_cores = 4, .host_cores = 16};
	placement_limit(s, ranks, quota);
	for (int64_t r = 0; r < ranks; r++) {
		CU_ASSERT_STRING_EQUAL(s[r].cores, "0-3");
		CU_ASSERT_EQUAL(s[r].n_cores, n_cores);
		CU_ASSERT_EQUAL(s[r].host_cores, host_cores);
		CU_ASSERT_EQUAL(s[r].shared, shared);
	}
}

static void test_quota(void)
{
	same_limit(4, 1000, 4, 16, false);
	same_limit(4, 16, 4, 16, false);
	same_limit(4, 15, 3, 15, false);
	same_limit(4, 4, 1, 4, false);
	same_limit(4, 3, 1, 3, true);
	same_limit(1, 1, 1, 1, false);
	same_limit(1, 3, 3, 3, false);
	CU_ASSERT_EQUAL(host_quota(1), 1);
	CU_ASSERT_TRUE(host_quota(1 << 20) >= 1);
}

/* ---- cgroups ---- */

#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"

#define CONTAINER POD "/cri-containerd-2.scope"

static char tree[64];

/* Writes a file below the tree, with its folders. */
static void put(const char *path, const char *text)
{
	char whole[512];
	snprintf(whole, sizeof whole, "%s%s", tree, path);
	for (char *slash = whole + strlen(tree) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	FILE *f = fopen(whole, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void plant(void)
{
	strcpy(tree, "/tmp/test_placement.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(tree));
}

static void fell(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -r '%s'", tree);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* Version 2, as the kernel's Documentation/admin-guide/cgroup-v2.rst has it: a container without a quota of its own in
 * a pod of 3.5 CPUs and 8 GiB. Of the pod's 3 GiB one is cache. The root has no limits. */
static void test_cgroup_v2(void)
{
	plant();
	put("/proc/self/cgroup", "0::" CONTAINER "\n");
	put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n");
	put("/sys/fs/cgroup/cpuset.cpus.effective", "0-15\n");
	put("/sys/fs/cgroup" POD "/cpu.max", "350000 100000\n");
	put("/sys/fs/cgroup" POD "/memory.max", "8589934592\n");
	put("/sys/fs/cgroup" POD "/memory.current", "3221225472\n");
	put("/sys/fs/cgroup" POD "/memory.stat", "anon 2147483648\nfile 1073741824\ninactive_file 1073741824\n");
	put("/sys/fs/cgroup" CONTAINER "/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup" CONTAINER "/memory.max", "max\n");
	put("/sys/fs/cgroup" CONTAINER "/memory.current", "3221225472\n");
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 16), 3.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 2), 2, 1e-12);
	CU_ASSERT_EQUAL(host_memory_under(tree, UINT64_C(64) << 30), UINT64_C(6) << 30);
	CU_ASSERT_EQUAL(host_memory_under(tree, UINT64_C(1) << 30), UINT64_C(1) << 30);
	/* A tighter one below counts, with its own period. */
	put("/sys/fs/cgroup" CONTAINER "/cpu.max", "25000 50000\n");
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 16), 0.5, 1e-12);
	/* In a namespace of cgroups the container's own folder is the mount. */
	put("/proc/self/cgroup", "0::/\n");
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 16), 16, 1e-12);
	put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
	put("/sys/fs/cgroup/memory.max", "1073741824\n");
	put("/sys/fs/cgroup/memory.current", "0\n");
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 16), 1.5, 1e-12);
	CU_ASSERT_EQUAL(host_memory_under(tree, UINT64_C(64) << 30), UINT64_C(1) << 30);
	fell();
}

/* Version 1, with the lines of a machine that mounts both: -1 is no quota. */
static void test_cgroup_v1(void)
{
	plant();
	put("/proc/self/cgroup", "4:memory:/jobs/7\n3:cpuset:/\n2:cpu,cpuacct:/jobs/7\n0::/\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/jobs/7/cpu.cfs_quota_us", "2500\n");
	put("/sys/fs/cgroup/cpu/jobs/7/cpu.cfs_period_us", "5000\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
	put("/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "4294967296\n");
	put("/sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes", "2147483648\n");
	put("/sys/fs/cgroup/memory/jobs/7/memory.stat", "cache 5\ntotal_inactive_file 1073741824\n");
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 2), 0.5, 1e-12);
	CU_ASSERT_EQUAL(host_memory_under(tree, UINT64_C(64) << 30), UINT64_C(3) << 30);
	put("/sys/fs/cgroup/cpu/jobs/7/cpu.cfs_quota_us", "-1\n");
	CU_ASSERT_DOUBLE_EQUAL(host_cpu_time_under(tree, 2), 2, 1e-12);
	fell();
}

UNIT_MAIN("placement under limits", {"less CPU time than cores", test_quota}, {"cgroups of version 2", test_cgroup_v2},
	{"cgroups of version 1", test_cgroup_v1})
