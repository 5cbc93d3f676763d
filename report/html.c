/* One self-contained page: the verdict, pictures drawn by report/page/page.js from the JSON in the page, the table of report_text, the config. No external request. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "report/report.h"

/* The page's own files, as they lie in report/page. */
#define EMBED(symbol, file) \
	__asm__(".section .rodata\n.global " #symbol "\n" #symbol ":\n.incbin \"" file "\"\n.byte 0\n.previous\n"); \
	extern const char symbol[]
EMBED(page_css, "report/page/page.css");
EMBED(page_js, "report/page/page.js");

/* A page of so many spans still opens in two seconds; of more, the first actors' are shown. */
#define SPANS_MOST 200000

/* ---- text in HTML ---- */

static void escape(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc(*text, out);
		}
	}
}

static const char *time_text(char buf[QUANTITY_MAX], double s)
{
	return quantity_format(buf, s, UNIT_SECOND);
}

static void write_verdict(const struct outcome *o, FILE *out)
{
	const struct result *p = o->predicted, *m = o->measured && !o->measured->doubles ? o->measured : NULL;
	char a[QUANTITY_MAX], b[QUANTITY_MAX], c[QUANTITY_MAX];
	fprintf(out, "<h1>A step takes %s (90 %% sure: %s to %s)", time_text(a, p->time.step_s), time_text(b, p->interval90_s[0]), time_text(c, p->interval90_s[1]));
	if (m)
		fprintf(out, "; measured: %s, the prediction is %+.1f %% off", time_text(a, m->time.step_s), 100 * (p->time.step_s / m->time.step_s - 1));
	fputs(".</h1>\n<p>", out);
	if (p->time.comm_s > 0 && !isnan(p->time.overlap))
		fprintf(out, "Communication hides behind compute for %.0f %%: %s of %s is exposed, %.1f %% of the step. ", 100 * p->time.overlap, time_text(a, p->time.exposed_comm_s), time_text(b, p->time.comm_s),
		        100 * p->time.exposed_comm_s / p->time.step_s);
	fprintf(out, "MFU %.1f %%. ", 100 * p->mfu);
	if (p->memory.capacity_B)
		fprintf(out, "It %s: %s of %s a device. ", p->memory.fits ? "fits in memory" : "does <b>not</b> fit in memory", quantity_format(a, (double)p->memory.total_B, UNIT_BYTE),
		        quantity_format(b, (double)p->memory.capacity_B, UNIT_BYTE));
	fputs("Bottleneck: ", out);
	escape(out, p->bottleneck);
	fputs(".</p>\n", out);
	if (o->mode) {
		fputs("<p class=\"dim\">", out);
		escape(out, o->mode);
		fputs("</p>\n", out);
	}
	for (size_t i = 0; i < p->n_warnings; i++) {
		fputs("<p class=\"warning\">", out);
		escape(out, p->warning[i]);
		fputs("</p>\n", out);
	}
}

/* ---- the data of the pictures ---- */

/* A value as a script element may hold it: a solidus is escaped, so that no text ends the element. */
static bool dump(json_t *value, FILE *out)
{
	bool good = value && json_dumpf(value, out, JSON_COMPACT | JSON_ESCAPE_SLASH | JSON_ENCODE_ANY) == 0;
	json_decref(value);
	return good;
}

/* [name, class, shape, phase, FLOP, bytes] */
static bool write_ops(const struct role *role, FILE *out)
{
	bool good = true;
	fputc('[', out);
	for (size_t i = 0; i < role->ops.n; i++) {
		const struct op *op = &role->ops.at[i];
		char name[OP_NAME_MAX], shape[128] = "";
		size_t n = 0;
		for (uint8_t d = 0; d < op_kind_info((enum op_kind)op->kind)->n_dims; d++)
			n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%lld", d ? " x " : "", (long long)op->d[d]);
		fputs(i ? "," : "", out);
		good = dump(json_pack("[s, i, s, s, f, f]", op_name(op, name), (int)op_class_of(op), shape, phase_name((enum phase)op->phase), op_flop(op), op_read_B(op) + op_write_B(op)), out) && good;
	}
	fputc(']', out);
	return good;
}

static long long ns_between(int64_t from_ps, int64_t to_ps)
{
	return (long long)((to_ps + 500) / 1000 - (from_ps + 500) / 1000);
}

