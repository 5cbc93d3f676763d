/* A config of a text and of sets in one string, as tests write them: "train.dtype=bf16 parallel.tensor=2". */
#ifndef STEPSIM_TESTS_UNIT_PARSE_WITH_H
#define STEPSIM_TESTS_UNIT_PARSE_WITH_H

#include <stdio.h>
#include <string.h>

#include "step/config/config.h"

#define SETS_MOST 16

/* Parses; `file` is what errors name. */
static inline enum status parse_with(const char *text, const char *file, const char *sets, struct config *out,
	struct error *e)
{
	char copy[512];
	const char *one[SETS_MOST];
	size_t n = 0;
	snprintf(copy, sizeof copy, "%s", sets);
	for (char *at = strtok(copy, " "); at && n < SETS_MOST; at = strtok(NULL, " "))
		one[n++] = at;
	return config_parse(text, strlen(text), file, one, n, out, e);
}

#endif
