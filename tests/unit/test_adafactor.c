/* Adafactor: its ops on the host against the reference and by hand, and the step program's state, sums and exchanges
 * against closed forms. */
#include "base/array.h"
#include "tests/unit/kernel_check.h"
#include "tests/unit/tiny_config.h"

#include "step/factored.h"

/* A whole matrix; a vector; a matrix of which this rank has neither the beginning nor the end; a tensor of which it has
 * nothing; a matrix whose columns a tensor group of 2 cuts. */
static const struct factored_tensor tensors[] = {
	{0, 130 * 33, 0, 130, 33, 130, 33, 130 * 33, 0, 130, 163, 0},
	{130 * 33, 7, 0, 7, 1, 0, 0, 7, 0, 0, 164, 0},
	{130 * 33 + 7, 43, 17, 14, 5, 14, 5, 70, 165, 179, 184, 7},
	{130 * 33 + 50, 0, 0, 3, 1, 0, 0, 3, 0, 0, 185, 7},
	{130 * 33 + 50, 60, 0, 6, 10, 6, 20, 120, 186, 192, 202, 7},
};
#define ELEMENTS (130 * 33 + 110)
#define SUM_COUNT 203

static struct op adafactor_op(enum op_kind kind)
{
	struct op op = rig_op(kind, 0, 0, 0, 0, 0, 0, 0);
	op.optimizer = OPT_ADAFACTOR;
	op.factored = (struct op_factored){ELEMENTS + 3, COUNT(tensors), SUM_COUNT, 7};
	return op;
}

static void positive(struct rig *r, int a)
{
	double *x = r->ref[a];
	for (size_t i = 0; i < r->n[a]; i++)
		x[i] = fabs(x[i]) + 0.1;
	rig_sync(r, a);
}

static void test_kernels(void)
{
	struct rig r;
	for (unsigned master = 0; master < 2; master++) {
		rig_open(&r, adafactor_op(OP_ADAFACTOR_SUMS), master ? 0 : 1u << ARG_ADAFACTOR_SUMS_master);
		memcpy(r.fast[ARG_ADAFACTOR_SUMS_bounds], tensors, sizeof tensors);
		check(&r, SUMS);
		rig_open(&r, adafactor_op(OP_ADAFACTOR_STEP), master ? 0 : 1u << ARG_ADAFACTOR_STEP_master);
		memcpy(r.fast[ARG_ADAFACTOR_STEP_bounds], tensors, sizeof tensors);
		positive(&r, ARG_ADAFACTOR_STEP_sums);
		positive(&r, ARG_ADAFACTOR_STEP_factors);
		positive(&r, ARG_ADAFACTOR_STEP_v);
		positive(&r, ARG_ADAFACTOR_STEP_norms);
		check(&r, SUMS);
	}
	rig_open(&r, adafactor_op(OP_ADAFACTOR_NORMS), 0);
	memcpy(r.fast[ARG_ADAFACTOR_NORMS_bounds], tensors, sizeof tensors);
	positive(&r, ARG_ADAFACTOR_NORMS_sums);
	positive(&r, ARG_ADAFACTOR_NORMS_factors);
	positive(&r, ARG_ADAFACTOR_NORMS_v);
	check(&r, SUMS);
}

static void run(struct op op, void *const arg[OP_MAX_ARGS])
{
	struct error e = {0};
	double sums[4] = {0};
	const struct host_env env = {.step = 1, .scratch = sums, .scratch_B = sizeof sums};
	CU_ASSERT_EQUAL(host_kernel_run(&env, &op, arg, &e), ST_OK);
}

/* Step 1 forgets what was. g^2 = ((1, 4), (9, 16)) has the rows 5, 25, the columns 10, 20 and the sum 30, so that u_00
 * = 1 / sqrt(5 x 10 / 30). The weights' root mean square is 2, the step 0.01 x 2 / max(1, rms(u)). */
