/* YAML with positions: a tree of nodes over libyaml, each with line and column (from 1).
 *
 * Closed traps: duplicate keys are an error, tags and several documents in one file are refused, nesting is limited to
 * 32. An alias (*name) is the value of its anchor (&name), which must be complete, with at most 20,000 values in all;
 * "<<" merges mappings. Scalars stay text: who reads a number does it with quantity_parse or the ynode_* readers
 * below, so that "1.0zz" is refused.
 */
#ifndef STEPSIM_BASE_YAML_H
#define STEPSIM_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quantity.h"
#include "base/status.h"

enum ykind { Y_SCALAR, Y_SEQ, Y_MAP };

struct ynode {
	enum ykind kind;
	bool quoted;           /* scalar: written in quotes, so it is a string whatever it looks like */
	int line, col;         /* of the value */
	int key_line, key_col; /* of the key, for the value of a mapping entry */
	const char *file;      /* name for messages */
	const char *key;       /* the key under which it stands in a mapping, else NULL */
	const char *text;      /* scalar: its text ("" for an empty value), else NULL */
	size_t n;              /* sequence, mapping: number of children */
	struct ynode **child;
};

struct ydoc;

/* Reads a file, or a buffer under `name`. An empty document is an empty mapping. The document owns its nodes. */
enum status ydoc_load(const char *path, struct ydoc **out, struct error *e);
enum status ydoc_parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e);
/* The same of a file that another program reads: a scalar keeps its tag in its text, "!include data.yaml", tags of
 * collections are left out. */
enum status ydoc_parse_foreign(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e);
const struct ynode *ydoc_root(const struct ydoc *doc);
void ydoc_destroy(struct ydoc *doc); /* NULL-safe */

/* For who completes a tree (base/sourced.c): the root to write to, zeroed memory of the document's (NULL when there is
 * none), and another document, which becomes the first one's and dies with it. */
struct ynode *ydoc_edit(struct ydoc *doc);
void *ydoc_alloc(struct ydoc *doc, size_t size);
void ydoc_keep(struct ydoc *doc, struct ydoc *other);

/* For readers of other formats (base/toml.c): a document whose root is an empty mapping, and a node appended to a
 * mapping or list of it. key NULL: in a list; text NULL: a mapping or list. Both texts are copied. The caller sets the
 * positions. NULL: out of memory. */
enum status ydoc_create(const char *name, struct ydoc **out, struct error *e);
struct ynode *ydoc_add(struct ydoc *doc, struct ynode *parent, const char *key, enum ykind kind, const char *text);

/* The child of a mapping under `key`, or NULL (also when `map` is NULL or no mapping). */
const struct ynode *ynode_get(const struct ynode *map, const char *key);

/* True for ~, null and an empty value that is not in quotes. */
bool ynode_is_null(const struct ynode *n);

/* Readers: ST_INPUT "file:line:col: key: ..." when the node is of another type or out of [min, max]. null (~, null,
 * empty) is refused. */
enum status ynode_int(const struct ynode *n, int64_t min, int64_t max, int64_t *value, struct error *e);
enum status ynode_quantity(const struct ynode *n, enum unit unit, double min, double max, double *value,
	struct error *e);
enum status ynode_quantity_with_unit(const struct ynode *n, enum unit unit, double min, double max, double *value,
	struct error *e);                                                    /* a number without its unit is refused */
enum status ynode_bool(const struct ynode *n, bool *value, struct error *e); /* true/false, yes/no, on/off */
enum status ynode_string(const struct ynode *n, const char **value, struct error *e);

/* Records "file:line:col: <message>" (ST_INPUT) at the node's value, or at its key. */
enum status ynode_error(const struct ynode *n, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum status ynode_error_key(const struct ynode *n, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
