/* The command line: one table of options, which the parser and --help read. */
#ifndef STEPSIM_CLI_OPTIONS_H
#define STEPSIM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "step/config/config.h"

/* Groups of options; a command takes some of them. X(group): its place in the list is its bit.
 *
 *   ALWAYS      --help, -q, -v, --progress
 *   PREDICTING  what every predicting command takes
 *   DEVICES     what every command takes that measures devices without a config
 *   STARTER     what makes a config from a model's and a system's name
 *   FOREIGN     what reads another framework's config
 *   LOGS        compare-log, fit
 */
#define OPTION_GROUPS(X) \
	X(ALWAYS) \
	X(PREDICTING) \
	X(PREDICT) \
	X(CALIBRATE) \
	X(TOPO) \
	X(DEVICES) \
	X(ROOFLINE) \
	X(BENCH) \
	X(VALIDATE) \
	X(OVERLAP) \
	X(SWEEP) \
	X(PLAN) \
	X(COMPARE) \
	X(STARTER) \
	X(FOREIGN) \
	X(IMPORT) \
	X(EXPORT) \
	X(LOGS) \
	X(FIT) \
	X(COMPARE_LOG)

#define GROUP_PLACE(name) PLACE_##name,
enum option_group_place { OPTION_GROUPS(GROUP_PLACE) OPTION_GROUP_COUNT };
#define GROUP_BIT(name) TAKES_##name = 1 << PLACE_##name,
enum option_group { OPTION_GROUPS(GROUP_BIT) };
#undef GROUP_PLACE
#undef GROUP_BIT

/* 0 means "not given" wherever 0 is no legal value. */
struct bench_options {
	uint64_t min_B, max_B;
	int64_t factor, iters, warmup, check;
	enum dtype dtype;
};

/* The values of an option that is given several times, in order. */
struct option_texts {
	const char **at;
	size_t n;
};

/* The config that a command is about. */
struct config_source {
	const char *name;             /* that messages have */
	struct config_reader *reader; /* owned (source_free) */
};

struct options {
	struct config_source config; /* source_read fills it */
	char imported[CONFIG_TEXT];  /* its name, where it was another framework's */
	const char **positional;     /* arguments that are no options, in order */
	size_t n_positional;
	struct option_texts sets, varied, systems; /* of --set, --vary and --systems */
	const char *target;                        /* of compare and predict; NULL: not given */
	double budget_usd;                         /* of compare; 0: not given */
	bool fixed_plan, zip;
	const char *snapshot;                   /* of memory, for PyTorch's viewer; a path as the next */
	const char *json, *trace, *html;        /* paths, "-" is standard output; NULL: not asked for */
	const char *output;                     /* -o; NULL: not given */
	const char *smi, *nccl_xml, *hwloc_xml; /* dumps of another machine, "-" is standard input; NULL: not given */
	const char *dot, *svg;                  /* pictures to write; NULL: not asked for */
	const char *csv, *plot, *dtype;         /* plot and dtype: of roofline; NULL: not given */
	double max_error_percent;               /* < 0: not given */
	double seconds;                         /* of roofline; 0: not given */
	int64_t gpus;                           /* 0: not given */
	const char *model, *system, *strategy, *tokens; /* of a config made from options; NULL: not given */
	const char *write;                              /* of plan: where the winner's config goes; NULL: not given */
	const char *from, *to;                          /* frameworks: of import, of export and plan; NULL: not given */
	struct bench_options bench;
	enum backend backend;
	enum progress_mode progress;
	bool quiet, verbose, require_fit, dump_program, print_ranks, share_gpu, exhaustive, help;
};

/* Reads argv[first..argc) for a command that takes the options of `groups`. Borrows strings from argv; the caller frees
 * the arrays with options_free. ST_INPUT: an unknown option (names the nearest of this command), a missing or wrong
 * value. */
enum status options_parse(int argc, char **argv, int first, unsigned groups, struct options *out, struct error *e);
void options_free(struct options *o);

/* Returns whether a file's output goes to standard output, so that the table is left out. */
bool options_take_stdout(const struct options *o);

/* Checks before the work that all outputs can be written; ST_INPUT if one cannot. */
enum status options_check_outputs(const struct options *o, struct error *e);

/* Returns whether `arg` is an option that takes the next argument as its value. */
bool option_takes_next(const char *arg);

/* Prints the options of `groups`, one line each. */
enum status options_help(unsigned groups, FILE *out, struct error *e);

/* Returns the words that an option takes, separated by blanks, as its completion has them; NULL: it takes no words. */
const char *options_words(const char *name);

#define OPTION_HELP 512

/* One row of the table, as the man page and the completions read it. */
struct option_text {
	char letter;          /* 0: none */
	const char *name;     /* with its dashes; rows of different groups can share one */
	const char *argument; /* NULL: takes none; FILE: a path */
	char help[OPTION_HELP];
	unsigned groups;
	const char *words; /* the values, separated by blanks; NULL: not a list of words */
	const char
		*command; /* prints the values in the first column of its table (`stepsim list models`); NULL: none */
};

size_t options_count(void);
struct option_text options_text(size_t i); /* i < options_count() */

#endif
