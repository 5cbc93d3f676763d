/* A device as its datasheet states it: one YAML file in configs/gpus/ each, every number with its source. Rates are dense (no sparsity). */
#ifndef STEPSIM_TOPOLOGY_DEVICE_H
#define STEPSIM_TOPOLOGY_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

struct device_spec {
	char id[64];    /* catalogue file's name */
	char name[128]; /* as sold */
	double matrix_flop_per_s[DT_COUNT]; /* dense matrix rate by format, with fp32 accumulation; 0: the format is not supported */
	double vector_flop_per_s;           /* fp32, without matrix units */
	double mem_Bps;
	uint64_t mem_B;
	double launch_s;        /* host time to issue one kernel, eager */
	double gemm_share;      /* of matrix_flop_per_s that large GEMMs reach */
	double mem_share;       /* of mem_Bps that streaming kernels reach */
	/* what the shares and the links were derived from, and what closed checks need; 0: the catalogue does not say */
	int64_t sms;
	double boost_Hz;
	int64_t nvlink_links;
	double nvlink_link_Bps; /* one link, one direction, datasheet */
	double pcie_Bps;        /* one direction */
	uint64_t l2_B;
	double power_W;
	bool unverified;        /* a number here rests on memory or on a sister part: what is predicted with it says so */
	bool is_host;           /* a host's cores */
};

/* Reads configs/gpus/<id>.yaml. ST_INPUT with the nearest id. */
enum status device_load(const char *id, struct device_spec *out, struct error *e);

#endif
