#include "step/import/shell.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- variables ---- */

bool shell_set(struct shell *s, const char *name, const char *value)
{
	struct shell_variable v;
	snprintf(v.name, sizeof v.name, "%s", name);
	snprintf(v.value, sizeof v.value, "%s", value);
	return vec_push(&s->variables, v);
}

void shell_free(struct shell *s) { vec_free(&s->variables); }

static const char *value_of(const struct shell *s, const char *name)
{
	for (size_t i = s->variables.n; i-- > 0;)
		if (strcmp(s->variables.at[i].name, name) == 0)
			return s->variables.at[i].value;
	return s->has_arguments && isdigit((unsigned char)*name) ? "" : NULL;
}

size_t shell_name_length(const char *text)
{
	size_t n = 0;
	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return n;
}

bool shell_arguments(struct shell *s, const char *words)
{
	char word[SHELL_WORD], name[SHELL_NAME];
	s->has_arguments = true;
	for (int place = 1; *words;) {
		words += strspn(words, " \t");
		const char quote = strchr("\"'", *words) ? *words : '\0';
		words += quote != '\0';
		const size_t n = quote ? strcspn(words, (const char[]){quote, '\0'}) : strcspn(words, " \t");
		snprintf(word, sizeof word, "%.*s", (int)n, words);
		words += n + (quote && words[n]);
		const size_t named = shell_name_length(word);
		const bool variable = named && named < sizeof name && word[named] == '=' &&
		                      !isdigit((unsigned char)*word);
		if (variable)
			snprintf(name, sizeof name, "%.*s", (int)named, word);
		else if (n || quote)
			snprintf(name, sizeof name, "%d", place++);
		if ((variable || n || quote) && !shell_set(s, name, word + (variable ? named + 1 : 0)))
			return false;
	}
	return true;
}

/* ---- arithmetic ---- */

struct arithmetic {
	const struct shell *shell;
	const char *at, *end;
	int depth;
	bool ok;
};

static double choice(struct arithmetic *a);

static void blanks(struct arithmetic *a)
{
	while (a->at < a->end && isspace((unsigned char)*a->at))
		a->at++;
}

static bool takes(struct arithmetic *a, const char *sign)
{
	blanks(a);
	const size_t n = strlen(sign);
	if ((size_t)(a->end - a->at) < n || strncmp(a->at, sign, n) != 0)
		return false;
	a->at += n;
	return true;
}

static double fail(struct arithmetic *a)
{
	a->ok = false;
	a->at = a->end;
	return 0;
}

/* Reads a number, a variable's, or what brackets hold. */
static double operand(struct arithmetic *a)
{
	char name[SHELL_NAME];
	double value = 0;
	if (++a->depth > SHELL_DEPTH)
		return fail(a);
	if (takes(a, "(")) {
		value = choice(a);
		if (!takes(a, ")"))
			return fail(a);
	} else if (takes(a, "!")) {
		value = operand(a) == 0;
	} else if (takes(a, "-")) {
		value = -operand(a);
	} else {
		const size_t n = a->at < a->end ? shell_name_length(a->at) : 0;
		if (n == 0 || n >= sizeof name || a->at + n > a->end)
			return fail(a);
		snprintf(name, sizeof name, "%.*s", (int)n, a->at);
		a->at += n;
		const char *text = isdigit((unsigned char)*name) ? name : value_of(a->shell, name);
		char *rest = NULL;
		value = text ? strtod(text, &rest) : 0;
		if (!text || rest == text || *rest)
			return fail(a);
	}
	a->depth--;
	return value;
}

static const struct {
	const char *sign;
	int binds;
} operators[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<=", 4}, {">=", 4}, {"<", 4}, {">", 4}, {"+", 5},
	{"-", 5}, {"*", 6}, {"/", 6}, {"%", 6}};
#define OPERATORS (sizeof operators / sizeof *operators)

/* Applies an operator of the shell's whole numbers. */
static double apply(struct arithmetic *a, const char *sign, double x, double y)
{
	switch (sign[0]) {
	case '|': return x != 0 || y != 0;
	case '&': return x != 0 && y != 0;
	case '=': return x == y;
	case '!': return x != y;
	case '<': return sign[1] ? x <= y : x < y;
	case '>': return sign[1] ? x >= y : x > y;
	case '+': return x + y;
	case '-': return x - y;
	case '*': return x * y;
	}
	if (trunc(y) == 0)
		return fail(a);
	return *sign == '/' ? trunc(trunc(x) / trunc(y)) : fmod(trunc(x), trunc(y));
}

/* Reads operators that bind at least so tightly. */
static double binary(struct arithmetic *a, int least)
{
	double x = operand(a);
	for (size_t i = 0; i < OPERATORS && a->ok;) {
		if (operators[i].binds >= least && takes(a, operators[i].sign)) {
			x = apply(a, operators[i].sign, x, binary(a, operators[i].binds + 1));
			i = 0;
		} else {
			i++;
		}
	}
	return x;
}

