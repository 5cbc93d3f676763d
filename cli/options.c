#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "base/table.h"
#include "cli/option_values.h"
#include "cli/source.h"
#include "step/config/config.h"

#define AT(field) offsetof(struct options, field)

/* A help text that ends in ':' is followed by the option's words (cli/option_values.c). */
static const struct option_row rows[] = {
	{0, "--model", "NAME",
		"the model, in place of a config or where another framework's config names none: a name of `stepsim "
		"list models`, a config.json or its folder",
		TAKES_STARTER, read_text, AT(model)},
	{0, "--model", "NAME",
		"the model, where the file names none: as a second FILE, or a name of `stepsim list models`",
		TAKES_IMPORT, read_text, AT(model)},
	{0, "--system", "NAME",
		"the machine: a name of `stepsim list systems`, or a line such as \"gpu:8 rtx4090\"; default dgx-h100",
		TAKES_IMPORT, read_text, AT(system)},
	{0, "--from", "NAME", "the framework of the file, where its keys do not tell:", TAKES_FOREIGN, read_text,
		AT(from)},
	{0, "--to", "NAME", "the framework whose config to write:", TAKES_EXPORT, read_text, AT(to)},
	{0, "--emit", "NAME", "print the best plan as the config of a framework, in place of the table:", TAKES_PLAN,
		read_text, AT(to)},
	{0, "--system", "NAME",
		"with --model or another framework's config: a name of `stepsim list systems`, or a line such as "
		"\"gpu:8 rtx4090\"; default dgx-h100",
		TAKES_STARTER, read_text, AT(system)},
	{0, "--system", "NAME",
		"the machine of nccl-tests' outputs: a name of `stepsim list systems`, a file, or a line such as "
		"\"gpu:8 rtx4090\"",
		TAKES_VALIDATE, read_text, AT(system)},
	{0, "--strategy", "NAME", "with --model; default fsdp (on one GPU ddp):", TAKES_STARTER, read_text,
		AT(strategy)},
	{0, "--tokens", "N", "with --model: tokens a step, such as 4M; default 4,194,304", TAKES_STARTER, read_text,
		AT(tokens)},
	{0, "--set", "KEY=VALUE", "override one key of the config (repeatable)",
		TAKES_PREDICTING | TAKES_BENCH | TAKES_OVERLAP | TAKES_SWEEP | TAKES_COMPARE | TAKES_PLAN |
			TAKES_IMPORT | TAKES_EXPORT | TAKES_LOGS,
		read_texts, AT(sets)},
	{0, "--vary", "KEY.PATH=V1,V2,...", "values of one key of the config (repeatable: all combinations)",
		TAKES_SWEEP, read_texts, AT(varied)},
	{0, "--zip", NULL, "take the first values of all --vary together, then the second ones, and so on", TAKES_SWEEP,
		read_flag, AT(zip)},
	{0, "--systems", "A,B,...",
		"names of `stepsim list systems`, files, or lines such as \"gpu:8 rtx4090\"; NAME@GPUS sets a size "
		"(repeatable)",
		TAKES_COMPARE, read_texts, AT(systems)},
	{0, "--fixed-plan", NULL, "keep the config's own plan on each system, in place of the best one", TAKES_COMPARE,
		read_flag, AT(fixed_plan)},
	{0, "--budget", "USD", "take as many whole hosts of each system as this buys", TAKES_COMPARE, read_budget, 0},
	{0, "--target", "\"TOKENS tokens in TIME\"",
		"take the fewest hosts that train so many tokens in this time (15e12 tokens in 30d); time is optional",
		TAKES_COMPARE, read_text, AT(target)},
	{0, "--target", "\"TOKENS tokens in TIME\"",
		"add time, energy, CO2 and money of so many tokens (15e12 tokens) or steps (500k steps)", TAKES_PREDICT,
		read_text, AT(target)},
	{0, "--json", "FILE", "write the result as JSON; - is standard output, in place of the table",
		TAKES_PREDICTING | TAKES_TOPO | TAKES_ROOFLINE | TAKES_VALIDATE | TAKES_BENCH | TAKES_OVERLAP |
			TAKES_SWEEP | TAKES_COMPARE | TAKES_PLAN | TAKES_LOGS,
		read_path, AT(json)},
	{0, "--trace", "FILE", "write the predicted and measured step as a Chrome trace, which opens in Perfetto",
		TAKES_PREDICTING, read_path, AT(trace)},
	{0, "--memory-snapshot", "FILE", "write the predicted memory over the step for PyTorch's viewer (memory_viz)",
		TAKES_PREDICTING, read_path, AT(snapshot)},
	{0, "--html", "FILE", "write the result as one page that opens offline: timeline, roofline, memory, the table",
		TAKES_PREDICTING, read_path, AT(html)},
	{0, "--html", "FILE", "write curves or bars and the table as one page that opens offline",
		TAKES_SWEEP | TAKES_PLAN | TAKES_COMPARE, read_path, AT(html)},
	{0, "--csv", "FILE", "write the rows as CSV; - is standard output, in place of the table",
		TAKES_PREDICTING | TAKES_VALIDATE | TAKES_BENCH | TAKES_ROOFLINE | TAKES_SWEEP | TAKES_COMPARE |
			TAKES_PLAN,
		read_path, AT(csv)},
	{0, "--max-error", "PCT",
		"exit with 3 if the prediction is off by more than PCT per cent of what was measured (bench: the "
		"median row from 1 MiB on)",
		TAKES_PREDICTING | TAKES_BENCH | TAKES_OVERLAP | TAKES_COMPARE_LOG, read_max_error, 0},
	{0, "--require-fit", NULL, "exit with 3 if it does not fit in memory (sweep, plan: if nothing does)",
		TAKES_PREDICTING | TAKES_SWEEP | TAKES_PLAN, read_flag, AT(require_fit)},
	{'b', "--minbytes", "SIZE", "smallest size of the whole buffer; K, M, G are powers of 1024; default 1K",
		TAKES_BENCH, read_size, AT(bench.min_B)},
	{'e', "--maxbytes", "SIZE", "largest size; default 64M, on GPUs 1G", TAKES_BENCH, read_size, AT(bench.max_B)},
	{'f', "--stepfactor", "N", "factor from size to size; default 4", TAKES_BENCH, read_from_2, AT(bench.factor)},
	{'n', "--iters", "N", "timed calls of each size; default 20", TAKES_BENCH, read_from_1, AT(bench.iters)},
	{'w', "--warmup_iters", "N", "untimed calls of each size before them; default 5", TAKES_BENCH, read_from_0,
		AT(bench.warmup)},
	{'c', "--check", "N", "1: compare every element of one call of each size, 0: do not; default 1", TAKES_BENCH,
		read_from_0, AT(bench.check)},
	{'d', "--datatype", "TYPE",
		"float, half, bfloat16 or int32 (fp32, fp16, bf16); default float; the host sums float and int32",
		TAKES_BENCH, read_dtype, 0},
	{0, "--dump-program", NULL, "print the step program, one line an op, in place of the prediction", TAKES_PREDICT,
		read_flag, AT(dump_program)},
	{0, "--print-ranks", NULL,
		"print how many ranks to start for this config, and stop; 0: it is for another machine", TAKES_PREDICT,
		read_flag, AT(print_ranks)},
	{'o', "--output", "FILE", "write the profile to FILE, in place of this machine's cache; - is standard output",
		TAKES_CALIBRATE, read_path, AT(output)},
	{'o', "--output", "FILE", "write the config to FILE, in place of standard output", TAKES_IMPORT | TAKES_EXPORT,
		read_path, AT(output)},
	{'o', "--output", "FILE", "write the fitted stack, for train.stack; - is standard output", TAKES_FIT, read_path,
		AT(output)},
	{0, "--smi", "FILE", "read what `nvidia-smi topo -m` printed on another machine; - is standard input",
		TAKES_TOPO, read_input, AT(smi)},
	{0, "--nccl-xml", "FILE", "read another machine's NCCL or RCCL topology file (NCCL_TOPO_DUMP_FILE)", TAKES_TOPO,
		read_input, AT(nccl_xml)},
	{0, "--hwloc-xml", "FILE", "read what `lstopo FILE.xml` wrote on another machine", TAKES_TOPO, read_input,
		AT(hwloc_xml)},
	{0, "--dot", "FILE", "write the links for graphviz", TAKES_TOPO, read_path, AT(dot)},
	{0, "--svg", "FILE", "write the links as a picture", TAKES_TOPO, read_path, AT(svg)},
	{0, "--dtype", "FORMAT", "measure matrix products in this format alone", TAKES_ROOFLINE, read_text, AT(dtype)},
	{0, "--time", "SECONDS", "measure for about so long (default 40 s); less time means smaller sizes",
		TAKES_ROOFLINE, read_seconds, 0},
	{0, "--plot", "FILE", "draw the result as a picture: SVG, or PNG if FILE ends in .png",
		TAKES_ROOFLINE | TAKES_SWEEP | TAKES_PLAN | TAKES_COMPARE, read_path, AT(plot)},
	{0, "--gpus", "N", "number of GPUs of the system, or of each system, in place of the config's nodes",
		TAKES_STARTER | TAKES_IMPORT, read_gpus, AT(gpus)},
	{0, "--exhaustive", NULL, "evaluate every plan, prune none", TAKES_PLAN, read_flag, AT(exhaustive)},
	{0, "--write", "FILE", "write the best plan as a config; - is standard output, in place of the table",
		TAKES_PLAN, read_path, AT(write)},
	{0, "--backend", "KIND", "devices to measure (auto: GPUs where there are any):", TAKES_DEVICES, read_backend,
		0},
	{0, "--share-gpu", NULL, "allow several ranks on one GPU: results are checked, times mean nothing",
		TAKES_DEVICES, read_flag, AT(share_gpu)},
	{0, "--progress", "WHEN", "show progress on standard error (auto: on a terminal):", TAKES_ALWAYS, read_progress,
		0},
	{'q', "--quiet", NULL, "leave out notes, advice and progress; warnings and the result remain", TAKES_ALWAYS,
		read_flag, AT(quiet)},
	{'v', "--verbose", NULL,
		"add the placement of ranks, the profile, the price of each kind of op, all advice, every link",
		TAKES_ALWAYS, read_flag, AT(verbose)},
	{'h', "--help", NULL, "print this text", TAKES_ALWAYS, read_flag, AT(help)},
};

