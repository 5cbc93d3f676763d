#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "report/report.h"

/* 15 digits: every decimal of that length survives, and 0.1 is written as 0.1. */
#define JSON_STYLE (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

enum status report_write_json(const json_t *j, const char *path, struct error *e)
{
	size_t len = j ? json_dumpb(j, NULL, 0, JSON_STYLE) : 0;
	char *text = len ? malloc(len + 1) : NULL;
	if (!text)
		return error_nomem(e, "the JSON text");
	/* jansson sorts and marks what it has visited: the second pass may lack memory too. */
	enum status st = json_dumpb(j, text, len, JSON_STYLE) == len ? ST_OK : error_nomem(e, "the JSON text");
	text[len] = '\n';
	if (!st)
		st = file_write(path, text, len + 1, e);
	free(text);
	return st;
}

void report_csv_cell(const char *text, FILE *out)
{
	if (!strpbrk(text, ",\"\n")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', out);
}

void report_csv_number(double v, int digits, FILE *out)
{
	fputc(',', out);
	if (isfinite(v))
		fprintf(out, "%.*g", digits, v);
}

void report_csv_step(const struct result *p, int64_t ranks, FILE *out)
{
	const struct {
		double value;
		int digits;
	} columns[] = {{p->time.step_s, 9}, {p->interval90_s[0], 9}, {p->interval90_s[1], 9}, {p->tokens_per_s, 9},
		{p->mfu, 6}, {p->time.exposed_comm_s, 9}, {p->time.overlap, 6}};
	fprintf(out, ",%" PRId64, ranks);
	for (size_t i = 0; i < COUNT(columns); i++)
		report_csv_number(columns[i].value, columns[i].digits, out);
	fprintf(out, ",%" PRIu64 ",%s,", p->memory.total_B, p->memory.fits ? "true" : "false");
}
