/* Experts: what the reference says is right by hand, by finite differences and by transposes; the host's kernels say
 * the same. */
#include "base/array.h"
#include "exec/host/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/kernel_rig.h"

#define CLOSE 1e-7

static struct op moe_op(enum op_kind k, unsigned flags, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
	return rig_op(k, flags, 0, d0, d1, d2, d3, 0);
}

/* An op on arrays: doubles for the reference, or floats for the kernel, on one thread or three. */
static void run(struct op op, int threads, void *const arg[OP_MAX_ARGS])
{
	struct error e = {0};
	struct host_env env = {.heads = 1};
	if (threads == 0) {
		CU_ASSERT_EQUAL(reference_run(&env, &op, arg, &e), ST_OK);
		return;
	}
	env.scratch_B = host_kernel_scratch_B(&op, threads);
	env.scratch = rig_alloc(env.scratch_B);
	CU_ASSERT_EQUAL_FATAL(pool_create(threads, &env.pool, &e), ST_OK);
	CU_ASSERT_EQUAL(host_kernel_run(&env, &op, arg, &e), ST_OK);
	pool_destroy(env.pool);
	free(env.scratch);
}

static double *numbers(int64_t n)
{
	double *x = rig_alloc((size_t)n * sizeof *x);
	for (int64_t i = 0; i < n; i++)
		x[i] = (double)(float)rig_random();
	return x;
}

