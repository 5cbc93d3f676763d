#include "step/import/python_lines.h"

#include <ctype.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "step/import/python.h"

#define WORDS_MOST 100000 /* its message names it */

struct scanner {
	const char *at, *end, *line_start;
	int line, depth;
	int open_line, open_col; /* of the outermost bracket that is open */
	const char *name;
	struct py_lines *out;
	struct error *e;
};

static enum status complain(const struct scanner *s, const char *what)
{
	return error_set(s->e, ST_INPUT, "%s:%d:%d: %s", s->name, s->line, (int)(s->at - s->line_start) + 1, what);
}

static void step(struct scanner *s)
{
	if (*s->at++ == '\n') {
		s->line++;
		s->line_start = s->at;
	}
}

static bool is_name_sign(char c) { return isalnum((unsigned char)c) || c == '_' || (c & 0x80); }

static enum status add_word(struct scanner *s, struct py_word w)
{
	if (s->out->words.n == WORDS_MOST)
		return complain(s, "more than 100,000 words: too long for a config");
	return vec_push(&s->out->words, w) ? ST_OK : error_nomem(s->e, "a Python text");
}

/* Reads a string from its quotes on; `w` has its place. */
static enum status read_string(struct scanner *s, struct py_word w)
{
	const char quote = *s->at;
	const bool triple = s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote;
	const size_t width = triple ? 3 : 1;
	s->at += width;
	w.at = s->at;
	for (; s->at < s->end; step(s)) {
		if (*s->at == '\\' && s->at + 1 < s->end) {
			step(s);
			continue;
		}
		if (*s->at == '\n' && !triple)
			break;
		if (*s->at == quote && (!triple || (s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote))) {
			w.kind = PY_STRING;
			w.len = (size_t)(s->at - w.at);
			s->at += width;
			return add_word(s, w);
		}
	}
	return error_set(s->e, ST_INPUT, "%s:%d:%d: a string without its closing quote", s->name, w.line, w.col);
}

static enum status read_name(struct scanner *s, struct py_word w)
{
	while (s->at < s->end && is_name_sign(*s->at))
		s->at++;
	w.len = (size_t)(s->at - w.at);
	if (s->at < s->end && strchr("\"'", *s->at) && w.len <= 2 && strspn(w.at, "rRbBuUfF") >= w.len) {
		w.formatted = memchr(w.at, 'f', w.len) || memchr(w.at, 'F', w.len);
		return read_string(s, w);
	}
	w.kind = PY_NAME;
	return add_word(s, w);
}

static enum status read_number(struct scanner *s, struct py_word w)
{
	const bool hex = w.at + 1 < s->end && w.at[0] == '0' && tolower((unsigned char)w.at[1]) == 'x';
	while (s->at < s->end &&
		(is_name_sign(*s->at) || *s->at == '.' ||
			(!hex && (*s->at == '+' || *s->at == '-') && tolower((unsigned char)s->at[-1]) == 'e')))
		s->at++;
	w.kind = PY_NUMBER;
	w.len = (size_t)(s->at - w.at);
	return add_word(s, w);
}

static enum status read_sign(struct scanner *s, struct py_word w)
{
	static const char *const longer[] = {"**=", "//=", "<<=", ">>=", "==", "!=", "<=", ">=", "**", "//", "->",
		":=", "+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^="};
	w.kind = PY_SIGN;
	w.len = 1;
	for (size_t i = 0; i < COUNT(longer) && w.len == 1; i++)
		if ((size_t)(s->end - s->at) >= strlen(longer[i]) && strncmp(s->at, longer[i], strlen(longer[i])) == 0)
			w.len = strlen(longer[i]);
	if (strchr("([{", *s->at) && s->depth++ == 0) {
		s->open_line = w.line;
		s->open_col = w.col;
	}
	if (strchr(")]}", *s->at) && s->depth-- == 0)
		return complain(s, "a closing bracket without an opening one");
	s->at += w.len;
	return add_word(s, w);
}

