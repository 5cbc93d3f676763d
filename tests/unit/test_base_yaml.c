/* YAML: the tree and its positions, the closed traps, the readers' messages. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/yaml.h"
#include "tests/unit/harness.h"

static struct ydoc *parsed(const char *text)
{
	struct ydoc *doc = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(ydoc_parse(text, strlen(text), "cfg.yaml", &doc, &e), ST_OK);
	CU_ASSERT_EQUAL(e.status, ST_OK);
	return doc;
}

static void test_tree(void)
{
	struct ydoc *doc = parsed("# a comment\n"
				  "model:\n"
				  "  layers: 12\n"
				  "  name: \"yes\"\n"
				  "list:\n"
				  "  - one\n"
				  "  - {a: 1, b: [2, 3]}\n"
				  "empty:\n");
	const struct ynode *root = ydoc_root(doc), *model = ynode_get(root, "model");
	CU_ASSERT_EQUAL_FATAL(root->kind, Y_MAP);
	CU_ASSERT_EQUAL(root->n, 3);
	CU_ASSERT_EQUAL(root->line, 2);
	CU_ASSERT_EQUAL(root->col, 1);
	CU_ASSERT_PTR_NULL(root->key);
	CU_ASSERT_STRING_EQUAL(root->file, "cfg.yaml");

	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	CU_ASSERT_EQUAL(model->key_line, 2);
	CU_ASSERT_EQUAL(model->key_col, 1);
	CU_ASSERT_EQUAL(model->line, 3);
	CU_ASSERT_EQUAL(model->col, 3);
	const struct ynode *layers = ynode_get(model, "layers"), *name = ynode_get(model, "name");
	CU_ASSERT_STRING_EQUAL(layers->text, "12");
	CU_ASSERT_STRING_EQUAL(layers->key, "layers");
	CU_ASSERT_FALSE(layers->quoted);
	CU_ASSERT_EQUAL(layers->line, 3);
	CU_ASSERT_EQUAL(layers->col, 11);
	CU_ASSERT_TRUE(name->quoted);
	CU_ASSERT_STRING_EQUAL(name->text, "yes");

	const struct ynode *list = ynode_get(root, "list");
	CU_ASSERT_EQUAL_FATAL(list->kind, Y_SEQ);
	CU_ASSERT_EQUAL_FATAL(list->n, 2);
	CU_ASSERT_STRING_EQUAL(list->child[0]->text, "one");
	CU_ASSERT_PTR_NULL(list->child[0]->key);
	const struct ynode *b = ynode_get(list->child[1], "b");
	CU_ASSERT_EQUAL_FATAL(b->n, 2);
	CU_ASSERT_STRING_EQUAL(b->child[1]->text, "3");
	CU_ASSERT_EQUAL(b->child[1]->line, 7);
	CU_ASSERT_EQUAL(b->child[1]->col, 19);
	CU_ASSERT_STRING_EQUAL(ynode_get(root, "empty")->text, "");

	CU_ASSERT_PTR_NULL(ynode_get(root, "nothing"));
	CU_ASSERT_PTR_NULL(ynode_get(NULL, "model"));
	CU_ASSERT_PTR_NULL(ynode_get(list, "model"));
	CU_ASSERT_PTR_NULL(ynode_get(layers, "model"));
	ydoc_destroy(doc);
	ydoc_destroy(NULL);
}

static void test_empty_documents(void)
{
	static const char *const texts[] = {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "\xEF\xBB\xBF",
		"%YAML 1.1\n---\n"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct ydoc *doc = parsed(texts[i]);
		CU_ASSERT_EQUAL(ydoc_root(doc)->kind, Y_MAP);
		CU_ASSERT_EQUAL(ydoc_root(doc)->n, 0);
		CU_ASSERT_EQUAL(ydoc_root(doc)->line, 1);
		ydoc_destroy(doc);
	}
}

static void test_forms(void)
{
	struct ydoc *doc = parsed("\xEF\xBB\xBFkey: 1\r\n\r\nnext: |\r\n  text\r\n\xC3\xBCmlaut: x # \xE2\x82\xAC\r\n");
	const struct ynode *root = ydoc_root(doc);
	CU_ASSERT_EQUAL(ynode_get(root, "key")->key_col, 1);
	CU_ASSERT_EQUAL(ynode_get(root, "next")->key_line, 3);
	CU_ASSERT_STRING_EQUAL(ynode_get(root, "next")->text, "text\n");
	CU_ASSERT_TRUE(ynode_get(root, "next")->quoted);
	/* columns count characters, not bytes */
	CU_ASSERT_EQUAL(ynode_get(root, "\xC3\xBCmlaut")->col, 9);
	ydoc_destroy(doc);

	doc = parsed("42");
	CU_ASSERT_EQUAL(ydoc_root(doc)->kind, Y_SCALAR);
	ydoc_destroy(doc);
}

