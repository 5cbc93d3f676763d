/* A shell script that is read: where it stands, and which branches it is in. Private to step/import/flags.c. */
#ifndef STEPSIM_STEP_IMPORT_SCRIPT_H
#define STEPSIM_STEP_IMPORT_SCRIPT_H

#include "base/yaml.h"
#include "step/import/shell.h"

struct script_frame {
	bool is_case, known, done; /* done: a branch was taken for certain, so that no further one is */
	char value[SHELL_WORD];    /* of a case, known */
};

struct script {
	const char *at, *end, *line_start;
	int line;
	struct shell shell;
	struct shell_marks marks;
	size_t mark;                     /* the first that was not passed */
	VEC(struct script_frame) frames; /* branches that are being read, the innermost last */
	struct ydoc *doc;
	size_t words;
	struct ynode *flag; /* waits for its value; NULL: none does */
	struct ynode *list; /* has a word as its value, which more words may follow; NULL: none has */
	bool python;        /* the command starts a program in Python, which may take key=value */
	struct error *e;
};

/* Passes a sign of the text. */
void script_next(struct script *r);
/* Returns whether a mark of the script's branches stands here. */
bool script_at_mark(struct script *r);
/* Follows the branches at a mark: stands behind a condition then, or at the next branch. False: no memory. */
bool script_take_mark(struct script *r);

#endif
