/* Systems: files of the catalogue, files of one's own, system lines, and the link graphs that they become. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "tests/unit/system_case.h"
#include "topology/catalogue/system.h"
#include "topology/discover/discover.h"
#include "topology/graph/group.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"
#include "topology/machine.h"

/* ---- the catalogue ---- */

static void check_links_of(const struct system_spec *s, const struct graph *g)
{
	double most_Bps = 0, most_datasheet_Bps = 0;
	for (size_t i = 0; i < g->gpu.n; i++) {
		double sum_Bps = 0, sum_datasheet_Bps = 0;
		int32_t width = 0;
		for (size_t k = 0; k < g->link.n; k++) {
			const struct link *l = &g->link.at[k];
			bool own = (l->a == g->gpu.at[i] || l->b == g->gpu.at[i]) &&
			           (l->kind == LINK_NVLINK || l->kind == LINK_XGMI);
			sum_Bps += own ? l->Bps : 0;
			sum_datasheet_Bps += own ? l->datasheet_Bps : 0;
			width += own ? l->width : 0;
		}
		most_Bps = fmax(most_Bps, sum_Bps);
		most_datasheet_Bps = fmax(most_datasheet_Bps, sum_datasheet_Bps);
		if (s->fabric != FABRIC_TORUS)
			CU_ASSERT_EQUAL(width, s->fabric == FABRIC_NONE ? 0 : s->device.nvlink_links);
	}
	if (s->fabric == FABRIC_NONE) {
		struct rate slot = rate_pcie(s->pcie_gen, s->pcie_lanes);
		CU_ASSERT_DOUBLE_EQUAL(s->intra_datasheet_Bps, slot.datasheet_Bps, 1e-3 * slot.datasheet_Bps);
		CU_ASSERT_DOUBLE_EQUAL(s->intra_usable_Bps, slot.Bps, 1);
		return;
	}
	CU_ASSERT_DOUBLE_EQUAL(most_datasheet_Bps, s->intra_datasheet_Bps, 1);
	CU_ASSERT_DOUBLE_EQUAL(most_Bps, s->intra_usable_Bps, 1);
	CU_ASSERT_DOUBLE_EQUAL(s->intra_datasheet_Bps, (double)s->device.nvlink_links * s->device.nvlink_link_Bps,
		1e-9 * s->intra_datasheet_Bps);
	const double least = strcmp(s->device.link_kind, "NVLink") == 0 ? 0.79
	                                                                : 0.74; /* RCCL counts 48 of xGMI's 64 GB/s */
	CU_ASSERT_TRUE(s->intra_usable_Bps > least * s->intra_datasheet_Bps &&
		       s->intra_usable_Bps <= 0.9 * s->intra_datasheet_Bps);
}

static void check_system(const char *id)
{
	struct system_spec s = load(id);
	char source[256];
	snprintf(source, sizeof source, "catalogue configs/systems/%s.yaml", id);
	CU_ASSERT_STRING_EQUAL(s.source, source);
	CU_ASSERT_STRING_EQUAL(s.id, id);
	CU_ASSERT_FALSE(s.from_line);
	for (int64_t gpus = 1; gpus <= s.gpus + 1; gpus++) {
		struct graph *g = graph_of(&s, gpus);
		CU_ASSERT_EQUAL(g->gpu.n, gpus);
		CU_ASSERT_EQUAL(g->nic.n, s.nics);
		CU_ASSERT_EQUAL(g->source, SAID_BY_CATALOGUE);
		if (gpus == s.gpus)
			check_links_of(&s, g);
		graph_destroy(g);
	}
	/* The fabric's rate for the whole host: on switches and on a mesh all links of each GPU carry rings. */
	if (s.fabric == FABRIC_NVSWITCH || s.fabric == FABRIC_MESH) {
		struct machine m = {0};
		struct group whole;
		struct error e = {0};
		CU_ASSERT_EQUAL_FATAL(machine_load(id, 1, 0, &m, &e), ST_OK);
		CU_ASSERT_EQUAL(machine_group(&m, s.gpus, 1, &whole, &e), ST_OK);
		CU_ASSERT_DOUBLE_EQUAL(whole.ring_datasheet_Bps, s.intra_datasheet_Bps, 1);
		CU_ASSERT_DOUBLE_EQUAL(whole.ring_Bps, s.intra_usable_Bps, 1);
		CU_ASSERT_EQUAL(whole.nvlink_switch, s.fabric == FABRIC_NVSWITCH);
		machine_free(&m);
	}
}

