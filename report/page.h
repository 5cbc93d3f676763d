/* A page that opens offline: the style (report/page/page.css), tables and charts that all commands' pages share. */
#ifndef STEPSIM_REPORT_PAGE_H
#define STEPSIM_REPORT_PAGE_H

#include <stdio.h>

#include "base/table.h"
#include "report/chart.h"

struct page {
	FILE *out; /* sections go here, as HTML */
	char *text;
	size_t len;
};

/* Writes the page up to its body. `title` (of the window) is text, as is the heading that `verdict` prints; with NULL
 * as verdict the caller writes its own heading. */
enum status page_open(struct page *p, const char *title, void (*verdict)(const void *of, FILE *out), const void *of,
	struct error *e);
/* Add a heading or a paragraph; texts are escaped. */
void page_section(struct page *p, const char *heading);
void page_paragraph(struct page *p, const char *look /* "", "dim", "warning" */, const char *text);
/* Adds each line that `write` prints as a paragraph. */
enum status page_lines(struct page *p, const char *look, void (*write)(const void *of, FILE *out), const void *of,
	struct error *e);
void page_table(struct page *p, const struct table *t);
void page_chart(struct page *p, const struct chart *c);
/* Adds a block that is closed until a reader opens it, and open in print. */
void page_details(struct page *p, const char *summary, const char *text);
/* Ends the page, writes it ("-": standard output) if st is ST_OK, and frees it in any case. Returns st or the failure
 * of writing. */
enum status page_close(struct page *p, const char *path, enum status st, struct error *e);

#endif