struct refusal {
	const char *text;
	size_t len; /* 0: to the terminator */
	const char *message;
};

static void check_refusals(const struct refusal *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ydoc *doc = NULL;
		struct error e = {0};
		size_t len = cases[i].len ? cases[i].len : strlen(cases[i].text);
		enum status st = ydoc_parse(cases[i].text, len, "cfg.yaml", &doc, &e);
		bool good = st == ST_INPUT && e.status == ST_INPUT && strcmp(e.text, cases[i].message) == 0;
		if (!good)
			fprintf(stderr, "\n    expected \"%s\"\n    got      \"%s\"", cases[i].message, e.text);
		CU_ASSERT(good);
		CU_ASSERT_PTR_NULL(doc);
		ydoc_destroy(doc);
	}
}

static void test_traps(void)
{
	static const struct refusal cases[] = {
		{"a: 1\nb: 2\na: 3\n", 0, "cfg.yaml:3:1: a: duplicate key, first given at cfg.yaml:1:1"},
		{"x:\n  {a: 1, \"a\": 2}\n", 0, "cfg.yaml:2:10: a: duplicate key, first given at cfg.yaml:2:4"},
		{"&here a: 1\n", 0, "cfg.yaml:1:1: an anchor (&) of a key is not supported"},
		{"a: &here 1\n*here : 2\n", 0, "cfg.yaml:2:1: an alias (*) cannot be a key"},
		{"a: &here [1, *here]\n", 0, "cfg.yaml:1:14: an alias (*) inside of what it stands for"},
		{"a: *here\n", 0, "cfg.yaml:1:4: an alias (*) without its anchor (&)"},
		{"a: &here 1\nb: {<<: *here}\n", 0, "cfg.yaml:2:9: expected a mapping to merge, or a list of them"},
		{"a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
		 "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
		 "e: [*d, *d]\n",
			0, "cfg.yaml:5:5: aliases (*) that stand for more than 20000 values"},
		{"a: !!int 1\n", 0, "cfg.yaml:1:4: tags (!) are not supported"},
		{"a: !mine {b: 1}\n", 0, "cfg.yaml:1:4: tags (!) are not supported"},
		{"a: ! [1]\n", 0, "cfg.yaml:1:4: tags (!) are not supported"},
		{"%TAG ! tag:x,2000:\n---\na: 1\n", 0, "cfg.yaml:1:1: tags (%TAG) are not supported"},
		{"a: 1\n---\nb: 2\n", 0, "cfg.yaml:2:1: several documents in one file are not supported"},
		{"? [a, b]\n: 1\n", 0, "cfg.yaml:1:3: a key must be plain text, not a list or a mapping"},
		{"{a: 1}: 2\n", 0, "cfg.yaml:1:1: a key must be plain text, not a list or a mapping"},
		{"? {a: 1}\n: 2\n", 0, "cfg.yaml:1:3: a key must be plain text, not a list or a mapping"},
		{"? \n: 1\n", 0, "cfg.yaml:1:2: a key is empty"},
		{"\"\": 1\n", 0, "cfg.yaml:1:1: a key is empty"},
		{"a: 1\nb: \"x\\0y\"\n", 0, "cfg.yaml:2:4: a text must not hold a zero byte"},
	};
	check_refusals(cases, COUNT(cases));
}