static void test_catalogue(void)
{
	char **names = NULL;
	size_t n = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(path_catalogue_names("systems", &names, &n, &e), ST_OK);
	CU_ASSERT_TRUE(n >= 40);
	for (size_t i = 0; i < n; i++)
		check_system(names[i]);
	path_names_free(names, n);
}

/* Figures typed from the makers' and clouds' pages, apart from the files: GPUs, NICs together in Gb/s, links of a GPU
 * in both directions in GB/s. */
static void test_known_figures(void)
{
	static const struct {
		const char *id;
		int64_t gpus;
		double nic_Gbps, links_both_GBps;
		enum fabric_kind fabric;
		bool unverified; /* a number of the system itself */
	} rows[] = {
		{"dgx-1-p100", 8, 400, 160, FABRIC_MESH, false},
		{"dgx-1-v100", 8, 400, 300, FABRIC_MESH, false},
		{"dgx-2", 16, 800, 300, FABRIC_NVSWITCH, false},
		{"dgx-a100", 8, 1600, 600, FABRIC_NVSWITCH, false},
		{"dgx-h100", 8, 3200, 900, FABRIC_NVSWITCH, false},
		{"dgx-b300", 8, 6400, 1800, FABRIC_NVSWITCH, false},
		{"gb200-nvl72", 72, 28800, 1800, FABRIC_NVSWITCH, false},
		{"gb300-nvl72", 72, 57600, 1800, FABRIC_NVSWITCH, false},
		{"azure-nd-mi300x-v5", 8, 3200, 896, FABRIC_MESH, true},
		{"server-8xmi325x", 8, 3200, 896, FABRIC_MESH, true},
		{"server-8xgaudi3", 8, 4800, 1050, FABRIC_MESH, true},
		{"gcp-tpu-v6e-256", 256, 25600, 800, FABRIC_TORUS, true},
		{"gcp-tpu-v5p-256", 256, 12800, 1200, FABRIC_TORUS, true},
		{"aws-p3", 8, 25, 300, FABRIC_MESH, true},
		{"aws-p4d", 8, 400, 600, FABRIC_NVSWITCH, false},
		{"aws-p5", 8, 3200, 900, FABRIC_NVSWITCH, false},
		{"aws-p6-b300", 8, 6400, 1800, FABRIC_NVSWITCH, false},
		{"aws-g5", 8, 100, 0, FABRIC_NONE, false},
		{"aws-trn2", 16, 3200, 1280, FABRIC_TORUS, true},
		{"azure-ndv2", 8, 100, 300, FABRIC_MESH, false},
		{"azure-nc-a100-v4", 4, 0, 600, FABRIC_BRIDGE, false},
		{"gcp-a3-high", 8, 800, 900, FABRIC_NVSWITCH, false},
		{"oci-gpu4", 8, 1600, 600, FABRIC_NVSWITCH, false},
		{"server-8xrtx4090", 8, 100, 0, FABRIC_NONE, true},
		{"workstation-4xa6000", 4, 0, 112.5, FABRIC_BRIDGE, true},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct system_spec s = load(rows[i].id);
		CU_ASSERT_EQUAL(s.gpus, rows[i].gpus);
		CU_ASSERT_EQUAL(s.fabric, rows[i].fabric);
		CU_ASSERT_DOUBLE_EQUAL((double)s.nics * s.nic_Bps * 8 / 1e9, rows[i].nic_Gbps, 1e-6);
		if (rows[i].links_both_GBps > 0)
			CU_ASSERT_DOUBLE_EQUAL(2 * s.intra_datasheet_Bps / 1e9, rows[i].links_both_GBps, 1e-6);
		CU_ASSERT_EQUAL(s.unverified, rows[i].unverified || s.device.unverified);
	}
	struct system_spec s = load("dgx-h100"); /* its price rests on memory, which no step time does */
	CU_ASSERT_EQUAL(s.price_usd, 400000);
	CU_ASSERT_TRUE(s.price_unverified);
	CU_ASSERT_FALSE(s.unverified);
	CU_ASSERT_EQUAL(s.power_W, 10200);
	s = load("aws-p5");
	CU_ASSERT_DOUBLE_EQUAL(s.rent_usd_per_hour, 55.04, 1e-9);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.rent_note, "2026-09-10"));
	CU_ASSERT_TRUE(load("server-8xrtx4090").no_peer);
	CU_ASSERT_FALSE(load("gpu:4 rtx4090 peer:yes").no_peer);
	CU_ASSERT_TRUE(load("gpu:4 l40s peer:no").no_peer);
	CU_ASSERT_FALSE(load("aws-g5").no_peer);
}

