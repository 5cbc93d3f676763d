/* Layer and RMS norm, alone and behind a residual add, and their gradients. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t sizes[] = {1, 31, 33, 256, 1023, 1024, 1025};
static const int64_t row_counts[] = {0, 1, 3, 9};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};

/* Statistics as a forward pass leaves them. */
static void set_stats(struct cuda_rig *r)
{
	const int64_t rows = r->op.matrix.rows, cols = r->op.matrix.cols;
	const double *x = r->ref[1];
	double *stats = r->ref[3];
	for (int64_t i = 0; i < rows; i++, x += cols, stats += 2) {
		double mean = 0.0, square = 0.0;
		for (int64_t c = 0; c < cols && !(r->op.flags & OP_RMS); c++)
			mean += x[c] / (double)cols;
		for (int64_t c = 0; c < cols; c++)
			square += (x[c] - mean) * (x[c] - mean) / (double)cols;
		stats[0] = mean;
		stats[1] = 1.0 / sqrt(square + 1e-5);
	}
	cuda_rig_sync(r, 3);
}

static void check_as(struct op op, struct cuda_rig_options o)
{
	struct cuda_rig r;
	cuda_rig_open(&r, op, o);
	if (op.kind == OP_NORM_GRAD) {
		set_stats(&r);
		r.terms = op.matrix.cols == 1
		                  ? 1.0 / sqrt(1e-5)
		                  : 1.0; /* one column: 1/sigma is that large, and multiplies differences that vanish */
	}
	if (op.kind == OP_ADD_NORM)
		r.limit[cuda_rig_arg(&r, "stats")] = cuda_rig_limit(
			(enum dtype)op.dtype); /* they are those of the stored sum */
	for (int a = 0; a < r.n_args && op.matrix.cols > 20000; a++)
		r.limit[a] *= 3.0; /* where a block has one thread, it alone sums the row */
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void check(struct op op, struct cuda_rig_options o)
{
	check_as(op, o);
	o.shift = 1;
	check_as(op, o);
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

static void norm_cases(enum dtype format, int64_t rows, int64_t cols)
{
	static const enum dtype wide[OP_MAX_ARGS] = {DT_COUNT, DT_FP32, DT_FP32, DT_COUNT, DT_COUNT};
	check(cuda_rig_op(OP_NORM, 0, 0, format, format, rows, cols, 0, 0, 0), (struct cuda_rig_options){0});
	check(cuda_rig_op(OP_NORM, OP_RMS, 0, format, format, rows, cols, 0, 0, 0),
		(struct cuda_rig_options){.absent = 1u << 2});
	check(cuda_rig_op(OP_NORM, OP_RMS, 0, format, format, rows, cols, 0, 0, 0),
		(struct cuda_rig_options){.formats = wide, .in_place = {"x", "y"}});
}

static void test_norm(void) { FOR_SIZES(norm_cases(format, rows, cols);) }

static void add_norm_cases(enum dtype format, int64_t rows, int64_t cols)
{
	static const enum dtype wide[OP_MAX_ARGS] = {DT_COUNT, DT_COUNT, DT_FP32, DT_FP32, DT_FP32, DT_COUNT, DT_COUNT,
		DT_COUNT};
	check(cuda_rig_op(OP_ADD_NORM, 0, 0, format, format, rows, cols, 0, 0, 0), (struct cuda_rig_options){0});
	check(cuda_rig_op(OP_ADD_NORM, OP_RMS, 0, format, format, rows, cols, 0, 0, 0),
		(struct cuda_rig_options){.absent = 1u << 2 | 1u << 4});
	check(cuda_rig_op(OP_ADD_NORM, 0, 0, format, format, rows, cols, 0, 0, 0),
		(struct cuda_rig_options){.formats = wide, .in_place = {"x", "sum"}});
}

static void test_add_norm(void) { FOR_SIZES(add_norm_cases(format, rows, cols);) }

static void norm_grad_cases(enum dtype format, int64_t rows, int64_t cols)
{
	static const enum dtype wide[OP_MAX_ARGS] = {DT_COUNT, DT_COUNT, DT_FP32, DT_COUNT, DT_COUNT, DT_COUNT,
		DT_COUNT};
	check(cuda_rig_op(OP_NORM_GRAD, 0, 0, format, format, rows, cols, 0, 0, 0), (struct cuda_rig_options){0});
	check(cuda_rig_op(OP_NORM_GRAD, OP_RMS | OP_ACCUMULATE | OP_DX_ACCUMULATE, 0, format, DT_FP32, rows, cols, 0, 0,
		      0),
		(struct cuda_rig_options){.absent = 1u << 6});
	check(cuda_rig_op(OP_NORM_GRAD, OP_ACCUMULATE, 0, format, DT_BF16, rows, cols, 0, 0, 0),
		(struct cuda_rig_options){.formats = wide, .in_place = {"dy", "dx"}});
}

static void test_norm_grad(void) { FOR_SIZES(norm_grad_cases(format, rows, cols);) }

/* Rows of a block: what its threads keep, a little more, and much more; several rows a block and blocks that have none
 * left. */
static void test_long_rows(void)
{
	static const int64_t long_sizes[] = {2056, 8200, 12800, 34000};
	for (size_t f = 0; f < COUNT(formats); f++)
		for (size_t c = 0; c < COUNT(long_sizes); c++) {
			check_as(cuda_rig_op(OP_NORM, 0, 0, formats[f], formats[f], 2, long_sizes[c], 0, 0, 0),
				(struct cuda_rig_options){.shift = c % 2});
			check_as(cuda_rig_op(OP_ADD_NORM, OP_RMS, 0, formats[f], formats[f], 2, long_sizes[c], 0, 0, 0),
				(struct cuda_rig_options){0});
			check_as(cuda_rig_op(OP_NORM_GRAD, 0, 0, formats[f], DT_FP32, 4, long_sizes[c], 0, 0, 0),
				(struct cuda_rig_options){.shift = c % 2});
			check_as(cuda_rig_op(OP_NORM_GRAD, OP_DX_ACCUMULATE, 0, formats[f], formats[f], 4,
					 long_sizes[c], 0, 0, 0),
				(struct cuda_rig_options){0});
		}
	check(cuda_rig_op(OP_NORM_GRAD, OP_DX_ACCUMULATE, 0, DT_BF16, DT_FP32, 333, 64, 0, 0, 0),
		(struct cuda_rig_options){0});
	check(cuda_rig_op(OP_NORM_GRAD, 0, 0, DT_BF16, DT_BF16, 133, 1536, 0, 0, 0), (struct cuda_rig_options){0});
}

/* fp32 weights beside 16-bit values, as llama-1b has them: rows that threads keep, and rows of which each thread reads
 * a part again (from 8,192 columns on for the gradient, from 16,384 on for the norms). */
static void test_fp32_weights(void)
{
	static const enum dtype norm[OP_MAX_ARGS] = {DT_COUNT, DT_FP32, DT_FP32, DT_COUNT, DT_COUNT},
				add[OP_MAX_ARGS] = {DT_COUNT, DT_COUNT, DT_FP32, DT_FP32, DT_FP32, DT_COUNT, DT_COUNT,
					DT_COUNT},
				grad[OP_MAX_ARGS] = {DT_COUNT, DT_COUNT, DT_FP32, DT_COUNT, DT_COUNT, DT_COUNT,
					DT_COUNT};
	static const int64_t wide_sizes[] = {1032, 2048, 8200, 16392};
	for (size_t f = 1; f < COUNT(formats); f++)
		for (size_t c = 0; c < COUNT(wide_sizes); c++) {
			const enum dtype x = formats[f];
			const int64_t cols = wide_sizes[c];
			check_as(cuda_rig_op(OP_NORM, OP_RMS, 0, x, x, 5, cols, 0, 0, 0),
				(struct cuda_rig_options){.absent = 1u << 2, .formats = norm});
			check_as(cuda_rig_op(OP_NORM, 0, 0, x, x, 2, cols, 0, 0, 0),
				(struct cuda_rig_options){.formats = norm});
			check_as(cuda_rig_op(OP_ADD_NORM, 0, 0, x, x, 5, cols, 0, 0, 0),
				(struct cuda_rig_options){.formats = add});
			check_as(cuda_rig_op(OP_NORM_GRAD, OP_RMS | OP_DX_ACCUMULATE, 0, x, DT_FP32, 9, cols, 0, 0, 0),
				(struct cuda_rig_options){.absent = 1u << 6, .formats = grad});
			check_as(cuda_rig_op(OP_NORM_GRAD, OP_ACCUMULATE, 0, x, DT_FP32, 4, cols, 0, 0, 0),
				(struct cuda_rig_options){.formats = grad});
		}
}

/* Far from 0 the squares' sum less the mean's square would have no digits left. */
static void test_offset(void)
{
	struct cuda_rig r;
	cuda_rig_open(&r, cuda_rig_op(OP_NORM, 0, 0, DT_FP32, DT_FP32, 3, 1000, 0, 0, 0), (struct cuda_rig_options){0});
	for (size_t i = 0; i < r.n[0]; i++)
		((double *)r.ref[0])[i] += 100.0;
	cuda_rig_sync(&r, 0);
	r.limit[3] = 1e-3; /* the mean's roundings, against deviations of 0.6 */
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void test_refused(void)
{
	const enum dtype odd[OP_MAX_ARGS] = {DT_COUNT, DT_FP16, DT_COUNT, DT_COUNT, DT_COUNT, DT_COUNT, DT_COUNT},
			 stats[OP_MAX_ARGS] = {DT_COUNT, DT_COUNT, DT_COUNT, DT_COUNT, DT_BF16};
	const struct {
		struct op op;
		const enum dtype *formats;
		const char *text;
	} cases[] = {
		{cuda_rig_op(OP_NORM, 0, 0, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), stats,
			"norm: stats as bf16, must be fp32"},
		{cuda_rig_op(OP_NORM_GRAD, 0, 0, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), odd,
			"norm_grad: no kernel for x as fp16 beside dy as bf16"},
		{cuda_rig_op(OP_ADD_NORM, 0, 0, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), odd,
			"add_norm: no kernel for y as fp16 beside x as bf16"},
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

CUDA_MAIN("cuda_norm", {"norm", test_norm}, {"add_norm", test_add_norm}, {"norm_grad", test_norm_grad},
	{"long rows", test_long_rows}, {"fp32 weights", test_fp32_weights}, {"offset", test_offset},
	{"refused", test_refused})
