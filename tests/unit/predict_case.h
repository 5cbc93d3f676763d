/* Predictions of a small program on round machines. */
#ifndef STEPSIM_TESTS_UNIT_PREDICT_CASE_H
#define STEPSIM_TESTS_UNIT_PREDICT_CASE_H

#include <stdio.h>
#include <string.h>

#include "sim/engine/predict.h"
#include "sim/price/cost.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/machines.h"
#include "tests/unit/parse_with.h"
#include "tests/unit/rates.h"

static const char base[] = "model: {preset: gpt2-124m, layers: 3}\ntrain: {global_batch: 8, micro_batch: 2}\n";

static inline struct machine gpu(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "node",
		.nodes = 1,
		.devices_per_node = 8,
		.intra = {4e-6, 100e9},
		.inter = {10e-6, 25e9}};
	m.device = round_gpu();
	return m;
}

static inline struct machine host(const struct profile *p)
{
	struct machine m = {.parameters = read_constants(),
		.name = "host",
		.nodes = 1,
		.devices_per_node = 8,
		.intra = {2e-6, 4e9},
		.profile = p};
	m.device = round_cores();
	return m;
}

static inline struct program *build(const char *more, int64_t ranks)
{
	struct config c;
	struct error e = {0};
	struct program *p = NULL;
	if (parse_with(base, "predict.yaml", more, &c, &e) || config_resolve(&c, ranks, &e) ||
		program_build(&c, &p, &e)) {
		fprintf(stderr, "%s: %s\n", more, e.text);
		CU_FAIL_FATAL("the config");
	}
	return p;
}

#endif
