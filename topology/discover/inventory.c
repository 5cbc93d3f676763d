#include "topology/discover/inventory.h"

#include <stdio.h>

#include "base/array.h"
#include "topology/discover/hwloc_read.h"
#include "topology/machine.h"

/* Base classes and the two subclasses that a reader of this list looks for (PCI Code and ID Assignment
 * Specification 1.15). */
static const struct {
	unsigned class_id, mask;
	const char *word;
} classes[] = {
	{0x0108, 0xffff, "NVMe storage"},
	{0x0207, 0xffff, "InfiniBand"},
	{0x0100, 0xff00, "storage"},
	{0x0200, 0xff00, "network"},
	{0x0300, 0xff00, "display"},
	{0x0400, 0xff00, "multimedia"},
	{0x0500, 0xff00, "memory"},
	{0x0600, 0xff00, "bridge"},
	{0x0700, 0xff00, "serial"},
	{0x0b00, 0xff00, "processor"},
	{0x0c00, 0xff00, "serial bus"},
	{0x1200, 0xff00, "accelerator"},
};

static void class_word(unsigned class_id, char *out, size_t size)
{
	for (size_t i = 0; i < COUNT(classes); i++) {
		if ((class_id & classes[i].mask) == classes[i].class_id) {
			snprintf(out, size, "%s", classes[i].word);
			return;
		}
	}
	snprintf(out, size, "class %04x", class_id);
}

static void device_name(hwloc_obj_t o, char *out, size_t size)
{
	const char *vendor = hwloc_obj_get_info_by_name(o, "PCIVendor"),
		   *device = hwloc_obj_get_info_by_name(o, "PCIDevice");
	if (device)
		snprintf(out, size, "%s%s%s", vendor ? vendor : "", vendor ? " " : "", device);
	else if (o->attr->pcidev.vendor_id || o->attr->pcidev.device_id) /* exports may leave both out */
		snprintf(out, size, "%s%s%04x:%04x", vendor ? vendor : "", vendor ? " " : "", o->attr->pcidev.vendor_id,
			o->attr->pcidev.device_id);
}

static void os_names(hwloc_obj_t o, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (hwloc_obj_t child = o->io_first_child; child; child = child->next_sibling) {
		if (child->type != HWLOC_OBJ_OS_DEVICE || !child->name)
			continue;
		int n = snprintf(out + used, size - used, "%s%s", used ? " " : "", child->name);
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

/* The lowest NUMA node near it, where there is a single one. */
static int32_t numa_of(hwloc_topology_t t, hwloc_obj_t o)
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(t, o);
	if (!near || !near->nodeset || hwloc_bitmap_weight(near->nodeset) != 1)
		return -1;
	return hwloc_bitmap_first(near->nodeset);
}

/* Returns whether lstopo lists a class by default: storage, network, display, processors and accelerators, fabrics,
 * NVSwitches; no bridges, balloons, timers. */
static bool is_listed(unsigned class_id)
{
	unsigned base = class_id >> 8;
	return base <= 0x03 || base == 0x0b || base == 0x12 || class_id == 0x0c04 || class_id == 0x0c06 ||
	       class_id == 0x0680;
}

static enum status add(hwloc_topology_t t, hwloc_obj_t o, struct inventory *out, struct error *e)
{
	const struct hwloc_pcidev_attr_s *a = &o->attr->pcidev;
	struct pci_device d = {.Bps = a->linkspeed * 1e9, .numa = numa_of(t, o)};
	snprintf(d.address, sizeof d.address, "%04x:%02x:%02x.%x", (unsigned)a->domain, a->bus, a->dev, a->func);
	class_word(a->class_id, d.what, sizeof d.what);
	device_name(o, d.name, sizeof d.name);
	os_names(o, d.os, sizeof d.os);
	return vec_push(&out->device, d) ? ST_OK : error_nomem(e, "the inventory of a host");
}

static int64_t number(hwloc_topology_t t, hwloc_obj_type_t type)
{
	int n = hwloc_get_nbobjs_by_type(t, type);
	return n > 0 ? n : 0;
}

static uint64_t cache_B(hwloc_topology_t t, hwloc_obj_type_t type)
{
	hwloc_obj_t cache = hwloc_get_obj_by_type(t, type, 0);
	return cache ? cache->attr->cache.size : 0;
}

static void take_counts(hwloc_topology_t t, struct inventory *out)
{
	out->packages = number(t, HWLOC_OBJ_PACKAGE);
	out->cores = number(t, HWLOC_OBJ_CORE);
	out->threads = number(t, HWLOC_OBJ_PU);
	out->numa_nodes = number(t, HWLOC_OBJ_NUMANODE);
	out->mem_B = hwloc_get_root_obj(t)->total_memory;
	out->l2_B = cache_B(t, HWLOC_OBJ_L2CACHE);
	out->l3_B = cache_B(t, HWLOC_OBJ_L3CACHE);
}

enum status inventory_read(const char *xml, size_t len, const char *name, struct inventory *out, struct error *e)
{
	hwloc_topology_t t = NULL;
	*out = (struct inventory){0};
	enum status st = xml ? hwloc_xml_check(xml, len, name, e) : ST_OK;
	if (!st)
		st = hwloc_load(&t, xml, len, name, e);
	if (st)
		return st;
	take_counts(t, out);
	if (hwloc_topology_is_thissystem(t))
		st = host_memory_read(&out->mem_B, &out->mem_available_B, e);
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(t, o)) && !st;)
		if (is_listed(o->attr->pcidev.class_id))
			st = add(t, o, out, e);
	hwloc_topology_destroy(t);
	if (st)
		inventory_free(out);
	return st;
}

void inventory_free(struct inventory *l)
{
	if (l)
		vec_free(&l->device);
}