/* Passes blanks, comments, joined lines and, in brackets, ends of lines. */
static void skip(struct scanner *s)
{
	while (s->at < s->end) {
		if (*s->at == '#')
			while (s->at < s->end && *s->at != '\n')
				s->at++;
		else if (*s->at == '\\' && s->at + 1 < s->end && s->at[1] == '\n')
			step(s), step(s);
		else if (isspace((unsigned char)*s->at) && (*s->at != '\n' || s->depth > 0))
			step(s);
		else
			return;
	}
}

static enum status read_word(struct scanner *s)
{
	const struct py_word w = {.at = s->at, .line = s->line, .col = (int)(s->at - s->line_start) + 1};
	const char c = *s->at;
	if (isdigit((unsigned char)c) || (c == '.' && s->at + 1 < s->end && isdigit((unsigned char)s->at[1])))
		return read_number(s, w);
	if (is_name_sign(c))
		return read_name(s, w);
	return strchr("\"'", c) && c ? read_string(s, w) : read_sign(s, w);
}

static bool is_sign(const struct py_word *w, char c) { return w->kind == PY_SIGN && w->len == 1 && *w->at == c; }

/* Returns whether a line that begins with this word has a block. */
static bool has_block(const struct py_word *w)
{
	static const char *const names[] = {"if", "elif", "else", "for", "while", "with", "try", "except", "finally",
		"def", "class"};
	for (size_t i = 0; i < COUNT(names); i++)
		if (w->kind == PY_NAME && w->len == strlen(names[i]) && strncmp(w->at, names[i], w->len) == 0)
			return true;
	return false;
}

/* Ends a line at ";", and behind the ":" before a block: what follows on the line of the text is one level deeper. */
static enum status split(struct scanner *s, struct py_line *l)
{
	const struct py_word *words = s->out->words.at, *last = words + s->out->words.n - 1;
	const bool apart = is_sign(last, ';'), block = is_sign(last, ':') && has_block(words + l->first);
	if (s->depth > 0 || (!apart && !block))
		return ST_OK;
	l->n = s->out->words.n - l->first - apart;
	if (l->n && !vec_push(&s->out->lines, *l))
		return error_nomem(s->e, "a Python text");
	l->first = s->out->words.n;
	l->indent += block;
	return ST_OK;
}

enum status py_lines_read(const char *text, size_t len, const char *name, struct py_lines *out, struct error *e)
{
	struct scanner s =
		{.at = text, .end = text + len, .line_start = text, .line = 1, .name = name, .out = out, .e = e};
	enum status st = utf8_check(text, len, name, e);
	*out = (struct py_lines){0};
	for (skip(&s); !st && s.at < s.end; skip(&s)) {
		if (*s.at == '\n') {
			step(&s);
			continue;
		}
		struct py_line l = {.first = out->words.n, .indent = (int)(s.at - s.line_start)};
		for (; s.at < s.end && *s.at != '\n' && !st; skip(&s)) {
			st = read_word(&s);
			if (!st)
				st = split(&s, &l);
		}
		l.n = out->words.n - l.first;
		if (!st && l.n && !vec_push(&out->lines, l))
			st = error_nomem(e, "a Python text");
	}
	if (!st && s.depth > 0)
		st = error_set(e, ST_INPUT, "%s:%d:%d: a bracket without its closing one", name, s.open_line,
			s.open_col);
	if (st)
		py_lines_free(out);
	return st;
}

void py_lines_free(struct py_lines *l)
{
	vec_free(&l->words);
	vec_free(&l->lines);
}

/* Returns whether a line begins as `name = dict(`, or as `name = {` with nothing behind it, which TOML has not. */
static bool begins_table(const char *p, const char *end)
{
	const char *start = p;
	while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
		p++;
	const bool name = p > start;
	while (p < end && *p == ' ')
		p++;
	if (!name || p == end || *p++ != '=')
		return false;
	while (p < end && *p == ' ')
		p++;
	if (end - p > 5 && strncmp(p, "dict(", 5) == 0)
		return true;
	return end - p > 1 && p[0] == '{' && p[1] == '\n';
}

bool python_found(const char *text, size_t len)
{
	for (size_t i = 0; i + 4 < len; i++)
		if ((i == 0 || text[i - 1] == '\n') &&
			(strncmp(text + i, "def ", 4) == 0 || begins_table(text + i, text + len)))
			return true;
	return false;
}
