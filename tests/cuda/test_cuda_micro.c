/* The roofline's kernels for GPUs, on their twins or on the device: the polynomial against its closed form, streams and
 * chase against plain loops. */
#include "base/array.h"
#include "exec/cuda/micro.h"
#include "exec/micro.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t sizes[] = {0, 1, 31, 33, 1023, 1025};
static const int64_t degrees[] = {1, 2, 15, 16, 17, 50, 1000};
static const struct cuda_env env = {.sms = 3};

static void poly_case(enum dtype d, int64_t n, int64_t k, size_t shift)
{
	const double a = micro_poly_a(d), tolerance = d == DT_FP32 ? 1e-4 : 1.6e-2;
	struct rig_block x = rig_block_new((size_t)n * rig_size(d), shift * rig_size(d)),
			 y = rig_block_new((size_t)n * rig_size(d), shift * rig_size(d));
	struct error e = {0};
	rig_block_upload(&x);
	rig_block_upload(&y);
	CU_ASSERT_EQUAL(micro_constant(&env, d, rig_device(&x), n, a, &e), ST_OK);
	CU_ASSERT_EQUAL(micro_poly(&env, d, rig_device(&x), rig_device(&y), n, k, &e), ST_OK);
	CU_ASSERT_TRUE(rig_block_download(&x) && rig_block_download(&y));
	for (int64_t i = 0; i < n; i++) {
		const double from = rig_load(d, rig_host(&x), (size_t)i), want = roof_poly_value(from, k),
			     got = rig_load(d, rig_host(&y), (size_t)i);
		CU_ASSERT_TRUE(fabs(from - a) < 1e-2);
		CU_ASSERT_TRUE(fabs(got - want) <= tolerance * want);
	}
	rig_block_free(&x);
	rig_block_free(&y);
}

static void test_polynomial(void)
{
	static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};
	for (int real = 0; real < 2; real++) {
		rig_real_threads(real);
		for (size_t f = 0; f < COUNT(formats); f++)
			for (size_t s = 0; s < COUNT(sizes); s++)
				for (size_t k = 0; k < COUNT(degrees); k++)
					for (size_t shift = 0; shift < 2; shift++)
						poly_case(formats[f], sizes[s], degrees[k], shift);
	}
	rig_real_threads(false);
}

/* More passes, and less than a tile: what is written must not depend on either. */
static void test_streams(void)
{
	static const int64_t floats[] = {0, 4, 32, 1020, 4096, 4100, 20000};
	for (int real = 0; real < 2; real++)
		for (size_t s = 0; s < COUNT(floats); s++)
			for (int64_t passes = 1; passes <= 3; passes++) {
				const size_t n = (size_t)floats[s];
				struct rig_block x = rig_block_new(4 * n, 0), y = rig_block_new(4 * n, 0),
						 z = rig_block_new(4 * n, 0), sink = rig_block_new(4, 0);
				float *px = rig_host(&x), *py = rig_host(&y), *pz = rig_host(&z);
				struct error e = {0};
				rig_real_threads(real);
				for (size_t i = 0; i < n; i++) {
					px[i] = (float)(i % 101);
					py[i] = (float)(i % 7);
				}
				rig_block_upload(&x);
				rig_block_upload(&y);
				rig_block_upload(&z);
				rig_block_upload(&sink);
				CU_ASSERT_EQUAL(micro_read(&env, rig_device(&x), floats[s], passes, rig_device(&sink),
							&e),
					ST_OK);
				CU_ASSERT_EQUAL(micro_triad(&env, rig_device(&x), rig_device(&y), rig_device(&z),
							floats[s], passes, &e),
					ST_OK);
				CU_ASSERT_EQUAL(micro_copy(&env, rig_device(&x), rig_device(&y), floats[s], passes, &e),
					ST_OK);
				CU_ASSERT_TRUE(rig_block_download(&x) && rig_block_download(&y) &&
					       rig_block_download(&z) && rig_block_download(&sink));
				for (size_t i = 0; i < n; i++) {
					CU_ASSERT_EQUAL(py[i], px[i]);
					CU_ASSERT_EQUAL(pz[i], px[i] + 0.5f * (float)(i % 7));
				}
				for (size_t i = 0; i < 4; i++) /* nobody has reason to write there */
					CU_ASSERT_EQUAL(((unsigned char *)rig_host(&sink))[i], RIG_GUARD_BYTE);
				rig_block_free(&x);
				rig_block_free(&y);
				rig_block_free(&z);
				rig_block_free(&sink);
			}
	rig_real_threads(false);
}

static void test_chase(void)
{
	for (uint64_t lines = 1; lines <= 256; lines *= 2) {
		struct rig_block at = rig_block_new(lines * MICRO_CUDA_LINE_B, 0), end = rig_block_new(8, 0);
		uint64_t want = 0, got = 0;
		struct error e = {0};
		memcpy(rig_host(&end), &got, sizeof got);
		rig_block_upload(&at);
		rig_block_upload(&end);
		CU_ASSERT_EQUAL(micro_lay(&env, rig_device(&at), lines, &e), ST_OK);
		/* the second goes on where the first one ended */
		CU_ASSERT_EQUAL(micro_chase(&env, rig_device(&at), 60, rig_device(&end), &e), ST_OK);
		CU_ASSERT_EQUAL(micro_chase(&env, rig_device(&at), 40, rig_device(&end), &e), ST_OK);
		CU_ASSERT_TRUE(rig_block_download(&at) && rig_block_download(&end));
		for (int i = 0; i < 100; i++)
			want = micro_next(want, lines);
		memcpy(&got, rig_host(&end), sizeof got);
		CU_ASSERT_EQUAL(got, want * MICRO_CUDA_LINE_B);
		rig_block_free(&at);
		rig_block_free(&end);
	}
}

UNIT_MAIN("CUDA: the roofline's kernels", {"polynomial", test_polynomial}, {"streams", test_streams},
	{"chase", test_chase})
