/* Files of a catalogue of one's own: ids of sources, and files that are like others. */
#include "base/sourced.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"

static char home[] = "/tmp/stepsim-sourced-XXXXXX", folder[64];
static struct error error;
static struct ydoc *doc;

static void put(const char *kind, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/configs/%s/%s.yaml", home, kind, name);
	CU_ASSERT_EQUAL_FATAL(file_write(path, text, strlen(text), &error), ST_OK);
}

/* Loads configs/gpus/<name>.yaml into `doc`. */
static enum status load(const char *name)
{
	char path[256];
	ydoc_destroy(doc);
	doc = NULL;
	error = (struct error){0};
	snprintf(path, sizeof path, "%s/configs/gpus/%s.yaml", home, name);
	return sourced_load("gpus", path, &doc, &error);
}

/* The place in the message without the folder: "x.yaml:2:3: ...". */
static void says(const char *text)
{
	const char *name = strncmp(error.text, folder, strlen(folder)) == 0 ? error.text + strlen(folder) : error.text;
	CU_ASSERT_STRING_EQUAL(name, text);
	if (strcmp(name, text) != 0)
		fprintf(stderr, "%s\n", name);
}

/* "value; source", with " *" behind where it is unverified. */
static const char *number(const char *section, const char *key)
{
	static char text[256];
	struct sourced n;
	const struct ynode *at = doc ? ynode_get(ynode_get(ydoc_root(doc), section), key) : NULL;
	if (!at || sourced_read(at, &n, &error))
		return "none";
	snprintf(text, sizeof text, "%s; %s%s", n.value->text, n.source, n.unverified ? " *" : "");
	return text;
}

static void test_ids(void)
{
	put("sources", "shared", "pages: vendor pages\nguide: \"a guide: its table\"\n");
	put("gpus", "x",
		"sources:\n  sheet: a datasheet\n  clock: \"the clock of the peak:\"\n"
		"chip:\n  one: {value: 1, source: [sheet]}\n"
		"  two: {value: 2, source: [clock, pages, \"closes, nearly\"]}\n  text: {value: 3, source: sheet}\n");
	CU_ASSERT_EQUAL_FATAL(load("x"), ST_OK);
	CU_ASSERT_STRING_EQUAL(number("chip", "one"), "1; a datasheet");
	CU_ASSERT_STRING_EQUAL(number("chip", "two"), "2; the clock of the peak: vendor pages; closes, nearly");
	CU_ASSERT_STRING_EQUAL(number("chip", "text"), "3; sheet"); /* no list: a text of its own */
	CU_ASSERT_PTR_NULL(ynode_get(ydoc_root(doc), "sources"));
	static const char *const wrong[][2] = {
		{"sources: {sheet: a page}\nchip:\n  one: {value: 1, source: [shet]}\n",
			"x.yaml:3:28: source: unknown id 'shet' (nearest: sheet); a text stands in quotes"},
		{"chip:\n  one: {value: 1, source: [page]}\n",
			"x.yaml:2:28: source: unknown id 'page' (nearest: pages); a text stands in quotes"},
		{"sources:\n  sheet: a page\n  other: a page\nchip:\n  one: {value: 1, source: [sheet]}\n",
			"x.yaml:3:3: sources: no number names 'other'"},
		{"sources: a page\n", "x.yaml:1:10: sources: expected a mapping of ids"},
		{"sources: {sheet: [a page]}\n", "x.yaml:1:18: sheet: expected a text, got a list"},
		{"chip: {one: {value: 1, source: [[pages]]}}\n", "x.yaml:1:33: expected a text, got a list"},
		{"- 1\n", "x.yaml:1:1: expected a mapping of keys"},
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		put("gpus", "x", wrong[i][0]);
		CU_ASSERT_EQUAL(load("x"), ST_INPUT);
		says(wrong[i][1]);
	}
}

static void test_like(void)
{
	put("gpus", "base",
		"sources: {sheet: a datasheet}\nname: Base\nunverified: true\nprice: {value: 9, source: [sheet]}\n"
		"shown_as: Base 80GB\nrent_usd_per_hour: {value: 2, source: [sheet]}\n"
		"chip:\n  sms: {value: 8, source: [sheet]}\n  power: {value: 7W, source: [sheet], unverified: true}\n"
		"link:\n  count: {value: 4, source: [sheet]}\n");
	put("gpus", "middle", "like: base\nname: Middle\nchip:\n  power: {value: 6W, source: [guide]}\n");
	put("gpus", "x", "like: middle\nlink: ~\nchip:\n  l2: {value: 1MB, source: mine}\n");
	CU_ASSERT_EQUAL_FATAL(load("middle"), ST_OK);
	CU_ASSERT_STRING_EQUAL(number("chip", "sms"), "8; a datasheet");
	CU_ASSERT_STRING_EQUAL(number("chip", "power"), "6W; a guide: its table"); /* its mark is not the base's */
	CU_ASSERT_STRING_EQUAL(number("link", "count"), "4; a datasheet");
	static const char *const own[] = {"like", "price", "rent_usd_per_hour", "shown_as"}; /* of one product alone */
	for (size_t i = 0; i < COUNT(own); i++)
		CU_ASSERT_PTR_NULL(ynode_get(ydoc_root(doc), own[i]));
	CU_ASSERT_PTR_NOT_NULL(ynode_get(ydoc_root(doc), "unverified"));
	CU_ASSERT_EQUAL_FATAL(load("x"), ST_OK); /* a chain: through the middle, from the base */
	CU_ASSERT_STRING_EQUAL(ynode_get(ydoc_root(doc), "name")->text, "Middle");
	CU_ASSERT_STRING_EQUAL(number("chip", "l2"), "1MB; mine");
	CU_ASSERT_STRING_EQUAL(number("chip", "power"), "6W; a guide: its table");
	CU_ASSERT_STRING_EQUAL(number("chip", "sms"), "8; a datasheet");
	CU_ASSERT_PTR_NULL(ynode_get(ydoc_root(doc), "link"));
	CU_ASSERT_PTR_NULL(ynode_get(ydoc_root(doc), "price"));
}

