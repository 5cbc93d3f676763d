#include "base/quantity.h"

#include "base/array.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 128

/* A factor 10^decimal * times. The decimal part is added to the number's own exponent before it is converted, so that
 * "3.35TB/s" is the double nearest to 3.35e12 and "50us" the one nearest to 5e-5. */
struct scale {
	const char *text;
	int decimal;
	double times;
};

static const struct scale prefixes[] = {
	{"", 0, 1},
	{"k", 3, 1},
	{"M", 6, 1},
	{"G", 9, 1},
	{"T", 12, 1},
	{"P", 15, 1},
	{"Ki", 0, 0x1p10},
	{"Mi", 0, 0x1p20},
	{"Gi", 0, 0x1p30},
	{"Ti", 0, 0x1p40},
	{"Pi", 0, 0x1p50},
};
#define DECIMAL_PREFIXES 6 /* of the list above: the binary ones are for bytes and bits only */

static const struct scale times_s[] = {
	{"s", 0, 1},
	{"ms", -3, 1},
	{"us", -6, 1},
	{"ns", -9, 1},
	{"ps", -12, 1},
	{"min", 0, 60},
	{"minutes", 0, 60},
	{"h", 0, 3600},
	{"hour", 0, 3600},
	{"hours", 0, 3600},
	{"d", 0, 86400},
	{"day", 0, 86400},
	{"days", 0, 86400},
	{"w", 0, 604800},
	{"week", 0, 604800},
	{"weeks", 0, 604800},
};

static const struct scale counts[] = {
	{"k", 3, 1},
	{"K", 3, 1},
	{"M", 6, 1},
	{"B", 9, 1},
	{"G", 9, 1},
	{"T", 12, 1},
	{"P", 15, 1},
	{"Ki", 0, 0x1p10},
	{"Mi", 0, 0x1p20},
	{"Gi", 0, 0x1p30},
};

/* One spelling of a unit behind its prefix, and its factor. */
struct suffix {
	const char *text;
	double times;
};

#define SUFFIXES_MAX 4

static const struct unit_row {
	enum unit unit;
	const char *name; /* in messages */
	const char *example;
	const char *accepted;
	const char *printed;
	struct suffix suffix[SUFFIXES_MAX];
	bool binary;
} units[] = {
	{UNIT_NONE, "a number", "1.5", "no unit", "", {{NULL, 0}}, false},
	{UNIT_BYTE, "a size", "25MiB", "B or b, with k M G T P or Ki Mi Gi Ti Pi", "B", {{"B", 1}, {"b", 0.125}}, true},
	{UNIT_SECOND, "a time", "50us", "s ms us ns ps min h d w (days, weeks)", "s", {{NULL, 0}}, false},
	{UNIT_BYTE_PER_S, "a data rate", "400Gb/s", "B/s or b/s, with k M G T P or Ki Mi Gi Ti Pi", "B/s",
		{{"B/s", 1}, {"b/s", 0.125}, {"Bps", 1}, {"bps", 0.125}}, true},
	{UNIT_FLOP, "an amount of work", "8.2TFLOP", "FLOP, with k M G T P", "FLOP", {{"FLOP", 1}}, false},
	{UNIT_FLOP_PER_S, "a compute rate", "989TFLOP/s", "FLOP/s or FLOPS, with k M G T P", "FLOP/s",
		{{"FLOP/s", 1}, {"FLOPS", 1}}, false},
	{UNIT_HERTZ, "a frequency", "1.98GHz", "Hz, with k M G T P", "Hz", {{"Hz", 1}}, false},
	{UNIT_WATT, "a power", "700W", "W, with k M G T P", "W", {{"W", 1}}, false},
	{UNIT_USD, "a price", "2.5USD", "USD, with k M G T P; k M B T alone", "", {{"USD", 1}}, false},
	{UNIT_TOKEN, "a number of tokens", "4M", "k M B T or Ki Mi Gi", "", {{NULL, 0}}, false},
};
static_assert(COUNT(units) == UNIT_COUNT_, "one row for each unit");

