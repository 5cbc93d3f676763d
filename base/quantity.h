/* Quantities with units: "25MiB", "400Gb/s", "3.35TB/s", "50us", "989TFLOP/s".
 *
 * Bits and prefixes exist only here, in the parser and the printer; the program holds seconds, bytes, FLOP and rates of
 * them. k, M, G, T, P are powers of 1000; Ki, Mi, Gi, Ti, Pi powers of 1024. `b` is a bit, `B` a byte. A number without
 * a unit is in base units (bytes, seconds, ...). Accepted spellings: B, b (bytes); s, ms, us, ns, ps, min, h, d, w
 * and the words minutes, hours, days, weeks (seconds); B/s, b/s, Bps, bps (rates); FLOP, FLOP/s (also FLOPS); Hz; W;
 * USD. Money also takes k M B T alone.
 */
#ifndef STEPSIM_BASE_QUANTITY_H
#define STEPSIM_BASE_QUANTITY_H

#include "base/status.h"

enum unit {
	UNIT_NONE, /* a plain number: any letter behind it is an error */
	UNIT_BYTE,
	UNIT_SECOND,
	UNIT_BYTE_PER_S,
	UNIT_FLOP,
	UNIT_FLOP_PER_S,
	UNIT_HERTZ,
	UNIT_WATT,
	UNIT_USD,
	UNIT_TOKEN, /* a count: k M B T, Ki Mi Gi, and no word behind */
	UNIT_COUNT_
};

/* Parses the whole of `text`; ST_INPUT with what is wrong and what is accepted otherwise (empty, trailing junk, wrong
 * dimension, NaN, infinity, overflow). */
enum status quantity_parse(const char *text, enum unit unit, double *value, struct error *e);

/* The same, but a number without its unit is refused, zero too (UNIT_NONE has none to give): files of the catalogue. */
enum status quantity_parse_with_unit(const char *text, enum unit unit, double *value, struct error *e);

/* Three significant digits with the fitting prefix: the one form of numbers for people, without exponents ("1.24 ms",
 * "25.0 days", "25.0 MiB", "371 GB/s", "$ 6.88"); sizes in powers of 1024, rates of 1000. Numbers without a unit,
 * tokens and money have the letters k, M, B and T: "29.1 k", "8.03 B", "$ 265 k". Writes to `buf` (at least
 * QUANTITY_MAX) and returns it. NaN prints as "-". */
#define QUANTITY_MAX 32
char *quantity_format(char buf[QUANTITY_MAX], double value, enum unit unit);

/* "49.7 s to 68.4 s": both ends in the unit that fits their geometric mean, unless they lie far apart. Returns buf. */
#define QUANTITY_RANGE (2 * QUANTITY_MAX + 4)
char *quantity_format_range(char buf[QUANTITY_RANGE], double low, double high, enum unit unit);

#endif
