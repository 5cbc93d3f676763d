/* Out of memory: each allocation of an operation fails once, in turn; every time the operation must report it and leave nothing behind.
 *
 * This program's own malloc counts and fails. AddressSanitizer and valgrind bring theirs, which wins: then there is nothing to test and the suite says so. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/paths.h"
#include "base/table.h"
#include "base/yaml.h"
#include "tests/unit/harness.h"

static atomic_long live;        /* blocks that are allocated */
static atomic_long until_fails; /* the allocation that fails: 1 is the next one; below 1: none */

#ifndef __SANITIZE_ADDRESS__

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static bool fails(void)
{
	if (atomic_load(&until_fails) < 1 || atomic_fetch_sub(&until_fails, 1) != 1)
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	if (p)
		atomic_fetch_add(&live, 1);
	return p;
}

void *malloc(size_t size)
{
	return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	if (fails())
		return NULL;
	void *moved = __libc_realloc(p, size);
	return p ? moved : counted(moved);
}

void free(void *p)
{
	if (p)
		atomic_fetch_sub(&live, 1);
	__libc_free(p);
}

#endif

/* Runs `operation` with its 1st, 2nd, ... allocation failing, until it needs no more of them. */
static void fail_each(enum status (*operation)(struct error *e), long at_least)
{
	long failures = 0;
	for (;; failures++) {
		CU_ASSERT_FATAL(failures < 100000);
		struct error e = {0};
		long before = atomic_load(&live);
		atomic_store(&until_fails, failures + 1);
		enum status st = operation(&e);
		bool reached = atomic_exchange(&until_fails, 0) < 1;
		if (atomic_load(&live) != before)
			CU_FAIL("something is left behind");
		if (!reached) {
			CU_ASSERT_EQUAL(st, ST_OK);
			break;
		}
		CU_ASSERT_EQUAL(st, ST_RUN);
		CU_ASSERT_EQUAL(e.status, ST_RUN);
		CU_ASSERT_EQUAL(strncmp(e.text, "out of memory", 13), 0);
	}
	CU_ASSERT(failures >= at_least);
}

/* Long texts fill the arena's block, so that it needs the next one at another point for each `padding`. */
static size_t padding;

static enum status parse(struct error *e)
{
	static char text[20000];
	int n = snprintf(text, sizeof text, "a: %04000d\nb: %04000d\nc: %04000d\nd: %0*d\n", 1, 1, 1, (int)(3000 + padding), 1);
	snprintf(text + n, sizeof text - (size_t)n, "list: [a, {c: d, e: [f, g, h, i, j, k, l, m, n]}]\nk1: 1\nk2: 1\nk3: 1\nk4: 1\nk5: 1\n");
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
		if (!arena_printf(a, "%*d", i, i) || !arena_strdup(a, "text"))
			st = error_nomem(e, "a text");
	arena_destroy(a);
	return st;
}

static void test_yaml(void)
{
	for (padding = 0; padding < 800; padding += 16)
		fail_each(parse, 50);
	fail_each(parse_empty, 5);
}

static void test_file(void)
{
	fail_each(read_file, 1);
}

static void test_table(void)
{
	fail_each(fill_table, 5);
}

static void test_arena(void)
{
	fail_each(fill_arena, 5);
}

static bool allocator_is_ours(void)
{
	long before = atomic_load(&live);
	void *volatile p = malloc(1);
	bool counts = atomic_load(&live) == before + 1;
	free(p);
	return counts;
}

static const struct unit_test tests[] = {{"YAML", test_yaml}, {"files", test_file}, {"tables", test_table}, {"arena", test_arena}};

int main(void)
{
	if (!allocator_is_ours()) {
		puts("base: out of memory: skipped, a tool has replaced the allocator");
		return 0;
	}
	return unit_main("base: out of memory", tests, sizeof tests / sizeof tests[0]);
}
