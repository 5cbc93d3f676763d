#include "step/import/python_value.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

#define DEPTH_MOST 500 /* of levels of operators: some fifty brackets in each other */

/* ---- words ---- */

bool py_is(const struct py_word *w, const char *text)
{
	return (w->kind == PY_NAME || w->kind == PY_SIGN) && w->len == strlen(text) &&
	       strncmp(w->at, text, w->len) == 0;
}

bool py_at(const struct py_span *s, const char *text) { return s->at < s->end && py_is(s->at, text); }

bool py_takes(struct py_span *s, const char *text)
{
	const bool found = py_at(s, text);
	s->at += found;
	return found;
}

static int opens(const struct py_word *w)
{
	return w->kind != PY_SIGN ? 0 : strchr("([{", *w->at) ? 1 : strchr(")]}", *w->at) ? -1 : 0;
}

const struct py_word *py_find(struct py_span s, const char *text)
{
	int depth = 0;
	for (; s.at < s.end; s.at++) {
		if (depth == 0 && py_is(s.at, text))
			return s.at;
		depth += opens(s.at);
	}
	return s.end;
}

/* Returns the word behind the bracket that closes the one at `s`. */
static const struct py_word *behind_brackets(struct py_span s)
{
	int depth = 0;
	do
		depth += opens(s.at++);
	while (s.at < s.end && depth > 0);
	return s.at;
}

struct ynode *py_name_get(const struct py_reader *r, const struct py_word *w)
{
	for (size_t i = r->names.n; i-- > 0;) {
		const struct py_binding *b = &r->names.at[i];
		if (i < r->scope && i >= r->globals)
			continue;
		if (b->len == w->len && strncmp(b->name, w->at, w->len) == 0)
			return b->value;
	}
	return NULL;
}

void py_name_set(struct py_reader *r, const struct py_word *w, struct ynode *value)
{
	if (value && !vec_push(&r->names, ((struct py_binding){w->at, w->len, value})))
		r->tree.failed = true;
}

/* ---- calls ---- */

/* Functions that give a number, a text or a list, and what of the system is asked for. */
static bool is_plain(const char *name, size_t len)
{
	static const char *const names[] = {"len", "int", "max", "min", "str", "float", "range", "sum", "sorted",
		"list", "tuple", "set", "getattr", "isinstance", "hasattr", "any", "all", "round", "abs", "bool",
		"type"};
	for (size_t i = 0; i < COUNT(names); i++)
		if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
			return true;
	return len > 3 && strncmp(name, "os.", 3) == 0;
}

/* Reads a value up to a comma or a closing bracket. With more behind it, as in a comprehension, it is not known. */
static struct ynode *read_item(struct py_reader *r, struct py_span *s)
{
	const struct py_word *w = s->at;
	struct ynode *value = py_value(r, s);
	int depth = 0;
	if (s->at >= s->end || py_at(s, ",") || opens(s->at) < 0)
		return value;
	for (; s->at < s->end && (depth > 0 || (!py_at(s, ",") && opens(s->at) >= 0)); s->at++)
		depth += opens(s->at);
	return py_unknown(&r->tree, w, w->at, w->len);
}

/* Reads arguments up to the closing bracket into a mapping: _0, _1 for those without a name. */
static struct ynode *read_arguments(struct py_reader *r, struct py_span *s, const struct py_word *w)
{
	struct ynode *map = py_node(&r->tree, w, Y_MAP);
	char key[24];
	int n = 0;
	while (s->at < s->end && !py_takes(s, ")")) {
		const struct py_word *from = s->at;
		const bool named = from + 1 < s->end && from->kind == PY_NAME && py_is(from + 1, "=");
		const bool spread = py_takes(s, "**"), list = !spread && py_takes(s, "*");
		s->at += named ? 2 : 0;
		struct ynode *value = read_item(r, s);
		if (spread && value && value->kind == Y_MAP)
			for (size_t i = 0; i < value->n; i++)
				py_put(&r->tree, map, from, value->child[i]->key, strlen(value->child[i]->key),
					value->child[i]);
		else if (named)
			py_put(&r->tree, map, from, from->at, from->len, value);
		else if (!spread && !list)
			py_put(&r->tree, map, from, key, (size_t)snprintf(key, sizeof key, "_%d", n++), value);
		py_takes(s, ",");
		s->at += from == s->at; /* what is no Python */
	}
	return map;
}

