/* From hwloc's objects to the PCI tree:
 *
 * - a NUMA node that has processors is a CPU; nodes without any (GPU memory of POWER9 and Grace, CXL), and second nodes
 * of the same processors (HBM), are not. Several packages in one NUMA node are one CPU.
 * - a host bridge is one. Of the PCI-to-PCI bridges below it each first one is a root port and no vertex; a bridge
 * below a root port is the upstream port of a PCIe switch: the switch's vertex; the bridges below that are its
 *   downstream ports, part of the same vertex; and so on. A port with devices in more than one slot below it is a
 * shared bus, and counts as a switch.
 * - GPUs: PCI devices with a device of CUDA, NVML, ROCm SMI or Level Zero, and those that tree_is_gpu takes. Several
 * ROCm SMI devices on one PCI device (MI300A in TPX or CPX mode) are as many GPUs, the first of which has the address.
 *   They are numbered as NVML or ROCm SMI does where all have such a number, else by PCI address (hwloc's order).
 * - NICs: PCI functions with a network or OpenFabrics device, one for each function. Functions of a network class
 * without one (no driver) are left out with a remark.
 * - PCIe links: hwloc has GB/s only, and 15.75 is gen 3 x16 as well as gen 4 x8. The widest reading is taken: the rate
 * is the same, and gpu_facts' generation and width stay unknown. Of the two ends of a link the slower counts.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/hwloc_read.h"
#include "topology/graph/rates.h"
#include "topology/machine.h"

static const char *const backends[] = {"nvml", "cuda", "rsmi",
	"ze"}; /* in the order in which their names are believed */

static bool named(hwloc_obj_t o, const char *prefix)
{
	size_t n = strlen(prefix);
	return o->type == HWLOC_OBJ_OS_DEVICE && o->name && strncmp(o->name, prefix, n) == 0 &&
	       isdigit((unsigned char)o->name[n]);
}

bool hwloc_is_compute(hwloc_obj_t os)
{
	for (size_t i = 0; i < COUNT(backends); i++)
		if (named(os, backends[i]))
			return true;
	return false;
}

static int32_t add_node(struct hwloc_reader *r, enum vertex_kind kind, int32_t parent, hwloc_obj_t o, enum status *st)
{
	if (r->tree.node.n >= TREE_NODES) {
		*st = error_set(r->e, ST_INPUT, "more than %d devices in one host", TREE_NODES);
		return -1;
	}
	int32_t node = tree_add(&r->tree, kind, r->g->source, parent);
	if (node < 0 || !vec_push(&r->object, o)) {
		*st = error_nomem(r->e, "the PCI tree");
		return -1;
	}
	r->tree.node.at[node].order = INT32_MAX;
	return node;
}

/* Without the blanks that CPUID pads with. */
static void copy_trimmed(const char *text, char *out, size_t size)
{
	while (isspace((unsigned char)*text))
		text++;
	snprintf(out, size, "%s", text);
	for (size_t n = strlen(out); n > 0 && isspace((unsigned char)out[n - 1]); n--)
		out[n - 1] = '\0';
}

static hwloc_obj_t package_of(struct hwloc_reader *r, hwloc_obj_t numa)
{
	for (hwloc_obj_t p = NULL; (p = hwloc_get_next_obj_by_type(r->t, HWLOC_OBJ_PACKAGE, p));)
		if (p->cpuset && hwloc_bitmap_intersects(p->cpuset, numa->cpuset))
			return p;
	return NULL;
}

static bool is_cpu(const struct hwloc_reader *r, hwloc_obj_t numa)
{
	if (!numa->cpuset || hwloc_bitmap_weight(numa->cpuset) <= 0)
		return false;
	for (int i = 0; i < r->cpus; i++)
		if (hwloc_bitmap_intersects(r->object.at[i]->cpuset, numa->cpuset))
			return false;
	return true;
}

/* The memory of a NUMA node. The only one of this host has all of it, whatever its own count says: a node's count
 * misses what was added while the machine ran. */
