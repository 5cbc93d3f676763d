/* The page of a sweep: its curves and its table. */
#include <stdlib.h>

#include "base/quantity.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/sweep_chart.h"

static const struct sweep_row *fastest(const struct sweep *s)
{
	const struct sweep_row *best = NULL;
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct sweep_row *r = &s->rows.at[i];
		if (r->predicted && r->predicted->memory.fits &&
			(!best || r->predicted->tokens_per_s > best->predicted->tokens_per_s))
			best = r;
	}
	return best;
}

/* The combination with most tokens/s among those that fit. */
static void verdict(const struct sweep *s, char *out, size_t size)
{
	const struct sweep_row *best = fastest(s);
	char step[QUANTITY_MAX], tokens[QUANTITY_MAX];
	size_t n;
	if (!best) {
		snprintf(out, size, "Nothing of this fits in memory.");
		return;
	}
	n = (size_t)snprintf(out, size, "Most tokens/s with ");
	for (size_t a = 0; a < s->axes && n < size; a++)
		n += (size_t)snprintf(out + n, size - n, "%s%s = %s", a ? ", " : "", s->axis[a].key,
			s->axis[a].value[best->at[a]]);
	if (n < size)
		snprintf(out + n, size - n, ": %s tokens/s, %s a step on %lld ranks.",
			figure_count(tokens, best->predicted->tokens_per_s),
			quantity_format(step, best->predicted->time.step_s, UNIT_SECOND), (long long)best->ranks);
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
	size_t predicted = 0;
	for (size_t i = 0; i < s->rows.n; i++)
		predicted += s->rows.at[i].predicted != NULL;
	verdict(s, text, sizeof text);
	enum status st = page_open(&p, "a sweep - stepsim", text, e);
	if (!st) {
		snprintf(text, sizeof text, "%s: %zu combination%s, of which %zu could be predicted.%s", s->config,
			s->rows.n, s->rows.n == 1 ? "" : "s", predicted,
			s->rows.n == s->axis[0].n ? " The band is the 90 % interval." : "");
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
