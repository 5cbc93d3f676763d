/* The hwloc reader: small exports of tests/xml, refusals, the recorded machines beside the checkout, and this host
 * against hwloc's own counts. */
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/xml_rig.h"
#include "topology/discover/discover.h"
#include "topology/discover/hwloc_read.h"

static struct graph *read_case(const char *name) { return read_xml_case(hwloc_xml_read, name); }

static bool remarked(const struct graph *g, const char *text)
{
	for (size_t i = 0; i < g->remark.n; i++)
		if (strcmp(g->remark.at[i].text, text) == 0)
			return true;
	for (size_t i = 0; i < g->remark.n; i++)
		fprintf(stderr, "remark: %s\n", g->remark.at[i].text);
	return false;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

static void test_switch(void)
{
	struct graph *g = read_case("hwloc-switch.xml");
	CU_ASSERT_STRING_EQUAL(g->host, "box");
	CU_ASSERT_STRING_EQUAL(g->model, "Acme G8");
	CU_ASSERT_EQUAL(g->source, SAID_BY_HWLOC_XML);
	CU_ASSERT_EQUAL(g->gpu.n, 2); /* the ASPEED display is none */
	CU_ASSERT_EQUAL(g->nic.n, 3);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_PCI_SWITCH), 1); /* upstream and downstream ports are one; root ports none */
	CU_ASSERT_EQUAL(vertices(g, VERTEX_BRIDGE), 2);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_CPU), 2);
	const struct vertex *gpu = at(g, "GPU0");
	CU_ASSERT_STRING_EQUAL(gpu->pci, "0000:03:00.0"); /* CUDA's numbers are not NVML's: by address */
	CU_ASSERT_STRING_EQUAL(gpu->name, "NVIDIA A100-PCIE-40GB");
	CU_ASSERT_EQUAL(gpu->gpu.mem_B, (uint64_t)40 << 30);
	CU_ASSERT_EQUAL(gpu->numa, 0);
	CU_ASSERT_STRING_EQUAL(gpu->cores, "0-1");
	CU_ASSERT_STRING_EQUAL(at(g, "PCI0")->pci, "0000:01:00.0");
	CU_ASSERT_STRING_EQUAL(at(g, "NIC0")->name, "mlx5_0"); /* one NIC a function, by its RDMA name */
	CU_ASSERT_TRUE(at(g, "NIC0")->nic.infiniband);
	CU_ASSERT_STRING_EQUAL(at(g, "NIC2")->name, "eth1");
	CU_ASSERT_FALSE(at(g, "NIC2")->nic.infiniband);
	CU_ASSERT_TRUE(near(between(g, "GPU0", "PCI0")->Bps, 12e9));
	CU_ASSERT_TRUE(near(between(g, "PCI0", "HB0")->datasheet_Bps, 15.753846e9));
	/* the card says gen 4 x16, its root port half of that: the slower end counts */
	CU_ASSERT_TRUE(near(between(g, "GPU1", "HB1")->Bps, 6e9));
	CU_ASSERT_EQUAL(at(g, "GPU1")->gpu.pcie_width, 0);
	CU_ASSERT_STRING_EQUAL(at(g, "CPU1")->cpu.model, "Intel(R) Xeon(R) Gold 6430");
	CU_ASSERT_EQUAL(at(g, "CPU1")->cpu.package, 1);
	CU_ASSERT_EQUAL(at(g, "CPU1")->cpu.mem_B, (uint64_t)64 << 30);
	CU_ASSERT_EQUAL(between(g, "CPU0", "CPU1")->kind, LINK_SOCKET);
	CU_ASSERT_EQUAL(g->remark.n, 1);
	CU_ASSERT_TRUE(
		remarked(g, "1 network function that no driver has (no device of the operating system): left out"));
	graph_destroy(g);
}