/* The words of recorded dumps: DGX-1 V100 (NIC columns in the order 0 1 2 3 of the switches; a dump's PHB between
 * switches of one socket is NODE here), 8 RTX 4090, 8 RTX PRO 6000, NC96ads. */
static void test_words(void)
{
	static const struct {
		const char *id;
		int32_t gpu;
		const char *row;
	} rows[] = {
		{"dgx-1-v100", 0, "X NV1 NV1 NV2 NV2 SYS SYS SYS PIX NODE SYS SYS"},
		{"dgx-1-v100", 5, "SYS NV2 SYS SYS NV1 X NV2 NV1 SYS SYS PIX NODE"},
		{"dgx-1-p100", 7, "SYS SYS SYS NV1 NV1 NV1 NV1 X SYS SYS NODE PIX"},
		{"server-8xrtx4090", 1, "PIX X PIX PIX SYS SYS SYS SYS PIX"},
		{"server-8xrtx4090", 7, "SYS SYS SYS SYS PIX PIX PIX X SYS"},
		{"server-8xrtxpro6000", 2, "NODE NODE X PIX SYS SYS SYS SYS NODE"},
		{"workstation-4xa6000", 0, "X NV4 NODE NODE"},
		{"dgx-h100", 3, "NV18 NV18 NV18 X NV18 NV18 NV18 NV18 NODE NODE NODE PIX SYS SYS SYS SYS"},
		{"dgx-a100", 2, "NV12 NV12 X NV12 NV12 NV12 NV12 NV12 NODE NODE PIX PIX SYS SYS SYS SYS"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct system_spec s = load(rows[i].id);
		struct graph *g = graph_of(&s, 0);
		CU_ASSERT_TRUE(words_are(g, rows[i].row, rows[i].gpu));
		graph_destroy(g);
	}
}

/* How far a GPU is from a NIC: below one switch, on one socket, or beyond. */
static int distance(const struct graph *g, size_t gpu, size_t nic)
{
	char word[GRAPH_WORD];
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[gpu], g->nic.at[nic], word, &e), ST_OK);
	return strcmp(word, "SYS") == 0 ? 2 : strcmp(word, "PIX") == 0 || strcmp(word, "PXB") == 0 ? 0 : 1;
}

