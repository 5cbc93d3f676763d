#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/nccl_xml.h"
#include "topology/graph/rates.h"

/* Comparable as a number: domain (up to 28 bits), bus, device, function. */
static uint64_t pci_key(const char *pci)
{
	unsigned domain = 0, bus = 0, device = 0, function = 0;
	sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function);
	return (uint64_t)domain << 16 | (uint64_t)bus << 8 | device << 3 | function;
}

static bool devs_are_numbers(const struct nccl_reader *r)
{
	for (size_t i = 0; i < r->tree.node.n; i++) {
		if (r->tree.node.at[i].v.kind != VERTEX_GPU)
			continue;
		if (r->extra.at[i].dev < 0)
			return false;
		for (size_t j = 0; j < i; j++)
			if (r->tree.node.at[j].v.kind == VERTEX_GPU && r->extra.at[j].dev == r->extra.at[i].dev)
				return false;
	}
	return true;
}

static void order_gpus(struct nccl_reader *r)
{
	bool by_dev = devs_are_numbers(r);
	for (size_t i = 0; i < r->tree.node.n; i++) {
		struct tree_node *n = &r->tree.node.at[i];
		if (n->v.kind != VERTEX_GPU)
			continue;
		n->order = r->extra.at[i].dev;
		if (by_dev)
			continue;
		uint64_t key = pci_key(n->v.pci);
		n->order = 0;
		for (size_t j = 0; j < r->tree.node.n; j++)
			n->order += r->tree.node.at[j].v.kind == VERTEX_GPU && pci_key(r->tree.node.at[j].v.pci) < key;
	}
}

static void describe_devices(struct nccl_reader *r)
{
	for (size_t i = 0; i < r->tree.node.n; i++) {
		struct tree_node *n = &r->tree.node.at[i];
		const struct nccl_extra *x = &r->extra.at[i];
		const char *name = tree_gpu_name(x->vendor, x->device);
		if (n->v.kind == VERTEX_GPU) {
			n->v.gpu.pcie_gen = n->gen;
			n->v.gpu.pcie_width = n->lanes;
		}
		if (n->v.kind == VERTEX_GPU && name)
			snprintf(n->v.name, sizeof n->v.name, "%s", name);
		else if ((n->v.kind == VERTEX_GPU || n->v.kind == VERTEX_NIC) && !n->v.name[0] && x->vendor)
			snprintf(n->v.name, sizeof n->v.name, "PCI %04x:%04x", x->vendor, x->device);
	}
}

static int32_t cpu_of(const struct nccl_reader *r, int32_t node)
{
	while (r->tree.node.at[node].parent >= 0)
		node = r->tree.node.at[node].parent;
	return node;
}

static int32_t nvlink_switch(struct graph *g)
{
	int32_t at = graph_find_label(g, "NVS0");
	if (at >= 0)
		return at;
	struct vertex v = graph_vertex_init(VERTEX_NVSWITCH, g->source);
	return graph_add_vertex(g, &v);
}

static struct rate_of_link rate_of(const struct nccl_reader *r, const struct nccl_peer *p)
{
	int32_t cc = r->tree.node.at[p->node].v.gpu.compute_capability;
	struct rate one = p->tag == TAG_XGMI     ? rate_xgmi(r->extra.at[p->node].gfx)
	                  : p->tag == TAG_NVLINK ? rate_nvlink(cc)
	                                         : rate_c2c();
	if (p->tag != TAG_C2C)
		return (struct rate_of_link){one.Bps, one.datasheet_Bps, p->tag == TAG_NVLINK ? tree_nvlink_gen(cc) : 0,
			false};
	/* The file has the rate of one of `count` links; none: the rate of Grace's is that of all together. */
	return p->Bps > 0 ? (struct rate_of_link){p->Bps, p->Bps, 0, false}
	                  : (struct rate_of_link){one.Bps / p->count, one.datasheet_Bps / p->count, 0, true};
}

struct left_out {
	int to_self, absent;
	int32_t self_links;
	char self_first[GRAPH_LABEL], self_last[GRAPH_LABEL], absent_pci[GRAPH_PCI];
};

static bool is_self(const struct nccl_reader *r, const struct nccl_peer *p)
{
	return p->tag != TAG_C2C && strcmp(p->target, r->tree.node.at[p->node].v.pci) == 0;
}

