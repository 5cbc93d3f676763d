#include "step/import/export_form.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- values ---- */

static bool is_bare(const char *text)
{
	char *rest;
	strtod(text, &rest);
	return (*text && !*rest) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

/* Writes "[a, 1]" as ["a", 1]. */
static void write_list(const char *text, FILE *out)
{
	char word[KEY_VALUE_MAX];
	for (const char *p = text; *p; p++) {
		const size_t len = strcspn(p, "[], ");
		snprintf(word, sizeof word, "%.*s", (int)len, p);
		if (len)
			fprintf(out, is_bare(word) ? "%s" : "\"%s\"", word);
		p += len;
		if (!*p)
			break;
		putc(*p, out);
	}
}

static void write_text(const char *text, bool quotes, FILE *out)
{
	if (quotes && *text == '[') {
		write_list(text, out);
		return;
	}
	if (!quotes || is_bare(text)) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++)
		fprintf(out, strchr("\"\\", *text) ? "\\%c" : "%c", *text);
	putc('"', out);
}

/* ---- files ---- */

static void write_toml(const struct ynode *n, const char *path, FILE *out)
{
	char inner[KEY_VALUE_MAX];
	bool keys = false;
	for (size_t i = 0; i < n->n; i++) {
		if (n->child[i]->kind != Y_SCALAR)
			continue;
		if (!keys && *path)
			fprintf(out, "\n[%s]\n", path);
		keys = true;
		fprintf(out, "%s = ", n->child[i]->key);
		write_text(n->child[i]->text, true, out);
		putc('\n', out);
	}
	for (size_t i = 0; i < n->n; i++) {
		snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", n->child[i]->key);
		if (n->child[i]->kind == Y_MAP)
			write_toml(n->child[i], inner, out);
	}
}

static void write_yaml(const struct ynode *n, int depth, FILE *out)
{
	for (size_t i = 0; i < n->n; i++) {
		fprintf(out, "%*s%s:", 2 * depth, "", n->child[i]->key);
		if (n->child[i]->kind == Y_MAP) {
			putc('\n', out);
			write_yaml(n->child[i], depth + 1, out);
		} else {
			putc(' ', out);
			write_text(n->child[i]->text, strpbrk(n->child[i]->text, ":#{}\"'") != NULL, out);
			putc('\n', out);
		}
	}
}

static void write_json(const struct ynode *n, int depth, FILE *out)
{
	fputs("{\n", out);
	for (size_t i = 0; i < n->n; i++) {
		fprintf(out, "%*s\"%s\": ", 2 * depth + 2, "", n->child[i]->key);
		if (n->child[i]->kind == Y_MAP)
			write_json(n->child[i], depth + 1, out);
		else
			write_text(n->child[i]->text, true, out);
		fputs(i + 1 < n->n ? ",\n" : "\n", out);
	}
	fprintf(out, depth ? "%*s}" : "%*s}\n", 2 * depth, "");
}

/* ---- flags ---- */

/* Writes a value behind its flag; of a list its words: "[a, b]" as "a b". What a shell reads otherwise is quoted. */
static void write_words(const char *text, FILE *out)
{
	putc(' ', out);
	if (*text == '(') {
		fprintf(out, "'%s'", text);
		return;
	}
	for (const char *p = text; *p; p++)
		if (*text != '[' || !strchr("[],", *p))
			putc(*p, out);
}

static void write_flags(const struct ynode *root, const char *launch, FILE *out)
{
	fprintf(out, "\n%s", launch);
	for (size_t i = 0; i < root->n; i++) {
		const struct ynode *n = root->child[i];
		if (strcmp(n->text, "false") == 0)
			continue;
		fputs(" \\\n    --", out);
		for (const char *p = n->key; *p; p++)
			putc(*p == '_' ? '-' : *p, out);
		if (strcmp(n->text, "true") != 0)
			write_words(n->text, out);
	}
	putc('\n', out);
}

/* ---- Python, by the keys that step/import/python.h reads ---- */

