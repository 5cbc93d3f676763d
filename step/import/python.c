#include "step/import/python.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "step/import/python_value.h"

#define STATEMENTS_MOST 100000
#define LISTED 6

/* ---- functions ---- */

static struct py_span words_of(const struct py_reader *r, size_t line)
{
	const struct py_line *l = &r->lines.lines.at[line];
	const struct py_word *first = r->lines.words.at + l->first;
	return (struct py_span){first, first + l->n};
}

static int indent_of(const struct py_reader *r, size_t line) { return r->lines.lines.at[line].indent; }

/* Returns the line behind the block that belongs to a line. */
static size_t behind_block(const struct py_reader *r, size_t line)
{
	const int indent = indent_of(r, line);
	do
		line++;
	while (line < r->lines.lines.n && indent_of(r, line) > indent);
	return line;
}

static bool find_functions(struct py_reader *r)
{
	for (size_t i = 0; i < r->lines.lines.n; i = behind_block(r, i)) {
		struct py_span s = words_of(r, i);
		if (indent_of(r, i) == 0 && py_takes(&s, "def") && s.at < s.end &&
			!vec_push(&r->functions, ((struct py_function){s.at, i, i + 1, behind_block(r, i)})))
			return false;
	}
	return true;
}

/* Binds the parameters: arguments by name or place, else the default, else a value that is not known. */
static void bind(struct py_reader *r, const struct py_function *f, const struct ynode *arguments)
{
	struct py_span s = words_of(r, f->line);
	char place[24];
	int n = 0;
	s.at += 3; /* def name ( */
	while (s.at < s.end && !py_takes(&s, ")")) {
		const struct py_word *from = s.at;
		const bool all = py_takes(&s, "*") || py_takes(&s, "**");
		if (s.at >= s.end || s.at->kind != PY_NAME) {
			s.at += s.at < s.end;
			continue;
		}
		const struct py_word *name = s.at++;
		const struct py_word *comma = py_find(s, ","), *is = py_find(s, "="), *close = py_find(s, ")");
		const struct py_word *stop = comma < close ? comma : close;
		const int size = snprintf(place, sizeof place, "_%d", n++);
		struct ynode *value = all ? NULL : py_get(arguments, name->at, name->len);
		if (!value && !all)
			value = py_get(arguments, place, (size_t)size);
		if (!value && is < stop) {
			struct py_span rest = {is + 1, stop};
			value = py_value(r, &rest);
		}
		py_name_set(r, name, value ? value : py_unknown(&r->tree, name, name->at, name->len));
		s.at = stop > from ? stop : from + 1;
		py_takes(&s, ",");
	}
}

/* ---- statements ---- */

struct body {
	struct py_reader *r;
	struct ynode *result; /* of `return`, once there was one */
	bool done;
};

static void leave(struct py_reader *r, struct py_span s)
{
	char text[80], key[32];
	size_t n = 0;
	const struct py_word *w = s.at;
	for (; s.at < s.end && n < sizeof text; s.at++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", n ? " " : "",
			s.at->len < 40 ? (int)s.at->len : 40, s.at->at);
	struct ynode *node = py_scalar(&r->tree, w, text, strlen(text));
	snprintf(key, sizeof key, "_line_%d", w->line);
	for (size_t i = 0; i < r->left.n; i++)
		if (r->left.at[i]->line == w->line)
			return;
	if (!node || !vec_push(&r->left, node))
		r->tree.failed = true;
}

/* Puts a value where "a.b.c" or 'a["b"]' says; makes the mappings between. */
static void put_at(struct py_reader *r, struct py_span target, struct ynode *value)
{
	const struct py_word *key = NULL, *first = target.at;
	if (target.at >= target.end || first->kind != PY_NAME)
		return;
	if (target.at + 1 == target.end) {
		py_name_set(r, first, value);
		return;
	}
	struct ynode *map = py_name_get(r, first);
	if (!map)
		return;
	for (target.at++; target.at < target.end; target.at++) {
		if (target.at->kind == PY_SIGN && target.at->len == 1 && strchr(".[]", *target.at->at))
			continue;
		if (key) {
			struct ynode *next = py_get(map, key->at, key->len);
			if (!next || next->kind != Y_MAP) {
				next = py_node(&r->tree, key, Y_MAP);
				py_put(&r->tree, map, key, key->at, key->len, next);
			}
			map = next;
		}
		key = target.at;
	}
	if (map && map->kind == Y_MAP && key)
		py_put(&r->tree, map, key, key->at, key->len, value);
}

/* Reads one value, or several with commas between them as a list. */
static struct ynode *read_values(struct py_reader *r, struct py_span s)
{
	if (py_find(s, ",") == s.end)
		return py_value(r, &s);
	struct ynode *list = py_node(&r->tree, s.at, Y_SEQ);
	while (s.at < s.end) {
		struct py_span one = {s.at, py_find(s, ",")};
		py_add(&r->tree, list, one.at < one.end ? py_value(r, &one) : NULL);
		s.at = one.end + (one.end < s.end);
	}
	return list;
}

