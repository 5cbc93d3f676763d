/* Each row of a table and what stepsim predicts for it: as text and as CSV. */
#include <inttypes.h>
#include <math.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "base/table.h"
#include "cli/validate/validate.h"
#include "report/report.h"

/* The cells that both kinds of rows have. */
struct figures {
	const char *id, *reason;
	double predicted_s, measured_s, low_s, high_s;
};

static enum status add(struct table *t, const char *what, const struct figures *f, struct error *e)
{
	char p[QUANTITY_MAX], m[QUANTITY_MAX], range[QUANTITY_RANGE];
	quantity_format(m, f->measured_s, UNIT_SECOND);
	if (f->reason[0])
		return table_row(t, e, "%s%s|-|%s|-|-|%s", f->id, what, m, f->reason);
	return table_row(t, e, "%s%s|%s|%s|%+.1f %%|%s|%s", f->id, what,
		quantity_format(p, f->predicted_s, UNIT_SECOND), m, 100 * (f->predicted_s / f->measured_s - 1),
		quantity_format_range(range, f->low_s, f->high_s, UNIT_SECOND),
		f->low_s <= f->measured_s && f->measured_s <= f->high_s ? "" : "outside");
}

static struct figures of_step(const struct judged *j)
{
	return (struct figures){j->id, j->reason, j->predicted_s, j->measured_s, j->interval90_s[0],
		j->interval90_s[1]};
}

static struct figures of_collective(const struct judged_collective *j)
{
	return (struct figures){j->id, j->reason, j->predicted_s, j->measured_s, j->interval90_s[0],
		j->interval90_s[1]};
}

static void print(struct table *t, FILE *out)
{
	table_print(t, out);
	fputc('\n', out);
}

enum status rows_print(const judged_rows *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("<row|predicted|measured|error|90 % interval|<");
	enum status st = t ? ST_OK : error_nomem(e, "the rows");
	for (size_t i = 0; i < rows->n && !st; i++) {
		const struct figures f = of_step(&rows->at[i]);
		st = add(t, "", &f, e);
	}
	if (!st)
		print(t, out);
	table_destroy(t);
	return st;
}

enum status collective_rows_print(const judged_collectives *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("<row|<collective|ranks|size|busbw|predicted|measured|error|90 % interval|<");
	enum status st = t ? ST_OK : error_nomem(e, "the rows");
	for (size_t i = 0; i < rows->n && !st; i++) {
		const struct judged_collective *j = &rows->at[i];
		const struct figures f = of_collective(j);
		char what[192], size[QUANTITY_MAX], busbw[QUANTITY_MAX];
		snprintf(what, sizeof what, "|%s|%" PRId64 "|%s|%s", j->collective, j->ranks,
			quantity_format(size, j->bytes, UNIT_BYTE),
			quantity_format(busbw, j->busbw_Bps, UNIT_BYTE_PER_S));
		st = add(t, what, &f, e);
	}
	if (!st)
		print(t, out);
	table_destroy(t);
	return st;
}

/* ---- CSV ---- */

/* Empty: not known. */
static void number(bool known, double v, FILE *out) { report_csv_number(known ? v : NAN, 9, out); }

static void text(const char *s, FILE *out)
{
	fputc(',', out);
	report_csv_cell(s ? s : "", out);
}

static void times(const struct figures *f, FILE *out)
{
	const bool good = !f->reason[0];
	number(good, f->predicted_s, out);
	number(f->measured_s > 0, f->measured_s, out);
	number(good && f->measured_s > 0, f->predicted_s / f->measured_s - 1, out);
	number(good, f->low_s, out);
	number(good, f->high_s, out);
}

#define TIMES "predicted_s,measured_s,error,interval90_low_s,interval90_high_s"

static void write_steps(const void *of, FILE *out)
{
	const judged_rows *rows = of;
	fputs("id," TIMES ",predicted_memory_bytes,measured_memory_bytes,fits,tight,network,reason\n", out);
	for (size_t i = 0; i < rows->n; i++) {
		const struct judged *j = &rows->at[i];
		const struct figures f = of_step(j);
		report_csv_cell(j->id, out);
		times(&f, out);
		number(j->predicted_memory_B > 0, j->predicted_memory_B, out);
		number(j->measured_memory_B > 0, j->measured_memory_B, out);
		text(j->reason[0] ? "" : j->fits ? "true" : "false", out);
		text(j->reason[0] ? "" : j->tight ? "true" : "false", out);
		text(network_known_name(j->network), out);
		text(j->reason, out);
		fputc('\n', out);
	}
}

static void write_collectives(const void *of, FILE *out)
{
	const judged_collectives *rows = of;
	fputs("id,machine,collective,ranks,bytes," TIMES
	      ",algorithm,protocol,channels,best,use,network,fabric,reason,busbw_Bps\n",
		out);
	for (size_t i = 0; i < rows->n; i++) {
		const struct judged_collective *j = &rows->at[i];
		const struct figures f = of_collective(j);
		report_csv_cell(j->id, out);
		text(j->machine, out);
		text(j->collective, out);
		fprintf(out, ",%" PRId64, j->ranks);
		number(true, j->bytes, out);
		times(&f, out);
		text(j->algorithm, out);
		text(j->protocol, out);
		number(j->channels > 0, j->channels, out);
		text(j->best ? "true" : "false", out);
		text(j->use, out);
		text(network_known_name(j->network), out);
		text(j->fabric, out);
		text(j->reason, out);
		number(j->busbw_Bps > 0, j->busbw_Bps, out);
		fputc('\n', out);
	}
}

enum status rows_csv(const judged_rows *rows, const char *path, struct error *e)
{
	return file_write_of(path, write_steps, rows, "the CSV", e);
}

enum status collective_rows_csv(const judged_collectives *rows, const char *path, struct error *e)
{
	return file_write_of(path, write_collectives, rows, "the CSV", e);
}
