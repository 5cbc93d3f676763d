/* Values that a Python text builds, as nodes of one document. Private to step/import/python*.c. */
#ifndef STEPSIM_STEP_IMPORT_PYTHON_TREE_H
#define STEPSIM_STEP_IMPORT_PYTHON_TREE_H

#include "base/yaml.h"
#include "step/import/python_lines.h"

#define PY_TARGET "_target_"
#define PY_FROM "_from_"
#define PY_UNKNOWN '$' /* what a text begins with whose value is not known */

#define PY_WORK_MOST 2000000

struct py_tree {
	struct ydoc *doc;
	bool failed; /* out of memory */
	size_t work; /* behind PY_WORK_MOST nodes are NULL, too */
};

/* Makes a node with the position of a word. NULL: out of memory, as everywhere here. Text of `len` bytes is copied. */
struct ynode *py_node(struct py_tree *t, const struct py_word *w, enum ykind kind);
struct ynode *py_scalar(struct py_tree *t, const struct py_word *w, const char *text, size_t len);
/* Makes "$text": a value that is not known. */
struct ynode *py_unknown(struct py_tree *t, const struct py_word *w, const char *text, size_t len);
struct ynode *py_number(struct py_tree *t, const struct py_word *w, double value);

/* Appends to a list, or puts under a key of a mapping (in place of what is there). What stands in another place already
 * is copied; in itself nothing can stand: that is left out. */
void py_add(struct py_tree *t, struct ynode *list, struct ynode *value);
void py_put(struct py_tree *t, struct ynode *map, const struct py_word *w, const char *key, size_t len,
	struct ynode *value);
struct ynode *py_get(const struct ynode *map, const char *key, size_t len);
void py_drop(struct ynode *map, const char *key);
void py_first(struct ynode *map, const char *key); /* moves a key to the front */
struct ynode *py_copy(struct py_tree *t, const struct ynode *n);

/* Reads a number, or whether a value counts as true; false: it is not known. */
bool py_is_number(const struct ynode *n, double *value);
bool py_truth(const struct ynode *n, bool *value);
bool py_is_unknown(const struct ynode *n);
bool py_is_call(const struct ynode *n);

/* Turns each list of calls below a node into a mapping by their names. */
void py_name_lists(struct py_tree *t, struct ynode *n, int depth);

#endif
