#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/html.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "report/embed.h"
#include "report/report.h"

EMBED(page_css, "report/page/page.css");

enum status page_open(struct page *p, const char *title, void (*verdict)(const void *of, FILE *out), const void *of,
	struct error *e)
{
	*p = (struct page){0};
	if (!(p->out = memory_stream(&p->text, &p->len)))
		return error_nomem(e, "the page");
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
	      "content=\"width=device-width, initial-scale=1\">\n<title>",
		p->out);
	html_escaped(title, p->out);
	fprintf(p->out, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style>\n</head>\n<body>\n",
		page_css);
	if (!verdict)
		return ST_OK;
	char *text;
	size_t len;
	enum status st = text_of(verdict, of, "the page", &text, &len, e);
	if (!st) {
		fputs("<h1>", p->out);
		html_escaped(text, p->out);
		fputs("</h1>\n", p->out);
	}
	free(text);
	return st;
}

void page_section(struct page *p, const char *heading)
{
	fputs("<h2>", p->out);
	html_escaped(heading, p->out);
	fputs("</h2>\n", p->out);
}

void page_paragraph(struct page *p, const char *look, const char *text)
{
	fprintf(p->out, "<p class=\"%s\">", look);
	html_escaped(text, p->out);
	fputs("</p>\n", p->out);
}

enum status page_lines(struct page *p, const char *look, void (*write)(const void *of, FILE *out), const void *of,
	struct error *e)
{
	char *text, *rest = NULL;
	size_t len;
	enum status st = text_of(write, of, "the page", &text, &len, e);
	for (char *line = st ? NULL : strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		page_paragraph(p, look, line);
	free(text);
	return st;
}

void page_table(struct page *p, const struct table *t) { table_html(t, p->out); }

void page_chart(struct page *p, const struct chart *c)
{
	fprintf(p->out, "<figure class=\"scroll %s\">\n", c->close ? "close chart" : "chart");
	chart_write(c, p->out);
	fputs("</figure>\n", p->out);
}

void page_details(struct page *p, const char *summary, const char *text)
{
	fputs("<details><summary>", p->out);
	html_escaped(summary, p->out);
	fputs("</summary><pre>", p->out);
	html_escaped(text, p->out);
	fputs("</pre></details>\n", p->out);
}

enum status page_close(struct page *p, const char *path, enum status st, struct error *e)
{
	if (!p->out)
		return st;
	fprintf(p->out, "<p class=\"dim\">stepsim %s, %s</p>\n</body>\n</html>\n", STEPSIM_VERSION, report_commit());
	const bool good = memory_stream_close(p->out);
	if (!st)
		st = good ? file_write(path, p->text, p->len, e) : error_nomem(e, "the page");
	free(p->text);
	*p = (struct page){0};
	return st;
}
