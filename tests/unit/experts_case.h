/* Programs of models with experts. */
#ifndef STEPSIM_TESTS_UNIT_EXPERTS_CASE_H
#define STEPSIM_TESTS_UNIT_EXPERTS_CASE_H

#include <string.h>

#include "step/program.h"
#include "tests/unit/harness.h"
#include "tests/unit/parse_with.h"

#define L 3
#define H 64
#define E 8
#define K 2

static inline struct program *program_of(const char *more, int64_t ranks)
{
	static const char base[] =
		"model: {layers: 3, hidden: 64, heads: 8, kv_heads: 4, vocab: 96, seq_len: 64, position: rope, mlp: "
		"swiglu, norm: rmsnorm, bias: false, tied_embeddings: false, experts: 8, moe_ffn_hidden: 48}\n"
		"train: {global_batch: 16, micro_batch: 2, dtype: fp32, param_dtype: fp32, grad_dtype: fp32, "
		"reduce_dtype: fp32}\n";
	static struct config c;
	struct error e = {0};
	struct program *p = NULL;
	if (parse_with(base, "experts.yaml", more, &c, &e))
		fprintf(stderr, "%s: %s\n", more, e.text);
	c.node_ranks = 4;
	if (e.status || config_resolve(&c, ranks, &e) || program_build(&c, &p, &e) || program_check(p, &e)) {
		fprintf(stderr, "%s: %s\n", more, e.text);
		CU_FAIL_FATAL("the program");
	}
	return p;
}

#endif