static const char *text_at(const struct ynode *n, const char *one, const char *other)
{
	const struct ynode *found = ynode_get(ynode_get(n, one), other);
	return found ? found->text : "";
}

static void test_anchors(void)
{
	static const char text[] = "base: &base {lr: 1, steps: &n 5}\n"
				   "more: &more {seed: 7, lr: 9}\n"
				   "own: {<<: *base, lr: 2, last: *n}\n"
				   "two: {<<: [*base, *more]}\n"
				   "same: *base\n";
	struct ydoc *doc = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(ydoc_parse(text, strlen(text), "cfg.yaml", &doc, &e), ST_OK);
	const struct ynode *root = ydoc_root(doc);
	CU_ASSERT_STRING_EQUAL(text_at(root, "own", "lr"), "2");
	CU_ASSERT_STRING_EQUAL(text_at(root, "own", "steps"), "5");
	CU_ASSERT_STRING_EQUAL(text_at(root, "own", "last"), "5");
	CU_ASSERT_EQUAL(ynode_get(root, "own")->n, 3);
	CU_ASSERT_STRING_EQUAL(text_at(root, "two", "lr"), "1"); /* the first of the list */
	CU_ASSERT_STRING_EQUAL(text_at(root, "two", "seed"), "7");
	CU_ASSERT_STRING_EQUAL(text_at(root, "same", "lr"), "1");
	CU_ASSERT_EQUAL(ynode_get(root, "same")->line, 5);
	ydoc_destroy(doc);
}

static void test_bytes(void)
{
	static const struct refusal cases[] = {
		{"a: 1\nb: \xFF\n", 0, "cfg.yaml:2:4: the text is not UTF-8"},
		{"a: 1\r\nb: \xC3\xBC\xC3\n", 0, "cfg.yaml:2:5: the text is not UTF-8"},
		{"\xC0\xAF", 0, "cfg.yaml:1:1: the text is not UTF-8"},         /* overlong */
		{"\xE0\x80\xAF", 0, "cfg.yaml:1:1: the text is not UTF-8"},     /* overlong */
		{"\xF0\x80\x80\xAF", 0, "cfg.yaml:1:1: the text is not UTF-8"}, /* overlong */
		{"\xED\xA0\x80", 0, "cfg.yaml:1:1: the text is not UTF-8"},     /* a surrogate */
		{"\xF4\x90\x80\x80", 0, "cfg.yaml:1:1: the text is not UTF-8"}, /* above U+10FFFF */
		{"a: \xE2\x82", 0, "cfg.yaml:1:4: the text is not UTF-8"},      /* cut off */
		{"\xFF\xFE"
		 "a\0:\0",
			6, "cfg.yaml:1:1: the text is not UTF-8"}, /* UTF-16 */
		{"a: 1\nb: x\0y\n", 11, "cfg.yaml:2:5: a control character is not allowed"},
		{"a: \x1B[31m\n", 0, "cfg.yaml:1:4: a control character is not allowed"},
		{"a: 1\nb: \xEF\xBF\xBE\n", 0, "cfg.yaml:2:4: control characters are not allowed"},
	};
	check_refusals(cases, COUNT(cases));
}

