#include "topology/graph/rates.h"

#include "base/array.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define NCCL_TOPO_H "NVIDIA/nccl 2.30.7 src/graph/topo.h"
#define NCCL_TUNING "NVIDIA/nccl 2.30.7 src/graph/tuning.cc: a hop of a ring with LL128"

/* Latencies of a hop: a ring's with LL128, NCCL's tuning.cc. */
static const double nvlink_s = 1.9e-6, pcie_s = 2.5e-6, network_s = 4e-6;

/* Usable: NCCL's tables of PCIe lanes, 1.5 GB/s for 16 lanes of gen 1 per GT/s step: 3, 6, 12, 24, 48, 96 GB/s
 * (src/graph/topo.cc, kvDictPciGen: 15, 30, 60, ... in units of 100 Mb/s a lane). */
static const struct {
	double gt_per_s, coding, usable_lane_Bps;
} pcie[] = {
	{2.5, 8. / 10, 0.1875e9},
	{5, 8. / 10, 0.375e9},
	{8, 128. / 130, 0.75e9},
	{16, 128. / 130, 1.5e9},
	{32, 128. / 130, 3e9},
	{64, 242. / 256, 6e9},
	{128, 242. / 256, 12e9},
};

struct rate rate_pcie(int32_t gen, int32_t lanes)
{
	int32_t g = gen < 1 ? 3 : gen > (int32_t)COUNT(pcie) ? (int32_t)COUNT(pcie) : gen;
	double n = lanes < 1 ? 16 : lanes;
	return (struct rate){
		.Bps = n * pcie[g - 1].usable_lane_Bps,
		.datasheet_Bps = n * pcie[g - 1].gt_per_s * pcie[g - 1].coding * 1e9 / 8,
		.latency_s = pcie_s,
		.source = "PCI-SIG: GT/s x lanes x coding / 8; usable as NVIDIA/nccl 2.30.7 src/graph/topo.cc "
			  "(kvDictPciGen); latency: " NCCL_TUNING,
	};
}

int32_t pcie_gen_of_speed(double gt_per_s)
{
	for (size_t i = 0; i < COUNT(pcie); i++)
		if (gt_per_s > pcie[i].gt_per_s * 0.95 && gt_per_s < pcie[i].gt_per_s * 1.05)
			return (int32_t)i + 1;
	return 0;
}

/* From this compute capability on. Usable: NCCL's src/graph/topo.h; datasheet: both directions of all links over twice
 * their number (NVIDIA's product pages). */
static const struct {
	int32_t compute_capability, most;
	double usable_Bps, datasheet_Bps;
} nvlink[] = {
	{60, 4, 18e9, 20e9},
	{70, 6, 20e9, 25e9},
	{75, 2, 20e9, 25e9},
	{80, 12, 20e9, 25e9},
	{86, 4, 12e9, 14.0625e9},
	{90, 18, 20.6e9, 25e9},
	{100, 18, 40.1e9, 50e9},
};

static size_t nvlink_row(int32_t compute_capability)
{
	size_t row = 0;
	int32_t cc = compute_capability > 0 ? compute_capability : 80;
	for (size_t i = 0; i < COUNT(nvlink); i++)
		if (cc >= nvlink[i].compute_capability)
			row = i;
	return row;
}

struct rate rate_nvlink(int32_t compute_capability)
{
	size_t i = nvlink_row(compute_capability);
	return (struct rate){nvlink[i].usable_Bps, nvlink[i].datasheet_Bps, nvlink_s,
		NCCL_TOPO_H ": SM<n>_NVLINK_BW; latency: " NCCL_TUNING " over NVLink"};
}

int32_t nvlinks_most(int32_t compute_capability)
{
	return compute_capability > 0 ? nvlink[nvlink_row(compute_capability)].most : 18;
}

