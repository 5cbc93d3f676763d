/* The first rows of each sequence, taken out and put before: kernels beside the reference, gradients as adjoints. */
#include "base/array.h"
#include "exec/host/kernels.h"

#include "tests/unit/kernel_check.h"

/* batch, seq, first, cols */
static const int64_t shapes[][4] = {{1, 1, 1, 1}, {3, 5, 1, 33}, {2, 7, 3, 65}, {4, 130, 20, 130}, {2, 4, 4, 5}};

static void test_kernels(void)
{
	static const enum op_kind kinds[] = {OP_PICK, OP_PICK_GRAD, OP_PREPEND, OP_PREPEND_GRAD};
	for (size_t s = 0; s < COUNT(shapes); s++)
		for (size_t k = 0; k < COUNT(kinds); k++)
			for (unsigned adds = 0; adds < 2; adds++) {
				const int64_t *d = shapes[s];
				struct op op = rig_op(kinds[k], adds ? OP_ACCUMULATE : 0, 0, d[0], d[1], d[2], d[3], 0);
				check_op(op, 0, ROUNDS);
				if (kinds[k] == OP_PREPEND_GRAD) /* a frozen row */
					check_op(op, 1u << ARG_PREPEND_GRAD_dw, ROUNDS);
			}
}

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Both are linear, so that <dy, f(x)> = <f'(dy), x> says that f' is the gradient of f. */
static void test_adjoint(void)
{
	for (size_t s = 0; s < COUNT(shapes); s++) {
		const int64_t *d = shapes[s];
		struct rig f, g;
		rig_open(&f, rig_op(OP_PICK, 0, 0, d[0], d[1], d[2], d[3], 0), 0);
		rig_open(&g, rig_op(OP_PICK_GRAD, 0, 0, d[0], d[1], d[2], d[3], 0), 0);
		rig_reference(&f);
		rig_reference(&g);
		CU_ASSERT_DOUBLE_EQUAL(dot(g.ref[0], f.ref[1], g.n[0]), dot(g.ref[1], f.ref[0], f.n[0]), 1e-12);
		rig_close(&f);
		rig_close(&g);
		rig_open(&f, rig_op(OP_PREPEND, 0, 0, d[0], d[1], d[2], d[3], 0), 0);
		rig_open(&g, rig_op(OP_PREPEND_GRAD, 0, 0, d[0], d[1], d[2], d[3], 0), 0);
		rig_reference(&f);
		rig_reference(&g);
		CU_ASSERT_DOUBLE_EQUAL(dot(g.ref[0], f.ref[2], g.n[0]),
			dot(g.ref[1], f.ref[0], f.n[0]) + dot(g.ref[2], f.ref[1], f.n[1]), 1e-12);
		rig_close(&f);
		rig_close(&g);
	}
}

/* Sequences of two rows of one column. */
static void test_by_hand(void)
{
	struct error e = {0};
	double x[] = {1, 2, 3, 4}, y[2], w[] = {7}, all[4];
	struct op op = rig_op(OP_PICK, 0, 0, 2, 2, 1, 1, 0);
	CU_ASSERT_EQUAL(reference_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){x, y}, &e), ST_OK);
	CU_ASSERT(y[0] == 1 && y[1] == 3);
	op.kind = OP_PREPEND;
	CU_ASSERT_EQUAL(reference_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){w, y, all}, &e), ST_OK);
	CU_ASSERT(all[0] == 7 && all[1] == 1 && all[2] == 7 && all[3] == 3);
	op.kind = OP_PREPEND_GRAD;
	CU_ASSERT_EQUAL(reference_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){x, w, y}, &e), ST_OK);
	CU_ASSERT(w[0] == 1 + 3 && y[0] == 2 && y[1] == 4);
}

UNIT_MAIN("sequence", {"kernels", test_kernels}, {"gradients", test_adjoint}, {"by hand", test_by_hand})
