/* The page of a comparison. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/paths.h"
#include "report/compare_parts.h"
#include "report/page.h"
#include "report/verdict.h"

static void title(const void *c, FILE *out) { compare_title(c, out); }
static void tokens(const void *c, FILE *out) { compare_tokens(c, out); }
static void ranking(const void *c, FILE *out) { compare_ranking(c, out); }
static void near_title(const void *c, FILE *out)
{
	(void)c;
	compare_near_title(out);
}
static void notes(const void *c, FILE *out) { compare_notes(c, out); }
static void sources(const void *c, FILE *out) { compare_sources(c, out); }

static void verdict(const void *c, FILE *out) { compare_verdict(c, out); }

/* Prices that nobody knows have no bars. */
static enum status write_bars(struct page *p, const struct compare *c, struct error *e)
{
	static const enum compare_basis order[] = {BY_TIME, BY_RENTED, BY_OWNED};
	enum status st = ST_OK;
	fputs("<div class=\"columns\">\n", p->out);
	for (size_t i = 0; i < COUNT(order) && !st; i++) {
		struct compare_bars *b = NULL;
		const struct chart *chart;
		struct error none = {0};
		st = compare_bars_of(c, order[i], &b, &chart, &none);
		if (!st)
			page_chart(p, chart);
		else if (st == ST_INPUT)
			st = ST_OK;
		else
			error_set(e, st, "%s", none.text);
		compare_bars_free(b);
	}
	fputs("</div>\n", p->out);
	return st;
}

static enum status write_sources(struct page *p, const struct compare *c, struct error *e)
{
	char *text;
	size_t len;
	enum status st = text_of(sources, c, "the page", &text, &len, e);
	if (!st)
		page_details(p, "Sources of the numbers", text);
	free(text);
	return st;
}

enum status report_compare_html(const struct compare *c, const char *path, struct error *e)
{
	struct page p;
	struct table *speed = NULL, *money = NULL, *near = NULL;
	enum status st = page_open(&p, "a comparison - stepsim", verdict, c, e);
	if (st || (st = page_lines(&p, "sub", title, c, e)) || (st = write_bars(&p, c, e)) ||
		(st = compare_speed_table(c, &speed, e)) || (st = compare_money_table(c, &money, e)))
		goto out;
	page_section(&p, "Speed and memory");
	page_table(&p, speed);
	page_section(&p, "Time, energy and money");
	if ((st = page_lines(&p, "dim", tokens, c, e)))
		goto out;
	page_table(&p, money);
	if (compare_has_near(c)) {
		page_section(&p, "Batches that need fewer hosts");
		if ((st = page_lines(&p, "dim", near_title, c, e)) || (st = compare_near_table(c, &near, e)))
			goto out;
		page_table(&p, near);
	}
	page_section(&p, "Who is ahead");
	if ((st = page_lines(&p, "", ranking, c, e)) || (st = page_lines(&p, "dim", notes, c, e)))
		goto out;
	st = write_sources(&p, c, e);
out:
	table_destroy(speed);
	table_destroy(money);
	table_destroy(near);
	return page_close(&p, path, st, e);
}
