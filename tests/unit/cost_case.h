/* Machines with round numbers, a program whose mesh the test sets, and the cost of one op on them. */
#ifndef STEPSIM_TESTS_UNIT_COST_CASE_H
#define STEPSIM_TESTS_UNIT_COST_CASE_H

#include <stdio.h>

#include "sim/price/cost.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/machines.h"
#include "tests/unit/rates.h"
#include "topology/profile.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL((a) / (b), 1, 1e-12)
#define KERNEL_S 1.5e-6 /* starts and drains */

static struct program program;
static struct profile *profile;
static struct error error;

/* A GPU with round numbers, eight in a node. */
static inline struct machine gpu(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "round",
		.nodes = 4,
		.devices_per_node = 8,
		.intra = {3e-6, 100e9},
		.inter = {10e-6, 25e9}};
	m.device = round_gpu();
	m.device.matrix_flop_per_s[DT_BF16] = 1000e12;
	m.device.launch_s = 4e-6;
	return m;
}

/* A host of two cores a rank with an empty profile, which the test fills. */
static inline struct machine host(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "host",
		.nodes = 1,
		.devices_per_node = 4,
		.intra = {1e-6, 5e9}};
	m.device = round_cores();
	profile_destroy(profile);
	profile = profile_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(profile);
	profile->key.cores_per_rank = 2;
	m.profile = profile;
	return m;
}

static inline void mesh(int64_t tp, int64_t dp)
{
	program = (struct program){0};
	for (int d = 0; d < DIM_COUNT; d++)
		program.mesh.size[d] = program.mesh.stride[d] = 1;
	program.mesh.size[DIM_TP] = tp;
	program.mesh.size[DIM_DP] = dp;
	program.mesh.stride[DIM_DP] = tp;
	program.mesh.ranks = tp * dp;
	program.config.stack = stack_default();
}

static inline struct op_cost cost(const struct machine *m, struct op op)
{
	struct op_cost c;
	error = (struct error){0};
	enum status st = cost_op(&program, &op, RATES(m), &c, &error);
	if (st)
		printf("\n%s\n", error.text);
	CU_ASSERT_EQUAL_FATAL(st, ST_OK);
	return c;
}

static inline struct op gemm(enum dtype t, int64_t m, int64_t n, int64_t k)
{
	return (struct op){.kind = OP_GEMM, .dtype = (uint8_t)t, .out_dtype = (uint8_t)t, .gemm = {m, n, k}};
}

static inline struct op collective(enum collective c, enum mesh_dim group, int64_t elements)
{
	return (struct op){.kind = OP_COLLECTIVE,
		.lane = LANE_COMM,
		.coll = (uint8_t)c,
		.group = (uint8_t)group,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.collective = {elements}};
}

#endif
