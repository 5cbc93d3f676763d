/* NCCL and RCCL topology files: one small file of tests/xml for each oddity, refusals word by word, and the recorded
 * machines beside the checkout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/xml_rig.h"
#include "topology/discover/discover.h"

static struct graph *read_case(const char *name) { return read_xml_case(nccl_xml_read, name); }

static bool remarked(const struct graph *g, const char *text, bool contradiction)
{
	for (size_t i = 0; i < g->remark.n; i++)
		if (strcmp(g->remark.at[i].text, text) == 0 && g->remark.at[i].contradiction == contradiction)
			return true;
	for (size_t i = 0; i < g->remark.n; i++)
		fprintf(stderr, "remark: %s\n", g->remark.at[i].text);
	return false;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

static void test_nvswitch(void)
{
	struct graph *g = read_case("nccl-nvswitch.xml");
	int width;
	CU_ASSERT_EQUAL(g->source, SAID_BY_NCCL_XML);
	CU_ASSERT_EQUAL(g->gpu.n, 2);
	CU_ASSERT_EQUAL(g->nic.n, 3);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_NVSWITCH), 1);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_PCI_SWITCH), 2);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_BRIDGE), 2);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_CPU), 2);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_NETWORK), 1);
	CU_ASSERT_EQUAL(links(g, LINK_NVLINK, &width), 2);
	CU_ASSERT_EQUAL(width, 36);
	CU_ASSERT_EQUAL(links(g, LINK_PCIE, &width), 7);
	/* dev numbers the GPUs, not the place in the file; numaid the CPUs */
	const struct vertex *gpu = at(g, "GPU0");
	CU_ASSERT_STRING_EQUAL(gpu->pci, "0000:11:00.0");
	CU_ASSERT_STRING_EQUAL(gpu->name, "NVIDIA H100 80GB HBM3");
	CU_ASSERT_STRING_EQUAL(gpu->cores, "0-23,32-39");
	CU_ASSERT_EQUAL(gpu->numa, 0);
	CU_ASSERT_EQUAL(gpu->gpu.compute_capability, 90);
	CU_ASSERT_EQUAL(gpu->gpu.pcie_gen, 4);
	CU_ASSERT_EQUAL(gpu->gpu.pcie_width, 8);
	CU_ASSERT_EQUAL(gpu->gpu.nvlinks, 18);
	CU_ASSERT_EQUAL(gpu->gpu.nvlink_gen, 4);
	CU_ASSERT_EQUAL(at(g, "GPU1")->numa, 1);
	CU_ASSERT_EQUAL(at(g, "CPU0")->numa, 0);
	CU_ASSERT_STRING_EQUAL(at(g, "CPU1")->cpu.model, "Intel Xeon (Sapphire Rapids)");
	CU_ASSERT_STRING_EQUAL(at(g, "NIC2")->name, "mlx5_2");
	CU_ASSERT_STRING_EQUAL(at(g, "NIC2")->pci, "");
	CU_ASSERT_STRING_EQUAL(at(g, "NIC0")->pci, "0000:12:00.0");
	CU_ASSERT_TRUE(near(at(g, "NIC1")->nic.Bps, 50e9));
	CU_ASSERT_TRUE(at(g, "NIC1")->nic.infiniband);
	CU_ASSERT_FALSE(at(g, "NIC0")->nic.infiniband);
	CU_ASSERT_TRUE(near(between(g, "GPU0", "NVS0")->Bps, 18 * 20.6e9));
	CU_ASSERT_TRUE(near(between(g, "GPU0", "PCI1")->Bps, 12e9));
	CU_ASSERT_FALSE(between(g, "GPU0", "PCI1")->assumed);
	CU_ASSERT_TRUE(near(between(g, "CPU0", "CPU1")->Bps, 22e9));
	CU_ASSERT_TRUE(near(between(g, "NIC0", "NET")->Bps, 25e9));
	CU_ASSERT_EQUAL(g->remark.n, 0);
	graph_destroy(g);
}

