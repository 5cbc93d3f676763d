/* The board that ranks of a host share, the CPUs they were given, and binding to some of them. */
#include "base/array.h"
#include "tests/unit/harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "exec/affinity.h"
#include "exec/board.h"
#include "topology/placement.h"

static void test_board(void)
{
	struct error e = {ST_OK, ""};
	struct board *first = NULL, *second = NULL;
	char name[64];
	snprintf(name, sizeof name, "/stepsim-test-%d", getpid());
	CU_ASSERT_EQUAL_FATAL(board_create(name, 3, &first, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(board_open(name, 3, &second, &e), ST_OK);
	board_unlink(name);
	CU_ASSERT_EQUAL(second->slots, 3);
	atomic_store(&first->slot[2].beacon.progress, 42);
	CU_ASSERT_EQUAL(atomic_load(&second->slot[2].beacon.progress), 42);
	char longer[2 * BOARD_TEXT];
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = 0;
	board_doing(&first->slot[1], longer);
	CU_ASSERT_EQUAL(strlen(second->slot[1].doing), BOARD_TEXT - 1);
	board_doing(&first->slot[1], "short");
	CU_ASSERT_STRING_EQUAL(second->slot[1].doing, "short");
	struct board *gone = NULL;
	CU_ASSERT_EQUAL(board_open(name, 3, &gone, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, name));
	board_close(first);
	board_close(second);
	board_close(NULL);
}

static int bits(const uint64_t cpus[BOARD_CPU_WORDS])
{
	int n = 0;
	for (int i = 0; i < BOARD_CPU_WORDS; i++)
		n += __builtin_popcountll(cpus[i]);
	return n;
}

static void test_text(void)
{
	struct error e = {ST_OK, ""};
	uint64_t cpus[BOARD_CPU_WORDS] = {0};
	char *text = NULL;
	CU_ASSERT_EQUAL_FATAL(affinity_text(cpus, &text, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(text, "");
	free(text);
	cpus[0] = 0x8000000000000107;
	cpus[1] = 1;
	cpus[BOARD_CPU_WORDS - 1] = 1ULL << 63;
	CU_ASSERT_EQUAL_FATAL(affinity_text(cpus, &text, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(text, "0-2,8,63-64,8191");
	free(text);
}

/* In a child, since binding cannot be undone: its main thread and one that was there before are bound to `list`. Exit
 * code of the child: affinity_bind's status, 10 when the CPUs are others than `want`. */
static void *wait_for_end(void *pipe_end)
{
	char byte;
	while (read(*(int *)pipe_end, &byte, 1) > 0)
		;
	return NULL;
}

static int bound(const char *list, const uint64_t want[BOARD_CPU_WORDS])
{
	int status = -1, end[2];
	if (pipe(end))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct error e = {ST_OK, ""};
		pthread_t thread;
		uint64_t main_cpus[BOARD_CPU_WORDS] = {0}, thread_cpus[BOARD_CPU_WORDS] = {0};
		bool started = pthread_create(&thread, NULL, wait_for_end, &end[0]) == 0;
		enum status st = affinity_bind(list, &e);
		bool same = started && sched_getaffinity(0, sizeof main_cpus, (cpu_set_t *)main_cpus) == 0 &&
		            pthread_getaffinity_np(thread, sizeof thread_cpus, (cpu_set_t *)thread_cpus) == 0 &&
		            !memcmp(main_cpus, want, sizeof main_cpus) &&
		            !memcmp(thread_cpus, want, sizeof thread_cpus);
		_exit(st ? (int)st : same ? 0 : 10);
	}
	close(end[0]);
	waitpid(pid, &status, 0);
	close(end[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_binding(void)
{
	struct error e = {ST_OK, ""};
	uint64_t cpus[BOARD_CPU_WORDS], one[BOARD_CPU_WORDS] = {0}, none[BOARD_CPU_WORDS] = {0};
	char *list = NULL, *single = NULL;
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof cpus, (cpu_set_t *)memset(cpus, 0, sizeof cpus)), 0);
	CU_ASSERT_TRUE_FATAL(bits(cpus) >= 1);
	CU_ASSERT_EQUAL_FATAL(affinity_text(cpus, &list, &e), ST_OK);
	CU_ASSERT_EQUAL(bound(list, cpus), 0);
	for (int i = 0; i < BOARD_CPU_WORDS && !bits(one); i++)
		one[i] = cpus[i] & (~cpus[i] + 1);
	CU_ASSERT_EQUAL_FATAL(affinity_text(one, &single, &e), ST_OK);
	CU_ASSERT_EQUAL(bound(single, one), 0);
	CU_ASSERT_EQUAL(bound("", none), ST_RUN);
	free(list);
	free(single);
}

static void launched(const char *bound, const char *binding, const char *mapping)
{
	const char *const variables[][2] = {{"OMPI_MCA_orte_bound_at_launch", bound},
		{"OMPI_MCA_hwloc_base_binding_policy", binding}, {"OMPI_MCA_rmaps_base_mapping_policy", mapping}};
	for (size_t i = 0; i < COUNT(variables); i++)
		if (!variables[i][1] || setenv(variables[i][0], variables[i][1], 1))
			unsetenv(variables[i][0]);
}

/* What the first rank of a host finds out when mpirun bound it to `list`; both CPU sets are one here, since no launcher
 * is above. */
static bool asked_on(const char *list)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct error e = {ST_OK, ""};
		static struct affinity a;
		if (affinity_bind(list, &e))
			_exit(10);
		affinity_read(&a);
		_exit(memcmp(a.own, a.launcher, sizeof a.own) ? 11 : a.asked);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* A binding that mpirun makes unasked does not count as the user's. */
static void test_asked(void)
{
	static struct affinity now;
	struct error e = {ST_OK, ""};
	char *list = NULL;
	affinity_read(&now);
	CU_ASSERT_EQUAL_FATAL(affinity_text(now.own, &list, &e), ST_OK);
	unsetenv("OMPI_MCA_hwloc_base_cpu_list");
	unsetenv("OMPI_MCA_rmaps_rank_file_path");
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
	/* Four cores of a package each: mpirun chooses core 0 or the package. */
	setenv("HWLOC_SYNTHETIC", "package:2 core:4 pu:1", 1);
	launched(NULL, "none", NULL);
	CU_ASSERT_TRUE(asked_on(list));
	launched("1", "core", NULL);
	CU_ASSERT_TRUE(asked_on(list));
	launched("1", NULL, "ppr:4:socket:PE=8");
	CU_ASSERT_TRUE(asked_on(list));
	if (now.own[0] & 1) {
		launched("1", NULL, NULL);
		CU_ASSERT_FALSE(asked_on("0"));
		launched("1", NULL, "ppr:4:socket");
		CU_ASSERT_FALSE(asked_on("0"));
		/* The second rank of a host on the first's core, which mpirun does not do. */
		setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
		CU_ASSERT_TRUE(asked_on("0"));
	}
	if ((now.own[0] & 3) == 3) {
		/* All of a package, and two cores of four. */
		setenv("HWLOC_SYNTHETIC", "package:4 core:2 pu:1", 1);
		CU_ASSERT_FALSE(asked_on("0-1"));
		setenv("HWLOC_SYNTHETIC", "package:2 core:4 pu:1", 1);
		CU_ASSERT_TRUE(asked_on("0-1"));
	}
	free(list);
	launched(NULL, NULL, NULL);
	unsetenv("HWLOC_SYNTHETIC");
	unsetenv("OMPI_COMM_WORLD_SIZE");
	unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
}

/* Goes the way of a session, from the CPUs that were given to a placement. A limit that the user set on the launcher
 * holds: one CPU stays one. */
static void test_session_placement(void)
{
	struct error e = {ST_OK, ""};
	uint64_t cpus[BOARD_CPU_WORDS], one[BOARD_CPU_WORDS] = {0};
	char *list = NULL, *single = NULL;
	struct placement placements[2];
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof cpus, (cpu_set_t *)memset(cpus, 0, sizeof cpus)), 0);
	CU_ASSERT_EQUAL_FATAL(affinity_text(cpus, &list, &e), ST_OK);
	CU_ASSERT_EQUAL(placement_choose(NULL, (const char *[]){list}, 1, false, false, placements, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(placements[0].cores, list);
	CU_ASSERT_EQUAL(placements[0].n_cores, placements[0].host_cores);
	CU_ASSERT_FALSE(placements[0].shared);
	for (int i = 0; i < BOARD_CPU_WORDS && !bits(one); i++)
		one[i] = cpus[i] & (~cpus[i] + 1);
	CU_ASSERT_EQUAL_FATAL(affinity_text(one, &single, &e), ST_OK);
	CU_ASSERT_EQUAL(placement_choose(NULL, (const char *[]){single, single}, 2, false, false, placements, &e),
		ST_OK);
	CU_ASSERT_STRING_EQUAL(placements[0].cores, single);
	CU_ASSERT_STRING_EQUAL(placements[1].cores, single);
	CU_ASSERT_EQUAL(placements[1].n_cores, 1);
	CU_ASSERT_EQUAL(placements[1].host_cores, 1);
	CU_ASSERT_TRUE(placements[1].shared);
	free(list);
	free(single);
}

UNIT_MAIN("exec place", {"the board", test_board}, {"CPUs as a list", test_text},
	{"binding of all threads", test_binding}, {"the user's own binding", test_asked},
	{"from the CPUs given to a placement", test_session_placement})
