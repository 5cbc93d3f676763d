/* The man page and the completions of bash, zsh and fish, from the tables that the parser and --help read. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/suggest.h"
#include "base/version.h"
#include "cli/command.h"

struct tables {
	const struct command *commands; /* without the hidden ones */
	size_t n_commands;
	const char *const *exit_codes;
	size_t n_exit_codes;
};

static const struct {
	const char *name, *meaning;
} variables[] = {
	{"STEPSIM_HOME", "the folder that holds `configs/`, if neither in the tree nor installed"},
	{"XDG_CACHE_HOME", "profiles are cached in its folder `stepsim`; default `~/.cache/stepsim`"},
	{"COLUMNS", "characters of a line of text, at least 40; default the terminal's width, or 100"},
	{"NCCL_TOPO_FILE", "`topo` reads it, as NCCL does"},
	{"NCCL_ALGO", "goes before collectives.algorithm"},
	{"NCCL_PROTO", "goes before collectives.protocol"},
	{"STEPSIM_PROGRESS_TTY", "`1`: a terminal shows standard error, behind a launcher"},
};

/* Prints the names of the options that the groups take and that match `which`, each behind a blank. */
enum which { EVERY_OPTION, WITH_ARGUMENT, WITH_FILE };

static bool is_file(const struct option_text *o) { return o->argument && strcmp(o->argument, "FILE") == 0; }

static bool is_which(const struct option_text *o, enum which which)
{
	return which == EVERY_OPTION || (which == WITH_ARGUMENT ? o->argument != NULL : is_file(o));
}

/* Whether an earlier row of the same groups has this name. */
static bool is_repeated(size_t row, unsigned groups)
{
	const struct option_text o = options_text(row);
	for (size_t i = 0; i < row; i++) {
		const struct option_text earlier = options_text(i);
		if ((earlier.groups & groups) && strcmp(earlier.name, o.name) == 0)
			return true;
	}
	return false;
}

static void print_options(unsigned groups, enum which which, const char *separator)
{
	const char *before = "";
	for (size_t i = 0; i < options_count(); i++) {
		const struct option_text o = options_text(i);
		if (!(o.groups & groups) || !is_which(&o, which) || is_repeated(i, groups))
			continue;
		if (o.letter)
			printf("%s-%c%s%s", before, o.letter, separator, o.name);
		else
			printf("%s%s", before, o.name);
		before = separator;
	}
}

/* Prints the names of the commands that take a group of `groups`. */
static void print_commands(const struct tables *t, unsigned groups, const char *separator)
{
	const char *before = "";
	for (size_t i = 0; i < t->n_commands; i++) {
		if (t->commands[i].name && (t->commands[i].groups & groups)) {
			printf("%s%s", before, t->commands[i].name);
			before = separator;
		}
	}
}

/* Returns whether the arguments are one of several words, and not files. */
static bool takes_words(const struct command *c) { return strchr(c->arguments, '|') != NULL; }

/* Prints `text` with `to` in place of each `from`. */
static void print_replaced(const char *text, char from, const char *to)
{
	for (; *text; text++) {
		if (*text == from)
			fputs(to, stdout);
		else
			putchar(*text);
	}
}

/* ---- man ---- */

/* Prints a text for roff: dashes and backslashes are escaped, and what stands in backticks is bold. */
static void print_roff(const char *text)
{
	bool bold = false;
	for (; *text; text++) {
		if (*text == '`')
			fputs((bold = !bold) ? "\\fB" : "\\fR", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text);
	}
}

static void roff_item(const char *head, const char *text)
{
	fputs(".TP\n\\fB", stdout);
	print_roff(head);
	fputs("\\fR\n", stdout);
	print_roff(text);
	putchar('\n');
}

static void roff_commands(const struct tables *t)
{
	puts(".SH COMMANDS");
	for (size_t i = 0; i < t->n_commands; i++) {
		const struct command *c = &t->commands[i];
		fputs(".TP\n\\fBstepsim", stdout);
		if (c->name)
			printf(" %s", c->name);
		printf("\\fR%s", *c->arguments ? " \\fI" : "");
		print_roff(c->arguments);
		printf("%s [\\fIoptions\\fR]\n", *c->arguments ? "\\fR" : "");
		print_roff(c->summary);
		putchar('\n');
	}
	puts(".PP\nUnder \\fBmpirun \\-np N\\fR every rank takes part.");
}

