#include "step/import/foreign.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/toml.h"
#include "base/utf8.h"
#include "step/import/flags.h"
#include "step/import/interpolate.h"
#include "step/import/python.h"

#define PATH_LEN 512
#define LEAVES_MOST 20000

/* ---- the form ---- */

const char *foreign_part(const char *name)
{
	static const char *const ends[] = {".py:", ".sh:"};
	for (size_t i = 0; i < COUNT(ends); i++) {
		const char *found = strstr(name, ends[i]);
		if (found)
			return found + strlen(ends[i]);
	}
	return NULL;
}

/* Returns whether a line begins with "[name]" or "[[name]]", as tables of TOML do. */
static bool has_tables(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (i && text[i - 1] != '\n')
			continue;
		size_t n = i;
		while (n < len && (text[n] == '[' || text[n] == ' '))
			n++;
		const size_t start = n;
		while (n < len && (isalnum((unsigned char)text[n]) || strchr("_-.", text[n])))
			n++;
		if (text[i] == '[' && n > start && n < len && text[n] == ']')
			return true;
	}
	return false;
}

/* Checks JSON strictly; its tree is YAML's, which is a superset and knows positions. */
static enum status json_parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e)
{
	json_error_t where;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	if (!root)
		return error_set(e, ST_INPUT, "%s:%d:%d: %s", name, where.line, where.column, where.text);
	json_decref(root);
	return ydoc_parse(text, len, name, out, e);
}

/* Returns whether a text is YAML by its file's name: with braces it may still have comments, as GPT-NeoX's configs. */
static bool is_named_yaml(const char *name)
{
	const char *end = strrchr(name, '.');
	return end && (strcmp(end, ".yml") == 0 || strcmp(end, ".yaml") == 0);
}

static enum status parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e)
{
	size_t start = 0;
	while (start < len && isspace((unsigned char)text[start]))
		start++;
	if (start < len && text[start] == '{')
		return is_named_yaml(name) ? ydoc_parse_foreign(text, len, name, out, e)
		                           : json_parse(text, len, name, out, e);
	const char *part = foreign_part(name);
	const bool python = part && strncmp(part - 4, ".py:", 4) == 0;
	if (python || (!part && python_found(text, len)))
		return python_parse(text, len, name, part, out, e);
	if (!part && has_tables(text, len))
		return toml_parse(text, len, name, out, e);
	return part || flags_found(text, len) ? flags_parse(text, len, name, part, out, e)
	                                      : ydoc_parse_foreign(text, len, name, out, e);
}

/* ---- the leaves ---- */

/* Copies a text, '?' for control characters; of a number, 500_000, without what groups its digits. */
static bool add_text(char **out, const char *text)
{
	const bool number = isdigit((unsigned char)*text) && strspn(text, "0123456789_") == strlen(text);
	*out = strdup(text);
	if (!*out)
		return false;
	utf8_repair(*out); /* a long list is cut */
	for (char *p = *out; *p; p++)
		*p = iscntrl((unsigned char)*p) ? '?' : *p;
	size_t n = 0;
	for (const char *p = text; number && *p; p++)
		if (*p != '_')
			(*out)[n++] = *p;
	if (number)
		(*out)[n] = '\0';
	return true;
}

/* Writes "[a, b]" of a list's scalars. */
static void list_text(const struct ynode *n, char *buf, size_t size)
{
	size_t at = (size_t)snprintf(buf, size, "[");
	for (size_t i = 0; i < n->n && at < size - 1; i++) {
		char inner[PATH_LEN];
		if (n->child[i]->kind == Y_MAP) {
			snprintf(buf, size, "[%zu %s]", n->n, n->n == 1 ? "table" : "tables");
			return;
		}
		if (n->child[i]->kind == Y_SEQ)
			list_text(n->child[i], inner, sizeof inner);
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "",
			n->child[i]->kind == Y_SEQ ? inner : n->child[i]->text);
	}
	if (at < size - 1)
		snprintf(buf + at, size - at, "]");
	else
		memcpy(buf + size - 5, "...]", 5);
}

/* Writes the path of a child. "--num-layers" as a key of YAML is num_layers, and so is GPT-NeoX's "num-layers". */
static void path_of(const char *parent, const char *key, char out[PATH_LEN])
{
	const bool flag = strncmp(key, "--", 2) == 0;
	snprintf(out, PATH_LEN, "%s%s", parent, *parent ? "." : "");
	char *name = out + strlen(out);
	snprintf(name, PATH_LEN - strlen(out), "%.200s", key + (flag ? 2 : 0));
	for (char *p = name; (flag || !*parent) && *p; p++)
		*p = *p == '-' ? '_' : *p;
}

/* Returns what a table {_target_: NAME, _call_: false} names, as Megatron-Bridge writes functions and formats; else the
 * node itself. */
