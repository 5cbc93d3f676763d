#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 63 /* longer words are compared by their first characters: no key of ours is that long */
#define BEGINNING_MIN 3

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static char folded(char c) { return c == '-' ? '_' : (char)tolower((unsigned char)c); }

/* Optimal string alignment: insert, delete, replace and swap of neighbours cost 1 each ("dtpye" is one slip away from
 * "dtype"). */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *previous = rows[1], *current = rows[2];
	size_t n_a = strnlen(a, WORD_MAX), n_b = strnlen(b, WORD_MAX);

	for (size_t j = 0; j <= n_b; j++)
		previous[j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		current[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			char x = folded(a[i - 1]), y = folded(b[j - 1]);
			size_t best = smaller(previous[j], current[j - 1]) + 1;
			best = smaller(best, previous[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y)
				best = smaller(best, before[j - 2] + 1);
			current[j] = best;
		}
		size_t *oldest = before;
		before = previous;
		previous = current;
		current = oldest;
	}
	return previous[n_b];
}

/* Returns the letters and digits with which both begin. */
static size_t beginning(const char *a, const char *b)
{
	size_t n = 0;
	for (; *a && folded(*a) == folded(*b); a++, b++)
		n += isalnum((unsigned char)*a) != 0;
	return n;
}

size_t suggest_find(const char *word, const char *const *candidates, size_t n)
{
	size_t i = 0;
	while (i < n && strcmp(word, candidates[i]) != 0)
		i++;
	return i;
}

bool suggest_same(const char *a, const char *b)
{
	static const char separators[] = "-_";
	for (;; a++, b++) {
		a += strspn(a, separators);
		b += strspn(b, separators);
		if (folded(*a) != folded(*b))
			return false;
		if (!*a)
			return true;
	}
}

bool suggest_is_slip(const char *word, const char *name)
{
	const size_t len = strnlen(name, WORD_MAX);
	return len >= 5 && distance(word, name) <= (len >= 12 ? 2 : 1);
}

const char *suggest_nearest(const char *word, const char *const *candidates, size_t n)
{
	const char *nearest = NULL;
	const size_t found = suggest_find(word, candidates, n), len = strnlen(word, WORD_MAX);
	size_t least = larger(len / 3, 1) + 1, longest = BEGINNING_MIN;
	if (found < n)
		return candidates[found];
	for (size_t i = 0; i < n; i++) {
		const size_t d = distance(word, candidates[i]);
		if (d < least && d < len) {
			nearest = candidates[i];
			least = d;
		}
	}
	if (nearest)
		return nearest;
	for (size_t i = 0; i < n; i++) {
		const size_t d = distance(word, candidates[i]), same = beginning(word, candidates[i]);
		if (same > longest || (same == longest && (!nearest || d < least))) {
			nearest = candidates[i];
			least = d;
			longest = same;
		}
	}
	return nearest;
}

/* ---- as a text ---- */

static void say(struct hint *h, const char *before, const char *text)
{
	const size_t len = strlen(h->text);
	snprintf(h->text + len, sizeof h->text - len, "%s%s", before, text);
}

static void say_names(struct hint *h, const char *what, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		say(h, i ? ", " : what, i ? "" : ": ");
		say(h, "", names[i]);
	}
}

/* Appends "nearest: a", with all candidates that the word begins, else those that contain it. */
static void say_nearest(struct hint *h, const char *word, const char *const *candidates, size_t n)
{
	const char *nearest = suggest_nearest(word, candidates, n);
	const size_t len = strlen(word);
	for (size_t inside = 0; inside < 2 && !*h->text; inside++)
		for (size_t i = 0; i < n && len >= 2 + inside; i++) {
			const char *at = strcasestr(candidates[i], word);
			if (at && (inside || at == candidates[i]))
				say(h, *h->text ? ", " : "nearest: ", candidates[i]);
		}
	if (!*h->text && nearest)
		say(h, "nearest: ", nearest);
}

/* Puts the text in brackets, unless there is none; one that is too long is cut. */
static struct hint bracketed(const struct hint *inner)
{
	struct hint h = {""};
	if (*inner->text)
		snprintf(h.text, sizeof h.text, " (%.*s)", (int)sizeof h.text - 4, inner->text);
	return h;
}

struct hint suggest_names(const char *what, const char *const *names, size_t n)
{
	struct hint h = {""};
	say_names(&h, what, names, n);
	return bracketed(&h);
}

struct hint suggest(const char *word, const char *const *candidates, size_t n, const char *lister)
{
	struct hint h = {""};
	say_nearest(&h, word, candidates, n);
	if (!*h.text && n == 0)
		say(&h, "", "there are none");
	else if (!*h.text && n <= SUGGEST_ALL)
		say_names(&h, "known", candidates, n);
	else if (!*h.text && lister)
		snprintf(h.text, sizeof h.text, "`stepsim %s` lists them", lister);
	return bracketed(&h);
}

struct hint suggest_known(const char *word, const char *const *candidates, size_t n)
{
	struct hint h = {""};
	say_nearest(&h, word, candidates, n);
	say(&h, "", *h.text ? "; " : "");
	say_names(&h, "known", candidates, n);
	return bracketed(&h);
}
