/* Reading an option's value into struct options. Private to cli/options.c. */
#ifndef STEPSIM_CLI_OPTION_VALUES_H
#define STEPSIM_CLI_OPTION_VALUES_H

#include "cli/options.h"

struct option_row;
typedef enum status option_reader(struct options *o, const struct option_row *row, const char *value, struct error *e);

struct option_row {
	char letter;          /* 0: none */
	const char *name;     /* with its dashes */
	const char *argument; /* NULL: takes none */
	const char *help;
	unsigned groups;
	option_reader *read;
	size_t offset; /* in struct options, of what the reader fills; 0: it knows */
};

/* Each reads the value of a row; ST_INPUT: it is none of what the option takes. */
option_reader read_flag, read_path, read_text, read_input, read_texts, read_budget, read_max_error, read_seconds,
	read_progress, read_backend, read_size, read_from_0, read_from_1, read_from_2, read_gpus, read_dtype;

/* What an option's value can be, for the readers of words and for completion: words, or a command of stepsim whose
 * table's first column names them. */
struct option_value {
	const char *option, *words, *command;
};
const struct option_value *option_value_of(const char *option); /* NULL: neither is known */

#endif