#define ROWS COUNT(rows)

/* Writes the effect of a row's option; one that ends in ':' gets the option's words. Returns buf. */
static const char *effect(const struct option_row *r, char buf[OPTION_HELP])
{
	const char *words = r->help[strlen(r->help) - 1] == ':' ? option_value_of(r->name)->words : "";
	size_t n = (size_t)snprintf(buf, OPTION_HELP, "%s%s", r->help, *words ? " " : "");
	for (const char *w = words; *w && n + 2 < OPTION_HELP; w++) {
		if (*w == ' ')
			buf[n++] = ',';
		buf[n++] = *w;
	}
	buf[n] = '\0';
	return buf;
}

/* Returns the row of an argument; of rows with one name, the one that `groups` take. Sets *value to the text after "=",
 * or to NULL. */
static const struct option_row *find(const char *arg, unsigned groups, const char **value)
{
	const struct option_row *found = NULL;
	size_t len = strcspn(arg, "=");
	*value = arg[len] ? arg + len + 1 : NULL;
	for (size_t i = 0; i < ROWS; i++) {
		bool named = len == strlen(rows[i].name) && strncmp(arg, rows[i].name, len) == 0;
		bool lettered = rows[i].letter && len == 2 && arg[0] == '-' && arg[1] == rows[i].letter;
		if ((named || lettered) && (!found || (rows[i].groups & groups)))
			found = &rows[i];
	}
	return found;
}

