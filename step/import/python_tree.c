#include "step/import/python_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTED_MOST 30 /* as in YAML */

static void *take(struct py_tree *t, size_t size)
{
	void *p = ydoc_alloc(t->doc, size);
	t->failed |= !p;
	return p;
}

static char *take_text(struct py_tree *t, const char *text, size_t len)
{
	char *copy = take(t, len + 1);
	if (copy)
		memcpy(copy, text, len);
	return copy;
}

struct ynode *py_node(struct py_tree *t, const struct py_word *w, enum ykind kind)
{
	struct ynode *n = ++t->work > PY_WORK_MOST ? NULL : take(t, sizeof *n);
	if (n)
		*n = (struct ynode){.kind = kind,
			.line = w->line,
			.col = w->col,
			.key_line = w->line,
			.key_col = w->col,
			.file = ydoc_root(t->doc)->file};
	return n;
}

struct ynode *py_scalar(struct py_tree *t, const struct py_word *w, const char *text, size_t len)
{
	struct ynode *n = py_node(t, w, Y_SCALAR);
	if (n && !(n->text = take_text(t, text, len)))
		return NULL;
	return n;
}

struct ynode *py_unknown(struct py_tree *t, const struct py_word *w, const char *text, size_t len)
{
	char buf[80];
	const int n = snprintf(buf, sizeof buf, "%c%.*s", PY_UNKNOWN, len < 60 ? (int)len : 60, text);
	return py_scalar(t, w, buf, (size_t)n);
}

struct ynode *py_number(struct py_tree *t, const struct py_word *w, double value)
{
	char buf[40];
	const int n = snprintf(buf, sizeof buf, fabs(value) < 1e15 && value == trunc(value) ? "%.0f" : "%.12g", value);
	return py_scalar(t, w, buf, (size_t)n);
}

/* ---- lists and mappings ---- */

/* Returns whether `wanted` stands below n, or n is nested too deeply. */
static bool holds(struct py_tree *t, const struct ynode *n, const struct ynode *wanted, int depth)
{
	if (n == wanted || depth > NESTED_MOST || ++t->work > PY_WORK_MOST)
		return true;
	for (size_t i = 0; i < n->n; i++)
		if (holds(t, n->child[i], wanted, depth + 1))
			return true;
	return false;
}

static void append(struct py_tree *t, struct ynode *list, struct ynode *value)
{
	if ((list->n & (list->n - 1)) == 0) {
		struct ynode **more = take(t, (list->n ? 2 * list->n : 1) * sizeof *more);
		if (!more)
			return;
		if (list->n)
			memcpy(more, list->child, list->n * sizeof *more);
		list->child = more;
	}
	list->child[list->n++] = value;
}

/* Returns a node to put into `parent`: a copy where it stands somewhere already, so that all is a tree. NULL: none. */
static struct ynode *own_of(struct py_tree *t, const struct ynode *parent, struct ynode *value)
{
	if (!parent || !value || holds(t, value, parent, 0))
		return NULL;
	return value->key ? py_copy(t, value) : value;
}

void py_add(struct py_tree *t, struct ynode *list, struct ynode *value)
{
	struct ynode *own = own_of(t, list, value);
	if (!own)
		return;
	own->key = "";
	append(t, list, own);
}

static size_t find(const struct ynode *map, const char *key, size_t len)
{
	size_t i = 0;
	while (i < map->n && !(strlen(map->child[i]->key) == len && strncmp(map->child[i]->key, key, len) == 0))
		i++;
	return i;
}

void py_put(struct py_tree *t, struct ynode *map, const struct py_word *w, const char *key, size_t len,
	struct ynode *value)
{
	struct ynode *own = own_of(t, map, value);
	if (!own)
		return;
	own->key = take_text(t, key, len);
	own->key_line = w->line;
	own->key_col = w->col;
	if (!own->key)
		return;
	const size_t i = find(map, key, len);
	if (i < map->n)
		map->child[i] = own;
	else
		append(t, map, own);
}

struct ynode *py_get(const struct ynode *map, const char *key, size_t len)
{
	if (!map || map->kind != Y_MAP)
		return NULL;
	const size_t i = find(map, key, len);
	return i < map->n ? map->child[i] : NULL;
}

