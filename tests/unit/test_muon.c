/* Muon: its ops on the host against the reference and by hand, and the step program's work, memory and exchanges
 * against closed forms. */
#include "base/array.h"
#include "tests/unit/kernel_check.h"
#include "tests/unit/tiny_config.h"

#include "step/program.h"

static struct op muon_op(enum op_kind kind, unsigned flags, int64_t groups, int64_t rows, int64_t cols)
{
	struct op op = rig_op(kind, flags, 0, 0, 0, 0, 0, 0);
	op.muon.groups = groups;
	op.muon.rows = rows;
	op.muon.cols = cols;
	return op;
}

static void test_kernels(void)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 130, 33}, {1, 200, 301}};
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const int64_t *s = shapes[i];
		struct rig r;
		rig_open(&r, muon_op(OP_MUON_DIRECTION, 0, s[0], s[1], s[2]), 0);
		check(&r, SUMS);
		for (unsigned last = 0; last < 2; last++) {
			rig_open(&r, muon_op(OP_MUON_MIX, last ? OP_ACCUMULATE : 0, s[0], s[1], s[2]), 0);
			check(&r, ROUNDS);
			rig_open(&r, muon_op(OP_MUON_STEP, 0, s[0], s[1], s[2]), last ? 0 : 1u << ARG_MUON_STEP_master);
			check(&r, ROUNDS);
		}
	}
}

static void run(struct op op, void *a, void *b, void *c, void *d)
{
	struct error e = {0};
	double sums[4] = {0};
	const struct host_env env = {.step = 1, .scratch = sums, .scratch_B = sizeof sums};
	CU_ASSERT_EQUAL(host_kernel_run(&env, &op, (void *[OP_MAX_ARGS]){a, b, c, d}, &e), ST_OK);
}

/* A diagonal 2 x 2 gradient (3, 4): u = 1.95 g has the norm 1.95 x 5, so x = diag(0.6, 0.8), and a round maps each
 * diagonal element to a x + b x^3 + c x^5. Five of them bring both near 1. */
static void test_by_hand(void)
{
	float g[] = {3, 0, 0, 4}, m[4] = {0}, x[4], gram[4], square[4], y[4], w[] = {1, 0, 0, 1};
	double by_hand[] = {0.6, 0.8};
	run(muon_op(OP_MUON_DIRECTION, 0, 1, 2, 2), g, m, x, NULL);
	CU_ASSERT_DOUBLE_EQUAL((double)m[3], 4, 1e-6);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 2; i++) {
			const double v = by_hand[i];
			CU_ASSERT_DOUBLE_EQUAL((double)x[3 * i], v, 1e-5);
			by_hand[i] = 3.4445 * v - 4.7750 * v * v * v + 2.0315 * v * v * v * v * v;
		}
		run(rig_op(OP_GEMM, OP_TRANS_B, 0, 2, 2, 2, 0, 0), x, x, NULL, gram);
		run(rig_op(OP_GEMM, 0, 0, 2, 2, 2, 0, 0), gram, gram, NULL, square);
		run(muon_op(OP_MUON_MIX, 0, 1, 2, 2), gram, square, NULL, NULL);
		run(rig_op(OP_GEMM, 0, 0, 2, 2, 2, 0, 0), square, x, NULL, y);
		run(muon_op(OP_MUON_MIX, OP_ACCUMULATE, 1, 2, 2), x, y, NULL, NULL);
		memcpy(x, y, sizeof x);
	}
	CU_ASSERT((double)x[0] > 0.68 && (double)x[0] < 1.2 && (double)x[3] > 0.68 && (double)x[3] < 1.2);
	run(muon_op(OP_MUON_STEP, 0, 1, 2, 2), w, x, NULL, NULL);
	CU_ASSERT_DOUBLE_EQUAL((double)w[0], 1 - 1e-3 * (0.1 + 0.2 * sqrt(2.0) * (double)x[0]), 1e-6);
	CU_ASSERT_EQUAL(w[1], 0.0f);
}

