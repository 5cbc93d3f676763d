/* The tables of devices and links in the report that people read. */
#include "topology/view/view_text.h"

#include "base/quantity.h"
#include "base/table.h"

/* A name from a dump as one cell of a table on a terminal. */
static const char *plain(char out[GRAPH_NAME], const char *name)
{
	size_t n = 0;
	for (; name[n] && n + 1 < GRAPH_NAME; n++)
		out[n] = name[n] == '|' ? '/' : (unsigned char)name[n] < ' ' || name[n] == 0x7f ? '?' : name[n];
	out[n] = '\0';
	return out;
}

static void pcie_text(char out[VIEW_TEXT], const struct gpu_facts *f)
{
	int n = 0;
	out[0] = '\0';
	if (f->pcie_gen > 0 || f->pcie_width > 0) {
		n = f->pcie_gen > 0 ? snprintf(out, VIEW_TEXT, "gen %d", f->pcie_gen) : 0;
		if (f->pcie_width > 0)
			n += snprintf(out + n, VIEW_TEXT - (size_t)n, "%sx%d", n ? " " : "", f->pcie_width);
	}
	bool gen = f->pcie_gen_max > f->pcie_gen, width = f->pcie_width_max > f->pcie_width;
	if (gen || width) {
		n += snprintf(out + n, VIEW_TEXT - (size_t)n, "%s(can%s", n ? " " : "", gen ? " gen " : "");
		if (gen)
			n += snprintf(out + n, VIEW_TEXT - (size_t)n, "%d", f->pcie_gen_max);
		if (width)
			n += snprintf(out + n, VIEW_TEXT - (size_t)n, " x%d", f->pcie_width_max);
		snprintf(out + n, VIEW_TEXT - (size_t)n, ")");
	}
}

struct own_links view_own_links(const struct graph *g, int32_t gpu)
{
	struct own_links o = {.kind = "NVLink"};
	for (size_t i = 0; i < g->link.n; i++) {
		const struct link *l = &g->link.at[i];
		if ((l->a != gpu && l->b != gpu) || (l->kind != LINK_NVLINK && l->kind != LINK_XGMI))
			continue;
		o.n += l->width;
		o.gen = l->gen;
		o.Bps += l->Bps;
		o.datasheet_Bps += l->datasheet_Bps;
		o.kind = link_kind_name(l->kind);
		o.assumed |= l->assumed;
	}
	return o;
}

