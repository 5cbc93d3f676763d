/* The page of a search for plans. */
#include <stdlib.h>

#include "base/quantity.h"
#include "report/page.h"
#include "report/plan_parts.h"
#include "report/verdict.h"

static void title(const void *p, FILE *out) { plan_title(p, out); }
static void start(const void *p, FILE *out) { plan_start(p, out); }
static void front(const void *p, FILE *out) { plan_front(p, out); }
static void legend(const void *p, FILE *out) { plan_legend(p, out); }
static void counts(const void *p, FILE *out) { plan_counts(p, out); }

static enum status show(const struct chart *c, void *page, struct error *e)
{
	(void)e;
	page_chart(page, c);
	return ST_OK;
}

static void verdict(const void *of, FILE *out)
{
	const struct plan_report *p = of;
	const struct result *least = p->least.predicted;
	char words[PLAN_WORDS], step[QUANTITY_MAX], memory[QUANTITY_MAX];
	if (p->rows > 0) {
		fprintf(out, "The best plan: %s; %s a step, %s of memory.", plan_words(p->row[0].config, words),
			quantity_format(step, p->row[0].predicted->time.step_s, UNIT_SECOND),
			quantity_format(memory, (double)p->row[0].predicted->memory.total_B, UNIT_BYTE));
		return;
	}
	fputs("No plan fits.", out);
	if (least && verdict_fit(&least->memory) == FIT_NOT) {
		fputs(" With the one that needs least ", out);
		verdict_missing(&least->memory, out);
		verdict_error(&least->memory, out);
		putc('.', out);
	}
}

static enum status write_config(struct page *page, const struct plan_report *p, struct error *e)
{
	json_t *config = config_json(p->row[0].config);
	char *text = config ? json_dumps(config, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(config);
	if (!text)
		return error_nomem(e, "the page");
	page_details(page, "The best plan's config, with every default (--write writes the config alone)", text);
	free(text);
	return ST_OK;
}

enum status report_plan_html(const struct plan_report *p, const char *path, struct error *e)
{
	struct page page;
	struct table *rows = NULL, *points = NULL;
	enum status st = page_open(&page, "plans - stepsim", verdict, p, e);
	if (st || (st = page_lines(&page, "sub", title, p, e)) || (st = page_lines(&page, "", start, p, e)) ||
		(p->rows && (st = plan_chart(p, show, &page, e))) || (st = plan_rows_table(p, &rows, e)))
		goto out;
	page_section(&page, p->rows ? "The best plans" : "The plan that needs least");
	page_table(&page, rows);
	if (p->points > 1) {
		if ((st = plan_front_table(p, &points, e)))
			goto out;
		page_section(&page, "Time and memory");
		if ((st = page_lines(&page, "dim", front, p, e)))
			goto out;
		page_table(&page, points);
	}
	st = page_lines(&page, "dim", legend, p, e);
	if (!st)
		st = page_lines(&page, "dim", counts, p, e);
	if (!st && p->rows)
		st = write_config(&page, p, e);
out:
	table_destroy(rows);
	table_destroy(points);
	return page_close(&page, path, st, e);
}