static double dot(const double *x, const double *y, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

/* ---- routing ---- */

/* Three rows choose 2 of 3 experts with one place each. First choices are served first: expert 2 goes to row 0 though
 * row 1 comes second with it; equal logits: the lower number. */
static void test_by_hand(void)
{
	double logits[] = {0, 1, 2, 3, 1, 2, 0, 0, 0}, gates[6];
	int32_t slots[6], taken[3];
	run(moe_op(OP_ROUTE, 0, 3, 3, 2, 1), 0, (void *const[OP_MAX_ARGS]){logits, gates, slots, taken});
	static const int32_t want[] = {2, 1, 0, -3, -1, -2}, takers[] = {2, 1, 0};
	CU_ASSERT_EQUAL(memcmp(slots, want, sizeof want), 0);
	CU_ASSERT_EQUAL(memcmp(taken, takers, sizeof takers), 0);
	for (int r = 0; r < 3; r++)
		CU_ASSERT_DOUBLE_EQUAL(gates[2 * r], r < 2 ? 1 / (1 + exp(-1)) : 0.5, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(gates[3], 1 - gates[2], 1e-15);
	double one[3];
	run(moe_op(OP_ROUTE, 0, 3, 3, 1, 3), 0, (void *const[OP_MAX_ARGS]){logits, one, slots, (int32_t[9]){0}});
	CU_ASSERT_DOUBLE_EQUAL(one[0], exp(2) / (1 + exp(1) + exp(2)),
		1e-15); /* one expert: its part of the softmax over all */
}

/* rows, experts, a row's, places: with all places, with dropped choices, with empty slots, with every expert chosen */
static const int64_t shapes[][4] = {{1, 1, 1, 1}, {5, 4, 1, 5}, {7, 4, 2, 7}, {33, 8, 2, 9}, {33, 8, 1, 3},
	{64, 16, 8, 20}, {10, 3, 3, 10}, {400, 60, 4, 30}};
#define FOR_SHAPES(d) \
	for (size_t i_ = 0; i_ < COUNT(shapes); i_++) \
		for (const int64_t *d = shapes[i_]; d; d = NULL)

struct routed {
	double *logits, *gates;
	int32_t *slots, *taken;
	int64_t R, E, k, C, S;
};

static struct routed routed_of(const int64_t d[4])
{
	struct routed r = {numbers(d[0] * d[1]), numbers(d[0] * d[2]), rig_alloc((size_t)(d[0] * d[2]) * 4),
		rig_alloc((size_t)(d[1] * d[3]) * 4), d[0], d[1], d[2], d[3], d[1] * d[3]};
	run(moe_op(OP_ROUTE, 0, r.R, r.E, r.k, r.C), 0,
		(void *const[OP_MAX_ARGS]){r.logits, r.gates, r.slots, r.taken});
	return r;
}

static void drop(struct routed *r)
{
	free(r->logits);
	free(r->gates);
	free(r->slots);
	free(r->taken);
}

/* Slots and what takes them say the same; a place stays empty only where no choice was dropped. */
static void test_places(void)
{
	FOR_SHAPES(d)
	{
		struct routed r = routed_of(d);
		int64_t *dropped = rig_alloc((size_t)r.E * sizeof *dropped),
			*empty = rig_alloc((size_t)r.E * sizeof *empty), kept = 0;
		for (int32_t i = 0; i < r.R * r.k; i++) {
			if (r.slots[i] < 0) {
				dropped[-1 - r.slots[i]]++;
				continue;
			}
			kept++;
			CU_ASSERT_EQUAL(r.taken[r.slots[i]], i);
		}
		for (int64_t s = 0; s < r.S; s++)
			empty[s / r.C] += r.taken[s] < 0;
		for (int64_t e = 0; e < r.E; e++) {
			CU_ASSERT(dropped[e] == 0 || empty[e] == 0);
			kept += empty[e];
		}
		CU_ASSERT_EQUAL(kept, r.S);
		free(dropped);
		free(empty);
		drop(&r);
	}
}

/* Sum of weight x gate over the choices that were not dropped. */
static double weighed(const struct routed *r, double *logits, const double *by_slot)
{
	double *gates = numbers(r->R * r->k), sum = 0;
	int32_t *slots = rig_alloc((size_t)(r->R * r->k) * 4), *taken = rig_alloc((size_t)r->S * 4);
	run(moe_op(OP_ROUTE, 0, r->R, r->E, r->k, r->C), 0, (void *const[OP_MAX_ARGS]){logits, gates, slots, taken});
	for (int64_t i = 0; i < r->R * r->k; i++)
		sum += slots[i] < 0 ? 0 : gates[i] * by_slot[slots[i]];
	free(gates);
	free(slots);
	free(taken);
	return sum;
}

static void test_route_grad(void)
{
	const double step = 1e-5;
	for (size_t i = 0; i < 5; i++) {
		struct routed r = routed_of(shapes[i]);
		double *dgates = numbers(r.S), *slope = numbers(r.R * r.E), worst = 0;
		run(moe_op(OP_ROUTE_GRAD, 0, r.R, r.E, r.k, r.C), 0,
			(void *const[OP_MAX_ARGS]){r.logits, r.gates, r.slots, dgates, slope});
		for (int64_t j = 0; j < r.R * r.E; j++) {
			double at = r.logits[j], side[2];
			for (int s = 0; s < 2; s++) {
				r.logits[j] = at + (s ? step : -step);
				side[s] = weighed(&r, r.logits, dgates);
			}
			r.logits[j] = at;
			worst = fmax(worst, fabs((side[1] - side[0]) / (2 * step) - slope[j]));
		}
		CU_ASSERT(worst <= CLOSE);
		free(dgates);
		free(slope);
		drop(&r);
	}
}

/* ---- rows to slots and back ---- */

/* y . A x = x . A' y for what is linear: DISPATCH and COMBINE without gates, COMBINE in its slots and in its gates. */
static void test_transposes(void)
{
	const int64_t cols = 5;
	FOR_SHAPES(d)
	{
		struct routed r = routed_of(d);
		double *x = numbers(r.R * cols), *y = numbers(r.S * cols), *to = numbers(r.S * cols),
		       *from = numbers(r.R * cols), *dgates = numbers(r.S), by_gate = 0;
		run(moe_op(OP_DISPATCH, 0, r.R, cols, r.S, r.k), 0, (void *const[OP_MAX_ARGS]){x, r.taken, to});
		run(moe_op(OP_COMBINE, 0, r.R, cols, r.S, r.k), 0, (void *const[OP_MAX_ARGS]){y, r.slots, NULL, from});
		CU_ASSERT_DOUBLE_EQUAL(dot(to, y, r.S * cols), dot(x, from, r.R * cols), 1e-10);
		run(moe_op(OP_COMBINE, 0, r.R, cols, r.S, r.k), 0,
			(void *const[OP_MAX_ARGS]){y, r.slots, r.gates, from});
		run(moe_op(OP_COMBINE_GRAD, 0, r.R, cols, r.S, r.k), 0,
			(void *const[OP_MAX_ARGS]){y, x, r.taken, r.gates, to, dgates});
		CU_ASSERT_DOUBLE_EQUAL(dot(to, y, r.S * cols), dot(x, from, r.R * cols), 1e-10);
		for (int64_t s = 0; s < r.S; s++)
			by_gate += r.taken[s] < 0 ? 0 : dgates[s] * r.gates[r.taken[s]];
		CU_ASSERT_DOUBLE_EQUAL(by_gate, dot(x, from, r.R * cols), 1e-10);
		double *twice = numbers(r.R * cols);
		memcpy(twice, from, (size_t)(r.R * cols) * sizeof *twice);
		run(moe_op(OP_COMBINE, OP_ACCUMULATE, r.R, cols, r.S, r.k), 0,
			(void *const[OP_MAX_ARGS]){y, r.slots, r.gates, twice});
		for (int64_t i = 0; i < r.R * cols; i++)
			CU_ASSERT_DOUBLE_EQUAL(twice[i], 2 * from[i], 1e-12);
		free(twice), free(x), free(y), free(to), free(from), free(dgates);
		drop(&r);
	}
}

static void test_swap(void)
{
	double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, y[12], z[12];
	static const double want[] = {1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12};
	run(moe_op(OP_SWAP, 0, 2, 3, 2, 0), 0, (void *const[OP_MAX_ARGS]){x, y});
	CU_ASSERT_EQUAL(memcmp(y, want, sizeof want), 0);
	run(moe_op(OP_SWAP, 0, 3, 2, 2, 0), 0, (void *const[OP_MAX_ARGS]){y, z});
	CU_ASSERT_EQUAL(memcmp(z, x, sizeof x), 0);
}

/* ---- the host's kernels ---- */

/* Both on the same numbers: fp32 arguments as floats for the kernel. What is written begins as garbage. */
static void agree(struct op op, void *const values[OP_MAX_ARGS])
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op.kind);
	for (int threads = 1; threads <= 3; threads += 2) {
		void *ref[OP_MAX_ARGS] = {0}, *fast[OP_MAX_ARGS] = {0};
		size_t n[OP_MAX_ARGS];
		for (int a = 0; a < info->n_args; a++) {
			n[a] = op_arg_bytes(&op, a, 1) / 4;
			if (!values[a] && a == 2 && op.kind == OP_COMBINE)
				continue;
			bool whole = op_arg_dtype(&op, a) == DT_INT32;
			ref[a] = rig_alloc(n[a] * (whole ? 4 : 8));
			fast[a] = rig_alloc(n[a] * 4);
			for (size_t i = 0; i < n[a]; i++)
				if (whole)
					((int32_t *)ref[a])[i] = ((
						int32_t *)fast[a])[i] = values[a] ? ((const int32_t *)values[a])[i]
					                                          : 77;
				else
					((double *)ref[a])[i] =
						(double)(((float *)fast[a])[i] =
								 values[a] ? (float)((const double *)values[a])[i]
									   : NAN);
		}
		run(op, 0, ref);
		run(op, threads, fast);
		for (int a = 0; a < info->n_args; a++) {
			size_t wrong = 0;
			for (size_t i = 0; i < n[a] && ref[a]; i++)
				wrong += op_arg_dtype(&op, a) == DT_INT32
				                 ? ((int32_t *)ref[a])[i] != ((int32_t *)fast[a])[i]
				                 : !(fabs(((double *)ref[a])[i] - (double)((float *)fast[a])[i]) <=
							   5e-6);
			CU_ASSERT_EQUAL(wrong, 0);
			free(ref[a]);
			free(fast[a]);
		}
	}
}

