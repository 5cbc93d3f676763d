#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 63 /* longer words are compared by their first characters: no key of ours is that long */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

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

const char *suggest_nearest(const char *word, const char *const *candidates, size_t n)
{
	const char *nearest = NULL;
	size_t least = 0;
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, candidates[i]) == 0)
			return candidates[i];
	for (size_t i = 0; i < n; i++) {
		size_t d = distance(word, candidates[i]);
		if (!nearest || d < least) {
			nearest = candidates[i];
			least = d;
		}
	}
	return nearest;
}

char *suggest_text(const char *word, const char *const *candidates, size_t n, char *buf, size_t size)
{
	size_t len = strlen(word), used = 0;
	const char *nearest = suggest_nearest(word, candidates, n);
	snprintf(buf, size, "%s", nearest ? nearest : "");
	for (size_t i = 0; i < n && len >= 2 && used < size; i++)
		if (strncasecmp(candidates[i], word, len) == 0)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", candidates[i]);
	return buf;
}