enum status view_gpu_table(const struct graph *g, FILE *out, struct error *e)
{
	struct table *t = table_create("<GPU|<name|memory|<PCI|<PCIe|<links|GB/s|datasheet");
	enum status st = t ? ST_OK : error_nomem(e, "the table of GPUs");
	for (size_t i = 0; i < g->gpu.n && !st; i++) {
		const struct vertex *v = &g->vertex.at[g->gpu.at[i]];
		struct own_links own = view_own_links(g, g->gpu.at[i]);
		char name[GRAPH_NAME], memory[QUANTITY_MAX] = "", pcie[VIEW_TEXT], links[VIEW_TEXT] = "",
				       rate[VIEW_RATE] = "", sheet[VIEW_RATE] = "";
		if (v->gpu.mem_B)
			quantity_format(memory, (double)v->gpu.mem_B, UNIT_BYTE);
		pcie_text(pcie, &v->gpu);
		if (own.Bps > 0) {
			snprintf(links, sizeof links, own.gen > 0 ? "%d x %s %d" : "%d x %s", own.n, own.kind, own.gen);
			view_rate(rate, own.Bps);
			view_rate(sheet, own.datasheet_Bps);
		}
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s|%s%s|%s", v->label, plain(name, v->name), memory, v->pci, pcie,
			links, own.assumed ? "~" : "", rate, sheet);
	}
	if (!st) {
		putc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

/* `nvidia-smi topo -m` may say that there are NICs, and no more. */
static bool nothing_known_of_nics(const struct graph *g, bool numa)
{
	for (size_t i = 0; i < g->nic.n; i++) {
		const struct vertex *v = &g->vertex.at[g->nic.at[i]];
		if (v->name[0] || v->pci[0] || v->nic.Bps > 0 || (numa && v->numa >= 0))
			return false;
	}
	return true;
}

enum status view_nic_table(const struct graph *g, bool numa, FILE *out, struct error *e)
{
	if (nothing_known_of_nics(g, numa))
		return ST_OK;
	struct table *t = table_create(numa ? "<NIC|<name|<PCI|<kind|GB/s|NUMA" : "<NIC|<name|<PCI|<kind|GB/s");
	enum status st = t ? ST_OK : error_nomem(e, "the table of NICs");
	for (size_t i = 0; i < g->nic.n && !st; i++) {
		const struct vertex *v = &g->vertex.at[g->nic.at[i]];
		char name[GRAPH_NAME], rate[VIEW_RATE], node[16] = "";
		bool assumed;
		view_rate(rate, view_nic_Bps(g, g->nic.at[i], &assumed));
		if (numa && v->numa >= 0)
			snprintf(node, sizeof node, "|%d", v->numa);
		st = table_row(t, e, "%s|%s|%s|%s|%s%s%s", v->label, plain(name, v->name), v->pci,
			v->nic.infiniband ? "InfiniBand" : "", assumed ? "~" : "", rate, node);
	}
	if (!st) {
		putc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

enum status view_cpu_table(const struct graph *g, FILE *out, struct error *e)
{
	struct table *t = table_create("<CPU|NUMA|package|memory|<CPUs|<model");
	enum status st = t ? ST_OK : error_nomem(e, "the table of CPUs");
	for (size_t i = 0; i < g->vertex.n && !st; i++) {
		const struct vertex *v = &g->vertex.at[i];
		if (v->kind != VERTEX_CPU)
			continue;
		char name[GRAPH_NAME], memory[QUANTITY_MAX] = "", numa[16] = "", package[16] = "";
		if (v->cpu.mem_B)
			quantity_format(memory, (double)v->cpu.mem_B, UNIT_BYTE);
		if (v->numa >= 0)
			snprintf(numa, sizeof numa, "%d", v->numa);
		if (v->cpu.package >= 0)
			snprintf(package, sizeof package, "%d", v->cpu.package);
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s", v->label, numa, package, memory, v->cores,
			plain(name, v->cpu.model[0] ? v->cpu.model : v->name));
	}
	if (!st) {
		putc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

enum status view_pci_table(const struct inventory *list, FILE *out, struct error *e)
{
	struct table *t = table_create("<PCI|<what|<device|<known as|GB/s|NUMA");
	enum status st = t ? ST_OK : error_nomem(e, "the table of PCI devices");
	for (size_t i = 0; i < list->device.n && !st; i++) {
		const struct pci_device *d = &list->device.at[i];
		char name[GRAPH_NAME], os[GRAPH_NAME], rate[VIEW_RATE] = "", numa[16] = "";
		if (d->Bps > 0)
			view_rate(rate, d->Bps);
		if (d->numa >= 0)
			snprintf(numa, sizeof numa, "%d", d->numa);
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s", d->address, d->what, plain(name, d->name), plain(os, d->os),
			rate, numa);
	}
	if (!st) {
		putc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

enum status view_link_table(const struct graph *g, FILE *out, struct error *e)
{
	struct table *t = table_create("<link||<|GB/s|datasheet|latency|<source");
	enum status st = t ? ST_OK : error_nomem(e, "the table of links");
	for (size_t i = 0; i < g->link.n && !st; i++) {
		const struct link *l = &g->link.at[i];
		char kind[VIEW_TEXT], rate[VIEW_RATE], sheet[VIEW_RATE], latency[QUANTITY_MAX];
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s|%s%s", g->vertex.at[l->a].label, g->vertex.at[l->b].label,
			view_link(kind, l), view_rate(rate, l->Bps), view_rate(sheet, l->datasheet_Bps),
			quantity_format(latency, l->latency_s, UNIT_SECOND), evidence_name(l->from),
			l->assumed ? ", rate assumed" : "");
	}
	if (!st) {
		putc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}
