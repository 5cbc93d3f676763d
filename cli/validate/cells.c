/* What the words of a table's columns mean: names that publications and frameworks use, in terms of the config. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/phrase.h"
#include "base/suggest.h"
#include "cli/validate/lists.h"

#define CELL 96

static bool means_same(const struct meaning *a, const struct meaning *b)
{
	return strcmp(a->value ? a->value : "", b->value ? b->value : "") == 0 &&
	       strcmp(a->more ? a->more : "", b->more ? b->more : "") == 0;
}

/* The nearest word; where none is near, the first word of each meaning. */
static struct hint hint_of(const struct column_words *c, const char *cell)
{
	VEC(const char *) names = {0}, known = {0};
	struct hint h = {""};
	bool room = true;
	for (size_t i = 0; i < c->word.n && room; i++) {
		size_t first = 0;
		while (!means_same(&c->word.at[first].means, &c->word.at[i].means))
			first++;
		room = vec_push(&names, c->word.at[i].name) && (first != i || vec_push(&known, c->word.at[i].name));
	}
	if (room)
		h = suggest_nearest(cell, names.at, names.n) ? suggest(cell, names.at, names.n, NULL)
		                                             : suggest_names("known", known.at, known.n);
	vec_free(&names);
	vec_free(&known);
	return h;
}

/* What a blank cell means. Megatron's optimizers that are distributed cut their states, as zero1 does. */
static struct meaning blank_of(const struct csv *t, size_t row, const struct column_words *c)
{
	const bool distributed = strncasecmp(csv_get(t, row, "optimizer"), "distributed", 11) == 0;
	const bool cut = strcmp(c->column, "sharding") == 0 && distributed;
	return (struct meaning){cut ? "zero1" : c->blank, NULL};
}

enum status cell_read(const struct csv *t, size_t row, const char *column, struct meaning *out, struct error *e)
{
	const char *cell = csv_get(t, row, column);
	const struct word_lists *lists;
	const struct column_words *c = NULL;
	char plain[CELL]; /* "naive (fused softmax)" is naive */
	size_t most = 0;
	if (word_lists_load(&lists, e))
		return e->status;
	for (size_t i = 0; i < lists->column.n; i++)
		if (strcmp(lists->column.at[i].column, column) == 0)
			c = &lists->column.at[i];
	if (!c)
		return error_set(e, ST_INPUT, "configs/words/cells.yaml: the words of %s are missing", column);
	*out = blank_of(t, row, c);
	if (!*cell)
		return ST_OK;
	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(cell, "("), cell);
	for (size_t i = 0; i < c->word.n; i++) {
		const struct word *w = &c->word.at[i];
		const size_t same = phrase_match(w->name, plain, !c->goes_on);
		if (same > most) {
			most = same;
			*out = w->means;
		}
	}
	return most ? ST_OK : error_set(e, ST_INPUT, "%s: '%.40s' is not known%s", column, cell, hint_of(c, cell).text);
}
