/* Building the tree from libyaml's events. Events, not libyaml's documents: those resolve aliases and drop duplicate
 * keys in silence. */
#include "base/yaml.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/paths.h"
#include "base/utf8.h"
#include "base/vec.h"

#define DEPTH_MAX 32
#define FILE_LIMIT_B ((size_t)16 << 20)
#define ALIASED_MAX 20000 /* values that aliases add, so that aliases of aliases cannot fill the memory */

struct ydoc {
	struct arena *arena;
	struct ynode *root;
	struct ydoc *kept; /* the documents that die with it, each through its own `kept` */
};

/* A collection that is not closed yet. */
struct level {
	struct ynode *node;
	VEC(struct ynode *) children;
	const char *key; /* mapping: the key whose value comes next, or NULL when a key comes next */
	yaml_mark_t key_mark;
};

/* A value that aliases (*name) stand for. */
struct anchor {
	const char *name;
	struct ynode *node;
};

struct builder {
	struct ydoc *doc;
	VEC(struct anchor) anchors;
	size_t aliased;
	const char *name;
	const char *text; /* what is parsed, for messages about single characters */
	size_t len;
	struct level levels[DEPTH_MAX];
	size_t depth;
	size_t documents;
	bool done;
	bool foreign; /* tags are kept */
	struct error *e;
};

static enum status complain(const struct builder *b, yaml_mark_t at, const char *what)
{
	return error_set(b->e, ST_INPUT, "%s:%zu:%zu: %s", b->name, at.line + 1, at.column + 1, what);
}

static enum status refuse_tag(const struct builder *b, const yaml_char_t *tag, yaml_mark_t at)
{
	return complain(b, at,
		strcmp((const char *)tag, "!include") == 0 ? "!include is not supported: put the keys of that file here"
							   : "tags (!) are not supported");
}

/* ---- nodes ---- */

static struct ynode *node_new(struct builder *b, enum ykind kind, yaml_mark_t at)
{
	struct ynode *n = arena_alloc(b->doc->arena, sizeof *n);
	if (!n) {
		error_nomem(b->e, "a YAML node");
		return NULL;
	}
	n->kind = kind;
	n->line = (int)at.line + 1;
	n->col = (int)at.column + 1;
	n->file = b->name;
	return n;
}

/* Puts a finished or just opened node under the collection that is being read. */
static enum status attach(struct builder *b, struct ynode *n)
{
	if (b->depth == 0) {
		b->doc->root = n;
		return ST_OK;
	}
	struct level *l = &b->levels[b->depth - 1];
	if (l->node->kind == Y_MAP) {
		n->key = l->key;
		n->key_line = (int)l->key_mark.line + 1;
		n->key_col = (int)l->key_mark.column + 1;
		l->key = NULL;
	}
	return vec_push(&l->children, n) ? ST_OK : error_nomem(b->e, "a YAML node");
}

static bool expects_key(const struct builder *b)
{
	const struct level *l = b->depth ? &b->levels[b->depth - 1] : NULL;
	return l && l->node->kind == Y_MAP && !l->key;
}

/* ---- anchors ---- */

static enum status note_anchor(struct builder *b, const yaml_char_t *name, struct ynode *n)
{
	if (!name)
		return ST_OK;
	const struct anchor a = {arena_strdup(b->doc->arena, (const char *)name), n};
	return a.name && vec_push(&b->anchors, a) ? ST_OK : error_nomem(b->e, "a YAML anchor");
}

/* Counts a value and all in it, up to `most`. */
static size_t count_values(const struct ynode *n, size_t most)
{
	size_t count = 1;
	for (size_t i = 0; i < n->n && count < most; i++)
		count += count_values(n->child[i], most - count);
	return count;
}

static bool is_open(const struct builder *b, const struct ynode *n)
{
	for (size_t i = 0; i < b->depth; i++)
		if (b->levels[i].node == n)
			return true;
	return false;
}

/* Puts the value of the last anchor of the name here. What is in it is shared, and keeps its position. */
static enum status on_alias(struct builder *b, const yaml_event_t *event)
{
	const yaml_mark_t at = event->start_mark;
	const char *name = (const char *)event->data.alias.anchor;
	const struct ynode *of = NULL;
	for (size_t i = 0; i < b->anchors.n; i++)
		if (strcmp(b->anchors.at[i].name, name) == 0)
			of = b->anchors.at[i].node;
	if (!of || expects_key(b))
		return complain(b, at, of ? "an alias (*) cannot be a key" : "an alias (*) without its anchor (&)");
	if (is_open(b, of))
		return complain(b, at, "an alias (*) inside of what it stands for");
	b->aliased += count_values(of, ALIASED_MAX);
	if (b->aliased > ALIASED_MAX)
		return complain(b, at, "aliases (*) that stand for more than 20000 values");
	struct ynode *n = node_new(b, of->kind, at);
	if (!n)
		return ST_RUN;
	n->quoted = of->quoted;
	n->text = of->text;
	n->n = of->n;
	n->child = of->child;
	return attach(b, n);
}
static_assert(ALIASED_MAX == 20000, "the message says 20000");