static void write_lane(const struct timeline *t, size_t first, uint32_t actor, int lane, FILE *out)
{
	int64_t last_ps = 0;
	bool any = false;
	for (size_t i = first; i < t->spans.n && t->spans.at[i].actor == actor; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->lane != lane)
			continue;
		fprintf(out, "%s%u,%lld,%lld,%lld", any ? "," : "", s->op, ns_between(last_ps, s->start_ps), ns_between(s->start_ps, s->move_ps), ns_between(s->move_ps, s->end_ps));
		last_ps = s->end_ps;
		any = true;
	}
}

static bool lane_is_used(const struct timeline *t, size_t first, uint32_t actor, int lane)
{
	for (size_t i = first; i < t->spans.n && t->spans.at[i].actor == actor; i++)
		if (t->spans.at[i].lane == lane)
			return true;
	return false;
}

static void write_actor(const struct program *p, const struct timeline *t, bool measured, size_t first, uint32_t actor, FILE *out)
{
	bool any = false;
	fprintf(out, "{\"role\":%td,\"name\":\"%s ", timeline_role(t, p, actor) - p->roles, measured ? "measured:" : "predicted:");
	if (measured)
		fprintf(out, "rank %u\",\"lanes\":[", actor);
	else if (p->n_roles > 1)
		fprintf(out, "stage %u, %lld ranks\",\"lanes\":[", actor, (long long)p->roles[actor].ranks);
	else
		fprintf(out, "every rank\",\"lanes\":[");
	for (int lane = 0; lane < LANE_COUNT; lane++) {
		if (!lane_is_used(t, first, actor, lane))
			continue;
		fprintf(out, "%s{\"name\":\"%s\",\"spans\":[", any ? "," : "", lane_name((enum lane)lane));
		write_lane(t, first, actor, lane, out);
		fputs("]}", out);
		any = true;
	}
	fputs("]}", out);
}

/* The actors whose spans fit, and how many there are. */
static bool write_side(const struct program *p, const struct timeline *t, bool measured, FILE *out, uint32_t *shown)
{
	bool good = true;
	fprintf(out, "{\"step_ns\":%lld,\"roles\":[", ns_between(0, t->step_ps));
	for (uint32_t r = 0; r < p->n_roles; r++) {
		fputs(r ? "," : "", out);
		good = write_ops(&p->roles[r], out) && good;
	}
	fputs("],\"actors\":[", out);
	*shown = 0;
	for (size_t first = 0, next; first < t->spans.n; first = next) {
		uint32_t actor = t->spans.at[first].actor;
		for (next = first; next < t->spans.n && t->spans.at[next].actor == actor; next++)
			;
		if (*shown && next > SPANS_MOST)
			break;
		fputs(*shown ? "," : "", out);
		write_actor(p, t, measured, first, actor, out);
		++*shown;
	}
	fputs("]}", out);
	return good;
}

/* Each class's FLOP, bytes and time on the critical actor of the prediction. */
static bool write_points(const struct outcome *o, FILE *out)
{
	const struct timeline *t = o->predicted_timeline;
	uint32_t critical = timeline_critical_actor(t);
	const struct role *role = timeline_role(t, o->program, critical);
	double flop[CLASS_COUNT] = {0}, bytes[CLASS_COUNT] = {0};
	bool good = true, any = false;
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->actor != critical)
			continue;
		flop[s->class_] += op_flop(&role->ops.at[s->op]);
		bytes[s->class_] += op_read_B(&role->ops.at[s->op]) + op_write_B(&role->ops.at[s->op]);
	}
	fputc('[', out);
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!(o->predicted->time.class_s[c] > 0) || op_class_is_comm((uint8_t)c))
			continue;
		fputs(any ? "," : "", out);
		any = true;
		good = dump(json_pack("{s:s, s:f, s:f, s:f}", "class", op_class_name((enum op_class)c), "flop", flop[c], "bytes", bytes[c], "time_s", o->predicted->time.class_s[c]), out) && good;
	}
	fputc(']', out);
	return good;
}

