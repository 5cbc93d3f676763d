#include "exec/launcher.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"

#define ANCESTORS 16

/* They bind their children more narrowly than themselves. slurmstepd is not one of them: what it is given itself says
 * nothing about the job's share, and Slurm sees to its end. */
static const struct {
	const char *name;
	bool one_job; /* it serves this job alone: prted may be there for further ones */
} launchers[] = {{"mpirun", true}, {"mpiexec", true}, {"orterun", true}, {"orted", true}, {"prterun", true},
	{"prted", false}, {"mpiexec.hydra", true}, {"hydra_pmi_proxy", true}};

bool process_read(int pid, struct process *out)
{
	char path[64], line[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(line, 1, sizeof line - 1, f);
	fclose(f);
	line[n] = 0;
	/* The name may hold anything. */
	char *begin = strchr(line, '('), *end = strrchr(line, ')');
	if (!begin || !end || sscanf(end + 1, " %c %d", &out->state, &out->parent) != 2)
		return false;
	snprintf(out->name, sizeof out->name, "%.*s", (int)(end - begin - 1), begin + 1);
	return true;
}

/* COUNT(launchers) where it is none. */
static size_t row_of(const char *name)
{
	size_t i = 0;
	while (i < COUNT(launchers) && strcmp(name, launchers[i].name))
		i++;
	return i;
}

int launcher_find(void)
{
	struct process p;
	int pid = getppid();
	for (int depth = 0; depth < ANCESTORS && pid > 1 && process_read(pid, &p); depth++) {
		if (row_of(p.name) < COUNT(launchers))
			return pid;
		pid = p.parent;
	}
	return 0;
}

/* ---- its end ---- */

#define PATIENCE_S 5.0
#define LOOK_S 0.1

/* In a child of a process with threads: functions that are safe in a signal handler, and no others. An mpirun that ends
 * its job already takes SIGTERM as no news, and a second one makes Open MPI 4.1.4 crash. */
static void end_when_late(pid_t pid)
{
	const struct timespec look = {0, (long)(LOOK_S * 1e9)};
	for (double waited_s = 0; waited_s < PATIENCE_S; waited_s += LOOK_S) {
		if (kill(pid, 0))
			return;
		nanosleep(&look, NULL);
	}
	kill(pid, SIGKILL);
}

void launcher_end(int pid)
{
	struct process p;
	if (pid <= 0 || !process_read(pid, &p))
		return;
	const size_t row = row_of(p.name); /* another process may have the number by now */
	if (row == COUNT(launchers) || !launchers[row].one_job || fork())
		return;
	/* mpirun ends the process groups of its ranks, and waits for their ends of its pipes and sockets. */
	setsid();
	signal(SIGTERM, SIG_DFL);
	const long files = sysconf(_SC_OPEN_MAX);
	for (int fd = 0; fd < (files > 0 && files < 65536 ? files : 65536); fd++)
		close(fd);
	end_when_late(pid);
	_exit(0);
}
