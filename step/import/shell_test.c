/* Conditions of a shell script, and where its branches are. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/import/shell.h"

/* ---- words of a condition ---- */

struct condition {
	const struct shell *shell;
	const char *at, *end;
	bool tests;   /* no command was met */
	bool double_; /* inside [[ ]] */
	int depth;
};

struct word {
	char text[SHELL_WORD];
	bool known, unset; /* unset: a variable alone, that nothing sets */
};

static void pass_blanks(struct condition *c)
{
	while (c->at < c->end && (isspace((unsigned char)*c->at) || (*c->at == '\\' && c->at[1] == '\n')))
		c->at++;
}

/* Passes a sign of the shell, if it stands here by itself. */
static bool accept(struct condition *c, const char *sign)
{
	pass_blanks(c);
	const size_t n = strlen(sign);
	if ((size_t)(c->end - c->at) < n || strncmp(c->at, sign, n) != 0)
		return false;
	if (!strchr("&|(", *sign) && c->at + n < c->end && !isspace((unsigned char)c->at[n]) && c->at[n] != ';' &&
		c->at[n] != ')' && c->at[n] != '&')
		return false;
	c->at += n;
	return true;
}

/* Copies a word without its quotes; false: there is none. */
static bool copy_word(struct condition *c, char raw[SHELL_WORD])
{
	char quote = '\0';
	int depth = 0;
	size_t n = 0;
	pass_blanks(c);
	const char *start = c->at;
	for (; c->at < c->end; c->at++) {
		const char ch = *c->at;
		if (!quote && depth == 0 &&
			(isspace((unsigned char)ch) || strchr(";&|)", ch) || (ch == '(' && !(n && raw[n - 1] == '$'))))
			break;
		if (!quote && (ch == '"' || ch == '\'')) {
			quote = ch;
			continue;
		}
		if (ch == quote) {
			quote = '\0';
			continue;
		}
		if (ch == '{' || ch == '(')
			depth += depth > 0 || (n && raw[n - 1] == '$');
		else if (depth && (ch == '}' || ch == ')'))
			depth--;
		if (n + 1 < SHELL_WORD)
			raw[n++] = ch;
	}
	raw[n] = '\0';
	return c->at > start;
}

static bool take_word(struct condition *c, struct word *w)
{
	char raw[SHELL_WORD];
	if (!copy_word(c, raw))
		return false;
	shell_expand(c->shell, raw, w->text);
	const char *name = raw + 1 + (raw[1] == '{');
	const size_t n = *raw == '$' ? shell_name_length(name) : 0;
	w->unset = n && !isdigit((unsigned char)*name) && strcmp(name + n, raw[1] == '{' ? "}" : "") == 0 &&
	           strcmp(w->text, raw) == 0;
	if (w->unset)
		*w->text = '\0';
	w->known = !strpbrk(w->text, "$`");
	return true;
}

/* ---- tests ---- */

static enum truth of(bool yes) { return yes ? TRUTH_YES : TRUTH_NO; }

static enum truth negated(enum truth t) { return t == TRUTH_UNKNOWN ? t : t == TRUTH_YES ? TRUTH_NO : TRUTH_YES; }

static enum truth both(enum truth a, enum truth b)
{
	return a == TRUTH_NO || b == TRUTH_NO ? TRUTH_NO : a == TRUTH_YES && b == TRUTH_YES ? TRUTH_YES : TRUTH_UNKNOWN;
}

static enum truth either(enum truth a, enum truth b) { return negated(both(negated(a), negated(b))); }

static enum truth compare_numbers(const char *sign, const struct word *a, const struct word *b)
{
	char *end_a, *end_b;
	const double x = strtod(a->text, &end_a), y = strtod(b->text, &end_b);
	if (!a->known || !b->known || end_a == a->text || *end_a || end_b == b->text || *end_b)
		return TRUTH_UNKNOWN;
	static const struct {
		const char *sign;
		bool less, equal, more;
	} signs[] = {{"-eq", false, true, false}, {"-ne", true, false, true}, {"-lt", true, false, false},
		{"-le", true, true, false}, {"-gt", false, false, true}, {"-ge", false, true, true}};
	for (size_t i = 0; i < COUNT(signs); i++)
		if (strcmp(signs[i].sign, sign) == 0)
			return of(x < y ? signs[i].less : x > y ? signs[i].more : signs[i].equal);
	return TRUTH_UNKNOWN;
}

/* Judges "A = B" and its like; the right side of [[ ]] is a pattern. */
static enum truth compare(const struct condition *c, const char *sign, const struct word *a, const struct word *b)
{
	const bool same = strcmp(sign, "=") == 0 || strcmp(sign, "==") == 0;
	if (!same && strcmp(sign, "!=") != 0)
		return compare_numbers(sign, a, b);
	if (!a->known || !b->known)
		return TRUTH_UNKNOWN;
	const bool equal = c->double_ ? fnmatch(b->text, a->text, 0) == 0 : strcmp(a->text, b->text) == 0;
	return of(equal == same);
}

