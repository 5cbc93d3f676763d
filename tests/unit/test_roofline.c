/* The arithmetic of a roofline against worked examples; the host's kernels against closed forms; table, CSV and picture
 * of a made-up GPU. Never a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/host/micro.h"
#include "exec/roofline.h"
#include "report/roofline.h"
#include "tests/unit/harness.h"

#define NEAR(a, b, relative) CU_ASSERT_TRUE(fabs((a) - (b)) <= (relative)*fabs(b))

static void test_arithmetic(void)
{
	/* H100 SXM in bf16: 989 TFLOP/s over 3.35 TB/s; H200; A100; fp32's vector units */
	NEAR(roof_ridge(989e12, 3.35e12), 295.0, 2e-3);
	NEAR(roof_ridge(989e12, 4.8e12), 206.0, 2e-3);
	NEAR(roof_ridge(312e12, 2.039e12), 153.0, 2e-3);
	NEAR(roof_ridge(67e12, 3.35e12), 20.0, 1e-9);
	CU_ASSERT_TRUE(isnan(roof_ridge(989e12, 0)) && isnan(roof_ridge(0, 1e12)));
	NEAR(roof_in_flight_B(3.35e12, 500e-9), 1.675e6, 1e-9);
	const int64_t k[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
	for (size_t i = 0; i < COUNT(k); i++)
		NEAR(roof_poly_ai(DT_FP32, k[i]), (double)k[i] / 4, 1e-12);
	NEAR(roof_gemm_ai(DT_BF16, 4096), 4096.0 / 3, 1e-12);
	NEAR(roof_attainable(67e12, 3.35e12, 0.25), 0.8375e12, 1e-12);
	NEAR(roof_attainable(67e12, 3.35e12, 250), 67e12, 1e-12);
	NEAR(roof_poly_value(2, 3), 14.0, 1e-12);
	NEAR(roof_poly_value(1, 7), 7.0, 1e-12);
	NEAR(roof_poly_value(0.5, 40), 1.0, 1e-9);
	double sum = 0, power = 1;
	for (int i = 0; i < 1000; i++)
		sum += power *= 1.01;
	NEAR(roof_poly_value(1.01, 1000), sum, 1e-9);
	CU_ASSERT_TRUE(sum < 3e38); /* fp32 holds it */
}

static const int64_t sizes[] = {0, 1, 31, 33, 191, 192, 1023, 1025, 4000};
static const int64_t degrees[] = {1, 2, 5, 17, 100, 1000};

static void test_host_polynomial(void)
{
	static float a[4002], b[4002];
	for (size_t s = 0; s < COUNT(sizes); s++)
		for (size_t d = 0; d < COUNT(degrees); d++) {
			const int64_t n = sizes[s];
			for (int64_t i = 0; i < n + 2; i++) {
				a[i] = i % 3 ? 1.01f : 0.75f;
				b[i] = -7;
			}
			micro_poly_part(a + 1, b + 1, n, degrees[d]); /* of no alignment */
			CU_ASSERT_EQUAL(b[0], -7);
			CU_ASSERT_EQUAL(b[n + 1], -7);
			for (int64_t i = 1; i <= n; i++)
				NEAR((double)b[i], roof_poly_value((double)a[i], degrees[d]), 1e-4);
		}
}

static void test_host_streams(void)
{
	static float x[4002], y[4002], z[4002];
	for (size_t s = 0; s < COUNT(sizes); s++) {
		const int64_t n = sizes[s];
		double sum = 0;
		for (int64_t i = 0; i < n; i++) {
			x[i + 1] = (float)(i % 7);
			y[i + 1] = (float)(i % 5);
			sum += (double)(i % 7);
		}
		z[n + 1] = -7;
		CU_ASSERT_EQUAL((double)micro_read_part(x + 1, n), sum); /* whole numbers: exact in any order */
		micro_triad_part(x + 1, y + 1, z + 1, n);
		for (int64_t i = 1; i <= n; i++)
			CU_ASSERT_EQUAL(z[i], x[i] + 0.5f * y[i]);
		micro_copy_part(x + 1, z + 1, n);
		CU_ASSERT_EQUAL(memcmp(x + 1, z + 1, (size_t)n * sizeof *z), 0);
		CU_ASSERT_EQUAL(z[n + 1], -7);
	}
}

