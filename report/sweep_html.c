/* The page of a sweep: its curves and its table. */
#include <stdlib.h>

#include "report/page.h"
#include "report/sweep_chart.h"
#include "report/verdict.h"

static void verdict(const void *s, FILE *out)
{
	verdict_sweep(s, out);
	putc('.', out);
}

/* A curve that is 0 throughout shows nothing. */
static bool says_something(const struct chart *c)
{
	for (size_t l = 0; l < c->lines; l++)
		for (size_t i = 0; i < c->line[l].n; i++)
			if (c->line[l].at[i].y > 0)
				return true;
	return false;
}

static enum status write_curves(struct page *p, const struct sweep *s, struct error *e)
{
	enum status st = ST_OK;
	fputs("<div class=\"columns\">\n", p->out);
	for (int k = 0; k < CURVE_COUNT && !st; k++) {
		struct sweep_curves *c = NULL;
		const struct chart *chart;
		st = sweep_curves_of(s, (enum sweep_curve)k, &c, &chart, e);
		if (!st && says_something(chart))
			page_chart(p, chart);
		sweep_curves_free(c);
	}
	fputs("</div>\n", p->out);
	return st;
}

enum status report_sweep_html(const struct sweep *s, const char *path, struct error *e)
{
	struct page p;
	struct table *t = NULL;
	char text[1024];
	size_t predicted = 0, too_large = 0, may_fit = 0, tight = 0;
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct result *r = s->rows.at[i].predicted;
		predicted += r != NULL;
		too_large += r && verdict_fit(&r->memory) == FIT_NOT;
		may_fit += r && verdict_may_fit(&r->memory);
		tight += r && verdict_fit(&r->memory) == FIT_TIGHT;
	}
	enum status st = page_open(&p, "a sweep - stepsim", verdict, s, e);
	if (!st) {
		char large[64] = "", may[64] = "", full[96] = "";
		if (too_large)
			snprintf(large, sizeof large, "; %zu too large for the memory", too_large);
		if (may_fit)
			snprintf(may, sizeof may, " (%zu of them may fit all the same)", may_fit);
		if (tight)
			snprintf(full, sizeof full, "; %zu leave%s less of it free than a search for plans does", tight,
				tight == 1 ? "s" : "");
		snprintf(text, sizeof text, "%s: %zu combination%s, %zu predicted%s%s%s.", s->config, s->rows.n,
			s->rows.n == 1 ? "" : "s", predicted, large, may, full);
		page_paragraph(&p, "sub", text);
	}
	if (!st && predicted >= 2 && s->axis[0].n >= 2)
		st = write_curves(&p, s, e);
	if (!st)
		st = sweep_table(s, &t, e);
	if (!st) {
		page_section(&p, "All combinations");
		page_table(&p, t);
	}
	table_destroy(t);
	return page_close(&p, path, st, e);
}
