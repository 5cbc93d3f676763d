/* Launchers speak through the environment: whether an MPI job can start, who leads. */
#include <stdlib.h>
#include <string.h>

#include "base/launch.h"
#include "tests/unit/harness.h"

/* Variables that launchers set, as "NAME=VALUE NAME=VALUE". */
struct launch_case {
	const char *environment;
	struct launch expected;
};

static void read_case(const char *environment, struct launch *out)
{
	static const char *const known[] = {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_LOCAL_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_WORLD_SIZE", "MPI_LOCALRANKID",
		"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"};
	char text[256];
	for (size_t i = 0; i < COUNT(known); i++)
		unsetenv(known[i]);
	snprintf(text, sizeof text, "%s", environment);
	for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(word, '=');
		*value++ = '\0';
		setenv(word, value, 1);
	}
	launch_read(out);
}

static void test_launchers(void)
{
	static const struct launch_case cases[] = {
		{"", {false, false, 0, 1, 0}},
		{"OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=3",
			{true, true, 3, 8, 1}},
		/* srun --mpi=none -n 1, and a shell that srun --pty started: no job */
		{"SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0", {false, false, 0, 1, 0}},
		/* a batch script: no step of its own */
		{"SLURM_PROCID=0 SLURM_LOCALID=0", {false, false, 0, 1, 0}},
		{"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 SLURM_LOCALID=0", {true, false, 2, 4, 0}},
		{"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 SLURM_LOCALID=2 PMIX_RANK=2", {true, true, 2, 4, 2}},
		{"SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 PMIX_RANK=0", {true, true, 0, 1, -1}},
		{"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 PMI_SIZE=2 PMI_RANK=1", {true, true, 1, 2, -1}},
		/* mpirun's daemons are tasks of srun's: rank 5 of 8 on the second of two */
		{"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=5 "
		 "OMPI_COMM_WORLD_LOCAL_RANK=1",
			{true, true, 5, 8, 1}},
		{"OMPI_COMM_WORLD_SIZE=many SLURM_STEP_NUM_TASKS=", {false, false, 0, 1, 0}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct launch *want = &cases[i].expected;
		struct launch l;
		read_case(cases[i].environment, &l);
		CU_ASSERT_EQUAL(l.launched, want->launched);
		CU_ASSERT_EQUAL(l.pmi, want->pmi);
		CU_ASSERT_EQUAL(l.rank, want->rank);
		CU_ASSERT_EQUAL(l.ranks, want->ranks);
		CU_ASSERT_EQUAL(l.local_rank, want->local_rank);
	}
}

UNIT_MAIN("launch", {"the signs of launchers", test_launchers})
