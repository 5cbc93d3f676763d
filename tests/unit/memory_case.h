/* The memory of a small program. */
#ifndef STEPSIM_TESTS_UNIT_MEMORY_CASE_H
#define STEPSIM_TESTS_UNIT_MEMORY_CASE_H

#include <string.h>

#include "harness.h"
#include "step/layout.h"
#include "step/program.h"
#include "tiny_config.h"

/* bf16 with fp32 gradients and master weights, Megatron's layers. */
static inline struct config tiny(int64_t layers)
{
	struct config c = tiny_config();
	c.model.layers = layers;
	c.model.hidden = 256;
	c.model.head_dim = 32;
	c.model.ffn_hidden = 1024;
	c.model.seq_len = c.model.max_positions = 128;
	c.train.dtype = c.train.param_dtype = DT_BF16;
	c.train.master_weights = true;
	c.train.recompute_layers = layers;
	c.parallel.bucket_B = c.parallel.first_bucket_B = 1 * 1048576;
	return c;
}

static inline struct program *built(const struct config *c)
{
	struct error e = {0};
	struct program *p = NULL;
	CU_ASSERT_EQUAL_FATAL(program_build(c, &p, &e), ST_OK);
	CU_ASSERT_EQUAL(program_check(p, &e), ST_OK);
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].held.n; i++) {
			const struct held *h = &p->roles[r].held.at[i];
			CU_ASSERT(h->to == HELD_ALWAYS || (h->from <= h->to && h->to < p->roles[r].ops.n));
		}
	return p;
}

static inline struct layout peak(const struct config *c)
{
	struct program *p = built(c);
	struct error e = {0};
	struct layout l;
	CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[0], &l, &e), ST_OK);
	program_destroy(p);
	return l;
}

#define MICRO 2.0

#define TOKENS 256.0 /* of a micro-batch */

#endif
