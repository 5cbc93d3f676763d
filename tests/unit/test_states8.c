/* Optimizers with moments in 8 bits against the reference, whose moments are not rounded, and the map of the bytes
 * against its definition. */
#include "base/array.h"
#include "exec/host/dynamic_map.h"
#include "tests/unit/kernel_check.h"
#include "tests/unit/states8_check.h"

static void test_map(void)
{
	for (int k = 0; k < 2; k++) {
		double map[STATES8_CODES];
		states8_map(k == 0, map);
		for (int c = 0; c < STATES8_CODES; c++)
			CU_ASSERT_DOUBLE_EQUAL((double)dynamic_map_value(c, k == 0), map[c], 1e-6 * fabs(map[c]));
	}
	CU_ASSERT_EQUAL(dynamic_map_value(DYNAMIC_MAP_ZERO, true), 0.0f);
	/* ends of the map as bitsandbytes' create_dynamic_map has them: -(0.1 + 0.9 x 63.5 / 64); 10^-6 x the middles
	 * of two halves of 0.1 to 1 */
	CU_ASSERT_DOUBLE_EQUAL((double)dynamic_map_value(0, true), -0.99296875, 1e-7);
	CU_ASSERT_DOUBLE_EQUAL((double)dynamic_map_value(1, false), 0.325e-6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL((double)dynamic_map_value(254, false), 0.996484375, 1e-7);
}

#define ARG_M 2
#define ARG_V 3

static void fill_moment(struct rig *r, int a, bool has_sign)
{
	if (r->absent[a])
		return;
	free(r->ref[a]);
	r->ref[a] = rig_alloc((size_t)r->op.update.elements * sizeof(double));
	states8_fill(&r->op, has_sign, rig_random, r->fast[a], r->ref[a]);
}

static void check_result(const struct rig *r, char *const blocks[], const char *before, int threads)
{
	const double *p = r->ref[0];
	size_t wrong = 0;
	for (int64_t i = 0; i < r->op.update.elements; i++)
		wrong += !(fabs((double)((const float *)(blocks[0] + GUARD_B))[i] - p[i]) <= 1e-5 * (1.0 + fabs(p[i])));
	for (int a = ARG_M; a <= ARG_V; a++)
		if (!r->absent[a])
			wrong += states8_wrong(&r->op, a == ARG_M, (const unsigned char *)blocks[a] + GUARD_B,
				r->ref[a]);
	for (int a = 0; a < r->n_args; a++)
		if (!r->absent[a])
			check_guards(blocks[a], r->n[a] * 4, op_kind_info(r->op.kind)->arg[a].name);
	wrong += !r->absent[4] && memcmp(blocks[0] + GUARD_B, blocks[4] + GUARD_B, r->n[0] * 4) != 0;
	wrong += memcmp(blocks[1], before, 2 * GUARD_B + r->n[1] * 4) != 0; /* the gradient stays */
	if (wrong)
		fprintf(stderr, "optimizer %d on %lld elements, %lld to %lld in 32 bits, %d threads: %zu wrong\n",
			r->op.optimizer, (long long)r->op.update.elements, (long long)r->op.update.wide_from,
			(long long)r->op.update.wide_to, threads, wrong);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void update_of(enum optimizer o, int64_t n, int64_t from, int64_t to, bool master)
{
	struct rig r;
	bool v = o == OPT_ADAMW || o == OPT_ADAM;
	rig_open(&r, rig_op(OP_OPTIMIZER, OP_FUSED | OP_STATES_8, (int)o, n, from, to, 0, 0),
		(v ? 0 : 1u << ARG_V) | (master ? 0 : 1u << 4));
	fill_moment(&r, ARG_M, true);
	fill_moment(&r, ARG_V, false);
	char *before = copy_of(&r, 1), *blocks[2][OP_MAX_ARGS];
	rig_reference(&r);
	for (int k = 0; k < 2; k++) {
		struct tools t;
		tools_open(&t, &r, 1 + 2 * k);
		run_kernel(&r, &t, blocks[k]);
		check_result(&r, blocks[k], before, 1 + 2 * k);
		tools_close(&t);
	}
	for (int a = 0; a < r.n_args; a++) {
		if (!r.absent[a])
			CU_ASSERT_EQUAL(memcmp(blocks[0][a], blocks[1][a], 2 * GUARD_B + r.n[a] * 4),
				0); /* however many threads */
		free(blocks[0][a]);
		free(blocks[1][a]);
	}
	free(before);
	rig_close(&r);
}

static void test_update(void)
{
	static const int64_t sizes[] = {1, 255, 256, 257, 1000, 50003};
	static const enum optimizer rules[] = {OPT_ADAMW, OPT_ADAM, OPT_LION, OPT_SGD};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t o = 0; o < 4; o++)
			for (int master = 0; master < 2; master++) {
				update_of(rules[o], sizes[i], 0, 0, master);
				update_of(rules[o], sizes[i], 0, sizes[i], master);
				update_of(rules[o], sizes[i], sizes[i] / 3, sizes[i] - sizes[i] / 5, master);
			}
}

static void test_refused(void)
{
	struct error e = {0};
	float x[80] = {0};
	const struct op op = rig_op(OP_OPTIMIZER, OP_FUSED | OP_STATES_8, OPT_SGD, 4, 0, 0, 0, 0);
	CU_ASSERT_EQUAL(host_kernel_run(&(struct host_env){.step = 1}, &op,
				(void *const[OP_MAX_ARGS]){x, x + 8, NULL, NULL, NULL}, &e),
		ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "optimizer sgd without its state");
}

UNIT_MAIN("moments in 8 bits", {"the map", test_map}, {"updates", test_update}, {"refused", test_refused})