static void test_syntax(void)
{
	static const struct refusal cases[] = {
		{"a: 1\nb: [1, 2\nc: 3\n", 0,
			"cfg.yaml:3:2: did not find expected ',' or ']' (while parsing a flow sequence that began at "
			"cfg.yaml:2:4)"},
		{"a:\n\tb: 1\n", 0,
			"cfg.yaml:2:1: a value cannot start with a tab, @, ` or %: indent with spaces, put text in "
			"quotes"},
		{"a: 'x\n", 0,
			"cfg.yaml:2:1: found unexpected end of stream (while scanning a quoted scalar that began at "
			"cfg.yaml:1:4)"},
		{"a: b: c\n", 0,
			"cfg.yaml:1:5: a key cannot stand here: begin it in the column of the keys above, put text "
			"with ': ' in quotes"},
	};
	check_refusals(cases, COUNT(cases));
}

static char *nested(size_t depth)
{
	char *text = malloc(2 * depth + 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	text[2 * depth] = '\0';
	return text;
}

static void test_depth(void)
{
	char *text = nested(32);
	ydoc_destroy(parsed(text));
	free(text);

	text = nested(33);
	check_refusals(&(struct refusal){text, 0, "cfg.yaml:1:33: nested deeper than 32 levels"}, 1);
	free(text);

	text = nested(1000000);
	check_refusals(&(struct refusal){text, 0, "cfg.yaml:1:33: nested deeper than 32 levels"}, 1);
	free(text);
}

/* Two hundred thousand keys must not take quadratic time: the harness's alarm would end it. */
static void test_many_keys(void)
{
	const size_t keys = 200000;
	char *text = malloc(keys * 12 + 16), *p = text;
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	for (size_t i = 0; i < keys; i++)
		p += sprintf(p, "k%zu: 1\n", i);
	struct ydoc *doc = parsed(text);
	CU_ASSERT_EQUAL(ydoc_root(doc)->n, keys);
	ydoc_destroy(doc);
	strcpy(p, "k7: 2\n");
	check_refusals(&(struct refusal){text, 0, "cfg.yaml:200001:1: k7: duplicate key, first given at cfg.yaml:8:1"},
		1);
	free(text);
}

/* ---- readers ---- */

static const char values[] = "layers: 12x\n"
			     "good: 12\n"
			     "negative: -5\n"
			     "octal: 010\n"
			     "huge: 99999999999999999999\n"
			     "quoted: \"12\"\n"
			     "none: ~\n"
			     "list: [1, x]\n"
			     "map: {a: 1}\n"
			     "size: 25MiB\n"
			     "quoted_size: \"25MiB\"\n"
			     "ratio: 1.5\n"
			     "switch: On\n"
			     "text: hello\n"
			     "empty_text: ''\n"
			     "float: 3.0\n";

static void expect_message(const struct error *e, const char *message)
{
	if (strcmp(e->text, message) != 0)
		fprintf(stderr, "\n    expected \"%s\"\n    got      \"%s\"", message, e->text);
	CU_ASSERT_STRING_EQUAL(e->text, message);
}

static void test_ints(void)
{
	static const struct {
		const char *key;
		int64_t min, max;
		const char *message; /* NULL: 12 is read */
	} cases[] = {
		{"good", 1, 100000, NULL},
		{"good", 12, 12, NULL},
		{"good", INT64_MIN, INT64_MAX, NULL},
		{"layers", 1, 100000, "cfg.yaml:1:9: layers: expected an integer from 1 to 100000, got \"12x\""},
		{"good", 13, 100, "cfg.yaml:2:7: good: expected an integer from 13 to 100, got \"12\""},
		{"good", 0, 11, "cfg.yaml:2:7: good: expected an integer from 0 to 11, got \"12\""},
		{"negative", 0, INT64_MAX, "cfg.yaml:3:11: negative: expected an integer of at least 0, got \"-5\""},
		{"octal", 0, 100, "cfg.yaml:4:8: octal: expected an integer from 0 to 100, got \"010\""},
		{"huge", INT64_MIN, INT64_MAX, "cfg.yaml:5:7: huge: expected an integer, got \"99999999999999999999\""},
		{"quoted", 0, 100, "cfg.yaml:6:9: quoted: expected an integer from 0 to 100, got the text \"12\""},
		{"none", 0, 100, "cfg.yaml:7:7: none: expected an integer from 0 to 100, got nothing"},
		{"list", 0, 100, "cfg.yaml:8:7: list: expected an integer from 0 to 100, got a list"},
		{"map", 0, 100, "cfg.yaml:9:6: map: expected an integer from 0 to 100, got a mapping"},
		{"float", 0, 100, "cfg.yaml:16:8: float: expected an integer from 0 to 100, got \"3.0\""},
	};
	struct ydoc *doc = parsed(values);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		int64_t v = 42;
		enum status st = ynode_int(ynode_get(ydoc_root(doc), cases[i].key), cases[i].min, cases[i].max, &v, &e);
		CU_ASSERT_EQUAL(st, cases[i].message ? ST_INPUT : ST_OK);
		CU_ASSERT_EQUAL(v, cases[i].message ? 42 : 12);
		expect_message(&e, cases[i].message ? cases[i].message : "");
	}
	struct error e = {0};
	int64_t v;
	CU_ASSERT_EQUAL(ynode_int(ynode_get(ydoc_root(doc), "negative"), -5, 0, &v, &e), ST_OK);
	CU_ASSERT_EQUAL(v, -5);
	/* an element of a list has no key to name */
	CU_ASSERT_EQUAL(ynode_int(ynode_get(ydoc_root(doc), "list")->child[1], 0, 9, &v, &e), ST_INPUT);
	expect_message(&e, "cfg.yaml:8:11: expected an integer from 0 to 9, got \"x\"");
	ydoc_destroy(doc);
}

