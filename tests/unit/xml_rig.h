/* Shared by the tests of the XML readers: the cases of tests/xml, and look-ups in the graph that was read. */
#ifndef STEPSIM_TESTS_UNIT_XML_RIG_H
#define STEPSIM_TESTS_UNIT_XML_RIG_H

#include <stdlib.h>

#include "base/paths.h"
#include "tests/unit/harness.h"
#include "topology/discover/discover.h"

#define SIZE_MAX_B ((size_t)64 << 20)

typedef enum status xml_reader(const char *text, size_t len, const char *name, struct graph **out, struct error *e);

static inline struct graph *read_xml_case(xml_reader *read, const char *name)
{
	char path[256];
	char *text = NULL;
	size_t len = 0;
	struct graph *g = NULL;
	struct error e = {0};
	snprintf(path, sizeof path, "tests/xml/%s", name);
	CU_ASSERT_EQUAL_FATAL(file_read(path, SIZE_MAX_B, &text, &len, &e), ST_OK);
	enum status st = read(text, len, name, &g, &e);
	free(text);
	if (st)
		fprintf(stderr, "%s\n", e.text);
	CU_ASSERT_EQUAL_FATAL(st, ST_OK);
	if (topology_check(g, &e))
		fprintf(stderr, "%s: %s\n", name, e.text);
	CU_ASSERT_EQUAL(e.status, ST_OK);
	return g;
}

static inline int vertices(const struct graph *g, enum vertex_kind kind)
{
	int n = 0;
	for (size_t i = 0; i < g->vertex.n; i++)
		n += g->vertex.at[i].kind == kind;
	return n;
}

static inline int links(const struct graph *g, enum link_kind kind, int *width)
{
	int n = 0;
	*width = 0;
	for (size_t i = 0; i < g->link.n; i++) {
		n += g->link.at[i].kind == kind;
		*width += g->link.at[i].kind == kind ? g->link.at[i].width : 0;
	}
	return n;
}

static inline const struct vertex *at(const struct graph *g, const char *label)
{
	int32_t i = graph_find_label(g, label);
	CU_ASSERT_TRUE_FATAL(i >= 0);
	return &g->vertex.at[i];
}

static inline const struct link *between(const struct graph *g, const char *a, const char *b)
{
	struct link *l = graph_link(g, graph_find_label(g, a), graph_find_label(g, b), LINK_KINDS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l);
	return l;
}

#endif
