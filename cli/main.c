#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/suggest.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/source.h"
#include "cli/starter.h"
#include "report/report.h"

static enum status cmd_generate(struct context *x, struct error *e);

static const struct command commands[] = {
	{NULL, "CONFIG.yaml",
		"predict the step, execute it on all ranks, and compare; without mpirun, a config for more ranks "
		"is predicted",
		TAKES_ALWAYS | TAKES_PREDICTING, 1, ALL_RANKS | CONFIG, cmd_run},
	{"predict", "CONFIG.yaml [OTHER.yaml]",
		"predict the step, for a cluster of any size; two configs are set beside each other",
		TAKES_ALWAYS | TAKES_STARTER | TAKES_FOREIGN | TAKES_PREDICTING | TAKES_PREDICT, 1, OR_MORE | CONFIG,
		cmd_predict},
	{"init", "[FILE]", "write a short commented config for --model, --system and --gpus, to start from",
		TAKES_ALWAYS | TAKES_STARTER, 0, OR_MORE, cmd_init},
	{"import", "FILE [MODEL]",
		"write another framework's config (torchtitan, Megatron-LM, DeepSpeed and others) as CONFIG.yaml, with "
		"a remark for each key",
		TAKES_ALWAYS | TAKES_FOREIGN | TAKES_IMPORT, 1, OR_MORE, cmd_import},
	{"export", "CONFIG.yaml", "write a config as another framework's",
		TAKES_ALWAYS | TAKES_STARTER | TAKES_FOREIGN | TAKES_EXPORT, 1, CONFIG, cmd_export},
	{"topo", "", "print the links of this machine as a matrix in GB/s, or those of a dumped machine",
		TAKES_ALWAYS | TAKES_TOPO, 0, ALL_RANKS, cmd_topo},
	{"calibrate", "",
		"measure what this machine's devices and links reach (under mpirun: its collectives too), and keep it "
		"as the profile that predictions take",
		TAKES_ALWAYS | TAKES_DEVICES | TAKES_CALIBRATE, 0, ALL_RANKS, cmd_calibrate},
	{"roofline", "",
		"measure the roofline (arithmetic of rising intensity, matrix products, caches, memory) and compare it "
		"with the datasheet",
		TAKES_ALWAYS | TAKES_DEVICES | TAKES_ROOFLINE, 0, ALL_RANKS, cmd_roofline},
	{"bench", "all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv",
		"time and check one collective over a range of sizes, as nccl-tests does, and compare it with the "
		"prediction",
		TAKES_ALWAYS | TAKES_DEVICES | TAKES_BENCH, 1, ALL_RANKS, cmd_bench},
	{"validate", "FILE...",
		"predict every row of a table of published measurements, or of outputs of nccl-tests, and sum up the "
		"errors",
		TAKES_ALWAYS | TAKES_VALIDATE, 1, OR_MORE, cmd_validate},
	{"sweep", "CONFIG.yaml", "predict every combination of the values of --vary: a table, CSV, a plot",
		TAKES_ALWAYS | TAKES_STARTER | TAKES_FOREIGN | TAKES_SWEEP, 1, CONFIG, cmd_sweep},
	{"compare", "CONFIG.yaml",
		"compare one workload on several systems, each with its best plan: time, memory, energy, money",
		TAKES_ALWAYS | TAKES_STARTER | TAKES_FOREIGN | TAKES_COMPARE, 1, CONFIG, cmd_compare},
	{"plan", "CONFIG.yaml",
		"search the parallel plans that fit in memory, best first; keys given by --set stay fixed",
		TAKES_ALWAYS | TAKES_STARTER | TAKES_FOREIGN | TAKES_PLAN, 1, CONFIG, cmd_plan},
	{"overlap", "TRACE... [CONFIG.yaml]",
		"report compute, communication and overlap in traces of a real run (PyTorch profiler, Nsight "
		"Systems SQLite)",
		TAKES_ALWAYS | TAKES_OVERLAP, 1, OR_MORE, cmd_overlap},
	{"compare-log", "LOG... CONFIG.yaml",
		"set the step times of a training log (torchtitan, Megatron-LM, NeMo, DeepSpeed, ...) beside the "
		"prediction of its config",
		TAKES_ALWAYS | TAKES_LOGS | TAKES_COMPARE_LOG, 2, OR_MORE, cmd_compare_log},
	{"fit", "LOG... CONFIG.yaml",
		"adjust the numbers of a software stack to your own training logs, with cross-validation, and write "
		"the stack",
		TAKES_ALWAYS | TAKES_LOGS | TAKES_FIT, 2, OR_MORE, cmd_fit},
	{"list", "systems|gpus|models|stacks|fabrics|parameters|keys",
		"print a catalogue; parameters: the fitted constants with meaning and source", TAKES_ALWAYS, 1, 0,
		cmd_list},
	{"generate", "man|bash|zsh|fish", "print the man page or a shell's completion", TAKES_ALWAYS, 1, HIDDEN,
		cmd_generate},
};

