#include <math.h>
#include <stdlib.h>
#include <string.h>

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