static void test_nvswitch(void)
{
	struct graph *g = read_case("hwloc-nvswitch.xml");
	int width;
	CU_ASSERT_EQUAL(vertices(g, VERTEX_NVSWITCH), 1);
	CU_ASSERT_EQUAL(links(g, LINK_NVLINK, &width), 4);
	CU_ASSERT_EQUAL(width, 8);
	CU_ASSERT_EQUAL(at(g, "GPU3")->gpu.nvlinks, 2);
	CU_ASSERT_TRUE(near(between(g, "GPU3", "NVS0")->Bps, 40e9));
	CU_ASSERT_TRUE(near(between(g, "GPU3", "NVS0")->datasheet_Bps, 50e9));
	CU_ASSERT_EQUAL(vertices(g, VERTEX_PCI_SWITCH), 0); /* the one in front of the NVSwitches leads to no GPU */
	graph_destroy(g);
}

static void test_power(void)
{
	struct graph *g = read_case("hwloc-power.xml");
	CU_ASSERT_EQUAL(vertices(g, VERTEX_CPU), 2); /* node 2 is GPU memory */
	CU_ASSERT_STRING_EQUAL(g->model, "PowerNV 8335-GTB");
	CU_ASSERT_EQUAL(between(g, "GPU0", "GPU1")->width, 2);
	CU_ASSERT_EQUAL(between(g, "GPU0", "CPU0")->kind, LINK_NVLINK);
	CU_ASSERT_EQUAL(between(g, "GPU2", "CPU1")->width, 4);
	CU_ASSERT_TRUE(near(between(g, "GPU2", "CPU1")->Bps, 72e9));
	CU_ASSERT_PTR_NULL(graph_link(g, graph_find_label(g, "GPU0"), graph_find_label(g, "GPU2"), LINK_KINDS));
	CU_ASSERT_EQUAL(at(g, "GPU2")->numa, 1);
	graph_destroy(g);
}

static void test_xgmi(void)
{
	struct graph *g = read_case("hwloc-xgmi.xml");
	int width;
	CU_ASSERT_STRING_EQUAL(at(g, "GPU0")->pci, "0000:c3:00.0"); /* numbered as ROCm SMI does */
	CU_ASSERT_STRING_EQUAL(at(g, "GPU0")->name, "AMD Instinct MI250X");
	CU_ASSERT_EQUAL(links(g, LINK_XGMI, &width), 2); /* 0 to 2 is two hops: no link of its own */
	CU_ASSERT_EQUAL(between(g, "GPU0", "GPU1")->width, 4);
	CU_ASSERT_FALSE(between(g, "GPU0", "GPU1")->assumed);
	CU_ASSERT_TRUE(near(between(g, "GPU1", "GPU2")->Bps, 36e9));
	graph_destroy(g);
}

static void test_partitions(void)
{
	struct graph *g = read_case("hwloc-partitions.xml");
	CU_ASSERT_EQUAL(g->gpu.n, 3);
	CU_ASSERT_STRING_EQUAL(at(g, "GPU0")->pci, "0000:02:00.0");
	CU_ASSERT_STRING_EQUAL(at(g, "GPU2")->pci, "");
	CU_ASSERT_TRUE(between(g, "GPU0", "GPU2")->assumed);
	CU_ASSERT_TRUE(near(between(g, "GPU0", "GPU2")->Bps, 48e9));
	CU_ASSERT_TRUE(remarked(g,
		"3 GPUs at 0000:02:00.0 are partitions of one: they share its PCIe link, its memory and its links to "
		"others"));
	CU_ASSERT_TRUE(remarked(g,
		"the export gives 100 GB/s between all GPUs, which stands for not known: one xGMI link counted for "
		"each of the 3 pairs"));
	graph_destroy(g);
}

static void test_no_pci(void)
{
	struct graph *g = read_case("hwloc-no-pci.xml");
	CU_ASSERT_EQUAL(g->vertex.n, 1);
	CU_ASSERT_EQUAL(g->link.n, 0);
	CU_ASSERT_STRING_EQUAL(at(g, "CPU0")->cores, "0-3");
	graph_destroy(g);
	g = read_case("hwloc-loose.xml");
	CU_ASSERT_EQUAL(g->gpu.n, 2);
	CU_ASSERT_STRING_EQUAL(at(g, "GPU1")->name, "Tesla T4");
	CU_ASSERT_TRUE(remarked(g, "2 GPUs without a PCI device (cuda0, ...): placed at a host bridge of their own"));
	graph_destroy(g);
}

