/* TOML: what it becomes, where it stands, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/toml.h"
#include "tests/unit/harness.h"

static struct ydoc *parsed(const char *text)
{
	struct ydoc *doc = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(toml_parse(text, strlen(text), "t.toml", &doc, &e), ST_OK);
	return doc;
}

static const struct ynode *at(const struct ydoc *doc, const char *table, const char *key)
{
	const struct ynode *n = ynode_get(table ? ynode_get(ydoc_root(doc), table) : ydoc_root(doc), key);
	CU_ASSERT_PTR_NOT_NULL_FATAL(n);
	return n;
}

static void check(const struct ydoc *doc, const char *table, const char *key, const char *text, bool quoted)
{
	const struct ynode *n = at(doc, table, key);
	CU_ASSERT_STRING_EQUAL(n->text, text);
	CU_ASSERT_EQUAL(n->quoted, quoted);
}

static void test_values(void)
{
	struct ydoc *doc = parsed("top = 1_000 # a comment\n"
				  "[a]\n"
				  "text = \"a \\\"b\\\" \\u00e9 # no comment\"\n"
				  "plain = 'C:\\n'\n"
				  "real = 1.5e-4\n"
				  "yes = true\n"
				  "day = 1979-05-27T07:32:00Z\n"
				  "\"quoted key\" = -1\n"
				  "[b]\r\n"
				  "lines = \"\"\"\nfirst \\\n   second\"\"\"\r\n");
	check(doc, NULL, "top", "1000", false);
	check(doc, "a", "text", "a \"b\" \xC3\xA9 # no comment", true);
	check(doc, "a", "plain", "C:\\n", true);
	check(doc, "a", "real", "1.5e-4", false);
	check(doc, "a", "yes", "true", false);
	check(doc, "a", "day", "1979-05-27T07:32:00Z", false);
	check(doc, "a", "quoted key", "-1", false);
	check(doc, "b", "lines", "first second", true);
	const struct ynode *n = at(doc, "a", "real");
	CU_ASSERT_EQUAL(n->line, 5);
	CU_ASSERT_EQUAL(n->col, 8);
	CU_ASSERT_EQUAL(n->key_col, 1);
	ydoc_destroy(doc);
}

static void test_tables(void)
{
	struct ydoc *doc = parsed("[a.b]\nx = 1\n[a]\ny.z = 2\n[a.c]\nlist = [\n  1, # one\n  [2, 3],\n]\n"
				  "inline = {p = 1, q.r = \"s\"}\n[[t]]\nn = 1\n[[t]]\nn = 2\n[t.u]\nv = 3\n");
	const struct ynode *a = ynode_get(ydoc_root(doc), "a"), *t = ynode_get(ydoc_root(doc), "t");
	CU_ASSERT_STRING_EQUAL(ynode_get(ynode_get(a, "b"), "x")->text, "1");
	CU_ASSERT_STRING_EQUAL(ynode_get(ynode_get(a, "y"), "z")->text, "2");
	const struct ynode *list = ynode_get(ynode_get(a, "c"), "list"), *in = ynode_get(ynode_get(a, "c"), "inline");
	CU_ASSERT_EQUAL(list->n, 2);
	CU_ASSERT_STRING_EQUAL(list->child[1]->child[1]->text, "3");
	CU_ASSERT_STRING_EQUAL(ynode_get(ynode_get(in, "q"), "r")->text, "s");
	CU_ASSERT_EQUAL(t->n, 2);
	CU_ASSERT_STRING_EQUAL(ynode_get(t->child[1], "n")->text, "2");
	CU_ASSERT_STRING_EQUAL(ynode_get(ynode_get(t->child[1], "u"), "v")->text, "3");
	ydoc_destroy(doc);
}

static void test_refused(void)
{
	static const char *const cases[][2] = {
		{"a = 1\na = 2\n", "t.toml:2:1: a: duplicate key"},
		{"[a]\n[b]\n[a]\n", "t.toml:3:3: a: duplicate key"},
		{"[a]\nb = {c = 1}\n[a.b]\n", "t.toml:3:5: b: duplicate key"},
		{"a = 1\na.b = 2\n", "t.toml:2:3: a: not a table that can take further keys"},
		{"a = \n", "t.toml:1:5: expected a value: a text in quotes, a number, true, false, a list or a table"},
		{"a = yes\n",
			"t.toml:1:5: expected a value: a text in quotes, a number, true, false, a list or a table"},
		{"a = \"b\n", "t.toml:1:7: a text without its closing \""},
		{"a = \"\\q\"\n", "t.toml:1:7: unknown escape in a text (known: b t n f r \" \\ u U)"},
		{"a = 1 b = 2\n", "t.toml:1:7: expected the end of the line"},
		{"a 1\n", "t.toml:1:3: expected = behind the key a"},
		{"[a\n", "t.toml:1:3: expected ] behind the table's name"},
		{"a = [1 2]\n", "t.toml:1:8: expected , or ] in a list"},
		{"a = {b = 1\n", "t.toml:1:11: expected , or } in an inline table"},
		{"= 1\n", "t.toml:1:1: expected a key"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ydoc *doc = NULL;
		struct error e = {0};
		CU_ASSERT_EQUAL(toml_parse(cases[i][0], strlen(cases[i][0]), "t.toml", &doc, &e), ST_INPUT);
		CU_ASSERT_STRING_EQUAL(e.text, cases[i][1]);
		if (strcmp(e.text, cases[i][1]) != 0)
			printf("\n%s: %s\n", cases[i][0], e.text);
	}
}

/* Every beginning of a text (without one more byte behind it), and every text with one byte changed, is read or
 * refused.
 */
static void test_broken(void)
{
	static const char text[] =
		"[a.b]\nx = \"\\u00e9\" # c\n[[t]]\ny = [1, {z = '''\nq'''}]\nd = \"\"\"a\\\n b\"\"\"\n";
	for (size_t i = 0; i < sizeof text - 1; i++)
		for (int c = 0; c < 128; c++) {
			const size_t len = c ? sizeof text - 1 : i;
			struct ydoc *doc = NULL;
			struct error e = {0};
			char *copy = malloc(len + 1);
			CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
			memcpy(copy, text, len);
			if (c)
				copy[i] = (char)c;
			const enum status st = toml_parse(copy, len, "t.toml", &doc, &e);
			CU_ASSERT((st == ST_OK) == (doc != NULL));
			ydoc_destroy(doc);
			free(copy);
		}
}

static void test_depth(void)
{
	char text[256];
	struct ydoc *doc = NULL;
	struct error e = {0};
	memset(text, '[', sizeof text);
	memcpy(text, "a = ", 4);
	CU_ASSERT_EQUAL(toml_parse(text, sizeof text, "t.toml", &doc, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "nested deeper than 32 levels"));
}

UNIT_MAIN("base: TOML", {"values", test_values}, {"tables", test_tables}, {"refused", test_refused},
	{"broken", test_broken}, {"depth", test_depth})