/* Returns a scalar's text with its tag before it, "!include data.yaml", but for the tags of YAML's own types. */
static char *tagged_text(const struct builder *b, const char *tag, const char *value)
{
	static const char core[] = "tag:yaml.org,2002:";
	static const char *const types[] = {"str", "int", "float", "bool", "null"};
	const bool own = strncmp(tag, core, sizeof core - 1) == 0;
	for (size_t i = 0; own && i < COUNT(types); i++)
		if (strcmp(tag + sizeof core - 1, types[i]) == 0)
			return arena_strdup(b->doc->arena, value);
	const char *name = own ? tag + sizeof core - 1 : tag;
	const size_t size = strlen(name) + strlen(value) + sizeof "!! ";
	char *text = arena_alloc(b->doc->arena, size);
	if (text)
		snprintf(text, size, "%s%s%s%s", own ? "!!" : "", name, *value ? " " : "", value);
	return text;
}

static enum status on_scalar(struct builder *b, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value, *tag = (const char *)event->data.scalar.tag;
	yaml_mark_t at = event->start_mark;
	if (tag && !b->foreign)
		return refuse_tag(b, event->data.scalar.tag, at);
	if (strlen(value) != event->data.scalar.length)
		return complain(b, at, "a text must not hold a zero byte");
	char *text = tag ? tagged_text(b, tag, value) : arena_strdup(b->doc->arena, value);
	if (!text)
		return error_nomem(b->e, "a YAML text");
	if (expects_key(b)) {
		struct level *l = &b->levels[b->depth - 1];
		if (!*text)
			return complain(b, at, "a key is empty");
		if (event->data.scalar.anchor)
			return complain(b, at, "an anchor (&) of a key is not supported");
		l->key = text;
		l->key_mark = at;
		return ST_OK;
	}
	struct ynode *n = node_new(b, Y_SCALAR, at);
	if (!n)
		return ST_RUN;
	n->text = text;
	n->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	enum status st = note_anchor(b, event->data.scalar.anchor, n);
	return st ? st : attach(b, n);
}

static enum status on_open(struct builder *b, enum ykind kind, const yaml_char_t *anchor, const yaml_char_t *tag,
	yaml_mark_t at)
{
	if (tag && !b->foreign)
		return refuse_tag(b, tag, at);
	if (expects_key(b))
		return complain(b, at, "a key must be plain text, not a list or a mapping");
	if (b->depth == DEPTH_MAX)
		return complain(b, at, "nested deeper than 32 levels");
	struct ynode *n = node_new(b, kind, at);
	if (!n)
		return ST_RUN;
	enum status st = note_anchor(b, anchor, n);
	if (!st && !(st = attach(b, n)))
		b->levels[b->depth++] = (struct level){.node = n};
	return st;
}
static_assert(DEPTH_MAX == 32, "the message says 32");

static int by_key(const void *a, const void *b)
{
	const struct ynode *x = *(struct ynode *const *)a, *y = *(struct ynode *const *)b;
	int order = strcmp(x->key, y->key);
	if (order == 0)
		order = (x->key_line > y->key_line) - (x->key_line < y->key_line);
	if (order == 0)
		order = (x->key_col > y->key_col) - (x->key_col < y->key_col);
	return order;
}

/* Sorted, so that a hostile file with a million keys costs no quadratic time. */
static enum status refuse_duplicates(struct builder *b, struct ynode *const *children, size_t n)
{
	if (n < 2)
		return ST_OK;
	struct ynode **sorted = malloc(n * sizeof(struct ynode *));
	if (!sorted)
		return error_nomem(b->e, "the keys of a mapping");
	memcpy(sorted, children, n * sizeof(struct ynode *));
	qsort(sorted, n, sizeof(struct ynode *), by_key);
	enum status st = ST_OK;
	for (size_t i = 1; i < n && !st; i++)
		if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
			st = ynode_error_key(sorted[i], b->e, "%s: duplicate key, first given at %s:%d:%d",
				sorted[i]->key, b->name, sorted[i - 1]->key_line, sorted[i - 1]->key_col);
	free(sorted);
	return st;
}