/* Bare PCI classes are GPUs, in the order of their addresses; a management controller's display is none. */
static void test_skeleton(void)
{
	struct graph *g = read_case("nccl-skeleton.xml");
	CU_ASSERT_EQUAL(g->gpu.n, 2);
	CU_ASSERT_EQUAL(g->nic.n, 1);
	CU_ASSERT_STRING_EQUAL(at(g, "GPU0")->pci, "0002:00:00.0");
	CU_ASSERT_STRING_EQUAL(at(g, "GPU1")->pci, "000c:00:00.0");
	CU_ASSERT_STRING_EQUAL(at(g, "GPU1")->name, "NVIDIA A100-SXM4-80GB");
	CU_ASSERT_STRING_EQUAL(at(g, "PCI0")->pci, "ffff:ff:01.0");
	CU_ASSERT_EQUAL(at(g, "NIC0")->nic.Bps, 0);
	CU_ASSERT_TRUE(between(g, "NIC0", "NET")->assumed);
	CU_ASSERT_EQUAL(graph_find_label(g, "PCI1"), -1);
	graph_destroy(g);
}

static void test_self_loop(void)
{
	struct graph *g = read_case("nccl-self-loop.xml");
	int width;
	CU_ASSERT_EQUAL(links(g, LINK_NVLINK, &width), 0);
	CU_ASSERT_EQUAL(at(g, "GPU0")->gpu.nvlinks, 0);
	CU_ASSERT_TRUE(between(g, "GPU0", "HB0")->assumed);
	CU_ASSERT_EQUAL(between(g, "GPU1", "HB0")->width, 0);
	CU_ASSERT_TRUE(remarked(g,
		"the 12 NVLinks of GPU0 to GPU1 end on the GPU itself: a bridge to another GPU, but the file does not "
		"say which (virtual machines hide it); no NVLink counted",
		false));
	graph_destroy(g);
}

static void test_virtual_nets(void)
{
	struct graph *g = read_case("nccl-virtual-nets.xml");
	CU_ASSERT_EQUAL(g->nic.n, 1);
	CU_ASSERT_STRING_EQUAL(at(g, "NIC0")->name, "eno1");
	CU_ASSERT_EQUAL(at(g, "NIC0")->nic.Bps, 0);
	CU_ASSERT_EQUAL(at(g, "GPU0")->numa, -1);
	CU_ASSERT_TRUE(remarked(g, "2 network devices without a PCI device (docker0, ...): left out", false));
	graph_destroy(g);
}

static void test_c2c(void)
{
	struct graph *g = read_case("nccl-c2c.xml");
	const struct link *l = between(g, "GPU0", "CPU0");
	CU_ASSERT_EQUAL(l->kind, LINK_C2C);
	CU_ASSERT_EQUAL(l->width, 10);
	CU_ASSERT_TRUE(near(l->Bps, 447.12e9));
	CU_ASSERT_EQUAL(between(g, "GPU0", "HB0")->gen, 5);
	graph_destroy(g);
}

static void test_xgmi(void)
{
	struct graph *g = read_case("nccl-xgmi.xml");
	int width;
	CU_ASSERT_EQUAL(g->gpu.n, 3);
	CU_ASSERT_EQUAL(links(g, LINK_XGMI, &width), 2);
	CU_ASSERT_EQUAL(between(g, "GPU0", "GPU1")->width, 4);
	CU_ASSERT_TRUE(near(between(g, "GPU0", "GPU1")->Bps, 4 * 36e9));
	CU_ASSERT_EQUAL(between(g, "GPU0", "GPU2")->width, 1);
	CU_ASSERT_EQUAL(at(g, "GPU0")->gpu.compute_capability, 0); /* RCCL's sm counts compute units */
	CU_ASSERT_TRUE(remarked(g, "GPU0 counts 2 xGMI links to GPU2, which counts 1 back: taken as 1", true));
	CU_ASSERT_TRUE(remarked(g,
		"1 network device faster than 10 Tb/s (cxi0), which none is: speed taken as not known", false));
	graph_destroy(g);
}

static void test_power(void)
{
	struct graph *g = read_case("nccl-power.xml");
	CU_ASSERT_EQUAL(between(g, "GPU0", "GPU1")->width, 3);
	CU_ASSERT_EQUAL(between(g, "GPU0", "CPU0")->kind, LINK_NVLINK);
	CU_ASSERT_EQUAL(between(g, "GPU1", "CPU0")->width, 3);
	CU_ASSERT_EQUAL(at(g, "GPU1")->gpu.nvlinks, 6);
	CU_ASSERT_EQUAL(g->remark.n, 1);
	CU_ASSERT_TRUE(
		remarked(g, "1 link end is at GPUs that the file does not have (0004:06:00.0): left out", false));
	graph_destroy(g);
}

