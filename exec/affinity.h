/* The CPUs of this process: which ones it was given, and binding to those that topology/placement.h chose for it. */
#ifndef STEPSIM_EXEC_AFFINITY_H
#define STEPSIM_EXEC_AFFINITY_H

#include <stdint.h>

#include "base/status.h"
#include "exec/board.h"

/* The CPUs that this process was given, as bits. A launcher that binds each rank (mpirun: one core a rank) has more itself: then its CPUs, so that the user's own limit on
 * the launcher (taskset, a container) holds and the launcher's narrower binding of its children does not. */
void affinity_given(uint64_t cpus[BOARD_CPU_WORDS]);

/* The same as a list, "0-3,8", as topology/placement.h takes it; "" for no CPU. The caller frees it. */
enum status affinity_text(const uint64_t cpus[BOARD_CPU_WORDS], char **out, struct error *e);

/* Binds all threads of this process to the CPUs of a list that topology/placement.h gave (struct seat). ST_RUN when the kernel refuses, as it does when none of them may be used. */
enum status affinity_bind(const char *list, struct error *e);

#endif