static const struct ynode *named_object(const struct ynode *n)
{
	const struct ynode *call = ynode_get(n, "_call_"), *target = ynode_get(n, "_target_");
	const bool is_name = n->n == 2 && call && target && call->text && strcmp(call->text, "false") == 0;
	return is_name ? target : n;
}

static enum status collect(struct foreign *f, const struct ynode *n, const char *path, struct error *e)
{
	char text[PATH_LEN];
	n = named_object(n);
	for (size_t i = 0; n->kind == Y_MAP && i < n->n; i++) {
		const struct ynode *child = n->child[i];
		path_of(path, child->key, text);
		enum status st = collect(f, child, text, e);
		if (st)
			return st;
	}
	if (n->kind == Y_MAP && n->n)
		return ST_OK;
	struct leaf l = {.node = n, .unmet = KEY_COUNT};
	if (n->kind == Y_SEQ)
		list_text(n, text, sizeof text);
	if (f->leaves.n == LEAVES_MOST)
		return ynode_error(n, e, "more than %d keys", LEAVES_MOST);
	if (!add_text(&l.path, path) ||
		!add_text(&l.value, n->kind == Y_SCALAR ? n->text
				    : n->kind == Y_SEQ  ? text
							: "{}") ||
		!vec_push(&f->leaves, l)) {
		free(l.path);
		free(l.value);
		return error_nomem(e, "the keys of a config");
	}
	return ST_OK;
}

/* ---- the whole ---- */

enum status foreign_read(const char *text, size_t len, const char *name, struct foreign *out, struct error *e)
{
	*out = (struct foreign){0};
	enum status st = parse(text, len, name, &out->doc, e);
	if (st)
		return st;
	st = foreign_include(out->doc, e);
	if (!st && ydoc_root(out->doc)->kind != Y_MAP)
		st = ynode_error(ydoc_root(out->doc), e, "expected keys with values");
	if (!st)
		st = foreign_unwrap(out->doc, out->framework, e);
	if (!st && ydoc_root(out->doc)->n && !(st = collect(out, ydoc_root(out->doc), "", e)))
		st = interpolate(out, e);
	if (st)
		foreign_free(out);
	return st;
}

void foreign_free(struct foreign *f)
{
	for (size_t i = 0; i < f->leaves.n; i++) {
		free(f->leaves.at[i].path);
		free(f->leaves.at[i].value);
	}
	vec_free(&f->leaves);
	ydoc_destroy(f->doc);
	f->doc = NULL;
}

struct leaf *foreign_find_path(const struct foreign *f, const char *path)
{
	struct leaf *found = NULL;
	for (size_t i = 0; i < f->leaves.n; i++)
		if (strcmp(f->leaves.at[i].path, path) == 0)
			found = &f->leaves.at[i];
	return found;
}

static bool is_apart(const struct foreign *f, const char *path)
{
	const size_t first = strcspn(path, ".");
	for (size_t i = 0; f->apart && i < f->apart->n; i++)
		if (strlen(f->apart->child[i]->text) == first && strncmp(f->apart->child[i]->text, path, first) == 0)
			return true;
	return false;
}

struct leaf *foreign_find(const struct foreign *f, const char *name)
{
	struct leaf *found = foreign_find_path(f, name);
	const size_t n = strlen(name);
	for (size_t i = 0; i < f->leaves.n && !found; i++) {
		const char *path = f->leaves.at[i].path;
		const size_t len = strlen(path);
		if (len > n && path[len - n - 1] == '.' && strcmp(path + len - n, name) == 0 &&
			!ynode_is_null(f->leaves.at[i].node) && !is_apart(f, path))
			found = &f->leaves.at[i];
	}
	return found && !ynode_is_null(found->node) ? found : NULL;
}

/* Returns the root's key of this name, also where the text writes "-" for "_". */
static const struct ynode *top_key(const struct ynode *root, const char *name)
{
	char path[PATH_LEN];
	for (size_t i = 0; root->kind == Y_MAP && i < root->n; i++) {
		path_of("", root->child[i]->key, path);
		if (strcmp(path, name) == 0)
			return root->child[i];
	}
	return NULL;
}

/* Returns whether the text has a key or a table of this path. */
static bool has(const struct ynode *root, const char *path)
{
	char part[PATH_LEN];
	const struct ynode *n = root;
	while (n && *path) {
		const size_t len = strcspn(path, ".");
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		n = n == root ? top_key(root, part) : ynode_get(n, part);
		path += len + (path[len] == '.');
	}
	return n != NULL;
}

size_t foreign_fits(const struct foreign *f, const struct import_table *t)
{
	size_t most = 0;
	for (size_t i = 0; t->detect && i < t->detect->n; i++) {
		const struct ynode *group = t->detect->child[i];
		size_t found = 0;
		for (size_t k = 0; k < group->n; k++)
			found += has(ydoc_root(f->doc), group->child[k]->text);
		if (found == group->n && found > most)
			most = found;
	}
	return most;
}
