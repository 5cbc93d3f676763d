#include "step/import/flags.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define WORD_MAX 512
#define VARIABLE_MAX 64
#define WORDS_MOST 20000

struct variable {
	char name[VARIABLE_MAX], value[WORD_MAX];
};

struct reader {
	const char *at, *end, *line_start;
	int line;
	VEC(struct variable) variables;
	struct ydoc *doc;
	size_t words;
	struct ynode *flag; /* waits for its value; NULL: none does */
	struct ynode *list; /* has a word as its value, which more words may follow; NULL: none has */
	struct error *e;
};

/* ---- variables ---- */

static const char *value_of(const struct reader *r, const char *name)
{
	for (size_t i = r->variables.n; i-- > 0;)
		if (strcmp(r->variables.at[i].name, name) == 0)
			return r->variables.at[i].value;
	return NULL;
}

static size_t name_length(const char *s)
{
	size_t n = 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	return n;
}

/* Evaluates products and quotients of whole numbers and names, "A * 8 / $B"; false: it is something else. */
static bool evaluate(const struct reader *r, const char *s, size_t len, double *out)
{
	char name[VARIABLE_MAX];
	char operation = '*';
	*out = 1;
	for (const char *end = s + len; s < end;) {
		s += strspn(s, " ${}");
		const size_t n = name_length(s);
		if (s >= end || n == 0 || n >= sizeof name)
			return false;
		snprintf(name, sizeof name, "%.*s", (int)n, s);
		const char *text = isdigit((unsigned char)*name) ? name : value_of(r, name);
		char *rest = NULL;
		const double value = text ? strtod(text, &rest) : 0;
		if (!text || rest == text || *rest || (operation == '/' && trunc(value) == 0))
			return false;
		*out = operation == '*' ? *out * value : trunc(trunc(*out) / trunc(value)); /* of whole numbers */
		s += n;
		s += strspn(s, " }");
		if (s < end && *s != '*' && *s != '/')
			return false;
		operation = s < end ? *s++ : '*';
	}
	return *out < 1e15;
}

/* Appends to a word; what does not fit is left out. */
static void append(char out[WORD_MAX], const char *text, size_t len)
{
	const size_t n = strlen(out);
	snprintf(out + n, WORD_MAX - n, "%.*s", (int)len, text);
}

static void expand(const struct reader *r, const char *word, char out[WORD_MAX]);

/* Puts in what stands at `s` behind a '$'; returns where the word goes on. */
static const char *expand_one(const struct reader *r, const char *s, char out[WORD_MAX])
{
	char name[VARIABLE_MAX], text[WORD_MAX];
	const bool braces = s[1] == '{';
	const char *start = s + 1 + braces, *close = braces ? strchr(start, '}') : NULL;
	const size_t n = name_length(start);
	double number;
	if (strncmp(s, "$((", 3) == 0) {
		const char *end = strstr(s, "))");
		if (end && evaluate(r, s + 3, (size_t)(end - s) - 3, &number)) {
			snprintf(text, sizeof text, "%.0f", number);
			append(out, text, strlen(text));
			return end + 2;
		}
	}
	snprintf(name, sizeof name, "%.*s", (int)n, start);
	const char *value = n && n < sizeof name && (!braces || close) ? value_of(r, name) : NULL;
	if (value) {
		append(out, value, strlen(value));
		return braces ? close + 1 : start + n;
	}
	if (close && strncmp(start + n, ":-", 2) == 0) {
		snprintf(name, sizeof name, "%.*s", (int)(close - start - (ptrdiff_t)n - 2), start + n + 2);
		if (strchr(name, '$'))
			expand(r, name, text);
		else
			snprintf(text, sizeof text, "%s", name);
		append(out, text, strlen(text));
		return close + 1;
	}
	append(out, s, 1);
	return s + 1;
}

static void expand(const struct reader *r, const char *word, char out[WORD_MAX])
{
	*out = '\0';
	while (*word) {
		if (*word == '$') {
			word = expand_one(r, word, out);
		} else {
			append(out, word, 1);
			word++;
		}
	}
}

/* Adds a key with its value and position. */
static struct ynode *add_node(struct reader *r, const char *name, const char *value, int col)
{
	struct ynode *n = ydoc_add(r->doc, ydoc_edit(r->doc), name, Y_SCALAR, value);
	if (n) {
		n->line = n->key_line = r->line;
		n->col = n->key_col = col;
	}
	return n;
}

/* Returns whether a variable is read by a library below the framework, so that it is a key of its own. */
static bool is_setting(const char *name)
{
	return strncmp(name, "NCCL_", 5) == 0 || strcmp(name, "CUDA_LAUNCH_BLOCKING") == 0;
}