static void roff_options(const struct tables *t)
{
	puts(".SH OPTIONS\n\\fBstepsim\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR names the options of one command.");
	for (size_t i = 0; i < options_count(); i++) {
		const struct option_text o = options_text(i);
		fputs(".TP\n\\fB", stdout);
		if (o.letter)
			printf("\\-%c\\fR, \\fB", o.letter);
		print_roff(o.name);
		fputs("\\fR", stdout);
		if (o.argument) {
			fputs(" \\fI", stdout);
			print_roff(o.argument);
			fputs("\\fR", stdout);
		}
		putchar('\n');
		print_roff(o.help);
		putchar('\n');
		if (!(o.groups & TAKES_ALWAYS)) {
			const bool runs = o.groups & t->commands[0].groups;
			printf(".br\nCommands: %s", runs ? "\\fICONFIG.yaml\\fR, " : "");
			print_commands(t, o.groups, ", ");
			putchar('\n');
		}
	}
}

static void print_man(const struct tables *t)
{
	puts(".TH STEPSIM 1 \"\" \"stepsim " STEPSIM_VERSION "\" \"User Commands\"");
	puts(".SH NAME\nstepsim \\- predict a distributed training step, execute it, and compare the two");
	puts(".SH SYNOPSIS\n\\fBstepsim\\fR \\fICONFIG.yaml\\fR [\\fIoptions\\fR]\n.br\n"
	     "\\fBstepsim\\fR \\fICOMMAND\\fR [\\fIarguments\\fR] [\\fIoptions\\fR]");
	puts(".SH DESCRIPTION\nstepsim predicts how long one training step of a transformer takes on given hardware.\n"
	     "It executes the step where the hardware is at hand, and compares the two op by op.");
	roff_commands(t);
	roff_options(t);
	puts(".SH \"EXIT STATUS\"");
	for (size_t i = 0; i < t->n_exit_codes; i++) {
		char code[24];
		snprintf(code, sizeof code, "%zu", i);
		roff_item(code, t->exit_codes[i]);
	}
	puts(".SH ENVIRONMENT");
	for (size_t i = 0; i < COUNT(variables); i++)
		roff_item(variables[i].name, variables[i].meaning);
	puts(".SH FILES");
	roff_item("PREFIX/share/stepsim/configs",
		"the catalogue: systems, GPUs, models, stacks; `reference.yaml` has every key of a config");
	roff_item("PREFIX/lib/stepsim", "plug-ins that execute steps");
	puts(".SH EXAMPLES\n.nf\nstepsim predict \\-\\-model llama3\\-8b \\-\\-system dgx\\-h100 \\-\\-gpus 64\n"
	     "stepsim plan \\-\\-model llama3\\-70b \\-\\-system dgx\\-h100 \\-\\-gpus 64\n.fi");
}

/* ---- bash ---- */

/* Prints the branches of a `case` over options with a value, which say how it is completed. */
static void bash_values(void)
{
	for (size_t i = 0; i < options_count(); i++) {
		const struct option_text o = options_text(i);
		if ((!o.words && !o.command) || is_repeated(i, ~0u))
			continue;
		char letter[8] = "";
		if (o.letter)
			snprintf(letter, sizeof letter, "-%c | ", o.letter);
		if (o.words)
			printf("\t%s%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", letter, o.name,
				o.words);
		else
			printf("\t%s%s) COMPREPLY=($(compgen -W \"$(_stepsim_names %s)\" -- \"$cur\")); return ;;\n",
				letter, o.name, o.command);
	}
	fputs("\t", stdout);
	print_options(~0u, WITH_FILE, " | ");
	puts(") _stepsim_files; return ;;");
	fputs("\t", stdout);
	print_options(~0u, WITH_ARGUMENT, " | ");
	puts(") return ;;");
}