static bool ends(struct condition *c)
{
	pass_blanks(c);
	return c->at >= c->end || *c->at == ']' || *c->at == ')' || strncmp(c->at, "&&", 2) == 0 ||
	       strncmp(c->at, "||", 2) == 0 || strncmp(c->at, "-a ", 3) == 0 || strncmp(c->at, "-o ", 3) == 0;
}

/* Reads what stands in brackets, or behind a "!". */
static enum truth deeper(struct condition *c, enum truth (*read)(struct condition *))
{
	if (c->depth == SHELL_DEPTH)
		return TRUTH_UNKNOWN;
	c->depth++;
	const enum truth t = read(c);
	c->depth--;
	return t;
}

static enum truth test_any(struct condition *c);

/* Reads one test: "-z A", "A = B", "A". */
static enum truth test_one(struct condition *c)
{
	struct word a, sign, b;
	if (accept(c, "!"))
		return negated(deeper(c, test_one));
	if (accept(c, "(")) {
		const enum truth t = deeper(c, test_any);
		return accept(c, ")") ? t : TRUTH_UNKNOWN;
	}
	if (!take_word(c, &a))
		return TRUTH_UNKNOWN;
	if (ends(c))
		return a.known ? of(*a.text) : TRUTH_UNKNOWN;
	if (!take_word(c, &sign))
		return TRUTH_UNKNOWN;
	if (ends(c)) {
		if (a.text[0] != '-' || !a.text[1] || !strchr("zn", a.text[1]))
			return TRUTH_UNKNOWN; /* of files */
		return !sign.known ? TRUTH_UNKNOWN : of((*sign.text == '\0') == (a.text[1] == 'z'));
	}
	return take_word(c, &b) ? compare(c, sign.text, &a, &b) : TRUTH_UNKNOWN;
}

static enum truth test_all(struct condition *c)
{
	enum truth t = test_one(c);
	while (accept(c, "&&") || accept(c, "-a"))
		t = both(t, test_one(c));
	return t;
}

static enum truth test_any(struct condition *c)
{
	enum truth t = test_all(c);
	while (accept(c, "||") || accept(c, "-o"))
		t = either(t, test_all(c));
	return t;
}

/* Passes a command that is no test. */
static enum truth pass_command(struct condition *c)
{
	char raw[SHELL_WORD];
	while (!ends(c) || (c->at < c->end && strchr("])", *c->at)))
		if (!copy_word(c, raw) && c->at < c->end)
			c->at++;
	c->tests = false;
	return TRUTH_UNKNOWN;
}

/* Reads "(( ... ))", whose brackets were passed. */
static enum truth arithmetic(struct condition *c)
{
	char text[SHELL_WORD], out[SHELL_WORD];
	const char *end = c->at;
	while (end + 1 < c->end && strncmp(end, "))", 2) != 0)
		end++;
	if (end + 1 >= c->end)
		return TRUTH_UNKNOWN;
	snprintf(text, sizeof text, "$((%.*s))", (int)(end - c->at), c->at);
	shell_expand(c->shell, text, out);
	c->at = end + 2;
	return *out == '$' ? TRUTH_UNKNOWN : of(strcmp(out, "0") != 0);
}

static enum truth unit(struct condition *c)
{
	static const char *const brackets[][2] = {{"[[", "]]"}, {"[", "]"}};
	if (accept(c, "!"))
		return negated(deeper(c, unit));
	if (accept(c, "(("))
		return arithmetic(c);
	for (size_t i = 0; i < COUNT(brackets); i++) {
		if (!accept(c, brackets[i][0]))
			continue;
		c->double_ = i == 0;
		const enum truth t = test_any(c);
		if (accept(c, brackets[i][1]))
			return t;
		while (c->at < c->end && !accept(c, brackets[i][1]))
			c->at++;
		return TRUTH_UNKNOWN;
	}
	struct condition before = *c;
	struct word w;
	if (take_word(c, &w) && w.known && ends(c) && (strcmp(w.text, "true") == 0 || strcmp(w.text, "false") == 0))
		return of(*w.text == 't');
	*c = before;
	return pass_command(c);
}

enum truth shell_condition(const struct shell *s, const char *text, size_t len, bool *tests)
{
	while (len && (isspace((unsigned char)text[len - 1]) || text[len - 1] == ';'))
		len--;
	struct condition c = {s, text, text + len, true, false, 0};
	enum truth t = unit(&c);
	for (bool any = true; any;) {
		any = false;
		if (accept(&c, "&&")) {
			t = both(t, unit(&c));
			any = true;
		} else if (accept(&c, "||")) {
			t = either(t, unit(&c));
			any = true;
		}
	}
	*tests = c.tests;
	pass_blanks(&c);
	return c.at == c.end ? t : TRUTH_UNKNOWN;
}

