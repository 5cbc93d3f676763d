/* Reads facts of this host's links from sysfs that hwloc does not pass on: current and highest PCIe generation and
 * lanes, and the rate of each NIC (Documentation/ABI: sysfs-bus-pci, sysfs-class-net, sysfs-class-infiniband). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/hwloc_read.h"
#include "topology/graph/rates.h"

/* The number that the file begins with; 0 where there is none ("Unknown", -1, no such file). */
static double first_number(const char *path)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	bool got = fgets(text, sizeof text, f) != NULL;
	fclose(f);
	double value = got ? strtod(text, NULL) : 0;
	return isfinite(value) && value > 0 ? value : 0;
}

static double pci_number(const char *sysfs, const char *pci, const char *file)
{
	char path[512];
	snprintf(path, sizeof path, "%.255s/bus/pci/devices/%s/%s", sysfs, pci, file);
	return first_number(path);
}

static int32_t lanes_of(double n) { return n <= 32 ? (int32_t)n : 0; /* 63 and 255: a link that is down */ }

static void read_slot(const char *sysfs, struct tree_node *n)
{
	int32_t gen = pcie_gen_of_speed(pci_number(sysfs, n->v.pci, "current_link_speed")),
		lanes = lanes_of(pci_number(sysfs, n->v.pci, "current_link_width"));
	if (n->v.kind == VERTEX_GPU) {
		n->v.gpu.pcie_gen = gen;
		n->v.gpu.pcie_width = lanes;
		n->v.gpu.pcie_gen_max = pcie_gen_of_speed(pci_number(sysfs, n->v.pci, "max_link_speed"));
		n->v.gpu.pcie_width_max = lanes_of(pci_number(sysfs, n->v.pci, "max_link_width"));
	}
	if (gen == 0 || lanes == 0)
		return;
	/* Where the other end of the link is slower (the tree has that already), it stays so. */
	double own_Bps = rate_pcie(gen, lanes).Bps, tree_Bps = n->gen > 0 ? rate_pcie(n->gen, n->lanes).Bps : own_Bps;
	if (own_Bps <= tree_Bps * 1.05) {
		n->gen = gen;
		n->lanes = lanes;
	}
}

static double nic_Bps(const char *sysfs, const char *name)
{
	char path[512];
	if (strchr(name, '/'))
		return 0;
	snprintf(path, sizeof path, "%.255s/class/infiniband/%s/ports/1/rate", sysfs, name); /* "400 Gb/sec (4X NDR)" */
	double Gb_per_s = first_number(path);
	snprintf(path, sizeof path, "%.255s/class/net/%s/speed", sysfs, name); /* Mb/s */
	double Mb_per_s = Gb_per_s > 0 ? Gb_per_s * 1e3 : first_number(path);
	return Mb_per_s < 1e7 ? Mb_per_s * 1e6 / 8 : 0; /* 4294967295: not known */
}

void hwloc_live(struct hwloc_reader *r, const char *sysfs)
{
	for (size_t i = 0; i < r->tree.node.n; i++) {
		struct tree_node *n = &r->tree.node.at[i];
		if (n->v.pci[0] && n->v.kind != VERTEX_BRIDGE)
			read_slot(sysfs, n);
		if (n->v.kind == VERTEX_NIC && n->v.name[0])
			n->v.nic.Bps = nic_Bps(sysfs, n->v.name);
	}
}
