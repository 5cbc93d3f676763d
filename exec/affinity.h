/* The CPUs of this process: which ones it was given, and binding to those that topology/placement.h chose for it. */
#ifndef STEPSIM_EXEC_AFFINITY_H
#define STEPSIM_EXEC_AFFINITY_H

#include <stdint.h>

#include "base/status.h"
#include "exec/board.h"

/* Reads how this process started. Not `asked` where Open MPI's mpirun bound this process and its user said nothing of
 * binding, unless `own` is not what mpirun would have chosen unasked: the core of the local rank's number, or all of a
 * NUMA node or package. */
void affinity_read(struct affinity *out);

/* The same as a list, "0-3,8", as topology/placement.h takes it; "" for no CPU. The caller frees it. */
enum status affinity_text(const uint64_t cpus[BOARD_CPU_WORDS], char **out, struct error *e);

/* Binds all threads of this process to the CPUs of a list that topology/placement.h gave (struct placement). ST_RUN
 * when the kernel refuses, as it does when none of them may be used. */
enum status affinity_bind(const char *list, struct error *e);

#endif
