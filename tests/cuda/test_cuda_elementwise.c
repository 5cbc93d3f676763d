/* Residual adds, biases, their gradients, and rotary positions. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t sizes[] = {0, 1, 31, 33, 256, 1023, 1024, 1025};
static const int64_t row_counts[] = {0, 1, 3, 11};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};

/* The op as given and with every array shifted by an element. */
static void check(struct op op, struct cuda_rig_options o)
{
	for (size_t shift = 0; shift < 2; shift++) {
		struct cuda_rig r;
		o.shift = shift;
		cuda_rig_open(&r, op, o);
		cuda_rig_check(&r);
		cuda_rig_close(&r);
	}
}

#define FOR_SIZES(...) \
	for (size_t f_ = 0; f_ < COUNT(formats); f_++) \
		for (size_t c_ = 0; c_ < COUNT(sizes); c_++) \
			for (size_t r_ = 0; r_ < COUNT(row_counts); r_++) { \
				const enum dtype format = formats[f_]; \
				const int64_t cols = sizes[c_]; \
				const int64_t rows = row_counts[r_]; \
				__VA_ARGS__ \
			}

static void test_add(void)
{
	FOR_SIZES(struct op op = cuda_rig_op(OP_ADD, 0, 0, format, format, rows, cols, 0, 0, 0);
		  const enum dtype wide[OP_MAX_ARGS] = {DT_COUNT, DT_COUNT, DT_FP32, DT_COUNT};
		  check(op, (struct cuda_rig_options){.absent = 1u << 2});
		  check(op, (struct cuda_rig_options){.in_place = {"x", "sum"}});
		  check(op, (struct cuda_rig_options){.formats = wide});)
}

static void test_bias(void)
{
	FOR_SIZES(struct op op = cuda_rig_op(OP_BIAS, 0, 0, format, format, rows, cols, 0, 0, 0);
		  const enum dtype wide[OP_MAX_ARGS] = {DT_COUNT, DT_FP32}; check(op, (struct cuda_rig_options){0});
		  check(op, (struct cuda_rig_options){.formats = wide});)
}

static void test_bias_grad(void)
{
	FOR_SIZES(for (size_t g = 0; g < COUNT(formats); g++) check(cuda_rig_op(OP_BIAS_GRAD, g % 2 ? 0 : OP_ACCUMULATE,
									    0, format, formats[g], rows, cols, 0, 0, 0),
		(struct cuda_rig_options){0});)
	/* several chunks of rows, and of columns */
	check(cuda_rig_op(OP_BIAS_GRAD, 0, 0, DT_BF16, DT_FP32, 700, 72, 0, 0, 0), (struct cuda_rig_options){0});
	check(cuda_rig_op(OP_BIAS_GRAD, OP_ACCUMULATE, 0, DT_FP32, DT_BF16, 333, 1032, 0, 0, 0),
		(struct cuda_rig_options){0});
}

/* One row alone, as gradient shards have it, that ends within a vector. */
static void test_add_flat(void)
{
	for (size_t f = 0; f < COUNT(formats); f++)
		for (int64_t n = 4090; n < 4107; n++)
			check(cuda_rig_op(OP_ADD, 0, 0, formats[f], formats[f], 1, n, 0, 0, 0),
				(struct cuda_rig_options){.absent = 1u << 2, .in_place = {"x", "sum"}});
}

static void test_rope(void)
{
	static const int64_t heads[][2] = {{1, 1}, {3, 1}, {4, 2}}, dims[] = {2, 6, 32, 64, 96, 128, 512};
	for (size_t f = 0; f < COUNT(formats); f++)
		for (size_t h = 0; h < COUNT(heads); h++)
			for (size_t d = 0; d < COUNT(dims); d++) {
				check(cuda_rig_op(OP_ROPE, 0, 0, formats[f], formats[f], 2, heads[h][0], heads[h][1],
					      37, dims[d]),
					(struct cuda_rig_options){0});
				check(cuda_rig_op(OP_ROPE, OP_INVERSE, 0, formats[f], formats[f], 1, heads[h][0],
					      heads[h][1], 5, dims[d]),
					(struct cuda_rig_options){0});
			}
	check(cuda_rig_op(OP_ROPE, 0, 0, DT_FP32, DT_FP32, 0, 2, 2, 8, 64), (struct cuda_rig_options){0});
	/* far positions keep the digits of their angles */
	check(cuda_rig_op(OP_ROPE, 0, 0, DT_FP32, DT_FP32, 1, 1, 1, 70000, 2), (struct cuda_rig_options){0});
}

static void test_refused(void)
{
	const enum dtype odd[OP_MAX_ARGS] = {DT_BF16, DT_FP16, DT_BF16, DT_BF16},
			 none[OP_MAX_ARGS] = {DT_INT32, DT_INT32, DT_INT32, DT_INT32};
	const struct {
		struct op op;
		const enum dtype *formats;
		const char *text;
	} cases[] = {
		{cuda_rig_op(OP_ADD, 0, 0, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), odd,
			"add: no kernel for y as fp16 beside x as bf16"},
		{cuda_rig_op(OP_ADD, 0, 0, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), none, "no kernel for format int32"},
		{cuda_rig_op(OP_BIAS, 0, 0, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), odd,
			"no kernel for format fp16 beside bf16"},
		{cuda_rig_op(OP_ROPE, 0, 0, DT_BF16, DT_BF16, 1, 1, 1, 4, 514), NULL,
			"rope: heads of 514 values, at most 512"},
		{cuda_rig_op(OP_ROPE, 0, 0, DT_BF16, DT_BF16, 1, 1, 1, 4, 7), NULL,
			"rope: heads of 7 values, an odd number"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cuda_rig r;
		struct error e = {0};
		cuda_rig_open(&r, cases[i].op, (struct cuda_rig_options){.formats = cases[i].formats});
		CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_RUN);
		CU_ASSERT_STRING_EQUAL(e.text, cases[i].text);
		cuda_rig_close(&r);
	}
}

CUDA_MAIN("cuda_elementwise", {"add", test_add}, {"add without rows", test_add_flat}, {"bias", test_bias},
	{"bias_grad", test_bias_grad}, {"rope", test_rope}, {"refused", test_refused})
