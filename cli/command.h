/* The commands: one row each in main.c's table, one file each. */
#ifndef STEPSIM_CLI_COMMAND_H
#define STEPSIM_CLI_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/launch.h"
#include "base/status.h"
#include "cli/options.h"
#include "exec/plugin.h"

/* Stall limit of a session until the config says otherwise. */
#define DEFAULT_TIMEOUT_S 60.0

struct context {
	const struct options *options;
	struct launch launch;           /* zeroed: rank 0, without a launcher */
	const struct exec_plugin *exec; /* NULL: nothing has executed or measured yet (context_exec) */
	const char *blas;               /* with exec: what blas_choose says of its choice */
	struct session *session;        /* NULL: nothing has needed MPI yet (context_session); else exec is set */
};

/* Opens the plug-in that executes, once. ST_RUN says in one line what is missing, and how to get it. */
enum status context_exec(struct context *x, struct error *e);

/* Opens the plug-in and its session, unless `x` has one. Under a launcher: collective. ST_RUN: as context_exec and
 * session_open. */
enum status context_session(struct context *x, double timeout_s, struct error *e);
void context_close(struct context *x); /* the session, if any */

enum command_trait {
	OR_MORE = 1 << 0,   /* takes more arguments than n_arguments */
	ALL_RANKS = 1 << 1, /* runs on every rank; else on the leading one alone */
	CONFIG = 1 << 2,    /* its first argument is a config, in whose place --model may stand */
	HIDDEN = 1 << 3,    /* for builds and packages: help, man page and completions leave it out */
};

struct command {
	const char *name;      /* NULL: the config itself is the command */
	const char *arguments; /* words to choose from are separated by '|' */
	const char *summary;
	unsigned groups; /* of options */
	size_t n_arguments;
	unsigned traits;
	enum status (*run)(struct context *x, struct error *e);
};

/* Prints the man page or a shell's completion (`kind`: man, bash, zsh, fish) from the tables of commands, of options
 * and of exit codes (their meanings, from 0 on). ST_INPUT: an unknown kind. */
enum status generate(const char *kind, const struct command *commands, size_t n_commands, const char *const *exit_codes,
	size_t n_exit_codes, struct error *e);

/* Returns whether this is the leading process: the one that reads files, prints and decides. */
bool context_leads(const struct context *x);

/* Returns the status on which all ranks of the session agree (session_agree); without a session `st` itself. */
enum status context_agree(const struct context *x, enum status st, struct error *e);

/* Returns what the session says of itself; NULL without one. */
const struct session_info *context_info(const struct context *x);

/* Each command returns the exit status; `e` says why if it is not 0. */
void print_version(FILE *out, struct context *x);
enum status cmd_run(struct context *x, struct error *e);       /* all ranks */
enum status cmd_calibrate(struct context *x, struct error *e); /* all ranks */
enum status cmd_bench(struct context *x, struct error *e);     /* all ranks */
enum status cmd_predict(struct context *x, struct error *e);
enum status cmd_init(struct context *x, struct error *e);
enum status cmd_import(struct context *x, struct error *e);
enum status cmd_export(struct context *x, struct error *e);
enum status cmd_list(struct context *x, struct error *e);
enum status cmd_validate(struct context *x, struct error *e);
enum status cmd_sweep(struct context *x, struct error *e);
enum status cmd_compare(struct context *x, struct error *e);
enum status cmd_plan(struct context *x, struct error *e);
enum status cmd_overlap(struct context *x, struct error *e);
enum status cmd_compare_log(struct context *x, struct error *e);
enum status cmd_fit(struct context *x, struct error *e);
enum status cmd_topo(struct context *x, struct error *e);     /* all ranks */
enum status cmd_roofline(struct context *x, struct error *e); /* all ranks */

#endif
