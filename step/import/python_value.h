/* Expressions and names of a Python text. Private to step/import/python*.c. */
#ifndef STEPSIM_STEP_IMPORT_PYTHON_VALUE_H
#define STEPSIM_STEP_IMPORT_PYTHON_VALUE_H

#include "step/import/python_tree.h"

#define PY_CALLS_MOST 24 /* nested */

struct py_binding {
	const char *name;
	size_t len;
	struct ynode *value;
};

struct py_function {
	const struct py_word *name;
	size_t line, first, last; /* lines: of `def`, of the body; last: behind it */
};

struct py_reader {
	struct py_lines lines;
	struct py_tree tree;
	VEC(struct py_binding) names;
	VEC(struct py_function) functions;
	VEC(struct ynode *) left; /* statements that are not run, as "_line_N" */
	size_t statements;
	size_t scope; /* the first name of the function that is read; those before the file's own are hidden */
	size_t globals;
	int calls, depth; /* functions in each other, expressions in each other */
	const char *file;
	struct error *e; /* the first one */
};

/* Words of a line from `at` to `end`, which is behind the last one. */
struct py_span {
	const struct py_word *at, *end;
};

bool py_is(const struct py_word *w, const char *text); /* a name or a sign */
bool py_at(const struct py_span *s, const char *text); /* the next word is this */
bool py_takes(struct py_span *s, const char *text);    /* and is passed, too */
/* Returns the place of a word outside of brackets; the end without one. */
const struct py_word *py_find(struct py_span s, const char *text);

struct ynode *py_name_get(const struct py_reader *r, const struct py_word *w);
void py_name_set(struct py_reader *r, const struct py_word *w, struct ynode *value);

/* Evaluates an expression up to the end of the span, or to what it cannot be continued with. NULL: out of memory. */
struct ynode *py_value(struct py_reader *r, struct py_span *s);
/* Returns what "a += b" makes of a; `sign` is "+=" or another one. */
struct ynode *py_changed(struct py_reader *r, const struct py_word *sign, const struct ynode *a, const struct ynode *b);

/* Returns the function of the file with this name, or NULL. */
const struct py_function *py_function(const struct py_reader *r, const char *name, size_t len);

/* step/import/python_builders.c: the config whose parts functions of the file build, as a call says that has
 * model_config_builder; NULL without one. *first: one of these functions. */
struct ynode *py_builders(struct py_reader *r, const struct py_function **first);

/* step/import/python.c: the words of a line. */
struct py_span py_words_of(const struct py_reader *r, size_t line);

/* step/import/python.c: what a function of the file returns, for arguments as a mapping. */
struct ynode *py_call(struct py_reader *r, const struct py_function *f, const struct ynode *arguments);

#endif
