#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/merge_case.h"
#include "topology/discover/discover.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

static struct graph *finished(struct graph *g, const char *text)
{
	struct error e = {0};
	if (text)
		query(g, text);
	CU_ASSERT_EQUAL(graph_finish(g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	sound(g);
	return g;
}

static struct link *slot(const struct graph *g, size_t i)
{
	for (size_t k = 0; k < g->link.n; k++)
		if (g->link.at[k].kind == LINK_PCIE &&
			(g->link.at[k].a == g->gpu.at[i] || g->link.at[k].b == g->gpu.at[i]))
			return &g->link.at[k];
	return NULL;
}

#define CARD(index, bus, name, cc, pcie, clocks, power, mask) \
	index ", 00000000:" bus ":00.0, " name ", 24564 MiB, " cc ", " pcie ", " clocks ", " power ", " mask "\n"
#define AT_WORK "2520 MHz, 3105 MHz"

#define AT_REST "210 MHz, 3105 MHz"

static void test_finish(void)
{
	struct graph *g = host(SAID_BY_HWLOC, 4, 2, true);
	mesh(g, 4);
	finished(g, HEADER A100("0", "1B") A100("1", "3D") A100("2", "9B") A100("3", "BD"));
	silent("a merged graph", g);
	CU_ASSERT_STRING_EQUAL(gpu(g, 0)->gpu.device, "a100-sxm-80");
	CU_ASSERT_FALSE(gpu(g, 0)->gpu.no_peer);
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.nvlinks, 12);
	CU_ASSERT_DOUBLE_EQUAL(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK)->Bps, 80e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK)->datasheet_Bps, 100e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(slot(g, 0)->Bps, 24e9, 1);
	graph_destroy(g);
	/* nobody names the GPUs: 12 links at each are A100's, and the rate is an assumption */
	g = host(SAID_BY_SMI_TOPO, 4, 0, false);
	mesh(g, 4);
	finished(g, NULL);
	CU_ASSERT_DOUBLE_EQUAL(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK)->Bps, 80e9, 1);
	CU_ASSERT_TRUE(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK)->assumed);
	graph_destroy(g);
}

