/* Discovery from the dumps of recorded machines (../shared/machines, where it is there). */
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "tests/unit/remarked.h"
#include "topology/discover/discover.h"
#include "topology/graph/route.h"

static char home[PATH_MAX_LEN];

static const char *recorded(char path[PATH_MAX_LEN * 2], const char *kind, const char *name)
{
	const char *shared = getenv("STEPSIM_SHARED");
	if (shared)
		snprintf(path, PATH_MAX_LEN * 2, "%s/machines/%s/%s", shared, kind, name);
	else
		snprintf(path, PATH_MAX_LEN * 2, "%s/../shared/machines/%s/%s", home, kind, name);
	return access(path, R_OK) == 0 ? path : NULL;
}

static struct graph *dumped(const char *smi, const char *nccl, const char *hwloc)
{
	struct dumps d = {.smi = smi, .nccl_xml = nccl, .hwloc_xml = hwloc};
	struct graph *g = NULL;
	struct error e = {0};
	CU_ASSERT_TRUE_FATAL(smi || nccl || hwloc); /* else it would be this host that is read */
	CU_ASSERT_EQUAL(discover(&d, &g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return g;
}

/* Healthy machines get no remark. */
static void test_recorded(void)
{
	static const char *const healthy[] = {"07-dgx1-v100-tabs.txt", "58-sglang-h200-8-8nic-offset-names.txt",
		"65-sxm-8-nv18-10nic-ansi-tabs.txt", "09-leonardo-a100-4-mlx5-indented.txt",
		"10-a100-4-reversed-numa.txt", "25-princeton-traverse-p9-v100.txt", "37-a100-sxm-4-of-8-vm-nic.txt",
		"77-litgpt-a100-8-10nic.txt", "83-gke-8-nv18-8nic-collapsed.txt"};
	static const char *const noted[][2] = {{"21-gb200-4-8nic.txt", "NUMA affinity"},
		{"22-gh200-4-nv6.txt", "NUMA affinity"}, {"39-h200-nvl-4-annotated.txt", "NIC rows"},
		{"52-dgxh100-8-12nic-glued-cells.txt", "NIC rows"}, {"40-a800-sxm-8-nv8-8nic-vm-trunc.txt", "NIC rows"},
		{"63-runpod-a100-sxm-2-nv12.txt", "a bridge, or two GPUs of a machine with NVLink switches"}};
	char path[PATH_MAX_LEN * 2], other[PATH_MAX_LEN * 2];
	struct graph *g;
	if (!recorded(path, "smi", healthy[0])) {
		puts("recorded machines: skipped, ../shared/machines is not there");
		return;
	}
	for (size_t i = 0; i < COUNT(healthy); i++) {
		g = dumped(recorded(path, "smi", healthy[i]), NULL, NULL);
		silent(healthy[i], g);
		CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "nvidia-smi topo");
		graph_destroy(g);
	}
	/* the reader tells of lists of NUMA nodes and of NIC rows that were cut; beyond that there is nothing to say */
	for (size_t i = 0; i < COUNT(noted); i++) {
		g = dumped(recorded(path, "smi", noted[i][0]), NULL, NULL);
		CU_ASSERT_EQUAL(g->remark.n, 1);
		CU_ASSERT_TRUE(remarked(g, false, noted[i][1]));
		graph_destroy(g);
	}
	/* every GPU on one socket, the only NIC on the other */
	g = dumped(recorded(path, "smi", "30-p40-8-pix-pxb-soc.txt"), NULL, NULL);
	CU_ASSERT_TRUE(remarked(g, false, "GPU0-7 reach no NIC without crossing to another CPU socket or NUMA node"));
	graph_destroy(g);
	/* two sources of which the first has the tree */
	g = dumped(recorded(path, "smi", "65-sxm-8-nv18-10nic-ansi-tabs.txt"),
		recorded(other, "nccl_xml", "yccl-topo_h800.xml"), NULL);
	CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "nccl xml");
	CU_ASSERT_EQUAL(g->gpu.n, 8);
	CU_ASSERT_TRUE(remarked(g, true,
		"GPU0 has 8 NVLinks according to nccl xml, 18 according to nvidia-smi topo, and other GPUs differ as "
		"well: nvidia-smi topo is believed"));
	graph_destroy(g);
}

int main(void)
{
	static const struct unit_test tests[] = {{"recorded machines", test_recorded}};
	struct error e = {0};
	if (path_home(home, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	return unit_main("recorded machines", tests, COUNT(tests));
}
