/* Systems from a text. */
#ifndef STEPSIM_TESTS_UNIT_SYSTEM_CASE_H
#define STEPSIM_TESTS_UNIT_SYSTEM_CASE_H

#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "topology/catalogue/system.h"
#include "topology/graph/route.h"

static inline struct system_spec load(const char *text)
{
	struct system_spec s = {0};
	struct error e = {0};
	enum status st = system_load(text, &s, &e);
	if (st)
		fprintf(stderr, "%s: %s\n", text, e.text);
	CU_ASSERT_EQUAL_FATAL(st, ST_OK);
	return s;
}

/* The caller destroys it. */
static inline struct graph *graph_of(const struct system_spec *s, int64_t gpus)
{
	struct graph *g = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(system_graph(s, gpus, &g, &e), ST_OK);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	if (e.text[0])
		fprintf(stderr, "%s: %s\n", s->name, e.text);
	return g;
}

static inline bool words_are(const struct graph *g, const char *row, int32_t from)
{
	char word[GRAPH_WORD], all[256] = "";
	struct error e = {0};
	for (size_t i = 0; i < graph_entries(g); i++) {
		CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[from], graph_entry(g, i), word, &e), ST_OK);
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", word);
	}
	if (strcmp(all, row))
		fprintf(stderr, "expected %s, got %s\n", row, all);
	return strcmp(all, row) == 0;
}

static inline void refuses(const char *text, const char *complaint)
{
	struct system_spec s;
	struct error e = {0};
	CU_ASSERT_EQUAL(system_load(text, &s, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, complaint));
	if (!strstr(e.text, complaint))
		fprintf(stderr, "%s: %s\n", text, e.text);
}

#endif