static void test_kernels(void)
{
	const int64_t cols = 33;
	FOR_SHAPES(d)
	{
		struct routed r = routed_of(d);
		double *x = numbers(r.R * cols), *y = numbers(r.S * cols), *dgates = numbers(r.S);
		agree(moe_op(OP_ROUTE, 0, r.R, r.E, r.k, r.C), (void *const[OP_MAX_ARGS]){r.logits});
		agree(moe_op(OP_ROUTE_GRAD, 0, r.R, r.E, r.k, r.C),
			(void *const[OP_MAX_ARGS]){r.logits, r.gates, r.slots, dgates});
		agree(moe_op(OP_DISPATCH, 0, r.R, cols, r.S, r.k), (void *const[OP_MAX_ARGS]){x, r.taken});
		agree(moe_op(OP_COMBINE, 0, r.R, cols, r.S, r.k), (void *const[OP_MAX_ARGS]){y, r.slots, r.gates});
		agree(moe_op(OP_COMBINE, OP_ACCUMULATE, r.R, cols, r.S, r.k),
			(void *const[OP_MAX_ARGS]){y, r.slots, NULL, x});
		agree(moe_op(OP_COMBINE_GRAD, 0, r.R, cols, r.S, r.k),
			(void *const[OP_MAX_ARGS]){y, x, r.taken, r.gates});
		agree(moe_op(OP_SWAP, 0, r.E, r.C, cols, 0), (void *const[OP_MAX_ARGS]){y});
		free(x), free(y), free(dgates);
		drop(&r);
	}
	for (unsigned flags = 0; flags < 8; flags++) { /* OP_ACCUMULATE, OP_TRANS_A, OP_TRANS_B */
		double *a = numbers(3 * 31 * 33), *b = numbers(3 * 33 * 17), *c = numbers(3 * 31 * 17);
		agree(moe_op(OP_GROUPED_GEMM, flags, 31, 17, 33, 3), (void *const[OP_MAX_ARGS]){a, b, c});
		free(a), free(b), free(c);
	}
}

UNIT_MAIN("experts", {"routing by hand", test_by_hand}, {"places", test_places}, {"slopes of gates", test_route_grad},
	{"transposes", test_transposes}, {"swap", test_swap}, {"kernels", test_kernels})