static void test_finish_slots(void)
{
	/* at work: x4 of x16, and generation 3 of 4. At rest a lower generation is no fault, and the link counts as
	 * what it comes up to. */
	struct graph *g = finished(host(SAID_BY_HWLOC, 4, 0, true),
		HEADER CARD("0", "1B", "NVIDIA L40", "8.9", "4, 4, 4, 16", AT_WORK, "300 W, 300 W", "0x0") CARD("1",
			"3D", "NVIDIA L40", "8.9", "3, 4, 16, 16", AT_WORK, "300 W, 300 W",
			"0x0") CARD("2", "9B", "NVIDIA L40", "8.9", "1, 4, 16, 16", AT_REST, "300 W, 300 W", "0x1")
			CARD("3", "BD", "NVIDIA L40", "8.9", "1, 4, 16, 16", "[N/A], [N/A]", "300 W, 300 W", "[N/A]"));
	CU_ASSERT_EQUAL(g->remark.n, 3);
	CU_ASSERT_TRUE(remarked(g, false, "GPU0 runs PCIe x4 of x16: 6 GB/s each way instead of 24 "));
	CU_ASSERT_TRUE(remarked(g, false, "GPU1 runs PCIe generation 3 of 4: 12 GB/s each way instead of 24"));
	CU_ASSERT_TRUE(remarked(g, false,
		"GPU3 runs PCIe generation 1 of 4: 3 GB/s each way instead of 24 (an idle GPU may show a lower "
		"generation: look again under load)"));
	CU_ASSERT_DOUBLE_EQUAL(slot(g, 0)->Bps, 6e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(slot(g, 2)->Bps, 24e9, 1);
	graph_destroy(g);
	/* a slot below the card, one line for all */
	g = finished(host(SAID_BY_HWLOC, 2, 0, true),
		"index, name, memory.total [MiB], pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, "
		"pcie.link.width.max\n"
		"0, NVIDIA A100-SXM4-80GB, 81920 MiB, 3, 3, 16, 16\n"
		"1, NVIDIA A100-SXM4-80GB, 81920 MiB, 3, 3, 16, 16\n");
	CU_ASSERT_EQUAL(g->remark.n, 1);
	CU_ASSERT_TRUE(remarked(g, false,
		"GPU0-1: a slot of PCIe generation 3 x16 under a card of generation 4 x16 (NVIDIA A100 SXM4 80GB): 12 "
		"GB/s each way instead of 24"));
	graph_destroy(g);
}

static void test_finish_power(void)
{
	struct graph *g = finished(host(SAID_BY_HWLOC, 4, 0, true),
		HEADER CARD("0", "1B", "NVIDIA L40", "8.9", "4, 4, 16, 16", AT_WORK, "210 W, 300 W", "0x4")
			CARD("1", "3D", "NVIDIA L40", "8.9", "4, 4, 16, 16", AT_WORK, "210 W, 300 W", "0x4")
				CARD("2", "9B", "NVIDIA L40", "8.9", "4, 4, 16, 16", AT_REST, "300 W, 300 W", "0x1")
					CARD("3", "BD", "NVIDIA L40", "8.9", "4, 4, 16, 16", "1242 MHz, 3105 MHz",
						"300 W, 300 W", "0x48"));
	CU_ASSERT_EQUAL(g->remark.n, 3);
	CU_ASSERT_TRUE(remarked(g, false, "GPU0-1 are limited to 210 W of 300 W (-30 %)"));
	CU_ASSERT_TRUE(remarked(g, false, "GPU0-1 are held down by the power cap: SM clock down to 81 % of its most"));
	CU_ASSERT_TRUE(remarked(g, false,
		"GPU3 is held down by a hardware slowdown, temperature (hardware): SM clock down to 40 % of its most "
		"(look at cooling and supply)"));
	graph_destroy(g);
	/* a GPU at work under the cap that it was sold with */
	g = finished(host(SAID_BY_HWLOC, 1, 0, true), HEADER
		"0, 00000000:1B:00.0, NVIDIA A100-SXM4-80GB, 81920 MiB, 8.0, 4, 4, 16, 16, 1140 MHz, 1410 MHz, 400.00 "
		"W, 400.00 W, 0x0000000000000004\n");
	silent("a merged graph", g);
	graph_destroy(g);
}

static void test_finish_peers(void)
{
	struct graph *g = finished(host(SAID_BY_HWLOC, 2, 0, true),
		HEADER CARD("0", "1B", "NVIDIA GeForce RTX 4090", "8.9", "1, 4, 16, 16", AT_REST, "450 W, 450 W", "0x1")
			CARD("1", "3D", "NVIDIA GeForce RTX 4090", "8.9", "1, 4, 16, 16", AT_REST, "450 W, 450 W",
				"0x1"));
	CU_ASSERT_TRUE(gpu(g, 0)->gpu.no_peer);
	CU_ASSERT_EQUAL(g->remark.n, 1);
	CU_ASSERT_TRUE(remarked(g, false, "GPU0-1: no peer-to-peer over PCIe"));
	graph_destroy(g);
	/* joined by a bridge there is nothing to say; and what the driver answered counts more than the name */
	g = host(SAID_BY_HWLOC, 2, 0, true);
	mesh(g, 4);
	finished(g, HEADER CARD("0", "1B", "NVIDIA GeForce RTX 3090", "8.6", "1, 4, 16, 16", AT_REST, "350 W, 350 W",
			    "0x1") CARD("1", "3D", "NVIDIA GeForce RTX 3090", "8.6", "1, 4, 16, 16", AT_REST,
			    "350 W, 350 W", "0x1"));
	silent("a merged graph", g);
	graph_destroy(g);
	g = host(SAID_BY_HWLOC, 2, 0, true);
	for (size_t i = 0; i < 2; i++) {
		g->vertex.at[g->gpu.at[i]].gpu.peer_known = true;
		snprintf(g->vertex.at[g->gpu.at[i]].name, GRAPH_NAME, "NVIDIA GeForce RTX 4090");
	}
	finished(g, NULL);
	silent("a merged graph", g);
	graph_destroy(g);
}

static void test_finish_bridges(void)
{
	struct graph *g = host(SAID_BY_SMI_TOPO, 4, 0, false);
	add_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK, 12, 240e9);
	finished(g, NULL);
	CU_ASSERT_EQUAL(g->remark.n, 1);
	CU_ASSERT_TRUE(remarked(g, false, "GPU2-3 have no NVLink, the other 2 GPUs have: "));
	CU_ASSERT_TRUE(remarked(g, false, "instead of 240 (is a bridge missing or loose?)"));
	graph_destroy(g);
	g = host(SAID_BY_SMI_TOPO, 4, 0, false);
	int32_t nvswitch = add(g, VERTEX_NVSWITCH, -1, "", "");
	for (size_t i = 0; i < 4; i++)
		add_link(g, g->gpu.at[i], nvswitch, LINK_NVLINK, i == 2 ? 16 : 18, 1e9);
	finished(g, NULL);
	CU_ASSERT_EQUAL(g->remark.n, 1);
	CU_ASSERT_TRUE(
		remarked(g, false, "GPU2 has fewer NVLinks to the switch than the others: 330 GB/s instead of 371"));
	graph_destroy(g);
}

static void test_finish_mixture_and_nics(void)
{
	struct graph *g = finished(host(SAID_BY_HWLOC, 4, 1, true),
		HEADER A100("0", "1B") A100("1", "3D") A100("2",
			"9B") "3, 00000000:BD:00.0, NVIDIA L40, 46068 MiB, 8.9, 4, 4, 16, 16, 2520 MHz, 2520 MHz, 300 "
			      "W, 300 W, 0x0\n");
	CU_ASSERT_EQUAL(g->remark.n, 2);
	CU_ASSERT_TRUE(remarked(g, false,
		"GPU0-2 NVIDIA A100-SXM4-80GB; GPU3 NVIDIA L40: synchronous training runs at the slowest's pace"));
	CU_ASSERT_TRUE(remarked(g, false,
		"GPU2-3 reach no NIC without crossing to another CPU socket or NUMA node (nearest: NIC0 mlx5_0): 16 "
		"GB/s for all of them over that link instead of 24 from the same one"));
	graph_destroy(g);
}

UNIT_MAIN("what is seen in a graph", {"finish", test_finish}, {"slots", test_finish_slots},
	{"power", test_finish_power}, {"peers", test_finish_peers}, {"bridges", test_finish_bridges},
	{"mixture and NICs", test_finish_mixture_and_nics})
