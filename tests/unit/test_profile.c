/* Measured profiles: lookups, interpolation, the file, the name in the cache. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "topology/profile.h"

static struct profile_key some_key(void)
{
	return (struct profile_key){.stepsim = "0.1",
		.backend = "host",
		.cpu = "AMD \"EPYC\" \\ 7B13: #1",
		.mpi = "Open MPI 4.1.4",
		.blas = "OpenBLAS 0.3.21",
		.binding = "0; 1",
		.cores_per_rank = 2,
		.ranks_per_host = 4,
		.ranks = 8};
}

static struct profile *some_profile(void)
{
	struct profile *p = profile_create();
	struct error e = {0};
	p->key = some_key();
	strcpy(p->date, "2026-01-02T03:04:05Z");
	double x[] = {1.0 / 3.0 * 4096, 1e6 / 7.0, 3e9}, y[] = {1.1e-9, 0x1.fffffffffffffp-31, 5e-10},
	       coef[] = {0, 1.0 / 3e11, 5e-324, 2};
	CU_ASSERT_EQUAL(profile_set_value(p, "call_s", 1.0 / 3.0 * 1e-6, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_value(p, "overlap.compute_rate", 0.1 + 0.2, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_curve(p, "norm.layernorm", x, y, 3, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_curve(p, "all_reduce.2", x, y, 2, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_fit(p, "gemm.nn", coef, 4, 0.0123456789012345678, &e), ST_OK);
	const struct profile_products products = {.name = "gemm.nt.bf16",
		.n = 2,
		.flop = {1e9, 1.0 / 3e-12},
		.time_s = {1e-5, 7e-4},
		.clock_Hz = {1.98e9, 1.41e9},
		.power_W = {0, 698.7},
		.heat_s = {0, 0.15},
		.capped = {0, 1}};
	CU_ASSERT_EQUAL(profile_set_products(p, &products, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return p;
}

static void temporary(char path[64])
{
	strcpy(path, "/tmp/stepsim-profile-XXXXXX");
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
}

/* Curves of groups whose ranks are no neighbours have their stride in the name. */
static void test_group_names(void)
{
	char name[PROFILE_NAME];
	int64_t stride = 0;
	profile_collective_curve(name, "all_reduce", 8, 1);
	CU_ASSERT_STRING_EQUAL(name, "all_reduce.8");
	CU_ASSERT_EQUAL(profile_collective_ranks(name, "all_reduce", &stride), 8);
	CU_ASSERT_EQUAL(stride, 1);
	profile_collective_curve(name, "all_reduce", 2, 4);
	CU_ASSERT_STRING_EQUAL(name, "all_reduce.2.stride4");
	CU_ASSERT_EQUAL(profile_collective_ranks(name, "all_reduce", &stride), 2);
	CU_ASSERT_EQUAL(stride, 4);
	CU_ASSERT_EQUAL(profile_collective_ranks(name, "all_gather", &stride), 0);
	CU_ASSERT_EQUAL(profile_collective_ranks("all_reduce.2.stride", "all_reduce", &stride), 0);
	CU_ASSERT_EQUAL(profile_collective_ranks("all_reduce.2.other4", "all_reduce", &stride), 0);
}