/* Finds what `text`, the part behind the number, multiplies by. */
static bool find_scale(const char *text, enum unit unit, struct scale *found)
{
	if (!*text) {
		*found = prefixes[0];
		return true;
	}
	if (unit == UNIT_SECOND || unit == UNIT_TOKEN) {
		const struct scale *words = unit == UNIT_SECOND ? times_s : counts;
		const size_t n = unit == UNIT_SECOND ? COUNT(times_s) : COUNT(counts);
		for (size_t i = 0; i < n; i++)
			if (strcmp(text, words[i].text) == 0) {
				*found = words[i];
				return true;
			}
		return false;
	}
	const struct unit_row *u = &units[unit];
	size_t n_prefixes = u->binary ? COUNT(prefixes) : DECIMAL_PREFIXES;
	for (size_t i = 0; i < n_prefixes; i++) {
		size_t len = strlen(prefixes[i].text);
		if (strncmp(text, prefixes[i].text, len) != 0)
			continue;
		for (size_t j = 0; j < SUFFIXES_MAX && u->suffix[j].text; j++)
			if (strcmp(text + len, u->suffix[j].text) == 0) {
				*found = prefixes[i];
				found->times *= u->suffix[j].times;
				return true;
			}
	}
	return false;
}

/* Finds what an amount of money without its unit multiplies by. */
static bool find_multiplier(const char *text, enum unit unit, struct scale *found)
{
	return unit == UNIT_USD && !strchr(text, 'i') && find_scale(text, UNIT_TOKEN, found);
}

/* The length of [+-]digits[.digits][e[+-]digits] at the start of `text`, 0 if there is none. By hand, because strtod
 * also takes "inf", "nan" and "0x1p3". `mantissa` is the length without the exponent; "5e" and "5em" have none: the
 * letter belongs to the unit. */
static size_t number_length(const char *text, size_t *mantissa)
{
	const char *p = text;
	size_t digits = 0;
	if (*p == '+' || *p == '-')
		p++;
	for (; isdigit((unsigned char)*p); p++)
		digits++;
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++)
			digits++;
	if (digits == 0)
		return 0;
	*mantissa = (size_t)(p - text);
	if (*p == 'e' || *p == 'E') {
		const char *q = p + 1;
		if (*q == '+' || *q == '-')
			q++;
		if (isdigit((unsigned char)*q)) {
			while (isdigit((unsigned char)*q))
				q++;
			p = q;
		}
	}
	return (size_t)(p - text);
}

static enum status refuse(const char *text, const struct unit_row *want, const char *behind, struct error *e)
{
	if (behind && behind[0] == 'K' && behind[1] && behind[1] != 'i')
		return error_set(e, ST_INPUT, "expected %s such as %s, got \"%.60s\" (write k for 1000 or Ki for 1024)",
			want->name, want->example, text);
	for (size_t i = 0; behind && *behind && i < COUNT(units); i++) {
		struct scale other;
		if (units[i].unit != UNIT_TOKEN && find_scale(behind, units[i].unit, &other))
			return error_set(e, ST_INPUT, "expected %s such as %s, got \"%.60s\", which is %s", want->name,
				want->example, text, units[i].name);
	}
	return error_set(e, ST_INPUT, "expected %s such as %s (%s), got \"%.60s\"", want->name, want->example,
		want->accepted, text);
}

#define EXACT_DIGITS 15 /* a double holds every whole number of so many digits */

static double whole_number(const char *text, size_t digits)
{
	double sum = 0;
	for (size_t i = 0; i < digits; i++)
		sum = 10 * sum + (text[i] - '0');
	return sum;
}

