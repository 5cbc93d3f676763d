/* The parts of a comparison that the text, the picture and the page share. */
#ifndef STEPSIM_REPORT_COMPARE_PARTS_H
#define STEPSIM_REPORT_COMPARE_PARTS_H

#include "base/table.h"
#include "report/chart.h"
#include "report/compare.h"

/* Each is freed with table_destroy, also when it fails. */
enum status compare_speed_table(const struct compare *c, struct table **out, struct error *e);
enum status compare_money_table(const struct compare *c, struct table **out, struct error *e);

/* Lines: what is equal; what the marks in the tables mean and who is ahead; notes on rows; where every number comes from. */
void compare_title(const struct compare *c, FILE *out);
void compare_tokens(const struct compare *c, FILE *out);
void compare_ranking(const struct compare *c, FILE *out);
void compare_notes(const struct compare *c, FILE *out);
void compare_sources(const struct compare *c, FILE *out);

extern const char *const compare_basis_words[BASIS_COUNT];

/* Days or USD of each row that fits, a bar each with its interval. Freed with compare_bars_free, also when it fails. ST_INPUT when there is none. */
struct compare_bars;
enum status compare_bars_of(const struct compare *c, enum compare_basis basis, struct compare_bars **out, const struct chart **chart, struct error *e);
void compare_bars_free(struct compare_bars *b); /* NULL-safe */

#endif
