#include "base/csv.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "base/vec.h"

#define CSV_LIMIT_B ((size_t)256 << 20)

struct reader {
	char *at;  /* next character */
	char *out; /* where the cell's text goes: unquoting only ever shortens it */
	int line;
	const char *path;
};

enum ending { ENDS_CELL, ENDS_ROW, ENDS_TEXT };

static enum status bad(const struct reader *r, const char *what, struct error *e)
{
	return error_set(e, ST_INPUT, "%s:%d: %s", r->path, r->line, what);
}

static enum status quoted(struct reader *r, struct error *e)
{
	struct reader begin = *r;
	for (r->at++;; r->at++) {
		if (*r->at == '\0')
			return bad(&begin, "a quote that does not end", e);
		if (*r->at == '"' && r->at[1] != '"') {
			r->at++;
			return ST_OK;
		}
		if (*r->at == '"')
			r->at++;
		r->line += *r->at == '\n';
		*r->out++ = *r->at;
	}
}

/* One cell, terminated in place; where it ends. */
static enum status cell(struct reader *r, char **text, enum ending *end, struct error *e)
{
	enum status st = ST_OK;
	r->out = r->at;
	*text = r->at;
	if (*r->at == '"' && (st = quoted(r, e)))
		return st;
	while (*r->at && *r->at != ',' && *r->at != '\n' && *r->at != '\r')
		*r->out++ = *r->at++;
	char ended = *r->at;
	*end = ended == ',' ? ENDS_CELL : ended ? ENDS_ROW : ENDS_TEXT;
	if (ended == '\r' && r->at[1] == '\n')
		r->at++;
	if (ended) {
		r->line += ended != ',';
		r->at++;
	}
	*r->out = '\0';
	return ST_OK;
}

typedef VEC(char *) cells;

static enum status row(struct reader *r, cells *out, bool *more, struct error *e)
{
	enum ending end = ENDS_CELL;
	while (end == ENDS_CELL) {
		char *text;
		enum status st = cell(r, &text, &end, e);
		if (st)
			return st;
		if (!vec_push(out, text))
			return error_nomem(e, "a table");
	}
	*more = end == ENDS_ROW && *r->at;
	return ST_OK;
}

static enum status check_header(const struct csv *t, struct error *e)
{
	for (size_t i = 0; i < t->columns; i++)
		for (size_t j = 0; j < i; j++)
			if (t->name[i][0] && strcmp(t->name[i], t->name[j]) == 0)
				return error_set(e, ST_INPUT, "%s:1: the column %s is there twice", t->path,
					t->name[i]);
	return ST_OK;
}

static bool is_blank(const cells *c, size_t from) { return c->n == from + 1 && c->at[from][0] == '\0'; }

enum status csv_parse(char *text, size_t len, const char *name, struct csv *out, struct error *e)
{
	struct reader r = {.at = text, .line = 1, .path = out->path};
	cells names = {0}, all = {0};
	VEC(int) lines = {0};
	bool more = true;
	enum status st = ST_OK;
	*out = (struct csv){.text = text};
	snprintf(out->path, sizeof out->path, "%s", name);
	if (strlen(text) != len)
		st = error_set(e, ST_INPUT, "%s: not a text: it holds a zero byte", name);
	else if (len == 0)
		st = error_set(e, ST_INPUT, "%s:1: no header", name);
	else if (!(st = row(&r, &names, &more, e))) {
		out->columns = names.n;
		out->name = names.at;
		st = check_header(out, e);
	}
	while (!st && more) {
		int line = r.line;
		size_t begin = all.n;
		if ((st = row(&r, &all, &more, e)))
			break;
		if (is_blank(&all, begin))
			all.n = begin;
		else if (all.n - begin != out->columns)
			st = error_set(e, ST_INPUT, "%s:%d: %zu cells in this row, %zu columns in the header", name,
				line, all.n - begin, out->columns);
		else if (!vec_push(&lines, line))
			st = error_nomem(e, "a table");
	}
	out->name = names.at;
	out->cell = all.at;
	out->line = lines.at;
	out->rows = lines.n;
	if (st)
		csv_free(out);
	return st;
}

enum status csv_load(const char *path, struct csv *out, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = file_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, CSV_LIMIT_B, &text, &len, e);
	return st ? st : csv_parse(text, len, path, out, e);
}

void csv_free(struct csv *t)
{
	free(t->name);
	free(t->cell);
	free(t->line);
	free(t->text);
	*t = (struct csv){0};
}

size_t csv_column(const struct csv *t, const char *name)
{
	for (size_t i = 0; i < t->columns; i++)
		if (strcmp(t->name[i], name) == 0)
			return i;
	return CSV_NO_COLUMN;
}

const char *csv_get(const struct csv *t, size_t r, const char *name)
{
	size_t c = csv_column(t, name);
	return c == CSV_NO_COLUMN ? "" : t->cell[r * t->columns + c];
}

enum status csv_check_numbers(const struct csv *t, const char *const *columns, struct error *e)
{
	for (; *columns; columns++) {
		for (size_t r = 0; r < t->rows; r++) {
			const char *cell = csv_get(t, r, *columns);
			double value = 0;
			if (*cell && (quantity_parse(cell, UNIT_NONE, &value, NULL) || value < 0))
				return error_set(e, ST_INPUT, "%s:%d: %s: expected a number or nothing, got \"%.40s\"",
					t->path, t->line[r], *columns, cell);
		}
	}
	return ST_OK;
}
