/* Which CPUs a rank runs on: the host's allowed cores, divided evenly among its ranks. */
#ifndef STEPSIM_EXEC_AFFINITY_H
#define STEPSIM_EXEC_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/board.h"

/* The CPUs that this process was given, as bits. A launcher that binds each rank (mpirun: one core a rank) has more itself: then its CPUs, so that the user's own limit on
 * the launcher (taskset, a container) holds and the launcher's narrower binding of its children does not. */
void affinity_given(uint64_t cpus[BOARD_CPU_WORDS]);

struct share {
	int64_t cores, cores_per_rank; /* physical cores in `cpus`; of one rank, at least 1 */
	bool shared;                   /* more ranks than cores */
};

/* Binds all threads of this process to rank `local_rank`'s share of the cores in `cpus` (all their hardware threads): with c cores and n ranks, c / n neighbouring cores each,
 * and where that is none, core local_rank c / n. */
enum status affinity_bind(const uint64_t cpus[BOARD_CPU_WORDS], int64_t local_rank, int64_t local_ranks, struct share *out, struct error *e);

#endif
