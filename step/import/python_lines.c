#include "step/import/python_lines.h"

#include <ctype.h>
#include <string.h>

#define WORDS_MOST 400000

struct scanner {
	const char *at, *end, *line_start;
	int line, depth;
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
		return complain(s, "more words than a config has");
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
	return error_set(s->e, ST_INPUT, "%s:%d:%d: a string that stays open", s->name, w.line, w.col);
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
	while (s->at < s->end && (is_name_sign(*s->at) || *s->at == '.' ||
					 (strchr("+-", *s->at) && strchr("eE", s->at[-1]) && w.at[0] != '0')))
		s->at++;
	w.kind = PY_NUMBER;
	w.len = (size_t)(s->at - w.at);
	return add_word(s, w);
}

static enum status read_sign(struct scanner *s, struct py_word w)
{
	static const char *const pairs[] = {"==", "!=", "<=", ">=", "**", "//", "->",
		":=", "+=", "-=", "*=", "/=", "|="};
	w.kind = PY_SIGN;
	w.len = 1;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (s->end - s->at >= 2 && strncmp(s->at, pairs[i], 2) == 0)
			w.len = 2;
	if (strchr("([{", *s->at))
		s->depth++;
	if (strchr(")]}", *s->at) && s->depth-- == 0)
		return complain(s, "a bracket that nothing opens");
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

enum status py_lines_read(const char *text, size_t len, const char *name, struct py_lines *out, struct error *e)
{
	struct scanner s = {text, text + len, text, 1, 0, name, out, e};
	enum status st = ST_OK;
	*out = (struct py_lines){0};
	for (skip(&s); s.at < s.end && !st; skip(&s)) {
		if (*s.at == '\n') {
			step(&s);
			continue;
		}
		struct py_line l = {.first = out->words.n, .indent = (int)(s.at - s.line_start)};
		for (; s.at < s.end && *s.at != '\n' && !st; skip(&s))
			st = read_word(&s);
		l.n = out->words.n - l.first;
		if (!st && !vec_push(&out->lines, l))
			st = error_nomem(e, "a Python text");
	}
	if (!st && s.depth > 0)
		st = complain(&s, "a bracket that stays open");
	if (st)
		py_lines_free(out);
	return st;
}

void py_lines_free(struct py_lines *l)
{
	vec_free(&l->words);
	vec_free(&l->lines);
}
