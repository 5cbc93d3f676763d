#include "tests/unit/harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/csv.h"

static struct error error;

static enum status parse(const char *text, struct csv *t)
{
	error = (struct error){0};
	return csv_parse(strdup(text), strlen(text), "t.csv", t, &error);
}

static void test_cells(void)
{
	struct csv t;
	CU_ASSERT_EQUAL_FATAL(parse("id,note,x\r\na,\"one, \"\"two\"\"\nthree\",1\n\nb,,2", &t), ST_OK);
	CU_ASSERT_EQUAL(t.columns, 3);
	CU_ASSERT_EQUAL(t.rows, 2);
	CU_ASSERT_STRING_EQUAL(csv_get(&t, 0, "note"), "one, \"two\"\nthree");
	CU_ASSERT_STRING_EQUAL(csv_get(&t, 1, "note"), "");
	CU_ASSERT_STRING_EQUAL(csv_get(&t, 1, "x"), "2");
	CU_ASSERT_STRING_EQUAL(csv_get(&t, 1, "y"), "");
	CU_ASSERT_EQUAL(csv_column(&t, "y"), CSV_NO_COLUMN);
	CU_ASSERT_EQUAL(t.line[0], 2);
	CU_ASSERT_EQUAL(t.line[1], 5);
	csv_free(&t);
}

static void test_header_alone(void)
{
	struct csv t;
	CU_ASSERT_EQUAL_FATAL(parse("id\n", &t), ST_OK);
	CU_ASSERT_EQUAL(t.rows, 0);
	csv_free(&t);
}

static void test_wrong(void)
{
	static const char *const texts[][2] = {
		{"", "t.csv:1: no header"},
		{"a,b\n1\n", "t.csv:2: 1 cells in this row, 2 columns in the header"},
		{"a,b\n1,2\n1,2,3\n", "t.csv:3: 3 cells in this row, 2 columns in the header"},
		{"a\n\"open\n\n", "t.csv:2: a quote that does not end"},
		{"a,b,a\n", "t.csv:1: the column a is there twice"},
	};
	struct csv t;
	for (size_t i = 0; i < COUNT(texts); i++) {
		CU_ASSERT_EQUAL(parse(texts[i][0], &t), ST_INPUT);
		CU_ASSERT_STRING_EQUAL(error.text, texts[i][1]);
	}
	char *zero = calloc(1, 4);
	memcpy(zero, "a\0b", 3);
	CU_ASSERT_EQUAL(csv_parse(zero, 3, "t.csv", &t, &error), ST_INPUT);
}

static void test_numbers(void)
{
	static const char *const columns[] = {"n", "none", NULL}, *const wrong[] = {"abc", "-1", "nan", "inf", "1,5",
									  "0x10", "16 s"};
	struct csv t;
	CU_ASSERT_EQUAL_FATAL(parse("n,word\n1.5e3,x\n,y\n0,z\n", &t), ST_OK);
	CU_ASSERT_EQUAL(csv_check_numbers(&t, columns, &error), ST_OK);
	csv_free(&t);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		char text[64], want[128];
		snprintf(text, sizeof text, "n\n1\n\"%s\"\n", wrong[i]);
		snprintf(want, sizeof want, "t.csv:3: n: expected a number or nothing, got \"%s\"", wrong[i]);
		CU_ASSERT_EQUAL_FATAL(parse(text, &t), ST_OK);
		error = (struct error){ST_OK, ""};
		CU_ASSERT_EQUAL(csv_check_numbers(&t, columns, &error), ST_INPUT);
		CU_ASSERT_STRING_EQUAL(error.text, want);
		csv_free(&t);
	}
}

UNIT_MAIN("csv", {"numbers", test_numbers}, {"cells", test_cells}, {"a header alone", test_header_alone},
	{"what is wrong", test_wrong})
