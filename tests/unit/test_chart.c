/* Tests charts as SVG: labels that meet nothing, axes close around the points, hollow points, texts that are cut. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/svg.h"
#include "report/chart.h"
#include "report/chart_labels.h"

#define DOTS 9
#define LETTERS_PX 11 /* height */

static const struct chart_box frame = {0, 0, 400, 200};

/* Writes to `at` where the texts stand (their middles, and their lowest pixels), and returns how many. */
static size_t places(const struct chart_label *label, size_t n, double at[][2])
{
	char *svg = NULL;
	size_t len, found = 0;
	FILE *out = open_memstream(&svg, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	chart_labels_write(label, n, frame, out);
	fclose(out);
	for (const char *p = svg; (p = strstr(p, "class=\"label\"")); p++, found++)
		CU_ASSERT_EQUAL(sscanf(p, "class=\"label\" x=\"%lf\" y=\"%lf\"", &at[found][0], &at[found][1]), 2);
	free(svg);
	return found;
}

/* Nine dots within 8 px of each other: every label has a place of its own, off all dots. */
static void test_labels_apart(void)
{
	struct chart_label label[DOTS];
	double at[DOTS][2];
	const double half = svg_width("12") / 2;
	for (size_t i = 0; i < DOTS; i++)
		label[i] = (struct chart_label){200 + (double)(i % 3) * 4, 100 + (double)(i / 3) * 4, "12"};
	CU_ASSERT_EQUAL_FATAL(places(label, DOTS, at), DOTS);
	for (size_t i = 0; i < DOTS; i++) {
		for (size_t k = 0; k < i; k++)
			CU_ASSERT(fabs(at[i][0] - at[k][0]) >= 2 * half - 0.2 ||
				  fabs(at[i][1] - at[k][1]) >= LETTERS_PX - 0.2);
		for (size_t k = 0; k < DOTS; k++)
			CU_ASSERT(fabs(at[i][0] - label[k].x) > half || fabs(at[i][1] - 5 - label[k].y) > 5);
	}
}

/* Beside the right edge a label stands on the left; where a frame has no room it is left out. */
static void test_labels_inside(void)
{
	const struct chart_label edge = {398, 100, "config"},
				 wide = {200, 100,
					 "a label that is wider than this frame, as wide as that may be, "
					 "which has 400 px and no more"};
	double at[1][2];
	CU_ASSERT_EQUAL_FATAL(places(&edge, 1, at), 1);
	CU_ASSERT(at[0][0] + svg_width("config") / 2 <= 398);
	CU_ASSERT_EQUAL(places(&wide, 1, at), 0);
}

static char *drawn(const struct chart *c)
{
	char *svg = NULL;
	size_t len;
	FILE *out = open_memstream(&svg, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	chart_write(c, out);
	fclose(out);
	return svg;
}

static double y_of(const char *svg, size_t dot)
{
	double y = NAN;
	for (const char *p = svg; (p = strstr(p, "cy=\"")); p++)
		if (dot-- == 0)
			sscanf(p, "cy=\"%lf\"", &y);
	return y;
}

/* 15 s and 16 s: from 0 they lie within 6 % of the height, close they take more than half of it. */
static void test_close(void)
{
	const struct chart_point at[] = {{.x = 1, .y = 15, .low = NAN, .high = NAN, .label = "1"},
		{.x = 2, .y = 16, .low = NAN, .high = NAN, .label = "2"}};
	const struct chart_line line = {.name = "plans", .at = at, .n = 2, .dots = true};
	struct chart c = {.title = "t", .x_name = "x", .y_name = "y", .y_unit = UNIT_SECOND, .line = &line, .lines = 1};
	char *whole = drawn(&c);
	c.close = true;
	char *near = drawn(&c);
	CU_ASSERT_PTR_NOT_NULL(strstr(whole, ">0 s</text>"));
	CU_ASSERT_PTR_NULL(strstr(near, ">0 s</text>"));
	CU_ASSERT(y_of(whole, 0) - y_of(whole, 1) < 20);
	CU_ASSERT(y_of(near, 0) - y_of(near, 1) > 180);
	CU_ASSERT_PTR_NOT_NULL(strstr(near, "<title>1, 1: 15.0 s</title>"));
	free(whole);
	free(near);
}

static void test_hollow(void)
{
	const struct chart_point at[] = {{.x = 0, .y = 1, .low = NAN, .high = NAN, .hollow = true},
		{.x = 1, .y = 2, .low = NAN, .high = NAN}};
	static const char *const words[] =
		{"parallel.strategy of sixty letters, which one axis cannot hold in half of it", "b"};
	const struct chart_line line = {.name = "", .at = at, .n = 2};
	const struct chart c = {.title = "t",
		.x_name = "x",
		.y_name = "y",
		.x_words = words,
		.n_words = 2,
		.hollow = "does not fit",
		.line = &line,
		.lines = 1};
	char *svg = drawn(&c);
	CU_ASSERT_PTR_NOT_NULL(strstr(svg, "class=\"hollow\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(svg, ": 1, does not fit</title>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(svg, "class=\"key\"")); /* one line alone has no other key */
	CU_ASSERT_PTR_NOT_NULL(strstr(svg, "..<title>parallel.strategy of sixty")); /* cut, whole for the pointer */
	free(svg);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* Names that fit beside each other lie, others lean, whole. A gap of a line is one of its band. */
static void test_words(void)
{
	const struct chart_point at[] = {{.x = 0, .y = 2, .low = 1, .high = 3}, {.x = 1, .y = 2, .low = 1, .high = 3},
		{.x = 2, .y = NAN, .low = NAN, .high = NAN}, {.x = 3, .y = 2, .low = 1, .high = 3},
		{.x = 4, .y = 2, .low = 1, .high = 3}};
	static const char *const words[] = {"azure-nd-h100-v5", "azure-nd-a100-v4", "dgx-h100", "dgx-h200", "aws-p4de"},
				 *const few[] = {"a", "b", "c", "d", "e"};
	const struct chart_line line = {.name = "", .at = at, .n = 5};
	struct chart c =
		{.title = "t", .x_name = "x", .y_name = "y", .x_words = words, .n_words = 5, .line = &line, .lines = 1};
	char *leaning = drawn(&c);
	c.x_words = few;
	char *lying = drawn(&c);
	CU_ASSERT_EQUAL(count(leaning, "rotate("), 5);
	CU_ASSERT_PTR_NOT_NULL(strstr(leaning, ">azure-nd-a100-v4</text>"));
	CU_ASSERT_EQUAL(count(lying, "rotate("), 0);
	CU_ASSERT_EQUAL(count(lying, "<polygon class=\"band\""), 2);
	free(leaning);
	free(lying);
}

UNIT_MAIN("chart", {"labels meet nothing", test_labels_apart}, {"labels stay inside", test_labels_inside},
	{"close axes", test_close}, {"hollow points, cut words", test_hollow}, {"names of x, gaps", test_words})