static uint64_t node_memory(const struct hwloc_reader *r, hwloc_obj_t o)
{
	uint64_t total_B, available_B;
	if (hwloc_topology_is_thissystem(r->t) && hwloc_get_nbobjs_by_type(r->t, HWLOC_OBJ_NUMANODE) == 1 &&
		host_memory_read(&total_B, &available_B, NULL) == ST_OK)
		return total_B;
	return o->attr ? o->attr->numanode.local_memory : 0;
}

static enum status add_cpus(struct hwloc_reader *r)
{
	enum status st = ST_OK;
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(r->t, HWLOC_OBJ_NUMANODE, o));) {
		if (!is_cpu(r, o))
			continue;
		if (r->cpus == TREE_CPUS)
			return error_set(r->e, ST_INPUT, "more than %d NUMA nodes in one host", TREE_CPUS);
		int32_t node = add_node(r, VERTEX_CPU, -1, o, &st);
		if (node < 0)
			return st;
		r->cpus++;
		struct vertex *v = &r->tree.node.at[node].v;
		hwloc_obj_t package = package_of(r, o);
		const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
		if (!model)
			model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(r->t), "CPUModel");
		r->tree.node.at[node].order = node;
		v->numa = o->os_index < INT32_MAX ? (int32_t)o->os_index : -1;
		v->cpu.mem_B = node_memory(r, o);
		if (package)
			v->cpu.package = (int32_t)package->logical_index;
		if (model)
			copy_trimmed(model, v->cpu.model, sizeof v->cpu.model);
		if (hwloc_bitmap_list_snprintf(v->cores, sizeof v->cores, o->cpuset) >= (int)sizeof v->cores) {
			v->cores[0] = '\0';
			if ((st = graph_remark(r->g, false, r->e,
				     "the processors of NUMA node %d are a list too long to keep: left out", v->numa)))
				return st;
		}
	}
	return r->cpus > 0 ? ST_OK : error_set(r->e, ST_INPUT, "no NUMA node with processors");
}

/* The CPU that an I/O object is near. */
static int32_t near_cpu(const struct hwloc_reader *r, hwloc_obj_t o, bool *sure)
{
	hwloc_obj_t host = hwloc_get_non_io_ancestor_obj(r->t, o);
	int32_t found = -1, n = 0;
	for (int32_t i = 0; i < r->cpus; i++) {
		if (host && host->cpuset && hwloc_bitmap_intersects(host->cpuset, r->object.at[i]->cpuset)) {
			found = found < 0 ? i : found;
			n++;
		}
	}
	*sure = n == 1;
	return found < 0 ? 0 : found;
}

/* GB/s to the generation and lanes that come closest; among those that are alike, the widest. */
static void read_speed(float GBps, struct tree_node *n)
{
	static const int32_t lanes[] = {16, 8, 4, 2, 1};
	double best = 0.03;
	for (size_t i = 0; i < COUNT(lanes) && GBps > 0; i++) {
		for (int32_t gen = 1; gen <= 6; gen++) {
			double raw = rate_pcie(gen, lanes[i]).datasheet_Bps / 1e9, off = fabs((double)GBps / raw - 1);
			if (off < best - 0.001) {
				best = off;
				n->gen = gen;
				n->lanes = lanes[i];
			}
		}
	}
}

static float slower(float a, float b) { return a > 0 && (b <= 0 || a < b) ? a : b; }

/* "GV100GL [Tesla V100 SXM2 16GB]" -> "Tesla V100 SXM2 16GB" */
static void copy_model(const char *text, char out[GRAPH_NAME])
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
	if (close && close > open + 1)
		snprintf(out, GRAPH_NAME, "%.*s",
			(int)(close - open - 1) < GRAPH_NAME - 1 ? (int)(close - open - 1) : GRAPH_NAME - 1, open + 1);
	else
		copy_trimmed(text, out, GRAPH_NAME);
}

static const char *child_info(hwloc_obj_t pci, const char *key)
{
	for (size_t b = 0; b < COUNT(backends) + 1; b++)
		for (hwloc_obj_t c = pci->io_first_child; c; c = c->next_sibling) {
			const char *text = b == COUNT(backends) || named(c, backends[b])
			                           ? hwloc_obj_get_info_by_name(c, key)
			                           : NULL;
			if (text && *text)
				return text;
		}
	return NULL;
}

