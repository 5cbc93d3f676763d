/* A page that opens offline: what all of them share (report/page/page.css, tables, charts), so that a command's page is its sections alone. */
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

/* The page up to its body. `title` of the window and `verdict`, the heading, are text; verdict may be NULL, where the caller writes its own. */
enum status page_open(struct page *p, const char *title, const char *verdict, struct error *e);
/* Texts are escaped. */
void page_section(struct page *p, const char *heading);
void page_paragraph(struct page *p, const char *look /* "", "dim", "warning" */, const char *text);
/* What `write` writes, a paragraph a line. */
enum status page_lines(struct page *p, const char *look, void (*write)(const void *of, FILE *out), const void *of, struct error *e);
void page_table(struct page *p, const struct table *t);
void page_chart(struct page *p, const struct chart *c);
/* Closed until a reader opens it; always open in print. */
void page_details(struct page *p, const char *summary, const char *text);
/* Ends the page and writes it ("-": standard output) where st is ST_OK; frees it in any case. Returns st, or what went wrong since. */
enum status page_close(struct page *p, const char *path, enum status st, struct error *e);

#endif
