/* Presets and stacks: catalogue files in the words of CONFIG.yaml. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sourced.h"
#include "base/suggest.h"
#include "step/config/keys.h"
#include "step/import/import.h"
#include "step/framework.h"

/* The entries that a file of a folder may have besides its mapping of keys. */
struct folder {
	const char *kind, *what;
	const char *mapping;    /* the key under which its keys stand */
	const char *others[16]; /* further keys: notes, and what is read apart */
};
static const struct folder models = {"models", "preset", "model",
	{"source", "description", "note", "left_out", "published_parameters", "published_parameters_rounded", NULL}};
static const struct folder stacks = {"stacks", "stack", "defaults",
	{"source", "description", "note", "family", "compiled_twin", "numbers", "operators", "unvectorized",
		"reductions", "kernels", "memory", "habits", "interval", "fitted_on", "names", NULL}};
static const struct folder families = {"families", "stack family", "numbers",
	{"source", "description", "note", "operators", "unvectorized", "reductions", "kernels", "memory", "habits",
		NULL}};

static enum status find_file(const struct folder *f, const char *name, const char *where, char path[PATH_MAX_LEN],
	struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	enum status st = path_catalogue_names(f->kind, &names, &n, e);
	if (st)
		return st;
	bool found = false;
	for (size_t i = 0; i < n && !found; i++)
		found = strcmp(names[i], name) == 0;
	char preset[KEY_VALUE_MAX];
	if (!found && strcmp(f->kind, "models") == 0 && hub_value(name, KEY_model_preset, preset)) {
		st = error_set(e, ST_INPUT, "%s: unknown %s \"%.60s\" (nearest: %s, which is this model)", where,
			f->what, name, preset);
	} else if (!found) {
		char lister[64];
		snprintf(lister, sizeof lister, "list %s", f->kind);
		st = error_set(e, ST_INPUT, "%s: unknown %s \"%.60s\"%s", where, f->what, name,
			suggest(name, (const char *const *)names, n, lister).text);
	} else {
		st = path_catalogue(f->kind, name, path, e);
	}
	path_names_free(names, n);
	return st;
}

static bool is_other(const struct folder *f, const char *key)
{
	for (size_t i = 0; f->others[i]; i++)
		if (strcmp(f->others[i], key) == 0)
			return true;
	return false;
}

static enum status check_entries(const struct folder *f, const struct ynode *root, struct error *e)
{
	if (root->kind != Y_MAP || !ynode_get(root, f->mapping))
		return ynode_error(root, e, "a %s file needs a mapping `%s`", f->what, f->mapping);
	for (size_t i = 0; i < root->n; i++) {
		const char *key = root->child[i]->key;
		if (strcmp(key, f->mapping) != 0 && !is_other(f, key))
			return ynode_error_key(root->child[i], e, "%s: unknown key of a %s file", key, f->what);
	}
	return ST_OK;
}

static enum status load(const struct folder *f, const char *name, const char *where, struct ydoc **doc, struct error *e)
{
	char path[PATH_MAX_LEN];
	enum status st = find_file(f, name, where, path, e);
	if (!st)
		st = sourced_load(f->kind, path, doc, e);
	if (!st)
		st = check_entries(f, ydoc_root(*doc), e);
	return st;
}

static enum status refuse_key(const struct ynode *map, const char *key, struct error *e)
{
	const struct ynode *n = ynode_get(map, key);
	return n ? ynode_error_key(n, e, "%s: a catalogue file cannot name another", key) : ST_OK;
}

enum status config_apply_preset(struct config *c, const char *name, const struct key_origin *origin, const char *where,
	struct error *e)
{
	struct ydoc *doc = NULL;
	enum status st = load(&models, name, where, &doc, e);
	const struct ynode *map = st ? NULL : ynode_get(ydoc_root(doc), models.mapping);
	if (!st && !(st = refuse_key(map, "preset", e)) && !(st = refuse_key(map, "hf_config", e)))
		st = config_apply(c, "model", map, origin, e);
	ydoc_destroy(doc);
	return st;
}

/* Reads the numbers that every stack has unless a file says otherwise. */
static enum status read_base(struct stack *s, struct error *e)
{
	struct ydoc *doc = NULL;
	char path[PATH_MAX_LEN];
	*s = stack_default();
	enum status st = path_catalogue("model", "stack", path, e);
	if (!st)
		st = sourced_load("model", path, &doc, e);
	if (!st)
		st = stack_read(ydoc_root(doc), s, e);
	ydoc_destroy(doc);
	return st;
}