static void test_like_what(void)
{
	put("gpus", "x", "name: X\nlike: bases\n");
	CU_ASSERT_EQUAL(load("x"), ST_INPUT);
	says("x.yaml:2:7: like: there is no configs/gpus/bases.yaml (nearest: base)");
	put("gpus", "x", "like: ../gpus/base\n");
	CU_ASSERT_EQUAL(load("x"), ST_INPUT);
	put("gpus", "x", "like: [base]\n");
	CU_ASSERT_EQUAL(load("x"), ST_INPUT);
	says("x.yaml:1:7: like: expected a text, got a list");
	put("gpus", "x", "like: x\n");
	CU_ASSERT_EQUAL(load("x"), ST_INPUT);
	says("x.yaml:1:7: like: x is itself like this file: a circle");
	put("gpus", "x", "like: middle\n");
	put("gpus", "middle", "like: base\n");
	put("gpus", "base", "name: B\nlike: x\n");
	CU_ASSERT_EQUAL(load("x"), ST_INPUT);
	says("base.yaml:2:7: like: x is itself like this file: a circle");
	put("gpus", "base", "sources: {unused: a page}\n"); /* a mistake there is told with its own place */
	CU_ASSERT_EQUAL(load("x"), ST_INPUT);
	says("base.yaml:1:11: sources: no number names 'unused'");
}

/* Every shared source is named by some file. */
static void test_shared(void)
{
	static const char *const kinds[] = {"gpus", "systems", "fabrics", "families", "stacks", "costs"};
	char path[PATH_MAX_LEN], *old = getenv("STEPSIM_HOME");
	old = strdup(old);
	unsetenv("STEPSIM_HOME");
	char *all = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&all, &size);
	for (size_t k = 0; k < COUNT(kinds); k++) {
		char **names = NULL, *text = NULL;
		size_t n = 0, len = 0;
		CU_ASSERT_EQUAL_FATAL(path_catalogue_names(kinds[k], &names, &n, &error), ST_OK);
		for (size_t i = 0; i < n; i++) {
			CU_ASSERT_EQUAL_FATAL(path_catalogue(kinds[k], names[i], path, &error), ST_OK);
			CU_ASSERT_EQUAL_FATAL(file_read(path, 1 << 20, &text, &len, &error), ST_OK);
			fputs(text, out);
			free(text);
		}
		path_names_free(names, n);
	}
	fclose(out);
	struct ydoc *shared = NULL;
	CU_ASSERT_EQUAL_FATAL(path_catalogue("sources", "shared", path, &error), ST_OK);
	CU_ASSERT_EQUAL_FATAL(ydoc_load(path, &shared, &error), ST_OK);
	const struct ynode *root = ydoc_root(shared);
	CU_ASSERT_TRUE(root->n > 10);
	for (size_t i = 0; i < root->n; i++) {
		CU_ASSERT_PTR_NOT_NULL(strstr(all, root->child[i]->key));
		if (!strstr(all, root->child[i]->key))
			fprintf(stderr, "no file names '%s'\n", root->child[i]->key);
	}
	ydoc_destroy(shared);
	free(all);
	setenv("STEPSIM_HOME", old, 1);
	free(old);
}

static void make_home(void)
{
	static const char *const folders[] = {"configs", "configs/gpus", "configs/sources"};
	char path[256];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(home));
	for (size_t i = 0; i < COUNT(folders); i++) {
		snprintf(path, sizeof path, "%s/%s", home, folders[i]);
		CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	}
	snprintf(folder, sizeof folder, "%s/configs/gpus/", home);
	setenv("STEPSIM_HOME", home, 1);
}

static void test_clean(void)
{
	static const char *const made[] = {"gpus/x.yaml", "gpus/base.yaml", "gpus/middle.yaml", "sources/shared.yaml",
		"gpus", "sources", ""};
	char path[256];
	ydoc_destroy(doc);
	for (size_t i = 0; i < COUNT(made); i++) {
		snprintf(path, sizeof path, "%s/configs/%s", home, made[i]);
		CU_ASSERT_EQUAL(remove(path), 0);
	}
	CU_ASSERT_EQUAL(rmdir(home), 0);
	unsetenv("STEPSIM_HOME");
}

UNIT_MAIN("sourced", {"a catalogue", make_home}, {"ids", test_ids}, {"like another", test_like},
	{"like what", test_like_what}, {"shared sources", test_shared}, {"the end", test_clean})