/* Appends the keys of a mapping that "<<" merges. */
static enum status merge_keys(struct builder *b, struct level *l, const struct ynode *from)
{
	if (from->kind != Y_MAP)
		return ynode_error(from, b->e, "expected a mapping to merge, or a list of them");
	for (size_t i = 0; i < from->n; i++)
		if (!vec_push(&l->children, from->child[i]))
			return error_nomem(b->e, "a YAML node");
	return ST_OK;
}

struct placed {
	struct ynode *node;
	size_t at;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	const int order = strcmp(x->node->key, y->node->key);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Keeps the first of several keys with one name, sorted as in refuse_duplicates. */
static enum status keep_first(struct builder *b, struct level *l)
{
	size_t n = 0;
	struct placed *sorted = malloc((l->children.n + 1) * sizeof *sorted);
	if (!sorted)
		return error_nomem(b->e, "the keys of a mapping");
	for (size_t i = 0; i < l->children.n; i++)
		sorted[i] = (struct placed){l->children.at[i], i};
	qsort(sorted, l->children.n, sizeof *sorted, by_place);
	for (size_t i = 1; i < l->children.n; i++)
		if (strcmp(sorted[i - 1].node->key, sorted[i].node->key) == 0)
			l->children.at[sorted[i].at] = NULL;
	for (size_t i = 0; i < l->children.n; i++)
		if (l->children.at[i])
			l->children.at[n++] = l->children.at[i];
	l->children.n = n;
	free(sorted);
	return ST_OK;
}

/* Replaces "<<: *name" (https://yaml.org/type/merge.html) by the keys that it merges. */
static enum status merge(struct builder *b, struct level *l)
{
	for (size_t i = 0; i < l->children.n; i++) {
		const struct ynode *m = l->children.at[i];
		if (strcmp(m->key, "<<") != 0)
			continue;
		memmove(&l->children.at[i], &l->children.at[i + 1], (--l->children.n - i) * sizeof *l->children.at);
		enum status st = m->kind == Y_SEQ ? ST_OK : merge_keys(b, l, m);
		for (size_t k = 0; m->kind == Y_SEQ && k < m->n && !st; k++)
			st = merge_keys(b, l, m->child[k]);
		return st ? st : keep_first(b, l);
	}
	return ST_OK;
}

static enum status on_close(struct builder *b)
{
	struct level *l = &b->levels[--b->depth];
	enum status st = l->node->kind == Y_MAP ? refuse_duplicates(b, l->children.at, l->children.n) : ST_OK;
	if (!st && l->node->kind == Y_MAP)
		st = merge(b, l);
	const size_t n = l->children.n;
	if (!st && n > 0) {
		l->node->child = arena_alloc(b->doc->arena, n * sizeof(struct ynode *));
		if (l->node->child) {
			memcpy(l->node->child, l->children.at, n * sizeof(struct ynode *));
			l->node->n = n;
		} else {
			st = error_nomem(b->e, "a YAML list");
		}
	}
	vec_free(&l->children);
	return st;
}

static enum status on_document(struct builder *b, const yaml_event_t *event)
{
	if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
		return complain(b, event->start_mark, "tags (%TAG) are not supported");
	if (b->documents++ > 0)
		return complain(b, event->start_mark, "several documents in one file are not supported");
	return ST_OK;
}

static enum status on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT: return on_document(b, event);
	case YAML_ALIAS_EVENT: return on_alias(b, event);
	case YAML_SCALAR_EVENT: return on_scalar(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, Y_SEQ, event->data.sequence_start.anchor, event->data.sequence_start.tag,
			event->start_mark);
	case YAML_MAPPING_START_EVENT:
		return on_open(b, Y_MAP, event->data.mapping_start.anchor, event->data.mapping_start.tag,
			event->start_mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: return on_close(b);
	case YAML_STREAM_END_EVENT: b->done = true; return ST_OK;
	default: return ST_OK; /* the start of the stream, the end of the document */
	}
}

/* ---- the whole text ---- */

