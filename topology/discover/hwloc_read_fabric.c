/* hwloc's matrices NVLinkBandwidth, XGMIBandwidth and XGMIHops (MB/s of one direction, diagonal 1,000,000) as links.
 *
 * On NVSwitch machines the bandwidth stands between a GPU and each switch chip's PCI device: all chips are one switch
 * vertex, to which a GPU has the sum (each GPU has one link to each plane, and planes of the two halves of a DGX-2 are
 * joined, which the matrix leaves out). On POWER packages are in it: a link to that package's first CPU. ROCm SMI's
 * bandwidth is 100,000 between all GPUs where the driver does not tell it: then each pair that is one hop apart counts
 * as one link at the rate of its architecture, `assumed`.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/hwloc_read.h"
#include "topology/graph/rates.h"

#define SELF_MBps 1000000u

/* Which of the tree's nodes a matrix's object is: GPUs by their PCI device or one of its OS devices, packages by their
 * first CPU; -1: another object. */
static int32_t node_of(const struct hwloc_reader *r, hwloc_obj_t o)
{
	int32_t by_parent = -1;
	if (!o)
		return -1;
	for (size_t i = 0; i < r->object.n; i++) {
		enum vertex_kind kind = r->tree.node.at[i].v.kind;
		hwloc_obj_t own = r->object.at[i];
		if (o->type == HWLOC_OBJ_PACKAGE && kind == VERTEX_CPU && o->cpuset &&
			hwloc_bitmap_intersects(own->cpuset, o->cpuset))
			return (int32_t)i;
		if (kind != VERTEX_GPU)
			continue;
		if (own == o)
			return (int32_t)i;
		hwloc_obj_t pci = o->type == HWLOC_OBJ_OS_DEVICE ? o->parent : o,
			    own_pci = own->type == HWLOC_OBJ_OS_DEVICE ? own->parent : own;
		if (by_parent < 0 && pci == own_pci && pci && pci->type == HWLOC_OBJ_PCI_DEVICE)
			by_parent = (int32_t)i;
	}
	return by_parent;
}

static bool is_switch(hwloc_obj_t o)
{
	return o && o->type == HWLOC_OBJ_PCI_DEVICE &&
	       ((o->subtype && strcmp(o->subtype, "NVSwitch") == 0) || o->attr->pcidev.class_id == 0x0680);
}

/* The compute capability by words of the name, to know what one NVLink carries; 0: not known. */
static int32_t capability(const char *name)
{
	static const struct {
		const char *word;
		int32_t cc;
	} words[] = {{"P100", 60}, {"V100", 70}, {"A100", 80}, {"A800", 80}, {"A30", 80}, {"H100", 90}, {"H200", 90},
		{"H800", 90}, {"H20", 90}, {"B200", 100}, {"B300", 100}, {"A40", 86}, {"A6000", 86}, {"3090", 86}};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strstr(name, words[i].word))
			return words[i].cc;
	return 0;
}

static enum status add_nvlinks(struct hwloc_reader *r, struct fabric *f, const int32_t *vertex_of, int32_t gpu,
	int32_t far, uint64_t MBps)
{
	int32_t cc = capability(r->tree.node.at[gpu].v.name);
	struct rate one = rate_nvlink(cc);
	double n = round((double)MBps * 1e6 / one.datasheet_Bps);
	int32_t width = n < 1 ? 1 : (int32_t)n;
	bool gpus = r->g->vertex.at[far].kind == VERTEX_GPU;
	return fabric_add(f, LINK_NVLINK, vertex_of[gpu], far, width, !gpus,
		(struct rate_of_link){one.Bps, (double)MBps * 1e6 / width, tree_nvlink_gen(cc), cc == 0}, r->e);
}

static enum status read_nvlinks(struct hwloc_reader *r, const struct hwloc_distances_s *d, const int32_t *vertex_of)
{
	enum status st = ST_OK;
	struct fabric f = {0};
	int32_t nvswitch = -1;
	for (unsigned i = 0; i < d->nbobjs && !st; i++) {
		int32_t gpu = node_of(r, d->objs[i]);
		if (gpu < 0 || r->tree.node.at[gpu].v.kind != VERTEX_GPU)
			continue;
		for (unsigned j = 0; j < d->nbobjs && !st; j++) {
			uint64_t MBps = d->values[(size_t)i * d->nbobjs + j];
			if (i == j || MBps == 0 || MBps > 2 * SELF_MBps)
				continue;
			int32_t node = node_of(r, d->objs[j]), far = node >= 0 ? vertex_of[node] : -1;
			if (node < 0 && is_switch(d->objs[j])) {
				struct vertex v = graph_vertex_init(VERTEX_NVSWITCH, r->g->source);
				if (nvswitch < 0 && (nvswitch = graph_add_vertex(r->g, &v)) < 0)
					st = error_nomem(r->e, "the topology");
				far = nvswitch;
			}
			if (!st && far >= 0 && far != vertex_of[gpu])
				st = add_nvlinks(r, &f, vertex_of, gpu, far, MBps);
		}
	}
	if (!st)
		st = fabric_graph(&f, r->g, r->e);
	fabric_free(&f);
	return st;
}