/* The clouds' own NCCL topology files: each GPU is as far from each NIC as the catalogue has it. */
static void test_recorded(void)
{
	static const struct {
		const char *file, *id;
	} rows[] = {{"aws-p4d-24xl-topo.xml", "aws-p4d"}, {"aws-p4de-24xl-topo.xml", "aws-p4de"},
		{"azure-ndv5-topo.xml", "azure-nd-h100-v5"}, {"oci-H100-topology.xml", "oci-h100"},
		{"azure-ndv2-topo.xml", "azure-ndv2"}};
	const char *shared = getenv("STEPSIM_SHARED");
	for (size_t i = 0; i < COUNT(rows); i++) {
		char path[PATH_MAX_LEN], *text = NULL;
		size_t len;
		struct graph *recorded = NULL;
		struct error e = {0};
		snprintf(path, sizeof path, "%s/machines/nccl_xml/%s", shared ? shared : "../shared", rows[i].file);
		if (access(path, R_OK) != 0) {
			printf("skipped: %s is not beside the checkout\n", path);
			return;
		}
		CU_ASSERT_EQUAL_FATAL(file_read(path, 1 << 20, &text, &len, &e), ST_OK);
		CU_ASSERT_EQUAL_FATAL(nccl_xml_read(text, len, path, &recorded, &e), ST_OK);
		struct system_spec s = load(rows[i].id);
		struct graph *g = graph_of(&s, 0);
		CU_ASSERT_EQUAL_FATAL(recorded->gpu.n, g->gpu.n);
		CU_ASSERT_EQUAL_FATAL(recorded->nic.n, g->nic.n);
		int different = 0;
		for (size_t a = 0; a < g->gpu.n; a++)
			for (size_t b = 0; b < g->nic.n; b++)
				different += distance(g, a, b) != distance(recorded, a, b);
		CU_ASSERT_EQUAL(different, 0);
		graph_destroy(g);
		graph_destroy(recorded);
		free(text);
	}
}

/* Fewer GPUs: on a switch they are spread, so that each has its NIC; else the first ones. */
static void test_fewer_gpus(void)
{
	struct system_spec s = load("aws-p4d");
	struct graph *g = graph_of(&s, 4);
	CU_ASSERT_TRUE(words_are(g, "X NV12 NV12 NV12 PIX NODE SYS SYS", 0));
	CU_ASSERT_TRUE(words_are(g, "NV12 NV12 X NV12 SYS SYS PIX NODE", 2));
	graph_destroy(g);
	s = load("dgx-1-v100");
	g = graph_of(&s, 4);
	CU_ASSERT_TRUE(words_are(g, "X NV1 NV1 NV2 PIX NODE SYS SYS", 0));
	graph_destroy(g);
	g = graph_of(&s, 16); /* built alike: the second eight have the same wiring */
	CU_ASSERT_TRUE(
		words_are(g, "SYS SYS SYS SYS SYS SYS SYS SYS NV1 X NV2 NV1 NODE NV2 NODE NODE SYS SYS SYS SYS", 9));
	graph_destroy(g);
	struct error e = {0};
	CU_ASSERT_EQUAL(system_graph(&s, SYSTEM_GPUS + 1, &g, &e), ST_INPUT);
}

/* ---- files ---- */

static const char file_head[] = "name: Mine\ngpu: a100-sxm-80\ngpus_per_node: {value: 4, source: my own}\n";

static const char file_nic[] = "nic:\n  count: {value: 0, source: my own}\n";

static void write_file(char path[32], const char *intra, const char *rest)
{
	char text[2048];
	struct error e = {0};
	strcpy(path, "/tmp/stepsim-system-XXXXXX.yaml");
	int fd = mkstemps(path, 5);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	snprintf(text, sizeof text,
		"%sintra:\n%s  datasheet: {value: 100GB/s, source: my own}\n  usable: {value: 80GB/s, source: my own}\n"
		"  latency: {value: 2us, source: my own}\n%s",
		file_head, intra, rest);
	CU_ASSERT_EQUAL(file_write(path, text, strlen(text), &e), ST_OK);
}

static void refuses_file(const char *intra, const char *rest, const char *complaint)
{
	char path[32];
	write_file(path, intra, rest);
	refuses(path, complaint);
	unlink(path);
}

