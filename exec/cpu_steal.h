/* The CPU time that other processes and other virtual machines (steal) took of the ranks' cores during a measurement,
 * from Linux's /proc/stat. No rank of the session is another process, whichever host it calls its own: containers and
 * namespaces of one machine share its cores. */
#ifndef STEPSIM_EXEC_CPU_STEAL_H
#define STEPSIM_EXEC_CPU_STEAL_H

#include <stddef.h>
#include <stdint.h>

#include "exec/board.h"
#include "exec/exec.h"

/* A reading of this rank's cores. cpus 0: not known. */
struct cpu_steal {
	double at_s, busy_s,
		stolen_s; /* all processes' time on these cores, and the hypervisor's, since the machine started */
	double own_s;     /* this process's */
	int64_t cpus;
};

/* Where a rank's cores were not its own. Shares of their time. rank -1: nowhere by as much as would show in a
 * measurement. */
struct cpu_steal_worst {
	int64_t rank;
	double taken, stolen;
};

/* In less time, the ticks of 10 ms that each field of /proc/stat is rounded to are as much as what would show. */
#define CPU_STEAL_WINDOW_S 1.0

void cpu_steal_begin(struct cpu_steal *out);
/* Sleeps until the window since `begun` is over, so that cpu_steal_end has something to say. */
void cpu_steal_wait(const struct cpu_steal *begun);
/* Collective: what was taken since cpu_steal_begin from the rank that lost most, on every rank. Nothing where ranks
 * share cores, which they take from each other, and of less than CPU_STEAL_WINDOW_S. */
enum status cpu_steal_end(struct session *s, const struct cpu_steal *begun, struct cpu_steal_worst *out,
	struct error *e);

/* "other processes took 38 % of the time of rank 1's cores, other virtual machines 5 %". */
void cpu_steal_words(const struct cpu_steal_worst *w, char *text, size_t size);

/* What one rank knows at the end: its part of the interval, and which machine its cores belong to. */
struct cpu_steal_part {
	char machine[40]; /* Linux's boot_id */
	uint64_t cpus[BOARD_CPU_WORDS];
	double available_s, busy_s, own_s, stolen_s; /* of its cores, and of the rank itself */
};

/* The rank that lost most, of `ranks` parts. The ranks' own time on cores that they share with others counts for
 * none of them. */
struct cpu_steal_worst cpu_steal_judge(const struct cpu_steal_part *parts, int64_t ranks);

/* Adds up the lines "cpuN ..." of /proc/stat's text that are in `cpus`; seconds, `tick_s` each tick. */
void cpu_steal_read(const char *stat, const uint64_t cpus[BOARD_CPU_WORDS], double tick_s, struct cpu_steal *out);

#endif
