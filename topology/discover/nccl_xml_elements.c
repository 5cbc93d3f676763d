/* What the elements of an NCCL topology file become:
 * - <cpu> a CPU with one host bridge: the format does not tell root complexes apart, and NCCL calls everything of one
 * CPU PHB as well. A <pci> of class 0600 (virtual machines hang NICs below one) stands for that bridge.
 * - <pci> of class 0604, or without a class but with others inside, a PCIe switch; with a <gpu> inside, or of a GPU's
 * class (files for clouds have no <gpu>), a GPU; with a <net> inside, or of class 02xx, a NIC.
 * - each <net> on a PCI device a NIC: ports of one card share the card's slot. A <net> directly under <cpu> has no PCI
 * device (veth, bridges, bonds): left out, with a remark.
 * - <nvlink> and <xgmi> by the class of the target: 0680 00 one NVLink switch for all of them (its chips are planes
 * that each GPU is wired to alike, and invisible in virtual machines), a GPU, else the GPU's own CPU (POWER). A target
 * that is the GPU itself (Azure NC A100 v4) says that a bridge is there and not where it ends: a remark, no link.
 * - CPUs of a second host (host_hash: a dump of a rack) are left out with a remark: a graph is one host.
 * GPUs are numbered by `dev` where all of them have one, else by PCI address, as nvidia-smi does.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/nccl_xml.h"
#include "topology/graph/rates.h"

#define CORE_WORDS 128
/* 10 Tb/s: no NIC is faster, so more is another unit (RCCL's dumps of Slingshot have kb/s) */
#define NET_MBIT_MAX 10e6

static int32_t add_node(struct nccl_reader *r, enum vertex_kind kind, int32_t parent)
{
	struct nccl_extra x = {.dev = -1, .line = (long)XML_GetCurrentLineNumber(r->parser)};
	if (r->tree.node.n >= TREE_NODES) {
		nccl_refuse(r, "more than %d devices in one host", TREE_NODES);
		return -1;
	}
	int32_t node = tree_add(&r->tree, kind, SAID_BY_NCCL_XML, parent);
	if (node < 0 || !vec_push(&r->extra, x)) {
		nccl_no_memory(r);
		return -1;
	}
	return node;
}

/* The processors by what CPUID says: NCCL writes family + (extended family << 4) and model + (extended model << 4).
 * First match wins. */
static const struct {
	const char *arch, *vendor;
	int64_t family, model_from;
	const char *name; /* with a word that rate_socket knows */
} processors[] = {
	{"x86_64", "GenuineIntel", 6, 0xd0, "Intel Xeon 6 (after Emerald Rapids)"},
	{"x86_64", "GenuineIntel", 6, 0xcf, "Intel Xeon (Emerald Rapids)"},
	{"x86_64", "GenuineIntel", 6, 0xad, "Intel Xeon 6 (Granite Rapids)"},
	{"x86_64", "GenuineIntel", 6, 0x8f, "Intel Xeon (Sapphire Rapids)"},
	{"x86_64", "GenuineIntel", 6, 0x6a, "Intel Xeon (Ice Lake)"},
	{"x86_64", "GenuineIntel", 6, 0x55, "Intel Xeon (Skylake, Cascade Lake)"},
	{"x86_64", "GenuineIntel", 6, 0x3f, "Intel Xeon E5 (Haswell, Broadwell)"},
	{"x86_64", "GenuineIntel", -1, 0, "Intel"},
	{"x86_64", "AuthenticAMD", 143, 0, "AMD EPYC (family 17h)"},
	{"x86_64", "AuthenticAMD", 175, 0, "AMD EPYC (family 19h)"},
	{"x86_64", "AuthenticAMD", 191, 0, "AMD EPYC (family 1Ah)"},
	{"x86_64", "AuthenticAMD", -1, 0, "AMD"},
	{"x86_64", "CentaurHauls", -1, 0, "Zhaoxin"},
	{"x86_64", "  Shanghai  ", -1, 0, "Zhaoxin"},
	{"ppc64", "", -1, 0, "IBM POWER"},
	{"arm64", "", -1, 0, "Arm"},
};

static void name_processor(struct tree_node *cpu, const char *arch, const char *vendor, int64_t family, int64_t model)
{
	for (size_t i = 0; i < COUNT(processors); i++) {
		if (strcmp(arch, processors[i].arch) ||
			(processors[i].vendor[0] && strcmp(vendor, processors[i].vendor)) ||
			(processors[i].family >= 0 && processors[i].family != family) ||
			model < processors[i].model_from)
			continue;
		snprintf(cpu->v.cpu.model, sizeof cpu->v.cpu.model, "%s", processors[i].name);
		return;
	}
}

