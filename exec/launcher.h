/* The launcher that started this rank: mpirun, or its daemon on another host, found among this process's ancestors. */
#ifndef STEPSIM_EXEC_LAUNCHER_H
#define STEPSIM_EXEC_LAUNCHER_H

#include <stdbool.h>

struct process {
	char name[64];
	char state; /* the letter of /proc/PID/stat: T stopped, Z zombie, ... (proc(5)) */
	int parent;
};

/* False when there is no such process. */
bool process_read(int pid, struct process *out);

/* The nearest ancestor that is a launcher (there may be a shell or a debugger between), else 0. */
int launcher_find(void);

/* Leaves a process behind that gives the launcher some seconds to end by itself, and ends it otherwise: one whose
 * daemon sits on a host that is cut off waits as long as TCP does, some 15 minutes. For a rank that is about to exit,
 * its other threads in any state. A pid of 0 and a launcher that may serve further jobs are left alone. */
void launcher_end(int pid);

#endif