/* ---- the program ---- */

static struct program *built(enum strategy strategy, int64_t dp)
{
	struct config c = tiny_config();
	struct error e = {0};
	struct program *p = NULL;
	c.model.layers = 3;
	c.train.recompute_layers = 0;
	c.train.optimizer = OPT_MUON;
	c.parallel.strategy = strategy;
	c.parallel.data = c.parallel.shard = c.ranks = dp;
	c.train.global_batch = 4 * dp;
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, &e), ST_OK);
	CU_ASSERT_EQUAL(program_check(p, &e), ST_OK);
	return p;
}

struct sums {
	double flop, sent, stepped, adamw;
};

static struct sums sums_of(const struct program *p)
{
	struct sums s = {0};
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		const struct op *op = &p->roles[0].ops.at[i];
		s.flop += op->kind == OP_GEMM || op->kind == OP_GROUPED_GEMM
		                  ? (op->phase == PHASE_OPTIMIZER ? op_flop(op) : 0)
		                  : 0;
		s.sent += op->kind == OP_COLLECTIVE && op->coll == COLL_ALLTOALL ? (double)op->collective.elements : 0;
		s.stepped += op->kind == OP_MUON_STEP ? (double)(op->muon.groups * op->muon.rows * op->muon.cols) : 0;
		s.adamw += op->kind == OP_OPTIMIZER ? (double)op->update.elements : 0;
	}
	return s;
}

/* 5 rounds of 4 m^2 n + 2 m^3, m <= n. */
static double rounds_flop(double m, double n) { return 5 * (4 * m * m * n + 2 * m * m * m); }

static double states(const struct program *p)
{
	double sum = 0;
	for (size_t i = 0; i < p->roles[0].buffers.n; i++)
		if (p->roles[0].buffers.at[i].component == COMP_OPTIMIZER)
			sum += (double)p->roles[0].buffers.at[i].bytes / 4;
	return sum;
}

/* A block of hidden 64: queries, keys, values and the projection are 64 x 64, the MLP's two 256 x 64. Two states for
 * what adamw updates, one for the rest. Where states are cut by 2, 12 + 6 matrices become 6 + 3 a rank, and half of all
 * directions leave and come back. */
static void test_program(void)
{
	const double block = 4 * 64.0 * 64 + 2 * 64.0 * 256, matrices = 3 * block,
		     flop = 3 * (4 * rounds_flop(64, 64) + 2 * rounds_flop(64, 256));
	struct program *p = built(STRAT_DDP, 2);
	struct sums s = sums_of(p);
	double all = 0;
	for (size_t i = 0; i < p->roles[0].buckets.n; i++)
		all += (double)p->roles[0].buckets.at[i].elements;
	CU_ASSERT_DOUBLE_EQUAL(s.flop, flop, 1);
	CU_ASSERT_EQUAL(s.sent, 0);
	CU_ASSERT_EQUAL(s.stepped, matrices);
	CU_ASSERT_EQUAL(s.adamw, all - matrices);
	CU_ASSERT_EQUAL(states(p), matrices + 2 * (all - matrices));
	program_destroy(p);
	static const enum strategy cut[] = {STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP};
	for (size_t i = 0; i < COUNT(cut); i++) {
		p = built(cut[i], 2);
		s = sums_of(p);
		CU_ASSERT_DOUBLE_EQUAL(s.flop, flop / 2, 1);
		CU_ASSERT_DOUBLE_EQUAL(s.sent, 2 * matrices / 2, 8);
		CU_ASSERT_DOUBLE_EQUAL(s.stepped, matrices / 2, 8);
		CU_ASSERT_DOUBLE_EQUAL(states(p), (matrices + 2 * (all - matrices)) / 2, 32);
		program_destroy(p);
	}
}

UNIT_MAIN("muon", {"kernels", test_kernels}, {"a step by hand", test_by_hand}, {"the program", test_program})
