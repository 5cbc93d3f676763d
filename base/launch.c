#include "base/launch.h"

#include <stdlib.h>

#include "base/array.h"

/* Returns the value of the first variable that holds a number of at least `least`; `none` if none does. */
static int64_t first_number(const char *const *names, size_t n, int64_t least, int64_t none)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = getenv(names[i]);
		char *end;
		const int64_t value = text ? strtoll(text, &end, 10) : 0;
		if (text && end != text && !*end && value >= least)
			return value;
	}
	return none;
}

void launch_read(struct launch *out)
{
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_WORLD_SIZE"};
	static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	static const char *const local_ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
	static const char *const tasks[] = {"SLURM_STEP_NUM_TASKS"};
	const int64_t slurm_tasks = first_number(tasks, COUNT(tasks), 1, 1),
		      size = first_number(sizes, COUNT(sizes), 1, 0);
	out->pmi = size || getenv("PMIX_RANK") || getenv("PMI_RANK");
	out->launched = out->pmi || slurm_tasks > 1;
	out->ranks = size ? size : slurm_tasks;
	out->rank = out->launched ? first_number(ranks, COUNT(ranks), 0, 0) : 0;
	out->local_rank = first_number(local_ranks, COUNT(local_ranks), 0, out->launched ? -1 : 0);
}
