#include "step/import/interpolate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define TEXT_MAX 512
#define DEPTH_MOST 8 /* of expressions in expressions, and of references to references */

static bool expand(const struct foreign *f, const char *path, const char *text, int depth, char out[TEXT_MAX]);

static bool append(char out[TEXT_MAX], const char *text, size_t len)
{
	const size_t n = strlen(out);
	if (n + len >= TEXT_MAX)
		return false;
	memcpy(out + n, text, len);
	out[n + len] = '\0';
	return true;
}

/* ---- references ---- */

/* Writes the path that "a.b", ".b" or "..b" means in the table of `at`. */
static bool path_of(const char *name, const char *at, char out[TEXT_MAX])
{
	char base[TEXT_MAX];
	const bool relative = *name == '.';
	if (strlen(at) >= sizeof base)
		return false;
	strcpy(base, at);
	while (*name == '.') {
		char *dot = strrchr(base, '.');
		*(dot ? dot : base) = '\0';
		name++;
	}
	*out = '\0';
	if (relative && *base && !(append(out, base, strlen(base)) && append(out, ".", 1)))
		return false;
	return append(out, name, strlen(name));
}

/* Writes the value of a key; false: there is none. */
static bool value_of(const struct foreign *f, const char *name, const char *at, int depth, char out[TEXT_MAX])
{
	char path[TEXT_MAX];
	if (!path_of(name, at, path))
		return false;
	const struct leaf *l = foreign_find_path(f, path);
	const char *dot = strchr(path, '.');
	char first[TEXT_MAX];
	snprintf(first, sizeof first, "%.*s", dot ? (int)(dot - path) : 0, path);
	if (!l && dot && !ynode_get(ydoc_root(f->doc), first))
		l = foreign_find_path(f, dot + 1);
	return l && strcmp(l->path, at) != 0 && expand(f, l->path, l->value, depth + 1, out);
}

/* ---- resolvers ---- */

enum arithmetic { MULTIPLY, ADD, DIVIDE_CEIL, DIVIDE_FLOOR, ARITHMETIC_COUNT };

static bool compute(enum arithmetic op, const char *args, char out[TEXT_MAX])
{
	double result = 0;
	for (int i = 0; *args; i++) {
		char *rest;
		const double value = strtod(args, &rest);
		rest += strspn(rest, " ");
		if (rest == args || (*rest && *rest != ',') || (op >= DIVIDE_CEIL && i && value == 0))
			return false;
		switch (i ? op : ADD) {
		case MULTIPLY: result *= value; break;
		case ADD: result += value; break;
		case DIVIDE_CEIL: result = ceil(result / value); break;
		case DIVIDE_FLOOR: result = floor(result / value); break;
		case ARITHMETIC_COUNT: return false;
		}
		args = *rest ? rest + 1 : rest;
	}
	snprintf(out, TEXT_MAX, "%.12g", result);
	return true;
}

/* Evaluates "name:arguments". */
static bool resolve(const struct foreign *f, const char *call, const char *at, int depth, char out[TEXT_MAX])
{
	static const char *const names[ARITHMETIC_COUNT] = {"multiply", "add", "divide_ceil", "divide_floor"};
	const char *args = strchr(call, ':') + 1, *comma = strchr(args, ',');
	char name[TEXT_MAX], key[TEXT_MAX];
	snprintf(name, sizeof name, "%.*s", (int)(args - 1 - call), call);
	snprintf(key, sizeof key, "%.*s", comma ? (int)(comma - args) : (int)strlen(args), args);
	for (int i = 0; i < ARITHMETIC_COUNT; i++)
		if (strcmp(name, names[i]) == 0)
			return compute((enum arithmetic)i, args, out);
	if (*name && name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == '\0') {
		/* of the environment, as Primus writes it: ${PRIMUS_TP:1} */
		const size_t n = strlen(args);
		const bool quoted = n > 1 && *args == '"' && args[n - 1] == '"';
		snprintf(out, TEXT_MAX, "%.*s", (int)(n - 2 * quoted), args + quoted);
		return true;
	}
	if (strcmp(name, "oc.select") == 0 && value_of(f, key, at, depth, out))
		return true;
	if (!comma || (strcmp(name, "oc.select") != 0 && strcmp(name, "oc.env") != 0))
		return false;
	snprintf(out, TEXT_MAX, "%s", comma + 1 + strspn(comma + 1, " "));
	return true;
}

/* ---- values ---- */

/* Returns the brace that closes the one before `s`; NULL: none does. */
static const char *closing(const char *s)
{
	for (int open = 1; *s; s++) {
		open += (*s == '{') - (*s == '}');
		if (open == 0)
			return s;
	}
	return NULL;
}

/* Copies `text` with all in it that is known put in; false: it is too long. */
static bool expand(const struct foreign *f, const char *path, const char *text, int depth, char out[TEXT_MAX])
{
	char inner[TEXT_MAX], value[TEXT_MAX];
	*out = '\0';
	if (depth > DEPTH_MOST)
		return false;
	for (const char *end; *text; text = end) {
		const char *close = strncmp(text, "${", 2) == 0 ? closing(text + 2) : NULL;
		end = close ? close + 1 : text + 1;
		if (!close) {
			if (!append(out, text, 1))
				return false;
			continue;
		}
		char raw[TEXT_MAX] = "";
		if (!append(raw, text + 2, (size_t)(close - text) - 2) || !expand(f, path, raw, depth + 1, inner))
			return false;
		const bool known = strchr(inner, ':') ? resolve(f, inner, path, depth, value)
		                                      : value_of(f, inner, path, depth, value);
		if (known ? !append(out, value, strlen(value))
			  : !(append(out, "${", 2) && append(out, inner, strlen(inner)) && append(out, "}", 1)))
			return false;
	}
	return true;
}

enum status interpolate(struct foreign *f, struct error *e)
{
	char value[TEXT_MAX];
	for (size_t i = 0; i < f->leaves.n; i++) {
		struct leaf *l = &f->leaves.at[i];
		if (!strstr(l->value, "${") || !expand(f, l->path, l->value, 0, value) || strcmp(value, l->value) == 0)
			continue;
		char *text = strdup(value);
		if (!text)
			return error_nomem(e, "a value");
		free(l->value);
		l->value = text;
	}
	return ST_OK;
}