/* All lines are one cycle: a chase goes through its whole footprint. */
static void test_chase(void)
{
	for (uint64_t lines = 1; lines <= 1 << 14; lines *= 2) {
		bool *seen = calloc(lines, sizeof *seen);
		uint64_t at = 0, n = 0;
		for (; !seen[at]; n++) {
			seen[at] = true;
			at = micro_next(at, lines);
		}
		CU_ASSERT_EQUAL(n, lines);
		CU_ASSERT_EQUAL(at, 0);
		free(seen);
	}
	CU_ASSERT_EQUAL(micro_power_of_two(1), 1);
	CU_ASSERT_EQUAL(micro_power_of_two(1023), 512);
	CU_ASSERT_EQUAL(micro_power_of_two(1024), 1024);
}

static void test_host_device(void)
{
	struct micro m;
	struct micro_facts f;
	struct error e = {0};
	double s = 0;
	CU_ASSERT_EQUAL_FATAL(micro_host_create(2, 1, 1 << 20, &m, &e), ST_OK);
	m.ops->facts(m.ctx, &f);
	CU_ASSERT_TRUE(f.levels >= 2 && strcmp(f.level[f.levels - 1].name, "memory") == 0);
	CU_ASSERT_TRUE(f.matrix[DT_FP32] && f.vector[DT_FP32] && !f.matrix[DT_BF16]);
	for (int i = 0; i < f.levels; i++) {
		CU_ASSERT_TRUE(f.level[i].footprint_B <= f.arena_B && f.level[i].chase_B <= f.arena_B &&
			       f.level[i].footprint_B > 0);
		for (int r = 0; r < ROOF_STREAMS; r++)
			CU_ASSERT_EQUAL(m.ops->stream(m.ctx, (enum roof_stream)r, f.level[i].footprint_B, 2, &s, &e),
				ST_OK);
		CU_ASSERT_EQUAL(m.ops->chase(m.ctx, f.level[i].chase_B, 100, &s, &e), ST_OK);
	}
	for (int64_t n = 1; n <= 5000; n = 3 * n + 1) {
		float b[2];
		CU_ASSERT_EQUAL(m.ops->poly(m.ctx, DT_FP32, n, 10, 2, &s, &e), ST_OK);
		CU_ASSERT_EQUAL(m.ops->read(m.ctx, micro_array_B(DT_FP32, n), 4, &b[0], &e), ST_OK);
		CU_ASSERT_EQUAL(m.ops->read(m.ctx, micro_array_B(DT_FP32, n) + 4 * (uint64_t)(n - 1), 4, &b[1], &e),
			ST_OK);
		NEAR((double)b[0], roof_poly_value((double)1.01f, 10), 1e-5);
		CU_ASSERT_EQUAL(b[0], b[1]);
	}
	CU_ASSERT_EQUAL(m.ops->gemm(m.ctx, DT_FP32, 33, 2, &s, &e), ST_OK);
	CU_ASSERT_EQUAL(e.status, ST_OK);
	CU_ASSERT_EQUAL(m.ops->gemm(m.ctx, DT_FP32, 4096, 1, &s, &e), ST_RUN); /* no room */
	e = (struct error){0};
	CU_ASSERT_EQUAL(m.ops->poly(m.ctx, DT_BF16, 10, 1, 1, &s, &e), ST_RUN);
	micro_destroy(&m);
	micro_destroy(&m);
}

/* ---- reports ---- */