static void test_by_hand(void)
{
	float w[] = {2, -2, 2, 2}, g[] = {1, 2, 3, 4}, sums[5], factors[5] = {7, 7, 7, 7, 7}, norms[1], v[1];
	struct factored_tensor t = {0, 4, 0, 2, 2, 2, 2, 4, 0, 2, 4, 0};
	struct op op = {.kind = OP_ADAFACTOR_SUMS, .factored = {4, 1, 5, 0}};
	run(op, (void *[OP_MAX_ARGS]){w, g, NULL, &t, sums});
	const double squares[] = {5, 25, 10, 20, 16};
	for (size_t i = 0; i < COUNT(squares); i++)
		CU_ASSERT_DOUBLE_EQUAL((double)sums[i], squares[i], 1e-5);
	op.kind = OP_ADAFACTOR_NORMS;
	run(op, (void *[OP_MAX_ARGS]){g, sums, factors, v, &t, norms});
	for (int i = 0; i < 4; i++)
		CU_ASSERT_DOUBLE_EQUAL((double)factors[i], squares[i], 1e-5);
	double u[4], norm = 0;
	for (int i = 0; i < 4; i++) {
		u[i] = (double)g[i] / sqrt(squares[i / 2] * squares[2 + i % 2] / 30);
		norm += u[i] * u[i];
	}
	CU_ASSERT_DOUBLE_EQUAL((double)norms[0], norm, 1e-5);
	op.kind = OP_ADAFACTOR_STEP;
	const double before[] = {2, -2, 2, 2}, rate = 0.01 * 2 / fmax(1, sqrt(norm / 4));
	run(op, (void *[OP_MAX_ARGS]){w, g, NULL, sums, factors, v, &t, norms});
	for (int i = 0; i < 4; i++)
		CU_ASSERT_DOUBLE_EQUAL((double)w[i], before[i] - rate * u[i], 1e-6);
}

/* A vector's first step is sign(g), and where the weights are 0 the least relative step 0.001 counts. */
static void test_vector(void)
{
	float w[] = {0, 0, 0}, g[] = {5, -2, 1}, sums[1], factors[1] = {0}, norms[1], v[] = {7, 7, 7};
	struct factored_tensor t = {0, 3, 0, 3, 1, 0, 0, 3, 0, 0, 0, 0};
	struct op op = {.kind = OP_ADAFACTOR_SUMS, .factored = {3, 1, 1, 3}};
	run(op, (void *[OP_MAX_ARGS]){w, g, NULL, &t, sums});
	op.kind = OP_ADAFACTOR_NORMS;
	run(op, (void *[OP_MAX_ARGS]){g, sums, factors, v, &t, norms});
	CU_ASSERT_DOUBLE_EQUAL((double)norms[0], 3, 1e-5);
	op.kind = OP_ADAFACTOR_STEP;
	run(op, (void *[OP_MAX_ARGS]){w, g, NULL, sums, factors, v, &t, norms});
	for (int i = 0; i < 3; i++)
		CU_ASSERT_DOUBLE_EQUAL((double)w[i], (double)g[i] > 0 ? -1e-5 : 1e-5, 1e-10);
}

/* ---- the program ---- */

static struct program *built(enum strategy strategy, int64_t dp, int64_t tensor)
{
	struct config c = tiny_config();
	struct error e = {0};
	struct program *p = NULL;
	c.model.bias = c.model.qkv_bias = c.model.proj_bias = false;
	c.train.recompute_layers = 0;
	c.train.optimizer = OPT_ADAFACTOR;
	c.parallel.strategy = strategy;
	c.parallel.data = c.parallel.shard = dp;
	c.parallel.tensor = tensor;
	c.ranks = dp * tensor;
	c.train.global_batch = 4 * dp;
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, &e), ST_OK);
	CU_ASSERT_EQUAL(program_check(p, &e), ST_OK);
	return p;
}

struct found {
	double stepped, shared, tensor, factors, vectors;
};

/* Elements stepped; numbers that ranks add up along data and along tensor; state. */
static struct found found_in(const struct program *p)
{
	struct found s = {0};
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		const struct op *op = &p->roles[0].ops.at[i];
		const bool adds = op->kind == OP_COLLECTIVE && op->phase == PHASE_OPTIMIZER &&
		                  op->coll == COLL_ALL_REDUCE;
		s.shared += adds && op->group == DIM_DP ? (double)op->collective.elements : 0;
		s.tensor += adds && op->group == DIM_TP ? (double)op->collective.elements : 0;
		if (op->kind != OP_ADAFACTOR_STEP)
			continue;
		s.stepped += (double)op->factored.elements;
		s.factors += (double)op->factored.sums;
		s.vectors += (double)op->factored.vectors;
	}
	return s;
}

