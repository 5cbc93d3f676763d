/* A device as its datasheet states it: one YAML file in configs/gpus/ each, every number with its source. Rates are
 * dense (no sparsity). */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_DEVICE_H
#define STEPSIM_TOPOLOGY_CATALOGUE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

#define DEVICE_KERNELS 4

struct device_spec {
	char id[64];                        /* catalogue file's name */
	char name[128];                     /* as sold */
	double matrix_flop_per_s[DT_COUNT]; /* dense matrix rate by format, with fp32 accumulation; 0: the format is not
	                                       supported */
	double vector_flop_per_s;           /* fp32, without matrix units */
	double mem_Bps;
	uint64_t mem_B;
	uint64_t reserved_B; /* of that, what its runtime keeps from every program; 0: as the stack's context and
	                        communicators take */
	double launch_s;     /* host time to issue one kernel, eager */
	double gemm_share;   /* of matrix_flop_per_s that large GEMMs reach */
	double format_share[DT_COUNT]; /* the same in fp32 (vector units), fp8, mxfp8, nvfp4; 0: as gemm_share */
	double attention8_share[2];    /* of the fp8 rate: flash attention in fp8, forward and backward; 0: not known */
	double attention_share[DEVICE_KERNELS]
			      [2]; /* of the bf16 matrix rate that flash attention reaches, by the generation of its
	                              kernel (fa1 to fa4), forward and backward; 0: not known */
	int64_t chip_devices;      /* that XLA sees of a chip, each with its own rows; 0: one */
	int64_t matrix_array;      /* rows and columns of the systolic array that multiplies; 0: it has none */
	double repeated_data; /* factor on products whose rows are all alike: the clock that less power allows; 0: 1 */
	double step_sources;  /* published sources of whole steps that fixed or bear out its rates; 0: none did */
	double mem_share;     /* of mem_Bps that streaming kernels reach */
	/* what the shares and the links were derived from, and what closed checks need; 0: the catalogue does not say
	 */
	int64_t sms;
	double boost_Hz;
	int64_t nvlink_links;   /* of link_kind, all of them together */
	double nvlink_link_Bps; /* one link, one direction, datasheet */
	int64_t nvlink_direct;  /* boards of up to so many have a link from each to each, and no switch; 0: none have */
	int64_t nvlink_board; /* boards of just so many have no switch either, though hosts with a switch may use fewer
	                         GPUs than they have; 0: there is none */
	double pcie_Bps;      /* one direction */
	double c2c_Bps;       /* of copies over NVLink-C2C, one direction; 0: they take PCIe */
	uint64_t l2_B;
	double power_W;
	char link_kind[16]; /* "NVLink", "xGMI", "ICI", "NeuronLink", "Ethernet"; "": no links between devices but PCIe
	                     */
	bool link_engines;  /* engines of the links move a collective's bytes and add them up; else kernels do, on what
	                     * computes
	                     */
	int64_t nvlink_gen, pcie_gen, pcie_lanes;
	bool no_peer;               /* its driver refuses peer-to-peer over PCIe: bytes pass through host memory */
	int64_t compute_capability; /* 90: sm_90; 0: not NVIDIA's */
	char gfx[16];               /* AMD's "gfx942" */
	uint64_t shared_B;          /* of one SM, at most */
	double price_usd, rent_usd_per_hour;  /* of one device; 0: no figure */
	char price_note[192], rent_note[192]; /* where the figure comes from, with its date */
	bool price_unverified, rent_unverified;
	char shown_as[256];   /* its names in drivers and tools, separated by ';' */
	char memory_type[16]; /* "HBM3" */
	bool unverified; /* a number here rests on memory or on a sister part: what is predicted with it says so (prices
	                    aside: no time depends on them) */
	bool is_host;    /* a host's cores */
};

/* Reads configs/gpus/<id>.yaml. ST_INPUT with the nearest id. */
enum status device_load(const char *id, struct device_spec *out, struct error *e);

#define DEVICE_ID 64

/* The catalogue's id of a GPU by the name under which a driver shows it ("NVIDIA A100-SXM4-80GB", "Tesla T4", "AMD
 * Instinct MI300X") and its memory (0: not known). `id` is "" where no file, or more than one, fits: "NVIDIA A100" is
 * four products, "GRID A100-40C" none of them. The model's words must be those of one of the file's names, in order;
 * memory sizes, memory types and form factors may be left out as long as what is there leaves one file, and must not
 * contradict it. The vendor's name counts for nothing. A memory that is more than 8 % off contradicts (ECC takes 6.7
 * %). The files are read once a process. ST_INPUT when one of them is wrong. */
enum status device_by_shown_name(const char *shown, uint64_t mem_B, char id[DEVICE_ID], struct error *e);

#endif
