/* Refusals of an imported config, in the words of the text that it comes from. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/import.h"

/* Finds the key of the text that gave a key of CONFIG.yaml its value; NULL: none did. */
static const struct leaf *giver(const struct import *im, enum key_id id)
{
	const struct leaf *found = NULL;
	for (size_t i = 0; i < im->foreign.leaves.n; i++) {
		const struct leaf *l = &im->foreign.leaves.at[i];
		if (im->key[id].given && strcmp(l->path, im->key[id].remark) == 0)
			found = l;
	}
	return found;
}

/* Reads "section.key: what" behind "NAME:line:col: "; KEY_COUNT: the message is none of a key's value. */
static enum key_id read_key(const char *text, const char **what)
{
	char path[ALIAS_MAX];
	const char *mark = strstr(text, IMPORT_WRITTEN), *at = mark ? mark + strlen(IMPORT_WRITTEN) : NULL;
	while (at && (isdigit((unsigned char)*at) || *at == ':'))
		at++;
	const char *end = at && *at == ' ' ? strstr(at, ": ") : NULL;
	if (!end)
		return KEY_COUNT;
	*what = end + 2;
	snprintf(path, sizeof path, "%.*s", (int)(end - at - 1), at + 1);
	return import_key_of(path);
}

/* Finds a key of the text whose value is not in it: one that the message may be about, else the first that is a
 * variable. */
static const struct leaf *find_absent(const struct import *im, const char *text)
{
	const struct leaf *found = NULL;
	for (size_t i = im->foreign.leaves.n; i-- > 0;) {
		const struct leaf *l = &im->foreign.leaves.at[i];
		if (!l->absent || l->verdict != NOT_MODELLED || l->unmet == KEY_COUNT)
			continue;
		if (strstr(text, config_key(l->unmet)->name))
			return l;
		found = strchr(l->value, '$') ? l : found;
	}
	return found;
}

void import_explain(const struct import *im, struct error *refused)
{
	char text[sizeof refused->text];
	const char *what = NULL;
	const enum key_id id = read_key(refused->text, &what);
	const struct import_key *k = id == KEY_COUNT ? NULL : &im->key[id];
	const struct leaf *l = k ? giver(im, id) : NULL, *absent = NULL;
	if (strncmp(refused->text, "--set", strlen("--set")) != 0)
		absent = find_absent(im, refused->text);
	*text = '\0';
	if (l)
		snprintf(text, sizeof text, "%s:%d:%d: %s (%s): %.600s; --set %s=... takes another", l->node->file,
			l->node->line, l->node->col, l->path, config_key(id)->path, what, config_key(id)->path);
	else if (k && strncmp(k->remark, "--", 2) == 0) /* an option's value */
		snprintf(text, sizeof text, "%s %.200s: %.600s", k->remark, k->value, what);
	if (*text)
		snprintf(refused->text, sizeof refused->text, "%s", text);
	if (absent) {
		const size_t n = strlen(refused->text);
		snprintf(refused->text + n, sizeof refused->text - n,
			"; line %d: the value of %.80s = %.60s is not in this file (--set %s=...)", absent->node->line,
			absent->path, absent->value, config_key(absent->unmet)->path);
	}
}
