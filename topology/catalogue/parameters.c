#include "topology/catalogue/parameters.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/sourced.h"
#include "base/suggest.h"
#include "base/yaml.h"

#define KEYS_MAX 64 /* of one section */
#define NAME_MAX_LEN 32
#define VALUE_TEXT 512

/* A row of the table. A single number is a table of one row without a name and of one column. */
struct row {
	const char *section, *key;
	enum unit unit;
	const char *unit_text; /* that the entry repeats; "": none */
	const char *names;     /* NULL: a single number */
	size_t columns;
	double low, high;
	size_t offset; /* in struct parameters */
};

static const struct row rows[] = {
#define AT(section, field) offsetof(struct parameters, section.field)
#define SECTION(section)
#define END(section)
#define QUANTITY(section, key, field, unit, low, high) \
	{#section, #key, UNIT_##unit, "", NULL, 1, low, high, AT(section, field)},
#define NUMBER(section, key, unit, low, high) {#section, #key, UNIT_NONE, unit, NULL, 1, low, high, AT(section, key)},
#define LIST(section, key, field, unit, names, low, high) \
	{#section, #key, UNIT_NONE, unit, names##_NAMES, 1, low, high, AT(section, field)},
#define TABLE(section, key, field, unit, names, columns, low, high) \
	{#section, #key, UNIT_NONE, unit, names##_NAMES, columns, low, high, AT(section, field)},
#define NCCL_RELEASE(section) NCCL_RELEASE_ROWS(section)
#include "topology/catalogue/parameters.def"
};

struct reader {
	struct parameters *out;
	parameter_visit *visit;
	void *context;
	struct error *e;
};

/* The value of one name, as numbers in `at` and as a text. */
static enum status read_cells(const struct row *r, const struct ynode *value, double *at, char text[VALUE_TEXT],
	struct error *e)
{
	size_t n = 0;
	if (r->columns == 1) {
		enum status st = ynode_quantity_with_unit(value, r->unit, r->low, r->high, at, e);
		if (!st)
			snprintf(text, VALUE_TEXT, "%s%s%s", value->text, *r->unit_text ? " " : "", r->unit_text);
		return st;
	}
	if (value->kind != Y_SEQ || value->n != r->columns)
		return ynode_error(value, e, "%s: expected a list of %zu numbers", value->key, r->columns);
	for (size_t i = 0; i < r->columns; i++) {
		enum status st = ynode_quantity_with_unit(value->child[i], r->unit, r->low, r->high, &at[i], e);
		if (st)
			return st;
		n += (size_t)snprintf(text + n, VALUE_TEXT - n, "%s%.12s", i ? " " : "", value->child[i]->text);
	}
	snprintf(text + n, VALUE_TEXT - n, "%s%s", *r->unit_text ? " " : "", r->unit_text);
	return ST_OK;
}

static enum status read_one(const struct reader *x, const struct row *r, const struct ynode *value, double *at,
	const struct parameter *entry)
{
	char text[VALUE_TEXT] = "";
	struct parameter p = *entry;
	enum status st = read_cells(r, value, at, text, x->e);
	p.value = text;
	return st || !x->visit ? st : x->visit(&p, x->context, x->e);
}

/* The word of `names` at *at, which is moved behind it; false at the end. */
static bool next_name(const char **at, char name[NAME_MAX_LEN])
{
	const size_t n = strcspn(*at, " ");
	snprintf(name, NAME_MAX_LEN, "%.*s", (int)n, *at);
	*at += n + strspn(*at + n, " ");
	return n > 0;
}

static enum status read_names(const struct reader *x, const struct row *r, const struct ynode *value, double *at,
	struct parameter *p)
{
	const char *names = r->names;
	char name[NAME_MAX_LEN];
	size_t n = 0;
	enum status st = ST_OK;
	for (; !st && next_name(&names, name); n++) {
		const struct ynode *node = ynode_get(value, name);
		p->name = name;
		st = node ? read_one(x, r, node, at + n * r->columns, p)
		          : ynode_error(value, x->e, "%s: '%s' is missing (expected: %s)", r->key, name, r->names);
	}
	return !st && value->n != n ? ynode_error(value, x->e, "%s: expected no other names than %s", r->key, r->names)
	                            : st;
}

/* {value, meaning, source, unit, unverified}: an entry that says less is refused, as nobody could check it. */
static enum status check_entry(const struct row *r, const struct ynode *entry, struct error *e)
{
	static const char *const known[] = {"value", "meaning", "source", "unit", "unverified"};
	static const size_t needed = 3;
	if (entry->kind != Y_MAP)
		return ynode_error(entry, e, "%s: expected {value: ..., meaning: ..., source: ...}", r->key);
	for (size_t i = 0; i < entry->n; i++) {
		const char *key = entry->child[i]->key;
		if (suggest_find(key, known, COUNT(known)) == COUNT(known))
			return ynode_error_key(entry->child[i], e, "%s: unknown key '%s'%s", r->key, key,
				suggest(key, known, COUNT(known), NULL).text);
	}
	for (size_t i = 0; i < needed; i++)
		if (!ynode_get(entry, known[i]))
			return ynode_error_key(entry, e, "%s: '%s' is missing", r->key, known[i]);
	return ST_OK;
}

static enum status check_unit(const struct row *r, const struct ynode *entry, struct error *e)
{
	const struct ynode *unit = ynode_get(entry, "unit");
	if (!unit && !*r->unit_text)
		return ST_OK;
	if (unit && unit->kind == Y_SCALAR && strcmp(unit->text, r->unit_text) == 0)
		return ST_OK;
	if (!*r->unit_text)
		return ynode_error_key(unit, e, "%s: a plain number here, without `unit`", r->key);
	return ynode_error(unit ? unit : entry, e, "%s: expected `unit: %s`", r->key, r->unit_text);
}

static enum status read_entry(const struct reader *x, const struct row *r, const struct ynode *entry)
{
	struct parameter p = {.section = r->section, .key = r->key};
	double *at = (double *)(void *)((char *)x->out + r->offset);
	enum status st = check_entry(r, entry, x->e);
	if (st || (st = check_unit(r, entry, x->e)) ||
		(st = ynode_string(ynode_get(entry, "meaning"), &p.meaning, x->e)) ||
		(st = ynode_string(ynode_get(entry, "source"), &p.source, x->e)))
		return st;
	const struct ynode *flag = ynode_get(entry, "unverified"), *value = ynode_get(entry, "value");
	if (flag && (st = ynode_bool(flag, &p.unverified, x->e)))
		return st;
	if (!r->names)
		return read_one(x, r, value, at, &p);
	return value->kind == Y_MAP
	               ? read_names(x, r, value, at, &p)
	               : ynode_error(value, x->e, "%s: expected a mapping with the names %s", r->key, r->names);
}

/* The rows of one section, which stand side by side. */
static enum status check_keys(const struct row *r, size_t n, const struct ynode *root, struct error *e)
{
	const char *known[KEYS_MAX];
	if (root->kind != Y_MAP)
		return ynode_error(root, e, "expected a mapping of keys");
	for (size_t i = 0; i < n; i++)
		known[i] = r[i].key;
	for (size_t i = 0; i < root->n; i++) {
		const char *key = root->child[i]->key;
		if (suggest_find(key, known, n) == n)
			return ynode_error_key(root->child[i], e, "unknown key '%s'%s", key,
				suggest(key, known, n, NULL).text);
	}
	for (size_t i = 0; i < n; i++)
		if (!ynode_get(root, r[i].key))
			return ynode_error(root, e, "the key '%s' is missing", r[i].key);
	return ST_OK;
}

static enum status read_section(const struct reader *x, const struct row *r, size_t n)
{
	char path[PATH_MAX_LEN];
	struct ydoc *doc = NULL;
	enum status st = n <= KEYS_MAX
	                         ? path_catalogue("model", r->section, path, x->e)
	                         : error_set(x->e, ST_RUN, "a section of %zu constants is longer than %d", n, KEYS_MAX);
	if (st || (st = sourced_load("model", path, &doc, x->e)))
		return st;
	st = check_keys(r, n, ydoc_root(doc), x->e);
	for (size_t i = 0; i < n && !st; i++)
		st = read_entry(x, &r[i], ynode_get(ydoc_root(doc), r[i].key));
	ydoc_destroy(doc);
	return st;
}

enum status parameters_read(struct parameters *out, parameter_visit *visit, void *context, struct error *e)
{
	const struct reader x = {out, visit, context, e};
	enum status st = ST_OK;
	for (size_t i = 0, n = 1; i < COUNT(rows) && !st; i += n) {
		for (n = 1; i + n < COUNT(rows) && strcmp(rows[i + n].section, rows[i].section) == 0;)
			n++;
		st = read_section(&x, &rows[i], n);
	}
	return st;
}

enum status parameters_load(const struct parameters **out, struct error *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct parameters once;
	static bool loaded;
	pthread_mutex_lock(&lock);
	enum status st = loaded ? ST_OK : parameters_read(&once, NULL, NULL, e);
	loaded |= !st;
	pthread_mutex_unlock(&lock);
	*out = st ? NULL : &once;
	return st;
}