void py_drop(struct ynode *map, const char *key)
{
	const size_t i = map ? find(map, key, strlen(key)) : 0;
	if (!map || i == map->n)
		return;
	memmove(map->child + i, map->child + i + 1, (map->n - i - 1) * sizeof *map->child);
	map->n--;
}

void py_first(struct ynode *map, const char *key)
{
	const size_t i = map ? find(map, key, strlen(key)) : 0;
	if (!map || i == map->n)
		return;
	struct ynode *first = map->child[i];
	memmove(map->child + 1, map->child, i * sizeof *map->child);
	map->child[0] = first;
}

struct ynode *py_copy(struct py_tree *t, const struct ynode *n)
{
	const struct py_word w = {.line = n->line, .col = n->col};
	struct ynode *copy = py_node(t, &w, n->kind);
	for (size_t i = 0; copy && i < n->n; i++) {
		struct ynode *child = py_copy(t, n->child[i]);
		if (child) {
			child->key = n->child[i]->key; /* texts stay as long as the document */
			child->key_line = n->child[i]->key_line;
			child->key_col = n->child[i]->key_col;
			append(t, copy, child);
		}
	}
	if (copy && n->kind == Y_SCALAR)
		copy->text = n->text;
	if (copy)
		copy->quoted = n->quoted;
	return copy;
}

/* ---- what is known ---- */

bool py_is_unknown(const struct ynode *n) { return n->kind == Y_SCALAR && *n->text == PY_UNKNOWN; }

bool py_is_call(const struct ynode *n)
{
	return n->kind == Y_MAP && (py_get(n, PY_TARGET, strlen(PY_TARGET)) || py_get(n, PY_FROM, strlen(PY_FROM)));
}

bool py_is_number(const struct ynode *n, double *value)
{
	char *rest = NULL;
	if (n->kind != Y_SCALAR || n->quoted)
		return false;
	*value = strtod(n->text, &rest);
	return rest != n->text && !*rest;
}

bool py_truth(const struct ynode *n, bool *value)
{
	double number;
	*value = true;
	if (n->kind != Y_SCALAR)
		*value = n->n > 0 || py_is_call(n);
	else if (n->quoted)
		*value = *n->text != '\0';
	else if (strcmp(n->text, "false") == 0 || strcmp(n->text, "null") == 0)
		*value = false;
	else if (py_is_number(n, &number))
		*value = number != 0;
	else
		return strcmp(n->text, "true") == 0;
	return true;
}

/* ---- lists of calls ---- */

static bool is_list_of_calls(const struct ynode *n)
{
	for (size_t i = 0; n->kind == Y_SEQ && i < n->n; i++)
		if (!py_is_call(n->child[i]))
			return false;
	return n->kind == Y_SEQ && n->n > 0;
}

/* Copies the name that a call has in a mapping: "MXFP8LinearConverter" of MXFP8LinearConverter.Config. */
static void name_of(const struct ynode *call, char out[80])
{
	const struct ynode *target = py_get(call, PY_TARGET, strlen(PY_TARGET));
	const char *text = (target ? target : py_get(call, PY_FROM, strlen(PY_FROM)))->text, *dot;
	size_t len = strlen(text);
	if (len > 7 && strcmp(text + len - 7, ".Config") == 0)
		len -= 7;
	while ((dot = memchr(text, '.', len))) {
		len -= (size_t)(dot + 1 - text);
		text = dot + 1;
	}
	snprintf(out, 80, "%.*s", len < 79 ? (int)len : 79, text);
}

void py_name_lists(struct py_tree *t, struct ynode *n, int depth)
{
	char name[80];
	for (size_t i = 0; i < n->n && depth < NESTED_MOST; i++)
		py_name_lists(t, n->child[i], depth + 1);
	if (!is_list_of_calls(n))
		return;
	const struct ynode list = *n;
	n->kind = Y_MAP;
	n->n = 0;
	n->child = NULL;
	for (size_t i = 0; i < list.n; i++) {
		name_of(list.child[i], name);
		const struct py_word w = {.line = list.child[i]->line, .col = list.child[i]->col};
		py_put(t, n, &w, name, strlen(name), list.child[i]);
	}
}