const struct py_function *py_function(const struct py_reader *r, const char *name, size_t len)
{
	for (size_t i = 0; i < r->functions.n; i++)
		if (r->functions.at[i].name->len == len && strncmp(r->functions.at[i].name->at, name, len) == 0)
			return &r->functions.at[i];
	return NULL;
}

static bool ends_in(const char *name, size_t len, const char *end)
{
	const size_t n = strlen(end);
	return len >= n && strncmp(name + len - n, end, n) == 0 && (len == n || name[len - n - 1] == '.');
}

/* Makes the mapping of a call of its arguments: {_target_: Name, ...}. */
static struct ynode *make_call(struct py_reader *r, const struct py_word *w, const char *name, size_t len,
	struct ynode *arguments)
{
	struct ynode *first = py_get(arguments, "_0", 2);
	const char *last = name;
	for (size_t i = 0; i < len; i++)
		if (name[i] == '.' && i + 1 < len)
			last = name + i + 1;
	if (ends_in(name, len, "deepcopy") && first)
		return py_copy(&r->tree, first);
	if (ends_in(name, len, "dict"))
		return arguments;
	const bool wraps = (ends_in(name, len, "Config") || ends_in(name, len, "Partial") ||
				   ends_in(name, len, "partial")) &&
	                   first && first->kind == Y_SCALAR && !first->quoted;
	const bool is_class = isupper((unsigned char)*last) || wraps;
	const char *key = is_class ? PY_TARGET : PY_FROM;
	struct ynode *named = wraps ? py_scalar(&r->tree, w, first->text + py_is_unknown(first),
					      strlen(first->text) - py_is_unknown(first))
	                            : py_scalar(&r->tree, w, name, len);
	if (wraps)
		py_drop(arguments, "_0");
	py_put(&r->tree, arguments, w, key, strlen(key), named);
	py_first(arguments, key);
	return arguments;
}

static struct ynode *call(struct py_reader *r, struct py_span *s, const struct py_word *w, const char *name, size_t len)
{
	struct ynode *arguments = read_arguments(r, s, w);
	const struct py_function *f = py_function(r, name, len);
	if (f && r->calls < PY_CALLS_MOST)
		return py_call(r, f, arguments);
	if (is_plain(name, len))
		return py_unknown(&r->tree, w, name, len);
	return make_call(r, w, name, len, arguments);
}

/* ---- operands ---- */

static struct ynode *word_value(struct py_reader *r, const struct py_word *w, const char *text)
{
	return py_scalar(&r->tree, w, text, strlen(text));
}

static struct ynode *read_list(struct py_reader *r, struct py_span *s, const char *close)
{
	const struct py_word *w = s->at++;
	struct ynode *list = py_node(&r->tree, w, Y_SEQ);
	bool comma = false;
	while (s->at < s->end && !py_takes(s, close)) {
		const struct py_word *from = s->at;
		struct ynode *value = py_value(r, s);
		if (py_at(s, "for")) { /* a comprehension */
			s->at = behind_brackets((struct py_span){w, s->end});
			return py_unknown(&r->tree, w, "[... for ...]", 13);
		}
		py_add(&r->tree, list, value);
		comma |= py_takes(s, ",");
		s->at += from == s->at;
	}
	const bool brackets = *close == ')' && !comma && list && list->n == 1;
	if (brackets)
		list->child[0]->key = NULL; /* it was one value in brackets */
	return brackets ? list->child[0] : list;
}