/* "0000ffff,ffffffff": words of 32 bits, the lowest last. */
static void read_affinity(struct nccl_reader *r, const char *text, struct vertex *cpu)
{
	uint32_t words[CORE_WORDS] = {0};
	size_t word = 0, digit = 0;
	char buf[48];
	for (size_t i = strlen(text); i-- > 0;) {
		if (text[i] == ',' && digit > 0) {
			word++;
			digit = 0;
			continue;
		}
		if (!isxdigit((unsigned char)text[i]) || digit == 8 || word == CORE_WORDS) {
			nccl_refuse(r,
				"affinity=\"%s\" is no mask of processors (hexadecimal words of 8 digits, joined by "
				"commas)",
				nccl_shown(text, buf));
			return;
		}
		uint32_t value = isdigit((unsigned char)text[i])
		                         ? (uint32_t)(text[i] - '0')
		                         : (uint32_t)(tolower((unsigned char)text[i]) - 'a' + 10);
		words[word] |= value << 4 * digit++;
	}
	if (!tree_core_list(words, CORE_WORDS, cpu->cores) &&
		graph_remark(r->g, false, r->e,
			"CPU affinity of NUMA node %" PRId32 " is a list too long to keep: left out", cpu->numa))
		nccl_no_memory(r);
}

static void start_cpu(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	const char *hash = nccl_attribute(atts, "host_hash"), *affinity = nccl_attribute(atts, "affinity"),
		   *arch = nccl_attribute(atts, "arch"), *vendor = nccl_attribute(atts, "vendor");
	if (hash && !r->cpus)
		snprintf(r->host_hash, sizeof r->host_hash, "%.39s", hash);
	if (hash && strncmp(hash, r->host_hash, sizeof r->host_hash - 1) != 0) {
		r->other_hosts++;
		r->skip = 1;
		return;
	}
	if (++r->cpus > TREE_CPUS) {
		nccl_refuse(r, "more than %d <cpu> in one host", TREE_CPUS);
		return;
	}
	int64_t numa = nccl_number(r, atts, "numaid", 10, -1, 65535, -1),
		family = nccl_number(r, atts, "familyid", 10, 0, 65535, 0),
		model = nccl_number(r, atts, "modelid", 10, 0, 65535, 0);
	for (size_t i = 0; i < r->tree.node.n && numa >= 0; i++)
		if (r->tree.node.at[i].v.kind == VERTEX_CPU && r->tree.node.at[i].v.numa == numa)
			nccl_refuse(r, "numaid=\"%" PRId64 "\" a second time: first on line %ld", numa,
				r->extra.at[i].line);
	int32_t node = r->st ? -1 : add_node(r, VERTEX_CPU, -1);
	if (node < 0)
		return;
	struct tree_node *cpu = &r->tree.node.at[node];
	cpu->v.numa = (int32_t)numa;
	cpu->order = (int32_t)numa;
	name_processor(cpu, arch ? arch : "", vendor ? vendor : "", family, model);
	if (affinity)
		read_affinity(r, affinity, &cpu->v);
	if ((node = add_node(r, VERTEX_BRIDGE, node)) < 0)
		return;
	r->tree.node.at[node].order = (int32_t)numa;
	l->node = node;
}

/* "16.0 GT/s PCIe" and width "16"; nothing, "Unknown" and widths of 0 and above 32 (0xff, 63: what Linux shows for a
 * link that is down) mean not known. */
static void read_slot(struct nccl_reader *r, const char **atts, struct tree_node *n)
{
	const char *speed = nccl_attribute(atts, "link_speed");
	char buf[48], *end = NULL;
	if (speed && *speed && strncmp(speed, "Unknown", 7) != 0) {
		double gt_per_s = strtod(speed, &end);
		n->gen = end == speed || (*end && strncmp(end, " GT/s", 5) != 0) ? 0 : pcie_gen_of_speed(gt_per_s);
		if (n->gen == 0)
			nccl_refuse(r, "link_speed=\"%s\" is no PCIe speed (2.5, 5, 8, 16, 32, 64 or 128 GT/s)",
				nccl_shown(speed, buf));
	}
	int64_t width = nccl_number(r, atts, "link_width", 10, 0, 255, 0);
	n->lanes = width > 32 ? 0 : (int32_t)width;
}

