/* Out of memory in base/ (tests/unit/failing_malloc.h). */
#include "base/array.h"
#include "base/arena.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/table.h"
#include "base/yaml.h"
#include "tests/unit/failing_malloc.h"

/* Long texts fill the arena's block, so that it needs the next one at another point for each `padding`. */
static size_t padding;

static enum status parse(struct error *e)
{
	static char text[20000];
	int n = snprintf(text, sizeof text, "a: %04000d\nb: %04000d\nc: %04000d\nd: %0*d\n", 1, 1, 1,
		(int)(3000 + padding), 1);
	snprintf(text + n, sizeof text - (size_t)n,
		"list: [a, {c: d, e: [f, g, h, i, j, k, l, m, n]}]\nk1: 1\nk2: 1\nk3: 1\nk4: 1\nk5: 1\n");
	struct ydoc *doc = NULL;
	enum status st = ydoc_parse(text, strlen(text), "cfg.yaml", &doc, e);
	ydoc_destroy(doc);
	return st;
}

static enum status parse_empty(struct error *e)
{
	struct ydoc *doc = NULL;
	enum status st = ydoc_parse("", 0, "cfg.yaml", &doc, e);
	ydoc_destroy(doc);
	return st;
}

static enum status read_file(struct error *e)
{
	char *text = NULL;
	size_t len;
	enum status st = file_read("/proc/self/status", 1 << 20, &text, &len, e);
	free(text);
	return st;
}

static enum status fill_table(struct error *e)
{
	struct table *t = table_create("<name|value|unit");
	enum status st = t ? ST_OK : error_nomem(e, "a table");
	for (int i = 0; i < 1000 && !st; i++)
		st = table_row(t, e, "row %d|%d|%s", i, i * i, "s");
	table_destroy(t);
	return st;
}

static enum status fill_arena(struct error *e)
{
	struct arena *a = arena_create();
	enum status st = a ? ST_OK : error_nomem(e, "an arena");
	for (int i = 0; i < 2000 && !st; i++)
		if (!arena_alloc(a, (size_t)i + 1) || !arena_strdup(a, "text"))
			st = error_nomem(e, "a text");
	arena_destroy(a);
	return st;
}

#define LINES 5000

/* stdio does without a buffer: then the text must be whole. */
static void test_stream(void)
{
	long failures = 0, short_ones = 0;
	for (bool reached = true; reached; failures++) {
		char *text;
		size_t len;
		const long before = atomic_load(&live);
		atomic_store(&until_fails, failures + 1);
		FILE *out = memory_stream(&text, &len);
		for (int i = 0; i < LINES && out; i++)
			fprintf(out, "line %04d\n", i);
		const bool good = out && memory_stream_close(out);
		reached = atomic_exchange(&until_fails, 0) < 1;
		CU_ASSERT_EQUAL(text != NULL, out != NULL);
		if (good) {
			CU_ASSERT_EQUAL(len, LINES * strlen("line 0000\n"));
			CU_ASSERT_EQUAL(strlen(text), len);
			CU_ASSERT_STRING_EQUAL(text + len - 10, "line 4999\n");
		}
		short_ones += !good;
		free(text);
		CU_ASSERT_EQUAL(atomic_load(&live), before);
		CU_ASSERT_FATAL(failures < 1000);
	}
	CU_ASSERT(failures > 8 && short_ones > 6);
}

static void test_yaml(void)
{
	for (padding = 0; padding < 800; padding += 16)
		fail_each(parse, 50, false);
	fail_each(parse_empty, 5, false);
}

static void test_file(void) { fail_each(read_file, 1, false); }

static void test_table(void) { fail_each(fill_table, 5, false); }

static void test_arena(void) { fail_each(fill_arena, 5, false); }

static const struct unit_test tests[] = {{"YAML", test_yaml}, {"files", test_file}, {"tables", test_table},
	{"arena", test_arena}, {"streams", test_stream}};

int main(void)
{
	if (!allocator_is_ours()) {
		puts("base: out of memory: skipped, a tool has replaced the allocator");
		return 0;
	}
	return unit_main("base: out of memory", tests, COUNT(tests));
}
