/* What a shell script says without being run: its variables, arithmetic, conditions, and where its branches are.
 * Private to step/import. */
#ifndef STEPSIM_STEP_IMPORT_SHELL_H
#define STEPSIM_STEP_IMPORT_SHELL_H

#include "base/vec.h"

#define SHELL_WORD 512 /* bytes of a word, with the terminator */
#define SHELL_NAME 64
#define SHELL_DEPTH 32 /* of brackets and negations in one another */

enum truth { TRUTH_NO, TRUTH_YES, TRUTH_UNKNOWN };

struct shell_variable {
	char name[SHELL_NAME], value[SHELL_WORD];
};

struct shell {
	VEC(struct shell_variable) variables;
	bool has_arguments; /* $1 and the following are known, and empty behind the last */
};

/* Sets a variable. False: no memory. */
bool shell_set(struct shell *s, const char *name, const char *value);
/* Sets $1 and on from words, and variables from words NAME=VALUE, as "dsw 8B TP=4". False: no memory. */
bool shell_arguments(struct shell *s, const char *words);
void shell_free(struct shell *s);

/* Returns the length of the name that begins here. */
size_t shell_name_length(const char *text);

/* Puts in the variables that are known: $NAME, ${NAME}, ${NAME:-word}, $((A * B)) and $(expr A / B). Others stay as
 * they are written. What is longer than a word is cut. */
void shell_expand(const struct shell *s, const char *word, char out[SHELL_WORD]);

/* Judges what stands between `if` and `then`: [ ... ], [[ ... ]], (( ... )), true, false, !, && and ||. A variable that
 * the script does not set is empty. *tests is false where a command is called, which makes the truth unknown. */
enum truth shell_condition(const struct shell *s, const char *text, size_t len, bool *tests);

/* Judges the tests that begin at `text`, "[ $A = 1 ] && X=2", and returns where the command behind them begins.
 * *skipped: the command does not run. NULL: it is no test. */
const char *shell_guard(const struct shell *s, const char *text, const char *end, bool *skipped);

/* Words that begin, part and end the branches of a script: if, then, elif, else, fi, case, esac, ";;", tests, "[", and
 * echo, where a command may stand: outside of quotes, comments and documents that are given to a command (<<END). */
struct shell_mark {
	const char *at;
	size_t len;
};
struct shell_marks {
	VEC(struct shell_mark) marks;
};
/* False: no memory. */
bool shell_find_marks(const char *text, const char *end, struct shell_marks *out);
bool shell_mark_is(const struct shell_mark *m, const char *word);

#endif