static enum status syntax_error(const struct builder *b, const yaml_parser_t *parser)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return error_nomem(b->e, "reading YAML");
	const char *what = parser->problem ? parser->problem : "not YAML";
	yaml_mark_t at = parser->problem_mark;
	if (parser->error == YAML_READER_ERROR) { /* a character that YAML has no place for, such as U+FFFE: all it
		                                     tells is the byte */
		at = (yaml_mark_t){0};
		for (size_t i = 0; i < parser->problem_offset && i < b->len; i++) {
			at.line += b->text[i] == '\n';
			at.column = b->text[i] == '\n' ? 0 : at.column + (((unsigned char)b->text[i] & 0xC0) != 0x80);
		}
	}
	if (parser->problem && strcmp(parser->problem, "found character that cannot start any token") == 0) {
		/* libyaml counts characters, so the byte cannot be found by its index; the two usual culprits are told
		 * by their rule. */
		what = "a value cannot start with a tab, @, ` or %: indent with spaces, put text in quotes";
	}
	if (parser->problem && strcmp(parser->problem, "mapping values are not allowed in this context") == 0)
		what = "a key cannot stand here: begin it in the column of the keys above, put text with ': ' "
		       "in quotes";
	if (!parser->context || parser->context_mark.line == at.line)
		return complain(b, at, what);
	return error_set(b->e, ST_INPUT, "%s:%zu:%zu: %s (%s that began at %s:%zu:%zu)", b->name, at.line + 1,
		at.column + 1, what, parser->context, b->name, parser->context_mark.line + 1,
		parser->context_mark.column + 1);
}

static enum status read_events(struct builder *b, yaml_parser_t *parser)
{
	enum status st = ST_OK;
	while (!st && !b->done) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return syntax_error(b, parser);
		st = on_event(b, &event);
		yaml_event_delete(&event);
	}
	return st;
}

/* An empty file, and one with only comments or "---", is a config without keys. */
static enum status empty_is_mapping(struct builder *b)
{
	const struct ynode *root = b->doc->root;
	if (root && !(root->kind == Y_SCALAR && !root->quoted && !*root->text))
		return ST_OK;
	b->doc->root = node_new(b, Y_MAP, (yaml_mark_t){0});
	return b->doc->root ? ST_OK : ST_RUN;
}

static enum status parse(const char *text, size_t len, const char *name, bool foreign, struct ydoc **out,
	struct error *e)
{
	static const char byte_order_mark[] = "\xEF\xBB\xBF";
	if (len >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
		text += 3;
		len -= 3;
	}
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return error_nomem(e, "reading YAML");
	struct builder b = {.text = text, .len = len, .foreign = foreign, .e = e};
	enum status st;
	b.doc = calloc(1, sizeof *b.doc);
	if (!b.doc || !(b.doc->arena = arena_create()) || !(b.name = arena_strdup(b.doc->arena, name))) {
		st = error_nomem(e, "a YAML document");
		goto out;
	}
	if ((st = utf8_check(text, len, b.name, e)))
		goto out;
	/* Checked before: libyaml would guess UTF-16, and reports bad bytes without a position. */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if ((st = read_events(&b, &parser)) || (st = empty_is_mapping(&b)))
		goto out;
	*out = b.doc;
	b.doc = NULL;
out:
	for (size_t i = 0; i < b.depth; i++)
		vec_free(&b.levels[i].children);
	vec_free(&b.anchors);
	yaml_parser_delete(&parser);
	ydoc_destroy(b.doc);
	return st;
}

enum status ydoc_parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e)
{
	return parse(text, len, name, false, out, e);
}

enum status ydoc_parse_foreign(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e)
{
	return parse(text, len, name, true, out, e);
}

enum status ydoc_load(const char *path, struct ydoc **out, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = file_read(path, FILE_LIMIT_B, &text, &len, e);
	if (!st)
		st = ydoc_parse(text, len, path, out, e);
	free(text);
	return st;
}

enum status ydoc_create(const char *name, struct ydoc **out, struct error *e)
{
	struct ydoc *doc = calloc(1, sizeof *doc);
	char *copy = doc && (doc->arena = arena_create()) ? arena_strdup(doc->arena, name) : NULL;
	if (!copy || !(doc->root = arena_alloc(doc->arena, sizeof *doc->root))) {
		ydoc_destroy(doc);
		return error_nomem(e, "a document");
	}
	*doc->root = (struct ynode){.kind = Y_MAP, .line = 1, .col = 1, .file = copy};
	*out = doc;
	return ST_OK;
}

const struct ynode *ydoc_root(const struct ydoc *doc) { return doc->root; }

struct ynode *ydoc_edit(struct ydoc *doc) { return doc->root; }

void *ydoc_alloc(struct ydoc *doc, size_t size) { return arena_alloc(doc->arena, size); }

void ydoc_keep(struct ydoc *doc, struct ydoc *other)
{
	while (doc->kept)
		doc = doc->kept;
	doc->kept = other;
}

void ydoc_destroy(struct ydoc *doc)
{
	while (doc) {
		struct ydoc *kept = doc->kept;
		arena_destroy(doc->arena);
		free(doc);
		doc = kept;
	}
}
