/* The table of link rates by generation. Every row names its source; `usable` is what NCCL counts on (protocol overhead
 * taken off), `datasheet` the raw rate. One direction. */
#ifndef STEPSIM_TOPOLOGY_GRAPH_RATES_H
#define STEPSIM_TOPOLOGY_GRAPH_RATES_H

#include <stdint.h>

struct rate {
	double Bps, datasheet_Bps, latency_s;
	const char *source;
};

/* PCIe: datasheet = GT/s x lanes x encoding / 8 (8b/10b for gen 1 and 2, 128/130 for 3 to 5, 242/256 for 6). gen 0: not
 * known, counted as 3. lanes 0: counted as 16. Beyond gen 7: as 7. */
struct rate rate_pcie(int32_t gen, int32_t lanes);
int32_t pcie_gen_of_speed(double gt_per_s); /* 16.0 -> 4; 0 when it is no PCIe speed */

/* One NVLink by the GPU's compute capability (60, 70, 80, 86, 90, 100, ...); 0: not known, counted as sm_80's. */
struct rate rate_nvlink(int32_t compute_capability);
/* Most NVLinks that a GPU of this compute capability has: P100 4, V100 6, A100 12, GeForce and RTX of Ampere 4, H100
 * 18, B200 18; not known: 18. */
int32_t nvlinks_most(int32_t compute_capability);
/* One of AMD's GPU links by gfx number (908, 90a -> 0x90a, 942 -> 0x942, 950); 0: not known. */
struct rate rate_xgmi(int32_t gfx);
struct rate rate_c2c(void); /* NVLink-C2C between Grace and its GPU */

/* Between two CPU sockets, or two NUMA nodes of one, by words in the CPU's model ("EPYC", "Xeon", "POWER9", "");
 * `same_package`: on the die or package. */
struct rate rate_socket(const char *cpu_model, int same_package);
struct rate rate_local(void);                /* host bridge to its CPU: no limit of its own */
struct rate rate_network(double bits_per_s); /* a NIC by its line rate; 0: not known, 100 Gb/s */

#endif
