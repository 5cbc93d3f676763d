/* KEY_SET: some of a key's words, as a list, or as one text with blanks or commas between them. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "step/config/keys.h"

#define SET_WORDS 16

static enum status add(const struct config_key *k, const char *text, int *set, struct error *inner)
{
	const char *known[SET_WORDS];
	const struct word *word = key_word_find(k, text);
	for (size_t i = 0; i < k->n_words; i++)
		known[i] = k->words[i].text;
	if (!word)
		return error_set(inner, ST_INPUT, "unknown value \"%.60s\"%s", text,
			suggest_known(text, known, k->n_words).text);
	*set |= word->value;
	return ST_OK;
}

enum status set_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	int set = 0;
	char words[KEY_VALUE_MAX];
	enum status st = ST_OK;
	if (n->kind == Y_MAP)
		return error_set(inner, ST_INPUT, "expected a list of words, got a mapping");
	for (size_t i = 0; n->kind == Y_SEQ && i < n->n && !st; i++) {
		const char *text;
		struct ynode item = *n->child[i];
		item.file = "";
		if (!(st = ynode_string(&item, &text, inner)))
			st = add(k, text, &set, inner);
	}
	if (n->kind == Y_SCALAR) {
		char *save = NULL;
		snprintf(words, sizeof words, "%s", n->text);
		for (char *w = strtok_r(words, " ,[]", &save); w && !st; w = strtok_r(NULL, " ,[]", &save))
			st = add(k, w, &set, inner);
	}
	if (!st)
		key_set_number(k, c, set);
	return st;
}

void set_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX])
{
	const int set = (int)key_number(k, c);
	size_t at = (size_t)snprintf(buf, KEY_VALUE_MAX, "[");
	for (size_t i = 0; i < k->n_words; i++)
		if (set & k->words[i].value)
			at += (size_t)snprintf(buf + at, KEY_VALUE_MAX - at, "%s%s", at > 1 ? ", " : "",
				k->words[i].text);
	snprintf(buf + at, KEY_VALUE_MAX - at, "]");
}

json_t *set_json(const struct config_key *k, const struct config *c)
{
	const int set = (int)key_number(k, c);
	json_t *list = json_array();
	for (size_t i = 0; list && i < k->n_words; i++)
		if (set & k->words[i].value && json_array_append_new(list, json_string(k->words[i].text))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}
