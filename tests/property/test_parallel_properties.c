/* Random plans over every dimension of the mesh, fixed seed: a plan that is accepted has a program that keeps its
 * invariants, its groups partition the ranks, and its parameters add up to the model. */
#include "base/array.h"
#include "tests/property/rounds.h"
#include "tests/unit/harness.h"

#include <stdlib.h>
#include <string.h>

#include "step/program.h"

#define ROUNDS 1500
#define TEXT 1536

static uint64_t state = 0x2545f4914f6cdd1du;

static unsigned below(unsigned n) /* xorshift64* (Vigna 2016) */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n);
}

static const char *one_of(const char *const *words, size_t n) { return words[below((unsigned)n)]; }

/* Half of the plans cut in a dimension at all. */
static unsigned cut(unsigned most) { return below(2) ? 1 : 1u << below(most); }

/* Writes a config; returns its ranks. */
static int64_t random_plan(char text[TEXT])
{
	static const char *const strategies[] = {"ddp", "zero1", "zero2", "fsdp", "hsdp"},
				 *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "pp-tp-cp-ep-dp",
					 "cp-tp-ep-dp-pp"},
				 *const schedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble"},
				 *const kinds[] = {"ring", "all_gather", "all_to_all"},
				 *const recomputes[] = {"none", "selective", "full"},
				 *const mixtures[] = {"", ", experts: 8, moe_ffn_hidden: 32",
					 ", experts: 8, moe_ffn_hidden: 32, shared_experts: 1, moe_layer_freq: 2"};
	const unsigned tensor = cut(3), context = cut(2), pipeline = cut(3), data = 1u << below(4),
		       micros = pipeline * (1 + below(2));
	const bool pipes = pipeline > 1;
	const char *const strategy = one_of(strategies, COUNT(strategies)),
			  *const schedule = pipes ? one_of(schedules, COUNT(schedules)) : "1f1b",
			  *const mixture = one_of(mixtures, COUNT(mixtures));
	const bool chunks = strcmp(schedule, "interleaved") == 0, dealt = *mixture != '\0';
	size_t n = (size_t)snprintf(text, TEXT,
		"model: {layers: 8, hidden: 64, heads: 8, vocab: 96, seq_len: 32, mlp: swiglu, norm: rmsnorm, bias: "
		"false, tied_embeddings: %s%s}\n"
		"train: {global_batch: %u, micro_batch: 1, dtype: %s, recompute: %s}\n"
		"parallel: {strategy: %s, tensor: %u, sequence_parallel: %s, context: %u, pipeline: %u, order: %s, "
		"context_kind: %s",
		below(2) ? "true" : "false", mixture, data * micros, below(2) ? "fp32" : "bf16",
		one_of(recomputes, COUNT(recomputes)), strategy, tensor, dealt || below(2) ? "true" : "false", context,
		pipeline, one_of(orders, COUNT(orders)), one_of(kinds, COUNT(kinds)));
	if (pipes)
		n += (size_t)snprintf(text + n, TEXT - n, ", schedule: %s, virtual_stages: %d", schedule,
			chunks ? 2 : 1);
	if (dealt)
		n += (size_t)snprintf(text + n, TEXT - n, ", expert: %u, expert_tensor: %u, expert_overlap: %s", cut(4),
			cut(3), chunks && below(2) ? "true" : "false");
	if (strcmp(strategy, "hsdp") == 0 || (strncmp(strategy, "zero", 4) == 0 && below(2)))
		n += (size_t)snprintf(text + n, TEXT - n, below(2) ? ", shard: %u" : ", replicate: %u", 2u << below(2));
	snprintf(text + n, TEXT - n, "}\n");
	return (int64_t)(tensor * context * pipeline * data);
}

/* Each rank is in one group along a dimension, at one place of it, and the others of the group agree. */
static bool partitions(const struct mesh *m, enum mesh_dim d)
{
	for (int64_t rank = 0; rank < m->ranks; rank++) {
		const int64_t at = mesh_coord(m, rank, d);
		for (int64_t i = 0; i < m->size[d]; i++) {
			const int64_t member = mesh_member(m, rank, d, i);
			if (member < 0 || member >= m->ranks || mesh_coord(m, member, d) != i ||
				mesh_member(m, member, d, at) != rank)
				return false;
		}
	}
	return true;
}

/* Parameters of all ranks, each by the ranks that hold the same part of it. */
static double parameters_of(const struct program *p)
{
	double sum = 0;
	for (size_t r = 0; r < p->n_roles; r++) {
		const struct role *role = &p->roles[r];
		for (size_t i = 0; i < role->params.n; i++) {
			const struct role_param *rp = &role->params.at[i];
			double same = (double)(p->mesh.size[role->buckets.at[rp->bucket].along] *
					       p->mesh.size[DIM_REPLICA]);
			if (rp->param.split <= TP_PARTIAL)
				same *= (double)p->mesh.size[DIM_TP];
			sum += (double)rp->elements * (double)role->ranks / same;
		}
	}
	return sum;
}

static void check_plan(const char *text, const struct program *p)
{
	struct error e = {0};
	const enum status st = program_check(p, &e);
	CU_ASSERT_EQUAL(st, ST_OK);
	if (st)
		fprintf(stderr, "%s%s\n", text, e.text);
	for (int d = 0; d < DIM_ALL; d++)
		CU_ASSERT_TRUE(partitions(&p->mesh, (enum mesh_dim)d));
	const bool twice = model_ties(&p->config.model) && p->n_roles > 1;
	const double table = (double)(p->config.model.vocab * p->config.model.hidden),
		     whole = (double)model_parameters(&p->config.model) + (twice ? table : 0);
	CU_ASSERT_DOUBLE_EQUAL(parameters_of(p), whole, 0.5);
}

static void test_plans(void)
{
	const int rounds = rounds_of(ROUNDS);
	int accepted = 0, hybrid = 0, cut_experts = 0;
	for (int i = 0; i < rounds; i++) {
		char text[TEXT];
		static struct config c;
		struct error e = {0};
		struct program *p = NULL;
		const int64_t ranks = random_plan(text);
		if (config_parse(text, strlen(text), "plan", NULL, 0, &c, &e) || config_resolve(&c, ranks, &e)) {
			CU_ASSERT_EQUAL(e.status, ST_INPUT);
			continue;
		}
		CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, &e), ST_OK);
		check_plan(text, p);
		accepted++;
		hybrid += p->mesh.size[DIM_REPLICA] > 1 && p->mesh.size[DIM_EDP] > 1;
		cut_experts += p->mesh.size[DIM_ETP] > 1;
		program_destroy(p);
	}
	CU_ASSERT(accepted > rounds / 5 && hybrid > rounds / 200 && cut_experts > rounds / 50);
}

UNIT_MAIN("plans over every dimension", {"programs of random plans", test_plans})