static void test_file(void)
{
	char path[32];
	write_file(path, "  fabric: mesh\n  wiring: 0-1:2 1-2:2 2-3:2 3-0:2\n",
		"nic:\n  count: {value: 2, source: my own}\n  rate: {value: 25Gb/s, source: my own}\n"
		"  latency: {value: 9us, source: my own}\n"
		"pcie:\n  generation: {value: 3, source: my own}\n  gpus_per_switch: {value: 2, source: my own}\n"
		"  uplink: {value: 8GB/s, source: my own}\n"
		"host:\n  cpu: AMD EPYC 7742\n  sockets: {value: 2, source: my own}\n"
		"  socket_rate: {value: 30GB/s, source: my own}\n"
		"price: {value: 90000USD, source: a quote of 2026-05}\n");
	struct system_spec s = load(path);
	unlink(path);
	CU_ASSERT_STRING_EQUAL(s.name, "Mine");
	CU_ASSERT_STRING_EQUAL(s.source, path);
	CU_ASSERT_STRING_EQUAL(s.price_note, "a quote of 2026-05");
	CU_ASSERT_EQUAL(s.price_usd, 90000);
	CU_ASSERT_EQUAL(s.rent_usd_per_hour, 0);
	struct graph *g = graph_of(&s, 0);
	CU_ASSERT_TRUE(words_are(g, "X NV2 SYS NV2 NODE SYS", 0));
	struct link *ring = graph_link(g, g->gpu.at[0], g->gpu.at[3], LINK_NVLINK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ring);
	CU_ASSERT_EQUAL(ring->datasheet_Bps, 50e9); /* 4 links a GPU share 100 GB/s */
	CU_ASSERT_EQUAL(ring->Bps, 40e9);
	struct link *sockets = graph_link(g, graph_find_label(g, "CPU0"), graph_find_label(g, "CPU1"), LINK_SOCKET);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sockets);
	CU_ASSERT_EQUAL(sockets->Bps, 30e9);
	CU_ASSERT_FALSE(sockets->assumed);
	struct link *uplink = graph_link(g, graph_find_label(g, "PCI0"), graph_find_label(g, "HB0"), LINK_PCIE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(uplink);
	CU_ASSERT_EQUAL(uplink->Bps, 8e9);
	struct route r;
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_route(g, g->gpu.at[0], g->gpu.at[2], &r, &e), ST_OK);
	CU_ASSERT_EQUAL(r.Bps, 8e9);
	graph_destroy(g);
}

static void test_file_refusals(void)
{
	refuses_file("  fabric: nvswich\n", file_nic, "intra.fabric: unknown 'nvswich' (nearest: nvswitch)");
	refuses_file("  fabric: mesh\n  wiring: 0-4\n", file_nic,
		"wiring: '0-4': expected two different GPUs of 0 to 3");
	refuses_file("  fabric: mesh\n  wiring: 1-1\n", file_nic,
		"wiring: '1-1': expected two different GPUs of 0 to 3");
	refuses_file("  fabric: mesh\n  wiring: 0-1 1-0\n", file_nic, "GPUs 1 and 0 are joined twice");
	refuses_file("  fabric: mesh\n  wiring: 0-1 2,3\n", file_nic, "wiring: '2,3': expected two GPUs");
	refuses_file("  fabric: mesh\n  wiring: 0-1:0\n", file_nic, "wiring: '0-1:0': expected two GPUs");
	refuses_file("  fabric: nvswitch\n  wiring: 0-1\n", file_nic, "the fabric 'nvswitch' has none");
	refuses_file("  fabric: nvswitch\n", "nic:\n  count: {value: 2, source: my own}\n",
		"2 NICs need a rate and a latency");
	refuses_file("  fabric: nvswitch\n",
		"nic:\n  count: {value: 0, source: my own}\npcie:\n  nics_per_switch: {value: 2, source: my own}\n",
		"nics_per_switch needs gpus_per_switch");
	refuses_file("  fabric: nvswitch\n", "nic:\n  count: {value: 0, source: my own}\nhost:\n  gpu_link: usb\n",
		"host.gpu_link: expected c2c or pcie, got 'usb'");
	refuses_file("  fabric: nvswitch\n", "", "the key 'nic.count' is missing");
	refuses("dgx-h10", "unknown system 'dgx-h10' (nearest: dgx-h100)");
	refuses("./no-such-system.yaml", "no-such-system");
	refuses("", "unknown system");
}

UNIT_MAIN("system", {"the catalogue", test_catalogue}, {"known figures", test_known_figures},
	{"words of known machines", test_words}, {"recorded layouts", test_recorded}, {"fewer GPUs", test_fewer_gpus},
	{"a file", test_file}, {"refused files", test_file_refusals})