static void start_pci(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	const char *busid = nccl_attribute(atts, "busid");
	char buf[48], pci[GRAPH_PCI];
	if (!busid || !graph_normal_pci(busid, pci)) {
		nccl_refuse(r, busid ? "busid=\"%s\" is no PCI address (0000:1b:00.0)" : "<pci> without busid%s",
			busid ? nccl_shown(busid, buf) : "");
		return;
	}
	for (size_t i = 0; i < r->pci.n; i++)
		if (strcmp(r->tree.node.at[r->pci.at[i]].v.pci, pci) == 0)
			nccl_refuse(r, "PCI address %s a second time: first on line %ld", pci,
				r->extra.at[r->pci.at[i]].line);
	uint32_t class24 = (uint32_t)nccl_number(r, atts, "class", 16, 0, 0xffffff, 0),
		 pci_class = class24 > 0xffff ? class24 >> 8 : class24;
	uint32_t vendor = (uint32_t)nccl_number(r, atts, "vendor", 16, 0, 0xffff, 0),
		 device = (uint32_t)nccl_number(r, atts, "device", 16, 0, 0xffff, 0);
	if (l[-1].tag == TAG_PCI &&
		(l[-1].gpus || (l[-1].nets && !l[-1].bridge) ||
			(!l[-1].stand_in && r->tree.node.at[l[-1].node].v.kind != VERTEX_PCI_SWITCH)))
		nccl_refuse(r, "a <pci> inside one that is a GPU or a NIC");
	if (r->st)
		return;
	l[-1].pcis++;
	if (pci_class == 0x0600 && l[-1].tag == TAG_CPU) {
		l->node = l[-1].node;
		l->stand_in = true;
		return;
	}
	unsigned bus = 0;
	sscanf(pci, "%*x:%x", &bus);
	bool gpu = tree_is_gpu(pci_class, vendor, device, bus), nic = pci_class >> 8 == 2;
	int32_t node = add_node(r, gpu ? VERTEX_GPU : nic ? VERTEX_NIC : VERTEX_PCI_SWITCH, l[-1].node);
	if (node < 0)
		return;
	struct tree_node *n = &r->tree.node.at[node];
	memcpy(n->v.pci, pci, sizeof pci);
	n->order = INT32_MAX;
	r->extra.at[node].vendor = vendor;
	r->extra.at[node].device = device;
	read_slot(r, atts, n);
	if (nic)
		n->v.nic.infiniband = pci_class == 0x0207;
	if (!vec_push(&r->pci, node))
		nccl_no_memory(r);
	l->node = node;
	l->bridge = pci_class >> 8 == 6;
}

static void start_gpu(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	struct nccl_level *up = &l[-1];
	if (up->tag == TAG_PCI && (up->gpus++ > 0 || up->nets > 0 || up->pcis > 0 || up->stand_in || up->bridge)) {
		nccl_refuse(r, "a <gpu> on a <pci> that is another device already");
		return;
	}
	int32_t node = up->tag == TAG_PCI ? up->node : add_node(r, VERTEX_GPU, up->node);
	if (node < 0 || r->st)
		return;
	struct tree_node *n = &r->tree.node.at[node];
	struct nccl_extra *x = &r->extra.at[node];
	const char *gcn = nccl_attribute(atts, "gcn");
	char buf[48], *end = NULL;
	if (n->v.kind != VERTEX_GPU) {
		n->v.kind = VERTEX_GPU;
		memset(&n->v.gpu, 0, sizeof n->v.gpu);
		n->v.name[0] = '\0';
	}
	x->dev = (int32_t)nccl_number(r, atts, "dev", 10, 0, 65535, -1);
	int64_t sm = nccl_number(r, atts, "sm", 10, 0, 65535, 0);
	if (gcn) { /* "908", "gfx942": RCCL, whose `sm` counts compute units */
		x->gfx = (int32_t)strtol(strncmp(gcn, "gfx", 3) == 0 ? gcn + 3 : gcn, &end, 16);
		if (*end || x->gfx <= 0 || x->gfx > 0xfffff)
			nccl_refuse(r, "gcn=\"%s\" is no architecture (gfx942)", nccl_shown(gcn, buf));
	} else if (x->vendor != 0x1002) {
		n->v.gpu.compute_capability = (int32_t)sm;
	}
	l->node = node;
}

