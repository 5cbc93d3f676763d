#include "step/import/python.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/suggest.h"
#include "step/import/python_value.h"

#define STATEMENTS_MOST 20000
#define LISTED 6

/* ---- functions ---- */

struct py_span py_words_of(const struct py_reader *r, size_t line)
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
		struct py_span s = py_words_of(r, i);
		if (indent_of(r, i) == 0 && py_takes(&s, "def") && s.at < s.end &&
			!vec_push(&r->functions, ((struct py_function){s.at, i, i + 1, behind_block(r, i)})))
			return false;
	}
	return true;
}

/* Binds the parameters: arguments by name or place, else the default, else a value that is not known. */
static void bind(struct py_reader *r, const struct py_function *f, const struct ynode *arguments)
{
	struct py_span s = py_words_of(r, f->line);
	char place[24];
	int n = 0;
	s.at += s.end - s.at < 3 ? s.end - s.at : 3; /* def name ( */
	s.end = py_find(s, ")");
	while (s.at < s.end) {
		const struct py_word *from = s.at;
		const bool all = py_takes(&s, "*") || py_takes(&s, "**");
		if (s.at >= s.end || s.at->kind != PY_NAME) {
			s.at += s.at < s.end;
			continue;
		}
		const struct py_word *name = s.at++;
		const struct py_word *stop = py_find(s, ","), *is = py_find((struct py_span){s.at, stop}, "=");
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

/* Notes a statement that is not run, with its text in one line. */
static void leave(struct py_reader *r, struct py_span s)
{
	char text[80];
	size_t n = 0;
	const struct py_word *w = s.at, *last = s.end - 1;
	for (size_t i = 0; i < r->left.n; i++)
		if (r->left.at[i]->line == w->line)
			return;
	for (const char *p = w->at; p < last->at + last->len && n < sizeof text; p++)
		if (!isspace((unsigned char)*p))
			text[n++] = *p;
		else if (text[n - 1] != ' ')
			text[n++] = ' ';
	struct ynode *node = py_scalar(&r->tree, w, text, n);
	if (node && !vec_push(&r->left, node))
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

/* Reads one value, or several with commas between them as a list. With more behind it a value is not known. */
static struct ynode *read_values(struct py_reader *r, struct py_span s)
{
	const struct py_word *w = s.at;
	if (py_find(s, ",") == s.end) {
		struct ynode *value = py_value(r, &s);
		return s.at == s.end ? value : py_unknown(&r->tree, w, w->at, w->len);
	}
	struct ynode *list = py_node(&r->tree, s.at, Y_SEQ);
	while (s.at < s.end) {
		struct py_span one = {s.at, py_find(s, ",")};
		py_add(&r->tree, list, one.at < one.end ? py_value(r, &one) : NULL);
		s.at = one.end + (one.end < s.end);
	}
	return list;
}

/* Puts a value at a target, or those of a list at several with commas between them. */
static void put_targets(struct py_reader *r, struct py_span target, struct ynode *value)
{
	if (py_find(target, ",") == target.end) {
		target.end = py_find(target, ":"); /* before a type */
		put_at(r, target, value);
		return;
	}
	const bool list = value && value->kind == Y_SEQ;
	for (size_t i = 0; target.at < target.end; i++) {
		const struct py_word *comma = py_find(target, ",");
		put_at(r, (struct py_span){target.at, comma},
			list && i < value->n ? value->child[i]
			: i == 0 && !list    ? value
					     : py_unknown(&r->tree, target.at, target.at->at, target.at->len));
		target.at = comma + (comma < target.end);
	}
}

/* Reads "a = b = value", "a: type = value" and "a, b = value". False: it is no assignment. */
static bool assign(struct py_reader *r, struct py_span s)
{
	const struct py_word *is = py_find(s, "=");
	if (is == s.end)
		return false;
	struct py_span rest = {is + 1, s.end};
	for (const struct py_word *next; (next = py_find(rest, "=")) < py_find(rest, "lambda"); rest.at = next + 1)
		;
	struct ynode *value = rest.at < rest.end ? read_values(r, rest) : NULL;
	for (; value && s.at < rest.at; s.at = py_find(s, "=") + 1)
		put_targets(r, (struct py_span){s.at, py_find(s, "=")}, value);
	return true;
}

static void extend(struct py_reader *r, struct ynode *list, const struct ynode *more)
{
	for (size_t i = 0; more->kind == Y_SEQ && i < more->n; i++)
		py_add(&r->tree, list, more->child[i]);
}

/* Reads "a += value" and its like. False: it is none. */
static bool change(struct py_reader *r, struct py_span s)
{
	const struct py_word *sign = s.at;
	while (sign < s.end && !(sign->kind == PY_SIGN && sign->len >= 2 && sign->at[sign->len - 1] == '=' &&
				       !strchr("=!<>:", *sign->at)))
		sign++;
	if (sign == s.end)
		return false;
	const struct py_span target = {s.at, sign};
	struct py_span read = target;
	struct ynode *old = read.at < read.end ? py_value(r, &read) : NULL;
	struct ynode *value = sign + 1 < s.end ? read_values(r, (struct py_span){sign + 1, s.end}) : NULL;
	if (old && value && old->kind == Y_SEQ && value->kind == Y_SEQ && py_is(sign, "+="))
		extend(r, old, value);
	else
		put_at(r, target, py_changed(r, sign, old, value));
	return true;
}

/* Returns whether a statement names a config that is known. */
static bool names_config(const struct py_reader *r, struct py_span s)
{
	for (const struct py_word *w = s.at; w < s.end; w++) {
		const struct ynode *n = w->kind == PY_NAME && !(w > s.at && py_is(w - 1, ".")) ? py_name_get(r, w)
		                                                                               : NULL;
		if (n && n->kind == Y_MAP)
			return true;
	}
	return false;
}

/* Reads "list.append(value)", "list.extend(values)" and the call of a function of the file, which may change what it
 * is given. Others may change a config that they name: they are left, except where they print or check. */
static void call_alone(struct py_reader *r, struct py_span s)
{
	const struct py_word *open = py_find(s, "(");
	if (open == s.end || open == s.at)
		return;
	const bool add = py_is(open - 1, "append"), more = py_is(open - 1, "extend");
	if (open - s.at >= 3 && (add || more)) {
		const struct py_span target = {s.at, open - 2};
		struct py_span read = target, argument = {open + 1, s.end};
		struct ynode *list = py_value(r, &read), *value = py_value(r, &argument);
		if (!list || list->kind != Y_SEQ) {
			list = py_node(&r->tree, s.at, Y_SEQ);
			put_at(r, target, list);
		}
		if (add)
			py_add(&r->tree, list, value);
		else if (value)
			extend(r, list, value);
	} else if (open == s.at + 1 && py_function(r, s.at->at, s.at->len)) {
		py_value(r, &s);
	} else if (!py_at(&s, "print") && !py_is(open - 1, "validate") && names_config(r, s)) {
		leave(r, s);
	}
}

static void run(struct body *b, size_t from, size_t to);

/* Runs the branch of an `if` that is taken, and returns the line behind all of them. Where its condition is not known,
 * none is. */
static size_t run_if(struct body *b, size_t line, size_t to)
{
	bool taken = false;
	for (bool first = true; line < to; first = false) {
		struct py_span s = py_words_of(b->r, line);
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
			leave(b->r, py_words_of(b->r, line));
		if (!taken && known && yes)
			run(b, line + 1, behind < to ? behind : to);
		taken |= !known || yes;
		line = behind;
	}
	return line;
}

static void run_line(struct body *b, struct py_span s)
{
	static const char *const nothing[] = {"import", "from", "assert", "pass", "raise", "global", "def", "class",
		"@", "else", "elif", "except", "finally", "nonlocal", "yield", "continue", "break"};
	b->r->statements++;
	if (py_takes(&s, "return")) {
		b->result = s.at < s.end ? read_values(b->r, s) : NULL;
		b->done = true;
		return;
	}
	for (size_t i = 0; i < COUNT(nothing); i++)
		if (py_at(&s, nothing[i]))
			return;
	if (py_at(&s, "for") || py_at(&s, "while") || py_at(&s, "del"))
		leave(b->r, s);
	else if (!change(b->r, s) && !assign(b->r, s))
		call_alone(b->r, s);
}

/* Returns whether the text asks for more than a config does, or for more memory than there is. */
static bool ends(const struct py_reader *r)
{
	return r->tree.failed || r->statements > STATEMENTS_MOST || r->tree.work > PY_WORK_MOST;
}

static void run(struct body *b, size_t from, size_t to)
{
	while (from < to && !b->done && !ends(b->r)) {
		const struct py_span s = py_words_of(b->r, from);
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
	struct py_span s = py_words_of(r, f->line);
	s.at += s.end - s.at < 3 ? s.end - s.at : 3; /* def name ( */
	for (s.end = py_find(s, ")"); s.at < s.end; s.at++) {
		const struct py_word *stop = py_find(s, ","), *is = py_find((struct py_span){s.at, stop}, "=");
		if (!(is < stop) && !py_at(&s, "*") && !py_at(&s, "**"))
			return true;
		s.at = stop;
		if (!py_at(&s, ","))
			break;
	}
	return false;
}

/* Says that no function is meant, or which ones could be: those that are given, which need no arguments. */
static void refuse_choice(const struct py_reader *r, const char *wanted, const char *const *names, size_t n)
{
	const struct hint listed = suggest_names(n > LISTED ? "the first" : "they are", names, n < LISTED ? n : LISTED);
	const struct hint near = wanted ? suggest(wanted, names, n, NULL) : (struct hint){""};
	if (n == 0)
		error_set(r->e, ST_INPUT, "%s: it has no function that builds a config without arguments", r->file);
	else if (wanted)
		error_set(r->e, ST_INPUT, "%s: it has no function %.60s%s", r->file, wanted,
			*near.text ? near.text : listed.text);
	else
		error_set(r->e, ST_INPUT, "%s: it has %zu functions that build a config%s: give one, as %s:%s", r->file,
			n, listed.text, r->file, names[0]);
}

static const struct py_function *choose(struct py_reader *r, const char *wanted)
{
	const struct py_function *found = NULL;
	VEC(const char *) names = {0};
	for (size_t i = 0; i < r->functions.n; i++) {
		const struct py_function *f = &r->functions.at[i];
		const bool usual = !wanted && (py_is(f->name, "pretrain_recipe") || py_is(f->name, "build_config"));
		if (usual || (wanted && py_is(f->name, wanted))) {
			vec_free(&names);
			return f;
		}
		if (*f->name->at == '_' || needs_arguments(r, f))
			continue;
		const struct ynode *name = py_scalar(&r->tree, f->name, f->name->at,
			f->name->len < 60 ? f->name->len : 60);
		if (name && vec_push(&names, name->text))
			found = f;
	}
	if (wanted || names.n != 1) {
		found = NULL;
		refuse_choice(r, wanted, names.at, names.n);
	}
	vec_free(&names);
	return found;
}

/* Returns the config of several values that a function returns, the mapping with the most keys; others stay as they
 * are. */
static struct ynode *only_config(struct ynode *value)
{
	struct ynode *found = value;
	for (size_t i = 0; value && value->kind == Y_SEQ && i < value->n; i++) {
		struct ynode *n = value->child[i];
		if (n->kind == Y_MAP && (found == value || n->n > found->n))
			found = n;
	}
	return found;
}

/* Moves the mapping into the document's root. */
static enum status finish(struct py_reader *r, const struct py_function *f, struct ynode *value)
{
	struct ynode *root = ydoc_edit(r->tree.doc);
	char key[32];
	value = only_config(value);
	if (!f && !r->tree.failed && ends(r))
		return error_set(r->e, ST_INPUT, "%s: it makes more values than a config has", r->file);
	if (!r->tree.failed && ends(r))
		return error_set(r->e, ST_INPUT, "%s:%d:%d: function %.*s makes more values than a config has", r->file,
			f->name->line, f->name->col, (int)f->name->len, f->name->at);
	if (!r->tree.failed && value && value->kind != Y_MAP)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: function %.*s returns no config", r->file, f->name->line,
			f->name->col, (int)f->name->len, f->name->at);
	for (size_t i = 0; value && i < value->n; i++)
		py_put(&r->tree, root,
			&(struct py_word){.line = value->child[i]->key_line, .col = value->child[i]->key_col},
			value->child[i]->key, strlen(value->child[i]->key), value->child[i]);
	if (f)
		py_put(&r->tree, root, f->name, "_function_", 10,
			py_scalar(&r->tree, f->name, f->name->at, f->name->len));
	for (size_t i = 0; i < r->left.n; i++) {
		const struct py_word w = {.line = r->left.at[i]->line, .col = r->left.at[i]->col};
		py_put(&r->tree, root, &w, key, (size_t)snprintf(key, sizeof key, "_line_%d", w.line), r->left.at[i]);
	}
	py_name_lists(&r->tree, root, 0);
	return r->tree.failed || !value ? error_nomem(r->e, "the values of a Python text") : ST_OK;
}

/* Makes the config of a file without functions: the tables that it assigns, and single values. Names in capitals are
 * constants, which others use. */
static struct ynode *assigned(struct py_reader *r)
{
	const struct py_word top = {.line = 1, .col = 1};
	struct ynode *root = py_node(&r->tree, &top, Y_MAP);
	for (size_t i = 0; i < r->names.n; i++) {
		const struct py_binding *b = &r->names.at[i];
		bool constant = b->value->kind != Y_MAP;
		for (size_t k = 0; k < b->len; k++)
			constant &= !islower((unsigned char)b->name[k]);
		if (!constant)
			py_put(&r->tree, root, &(struct py_word){.line = b->value->line, .col = b->value->col}, b->name,
				b->len, b->value);
	}
	return root;
}

/* Runs what stands outside of functions, and then the function that is meant, or those that build the parts. */
static enum status build(struct py_reader *r, const char *wanted)
{
	struct body top = {.r = r};
	for (size_t i = 0; i < r->lines.lines.n && !ends(r); i = behind_block(r, i))
		if (!py_at(&(struct py_span){py_words_of(r, i).at, py_words_of(r, i).end}, "if"))
			run_line(&top, py_words_of(r, i));
	r->globals = r->scope = r->names.n;
	const struct py_function *f = NULL;
	struct ynode *parts = wanted ? NULL : py_builders(r, &f);
	if (parts)
		return finish(r, f, parts);
	if (!wanted && r->functions.n == 0)
		return finish(r, NULL, assigned(r));
	f = choose(r, wanted);
	return f ? finish(r, f, py_call(r, f, NULL)) : ST_INPUT;
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
	st = st ? st : build(&r, wanted);
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