/* A block of hidden 64: qkv 192 x 64, projection 64 x 64, MLP 256 x 64 and 64 x 256; tables 96 x 64 and 32 x 64. Norms:
 * two a block and the last, 64 each. */
static void test_program(void)
{
	const double rows = 192 + 64 + 256 + 64 + 96 + 32, cols = 64 + 64 + 64 + 256 + 64 + 64, count = 9,
		     vectors = 3 * 64, sums = rows + cols + count,
		     all = 64 * (192 + 64 + 256 + 256 + 96 + 32) + vectors;
	struct program *p = built(STRAT_DDP, 2, 1);
	struct found f = found_in(p);
	CU_ASSERT_EQUAL(f.stepped, all);
	CU_ASSERT_EQUAL(f.factors, sums);
	CU_ASSERT_EQUAL(f.vectors, vectors);
	CU_ASSERT_EQUAL(f.shared + f.tensor, 0);
	program_destroy(p);
	static const enum strategy cut[] = {STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP};
	for (size_t i = 0; i < COUNT(cut); i++) {
		p = built(cut[i], 2, 1);
		f = found_in(p);
		CU_ASSERT_DOUBLE_EQUAL(f.stepped, all / 2, 8);
		CU_ASSERT_EQUAL(f.factors, sums); /* each rank has all */
		CU_ASSERT_EQUAL(f.shared, sums + count);
		program_destroy(p);
	}
	/* Of qkv, fc1 and the token table, cut by rows, the columns; of projection and fc2, cut by columns, the rows.
	 */
	p = built(STRAT_DDP, 1, 2);
	f = found_in(p);
	CU_ASSERT_EQUAL(f.tensor, (64 + 64 + 64) + (64 + 64) + 2 * 5);
	CU_ASSERT_EQUAL(f.factors, sums - (192 + 256 + 96) / 2.0 - (64 + 256) / 2.0);
	CU_ASSERT_EQUAL(f.shared, 0);
	program_destroy(p);
}

/* Each tensor's places are its own, and parts of a cut bucket meet. */
static void test_places(void)
{
	for (int64_t tensor = 1; tensor <= 2; tensor++) {
		struct program *p = built(STRAT_ZERO1, 3, tensor);
		const struct role *r = &p->roles[0];
		for (int32_t b = 0; b < (int32_t)r->buckets.n; b++) {
			const struct bucket *k = &r->buckets.at[b];
			const struct factored_counts n = factored_counts_of(r, &p->mesh, b);
			int64_t elements = 0, sums = 0;
			for (int64_t s = 0; s < k->shards; s++)
				for (int64_t i = 0; i < n.tensors; i++)
					elements +=
						factored_tensor(r, &p->mesh, b, (uint64_t)(s * bucket_part(k)), i).n;
			for (int64_t i = 0; i < n.tensors; i++) {
				const struct factored_tensor t = factored_tensor(r, &p->mesh, b, 0, i);
				const bool cut = t.elements != t.rows * t.cols;
				CU_ASSERT_EQUAL(cut, i < n.cut_tensors);
				CU_ASSERT_EQUAL(t.at_sum < n.cut_sums, cut);
				CU_ASSERT(t.at_row + (t.cols > 1 ? t.rows : 0) <= n.sums);
				sums += 1 + (t.cols > 1 ? t.rows + t.cols : 0);
			}
			CU_ASSERT_EQUAL(elements, (int64_t)k->elements);
			CU_ASSERT_EQUAL(sums, n.sums);
		}
		program_destroy(p);
	}
}

UNIT_MAIN("adafactor", {"kernels", test_kernels}, {"a step by hand", test_by_hand}, {"vectors", test_vector},
	{"the program", test_program}, {"places", test_places})