#define SETS "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
#define MACHINE "<object type=\"Machine\" " SETS ">"

static void test_refusals(void)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "f.xml:1: not XML: no element found"},
		{"<topology>\n<info></topology>", "f.xml:2: not XML: mismatched tag"},
		{"<system version=\"1\"/>",
			"f.xml:1: this is an NCCL topology file (<system>), no hwloc export (<topology>)"},
		{"<svg/>", "f.xml:1: no hwloc export: its root is <topology>"},
		{"<!DOCTYPE topology [<!ENTITY a \"b\">]><topology/>",
			"f.xml:1: a document type with declarations of its own: hwloc exports have none"},
		{"<topology version=\"2.0\">\n</topology>", "f.xml:2: no processors in it that may be used"},
		{"<topology>\n<object/></topology>", "f.xml:2: an object without a type"},
		{"<topology>\n<object type=\"Machin\"/></topology>",
			"f.xml:2: object of type \"Machin\", which is not known"},
		{"<topology>\n<object type=\"PU\" os_index=\"0\"/></topology>",
			"f.xml:2: an export has one object around all others, a Machine"},
		{"<topology version=\"2.0\">\n" MACHINE "\n<object type=\"PU\" " SETS "/></object></topology>",
			"f.xml:3: a PU without os_index"},
		{"<topology version=\"2.0\">\n" MACHINE "\n<object type=\"Core\"/></object></topology>",
			"f.xml:3: a Core without cpuset"},
		{"<topology version=\"2.0\">\n" MACHINE "\n<object type=\"PU\" os_index=\"1\" " SETS
		 "/></object></topology>",
			"f.xml:3: the set of PU 1 is not itself"},
		{"<topology version=\"2.0\">\n" MACHINE
		 "\n<object type=\"PCIDev\" pci_busid=\"x\" pci_type=\"0302 [10de:20b0]\"/></object></topology>",
			"f.xml:3: pci_busid=\"x\" is no PCI address"},
		{"<topology version=\"2.0\">\n" MACHINE "\n"
		 "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:20b0]\"><object "
		 "type=\"Core\"/></object></object></topology>",
			"f.xml:3: a Core inside a PCIDev"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct graph *g = NULL;
		struct error e = {0};
		CU_ASSERT_EQUAL(hwloc_xml_read(cases[i].text, strlen(cases[i].text), "f.xml", &g, &e), ST_INPUT);
		CU_ASSERT_PTR_NULL(g);
		if (strcmp(e.text, cases[i].message))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
		CU_ASSERT_STRING_EQUAL(e.text, cases[i].message);
	}
}

/* The older format of the same machine gives the same graph. */
static void test_version_1(void)
{
	struct graph *g = read_case("hwloc-v1.xml"), *newer = read_case("hwloc-switch.xml");
	CU_ASSERT_EQUAL_FATAL(g->vertex.n, newer->vertex.n);
	CU_ASSERT_EQUAL_FATAL(g->link.n, newer->link.n);
	for (size_t i = 0; i < g->vertex.n; i++) {
		CU_ASSERT_STRING_EQUAL(g->vertex.at[i].label, newer->vertex.at[i].label);
		CU_ASSERT_STRING_EQUAL(g->vertex.at[i].pci, newer->vertex.at[i].pci);
		CU_ASSERT_STRING_EQUAL(g->vertex.at[i].cores, newer->vertex.at[i].cores);
	}
	for (size_t i = 0; i < g->link.n; i++)
		CU_ASSERT_EQUAL(g->link.at[i].Bps, newer->link.at[i].Bps);
	graph_destroy(g);
	graph_destroy(newer);
}