static void bash_commands(const struct tables *t)
{
	for (size_t i = 0; i < t->n_commands; i++) {
		const struct command *c = &t->commands[i];
		printf("\t%s) options='", c->name ? c->name : "''");
		print_options(c->groups, EVERY_OPTION, " ");
		fputs("' words='", stdout);
		if (!c->name)
			print_commands(t, ~0u, " ");
		else if (takes_words(c))
			print_replaced(c->arguments, '|', " ");
		puts("' ;;");
	}
}

static const char bash_head[] =
	"# bash completion of stepsim, generated from its table of options\n"
	"_stepsim_names() {\n"
	"\tCOLUMNS=9999 stepsim \"$@\" 2>/dev/null |\n"
	"\t\tawk 'NR > 2 && NF == 0 { exit } NR > 2 { sub(/\\*$/, \"\", $1); print $1 }'\n"
	"}\n\n"
	"_stepsim_files() {\n"
	"\tlocal IFS=$'\\n'\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"\tCOMPREPLY+=($(compgen -f -- \"$cur\"))\n"
	"}\n\n"
	"_stepsim() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= options= words= i\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$cur\" = = ]; then\n"
	"\t\tcur=\n"
	"\telif [ \"$prev\" = = ]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n";

static void print_bash(const struct tables *t)
{
	fputs(bash_head, stdout);
	fputs("\t\t", stdout);
	print_options(~0u, WITH_ARGUMENT, " | ");
	puts(") ((i++)) ;;");
	fputs("\t\t", stdout);
	print_commands(t, ~0u, " | ");
	puts(") command=${COMP_WORDS[i]}; break ;;\n\t\tesac\n\tdone\n\tcase $prev in");
	bash_values();
	puts("\tesac\n\tcase $command in");
	bash_commands(t);
	puts("\tesac\n"
	     "\tif [[ $cur == -* ]]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
	     "\telse\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	     "\t\t[[ -n $command && -n $words ]] || _stepsim_files\n"
	     "\tfi\n"
	     "}\n"
	     "complete -F _stepsim stepsim");
}

/* ---- zsh ---- */

/* Prints a text inside '...[...]' of _arguments. */
static void print_zsh(const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			putchar('\\');
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
}

static void zsh_option(const struct option_text *o)
{
	if (o->letter)
		printf(" \\\n\t\t\t'(-%c %s)'{-%c,%s%s}'[", o->letter, o->name, o->letter, o->name,
			o->argument ? "=" : "");
	else
		printf(" \\\n\t\t\t'*%s%s[", o->name, o->argument ? "=" : "");
	print_zsh(o->help);
	putchar(']');
	if (o->argument) {
		putchar(':');
		print_zsh(o->argument);
		if (o->words)
			printf(":(%s)", o->words);
		else if (o->command)
			printf(": _stepsim_names %s", o->command); /* the blank: no options of compadd in front */
		else
			fputs(is_file(o) ? ":_files" : ": ", stdout);
	}
	putchar('\'');
}

static void print_zsh_completion(const struct tables *t)
{
	puts("#compdef stepsim\n# zsh completion of stepsim, generated from its table of options\n"
	     "_stepsim_names() {\n"
	     "\tlocal -a names\n"
	     "\tnames=(${(f)\"$(COLUMNS=9999 stepsim \"$@\" 2>/dev/null |\n"
	     "\t\tawk 'NR > 2 && NF == 0 { exit } NR > 2 { sub(/\\*$/, \"\", $1); print $1 }')\"})\n"
	     "\tcompadd -a names\n"
	     "}\n\n"
	     "_stepsim_first() {\n"
	     "\tlocal -a commands\n"
	     "\tcommands=(");
	for (size_t i = 0; i < t->n_commands; i++) {
		if (!t->commands[i].name)
			continue;
		printf("\t\t'%s:", t->commands[i].name);
		print_zsh(t->commands[i].summary);
		puts("'");
	}
	puts("\t)\n\t_describe command commands\n\t_files\n}\n\n_stepsim() {\n\tlocal command= word\n"
	     "\tfor word in ${words[2,CURRENT-1]}; do\n\t\tcase $word in");
	fputs("\t\t", stdout);
	print_commands(t, ~0u, " | ");
	puts(") command=$word; break ;;\n\t\tesac\n\tdone\n\tcase $command in");
	for (size_t i = 0; i < t->n_commands; i++) {
		const struct command *c = &t->commands[i];
		printf("\t%s)\n\t\t_arguments '1:command:_stepsim_first' '*:argument:", c->name ? c->name : "''");
		if (c->name && takes_words(c)) {
			putchar('(');
			print_replaced(c->arguments, '|', " ");
			putchar(')');
		} else {
			fputs("_files", stdout);
		}
		putchar('\'');
		for (size_t k = 0; k < options_count(); k++) {
			const struct option_text o = options_text(k);
			if ((o.groups & c->groups) && !is_repeated(k, c->groups))
				zsh_option(&o);
		}
		puts("\n\t\t;;");
	}
	puts("\tesac\n}\n\n_stepsim \"$@\"");
}

/* ---- fish ---- */

/* Prints a text inside '...' of fish. */
static void print_fish(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void fish_option(const struct tables *t, const struct option_text *o)
{
	fputs("complete -c stepsim", stdout);
	if (!(o->groups & TAKES_ALWAYS)) {
		const bool runs = o->groups & t->commands[0].groups;
		printf(" -n '%s__fish_seen_subcommand_from ", runs ? "_stepsim_no_command; or " : "");
		print_commands(t, o->groups, " ");
		putchar('\'');
	}
	if (o->letter)
		printf(" -s %c", o->letter);
	printf(" -l %s", o->name + 2);
	if (o->words)
		printf(" -x -a '%s'", o->words);
	else if (o->command)
		printf(" -x -a '(_stepsim_names %s)'", o->command);
	else if (o->argument)
		fputs(is_file(o) ? " -r -F" : " -x", stdout);
	fputs(" -d '", stdout);
	print_fish(o->help);
	puts("'");
}

static void print_fish_completion(const struct tables *t)
{
	puts("# fish completion of stepsim, generated from its table of options\n"
	     "function _stepsim_names\n"
	     "\tenv COLUMNS=9999 stepsim $argv 2>/dev/null |\n"
	     "\t\tawk 'NR > 2 && NF == 0 { exit } NR > 2 { sub(/\\*$/, \"\", $1); print $1 }'\n"
	     "end\n\n"
	     "function _stepsim_no_command");
	fputs("\tnot __fish_seen_subcommand_from ", stdout);
	print_commands(t, ~0u, " ");
	puts("\nend\n");
	for (size_t i = 0; i < t->n_commands; i++) {
		const struct command *c = &t->commands[i];
		if (!c->name)
			continue;
		printf("complete -c stepsim -n _stepsim_no_command -a %s -d '", c->name);
		print_fish(c->summary);
		puts("'");
		if (takes_words(c)) {
			printf("complete -c stepsim -n '__fish_seen_subcommand_from %s' -f -a '", c->name);
			print_replaced(c->arguments, '|', " ");
			puts("'");
		}
	}
	for (size_t i = 0; i < options_count(); i++) {
		const struct option_text o = options_text(i);
		fish_option(t, &o);
	}
}

/* ---- which ---- */

enum status generate(const char *kind, const struct command *commands, size_t n_commands, const char *const *exit_codes,
	size_t n_exit_codes, struct error *e)
{
	static const char *const kinds[] = {"man", "bash", "zsh", "fish"};
	static void (*const print[])(
		const struct tables *) = {print_man, print_bash, print_zsh_completion, print_fish_completion};
	struct tables t = {commands, 0, exit_codes, n_exit_codes};
	while (t.n_commands < n_commands && !(commands[t.n_commands].traits & HIDDEN))
		t.n_commands++;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (strcmp(kind, kinds[i]) == 0) {
			print[i](&t);
			return ST_OK;
		}
	}
	return error_set(e, ST_INPUT, "nothing to generate under '%s'%s", kind,
		suggest(kind, kinds, COUNT(kinds), NULL).text);
}