static void test_quantities(void)
{
	static const struct {
		const char *key;
		enum unit unit;
		double min, max, value;
		const char *message;
	} cases[] = {
		{"size", UNIT_BYTE, 0, 1e12, 26214400, ""},
		{"quoted_size", UNIT_BYTE, 0, 1e12, 26214400, ""},
		{"ratio", UNIT_NONE, 0, 2, 1.5, ""},
		{"good", UNIT_SECOND, 0, INFINITY, 12, ""},
		{"quoted", UNIT_NONE, 0, 100, 0, "cfg.yaml:6:9: quoted: expected a number, got the text \"12\""},
		{"size", UNIT_BYTE, 0, 1048576, 0,
			"cfg.yaml:10:7: size: expected a value from 0 B to 1.00 MiB, got \"25MiB\""},
		{"ratio", UNIT_NONE, 0, 1, 0, "cfg.yaml:12:8: ratio: expected a value from 0 to 1, got \"1.5\""},
		{"ratio", UNIT_NONE, 2, INFINITY, 0, "cfg.yaml:12:8: ratio: expected at least 2, got \"1.5\""},
		{"ratio", UNIT_NONE, -INFINITY, 1, 0, "cfg.yaml:12:8: ratio: expected at most 1, got \"1.5\""},
		{"size", UNIT_SECOND, 0, 1, 0,
			"cfg.yaml:10:7: size: expected a time such as 50us, got \"25MiB\", which is a size"},
		{"none", UNIT_SECOND, 0, 1, 0, "cfg.yaml:7:7: none: expected a number with its unit, got nothing"},
		{"list", UNIT_NONE, 0, 1, 0, "cfg.yaml:8:7: list: expected a number, got a list"},
	};
	struct ydoc *doc = parsed(values);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		double v = 0;
		enum status st = ynode_quantity(ynode_get(ydoc_root(doc), cases[i].key), cases[i].unit, cases[i].min,
			cases[i].max, &v, &e);
		CU_ASSERT_EQUAL(st, *cases[i].message ? ST_INPUT : ST_OK);
		CU_ASSERT_EQUAL(v, cases[i].value);
		expect_message(&e, cases[i].message);
	}
	ydoc_destroy(doc);
}

