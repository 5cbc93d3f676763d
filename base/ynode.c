/* Reading values out of the tree of base/yaml.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/yaml.h"

const struct ynode *ynode_get(const struct ynode *map, const char *key)
{
	if (!map || map->kind != Y_MAP)
		return NULL;
	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->child[i]->key, key) == 0)
			return map->child[i];
	return NULL;
}

/* Room for children doubles: a full array holds a power of two, of 4 at least. */
static bool make_room(struct ydoc *doc, struct ynode *parent)
{
	const size_t n = parent->n;
	if (n && (n < 4 || (n & (n - 1))))
		return true;
	struct ynode **more = ydoc_alloc(doc, (n ? 2 * n : 4) * sizeof(struct ynode *));
	if (more && n)
		memcpy(more, parent->child, n * sizeof(struct ynode *));
	if (more)
		parent->child = more;
	return more != NULL;
}

static char *copy_text(struct ydoc *doc, const char *text)
{
	char *copy = ydoc_alloc(doc, strlen(text) + 1);
	return copy ? strcpy(copy, text) : NULL;
}

struct ynode *ydoc_add(struct ydoc *doc, struct ynode *parent, const char *key, enum ykind kind, const char *text)
{
	struct ynode *n = ydoc_alloc(doc, sizeof *n);
	if (!n || !make_room(doc, parent) || (key && !(n->key = copy_text(doc, key))) ||
		(text && !(n->text = copy_text(doc, text))))
		return NULL;
	n->kind = kind;
	n->file = parent->file;
	parent->child[parent->n++] = n;
	return n;
}

static enum status error_at(const struct ynode *n, int line, int col, struct error *e, const char *fmt, va_list ap)
{
	char text[sizeof e->text];
	vsnprintf(text, sizeof text, fmt, ap);
	return error_set(e, ST_INPUT, "%s:%d:%d: %s", n->file, line, col, text);
}

enum status ynode_error(const struct ynode *n, struct error *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum status st = error_at(n, n->line, n->col, e, fmt, ap);
	va_end(ap);
	return st;
}

enum status ynode_error_key(const struct ynode *n, struct error *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	/* An element of a list, and the root, has no key: its own place is the nearest thing. */
	enum status st = n->key ? error_at(n, n->key_line, n->key_col, e, fmt, ap)
	                        : error_at(n, n->line, n->col, e, fmt, ap);
	va_end(ap);
	return st;
}

bool ynode_is_null(const struct ynode *n)
{
	static const char *const spellings[] = {"", "~", "null", "Null", "NULL"};
	for (size_t i = 0; i < COUNT(spellings); i++)
		if (n->kind == Y_SCALAR && !n->quoted && strcmp(n->text, spellings[i]) == 0)
			return true;
	return false;
}

/* "<position>: <key>: expected <what>, got <the node>" */
static enum status refuse(const struct ynode *n, struct error *e, const char *what)
{
	const char *key = n->key ? n->key : "", *colon = n->key ? ": " : "";
	if (n->kind != Y_SCALAR)
		return ynode_error(n, e, "%s%sexpected %s, got %s", key, colon, what,
			n->kind == Y_MAP ? "a mapping" : "a list");
	if (ynode_is_null(n))
		return ynode_error(n, e, "%s%sexpected %s, got nothing", key, colon, what);
	return ynode_error(n, e, "%s%sexpected %s, got %s\"%.60s\"", key, colon, what, n->quoted ? "the text " : "",
		n->text);
}

/* Decimal digits only, without a leading zero: "010" is eight for YAML 1.1 and ten for YAML 1.2. */
static bool whole_number(const char *text, int64_t *value)
{
	const char *digits = text + (*text == '-' || *text == '+');
	size_t n = strspn(digits, "0123456789");
	if (n == 0 || digits[n] || (n > 1 && digits[0] == '0'))
		return false;
	errno = 0;
	long long v = strtoll(text, NULL, 10);
	*value = v;
	return errno == 0;
}

enum status ynode_int(const struct ynode *n, int64_t min, int64_t max, int64_t *value, struct error *e)
{
	int64_t v;
	if (n->kind == Y_SCALAR && !n->quoted && whole_number(n->text, &v) && v >= min && v <= max) {
		*value = v;
		return ST_OK;
	}
	char what[96];
	if (max == INT64_MAX && min == INT64_MIN)
		snprintf(what, sizeof what, "an integer");
	else if (max == INT64_MAX)
		snprintf(what, sizeof what, "an integer of at least %" PRId64, min);
	else
		snprintf(what, sizeof what, "an integer from %" PRId64 " to %" PRId64, min, max);
	return refuse(n, e, what);
}

static const char *bound(char buf[QUANTITY_MAX], double value, enum unit unit)
{
	if (unit != UNIT_NONE)
		return quantity_format(buf, value, unit);
	snprintf(buf, QUANTITY_MAX, "%.6g", value);
	return buf;
}

static enum status refuse_range(const struct ynode *n, struct error *e, enum unit unit, double min, double max)
{
	char low[QUANTITY_MAX], high[QUANTITY_MAX], what[2 * QUANTITY_MAX + 32];
	bound(low, min, unit);
	bound(high, max, unit);
	if (isinf(max))
		snprintf(what, sizeof what, "at least %s", low);
	else if (isinf(min))
		snprintf(what, sizeof what, "at most %s", high);
	else
		snprintf(what, sizeof what, "a value from %s to %s", low, high);
	return refuse(n, e, what);
}

typedef enum status parse_fn(const char *text, enum unit unit, double *value, struct error *e);

static enum status read_quantity(const struct ynode *n, parse_fn *parse, enum unit unit, double min, double max,
	double *value, struct error *e)
{
	/* A quantity with a unit may stand in quotes, as a text with letters often does; a plain number may not. */
	bool text_is_fine = n->kind == Y_SCALAR && !ynode_is_null(n) && !(n->quoted && unit == UNIT_NONE);
	if (!text_is_fine)
		return refuse(n, e, unit == UNIT_NONE ? "a number" : "a number with its unit");
	double v;
	struct error inner = {0};
	if (parse(n->text, unit, &v, &inner))
		return ynode_error(n, e, "%s%s%s", n->key ? n->key : "", n->key ? ": " : "", inner.text);
	if (v < min || v > max)
		return refuse_range(n, e, unit, min, max);
	*value = v;
	return ST_OK;
}

enum status ynode_quantity(const struct ynode *n, enum unit unit, double min, double max, double *value,
	struct error *e)
{
	return read_quantity(n, quantity_parse, unit, min, max, value, e);
}

enum status ynode_quantity_with_unit(const struct ynode *n, enum unit unit, double min, double max, double *value,
	struct error *e)
{
	return read_quantity(n, quantity_parse_with_unit, unit, min, max, value, e);
}

enum status ynode_bool(const struct ynode *n, bool *value, struct error *e)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {{"true", true}, {"false", false}, {"yes", true}, {"no", false}, {"on", true}, {"off", false}};
	for (size_t i = 0; i < COUNT(words); i++)
		if (n->kind == Y_SCALAR && !n->quoted && strcasecmp(n->text, words[i].text) == 0) {
			*value = words[i].value;
			return ST_OK;
		}
	return refuse(n, e, "true or false");
}

enum status ynode_string(const struct ynode *n, const char **value, struct error *e)
{
	if (n->kind != Y_SCALAR || ynode_is_null(n))
		return refuse(n, e, "a text");
	*value = n->text;
	return ST_OK;
}
