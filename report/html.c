/* The page of a step: the verdict, pictures drawn by the scripts of report/page from the JSON in the page, the tables
 * of report_text, the config. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/html.h"
#include "base/memory_stream.h"
#include "base/quantity.h"
#include "report/compare_parts.h"
#include "report/embed.h"
#include "report/figures.h"
#include "report/html_step.h"
#include "report/page.h"
#include "report/report.h"
#include "report/text.h"
#include "report/verdict.h"
#include "step/advice.h"

EMBED(page_js, "report/page/page.js");
EMBED(timeline_js, "report/page/timeline.js");

static const char *time_text(char buf[QUANTITY_MAX], double s) { return quantity_format(buf, s, UNIT_SECOND); }

static void header(const void *o, FILE *out) { text_header(o, out); }
static void findings(const void *o, FILE *out) { text_findings(o, out); }
static void warnings(const void *o, FILE *out) { text_warnings(o, out); }

static void write_verdict(const struct outcome *o, const struct result *m, FILE *out)
{
	const struct result *p = o->predicted;
	char a[QUANTITY_MAX], range[QUANTITY_RANGE];
	quantity_format_range(range, p->interval90_s[0], p->interval90_s[1], UNIT_SECOND);
	if (!m && verdict_fit(&p->memory) == FIT_NOT) {
		fputs("<h1>Does not fit: ", out);
		verdict_missing(&p->memory, out);
		verdict_error(&p->memory, out);
		fprintf(out, ".</h1>\n<p>If it had the memory, a step would take %s (90 %% interval: %s).</p>\n",
			time_text(a, p->time.step_s), range);
		return;
	}
	fprintf(out, "<h1>A step takes %s (90 %% interval: %s)", time_text(a, p->time.step_s), range);
	if (m) {
		const double error = figure_error(p->time.step_s, m->time.step_s);
		fprintf(out, "; measured: %s, the prediction is %.1f %% too %s", time_text(a, m->time.step_s),
			100 * fabs(error), error < 0 ? "short" : "long");
	}
	fputs(".</h1>\n", out);
}

/* Where the heading says that it does not fit, nothing is left to say. */
static void write_memory(const struct result_memory *m, bool measured, FILE *out)
{
	const enum fit fit = verdict_fit(m);
	char a[QUANTITY_MAX], b[QUANTITY_MAX], c[QUANTITY_MAX];
	if (fit != FIT_NOT) {
		fprintf(out, "It fits in memory: a rank needs %s of %s, %s are free",
			quantity_format(a, (double)m->total_B, UNIT_BYTE),
			quantity_format(b, (double)m->capacity_B, UNIT_BYTE),
			quantity_format(c, (double)(m->capacity_B - m->total_B), UNIT_BYTE));
		if (fit == FIT_TIGHT) {
			fputs("; ", out);
			verdict_tight(m, out);
		}
		fputs(". ", out);
	} else if (measured) {
		fputs("By the prediction it does <b>not</b> fit in memory: ", out);
		verdict_missing(m, out);
		fputs(". ", out);
	}
}

static void write_reasons(const struct outcome *o, const struct result *m, FILE *out)
{
	const struct result *p = o->predicted;
	char a[QUANTITY_MAX], b[QUANTITY_MAX];
	const bool runs = m || verdict_fit(&p->memory) != FIT_NOT;
	fputs(runs ? "<p>" : "<p>With more memory: ", out);
	if (p->time.comm_s > 0 && !isnan(p->time.overlap))
		fprintf(out, "%sompute hides %.0f %% of communication: %s of %s are exposed, %.1f %% of the step. ",
			runs ? "C" : "c", 100 * p->time.overlap, time_text(a, p->time.exposed_comm_s),
			time_text(b, p->time.comm_s), 100 * p->time.exposed_comm_s / p->time.step_s);
	fprintf(out, "MFU %.1f %%. ", 100 * p->mfu);
	write_memory(&p->memory, m != NULL, out);
	fputs("Bottleneck: ", out);
	html_escaped(p->bottleneck, out);
	fputs(".</p>\n", out);
}

static void write_pictures(const struct result *m, const struct shown shown[2], FILE *out)
{
	fputs("<noscript><p class=\"warning\">The pictures need JavaScript; the tables below do "
	      "not.</p></noscript>\n<h2>The step</h2>\n<div class=\"tools\"><button id=\"in\">zoom in</button><button "
	      "id=\"out\">zoom out</button>"
	      "<button id=\"all\">whole step</button><button id=\"paint\" aria-pressed=\"false\">colour by "
	      "phase</button></div>\n<div class=\"keys\" id=\"keys\"></div>\n"
	      "<div class=\"timeline\" id=\"timeline\"><canvas tabindex=\"0\" role=\"application\" "
	      "aria-label=\"timeline of the step; the table below has its sums\"></canvas><div id=\"mark\" "
	      "hidden></div></div>\n"
	      "<p class=\"dim\">Drag, or arrows: move. Ctrl and wheel, pinch, +, -: zoom; double click: one op; "
	      "Home: the whole step. [ and ]: from op to op, up and down: from lane to lane. A class in the key "
	      "stands out when it is clicked. "
	      "Thin grey: waiting for other ranks.",
		out);
	for (int side = 0; side < (m ? 2 : 1); side++) {
		const struct shown *s = &shown[side];
		const char *what = side ? "ranks" : "stages";
		if (s->blocks)
			fprintf(out, " %u of the %u %s %s op by op, the others in blocks of a micro-batch.", s->whole,
				s->whole + s->blocks + s->left_out, what, s->whole == 1 ? "is drawn" : "are drawn");
		if (s->left_out)
			fprintf(out, " %u %s are not drawn.", s->left_out, what);
	}
	fputs("</p>\n<p id=\"live\" class=\"unseen\" aria-live=\"polite\"></p>\n"
	      "<div class=\"columns\">\n<section><h2>Where the time goes</h2><figure "
	      "id=\"bars\"></figure><h2>Memory of a device</h2><figure id=\"memory\"></figure></section>\n"
	      "<section><h2>Roofline</h2><figure id=\"roofline\"></figure><p class=\"dim\">Each class at its mean "
	      "intensity and predicted rate; a larger dot is a larger part of the step.",
		out);
	fputs(m ? " Rings are measured rates." : "", out);
	fputs(" Memory limits ops left of the ridge, the matrix units those right of it.</p></section>\n</div>\n", out);
}

