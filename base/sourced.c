#include "base/sourced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/suggest.h"

enum status sourced_read(const struct ynode *n, struct sourced *out, struct error *e)
{
	static const char *const known[] = {"value", "source", "unverified"};
	*out = (struct sourced){0};
	if (n->kind != Y_MAP)
		return ynode_error(n, e,
			"%s: expected {value: ..., source: ...}: every number of the catalogue names its source",
			n->key);
	for (size_t i = 0; i < n->n; i++) {
		const char *key = n->child[i]->key;
		if (suggest_find(key, known, COUNT(known)) == COUNT(known))
			return ynode_error_key(n->child[i], e, "unknown key '%s'%s", key,
				suggest(key, known, COUNT(known), NULL).text);
	}
	const struct ynode *source = ynode_get(n, "source"), *flag = ynode_get(n, "unverified");
	out->value = ynode_get(n, "value");
	if (!out->value || !source)
		return ynode_error(n, e, "%s: expected {value: ..., source: ...}: '%s' is missing", n->key,
			out->value ? "source" : "value");
	enum status st = ynode_string(source, &out->source, e);
	if (!st && !*out->source)
		st = ynode_error(source, e, "%s: the source is empty", n->key);
	if (!st && flag)
		st = ynode_bool(flag, &out->unverified, e);
	return st;
}

/* ---- sources ---- */

/* The ids that a file may name: its own and, read when the first other one is asked for, the shared ones. */
struct sources {
	struct ydoc *doc;
	const struct ynode *own;
	bool *used; /* of `own` */
	struct ydoc *shared;
	bool shared_read;
	struct error *e;
};

static enum status check_own(const struct ynode *own, struct error *e)
{
	const char *text;
	enum status st = !own || own->kind == Y_MAP ? ST_OK : ynode_error(own, e, "sources: expected a mapping of ids");
	for (size_t i = 0; own && i < own->n && !st; i++)
		st = ynode_string(own->child[i], &text, e);
	return st;
}

/* A catalogue of one's own need not have shared sources. */
static enum status read_shared(struct sources *s)
{
	char path[PATH_MAX_LEN];
	s->shared_read = true;
	if (path_catalogue("sources", "shared", path, NULL) || access(path, R_OK) != 0)
		return ST_OK;
	enum status st = ydoc_load(path, &s->shared, s->e);
	return st ? st : check_own(ydoc_root(s->shared), s->e);
}

static enum status unknown_id(const struct sources *s, const struct ynode *n)
{
	const struct ynode *maps[] = {s->own, s->shared ? ydoc_root(s->shared) : NULL};
	size_t most = 0, count = 0;
	for (size_t m = 0; m < COUNT(maps); m++)
		most += maps[m] ? maps[m]->n : 0;
	const char **known = calloc(most ? most : 1, sizeof *known);
	if (!known)
		return error_nomem(s->e, "the ids of sources");
	for (size_t m = 0; m < COUNT(maps); m++)
		for (size_t i = 0; maps[m] && i < maps[m]->n; i++)
			known[count++] = maps[m]->child[i]->key;
	enum status st = ynode_error(n, s->e, "source: unknown id '%s'%s; a text stands in quotes", n->text,
		suggest(n->text, known, count, NULL).text);
	free(known);
	return st;
}

/* The text of one member of a list: its own, or that of its id. */
static enum status member_text(struct sources *s, const struct ynode *n, const char **text)
{
	enum status st = ynode_string(n, text, s->e);
	if (st || n->quoted)
		return st;
	for (size_t i = 0; s->own && i < s->own->n; i++) {
		if (strcmp(s->own->child[i]->key, n->text) == 0) {
			s->used[i] = true;
			*text = s->own->child[i]->text;
			return ST_OK;
		}
	}
	if (!s->shared_read && (st = read_shared(s)))
		return st;
	const struct ynode *found = s->shared ? ynode_get(ydoc_root(s->shared), n->text) : NULL;
	if (!found)
		return unknown_id(s, n);
	*text = found->text;
	return ST_OK;
}

/* Makes the list a scalar: the full text. */
static enum status join(struct sources *s, struct ynode *list)
{
	char *all = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&all, &len);
	enum status st = out ? ST_OK : error_nomem(s->e, "a source");
	const char *text = "", *between = "";
	for (size_t i = 0; i < list->n && !st; i++) {
		if ((st = member_text(s, list->child[i], &text)))
			break;
		fprintf(out, "%s%s", between, text);
		between = *text && strchr(":,", text[strlen(text) - 1]) ? " " : "; ";
	}
	if (out && !memory_stream_close(out) && !st)
		st = error_nomem(s->e, "a source");
	char *kept = st ? NULL : ydoc_alloc(s->doc, len + 1);
	if (!st && !kept)
		st = error_nomem(s->e, "a source");
	if (!st) {
		memcpy(kept, all, len);
		list->kind = Y_SCALAR;
		list->quoted = true;
		list->text = kept;
		list->n = 0;
	}
	free(all);
	return st;
}

