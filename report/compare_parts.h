/* The parts of a comparison that the text, the picture and the page share. */
#ifndef STEPSIM_REPORT_COMPARE_PARTS_H
#define STEPSIM_REPORT_COMPARE_PARTS_H

#include "base/table.h"
#include "report/chart.h"
#include "report/compare.h"

/* Build a table. The caller frees it with table_destroy, also after a failure. */
enum status compare_speed_table(const struct compare *c, struct table **out, struct error *e);
enum status compare_money_table(const struct compare *c, struct table **out, struct error *e);

/* Builds the table of batches with which fewer hosts reach the target, below the stated one of the same system. */
enum status compare_near_table(const struct compare *c, struct table **out, struct error *e);
bool compare_has_near(const struct compare *c); /* whether that table has rows */
void compare_near_title(FILE *out);

/* Prints one line without its end: the row that leads and by how much, or what is missing where nothing fits. The rows
 * are ranked. */
void compare_verdict(const struct compare *c, FILE *out);

/* Print lines: the title with the equal quantity, the tokens, the marks and the ranking, notes on rows, the sources. */
void compare_title(const struct compare *c, FILE *out);
void compare_tokens(const struct compare *c, FILE *out);
void compare_ranking(const struct compare *c, FILE *out);
void compare_notes(const struct compare *c, FILE *out);
void compare_sources(const struct compare *c, FILE *out);

extern const char *const compare_basis_words[BASIS_COUNT];

/* ---- compare_target.c: the single row of a prediction's target ---- */

/* Builds the table: what the target takes, and what each figure rests on. The caller frees it, also after a failure. */
enum status compare_target_table(const struct compare *c, struct table **out, struct error *e);
void compare_target_title(const struct compare *c, FILE *out);
/* Prints title, table and sources. */
enum status compare_target_text(const struct compare *c, FILE *out, struct error *e);
/* Returns its cost with all sources: a new reference, or NULL when out of memory. */
json_t *compare_target_json(const struct compare *c);

/* Writes an energy ("17.1 MWh"; "-": not known) to `buf` and returns it. */
char *compare_energy(char buf[QUANTITY_MAX], double kWh);

/* Builds a bar of days or USD with its interval for each row that fits. The caller frees it with compare_bars_free,
 * also after a failure. ST_INPUT if no row fits. */
struct compare_bars;
enum status compare_bars_of(const struct compare *c, enum compare_basis basis, struct compare_bars **out,
	const struct chart **chart, struct error *e);
void compare_bars_free(struct compare_bars *b); /* NULL-safe */

#endif