/* Reads "a = b = value", "a: type = value" and "a, b = value". False: it is no assignment. */
static bool assign(struct py_reader *r, struct py_span s)
{
	const struct py_word *is = py_find(s, "=");
	if (is == s.end)
		return false;
	struct py_span target = {s.at, is}, rest = {is + 1, s.end};
	const struct py_word *colon = py_find(target, ":"), *comma = py_find(target, ",");
	while (py_find(rest, "=") < rest.end)
		rest.at = py_find(rest, "=") + 1;
	if (rest.at >= rest.end)
		return true;
	struct ynode *value = read_values(r, rest);
	if (comma < target.end) {
		const bool list = value && value->kind == Y_SEQ;
		for (size_t i = 0; target.at < target.end; i++) {
			comma = py_find(target, ",");
			put_at(r, (struct py_span){target.at, comma},
				list && i < value->n ? value->child[i]
				: i == 0 && !list    ? value
						     : py_unknown(&r->tree, target.at, target.at->at, target.at->len));
			target.at = comma + (comma < target.end);
		}
		return true;
	}
	target.end = colon;
	put_at(r, target, value);
	return true;
}

/* Reads "list.append(value)" and "list.extend(values)"; other calls change nothing that is known here. */
static void call_alone(struct py_reader *r, struct py_span s)
{
	const struct py_word *open = py_find(s, "(");
	if (open == s.end || open - s.at < 3 || !(py_is(open - 1, "append") || py_is(open - 1, "extend")))
		return;
	struct py_span target = {s.at, open - 2}, argument = {open + 1, s.end};
	struct py_span read = target;
	struct ynode *list = py_value(r, &read), *value = py_value(r, &argument);
	if (!list || list->kind != Y_SEQ) {
		list = py_node(&r->tree, s.at, Y_SEQ);
		put_at(r, target, list);
	}
	if (py_is(open - 1, "append"))
		py_add(&r->tree, list, value);
	for (size_t i = 0; py_is(open - 1, "extend") && value && value->kind == Y_SEQ && i < value->n; i++)
		py_add(&r->tree, list, value->child[i]);
}

static void run(struct body *b, size_t from, size_t to);

/* Runs the branch of an `if` that is taken, and returns the line behind all of them. Where its condition is not known,
 * none is. */
static size_t run_if(struct body *b, size_t line, size_t to)
{
	bool taken = false;
	for (bool first = true; line < to; first = false) {
		struct py_span s = words_of(b->r, line);
		const size_t behind = behind_block(b->r, line);
		const bool other = py_at(&s, "else");
		if (!first && !other && !py_at(&s, "elif"))
			break;
		s.at++;
		const struct py_word *colon = py_find(s, ":");
		bool yes = true, known = true;
		if (!other && !taken) {
			struct py_span condition = {s.at, colon};
			const struct ynode *v = condition.at < colon ? py_value(b->r, &condition) : NULL;
			known = v && py_truth(v, &yes);
		}
		if (!taken && !known)
			leave(b->r, words_of(b->r, line));
		if (!taken && known && yes)
			run(b, line + 1, behind < to ? behind : to);
		taken |= !known || yes;
		line = behind;
	}
	return line;
}

static void run_line(struct body *b, struct py_span s)
{
	static const char *const nothing[] = {"import", "from", "assert", "pass", "raise", "global", "del", "def",
		"class", "@", "else", "elif", "except", "finally", "nonlocal", "yield", "continue", "break"};
	if (py_takes(&s, "return")) {
		b->result = s.at < s.end ? py_value(b->r, &s) : NULL;
		b->done = true;
		return;
	}
	for (size_t i = 0; i < COUNT(nothing); i++)
		if (py_at(&s, nothing[i]))
			return;
	if (py_at(&s, "for") || py_at(&s, "while"))
		leave(b->r, s);
	else if (!assign(b->r, s))
		call_alone(b->r, s);
}

static void run(struct body *b, size_t from, size_t to)
{
	while (from < to && !b->done && !b->r->tree.failed) {
		const struct py_span s = words_of(b->r, from);
		if (++b->r->statements > STATEMENTS_MOST)
			return;
		if (py_at(&s, "if")) {
			from = run_if(b, from, to);
			continue;
		}
		const size_t behind = behind_block(b->r, from);
		if (py_at(&s, "with") || py_at(&s, "try"))
			run(b, from + 1, behind < to ? behind : to);
		else
			run_line(b, s);
		from = behind;
	}
}

/* Returns the config that a function without `return` fills: the mapping with the most keys. */
static struct ynode *largest(const struct py_reader *r)
{
	struct ynode *found = NULL;
	for (size_t i = r->scope; i < r->names.n; i++) {
		struct ynode *n = r->names.at[i].value;
		if (n->kind == Y_MAP && (!found || n->n >= found->n))
			found = n;
	}
	return found;
}

struct ynode *py_call(struct py_reader *r, const struct py_function *f, const struct ynode *arguments)
{
	const size_t scope = r->scope, here = r->names.n;
	struct body b = {.r = r};
	r->calls++;
	bind(r, f, arguments);
	r->scope = here; /* arguments were read with the caller's names */
	run(&b, f->first, f->last);
	struct ynode *value = b.result ? b.result : largest(r);
	r->names.n = here;
	r->scope = scope;
	r->calls--;
	return value ? value : py_unknown(&r->tree, f->name, f->name->at, f->name->len);
}