/* Reads the numbers of the family that the stack names over those of every stack, then the stack's own. */
static enum status read_costs(struct config *c, const struct ynode *stack, struct error *e)
{
	struct ydoc *doc = NULL;
	const struct ynode *family = ynode_get(stack, "family");
	const char *name;
	char where[64];
	enum status st = read_base(&c->stack, e);
	if (st)
		return st;
	if (family) {
		if ((st = ynode_string(family, &name, e)))
			return st;
		snprintf(where, sizeof where, "%d:%d: family", family->line, family->col);
		if (!(st = load(&families, name, where, &doc, e)))
			st = stack_read(ydoc_root(doc), &c->stack, e);
	}
	c->stack.family = family != NULL;
	ydoc_destroy(doc);
	return st ? st : stack_read(stack, &c->stack, e);
}

/* The compiled twin of a stack is itself a stack of the catalogue. */
static enum status check_twin(const struct ynode *stack, const char *name, struct error *e)
{
	const struct ynode *twin = ynode_get(stack, "compiled_twin");
	char where[64], path[PATH_MAX_LEN];
	if (!twin)
		return ST_OK;
	snprintf(where, sizeof where, "%d:%d: compiled_twin", twin->line, twin->col);
	return find_file(&stacks, name, where, path, e);
}

/* Sets *is: a file of the folder has this name. */
static enum status is_file(const struct folder *f, const char *name, bool *is, struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	const enum status st = path_catalogue_names(f->kind, &names, &n, e);
	*is = !st && suggest_find(name, (const char *const *)names, n) < n;
	path_names_free(names, n);
	return st;
}

bool config_stack_is_file(const char *name)
{
	const char *dot = strrchr(name, '.');
	return strchr(name, '/') || (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0));
}

/* Reads a file of somebody's own. */
static enum status load_own(const struct config *c, const char *name, const char *where, struct ydoc **doc,
	struct error *e)
{
	char path[PATH_MAX_LEN];
	path_named_by(c->path, name, path);
	if (access(path, R_OK) != 0)
		return error_set(e, ST_INPUT, "%s: no file '%.200s'", where, name);
	enum status st = sourced_load(stacks.kind, path, doc, e);
	return st ? st : check_entries(&stacks, ydoc_root(*doc), e);
}

enum status config_stack_of(const char *name, const char *where, char stack[STACK_NAME], struct error *e)
{
	struct frameworks known;
	bool is;
	if (config_stack_is_file(name)) {
		snprintf(stack, STACK_NAME, "%s", name); /* the key's reader has seen that it is no longer */
		return ST_OK;
	}
	enum status st = is_file(&stacks, name, &is, e);
	if (st || is) {
		snprintf(stack, STACK_NAME, "%s", name);
		return st;
	}
	if ((st = frameworks_load(&known, e)))
		return st;
	const struct framework *f = framework_named(&known, name);
	if (f)
		memcpy(stack, f->stack, sizeof f->stack);
	else
		st = error_set(e, ST_INPUT, "%s: unknown %s \"%.60s\"%s", where, stacks.what, name,
			framework_hint(&known, name).text);
	frameworks_free(&known);
	return st;
}

enum status config_apply_stack(struct config *c, const char *name, const struct key_origin *origin, const char *where,
	struct error *e)
{
	struct ydoc *doc = NULL;
	enum status st = config_stack_is_file(name) ? load_own(c, name, where, &doc, e)
	                                            : load(&stacks, name, where, &doc, e);
	if (st)
		goto out;
	if ((st = read_costs(c, ydoc_root(doc), e)) || (st = check_twin(ydoc_root(doc), c->stack.compiled_twin, e)))
		goto out;
	const struct ynode *defaults = ynode_get(ydoc_root(doc), stacks.mapping);
	if (defaults->kind != Y_MAP) {
		st = ynode_error(defaults, e, "%s: expected a mapping of the sections train and parallel",
			stacks.mapping);
		goto out;
	}
	for (size_t i = 0; i < defaults->n && !st; i++) {
		const struct ynode *map = defaults->child[i];
		if (strcmp(map->key, "train") != 0 && strcmp(map->key, "parallel") != 0)
			st = ynode_error_key(map, e, "%s: a stack has defaults for train and parallel only", map->key);
		else if (!(st = refuse_key(map, "stack", e)))
			st = config_apply(c, map->key, map, origin, e);
	}
	c->stack.bucket_B = c->parallel.bucket_B;
out:
	ydoc_destroy(doc);
	return st;
}