/* `text` is a number of `len` characters; false when it does not fit a double. */
static bool convert(const char *text, size_t len, size_t mantissa, const struct scale *scale, double *value)
{
	char literal[NUMBER_MAX + 32];
	if (len == mantissa && mantissa <= EXACT_DIGITS && scale->decimal == 0 && scale->times == 1 &&
		strspn(text, "0123456789") >= mantissa) {
		*value = whole_number(text, mantissa);
		return true;
	}
	long exponent = len > mantissa ? strtol(text + mantissa + 1, NULL, 10)
	                               : 0; /* saturates, which is as far out of range */
	if (exponent > 100000 || exponent < -100000)
		exponent = exponent > 0 ? 100000 : -100000;
	snprintf(literal, sizeof literal, "%.*se%ld", (int)mantissa, text, exponent + scale->decimal);
	double v = strtod(literal, NULL) * scale->times;
	bool lost = v == 0 && strcspn(text, "123456789") < mantissa; /* rounded to nothing */
	if (!isfinite(v) || lost)
		return false;
	*value = v;
	return true;
}

enum status quantity_parse(const char *text, enum unit unit, double *value, struct error *e)
{
	const struct unit_row *want = &units[unit];
	size_t mantissa = 0, len = number_length(text, &mantissa);
	if (len == 0)
		return refuse(text, want, NULL, e);
	const char *behind = text + len;
	while (*behind == ' ')
		behind++;
	struct scale scale;
	if ((behind != text + len && !*behind) ||
		!(find_scale(behind, unit, &scale) || find_multiplier(behind, unit, &scale)))
		return refuse(text, want, behind, e);
	if (len > NUMBER_MAX || !convert(text, len, mantissa, &scale, value))
		return error_set(e, ST_INPUT, "expected %s, got \"%.60s\", which is too large or too small", want->name,
			text);
	return ST_OK;
}

enum status quantity_parse_with_unit(const char *text, enum unit unit, double *value, struct error *e)
{
	size_t mantissa = 0, len = number_length(text, &mantissa);
	const char *behind = text + len + strspn(text + len, " ");
	struct scale bare;
	if (unit != UNIT_NONE && len > 0 && (!text[len] || find_multiplier(behind, unit, &bare)))
		return error_set(e, ST_INPUT, "expected %s with its unit such as %s, got \"%.60s\"", units[unit].name,
			units[unit].example, text);
	return quantity_parse(text, unit, value, e);
}

/* ---- printing ---- */

#define NEAR_RANGE 10 /* between ends of a range that are printed in one unit */

struct step {
	double factor;
	const char *prefix; /* the whole unit, for times */
};

/* The letters of people: a billion is B. */
static const struct step steps_count[] = {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
static const struct step steps_decimal[] = {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}};
static const struct step steps_binary[] = {{1, ""}, {0x1p10, "Ki"}, {0x1p20, "Mi"}, {0x1p30, "Gi"}, {0x1p40, "Ti"},
	{0x1p50, "Pi"}};