static enum status resolve_below(struct sources *s, struct ynode *n)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < n->n && !st; i++) {
		struct ynode *child = n->child[i];
		if (child == s->own)
			continue;
		bool list = child->kind == Y_SEQ && child->key && strcmp(child->key, "source") == 0;
		st = list ? join(s, child) : resolve_below(s, child);
	}
	return st;
}

static enum status resolve(struct ydoc *doc, struct error *e)
{
	struct sources s = {.doc = doc, .own = ynode_get(ydoc_root(doc), "sources"), .e = e};
	enum status st = check_own(s.own, e);
	if (!st && !(s.used = calloc(s.own && s.own->n ? s.own->n : 1, sizeof *s.used)))
		st = error_nomem(e, "the ids of sources");
	if (!st)
		st = resolve_below(&s, ydoc_edit(doc));
	for (size_t i = 0; s.own && i < s.own->n && !st; i++)
		if (!s.used[i])
			st = ynode_error_key(s.own->child[i], e, "sources: no number names '%s'", s.own->child[i]->key);
	free(s.used);
	ydoc_destroy(s.shared);
	return st;
}

/* ---- what a file is like ---- */

/* The files on the way from the first to this one. */
struct chain {
	const char *path;
	const struct chain *from;
};

static bool is_among(const struct ynode *n, const char *const *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(n->key, keys[i]) == 0)
			return true;
	return false;
}

/* Keys that are read here, and are gone from the tree. */
static bool is_read_here(const struct ynode *n)
{
	static const char *const keys[] = {"like", "sources"};
	return is_among(n, keys, COUNT(keys));
}

/* What belongs to one product alone: a driver's name for it, and what people pay for it. */
static bool is_taken_over(const struct ynode *n)
{
	static const char *const keys[] = {"shown_as", "price", "rent_usd_per_hour"};
	return !is_among(n, keys, COUNT(keys));
}

/* Completes `own` by what only `other` (NULL: nothing) has. */
static enum status merge(struct ydoc *doc, struct ynode *own, const struct ynode *other, bool top, struct error *e)
{
	struct ynode **child = ydoc_alloc(doc, (own->n + (other ? other->n : 0)) * sizeof(struct ynode *));
	size_t n = 0;
	enum status st = child ? ST_OK : error_nomem(e, "the keys of a file");
	for (size_t i = 0; i < own->n && !st; i++) {
		struct ynode *mine = own->child[i];
		const struct ynode *theirs = ynode_get(other, mine->key);
		if ((top && is_read_here(mine)) || (other && ynode_is_null(mine)))
			continue;
		child[n++] = mine;
		bool section = theirs && theirs->kind == Y_MAP && mine->kind == Y_MAP && !ynode_get(mine, "value");
		if (section)
			st = merge(doc, mine, theirs, false, e);
	}
	for (size_t i = 0; other && i < other->n && !st; i++)
		if (!ynode_get(own, other->child[i]->key) && (!top || is_taken_over(other->child[i])))
			child[n++] = other->child[i];
	if (!st) {
		own->child = child;
		own->n = n;
	}
	return st;
}

static enum status unknown_name(const char *kind, const struct ynode *like, struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	enum status st = path_catalogue_names(kind, &names, &n, e);
	if (st)
		return st;
	st = ynode_error(like, e, "like: there is no configs/%s/%.60s.yaml%s", kind, like->text,
		suggest(like->text, (const char *const *)names, n, NULL).text);
	path_names_free(names, n);
	return st;
}

static enum status load(const char *kind, const struct chain *at, struct ydoc **out, struct error *e);

static enum status load_like(const char *kind, const struct ynode *like, const struct chain *at, struct ydoc **out,
	struct error *e)
{
	char path[PATH_MAX_LEN];
	const char *name;
	enum status st = ynode_string(like, &name, e);
	if (st)
		return st;
	if (path_catalogue(kind, name, path, NULL) || access(path, R_OK) != 0)
		return unknown_name(kind, like, e);
	for (const struct chain *c = at; c; c = c->from)
		if (strcmp(c->path, path) == 0)
			return ynode_error(like, e, "like: %s is itself like this file: a circle", name);
	return load(kind, &(struct chain){path, at}, out, e);
}

static enum status load(const char *kind, const struct chain *at, struct ydoc **out, struct error *e)
{
	struct ydoc *doc = NULL, *other = NULL;
	enum status st = ydoc_load(at->path, &doc, e);
	if (st)
		return st;
	struct ynode *root = ydoc_edit(doc);
	if (root->kind != Y_MAP)
		st = ynode_error(root, e, "expected a mapping of keys");
	const struct ynode *like = ynode_get(root, "like");
	if (!st)
		st = resolve(doc, e);
	if (!st && like && !(st = load_like(kind, like, at, &other, e)))
		ydoc_keep(doc, other);
	if (!st)
		st = merge(doc, root, other ? ydoc_root(other) : NULL, true, e);
	if (st)
		ydoc_destroy(doc);
	else
		*out = doc;
	return st;
}

enum status sourced_load(const char *kind, const char *path, struct ydoc **out, struct error *e)
{
	return load(kind, &(struct chain){path, NULL}, out, e);
}
