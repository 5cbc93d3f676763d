/* Weights that the step before has updated are gathered before any op reads them. */
#include "harness.h"
#include "tiny_config.h"

#include <stdlib.h>

#include "step/program.h"

/* Returns how many arguments are weights of a bucket that is gathered later. */
static int read_too_early(const struct role *r)
{
	int early = 0;
	bool *gathered = calloc(r->buckets.n + 1, sizeof *gathered);
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		if (op->kind == OP_COLLECTIVE && op->coll == COLL_ALL_GATHER && op->bucket >= 0)
			gathered[op->bucket] = true;
		for (size_t k = 0; k < r->buckets.n; k++)
			for (int a = 0; a < op_kind_info(op->kind)->n_args && !gathered[k]; a++)
				early += op_arg(r, op, a)->buffer == r->buckets.at[k].weights.buffer;
	}
	free(gathered);
	return early;
}

/* An embedding with types and a norm; or a table of biases that the first block reads, after an encoder's. */
static void test_order(void)
{
	for (int64_t stages = 0; stages <= 2; stages++) {
		struct config c = tiny_config();
		struct program *p = NULL;
		struct error e = {0};
		c.model.layers = 4;
		if (stages == 0) {
			c.model.position = POS_RELATIVE;
			c.model.relative_buckets = 32;
			c.model.encoder_layers = 2;
			c.model.encoder_seq_len = c.model.seq_len;
		} else {
			c.model.type_vocab = 2;
			c.model.embedding_norm = true;
		}
		c.stack.gather_ahead = true;
		c.parallel.strategy = STRAT_ZERO1;
		c.parallel.data = c.parallel.shard = 2;
		c.parallel.pipeline = stages ? stages : 1;
		c.parallel.bucket_B = 64; /* a bucket for nearly each parameter */
		c.train.global_batch = 8;
		c.ranks = 2 * c.parallel.pipeline;
		CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, &e), ST_OK);
		for (size_t r = 0; r < p->n_roles; r++) {
			CU_ASSERT(p->roles[r].buckets.n > 8);
			CU_ASSERT_EQUAL(read_too_early(&p->roles[r]), 0);
		}
		program_destroy(p);
	}
}

UNIT_MAIN("gathers ahead", {"order", test_order})