static void start_link(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	struct nccl_peer p = {.node = l[-1].node, .tag = l->tag};
	const char *target = nccl_attribute(atts, "target");
	char buf[48];
	p.count = (int32_t)nccl_number(r, atts, "count", 10, 0, 1000, 1);
	p.tclass = (uint32_t)nccl_number(r, atts, "tclass", 16, 0, 0xffffff, 0);
	if (l->tag == TAG_C2C)
		p.Bps = (double)nccl_number(r, atts, "bw", 10, 0, 10000000, 0) * 1e6;
	else if (!target || !graph_normal_pci(target, p.target))
		nccl_refuse(r, target ? "target=\"%s\" is no PCI address (0000:1b:00.0)" : "a link without target%s",
			target ? nccl_shown(target, buf) : "");
	if (r->peer.n >= PEERS_MAX)
		nccl_refuse(r, "more than %d links between devices", PEERS_MAX);
	if (p.count > 0 && !r->st && !vec_push(&r->peer, p))
		nccl_no_memory(r);
}

static double net_Bps(struct nccl_reader *r, const char **atts)
{
	const char *text = nccl_attribute(atts, "name");
	double mbit_per_s = (double)nccl_number(r, atts, "speed", 10, INT32_MIN, INT64_MAX / 2, 0);
	if (mbit_per_s > NET_MBIT_MAX) {
		if (r->speeds_odd++ == 0)
			nccl_shown(text ? text : "", r->odd_name);
		return 0;
	}
	return mbit_per_s > 0 ? mbit_per_s * 1e6 / 8 : 0;
}

static void start_net(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	struct nccl_level *pci = l[-1].tag == TAG_NIC ? &l[-2] : &l[-1];
	const char *name = nccl_attribute(atts, "name");
	if (pci->tag != TAG_PCI) {
		if (r->nets_virtual++ == 0)
			nccl_shown(name ? name : "", r->virtual_name);
		return;
	}
	if (pci->gpus > 0 || (!pci->stand_in && r->tree.node.at[pci->node].v.kind == VERTEX_GPU)) {
		nccl_refuse(r, "a <net> on a <pci> that is a GPU");
		return;
	}
	const struct tree_node *device = &r->tree.node.at[pci->node];
	bool inside = pci->stand_in || pci->bridge || pci->pcis > 0,
	     own = !inside && pci->nets == 0; /* own: the device itself; further ports become NICs beside it */
	int32_t parent = inside ? pci->node : device->parent, gen = inside ? 0 : device->gen,
		lanes = inside ? 0 : device->lanes;
	bool infiniband = !inside && device->v.kind == VERTEX_NIC && device->v.nic.infiniband;
	int32_t node = own ? pci->node : add_node(r, VERTEX_NIC, parent);
	if (node < 0)
		return;
	pci->nets++;
	struct tree_node *n = &r->tree.node.at[node];
	if (n->v.kind != VERTEX_NIC) {
		n->v.kind = VERTEX_NIC;
		memset(&n->v.nic, 0, sizeof n->v.nic);
	}
	n->gen = gen;
	n->lanes = lanes;
	n->order = (int32_t)nccl_number(r, atts, "dev", 10, 0, 65535, INT32_MAX);
	n->v.nic.port = (int32_t)nccl_number(r, atts, "port", 10, 0, 65535, 0);
	n->v.nic.Bps = net_Bps(r, atts);
	n->v.nic.infiniband = infiniband;
	if (name)
		snprintf(n->v.name, sizeof n->v.name, "%.90s", name);
}

static void start_nothing(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	(void)r;
	(void)atts;
	l->node = l[-1].node;
}

const struct nccl_tag nccl_tags[TAGS] = {
	[TAG_SYSTEM] = {"system", 0, NULL},
	[TAG_CPU] = {"cpu", 1u << TAG_SYSTEM, start_cpu},
	[TAG_PCI] = {"pci", 1u << TAG_CPU | 1u << TAG_PCI, start_pci},
	[TAG_GPU] = {"gpu", 1u << TAG_CPU | 1u << TAG_PCI, start_gpu},
	[TAG_NVLINK] = {"nvlink", 1u << TAG_GPU, start_link},
	[TAG_XGMI] = {"xgmi", 1u << TAG_GPU, start_link},
	[TAG_C2C] = {"c2c", 1u << TAG_GPU, start_link},
	[TAG_NIC] = {"nic", 1u << TAG_CPU | 1u << TAG_PCI, start_nothing},
	[TAG_NET] = {"net", 1u << TAG_NIC | 1u << TAG_PCI | 1u << TAG_CPU, start_net},
};