static void describe_gpu(hwloc_obj_t pci, struct vertex *v)
{
	static const char *const sizes[] = {"CUDAGlobalMemorySize", "RSMIVRAMSize", "LevelZeroHBMSize",
		"LevelZeroDDRSize", "OpenCLGlobalMemorySize"}; /* KiB */
	const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
	const char *model = child_info(pci, "GPUModel"), *known = tree_gpu_name(a->vendor_id, a->device_id),
		   *device = hwloc_obj_get_info_by_name(pci, "PCIDevice");
	/* ROCm SMI's names are those of boards ("deon Instinct MI50 32GB"): the PCI id says it better. */
	if (known && (!model || a->vendor_id == 0x1002))
		copy_model(known, v->name);
	else if (model || device)
		copy_model(model ? model : device, v->name);
	else if (a->vendor_id)
		snprintf(v->name, sizeof v->name, "PCI %04x:%04x", a->vendor_id, a->device_id);
	for (size_t i = 0; i < COUNT(sizes) && v->gpu.mem_B == 0; i++) {
		const char *text = child_info(pci, sizes[i]);
		unsigned long long KiB = text ? strtoull(text, NULL, 10) : 0;
		v->gpu.mem_B = KiB < (1ull << 40) ? (uint64_t)KiB << 10 : 0;
	}
}

static bool address_free(const struct hwloc_reader *r, const char *pci)
{
	for (size_t i = 0; i < r->tree.node.n; i++)
		if (strcmp(r->tree.node.at[i].v.pci, pci) == 0)
			return false;
	return true;
}

/* A device at its PCI address; where an export has the address twice (edited ones do), the second goes without. */
static int32_t add_device(struct hwloc_reader *r, enum vertex_kind kind, int32_t parent, hwloc_obj_t o,
	const struct hwloc_pcidev_attr_s *a, float GBps, bool addressed, enum status *st)
{
	char pci[GRAPH_PCI];
	int32_t node = add_node(r, kind, parent, o, st);
	if (node < 0)
		return -1;
	struct tree_node *n = &r->tree.node.at[node];
	snprintf(pci, sizeof pci, "%04x:%02x:%02x.%x", (unsigned)a->domain, a->bus, a->dev & 0x1fu, a->func & 7u);
	read_speed(GBps, n);
	if (!addressed)
		return node;
	if (address_free(r, pci))
		memcpy(n->v.pci, pci, sizeof pci);
	else
		*st = graph_remark(r->g, true, r->e,
			"PCI address %s twice in the export: only the first device keeps it", pci);
	return node;
}

static int32_t smi_number(hwloc_obj_t os)
{
	return named(os, "nvml") || named(os, "rsmi") ? (int32_t)strtol(os->name + 4, NULL, 10) % 65536 : INT32_MAX;
}

static enum status add_gpus(struct hwloc_reader *r, hwloc_obj_t pci, int32_t parent, float GBps)
{
	enum status st = ST_OK;
	int parts = 0;
	for (hwloc_obj_t c = pci->io_first_child; c || parts == 0; c = c ? c->next_sibling : NULL) {
		bool numbered = c && smi_number(c) != INT32_MAX;
		bool last_chance = !c || (!c->next_sibling && parts == 0 &&
						 !numbered); /* no numbered device at all: one GPU */
		if (!numbered && !last_chance)
			continue;
		int32_t node = add_device(r, VERTEX_GPU, parent, pci, &pci->attr->pcidev, GBps, parts == 0, &st);
		if (node < 0 || st)
			return st;
		parts++;
		struct tree_node *n = &r->tree.node.at[node];
		describe_gpu(pci, &n->v);
		n->order = numbered ? smi_number(c) : INT32_MAX;
		r->object.at[node] = numbered ? c : pci;
	}
	if (parts > 1)
		st = graph_remark(r->g, false, r->e,
			"%d GPUs at %04x:%02x:%02x.%x are partitions of one: they share its PCIe link, its memory and "
			"its links to others",
			parts, (unsigned)pci->attr->pcidev.domain, pci->attr->pcidev.bus, pci->attr->pcidev.dev,
			pci->attr->pcidev.func);
	return st;
}