#define COMMANDS COUNT(commands)

static const char *const exit_codes[] = {"done", "the execution failed",
	"the command line, config or input file is wrong", "done, but --max-error or --require-fit was missed"};

static enum status cmd_generate(struct context *x, struct error *e)
{
	return generate(x->options->positional[0], commands, COMMANDS, exit_codes, COUNT(exit_codes), e);
}

/* ---- help ---- */

static void print_usage(const struct command *c, FILE *out)
{
	fprintf(out, "stepsim%s%s%s%s [options]\n", c->name ? " " : "", c->name ? c->name : "",
		*c->arguments ? " " : "", c->arguments);
}

static enum status help_command(const struct command *c, struct error *e)
{
	struct wrap w;
	enum status st = wrap_open(&w, stdout, e);
	if (st)
		return st;
	fputs("usage: ", w.out);
	print_usage(c, w.out);
	fprintf(w.out, "%s\n\n", c->summary);
	return wrap_close(&w, options_help(c->groups, w.out, e), e);
}

static enum status help_all(struct error *e)
{
	struct wrap w;
	enum status st = wrap_open(&w, stdout, e);
	if (st)
		return st;
	fputs("stepsim " STEPSIM_VERSION
	      ": predicts a distributed training step, executes it, and compares the two op by op.\n\n",
		w.out);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (commands[i].traits & HIDDEN)
			continue;
		fputs(i ? "       " : "usage: ", w.out);
		print_usage(&commands[i], w.out);
		fprintf(w.out, "           %s\n", commands[i].summary);
	}
	fputs("\nUnder `mpirun -np N` every rank takes part. `stepsim COMMAND --help` names the options of one "
	      "command. Every command takes:\n\n",
		w.out);
	st = options_help(TAKES_ALWAYS, w.out, e);
	fputs("\nExit codes:", w.out);
	for (size_t i = 0; i < COUNT(exit_codes); i++)
		fprintf(w.out, "%s %zu %s", i ? ";" : "", i, exit_codes[i]);
	fputs(".\n", w.out);
	return wrap_close(&w, st, e);
}

/* ---- which command ---- */

/* Returns the index of the first argument that is no option and no option's value; argc when there is none. */
static int first_word(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return i + 1 < argc ? i + 1 : argc;
		if (argv[i][0] != '-' || !argv[i][1])
			return i;
		if (option_takes_next(argv[i]))
			i++;
	}
	return argc;
}

static enum status unknown_command(const char *word, struct error *e)
{
	const char *names[COMMANDS];
	size_t n = 0;
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].name && !(commands[i].traits & HIDDEN))
			names[n++] = commands[i].name;
	return error_set(e, ST_INPUT, "'%s' is neither a command%s nor a config file that exists", word,
		suggest(word, names, n, "--help").text);
}

/* A word with a dot or a slash, or one that names a file, is a config; whether it can be read is said when it is read.
 */
static enum status find_command(const char *word, const struct command **out, struct error *e)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (commands[i].name && strcmp(word, commands[i].name) == 0) {
			*out = &commands[i];
			return ST_OK;
		}
	}
	if (!strpbrk(word, "./") && access(word, F_OK) != 0)
		return unknown_command(word, e);
	*out = &commands[0];
	return ST_OK;
}

/* Takes the command's own word out of argv, so that what remains are its options and arguments. */
static void remove_word(int *argc, char **argv, int at)
{
	for (int i = at; i + 1 < *argc; i++)
		argv[i] = argv[i + 1];
	--*argc;
}

