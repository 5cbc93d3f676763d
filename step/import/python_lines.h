/* The words of a Python text in lines. Private to step/import/python*.c. */
#ifndef STEPSIM_STEP_IMPORT_PYTHON_LINES_H
#define STEPSIM_STEP_IMPORT_PYTHON_LINES_H

#include "base/status.h"
#include "base/vec.h"

enum py_kind { PY_NAME, PY_NUMBER, PY_STRING, PY_SIGN };

struct py_word {
	enum py_kind kind;
	bool formatted; /* a string with values in it, f"..." */
	const char *at; /* of a string without its quotes */
	size_t len;
	int line, col;
};

/* A statement, or what stands before its block: brackets and a backslash join lines of the text, ";" parts one. */
struct py_line {
	size_t first, n; /* words */
	int indent;
};

struct py_lines {
	VEC(struct py_word) words;
	VEC(struct py_line) lines;
};

/* Splits a text, without comments. ST_INPUT with position. */
enum status py_lines_read(const char *text, size_t len, const char *name, struct py_lines *out, struct error *e);
void py_lines_free(struct py_lines *l);

#endif