static enum status add_nic(struct hwloc_reader *r, hwloc_obj_t pci, hwloc_obj_t net, hwloc_obj_t rdma, int32_t parent,
	float GBps)
{
	enum status st = ST_OK;
	const char *lid = rdma ? hwloc_obj_get_info_by_name(rdma, "Port1LID") : NULL,
		   *name = rdma ? rdma->name : net->name;
	int32_t node = add_device(r, VERTEX_NIC, parent, pci, &pci->attr->pcidev, GBps, true, &st);
	if (node < 0)
		return st;
	struct vertex *v = &r->tree.node.at[node].v;
	if (name)
		snprintf(v->name, sizeof v->name, "%.90s", name);
	v->nic.infiniband = pci->attr->pcidev.class_id == 0x0207 || (lid && strtol(lid, NULL, 16) > 0);
	v->nic.port = rdma ? 1 : 0;
	return st;
}

static enum status add_pci(struct hwloc_reader *r, hwloc_obj_t pci, int32_t parent, float port_GBps)
{
	const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
	float GBps = slower(a->linkspeed, port_GBps);
	bool compute = false;
	hwloc_obj_t net = NULL, rdma = NULL;
	for (hwloc_obj_t c = pci->io_first_child; c; c = c->next_sibling) {
		if (c->type != HWLOC_OBJ_OS_DEVICE)
			continue;
		compute = compute || hwloc_is_compute(c);
		if (!net && c->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
			net = c;
		if (!rdma && c->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
			rdma = c;
	}
	if (compute || tree_is_gpu(a->class_id, a->vendor_id, a->device_id, a->bus))
		return add_gpus(r, pci, parent, GBps);
	if (net || rdma)
		return add_nic(r, pci, net, rdma, parent, GBps);
	r->silent += a->class_id >> 8 == 2;
	return ST_OK;
}

static bool is_shared_bus(hwloc_obj_t bridge)
{
	int slot = -1;
	for (hwloc_obj_t c = bridge->io_first_child; c; c = c->next_sibling) {
		if (c->type != HWLOC_OBJ_PCI_DEVICE && c->type != HWLOC_OBJ_BRIDGE)
			continue;
		const struct hwloc_pcidev_attr_s *a = c->type == HWLOC_OBJ_BRIDGE ? &c->attr->bridge.upstream.pci
		                                                                  : &c->attr->pcidev;
		int own = a->bus << 8 | a->dev;
		if (slot >= 0 && slot != own)
			return true;
		slot = own;
	}
	return false;
}

/* Adds the devices below an I/O object. `port`: the next bridge is a root port or a downstream port. */
static enum status walk_io(struct hwloc_reader *r, hwloc_obj_t above, int32_t parent, bool port, float port_GBps)
{
	enum status st = ST_OK;
	for (hwloc_obj_t o = above->io_first_child; o && !st; o = o->next_sibling) {
		if (o->type == HWLOC_OBJ_PCI_DEVICE) {
			st = add_pci(r, o, parent, port_GBps);
		} else if (o->type == HWLOC_OBJ_BRIDGE) {
			const struct hwloc_pcidev_attr_s *a = &o->attr->bridge.upstream.pci;
			bool pci = o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI,
			     bus = port && is_shared_bus(o);
			float GBps = pci ? slower(a->linkspeed, port_GBps) : 0;
			if (!pci || (port && !bus)) {
				st = walk_io(r, o, parent, pci ? !port : port, GBps);
				continue;
			}
			int32_t node = add_device(r, VERTEX_PCI_SWITCH, parent, o, a, GBps, true, &st);
			if (node >= 0 && !st)
				st = walk_io(r, o, node, true, 0);
		}
	}
	return st;
}

static int32_t add_bridge(struct hwloc_reader *r, hwloc_obj_t o, enum status *st)
{
	bool sure = false;
	int32_t cpu = near_cpu(r, o, &sure);
	int32_t node = add_node(r, VERTEX_BRIDGE, cpu, o, st);
	if (node >= 0 && !sure && r->cpus > 1)
		r->unplaced++;
	return node;
}

/* Exports without PCI (hwloc built without it) can still have CUDA or ROCm devices; of one GPU's several devices the
 * first backend counts. */
static enum status add_loose_gpu(struct hwloc_reader *r, hwloc_obj_t o, const char *backend)
{
	enum status st = ST_OK;
	bool sure = false;
	int32_t cpu = near_cpu(r, o, &sure);
	if (!named(o, backend))
		return ST_OK;
	if (r->loose_bridge[cpu] == 0 && (r->loose_bridge[cpu] = add_node(r, VERTEX_BRIDGE, cpu, o, &st)) < 0)
		return st;
	int32_t node = add_node(r, VERTEX_GPU, r->loose_bridge[cpu], o, &st);
	if (node < 0)
		return st;
	const char *model = hwloc_obj_get_info_by_name(o, "GPUModel");
	struct tree_node *n = &r->tree.node.at[node];
	if (model)
		copy_model(model, n->v.name);
	n->order = smi_number(o);
	if (r->loose++ == 0)
		snprintf(r->loose_name, sizeof r->loose_name, "%.31s", o->name);
	return ST_OK;
}

static const char *loose_backend(hwloc_topology_t t)
{
	for (size_t b = 0; b < COUNT(backends); b++)
		for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(t, o));)
			if (named(o, backends[b]) && o->parent && o->parent->type != HWLOC_OBJ_PCI_DEVICE)
				return backends[b];
	return NULL;
}