static enum status check_arguments(const struct command *c, const struct options *o, struct error *e)
{
	/* --model and --system go with a config of another framework, too: cli/source.c knows when it is read */
	if ((c->traits & CONFIG) && o->from && o->n_positional == 0)
		return error_set(e, ST_INPUT, "--from goes with the config of another framework");
	const char *word = o->strategy ? "--strategy" : o->tokens ? "--tokens" : o->system ? "--system" : NULL;
	if ((c->traits & CONFIG) && o->model && o->n_positional == 0)
		return ST_OK;
	if ((c->traits & CONFIG) && word && (o->n_positional == 0 || strcmp(word, "--system") != 0))
		return error_set(e, ST_INPUT, "%s goes with --model; --set overrides a key of a config", word);
	const char *optional = strstr(c->arguments, " [");
	if (o->n_positional < c->n_arguments)
		return error_set(e, ST_INPUT, "%s%s%.*s missing%s; `stepsim %s%s--help` shows what there is",
			c->name ? c->name : "", c->name ? ": " : "",
			(int)(optional ? optional - c->arguments : INT_MAX), c->arguments,
			c->groups & TAKES_STARTER && c->traits & CONFIG ? " (or --model NAME)" : "",
			c->name ? c->name : "", c->name ? " " : "");
	if (o->n_positional > c->n_arguments && !(c->traits & OR_MORE))
		return error_set(e, ST_INPUT, "unexpected argument '%s'", o->positional[c->n_arguments]);
	return ST_OK;
}

/* ---- the run of one command ---- */

/* MPI is started for the commands that all ranks of a launcher run, and for no other, whatever the environment says. */
static enum status run_on_ranks(const struct command *c, struct context *x, struct options *o, struct error *e)
{
	const bool together = (c->traits & ALL_RANKS) && x->launch.launched;
	enum status st = together ? context_session(x, DEFAULT_TIMEOUT_S, e) : ST_OK;
	if (st || (!together && !context_leads(x)))
		return st;
	if (context_leads(x) && !(st = options_check_outputs(o, e)) && (c->traits & CONFIG))
		st = source_read(o, o->n_positional ? o->positional[0] : NULL, e);
	if ((st = context_agree(x, st, e)))
		return st;
	return context_agree(x, c->run(x, e), e);
}

static enum status run_command(int argc, char **argv, struct context *x, struct options *o, struct error *e)
{
	int at = first_word(argc, argv);
	const struct command *c = &commands[0];
	bool leads = context_leads(x), named = at < argc;
	const bool asks_help = named && strcmp(argv[at], "help") == 0; /* `stepsim help [COMMAND]` */
	enum status st;
	if (asks_help) {
		remove_word(&argc, argv, at);
		at = first_word(argc, argv);
		named = at < argc;
	}
	if (named && (st = find_command(argv[at], &c, e)))
		return st;
	if (c->name)
		remove_word(&argc, argv, at);
	if ((st = options_parse(argc, argv, 1, c->groups, o, e)))
		return st;
	log_setup(o->quiet ? LOG_QUIET : o->verbose ? LOG_VERBOSE : LOG_NORMAL, o->progress, leads);
	if (o->help || asks_help) {
		if (!leads)
			return ST_OK;
		return named ? help_command(c, e) : help_all(e);
	}
	if ((c->traits & CONFIG) && !o->model && o->n_positional == 1 && source_is_model(o->positional[0])) {
		o->model = o->positional[0];
		o->n_positional = 0;
	}
	st = check_arguments(c, o, e);
	return st ? st : run_on_ranks(c, x, o, e);
}

static bool only_asks_version(int argc, char **argv)
{
	return argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0);
}

/* Ends the output: prints the line about a failure, and checks that standard output was written. */
static enum status end_output(enum status st, bool leads, struct error *e)
{
	errno = 0;
	if (!st &&
		(fflush(stdout) != 0 || ferror(stdout))) /* a write that failed before may have left nothing to flush */
		st = error_set(e, ST_RUN, "cannot write standard output: %s",
			errno ? strerror(errno) : "a write failed");
	if (st && leads)
		fprintf(stderr, "stepsim: %s\n", e->text);
	fflush(stdout);
	return st;
}

/* The leading rank speaks for all. Where no session opened, the others may have failed for a reason of their host:
 * there the first rank of each speaks. */
static bool speaks(const struct context *x, enum status st)
{
	return context_leads(x) || (st == ST_RUN && !x->session && x->launch.local_rank <= 0);
}

int main(int argc, char **argv)
{
	struct options options = {0};
	struct context x = {.options = &options};
	struct error e = {0};
	enum status st = ST_OK;
	heap_keep_freed();
	launch_read(&x.launch);
	if (!only_asks_version(argc, argv))
		st = run_command(argc, argv, &x, &options, &e);
	else if (context_leads(&x))
		print_version(stdout, &x);
	starter_blame(&options, &e);
	st = end_output(st, speaks(&x, st), &e);
	context_close(&x);
	options_free(&options);
	return (int)st;
}
