/* A tiny GPT's step programs, for tests that set what they are about. */
#ifndef STEPSIM_TESTS_TINY_PROGRAM_H
#define STEPSIM_TESTS_TINY_PROGRAM_H

#include "harness.h"
#include "tiny_config.h"

#include "step/program.h"

/* Three layers on dp replicas of tp tensor ranks. */
static inline struct config tiny(enum strategy s, int64_t dp, int64_t tp)
{
	struct config c = tiny_config();
	c.model.layers = 3;
	c.train.global_batch = 4 * dp;
	c.train.recompute_layers = 3;
	c.parallel.strategy = s;
	c.parallel.data = c.parallel.shard = dp;
	c.parallel.tensor = tp;
	c.ranks = dp * tp;
	return c;
}

/* The config's program, which keeps the invariants. The caller destroys it. */
static inline struct program *built(const struct config *c)
{
	struct error e = {0};
	struct program *p = NULL;
	CU_ASSERT_EQUAL_FATAL(program_build(c, &p, &e), ST_OK);
	if (program_check(p, &e)) {
		printf("\n  strategy %s: %s\n", strategy_name(c->parallel.strategy), e.text);
		CU_FAIL("program_check");
	}
	return p;
}

#endif
