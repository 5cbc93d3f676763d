#include "base/toml.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

#define DEPTH_MAX 32
#define KEYS_MAX 20000
#define TEXT_MAX 4096 /* bytes of a key or value */

struct reader {
	const char *at, *end, *line_start;
	int line;
	const char *name;
	struct ydoc *doc;
	struct ynode *table; /* to which keys are added */
	size_t keys;
	VEC(const struct ynode *) closed; /* tables that a header or an inline table has made */
	struct error *e;
};

/* ---- characters ---- */

static int column(const struct reader *r) { return (int)(r->at - r->line_start) + 1; }

static enum status complain(const struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static enum status complain(const struct reader *r, const char *fmt, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return error_set(r->e, ST_INPUT, "%s:%d:%d: %s", r->name, r->line, column(r), what);
}

static int peek(const struct reader *r) { return r->at < r->end ? (unsigned char)*r->at : -1; }

static bool begins(const struct reader *r, const char *word)
{
	const size_t n = strlen(word);
	return (size_t)(r->end - r->at) >= n && memcmp(r->at, word, n) == 0;
}

static void next(struct reader *r)
{
	if (*r->at++ == '\n') {
		r->line++;
		r->line_start = r->at;
	}
}

static void skip_blanks(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t')
		next(r);
}

/* Passes blanks, comments and line ends. */
static void skip_lines(struct reader *r)
{
	for (;;) {
		skip_blanks(r);
		if (peek(r) == '#')
			while (peek(r) != -1 && peek(r) != '\n')
				next(r);
		if (peek(r) != '\n' && !begins(r, "\r\n"))
			return;
		next(r);
	}
}

static enum status end_line(struct reader *r)
{
	const int line = r->line;
	skip_lines(r);
	return r->line > line || peek(r) == -1 ? ST_OK : complain(r, "expected the end of the line");
}

/* ---- strings ---- */

static enum status put(struct reader *r, char text[TEXT_MAX], size_t *n, char c)
{
	if (*n + 1 >= TEXT_MAX)
		return complain(r, "a text is longer than %d bytes", TEXT_MAX - 1);
	text[(*n)++] = c;
	return ST_OK;
}

static enum status put_character(struct reader *r, char text[TEXT_MAX], size_t *n, int digits)
{
	unsigned long code = 0;
	enum status st = ST_OK;
	for (int i = 0; i < digits; i++, next(r)) {
		if (!isxdigit(peek(r)))
			return complain(r, "expected %d hexadecimal digits", digits);
		code = code * 16 + (unsigned long)(isdigit(peek(r)) ? peek(r) - '0' : tolower(peek(r)) - 'a' + 10);
	}
	if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
		return complain(r, "not a character");
	const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	static const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
	st = put(r, text, n, (char)(lead[more] | code >> 6 * more));
	for (int i = more - 1; i >= 0 && !st; i--)
		st = put(r, text, n, (char)(0x80 | (code >> 6 * i & 0x3F)));
	return st;
}

static enum status read_escape(struct reader *r, char text[TEXT_MAX], size_t *n)
{
	static const char letters[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
	next(r);
	const int c = peek(r);
	const char *known = c > 0 ? strchr(letters, c) : NULL;
	if (!known && c != 'u' && c != 'U')
		return complain(r, "unknown escape in a text (known: b t n f r \" \\ u U)");
	next(r);
	return known ? put(r, text, n, meant[known - letters]) : put_character(r, text, n, c == 'u' ? 4 : 8);
}

/* Passes the line end behind a backslash, and the blanks of the next lines. */
static bool skip_folded(struct reader *r)
{
	const char *p = r->at + 1;
	while (p < r->end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	if (p >= r->end || *p != '\n')
		return false;
	next(r);
	while (peek(r) != -1 && isspace(peek(r)))
		next(r);
	return true;
}

static enum status read_string(struct reader *r, char text[TEXT_MAX])
{
	const char quote = (char)peek(r), three[] = {quote, quote, quote, '\0'};
	const bool lines = begins(r, three);
	size_t n = 0;
	enum status st = ST_OK;
	for (int i = 0; i < (lines ? 3 : 1); i++)
		next(r);
	if (lines && (begins(r, "\n") || begins(r, "\r\n")))
		skip_lines(r);
	while (!st && !(lines ? begins(r, three) : peek(r) == quote)) {
		const int c = peek(r);
		if (c == -1 || (c == '\n' && !lines))
			return complain(r, "a text without its closing %s", lines ? three : three + 2);
		if ((c < 0x20 && !strchr("\t\r\n", c)) || c == 0x7F)
			return complain(r, "a control character is not allowed");
		if (c == '\\' && quote == '"') {
			if (!lines || !skip_folded(r))
				st = read_escape(r, text, &n);
			continue;
		}
		st = put(r, text, &n, (char)c);
		next(r);
	}
	for (int i = 0; i < (lines ? 3 : 1) && !st; i++)
		next(r);
	text[n] = '\0';
	return st;
}

/* ---- keys ---- */

static bool is_bare(int c) { return c > 0 && (isalnum(c) || c == '_' || c == '-'); }

static enum status read_key(struct reader *r, char text[TEXT_MAX])
{
	size_t n = 0;
	enum status st = ST_OK;
	if (peek(r) == '"' || peek(r) == '\'')
		return read_string(r, text);
	for (; is_bare(peek(r)) && !st; next(r))
		st = put(r, text, &n, *r->at);
	text[n] = '\0';
	return st || n ? st : complain(r, "expected a key");
}

static struct ynode *find(const struct ynode *table, const char *key)
{
	for (size_t i = 0; i < table->n; i++)
		if (strcmp(table->child[i]->key, key) == 0)
			return table->child[i];
	return NULL;
}

static bool is_closed(const struct reader *r, const struct ynode *n)
{
	for (size_t i = 0; i < r->closed.n; i++)
		if (r->closed.at[i] == n)
			return true;
	return false;
}

static enum status close_table(struct reader *r, const struct ynode *n)
{
	return vec_push(&r->closed, n) ? ST_OK : error_nomem(r->e, "a TOML table");
}

static enum status add(struct reader *r, struct ynode *parent, const char *key, enum ykind kind, const char *text,
	int col, struct ynode **out)
{
	if (++r->keys > KEYS_MAX)
		return complain(r, "more than %d keys and values", KEYS_MAX);
	*out = ydoc_add(r->doc, parent, key, kind, text);
	if (!*out)
		return error_nomem(r->e, "a TOML value");
	(*out)->line = (*out)->key_line = r->line;
	(*out)->col = (*out)->key_col = col;
	return ST_OK;
}

/* Reads a.b.c: *table becomes the mapping of a.b below it, made where it is missing, and `last` c. `header`: lists of
 * tables are entered at their last table. */
static enum status read_path(struct reader *r, struct ynode **table, char last[TEXT_MAX], int *col, bool header)
{
	for (int depth = 0;; depth++) {
		skip_blanks(r);
		*col = column(r);
		enum status st = depth < DEPTH_MAX ? read_key(r, last)
		                                   : complain(r, "nested deeper than %d levels", DEPTH_MAX);
		if (st)
			return st;
		skip_blanks(r);
		if (peek(r) != '.')
			return ST_OK;
		next(r);
		struct ynode *inner = find(*table, last);
		if (!inner && (st = add(r, *table, last, Y_MAP, NULL, *col, &inner)))
			return st;
		if (header && inner->kind == Y_SEQ && inner->n)
			inner = inner->child[inner->n - 1];
		if (inner->kind != Y_MAP || (!header && is_closed(r, inner)))
			return complain(r, "%s: not a table that can take further keys", last);
		*table = inner;
	}
}

/* ---- values ---- */

static enum status read_pair(struct reader *r, struct ynode *table, int depth);
static enum status read_value(struct reader *r, struct ynode *parent, const char *key, int key_col, int depth);

static enum status read_array(struct reader *r, struct ynode *list, int depth)
{
	next(r);
	for (skip_lines(r); peek(r) != ']'; skip_lines(r)) {
		enum status st = read_value(r, list, NULL, column(r), depth);
		skip_lines(r);
		if (!st && peek(r) != ',' && peek(r) != ']')
			st = complain(r, "expected , or ] in a list");
		if (st)
			return st;
		if (peek(r) == ',')
			next(r);
	}
	next(r);
	return ST_OK;
}

static enum status read_inline(struct reader *r, struct ynode *table, int depth)
{
	next(r);
	skip_blanks(r);
	while (peek(r) != '}') {
		enum status st = read_pair(r, table, depth);
		skip_blanks(r);
		if (!st && peek(r) != ',' && peek(r) != '}')
			st = complain(r, "expected , or } in an inline table");
		if (st)
			return st;
		if (peek(r) == ',')
			next(r);
		skip_blanks(r);
	}
	next(r);
	return close_table(r, table);
}

/* Reads a number, a truth value or a date. Numbers lose their underscores. */
static enum status read_bare(struct reader *r, char text[TEXT_MAX])
{
	size_t n = 0;
	enum status st = ST_OK;
	const char *start = r->at;
	for (; peek(r) > 0 && (isalnum(peek(r)) || strchr("_+-.:", peek(r))) && !st; next(r))
		if (peek(r) != '_')
			st = put(r, text, &n, *r->at);
	text[n] = '\0';
	const bool word = strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strstr(text, "inf") ||
	                  strstr(text, "nan"),
		   number = n && (isdigit((unsigned char)text[0]) || (strchr("+-", text[0]) && text[1]));
	if (st || word || number)
		return st;
	r->at = start;
	return complain(r, "expected a value: a text in quotes, a number, true, false, a list or a table");
}

static enum status read_value(struct reader *r, struct ynode *parent, const char *key, int key_col, int depth)
{
	char text[TEXT_MAX];
	struct ynode *n = NULL;
	const int c = peek(r), col = column(r), line = r->line;
	const bool quoted = c == '"' || c == '\'';
	const enum ykind kind = c == '[' ? Y_SEQ : c == '{' ? Y_MAP : Y_SCALAR;
	enum status st = depth < DEPTH_MAX ? ST_OK : complain(r, "nested deeper than %d levels", DEPTH_MAX);
	if (!st && kind == Y_SCALAR)
		st = quoted ? read_string(r, text) : read_bare(r, text);
	if (st || (st = add(r, parent, key, kind, kind == Y_SCALAR ? text : NULL, key_col, &n)))
		return st;
	n->line = n->key_line = line;
	n->col = col;
	n->quoted = quoted;
	return kind == Y_SEQ ? read_array(r, n, depth + 1) : kind == Y_MAP ? read_inline(r, n, depth + 1) : ST_OK;
}

static enum status read_pair(struct reader *r, struct ynode *table, int depth)
{
	char key[TEXT_MAX];
	int col;
	const char *start = r->at;
	enum status st = read_path(r, &table, key, &col, false);
	if (!st && find(table, key)) {
		r->at = start;
		return complain(r, "%.80s: duplicate key", key);
	}
	if (!st && peek(r) != '=')
		return complain(r, "expected = behind the key %.80s", key);
	if (st)
		return st;
	next(r);
	skip_blanks(r);
	return read_value(r, table, key, col, depth);
}

/* ---- tables ---- */

/* Reads [a.b] or [[a.b]]. */
static enum status read_header(struct reader *r)
{
	char key[TEXT_MAX];
	const bool list = begins(r, "[[");
	struct ynode *table = ydoc_edit(r->doc);
	int col;
	next(r);
	if (list)
		next(r);
	enum status st = read_path(r, &table, key, &col, true);
	if (!st && !begins(r, list ? "]]" : "]"))
		st = complain(r, "expected %s behind the table's name", list ? "]]" : "]");
	struct ynode *found = st ? NULL : find(table, key);
	if (!st && found && (list ? found->kind != Y_SEQ : found->kind != Y_MAP || is_closed(r, found)))
		st = complain(r, "%.80s: duplicate key", key);
	if (!st && !found)
		st = add(r, table, key, list ? Y_SEQ : Y_MAP, NULL, col, &found);
	if (!st && list)
		st = add(r, found, NULL, Y_MAP, NULL, col, &found);
	if (!st && !(st = close_table(r, found)))
		r->table = found;
	for (int i = 0; i < (list ? 2 : 1) && !st; i++)
		next(r);
	return st;
}

enum status toml_parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e)
{
	struct reader r = {.at = text, .end = text + len, .line_start = text, .line = 1, .name = name, .e = e};
	enum status st = ydoc_create(name, &r.doc, e);
	if (st)
		return st;
	r.table = ydoc_edit(r.doc);
	if (begins(&r, "\xEF\xBB\xBF"))
		r.at = r.line_start = text + 3;
	if (memchr(text, '\0', len))
		st = error_set(e, ST_INPUT, "%s:1:1: a text must not hold a zero byte", name);
	for (skip_lines(&r); peek(&r) != -1 && !st;) {
		st = peek(&r) == '[' ? read_header(&r) : read_pair(&r, r.table, 1);
		if (!st)
			st = end_line(&r);
	}
	vec_free(&r.closed);
	if (st)
		ydoc_destroy(r.doc);
	else
		*out = r.doc;
	return st;
}
