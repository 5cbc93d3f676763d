/* Running a program of the driver's with a time limit. Private to topology/discover/.
 *
 * No shell. The program gets /dev/null as standard input and a process group of its own, so that what it started goes
 * with it when the limit is reached. Both its outputs are read to the end.
 */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_COMMAND_H
#define STEPSIM_TOPOLOGY_DISCOVER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define COMMAND_LINE 160

enum command_end {
	COMMAND_EXITED,
	COMMAND_NOT_FOUND, /* no such program in PATH, or not executable */
	COMMAND_SIGNAL,    /* `code` is the signal */
	COMMAND_TIMED_OUT, /* killed at the limit; `stuck` when even that did not end it (it sleeps inside the driver)
	                    */
	COMMAND_TOO_LONG,  /* killed because it printed more than the limit */
};

struct command_result {
	enum command_end end;
	int code; /* exit status or signal */
	bool stuck;
	char *text; /* standard output, terminated; never NULL after ST_OK */
	size_t len;
	char first[COMMAND_LINE]; /* the first line with anything on it of standard error, else of standard output: why
	                             it failed */
};

/* Runs argv[0] (looked up in PATH) until it ends, at most `limit_s` seconds. How it ended is in *out; ST_RUN only where
 * no process could be made. */
enum status command_run(const char *const *argv, double limit_s, struct command_result *out, struct error *e);
void command_result_free(struct command_result *r); /* NULL-safe */

#endif