static void target_title(const void *c, FILE *out) { compare_target_title(c, out); }
static void target_sources(const void *c, FILE *out) { compare_sources(c, out); }

static enum status write_target(const struct compare *c, struct page *p, struct error *e)
{
	struct table *t = NULL;
	page_section(p, "The target");
	enum status st = page_lines(p, "dim", target_title, c, e);
	if (!st && !(st = compare_target_table(c, &t, e))) {
		page_table(p, t);
		st = page_lines(p, "dim", target_sources, c, e);
	}
	table_destroy(t);
	return st;
}

static enum status write_tables(const struct outcome *o, struct page *p, struct error *e)
{
	struct table *figures = NULL, *stages = NULL;
	enum status st = text_figures(o, &figures, e);
	if (!st && !(st = text_stages(o, &stages, e))) {
		page_section(p, "In figures");
		page_table(p, figures);
		if (stages) {
			page_section(p, "Stages");
			page_paragraph(p, "dim", TEXT_STAGES);
			page_table(p, stages);
		}
		st = o->target ? write_target(o->target, p, e) : ST_OK;
	}
	table_destroy(figures);
	table_destroy(stages);
	return st;
}

static void advice_head(const void *of, FILE *out) { text_advice_head(of, out); }

static enum status write_advice(const struct outcome *o, struct page *p, struct error *e)
{
	struct table *rows = NULL;
	if (!o->advice)
		return ST_OK;
	page_section(p, "Advice");
	enum status st = page_lines(p, "", advice_head, o, e);
	if (!st && o->advice->n > 0 && !(st = text_advice(o, &rows, e)))
		page_table(p, rows);
	table_destroy(rows);
	return st;
}

static enum status write_json(struct page *p, const char *summary, const json_t *value, struct error *e)
{
	char *text = value ? json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
	if (!text)
		return error_nomem(e, "the page");
	page_details(p, summary, text);
	free(text);
	return ST_OK;
}

static enum status write_sources(const struct outcome *o, struct page *p, struct error *e)
{
	json_t *config = config_json(&o->program->config);
	enum status st = write_json(p, "The config, with every default", config, e);
	json_decref(config);
	if (!st && o->system)
		st = write_json(p, "The machine, and where its numbers come from", o->system, e);
	return st;
}

/* The data comes before the pictures' places in time, behind them in the page: it says what is shown. */
static enum status write_body(const struct outcome *o, struct page *p, struct error *e)
{
	const struct result *m = o->measured && !o->measured->doubles ? o->measured : NULL;
	struct shown shown[2] = {{0}};
	char *data = NULL;
	size_t len = 0;
	FILE *f = memory_stream(&data, &len);
	if (!f)
		return error_nomem(e, "the page");
	enum status st = html_step_data(o, f, &shown[0], &shown[1], e);
	if (!memory_stream_close(f) && !st)
		st = error_nomem(e, "the page");
	if (st)
		goto out;
	write_verdict(o, m, p->out);
	if ((st = page_lines(p, "sub", header, o, e)))
		goto out;
	write_reasons(o, m, p->out);
	if ((st = page_lines(p, "warning", warnings, o, e)))
		goto out;
	write_pictures(m, shown, p->out);
	if ((st = write_advice(o, p, e)) || (st = write_tables(o, p, e)) ||
		(st = page_lines(p, "dim", findings, o, e)) || (st = write_sources(o, p, e)))
		goto out;
	fprintf(p->out,
		"<div id=\"tip\" hidden></div>\n<script type=\"application/json\" "
		"id=\"data\">%s</script>\n<script>\n%s%s</script>\n",
		data, page_js, timeline_js);
out:
	free(data);
	return st;
}

enum status report_html(const struct outcome *o, const char *path, struct error *e)
{
	struct page p;
	char title[256], step[QUANTITY_MAX];
	const struct config *c = &o->program->config;
	snprintf(title, sizeof title, "%s on %lld rank%s: %s%s - stepsim", c->model.name, (long long)c->ranks,
		c->ranks == 1 ? "" : "s", time_text(step, o->predicted->time.step_s),
		verdict_fit(&o->predicted->memory) == FIT_NOT ? " a step, does not fit in memory" : " a step");
	enum status st = page_open(&p, title, NULL, NULL, e);
	if (!st)
		st = write_body(o, &p, e);
	return page_close(&p, path, st, e);
}