static void add(struct roofline *r, enum roof_kind kind, enum dtype d, int64_t size, double flop_per_s, double rms)
{
	const double ai = kind == ROOF_POLY ? roof_poly_ai(d, size) : roof_gemm_ai(d, size);
	const struct roof_row row = {kind, d, size, kind == ROOF_POLY ? 1 << 26 : 0, ai, flop_per_s, flop_per_s / ai,
		flop_per_s, rms};
	CU_ASSERT_TRUE_FATAL(vec_push(&r->rows, row));
}

static struct roofline made_up(void)
{
	static const int64_t k[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
	static const double rate[DT_COUNT] =
		{[DT_FP32] = 52e12, [DT_TF32] = 380e12, [DT_FP16] = 690e12, [DT_BF16] = 720e12};
	struct roofline r = {.device = "NVIDIA H100 80GB HBM3",
		.host = "n<0>",
		.gpu = true,
		.ranks = 1,
		.units = 132,
		.clock_Hz = 1.98e9,
		.threads = 2048,
		.threads_most = 2048,
		.warm_ups = 3,
		.runs = 10,
		.level = {{"L2", 13 << 20, 4 << 20, {5.6e12, 4.4e12, 4.5e12}, 2.7e-7},
			{"memory", 1 << 30, 1 << 28, {3.05e12, 2.9e12, 2.95e12}, 6e-7}},
		.levels = 2};
	snprintf(r.sheet.name, sizeof r.sheet.name, "NVIDIA H100 SXM5 80GB");
	r.sheet.mem_Bps = 3.35e12;
	r.sheet.vector_flop_per_s = r.sheet.matrix_flop_per_s[DT_FP32] = 66.9e12;
	r.sheet.matrix_flop_per_s[DT_TF32] = 494.7e12;
	r.sheet.matrix_flop_per_s[DT_BF16] = r.sheet.matrix_flop_per_s[DT_FP16] = 989.4e12;
	r.sheet.matrix_flop_per_s[DT_FP8] = 1978.9e12;
	for (size_t i = 0; i < COUNT(k); i++)
		add(&r, ROOF_POLY, DT_FP32, k[i], fmin(60e12, 2.9e12 * roof_poly_ai(DT_FP32, k[i])),
			i == 3 ? 0.08 : 0.01);
	add(&r, ROOF_POLY, DT_FP16, 1000, 118e12, 0.01);
	add(&r, ROOF_POLY, DT_BF16, 1000, 118e12, 0.01);
	for (int d = 0; d < DT_COUNT; d++)
		for (int64_t n = 256; n <= 16384 && rate[d] > 0; n *= 2)
			add(&r, ROOF_GEMM, (enum dtype)d, n, rate[d] * (double)n / ((double)n + 900), 0.01);
	return r;
}

static char *written(enum status (*write)(const struct roofline *, const char *, struct error *),
	const struct roofline *r)
{
	char path[] = "/tmp/stepsim-roofline-XXXXXX", *text = calloc(1, 1 << 20);
	struct error e = {0};
	int fd = mkstemp(path);
	CU_ASSERT_TRUE_FATAL(fd >= 0 && text);
	close(fd);
	CU_ASSERT_EQUAL(write(r, path, &e), ST_OK);
	const char *keep = getenv("KEEP_PICTURE"); /* for a look at it */
	if (keep && r->rows.n > 0 && write == report_roofline_svg)
		write(r, keep, &e);
	FILE *f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	unlink(path);
	return text;
}

static char *table_of(const struct roofline *r)
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_EQUAL(report_roofline_text(r, out, &e), ST_OK);
	fclose(out);
	return text;
}

