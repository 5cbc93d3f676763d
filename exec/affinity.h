/* The CPUs of this process: which ones it was given, and binding to those that topology/placement.h chose for it. */
#ifndef STEPSIM_EXEC_AFFINITY_H
#define STEPSIM_EXEC_AFFINITY_H

#include <stdint.h>

#include "base/status.h"
#include "exec/board.h"

/* The CPUs that this process was given, as bits. A launcher that binds each rank (mpirun: one core a rank) has more
 * itself: then its CPUs, so that the user's own limit on the launcher (taskset, a container) holds and the launcher's
 * narrower binding of its children does not. */
void affinity_given(uint64_t cpus[BOARD_CPU_WORDS]);

/* The CPUs that this process itself was started on, as bits, where its user may have chosen them: a wrapper with
 * taskset or numactl, an option of mpirun's, a batch system. All zero where Open MPI's mpirun bound it as it does when
 * nobody asks: to a core or a socket by its number. */
void affinity_own(uint64_t cpus[BOARD_CPU_WORDS]);

/* The same as a list, "0-3,8", as topology/placement.h takes it; "" for no CPU. The caller frees it. */
enum status affinity_text(const uint64_t cpus[BOARD_CPU_WORDS], char **out, struct error *e);

/* Binds all threads of this process to the CPUs of a list that topology/placement.h gave (struct placement). ST_RUN
 * when the kernel refuses, as it does when none of them may be used. */
enum status affinity_bind(const char *list, struct error *e);

#endif
