/* Clusters of equal hosts, and groups on them. */
#ifndef STEPSIM_TESTS_UNIT_GROUP_CASE_H
#define STEPSIM_TESTS_UNIT_GROUP_CASE_H

#include "tests/unit/graph_rig.h"
#include "topology/graph/group.h"

#define NEAR(x, GB_per_s) CU_ASSERT_DOUBLE_EQUAL((x) / 1e9, GB_per_s, 1e-6)

static inline struct cluster *hosts(struct graph *g, int64_t n)
{
	struct cluster *c = cluster_create(4e-6);
	struct error e = {0};
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	CU_ASSERT_EQUAL(cluster_add(c, g, n, NULL, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return c;
}

static inline struct group of(const struct cluster *c, const int64_t *devices, size_t n)
{
	struct group g = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL(cluster_group(c, devices, n, &g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return g;
}

/* Devices 0 to n - 1, step apart. */
static inline struct group first(const struct cluster *c, int64_t n, int64_t step)
{
	int64_t devices[128];
	for (int64_t i = 0; i < n; i++)
		devices[i] = i * step;
	return of(c, devices, (size_t)n);
}

static inline struct group pair(const struct cluster *c, int64_t a, int64_t b) { return of(c, (int64_t[]){a, b}, 2); }

static inline struct group mesh(const struct cluster *c, int64_t size, int64_t stride)
{
	struct group g = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL(cluster_mesh_groups(c, size, stride, &g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return g;
}

#endif