static bool write_data(const struct outcome *o, FILE *out, uint32_t shown[2])
{
	fputs("<script type=\"application/json\" id=\"data\">{\"classes\":[", out);
	for (int c = 0; c < CLASS_COUNT; c++)
		fprintf(out, "%s\"%s\"", c ? "," : "", op_class_name((enum op_class)c));
	fputs("],\"roofs\":", out);
	bool good = true;
	if (o->roofs.matrix_flop_per_s > 0 && o->roofs.mem_Bps > 0)
		good = dump(json_pack("{s:s, s:f, s:f}", "dtype", dtype_name(o->program->config.train.dtype), "matrix", o->roofs.matrix_flop_per_s, "memory", o->roofs.mem_Bps), out);
	else
		fputs("null", out);
	fputs(",\"points\":", out);
	good = write_points(o, out) && good;
	fputs(",\"result\":", out);
	good = dump(report_json(o), out) && good;
	fputs(",\"sides\":[", out);
	good = write_side(o->program, o->predicted_timeline, false, out, &shown[0]) && good;
	if (o->measured_timeline) {
		fputc(',', out);
		good = write_side(o->program, o->measured_timeline, true, out, &shown[1]) && good;
	}
	fputs("]}</script>\n", out);
	return good;
}

/* ---- the page ---- */

static void write_pictures(FILE *out)
{
	fputs("<h2>The step</h2>\n<div class=\"tools\"><button id=\"in\">zoom in</button><button id=\"out\">zoom out</button><button id=\"all\">whole step</button><span id=\"keys\"></span></div>\n"
	      "<div class=\"timeline\" id=\"timeline\"><canvas tabindex=\"0\" aria-label=\"timeline of the step; the table below has its sums\"></canvas></div>\n"
	      "<p class=\"dim\">Wheel: zoom. Drag: move. Arrows, +, -, Home: the same. Thin grey: waiting for other ranks.</p>\n"
	      "<div class=\"columns\">\n<section><h2>Where the time goes</h2><figure id=\"bars\"></figure><h2>Memory of a device</h2><figure id=\"memory\"></figure></section>\n"
	      "<section><h2>Roofline</h2><figure id=\"roofline\"></figure><p class=\"dim\">Each class at its mean intensity and the rate that is predicted for it; the larger the dot, the more of the step. Left of the ridge memory limits, right of it the matrix units.</p></section>\n</div>\n",
	      out);
}

static enum status write_table(const struct outcome *o, FILE *out, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	enum status st = f ? report_text(o, f, e) : error_nomem(e, "the page");
	if (f && fclose(f) != 0 && !st)
		st = error_nomem(e, "the page");
	if (!st) {
		fputs("<h2>In figures</h2>\n<pre>", out);
		escape(out, text);
		fputs("</pre>\n", out);
	}
	free(text);
	return st;
}

static enum status write_config(const struct outcome *o, FILE *out, struct error *e)
{
	json_t *config = config_json(&o->program->config);
	char *text = config ? json_dumps(config, JSON_INDENT(2)) : NULL;
	json_decref(config);
	if (!text)
		return error_nomem(e, "the page");
	fputs("<details><summary>Config and system</summary><pre>", out);
	escape(out, text);
	free(text);
	if (o->system && (text = json_dumps(o->system, JSON_INDENT(2)))) {
		fputs("\n", out);
		escape(out, text);
		free(text);
	}
	fprintf(out, "</pre></details>\n<p class=\"dim\">stepsim %s, %s</p>\n", STEPSIM_VERSION, report_commit());
	return ST_OK;
}

static enum status write_page(const struct outcome *o, FILE *out, struct error *e)
{
	uint32_t shown[2] = {0};
	fprintf(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>stepsim</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style>\n</head>\n<body>\n", page_css);
	write_verdict(o, out);
	write_pictures(out);
	enum status st = write_table(o, out, e);
	if (!st)
		st = write_config(o, out, e);
	if (!st && !write_data(o, out, shown))
		st = error_nomem(e, "the page");
	if (shown[0] < o->predicted_timeline->actors)
		fprintf(out, "<p class=\"dim\">The timeline shows %u of %u predicted stages.</p>\n", shown[0], o->predicted_timeline->actors);
	if (o->measured_timeline && shown[1] < o->measured_timeline->actors)
		fprintf(out, "<p class=\"dim\">The timeline shows %u of %u measured ranks.</p>\n", shown[1], o->measured_timeline->actors);
	fprintf(out, "<div id=\"tip\" hidden></div>\n<script>\n%s</script>\n</body>\n</html>\n", page_js);
	return st;
}

enum status report_html(const struct outcome *o, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return error_nomem(e, "the page");
	enum status st = write_page(o, out, e);
	bool good = !ferror(out);
	good = fclose(out) == 0 && good;
	if (!st)
		st = good ? file_write(path, text, len, e) : error_nomem(e, "the page");
	free(text);
	return st;
}
