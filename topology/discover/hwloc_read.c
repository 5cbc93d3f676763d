/* hwloc: this host, and exports of others (`lstopo x.xml`). What becomes what stands at the head of hwloc_read_tree.c;
 * NVLink and xGMI in hwloc_read_fabric.c. */
#include "topology/discover/hwloc_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/discover.h"

static void trim_end(char *text)
{
	for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
		text[n - 1] = '\0';
}

static void set_model(struct hwloc_reader *r)
{
	hwloc_obj_t root = hwloc_get_root_obj(r->t);
	const char *host = hwloc_obj_get_info_by_name(root, "HostName"),
		   *vendor = hwloc_obj_get_info_by_name(root, "DMISysVendor");
	const char *product = hwloc_obj_get_info_by_name(root, "DMIProductName"),
		   *platform = hwloc_obj_get_info_by_name(root, "PlatformModel");
	if (host)
		snprintf(r->g->host, sizeof r->g->host, "%.63s", host);
	if (product && vendor && !strstr(product, vendor))
		snprintf(r->g->model, sizeof r->g->model, "%.40s %.50s", vendor, product);
	else if (product || platform)
		snprintf(r->g->model, sizeof r->g->model, "%.90s", product ? product : platform);
	trim_end(r->g->model);
}

static enum status remark(struct hwloc_reader *r)
{
	enum status st = ST_OK;
	if (r->unplaced > 0)
		st = graph_remark(r->g, false, r->e,
			"%d host bridge%s at no single NUMA node: counted to the first one that can be meant",
			r->unplaced, r->unplaced > 1 ? "s are" : " is");
	if (!st && r->silent > 0)
		st = graph_remark(r->g, false, r->e,
			"%d network function%s that no driver has (no device of the operating system): left out",
			r->silent, r->silent > 1 ? "s" : "");
	if (!st && r->loose > 0)
		st = graph_remark(r->g, false, r->e,
			"%d GPU%s without a PCI device (%s%s): placed at a host bridge of %s own", r->loose,
			r->loose > 1 ? "s" : "", r->loose_name, r->loose > 1 ? ", ..." : "",
			r->loose > 1 ? "their" : "its");
	return st;
}

static enum status build(hwloc_topology_t t, enum evidence from, struct graph **out, struct error *e)
{
	enum status st;
	struct hwloc_reader *r = calloc(1, sizeof *r);
	int32_t *vertex_of = NULL;
	if (!r)
		return error_nomem(e, "the topology");
	r->t = t;
	r->e = e;
	r->g = graph_create(from);
	if (!r->g) {
		st = error_nomem(e, "the topology");
		goto out;
	}
	set_model(r);
	if ((st = hwloc_tree(r)))
		goto out;
	if (from == SAID_BY_HWLOC)
		hwloc_live(r, "/sys");
	vertex_of = calloc(r->tree.node.n + 1, sizeof *vertex_of);
	if (!vertex_of) {
		st = error_nomem(e, "the topology");
		goto out;
	}
	if ((st = tree_graph(&r->tree, r->g, vertex_of, e)) || (st = hwloc_fabric(r, vertex_of)) || (st = remark(r)))
		goto out;
	*out = r->g;
	r->g = NULL;
out:
	free(vertex_of);
	graph_destroy(r->g);
	tree_free(&r->tree);
	vec_free(&r->object);
	free(r);
	return st;
}

/* hwloc reads HWLOC_HIDE_ERRORS once, so it may go again. */
enum status hwloc_load(hwloc_topology_t *t, const char *xml, size_t len, const char *name, struct error *e)
{
	enum status st = ST_OK;
	char *copy = NULL; /* hwloc wants the terminator counted in */
	bool hide = !getenv("HWLOC_HIDE_ERRORS");
	if (hide)
		setenv("HWLOC_HIDE_ERRORS", "2", 1);
	if (hwloc_topology_init(t)) {
		*t = NULL;
		st = error_nomem(e, "hwloc's topology");
		goto out;
	}
	if (xml) {
		copy = malloc(len + 1);
		if (!copy) {
			st = error_nomem(e, "an hwloc export");
			goto out;
		}
		memcpy(copy, xml, len);
		copy[len] = '\0';
	}
	hwloc_topology_set_io_types_filter(*t, HWLOC_TYPE_FILTER_KEEP_ALL);
	/* gl and opencl open an X display and OpenCL's drivers, which takes seconds; pci is libpciaccess, which loses
	 * memory at each call. sysfs tells the same devices without all three, whether or not the plugins are
	 * installed. */
	static const char *const plugins[] = {"gl", "opencl", "pci"};
	for (size_t i = 0; i < COUNT(plugins); i++)
		hwloc_topology_set_components(*t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugins[i]);
	if ((copy && hwloc_topology_set_xmlbuffer(*t, copy, (int)len + 1)) || hwloc_topology_load(*t))
		st = xml ? error_set(e, ST_INPUT,
				   "%s: hwloc " HWLOC_VERSION " cannot load it: damaged, or of another version", name)
		         : error_set(e, ST_RUN, "hwloc cannot read this host");
out:
	if (st && *t) {
		hwloc_topology_destroy(*t);
		*t = NULL;
	}
	if (hide)
		unsetenv("HWLOC_HIDE_ERRORS");
	free(copy);
	return st;
}

enum status hwloc_xml_read(const char *text, size_t len, const char *name, struct graph **out, struct error *e)
{
	hwloc_topology_t t = NULL;
	*out = NULL;
	if (len > DUMP_MOST_B)
		return error_set(e, ST_INPUT, "%s: larger than %d MiB: no hwloc export", name, DUMP_MOST_MIB);
	enum status st = hwloc_xml_check(text, len, name, e);
	if (!st && !(st = hwloc_load(&t, text, len, name, e)))
		st = build(t, SAID_BY_HWLOC_XML, out, e);
	if (t)
		hwloc_topology_destroy(t);
	return st;
}

enum status hwloc_read(struct graph **out, struct error *e)
{
	hwloc_topology_t t = NULL;
	*out = NULL;
	enum status st = hwloc_load(&t, NULL, 0, "", e);
	if (!st)
		st = build(t, SAID_BY_HWLOC, out, e);
	if (t)
		hwloc_topology_destroy(t);
	return st;
}