/* Returns the name that a mapping calls; NULL: it is none. */
static const char *called(const struct ynode *n)
{
	static const char *const keys[] = {"_from_", "_target_"};
	for (size_t i = 0; i < COUNT(keys); i++)
		if (ynode_get(n, keys[i]))
			return ynode_get(n, keys[i])->text;
	return NULL;
}

static void write_python(const struct ynode *n, FILE *out);

/* Writes NAME(...): arguments without a name are _0 and so on. */
static void write_call(const struct ynode *n, const char *name, FILE *out)
{
	const char *between = "";
	fprintf(out, "%s(", name);
	for (size_t i = 0; i < n->n; i++) {
		const struct ynode *argument = n->child[i];
		if (argument->text == name)
			continue;
		fputs(between, out);
		if (*argument->key != '_')
			fprintf(out, "%s=", argument->key);
		write_python(argument, out);
		between = ", ";
	}
	putc(')', out);
}

/* Writes a value, a call, or a list of calls. */
static void write_python(const struct ynode *n, FILE *out)
{
	static const char *const words[][2] = {{"true", "True"}, {"false", "False"}, {"null", "None"}};
	if (n->kind == Y_MAP && called(n)) {
		write_call(n, called(n), out);
		return;
	}
	for (size_t i = 0; n->kind == Y_MAP && i < n->n; i++) {
		fputs(i ? ", " : "[", out);
		write_python(n->child[i], out);
	}
	if (n->kind == Y_MAP) {
		putc(']', out);
		return;
	}
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(n->text, words[i][0]) == 0) {
			fputs(words[i][1], out);
			return;
		}
	write_text(n->text, true, out);
}

/* Writes "config.a.b = value" for each key and each call below a mapping. */
static void write_assignments(const struct ynode *n, const char *path, FILE *out)
{
	char inner[KEY_VALUE_MAX];
	for (size_t i = 0; i < n->n; i++) {
		const struct ynode *child = n->child[i];
		snprintf(inner, sizeof inner, "%s.%s", path, child->key);
		if (child->text && child->text == called(n))
			continue;
		if (child->kind == Y_MAP && !called(child)) {
			write_assignments(child, inner, out);
			continue;
		}
		fprintf(out, "    %s = ", inner);
		write_python(child, out);
		putc('\n', out);
	}
}

/* Returns whether a call below a mapping is of a name, or of what stands in it: FullAC.Config. */
static bool calls(const struct ynode *n, const char *name)
{
	const char *of = n->kind == Y_MAP ? called(n) : NULL;
	const size_t len = strlen(name);
	if (of && strncmp(of, name, len) == 0 && (of[len] == '.' || !of[len]))
		return true;
	for (size_t i = 0; n->kind == Y_MAP && i < n->n; i++)
		if (calls(n->child[i], name))
			return true;
	return false;
}

/* Writes a function that changes what another returns. */
static void write_function(const struct import_table *t, const struct ynode *root, const char *launch, FILE *out)
{
	fprintf(out, "\n# %s\n", launch);
	for (size_t i = 0; t->imports && i < t->imports->n; i++)
		if (calls(root, t->imports->child[i]->key))
			fprintf(out, "%s\n", t->imports->child[i]->text);
	fprintf(out, "\n\ndef plan():\n    config = %s()\n", called(root));
	write_assignments(root, "config", out);
	fputs("    return config\n", out);
}

/* ---- the whole ---- */

void export_form_write(const struct import_table *t, const struct ynode *root, const char *launch, FILE *out)
{
	if (strcmp(t->writes, "toml") == 0) {
		write_toml(root, "", out);
	} else if (strcmp(t->writes, "json") == 0) {
		write_json(root, 0, out);
	} else if (strcmp(t->writes, "yaml") == 0) {
		putc('\n', out);
		write_yaml(root, 0, out);
	} else if (strcmp(t->writes, "python") == 0) {
		write_function(t, root, launch, out);
	} else {
		write_flags(root, launch, out);
	}
}
