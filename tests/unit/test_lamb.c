/* LAMB's two ops on the host against the reference: tensors of every size, one of which this rank has nothing, and
 * padding behind the last. */
#include "base/array.h"
#include "tests/unit/kernel_check.h"

static const int64_t sizes[] = {1, 33, 0, 50003, 130};
#define PADDING 7

static struct op lamb_op(enum op_kind kind)
{
	struct op op = rig_op(kind, OP_FUSED, 0, 0, 0, 0, 0, 0);
	op.optimizer = OPT_ADAM;
	op.tensors.elements = PADDING;
	op.tensors.tensors = COUNT(sizes);
	for (size_t t = 0; t < COUNT(sizes); t++)
		op.tensors.elements += sizes[t];
	return op;
}

static void set_bounds(struct rig *r, int a)
{
	int64_t at[COUNT(sizes) + 1] = {0};
	for (size_t t = 0; t < COUNT(sizes); t++)
		at[t + 1] = at[t] + sizes[t];
	memcpy(r->fast[a], at, sizeof at);
}

static void test_direction(void)
{
	for (unsigned master = 0; master < 2; master++) {
		struct rig r;
		rig_open(&r, lamb_op(OP_LAMB_DIRECTION), master ? 0 : 1u << ARG_LAMB_DIRECTION_master);
		set_bounds(&r, ARG_LAMB_DIRECTION_bounds);
		double *v = r.ref[ARG_LAMB_DIRECTION_v];
		for (size_t i = 0; i < r.n[ARG_LAMB_DIRECTION_v]; i++)
			v[i] = fabs(v[i]) + 1e-3;
		rig_sync(&r, ARG_LAMB_DIRECTION_v);
		check(&r, SUMS);
	}
}

static void test_step(void)
{
	for (unsigned master = 0; master < 2; master++) {
		struct rig r;
		rig_open(&r, lamb_op(OP_LAMB_STEP), master ? 0 : 1u << ARG_LAMB_STEP_master);
		set_bounds(&r, ARG_LAMB_STEP_bounds);
		double *norms = r.ref[ARG_LAMB_STEP_norms];
		for (size_t i = 0; i < r.n[ARG_LAMB_STEP_norms]; i++)
			norms[i] = i == 1 || i == COUNT(sizes) + 4 ? 0
			                                           : 100 * fabs(norms[i]); /* no ratio without norms */
		rig_sync(&r, ARG_LAMB_STEP_norms);
		check(&r, ROUNDS);
	}
}

/* One tensor by hand, step 1: m = 0.1 g and v = 0.05 g^2 are corrected to g and g^2, so that the direction is sign(g) +
 * decay w, and the step lr |w| / |direction|. */
static void test_by_hand(void)
{
	struct error e = {0};
	const struct host_env env = {.step = 1, .scratch = (double[2]){0}, .scratch_B = 2 * sizeof(double)};
	float w[] = {3, -4}, g[] = {2, 2}, m[2] = {0}, v[2] = {0}, norms[2];
	int64_t bounds[] = {0, 2};
	struct op op = {.kind = OP_LAMB_DIRECTION, .optimizer = OPT_ADAM, .tensors = {2, 1}};
	CU_ASSERT_EQUAL(host_kernel_run(&env, &op, (void *[OP_MAX_ARGS]){w, g, m, v, NULL, bounds, norms}, &e), ST_OK);
	const double d[] = {1 + 0.01 * 3, 1 - 0.01 * 4};
	CU_ASSERT_DOUBLE_EQUAL((double)g[0], d[0], 1e-5);
	CU_ASSERT_DOUBLE_EQUAL((double)g[1], d[1], 1e-5);
	CU_ASSERT_DOUBLE_EQUAL((double)norms[0], 25, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL((double)norms[1], d[0] * d[0] + d[1] * d[1], 1e-5);
	op.kind = OP_LAMB_STEP;
	CU_ASSERT_EQUAL(host_kernel_run(&env, &op, (void *[OP_MAX_ARGS]){w, g, NULL, bounds, norms}, &e), ST_OK);
	const double rate = 1e-3 * 5 / sqrt(d[0] * d[0] + d[1] * d[1]);
	CU_ASSERT_DOUBLE_EQUAL((double)w[0], 3 - rate * d[0], 1e-6);
	CU_ASSERT_DOUBLE_EQUAL((double)w[1], -4 - rate * d[1], 1e-6);
}

UNIT_MAIN("lamb", {"a step by hand", test_by_hand}, {"directions and norms", test_direction}, {"steps", test_step})