/* The vertex at the far end, or -1: left out, and counted. *one_sided: it does not tell its side. */
static int32_t far_end(struct nccl_reader *r, const struct nccl_peer *p, const int32_t *vertex_of, struct left_out *out,
	bool *one_sided)
{
	uint32_t top = p->tclass >> 16;
	*one_sided = true;
	if (p->tag == TAG_NVLINK && p->tclass == 0x068000)
		return nvlink_switch(r->g);
	if (is_self(r, p)) {
		const char *label = r->g->vertex.at[vertex_of[p->node]].label;
		if (out->to_self++ == 0)
			memcpy(out->self_first, label, sizeof out->self_first);
		memcpy(out->self_last, label, sizeof out->self_last);
		out->self_links = p->count;
		return -1;
	}
	int32_t at = p->tag == TAG_C2C ? -1 : graph_find_pci(r->g, p->target);
	*one_sided = false;
	if (at >= 0 && r->g->vertex.at[at].kind == VERTEX_GPU)
		return at;
	if (p->tag == TAG_XGMI || top == 0x03 || top == 0x12) {
		if (out->absent++ == 0)
			memcpy(out->absent_pci, p->target, sizeof out->absent_pci);
		return -1;
	}
	*one_sided = true;
	return vertex_of[cpu_of(r, p->node)];
}

static enum status join(struct nccl_reader *r, const int32_t *vertex_of, struct left_out *out)
{
	static const enum link_kind kinds[TAGS] =
		{[TAG_NVLINK] = LINK_NVLINK, [TAG_XGMI] = LINK_XGMI, [TAG_C2C] = LINK_C2C};
	enum status st = ST_OK;
	struct fabric f = {0};
	for (size_t i = 0; i < r->peer.n && !st; i++) {
		const struct nccl_peer *p = &r->peer.at[i];
		bool one_sided = false;
		size_t before = r->g->vertex.n;
		int32_t far = far_end(r, p, vertex_of, out, &one_sided);
		if (far < 0 && p->tag == TAG_NVLINK && p->tclass == 0x068000 && before == r->g->vertex.n)
			st = error_nomem(r->e, "the topology");
		else if (far >= 0)
			st = fabric_add(&f, kinds[p->tag], vertex_of[p->node], far, p->count, one_sided, rate_of(r, p),
				r->e);
	}
	if (!st)
		st = fabric_graph(&f, r->g, r->e);
	fabric_free(&f);
	return st;
}

static enum status remark_left_out(struct nccl_reader *r, const struct left_out *out)
{
	enum status st = ST_OK;
	if (out->to_self > 0) {
		bool one = strcmp(out->self_first, out->self_last) == 0;
		st = graph_remark(r->g, false, r->e,
			"the %" PRId32
			" NVLinks of %s%s%s end on the GPU itself: a bridge to another GPU, but the file does not say "
			"which (virtual machines hide it); no NVLink counted",
			out->self_links, out->self_first, one ? "" : " to ", one ? "" : out->self_last);
	}
	if (!st && out->absent > 0)
		st = graph_remark(r->g, false, r->e,
			"%d link end%s at GPUs that the file does not have (%s%s): left out", out->absent,
			out->absent > 1 ? "s are" : " is", out->absent_pci, out->absent > 1 ? ", ..." : "");
	if (!st && r->nets_virtual > 0)
		st = graph_remark(r->g, false, r->e, "%d network device%s without a PCI device (%s%s): left out",
			r->nets_virtual, r->nets_virtual > 1 ? "s" : "", r->virtual_name,
			r->nets_virtual > 1 ? ", ..." : "");
	if (!st && r->speeds_odd > 0)
		st = graph_remark(r->g, false, r->e,
			"%d network device%s faster than 10 Tb/s (%s%s), which none is: speed taken as not known",
			r->speeds_odd, r->speeds_odd > 1 ? "s" : "", r->odd_name, r->speeds_odd > 1 ? ", ..." : "");
	if (!st && r->other_hosts > 0)
		st = graph_remark(r->g, false, r->e,
			"%d CPU%s of other hosts (host_hash) left out: this is the first host", r->other_hosts,
			r->other_hosts > 1 ? "s" : "");
	if (!st && r->unknown > 0)
		st = graph_remark(r->g, false, r->e,
			"%d element%s not known to this reader left out: <%s> on line %ld%s", r->unknown,
			r->unknown > 1 ? "s" : "", r->unknown_name, r->unknown_line, r->unknown > 1 ? ", ..." : "");
	return st;
}

enum status nccl_xml_graph(struct nccl_reader *r)
{
	struct left_out out = {0};
	int32_t *vertex_of = calloc(r->tree.node.n + 1, sizeof *vertex_of);
	if (!vertex_of)
		return error_nomem(r->e, "the topology");
	order_gpus(r);
	describe_devices(r);
	enum status st = tree_graph(&r->tree, r->g, vertex_of, r->e);
	if (!st)
		st = join(r, vertex_of, &out);
	if (!st)
		st = remark_left_out(r, &out);
	free(vertex_of);
	return st;
}