static void test_gpu_rule(void)
{
	static const struct {
		uint32_t pci_class, vendor, device, bus;
		bool gpu;
	} cases[] = {
		{0x0302, 0x10de, 0x2330, 0x0f, true},  /* H100 */
		{0x0300, 0x10de, 0x2684, 0x01, true},  /* RTX 4090 */
		{0x0403, 0x10de, 0x22ba, 0x01, false}, /* its sound */
		{0x0680, 0x10de, 0x22a3, 0x1a, false}, /* NVSwitch */
		{0x0380, 0x1002, 0x7408, 0xc1, true},  /* MI250X */
		{0x1200, 0x1002, 0x74a0, 0x02, true},  /* MI300A */
		{0x0300, 0x1002, 0x515e, 0x04, false}, /* ES1000, a server's console */
		{0x0300, 0x1002, 0x164e, 0x10, false}, /* Raphael: the processor's graphics */
		{0x0300, 0x1a03, 0x2000, 0x04, false}, /* ASPEED */
		{0x0300, 0x102b, 0x0532, 0x05, false}, /* Matrox */
		{0x0300, 0x8086, 0x4680, 0x00, false}, /* UHD 770 */
		{0x0380, 0x8086, 0x0bd5, 0x3a, true},  /* Data Center GPU Max 1550 */
		{0x1200, 0x10ee, 0x5001, 0x3b, false}, /* an FPGA card */
		{0x1200, 0x8086, 0x0b30, 0x3b, false}, /* another */
		{0x0302, 0, 0, 0x01, true},            /* vendor not told */
		{0x0200, 0, 0, 0x01, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		CU_ASSERT_EQUAL(tree_is_gpu(cases[i].pci_class, cases[i].vendor, cases[i].device, cases[i].bus),
			cases[i].gpu);
}

static void put(const char *root, const char *file, const char *text)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", root, file);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		CU_ASSERT_TRUE_FATAL(mkdir(path, 0700) == 0 || errno == EEXIST);
		*p = '/';
	}
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

/* sysfs says what hwloc's GB/s leave open, and the rates of NICs. */
static void test_sysfs(void)
{
	char root[] = "/tmp/stepsim-sysfs-XXXXXX", command[64];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
	put(root, "bus/pci/devices/0000:01:00.0/current_link_speed", "16.0 GT/s PCIe\n");
	put(root, "bus/pci/devices/0000:01:00.0/current_link_width", "8\n");
	put(root, "bus/pci/devices/0000:01:00.0/max_link_speed", "32.0 GT/s PCIe\n");
	put(root, "bus/pci/devices/0000:01:00.0/max_link_width", "16\n");
	put(root, "bus/pci/devices/0000:02:00.0/current_link_speed", "Unknown\n");
	put(root, "bus/pci/devices/0000:02:00.0/current_link_width", "63\n");
	put(root, "class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	put(root, "class/net/eth0/speed", "25000\n");
	put(root, "class/net/eth1/speed", "-1\n");
	struct hwloc_reader r = {0};
	static const struct {
		enum vertex_kind kind;
		const char *name, *pci;
	} nodes[] = {{VERTEX_GPU, "", "0000:01:00.0"}, {VERTEX_NIC, "mlx5_0", "0000:02:00.0"},
		{VERTEX_NIC, "eth0", "0000:03:00.0"}, {VERTEX_NIC, "eth1", "0000:04:00.0"}};
	for (size_t i = 0; i < COUNT(nodes); i++) {
		CU_ASSERT_EQUAL_FATAL(tree_add(&r.tree, nodes[i].kind, SAID_BY_HWLOC, -1), (int32_t)i);
		snprintf(r.tree.node.at[i].v.name, GRAPH_NAME, "%s", nodes[i].name);
		snprintf(r.tree.node.at[i].v.pci, GRAPH_PCI, "%s", nodes[i].pci);
	}
	struct tree_node *n = r.tree.node.at;
	n[0].gen = 3;
	n[0].lanes = 16; /* hwloc's 15.75 GB/s in the widest reading */
	n[1].gen = 5;
	n[1].lanes = 16;
	hwloc_live(&r, root);
	CU_ASSERT_EQUAL(n[0].gen, 4);
	CU_ASSERT_EQUAL(n[0].lanes, 8);
	CU_ASSERT_EQUAL(n[0].v.gpu.pcie_gen, 4);
	CU_ASSERT_EQUAL(n[0].v.gpu.pcie_gen_max, 5);
	CU_ASSERT_EQUAL(n[0].v.gpu.pcie_width, 8);
	CU_ASSERT_EQUAL(n[0].v.gpu.pcie_width_max, 16);
	CU_ASSERT_EQUAL(n[1].gen, 5);
	CU_ASSERT_TRUE(near(n[1].v.nic.Bps, 50e9));
	CU_ASSERT_TRUE(near(n[2].v.nic.Bps, 3.125e9));
	CU_ASSERT_EQUAL(n[3].v.nic.Bps, 0);
	tree_free(&r.tree);
	snprintf(command, sizeof command, "rm -r %s", root);
	CU_ASSERT_EQUAL(system(command), 0);
}

static bool loads_version_3(void) { return hwloc_get_api_version() >> 16 >= 3; }

static void test_version_3(void)
{
	char *text = NULL;
	size_t len = 0;
	struct graph *g = NULL;
	struct error e = {0};
	if (loads_version_3()) {
		fprintf(stderr, "skipped: this hwloc loads version 3\n");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(file_read("tests/xml/hwloc-v3.xml", SIZE_MAX_B, &text, &len, &e), ST_OK);
	CU_ASSERT_EQUAL(hwloc_xml_read(text, len, "v3.xml", &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text,
		"v3.xml:3: hwloc " HWLOC_VERSION
		" cannot load XML version 3.0: have it exported in the older format (lstopo --export-xml-flags v2), or "
		"read it on a host with hwloc 3");
	free(text);
}

/* The recorded machines: nvlinks, xgmis: links and their width; 3: of XML version 3. */
static const struct {
	const char *file;
	int version, packages, pus, cpus, gpus, nics, switches, nvlinks, nvwidth, xgmis;
} recorded[] = {
	{"fluxcore-corona", 1, 2, 96, 2, 8, 3, 9, 0, 0, 0},
	{"fluxcore-sierra", 1, 2, 176, 2, 4, 6, 0, 0, 0, 0},
	{"fluxcore-tuo.CPX", 2, 4, 192, 4, 24, 5, 0, 0, 0, 276},
	{"fluxcore-tuo.TPX", 2, 4, 192, 4, 12, 5, 0, 0, 0, 66},
	{"fluxsched-001N_amd_gpu_corona11", 1, 2, 96, 8, 4, 3, 5, 0, 0, 0},
	{"fluxsched-001N_exclusive_01-brokers-sierra2_0", 1, 2, 176, 2, 4, 6, 0, 0, 0, 0},
	{"fluxsched-001N_multi_gpu_types_chimera", 1, 1, 64, 2, 2, 3, 2, 0, 0, 0},
	{"fluxsched-001N_node_local_storage_lassen_0", 1, 2, 160, 2, 4, 6, 2, 0, 0, 0},
	{"fluxsched-004N_exclusive_04-brokers-butte_0", 1, 2, 128, 2, 4, 10, 2, 0, 0, 0},
	{"fsroot-nvidiagpunumanodes", 2, 2, 32, 2, 6, 0, 0, 0, 0, 0},
	{"hwloc-16intel64-manyVFs", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"hwloc-32em64t-2n8c2t-pci-normalio", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"hwloc-32em64t-2n8c2t-pci-wholeio", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"hwloc-devel09-pci", 2, 2, 4, 2, 0, 3, 0, 0, 0, 0},
	{"hwloc-fakeheterodistances", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"hwloc-nvidiaDGX2", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"hwloc-power8gpudistances", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{"hwloc2-24em64t-2n6c2t-pci", 2, 2, 24, 2, 3, 3, 0, 0, 0, 0},
	{"hwloc2-32em64t-2n8c2t-pci-noio", 2, 2, 32, 2, 0, 0, 0, 0, 0, 0},
	{"hwloc2-32em64t-2n8c2t-pci-wholeio", 2, 2, 32, 2, 4, 3, 1, 0, 0, 0},
	{"hwloc2-96em64t-4n4d3ca2co-pci", 2, 16, 96, 4, 0, 8, 0, 0, 0, 0},
	{"hwloc2-nvidiaDGX2", 2, 2, 4, 2, 16, 0, 12, 16, 96, 0},
	{"hwloc2-power8gpudistances", 2, 2, 16, 2, 4, 0, 0, 6, 12, 0},
	{"mpibind-arm64-ulna-hwloc1", 1, 2, 256, 2, 2, 4, 0, 0, 0, 0},
	{"mpibind-coral-butte-hwloc1", 1, 2, 176, 2, 4, 6, 2, 0, 0, 0},
	{"mpibind-coral-lassen-hwloc1", 1, 2, 160, 2, 4, 6, 2, 0, 0, 0},
	{"mpibind-coral-lassen", 2, 2, 160, 2, 4, 6, 2, 0, 0, 0},
	{"mpibind-cts1-pascal", 2, 2, 72, 2, 2, 3, 1, 0, 0, 0},
	{"mpibind-eas-tioga", 2, 1, 128, 4, 8, 5, 1, 0, 0, 28},
	{"mpibind-epyc-corona-p2", 2, 2, 96, 2, 8, 3, 9, 0, 0, 0},
	{"mpibind-epyc-corona", 2, 2, 96, 8, 4, 3, 5, 0, 0, 0},
};

/* The processors that the CPUs' lists name. */
static int listed_pus(const struct graph *g)
{
	int n = 0;
	for (size_t i = 0; i < g->vertex.n; i++) {
		const struct vertex *v = &g->vertex.at[i];
		hwloc_bitmap_t set = hwloc_bitmap_alloc();
		if (v->kind == VERTEX_CPU && hwloc_bitmap_list_sscanf(set, v->cores) == 0)
			n += hwloc_bitmap_weight(set);
		hwloc_bitmap_free(set);
	}
	return n;
}

/* Of the packages that graph and export have in common: the export's own count is hwloc's. */
static int packages(const char *text, size_t len, int *pus)
{
	int n = -1;
	hwloc_topology_t t;
	hwloc_topology_init(&t);
	if (hwloc_topology_set_xmlbuffer(t, text, (int)len + 1) == 0 && hwloc_topology_load(t) == 0) {
		n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE);
		*pus = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
	}
	hwloc_topology_destroy(t);
	return n;
}

static void check_recorded(size_t i, const char *text, size_t len, int totals[4])
{
	struct graph *g = NULL;
	struct error e = {0};
	enum status st = hwloc_xml_read(text, len, recorded[i].file, &g, &e);
	if (recorded[i].version == 3 && !loads_version_3()) {
		CU_ASSERT_EQUAL(st, ST_INPUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, ":3: hwloc " HWLOC_VERSION " cannot load XML version 3.0: "));
		totals[3]++;
		return;
	}
	CU_ASSERT_EQUAL(st, ST_OK);
	if (st || topology_check(g, &e)) {
		fprintf(stderr, "%s: %s\n", recorded[i].file, e.text);
		CU_FAIL("a recorded machine");
		graph_destroy(g);
		return;
	}
	int nvwidth, xwidth, pus = 0, n = links(g, LINK_NVLINK, &nvwidth), x = links(g, LINK_XGMI, &xwidth);
	CU_ASSERT_EQUAL(packages(text, len, &pus), recorded[i].packages);
	CU_ASSERT_EQUAL(pus, recorded[i].pus);
	bool same = (int)g->gpu.n == recorded[i].gpus && (int)g->nic.n == recorded[i].nics &&
	            vertices(g, VERTEX_CPU) == recorded[i].cpus &&
	            vertices(g, VERTEX_PCI_SWITCH) == recorded[i].switches && n == recorded[i].nvlinks &&
	            nvwidth == recorded[i].nvwidth && x == recorded[i].xgmis;
	if (!same)
		fprintf(stderr, "%s: %zu GPUs, %zu NICs, %d CPUs, %d switches, NVLink %d of %d, xGMI %d of %d\n",
			recorded[i].file, g->gpu.n, g->nic.n, vertices(g, VERTEX_CPU), vertices(g, VERTEX_PCI_SWITCH),
			n, nvwidth, x, xwidth);
	CU_ASSERT_TRUE(same);
	/* Threadripper 2990WX has processors in NUMA nodes without memory, which its export leaves out. */
	if (strcmp(recorded[i].file, "fluxsched-001N_multi_gpu_types_chimera") != 0)
		CU_ASSERT_EQUAL(listed_pus(g), recorded[i].pus);
	totals[0]++;
	totals[1] += (int)g->gpu.n;
	totals[2] += (int)g->nic.n;
	graph_destroy(g);
}

static void test_recorded(void)
{
	const char *shared = getenv("STEPSIM_SHARED");
	int totals[4] = {0};
	for (size_t i = 0; i < COUNT(recorded); i++) {
		char path[512], *text = NULL;
		size_t len = 0;
		struct error e = {0};
		if (recorded[i].version == 3 && loads_version_3())
			continue;
		snprintf(path, sizeof path, "%s/machines/hwloc_xml/%s.xml", shared ? shared : "../shared",
			recorded[i].file);
		if (access(path, R_OK)) {
			fprintf(stderr, "skipped: no %s\n", path);
			return;
		}
		CU_ASSERT_EQUAL_FATAL(file_read(path, SIZE_MAX_B, &text, &len, &e), ST_OK);
		check_recorded(i, text, len, totals);
		free(text);
	}
	fprintf(stderr, "\n    %d recorded hwloc exports read, %d of version 3 refused: %d GPUs, %d NICs\n    ",
		totals[0], totals[3], totals[1], totals[2]);
}

/* This host: CPUs, their processors and the network functions are what hwloc's own interface counts. */
static void test_this_host(void)
{
	struct graph *g = NULL;
	struct error e = {0};
	hwloc_topology_t t;
	int cpus = 0, nics = 0, max_package = -1;
	CU_ASSERT_EQUAL_FATAL(hwloc_read(&g, &e), ST_OK);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	CU_ASSERT_EQUAL(g->source, SAID_BY_HWLOC);
	CU_ASSERT_PTR_NULL(getenv("HWLOC_HIDE_ERRORS"));
	hwloc_topology_init(&t);
	hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
		"pci"); /* libpciaccess leaks, which the sanitizers would report */
	CU_ASSERT_EQUAL_FATAL(hwloc_topology_load(t), 0);
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o));)
		cpus += hwloc_bitmap_weight(o->cpuset) > 0;
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(t, o));) {
		bool net = false;
		for (hwloc_obj_t c = o->io_first_child; c; c = c->next_sibling)
			net = net || c->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
			      c->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
		nics += net;
		char pci[GRAPH_PCI];
		snprintf(pci, sizeof pci, "%04x:%02x:%02x.%x", (unsigned)o->attr->pcidev.domain, o->attr->pcidev.bus,
			o->attr->pcidev.dev, o->attr->pcidev.func);
		if (net)
			CU_ASSERT_TRUE(graph_find_pci(g, pci) >= 0);
	}
	CU_ASSERT_EQUAL(vertices(g, VERTEX_CPU), cpus);
	CU_ASSERT_EQUAL((int)g->nic.n, nics);
	CU_ASSERT_EQUAL(listed_pus(g), hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU));
	for (size_t i = 0; i < g->vertex.n; i++)
		if (g->vertex.at[i].kind == VERTEX_CPU && g->vertex.at[i].cpu.package > max_package)
			max_package = g->vertex.at[i].cpu.package;
	CU_ASSERT_EQUAL(max_package + 1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE));
	hwloc_topology_destroy(t);
	graph_destroy(g);
}

UNIT_MAIN("hwloc_read", {"PCIe switches, ports, NICs", test_switch}, {"NVSwitch", test_nvswitch},
	{"POWER: NVLink to packages, GPU memory", test_power}, {"xGMI", test_xgmi}, {"partitions", test_partitions},
	{"no PCI", test_no_pci}, {"refusals", test_refusals}, {"version 1", test_version_1},
	{"version 3", test_version_3}, {"sysfs", test_sysfs}, {"what a GPU is", test_gpu_rule},
	{"recorded machines", test_recorded}, {"this host", test_this_host})