/* Keeps NAME=VALUE; true if the word is one. */
static bool assign(struct reader *r, const char *word)
{
	struct variable v;
	const size_t n = name_length(word);
	if (n == 0 || n >= sizeof v.name || word[n] != '=' || isdigit((unsigned char)*word))
		return false;
	snprintf(v.name, sizeof v.name, "%.*s", (int)n, word);
	expand(r, word + n + 1, v.value);
	if (!vec_push(&r->variables, v))
		error_nomem(r->e, "a script's variables");
	if (is_setting(v.name) && !add_node(r, v.name, v.value, (int)(r->at - r->line_start) - (int)strlen(word) + 1))
		error_nomem(r->e, "a script's variables");
	return true;
}

/* ---- flags ---- */

static bool is_flag(const char *word) { return strncmp(word, "--", 2) == 0 && isalpha((unsigned char)word[2]); }

/* Returns whether a word may follow `before` in a list, "moe_act layernorm" or "16 16 5859375": no path and no name of
 * a file. */
static bool is_list_word(const char *before, const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_", digits[] = "0123456789";
	const char *set = isdigit((unsigned char)*before) ? digits : letters;
	return *word && word[strspn(word, set)] == '\0';
}

/* Sets the value of the flag that waits. */
static enum status take_value(struct reader *r, const char *word, int col)
{
	char *copy = ydoc_alloc(r->doc, strlen(word) + 1);
	if (!copy)
		return error_nomem(r->e, "a flag");
	r->flag->text = strcpy(copy, word);
	r->flag->line = r->line;
	r->flag->col = col;
	r->list = is_list_word(word, word) ? r->flag : NULL;
	r->flag = NULL;
	return ST_OK;
}

/* Adds a word to the list of the flag before it. */
static enum status take_more(struct reader *r, const char *word)
{
	const size_t n = strlen(r->list->text) + strlen(word) + 2;
	char *text = ydoc_alloc(r->doc, n);
	if (!text)
		return error_nomem(r->e, "a flag");
	snprintf(text, n, "%s %s", r->list->text, word);
	r->list->text = text;
	return ST_OK;
}

static enum status take_flag(struct reader *r, const char *word, int col)
{
	char name[VARIABLE_MAX];
	const size_t n = strcspn(word + 2, "=");
	if (n >= sizeof name)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: a flag is longer than %zu characters",
			ydoc_root(r->doc)->file, r->line, col, sizeof name - 1);
	snprintf(name, sizeof name, "%.*s", (int)n, word + 2);
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p;
	r->flag = add_node(r, name, "true", col);
	if (!r->flag)
		return error_nomem(r->e, "a flag");
	return word[2 + n] ? take_value(r, word + 2 + n + 1, col) : ST_OK;
}

static enum status take_word(struct reader *r, const char *word, int col)
{
	char text[WORD_MAX];
	if (++r->words > WORDS_MOST)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: more than %d words", ydoc_root(r->doc)->file, r->line, col,
			WORDS_MOST);
	if (!r->flag && assign(r, word))
		return r->e->status;
	expand(r, word, text);
	if (is_flag(text)) {
		r->list = NULL;
		return take_flag(r, text, col);
	}
	if (r->flag)
		return take_value(r, text, col);
	if (r->list && is_list_word(r->list->text, text))
		return take_more(r, text);
	r->list = NULL;
	return ST_OK;
}

/* ---- words ---- */

static void next(struct reader *r)
{
	if (*r->at++ == '\n') {
		r->line++;
		r->line_start = r->at;
	}
}

/* Returns the length of what stands between this place and the quote that closes it, if it is one word whatever signs
 * it has, as 'Et*2|(tt|)*22L', or a list, which may have blanks: "([0] * 3 + [1] * 58)"; 0: it is not. */
static size_t quoted_length(const struct reader *r, const char *at, char quote)
{
	size_t n = 0;
	const bool list = at < r->end && strchr("([", *at) && *at;
	while (at + n < r->end && at[n] != quote && at[n] != '\n' && (list || !isspace((unsigned char)at[n])) &&
		!strchr("$\"'", at[n]))
		n++;
	return at + n < r->end && at[n] == quote && n < WORD_MAX && strncmp(at, "--", 2) != 0 ? n : 0;
}

