/* The nearest valid name, for messages about unknown keys and values. */
#ifndef STEPSIM_BASE_SUGGEST_H
#define STEPSIM_BASE_SUGGEST_H

#include <stddef.h>

/* The candidate with the smallest edit distance (case-insensitive, '-' and '_' alike; ties: the first), always one when n > 0; NULL when n is 0. */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t n);

#endif
