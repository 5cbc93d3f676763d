/* Layers of gated delta rules, of Mamba-2 beside attention and of short convolutions: their parameters by hand, what
 * MFU counts for them, and the ops of their programs. */
#include "harness.h"
#include "tiny_config.h"

#include "base/array.h"
#include "step/program.h"

#define MICROS 2 /* of tiny_config */

/* 64 hidden, 8 heads of attention; 2 groups of keys of 16, 4 heads of 12 values; 3 taps. */
static struct config scans(const char *pattern, int64_t tp)
{
	struct config c = tiny_config();
	struct model *m = &c.model;
	snprintf(m->layer_pattern, sizeof m->layer_pattern, "%s", pattern);
	m->layers = (int64_t)strlen(pattern);
	m->norm = NORM_RMSNORM;
	m->bias = m->qkv_bias = m->proj_bias = false;
	m->ssm_groups = 2;
	m->ssm_state = 16;
	m->ssm_heads = 4;
	m->ssm_head_dim = 12;
	m->ssm_conv = 3;
	m->ssm_chunk = 8;
	c.train.recompute_layers = m->layers;
	c.parallel.data = c.parallel.shard = 2;
	c.parallel.tensor = tp;
	c.ranks = 2 * tp;
	return c;
}

/* Parameters of a layer, without its norm. */
static int64_t of_layer(char letter)
{
	const struct config with = scans((char[]){letter, letter, 0}, 1), without = scans((char[]){letter, 0}, 1);
	return (int64_t)(model_parameters(&with.model) - model_parameters(&without.model)) - 64;
}

static void test_parameters(void)
{
	const int64_t values = 4 * 12, keys = 2 * 16, attention = 4 * 64 * 64;
	const int64_t delta = (2 * values + 2 * keys + 2 * 4) * 64 + (values + 2 * keys) * 3 + 2 * 4 + 12 + values * 64;
	const int64_t mamba = (2 * values + 2 * keys + 4) * 64 + (values + 2 * keys) * (3 + 1) + 3 * 4 + values +
	                      values * 64;
	CU_ASSERT_EQUAL(of_layer('G'), delta);
	/* without gates and decays in the first product: both by rank 12; A_log and a bias of each key's channel */
	const int64_t kda = (values + 2 * keys + 4) * 64 + (values + 2 * keys) * 3 + 4 * (1 + 16) + 2 * 12 * 64 +
	                    (4 * 16 + values) * 12 + 12 + values * 64;
	CU_ASSERT_EQUAL(of_layer('K'), kda);
	CU_ASSERT_EQUAL(of_layer('M'), mamba);
	CU_ASSERT_EQUAL(of_layer('P'), mamba + attention);
	CU_ASSERT_EQUAL(of_layer('C'), 3 * 64 * 64 + 64 * 3 + 64 * 64);
	struct config c = scans("*", 1);
	const uint64_t plain = model_parameters(&c.model);
	c.model.attention_gate = true;
	CU_ASSERT_EQUAL(model_parameters(&c.model) - plain, 64 * 64);
}

/* 6 for each parameter; 24 a state of a delta rule, 21 of a scan; attention's 12 h s. */
static void test_flop(void)
{
	static const struct {
		char letter;
		double states, attention;
	} cases[] = {{'G', 24, 0}, {'K', 24, 0}, {'M', 21, 0}, {'P', 21, 1}, {'C', 0, 0}, {'*', 0, 1}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct config two = scans((char[]){cases[i].letter, cases[i].letter, 0}, 1),
				    one = scans((char[]){cases[i].letter, 0}, 1);
		CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&two.model) - model_flop_per_token(&one.model),
			6.0 * (double)(of_layer(cases[i].letter) + 64) + cases[i].states * (4 * 12) * 16 +
				cases[i].attention * 12 * 64 * 32,
			1e-6);
	}
}

static int64_t count_of(const struct config *c, enum op_kind kind)
{
	struct error e = {0};
	struct program *p = NULL;
	int64_t n = 0;
	CU_ASSERT_EQUAL_FATAL(program_build(c, &p, &e), ST_OK);
	CU_ASSERT_EQUAL(program_check(p, &e), ST_OK);
	if (e.status)
		printf("\n%s: %s\n", c->model.layer_pattern, e.text);
	for (uint32_t i = 0; i < p->roles[0].ops.n; i++)
		n += p->roles[0].ops.at[i].kind == kind;
	program_destroy(p);
	return n;
}

/* A delta rule keeps its convolution, Mamba makes it again; a recomputed block does so, too. */
static void test_programs(void)
{
	static const struct {
		const char *pattern;
		enum op_kind kind;
		int64_t plain, again; /* in a micro-batch; with all of it recomputed */
	} cases[] = {{"G", OP_SSM_CONV, 1, 2}, {"M", OP_SSM_CONV, 2, 3}, {"G", OP_DELTA_SCAN, 1, 2},
		{"GG*", OP_DELTA_SCAN_GRAD, 2, 2}, {"K", OP_SSM_CONV, 1, 2}, {"K", OP_KDA_SCAN, 1, 2},
		{"KK*", OP_KDA_SCAN_GRAD, 2, 2}, {"K-", OP_DELTA_GATE, 1, 2}, {"G", OP_SSM_SCAN, 0, 0},
		{"PP-", OP_SSM_SCAN_GRAD, 2, 2}, {"PP-", OP_ATTENTION_GRAD, 2, 2}, {"C-C", OP_SHORT_CONV, 2, 4},
		{"C-C", OP_SHORT_CONV_GRAD, 2, 2}, {"*", OP_SIGMOID_GATE, 1, 2}, {"*", OP_SIGMOID_GATE_GRAD, 1, 1}};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int64_t tp = 1; tp <= 2; tp++) {
			struct config c = scans(cases[i].pattern, tp);
			c.model.attention_gate = cases[i].kind == OP_SIGMOID_GATE ||
			                         cases[i].kind == OP_SIGMOID_GATE_GRAD;
			CU_ASSERT_EQUAL(count_of(&c, cases[i].kind), MICROS * cases[i].plain);
			c.train.recompute = REC_FULL;
			CU_ASSERT_EQUAL(count_of(&c, cases[i].kind), MICROS * cases[i].again);
		}
}

UNIT_MAIN("program of scans", {"parameters", test_parameters}, {"FLOP that MFU counts", test_flop},
	{"ops", test_programs})