const char *shell_guard(const struct shell *s, const char *text, const char *end, bool *skipped)
{
	const char *stop = text;
	while (stop < end && (*stop != '\n' || (stop > text && stop[-1] == '\\')))
		stop++;
	struct condition c = {s, text, stop, true, false, 0};
	enum truth t = unit(&c);
	*skipped = false;
	while (c.tests) {
		const bool joined = accept(&c, "&&");
		if (!joined && !accept(&c, "||"))
			return c.at;
		pass_blanks(&c);
		if (c.at < stop && *c.at == '[') {
			const enum truth next = unit(&c);
			t = joined ? both(t, next) : either(t, next);
			continue;
		}
		*skipped = t == (joined ? TRUTH_NO : TRUTH_YES);
		return c.at;
	}
	return NULL;
}

/* ---- marks ---- */

bool shell_mark_is(const struct shell_mark *m, const char *word)
{
	return m->len == strlen(word) && strncmp(m->at, word, m->len) == 0;
}

struct lexer {
	const char *at, *end;
	char quote;
	bool fresh;                /* a command may begin here */
	char document[SHELL_NAME]; /* the word that ends a document behind this line */
};

/* Passes the rest of a line, and the document that it gives to a command. */
static void end_line(struct lexer *l)
{
	const size_t n = strlen(l->document);
	l->at++;
	while (n && l->at < l->end) {
		const char *line = l->at + strspn(l->at, " \t");
		const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
		l->at = stop ? stop + 1 : l->end;
		if (strncmp(line, l->document, n) == 0 && (line[n] == '\n' || !line[n]))
			break;
	}
	*l->document = '\0';
	l->fresh = true;
}

/* Notes "<<END" and "<<-'END'". */
static void note_document(struct lexer *l)
{
	const char *s = l->at + 2 + (l->at[2] == '-');
	s += strspn(s, " \t'\"\\");
	const size_t n = shell_name_length(s);
	if (n && n < sizeof l->document && !isdigit((unsigned char)*s))
		snprintf(l->document, sizeof l->document, "%.*s", (int)n, s);
	l->at = s + n;
}

/* Passes one sign that is no word's; false: a word begins here. */
static bool pass_sign(struct lexer *l, bool begins)
{
	const char c = *l->at;
	if (c == '\\' && l->quote != '\'') {
		l->at += l->at + 1 < l->end ? 2 : 1;
	} else if (l->quote) {
		l->quote = c == l->quote ? '\0' : l->quote;
		l->at++;
	} else if (c == '#' && begins) {
		while (l->at < l->end && *l->at != '\n')
			l->at++;
	} else if (c == '"' || c == '\'') {
		l->quote = c;
		l->fresh = false;
		l->at++;
	} else if (c == '\n') {
		end_line(l);
	} else if (strncmp(l->at, "<<", 2) == 0 && l->at[2] != '<') {
		note_document(l);
	} else if (strchr("&|)", c) || (c == ';' && l->at[1] != ';')) {
		l->fresh = true;
		l->at++;
	} else if (isspace((unsigned char)c)) {
		l->at++;
	} else {
		return false;
	}
	return true;
}

bool shell_find_marks(const char *text, const char *end, struct shell_marks *out)
{
	static const char *const words[] = {"if", "then", "elif", "else", "fi", "case", "esac", ";;", "[", "[[",
		"echo"};
	static const char *const stay[] = {"if", "then", "elif", "else", ";;", "do", "{", "!", "time"};
	struct lexer l = {text, end, '\0', true, ""};
	bool begins = true;
	while (l.at < end && *l.at) {
		const char *start = l.at;
		if (pass_sign(&l, begins)) {
			begins = isspace((unsigned char)*start) || strchr(";&|(", *start);
			continue;
		}
		size_t n = strcspn(start, " \t\r\n;&|()\"'\\");
		if (n == 0)
			n = *start == ';' ? 2 : 1;
		n = (size_t)(end - start) < n ? (size_t)(end - start) : n;
		const struct shell_mark m = {start, n};
		bool fresh = false;
		for (size_t i = 0; i < COUNT(words) && (l.fresh || *start == ';'); i++)
			if (shell_mark_is(&m, words[i]) && !vec_push(&out->marks, m))
				return false;
		for (size_t i = 0; i < COUNT(stay) && l.fresh; i++)
			fresh |= shell_mark_is(&m, stay[i]);
		l.fresh = fresh || *start == ';' || *start == '(';
		l.at += n;
		begins = *start == ';' || *start == '(';
	}
	return true;
}
