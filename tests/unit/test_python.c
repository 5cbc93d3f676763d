#include "tests/unit/harness.h"

#include <string.h>

#include "base/array.h"
#include "step/import/python.h"

static struct error error;

/* Returns the text at "a.b" of what a function of a text returns, and "" without one. */
static void value_of(const char *text, const char *wanted, const char *path, char out[128])
{
	struct ydoc *doc = NULL;
	error = (struct error){0};
	out[0] = '\0';
	if (python_parse(text, strlen(text), "t.py", wanted, &doc, &error))
		return;
	const struct ynode *n = ydoc_root(doc);
	char part[64];
	while (n && *path) {
		const size_t len = strcspn(path, ".");
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		n = ynode_get(n, part);
		path += len + (path[len] == '.');
	}
	if (n && n->kind == Y_SCALAR)
		snprintf(out, 128, "%s", n->text);
	ydoc_destroy(doc);
}

#define BEGIN "def f():\n    c = T(a=6, b=P(x=[1]))\n"
#define END "    return c\n"

/* What each statement makes of c.a. */
static void test_statements(void)
{
	static const char *const cases[][2] = {
		{"c.a += 2", "8"},
		{"c.a //= 4", "1"},
		{"c.a **= 2", "36"},
		{"c.a |= 1", "$|="},
		{"c.a = c.d = 3", "3"},
		{"c.d = c.a = 3", "3"},
		{"c.a = 1 | 2", "$|"},
		{"c.a = 5 & 1", "$5"},
		{"c.a = 1e-3", "1e-3"},
		{"c.a = 0.5e-3 * 2", "0.001"},
		{"c.a = 0xE-4", "10"},
		{"c.x = 1; c.a = 2", "2"},
		{"if c.a == 6: c.a = 7", "7"},
		{"if c.a == 7: c.a = 8; c.a = 9", "6"},
		{"with q(): c.a = 4", "4"},
		{"g(c)", "42"},
		{"c.a = (lambda d=1: d)", "$lambda"},
		{"c.a, z = 3, 4", "3"},
	};
	char text[256], value[128];
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(text, sizeof text, BEGIN "    %s\n" END "def g(x): x.a = 42\n", cases[i][0]);
		value_of(text, "f", "a", value);
		if (strcmp(value, cases[i][1]) != 0)
			printf("%s: %s, not %s; %s\n", cases[i][0], value, cases[i][1], error.text);
		CU_ASSERT_STRING_EQUAL(value, cases[i][1]);
	}
}

/* Statements that may change the config and are not run are named. */
static void test_left(void)
{
	static const char *const cases[][2] = {
		{"c.b.update(y=2)", "c.b.update(y=2)"},
		{"setattr(c,\n        'a', 3)", "setattr(c, 'a', 3)"},
		{"del c.a", "del c.a"},
		{"for i in c.b: c.a = i", "for i in c.b:"},
		{"if unknown: c.a = 3", "if unknown:"},
		{"print(c)", ""},
		{"c.validate()", ""},
		{"logger.info('text')", ""},
	};
	char text[256], value[128];
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(text, sizeof text, BEGIN "    %s\n" END, cases[i][0]);
		value_of(text, NULL, "_line_3", value);
		CU_ASSERT_STRING_EQUAL(value, cases[i][1]);
	}
}

static void test_refusals(void)
{
	static const char *const cases[][2] = {
		{"def f():\n    return T(\n", "t.py:2:13: a bracket without its closing one"},
		{"def f():\n    return T)\n", "t.py:2:13: a closing bracket without an opening one"},
		{"def f():\n    x = 'a\n", "t.py:2:9: a string without its closing quote"},
		{"def f():\n    x = '\xff'\n", "t.py:2:10: the text is not UTF-8"},
		{"def f():\n    return 3\n", "t.py:1:5: function f returns no config"},
		{"def f(): return 1, 2\n", "t.py:1:5: function f returns no config"},
		{"def f():\n    f()\n    f()\n    return T(a=1)\n",
			"t.py:1:5: function f makes more values than a config has"},
		{"def f(a): return a\n", "t.py: it has no function that builds a config without arguments"},
		{"def f(): pass\ndef g(): pass\n",
			"t.py: it has 2 functions that build a config (they are: f, g): give "
			"one, as t.py:f"},
	};
	char value[128];
	for (size_t i = 0; i < COUNT(cases); i++) {
		value_of(cases[i][0], NULL, "a", value);
		CU_ASSERT_EQUAL(error.status, ST_INPUT);
		CU_ASSERT_STRING_EQUAL(error.text, cases[i][1]);
		if (strcmp(error.text, cases[i][1]) != 0)
			printf("%s, not %s\n", error.text, cases[i][1]);
	}
	value_of("def llama(): pass\n", "lama", "a", value);
	CU_ASSERT_STRING_EQUAL(error.text, "t.py: it has no function lama (nearest: llama)");
}

UNIT_MAIN("python", {"statements", test_statements}, {"statements that are not run", test_left},
	{"refusals", test_refusals})
