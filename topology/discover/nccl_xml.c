/* NCCL's and RCCL's topology files (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): <system><cpu><pci>...<gpu><nvlink/></gpu>,
 * <nic><net/></nic>.
 *
 * What the elements become:
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
#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/discover.h"
#include "topology/discover/nccl_xml.h"
#include "topology/graph/rates.h"

#define CORE_WORDS 128
/* 10 Tb/s: no NIC is faster, so more is another unit (RCCL's dumps of Slingshot have kb/s) */
#define NET_MBIT_MAX 10e6

static void refuse(struct nccl_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void refuse(struct nccl_reader *r, const char *fmt, ...)
{
	if (r->st)
		return;
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	r->st = error_set(r->e, ST_INPUT, "%s:%lu: %s", r->name, (unsigned long)XML_GetCurrentLineNumber(r->parser),
		text);
	XML_StopParser(r->parser, XML_FALSE);
}

static void no_memory(struct nccl_reader *r)
{
	if (!r->st)
		r->st = error_nomem(r->e, "the topology");
	XML_StopParser(r->parser, XML_FALSE);
}

/* Attribute values in messages: short and without control characters. */
static const char *shown(const char *text, char out[48])
{
	size_t n = 0;
	for (; text[n] && n < 44; n++)
		out[n] = iscntrl((unsigned char)text[n]) ? '?' : text[n];
	snprintf(out + n, 4, "%s", text[n] ? "..." : "");
	return out;
}

static const char *find(const char **atts, const char *key)
{
	for (; *atts; atts += 2)
		if (strcmp(atts[0], key) == 0)
			return atts[1];
	return NULL;
}

/* A whole number; `missing` where the attribute is absent or empty. */
static int64_t number(struct nccl_reader *r, const char **atts, const char *key, int base, int64_t min, int64_t max,
	int64_t missing)
{
	const char *text = find(atts, key);
	char buf[48], *end = NULL;
	if (!text || !*text)
		return missing;
	errno = 0;
	long long value = strtoll(text, &end, base);
	if (*end || errno || value < min || value > max || isspace((unsigned char)*text)) {
		refuse(r, "%s=\"%s\" is no %s from %" PRId64 " to %" PRId64, key, shown(text, buf),
			base == 16 ? "hexadecimal number" : "number", min, max);
		return missing;
	}
	return value;
}

static int32_t add_node(struct nccl_reader *r, enum vertex_kind kind, int32_t parent)
{
	struct nccl_extra x = {.dev = -1, .line = (long)XML_GetCurrentLineNumber(r->parser)};
	if (r->tree.node.n >= TREE_NODES) {
		refuse(r, "more than %d devices in one host", TREE_NODES);
		return -1;
	}
	int32_t node = tree_add(&r->tree, kind, SAID_BY_NCCL_XML, parent);
	if (node < 0 || !vec_push(&r->extra, x)) {
		no_memory(r);
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
			refuse(r,
				"affinity=\"%s\" is no mask of processors (hexadecimal words of 8 digits, joined by "
				"commas)",
				shown(text, buf));
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
		no_memory(r);
}

static void start_cpu(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	const char *hash = find(atts, "host_hash"), *affinity = find(atts, "affinity"), *arch = find(atts, "arch"),
		   *vendor = find(atts, "vendor");
	if (hash && !r->cpus)
		snprintf(r->host_hash, sizeof r->host_hash, "%.39s", hash);
	if (hash && strncmp(hash, r->host_hash, sizeof r->host_hash - 1) != 0) {
		r->other_hosts++;
		r->skip = 1;
		return;
	}
	if (++r->cpus > TREE_CPUS) {
		refuse(r, "more than %d <cpu> in one host", TREE_CPUS);
		return;
	}
	int64_t numa = number(r, atts, "numaid", 10, -1, 65535, -1),
		family = number(r, atts, "familyid", 10, 0, 65535, 0),
		model = number(r, atts, "modelid", 10, 0, 65535, 0);
	for (size_t i = 0; i < r->tree.node.n && numa >= 0; i++)
		if (r->tree.node.at[i].v.kind == VERTEX_CPU && r->tree.node.at[i].v.numa == numa)
			refuse(r, "numaid=\"%" PRId64 "\" a second time: first on line %ld", numa, r->extra.at[i].line);
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
	const char *speed = find(atts, "link_speed");
	char buf[48], *end = NULL;
	if (speed && *speed && strncmp(speed, "Unknown", 7) != 0) {
		double gt_per_s = strtod(speed, &end);
		n->gen = end == speed || (*end && strncmp(end, " GT/s", 5) != 0) ? 0 : pcie_gen_of_speed(gt_per_s);
		if (n->gen == 0)
			refuse(r, "link_speed=\"%s\" is no PCIe speed (2.5, 5, 8, 16, 32, 64 or 128 GT/s)",
				shown(speed, buf));
	}
	int64_t width = number(r, atts, "link_width", 10, 0, 255, 0);
	n->lanes = width > 32 ? 0 : (int32_t)width;
}

static void start_pci(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	const char *busid = find(atts, "busid");
	char buf[48], pci[GRAPH_PCI];
	if (!busid || !graph_normal_pci(busid, pci)) {
		refuse(r, busid ? "busid=\"%s\" is no PCI address (0000:1b:00.0)" : "<pci> without busid%s",
			busid ? shown(busid, buf) : "");
		return;
	}
	for (size_t i = 0; i < r->pci.n; i++)
		if (strcmp(r->tree.node.at[r->pci.at[i]].v.pci, pci) == 0)
			refuse(r, "PCI address %s a second time: first on line %ld", pci,
				r->extra.at[r->pci.at[i]].line);
	uint32_t class24 = (uint32_t)number(r, atts, "class", 16, 0, 0xffffff, 0),
		 pci_class = class24 > 0xffff ? class24 >> 8 : class24;
	uint32_t vendor = (uint32_t)number(r, atts, "vendor", 16, 0, 0xffff, 0),
		 device = (uint32_t)number(r, atts, "device", 16, 0, 0xffff, 0);
	if (l[-1].tag == TAG_PCI &&
		(l[-1].gpus || (l[-1].nets && !l[-1].bridge) ||
			(!l[-1].stand_in && r->tree.node.at[l[-1].node].v.kind != VERTEX_PCI_SWITCH)))
		refuse(r, "a <pci> inside one that is a GPU or a NIC");
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
		no_memory(r);
	l->node = node;
	l->bridge = pci_class >> 8 == 6;
}

static void start_gpu(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	struct nccl_level *up = &l[-1];
	if (up->tag == TAG_PCI && (up->gpus++ > 0 || up->nets > 0 || up->pcis > 0 || up->stand_in || up->bridge)) {
		refuse(r, "a <gpu> on a <pci> that is another device already");
		return;
	}
	int32_t node = up->tag == TAG_PCI ? up->node : add_node(r, VERTEX_GPU, up->node);
	if (node < 0 || r->st)
		return;
	struct tree_node *n = &r->tree.node.at[node];
	struct nccl_extra *x = &r->extra.at[node];
	const char *gcn = find(atts, "gcn");
	char buf[48], *end = NULL;
	if (n->v.kind != VERTEX_GPU) {
		n->v.kind = VERTEX_GPU;
		memset(&n->v.gpu, 0, sizeof n->v.gpu);
		n->v.name[0] = '\0';
	}
	x->dev = (int32_t)number(r, atts, "dev", 10, 0, 65535, -1);
	int64_t sm = number(r, atts, "sm", 10, 0, 65535, 0);
	if (gcn) { /* "908", "gfx942": RCCL, whose `sm` counts compute units */
		x->gfx = (int32_t)strtol(strncmp(gcn, "gfx", 3) == 0 ? gcn + 3 : gcn, &end, 16);
		if (*end || x->gfx <= 0 || x->gfx > 0xfffff)
			refuse(r, "gcn=\"%s\" is no architecture (gfx942)", shown(gcn, buf));
	} else if (x->vendor != 0x1002) {
		n->v.gpu.compute_capability = (int32_t)sm;
	}
	l->node = node;
}

static void start_link(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	struct nccl_peer p = {.node = l[-1].node, .tag = l->tag};
	const char *target = find(atts, "target");
	char buf[48];
	p.count = (int32_t)number(r, atts, "count", 10, 0, 1000, 1);
	p.tclass = (uint32_t)number(r, atts, "tclass", 16, 0, 0xffffff, 0);
	if (l->tag == TAG_C2C)
		p.Bps = (double)number(r, atts, "bw", 10, 0, 10000000, 0) * 1e6;
	else if (!target || !graph_normal_pci(target, p.target))
		refuse(r, target ? "target=\"%s\" is no PCI address (0000:1b:00.0)" : "a link without target%s",
			target ? shown(target, buf) : "");
	if (r->peer.n >= PEERS_MAX)
		refuse(r, "more than %d links between devices", PEERS_MAX);
	if (p.count > 0 && !r->st && !vec_push(&r->peer, p))
		no_memory(r);
}

static double net_Bps(struct nccl_reader *r, const char **atts)
{
	const char *text = find(atts, "name");
	double mbit_per_s = (double)number(r, atts, "speed", 10, INT32_MIN, INT64_MAX / 2, 0);
	if (mbit_per_s > NET_MBIT_MAX) {
		if (r->speeds_odd++ == 0)
			shown(text ? text : "", r->odd_name);
		return 0;
	}
	return mbit_per_s > 0 ? mbit_per_s * 1e6 / 8 : 0;
}

static void start_net(struct nccl_reader *r, const char **atts, struct nccl_level *l)
{
	struct nccl_level *pci = l[-1].tag == TAG_NIC ? &l[-2] : &l[-1];
	const char *name = find(atts, "name");
	if (pci->tag != TAG_PCI) {
		if (r->nets_virtual++ == 0)
			shown(name ? name : "", r->virtual_name);
		return;
	}
	if (pci->gpus > 0 || (!pci->stand_in && r->tree.node.at[pci->node].v.kind == VERTEX_GPU)) {
		refuse(r, "a <net> on a <pci> that is a GPU");
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
	n->order = (int32_t)number(r, atts, "dev", 10, 0, 65535, INT32_MAX);
	n->v.nic.port = (int32_t)number(r, atts, "port", 10, 0, 65535, 0);
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

static const struct {
	const char *name;
	unsigned parents; /* bits of tags */
	void (*start)(struct nccl_reader *r, const char **atts, struct nccl_level *l);
} tags[TAGS] = {
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

static void start_root(struct nccl_reader *r, const char *name, const char **atts)
{
	char buf[48];
	if (strcmp(name, "topology") == 0)
		refuse(r, "this is an hwloc export (<topology>), no NCCL topology file (<system>)");
	else if (strcmp(name, "graphs") == 0)
		refuse(r, "these are NCCL's search graphs (NCCL_GRAPH_DUMP_FILE), no topology file "
			  "(NCCL_TOPO_DUMP_FILE)");
	else if (strcmp(name, "system") != 0)
		refuse(r, "<%s> is no NCCL topology file: its root is <system>", shown(name, buf));
	else if (number(r, atts, "version", 10, 0, 1000, 1) > 2)
		refuse(r, "version %s of the format is not known (1 and RCCL's 2 are)",
			shown(find(atts, "version"), buf));
}

static void XMLCALL on_start(void *user, const char *name, const char **atts)
{
	struct nccl_reader *r = user;
	char buf[48];
	int t = 0;
	if (r->st)
		return;
	if (r->skip > 0) {
		r->skip++;
		return;
	}
	if (r->depth == 0) {
		start_root(r, name, atts);
		r->level[r->depth++] = (struct nccl_level){.tag = TAG_SYSTEM, .node = -1};
		return;
	}
	while (t < TAGS && strcmp(name, tags[t].name) != 0)
		t++;
	if (t == TAGS) { /* newer formats: NCCL itself passes over what it does not know */
		r->skip = 1;
		if (r->unknown++ == 0) {
			shown(name, r->unknown_name);
			r->unknown_line = (long)XML_GetCurrentLineNumber(r->parser);
		}
		return;
	}
	const struct nccl_level *up = &r->level[r->depth - 1];
	if (!(tags[t].parents >> up->tag & 1)) {
		refuse(r, "<%s> inside <%s>", shown(name, buf), tags[up->tag].name);
		return;
	}
	if (r->depth == DEPTH_MAX) {
		refuse(r, "elements nested deeper than %d", DEPTH_MAX);
		return;
	}
	struct nccl_level *l = &r->level[r->depth++];
	*l = (struct nccl_level){.tag = (enum tag)t, .node = -1};
	tags[t].start(r, atts, l);
	if (r->skip > 0) /* the element left itself out: its end closes the skip */
		r->depth--;
}

static void XMLCALL on_end(void *user, const char *name)
{
	struct nccl_reader *r = user;
	(void)name;
	if (r->st)
		return;
	if (r->skip > 0) {
		r->skip--;
		return;
	}
	r->depth--;
}

static void XMLCALL on_doctype(void *user, const char *name, const char *system_id, const char *public_id, int internal)
{
	(void)system_id;
	(void)public_id;
	(void)internal;
	refuse(user, strcmp(name, "topology") == 0
			     ? "this is an hwloc export (<topology>), no NCCL topology file (<system>)"
			     : "a document type declaration: topology files have none");
}

static enum status parse(struct nccl_reader *r, const char *text, size_t len)
{
	XML_SetUserData(r->parser, r);
	XML_SetElementHandler(r->parser, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
	if (XML_Parse(r->parser, text, (int)len, XML_TRUE) == XML_STATUS_OK || r->st)
		return r->st;
	enum XML_Error code = XML_GetErrorCode(r->parser);
	if (code == XML_ERROR_NO_MEMORY)
		return error_nomem(r->e, "the topology");
	return error_set(r->e, ST_INPUT, "%s:%lu: no XML: %s", r->name,
		(unsigned long)XML_GetCurrentLineNumber(r->parser), XML_ErrorString(code));
}

enum status nccl_xml_read(const char *text, size_t len, const char *name, struct graph **out, struct error *e)
{
	*out = NULL;
	if (len > DUMP_MOST_B)
		return error_set(e, ST_INPUT, "%s: larger than %d MiB: no topology file", name, DUMP_MOST_MIB);
	enum status st = ST_OK;
	struct nccl_reader *r = calloc(1, sizeof *r);
	if (!r)
		return error_nomem(e, "the topology");
	r->name = name;
	r->e = e;
	r->g = graph_create(SAID_BY_NCCL_XML);
	r->parser = XML_ParserCreate(NULL);
	if (!r->g || !r->parser) {
		st = error_nomem(e, "the topology");
		goto out;
	}
	if ((st = parse(r, text, len)))
		goto out;
	if (r->cpus == 0) {
		st = error_set(e, ST_INPUT, "%s:%lu: no <cpu> in it: no devices can be placed", name,
			(unsigned long)XML_GetCurrentLineNumber(r->parser));
		goto out;
	}
	if ((st = nccl_xml_graph(r)))
		goto out;
	*out = r->g;
	r->g = NULL;
out:
	if (r->parser)
		XML_ParserFree(r->parser);
	graph_destroy(r->g);
	tree_free(&r->tree);
	vec_free(&r->extra);
	vec_free(&r->peer);
	vec_free(&r->pci);
	free(r);
	return st;
}