static struct ynode *read_dict(struct py_reader *r, struct py_span *s)
{
	const struct py_word *w = s->at++;
	struct ynode *map = py_node(&r->tree, w, Y_MAP);
	while (s->at < s->end && !py_takes(s, "}")) {
		const struct py_word *from = s->at;
		const bool spread = py_takes(s, "**");
		const struct ynode *key = py_value(r, s);
		if (spread && key && key->kind == Y_MAP)
			for (size_t i = 0; i < key->n; i++)
				py_put(&r->tree, map, from, key->child[i]->key, strlen(key->child[i]->key),
					key->child[i]);
		else if (py_takes(s, ":") && key && key->kind == Y_SCALAR)
			py_put(&r->tree, map, from, key->text, strlen(key->text), py_value(r, s));
		py_takes(s, ",");
		s->at += from == s->at;
	}
	return map;
}

static struct ynode *read_string(struct py_reader *r, struct py_span *s)
{
	char text[512];
	size_t n = 0;
	const struct py_word *w = s->at;
	bool formatted = false;
	for (; s->at < s->end && s->at->kind == PY_STRING; s->at++) {
		formatted |= s->at->formatted;
		for (size_t i = 0; i < s->at->len && n < sizeof text; i++)
			text[n++] = s->at->at[i];
	}
	struct ynode *node = formatted ? py_unknown(&r->tree, w, text, n) : py_scalar(&r->tree, w, text, n);
	if (node)
		node->quoted = !formatted;
	return node;
}

/* Returns what a dotted name is that no value is known of: itself, where it is a class or stands in one, or in torch.
 */
static struct ynode *unbound(struct py_reader *r, const struct py_word *w, const char *name, size_t len)
{
	bool constant = true;
	for (size_t i = 0; i < len && name[i] != '.'; i++)
		constant &= !islower((unsigned char)name[i]);
	const bool stands = (isupper((unsigned char)*name) && !(constant && len > 1)) ||
	                    (len > 6 && strncmp(name, "torch.", 6) == 0) || memchr(name, '.', len);
	return stands && (isupper((unsigned char)*name) || strncmp(name, "torch.", 6) == 0)
	               ? py_scalar(&r->tree, w, name, len)
	               : py_unknown(&r->tree, w, name, len);
}

/* Reads a name with what is behind it: .attribute, (arguments), [index]. */
static struct ynode *read_name(struct py_reader *r, struct py_span *s)
{
	char name[256];
	const struct py_word *w = s->at++;
	struct ynode *value = py_name_get(r, w);
	size_t len = (size_t)snprintf(name, sizeof name, "%.*s", w->len < 200 ? (int)w->len : 200, w->at);
	for (; s->at < s->end; w = s->at - 1) {
		if (py_at(s, ".") && s->at + 1 < s->end && s->at[1].kind == PY_NAME) {
			const struct py_word *part = s->at + 1;
			s->at += 2;
			len += (size_t)snprintf(name + len, sizeof name - len, ".%.*s",
				part->len < 60 ? (int)part->len : 60, part->at);
			len = len < sizeof name ? len : sizeof name - 1;
			struct ynode *inner = value ? py_get(value, part->at, part->len) : NULL;
			if (value && !inner && py_at(s, "(") && py_is_call(value)) {
				s->at++; /* a method: what it gives comes of the value */
				inner = make_call(r, part, part->at, part->len, read_arguments(r, s, part));
				py_put(&r->tree, inner, part, "_of", 3, value);
			} else if (value && !inner) {
				return s->at < s->end && py_at(s, "(")
				               ? (s->at = behind_brackets(*s), py_unknown(&r->tree, part, name, len))
				               : py_unknown(&r->tree, part, name, len);
			}
			value = inner;
		} else if (py_at(s, "(")) {
			s->at++;
			value = call(r, s, w, name, len);
		} else if (py_at(s, "[")) {
			const struct py_span index = {s->at + 1, s->end};
			s->at = behind_brackets(*s);
			const bool keyed = value && index.at < index.end && index.at->kind == PY_STRING;
			value = keyed ? py_get(value, index.at->at, index.at->len) : NULL;
			if (!value)
				return py_unknown(&r->tree, w, name, len);
		} else {
			break;
		}
	}
	return value ? value : unbound(r, w, name, len);
}

