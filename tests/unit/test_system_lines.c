#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "tests/unit/harness.h"
#include "tests/unit/system_case.h"
#include "topology/catalogue/system.h"
#include "topology/machine.h"

/* ---- lines ---- */

static void test_lines(void)
{
	struct system_spec s = load("node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb");
	CU_ASSERT_EQUAL(s.nodes, 4);
	CU_ASSERT_EQUAL(s.gpus, 8);
	CU_ASSERT_STRING_EQUAL(s.device.id, "rtx4090");
	CU_ASSERT_EQUAL(s.fabric, FABRIC_NONE);
	CU_ASSERT_EQUAL(s.pcie_gen, 4);
	CU_ASSERT_EQUAL(s.pcie_lanes, 16);
	CU_ASSERT_EQUAL(s.sockets, 2);
	CU_ASSERT_EQUAL(s.gpus_per_switch, 0);
	CU_ASSERT_EQUAL(s.nics, 1);
	CU_ASSERT_EQUAL(s.nic_Bps, 12.5e9);
	CU_ASSERT_EQUAL(s.nic_latency_s, 4e-6);
	CU_ASSERT_EQUAL(s.intra_usable_Bps, 24e9);
	CU_ASSERT_TRUE(s.from_line);
	CU_ASSERT_TRUE(s.no_peer);
	CU_ASSERT_STRING_EQUAL(s.source, "node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb");
	/* Order and blanks do not matter; rates in bytes; fewer lanes; switches. */
	s = load("  nic:8x50GB/s\tnvswitch gpu:16 v100-sxm-32 cpu:4 switch:4 pcie3x8 ");
	CU_ASSERT_EQUAL(s.nodes, 0);
	CU_ASSERT_EQUAL(s.fabric, FABRIC_NVSWITCH);
	CU_ASSERT_EQUAL(s.intra_datasheet_Bps, 150e9);
	CU_ASSERT_EQUAL(s.intra_usable_Bps, 120e9);
	CU_ASSERT_EQUAL(s.sockets, 4);
	CU_ASSERT_EQUAL(s.pcie_lanes, 8);
	CU_ASSERT_EQUAL(s.nics_per_switch, 2);
	CU_ASSERT_EQUAL(s.nic_Bps, 50e9);
	struct graph *g = graph_of(&s, 0);
	CU_ASSERT_EQUAL(g->source, SAID_BY_LINE);
	CU_ASSERT_TRUE(words_are(g,
		"X NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 NV6 PIX PIX SYS SYS SYS SYS SYS SYS", 0));
	graph_destroy(g);
}