struct rate rate_xgmi(int32_t gfx)
{
	static const char *const source =
		"ROCm/rccl src/graph/topo.h: VEGA_XGMI_WIDTH 24, MI200_XGMI_WIDTH 36, GFX94X_XGMI_WIDTH 48 GB/s; "
		"datasheet: AMD's product pages, 50 GB/s a link on MI200, 64 on MI300, 76.8 on MI350, of which it too "
		"has 3/4 (ROCm blogs, mi300x-rccl-xgmi), 58 GB/s as eight MI355X reach, where RCCL counts 48";
	double usable = gfx >= 0x950 ? 57.6e9 : gfx >= 0x940 ? 48e9 : gfx == 0x910 || gfx == 0x90a ? 36e9 : 24e9;
	double datasheet = gfx >= 0x950 ? 76.8e9 : gfx >= 0x940 ? 64e9 : gfx == 0x910 || gfx == 0x90a ? 50e9 : 46e9;
	return (struct rate){usable, datasheet, nvlink_s, source};
}

struct rate rate_c2c(void)
{
	return (struct rate){370.8e9, 450e9, nvlink_s,
		"NVIDIA Grace Hopper: NVLink-C2C 900 GB/s in both directions (stas00/ml-engineering@744d01e18b "
		"compute/accelerator/README.md); usable: NVLink's share on sm_90, " NCCL_TOPO_H};
}

/* Intel's generations by the number in the name: Scalable processors say theirs in the second of four digits (8168,
 * 6248, 8380, 8480+, 8570), Xeon 6 has 67xx and 69xx with P or E behind. 0: no such number. */
static double intel_Bps(const char *model)
{
	static const double scalable[] = {[1] = 10e9, [2] = 10e9, [3] = 10e9, [4] = 22e9, [5] = 40e9};
	for (const char *p = model; *p; p++) {
		if (!isdigit((unsigned char)*p) || (p > model && isalnum((unsigned char)p[-1])))
			continue;
		size_t digits = strspn(p, "0123456789");
		int letter = toupper((unsigned char)p[digits]), second = p[1] - '0';
		if (digits == 4 && p[0] == '6' && second >= 5 && (letter == 'P' || letter == 'E'))
			return 40e9;
		if (digits == 4 && second >= 1 && second < (int)COUNT(scalable))
			return scalable[second];
	}
	return 0;
}

struct rate rate_socket(const char *cpu_model, int same_package)
{
	/* First match wins, without regard to case; then Intel's numbers. */
	static const struct {
		const char *word;
		double Bps;
	} socket[] = {
		{"EPYC", 16e9},
		{"AMD", 16e9},
		{"POWER", 32e9},
		{"ZHAOXIN", 9e9},
		{"ARM", 6e9},
		{"Neoverse", 6e9},
		{"Grace", 6e9},
		{"E5-", 6e9},
		{"E7-", 6e9},
		{"Broadwell", 6e9},
		{"Haswell", 6e9},
		{"Max 94", 22e9},
		{"Sapphire Rapids", 22e9},
		{"Emerald Rapids", 40e9},
		{"Granite Rapids", 40e9},
		{"Sierra Forest", 40e9},
	};
	struct rate r = {.Bps = 0,
		.latency_s = pcie_s,
		.source = NCCL_TOPO_H
		": AMD_BW 16, P9_BW 32, ARM_BW 6, BDW_QPI_BW 6, SKL_QPI_BW 10, SRP_QPI_BW 22, ERP_QPI_BW 40 GB/s"};
	for (size_t i = 0; i < COUNT(socket) && !(r.Bps > 0); i++)
		r.Bps = strcasestr(cpu_model, socket[i].word) ? socket[i].Bps : 0;
	r.Bps = r.Bps > 0 ? r.Bps : intel_Bps(cpu_model);
	r.Bps = r.Bps > 0 ? r.Bps : 10e9;
	if (same_package) { /* NUMA nodes of one package are joined on it: no slower than a slot of its generation */
		struct rate slot = rate_pcie(5, 16);
		r.Bps = slot.Bps > r.Bps ? slot.Bps : r.Bps;
	}
	return r;
}

struct rate rate_local(void) { return (struct rate){5000e9, 0, 0, NCCL_TOPO_H ": LOC_BW"}; }

struct rate rate_network(double bits_per_s)
{
	double Bps = (bits_per_s > 0 ? bits_per_s : 100e9) / 8;
	return (struct rate){Bps, Bps, network_s, "the line rate; latency: " NCCL_TUNING " over the network"};
}
