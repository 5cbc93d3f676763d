/* Quantities: what is accepted, what is refused and with which words, what is printed. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "tests/unit/harness.h"

static void report(bool good, const char *text, const char *got)
{
	if (!good)
		fprintf(stderr, "\n    case \"%s\": got %s", text, got);
	CU_ASSERT(good);
}

/* Each value is the double nearest to the written decimal: the comparison is exact. */
static void test_accepted(void)
{
	static const struct {
		const char *text;
		enum unit unit;
		double value;
	} cases[] = {
		{"0", UNIT_NONE, 0},
		{"1.5", UNIT_NONE, 1.5},
		{"-3", UNIT_NONE, -3},
		{"+3", UNIT_NONE, 3},
		{".5", UNIT_NONE, 0.5},
		{"5.", UNIT_NONE, 5},
		{"6.25e-2", UNIT_NONE, 0.0625},
		{"1E3", UNIT_NONE, 1000},
		{"4096", UNIT_BYTE, 4096},
		{"25MiB", UNIT_BYTE, 26214400},
		{"25 MiB", UNIT_BYTE, 26214400},
		{"25MB", UNIT_BYTE, 25e6},
		{"1kB", UNIT_BYTE, 1000},
		{"1KiB", UNIT_BYTE, 1024},
		{"2Kib", UNIT_BYTE, 256},
		{"8b", UNIT_BYTE, 1},
		{"1.5GiB", UNIT_BYTE, 1610612736},
		{"80GB", UNIT_BYTE, 80e9},
		{"3TiB", UNIT_BYTE, 3298534883328.},
		{"1PiB", UNIT_BYTE, 0x1p50},
		{"2PB", UNIT_BYTE, 2e15},
		{"1e3B", UNIT_BYTE, 1000},
		{"2", UNIT_SECOND, 2},
		{"2s", UNIT_SECOND, 2},
		{"50us", UNIT_SECOND, 50e-6},
		{"1.24ms", UNIT_SECOND, 1.24e-3},
		{"3ns", UNIT_SECOND, 3e-9},
		{"7ps", UNIT_SECOND, 7e-12},
		{"1.5min", UNIT_SECOND, 90},
		{"2h", UNIT_SECOND, 7200},
		{"0.5d", UNIT_SECOND, 43200},
		{"400Gb/s", UNIT_BYTE_PER_S, 50e9},
		{"400Gbps", UNIT_BYTE_PER_S, 50e9},
		{"3.35TB/s", UNIT_BYTE_PER_S, 3.35e12},
		{"900GBps", UNIT_BYTE_PER_S, 900e9},
		{"1MiB/s", UNIT_BYTE_PER_S, 1048576},
		{"1e9", UNIT_BYTE_PER_S, 1e9},
		{"8.2TFLOP", UNIT_FLOP, 8.2e12},
		{"989TFLOP/s", UNIT_FLOP_PER_S, 989e12},
		{"19.5TFLOPS", UNIT_FLOP_PER_S, 19.5e12},
		{"1PFLOP/s", UNIT_FLOP_PER_S, 1e15},
		{"1.98GHz", UNIT_HERTZ, 1.98e9},
		{"50Hz", UNIT_HERTZ, 50},
		{"700W", UNIT_WATT, 700},
		{"10.2kW", UNIT_WATT, 10200},
		{"2.5USD", UNIT_USD, 2.5},
		{"2kUSD", UNIT_USD, 2000},
		{"500k", UNIT_USD, 5e5},
		{"2M", UNIT_USD, 2e6},
		{"1.5 B", UNIT_USD, 1.5e9},
		{"1T", UNIT_USD, 1e12},
		{"4M", UNIT_TOKEN, 4e6},
		{"4Mi", UNIT_TOKEN, 4194304},
		{"1.5B", UNIT_TOKEN, 1.5e9},
		{"4194304", UNIT_TOKEN, 4194304},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		double value = NAN;
		enum status st = quantity_parse(cases[i].text, cases[i].unit, &value, &e);
		char got[64];
		snprintf(got, sizeof got, "%.17g", value);
		report(st == ST_OK && value == cases[i].value && e.status == ST_OK, cases[i].text, st ? e.text : got);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *text;
		enum unit unit;
		const char *says; /* must be in the message */
	} cases[] = {
		{"", UNIT_BYTE, "expected a size such as 25MiB"},
		{" ", UNIT_NONE, "expected a number"},
		{" 5", UNIT_NONE, "got \" 5\""},
		{"5 ", UNIT_NONE, "got \"5 \""},
		{"5 ", UNIT_BYTE, "got \"5 \""},
		{"12x", UNIT_NONE, "got \"12x\""},
		{"1.0zz", UNIT_NONE, "got \"1.0zz\""},
		{"1.0.0", UNIT_NONE, "expected a number"},
		{"--1", UNIT_NONE, "expected a number"},
		{"1,5", UNIT_NONE, "expected a number"},
		{"1_000", UNIT_NONE, "expected a number"},
		{"0x10", UNIT_NONE, "expected a number"},
		{".", UNIT_NONE, "expected a number"},
		{"e5", UNIT_NONE, "expected a number"},
		{"nan", UNIT_NONE, "expected a number"},
		{"inf", UNIT_SECOND, "expected a time"},
		{"-inf", UNIT_SECOND, "expected a time"},
		{"Infinity", UNIT_BYTE, "expected a size"},
		{"1e", UNIT_SECOND, "got \"1e\""},
		{"1e400", UNIT_NONE, "too large or too small"},
		{"1e308PiB", UNIT_BYTE, "too large or too small"},
		{"1e99999999999999999999", UNIT_NONE, "too large or too small"},
		{"1e-400", UNIT_NONE, "too large or too small"},
		{"5B", UNIT_NONE, "which is a size"},
		{"5%", UNIT_NONE, "no unit"},
		{"25MiB", UNIT_SECOND, "which is a size"},
		{"50us", UNIT_BYTE, "which is a time"},
		{"25MiB", UNIT_BYTE_PER_S, "which is a size"},
		{"400Gb/s", UNIT_BYTE, "which is a data rate"},
		{"989TFLOP", UNIT_FLOP_PER_S, "which is an amount of work"},
		{"700W", UNIT_USD, "which is a power"},
		{"2GB", UNIT_USD, "which is a size"},
		{"2kM", UNIT_USD, "k M B T alone"},
		{"2Mi", UNIT_USD, "k M B T alone"},
		{"2M", UNIT_FLOP, "got \"2M\""},
		{"25KB", UNIT_BYTE, "write k for 1000 or Ki for 1024"},
		{"25mB", UNIT_BYTE, "k M G T P or Ki Mi Gi Ti Pi"},
		{"25M", UNIT_BYTE, "got \"25M\""},
		{"25MiBx", UNIT_BYTE, "got \"25MiBx\""},
		{"25Mi B", UNIT_BYTE, "got \"25Mi B\""},
		{"1MiHz", UNIT_HERTZ, "Hz, with k M G T P"},
		{"1ks", UNIT_SECOND, "s ms us ns ps min h d"},
		{"5m", UNIT_SECOND, "s ms us ns ps min h d"},
		{"4Mtokens", UNIT_TOKEN, "k M B T or Ki Mi Gi"},
		{"4MiB", UNIT_TOKEN, "which is a size"},
		{"50US", UNIT_SECOND, "s ms us ns ps min h d"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		double value = 42;
		enum status st = quantity_parse(cases[i].text, cases[i].unit, &value, &e);
		report(st == ST_INPUT && e.status == ST_INPUT && strstr(e.text, cases[i].says) && value == 42,
			cases[i].text, e.text);
	}
	CU_ASSERT_EQUAL(quantity_parse("junk", UNIT_BYTE, &(double){0}, NULL), ST_INPUT);
}

/* The number is longer than any buffer of the parser, with and without being a number. */
static void test_long_text(void)
{
	char digits[5000];
	memset(digits, '1', sizeof digits - 1);
	digits[sizeof digits - 1] = '\0';
	struct error e = {0};
	double value;
	CU_ASSERT_EQUAL(quantity_parse(digits, UNIT_NONE, &value, &e), ST_INPUT);
	CU_ASSERT(strlen(e.text) < 200);
	memset(digits, 'x', sizeof digits - 1);
	e = (struct error){0};
	CU_ASSERT_EQUAL(quantity_parse(digits, UNIT_BYTE, &value, &e), ST_INPUT);
	CU_ASSERT(strlen(e.text) < 200);
}

static void test_printed(void)
{
	static const struct {
		double value;
		enum unit unit;
		const char *text;
	} cases[] = {
		{NAN, UNIT_SECOND, "-"},
		{0, UNIT_SECOND, "0 s"},
		{0, UNIT_NONE, "0"},
		{INFINITY, UNIT_BYTE, "inf B"},
		{-INFINITY, UNIT_NONE, "-inf"},
		{1.24e-3, UNIT_SECOND, "1.24 ms"},
		{-1.24e-3, UNIT_SECOND, "-1.24 ms"},
		{12.34e-6, UNIT_SECOND, "12.3 us"},
		{999.4e-6, UNIT_SECOND, "999 us"},
		{999.6e-6, UNIT_SECOND, "1.00 ms"},
		{59.9, UNIT_SECOND, "59.9 s"},
		{59.96, UNIT_SECOND, "60.0 s"},
		{90, UNIT_SECOND, "90.0 s"},
		{119.4, UNIT_SECOND, "119 s"},
		{119.6, UNIT_SECOND, "2.00 min"},
		{3599.9, UNIT_SECOND, "60.0 min"},
		{7199, UNIT_SECOND, "2.00 h"},
		{23.96 * 3600, UNIT_SECOND, "24.0 h"},
		{47.96 * 3600, UNIT_SECOND, "2.00 days"},
		{86400. * 1234, UNIT_SECOND, "1234 days"},
		{1e-15, UNIT_SECOND, "0.001 ps"},
		{8, UNIT_BYTE, "8 B"},
		{1000, UNIT_BYTE, "1000 B"},
		{1023, UNIT_BYTE, "1023 B"},
		{1024, UNIT_BYTE, "1.00 KiB"},
		{25 * 0x1p20, UNIT_BYTE, "25.0 MiB"},
		{1023.7 * 1024, UNIT_BYTE, "1.00 MiB"},
		{1010. * 1024, UNIT_BYTE, "1010 KiB"},
		{80e9, UNIT_BYTE, "74.5 GiB"},
		{371e9, UNIT_BYTE_PER_S, "371 GB/s"},
		{3.35e12, UNIT_BYTE_PER_S, "3.35 TB/s"},
		{9.996e9, UNIT_BYTE_PER_S, "10.0 GB/s"},
		{99.96e9, UNIT_BYTE_PER_S, "100 GB/s"},
		{8.2e12, UNIT_FLOP, "8.20 TFLOP"},
		{989e12, UNIT_FLOP_PER_S, "989 TFLOP/s"},
		{1.98e9, UNIT_HERTZ, "1.98 GHz"},
		{700, UNIT_WATT, "700 W"},
		{0.0123, UNIT_USD, "$ 0.0123"},
		{2.5, UNIT_NONE, "2.50"},
		{999.4, UNIT_NONE, "999"},
		{1234, UNIT_NONE, "1.23 k"},
		{8, UNIT_NONE, "8"},
		{29071, UNIT_NONE, "29.1 k"},
		{999600, UNIT_NONE, "1.00 M"},
		{8.03e9, UNIT_NONE, "8.03 B"},
		{15e12, UNIT_TOKEN, "15.0 T"},
		{0, UNIT_NONE, "0"},
		{0.00001234, UNIT_NONE, "0.0000123"},
		{6.88, UNIT_USD, "$ 6.88"},
		{264678, UNIT_USD, "$ 265 k"},
		{-2.5e6, UNIT_USD, "-$ 2.50 M"},
		{0, UNIT_USD, "$ 0"},
		{0, UNIT_SECOND, "0 s"},
		{1e30, UNIT_BYTE, "8.88e+14 PiB"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buf[QUANTITY_MAX];
		char *got = quantity_format(buf, cases[i].value, cases[i].unit);
		report(got == buf && strcmp(got, cases[i].text) == 0, cases[i].text, got);
	}
}

/* The ends of a range have one unit, that of their mean, where they are less than a factor of ten apart. */
static void test_ranges(void)
{
	static const struct {
		double low, high;
		enum unit unit;
		const char *text;
	} cases[] = {
		{1.42, 1.99, UNIT_SECOND, "1.42 s to 1.99 s"},
		{49.7, 68.4, UNIT_SECOND, "49.7 s to 68.4 s"},
		{32, 112.8, UNIT_SECOND, "32.0 s to 113 s"},
		{0.952, 1.1, UNIT_SECOND, "0.952 s to 1.10 s"},
		{0.1, 1, UNIT_SECOND, "100 ms to 1.00 s"},
		{0, 90, UNIT_SECOND, "0 s to 90.0 s"},
		{1e9, 2.5e9, UNIT_USD, "$ 1.00 B to $ 2.50 B"},
		{NAN, NAN, UNIT_SECOND, "- to -"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buf[QUANTITY_RANGE];
		char *got = quantity_format_range(buf, cases[i].low, cases[i].high, cases[i].unit);
		report(got == buf && strcmp(got, cases[i].text) == 0, cases[i].text, got);
	}
}

/* Printed quantities are read back to three digits and fit the buffer, for every unit over the whole range. */
static void test_round_trip(void)
{
	for (int unit = 0; unit < UNIT_COUNT_; unit++) {
		for (double x = 1e-14; x < 1e22; x *= 1.37) {
			char buf[QUANTITY_MAX];
			struct error e = {0};
			double back = NAN;
			quantity_format(buf, x, (enum unit)unit);
			CU_ASSERT(x > 1e15 || !strchr(buf, 'e')); /* no exponent */
			if (unit == UNIT_NONE || unit == UNIT_USD)
				continue; /* configs give plain numbers and the word USD */
			enum status st = quantity_parse(buf, (enum unit)unit, &back, &e);
			report(st == ST_OK && fabs(back / x - 1) < 5.1e-3 && strlen(buf) < QUANTITY_MAX, buf,
				st ? e.text : "another value");
		}
	}
	char buf[QUANTITY_MAX];
	CU_ASSERT(strlen(quantity_format(buf, -1.7976931348623157e308, UNIT_FLOP_PER_S)) < QUANTITY_MAX);
	char range[QUANTITY_RANGE];
	CU_ASSERT(strlen(quantity_format_range(range, -1.7976931348623157e308, -4.9406564584124654e-324,
			  UNIT_FLOP_PER_S)) < QUANTITY_RANGE);
	CU_ASSERT(strlen(quantity_format(buf, -4.9406564584124654e-324, UNIT_FLOP_PER_S)) < QUANTITY_MAX);
}

/* Files of the catalogue must say the unit, and the digits are those of the plain number. */
static void test_with_unit(void)
{
	struct error e = {0};
	double v = 0;
	CU_ASSERT_EQUAL(quantity_parse_with_unit("131.3us", UNIT_SECOND, &v, &e), ST_OK);
	CU_ASSERT_EQUAL(v, 0.0001313);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("35.33ms", UNIT_SECOND, &v, &e), ST_OK);
	CU_ASSERT_EQUAL(v, 0.03533);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("0.37", UNIT_NONE, &v, &e), ST_OK);
	CU_ASSERT_EQUAL(v, 0.37);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("5e-05", UNIT_SECOND, &v, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "expected a time with its unit such as 50us, got \"5e-05\"");
	CU_ASSERT_EQUAL(quantity_parse_with_unit("0", UNIT_BYTE, &v, NULL), ST_INPUT);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("2M", UNIT_USD, &v, NULL), ST_INPUT);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("2 M", UNIT_USD, &v, NULL), ST_INPUT);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("2 MUSD", UNIT_USD, &v, &e), ST_OK);
	CU_ASSERT_EQUAL(quantity_parse_with_unit("5GB", UNIT_BYTE_PER_S, &v, NULL), ST_INPUT);
}

UNIT_MAIN("base: quantities", {"accepted", test_accepted}, {"with their unit", test_with_unit},
	{"refused", test_refused}, {"long text", test_long_text}, {"printed", test_printed}, {"ranges", test_ranges},
	{"round trip", test_round_trip})