/* Returns the nearest option that the command takes. */
static struct hint nearest(const char *word, unsigned groups, const char *lister)
{
	const char *names[ROWS];
	size_t n = 0;
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].groups & groups)
			names[n++] = rows[i].name;
	return suggest(word, names, n, lister);
}

#define NAMES_MOST 4

/* Returns whether a word begins behind a sign of a name: "gpus" in "--gpus" and in "cluster.gpus_per_node". */
static bool has_word(const char *name, const char *word)
{
	const char *at = strstr(name, word);
	return at && at > name && strchr("-._", at[-1]);
}

/* Returns the options and the keys of CONFIG.yaml that have the first of the name's words that any has; "" without. */
static struct hint with_a_word(const char *name, unsigned groups)
{
	const char *found[NAMES_MOST];
	char word[64];
	size_t n = 0;
	for (const char *p = name; *p && n == 0; p += strcspn(p, "_"), p += *p == '_') {
		struct config_key_words key;
		snprintf(word, sizeof word, "%.*s", (int)strcspn(p, "_"), p);
		const bool tells = strlen(word) > 3;
		for (size_t i = 0; tells && n < NAMES_MOST && i < ROWS; i++)
			if ((rows[i].groups & groups) && has_word(rows[i].name, word))
				found[n++] = rows[i].name;
		for (size_t i = 0; tells && n < NAMES_MOST && config_key_words(i, &key); i++)
			if (has_word(key.path, word))
				found[n++] = key.path;
	}
	return suggest_names("options, or keys for --set", found, n);
}

