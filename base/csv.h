/* Tables of comma-separated values: a header of column names, then rows (RFC 4180: quoted cells may hold commas, line
 * ends and doubled quotes). */
#ifndef STEPSIM_BASE_CSV_H
#define STEPSIM_BASE_CSV_H

#include <stddef.h>

#include "base/status.h"

struct csv {
	size_t columns, rows;
	char **name; /* of the columns */
	char **cell; /* row-major; never NULL */
	int *line;   /* by row: where it begins in the file, from 1 */
	char *text;  /* what name and cell point into */
	char path[512];
};

/* "-" is standard input. ST_INPUT with file:line: no header, a row with another number of cells than the header, a
 * quote that does not end, a column named twice. */
enum status csv_load(const char *path, struct csv *out, struct error *e);
/* The same from memory; `text` is taken over (malloc'ed, terminated). */
enum status csv_parse(char *text, size_t len, const char *name, struct csv *out, struct error *e);
void csv_free(struct csv *t);

#define CSV_NO_COLUMN ((size_t)-1)
size_t csv_column(const struct csv *t, const char *name); /* CSV_NO_COLUMN: there is none */
/* The cell, or "" where there is no such column. */
const char *csv_get(const struct csv *t, size_t row, const char *name);
/* ST_INPUT with file:line: a cell of one of these columns, ended by NULL, that is neither empty nor a plain number from
 * 0 on. Columns that are not there are fine. */
enum status csv_check_numbers(const struct csv *t, const char *const *columns, struct error *e);

#endif
