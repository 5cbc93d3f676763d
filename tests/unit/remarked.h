/* Whether a graph has a remark with this text in it; prints all of them where it has not. */
#ifndef STEPSIM_TESTS_UNIT_REMARKED_H
#define STEPSIM_TESTS_UNIT_REMARKED_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "topology/graph/graph.h"

static inline bool remarked(const struct graph *g, bool contradiction, const char *text)
{
	for (size_t i = 0; i < g->remark.n; i++)
		if (g->remark.at[i].contradiction == contradiction && strstr(g->remark.at[i].text, text))
			return true;
	for (size_t i = 0; i < g->remark.n; i++)
		fprintf(stderr, "looked for '%s', found '%s'\n", text, g->remark.at[i].text);
	return false;
}

static inline void silent(const char *what, const struct graph *g)
{
	for (size_t i = 0; i < g->remark.n; i++)
		fprintf(stderr, "%s: unexpected: %s\n", what, g->remark.at[i].text);
	CU_ASSERT_EQUAL(g->remark.n, 0);
}

#endif