static struct ynode *operand(struct py_reader *r, struct py_span *s)
{
	const struct py_word *w = s->at;
	if (w->kind == PY_STRING)
		return read_string(r, s);
	if (w->kind == PY_NUMBER) {
		char text[64];
		size_t n = 0;
		for (size_t i = 0; i < w->len && n < sizeof text; i++)
			if (w->at[i] != '_')
				text[n++] = w->at[i];
		s->at++;
		return py_scalar(&r->tree, w, text, n);
	}
	if (py_at(s, "("))
		return read_list(r, s, ")");
	if (py_at(s, "["))
		return read_list(r, s, "]");
	if (py_at(s, "{"))
		return read_dict(r, s);
	if (py_at(s, "lambda")) {
		s->at = py_find(*s, ":");
		s->at += s->at < s->end;
		py_value(r, s);
		return py_unknown(&r->tree, w, "lambda", 6);
	}
	static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}, {"...", "null"}};
	for (size_t i = 0; i < COUNT(words); i++)
		if (py_takes(s, words[i][0]))
			return word_value(r, w, words[i][1]);
	if (w->kind == PY_NAME)
		return read_name(r, s);
	s->at++;
	return py_unknown(&r->tree, w, w->at, w->len);
}

/* ---- operators ---- */

enum level { OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN, POWER, LEVELS };

static const struct {
	const char *sign;
	enum level level;
} operators[] = {{"or", OR}, {"and", AND}, {"==", COMPARE}, {"!=", COMPARE}, {"<", COMPARE}, {">", COMPARE},
	{"<=", COMPARE}, {">=", COMPARE}, {"is", COMPARE}, {"in", COMPARE}, {"not", COMPARE}, {"+", SUM}, {"-", SUM},
	{"|", SUM}, {"*", PRODUCT}, {"/", PRODUCT}, {"//", PRODUCT}, {"%", PRODUCT}, {"**", POWER}};

static bool same(const struct ynode *a, const struct ynode *b)
{
	double x, y;
	if (py_is_number(a, &x) && py_is_number(b, &y))
		return x == y;
	return a->kind == Y_SCALAR && b->kind == Y_SCALAR && strcmp(a->text, b->text) == 0;
}

static struct ynode *compare(struct py_reader *r, const struct py_word *w, const struct ynode *a, const struct ynode *b,
	bool negated)
{
	double x, y;
	bool is;
	if (py_is_unknown(a) || py_is_unknown(b) || py_is(w, "in") || py_is(w, "not"))
		return py_unknown(&r->tree, w, w->at, w->len);
	if (py_is(w, "==") || py_is(w, "!=") || py_is(w, "is"))
		is = same(a, b) != (py_is(w, "!=") || negated);
	else if (py_is_number(a, &x) && py_is_number(b, &y))
		is = py_is(w, "<") ? x < y : py_is(w, ">") ? x > y : py_is(w, "<=") ? x <= y : x >= y;
	else
		return py_unknown(&r->tree, w, w->at, w->len);
	return word_value(r, w, is ? "true" : "false");
}

static struct ynode *reckon(struct py_reader *r, const struct py_word *w, const struct ynode *a, const struct ynode *b)
{
	double x, y, z;
	if (!py_is_number(a, &x) || !py_is_number(b, &y) || (y == 0 && strchr("/%", *w->at)))
		return py_unknown(&r->tree, w, w->at, w->len);
	if (py_is(w, "+"))
		z = x + y;
	else if (py_is(w, "-"))
		z = x - y;
	else if (py_is(w, "*"))
		z = x * y;
	else if (py_is(w, "**"))
		z = pow(x, y);
	else if (py_is(w, "|"))
		return py_unknown(&r->tree, w, w->at, w->len);
	else
		z = py_is(w, "/") ? x / y : py_is(w, "//") ? floor(x / y) : x - y * floor(x / y);
	return isfinite(z) ? py_number(&r->tree, w, z) : py_unknown(&r->tree, w, w->at, w->len);
}