static void test_line_fabrics(void)
{
	static const struct {
		const char *line;
		enum fabric_kind fabric;
		double datasheet_GBps;
		const char *row; /* of GPU0 */
	} rows[] = {
		{"gpu:8 h100-sxm", FABRIC_NVSWITCH, 450, "X NV18 NV18 NV18 NV18 NV18 NV18 NV18"},
		{"gpu:4 h100-sxm mesh", FABRIC_MESH, 450, "X NV6 NV6 NV6"},
		{"gpu:4 gh200-120", FABRIC_MESH, 450, "X NV6 NV6 NV6"}, /* no board of it has a switch */
		{"gpu:2 gh200", FABRIC_MESH, 450, "X NV18"},
		{"gpu:4 a100-sxm-64", FABRIC_MESH, 300, "X NV4 NV4 NV4"},
		{"gpu:4 a100-sxm-80", FABRIC_NVSWITCH, 300, "X NV12 NV12 NV12"},
		{"gpu:4 h100-pcie", FABRIC_NONE, 63.015, "X NODE SYS SYS"},
		{"gpu:4 h100-pcie nvlink", FABRIC_BRIDGE, 300, "X NV12 SYS SYS"},
		{"gpu:4 a100-pcie-80 bridge cpu:1", FABRIC_BRIDGE, 300, "X NV12 NODE NODE"},
		{"gpu:3 rtx-a6000 bridge", FABRIC_BRIDGE, 56.25, "X NV4 NODE"},
		{"gpu:4 a100-sxm-40 none", FABRIC_NONE, 31.508, "X NODE SYS SYS"},
		{"gpu:8 p100-sxm", FABRIC_MESH, 80, "X NV1 NV1 NV1 NV1 SYS SYS SYS"},
		{"gpu:8 v100-sxm-16 mesh", FABRIC_MESH, 150, "X NV1 NV1 NV2 NV2 SYS SYS SYS"},
		{"gpu:8 mi300x", FABRIC_MESH, 448, "X NV1 NV1 NV1 NV1 NV1 NV1 NV1"},
		{"gpu:16 trainium2", FABRIC_TORUS, 640,
			"X NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1 NV1"},
		{"gpu:2 rtx4090", FABRIC_NONE, 31.508, "X NODE"},
		{"gpu:2 rtx4090 switch:2", FABRIC_NONE, 31.508, "X PIX"},
		{"gpu:8 l40s switch:4 pcie4x8", FABRIC_NONE, 15.754, "X PIX PIX PIX SYS SYS SYS SYS"},
		{"gpu:1 t4", FABRIC_NONE, 15.754, "X"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct system_spec s = load(rows[i].line);
		CU_ASSERT_EQUAL(s.fabric, rows[i].fabric);
		CU_ASSERT_DOUBLE_EQUAL(s.intra_datasheet_Bps / 1e9, rows[i].datasheet_GBps, 0.01);
		struct graph *g = graph_of(&s, 0);
		CU_ASSERT_TRUE(words_are(g, rows[i].row, 0));
		graph_destroy(g);
	}
}

/* Modules that NVLink joins, by a switch or not, with NICs of 200 Gb/s and more are made for InfiniBand. */
static void test_line_networks(void)
{
	static const char *const rows[][2] = {{"gpu:8 h100-sxm nic:8x400Gb/s", "infiniband"},
		{"gpu:4 gh200 nic:4x200Gb/s", "infiniband"}, {"gpu:4 h100-sxm mesh nic:4x200Gb/s", "infiniband"},
		{"gpu:4 gh200 nic:4x100Gb/s", "ethernet-unknown"}, {"gpu:8 mi300x nic:8x400Gb/s", "ethernet-unknown"},
		{"gpu:8 l40s nic:1x400Gb/s", "ethernet-unknown"}};
	for (size_t i = 0; i < COUNT(rows); i++)
		CU_ASSERT_STRING_EQUAL(load(rows[i][0]).network.id, rows[i][1]);
}

static void test_line_refusals(void)
{
	refuses("gpu:8 rtx4090 nik:1x100Gb", "system line, word 3 'nik:1x100Gb': unknown (nearest: nic)");
	refuses("gpu:8 rtx409", "system line, word 2 'rtx409': unknown (nearest: rtx4090, rtx4090-48)");
	refuses("gpu:8 rtx4090 nvswich", "word 3 'nvswich': unknown (nearest: nvswitch)");
	refuses("gpu:8 gpu:8 rtx4090", "system line, word 2 'gpu:8': gpu is given twice");
	refuses("gpu:8 rtx4090 h100-sxm", "word 3 'h100-sxm': the GPU's name is given twice");
	refuses("gpu:8 a100-sxm-80 mesh none", "word 4 'none': how the GPUs are joined is given twice");
	refuses("pcie4 gpu:8 rtx4090 pcie3", "word 4 'pcie3': pcie is given twice");
	refuses("node:4 rtx4090", "gpu:N, the GPUs of a host, is missing");
	refuses("gpu:8", "the GPU's name is missing");
	refuses("gpu:0 rtx4090", "word 1 'gpu:0': expected a whole number of 1 to 1024");
	refuses("gpu:1025 rtx4090", "expected a whole number of 1 to 1024");
	refuses("gpu:-8 rtx4090", "expected a whole number of 1 to 1024");
	refuses("gpu:8x rtx4090", "expected a whole number of 1 to 1024");
	refuses("gpu: rtx4090", "expected a whole number of 1 to 1024");
	refuses("node:1000001 gpu:8 rtx4090", "expected a whole number of 1 to 1000000");
	refuses("gpu:8 rtx4090 nic:1", "expected 1 to 1024 NICs and the rate of each");
	refuses("gpu:8 rtx4090 nic:0x100Gb", "expected 1 to 1024 NICs and the rate of each");
	refuses("gpu:8 rtx4090 nic:1x100Gz", "word 3 'nic:1x100Gz': expected a data rate such as 400Gb/s");
	refuses("gpu:8 rtx4090 nic:1x100", "the rate has no unit");
	refuses("gpu:8 rtx4090 nic:1x", "expected a data rate");
	refuses("gpu:8 rtx4090 pcie4x3", "expected the generation, 1 to 7, and the lanes");
	refuses("gpu:8 rtx4090 pcie8", "expected the generation, 1 to 7, and the lanes");
	refuses("gpu:8 rtx4090 nic:1x100GB", "bits or bytes?");
	refuses("gpu:8 rtx4090 pcie5", "word 3 'pcie5': the NVIDIA GeForce RTX 4090 goes up to PCIe 4 with 16 lanes");
	refuses("gpu:8 rtx4090 nvlink",
		"word 3 'nvlink': the NVIDIA GeForce RTX 4090 has no links of its own to other GPUs");
	refuses("gpu:8 rtx4090 peer:maybe", "word 3 'peer:maybe': expected peer:yes or peer:no");
	refuses("gpu:8 peer:no rtx4090 peer:yes", "peer is given twice");
	refuses("gpu:2 rtx4090 switch:4", "switch:4, but a host has 2 GPUs");
	refuses("gpu:16 p100-sxm", "a mesh of 16 GPUs");
	refuses("gpu:8 rtx4090 :", "unknown (known: node, gpu, switch, cpu, nic, fabric, peer)");
	refuses("gpu:8\x01 rtx4090", "word 1 'gpu:8?'");
}

UNIT_MAIN("system lines", {"lines", test_lines}, {"fabrics of lines", test_line_fabrics},
	{"networks of lines", test_line_networks}, {"refused lines", test_line_refusals})