static enum status unknown(const char *arg, unsigned groups, struct error *e)
{
	char name[64];
	const char *key = name, *value = "";
	struct error none = {0};
	snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
	struct hint h = nearest(name, groups, NULL);
	memmove(name, name + strspn(name, "-"), strlen(name + strspn(name, "-")) + 1);
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p;
	if (config_key_typed(&key, &value, &none) == ST_OK)
		return error_set(e, ST_INPUT, "unknown option %.*s: a key of the config (--set %s=VALUE)",
			(int)strcspn(arg, "="), arg, key);
	if (!*h.text)
		h = with_a_word(name, groups);
	if (!*h.text)
		h = nearest(arg, groups, "COMMAND --help");
	return error_set(e, ST_INPUT, "unknown option %s%s", arg, h.text);
}

/* Reads the option at argv[*i] and moves *i to its last argument. */
static enum status parse_option(int argc, char **argv, int *i, unsigned groups, struct options *out, struct error *e)
{
	const char *value;
	const struct option_row *row = find(argv[*i], groups, &value);
	if (!row)
		return unknown(argv[*i], groups, e);
	if (!(row->groups & groups))
		return error_set(e, ST_INPUT, "this command does not take %s%s", row->name,
			nearest(row->name, groups, NULL).text);
	if (!row->argument && value)
		return error_set(e, ST_INPUT, "%s takes no value", row->name);
	if (row->argument && !value) {
		if (*i + 1 >= argc)
			return error_set(e, ST_INPUT, "%s needs a value: %s", row->name, row->argument);
		value = argv[++*i];
	}
	return row->read(out, row, value, e);
}

/* Returns the path of this row's output; NULL if it was not given, or the row is no output. */
static const char *output_of(const struct options *o, const struct option_row *row)
{
	return row->read == read_path ? *(const char *const *)(const void *)((const char *)o + row->offset) : NULL;
}

bool options_take_stdout(const struct options *o)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *path = output_of(o, &rows[i]);
		if (path && strcmp(path, "-") == 0)
			return true;
	}
	return false;
}

/* Refuses two outputs to one path: the later would replace the earlier. */
static enum status check_outputs(const struct options *o, struct error *e)
{
	const struct option_row *written[COUNT(rows)];
	size_t n = 0;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *path = output_of(o, &rows[i]);
		for (size_t k = 0; k < n && path; k++) {
			if (written[k]->offset == rows[i].offset || strcmp(path, output_of(o, written[k])) != 0)
				continue;
			return strcmp(path, "-") == 0
			               ? error_set(e, ST_INPUT, "%s - and %s - cannot both be standard output",
						 written[k]->name, rows[i].name)
			               : error_set(e, ST_INPUT, "%s and %s both write %s", written[k]->name,
						 rows[i].name, path);
		}
		if (path)
			written[n++] = &rows[i];
	}
	return ST_OK;
}