/* Returns the length of a list of numbers that begins here, "([0]*3+[1]*58)" or "[1,0,1]"; 0: there is none. */
static size_t list_length(const struct reader *r)
{
	size_t n = 0;
	int depth = 0;
	for (; r->at + n < r->end && r->at[n] && strchr("([0123456789]),*+-", r->at[n]); n++) {
		depth += (r->at[n] == '(' || r->at[n] == '[') - (r->at[n] == ')' || r->at[n] == ']');
		if (depth < 0)
			break;
	}
	const bool numbers = n > 2 && (r->at[1] == '[' || isdigit((unsigned char)r->at[1]));
	return strchr("([", *r->at) && numbers && depth <= 0 && n < WORD_MAX ? n : 0;
}

/* Passes what separates words. Quotes do, too: "--fp8-format hybrid" in a list of flags is two words. The end of a line
 * ends a flag, unless a backslash stands before it. */
static void skip(struct reader *r)
{
	while (r->at < r->end) {
		const char c = *r->at;
		if (c == '#' && (r->at == r->line_start || strchr(" \t(", r->at[-1]))) {
			while (r->at < r->end && *r->at != '\n')
				next(r);
			continue;
		}
		if (!isspace((unsigned char)c) && !strchr("\"'\\()[];|&,", c))
			return;
		if (r->flag && list_length(r) > 0)
			return;
		if (strchr("\n;|&)", c) && !(c == '\n' && r->at > r->line_start && r->at[-1] == '\\'))
			r->flag = r->list = NULL;
		const bool value = r->flag && strchr("\"'", c) && quoted_length(r, r->at + 1, c) > 0;
		next(r);
		if (value)
			return;
	}
}

static size_t take_quoted(struct reader *r, char word[WORD_MAX], size_t n, size_t length)
{
	for (size_t i = 0; i < length; i++, next(r))
		if (n + 1 < WORD_MAX)
			word[n++] = *r->at;
	return n;
}

/* Reads a word of at most WORD_MAX - 1 bytes; brackets behind a '$' belong to it. */
static void read_word(struct reader *r, char word[WORD_MAX])
{
	size_t n = 0;
	int depth = 0;
	const bool value = r->flag && r->at > r->line_start && strchr("\"'", r->at[-1]);
	const size_t quoted = value ? quoted_length(r, r->at, r->at[-1]) : r->flag ? list_length(r) : 0;
	if (quoted > 0) {
		word[take_quoted(r, word, 0, quoted)] = '\0';
		return;
	}
	for (; r->at < r->end && *r->at != '\n'; next(r)) {
		const char c = *r->at;
		if (strchr("\"'", c) && n && word[n - 1] == '=' && quoted_length(r, r->at + 1, c) > 0) {
			next(r);
			n = take_quoted(r, word, n, quoted_length(r, r->at, c));
			break;
		}
		const bool opens = (c == '{' || c == '(') && (depth || (n && word[n - 1] == '$'));
		if (!depth && !opens && (isspace((unsigned char)c) || strchr("\"';|&()", c)) &&
			!(n && word[n - 1] == '=' && strchr("\"'", c)))
			break;
		depth += opens;
		if (depth && (c == '}' || c == ')'))
			depth--;
		if (strchr("\"'\\", c))
			continue;
		if (n + 1 < WORD_MAX)
			word[n++] = c;
	}
	word[n] = '\0';
}

enum status flags_parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e)
{
	struct reader r = {.at = text, .end = text + len, .line_start = text, .line = 1, .e = e};
	char word[WORD_MAX];
	enum status st = ydoc_create(name, &r.doc, e);
	if (st)
		return st;
	for (skip(&r); r.at < r.end && !st; skip(&r)) {
		const int col = (int)(r.at - r.line_start) + 1;
		const char *start = r.at;
		read_word(&r, word);
		if (r.at == start)
			next(&r);
		st = take_word(&r, word, col);
	}
	vec_free(&r.variables);
	if (st)
		ydoc_destroy(r.doc);
	else
		*out = r.doc;
	return st;
}

/* Returns whether the flag at `i` is no key of YAML, "--name:". The text need not end in a zero. */
static bool is_flag_of(const char *text, size_t len, size_t i)
{
	if (i + 2 >= len || !is_flag(text + i))
		return false;
	for (i += 2; i < len && text[i] && !strchr(": =\t\r\n", text[i]);)
		i++;
	return i == len || text[i] != ':';
}

bool flags_found(const char *text, size_t len)
{
	bool word = true, comment = false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '#' && word)
			comment = true;
		if (text[i] == '\n')
			comment = false;
		if (word && !comment && is_flag_of(text, len, i))
			return true;
		word = isspace((unsigned char)text[i]) || strchr("\"'(", text[i]);
	}
	return false;
}