static void test_rack(void)
{
	struct graph *g = read_case("nccl-rack.xml");
	CU_ASSERT_EQUAL(g->gpu.n, 1);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_CPU), 1);
	CU_ASSERT_EQUAL(between(g, "GPU0", "NVS0")->width, 18);
	CU_ASSERT_TRUE(remarked(g, "1 CPU of other hosts (host_hash) left out: this is the first host", false));
	CU_ASSERT_TRUE(remarked(g, "2 elements not known to this reader left out: <pcilink> on line 4, ...", false));
	graph_destroy(g);
}

static void test_host_bridge(void)
{
	struct graph *g = read_case("nccl-host-bridge.xml");
	CU_ASSERT_EQUAL(g->nic.n, 2);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_BRIDGE), 1);
	CU_ASSERT_EQUAL(vertices(g, VERTEX_PCI_SWITCH), 0);
	CU_ASSERT_TRUE(between(g, "NIC1", "HB0")->assumed);
	CU_ASSERT_EQUAL(g->remark.n, 0);
	graph_destroy(g);
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "f.xml:1: not XML: no element found"},
		{"<system version=\"1\">\n<cpu>\n</system>", "f.xml:3: not XML: mismatched tag"},
		{"<topology version=\"2.0\"/>",
			"f.xml:1: this is an hwloc export (<topology>), no NCCL topology file (<system>)"},
		{"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology/>",
			"f.xml:1: this is an hwloc export (<topology>), no NCCL topology file (<system>)"},
		{"<graphs/>", "f.xml:1: these are NCCL's search graphs (NCCL_GRAPH_DUMP_FILE), no topology file "
			      "(NCCL_TOPO_DUMP_FILE)"},
		{"<html/>", "f.xml:1: <html> is no NCCL topology file: its root is <system>"},
		{"<system version=\"3\"/>", "f.xml:1: version 3 of the format is not known (1 and RCCL's 2 are)"},
		{"<system/>", "f.xml:1: no <cpu> in it: no devices can be placed"},
		{"<!DOCTYPE s [<!ENTITY a \"b\">]><system/>",
			"f.xml:1: a document type declaration: topology files have none"},
		{"<system>\n<pci busid=\"0000:01:00.0\"/></system>", "f.xml:2: <pci> inside <system>"},
		{"<system><cpu>\n<nvlink/></cpu></system>", "f.xml:2: <nvlink> inside <cpu>"},
		{"<system><cpu>\n<pci class=\"0x030200\"/></cpu></system>", "f.xml:2: <pci> without busid"},
		{"<system><cpu>\n<pci busid=\"01-00\"/></cpu></system>",
			"f.xml:2: busid=\"01-00\" is no PCI address (0000:1b:00.0)"},
		{"<system><cpu><pci busid=\"0000:01:00.0\" class=\"0x0302\"/>\n<pci busid=\"01:00.0\"/></cpu></system>",
			"f.xml:2: PCI address 0000:01:00.0 a second time: first on line 1"},
		{"<system><cpu><pci busid=\"01:00.0\" link_speed=\"7 GT/s\"/></cpu></system>",
			"f.xml:1: link_speed=\"7 GT/s\" is no PCIe speed (2.5, 5, 8, 16, 32, 64 or 128 GT/s)"},
		{"<system><cpu><pci busid=\"01:00.0\" link_width=\"x16\"/></cpu></system>",
			"f.xml:1: link_width=\"x16\" is no number from 0 to 255"},
		{"<system><cpu><pci busid=\"01:00.0\" class=\"gpu\"/></cpu></system>",
			"f.xml:1: class=\"gpu\" is no hexadecimal number from 0 to 16777215"},
		{"<system><cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>",
			"f.xml:2: numaid=\"0\" a second time: first on line 1"},
		{"<system><cpu affinity=\"0,,1\"/></system>",
			"f.xml:1: affinity=\"0,,1\" is no mask of processors (hexadecimal words of 8 digits, joined by "
			"commas)"},
		{"<system><cpu><pci busid=\"01:00.0\"><gpu dev=\"0\"><nvlink target=\"x\"/></gpu></pci></cpu></system>",
			"f.xml:1: target=\"x\" is no PCI address (0000:1b:00.0)"},
		{"<system><cpu><pci busid=\"01:00.0\"><gpu dev=\"0\"><nvlink/></gpu></pci></cpu></system>",
			"f.xml:1: a link without target"},
		{"<system><cpu><pci busid=\"01:00.0\"><gpu dev=\"zero\"/></pci></cpu></system>",
			"f.xml:1: dev=\"zero\" is no number from 0 to 65535"},
		{"<system><cpu><pci busid=\"01:00.0\"><gpu dev=\"0\" gcn=\"mi\"/></pci></cpu></system>",
			"f.xml:1: gcn=\"mi\" is no architecture (gfx942)"},
		{"<system><cpu><pci busid=\"01:00.0\"><gpu dev=\"0\"/><gpu dev=\"1\"/></pci></cpu></system>",
			"f.xml:1: a <gpu> on a <pci> that is another device already"},
		{"<system><cpu><pci busid=\"01:00.0\"><gpu dev=\"0\"/><nic><net "
		 "name=\"a\"/></nic></pci></cpu></system>",
			"f.xml:1: a <net> on a <pci> that is a GPU"},
		{"<system><cpu><pci busid=\"01:00.0\" class=\"0x020000\">\n"
		 "<pci busid=\"02:00.0\"/></pci></cpu></system>",
			"f.xml:2: a <pci> inside one that is a GPU or a NIC"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct graph *g = NULL;
		struct error e = {0};
		CU_ASSERT_EQUAL(nccl_xml_read(cases[i].text, strlen(cases[i].text), "f.xml", &g, &e), ST_INPUT);
		CU_ASSERT_PTR_NULL(g);
		if (strcmp(e.text, cases[i].message))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
		CU_ASSERT_STRING_EQUAL(e.text, cases[i].message);
	}
}