static const struct step steps_time[] = {{1e-12, "ps"}, {1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {60, "min"},
	{3600, "h"}, {86400, "days"}};

/* Three significant digits of a positive number. The exponent form is left to what no step is near. */
static void format_digits(char *buf, size_t size, double x)
{
	if (x >= 1e12)
		snprintf(buf, size, "%.3g", x);
	else if (x < 1e-4)
		snprintf(buf, size, "%.*f", x < 1e-15 ? 0 : 2 - (int)floor(log10(x)), x);
	else if (x >= 99.95)
		snprintf(buf, size, "%.0f", x);
	else if (x >= 9.995)
		snprintf(buf, size, "%.1f", x);
	else if (x >= 0.9995)
		snprintf(buf, size, "%.2f", x);
	else
		snprintf(buf, size, "%.3g", x);
}

static const struct steps {
	const struct step *at;
	size_t n;
	double least; /* the least value that is printed in steps above 1 */
} steps_of[UNIT_COUNT_] = {
	[UNIT_NONE] = {steps_count, COUNT(steps_count), 1},
	[UNIT_BYTE] = {steps_binary, COUNT(steps_binary), 1},
	/* 90 s are easier to read than 1.5 minutes: the smaller unit goes on up to two of the larger. */
	[UNIT_SECOND] = {steps_time, COUNT(steps_time), 2},
	[UNIT_BYTE_PER_S] = {steps_decimal, COUNT(steps_decimal), 1},
	[UNIT_FLOP] = {steps_decimal, COUNT(steps_decimal), 1},
	[UNIT_FLOP_PER_S] = {steps_decimal, COUNT(steps_decimal), 1},
	[UNIT_HERTZ] = {steps_decimal, COUNT(steps_decimal), 1},
	[UNIT_WATT] = {steps_decimal, COUNT(steps_decimal), 1},
	[UNIT_USD] = {steps_count, COUNT(steps_count), 1},
	[UNIT_TOKEN] = {steps_count, COUNT(steps_count), 1},
};

static double least_of(const struct steps *steps, const struct step *step)
{
	return step->factor > 1 ? steps->least : 1;
}

/* The largest step that the value reaches once rounded to three digits: 999.6 us is printed as 1.00 ms. */
static const struct step *fitting_step(const struct steps *steps, double x)
{
	const struct step *fit = &steps->at[0];
	for (size_t i = 1; i < steps->n; i++) {
		const double below = steps->at[i - 1].factor;
		/* the first value of this step in the unit below it: 120, 48, 1000 or 1024 */
		const double first = steps->at[i].factor * least_of(steps, &steps->at[i]) / below;
		const double half_digit = first > 99.95 ? 0.5 : 0.05; /* of the last digit printed just below it */
		if (x >= below * (first - half_digit))
			fit = &steps->at[i];
	}
	return fit;
}

/* Formats a value in `step`, one of the unit's steps; NULL: in the one that fits. */
static char *format_in(char buf[QUANTITY_MAX], double value, enum unit unit, const struct step *step)
{
	if (isnan(value)) {
		strcpy(buf, "-");
		return buf;
	}
	const char *sign = value < 0 ? "-" : "", *before = unit == UNIT_USD ? "$ " : "";
	const char *printed = unit == UNIT_SECOND ? "" : units[unit].printed;
	double x = fabs(value);
	char digits[24];
	if (x == 0 || isinf(x)) {
		printed = units[unit].printed; /* zero seconds have a unit, too */
		snprintf(buf, QUANTITY_MAX, "%s%s%s%s%s", sign, before, x == 0 ? "0" : "inf", *printed ? " " : "",
			printed);
		return buf;
	}
	const bool fits = !step;
	if (fits)
		step = fitting_step(&steps_of[unit], x);
	double scaled = x / step->factor;
	if (fits && step != steps_of[unit].at)
		scaled = fmax(scaled,
			least_of(&steps_of[unit], step)); /* it was rounded up to this step: 119.8 s is 2.00 min */
	if ((unit == UNIT_BYTE || unit == UNIT_NONE) && step->factor == 1 && scaled == floor(scaled)) /* whole: "8 B" */
		snprintf(digits, sizeof digits, "%.0f", scaled);
	else
		format_digits(digits, sizeof digits, scaled);
	snprintf(buf, QUANTITY_MAX, "%s%s%s%s%s%s", sign, before, digits, *step->prefix || *printed ? " " : "",
		step->prefix, printed);
	return buf;
}

char *quantity_format(char buf[QUANTITY_MAX], double value, enum unit unit)
{
	return format_in(buf, value, unit, NULL);
}

char *quantity_format_range(char buf[QUANTITY_RANGE], double low, double high, enum unit unit)
{
	char a[QUANTITY_MAX], b[QUANTITY_MAX];
	const bool near = low > 0 && high >= low && high < NEAR_RANGE * low;
	const struct step *step = near ? fitting_step(&steps_of[unit], sqrt(low * high)) : NULL;
	format_in(a, low, unit, step);
	format_in(b, high, unit, step);
	snprintf(buf, QUANTITY_RANGE, "%s to %s", a, b);
	return buf;
}
