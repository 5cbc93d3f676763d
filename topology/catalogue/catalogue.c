#include "topology/catalogue/catalogue.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/sourced.h"
#include "base/suggest.h"
#include "base/yaml.h"

#define KEYS_MAX 64
#define PATH_TEXT 64

static_assert(offsetof(struct catalogue_figure, value) == 0, "read_value writes there");

struct reader {
	const struct catalogue_key *keys;
	size_t n;
	void *out;
	bool *unverified;
	bool seen[KEYS_MAX];
	struct error *e;
};

static enum status read_text(const struct reader *r, const struct catalogue_key *k, const struct ynode *node)
{
	const char *text;
	enum status st = ynode_string(node, &text, r->e);
	if (st)
		return st;
	if (!*text || strlen(text) >= k->size)
		return ynode_error(node, r->e, "%s: expected a text of 1 to %zu characters", k->path, k->size - 1);
	strcpy((char *)r->out + k->offset, text);
	return ST_OK;
}

static enum status read_value(const struct reader *r, const struct catalogue_key *k, const struct ynode *value)
{
	char *at = (char *)r->out + k->offset;
	double v = 0;
	bool yes = false;
	if (k->type == CATALOGUE_BOOL) {
		enum status st = ynode_bool(value, &yes, r->e);
		if (!st)
			memcpy(at, &yes, sizeof yes);
		return st;
	}
	enum status st = ynode_quantity_with_unit(value, k->unit, k->min, k->max, &v, r->e);
	if (st)
		return st;
	if (k->type == CATALOGUE_DOUBLE || k->type == CATALOGUE_FIGURE) { /* a figure begins with its value */
		memcpy(at, &v, sizeof v);
		return ST_OK;
	}
	int64_t whole = (int64_t)v; /* ranges stay far below 2^53 */
	if (k->type == CATALOGUE_INT64 && (double)whole != v)
		return ynode_error(value, r->e, "%s: expected a whole number, got \"%.60s\"", k->path, value->text);
	memcpy(at, &whole, sizeof whole);
	return ST_OK;
}

static enum status read_number(const struct reader *r, const struct catalogue_key *k, const struct ynode *node)
{
	struct sourced number = {0};
	enum status st = sourced_read(node, &number, r->e);
	if (!st)
		st = read_value(r, k, number.value);
	if (st || k->type != CATALOGUE_FIGURE) {
		*r->unverified |= number.unverified;
		return st;
	}
	struct catalogue_figure *figure = (void *)((char *)r->out + k->offset);
	figure->unverified = number.unverified;
	snprintf(figure->source, sizeof figure->source, "%s", number.source);
	return ST_OK;
}

static bool is_section(const struct reader *r, const char *path)
{
	size_t len = strlen(path);
	for (size_t i = 0; i < r->n; i++)
		if (strncmp(r->keys[i].path, path, len) == 0 && r->keys[i].path[len] == '.')
			return true;
	return false;
}

static enum status unknown_key(const struct reader *r, const struct ynode *node, const char *path)
{
	const char *known[KEYS_MAX + 1];
	for (size_t i = 0; i < r->n; i++)
		known[i] = r->keys[i].path;
	known[r->n] = "unverified";
	return ynode_error_key(node, r->e, "unknown key '%s'%s", path, suggest(path, known, r->n + 1, NULL).text);
}

static enum status read_map(struct reader *r, const struct ynode *map, const char *prefix)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < map->n && !st; i++) {
		const struct ynode *node = map->child[i];
		char path[PATH_TEXT];
		bool fits = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", node->key) <
		            (int)sizeof path;
		size_t k = 0;
		while (k < r->n && !(fits && strcmp(r->keys[k].path, path) == 0))
			k++;
		bool flag = false;
		if (k < r->n) {
			r->seen[k] = true;
			st = r->keys[k].type == CATALOGUE_TEXT ? read_text(r, &r->keys[k], node)
			                                       : read_number(r, &r->keys[k], node);
		} else if (!*prefix && strcmp(path, "unverified") == 0) {
			st = ynode_bool(node, &flag, r->e);
			*r->unverified |= flag;
		} else if (!*prefix && fits && is_section(r, path)) {
			st = node->kind == Y_MAP ? read_map(r, node, path)
			                         : ynode_error(node, r->e, "%s: expected a mapping", path);
		} else {
			st = unknown_key(r, node, path);
		}
	}
	return st;
}

enum status catalogue_read(const char *kind, const char *path, const struct catalogue_key *keys, size_t n, void *out,
	bool *unverified, struct error *e)
{
	struct reader r = {.keys = keys, .n = n, .out = out, .unverified = unverified, .e = e};
	struct ydoc *doc = NULL;
	enum status st = n <= KEYS_MAX
	                         ? sourced_load(kind, path, &doc, e)
	                         : error_set(e, ST_RUN, "a catalogue table of %zu keys is longer than %d", n, KEYS_MAX);
	if (st)
		goto out;
	const struct ynode *root = ydoc_root(doc);
	st = root->kind == Y_MAP ? read_map(&r, root, "") : ynode_error(root, e, "expected a mapping of keys");
	for (size_t i = 0; i < n && !st; i++)
		if (keys[i].required && !r.seen[i])
			st = error_set(e, ST_INPUT, "%s: the key '%s' is missing", path, keys[i].path);
out:
	ydoc_destroy(doc);
	return st;
}

enum status catalogue_find(const char *kind, const char *what, const char *id, char *path, struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	struct error unnamed = {0};
	if (path_catalogue(kind, id, path, &unnamed) == ST_OK && access(path, R_OK) == 0)
		return ST_OK;
	enum status st = path_catalogue_names(kind, &names, &n, e);
	if (st)
		return st;
	char lister[64];
	snprintf(lister, sizeof lister, "list %s", kind);
	st = error_set(e, ST_INPUT, "unknown %s '%s'%s", what, id,
		suggest(id, (const char *const *)names, n, lister).text);
	path_names_free(names, n);
	return st;
}
