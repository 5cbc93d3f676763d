/* Errors, arena, vectors, suggestions, statistics, tables. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/stats.h"
#include "base/status.h"
#include "base/suggest.h"
#include "base/table.h"
#include "base/wrap.h"
#include "base/vec.h"
#include "tests/unit/harness.h"

static void test_first_error_wins(void)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(error_context(&e, "nothing to say"), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	CU_ASSERT_EQUAL(error_set(&e, ST_INPUT, "value %d", 7), ST_INPUT);
	CU_ASSERT_EQUAL(error_set(&e, ST_RUN, "later"), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "value 7");
	CU_ASSERT_EQUAL(error_context(&e, "key %s", "k"), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "key k: value 7");
	CU_ASSERT_EQUAL(error_nomem(&e, "x"), ST_INPUT);

	CU_ASSERT_EQUAL(error_set(NULL, ST_LIMIT, "x"), ST_LIMIT);
	CU_ASSERT_EQUAL(error_context(NULL, "x"), ST_OK);
	CU_ASSERT_EQUAL(error_nomem(NULL, "x"), ST_RUN);
	e = (struct error){0};
	CU_ASSERT_EQUAL(error_nomem(&e, "weights"), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "out of memory (weights)");
}

static void test_errors_are_one_short_line(void)
{
	struct error e = {0};
	error_set(&e, ST_INPUT, "got \"%s\"", "two\nlines\x1B[31m");
	CU_ASSERT_STRING_EQUAL(e.text, "got \"two lines [31m\"");

	/* 3 + 2 * k bytes: the cut falls inside one of the two-byte characters */
	char text[4001] = "abc";
	for (size_t i = 3; i + 2 < sizeof text; i += 2)
		memcpy(text + i, "\xC3\xBC", 3);
	for (int shift = 0; shift < 2; shift++) {
		e = (struct error){0};
		error_set(&e, ST_INPUT, "%s", text + shift);
		size_t len = strlen(e.text);
		CU_ASSERT(len < sizeof e.text && len > sizeof e.text - 8);
		CU_ASSERT_STRING_EQUAL(e.text + len - 3, "...");
		CU_ASSERT_EQUAL((unsigned char)e.text[len - 4], 0xBC);
		error_context(&e, "%s", "file.yaml");
		CU_ASSERT_EQUAL(strncmp(e.text, "file.yaml: ", 11), 0);
		CU_ASSERT(strlen(e.text) < sizeof e.text);
		CU_ASSERT_STRING_EQUAL(e.text + strlen(e.text) - 3, "...");
	}
}