static void test_round_trip(void)
{
	char path[64];
	struct error e = {0};
	struct profile *p = some_profile(), *q = NULL;
	temporary(path);
	CU_ASSERT_EQUAL(profile_save(p, path, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_load(path, &q, &e), ST_OK);
	CU_ASSERT_EQUAL(memcmp(p, q, sizeof *p), 0); /* every bit, the subnormal too */
	unlink(path);
	profile_destroy(p);
	profile_destroy(q);
}

static void test_replaced_not_added(void)
{
	struct profile *p = some_profile();
	struct error e = {0};
	double x[] = {1}, y[] = {2};
	CU_ASSERT_EQUAL(profile_set_value(p, "call_s", 5, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_set_curve(p, "norm.layernorm", x, y, 1, &e), ST_OK);
	CU_ASSERT_EQUAL(p->n_values, 2);
	CU_ASSERT_EQUAL(p->n_curves, 2);
	CU_ASSERT_EQUAL(profile_get_value(p, "call_s", -1), 5);
	CU_ASSERT_EQUAL(profile_get_curve(p, "norm.layernorm")->n, 1);
	CU_ASSERT_EQUAL(profile_get_value(p, "no", -1), -1);
	CU_ASSERT_PTR_NULL(profile_get_curve(p, "no"));
	CU_ASSERT_PTR_NULL(profile_get_fit(p, "no"));
	CU_ASSERT_EQUAL(profile_get_fit(p, "gemm.nn")->coef[3], 2);
	profile_destroy(p);
}

static void refuses_curve(const double *x, const double *y, size_t n)
{
	struct profile *p = profile_create();
	struct error e = {0};
	CU_ASSERT_EQUAL(profile_set_curve(p, "c", x, y, n, &e), ST_RUN);
	CU_ASSERT_EQUAL(p->n_curves, 0);
	CU_ASSERT_NOT_EQUAL(e.text[0], '\0');
	profile_destroy(p);
}

static void test_refusals(void)
{
	double up[] = {1, 2, 3}, flat[] = {1, 1, 2}, zero[] = {0, 1, 2}, nan_[] = {1, NAN, 2};
	refuses_curve(flat, up, 3);
	refuses_curve(zero, up, 3);
	refuses_curve(up, zero, 3);
	refuses_curve(up, nan_, 3);
	refuses_curve(up, up, 0);
	struct profile *p = profile_create();
	struct error e = {0};
	double negative[] = {1, -1};
	CU_ASSERT_EQUAL(profile_set_value(p, "v", INFINITY, NULL), ST_RUN);
	CU_ASSERT_EQUAL(profile_set_value(p, "two words", 1, NULL), ST_RUN);
	CU_ASSERT_EQUAL(profile_set_fit(p, "f", negative, 2, 0, NULL), ST_RUN);
	for (int i = 0; i < PROFILE_ENTRIES; i++) {
		char name[16];
		snprintf(name, sizeof name, "v%d", i);
		CU_ASSERT_EQUAL(profile_set_value(p, name, i, &e), ST_OK);
	}
	CU_ASSERT_EQUAL(profile_set_value(p, "one_more", 1, &e), ST_RUN);
	profile_destroy(p);
}

static void test_interpolation(void)
{
	struct profile_curve c = {.n = 3, .x = {100, 1000, 10000}, .y = {1, 10, 10}};
	CU_ASSERT_DOUBLE_EQUAL(profile_curve_at(&c, 1000, 1), 10, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(profile_curve_at(&c, sqrt(100 * 1000.0), 1), sqrt(10), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(profile_curve_at(&c, 3000, 0), 10, 1e-12);
	/* Below the first point the first value stays, whatever the kind of curve. */
	CU_ASSERT_EQUAL(profile_curve_at(&c, 1, 0), 1);
	CU_ASSERT_EQUAL(profile_curve_at(&c, 1, 1), 1);
	/* Above the last: a rate keeps its value, a time goes on as steeply as before. */
	struct profile_curve t = {.n = 2, .x = {1000, 10000}, .y = {1e-6, 1e-5}};
	CU_ASSERT_EQUAL(profile_curve_at(&t, 1e6, 1), 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(profile_curve_at(&t, 1e6, 0), 1e-3, 1e-12);
	struct profile_curve one = {.n = 1, .x = {1000}, .y = {3}};
	CU_ASSERT_EQUAL(profile_curve_at(&one, 1, 0), 3);
	CU_ASSERT_EQUAL(profile_curve_at(&one, 1e9, 0), 3);
}

static void test_cache_path(void)
{
	char folder[] = "/tmp/stepsim-cache-XXXXXX", a[PATH_MAX_LEN], b[PATH_MAX_LEN], own[PATH_MAX_LEN];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	setenv("XDG_CACHE_HOME", folder, 1);
	struct profile_key k = some_key(), other = some_key();
	struct error e = {0};
	CU_ASSERT_EQUAL(profile_cache_path(&k, a, sizeof a, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_cache_path(&other, b, sizeof b, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(a, b);
	CU_ASSERT_EQUAL(strncmp(a, folder, strlen(folder)), 0);
	CU_ASSERT_TRUE(profile_key_equal(&k, &other));
	/* Every field counts, and text that moves from one field to its neighbour too. */
	char *texts[] = {other.stepsim, other.backend, other.cpu, other.mpi, other.blas, other.binding};
	int64_t *ints[] = {&other.cores_per_rank, &other.ranks_per_host, &other.ranks};
	for (size_t i = 0; i < 6 + 3; i++) {
		other = some_key();
		if (i < 6)
			strcat(texts[i], "x");
		else
			++*ints[i - 6];
		CU_ASSERT_FALSE(profile_key_equal(&k, &other));
		CU_ASSERT_EQUAL(profile_cache_path(&other, b, sizeof b, &e), ST_OK);
		CU_ASSERT_STRING_NOT_EQUAL(a, b);
	}
	other = some_key();
	strcpy(other.stepsim, "0.1h");
	strcpy(other.backend, "ost");
	CU_ASSERT_EQUAL(profile_cache_path(&other, b, sizeof b, &e), ST_OK);
	CU_ASSERT_STRING_NOT_EQUAL(a, b);
	CU_ASSERT_EQUAL(profile_cache_path(&k, b, strlen(a), &e), ST_INPUT); /* one byte short */
	snprintf(own, sizeof own, "%s/stepsim", folder);
	rmdir(own);
	rmdir(folder);
}

static void test_bad_files(void)
{
	static const char key[] =
		"key: {stepsim: a, backend: a, cpu: a, mpi: a, blas: a, binding: a, cores_per_rank: 1, ranks_per_host: "
		"1, ranks: 1}\n";
	static const struct {
		const char *body, *complaint;
	} cases[] = {
		{"value: {a: 1}\n", ":2:1: unknown key 'value' (nearest: values)"},
		{"values: {a: 1zz}\n", ":2:13: a: "},
		{"values: {a: }\n", "a: "},
		{"curves: {c: {x: [1, 2], y: [1]}}\n", "x has 2 numbers, y has 1"},
		{"curves: {c: {x: [2, 1], y: [1, 1]}}\n", "ascending"},
		{"curves: {c: {x: [1], z: [1]}}\n", "unknown key 'z' (known: x, y)"},
		{"fits: {f: {coef: [1]}}\n", "expected the keys 'coef' and 'residual'"},
		{"fits: {f: {coef: [1, 2, 3, 4, 5, 6, 7, 8, 9], residual: 0}}\n", "1 to 8 numbers"},
		{"fits: {f: {coef: [-1], residual: 0}}\n", "negative"},
		{"date: [1]\n", "date: "},
		{"date: x\n", "not a whole profile: 'values' is missing"},
		{"entries: 2\nvalues: {a: 1}\n", "not a whole profile: it has 1 of its 2 entries"},
		{"entries: x\nvalues: {a: 1}\n", ":2:10: entries: "},
		{"products: {g: {flop: [1], clock: [1]}}\n", ":2:27: unknown key 'clock' (nearest: clock_Hz)"},
		{"products: {g: {flop: [1], time_s: [1, 2]}}\n", "time_s: 2 numbers, the columns before have 1"},
		{"products: {g: {flop: [1], time_s: [1]}}\n", "g: 4 of its 6 columns are missing"},
		{"products: {g: {flop: [1], time_s: [1], clock_Hz: [0], power_W: [0], heat_s: [0], capped: [0]}}\n",
			"0 in flop, time_s or clock_Hz"},
	};
	char path[64], text[1024];
	temporary(path);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct profile *p = NULL;
		struct error e = {0};
		snprintf(text, sizeof text, "%s%s", key, cases[i].body);
		CU_ASSERT_EQUAL(file_write(path, text, strlen(text), &e), ST_OK);
		CU_ASSERT_EQUAL(profile_load(path, &p, &e), ST_INPUT);
		CU_ASSERT_PTR_NULL(p);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, cases[i].complaint));
		if (!strstr(e.text, cases[i].complaint))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
	}
	struct profile *p = NULL;
	struct error e = {0}, none = {0};
	CU_ASSERT_EQUAL(file_write(path, "date: x\n", 8, &e), ST_OK);
	CU_ASSERT_EQUAL(profile_load(path, &p, &e), ST_INPUT); /* without its key a profile says nothing */
	snprintf(text, sizeof text, "key: {stepsim: a, ranks: 1}\n");
	CU_ASSERT_EQUAL(file_write(path, text, strlen(text), &none), ST_OK);
	CU_ASSERT_EQUAL(profile_load(path, &p, &none), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(none.text, "7 of its 9 fields are missing"));
	unlink(path);
	CU_ASSERT_EQUAL(profile_load(path, &p, NULL), ST_INPUT);
}

/* What becomes of a cached profile: of a quiet machine, of a busy one, of a partly busy one, and of an older version.
 */
static void test_disturbed(void)
{
	static struct profile quiet, busy, older;
	CU_ASSERT_EQUAL(profile_set_value(&busy, PROFILE_CPU_STEAL_SHARE, 0.4, NULL), ST_OK);
	CU_ASSERT_EQUAL(profile_set_value(&busy, PROFILE_DISTURBED_SHARE, 0.25, NULL), ST_OK);
	CU_ASSERT_EQUAL(profile_set_value(&older, PROFILE_CPU_STEAL_SHARE, 0.4, NULL), ST_OK);
	CU_ASSERT_EQUAL(profile_disturbed(&quiet), 0);
	CU_ASSERT_EQUAL(profile_disturbed(&busy), 0.25);
	CU_ASSERT_EQUAL(profile_disturbed(&older), 1);
	CU_ASSERT_DOUBLE_EQUAL(profile_too_long(&busy), 0.1, 1e-12);
	CU_ASSERT_EQUAL(profile_too_long(&quiet), 0);
	for (int q = 0; q < 2; q++) {
		CU_ASSERT_EQUAL(profile_decide(NULL, q), PROFILE_MEASURE);
		CU_ASSERT_EQUAL(profile_decide(&quiet, q), PROFILE_TAKE);
		CU_ASSERT_EQUAL(profile_decide(&busy, q), q ? PROFILE_MEASURE_AGAIN : PROFILE_TAKE_WIDENED);
		CU_ASSERT_EQUAL(profile_decide(&older, q), q ? PROFILE_MEASURE_AGAIN : PROFILE_TAKE_WIDENED);
	}
}

/* Profiles of earlier versions: hosts of cores without what collectives between them lose; a file without its count. */
static void test_lacks(void)
{
	static struct profile p, file;
	strcpy(p.key.backend, "host");
	p.key.ranks = p.key.ranks_per_host = 2;
	CU_ASSERT_PTR_NULL(profile_lacks(&p)); /* one host */
	p.key.ranks = 4;
	CU_ASSERT_PTR_NOT_NULL(profile_lacks(&p));
	CU_ASSERT_PTR_EQUAL(profile_cached_lacks(&p), profile_lacks(&p));
	CU_ASSERT_EQUAL(profile_decide(&p, true), PROFILE_MEASURE_AGAIN);
	CU_ASSERT_EQUAL(profile_decide(&p, false), PROFILE_TAKE_WIDENED);
	strcpy(p.key.backend, "cuda");
	CU_ASSERT_PTR_NULL(profile_lacks(&p));
	strcpy(p.key.backend, "host");
	CU_ASSERT_EQUAL(profile_set_value(&p, PROFILE_BETWEEN_TURN_S, 0, NULL), ST_OK);
	CU_ASSERT_PTR_NULL(profile_lacks(&p)); /* nothing is lost */
	CU_ASSERT_EQUAL(profile_decide(&p, true), PROFILE_TAKE);
	file.uncounted = true;
	CU_ASSERT_PTR_NULL(profile_lacks(&file)); /* written by hand */
	CU_ASSERT_PTR_NOT_NULL(profile_cached_lacks(&file));
	CU_ASSERT_EQUAL(profile_decide(&file, true), PROFILE_MEASURE_AGAIN);
}

/* `uncounted` is of what is read, not of what is made. */
static void test_counted(void)
{
	static const char key[] =
		"key: {stepsim: a, backend: host, cpu: a, mpi: a, blas: a, binding: a, cores_per_rank: 1,"
		" ranks_per_host: 1, ranks: 1}\ndate: x\nvalues: {call_s: 1}\n";
	struct error e = {0};
	char path[64], text[512];
	temporary(path);
	for (int counted = 0; counted < 2; counted++) {
		struct profile *p = NULL;
		snprintf(text, sizeof text, "%s%s", key, counted ? "entries: 1\n" : "");
		CU_ASSERT_EQUAL(file_write(path, text, strlen(text), &e), ST_OK);
		CU_ASSERT_EQUAL_FATAL(profile_load(path, &p, &e), ST_OK);
		CU_ASSERT_EQUAL(p->uncounted, !counted);
		profile_destroy(p);
	}
	unlink(path);
}

UNIT_MAIN("profile", {"round trip", test_round_trip}, {"names of groups", test_group_names},
	{"replaced, not added", test_replaced_not_added}, {"refusals", test_refusals},
	{"interpolation", test_interpolation}, {"cache path", test_cache_path}, {"bad files", test_bad_files},
	{"disturbed by others", test_disturbed}, {"of earlier versions", test_lacks}, {"counted", test_counted})
