/* The board that ranks of a host share, and the cores they get. */
#include "tests/unit/harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "exec/affinity.h"
#include "exec/board.h"

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

/* In a child, since binding cannot be undone: what rank `rank` of `ranks` gets of `cpus`. Exit code of the child: 0 when all holds. */
static int bound(const uint64_t cpus[BOARD_CPU_WORDS], int64_t rank, int64_t ranks, struct share *out)
{
	int pipe_fd[2], status = -1;
	if (pipe(pipe_fd))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct error e = {ST_OK, ""};
		struct share s;
		uint64_t mine[BOARD_CPU_WORDS] = {0};
		int bad = affinity_bind(cpus, rank, ranks, &s, &e) != ST_OK;
		bad = bad || sched_getaffinity(0, sizeof mine, (cpu_set_t *)mine) < 0;
		for (int i = 0; i < BOARD_CPU_WORDS; i++)
			bad = bad || (mine[i] & ~cpus[i]);
		struct share sent; /* field by field: padding of `s` is not initialised */
		memset(&sent, 0, sizeof sent);
		sent.cores = s.cores;
		sent.cores_per_rank = s.cores_per_rank;
		sent.shared = s.shared;
		bad = bad || bits(mine) < s.cores_per_rank || write(pipe_fd[1], &sent, sizeof sent) != sizeof sent;
		_exit(bad);
	}
	close(pipe_fd[1]);
	if (read(pipe_fd[0], out, sizeof *out) != sizeof *out)
		memset(out, 0, sizeof *out);
	close(pipe_fd[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_shares(void)
{
	uint64_t cpus[BOARD_CPU_WORDS];
	struct share all, half, one;
	affinity_given(cpus);
	CU_ASSERT_TRUE_FATAL(bits(cpus) >= 1);
	CU_ASSERT_EQUAL(bound(cpus, 0, 1, &all), 0);
	CU_ASSERT_TRUE(all.cores >= 1 && all.cores <= bits(cpus));
	CU_ASSERT_EQUAL(all.cores_per_rank, all.cores);
	CU_ASSERT_FALSE(all.shared);
	for (int64_t rank = 0; rank < 2; rank++) {
		CU_ASSERT_EQUAL(bound(cpus, rank, 2, &half), 0);
		CU_ASSERT_EQUAL(half.cores_per_rank, all.cores >= 2 ? all.cores / 2 : 1);
		CU_ASSERT_EQUAL(half.shared, all.cores < 2);
	}
	for (int64_t rank = 0; rank <= all.cores; rank++) { /* one rank more than cores */
		CU_ASSERT_EQUAL(bound(cpus, rank, all.cores + 1, &one), 0);
		CU_ASSERT_EQUAL(one.cores_per_rank, 1);
		CU_ASSERT_TRUE(one.shared);
	}
	/* A limit that the user set on the launcher holds: one CPU stays one. */
	uint64_t single[BOARD_CPU_WORDS] = {0};
	for (int i = 0; i < BOARD_CPU_WORDS && !bits(single); i++)
		single[i] = cpus[i] & (~cpus[i] + 1);
	CU_ASSERT_EQUAL(bound(single, 0, 1, &one), 0);
	CU_ASSERT_EQUAL(one.cores, 1);
	uint64_t none[BOARD_CPU_WORDS] = {0};
	struct error e = {ST_OK, ""};
	CU_ASSERT_EQUAL(affinity_bind(none, 0, 1, &one, &e), ST_RUN);
}

UNIT_MAIN("exec place", {"the board", test_board}, {"shares of the cores", test_shares})
