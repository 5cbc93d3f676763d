/* Devices of round numbers, so that a test can do the sums of a prediction by hand. */
#ifndef STEPSIM_TESTS_UNIT_MACHINES_H
#define STEPSIM_TESTS_UNIT_MACHINES_H

#include "topology/catalogue/device.h"

static inline struct device_spec round_gpu(void)
{
	struct device_spec d = {.name = "round GPU",
		.vector_flop_per_s = 50e12,
		.mem_Bps = 2e12,
		.mem_B = 80000000000,
		.mem_share = 0.9,
		.gemm_share = 0.8,
		.launch_s = 1e-6,
		.pcie_Bps = 50e9};
	d.matrix_flop_per_s[DT_BF16] = 600e12;
	d.matrix_flop_per_s[DT_FP32] = 50e12;
	return d;
}

static inline struct device_spec round_cores(void)
{
	struct device_spec d = {.name = "cores",
		.is_host = true,
		.vector_flop_per_s = 100e9,
		.mem_Bps = 10e9,
		.mem_B = 16000000000,
		.mem_share = 1,
		.gemm_share = 1,
		.launch_s = 2e-6};
	d.matrix_flop_per_s[DT_FP32] = 100e9;
	return d;
}

#endif
