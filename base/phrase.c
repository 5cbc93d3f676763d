#include "base/phrase.h"

#include <ctype.h>
#include <string.h>

#define GAP "..." /* in a name: anything may stand here */

static const char *pass_separators(const char *s) { return s + strspn(s, "-_ "); }

static const char *pass_letters(const char *s)
{
	while (isalpha((unsigned char)*s))
		s++;
	return s;
}

static bool has_words(const char *s)
{
	while (*s && !isalnum((unsigned char)*s))
		s++;
	return *s != '\0';
}

/* Returns where the word goes on behind the first `len` characters of `part`, or NULL where it does not begin with
 * them; *same counts the characters. */
static const char *pass(const char *word, const char *part, size_t len, size_t *same)
{
	const char *end = part + len;
	for (;; word++, part++, ++*same) {
		part = pass_separators(part);
		if (part >= end)
			return word;
		word = pass_separators(word);
		if (tolower((unsigned char)*word) != tolower((unsigned char)*part))
			return NULL;
	}
}

/* Returns where the part is found at the beginning of a word, and what is behind that word; NULL: nowhere. *passed:
 * words were passed over. */
static const char *find_later(const char *word, const char *part, size_t len, size_t *same, bool *passed)
{
	for (bool inside = false; *word; word++) {
		size_t n = 0;
		const char *behind = inside ? NULL : pass(word, part, len, &n);
		if (behind) {
			*same += n;
			return pass_letters(behind); /* "compile" is in "compiled" */
		}
		inside = isalnum((unsigned char)*word);
		*passed |= inside;
	}
	return NULL;
}

size_t phrase_match(const char *name, const char *text, bool whole)
{
	const char *gap = strstr(name, GAP);
	size_t same = 0;
	bool passed = false;
	const char *word = pass(text, name, gap ? (size_t)(gap - name) : strlen(name), &same);
	if (!word || isalpha((unsigned char)*word))
		return 0;
	while (gap && word) {
		const char *part = gap + strlen(GAP);
		gap = strstr(part, GAP);
		word = find_later(word, part, gap ? (size_t)(gap - part) : strlen(part), &same, &passed);
	}
	if (!word || (whole && (passed || has_words(word))))
		return 0;
	return same;
}
