/* Flags of a command line, as a shell script or a plain text holds them: "--tensor-model-parallel-size $TP". */
#ifndef STEPSIM_STEP_IMPORT_FLAGS_H
#define STEPSIM_STEP_IMPORT_FLAGS_H

#include "base/yaml.h"

/* Makes a mapping of the flags in the text's order: `--a-b 1` and `--a-b=1` become a_b: 1, a flag without a value
 * becomes true. Comments are passed over. Variables that the text sets are put in: NAME=8, $NAME, ${NAME:-8} and
 * $((A * B / C)); others stay as they are written ("$RANK"). `arguments` are $1 and on, and variables NAME=VALUE that
 * the script is called with, or NULL: not known.
 * The text is not run. Of an `if`, a `case` and "[ $A = 1 ] && ..." the branch is read that is taken
 * (step/import/shell.h); where that is not known, all are. A flag that is given twice is there twice. Settings of NCCL
 * that the text makes are keys, too, and the name of a program pretrain_NAME.py is that of _script_. ST_INPUT with
 * position: not UTF-8, too long. */
enum status flags_parse(const char *text, size_t len, const char *name, const char *arguments, struct ydoc **out,
	struct error *e);

/* Returns whether the text has a word that begins with two dashes and a letter, outside of comments; "--a: 1" is YAML.
 * `text` ends with a zero. */
bool flags_found(const char *text, size_t len);

#endif