/* Nesting and numbers have limits: no deep recursion, no quadratic wait. */
static void test_limits(void)
{
	static char text[1 << 20];
	struct graph *g = NULL;
	struct error e = {0};
	size_t n = (size_t)snprintf(text, sizeof text, "<system><cpu>");
	for (int i = 0; i < 40; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "<pci busid=\"%02x:00.0\">", i);
	CU_ASSERT_EQUAL(nccl_xml_read(text, n, "deep", &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "deep:1: elements nested deeper than 32");
	e = (struct error){0};
	n = (size_t)snprintf(text, sizeof text, "<system><cpu>");
	for (int i = 0; i < 5000; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "<pci busid=\"%04x:%02x:00.0\" class=\"0x030200\"/>",
			i / 256, i % 256);
	CU_ASSERT_EQUAL(nccl_xml_read(text, n, "many", &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "many:1: more than 4096 devices in one host");
}

/* The recorded machines. Links: NVLink and xGMI together, and their width; switches: PCIe. */
static const struct {
	const char *file;
	int gpus, nics, cpus, switches, nvswitches, links, width;
} recorded[] = {
	{"SNIPPET-gb10-c2c", 1, 2, 1, 0, 0, 0, 0},
	{"adpdit-rtx4000ada-topo", 8, 1, 2, 0, 0, 0, 0},
	{"alcf-aws-ofi-v1.6-p4d-topo", 8, 4, 2, 4, 0, 0, 0},
	{"aws-p4d-24xl-topo", 8, 4, 2, 4, 0, 0, 0},
	{"aws-p4de-24xl-topo", 8, 4, 2, 4, 0, 0, 0},
	{"azure-ncv4-topo", 4, 0, 4, 0, 0, 0, 0},
	{"azure-ndv2-topo", 8, 1, 2, 0, 0, 0, 0},
	{"azure-ndv5-topo", 8, 8, 2, 8, 0, 0, 0},
	{"gvisor-b200-vm-topo", 8, 13, 2, 0, 1, 8, 144},
	{"nemo-azure-topo", 8, 8, 1, 4, 0, 0, 0},
	{"nemo-oci-topo", 8, 8, 4, 4, 0, 0, 0},
	{"oci-H100-topology", 8, 16, 2, 24, 1, 8, 144},
	{"oci-topo-flattened-b4", 8, 8, 4, 4, 0, 0, 0},
	{"panlichen-3090-topo", 8, 1, 2, 2, 0, 0, 0},
	{"rccl-topo_16p1h", 16, 8, 4, 28, 0, 28, 56},
	{"rccl-topo_4p3l", 4, 1, 1, 6, 0, 6, 6},
	{"rccl-topo_4p_940", 4, 4, 4, 0, 0, 6, 6},
	{"rccl-topo_8p_90a", 8, 1, 1, 1, 0, 12, 12},
	{"rccl-topo_8p_90a_1", 8, 0, 3, 0, 0, 12, 12},
	{"rccl-topo_8p_940vm", 8, 8, 2, 0, 0, 28, 28},
	{"rccl-topo_8p_pcie", 8, 1, 1, 10, 0, 0, 0},
	{"rccl-topo_8p_rome_4nics", 8, 4, 4, 20, 0, 12, 12},
	{"rccl-topo_8p_ts1", 8, 2, 4, 8, 0, 8, 8},
	{"rtpllm-cx8-26ba-topo", 8, 12, 2, 16, 0, 0, 0},
	{"sugarlxn-4090-calico-topo", 4, 1, 4, 0, 0, 0, 0},
	{"superbench-ndv5-topo", 8, 8, 2, 8, 0, 0, 0},
	{"uccl-p4d-24xl-topo", 8, 4, 2, 4, 0, 0, 0},
	{"yccl-topo_h800", 8, 8, 2, 8, 1, 8, 64},
	{"yccl-topo_l20", 16, 8, 2, 12, 0, 0, 0},
	{"yccl-topo_mod_pciedump", 4, 2, 2, 0, 0, 0, 0},
	{"yynil-topo", 2, 2, 2, 0, 0, 0, 0},
};

static void test_recorded(void)
{
	const char *shared = getenv("STEPSIM_SHARED");
	int gpus = 0, nics = 0, pairs = 0, read = 0;
	for (size_t i = 0; i < COUNT(recorded); i++) {
		char path[512], *text = NULL;
		size_t len = 0;
		struct graph *g = NULL;
		struct error e = {0};
		snprintf(path, sizeof path, "%s/machines/nccl_xml/%s.xml", shared ? shared : "../shared",
			recorded[i].file);
		if (access(path, R_OK)) {
			fprintf(stderr, "skipped: no %s\n", path);
			return;
		}
		CU_ASSERT_EQUAL_FATAL(file_read(path, SIZE_MAX_B, &text, &len, &e), ST_OK);
		enum status st = nccl_xml_read(text, len, recorded[i].file, &g, &e);
		free(text);
		CU_ASSERT_EQUAL(st, ST_OK);
		if (st || topology_check(g, &e)) {
			fprintf(stderr, "%s: %s\n", recorded[i].file, e.text);
			CU_FAIL("a recorded machine");
			graph_destroy(g);
			continue;
		}
		int nvlinks, xgmis, n = links(g, LINK_NVLINK, &nvlinks) + links(g, LINK_XGMI, &xgmis);
		bool same = (int)g->gpu.n == recorded[i].gpus && (int)g->nic.n == recorded[i].nics &&
		            vertices(g, VERTEX_CPU) == recorded[i].cpus &&
		            vertices(g, VERTEX_PCI_SWITCH) == recorded[i].switches &&
		            vertices(g, VERTEX_NVSWITCH) == recorded[i].nvswitches && n == recorded[i].links &&
		            nvlinks + xgmis == recorded[i].width;
		if (!same)
			fprintf(stderr, "%s: %zu GPUs, %zu NICs, %d CPUs, %d switches, %d NVSwitches, %d links of %d\n",
				recorded[i].file, g->gpu.n, g->nic.n, vertices(g, VERTEX_CPU),
				vertices(g, VERTEX_PCI_SWITCH), vertices(g, VERTEX_NVSWITCH), n, nvlinks + xgmis);
		CU_ASSERT_TRUE(same);
		gpus += (int)g->gpu.n;
		nics += (int)g->nic.n;
		pairs += n;
		read++;
		graph_destroy(g);
	}
	fprintf(stderr, "\n    %d recorded NCCL and RCCL files: %d GPUs, %d NICs, %d links between accelerators\n    ",
		read, gpus, nics, pairs);
}

UNIT_MAIN("nccl_xml", {"NVSwitch, ports of one card, numbering", test_nvswitch}, {"files without <gpu>", test_skeleton},
	{"NVLinks to the GPU itself", test_self_loop}, {"virtual network devices", test_virtual_nets},
	{"C2C", test_c2c}, {"xGMI, ends that disagree, odd speeds", test_xgmi},
	{"NVLink to the CPU, absent GPUs", test_power}, {"several hosts, unknown elements", test_rack},
	{"NICs on a host bridge", test_host_bridge}, {"refusals", test_refusals}, {"limits", test_limits},
	{"recorded machines", test_recorded})