/* ---- the whole ---- */

static bool needs_arguments(const struct py_reader *r, const struct py_function *f)
{
	struct py_span s = words_of(r, f->line);
	for (s.at += 3; s.at < s.end && !py_at(&s, ")"); s.at++) {
		const struct py_word *comma = py_find(s, ","), *close = py_find(s, ")"), *is = py_find(s, "=");
		const struct py_word *stop = comma < close ? comma : close;
		if (!(is < stop) && !py_at(&s, "*") && !py_at(&s, "**"))
			return true;
		s.at = stop;
		if (!py_at(&s, ","))
			break;
	}
	return false;
}

static const struct py_function *choose(struct py_reader *r, const char *wanted)
{
	const struct py_function *found = NULL, *first = NULL;
	char names[400] = "";
	size_t n = 0, length = 0;
	for (size_t i = 0; i < r->functions.n; i++) {
		const struct py_function *f = &r->functions.at[i];
		if (py_is(f->name, wanted ? wanted : "pretrain_recipe"))
			return f;
		if (*f->name->at == '_' || needs_arguments(r, f))
			continue;
		if (n < LISTED && length < sizeof names)
			length += (size_t)snprintf(names + length, sizeof names - length, "%s%.*s", n ? ", " : "",
				f->name->len < 60 ? (int)f->name->len : 60, f->name->at);
		first = first ? first : f;
		found = n++ == 0 ? f : NULL;
	}
	if (found && !wanted)
		return found;
	if (wanted)
		error_set(r->e, ST_INPUT, "%s: it has no function %.60s (%s%s)", r->file, wanted, names,
			n > LISTED ? ", ..." : "");
	else if (n == 0)
		error_set(r->e, ST_INPUT, "%s: no function of it gives a config without arguments", r->file);
	else
		error_set(r->e, ST_INPUT, "%s: it has %zu configs (%s%s): give one as %s:%.*s", r->file, n, names,
			n > LISTED ? ", ..." : "", r->file, (int)first->name->len, first->name->at);
	return NULL;
}

/* Moves the mapping into the document's root. */
static enum status finish(struct py_reader *r, const struct py_function *f, struct ynode *value)
{
	struct ynode *root = ydoc_edit(r->tree.doc);
	char key[32];
	if (r->tree.work > PY_WORK_MOST)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: %.*s makes more values than a config has", r->file,
			f->name->line, f->name->col, (int)f->name->len, f->name->at);
	if (!r->tree.failed && value && value->kind != Y_MAP)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: %.*s gives no config", r->file, f->name->line, f->name->col,
			(int)f->name->len, f->name->at);
	for (size_t i = 0; value && i < value->n; i++)
		py_put(&r->tree, root,
			&(struct py_word){.line = value->child[i]->key_line, .col = value->child[i]->key_col},
			value->child[i]->key, strlen(value->child[i]->key), value->child[i]);
	py_put(&r->tree, root, f->name, "_function_", 10, py_scalar(&r->tree, f->name, f->name->at, f->name->len));
	for (size_t i = 0; i < r->left.n; i++) {
		const struct py_word w = {.line = r->left.at[i]->line, .col = r->left.at[i]->col};
		py_put(&r->tree, root, &w, key, (size_t)snprintf(key, sizeof key, "_line_%d", w.line), r->left.at[i]);
	}
	py_name_lists(&r->tree, root, 0);
	return r->tree.failed ? error_nomem(r->e, "the values of a Python text") : ST_OK;
}

enum status python_parse(const char *text, size_t len, const char *name, const char *wanted, struct ydoc **out,
	struct error *e)
{
	struct py_reader r = {.file = name, .e = e};
	enum status st = py_lines_read(text, len, name, &r.lines, e);
	if (st)
		return st;
	st = ydoc_create(name, &r.tree.doc, e);
	if (!st && !find_functions(&r))
		st = error_nomem(e, "the functions of a Python text");
	const struct py_function *f = st ? NULL : choose(&r, wanted);
	if (f) {
		struct body top = {.r = &r};
		for (size_t i = 0; i < r.lines.lines.n; i = behind_block(&r, i))
			if (!py_at(&(struct py_span){words_of(&r, i).at, words_of(&r, i).end}, "if"))
				run_line(&top, words_of(&r, i));
		r.globals = r.scope = r.names.n;
		st = finish(&r, f, py_call(&r, f, NULL));
	} else if (!st) {
		st = ST_INPUT;
	}
	if (st)
		ydoc_destroy(r.tree.doc);
	else
		*out = r.tree.doc;
	py_lines_free(&r.lines);
	vec_free(&r.names);
	vec_free(&r.functions);
	vec_free(&r.left);
	return st;
}

bool python_found(const char *text, size_t len)
{
	for (size_t i = 0; i + 4 < len; i++)
		if ((i == 0 || text[i - 1] == '\n') && strncmp(text + i, "def ", 4) == 0)
			return true;
	return false;
}
