/* Fills, casts (fp8 code by code), random contents and patterns. */
#include "base/array.h"
#include "exec/verify.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t sizes[] = {0, 1, 7, 31, 33, 1023, 1025};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};

static void memory_case(enum op_kind kind, int64_t n, enum dtype from, enum dtype to, size_t shift)
{
	struct cuda_rig r;
	cuda_rig_open(&r, cuda_rig_op(kind, 0, 0, from, to, n, 0, 0, 0, 0), (struct cuda_rig_options){.shift = shift});
	r.terms = 0.0;
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void test_fill(void)
{
	for (size_t n = 0; n < COUNT(sizes); n++)
		for (size_t f = 0; f < COUNT(formats); f++)
			for (size_t shift = 0; shift < 9; shift++)
				memory_case(OP_FILL, sizes[n], formats[f], formats[f], shift);
}

static void test_cast(void)
{
	for (size_t n = 0; n < COUNT(sizes); n++)
		for (size_t f = 0; f < COUNT(formats); f++)
			for (size_t g = 0; g < COUNT(formats); g++)
				for (size_t shift = 0; shift < 5; shift++)
					memory_case(OP_CAST, sizes[n], formats[f], formats[g], shift);
}

#define CODES 256

static size_t bytes_of(enum dtype d, int64_t n) { return (size_t)(dtype_bytes(d) * (double)n); }

/* Both begin `shift` elements behind an aligned address. */
static enum status cast(const void *x, enum dtype from, void *y, enum dtype to, int64_t n, size_t shift)
{
	const struct cuda_env env = {.sms = 3};
	const struct op op = cuda_rig_op(OP_CAST, 0, 0, from, to, n, 0, 0, 0, 0);
	struct rig_block in = rig_block_new(bytes_of(from, n), shift * bytes_of(from, 1)),
			 out = rig_block_new(bytes_of(to, n), shift * bytes_of(to, 1));
	struct error e = {0};
	memcpy(rig_host(&in), x, in.bytes);
	rig_block_upload(&in);
	rig_block_upload(&out);
	const struct cuda_arg arg[OP_MAX_ARGS] = {{rig_device(&in), from}, {rig_device(&out), to}};
	enum status st = cuda_kernel_run(&env, &op, arg, &e);
	CU_ASSERT_TRUE(rig_block_download(&in) && rig_block_download(&out));
	memcpy(y, rig_host(&out), out.bytes);
	rig_block_free(&in);
	rig_block_free(&out);
	return st;
}

/* E4M3 of Micikevicius et al. 2022, "FP8 formats for deep learning": bias 7, no infinities, all ones is NaN. */
static float e4m3(unsigned code)
{
	const int exponent = code >> 3 & 15, digits = code & 7;
	const double x = exponent ? ldexp(8 + digits, exponent - 10) : ldexp(digits, -9);
	return (code & 127) == 127 ? NAN : (float)(code & 128 ? -x : x);
}

static void test_fp8(void)
{
	uint8_t codes[CODES], back[CODES];
	float wide[CODES];
	for (unsigned i = 0; i < CODES; i++)
		codes[i] = (uint8_t)i;
	CU_ASSERT_EQUAL(cast(codes, DT_FP8, wide, DT_FP32, CODES, 0), ST_OK);
	for (unsigned i = 0; i < CODES; i++)
		CU_ASSERT_TRUE(isnan(e4m3(i)) ? isnan(wide[i]) : wide[i] == e4m3(i));
	CU_ASSERT_EQUAL(cast(wide, DT_FP32, back, DT_FP8, CODES, 0), ST_OK);
	for (unsigned i = 0; i < CODES; i++)
		CU_ASSERT_TRUE(isnan(e4m3(i)) ? (back[i] & 127) == 127 : back[i] == codes[i]);
	/* half way between two codes: to the even one; beyond the largest, 448: the largest */
	float some[] = {(e4m3(0x38) + e4m3(0x39)) / 2, (e4m3(0x39) + e4m3(0x3a)) / 2, 1000.0f, -1e30f, e4m3(1) / 2,
		e4m3(1) * 0.75f, 0.0f};
	static const uint8_t want[] = {0x38, 0x3a, 0x7e, 0xfe, 0x00, 0x01, 0x00};
	CU_ASSERT_EQUAL(cast(some, DT_FP32, back, DT_FP8, COUNT(want), 0), ST_OK);
	CU_ASSERT_EQUAL(memcmp(back, want, sizeof want), 0);
	/* 16-bit formats hold every code exactly */
	uint16_t narrow[CODES];
	for (int bf16 = 0; bf16 < 2; bf16++)
		for (size_t shift = 0; shift < 2; shift++) {
			memset(back, 0, sizeof back);
			CU_ASSERT_EQUAL(cast(codes, DT_FP8, narrow, bf16 ? DT_BF16 : DT_FP16, 127, shift), ST_OK);
			CU_ASSERT_EQUAL(cast(narrow, bf16 ? DT_BF16 : DT_FP16, back, DT_FP8, 127, shift), ST_OK);
			CU_ASSERT_EQUAL(memcmp(codes, back, 127), 0);
		}
	memset(back, 0, sizeof back);
	CU_ASSERT_EQUAL(cast(codes, DT_FP8, back, DT_FP8, 127, 1), ST_OK);
	CU_ASSERT_EQUAL(memcmp(codes, back, 127), 0);
	CU_ASSERT_EQUAL(cast(wide, DT_FP32, back, DT_NVFP4, 2, 0), ST_RUN);
}

/* ---- kernels_check.cu ---- */

#define MANY 20001

static double moment(enum dtype d, const void *at, int64_t n, int power)
{
	double sum = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += pow(rig_load(d, at, (size_t)i), power) / (double)n;
	return sum;
}

static struct rig_block normal(enum dtype d, int64_t n, uint64_t seed)
{
	struct error e = {0};
	struct rig_block b = rig_block_new(bytes_of(d, n), 0);
	rig_block_upload(&b);
	CU_ASSERT_EQUAL(cuda_fill_normal(NULL, rig_device(&b), d, n, seed, 0.5, &e), ST_OK);
	CU_ASSERT_TRUE(rig_block_download(&b));
	return b;
}

static size_t equal_values(enum dtype d, const struct rig_block *a, const struct rig_block *b)
{
	size_t same = 0;
	for (size_t i = 0; i < MANY; i++)
		same += rig_load(d, rig_host(a), i) == rig_load(d, rig_host(b), i);
	return same;
}

static void test_normal(void)
{
	struct error e = {0};
	for (size_t f = 0; f < COUNT(formats); f++) {
		struct rig_block a = normal(formats[f], MANY, 5), b = normal(formats[f], MANY, 5),
				 c = normal(formats[f], MANY, 6);
		CU_ASSERT_EQUAL(equal_values(formats[f], &a, &b), MANY);
		CU_ASSERT_TRUE(equal_values(formats[f], &a, &c) < MANY / 50);
		/* within five standard errors, and what rounding does to squares */
		CU_ASSERT_TRUE(fabs(moment(formats[f], rig_host(&a), MANY, 1)) < 5 * 0.5 / sqrt(MANY));
		CU_ASSERT_TRUE(
			fabs(moment(formats[f], rig_host(&a), MANY, 2) / 0.25 - 1.0) < 5 * sqrt(2.0 / MANY) + 0.002);
		CU_ASSERT_TRUE(fabs(moment(formats[f], rig_host(&a), MANY, 4) / 0.0625 / 3.0 - 1.0) <
			       5 * sqrt(96.0 / 9.0 / MANY) + 0.004);
		rig_block_free(&a);
		rig_block_free(&b);
		rig_block_free(&c);
	}
	CU_ASSERT_EQUAL(cuda_fill_normal(NULL, NULL, DT_FP32, 0, 1, 1.0, &e), ST_OK);
	CU_ASSERT_EQUAL(cuda_fill_normal(NULL, NULL, DT_NVFP4, 8, 1, 1.0, &e), ST_RUN);
}

#define N 301
#define MEMBERS 3

/* Returns the value that the host's verification expects at an element of the group's result. */
static int32_t group_value(const struct pattern *p, uint64_t element)
{
	int32_t sum = 0, max = 0;
	for (int64_t m = 0; m < p->members; m++) {
		int32_t v = verify_value(p->op, p->first + m * p->stride, element);
		sum += v;
		max = v > max ? v : max;
	}
	return p->max ? max : sum;
}

/* The least of `before` and the first wrong place. */
static int64_t first_wrong(struct rig_block *b, enum dtype d, const struct pattern *p, int64_t before)
{
	struct error e = {0};
	struct rig_block wrong = rig_block_new(sizeof before, 0);
	memcpy(rig_host(&wrong), &before, sizeof before);
	rig_block_upload(&wrong);
	rig_block_upload(b);
	CU_ASSERT_EQUAL(cuda_check_pattern(NULL, rig_device(b), d, N, p, rig_device(&wrong), &e), ST_OK);
	CU_ASSERT_TRUE(rig_block_download(&wrong) && rig_block_download(b));
	memcpy(&before, rig_host(&wrong), sizeof before);
	rig_block_free(&wrong);
	return before;
}

static void pattern_case(struct pattern p, enum dtype d)
{
	struct error e = {0};
	struct rig_block b = rig_block_new(bytes_of(d, N), 0);
	rig_block_upload(&b);
	CU_ASSERT_EQUAL(cuda_fill_pattern(NULL, rig_device(&b), d, N, &p, &e), ST_OK);
	CU_ASSERT_TRUE(rig_block_download(&b));
	for (size_t i = 0; i < N; i++)
		CU_ASSERT_EQUAL(rig_load(d, rig_host(&b), i), (double)group_value(&p, p.element + i));
	CU_ASSERT_EQUAL(first_wrong(&b, d, &p, INT64_MAX), INT64_MAX);
	static const size_t spoilt[] = {250, 299, 123};
	for (size_t i = 0; i < COUNT(spoilt); i++)
		rig_store(d, rig_host(&b), spoilt[i], rig_load(d, rig_host(&b), spoilt[i]) + 1.0);
	if (d != DT_INT32)
		rig_store(d, rig_host(&b), 250, (double)NAN);
	CU_ASSERT_EQUAL(first_wrong(&b, d, &p, INT64_MAX), 123);
	CU_ASSERT_EQUAL(first_wrong(&b, d, &p, 4), 4);
	rig_block_free(&b);
}

static void test_pattern(void)
{
	static const enum dtype all[] = {DT_FP32, DT_BF16, DT_FP16, DT_INT32};
	for (size_t f = 0; f < COUNT(all); f++) {
		pattern_case((struct pattern){.op = 9, .first = 4, .stride = 2, .members = 1, .bits = 6}, all[f]);
		pattern_case((struct pattern){.op = 9,
				     .first = 1,
				     .stride = 2,
				     .members = MEMBERS,
				     .bits = 6,
				     .element = 0x1000000fful},
			all[f]);
		pattern_case(
			(struct pattern){.op = 2, .first = 1, .stride = 5, .members = MEMBERS, .bits = 6, .max = true},
			all[f]);
	}
}

CUDA_MAIN("cuda memory", {"fill", test_fill}, {"cast", test_cast}, {"fp8", test_fp8}, {"normal numbers", test_normal},
	{"patterns", test_pattern})