static void test_bools_and_strings(void)
{
	struct ydoc *doc = parsed("a: true\nb: No\nc: ON\nd: ture\ne: \"true\"\nf: ''\ng: null\nh: [x]\n");
	const struct ynode *root = ydoc_root(doc);
	struct error e = {0};
	bool v = false;
	const char *text = NULL;
	CU_ASSERT(ynode_bool(ynode_get(root, "a"), &v, &e) == ST_OK && v);
	CU_ASSERT(ynode_bool(ynode_get(root, "b"), &v, &e) == ST_OK && !v);
	CU_ASSERT(ynode_bool(ynode_get(root, "c"), &v, &e) == ST_OK && v);
	CU_ASSERT_EQUAL(ynode_bool(ynode_get(root, "d"), &v, &e), ST_INPUT);
	expect_message(&e, "cfg.yaml:4:4: d: expected true or false, got \"ture\"");
	e = (struct error){0};
	CU_ASSERT_EQUAL(ynode_bool(ynode_get(root, "e"), &v, &e), ST_INPUT);
	expect_message(&e, "cfg.yaml:5:4: e: expected true or false, got the text \"true\"");

	e = (struct error){0};
	CU_ASSERT_EQUAL(ynode_string(ynode_get(root, "d"), &text, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(text, "ture");
	CU_ASSERT_EQUAL(ynode_string(ynode_get(root, "f"), &text, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(text, "");
	CU_ASSERT_EQUAL(ynode_string(ynode_get(root, "g"), &text, &e), ST_INPUT);
	expect_message(&e, "cfg.yaml:7:4: g: expected a text, got nothing");
	e = (struct error){0};
	CU_ASSERT_EQUAL(ynode_string(ynode_get(root, "h"), &text, &e), ST_INPUT);
	expect_message(&e, "cfg.yaml:8:4: h: expected a text, got a list");
	ydoc_destroy(doc);
}

static void test_error_places(void)
{
	struct ydoc *doc = parsed("a:\n  b: [7]\n");
	const struct ynode *b = ynode_get(ynode_get(ydoc_root(doc), "a"), "b");
	struct error e = {0};
	CU_ASSERT_EQUAL(ynode_error(b, &e, "no %s", "good"), ST_INPUT);
	expect_message(&e, "cfg.yaml:2:6: no good");
	e = (struct error){0};
	CU_ASSERT_EQUAL(ynode_error_key(b, &e, "unknown"), ST_INPUT);
	expect_message(&e, "cfg.yaml:2:3: unknown");
	e = (struct error){0};
	CU_ASSERT_EQUAL(ynode_error_key(b->child[0], &e, "unknown"), ST_INPUT);
	expect_message(&e, "cfg.yaml:2:7: unknown");
	ydoc_destroy(doc);
}

static void test_load(void)
{
	char path[] = "/tmp/stepsim-test-yaml-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, "a: 1\na: 2\n", 10), 10);
	close(fd);
	struct ydoc *doc = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL(ydoc_load(path, &doc, &e), ST_INPUT);
	CU_ASSERT_EQUAL(strncmp(e.text, path, strlen(path)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, ":2:1: a: duplicate key"));
	CU_ASSERT_PTR_NULL(doc);
	unlink(path);

	e = (struct error){0};
	CU_ASSERT_EQUAL(ydoc_load(path, &doc, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "No such file"));
	e = (struct error){0};
	CU_ASSERT_EQUAL(ydoc_load("/tmp", &doc, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/tmp"));
}

UNIT_MAIN("base: YAML", {"tree", test_tree}, {"empty documents", test_empty_documents}, {"forms", test_forms},
	{"traps", test_traps}, {"anchors", test_anchors}, {"bytes", test_bytes}, {"syntax", test_syntax},
	{"depth", test_depth}, {"many keys", test_many_keys}, {"integers", test_ints}, {"quantities", test_quantities},
	{"booleans and texts", test_bools_and_strings}, {"places of errors", test_error_places}, {"load", test_load})
