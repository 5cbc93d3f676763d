/* Graphs, routes and groups when memory runs out. */
#include "base/array.h"
#include "tests/unit/failing_malloc.h"
#include "tests/unit/graph_rig.h"
#include "topology/graph/group.h"
#include "topology/graph/route.h"

static struct graph *host; /* made before allocations fail */
static struct cluster *two;

static enum status there_and_back(struct error *e)
{
	struct graph *g = NULL;
	json_t *j = graph_json(host);
	enum status st = j ? graph_parse(j, &g, e) : error_nomem(e, "JSON");
	json_decref(j);
	graph_destroy(g);
	return st;
}

static enum status check(struct error *e) { return topology_check(host, e); }

static enum status word(struct error *e)
{
	char text[GRAPH_WORD];
	return graph_word(host, host->gpu.at[0], host->gpu.at[7], text, e);
}

static enum status add(struct error *e)
{
	struct graph *g = NULL;
	struct cluster *c = cluster_create(1e-6);
	json_t *j = c ? graph_json(host) : NULL;
	enum status st = j ? graph_parse(j, &g, e) : error_nomem(e, "a cluster");
	if (!st)
		st = cluster_add(c, g, 1, "first", e);
	json_decref(j);
	cluster_destroy(c);
	return st;
}

static enum status way(struct error *e)
{
	struct cluster_route r;
	return cluster_route(two, 0, 15, &r, e);
}

static enum status group(struct error *e)
{
	struct group g;
	return cluster_group(two, (int64_t[]){0, 1, 2, 5, 6, 9, 11, 12, 15}, 9, &g, e);
}

static enum status mesh(struct error *e)
{
	struct group g;
	return cluster_mesh_groups(two, 4, 4, &g, e);
}

static void set_up(bool nvlinks)
{
	host = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 2,
		.pcie_gen = 4,
		.nics = 2,
		.nic_bits_per_s = 1e11,
		.no_peer = true,
		.cpu_model = "EPYC"});
	for (int32_t i = 0; i < 8 && nvlinks; i++)
		rig_join(host, i, (i + 1) % 8, LINK_NVLINK, 2, rate_nvlink(70));
	struct graph *g = NULL;
	json_t *j = graph_json(host);
	CU_ASSERT_EQUAL_FATAL(graph_parse(j, &g, NULL), ST_OK);
	json_decref(j);
	two = cluster_create(1e-6);
	CU_ASSERT_EQUAL_FATAL(cluster_add(two, g, 2, NULL, NULL), ST_OK);
}

static void test_each(void)
{
	for (int nvlinks = 0; nvlinks < 2; nvlinks++) {
		set_up(nvlinks);
		fail_each(there_and_back, 20, true);
		fail_each(check, 4, true);
		fail_each(word, 6, true);
		fail_each(add, 20, true);
		fail_each(way, 10, true);
		fail_each(group, 20, true);
		fail_each(mesh, 20, true);
		graph_destroy(host);
		cluster_destroy(two);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {{"each operation", test_each}};
	if (!allocator_is_ours()) {
		puts("topology: out of memory: skipped, a tool has replaced the allocator");
		return 0;
	}
	return unit_main("topology: out of memory", tests, COUNT(tests));
}
