/* The nearest valid name, for messages about unknown keys and values. Letters match in either case, '-' and '_' alike.
 */
#ifndef STEPSIM_BASE_SUGGEST_H
#define STEPSIM_BASE_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the index of the candidate that is `word` exactly; n without one. */
size_t suggest_find(const char *word, const char *const *candidates, size_t n);

/* Returns whether both are the same word but for case, '-' and '_', which are passed over. */
bool suggest_same(const char *a, const char *b);

/* Returns whether `word` is this name with one or two slips of the pen: of names of 5 letters and more, an edit
 * distance of 1, of 12 and more, of 2. */
bool suggest_is_slip(const char *word, const char *name);

/* Returns the nearest candidate, or NULL where none is near: the one at the smallest edit distance, of at most a third
 * of the word's length (at least 1); else that with the longest common beginning, of 3 letters or digits at least.
 * Ties: the first. */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t n);

/* What a message says after the words "unknown ...": a space and a text in brackets, or nothing. */
#define SUGGEST_MAX 288
#define SUGGEST_ALL 10 /* so many candidates are all named */
struct hint {
	char text[SUGGEST_MAX];
};

/* Returns " (nearest: a)", or " (nearest: a, b, c)" where the word begins several candidates, or else is a part of
 * several. Where none is near, returns " (known: a, b)" if they are few, else " (`stepsim LISTER` lists them)"; "" if
 * `lister` is NULL too. */
struct hint suggest(const char *word, const char *const *candidates, size_t n, const char *lister);

/* The same with all candidates in any case: " (nearest: a; known: a, b)". For candidates that are few. */
struct hint suggest_known(const char *word, const char *const *candidates, size_t n);

/* Returns " (WHAT: a, b)"; "" without names. */
struct hint suggest_names(const char *what, const char *const *names, size_t n);

#endif