static int32_t gfx_of(hwloc_obj_t o)
{
	static const struct {
		unsigned from, to;
		int32_t gfx;
	} ids[] = {{0x66a0, 0x66af, 0x906}, {0x7388, 0x738f, 0x908}, {0x7408, 0x7410, 0x90a}, {0x74a0, 0x74bf, 0x942},
		{0x75a0, 0x75bf, 0x950}};
	hwloc_obj_t pci = o->type == HWLOC_OBJ_OS_DEVICE ? o->parent : o;
	for (size_t i = 0; i < COUNT(ids) && pci && pci->type == HWLOC_OBJ_PCI_DEVICE; i++)
		if (pci->attr->pcidev.device_id >= ids[i].from && pci->attr->pcidev.device_id <= ids[i].to)
			return ids[i].gfx;
	return 0;
}

static bool all_alike(const struct hwloc_distances_s *d, uint64_t MBps)
{
	for (unsigned i = 0; i < d->nbobjs; i++)
		for (unsigned j = 0; j < d->nbobjs; j++)
			if (i != j && d->values[(size_t)i * d->nbobjs + j] != MBps)
				return false;
	return true;
}

static bool one_hop(const struct hwloc_distances_s *hops, hwloc_obj_t a, hwloc_obj_t b)
{
	for (unsigned i = 0; hops && i < hops->nbobjs; i++)
		for (unsigned j = 0; j < hops->nbobjs && hops->objs[i] == a; j++)
			if (hops->objs[j] == b)
				return hops->values[(size_t)i * hops->nbobjs + j] == 1;
	return true;
}

static enum status read_xgmi(struct hwloc_reader *r, const struct hwloc_distances_s *d,
	const struct hwloc_distances_s *hops, const int32_t *vertex_of)
{
	enum status st = ST_OK;
	struct fabric f = {0};
	bool told = !all_alike(d, 100000);
	for (unsigned i = 0; i < d->nbobjs && !st; i++) {
		for (unsigned j = 0; j < d->nbobjs && !st; j++) {
			uint64_t MBps = d->values[(size_t)i * d->nbobjs + j];
			int32_t a = node_of(r, d->objs[i]), b = node_of(r, d->objs[j]);
			if (i == j || MBps == 0 || MBps > 2 * SELF_MBps || a < 0 || b < 0 || a == b ||
				!one_hop(hops, d->objs[i], d->objs[j]))
				continue;
			if (r->tree.node.at[a].v.kind != VERTEX_GPU || r->tree.node.at[b].v.kind != VERTEX_GPU)
				continue;
			struct rate one = rate_xgmi(gfx_of(d->objs[i]));
			double n = told ? round((double)MBps * 1e6 / one.datasheet_Bps) : 1;
			st = fabric_add(&f, LINK_XGMI, vertex_of[a], vertex_of[b], n < 1 ? 1 : (int32_t)n, false,
				(struct rate_of_link){one.Bps, one.datasheet_Bps, 0, !told}, r->e);
		}
	}
	if (!st && !told && f.pair.n > 0)
		st = graph_remark(r->g, false, r->e,
			"the export gives 100 GB/s between all GPUs, which stands for not known: one xGMI link counted "
			"for each of the %zu pairs",
			f.pair.n);
	if (!st)
		st = fabric_graph(&f, r->g, r->e);
	fabric_free(&f);
	return st;
}

static struct hwloc_distances_s *matrix(hwloc_topology_t t, const char *name)
{
	unsigned n = 1;
	struct hwloc_distances_s *d = NULL;
	return hwloc_distances_get_by_name(t, name, &n, &d, 0) == 0 && n > 0 ? d : NULL;
}

/* An export without the matrix is no statement that there are no NVLinks: hwloc has it only where it was built with
 * NVML. */
static enum status remark_missing(struct hwloc_reader *r)
{
	for (size_t i = 0; i < r->g->gpu.n; i++) {
		const struct vertex *v = &r->g->vertex.at[r->g->gpu.at[i]];
		if (strstr(v->name, "SXM"))
			return graph_remark(r->g, false, r->e,
				"%s is a %s, whose NVLinks this export does not tell: `nvidia-smi topo -m` of that "
				"machine does",
				v->label, v->name);
	}
	return ST_OK;
}

enum status hwloc_fabric(struct hwloc_reader *r, const int32_t *vertex_of)
{
	enum status st = ST_OK;
	struct hwloc_distances_s *nvlink = matrix(r->t, "NVLinkBandwidth"), *xgmi = matrix(r->t, "XGMIBandwidth"),
				 *hops = matrix(r->t, "XGMIHops");
	if (nvlink)
		st = read_nvlinks(r, nvlink, vertex_of);
	else if (r->g->source == SAID_BY_HWLOC_XML)
		st = remark_missing(r);
	if (xgmi && !st)
		st = read_xgmi(r, xgmi, hops, vertex_of);
	if (nvlink)
		hwloc_distances_release(r->t, nvlink);
	if (xgmi)
		hwloc_distances_release(r->t, xgmi);
	if (hops)
		hwloc_distances_release(r->t, hops);
	return st;
}
