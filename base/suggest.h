/* The nearest valid name, for messages about unknown keys and values. */
#ifndef STEPSIM_BASE_SUGGEST_H
#define STEPSIM_BASE_SUGGEST_H

#include <stddef.h>

/* The candidate with the smallest edit distance (case-insensitive, '-' and '_' alike; ties: the first), always one when
 * n > 0; NULL when n is 0. */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t n);

/* The same as a text; a word that begins several candidates ("h100") names them all: "h100-nvl, h100-pcie, h100-sxm".
 * At most size - 1 characters; returns buf. */
char *suggest_text(const char *word, const char *const *candidates, size_t n, char *buf, size_t size);

#endif
