#include "step/import/table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/sourced.h"

#define FOLDER "frameworks"
#define TABLES_MAX 8 /* of one framework */

enum key_id import_key_of(const char *path)
{
	const char *dot = strchr(path, '.');
	return dot ? config_key_find(path, (size_t)(dot - path), dot + 1) : KEY_COUNT;
}

const char *import_row_name(const struct import_row *r, size_t i)
{
	if (r->key->kind == Y_SCALAR)
		return i == 0 ? r->key->text : NULL;
	return i < r->key->n ? r->key->child[i]->text : NULL;
}

/* ---- one row ---- */

static enum status find_to(const struct ynode *n, const char *path, enum key_id *out, struct error *e)
{
	const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
	*out = n ? import_key_of(path) : config_alias_key(name);
	if (!n && *out == KEY_COUNT)
		*out = config_key_alone(name);
	return *out != KEY_COUNT ? ST_OK : error_set(e, ST_INPUT, "%s is no key of CONFIG.yaml", path);
}

static enum status read_text(const struct ynode *row, const char *key, const char **out, struct error *e)
{
	const struct ynode *n = ynode_get(row, key);
	return n ? ynode_string(n, out, e) : ST_OK;
}

static enum status check_names(const struct ynode *row, struct error *e)
{
	static const char *const known[] = {"key", "to", "values", "with", "default", "when", "given", "times", "over",
		"plus", "known", "inverse", "is", "only", "form", "first", "until", "multiple", "says"};
	for (size_t i = 0; i < row->n; i++)
		if (suggest_find(row->child[i]->key, known, COUNT(known)) == COUNT(known))
			return ynode_error_key(row->child[i], e, "%s: unknown key of a row%s", row->child[i]->key,
				suggest(row->child[i]->key, known, COUNT(known), NULL).text);
	return ST_OK;
}

static enum status read_row(const struct ynode *n, struct import_table *t, struct error *e)
{
	struct import_row r = {.key = ynode_get(n, "key"), .to = KEY_COUNT};
	const struct ynode *inverse = ynode_get(n, "inverse"), *to = ynode_get(n, "to"), *first = ynode_get(n, "first"),
			   *multiple = ynode_get(n, "multiple");
	const char *only = NULL, *path = NULL, *hub = NULL;
	struct error inner = {0};
	enum status st = r.key ? check_names(n, e) : ynode_error(n, e, "a row needs its key");
	if (st || (st = read_text(n, "with", &r.with, e)) || (st = read_text(n, "default", &r.default_, e)) ||
		(st = read_text(n, "is", &r.is, e)) || (st = read_text(n, "until", &r.until, e)) ||
		(st = read_text(n, "only", &only, e)) || (st = read_text(n, "form", &r.form, e)) ||
		(st = read_text(n, "says", &r.says, e)) || (st = read_text(n, "to", &path, e)) ||
		(st = inverse ? ynode_bool(inverse, &r.inverse, e) : ST_OK) ||
		(st = first ? ynode_bool(first, &r.first, e) : ST_OK) ||
		(st = multiple ? ynode_int(multiple, 1, INT32_MAX, &r.multiple, e) : ST_OK))
		return st;
	if (!r.is && find_to(to, path ? path : import_row_name(&r, 0), &r.to, &inner))
		return ynode_error(n, e, "%s", inner.text);
	r.values = ynode_get(n, "values");
	if (r.values && r.values->kind == Y_SCALAR) {
		if ((st = ynode_string(r.values, &hub, e)))
			return st;
		r.layout = strcmp(hub, "layout") == 0;
		r.all_experts = strcmp(hub, "list_with_experts") == 0;
		r.list = r.all_experts || strcmp(hub, "list") == 0;
		r.shares = strcmp(hub, "shares") == 0;
		r.count = strcmp(hub, "count") == 0;
		r.hub = !r.layout && !r.list && !r.shares && !r.count;
		r.values = NULL;
	}
	r.known = ynode_get(n, "known");
	r.when = ynode_get(n, "when");
	r.given = ynode_get(n, "given");
	r.times = ynode_get(n, "times");
	r.over = ynode_get(n, "over");
	r.plus = ynode_get(n, "plus");
	r.no_import = r.is || (only && strcmp(only, "export") == 0);
	r.no_export = only && strcmp(only, "import") == 0;
	return vec_push(&t->rows, r) ? ST_OK : error_nomem(e, "a framework's rows");
}

