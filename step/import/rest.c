/* Verdicts of the keys that no row of a framework's table names. */
#include <fnmatch.h>
#include <string.h>

#include "base/suggest.h"
#include "step/import/rows.h"

/* Returns the length of the longest pattern that the key fits; 0 without one. */
static size_t fits(const struct import_reason *r, const char *path)
{
	size_t longest = 0;
	for (size_t i = 0; i < r->patterns->n; i++) {
		const char *pattern = r->patterns->child[i]->text, *last = strrchr(path, '.');
		const size_t len = strlen(pattern);
		if (len > longest && (fnmatch(pattern, path, 0) == 0 || (last && fnmatch(pattern, last + 1, 0) == 0)))
			longest = len;
	}
	return longest;
}

static const struct import_reason *reason_of(const struct import *im, const char *path)
{
	const struct import_reason *best = NULL;
	size_t longest = 0;
	for (size_t i = 0; i < im->table.reasons.n; i++) {
		const size_t len = fits(&im->table.reasons.at[i], path);
		if (len > longest) {
			longest = len;
			best = &im->table.reasons.at[i];
		}
	}
	return best;
}

/* Returns whether a row takes keys of this name from any table of the text. */
static bool is_row(const struct import *im, const char *name)
{
	const char *one;
	for (size_t i = 0; i < im->table.rows.n; i++)
		for (size_t k = 0; (one = import_row_name(&im->table.rows.at[i], k)); k++)
			if (strcmp(one, name) == 0)
				return true;
	return false;
}

/* Finds the key of the same name in another table that a row takes. */
static const struct leaf *taken_of_that_name(const struct import *im, const struct leaf *l)
{
	const char *dot = strrchr(l->path, '.'), *name = dot ? dot + 1 : l->path;
	for (size_t i = 0; is_row(im, name) && i < im->foreign.leaves.n; i++) {
		const struct leaf *other = &im->foreign.leaves.at[i];
		const char *last = strrchr(other->path, '.');
		if (other->verdict == TAKEN && strcmp(last ? last + 1 : other->path, name) == 0)
			return other;
	}
	return NULL;
}

/* Finds the key of a row that a name is a slip of: its last word, or the whole. */
static const char *slip_of(const struct import *im, const char *path)
{
	const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path, *found = NULL, *one;
	for (size_t i = 0; !found && i < im->table.rows.n; i++)
		for (size_t k = 0; !found && (one = import_row_name(&im->table.rows.at[i], k)); k++) {
			const char *last = strrchr(one, '.');
			found = suggest_is_slip(name, last ? last + 1 : one) ? one : NULL;
		}
	return found;
}

static void judge_unknown(const struct import *im, struct leaf *l)
{
	l->unknown = *l->path != '_'; /* what could not be read of the text is no key */
	l->near = l->unknown ? slip_of(im, l->path) : NULL;
	if (l->near)
		leaf_judge(l, NOT_MODELLED, "not known to stepsim (nearest: %s)", l->near);
	else
		leaf_judge(l, NOT_MODELLED, "not known to stepsim");
}

void rows_judge_rest(struct import *im)
{
	for (size_t i = 0; i < im->foreign.leaves.n; i++) {
		struct leaf *l = &im->foreign.leaves.at[i];
		const struct leaf *last = foreign_find(&im->foreign, l->path);
		if (l->verdict == LEFT && last && last != l && strcmp(last->path, l->path) == 0)
			leaf_judge(l, NO_EFFECT, "given again in line %d", last->node->key_line);
		const struct import_reason *r = l->verdict == LEFT ? reason_of(im, l->path) : NULL;
		if (r && !r->modelled && leaf_is_off(l->value))
			leaf_judge(l, NO_EFFECT, "off");
		else if (r)
			leaf_judge(l, r->modelled ? NO_EFFECT : NOT_MODELLED, "%s", r->why);
		if (l->verdict == LEFT && ynode_is_null(l->node))
			leaf_judge(l, NO_EFFECT, "empty");
		const struct leaf *same = l->verdict == LEFT ? taken_of_that_name(im, l) : NULL;
		if (same)
			leaf_judge(l, strcmp(same->value, l->value) == 0 ? NO_EFFECT : NOT_MODELLED, "%s counts",
				same->path);
		if (l->verdict == LEFT)
			judge_unknown(im, l);
	}
}
