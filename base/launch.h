/* Reads what a launcher (mpirun, srun) says in the environment of a process that it started. MPI is not asked. */
#ifndef STEPSIM_BASE_LAUNCH_H
#define STEPSIM_BASE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct launch {
	/* An MPI job can start: Open MPI's variables, PMI's or PMIx's are there, or Slurm started several tasks. A
	 * single task of Slurm's without PMI (`srun --mpi=none -n 1`, `srun --pty bash`) is not launched. */
	bool launched;
	bool pmi;                        /* false: Slurm started several tasks that cannot find each other */
	int64_t rank, ranks, local_rank; /* 0, 1 and 0 without a launcher; local_rank -1: not said */
};

/* Never fails: what is not said keeps its default. The strongest sign first: Open MPI's variables, PMIx's, PMI's,
 * Slurm's. The ranks of mpirun's daemons, which srun starts, inherit Slurm's of the daemon. */
void launch_read(struct launch *out);

#endif