/* ---- the file ---- */

static enum status read_reasons(const struct ynode *map, bool modelled, struct import_table *t, struct error *e)
{
	for (size_t i = 0; map && i < map->n; i++) {
		const struct import_reason r = {map->child[i]->key, map->child[i], modelled};
		if (r.patterns->kind != Y_SEQ)
			return ynode_error(r.patterns, e, "expected a list of keys");
		if (!vec_push(&t->reasons, r))
			return error_nomem(e, "a framework's keys");
	}
	return ST_OK;
}

static enum status unknown(const char *name, struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	enum status st = path_catalogue_names(FOLDER, &names, &n, e);
	if (st)
		return st;
	st = error_set(e, ST_INPUT, "unknown framework \"%.60s\"%s", name,
		suggest_known(name, (const char *const *)names, n).text);
	path_names_free(names, n);
	return st;
}

static enum status load(const char *name, struct import_table *t, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct ydoc *doc = NULL;
	const char *slash = strchr(name, '/');
	if (path_catalogue(slash ? FOLDER "/parts" : FOLDER, slash ? slash + 1 : name, path, NULL) ||
		access(path, R_OK) != 0)
		return unknown(name, e);
	if (t->docs.n == TABLES_MAX)
		return error_set(e, ST_INPUT, "%s: more than %d tables: is it `also` itself?", path, TABLES_MAX);
	enum status st = sourced_load(FOLDER, path, &doc, e);
	if (st)
		return st;
	if (!vec_push(&t->docs, doc)) {
		ydoc_destroy(doc);
		return error_nomem(e, "a framework's table");
	}
	const struct ynode *root = ydoc_root(doc), *rows = ynode_get(root, "rows"), *sets = ynode_get(root, "sets"),
			   *also = ynode_get(root, "also");
	if (t->docs.n == 1 && !(st = read_text(root, "writes", &t->writes, e)) &&
		!(st = read_text(root, "launch", &t->launch, e)) && !(st = read_text(root, "title", &t->title, e)) &&
		!(st = read_text(root, "accumulation", &t->accumulation, e)))
		t->detect = ynode_get(root, "detect");
	if (ynode_get(root, "imports"))
		t->imports = ynode_get(root, "imports");
	if (ynode_get(root, "apart"))
		t->apart = ynode_get(root, "apart");
	for (size_t i = 0; rows && i < rows->n && !st; i++)
		st = read_row(rows->child[i], t, e);
	for (size_t i = 0; sets && i < sets->n && !st; i++)
		st = vec_push(&t->sets, sets->child[i]) ? ST_OK : error_nomem(e, "a framework's table");
	if (!st && !(st = read_reasons(ynode_get(root, "no_effect"), true, t, e)))
		st = read_reasons(ynode_get(root, "not_modelled"), false, t, e);
	for (size_t i = 0; also && i < also->n && !st; i++)
		st = load(also->child[i]->text, t, e);
	return st;
}

enum status import_table_load(const char *name, struct import_table *out, struct error *e)
{
	*out = (struct import_table){0};
	snprintf(out->name, sizeof out->name, "%s", name);
	enum status st = strchr(name, '/') ? unknown(name, e) : load(name, out, e);
	if (!st && !out->title)
		out->title = out->name;
	if (st)
		import_table_free(out);
	return st;
}

void import_table_free(struct import_table *t)
{
	for (size_t i = 0; i < t->docs.n; i++)
		ydoc_destroy(t->docs.at[i]);
	vec_free(&t->docs);
	vec_free(&t->rows);
	vec_free(&t->reasons);
	vec_free(&t->sets);
}
