/* The text of somebody else's config as one tree, whatever its form, and its keys in a row. */
#ifndef STEPSIM_STEP_IMPORT_FOREIGN_H
#define STEPSIM_STEP_IMPORT_FOREIGN_H

#include "base/vec.h"
#include "base/yaml.h"
#include "step/import/table.h"

enum verdict { LEFT, TAKEN, NO_EFFECT, NOT_MODELLED, VERDICT_COUNT };

#define WHY_MAX 160
/* One key of the text that has a value. */
struct leaf {
	char *path, *value; /* tables joined by dots; a list as "[a, b]", of tables as "[2 tables]" */
	const struct ynode *node;
	enum verdict verdict;
	enum key_id unmet; /* NOT_MODELLED: the key of CONFIG.yaml that has no such value, or whose value is absent;
	                      else KEY_COUNT */
	bool absent;       /* its value stands elsewhere: "$TP", "auto" */
	bool alone;        /* absent, as a key that it goes with is */
	bool unknown;      /* NOT_MODELLED: no table names it */
	const char *near;  /* of an unknown one: the key that it is a slip of; NULL: none is that near; borrowed */
	char why[WHY_MAX]; /* TAKEN: as which keys of CONFIG.yaml */
};

struct foreign {
	struct ydoc *doc;
	char framework[STACK_NAME]; /* that the text names itself, or "" */
	VEC(struct leaf) leaves;
	const struct ynode *apart; /* tables whose keys are found by their whole paths alone; borrowed, may be NULL */
};

/* Returns what a name has behind a file of Python or a script: "llama3_8b" of "recipe.py:llama3_8b", a function;
 * "8B TP=2" of "run.sh:8B TP=2", what the script is called with. NULL: nothing. */
const char *foreign_part(const char *name);

/* step/import/wrapped.c: moves what a text of Primus changes in a framework (modules.NAME.overrides) to the root, with
 * the model that it is changed for as _model_, "llama3.1-8b" of llama3.1_8B.yaml, and returns the framework in
 * `framework`. Other texts stay as they are. */
enum status foreign_unwrap(struct ydoc *doc, char framework[STACK_NAME], struct error *e);

/* step/import/include.c: puts the files of YAML that "!include FILE" names into the tree. ST_INPUT: one that cannot be
 * parsed. */
enum status foreign_include(struct ydoc *doc, struct error *e);

/* Reads JSON, TOML, Python, a shell script or flags, or YAML, by what the text looks like. Of Python the function that
 * the name says (step/import/python.h), and scripts as they are called (step/import/flags.h). ${...} in YAML is put in
 * (step/import/interpolate.h). ST_INPUT with position. `name` is used in messages and remarks. */
enum status foreign_read(const char *text, size_t len, const char *name, struct foreign *out, struct error *e);
void foreign_free(struct foreign *f);

/* Finds a key by its whole path, null or not; of several the last. NULL: there is none. */
struct leaf *foreign_find_path(const struct foreign *f, const char *path);

/* Finds a key: the whole path, else one that ends in ".name". Of several the last whole one (a flag that is given again
 * replaces the former), or the first that ends so. NULL: there is none, or its value is null. */
struct leaf *foreign_find(const struct foreign *f, const char *name);

/* Returns how many keys the longest list of `detect` has of which the text has all; 0: it is of no such framework. */
size_t foreign_fits(const struct foreign *f, const struct import_table *t);

#endif