/* Reads "a ? b : c", or what has no question. */
static double choice(struct arithmetic *a)
{
	const double asked = binary(a, 1);
	if (!a->ok || !takes(a, "?"))
		return asked;
	const double yes = choice(a);
	if (!takes(a, ":"))
		return fail(a);
	const double no = choice(a);
	return asked != 0 ? yes : no;
}

/* Evaluates "(A + 8) / $B" of whole numbers and names; false: it is something else, or not known. */
static bool evaluate(const struct shell *s, const char *text, size_t len, double *out)
{
	char raw[SHELL_WORD], expanded[SHELL_WORD];
	if (len >= sizeof raw)
		return false;
	snprintf(raw, sizeof raw, "%.*s", (int)len, text);
	shell_expand(s, raw, expanded);
	struct arithmetic a = {s, expanded, expanded + strlen(expanded), 0, true};
	*out = choice(&a);
	blanks(&a);
	return a.ok && a.at == a.end && fabs(*out) < 1e15;
}

/* ---- words ---- */

/* Appends to a word; what does not fit is left out. */
static void append(char out[SHELL_WORD], const char *text, size_t len)
{
	const size_t n = strlen(out);
	snprintf(out + n, SHELL_WORD - n, "%.*s", (int)len, text);
}

/* Returns the bracket that closes the one before `s`; NULL: none does. */
static const char *closing(const char *s, char open, char close)
{
	for (int depth = 1; *s; s++) {
		depth += (*s == open) - (*s == close);
		if (depth == 0)
			return s;
	}
	return NULL;
}

/* Puts in $(( ... )) at `at`, as it is written where it is not known: what is in it is read once. Returns where the
 * word goes on; NULL: nothing closes it. */
static const char *expand_arithmetic(const struct shell *s, const char *at, char out[SHELL_WORD])
{
	char text[32];
	double number;
	const char *end = closing(at + 2, '(', ')'); /* of the inner bracket's outer one */
	if (!end || end == at + 3 || end[-1] != ')')
		return NULL;
	if (evaluate(s, at + 3, (size_t)(end - at) - 4, &number))
		append(out, text, (size_t)snprintf(text, sizeof text, "%.0f", number));
	else
		append(out, at, (size_t)(end + 1 - at));
	return end + 1;
}

/* Puts in $(expr A / B) at `at`, whose signs stand apart and may be escaped. Returns where the word goes on; NULL: it
 * is something else, or not known. */
static const char *expand_expr(const struct shell *s, const char *at, char out[SHELL_WORD])
{
	static const char begins[] = "$(expr ";
	char text[SHELL_WORD], number_text[32];
	double number;
	size_t n = 0;
	const char *end = strncmp(at, begins, strlen(begins)) == 0 ? closing(at + 2, '(', ')') : NULL;
	for (const char *p = at + strlen(begins); end && p < end && n + 1 < sizeof text; p++)
		if (!strchr("\\'\"", *p))
			text[n++] = *p;
	if (!end || !evaluate(s, text, n, &number))
		return NULL;
	append(out, number_text, (size_t)snprintf(number_text, sizeof number_text, "%.0f", number));
	return end + 1;
}

/* Puts in what stands at `at` behind a '$'; returns where the word goes on. */
static const char *expand_one(const struct shell *s, const char *at, char out[SHELL_WORD])
{
	char name[SHELL_NAME], text[SHELL_WORD], inner[SHELL_WORD];
	const bool braces = at[1] == '{';
	const char *start = at + 1 + braces, *close = braces ? closing(start, '{', '}') : NULL;
	size_t n = shell_name_length(start);
	if (!braces && isdigit((unsigned char)*start))
		n = 1; /* $10 is $1 and a 0 */
	const char *behind = strncmp(at, "$((", 3) == 0 ? expand_arithmetic(s, at, out) : expand_expr(s, at, out);
	if (behind)
		return behind;
	snprintf(name, sizeof name, "%.*s", (int)n, start);
	const char *value = n && n < sizeof name && (!braces || close) ? value_of(s, name) : NULL;
	const char *rest = start + n;
	const bool colon = close && *rest == ':', other = close && strchr("-=", rest[colon]) && rest[colon];
	if (value && !(other && colon && !*value) && (!braces || rest == close || other)) {
		append(out, value, strlen(value));
		return braces ? close + 1 : rest;
	}
	if (other && n) {
		const char *word = rest + colon + 1;
		snprintf(text, sizeof text, "%.*s", (int)(close - word), word);
		if (strchr(text, '$'))
			shell_expand(s, text, inner);
		append(out, strchr(text, '$') ? inner : text, SHELL_WORD);
		return close + 1;
	}
	append(out, at, 1);
	return at + 1;
}

void shell_expand(const struct shell *s, const char *word, char out[SHELL_WORD])
{
	*out = '\0';
	while (*word) {
		if (*word == '$') {
			word = expand_one(s, word, out);
		} else {
			append(out, word, 1);
			word++;
		}
	}
}