/* Refuses the ending of a picture's format that --plot does not draw: it would be an SVG by a wrong name. */
static enum status check_picture(const char *path, struct error *e)
{
	static const char *const others[] = {".gif", ".jpg", ".jpeg", ".pdf", ".webp", ".eps", ".ps", ".tif", ".tiff",
		".bmp"};
	const char *end = path ? strrchr(path, '.') : NULL;
	for (size_t i = 0; end && i < COUNT(others); i++)
		if (strcasecmp(end, others[i]) == 0)
			return error_set(e, ST_INPUT, "--plot %s: SVG (.svg) and PNG (.png) are drawn", path);
	return ST_OK;
}

enum status options_check_outputs(const struct options *o, struct error *e)
{
	enum status st = check_picture(o->plot, e);
	for (size_t i = 0; i < COUNT(rows) && !st; i++) {
		const char *path = output_of(o, &rows[i]);
		st = path ? file_can_write(path, e) : ST_OK;
	}
	return st;
}

enum status options_parse(int argc, char **argv, int first, unsigned groups, struct options *out, struct error *e)
{
	enum status st = ST_OK;
	bool only_arguments = false; /* behind "--" */
	*out = (struct options){.max_error_percent = -1, .bench = {.factor = 4, .iters = 20, .warmup = 5, .check = 1}};
	out->positional = calloc((size_t)argc, sizeof *out->positional);
	out->sets.at = calloc((size_t)argc, sizeof *out->sets.at);
	out->varied.at = calloc((size_t)argc, sizeof *out->varied.at);
	out->systems.at = calloc((size_t)argc, sizeof *out->systems.at);
	if (!out->positional || !out->sets.at || !out->varied.at || !out->systems.at)
		st = error_nomem(e, "the command line");
	for (int i = first; i < argc && !st; i++) {
		if (!only_arguments && strcmp(argv[i], "--") == 0)
			only_arguments = true;
		else if (!only_arguments && argv[i][0] == '-' && argv[i][1])
			st = parse_option(argc, argv, &i, groups, out, e);
		else
			out->positional[out->n_positional++] = argv[i];
	}
	return st ? st : check_outputs(out, e);
}

void options_free(struct options *o)
{
	source_free(o);
	free(o->positional);
	free(o->sets.at);
	free(o->varied.at);
	free(o->systems.at);
	*o = (struct options){0};
}

bool option_takes_next(const char *arg)
{
	const char *value;
	const struct option_row *row = find(arg, ~0u, &value);
	return row && row->argument && !value;
}

enum status options_help(unsigned groups, FILE *out, struct error *e)
{
	struct table *t = table_create("<option|<effect");
	enum status st = t ? ST_OK : error_nomem(e, "the help text");
	for (size_t i = 0; i < ROWS && !st; i++) {
		const struct option_row *r = &rows[i];
		if (!(r->groups & groups))
			continue;
		char letter[8] = "    ", help[OPTION_HELP];
		if (r->letter)
			snprintf(letter, sizeof letter, "-%c, ", r->letter);
		st = table_row(t, e, "%s%s%s%s|%s", letter, r->name, r->argument ? " " : "",
			r->argument ? r->argument : "", effect(r, help));
	}
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

const char *options_words(const char *name)
{
	const struct option_value *v = option_value_of(name);
	return v ? v->words : NULL;
}

size_t options_count(void) { return ROWS; }

struct option_text options_text(size_t i)
{
	const struct option_row *r = &rows[i];
	struct option_text t = {.letter = r->letter, .name = r->name, .argument = r->argument, .groups = r->groups};
	effect(r, t.help);
	const struct option_value *v = option_value_of(r->name);
	if (v) {
		t.words = v->words;
		t.command = v->command;
	}
	return t;
}
