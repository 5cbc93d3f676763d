/* The constants of configs/model, for what tests make by hand. */
#ifndef STEPSIM_TESTS_UNIT_CONSTANTS_H
#define STEPSIM_TESTS_UNIT_CONSTANTS_H

#include "tests/unit/harness.h"
#include "topology/catalogue/parameters.h"

static inline const struct parameters *read_constants(void)
{
	const struct parameters *p = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(parameters_load(&p, &e), ST_OK);
	return p;
}

/* The tiles of configs/model/gpu.yaml. */
#define TILE_MODEL \
	{ \
		.step = 64, .side = 128, .split_k = 256, .attention = 128 \
	}

#endif
