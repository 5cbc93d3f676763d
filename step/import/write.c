/* The CONFIG.yaml of an import: its keys with their sources, then what became of each key of the text. */
#include <stdlib.h>
#include <string.h>

#include "base/memory_stream.h"
#include "base/table.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "step/import/import.h"

#define PAGE 100 /* characters of a line */

static bool needs_quotes(const char *text) { return !*text || strpbrk(text, ": '\"#{}[],&*?|<>=!%@`\\") != NULL; }

static void write_value(const struct config_key *k, const char *text, char out[2 * KEY_VALUE_MAX])
{
	size_t n = 0;
	if (k->type != KEY_TEXT || !needs_quotes(text)) {
		snprintf(out, 2 * KEY_VALUE_MAX, "%s", text);
		return;
	}
	out[n++] = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			out[n++] = '\'';
		out[n++] = *text;
	}
	out[n++] = '\'';
	out[n] = '\0';
}

static void write_keys(const struct import *im, FILE *out)
{
	char value[2 * KEY_VALUE_MAX];
	const char *section = "";
	for (int i = 0; i < KEY_COUNT; i++) {
		const struct config_key *k = config_key((enum key_id)i);
		const bool missing = im->lacks_model && i == KEY_model_preset;
		if (!import_has(im, (enum key_id)i) && !missing)
			continue;
		if (strcmp(k->section, section) != 0)
			fprintf(out, "%s:\n", section = k->section);
		if (missing) {
			fprintf(out, "  %s: # not in this file: a name of `stepsim list models`\n", k->name);
			continue;
		}
		write_value(k, im->key[i].value, value);
		fprintf(out, "  %s: %s # %s\n", k->name, value, im->key[i].remark);
	}
}

/* A table's cells are separated by '|'. */
static const char *cell(const char *text, char buf[WHY_MAX])
{
	snprintf(buf, WHY_MAX, "%s", text);
	utf8_repair(buf);
	for (char *p = buf; *p; p++)
		*p = *p == '|' || *p == '\n' ? '/' : *p;
	return buf;
}

#define VALUE_SHOWN 24

static enum status write_verdicts(const struct import *im, struct table *t, struct error *e)
{
	static const char *const words[VERDICT_COUNT] = {"?", "taken", "no effect", "not modelled"};
	enum status st = ST_OK;
	for (size_t i = 0; i < im->foreign.leaves.n && !st; i++) {
		const struct leaf *l = &im->foreign.leaves.at[i];
		char path[WHY_MAX], value[WHY_MAX], why[WHY_MAX], line[16];
		cell(l->value, value);
		if (wrap_characters(value) > VALUE_SHOWN) {
			value[VALUE_SHOWN - 3] = '\0';
			utf8_repair(value);
			strcat(value, "...");
		}
		if (strcmp(l->node->file, ydoc_root(im->foreign.doc)->file) == 0)
			snprintf(line, sizeof line, "%d", l->node->key_line ? l->node->key_line : l->node->line);
		else
			snprintf(line, sizeof line, "-"); /* of a file that the text includes */
		st = table_row(t, e, "%s|%s|%s = %s%s%s", line, words[l->verdict], cell(l->path, path), value,
			l->verdict == TAKEN ? ": as " : ": ", cell(l->why, why));
	}
	return st;
}

/* Prints a text with "# " before each line. */
static void comment(const char *text, FILE *out)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		fprintf(out, "#%s%.*s\n", end > text ? " " : "", (int)(end - text), text);
	}
}

enum status import_write(const struct import *im, FILE *out, struct error *e)
{
	size_t count[VERDICT_COUNT], len = 0;
	char *text = NULL;
	struct table *t = table_create("line|<it is|<key, value, and how or why");
	FILE *memory = t ? memory_stream(&text, &len) : NULL;
	enum status st = memory ? write_verdicts(im, t, e) : error_nomem(e, "the remarks");
	import_count(im, count);
	if (!st) {
		fprintf(out,
			"# From %s, a config of %s.\n"
			"# Keys: %zu. Taken: %zu. No effect on a step's time: %zu. Not modelled: %zu.\n",
			im->name, im->table.title, im->foreign.leaves.n, count[TAKEN], count[NO_EFFECT],
			count[NOT_MODELLED]);
		write_keys(im, out);
		fprintf(out, "\n# What becomes of each key of %s:\n", im->name);
		table_print_within(t, PAGE - 2, memory);
	}
	if (memory && !memory_stream_close(memory) && !st)
		st = error_nomem(e, "the remarks");
	if (!st)
		comment(text, out);
	free(text);
	table_destroy(t);
	return st;
}