struct ynode *py_changed(struct py_reader *r, const struct py_word *sign, const struct ynode *a, const struct ynode *b)
{
	static const char *const known[] = {"+=", "-=", "*=", "/=", "//=", "%=", "**="};
	struct py_word w = *sign;
	for (size_t i = 0; a && b && i < COUNT(known); i++)
		if (py_is(sign, known[i])) {
			w.len--;
			return reckon(r, &w, a, b);
		}
	return py_unknown(&r->tree, sign, sign->at, sign->len);
}

static struct ynode *apply(struct py_reader *r, const struct py_word *w, enum level level, struct ynode *a,
	struct ynode *b, bool negated)
{
	bool yes;
	if (!a || !b)
		return NULL;
	if (level == COMPARE)
		return compare(r, w, a, b, negated);
	if (level > COMPARE)
		return reckon(r, w, a, b);
	if (!py_truth(a, &yes)) /* "opts.length or 4096": what is not given has its default */
		return level == OR ? b : py_unknown(&r->tree, w, w->at, w->len);
	return yes == (level == OR) ? a : b;
}

static struct ynode *read_level(struct py_reader *r, struct py_span *s, enum level level);

/* Reads what stands behind a sign before a value. */
static struct ynode *read_prefixed(struct py_reader *r, struct py_span *s, enum level level)
{
	bool yes;
	double number;
	const struct py_word *w = s->at++;
	const struct ynode *v = read_level(r, s, level);
	if (v && level == NOT && py_truth(v, &yes))
		return word_value(r, w, yes ? "false" : "true");
	if (v && level == SIGN && py_is_number(v, &number))
		return py_number(&r->tree, w, py_is(w, "-") ? -number : number);
	return py_unknown(&r->tree, w, w->at, w->len);
}

static struct ynode *read_operators(struct py_reader *r, struct py_span *s, enum level level)
{
	if (level == LEVELS)
		return operand(r, s);
	if ((level == NOT && py_at(s, "not")) || (level == SIGN && (py_at(s, "-") || py_at(s, "+") || py_at(s, "~"))))
		return read_prefixed(r, s, level);
	struct ynode *value = read_level(r, s, level + 1);
	for (size_t i = 0; value && i < COUNT(operators) && s->at < s->end; i++) {
		const struct py_word *sign = s->at;
		if (operators[i].level != level || !py_is(sign, operators[i].sign))
			continue;
		s->at++;
		const bool negated = py_is(sign, "is") && py_takes(s, "not");
		if (py_is(sign, "not"))
			py_takes(s, "in");
		value = apply(r, sign, level, value, read_level(r, s, level + (level != POWER)), negated);
		i = (size_t)-1;
	}
	return value;
}

static struct ynode *read_level(struct py_reader *r, struct py_span *s, enum level level)
{
	struct ynode *value = NULL;
	if (++r->depth > DEPTH_MOST || s->at >= s->end)
		value = py_unknown(&r->tree, s->end - 1, "...", 3);
	else
		value = read_operators(r, s, level);
	r->depth--;
	return value;
}

struct ynode *py_value(struct py_reader *r, struct py_span *s)
{
	const struct py_word *w = s->at;
	struct ynode *value = read_level(r, s, OR);
	if (!py_takes(s, "if"))
		return value;
	bool yes;
	const struct ynode *condition = read_level(r, s, OR);
	struct ynode *other = py_takes(s, "else") ? read_level(r, s, OR) : NULL;
	if (!condition || !py_truth(condition, &yes))
		return py_unknown(&r->tree, w, "if", 2);
	return yes ? value : other;
}
