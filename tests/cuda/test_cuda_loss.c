/* Cross-entropy against the reference: each probability relative to itself, not to the row's largest. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t columns[] = {1, 31, 33, 64, 1023, 1025, 4096};
static const int64_t rows[] = {0, 1, 7};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};
#define FOR_ALL \
	for (size_t c = 0; c < COUNT(columns); c++) \
		for (size_t t = 0; t < COUNT(rows); t++) \
			for (size_t f = 0; f < COUNT(formats); f++)

/* Logits as a model has them: some stand out. */
static void spread(struct cuda_rig *r, double by)
{
	double *x = r->ref[0];
	for (size_t i = 0; i < r->n[0]; i++)
		x[i] *= i % 13 ? by : 2.0 * by;
	cuda_rig_sync(r, 0);
}

/* An fp16 number below 2^-14 has fewer digits. */
static void compare_gradient(const struct cuda_rig *r)
{
	const double *want = r->ref[0], smallest = r->format[0] == DT_FP16 ? 0x1p-24 : 1e-36;
	size_t wrong = 0;
	for (size_t i = 0; i < r->n[0]; i++) {
		double got = rig_load(r->format[0], rig_host(&r->block[0]), i);
		/* a target's own column is a difference that cancels */
		double scale = want[i] < 0.0 ? r->env.loss_scale : fabs(want[i]);
		wrong += !(fabs(got - want[i]) <= r->limit[0] * scale + smallest);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

/* Some rows without a target, when there are several. */
static void targets(struct cuda_rig *r, int64_t ids)
{
	cuda_rig_ids(r, 1, 0, ids);
	for (size_t i = 3; i < r->n[1]; i += 4)
		((int32_t *)r->ref[1])[i] = -100;
	cuda_rig_sync(r, 1);
}

static void loss_case(int64_t T, int64_t V, enum dtype format, size_t shift, double by)
{
	struct cuda_rig r;
	cuda_rig_open(&r, cuda_rig_op(OP_LOSS, 0, 0, format, format, T, V, 0, 0, 0),
		(struct cuda_rig_options){.shift = shift});
	spread(&r, by);
	targets(&r, V);
	cuda_rig_check(&r);
	compare_gradient(&r);
	CU_ASSERT_EQUAL(cuda_rig_flag(&r), 0);
	cuda_rig_close(&r);
}

static void test_loss(void)
{
	FOR_ALL
	{
		loss_case(rows[t], columns[c], formats[f], 0, 4.0);
		loss_case(rows[t], columns[c], formats[f], 1, 4.0);
	}
	/* beyond what a block keeps in registers; logits that differ by hundreds */
	for (size_t f = 0; f < COUNT(formats); f++) {
		loss_case(2, 50257, formats[f], 0, 4.0);
		loss_case(2, 150001, formats[f], 3, 4.0);
		loss_case(3, 1025, formats[f], 0, 300.0);
	}
}

static void test_bad_target(void)
{
	struct cuda_rig r;
	struct error e = {0};
	cuda_rig_open(&r, cuda_rig_op(OP_LOSS, 0, 0, DT_FP32, DT_FP32, 3, 33, 0, 0, 0), (struct cuda_rig_options){0});
	((int32_t *)r.ref[1])[1] = 33;
	cuda_rig_sync(&r, 1);
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_OK);
	CU_ASSERT_EQUAL(cuda_rig_flag(&r), 8);
	cuda_rig_close(&r);
}

/* The three parts as the tensor group's second rank runs them, maxima and sums taken as reduced over the group. */
static void parallel_case(enum op_kind kind, int64_t T, int64_t V, enum dtype format, size_t shift)
{
	struct cuda_rig r;
	cuda_rig_open(&r, cuda_rig_op(kind, 0, 0, format, format, T, V, 0, 0, 0),
		(struct cuda_rig_options){.shift = shift});
	spread(&r, 3.0);
	r.env.tensor_coord = 1;
	if (kind != OP_LOSS_MAX) {
		targets(&r, 3 * V);
		for (size_t i = 0; i < r.n[2]; i++)
			((double *)r.ref[2])[i] += 5.0;
		cuda_rig_sync(&r, 2);
	}
	if (kind == OP_LOSS_GRAD) {
		for (size_t i = 0; i < r.n[3]; i++)
			((double *)r.ref[3])[i] = i < (size_t)T ? 4.0 + ((double *)r.ref[3])[i] : -1.0;
		cuda_rig_sync(&r, 3);
	}
	cuda_rig_check(&r);
	if (kind == OP_LOSS_GRAD)
		compare_gradient(&r);
	CU_ASSERT_EQUAL(cuda_rig_flag(&r), 0);
	cuda_rig_close(&r);
}

static void test_parallel(void)
{
	static const enum op_kind kinds[] = {OP_LOSS_MAX, OP_LOSS_SUM, OP_LOSS_GRAD};
	for (size_t k = 0; k < COUNT(kinds); k++) {
		FOR_ALL
		{
			parallel_case(kinds[k], rows[t], columns[c], formats[f], 0);
			parallel_case(kinds[k], rows[t], columns[c], formats[f], 1);
		}
		parallel_case(kinds[k], 2, 70001, DT_BF16, 0);
	}
}

CUDA_MAIN("cuda loss", {"cross-entropy", test_loss}, {"target outside the vocabulary", test_bad_target},
	{"vocabulary-parallel", test_parallel})
