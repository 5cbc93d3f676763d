/* Reading a catalogue file by a table of its keys. Private to topology/catalogue/.
 *
 * A text is a plain value; every number is a mapping {value, source} with the place that the figure comes from, and
 * `unverified: true` where it rests on memory or on a sister part. Sections nest one deep: the path "matrix.bf16" is
 * the key bf16 of the section matrix. Yes or no is written as a number is: {value: false, source}.
 */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_CATALOGUE_H
#define STEPSIM_TOPOLOGY_CATALOGUE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/quantity.h"
#include "base/status.h"

enum catalogue_type {
	CATALOGUE_TEXT /* char[size] */,
	CATALOGUE_DOUBLE,
	CATALOGUE_INT64,
	CATALOGUE_BYTES /* uint64_t */,
	CATALOGUE_BOOL,
	CATALOGUE_FIGURE /* struct catalogue_figure */
};

/* A number that no step time depends on (a price, a power) keeps its source and its own mark: it does not mark the
 * whole file. */
struct catalogue_figure {
	double value;
	bool unverified;
	char source[192]; /* cut where it is longer */
};

struct catalogue_key {
	const char *path;
	enum catalogue_type type;
	bool required;
	enum unit unit;
	double min, max;
	size_t offset, size; /* in the struct that is filled; texts: of the array */
};

/* Fills `out` from a file of the folder `kind` (base/sourced.h); `unverified` is set (never cleared) when a number, or
 * the file as a whole, says so. ST_INPUT with position for unknown keys (with the nearest), missing keys and bad
 * values. */
enum status catalogue_read(const char *kind, const char *path, const struct catalogue_key *keys, size_t n, void *out,
	bool *unverified, struct error *e);

/* The path of configs/<kind>/<id>.yaml, or ST_INPUT naming the nearest id when there is no such file. */
enum status catalogue_find(const char *kind, const char *what, const char *id, char *path, struct error *e);

#endif