static void test_arena(void)
{
	struct arena *a = arena_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(a);
	enum { N = 2000 };
	unsigned char *at[N];
	size_t size[N];
	for (size_t i = 0; i < N; i++) {
		size[i] = i % 500 == 499 ? 100000 : i % 37;
		at[i] = arena_alloc(a, size[i]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(at[i]);
		CU_ASSERT_EQUAL((uintptr_t)at[i] % 16, 0);
		for (size_t k = 0; k < size[i]; k++)
			if (at[i][k] != 0)
				CU_FAIL("an allocation is not zeroed");
		memset(at[i], (int)(i % 251) + 1, size[i]);
	}
	/* none overlaps another: all still hold what was written */
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < size[i]; k++)
			if (at[i][k] != i % 251 + 1)
				CU_FAIL_FATAL("allocations overlap");
	CU_ASSERT_PTR_NOT_EQUAL(arena_alloc(a, 0), arena_alloc(a, 0));
	CU_ASSERT_PTR_NULL(arena_alloc(a, SIZE_MAX));

	const char *word = "word";
	char *copy = arena_strdup(a, word);
	CU_ASSERT(copy && copy != word);
	CU_ASSERT_STRING_EQUAL(copy, "word");
	char text[50001] = {0};
	memset(text, 'x', sizeof text - 1);
	char *long_copy = arena_strdup(a, text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(long_copy);
	CU_ASSERT_STRING_EQUAL(long_copy, text);
	arena_destroy(a);
	arena_destroy(NULL);
}

static void test_vec(void)
{
	VEC(struct {
		int x;
		double y;
	})
	v = {0};
	for (int i = 0; i < 10000; i++) {
		CU_ASSERT_FATAL(vec_reserve(&v, 1));
		v.at[v.n].x = i;
		v.at[v.n++].y = 0.5 * i;
	}
	CU_ASSERT_EQUAL(v.n, 10000);
	CU_ASSERT(v.cap >= v.n);
	for (int i = 0; i < 10000; i++)
		if (v.at[i].x != i || v.at[i].y != 0.5 * i)
			CU_FAIL_FATAL("an element changed when the vector grew");
	vec_free(&v);
	CU_ASSERT(!v.at && v.n == 0 && v.cap == 0);

	VEC(int64_t) w = {0};
	CU_ASSERT_TRUE(vec_push(&w, 41));
	const int64_t *before = w.at;
	CU_ASSERT_FALSE(vec_reserve(&w, SIZE_MAX));
	CU_ASSERT_FALSE(vec_reserve(&w, SIZE_MAX / 2));
	CU_ASSERT_FALSE(vec_reserve(&w, SIZE_MAX / sizeof(int64_t)));
	CU_ASSERT(w.at == before && w.n == 1 && w.at[0] == 41);
	CU_ASSERT_TRUE(vec_reserve(&w, 999)); /* of a thousand no power of two */
	CU_ASSERT_EQUAL(w.cap, 1000);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_TRUE_FATAL(vec_push(&w, i));
	CU_ASSERT_EQUAL(w.cap, 2000);
	vec_free(&w);
	vec_free(&w);
}

static void test_suggest(void)
{
	static const char *const keys[] = {"layers", "hidden", "heads", "seq_len", "dtype", "micro_batch", "data",
		"tensor"};
	static const struct {
		const char *word, *nearest;
	} cases[] = {
		{"layer", "layers"},
		{"LAYERS", "layers"},
		{"seq-len", "seq_len"},
		{"seqlen", "seq_len"},
		{"dtpye", "dtype"},
		{"head", "heads"},
		{"microbatch", "micro_batch"},
		{"tesnor", "tensor"},
		{"date", "data"},
		{"hiden", "hidden"},
		{"head_count", "heads"}, /* four letters in common */
		{"micro", "micro_batch"},
		/* nothing is near: too short for a slip of two, no letter in common, two letters in common */
		{"", NULL},
		{"x", NULL},
		{"tp", NULL},
		{"vocab", NULL},
		{"temper", NULL},
		{"_____", NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *got = suggest_nearest(cases[i].word, keys, COUNT(keys));
		CU_ASSERT_TRUE(got ? cases[i].nearest && strcmp(got, cases[i].nearest) == 0 : !cases[i].nearest);
	}
	/* a common beginning is nearer than letters in common; of several the one at the smallest distance */
	static const char *const models[] = {"gpt3-2.7b", "qwen3-235b", "qwen3-30b-a3b"};
	CU_ASSERT_PTR_EQUAL(suggest_nearest("qwen2.5-7b", models, COUNT(models)), models[1]);
	CU_ASSERT_PTR_NULL(suggest_nearest("x", keys, 0));
	/* ties: the first */
	static const char *const alike[] = {"ab", "ac"};
	CU_ASSERT_PTR_EQUAL(suggest_nearest("ad", alike, 2), alike[0]);
	/* two swapped letters are one slip, nearer than two wrong ones */
	static const char *const swapped[] = {"xy", "ba"};
	CU_ASSERT_PTR_EQUAL(suggest_nearest("ab", swapped, 2), swapped[1]);
	/* words beyond every buffer */
	char word[3000];
	memset(word, 'q', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	const char *const both[] = {"a", word};
	CU_ASSERT_PTR_EQUAL(suggest_nearest(word, both, 2), word);
}

static void test_suggest_text(void)
{
	static const char *const few[] = {"h100-sxm", "h100-pcie", "a100"};
	CU_ASSERT_STRING_EQUAL(suggest("h100-sxn", few, 3, NULL).text, " (nearest: h100-sxm)");
	CU_ASSERT_STRING_EQUAL(suggest("H100", few, 3, NULL).text, " (nearest: h100-sxm, h100-pcie)");
	CU_ASSERT_STRING_EQUAL(suggest("100-", few, 3, NULL).text, " (nearest: h100-sxm, h100-pcie)");
	CU_ASSERT_STRING_EQUAL(suggest("tpu", few, 3, "list gpus").text, " (known: h100-sxm, h100-pcie, a100)");
	CU_ASSERT_STRING_EQUAL(suggest("tpu", few, 0, "list gpus").text, " (there are none)");
	CU_ASSERT_STRING_EQUAL(suggest_known("a10", few, 3).text, " (nearest: a100; known: h100-sxm, h100-pcie, a100)");
	CU_ASSERT_STRING_EQUAL(suggest_known("tpu", few, 3).text, " (known: h100-sxm, h100-pcie, a100)");
	CU_ASSERT_STRING_EQUAL(suggest_names("nearest", few, 0).text, "");
	/* too many to be named: the command that lists them, if there is one */
	const char *many[SUGGEST_ALL + 1];
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = "a-name-of-which-eleven-are-too-many";
	CU_ASSERT_STRING_EQUAL(suggest("tpu", many, COUNT(many), "list gpus").text,
		" (`stepsim list gpus` lists them)");
	CU_ASSERT_STRING_EQUAL(suggest("tpu", many, COUNT(many), NULL).text, "");
	/* a text that is too long is cut, and stays in brackets */
	char text[SUGGEST_MAX];
	snprintf(text, sizeof text, "%s", suggest("a-name", many, COUNT(many), NULL).text);
	CU_ASSERT(strlen(text) == SUGGEST_MAX - 1 && text[SUGGEST_MAX - 2] == ')');
	CU_ASSERT_TRUE(suggest_same("Flash-Attn", "flash_attn") && suggest_same("_allGather", "all-gather-"));
	CU_ASSERT_TRUE(!suggest_same("flash", "flash2") && !suggest_same("", "a") && suggest_same("", "-"));
	/* a letter of a short name, two of a long one; a word of its own is no slip */
	CU_ASSERT_TRUE(suggest_is_slip("stge", "stage") && !suggest_is_slip("state", "data") &&
		       !suggest_is_slip("stg", "stage"));
	CU_ASSERT_TRUE(suggest_is_slip("tensor_model_paralel_sise", "tensor_model_parallel_size") &&
		       !suggest_is_slip("sequence_len", "seq_len") && !suggest_is_slip("dp", "tp"));
}

static void test_order_statistics(void)
{
	double x[] = {5, 1, 4, 2, 3};
	CU_ASSERT_EQUAL(stats_mean(x, 5), 3);
	CU_ASSERT_EQUAL(stats_min(x, 5), 1);
	CU_ASSERT_EQUAL(stats_max(x, 5), 5);
	CU_ASSERT_EQUAL(x[0], 5); /* not modified */
	CU_ASSERT_EQUAL(stats_median(x, 5), 3);
	CU_ASSERT_EQUAL(x[0], 1); /* sorted */
	CU_ASSERT_EQUAL(stats_median((double[]){4, 1, 3, 2}, 4), 2.5);
	CU_ASSERT_EQUAL(stats_median((double[]){7}, 1), 7);
	double y[] = {40, 10, 30, 20, 50};
	CU_ASSERT_EQUAL(stats_percentile(y, 5, 0), 10);
	CU_ASSERT_EQUAL(stats_percentile(y, 5, 100), 50);
	CU_ASSERT_EQUAL(stats_percentile(y, 5, 25), 20);
	CU_ASSERT_DOUBLE_EQUAL(stats_percentile(y, 5, 90), 46, 1e-12);
	CU_ASSERT_EQUAL(stats_percentile((double[]){7}, 1, 90), 7);
}

/* Latency and bandwidth out of transfer times, whose columns differ by eight powers of ten. */
static void test_nnls_line(void)
{
	enum { N = 8 };
	double a[N * 2], y[N], c[2];
	for (size_t i = 0; i < N; i++) {
		double bytes = 1e3 * pow(10, (double)i * 0.8);
		a[2 * i] = 1;
		a[2 * i + 1] = bytes;
		y[i] = 5e-6 + bytes / 12.5e9;
	}
	stats_nnls(a, y, N, 2, c);
	CU_ASSERT_DOUBLE_EQUAL(c[0] / 5e-6, 1, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(c[1] * 12.5e9, 1, 1e-9);
}

static void test_nnls_bounds(void)
{
	/* y = 1 - x: the slope would be negative, so it is 0 and the constant the mean */
	double a[] = {1, 0, 1, 1, 1, 2}, y[] = {1, 0, -0.4}, c[2];
	stats_nnls(a, y, 3, 2, c);
	CU_ASSERT_DOUBLE_EQUAL(c[0], 0.2, 1e-12);
	CU_ASSERT_EQUAL(c[1], 0);
	/* a column without information, and y = 0 */
	double b[] = {0, 2, 0, 2}, z[] = {6, 6}, zero[] = {0, 0};
	stats_nnls(b, z, 2, 2, c);
	CU_ASSERT_EQUAL(c[0], 0);
	CU_ASSERT_DOUBLE_EQUAL(c[1], 3, 1e-12);
	stats_nnls(b, zero, 2, 2, c);
	CU_ASSERT(c[0] == 0 && c[1] == 0);
}

static uint64_t random_state = 1;

static double random_unit(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (double)(random_state >> 11) * 0x1p-53;
}

/* The optimality conditions of the problem itself: at c the gradient is 0 where c > 0 and not negative where c = 0. */
static void test_nnls_optimal(void)
{
	enum { N = 40, P = 6 };
	random_state = 12345;
	for (int round = 0; round < 50; round++) {
		double a[N * P], y[N], c[P];
		for (size_t i = 0; i < N * P; i++)
			a[i] = random_unit() - 0.3;
		for (size_t i = 0; i < N; i++)
			y[i] = 2 * random_unit() - 1;
		stats_nnls(a, y, N, P, c);
		for (size_t j = 0; j < P; j++) {
			double gradient = 0;
			for (size_t i = 0; i < N; i++) {
				double residual = -y[i];
				for (size_t k = 0; k < P; k++)
					residual += a[i * P + k] * c[k];
				gradient += a[i * P + j] * residual;
			}
			CU_ASSERT(c[j] >= 0);
			CU_ASSERT(c[j] > 0 ? fabs(gradient) < 1e-9 : gradient > -1e-9);
		}
	}
}

static void expect_table(const struct table *t, const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	table_print(t, out);
	fclose(out);
	if (strcmp(got, want) != 0)
		fprintf(stderr, "\nexpected:\n%s\ngot:\n%s", want, got);
	CU_ASSERT_STRING_EQUAL(got, want);
	free(got);
}

static void test_table(void)
{
	struct table *t = table_create("<op|time|error||<note");
	struct error e = {0};
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_EQUAL(table_row(t, &e, "gemm|%.1f us|%d %%|x|", 12.34, 7), ST_OK);
	CU_ASSERT_EQUAL(table_row(t, &e, "-"), ST_OK);
	CU_ASSERT_EQUAL(table_row(t, &e, "all_reduce|\xC2\xB5s"), ST_OK); /* missing cells; two bytes, one character */
	CU_ASSERT_EQUAL(table_row(t, &e, "z||||a|b"), ST_OK);             /* the rest stays in the last cell */
	CU_ASSERT_EQUAL(table_row(t, &e, "%s", ""), ST_OK);
	expect_table(t, "op             time  error     note\n"
			"-----------------------------------\n"
			"gemm        12.3 us    7 %  x\n"
			"-----------------------------------\n"
			"all_reduce       \xC2\xB5s\n"
			"z                              a|b\n"
			"\n");
	table_destroy(t);
	table_destroy(NULL);
}

static void test_table_too_wide(void)
{
	setenv("COLUMNS", "100", 1);
	struct table *t = table_create("<|saves|<with");
	struct error e = {0};
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_EQUAL(table_row(t, &e, "%055d|1 ms|--set train.param_dtype=bf16 --set train.fused=true", 0), ST_OK);
	CU_ASSERT_EQUAL(table_row(t, &e, "-"), ST_OK);
	CU_ASSERT_EQUAL(table_row(t, &e, "heading"), ST_OK);
	expect_table(t, "                                                         saves  with\n"
			"--------------------------------------------------------------------------------------------\n"
			"0000000000000000000000000000000000000000000000000000000   1 ms  --set "
			"train.param_dtype=bf16\n"
			"                                                                --set train.fused=true\n"
			"--------------------------------------------------------------------------------------------\n"
			"heading\n");
	table_destroy(t);

	t = table_create("<name|<a|b|<c");
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_EQUAL(table_row(t, &e, "%050d|%040d|7|onetwo", 0, 0), ST_OK);
	CU_ASSERT_EQUAL(table_row(t, &e, "x|y"), ST_OK);
	expect_table(t,
		"name                                                a                                         b\n"
		"    c\n"
		"-----------------------------------------------------------------------------------------------\n"
		"00000000000000000000000000000000000000000000000000  0000000000000000000000000000000000000000  7\n"
		"    onetwo\n"
		"x                                                   y\n");
	table_destroy(t);
	setenv("COLUMNS", "999", 1);
}

static void expect_wrapped(const char *text, size_t width, const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	wrap_text(text, width, out);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(got, want);
	free(got);
}

static void test_wrap(void)
{
	expect_wrapped("one two three\nfour\n", 8, "one two\n  three\nfour\n");
	expect_wrapped("  one two three", 9, "  one two\n    three");             /* below the line's own indent */
	expect_wrapped("a verylongword b", 6, "a\n  verylongword\n  b");          /* a word stays whole */
	expect_wrapped("take --set a.b=c now", 14, "take\n  --set a.b=c\n  now"); /* an option and its value */
	expect_wrapped("it needs 12 GiB of", 12, "it needs\n  12 GiB of");        /* a number and its unit */
	expect_wrapped("1 2 3 4", 3, "1 2\n  3\n  4");                            /* nothing else is there */
	expect_wrapped("\xC2\xB5s \xC2\xB5s", 5, "\xC2\xB5s \xC2\xB5s");          /* characters, not bytes */
	expect_wrapped("", 5, "");
}

static void test_wrap_width(void)
{
	FILE *file = tmpfile();
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	unsetenv("COLUMNS");
	CU_ASSERT_EQUAL(wrap_width(file), 100);
	setenv("COLUMNS", "64", 1);
	CU_ASSERT_EQUAL(wrap_width(file), 64);
	setenv("COLUMNS", "7", 1);
	CU_ASSERT_EQUAL(wrap_width(file), 40);
	setenv("COLUMNS", "wide", 1); /* no number, no terminal */
	CU_ASSERT_EQUAL(wrap_width(file), 100);
	setenv("COLUMNS", "999", 1);
	fclose(file);
}

static void test_table_of_one_column(void)
{
	struct table *t = table_create("n");
	struct error e = {0};
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_EQUAL(table_row(t, &e, "1000"), ST_OK);
	expect_table(t, "   n\n----\n1000\n");
	table_destroy(t);
}

static void test_clock(void)
{
	double begin_s = clock_s(), cpu_s = clock_thread_cpu_s();
	volatile double work = 0;
	while (clock_thread_cpu_s() - cpu_s < 0.01)
		work += 1;
	CU_ASSERT(clock_s() - begin_s > 0.009); /* a thread cannot compute for longer than time passes */
	usleep(20000);
	CU_ASSERT(clock_s() - begin_s > 0.029);
}

UNIT_MAIN("base: errors, memory, statistics, tables", {"the first error wins", test_first_error_wins},
	{"errors are one short line", test_errors_are_one_short_line}, {"arena", test_arena}, {"vec", test_vec},
	{"suggest", test_suggest}, {"suggest: texts", test_suggest_text}, {"order statistics", test_order_statistics},
	{"nnls: a line", test_nnls_line}, {"nnls: bounds", test_nnls_bounds}, {"nnls: optimality", test_nnls_optimal},
	{"table", test_table}, {"table of one column", test_table_of_one_column},
	{"a table that is too wide", test_table_too_wide}, {"wrap", test_wrap}, {"width", test_wrap_width},
	{"clock", test_clock})