/* All normal objects, and the I/O objects that hang on each. */
static enum status walk(struct hwloc_reader *r, hwloc_obj_t o, const char *loose)
{
	enum status st = ST_OK;
	for (hwloc_obj_t c = o->io_first_child; c && !st; c = c->next_sibling) {
		if (c->type == HWLOC_OBJ_OS_DEVICE) {
			st = loose ? add_loose_gpu(r, c, loose) : ST_OK;
			continue;
		}
		if (c->type != HWLOC_OBJ_BRIDGE && c->type != HWLOC_OBJ_PCI_DEVICE)
			continue;
		int32_t node = add_bridge(r, c, &st);
		if (node < 0)
			return st;
		/* hwloc leaves a host bridge out where only devices were asked for. */
		bool host = c->type == HWLOC_OBJ_BRIDGE && c->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
		st = host ? walk_io(r, c, node, true, 0)
		     : c->type == HWLOC_OBJ_PCI_DEVICE
		             ? add_pci(r, c, node, 0)
		             : walk_io(r, c, node, false, slower(c->attr->bridge.upstream.pci.linkspeed, 0));
	}
	for (hwloc_obj_t c = o->first_child; c && !st; c = c->next_sibling)
		st = walk(r, c, loose);
	for (hwloc_obj_t c = o->memory_first_child; c && !st; c = c->next_sibling)
		st = walk(r, c, loose);
	return st;
}

/* Numbers of NVML or ROCm SMI count only when all GPUs have one, and each its own. */
static void settle_numbers(struct hwloc_reader *r)
{
	bool good = true;
	for (size_t i = 0; i < r->tree.node.n && good; i++) {
		const struct tree_node *n = &r->tree.node.at[i];
		if (n->v.kind != VERTEX_GPU)
			continue;
		good = n->order != INT32_MAX;
		for (size_t j = 0; j < i && good; j++)
			good = r->tree.node.at[j].v.kind != VERTEX_GPU || r->tree.node.at[j].order != n->order;
	}
	for (size_t i = 0; i < r->tree.node.n && !good; i++)
		if (r->tree.node.at[i].v.kind == VERTEX_GPU)
			r->tree.node.at[i].order = 0;
}

enum status hwloc_tree(struct hwloc_reader *r)
{
	enum status st = add_cpus(r);
	if (!st)
		st = walk(r, hwloc_get_root_obj(r->t), loose_backend(r->t));
	if (!st)
		settle_numbers(r);
	return st;
}