static void test_report(void)
{
	struct roofline r = made_up();
	static const char *const said[] = {"132 SMs at up to 1.98 GHz", "3.05 TB/s", "91.0 %", "89.7 %",
		"2048 of 2048 threads an SM (100 %)", "8.0 % !", "warning: in 1 of 40 rows",
		"Little's law: 3.05 TB/s x 600 ns = 1.75 MiB"};
	char *text = table_of(&r);
	for (size_t i = 0; i < COUNT(said); i++) {
		CU_ASSERT_PTR_NOT_NULL(strstr(text, said[i]));
		if (!strstr(text, said[i]))
			printf("not said: %s\n%s", said[i], text);
	}
	free(text);
	/* of the datasheet where it says a rate, of the best row where it does not */
	NEAR(roofline_share_of_peak(&r, &r.rows.at[9]), 60 / 66.9, 1e-9);
	NEAR(roofline_share_of_peak(&r, &r.rows.at[10]), 1.0, 1e-9);
	NEAR(roofline_share_of_roof(&r, &r.rows.at[0]), 2.9 / 3.05, 1e-9);
	r.rows.at[0].elements =
		1 << 20; /* in caches: memory is no roof of it; what arithmetic bounds has the same roof anywhere */
	CU_ASSERT_TRUE(isnan(roofline_share_of_roof(&r, &r.rows.at[0])));
	r.rows.at[9].elements = 1 << 20;
	NEAR(roofline_share_of_roof(&r, &r.rows.at[9]), 1.0, 1e-9);
	char *csv = written(report_roofline_csv, &r);
	CU_ASSERT_EQUAL(strncmp(csv, "k,ai,gflops,bandwidth,percent_peak,kind,dtype,size,", 51), 0);
	size_t lines = 0;
	for (const char *c = csv; *c; c++)
		lines += *c == '\n';
	CU_ASSERT_EQUAL(lines, r.rows.n + 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(csv, "\n1,0.25,725,2900,"));
	free(csv);
	char *svg = written(report_roofline_svg, &r);
	CU_ASSERT_PTR_NOT_NULL(strstr(svg, "n&lt;0&gt;"));
	CU_ASSERT_PTR_NOT_NULL(strstr(svg, "prefers-color-scheme:dark"));
	CU_ASSERT_PTR_NULL(strstr(svg, "nan"));
	CU_ASSERT_PTR_NULL(strstr(svg, "inf"));
	free(svg);
	json_t *j = report_roofline_json(&r);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "rows")), r.rows.n);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "levels")), 2);
	json_decref(j);
	roofline_free(&r);
}

/* Doubles: one line, and no figure anywhere. Nothing known at all: no NaN in what is written. */
static void test_no_figures(void)
{
	struct roofline r =
		{.device = "double", .host = "h", .gpu = true, .doubles = true, .checked = 16, .ranks = 1, .units = 4};
	char *text = table_of(&r);
	CU_ASSERT_STRING_EQUAL(text,
		"Executed on doubles of the CUDA libraries: 16 kernels ran and their results are right; nothing was "
		"measured.\n");
	free(text);
	char *csv = written(report_roofline_csv, &r), *svg = written(report_roofline_svg, &r);
	CU_ASSERT_PTR_EQUAL(strchr(csv, '\n'), csv + strlen(csv) - 1);
	CU_ASSERT_PTR_NULL(strstr(svg, "nan"));
	CU_ASSERT_PTR_NULL(strstr(svg, "FLOP/s\""));
	json_t *j = report_roofline_json(&r);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "rows")), 0);
	json_decref(j);
	free(csv);
	free(svg);
}

static void test_dtype(void)
{
	struct error e = {0};
	enum dtype d;
	CU_ASSERT_EQUAL(roofline_dtype("bf16", &d, &e), ST_OK);
	CU_ASSERT_EQUAL(d, DT_BF16);
	CU_ASSERT_EQUAL(roofline_dtype("int32", &d, &e), ST_INPUT);
	e = (struct error){0};
	CU_ASSERT_EQUAL(roofline_dtype("bf17", &d, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "nearest: bf16"));
}

UNIT_MAIN("roofline", {"arithmetic", test_arithmetic}, {"polynomial on the host", test_host_polynomial},
	{"streams on the host", test_host_streams}, {"the chase is one cycle", test_chase},
	{"host device", test_host_device}, {"table, CSV, picture, JSON", test_report}, {"no figures", test_no_figures},
	{"formats", test_dtype})
