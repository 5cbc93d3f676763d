/* Tables, as text and as HTML: columns aligned, numbers right, a rule under the header. UTF-8 cells count as their
 * characters. */
#ifndef STEPSIM_BASE_TABLE_H
#define STEPSIM_BASE_TABLE_H

#include <stdio.h>

#include "base/status.h"

struct table;

/* `columns`: header texts separated by '|'; a leading '<' makes the column left-aligned, default right. */
struct table *table_create(const char *columns); /* NULL when out of memory */
void table_destroy(struct table *t);             /* NULL-safe */

/* Adds a row: cells separated by '|' in the formatted text; missing cells are empty. A row "-" is a rule. */
enum status table_row(struct table *t, struct error *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Prints lines of at most `width` characters. Of a wider table the last left-aligned column breaks at words; where that
 * is not enough, a row goes on in an indented next line. No cell of another column is cut. table_print takes the width
 * of `out` (base/wrap.h). */
void table_print_within(const struct table *t, size_t width, FILE *out);
void table_print(const struct table *t, FILE *out);
/* The same as HTML: a cell that stands alone behind a rule becomes a heading of the rows under it, blanks before a text
 * become room. */
void table_html(const struct table *t, FILE *out);

#endif
